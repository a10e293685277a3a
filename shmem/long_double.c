/* Reductions and scans of long double, with which Rust cannot compute: the functions of the interface, which
 * pass one that combines two elements on to the library (src/collective/reduce.rs). Minimum and maximum are
 * those of the other types: NaN if an element is NaN, and -0 is less than +0. */

#include <stddef.h>

typedef void *team_t;
typedef void combine_t(const long double *left, const long double *right, long double *into);

int pelago_shmem_longdouble_reduce(const char *call, team_t team, long double *dest, const long double *source,
                                   size_t nreduce, combine_t *combine);
int pelago_shmem_longdouble_reduce_nb(const char *call, team_t team, long double *dest,
                                      const long double *source, size_t nreduce, void **request,
                                      combine_t *combine);
int pelago_shmem_longdouble_scan(const char *call, team_t team, long double *dest, const long double *source,
                                 size_t nelems, combine_t *combine, int is_inclusive);
void pelago_shmem_longdouble_to_all(const char *call, long double *dest, const long double *source, int nreduce,
                                    int pe_start, int log_pe_stride, int pe_size, long *psync,
                                    combine_t *combine);

static void combine_sum(const long double *left, const long double *right, long double *into) {
    *into = *left + *right;
}

static void combine_prod(const long double *left, const long double *right, long double *into) {
    *into = *left * *right;
}

static int is_nan(long double x) {
    return x != x;
}

static int is_negative(long double x) {
    return __builtin_signbit(x) != 0;
}

static int is_less(long double left, long double right) {
    return left < right || (left == right && is_negative(left) && !is_negative(right));
}

static void combine_min(const long double *left, const long double *right, long double *into) {
    *into = is_nan(*left) || (!is_nan(*right) && is_less(*left, *right)) ? *left : *right;
}

static void combine_max(const long double *left, const long double *right, long double *into) {
    *into = is_nan(*left) || (!is_nan(*right) && is_less(*right, *left)) ? *left : *right;
}

#define REDUCE(NAME, OP)                                                                                       \
    int NAME(team_t team, long double *dest, const long double *source, size_t nreduce) {                      \
        return pelago_shmem_longdouble_reduce(#NAME, team, dest, source, nreduce, combine_##OP);               \
    }

/* An extension; its request is an address for whoever passes it on. */
#define REDUCE_NB(OP)                                                                                          \
    int shmemx_longdouble_##OP##_reduce_nb(team_t team, long double *dest, const long double *source,          \
                                           size_t nreduce, void **request) {                                   \
        return pelago_shmem_longdouble_reduce_nb("shmemx_longdouble_" #OP "_reduce_nb", team, dest, source,    \
                                                 nreduce, request, combine_##OP);                              \
    }

#define SCAN(NAME, IS_INCLUSIVE)                                                                               \
    int NAME(team_t team, long double *dest, const long double *source, size_t nelems) {                       \
        return pelago_shmem_longdouble_scan(#NAME, team, dest, source, nelems, combine_sum, IS_INCLUSIVE);     \
    }

#define TO_ALL(NAME, OP)                                                                                       \
    void NAME(long double *dest, const long double *source, int nreduce, int pe_start, int log_pe_stride,      \
              int pe_size, long double *pwrk, long *psync) {                                                   \
        (void)pwrk;                                                                                            \
        pelago_shmem_longdouble_to_all(#NAME, dest, source, nreduce, pe_start, log_pe_stride, pe_size, psync,  \
                                       combine_##OP);                                                          \
    }

#define TWINS(KIND, NAME, ARGUMENT) KIND(shmem_longdouble_##NAME, ARGUMENT) KIND(pshmem_longdouble_##NAME, ARGUMENT)

TWINS(REDUCE, min_reduce, min)
TWINS(REDUCE, max_reduce, max)
TWINS(REDUCE, sum_reduce, sum)
TWINS(REDUCE, prod_reduce, prod)
TWINS(SCAN, sum_inscan, 1)
TWINS(SCAN, sum_exscan, 0)
SCAN(shmemx_longdouble_sum_inscan, 1)
SCAN(shmemx_longdouble_sum_exscan, 0)
REDUCE_NB(min)
REDUCE_NB(max)
REDUCE_NB(sum)
REDUCE_NB(prod)
TWINS(TO_ALL, min_to_all, min)
TWINS(TO_ALL, max_to_all, max)
TWINS(TO_ALL, sum_to_all, sum)
TWINS(TO_ALL, prod_to_all, prod)
