/* The predefined operations on the types that the standard lists, by reductions of one process and of all. */
#include "coll_check.h"
#include <complex.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Reduces x and y by MPI_Reduce_local, then the same with all processes: x at even ranks, y at odd ones. */
#define CASE(ctype, type, op, x, y, expected)                                                           \
    do {                                                                                                \
        ctype one = (x), two = (y), want = (expected), got;                                             \
        MPI_Reduce_local(&one, &two, 1, type, op);                                                      \
        ASSERT(two == want, #op " of " #type ": %g, expected %g", (double)creal(two), (double)creal(want)); \
        ctype mine = rank % 2 ? (y) : (x);                                                              \
        if (size == 2) {                                                                                \
            MPI_Allreduce(&mine, &got, 1, type, op, comm);                                              \
            ASSERT(got == want, "allreduce by " #op " of " #type);                                      \
        }                                                                                               \
    } while (0)

#define NUMBERS(ctype, type)                   \
    do {                                       \
        CASE(ctype, type, MPI_SUM, 5, 7, 12);  \
        CASE(ctype, type, MPI_PROD, 5, 7, 35); \
        CASE(ctype, type, MPI_MIN, 5, 7, 5);   \
        CASE(ctype, type, MPI_MAX, 5, 7, 7);   \
    } while (0)
#define BITS(ctype, type)                        \
    do {                                         \
        CASE(ctype, type, MPI_BAND, 12, 10, 8);  \
        CASE(ctype, type, MPI_BOR, 12, 10, 14);  \
        CASE(ctype, type, MPI_BXOR, 12, 10, 6);  \
    } while (0)
#define LOGICAL(ctype, type)                     \
    do {                                         \
        CASE(ctype, type, MPI_LAND, 1, 0, 0);    \
        CASE(ctype, type, MPI_LAND, 1, 1, 1);    \
        CASE(ctype, type, MPI_LOR, 0, 1, 1);     \
        CASE(ctype, type, MPI_LOR, 0, 0, 0);     \
        CASE(ctype, type, MPI_LXOR, 1, 1, 0);    \
        CASE(ctype, type, MPI_LXOR, 0, 1, 1);    \
    } while (0)
#define INTEGER(ctype, type)  \
    do {                      \
        NUMBERS(ctype, type); \
        BITS(ctype, type);    \
        LOGICAL(ctype, type); \
    } while (0)
#define COMPLEX(ctype, type)                                                          \
    do {                                                                              \
        CASE(ctype, type, MPI_SUM, 1 + 2 * I, 3 - 5 * I, 4 - 3 * I);                  \
        CASE(ctype, type, MPI_PROD, 1 + 2 * I, 3 - 5 * I, (1 + 2 * I) * (3 - 5 * I)); \
    } while (0)

static void integers(void) {
    INTEGER(signed char, MPI_SIGNED_CHAR);
    INTEGER(unsigned char, MPI_UNSIGNED_CHAR);
    INTEGER(signed char, MPI_CHAR);
    INTEGER(signed char, MPI_CHARACTER);
    CASE(signed char, MPI_CHAR, MPI_MIN, -5, 3, -5);
    CASE(signed char, MPI_CHAR, MPI_MAX, -5, 3, 3);
    CASE(signed char, MPI_CHAR, MPI_LAND, 6, 9, 1);
    INTEGER(short, MPI_SHORT);
    INTEGER(unsigned short, MPI_UNSIGNED_SHORT);
    INTEGER(int, MPI_INT);
    INTEGER(unsigned, MPI_UNSIGNED);
    INTEGER(long, MPI_LONG);
    INTEGER(unsigned long, MPI_UNSIGNED_LONG);
    INTEGER(long long, MPI_LONG_LONG);
    INTEGER(unsigned long long, MPI_UNSIGNED_LONG_LONG);
    INTEGER(int8_t, MPI_INT8_T);
    INTEGER(int16_t, MPI_INT16_T);
    INTEGER(int32_t, MPI_INT32_T);
    INTEGER(int64_t, MPI_INT64_T);
    INTEGER(uint8_t, MPI_UINT8_T);
    INTEGER(uint16_t, MPI_UINT16_T);
    INTEGER(uint32_t, MPI_UINT32_T);
    INTEGER(uint64_t, MPI_UINT64_T);
    NUMBERS(MPI_Aint, MPI_AINT);
    NUMBERS(MPI_Offset, MPI_OFFSET);
    NUMBERS(MPI_Count, MPI_COUNT);
    BITS(MPI_Aint, MPI_AINT);
    BITS(unsigned char, MPI_BYTE);
    CASE(int, MPI_INT, MPI_LAND, 6, 9, 1);
    CASE(int, MPI_INT, MPI_MIN, INT_MIN, 3, INT_MIN);
    CASE(unsigned, MPI_UNSIGNED, MPI_MAX, UINT_MAX, 3, UINT_MAX);
    LOGICAL(bool, MPI_C_BOOL);
}

static void floats(void) {
    NUMBERS(float, MPI_FLOAT);
    NUMBERS(double, MPI_DOUBLE);
    NUMBERS(long double, MPI_LONG_DOUBLE);
    CASE(long double, MPI_LONG_DOUBLE, MPI_SUM, 1.0L, 0x1p-63L, 1.0L + 0x1p-63L);
    CASE(long double, MPI_LONG_DOUBLE, MPI_PROD, 1.0L + 0x1p-60L, 3.0L, (1.0L + 0x1p-60L) * 3.0L);
    CASE(long double, MPI_LONG_DOUBLE, MPI_MIN, -1e4000L, 1.0L, -1e4000L);
    CASE(long double, MPI_LONG_DOUBLE, MPI_MAX, INFINITY, 1.0L, (long double)INFINITY);
    COMPLEX(float complex, MPI_C_FLOAT_COMPLEX);
    COMPLEX(double complex, MPI_C_DOUBLE_COMPLEX);
    COMPLEX(long double complex, MPI_C_LONG_DOUBLE_COMPLEX);
    CASE(long double complex, MPI_C_LONG_DOUBLE_COMPLEX, MPI_SUM, 1.0L, 0x1p-63L * I, 1.0L + 0x1p-63L * I);
}

/* Least and greatest values with their places; of equal ones the least place. */
#define LOCATED(name, vtype, itype, type)                                                             \
    static void name(void) {                                                                          \
        struct pair {                                                                                 \
            vtype value;                                                                              \
            itype index;                                                                              \
        };                                                                                            \
        for (int least = 0; least < 2; least++) {                                                     \
            struct pair mine[3], got[3];                                                              \
            memset(mine, 0, sizeof mine);                                                             \
            mine[0].value = 10 + (least ? rank : -rank), mine[0].index = 50 + rank;                   \
            mine[1].value = 4, mine[1].index = 60 - rank;                                             \
            mine[2].value = rank == size / 2 ? (least ? -9 : 9) : 0, mine[2].index = rank;            \
            MPI_Op op = least ? MPI_MINLOC : MPI_MAXLOC;                                              \
            MPI_Allreduce(mine, got, 3, type, op, comm);                                              \
            ASSERT(got[0].value == 10 && got[0].index == 50, #type ": %g at %d", (double)got[0].value, \
                   (int)got[0].index);                                                                \
            ASSERT(got[1].value == 4 && got[1].index == 61 - size, #type ": equal values: %d",         \
                   (int)got[1].index);                                                                \
            ASSERT(got[2].value == (least ? -9 : 9) && got[2].index == size / 2, #type ": %g at %d",   \
                   (double)got[2].value, (int)got[2].index);                                          \
            MPI_Reduce_local(&mine[0], &got[0], 1, type, op);                                         \
            ASSERT(got[0].value == 10 && got[0].index == 50, #type ": local");                         \
        }                                                                                             \
    }
LOCATED(float_int, float, int, MPI_FLOAT_INT)
LOCATED(double_int, double, int, MPI_DOUBLE_INT)
LOCATED(long_int, long, int, MPI_LONG_INT)
LOCATED(two_int, int, int, MPI_2INT)
LOCATED(short_int, short, int, MPI_SHORT_INT)
LOCATED(long_double_int, long double, int, MPI_LONG_DOUBLE_INT)

static void commutativity(void) {
    MPI_Op all[] = {MPI_SUM,  MPI_PROD, MPI_MIN, MPI_MAX,  MPI_LAND,   MPI_LOR,
                    MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC};
    int commutes;
    for (int i = 0; i < 12; i++) {
        commutes = 0;
        MPI_Op_commutative(all[i], &commutes);
        ASSERT(commutes == 1, "operation %d does not commute", i);
    }
    MPI_Op_commutative(MPI_REPLACE, &commutes);
    ASSERT(commutes == 0, "MPI_REPLACE commutes");
}

static int calls;

static void count_calls(void *in, void *inout, int *len, MPI_Datatype *type) {
    calls += *len;
    ASSERT(*type == MPI_INT, "the function gets another datatype");
    for (int i = 0; i < *len; i++) ((int *)inout)[i] = 10 * ((int *)in)[i] + ((int *)inout)[i];
}

static void functions(void) {
    MPI_Op op, freed;
    int commutes = -1, code, x[2] = {1, 2}, y[2] = {3, 4};
    MPI_Op_create(count_calls, 0, &op);
    MPI_Op_commutative(op, &commutes);
    ASSERT(commutes == 0, "commutes: %d", commutes);
    MPI_Reduce_local(x, y, 2, MPI_INT, op);
    ASSERT(y[0] == 13 && y[1] == 24 && calls == 2, "%d %d after %d calls", y[0], y[1], calls);
    freed = op;
    MPI_Op_free(&op);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    code = MPI_Op_free(&freed);
    ASSERT(code == MPI_ERR_OP, "a second free returns %d", code);
    code = MPI_Allreduce(x, y, 2, MPI_INT, freed, comm);
    ASSERT(code == MPI_ERR_OP, "a freed operation returns %d", code);
    op = MPI_SUM;
    code = MPI_Op_free(&op);
    ASSERT(code == MPI_ERR_OP, "the free of MPI_SUM returns %d", code);
    code = MPI_Reduce_local(x, x, 2, MPI_INT, MPI_SUM);
    ASSERT(code == MPI_ERR_BUFFER, "one buffer twice returns %d", code);
    code = MPI_Reduce_local(x, y, 1, MPI_BYTE, MPI_SUM);
    ASSERT(code == MPI_ERR_OP, "a sum of bytes returns %d", code);
    code = MPI_Op_create(NULL, 1, &op);
    ASSERT(code == MPI_ERR_ARG, "no function returns %d", code);
    code = MPI_Op_commutative(MPI_OP_NULL, &commutes);
    ASSERT(code == MPI_ERR_OP, "MPI_OP_NULL returns %d", code);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    integers();
    floats();
    float_int();
    double_int();
    long_int();
    two_int();
    short_int();
    long_double_int();
    commutativity();
    functions();
    return finish();
}
