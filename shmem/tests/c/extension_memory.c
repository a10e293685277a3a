/* All-to-all with blocks of any length, teams by colour and in three dimensions, free memory, counters, and
 * completion without waiting. */

#include "check.h"

#include <shmemx.h>

static int me, n, right, is_counted;
static char bytes_of_statics[4096];

/* PE i sends (i + 2j) % 5 bytes to PE j; blocks lie in the opposite order, with gaps. */
static size_t length(int from, int to) {
    return (size_t)(from + 2 * to) % 5;
}

static void alltoallv(void *object) {
    char *into = object, *from = into + 2048;
    size_t t_offset[4], t_size[4], s_offset[4], s_size[4];
    memset(into, -1, 2048);
    for (int pe = 0; pe < n; pe++) {
        s_size[pe] = length(me, pe);
        s_offset[pe] = (size_t)(n - pe) * 7;
        t_size[pe] = length(pe, me);
        t_offset[pe] = 100 + (size_t)(n - pe) * 9;
        for (size_t i = 0; i < s_size[pe]; i++) from[s_offset[pe] + i] = (char)(16 * me + 4 * pe + (int)i);
    }
    shmem_sync_all();
    for (int round = 0; round < 3; round++)
        CHECK(shmemx_alltoallvmem(SHMEM_TEAM_WORLD, into, t_offset, t_size, from, s_offset, s_size) == 0);
    for (int pe = 0; pe < n; pe++) {
        for (size_t i = 0; i < t_size[pe]; i++)
            CHECK(into[t_offset[pe] + i] == (char)(16 * pe + 4 * me + (int)i));
        CHECK(into[t_offset[pe] + t_size[pe]] == -1);
    }
    /* Nothing at all, and large blocks. */
    for (int pe = 0; pe < n; pe++) {
        s_size[pe] = t_size[pe] = 0;
        s_offset[pe] = t_offset[pe] = SIZE_MAX;
    }
    CHECK(shmemx_alltoallvmem(SHMEM_TEAM_WORLD, NULL, t_offset, t_size, NULL, s_offset, s_size) == 0);
    size_t large = 300000;
    char *wide = shmem_malloc(2 * large * (size_t)n);
    for (int pe = 0; pe < n; pe++) {
        s_size[pe] = large - (size_t)(me + pe);
        t_size[pe] = large - (size_t)(me + pe);
        t_offset[pe] = large * (size_t)pe;
        s_offset[pe] = large * (size_t)(n + pe);
        memset(wide + s_offset[pe], 1 + 8 * me + pe, s_size[pe]);
    }
    shmem_sync_all();
    CHECK(shmemx_alltoallvmem(SHMEM_TEAM_WORLD, wide, t_offset, t_size, wide, s_offset, s_size) == 0);
    for (int pe = 0; pe < n; pe++)
        for (size_t i = 0; i < t_size[pe]; i++) CHECK(wide[t_offset[pe] + i] == (char)(1 + 8 * pe + me));
    shmem_free(wide);
}

static void teams(void) {
    shmem_team_t team = SHMEM_TEAM_WORLD, axes[3];
    CHECK(shmemx_team_split_by_color(SHMEM_TEAM_WORLD, 5, -me, NULL, 0, &team) == 0);
    CHECK(shmem_team_n_pes(team) == n && shmem_team_my_pe(team) == n - 1 - me);
    CHECK(shmem_team_sync(team) == 0);
    shmem_team_destroy(team);
    shmem_team_config_t config = {.num_contexts = 3}, got = {0};
    CHECK(shmemx_team_split_by_color(SHMEM_TEAM_WORLD, me == 0 ? -1 : 1, 0, &config, SHMEM_TEAM_NUM_CONTEXTS, &team) == 0);
    CHECK((team == SHMEM_TEAM_INVALID) == (me == 0));
    if (me > 0) {
        CHECK(shmem_team_n_pes(team) == n - 1 && shmem_team_my_pe(team) == me - 1);
        CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0 && got.num_contexts == 3);
    }
    shmem_team_destroy(team);
    CHECK(shmemx_team_split_by_color(SHMEM_TEAM_INVALID, 0, 0, NULL, 0, &team) != 0 && team == SHMEM_TEAM_INVALID);

    CHECK(shmemx_team_split_xyz(SHMEM_TEAM_WORLD, 2, 1, NULL, 0, &axes[0], NULL, 0, &axes[1], &config,
                               SHMEM_TEAM_NUM_CONTEXTS, &axes[2]) == 0);
    CHECK(shmem_team_my_pe(axes[0]) == me % 2 && shmem_team_n_pes(axes[1]) == 1);
    CHECK(shmem_team_my_pe(axes[2]) == me / 2);
    CHECK(shmem_team_get_config(axes[2], SHMEM_TEAM_NUM_CONTEXTS, &got) == 0 && got.num_contexts == 3);
    for (int i = 0; i < 3; i++) shmem_team_destroy(axes[i]);
    for (int i = 0; i < 3; i++) axes[i] = SHMEM_TEAM_WORLD;
    CHECK(shmemx_team_split_xyz(SHMEM_TEAM_WORLD, 0, 1, NULL, 0, &axes[0], NULL, 0, &axes[1], NULL, 0, &axes[2]));
    for (int i = 0; i < 3; i++) CHECK(axes[i] == SHMEM_TEAM_INVALID);
}

static void heap(void) {
    size_t all = shmemx_heap_free(), most = shmemx_heap_largest();
    CHECK(most > 0 && most <= all);
    char *block = shmem_malloc(1000);
    CHECK(shmemx_heap_free() < all && shmemx_heap_free() + 2000 > all);
    shmem_free(block);
    CHECK(shmemx_heap_free() == all && shmemx_heap_largest() == most);
    block = shmem_malloc(most);
    CHECK(block != NULL && shmemx_heap_largest() < most);
    CHECK(shmem_malloc(shmemx_heap_largest() + 1) == NULL);
    shmem_free(block);
    CHECK(shmem_malloc(most + 1) == NULL);
}

static void quiet_without_waiting(void) {
    size_t len = 1 << 18;
    long *into = shmem_calloc(2 * len, sizeof *into), *from = malloc(2 * len * sizeof *from);
    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    for (size_t i = 0; i < 2 * len; i++) from[i] = me + (long)i;
    shmem_long_put_nbi(into, from, len, right);
    while (!shmemx_quiet_test()) {
    }
    memset(from, 0, len * sizeof *from);
    shmem_ctx_long_put_nbi(ctx, into + len, from + len, len, right);
    while (!shmemx_ctx_quiet_test(ctx)) {
    }
    memset(from, 0, 2 * len * sizeof *from);
    shmem_sync_all();
    for (size_t i = 0; i < 2 * len; i++) CHECK(into[i] == (me + n - 1) % n + (long)i);
    shmem_ctx_destroy(ctx);
    shmem_barrier_all();
    shmem_free(into);
    free(from);
}

static void completion(void) {
    static long from[1000];
    shmem_ctx_t ctx;
    long *into = shmem_calloc(1000, sizeof *into);
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    for (int i = 0; i < 1000; i++) from[i] = me + i;
    shmem_long_put_nbi(into, from, 500, right);
    while (!shmemx_quiet_test()) {
    }
    shmem_ctx_long_put_nbi(ctx, into + 500, from + 500, 250, right);
    while (!shmemx_ctx_quiet_test(ctx)) {
    }
    shmem_ctx_long_put_nbi(ctx, into + 750, from + 750, 250, right);
    shmemx_ctx_local_complete(ctx);
    CHECK(shmemx_ctx_local_query(ctx) == 1);
    from[999] = -1;
    shmem_ctx_quiet(ctx);
    shmemx_local_complete();
    shmemx_ctx_local_complete(SHMEM_CTX_INVALID);
    CHECK(shmemx_ctx_quiet_test(SHMEM_CTX_INVALID) == 1);
    shmem_sync_all();
    for (int i = 0; i < 1000; i++) CHECK(into[i] == (me + n - 1) % n + i);
    shmem_ctx_destroy(ctx);
    shmem_barrier_all();
    shmem_free(into);
}

static void counts(void) {
    int *word = shmem_calloc(8, sizeof *word), here[8];
    uint64_t value = 99;
    shmem_ctx_t ctx;
    shmemx_pcntr_t before, after, of_ctx;
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    shmemx_pcntr_get_all(SHMEM_CTX_DEFAULT, &before);
    shmem_int_p(word, 1, right);
    shmem_int_put(word, here, 8, right);
    shmem_int_iput(word, here, 1, 1, 4, right);
    shmem_int_atomic_add(word, 1, right);
    shmem_int_get(here, word, 8, right);
    (void)shmem_int_g(word, right);
    shmem_ctx_int_get_nbi(ctx, here, word, 8, right);
    shmem_ctx_int_put_nbi(ctx, word, here + 4, 1, right);
    shmem_ctx_int_p(ctx, word, 3, right);
    shmem_quiet();
    shmem_ctx_quiet(ctx);
    shmemx_pcntr_get_all(SHMEM_CTX_DEFAULT, &after);
    shmemx_pcntr_get_all(ctx, &of_ctx);
    CHECK(after.pending_put - before.pending_put == (is_counted ? 4 : 0));
    CHECK(after.pending_get - before.pending_get == (is_counted ? 2 : 0));
    CHECK(after.completed_put == after.pending_put && after.completed_get == after.pending_get);
    CHECK(of_ctx.pending_put == (is_counted ? 2 : 0) && of_ctx.completed_put == of_ctx.pending_put);
    CHECK(of_ctx.pending_get == (is_counted ? 1 : 0) && of_ctx.completed_get == of_ctx.pending_get);
    shmemx_pcntr_get_issued_write(ctx, &value);
    CHECK(value == of_ctx.pending_put);
    shmemx_pcntr_get_issued_read(ctx, &value);
    CHECK(value == of_ctx.pending_get);
    shmemx_pcntr_get_completed_write(ctx, &value);
    CHECK(value == of_ctx.completed_put);
    shmemx_pcntr_get_completed_read(ctx, &value);
    CHECK(value == of_ctx.completed_get);
    shmemx_pcntr_get_completed_target(&value);
    CHECK(value == 0);
    shmem_ctx_destroy(ctx);
    shmem_barrier_all();
    shmem_free(word);
}

static void arrivals(void) {
    int *data = shmem_calloc((size_t)n, sizeof *data), mine = me + 1;
    shmemx_ct_t ct = NULL;
    shmemx_ct_create(&ct);
    CHECK(shmemx_ct_get(ct) == 0);
    shmem_barrier_all();
    for (int pe = 0; pe < n; pe++) shmemx_putmem_ct(ct, data + me, &mine, sizeof mine, pe);
    shmemx_ct_wait(ct, n);
    CHECK(shmemx_ct_get(ct) == n);
    for (int pe = 0; pe < n; pe++) CHECK(data[pe] == pe + 1);
    shmem_barrier_all();
    shmemx_ct_set(ct, -5);
    CHECK(shmemx_ct_get(ct) == -5);
    shmemx_ct_set(ct, 0);
    shmem_barrier_all();
    shmemx_getmem_ct(ct, &mine, data + right, sizeof mine, right);
    CHECK(mine == right + 1);
    shmemx_ct_wait(ct, 1);
    shmemx_ct_free(&ct);
    CHECK(ct == NULL);
    shmem_free(data);
}

static void refused(const char *which) {
    size_t zeros[4] = {0}, ones[4] = {1, 1, 1, 1}, ends[4] = {SIZE_MAX, SIZE_MAX}, steps[4] = {0, 1}, eights[4] = {8, 9};
    size_t far[4] = {4090, 4096};
    char *into = bytes_of_statics;
    shmem_team_t team;
    shmemx_ct_t ct = NULL;
#define EXCHANGE(dest, t_offset, t_size, source, s_offset, s_size) \
    shmemx_alltoallvmem(SHMEM_TEAM_WORLD, dest, t_offset, t_size, source, s_offset, s_size)
    if (!strcmp(which, "lengths")) EXCHANGE(into, steps, ones, into + 8, steps, me == 0 ? ones : zeros);
    if (!strcmp(which, "swapped")) {
        size_t sizes[2][2] = {{1, 2}, {2, 1}}, offsets[2] = {0, 8}, others[2][2] = {{2, 1}, {1, 2}};
        EXCHANGE(into, offsets, sizes[me], into + 64, offsets, others[me]);
    }
    if (!strcmp(which, "null offset")) EXCHANGE(into, NULL, ones, into + 8, steps, ones);
    if (!strcmp(which, "null size")) EXCHANGE(into, steps, ones, into + 8, steps, NULL);
    if (!strcmp(which, "overlap")) EXCHANGE(into, zeros, ones, into + 8, steps, ones);
    if (!strcmp(which, "both")) EXCHANGE(into, steps, ones, into + 1, steps, ones);
    if (!strcmp(which, "wraps")) EXCHANGE(into, ends, ones, into + 8, steps, ones);
    if (!strcmp(which, "behind")) EXCHANGE(into, steps, ones, (char *)zeros, far, ones);
    if (!strcmp(which, "dest")) EXCHANGE(eights, steps, ones, into, steps, ones);
    if (!strcmp(which, "color place")) shmemx_team_split_by_color(SHMEM_TEAM_WORLD, 0, 0, NULL, 0, NULL);
    if (!strcmp(which, "color config"))
        shmemx_team_split_by_color(SHMEM_TEAM_WORLD, 0, 0, NULL, SHMEM_TEAM_NUM_CONTEXTS, &team);
    if (!strcmp(which, "3d place"))
        shmemx_team_split_xyz(SHMEM_TEAM_WORLD, 1, 1, NULL, 0, &team, NULL, 0, NULL, NULL, 0, &team);
    if (!strcmp(which, "3d ranges"))
        shmemx_team_split_xyz(SHMEM_TEAM_WORLD, 1 + me, 1, NULL, 0, &team, NULL, 0, &team, NULL, 0, &team);
    if (!strcmp(which, "counts")) shmemx_pcntr_get_all(SHMEM_CTX_INVALID, NULL);
    if (!strcmp(which, "counts of none")) shmemx_pcntr_get_issued_read((shmem_ctx_t)(void *)zeros, (uint64_t *)ones);
    if (!strcmp(which, "quiet")) shmemx_ctx_quiet_test((shmem_ctx_t)(void *)zeros);
    if (!strcmp(which, "local")) shmemx_ctx_local_complete((shmem_ctx_t)(void *)zeros);
    if (!strcmp(which, "ct place")) shmemx_ct_create(NULL);
    if (!strcmp(which, "ct")) shmemx_ct_wait(ct, 1);
    if (!strcmp(which, "ct pe")) {
        shmemx_ct_create(&ct);
        shmemx_putmem_ct(ct, into, zeros, 1, n);
    }
    if (!strcmp(which, "ct free")) {
        ct = (shmemx_ct_t)(void *)into;
        shmemx_ct_free(&ct);
    }
    shmem_barrier_all();
}

int main(int argc, char **argv) {
    const char *setting = getenv("PELAGO_COUNTERS");
    is_counted = setting != NULL && !strcmp(setting, "on");
    if (argc > 1 && !strcmp(argv[1], "early")) shmemx_heap_free();
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    if (argc > 1) refused(argv[1]);
    on_both(alltoallv, bytes_of_statics, sizeof bytes_of_statics);
    teams();
    heap();
    quiet_without_waiting();
    completion();
    counts();
    arrivals();
    shmem_finalize();
    return 0;
}
