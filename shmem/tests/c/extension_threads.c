/* Each thread has a team of its own, and requests on it; and operations that are counted at once. */

#include "check.h"

#include <pthread.h>
#include <shmemx.h>

#define THREADS 3
#define ROUNDS 60
#define AT_ONCE 5

static int me, n, right;
static shmem_team_t teams[THREADS];
static long *words;

static void *work(void *argument) {
    int thread = *(int *)argument;
    long *mine = words + 2 * AT_ONCE * thread, *sums = mine + AT_ONCE;
    shmemx_req_t requests[AT_ONCE];
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < AT_ONCE; i++) {
            mine[i] = me + round + i;
            CHECK(shmemx_long_sum_reduce_nb(teams[thread], sums + i, mine + i, 1, &requests[i]) == 0);
        }
        for (int i = AT_ONCE; i-- > 0;) {
            while (i % 2 && !shmemx_req_test(&requests[i])) {
            }
            shmemx_req_wait(&requests[i]);
        }
        for (int i = 0; i < AT_ONCE; i++) CHECK(sums[i] == n * (n - 1) / 2 + n * (round + i));
        CHECK(shmem_team_sync(teams[thread]) == 0);
        shmem_long_atomic_inc(words + 2 * AT_ONCE * THREADS, right);
        while (!shmemx_quiet_test()) {
        }
    }
    return NULL;
}

int main(void) {
    int level, numbers[THREADS];
    pthread_t threads[THREADS];
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &level) == 0 && level == SHMEM_THREAD_MULTIPLE);
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    words = shmem_calloc(2 * AT_ONCE * THREADS + 1, sizeof *words);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(shmemx_team_split_by_color(SHMEM_TEAM_WORLD, 0, me, NULL, 0, &teams[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    shmem_barrier_all();
    CHECK(words[2 * AT_ONCE * THREADS] == THREADS * ROUNDS);
    uint64_t issued;
    shmemx_pcntr_get_issued_write(SHMEM_CTX_DEFAULT, &issued);
    CHECK(issued == 0 || issued >= THREADS * ROUNDS);
    shmem_finalize();
    return 0;
}
