/* Types of collective operations, and what the elements of a PE are: small whole numbers, exact in every
 * type, so that sums and products are exact as well. */

#ifndef MODELS_H
#define MODELS_H

#include "check.h"
#include <complex.h>

#define FIXED_TYPES(X, ...) \
    X(int8, int8_t, __VA_ARGS__) X(int16, int16_t, __VA_ARGS__) X(int32, int32_t, __VA_ARGS__) \
    X(int64, int64_t, __VA_ARGS__) X(uint8, uint8_t, __VA_ARGS__) X(uint16, uint16_t, __VA_ARGS__) \
    X(uint32, uint32_t, __VA_ARGS__) X(uint64, uint64_t, __VA_ARGS__)

#define BIT_TYPES(X, ...) \
    X(uchar, unsigned char, __VA_ARGS__) X(ushort, unsigned short, __VA_ARGS__) \
    X(uint, unsigned int, __VA_ARGS__) X(ulong, unsigned long, __VA_ARGS__) \
    X(ulonglong, unsigned long long, __VA_ARGS__) X(size, size_t, __VA_ARGS__) FIXED_TYPES(X, __VA_ARGS__)

#define ORDER_TYPES(X, ...) \
    X(char, char, __VA_ARGS__) X(schar, signed char, __VA_ARGS__) X(short, short, __VA_ARGS__) \
    X(int, int, __VA_ARGS__) X(long, long, __VA_ARGS__) X(longlong, long long, __VA_ARGS__) \
    X(ptrdiff, ptrdiff_t, __VA_ARGS__) X(float, float, __VA_ARGS__) X(double, double, __VA_ARGS__) \
    X(longdouble, long double, __VA_ARGS__) BIT_TYPES(X, __VA_ARGS__)

#define COMPLEX_TYPES(X, ...) \
    X(complexd, double _Complex, __VA_ARGS__) X(complexf, float _Complex, __VA_ARGS__)

#define SUM_TYPES(X, ...) ORDER_TYPES(X, __VA_ARGS__) COMPLEX_TYPES(X, __VA_ARGS__)

/* Element i of number `rank`: 1 to 7, and a part that only complex numbers keep. */
#define ELEMENT(TYPE, rank, i) ((TYPE) ((double) (1 + (5 * (rank) + 3 * (int) (i)) % 7) + 2.0 * (rank) * I))

/* Operations on two elements. */
#define OP_and(a, b) ((a) & (b))
#define OP_or(a, b) ((a) | (b))
#define OP_xor(a, b) ((a) ^ (b))
#define OP_min(a, b) ((b) < (a) ? (b) : (a))
#define OP_max(a, b) ((b) > (a) ? (b) : (a))
#define OP_sum(a, b) ((a) + (b))
#define OP_prod(a, b) ((a) * (b))

/* As many elements as one call has at most, and PEs. */
#define LENGTH_MAX 700
#define PES_MAX 4

/* Source and target of one call; the target is larger than any call writes, and what it holds before is
 * seen to be kept behind the elements of the call. */
typedef struct {
    _Alignas(64) unsigned char source[LENGTH_MAX * PES_MAX * 16];
    _Alignas(64) unsigned char dest[LENGTH_MAX * PES_MAX * 3 * 16];
    long psync[SHMEM_SYNC_SIZE], turn[SHMEM_SYNC_SIZE];
    unsigned char work[LENGTH_MAX * 16];
} area_t;

#define MARKER 0x5a

static inline void check_marked(const unsigned char *from, const unsigned char *to, const char *what) {
    if (from < to) {
        /* Each byte equals the one before it. */
        CHECK_WITH(*from == MARKER && memcmp(from, from + 1, (size_t) (to - from) - 1) == 0, what);
    }
}

#endif
