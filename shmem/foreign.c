/* What Rust cannot define: functions that pass `long double` by value, and the one with `...`. They hand over
 * to src/foreign.rs by address. */

#define PELAGO_NO_GENERICS
#include "pshmem.h"
#include "shmem.h"

void pelago_shmem_p(long double *dest, const long double *value, int pe);
void pelago_shmem_ctx_p(shmem_ctx_t ctx, long double *dest, const long double *value, int pe);
void pelago_shmem_g(long double *value, const long double *source, int pe);
void pelago_shmem_ctx_g(shmem_ctx_t ctx, long double *value, const long double *source, int pe);
void pelago_shmem_pcontrol(int level);

/* Under both of its names. */
#define TWICE(make) make(shmem_) make(pshmem_)

#define LONG_DOUBLE(prefix) \
    void prefix##longdouble_p(long double *dest, long double value, int pe) \
    { \
        pelago_shmem_p(dest, &value, pe); \
    } \
    void prefix##ctx_longdouble_p(shmem_ctx_t ctx, long double *dest, long double value, int pe) \
    { \
        pelago_shmem_ctx_p(ctx, dest, &value, pe); \
    } \
    long double prefix##longdouble_g(const long double *source, int pe) \
    { \
        long double value; \
        pelago_shmem_g(&value, source, pe); \
        return value; \
    } \
    long double prefix##ctx_longdouble_g(shmem_ctx_t ctx, const long double *source, int pe) \
    { \
        long double value; \
        pelago_shmem_ctx_g(ctx, &value, source, pe); \
        return value; \
    }

/* The arguments after the level are for tools that have a use for them. */
#define PCONTROL(prefix) \
    void prefix##pcontrol(int level, ...) \
    { \
        pelago_shmem_pcontrol(level); \
    }

TWICE(LONG_DOUBLE)
TWICE(PCONTROL)
