/* Two programs in one job: workers, and with CLERK defined, clerks. Their static data differ in size, so
 * variables are not symmetric; all else works. The first argument is the number of workers if they are the
 * lower PEs, else 0; the second asks for a mistake. */

#include "check.h"

#define TASKS 200
#define LARGE_BYTES (12 << 20)

#ifdef CLERK
static char variable[40 << 20];
static const int is_clerk = 1;
#else
static char variable[1000];
static const int is_clerk = 0;
#endif

struct desk {
    long next, done[TASKS], is_clerk, clerks;
    uint64_t results;
};

/* Tasks are drawn from the clerk's counter until none is left. */
static void labour(struct desk *desk, int clerk) {
    for (;;) {
        const long task = shmem_long_atomic_fetch_inc(&desk->next, clerk);
        if (task >= TASKS) break;
        const long result = task * task;
        shmem_long_put_signal(&desk->done[task], &result, 1, &desk->results, 1, SHMEM_SIGNAL_ADD, clerk);
    }
}

static void supervise(struct desk *desk) {
    shmem_signal_wait_until(&desk->results, SHMEM_CMP_EQ, TASKS);
    for (long task = 0; task < TASKS; task++) CHECK(desk->done[task] == task * task);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    const int border = atoi(argv[1]);
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    struct desk *desk = shmem_calloc(1, sizeof *desk);
    char *large = shmem_malloc(LARGE_BYTES);
    CHECK(desk != NULL && large != NULL);
    CHECK(!shmem_addr_accessible(variable, me) && shmem_ptr(variable, me) == NULL);
    desk->is_clerk = is_clerk;
    CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &desk->clerks, &desk->is_clerk, 1) == 0);
    CHECK(desk->clerks == (border > 0 ? n - border : 1));

    const int clerk = border > 0 ? n - 1 : 0;
    shmem_char_p(&large[LARGE_BYTES - 1], (char) me, (me + 1) % n);
    if (me == clerk) {
        supervise(desk);
    } else if (!is_clerk) {
        labour(desk, clerk);
    }
    shmem_barrier_all();
    CHECK(large[LARGE_BYTES - 1] == (me + n - 1) % n);

    shmem_team_t workers;
    const int first = border > 0 ? 0 : 1, count = border > 0 ? border : n - 1;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, first, 1, count, NULL, 0, &workers) == 0);
    CHECK((workers == SHMEM_TEAM_INVALID) == is_clerk);
    if (!is_clerk) {
        CHECK(shmem_long_sum_reduce(workers, &desk->clerks, &desk->is_clerk, 1) == 0);
        CHECK(desk->clerks == 0);
    }
    if (argc > 2) shmem_char_p(&variable[10], 1, (me + 1) % n);
    shmem_finalize();
    return 0;
}
