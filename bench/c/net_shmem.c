/* Puts, gets and collective operations of Pelago's OpenSHMEM library between nodes, as net_rows.h says. A message
 * is a put with a signal. */

#include <shmem.h>

#include "net_rows.h"

enum { IN_FLIGHT = 64 };

static uint64_t *signal_word, sent;

static void meet(void)
{
    shmem_barrier_all();
}

static void round_trip(size_t bytes)
{
    sent++;
    if (rank == 0) {
        shmem_putmem_signal(target, source, bytes, signal_word, sent, SHMEM_SIGNAL_SET, partner);
        shmem_signal_wait_until(signal_word, SHMEM_CMP_EQ, sent);
    } else if (rank == partner) {
        shmem_signal_wait_until(signal_word, SHMEM_CMP_EQ, sent);
        shmem_putmem_signal(target, source, bytes, signal_word, sent, SHMEM_SIGNAL_SET, 0);
    }
}

static void window(size_t bytes)
{
    if (rank == 0) {
        for (int i = 0; i < WINDOW; i++) {
            shmem_putmem_nbi(target, source, bytes, partner);
        }
        shmem_quiet();
    }
}

static void collective(enum operation what, size_t bytes)
{
    const size_t n = bytes / sizeof(long);
    long *into = (long *)target, *from = (long *)source;
    switch (what) {
    case BARRIER: shmem_barrier_all(); break;
    case BROADCAST: shmem_long_broadcast(SHMEM_TEAM_WORLD, into, from, n, 0); break;
    case ALL_REDUCE: shmem_long_sum_reduce(SHMEM_TEAM_WORLD, into, from, n); break;
    case ALL_TO_ALL: shmem_long_alltoall(SHMEM_TEAM_WORLD, into, from, n); break;
    case ALL_GATHER: shmem_long_fcollect(SHMEM_TEAM_WORLD, into, from, n); break;
    default: die("no such operation");
    }
}

static void check(enum operation what, size_t bytes)
{
    check_all(what, bytes);
}

static void put_and_quiet(int i)
{
    if (rank == 0) {
        shmem_long_p((long *)target, i, partner);
        shmem_quiet();
    }
}

static void get(void)
{
    if (rank == 0) {
        shmem_long_g((long *)target, partner);
    }
}

static void many_puts(int i)
{
    if (rank == 0) {
        for (int place = 0; place < IN_FLIGHT; place++) {
            shmem_long_p((long *)target + place, i, partner);
        }
        shmem_quiet();
    }
}

int main(void)
{
    shmem_init();
    rank = shmem_my_pe();
    ranks = shmem_n_pes();
    partner = ranks / 2;
    source = shmem_calloc(ranks, BYTES_MAX);
    target = shmem_calloc(ranks, BYTES_MAX);
    signal_word = shmem_calloc(1, sizeof *signal_word);
    if (source == NULL || target == NULL || signal_word == NULL) {
        die("no symmetric memory");
    }
    measure_all();
    MEASURE("put-quiet", sizeof(long), 200, 1, put_and_quiet(i));
    MEASURE("get", sizeof(long), 200, 1, get());
    MEASURE("put-rate", sizeof(long), 50, IN_FLIGHT, many_puts(i));
    shmem_finalize();
    return 0;
}
