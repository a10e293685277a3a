/* Threads of all PEs at once, each with a context of its own: puts, gets, atomics, locks and waits, while the
 * another thread of each PE takes part in collectives. With -fopenmp the threads are those of OpenMP. */

#include "check.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, ROUNDS = 40, LOCKED = 10, BLOCK = 40, PES_MAX = 4 };

static int me, n, left, right;

/* Symmetric. A thread's block on each PE belongs to the thread of the same number of each PE. */
static long blocks[PES_MAX][THREADS][BLOCK];
static long parcels[THREADS][2][BLOCK];
static uint64_t arrived[THREADS], taken[THREADS];
static int64_t bits[THREADS];
static long increments, fetched_sum, swapped[THREADS];
/* A lock belongs to a PE, not to a thread: those of the same number share one. */
static long locks[THREADS], guarded[THREADS][2];

/* What was put is there, and comes back. */
static void put_and_get(shmem_ctx_t ctx, int thread, int round) {
    const int pe = (me + round) % n;
    long mine[BLOCK], back[BLOCK];
    for (int i = 0; i < BLOCK; i++) mine[i] = ((long) round * THREADS + thread) * BLOCK + i;
    shmem_ctx_long_put_nbi(ctx, blocks[me][thread], mine, BLOCK, pe);
    shmem_ctx_quiet(ctx);
    shmem_ctx_long_get_nbi(ctx, back, blocks[me][thread], BLOCK, pe);
    shmem_ctx_quiet(ctx);
    CHECK(memcmp(mine, back, sizeof mine) == 0);
    shmem_ctx_long_p(ctx, &blocks[me][thread][1], -round, pe);
    shmem_ctx_quiet(ctx);
    CHECK(shmem_ctx_long_g(ctx, &blocks[me][thread][1], pe) == -round);
}

/* All threads add to the words of one PE, and each number is handed out once. */
static void count(shmem_ctx_t ctx, int thread, int round) {
    const int pe = (thread + round) % n;
    shmem_ctx_long_atomic_inc(ctx, &increments, pe);
    const long before = shmem_ctx_long_atomic_fetch_add(ctx, &fetched_sum, 1, n - 1);
    CHECK(before >= 0 && before < (long) n * THREADS * ROUNDS);
    const int64_t bit = INT64_C(1) << (me * THREADS + thread);
    CHECK(((shmem_ctx_int64_atomic_fetch_xor(ctx, &bits[thread], bit, 0) & bit) != 0) == round % 2);
    long seen = shmem_ctx_long_atomic_fetch(ctx, &swapped[thread], 0);
    for (;;) {
        const long found = shmem_ctx_long_atomic_compare_swap(ctx, &swapped[thread], seen, seen + 3, 0);
        if (found == seen) break;
        seen = found;
    }
}

/* To the right goes a parcel with a signal; the next but one only when this one was taken. */
static void pass_on(shmem_ctx_t ctx, int thread, int round) {
    long mine[BLOCK];
    for (int i = 0; i < BLOCK; i++) mine[i] = ((long) round * PES_MAX + me) * BLOCK + i;
    shmem_ctx_long_put_signal(ctx, parcels[thread][round % 2], mine, BLOCK, &arrived[thread], 1,
                              SHMEM_SIGNAL_ADD, right);
    shmem_signal_wait_until(&arrived[thread], SHMEM_CMP_GE, round + 1);
    for (int i = 0; i < BLOCK; i++) {
        CHECK(parcels[thread][round % 2][i] == ((long) round * PES_MAX + left) * BLOCK + i);
    }
    shmem_ctx_uint64_atomic_inc(ctx, &taken[thread], left);
    if (thread % 2 == 0) {
        shmem_uint64_wait_until(&taken[thread], SHMEM_CMP_GE, round + 1);
    } else {
        while (!shmem_uint64_test(&taken[thread], SHMEM_CMP_GE, round + 1)) continue;
    }
}

/* Under a lock nobody else sees its two words differ. */
static void guard(shmem_ctx_t ctx, int thread, int round) {
    long *lock = &locks[thread], *words = guarded[thread];
    const int home = thread % n;
    if (round % 2 == 0) {
        while (shmem_test_lock(lock)) continue;
    } else {
        shmem_set_lock(lock);
    }
    const long first = shmem_ctx_long_g(ctx, &words[0], home), second = shmem_ctx_long_g(ctx, &words[1], home);
    CHECK(first == second);
    /* Others have their chance to come between. */
    sched_yield();
    shmem_ctx_long_p(ctx, &words[0], first + 1, home);
    shmem_ctx_long_p(ctx, &words[1], first + 1, home);
    /* Clearing the lock completes what the default context has begun, and not this. */
    shmem_ctx_quiet(ctx);
    shmem_clear_lock(lock);
}

static void work(int thread) {
    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        put_and_get(ctx, thread, round);
        count(ctx, thread, round);
        pass_on(ctx, thread, round);
        if (round % (ROUNDS / LOCKED) == 0) guard(ctx, thread, round);
    }
    shmem_ctx_destroy(ctx);
}

/* Meanwhile, one thread of each PE. */
static void collectives(void) {
    static long sources[3], sums[3];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 3; i++) sources[i] = me + round + i;
        CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, sums, sources, 3) == 0);
        for (int i = 0; i < 3; i++) CHECK(sums[i] == n * (n - 1L) / 2 + n * (round + i));
        if (round % 10 == 0) shmem_barrier_all();
        CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) == 0);
    }
}

#ifdef _OPENMP
#include <omp.h>

static void with_threads(void) {
    omp_set_dynamic(0);
#pragma omp parallel num_threads(THREADS + 1)
    {
        CHECK(omp_get_num_threads() == THREADS + 1);
        if (omp_get_thread_num() == THREADS) {
            collectives();
        } else {
            work(omp_get_thread_num());
        }
    }
    /* A loop whose iterations go to any thread. */
    static long histogram[7];
    long local = 0;
#pragma omp parallel for num_threads(THREADS) schedule(dynamic) reduction(+ : local)
    for (int i = 0; i < 700; i++) {
        shmem_long_atomic_inc(&histogram[i % 7], i % n);
        local += i % n == me;
    }
    shmem_barrier_all();
    long all = 0;
    for (int i = 0; i < 7; i++) all += histogram[i];
    CHECK(all == local * n);
}
#else
static void *thread_main(void *number) {
    work(*(int *) number);
    return NULL;
}

static void with_threads(void) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, thread_main, &numbers[i]) == 0);
    }
    collectives();
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}
#endif

int main(void) {
    int level;
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &level) == 0 && level == SHMEM_THREAD_MULTIPLE);
    me = shmem_my_pe();
    n = shmem_n_pes();
    left = (me + n - 1) % n;
    right = (me + 1) % n;
    CHECK(n <= PES_MAX && shmem_addr_accessible(blocks, 0));
    with_threads();
    shmem_barrier_all();
    const long all = (long) n * THREADS * ROUNDS;
    long sum = 0;
    for (int pe = 0; pe < n; pe++) sum += shmem_long_g(&increments, pe);
    CHECK(sum == all && shmem_long_g(&fetched_sum, n - 1) == all);
    const long rounds_locked = (ROUNDS - 1) / (ROUNDS / LOCKED) + 1;
    for (int i = 0; i < THREADS; i++) {
        CHECK(shmem_long_g(&guarded[i][1], i % n) == n * rounds_locked && locks[i] == 0);
        CHECK(shmem_long_g(&swapped[i], 0) == 3L * n * ROUNDS);
        CHECK(shmem_int64_g(&bits[i], 0) == 0);
        CHECK(arrived[i] == ROUNDS && taken[i] == ROUNDS);
    }
    shmem_finalize();
    return 0;
}
