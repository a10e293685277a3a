/* Extensions that are other names of the standard's functions, forms for short, and what they are told about
 * the machine. */

#include "check.h"

#include <shmemx.h>

#define LEN 24

static int me, n, right;
static double doubles_of_statics[LEN];
static short shorts_of_statics[4];

static uint64_t number_of_thread(void) {
    return 7;
}

static void machine(void) {
    double before = shmemx_wtime(), after = shmemx_wtime();
    CHECK(before > 0 && after >= before);
    const char *name = shmemx_nodename();
    CHECK(strlen(name) > 0 && name == shmemx_nodename());
    shmemx_register_gettid(number_of_thread);
}

static void blocks(void *object) {
    double *into = object, from[LEN], back[LEN] = {0};
    for (int i = 0; i < LEN; i++) {
        into[i] = -1;
        from[i] = me * 100 + i;
    }
    shmem_barrier_all();
    shmemx_double_ibput(into, from, 3, 4, 2, 5, right);
    shmem_barrier_all();
    int left = (me + n - 1) % n;
    for (int block = 0; block < 5; block++) {
        for (int i = 0; i < 2; i++) CHECK(into[3 * block + i] == left * 100 + 4 * block + i);
        CHECK(into[3 * block + 2] == -1);
    }
    shmemx_ctx_ibget64(SHMEM_CTX_DEFAULT, back, into, 2, 3, 2, 5, right);
    for (int i = 0; i < 10; i++) CHECK(back[i] == me * 100 + i / 2 * 4 + i % 2);
    shmem_barrier_all();
    shmemx_ibput(into, from, 1, 1, 1, LEN, right);
    shmemx_ibput(SHMEM_CTX_DEFAULT, into, from, 1, 1, 1, 1, right);
    shmem_barrier_all();
    shmemx_ibget(back, into, 1, 1, 1, LEN, me);
    for (int i = 0; i < LEN; i++) CHECK(back[i] == left * 100 + i);
    shmem_barrier_all();
}

static void scans(void) {
    long *mine = shmem_malloc(2 * sizeof *mine), *sums = shmem_malloc(2 * sizeof *sums);
    long double *large = shmem_malloc(sizeof *large), *total = shmem_malloc(sizeof *total);
    mine[0] = me + 1;
    mine[1] = 1;
    *large = me + 0.5L;
    CHECK(shmemx_long_sum_inscan(SHMEM_TEAM_WORLD, sums, mine, 2) == 0);
    CHECK(sums[0] == (me + 1) * (me + 2) / 2 && sums[1] == me + 1);
    CHECK(shmemx_sum_exscan(SHMEM_TEAM_WORLD, sums, mine, 2) == 0);
    CHECK(sums[0] == me * (me + 1) / 2 && sums[1] == me);
    CHECK(shmemx_sum_inscan(SHMEM_TEAM_WORLD, total, large, 1) == 0);
    CHECK(*total == me * (me + 1) / 2 + 0.5L * (me + 1));
    CHECK(shmemx_longdouble_sum_exscan(SHMEM_TEAM_WORLD, total, large, 1) == 0);
    CHECK(*total == (me - 1) * me / 2 + 0.5L * me);
    shmem_free(total);
    shmem_free(large);
    shmem_free(sums);
    shmem_free(mine);
}

static void signals(void) {
    uint64_t *signal = shmem_calloc(1, sizeof *signal);
    for (int pe = 0; pe < n; pe++) shmemx_signal_add(signal, me + 1, pe);
    CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_GE, (uint64_t)(n * (n + 1) / 2)));
    shmem_barrier_all();
    shmemx_signal_set(SHMEM_CTX_DEFAULT, signal, 41, right);
    CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 41) == 41);
    shmem_barrier_all();
    shmemx_ctx_signal_add(SHMEM_CTX_DEFAULT, signal, 1, right);
    CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 42) == 42);
    shmem_barrier_all();
    shmem_free(signal);
}

/* One after the other: all that there are for short, and the standard's generic names. */
static void shorts(void *object) {
    short *word = object;
    unsigned short *unsigned_word = object;
    size_t indices[4];
    const short values[4] = {1, 2, 3, 4};
    const int status[4] = {0, 1, 0, 1};
    memset(word, 0, 4 * sizeof *word);
    shmem_barrier_all();
    CHECK(shmemx_signed_short_test_all(word, 4, NULL, SHMEM_CMP_EQ, 1) == 0);
    CHECK(shmem_test_any(word, 4, NULL, SHMEM_CMP_NE, 0) == SIZE_MAX);
    CHECK(shmem_test_some(word, 4, indices, NULL, SHMEM_CMP_GT, 0) == 0);
    shmem_barrier_all();
    for (int i = 0; i < 4; i++) shmem_short_p(word + i, (short)(i + 1), right);
    shmemx_signed_short_wait_until_all_vector(word, 4, NULL, SHMEM_CMP_EQ, values);
    shmem_wait_until_all(word, 4, status, SHMEM_CMP_GT, 0);
    CHECK(shmemx_signed_short_wait_until_any(word, 4, NULL, SHMEM_CMP_EQ, 3) == 2);
    CHECK(shmem_wait_until_some(unsigned_word, 4, indices, status, SHMEM_CMP_GE, 2) == 1 && indices[0] == 2);
    CHECK(shmemx_unsigned_short_wait_until_any_vector(unsigned_word, 1, status, SHMEM_CMP_EQ,
                                              (const unsigned short *)values) == 0);
    CHECK(shmem_test_all(unsigned_word, 4, NULL, SHMEM_CMP_LE, 4) == 1);
    CHECK(shmemx_signed_short_test_all_vector(word, 4, NULL, SHMEM_CMP_EQ, values) == 1);
    CHECK(shmemx_signed_short_test_some_vector(word, 4, indices, NULL, SHMEM_CMP_EQ, values) == 4);
    CHECK(shmem_test_any_vector(word, 4, NULL, SHMEM_CMP_NE, values) == SIZE_MAX);
    CHECK(shmem_wait_until_some_vector(word, 4, indices, status, SHMEM_CMP_EQ, values) == 2 && indices[1] == 2);
    shmem_barrier_all();
}

static void node(void) {
    int first = me, size = 0;
    while (first > 0 && node_of(first - 1, n) == node_of(me, n)) first--;
    while (first + size < n && node_of(first + size, n) == node_of(me, n)) size++;
    CHECK(shmem_team_n_pes(SHMEMX_TEAM_NODE) == size && shmem_team_my_pe(SHMEMX_TEAM_NODE) == me - first);
    int rank_of_right = node_of(right, n) == node_of(me, n) ? right - first : -1;
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, right, SHMEMX_TEAM_NODE) == rank_of_right);
    CHECK(shmem_team_sync(SHMEMX_TEAM_NODE) == 0);
    shmem_ctx_t ctx;
    CHECK(shmem_team_create_ctx(SHMEMX_TEAM_NODE, SHMEMX_CTX_BOUNCE_BUFFER, &ctx) == 0);
    int *word = shmem_malloc_with_hints(sizeof *word, SHMEMX_MALLOC_NO_BARRIER);
    CHECK(word != NULL);
    shmem_ctx_int_p(ctx, word, me, (me - first + 1) % size);
    shmem_ctx_destroy(ctx);
    shmem_barrier_all();
    CHECK(*word == first + (me - first + size - 1) % size);
    shmem_free(word);
}

static void refused(const char *which) {
    if (!strcmp(which, "gettid")) shmemx_register_gettid(NULL);
    if (!strcmp(which, "pe")) shmemx_signal_add((uint64_t *)doubles_of_statics, 1, n);
    if (!strcmp(which, "context"))
        shmemx_ctx_ibput32(SHMEM_CTX_INVALID, doubles_of_statics, shorts_of_statics, 1, 1, 1, 1, 0);
    if (!strcmp(which, "stride")) shmemx_double_ibget(doubles_of_statics, doubles_of_statics, 1, 1, 2, 2, 0);
    if (!strcmp(which, "team")) shmemx_long_sum_inscan(SHMEM_TEAM_INVALID, NULL, NULL, 0);
    if (!strcmp(which, "cmp")) shmemx_signed_short_test_all(shorts_of_statics, 1, NULL, 77, 0);
    if (!strcmp(which, "private")) {
        short here = 0;
        shmemx_signed_short_wait_until_all(&here, 1, NULL, SHMEM_CMP_EQ, 0);
    }
    if (!strcmp(which, "destroy")) shmem_team_destroy(SHMEMX_TEAM_NODE);
    shmem_barrier_all();
}

int main(int argc, char **argv) {
    shmemx_register_gettid(number_of_thread);
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    if (argc > 1) refused(argv[1]);
    machine();
    on_both(blocks, doubles_of_statics, sizeof doubles_of_statics);
    scans();
    signals();
    on_both(shorts, shorts_of_statics, sizeof shorts_of_statics);
    node();
    shmem_finalize();
    return 0;
}
