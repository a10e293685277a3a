/* Collective operations of an OpenSHMEM library (1.4: by active sets), timed as coll_measure.h says. It has no
 * scatter, no gather, and no reduction whose result goes to one PE only. */

#include <shmem.h>

#include "coll_measure.h"

/* Work arrays go round, as one may be in use by another PE when this one begins the next operation. Where the
 * root goes round, no PE is more than `ranks` operations ahead of another one; where it is fixed, all meet
 * before an array comes again. */
enum { IN_TURN = 64 };

static long *sync_words;
static double *work, *largest_in, *largest_out;

static int has(enum operation what)
{
    return what != SCATTER && what != GATHER && what != REDUCE;
}

static void meet(void)
{
    shmem_barrier_all();
}

static double largest(double value)
{
    *largest_in = value;
    shmem_barrier_all();
    shmem_double_max_to_all(largest_out, largest_in, 1, 0, 0, ranks, work, sync_words);
    const double result = *largest_out;
    shmem_barrier_all();
    return result;
}

static void operate(enum operation what, size_t doubles, int root, long number)
{
    const size_t turn = number % IN_TURN;
    long *sync = sync_words + turn * SHMEM_ALLTOALL_SYNC_SIZE;
    if (what == BROADCAST) {
        sync = sync_words + turn * SHMEM_BCAST_SYNC_SIZE;
    } else if (what == ALL_GATHER) {
        sync = sync_words + turn * SHMEM_COLLECT_SYNC_SIZE;
    } else if (what == ALL_REDUCE) {
        sync = sync_words + turn * SHMEM_REDUCE_SYNC_SIZE;
    }
    switch (what) {
    case BARRIER: shmem_barrier_all(); break;
    case BROADCAST:
        if (is_root_fixed && turn == IN_TURN - 1) {
            shmem_barrier_all();
        }
        shmem_broadcast64(target, source, doubles, root, 0, 0, ranks, sync);
        break;
    case ALL_GATHER: shmem_fcollect64(target, source, doubles, 0, 0, ranks, sync); break;
    case ALL_TO_ALL: shmem_alltoall64(target, source, doubles, 0, 0, ranks, sync); break;
    case ALL_REDUCE: {
        const size_t half = bytes_max / sizeof(double) / 2 + 1;
        const size_t words = half > SHMEM_REDUCE_MIN_WRKDATA_SIZE ? half : SHMEM_REDUCE_MIN_WRKDATA_SIZE;
        double *own = work + number % 2 * words;
        shmem_double_sum_to_all(target, source, (int)doubles, 0, 0, ranks, own, sync);
        break;
    }
    default: die("no such operation");
    }
}

int main(int count, char **arguments)
{
    shmem_init();
    rank = shmem_my_pe();
    ranks = shmem_n_pes();
    read_arguments(count, arguments);
    const size_t words = IN_TURN * (SHMEM_BCAST_SYNC_SIZE + SHMEM_COLLECT_SYNC_SIZE + SHMEM_REDUCE_SYNC_SIZE +
                                    SHMEM_ALLTOALL_SYNC_SIZE);
    sync_words = shmem_malloc(words * sizeof(long));
    source = shmem_align(4096, ranks * bytes_max + 8);
    target = shmem_align(4096, ranks * bytes_max + 8);
    work = shmem_malloc(bytes_max + (2 * SHMEM_REDUCE_MIN_WRKDATA_SIZE + 4) * sizeof(double));
    largest_in = shmem_malloc(sizeof(double));
    largest_out = shmem_malloc(sizeof(double));
    if (!sync_words || !source || !target || !work || !largest_in || !largest_out) {
        die("no symmetric memory");
    }
    for (size_t i = 0; i < words; i++) {
        sync_words[i] = SHMEM_SYNC_VALUE;
    }
    shmem_barrier_all();
    measure_all();
    shmem_finalize();
    return 0;
}
