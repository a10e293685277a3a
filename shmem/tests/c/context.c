/* Contexts of the world and of teams: that operations reach the PE of the team's number, and that what is
 * asked of them is answered. With an argument, one mistake. */

#include "check.h"

static int me, n;

typedef struct {
    long slots[64], sums[64], words[64];
} board_t;
static board_t board_static;

/* Everybody writes to everybody, by the numbers of the context's team, in which this PE is number `rank`. */
static void check_operations(shmem_ctx_t ctx, shmem_team_t team, board_t *board) {
    int rank = shmem_team_my_pe(team), size = shmem_team_n_pes(team);
    memset(board, 0, sizeof *board);
    CHECK(shmem_team_sync(team) == 0);
    for (int to = 0; to < size; to++) {
        long value = 100 * rank + to, word = 7 * rank + to;
        shmem_ctx_long_p(ctx, &board->slots[rank], value, to);
        shmem_ctx_fence(ctx);
        shmem_ctx_long_put_nbi(ctx, &board->words[rank], &word, 1, to);
        shmem_ctx_long_atomic_add(ctx, &board->sums[0], rank + 1, to);
        shmem_ctx_quiet(ctx);
    }
    CHECK(shmem_team_sync(team) == 0);
    CHECK(board->sums[0] == (long) size * (size + 1) / 2);
    for (int from = 0; from < size; from++) {
        CHECK(board->slots[from] == 100 * from + rank && board->words[from] == 7 * from + rank);
        CHECK(shmem_ctx_long_g(ctx, &board->slots[rank], from) == 100 * rank + from);
        long got = -1;
        shmem_ctx_long_get_nbi(ctx, &got, &board->words[rank], 1, from);
        shmem_ctx_quiet(ctx);
        CHECK(got == 7 * rank + from);
    }
    CHECK(shmem_team_sync(team) == 0);
}

static void check_team_of(shmem_ctx_t ctx, shmem_team_t expected) {
    shmem_team_t team = SHMEM_TEAM_SHARED;
    CHECK(shmem_ctx_get_team(ctx, &team) == (expected == SHMEM_TEAM_INVALID ? 1 : 0));
    CHECK(team == expected);
}

static const long options[] = {0, SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED, SHMEM_CTX_NOSTORE,
                               SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE};

static void check_on(void *object) {
    for (size_t i = 0; i < COUNT(options); i++) {
        shmem_ctx_t ctx;
        CHECK(shmem_ctx_create(options[i], &ctx) == 0);
        check_team_of(ctx, SHMEM_TEAM_WORLD);
        check_operations(ctx, SHMEM_TEAM_WORLD, object);
        shmem_ctx_destroy(ctx);
        for (int from = 0; from < n; from++) {
            shmem_team_t team;
            CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, from, -1, from + 1, NULL, 0, &team) == 0);
            if (team == SHMEM_TEAM_INVALID) {
                CHECK(shmem_team_create_ctx(team, options[i], &ctx) != 0 && ctx == SHMEM_CTX_INVALID);
                continue;
            }
            CHECK(shmem_team_create_ctx(team, options[i], &ctx) == 0);
            check_team_of(ctx, team);
            check_operations(ctx, team, object);
            /* Otherwise it ends with its team. */
            if (options[i] & SHMEM_CTX_PRIVATE || from % 2) {
                shmem_ctx_destroy(ctx);
            }
            shmem_team_destroy(team);
        }
        CHECK(shmem_team_create_ctx(SHMEM_TEAM_SHARED, options[i], &ctx) == 0);
        check_team_of(ctx, SHMEM_TEAM_SHARED);
        check_operations(ctx, SHMEM_TEAM_SHARED, object);
        shmem_ctx_destroy(ctx);
    }
}

static void check_queries(void) {
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT, many[50];
    check_team_of(SHMEM_CTX_DEFAULT, SHMEM_TEAM_WORLD);
    check_team_of(SHMEM_CTX_INVALID, SHMEM_TEAM_INVALID);
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID);
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    for (size_t i = 0; i < COUNT(many); i++) {
        CHECK(shmem_ctx_create(0, &many[i]) == 0);
        for (size_t j = 0; j < i; j++) {
            CHECK(many[j] != many[i]);
        }
    }
    for (size_t i = 0; i < COUNT(many); i++) {
        shmem_ctx_destroy(many[i]);
    }
    for (int i = 0; i < 3000; i++) {
        CHECK(shmem_ctx_create(0, &ctx) == 0);
        shmem_ctx_destroy(ctx);
    }
    /* Options of another library: the program tries again. */
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE | 1L << 20, &ctx) != 0 && ctx == SHMEM_CTX_INVALID);
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_WORLD, 1L << 20, &ctx) != 0 && ctx == SHMEM_CTX_INVALID);
    /* Hints. */
    shmem_ctx_session_config_t config = {.total_ops = 100};
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    shmem_ctx_session_start(ctx, 0, NULL, 0);
    shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
    check_operations(ctx, SHMEM_TEAM_WORLD, &board_static);
    shmem_ctx_session_stop(ctx);
    shmem_ctx_session_stop(ctx);
    shmem_ctx_session_start(SHMEM_CTX_DEFAULT, 0, NULL, 0);
    /* Hints of other libraries. */
    shmem_ctx_session_start(SHMEM_CTX_DEFAULT, 1 << 20, NULL, 1 << 20);
    shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
    shmem_ctx_session_start(SHMEM_CTX_INVALID, 0, NULL, 0);
    shmem_ctx_session_stop(SHMEM_CTX_INVALID);
    /* This one is left to the finalisation. */
}

static void check_mistake(const char *mistake) {
    static long word;
    shmem_ctx_t ctx;
    shmem_team_t team;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &team) == 0);
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    if (!strcmp(mistake, "put") || !strcmp(mistake, "quiet") || !strcmp(mistake, "twice")
        || !strcmp(mistake, "session")) {
        shmem_ctx_destroy(ctx);
    }
    if (!strcmp(mistake, "put")) {
        shmem_ctx_long_p(ctx, &word, 1, 0);
    } else if (!strcmp(mistake, "quiet")) {
        shmem_ctx_quiet(ctx);
    } else if (!strcmp(mistake, "twice")) {
        shmem_ctx_destroy(ctx);
    } else if (!strcmp(mistake, "session")) {
        shmem_ctx_session_start(ctx, 0, NULL, 0);
    } else if (!strcmp(mistake, "invalid")) {
        shmem_ctx_long_p(SHMEM_CTX_INVALID, &word, 1, 0);
    } else if (!strcmp(mistake, "default")) {
        shmem_ctx_destroy(SHMEM_CTX_DEFAULT);
    } else if (!strcmp(mistake, "garbage")) {
        shmem_ctx_destroy((shmem_ctx_t) (uintptr_t) 0x7654321);
    } else if (!strcmp(mistake, "team")) {
        shmem_team_create_ctx((shmem_team_t) (uintptr_t) 0x7654321, 0, &ctx);
    } else if (!strcmp(mistake, "pe") && me == 0) {
        CHECK(shmem_team_create_ctx(team, 0, &ctx) == 0);
        shmem_ctx_long_p(ctx, &word, 1, 1);
    } else if (!strcmp(mistake, "after its team") && me == 0) {
        CHECK(shmem_team_create_ctx(team, 0, &ctx) == 0);
        shmem_team_destroy(team);
        shmem_ctx_long_p(ctx, &word, 1, 0);
    } else if (!strcmp(mistake, "session config")) {
        shmem_ctx_session_start(ctx, 0, NULL, SHMEM_CTX_SESSION_TOTAL_OPS);
    }
    if (me == 0) {
        /* Not refused. */
        shmem_global_exit(98);
    }
    shmem_barrier_all();
}

int main(int count, char **words) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    if (count > 1) {
        check_mistake(words[1]);
    }
    check_queries();
    on_both(check_on, &board_static, sizeof board_static);
    shmem_finalize();
    return 0;
}
