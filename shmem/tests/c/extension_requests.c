/* Collective operations under way: one of each, many at once, tested, waited for in any order, forgotten. */

#include "check.h"

#include <shmemx.h>

#define MANY 40
#define LEN 1000

static int me, n;
static long numbers_of_statics[2 * LEN];
/* Static data are still there after the end. */
static long left_over[MANY][LEN], of_each[LEN];

static void one_of_each(void *object) {
    long *mine = object, *all = shmem_malloc((size_t)n * LEN * sizeof *all);
    shmemx_req_t request = SHMEMX_REQ_INVALID;
    CHECK(shmemx_req_test(&request) == 1);
    shmemx_req_wait(&request);
    for (int i = 0; i < LEN; i++) mine[i] = me * LEN + i;

    CHECK(shmemx_fcollectmem_nb(SHMEM_TEAM_WORLD, all, mine, LEN * sizeof *mine, &request) == 0);
    shmemx_req_wait(&request);
    CHECK(request == SHMEMX_REQ_INVALID);
    for (int i = 0; i < n * LEN; i++) CHECK(all[i] == i);

    memset(mine + LEN, 0, LEN * sizeof *mine);
    CHECK(shmemx_team_sync_nb(SHMEM_TEAM_WORLD, &request) == 0);
    shmemx_req_wait(&request);
    CHECK(shmemx_broadcastmem_nb(SHMEM_TEAM_WORLD, mine + LEN, mine, LEN * sizeof *mine, n - 1, &request) == 0);
    shmemx_req_wait(&request);
    for (int i = 0; i < LEN; i++) CHECK(mine[LEN + i] == (n - 1) * LEN + i);

    long *blocks = shmem_malloc((size_t)n * sizeof *blocks), *from = shmem_malloc((size_t)n * sizeof *from);
    for (int pe = 0; pe < n; pe++) from[pe] = 100 * me + pe;
    shmem_sync_all();
    CHECK(shmemx_alltoallmem_nb(SHMEM_TEAM_WORLD, blocks, from, sizeof *from, &request) == 0);
    while (!shmemx_req_test(&request)) {
    }
    for (int pe = 0; pe < n; pe++) CHECK(blocks[pe] == 100 * pe + me);
    /* Nobody's source changes while it is in use there. */
    shmem_sync_all();

    shmem_long_p(from, 77 + me, (me + 1) % n);
    CHECK(shmemx_team_barrier_nb(SHMEM_TEAM_WORLD, &request) == 0);
    shmemx_req_wait(&request);
    CHECK(*from == 77 + (me + n - 1) % n);
    shmem_free(from);
    shmem_free(blocks);
    shmem_free(all);
}

static void reductions(void) {
    int *mine = shmem_malloc(8 * sizeof *mine), *into = shmem_malloc(8 * sizeof *into);
    unsigned *bits = shmem_malloc(sizeof *bits), *results = shmem_malloc(3 * sizeof *results);
    long double *large = shmem_malloc(sizeof *large), *largest = shmem_malloc(2 * sizeof *largest);
    shmemx_req_t requests[8], of_large;
    for (int i = 0; i < 8; i++) mine[i] = me + 1;
    *large = me + 0.5L;
    *bits = 1u << me | 1u << 31;
    shmem_sync_all();
    CHECK(shmemx_int_sum_reduce_nb(SHMEM_TEAM_WORLD, into, mine, 1, &requests[0]) == 0);
    CHECK(shmemx_min_reduce_nb(SHMEM_TEAM_WORLD, into + 1, mine + 1, 1, &requests[1]) == 0);
    CHECK(shmemx_max_reduce_nb(SHMEM_TEAM_WORLD, into + 2, mine + 2, 2, &requests[2]) == 0);
    CHECK(shmemx_int_prod_reduce_nb(SHMEM_TEAM_WORLD, into + 4, mine + 4, 4, &requests[3]) == 0);
    CHECK(shmemx_or_reduce_nb(SHMEM_TEAM_WORLD, results, bits, 1, &requests[4]) == 0);
    CHECK(shmemx_uint_and_reduce_nb(SHMEM_TEAM_WORLD, results + 1, bits, 1, &requests[5]) == 0);
    CHECK(shmemx_xor_reduce_nb(SHMEM_TEAM_WORLD, results + 2, bits, 1, &requests[6]) == 0);
    CHECK(shmemx_longdouble_sum_reduce_nb(SHMEM_TEAM_WORLD, largest, large, 1, &requests[7]) == 0);
    CHECK(shmemx_max_reduce_nb(SHMEM_TEAM_WORLD, largest + 1, large, 1, &of_large) == 0);
    shmemx_req_wait(&of_large);
    for (int i = 7; i >= 0; i--) shmemx_req_wait(&requests[i]);
    CHECK(largest[0] == n * n * 0.5L && largest[1] == n - 0.5L);
    int product = 1;
    for (int pe = 1; pe <= n; pe++) product *= pe;
    CHECK(into[0] == n * (n + 1) / 2 && into[1] == 1 && into[2] == n && into[3] == n && into[7] == product);
    CHECK(results[0] == (((1u << n) - 1) | 1u << 31));
    CHECK(results[1] == (n == 1 ? 1u << 31 | 1u : 1u << 31));
    CHECK(results[2] == (((1u << n) - 1) | (n % 2 ? 1u << 31 : 0)));
    shmem_free(largest);
    shmem_free(large);
    shmem_free(results);
    shmem_free(bits);
    shmem_free(into);
    shmem_free(mine);
}

/* On two teams at once; members look at them in orders of their own. */
static void many(void) {
    shmem_team_t halves;
    CHECK(shmemx_team_split_by_color(SHMEM_TEAM_WORLD, me % 2, me, NULL, 0, &halves) == 0);
    long *mine = shmem_malloc(MANY * sizeof *mine), *sums = shmem_malloc(2 * MANY * sizeof *sums);
    shmemx_req_t requests[2 * MANY];
    for (int i = 0; i < MANY; i++) mine[i] = me + i;
    shmem_sync_all();
    for (int i = 0; i < MANY; i++) {
        CHECK(shmemx_sum_reduce_nb(SHMEM_TEAM_WORLD, sums + i, mine + i, 1, &requests[i]) == 0);
        CHECK(shmemx_sum_reduce_nb(halves, sums + MANY + i, mine + i, 1, &requests[MANY + i]) == 0);
    }
    /* Calls that wait, meanwhile, on the same teams. */
    long *word = shmem_malloc(2 * sizeof *word);
    *word = me;
    CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, word + 1, word, 1) == 0 && word[1] == n * (n - 1) / 2);
    CHECK(shmem_team_sync(halves) == 0);
    shmem_free(word);
    int open = 2 * MANY;
    while (open > 0) {
        open = 0;
        for (int i = 0; i < 2 * MANY; i++) open += !shmemx_req_test(&requests[(i + 7 * me) % (2 * MANY)]);
    }
    for (int i = 0; i < MANY; i++) {
        long half = 0;
        for (int pe = me % 2; pe < n; pe += 2) half += pe + i;
        CHECK(sums[i] == n * (n - 1) / 2 + n * i && sums[MANY + i] == half);
    }
    shmem_team_destroy(halves);
    shmem_free(sums);
    shmem_free(mine);
}

static void refused(const char *which) {
    shmemx_req_t request = SHMEMX_REQ_INVALID, copy;
    int here[2] = {0};
    long *there = numbers_of_statics;
    if (!strcmp(which, "null")) shmemx_team_sync_nb(SHMEM_TEAM_WORLD, NULL);
    if (!strcmp(which, "null test")) shmemx_req_test(NULL);
    if (!strcmp(which, "null wait")) shmemx_req_wait(NULL);
    if (!strcmp(which, "team")) shmemx_team_sync_nb(SHMEM_TEAM_INVALID, &request);
    if (!strcmp(which, "dest")) shmemx_int_sum_reduce_nb(SHMEM_TEAM_WORLD, here, (int *)there, 2, &request);
    if (!strcmp(which, "long double"))
        shmemx_longdouble_min_reduce_nb(SHMEM_TEAM_WORLD, NULL, (long double *)here, 1, &request);
    if (!strcmp(which, "source")) shmemx_broadcastmem_nb(SHMEM_TEAM_WORLD, there, here, 4, 0, &request);
    if (!strcmp(which, "root")) shmemx_broadcastmem_nb(SHMEM_TEAM_WORLD, there, there + 1, 4, n, &request);
    if (!strcmp(which, "overlap")) shmemx_alltoallmem_nb(SHMEM_TEAM_WORLD, there, there + 1, 16, &request);
    if (!strcmp(which, "large")) shmemx_fcollectmem_nb(SHMEM_TEAM_WORLD, there, there, (size_t)1 << 62, &request);
    request = (shmemx_req_t)(void *)here;
    if (!strcmp(which, "garbage")) shmemx_req_wait(&request);
    if (!strcmp(which, "destroy")) {
        shmem_team_t team;
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team);
        shmemx_team_sync_nb(team, &request);
        shmem_team_destroy(team);
    }
    if (!strcmp(which, "twice")) {
        shmemx_team_sync_nb(SHMEM_TEAM_WORLD, &request);
        copy = request;
        shmemx_req_wait(&request);
        shmemx_req_test(&copy);
    }
    shmem_barrier_all();
}

int main(int argc, char **argv) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    if (argc > 1) refused(argv[1]);
    on_both(one_of_each, numbers_of_statics, sizeof numbers_of_statics);
    reductions();
    many();
    /* The end completes what nobody has waited for. */
    shmemx_req_t forgotten[MANY];
    for (int i = 0; i < LEN; i++) of_each[i] = me + i;
    for (int i = 0; i < MANY; i++)
        CHECK(shmemx_long_max_reduce_nb(SHMEM_TEAM_WORLD, left_over[i], of_each, LEN, &forgotten[i]) == 0);
    shmem_finalize();
    for (int i = 0; i < MANY; i++)
        for (int j = 0; j < LEN; j++)
            if (left_over[i][j] != n - 1 + j) return 1;
    return 0;
}
