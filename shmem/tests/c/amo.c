/* Atomics: each operation of each type against a model, in the heap and in static data, through the default
 * context and another one; and what concurrent atomics of all PEs add up to. With an argument, one
 * mistake. */

#include "check.h"

static shmem_ctx_t ctx;
static int me, n, right;

#define COMMA ,

/* The word on the PE to the right is changed by this PE only, and its model here. */
#define EQUALS(NAME, MODEL) CHECK_WITH(shmem_##NAME##_atomic_fetch(word, right) == (MODEL), #NAME)

#define EXTENDED_FORM(NAME, TYPE, PREFIX, CTX, QUIET) \
    do { \
        TYPE model = (TYPE) (me + 3), got = 0; \
        PREFIX##NAME##_atomic_set(CTX word, model, right); \
        QUIET; \
        EQUALS(NAME, model); \
        CHECK_WITH(PREFIX##NAME##_atomic_swap(CTX word, (TYPE) 77, right) == model, #NAME); \
        CHECK_WITH(PREFIX##NAME##_atomic_fetch(CTX word, right) == (TYPE) 77, #NAME); \
        PREFIX##NAME##_atomic_fetch_nbi(CTX & got, word, right); \
        QUIET; \
        CHECK_WITH(got == (TYPE) 77, #NAME); \
        PREFIX##NAME##_atomic_swap_nbi(CTX & got, word, (TYPE) 5, right); \
        QUIET; \
        CHECK_WITH(got == (TYPE) 77, #NAME); \
        EQUALS(NAME, (TYPE) 5); \
    } while (0)

#define STANDARD_FORM(NAME, TYPE, PREFIX, CTX, QUIET) \
    do { \
        const TYPE big = (TYPE) (~(uint64_t) 0 >> 3); \
        TYPE model = (TYPE) (me + 10), got = 0; \
        PREFIX##NAME##_atomic_set(CTX word, model, right); \
        QUIET; \
        got = PREFIX##NAME##_atomic_compare_swap(CTX word, model + 1, (TYPE) 1, right); \
        CHECK_WITH(got == model, #NAME); \
        EQUALS(NAME, model); \
        CHECK_WITH(PREFIX##NAME##_atomic_compare_swap(CTX word, model, (TYPE) 1, right) == model, #NAME); \
        EQUALS(NAME, (TYPE) 1); \
        CHECK_WITH(PREFIX##NAME##_atomic_fetch_inc(CTX word, right) == (TYPE) 1, #NAME); \
        PREFIX##NAME##_atomic_inc(CTX word, right); \
        QUIET; \
        EQUALS(NAME, (TYPE) 3); \
        CHECK_WITH(PREFIX##NAME##_atomic_fetch_add(CTX word, big, right) == (TYPE) 3, #NAME); \
        model = (TYPE) ((uint64_t) 3 + (uint64_t) big); \
        EQUALS(NAME, model); \
        PREFIX##NAME##_atomic_add(CTX word, big, right); \
        QUIET; \
        model = (TYPE) ((uint64_t) model + (uint64_t) big); \
        EQUALS(NAME, model); \
        PREFIX##NAME##_atomic_compare_swap_nbi(CTX & got, word, model, (TYPE) 20, right); \
        QUIET; \
        CHECK_WITH(got == model, #NAME); \
        PREFIX##NAME##_atomic_compare_swap_nbi(CTX & got, word, model, (TYPE) 21, right); \
        QUIET; \
        CHECK_WITH(got == (TYPE) 20, #NAME); \
        PREFIX##NAME##_atomic_fetch_inc_nbi(CTX & got, word, right); \
        QUIET; \
        CHECK_WITH(got == (TYPE) 20, #NAME); \
        PREFIX##NAME##_atomic_fetch_add_nbi(CTX & got, word, (TYPE) 9, right); \
        QUIET; \
        CHECK_WITH(got == (TYPE) 21, #NAME); \
        EQUALS(NAME, (TYPE) 30); \
    } while (0)

#define BITWISE_FORM(NAME, TYPE, PREFIX, CTX, QUIET) \
    do { \
        TYPE model = (TYPE) 0x5a5a5a5a5a5a5a5aull, got = 0; \
        const TYPE mask = (TYPE) 0xf0f0ff00ff0ff0f0ull; \
        PREFIX##NAME##_atomic_set(CTX word, model, right); \
        QUIET; \
        CHECK_WITH(PREFIX##NAME##_atomic_fetch_and(CTX word, mask, right) == model, #NAME); \
        EQUALS(NAME, model & mask); \
        CHECK_WITH(PREFIX##NAME##_atomic_fetch_or(CTX word, (TYPE) 0x77, right) == (model & mask), #NAME); \
        model = (model & mask) | (TYPE) 0x77; \
        EQUALS(NAME, model); \
        CHECK_WITH(PREFIX##NAME##_atomic_fetch_xor(CTX word, mask, right) == model, #NAME); \
        model ^= mask; \
        EQUALS(NAME, model); \
        PREFIX##NAME##_atomic_or(CTX word, (TYPE) 0x0f00000000f00001ull, right); \
        QUIET; \
        model |= (TYPE) 0x0f00000000f00001ull; \
        EQUALS(NAME, model); \
        PREFIX##NAME##_atomic_xor(CTX word, mask, right); \
        QUIET; \
        model ^= mask; \
        EQUALS(NAME, model); \
        PREFIX##NAME##_atomic_and(CTX word, (TYPE) ~mask, right); \
        QUIET; \
        model &= (TYPE) ~mask; \
        EQUALS(NAME, model); \
        PREFIX##NAME##_atomic_fetch_or_nbi(CTX & got, word, mask, right); \
        QUIET; \
        CHECK_WITH(got == model, #NAME); \
        PREFIX##NAME##_atomic_fetch_and_nbi(CTX & got, word, mask, right); \
        QUIET; \
        CHECK_WITH(got == (model | mask), #NAME); \
        PREFIX##NAME##_atomic_fetch_xor_nbi(CTX & got, word, mask, right); \
        QUIET; \
        CHECK_WITH(got == mask, #NAME); \
        EQUALS(NAME, (TYPE) 0); \
    } while (0)

#define TYPE_TEST(FORM, NAME, TYPE) \
    { \
        TYPE *word = object; \
        FORM(NAME, TYPE, shmem_, , shmem_quiet()); \
        FORM(NAME, TYPE, shmem_ctx_, ctx COMMA, shmem_ctx_quiet(ctx)); \
        shmem_barrier_all(); \
    }

static void every_type(void *object) {
#define EXTENDED(NAME, TYPE) TYPE_TEST(EXTENDED_FORM, NAME, TYPE)
    EXTENDED(float, float)
    EXTENDED(double, double)
    EXTENDED(int, int)
    EXTENDED(long, long)
    EXTENDED(longlong, long long)
    EXTENDED(uint, unsigned int)
    EXTENDED(ulong, unsigned long)
    EXTENDED(ulonglong, unsigned long long)
    EXTENDED(int32, int32_t)
    EXTENDED(int64, int64_t)
    EXTENDED(uint32, uint32_t)
    EXTENDED(uint64, uint64_t)
    EXTENDED(size, size_t)
    EXTENDED(ptrdiff, ptrdiff_t)
#define STANDARD(NAME, TYPE) TYPE_TEST(STANDARD_FORM, NAME, TYPE)
    STANDARD(int, int)
    STANDARD(long, long)
    STANDARD(longlong, long long)
    STANDARD(uint, unsigned int)
    STANDARD(ulong, unsigned long)
    STANDARD(ulonglong, unsigned long long)
    STANDARD(int32, int32_t)
    STANDARD(int64, int64_t)
    STANDARD(uint32, uint32_t)
    STANDARD(uint64, uint64_t)
    STANDARD(size, size_t)
    STANDARD(ptrdiff, ptrdiff_t)
#define BITWISE(NAME, TYPE) TYPE_TEST(BITWISE_FORM, NAME, TYPE)
    BITWISE(uint, unsigned int)
    BITWISE(ulong, unsigned long)
    BITWISE(ulonglong, unsigned long long)
    BITWISE(int32, int32_t)
    BITWISE(int64, int64_t)
    BITWISE(uint32, uint32_t)
    BITWISE(uint64, uint64_t)
}

/* The names of before 1.4. */
static void old_names(void *object) {
#define OLD(NAME, TYPE) \
    { \
        TYPE *word = object; \
        shmem_##NAME##_set(word, (TYPE) 6, right); \
        shmem_quiet(); \
        CHECK(shmem_##NAME##_swap(word, (TYPE) 8, right) == (TYPE) 6); \
        CHECK(shmem_##NAME##_fetch(word, right) == (TYPE) 8); \
        shmem_barrier_all(); \
    }
    OLD(float, float)
    OLD(double, double)
    OLD(int, int)
    OLD(long, long)
    OLD(longlong, long long)
#define OLD_STANDARD(NAME, TYPE) \
    { \
        TYPE *word = object; \
        shmem_##NAME##_set(word, 100, right); \
        shmem_quiet(); \
        CHECK(shmem_##NAME##_cswap(word, 99, 1, right) == 100); \
        CHECK(shmem_##NAME##_cswap(word, 100, 7, right) == 100); \
        CHECK(shmem_##NAME##_finc(word, right) == 7); \
        CHECK(shmem_##NAME##_fadd(word, -10, right) == 8); \
        shmem_##NAME##_inc(word, right); \
        shmem_##NAME##_add(word, 5, right); \
        shmem_quiet(); \
        CHECK(shmem_##NAME##_fetch(word, right) == 4); \
        shmem_barrier_all(); \
    }
    OLD_STANDARD(int, int)
    OLD_STANDARD(long, long)
    OLD_STANDARD(longlong, long long)
}

#define TURNS 300

/* A ticket is given out once; a bit that flips twice is back; what is added is there. */
static void all_at_once(void *object) {
    long *ticket = object, *given = ticket + 1;
    unsigned int *bits = object;
    bits += 2 * (1 + 4 * TURNS);
    memset(object, 0, sizeof(long) * (3 + 4 * TURNS));
    shmem_barrier_all();
    for (int turn = 0; turn < TURNS; turn++) {
        long mine = shmem_long_atomic_fetch_inc(ticket, 0);
        CHECK(mine >= 0 && mine < (long) n * TURNS);
        shmem_long_atomic_inc(&given[mine], n - 1);
        shmem_uint_atomic_xor(&bits[0], 1u << me, 0);
        long seen;
        do {
            seen = shmem_uint_atomic_fetch(&bits[1], 0);
        } while ((long) shmem_uint_atomic_compare_swap(&bits[1], seen, seen + 3, 0) != seen);
    }
    shmem_uint_atomic_or(&bits[2], 1u << me, 0);
    shmem_barrier_all();
    CHECK(shmem_long_atomic_fetch(ticket, 0) == (long) n * TURNS);
    CHECK(shmem_uint_atomic_fetch(&bits[0], 0) == 0);
    CHECK(shmem_uint_atomic_fetch(&bits[1], 0) == 3u * n * TURNS);
    CHECK(shmem_uint_atomic_fetch(&bits[2], 0) == (1u << n) - 1);
    for (int i = me; i < n * TURNS; i += n) {
        CHECK(shmem_long_atomic_fetch(&given[i], n - 1) == 1);
    }
    shmem_barrier_all();
}

/* As many at once as one likes; each finds its value after a quiet. */
static void many_without_waiting(void *object) {
    enum { MANY = 200 };
    long *words = object, got[MANY];
    memset(object, 0, MANY * sizeof(long));
    shmem_barrier_all();
    for (int i = 0; i < MANY; i++) {
        got[i] = -1;
        shmem_long_atomic_fetch_add_nbi(&got[i], &words[i], 1L << (8 * me), right);
        shmem_long_atomic_add(&words[i], 2L << (8 * me), right);
    }
    shmem_quiet();
    for (int i = 0; i < MANY; i++) {
        CHECK(got[i] == 0 || got[i] == 2L << (8 * me));
        CHECK(shmem_long_atomic_fetch(&words[i], right) == 3L << (8 * me));
    }
    shmem_barrier_all();
}

/* On a context of a team, PEs are numbered as in the team: here backwards. */
static void backwards(void *object) {
    long *words = object, got = -1;
    shmem_team_t team;
    shmem_ctx_t of_team;
    words[0] = 50 + me;
    words[1] = words[2] = 0;
    shmem_barrier_all();
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, n > 1 ? -1 : 1, n, NULL, 0, &team) == 0);
    CHECK(shmem_team_create_ctx(team, 0, &of_team) == 0);
    for (int rank = 0; rank < n; rank++) {
        CHECK(shmem_ctx_long_atomic_fetch(of_team, &words[0], rank) == 50 + n - 1 - rank);
        shmem_ctx_long_atomic_add(of_team, &words[1], rank, rank);
        shmem_ctx_long_atomic_fetch_inc_nbi(of_team, &got, &words[2], rank);
        shmem_ctx_quiet(of_team);
        CHECK(got >= 0 && got < n);
    }
    shmem_barrier_all();
    CHECK(words[1] == (long) n * (n - 1 - me));
    CHECK(words[2] == n);
    shmem_barrier_all();
    shmem_ctx_destroy(of_team);
    shmem_team_destroy(team);
}

static long of_statics[4 * TURNS + 8];

static int mistake(const char *which) {
    long *word = shmem_malloc(64), local = 0;
    char *bytes = (char *) word;
    if (!strcmp(which, "pe")) shmem_long_atomic_add(word, 1, n);
    if (!strcmp(which, "negative pe")) shmem_int_atomic_fetch_inc((int *) word, -1);
    if (!strcmp(which, "address")) shmem_long_atomic_fetch_add(&local, 1, 0);
    if (!strcmp(which, "source")) shmem_double_atomic_fetch((double *) &local, 0);
    if (!strcmp(which, "null")) shmem_ulong_atomic_xor(NULL, 1, 0);
    if (!strcmp(which, "alignment")) shmem_long_atomic_swap((long *) (bytes + 4), 1, 0);
    if (!strcmp(which, "alignment of a set")) shmem_int_atomic_set((int *) (bytes + 2), 1, 0);
    if (!strcmp(which, "alignment of a comparison")) {
        shmem_long_atomic_compare_swap((long *) (bytes + 1), 1, 2, 0);
    }
    if (!strcmp(which, "context")) shmem_ctx_int_atomic_inc(SHMEM_CTX_INVALID, (int *) word, 0);
    if (!strcmp(which, "nbi")) shmem_long_atomic_fetch_inc_nbi(&local, &local, 0);
    if (!strcmp(which, "comparison nbi")) shmem_long_atomic_compare_swap_nbi(&local, word, 0, 1, 7);
    if (!strcmp(which, "old name")) shmem_long_fadd(word, 1, n);
    if (!strcmp(which, "finalized")) {
        shmem_finalize();
        shmem_int_atomic_inc((int *) word, 0);
    }
    return 0;
}

int main(int argc, char **argv) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    CHECK(n <= 4);
    if (argc > 1) return mistake(argv[1]);
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    on_both(every_type, of_statics, sizeof of_statics);
    on_both(old_names, of_statics, sizeof of_statics);
    on_both(all_at_once, of_statics, sizeof of_statics);
    on_both(backwards, of_statics, sizeof of_statics);
    on_both(many_without_waiting, of_statics, sizeof of_statics);
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return 0;
}
