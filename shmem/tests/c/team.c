/* Teams: every split of the world and of one of its parts against a model, and what is said of each. With an
 * argument, one mistake. */

#include "check.h"

static int me, n;
static long object[4];

/* A team that has these PEs of the world, in this order; this PE may be among them. */
static void check_team(shmem_team_t team, const int *pes, int size) {
    int rank = -1;
    for (int i = 0; i < size; i++) {
        rank = pes[i] == me ? i : rank;
    }
    CHECK(shmem_team_my_pe(team) == rank);
    if (rank < 0) {
        CHECK(team == SHMEM_TEAM_INVALID);
        return;
    }
    CHECK(shmem_team_n_pes(team) == size);
    for (int i = -2; i <= n + 1; i++) {
        int here = 0;
        for (int j = 0; j < size; j++) {
            here = pes[j] == i ? j + 1 : here;
        }
        CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, i, team) == here - 1);
        CHECK(shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD) == (i >= 0 && i < size ? pes[i] : -1));
        void *there = i >= 0 && i < size ? shmem_ptr(object, pes[i]) : NULL;
        CHECK(shmem_team_ptr(team, object, i) == there);
    }
    CHECK(shmem_team_translate_pe(team, rank, SHMEM_TEAM_INVALID) == -1);
    CHECK(shmem_team_ptr(team, object, rank) == object);
    CHECK(shmem_team_sync(team) == 0);
}

/* All triplets on a parent whose members are these PEs. */
static void check_strided(shmem_team_t parent, const int *pes, int size) {
    for (int start = -1; start <= size; start++) {
        for (int stride = -size; stride <= size; stride++) {
            for (int count = 0; count <= size + 1; count++) {
                int last = start + stride * (count - 1), members[64];
                int valid = count > 0 && start >= 0 && start < size && last >= 0 && last < size;
                valid = valid && (stride != 0 || count == 1);
                shmem_team_t team = SHMEM_TEAM_WORLD;
                int status = shmem_team_split_strided(parent, start, stride, count, NULL, 0, &team);
                CHECK((status == 0) == valid);
                for (int i = 0; valid && i < count; i++) {
                    members[i] = pes[start + i * stride];
                }
                check_team(team, members, valid ? count : 0);
                shmem_team_destroy(team);
            }
        }
    }
}

static void check_2d(shmem_team_t parent, const int *pes, int size) {
    int rank = shmem_team_my_pe(parent);
    for (int range = -1; range <= size + 2; range++) {
        shmem_team_t x = SHMEM_TEAM_WORLD, y = SHMEM_TEAM_WORLD;
        int status = shmem_team_split_2d(parent, range, NULL, 0, &x, NULL, 0, &y);
        CHECK((status == 0) == (range > 0));
        int row[64], column[64], xs = 0, ys = 0, width = range < size ? range : size;
        for (int i = 0; range > 0 && i < size; i++) {
            if (i / width == rank / width) {
                row[xs++] = pes[i];
            }
            if (i % width == rank % width) {
                column[ys++] = pes[i];
            }
        }
        check_team(x, row, xs);
        check_team(y, column, ys);
        shmem_team_destroy(y);
        shmem_team_destroy(x);
    }
}

static void check_config(void) {
    shmem_team_config_t config = {.num_contexts = 7}, got = {.num_contexts = -5};
    shmem_team_t team;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, &config, SHMEM_TEAM_NUM_CONTEXTS, &team) == 0);
    CHECK(shmem_team_get_config(team, 0, NULL) == 0);
    CHECK(shmem_team_get_config(team, 0, &got) == 0 && got.num_contexts == -5);
    CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0 && got.num_contexts == 7);
    CHECK(shmem_team_get_config(SHMEM_TEAM_WORLD, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0);
    CHECK(got.num_contexts == 0);
    CHECK(shmem_team_get_config(SHMEM_TEAM_INVALID, SHMEM_TEAM_NUM_CONTEXTS, &got) != 0);
    shmem_team_destroy(team);
    shmem_team_t x, y;
    shmem_team_config_t other = {.num_contexts = 1};
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, &config, SHMEM_TEAM_NUM_CONTEXTS, &x, &other,
                              SHMEM_TEAM_NUM_CONTEXTS, &y) == 0);
    CHECK(shmem_team_get_config(x, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0 && got.num_contexts == 7);
    CHECK(shmem_team_get_config(y, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0 && got.num_contexts == 1);
    shmem_team_destroy(x);
    shmem_team_destroy(y);
}

static void check_predefined(void) {
    int pes[64], reached = 0;
    for (int pe = 0; pe < n; pe++) {
        if (shmem_ptr(object, pe) != NULL) {
            pes[reached++] = pe;
        }
    }
    CHECK(SHMEM_TEAM_SHARED != SHMEM_TEAM_WORLD);
    check_team(SHMEM_TEAM_SHARED, pes, reached);
    for (int pe = 0; pe < n; pe++) {
        pes[pe] = pe;
    }
    check_team(SHMEM_TEAM_WORLD, pes, n);
    shmem_team_t team = SHMEM_TEAM_WORLD, other = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD) == -1);
    CHECK(shmem_team_ptr(SHMEM_TEAM_INVALID, object, 0) == NULL);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0);
    CHECK(team == SHMEM_TEAM_INVALID);
    team = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_2d(SHMEM_TEAM_INVALID, 1, NULL, 0, &team, NULL, 0, &other) != 0);
    CHECK(team == SHMEM_TEAM_INVALID && other == SHMEM_TEAM_INVALID);
    shmem_team_destroy(SHMEM_TEAM_INVALID);
}

/* More teams, one after the other, than there may be at once. */
static void check_reuse(void) {
    for (int i = 0; i < 1500; i++) {
        shmem_team_t team;
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1 + i % n, NULL, 0, &team) == 0);
        CHECK((team == SHMEM_TEAM_INVALID) == (me > i % n));
        shmem_team_destroy(team);
    }
}

static void check_mistake(const char *mistake) {
    shmem_team_t team, stale;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team) == 0);
    stale = team;
    if (!strcmp(mistake, "destroyed")) {
        shmem_team_destroy(team);
        shmem_team_sync(stale);
    } else if (!strcmp(mistake, "destroyed twice")) {
        shmem_team_destroy(team);
        shmem_team_destroy(stale);
    } else if (!strcmp(mistake, "query")) {
        shmem_team_destroy(team);
        shmem_team_n_pes(stale);
    } else if (!strcmp(mistake, "garbage")) {
        shmem_team_sync((shmem_team_t) (uintptr_t) 0x1234567);
    } else if (!strcmp(mistake, "inside")) {
        shmem_team_my_pe((shmem_team_t) ((uintptr_t) team + 8));
    } else if (!strcmp(mistake, "invalid")) {
        shmem_team_sync(SHMEM_TEAM_INVALID);
    } else if (!strcmp(mistake, "world")) {
        shmem_team_destroy(SHMEM_TEAM_WORLD);
    } else if (!strcmp(mistake, "shared")) {
        shmem_team_destroy(SHMEM_TEAM_SHARED);
    } else if (!strcmp(mistake, "config")) {
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, SHMEM_TEAM_NUM_CONTEXTS, &team);
    } else if (!strcmp(mistake, "get config")) {
        shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, NULL);
    } else if (!strcmp(mistake, "contexts")) {
        shmem_team_config_t config = {.num_contexts = -3};
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, &config, SHMEM_TEAM_NUM_CONTEXTS, &team);
    } else if (!strcmp(mistake, "arguments")) {
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, me == 0 ? 1 : n, NULL, 0, &team);
    } else if (!strcmp(mistake, "other split")) {
        shmem_team_t other;
        if (me == 0) {
            shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team);
        } else {
            shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, NULL, 0, &team, NULL, 0, &other);
        }
    }
    /* Not refused. */
    shmem_global_exit(98);
}

int main(int count, char **words) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    if (count > 1) {
        check_mistake(words[1]);
    }
    int pes[64];
    for (int pe = 0; pe < n; pe++) {
        pes[pe] = pe;
    }
    check_predefined();
    check_config();
    check_reuse();
    check_strided(SHMEM_TEAM_WORLD, pes, n);
    check_2d(SHMEM_TEAM_WORLD, pes, n);
    shmem_team_t turned;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n - n / 3, NULL, 0, &turned) == 0);
    if (turned != SHMEM_TEAM_INVALID) {
        for (int i = 0; i < n; i++) {
            pes[i] = n - 1 - i;
        }
        check_strided(turned, pes, n - n / 3);
        check_2d(turned, pes, n - n / 3);
    }
    /* The team is left to the finalisation; after the next initialisation there are new ones. */
    shmem_finalize();
    shmem_init();
    CHECK(shmem_my_pe() == me && shmem_n_pes() == n);
    check_predefined();
    check_config();
    shmem_finalize();
    return 0;
}
