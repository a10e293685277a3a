/* Spaces: symmetric memory of the members of one team, beside blocks of all PEs. */

#include "check.h"

#include <pthread.h>
#include <shmemx.h>

static int me, n;
static char *base;

/* Teams, with their members as bits; those without members, or of which this PE is none, are invalid. */
enum { EVEN, ODD, LOW, HIGH, BUT_FIRST, WORLD, TEAMS };
static shmem_team_t team[TEAMS];
static unsigned members[TEAMS];

static void make_team(int which, int start, int stride, int size) {
    team[which] = SHMEM_TEAM_INVALID;
    members[which] = 0;
    if (size < 1) return;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &team[which]) == 0);
    for (int i = 0; i < size; i++) members[which] |= 1u << (start + i * stride);
}

static int is_in(int which) {
    return members[which] >> me & 1;
}

static void make_teams(void) {
    make_team(EVEN, 0, 2, (n + 1) / 2);
    make_team(ODD, 1, 2, n / 2);
    make_team(LOW, 0, 1, (n + 1) / 2);
    make_team(HIGH, (n + 1) / 2, 1, n / 2);
    make_team(BUT_FIRST, 1, 1, n - 1);
    team[WORLD] = SHMEM_TEAM_WORLD;
    members[WORLD] = (1u << n) - 1;
}

static void destroy_teams(void) {
    for (int i = 0; i < WORLD; i++) shmem_team_destroy(team[i]);
}

/* All members of a team have the same at the same offset, or null all of them. */
static void check_same(shmem_team_t of, const void *ptr) {
    static long mine[2], most[2];
    mine[0] = ptr == NULL ? -1 : (const char *)ptr - base;
    mine[1] = -mine[0];
    CHECK(shmem_long_max_reduce(of, most, mine, 2) == 0);
    CHECK(most[0] == -most[1]);
    CHECK(shmem_team_sync(of) == 0);
}

/* Blocks of the model: filled with what depends on the block and the PE. */
struct block {
    unsigned char *at;
    size_t bytes;
    int number;
};

static unsigned char mark(const struct block *block, size_t i) {
    return (unsigned char)(block->number * 37 + me * 101 + (int)(i % 251));
}

static void fill(const struct block *block) {
    for (size_t i = 0; i < block->bytes; i++) block->at[i] = mark(block, i);
}

static void verify(const struct block *block, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) CHECK(block->at[i] == mark(block, i));
}

enum { BLOCKS = 12, SPACES = 10, INNER = 5, STEPS = 400 };

struct space {
    int is_there, of;
    shmemx_space_t handle;
    size_t fresh;
    struct block blocks[INNER];
};

static struct block blocks[BLOCKS];
static struct space spaces[SPACES];
static int number;

/* The same numbers on every PE. Constants: Knuth, MMIX. */
static uint64_t state;

static unsigned pick(unsigned below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static size_t pick_size(void) {
    return 1 + pick(pick(4) == 0 ? 24000 : 3000);
}

static void step_world(void) {
    struct block *block = &blocks[pick(BLOCKS)], old = *block;
    unsigned what = pick(5), align_log2 = pick(12);
    size_t bytes = pick_size();
    if (block->at == NULL) {
        block->at = what == 0   ? shmem_align((size_t)1 << align_log2, bytes)
                    : what == 1 ? shmem_calloc(1, bytes)
                                : shmem_malloc(bytes);
        check_same(SHMEM_TEAM_WORLD, block->at);
        if (block->at == NULL) return;
        CHECK(what != 0 || (uintptr_t)block->at % ((size_t)1 << align_log2) == 0);
        for (size_t i = 0; what == 1 && i < bytes; i++) CHECK(block->at[i] == 0);
        block->bytes = bytes;
        block->number = number;
    } else if (what < 2) {
        verify(block, block->bytes);
        shmem_free(block->at);
        block->at = NULL;
        return;
    } else {
        unsigned char *moved = shmem_realloc(block->at, bytes);
        check_same(SHMEM_TEAM_WORLD, moved);
        if (moved != NULL) {
            block->at = moved;
            block->bytes = bytes;
        }
        verify(block, bytes < old.bytes ? bytes : old.bytes);
    }
    fill(block);
}

static void step_blocks(struct space *space) {
    struct block *block = &space->blocks[pick(INNER)];
    unsigned what = pick(4), align_log2 = pick(10);
    size_t bytes = 1 + pick((unsigned)space->fresh / 2);
    if (!is_in(space->of)) return;
    size_t free = shmemx_space_available(space->handle);
    if (block->at != NULL) {
        verify(block, block->bytes);
        shmemx_space_free(space->handle, block->at);
        CHECK(shmemx_space_available(space->handle) >= free + block->bytes + 64);
        block->at = NULL;
        return;
    }
    block->at = what == 0   ? shmemx_space_align(space->handle, (size_t)1 << align_log2, bytes)
                : what == 1 ? shmemx_space_calloc(space->handle, bytes, 1)
                            : shmemx_space_malloc(space->handle, bytes);
    check_same(team[space->of], block->at);
    if (block->at == NULL) return;
    CHECK(what != 0 || (uintptr_t)block->at % ((size_t)1 << align_log2) == 0);
    for (size_t i = 0; what == 1 && i < bytes; i++) CHECK(block->at[i] == 0);
    CHECK(shmemx_space_available(space->handle) + bytes + 64 <= free);
    block->bytes = bytes;
    block->number = number;
    fill(block);
}

static void end_space(struct space *space) {
    if (space->handle != SHMEMX_SPACE_INVALID) {
        for (int i = 0; i < INNER; i++)
            if (space->blocks[i].at != NULL) verify(&space->blocks[i], space->blocks[i].bytes);
        shmemx_space_destroy(space->handle);
    }
    memset(space, 0, sizeof *space);
}

static void step_space(void) {
    struct space *space = &spaces[pick(SPACES)];
    int of = (int)pick(TEAMS), ends = pick(6) == 0;
    size_t bytes = pick_size() * 4;
    if (!space->is_there) {
        /* What is no space at some members is none at all; others do not know, and have none of it. */
        space->is_there = 1;
        space->of = of;
        space->fresh = bytes;
        if (is_in(of)) {
            int status = shmemx_space_create(team[of], bytes, &space->handle);
            CHECK((status != 0) == (space->handle == SHMEMX_SPACE_INVALID));
            check_same(team[of], status == 0 ? base : NULL);
            if (status == 0) {
                CHECK(shmemx_space_available(space->handle) >= bytes);
                CHECK(shmemx_space_team(space->handle) == team[of]);
            }
        }
    } else if (ends) {
        end_space(space);
    } else if (is_in(space->of) && space->handle == SHMEMX_SPACE_INVALID) {
        /* The same numbers are drawn as by the other PEs. */
        for (int i = 0; i < 4; i++) pick(2);
    } else {
        step_blocks(space);
    }
}

static void random_steps(uint64_t seed) {
    size_t all = shmemx_heap_free(), most = shmemx_heap_largest();
    state = seed;
    for (number = 1; number <= STEPS; number++) {
        if (pick(2) == 0)
            step_world();
        else
            step_space();
    }
    for (int i = 0; i < SPACES; i++)
        if (i % 2 == 0) end_space(&spaces[i]);
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i].at == NULL) continue;
        verify(&blocks[i], blocks[i].bytes);
        shmem_free(blocks[i].at);
        blocks[i].at = NULL;
    }
    for (int i = 0; i < SPACES; i++) end_space(&spaces[i]);
    CHECK(shmemx_heap_free() == all && shmemx_heap_largest() == most);
}

/* One half makes, uses and ends a space, while the others wait for nothing but its word. */
static void alone(void) {
    static long is_done;
    static int sums[2], mine[2];
    int waits = n > 1 && is_in(ODD);
    if (!waits) {
        for (int round = 0; round < 20; round++) {
            shmemx_space_t space;
            CHECK(shmemx_space_create(team[EVEN], 10000, &space) == 0);
            int *block = shmemx_space_calloc(space, 2, sizeof *block);
            mine[0] = block != NULL;
            CHECK(shmem_int_sum_reduce(team[EVEN], sums, mine, 1) == 0 && sums[0] == (n + 1) / 2);
            shmemx_space_free(space, block);
            shmemx_space_destroy(space);
        }
        if (me == 0)
            for (int pe = 1; pe < n; pe += 2) shmem_long_p(&is_done, 1, pe);
    } else {
        shmem_long_wait_until(&is_done, SHMEM_CMP_EQ, 1);
    }
    shmem_barrier_all();
    is_done = 0;
    shmem_barrier_all();
}

/* Many locks, where the other half has something else: their homes are members. */
static void locks_in(shmemx_space_t space, shmem_team_t of, int is_data_first) {
    enum { LOCKS = 64 };
    long *places[2], counter;
    for (int i = 0; i < 2; i++) places[i] = shmemx_space_calloc(space, LOCKS, sizeof(long));
    long *data = places[!is_data_first], *locks = places[is_data_first];
    int home = shmem_team_translate_pe(of, 0, SHMEM_TEAM_WORLD), count = shmem_team_n_pes(of);
    for (int i = 1; i < LOCKS; i++) data[i] = -i;
    shmem_barrier_all();
    for (int i = 0; i < LOCKS; i++) {
        shmem_set_lock(&locks[i]);
        counter = shmem_long_g(data, home) + 1;
        shmem_long_p(data, counter, home);
        shmem_clear_lock(&locks[i]);
        shmem_team_sync(of);
        CHECK(shmem_long_g(data, home) == (i + 1) * count);
        shmem_team_sync(of);
    }
    shmem_barrier_all();
    for (int i = 1; i < LOCKS; i++) CHECK(data[i] == -i && locks[i] == 0);
    for (int i = 0; i < 2; i++) shmemx_space_free(space, places[i]);
}

/* Both halves have a space of their own at the same time, and all operations work in it. */
static void operations(void) {
    int of = me % 2 == 0 ? EVEN : ODD, count = shmem_team_n_pes(team[of]), rank = shmem_team_my_pe(team[of]);
    int right = shmem_team_translate_pe(team[of], (rank + 1) % count, SHMEM_TEAM_WORLD), left_rank = (rank + count - 1) % count;
    shmemx_space_t space;
    CHECK(shmemx_space_create(team[of], 40000, &space) == 0);
    long *word = shmemx_space_calloc(space, 8, sizeof *word), *into = shmemx_space_malloc(space, 8000);
    long *from = shmemx_space_align(space, 4096, 8000);
    CHECK(word != NULL && into != NULL && from != NULL && (uintptr_t)from % 4096 == 0);
    CHECK(shmem_addr_accessible(word, right) && shmem_ptr(word, me) == word);
    for (int i = 0; i < 1000; i++) from[i] = me * 1000 + i;
    shmem_team_sync(team[of]);
    shmem_long_put(into, from, 999, right);
    shmem_long_p(into + 999, me * 1000 + 999, right);
    shmem_fence();
    shmem_long_atomic_inc(word, right);
    shmem_long_wait_until(word, SHMEM_CMP_EQ, 1);
    int left = shmem_team_translate_pe(team[of], left_rank, SHMEM_TEAM_WORLD);
    for (int i = 0; i < 1000; i++) CHECK(into[i] == left * 1000 + i);
    CHECK(shmem_long_g(from + 7, right) == right * 1000 + 7);
    CHECK(shmem_long_atomic_fetch_add(word + 1, 5, right) == 0);
    shmem_putmem_signal(into, from, 64, (uint64_t *)(word + 2), 9, SHMEM_SIGNAL_SET, right);
    CHECK(shmem_signal_wait_until((uint64_t *)(word + 2), SHMEM_CMP_EQ, 9) == 9 && into[7] == left * 1000 + 7);
    shmem_team_sync(team[of]);
    CHECK(word[1] == 5);
    CHECK(shmem_broadcastmem(team[of], into, from, 800, count - 1) == 0);
    int last = shmem_team_translate_pe(team[of], count - 1, SHMEM_TEAM_WORLD);
    CHECK(into[99] == last * 1000 + 99);
    word[3] = rank + 1;
    CHECK(shmem_long_sum_reduce(team[of], word + 4, word + 3, 1) == 0 && word[4] == count * (count + 1) / 2);
    shmem_ctx_t ctx;
    CHECK(shmem_team_create_ctx(team[of], 0, &ctx) == 0);
    shmem_ctx_long_put_nbi(ctx, into, from, 1000, (rank + 1) % count);
    shmem_ctx_quiet(ctx);
    shmem_team_sync(team[of]);
    CHECK(into[500] == left * 1000 + 500);
    shmem_ctx_destroy(ctx);
    locks_in(space, team[of], me % 2);
    /* Operations of the default context are complete when memory is given back. */
    for (int round = 0; round < 20; round++) {
        long *other = shmemx_space_malloc(space, 8000);
        shmem_long_put_nbi(other, from, 1000, right);
        shmemx_space_free(space, other);
        other = shmemx_space_calloc(space, 1, 8000);
        for (int i = 0; i < 1000; i++) CHECK(other[i] == 0);
        shmem_team_sync(team[of]);
        shmem_long_put_nbi(other, from, 1000, right);
        /* It is a barrier. */
        void *one = shmemx_space_malloc(space, 1);
        for (int i = 0; i < 1000; i++) CHECK(other[i] == left * 1000 + i);
        shmemx_space_free(space, one);
        shmemx_space_free(space, other);
    }
    shmemx_space_destroy(space);
    shmem_barrier_all();
}

/* What there is no room for is null everywhere, also if it is only some PEs that have none. */
static void no_room(void) {
    size_t all = shmemx_heap_free(), most = shmemx_heap_largest();
    shmemx_space_t space = (shmemx_space_t)&all, other;
    CHECK(shmemx_space_create(SHMEM_TEAM_INVALID, 100, &space) != 0 && space == SHMEMX_SPACE_INVALID);
    if (is_in(EVEN)) {
        CHECK(shmemx_space_create(team[EVEN], SIZE_MAX, &space) != 0 && space == SHMEMX_SPACE_INVALID);
        CHECK(shmemx_space_create(team[EVEN], most + 1, &space) != 0 && space == SHMEMX_SPACE_INVALID);
        CHECK(shmemx_space_create(team[EVEN], 10000, &space) == 0);
        CHECK(shmemx_space_malloc(space, 0) == NULL && shmemx_space_calloc(space, 0, 8) == NULL);
        CHECK(shmemx_space_align(space, 64, 0) == NULL);
        CHECK(shmemx_space_malloc(space, 20000) == NULL && shmemx_space_malloc(space, SIZE_MAX) == NULL);
        CHECK(shmemx_space_calloc(space, SIZE_MAX, SIZE_MAX) == NULL);
        CHECK(shmemx_space_align(space, (size_t)1 << 40, 8) == NULL);
        void *block = shmemx_space_malloc(space, 10000);
        CHECK(block != NULL && shmemx_space_malloc(space, 1) == NULL);
        shmemx_space_free(space, NULL);
        shmemx_space_free(space, block);
        shmemx_space_destroy(SHMEMX_SPACE_INVALID);
    }
    /* Others have room for this, but not where the space is. */
    CHECK(shmem_malloc(most) == NULL);
    CHECK(shmemx_space_create(SHMEM_TEAM_WORLD, most - 2000, &other) != 0);
    void *rest = shmem_malloc(most - 12000);
    check_same(SHMEM_TEAM_WORLD, rest);
    CHECK(rest != NULL);
    CHECK(shmem_realloc(rest, most) == NULL);
    shmem_free(rest);
    CHECK(shmemx_space_create(SHMEM_TEAM_WORLD, most / 2, &other) == 0);
    if (is_in(EVEN)) shmemx_space_destroy(space);
    CHECK(shmem_malloc(most / 2) == NULL);
    shmemx_space_destroy(other);
    CHECK(shmemx_heap_free() == all && shmemx_heap_largest() == most);
}

/* A space lies where all PEs would allocate or grow next: then they do it elsewhere, together. */
static void in_the_way(void) {
    size_t all = shmemx_heap_free();
    char *first = shmem_malloc(1000), *gap = shmem_malloc(5000), *other = shmem_malloc(1000);
    char *rest = shmem_malloc(shmemx_heap_largest());
    CHECK(first != NULL && gap != NULL && other != NULL && rest != NULL && shmemx_heap_largest() < 1000);
    memset(first, 1 + me, 1000);
    shmem_free(gap);
    shmemx_space_t space = SHMEMX_SPACE_INVALID;
    if (is_in(LOW)) CHECK(shmemx_space_create(team[LOW], 3000, &space) == 0);
    char *block = is_in(LOW) ? shmemx_space_calloc(space, 1, 3000) : NULL;
    CHECK(shmem_malloc(5000) == NULL);
    CHECK(shmem_realloc(first, 6000) == NULL);
    shmem_free(rest);
    char *again = shmem_malloc(5000);
    check_same(SHMEM_TEAM_WORLD, again);
    CHECK(again != NULL && again != gap);
    memset(again, -1, 5000);
    char *moved = shmem_realloc(first, 6000);
    check_same(SHMEM_TEAM_WORLD, moved);
    CHECK(moved != NULL && moved != first);
    for (int i = 0; i < 1000; i++) CHECK(moved[i] == 1 + me);
    memset(moved, -1, 6000);
    for (int i = 0; is_in(LOW) && i < 3000; i++) CHECK(block[i] == 0);
    if (is_in(LOW)) shmemx_space_destroy(space);
    /* In place again: at the start lies nothing else now. */
    char *here = shmem_malloc(500);
    CHECK(here == first && shmem_realloc(here, 6000) == first);
    shmem_free(first);
    shmem_free(again);
    shmem_free(moved);
    shmem_free(other);
    CHECK(shmemx_heap_free() == all);
}

/* A block cannot grow where it is, because of some PEs. There is one other place, into which it just fits, and
 * which is lower than what most of them would name first. */
static void one_place(void) {
    size_t all = shmemx_heap_free();
    char *low = shmem_malloc(6000), *wall = shmem_malloc(1), *grows = shmem_malloc(1000);
    char *gap = shmem_malloc(7000), *top = shmem_malloc(1), *rest = shmem_malloc(shmemx_heap_largest());
    CHECK(low != NULL && gap != NULL && rest != NULL);
    shmem_free(gap);
    shmem_free(low);
    memset(grows, 3 + me, 1000);
    shmemx_space_t space = SHMEMX_SPACE_INVALID;
    if (is_in(LOW)) CHECK(shmemx_space_create(team[LOW], 5000, &space) == 0);
    char *moved = shmem_realloc(grows, 6000);
    check_same(SHMEM_TEAM_WORLD, moved);
    CHECK(moved == low);
    for (int i = 0; i < 1000; i++) CHECK(moved[i] == 3 + me);
    CHECK(shmem_malloc(5000) == NULL);
    if (is_in(LOW)) shmemx_space_destroy(space);
    gap = shmem_malloc(7500);
    CHECK(gap == grows);
    char *blocks_left[] = {moved, gap, wall, top, rest};
    for (int i = 0; i < 5; i++) shmem_free(blocks_left[i]);
    CHECK(shmemx_heap_free() == all);
}

/* A space that is left ends with the library. */
static void left_over(void) {
    shmemx_space_t space;
    shmem_team_t pair;
    size_t all = shmemx_heap_free();
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &pair) == 0);
    CHECK(shmemx_space_create(pair, 5000, &space) == 0 && shmemx_space_malloc(space, 100) != NULL);
    shmem_finalize();
    shmem_init();
    CHECK(shmemx_heap_free() == all);
    char *block = shmem_malloc(shmemx_heap_largest());
    CHECK(block != NULL);
    shmem_free(block);
}

/* Threads make spaces of teams of their own, while another one allocates on all PEs. */
enum { ROUNDS = 400 };

static void *make_spaces(void *argument) {
    shmem_team_t of = *(shmem_team_t *)argument;
    int is_first = argument == &team[LOW];
    for (int round = 0; of != SHMEM_TEAM_INVALID && round < ROUNDS; round++) {
        shmemx_space_t space;
        struct block block = {NULL, (size_t)(1000 + round % 100 * 400), round * 2 + is_first};
        /* No room is none at any member. */
        if (shmemx_space_create(of, block.bytes, &space) != 0) continue;
        block.at = shmemx_space_malloc(space, block.bytes);
        CHECK(block.at != NULL);
        fill(&block);
        CHECK(shmem_team_sync(of) == 0);
        verify(&block, block.bytes);
        shmemx_space_destroy(space);
    }
    return NULL;
}

static void threads(void) {
    pthread_t thread[2];
    size_t all = shmemx_heap_free();
    CHECK(pthread_create(&thread[0], NULL, make_spaces, &team[LOW]) == 0);
    CHECK(pthread_create(&thread[1], NULL, make_spaces, &team[BUT_FIRST]) == 0);
    state = 7;
    for (number = 1; number <= ROUNDS; number++) step_world();
    for (int i = 0; i < 2; i++) CHECK(pthread_join(thread[i], NULL) == 0);
    shmem_barrier_all();
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i].at == NULL) continue;
        verify(&blocks[i], blocks[i].bytes);
        shmem_free(blocks[i].at);
    }
    CHECK(shmemx_heap_free() == all);
}

static void refused(const char *which) {
    shmemx_space_t space, other, garbage = (shmemx_space_t)(void *)&space;
    size_t mine = (size_t)(100 * (me + 1));
    char *block, *word = shmem_malloc(8);
    shmem_team_t pair;
    if (!strcmp(which, "place")) shmemx_space_create(SHMEM_TEAM_WORLD, 100, NULL);
    if (!strcmp(which, "team")) shmemx_space_create((shmem_team_t)(void *)&space, 100, &space);
    if (!strcmp(which, "sizes")) shmemx_space_create(SHMEM_TEAM_WORLD, mine, &space);
    CHECK(shmemx_space_create(SHMEM_TEAM_WORLD, 10000, &space) == 0);
    CHECK(shmemx_space_create(SHMEM_TEAM_WORLD, 10000, &other) == 0);
    block = shmemx_space_malloc(space, 1000);
    if (!strcmp(which, "none")) shmemx_space_malloc(SHMEMX_SPACE_INVALID, 100);
    if (!strcmp(which, "none calloc")) shmemx_space_calloc(SHMEMX_SPACE_INVALID, 1, 100);
    if (!strcmp(which, "none align")) shmemx_space_align(SHMEMX_SPACE_INVALID, 64, 100);
    if (!strcmp(which, "none free")) shmemx_space_free(SHMEMX_SPACE_INVALID, block);
    if (!strcmp(which, "none available")) shmemx_space_available(SHMEMX_SPACE_INVALID);
    if (!strcmp(which, "none team")) shmemx_space_team(SHMEMX_SPACE_INVALID);
    if (!strcmp(which, "garbage")) shmemx_space_malloc(garbage, 100);
    if (!strcmp(which, "garbage destroy")) shmemx_space_destroy(garbage);
    if (!strcmp(which, "malloc sizes")) shmemx_space_malloc(space, mine);
    if (!strcmp(which, "calloc sizes")) shmemx_space_calloc(space, 1, mine);
    if (!strcmp(which, "alignments")) shmemx_space_align(space, (size_t)64 << me, 100);
    if (!strcmp(which, "alignment")) shmemx_space_align(space, 48, 100);
    if (!strcmp(which, "calls")) (void)(me == 0 ? shmemx_space_malloc(space, 8) : shmemx_space_calloc(space, 8, 1));
    if (!strcmp(which, "spaces")) shmemx_space_malloc(me == 0 ? space : other, 8);
    if (!strcmp(which, "destroys")) shmemx_space_destroy(me == 0 ? space : other);
    if (!strcmp(which, "free blocks")) {
        char *second = shmemx_space_malloc(space, 1000);
        shmemx_space_free(space, me == 0 ? block : second);
    }
    if (!strcmp(which, "free middle")) shmemx_space_free(space, block + 64);
    if (!strcmp(which, "free twice")) {
        shmemx_space_free(space, block);
        shmemx_space_free(space, block);
    }
    if (!strcmp(which, "free of other")) shmemx_space_free(other, block);
    if (!strcmp(which, "free of world")) shmemx_space_free(space, word);
    if (!strcmp(which, "free of private")) shmemx_space_free(space, &mine);
    if (!strcmp(which, "world free")) shmem_free(block);
    if (!strcmp(which, "world free middle")) shmem_free(block + 100);
    if (!strcmp(which, "world realloc")) shmem_realloc(block, 5000);
    if (!strcmp(which, "world sizes")) shmem_malloc(mine);
    if (!strcmp(which, "world resizes")) shmem_realloc(word, mine * 100);
    if (!strcmp(which, "world calls")) (void)(me == 0 ? shmem_malloc(8) : shmem_realloc(word, 800));
    if (!strcmp(which, "team destroyed")) {
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &pair) == 0);
        CHECK(shmemx_space_create(pair, 100, &other) == 0);
        shmem_team_destroy(pair);
    }
    if (!strcmp(which, "destroyed")) {
        shmemx_space_destroy(space);
        shmemx_space_malloc(space, 100);
    }
    if (!strcmp(which, "destroyed twice")) {
        shmemx_space_destroy(space);
        shmemx_space_destroy(space);
    }
    if (!strcmp(which, "after the end") || !strcmp(which, "again")) shmem_finalize();
    if (!strcmp(which, "after the end")) shmemx_space_available(space);
    if (!strcmp(which, "again")) {
        shmem_init();
        shmemx_space_available(space);
    }
    shmem_barrier_all();
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "early")) shmemx_space_team(SHMEMX_SPACE_INVALID);
    int with_threads = argc > 1 && !strcmp(argv[1], "threads"), level = SHMEM_THREAD_MULTIPLE;
    CHECK(shmem_init_thread(with_threads ? level : SHMEM_THREAD_SINGLE, &level) == 0);
    me = shmem_my_pe();
    n = shmem_n_pes();
    if (argc > 1 && !with_threads) refused(argv[1]);
    /* Little is left of the heap, so that things are in the way of each other. */
    base = shmem_malloc(shmemx_heap_largest() - (with_threads ? 100000 : 180000));
    CHECK(base != NULL);
    make_teams();
    if (with_threads) {
        threads();
        shmem_finalize();
        return 0;
    }
    alone();
    operations();
    no_room();
    in_the_way();
    one_place();
    for (uint64_t seed = 1; seed <= 3; seed++) random_steps(seed);
    destroy_teams();
    shmem_free(base);
    left_over();
    shmem_finalize();
    return 0;
}
