/* Remote memory access: every form of every type and size, in the heap and in static data, with no context,
 * the default one, a private one and one of a team; against a model that also says what stays as it is. With
 * an argument, one mistake. */

#include "models.h"

static shmem_ctx_t own, of_team;
static int me, n, left, right;

static unsigned int state = 12345;

static unsigned int below(unsigned int bound) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % bound;
}

/* Bytes that tell PE, place and round; `kind` tells apart what one PE has. */
static int round_now;

static inline unsigned char byte_of(int pe, int kind, size_t i) {
    return (unsigned char) (pe * 53 + kind * 101 + round_now * 29 + i * 7 + (i >> 8) * 13);
}

static void fill(unsigned char *area, int pe, int kind, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) area[i] = byte_of(pe, kind, i);
}

/* An object has an area for each form. */
enum { RUN = 1024, BYTES = 5 * RUN };
enum { AT_PUT = 0, AT_PUT_NBI = RUN, AT_P = 2 * RUN, AT_GET = 3 * RUN, AT_G = 4 * RUN };
enum { IN_SHARED, IN_HERE, IN_GOT };

/* What one round moves, in elements. */
static const struct { size_t to, from, count; } RUNS[] = {
    { 1, 3, 0 }, { 2, 1, 1 }, { 5, 0, 7 }, { 14, 9, 29 },
};

static unsigned char here[2 * RUN] __attribute__((aligned(64)));
static unsigned char got[2 * RUN] __attribute__((aligned(64)));
static unsigned char expected[BYTES] __attribute__((aligned(64)));

static void *at(unsigned char *area, size_t index, size_t each) { return area + index * each; }

static void model(unsigned char *dest, const unsigned char *source, size_t each) {
    for (size_t r = 0; r < COUNT(RUNS); r++) {
        memcpy(dest + RUNS[r].to * each, source + RUNS[r].from * each, RUNS[r].count * each);
    }
}

static void begin(unsigned char *shared) {
    round_now++;
    fill(shared, me, IN_SHARED, BYTES);
    fill(here, me, IN_HERE, sizeof here);
    fill(got, me, IN_GOT, sizeof got);
}

static void ready(unsigned char *shared) {
    memcpy(expected, shared, BYTES);
    shmem_barrier_all();
}

/* What has come from the PE to the right, in the half of `got` that begins there. */
static void check_got(size_t half, size_t each, const char *what) {
    unsigned char theirs[BYTES], copy[sizeof got];
    fill(theirs, right, IN_SHARED, BYTES);
    fill(copy, me, IN_GOT, sizeof copy);
    model(copy + half, theirs + AT_GET, each);
    CHECK_WITH(memcmp(got + half, copy + half, RUN) == 0, what);
}

/* What has come from the PE to the left. */
static void check_shared(const unsigned char *shared, size_t each, const char *what) {
    unsigned char theirs[sizeof here];
    fill(theirs, left, IN_HERE, sizeof theirs);
    model(expected + AT_PUT, theirs, each);
    model(expected + AT_PUT_NBI, theirs + RUN, each);
    CHECK_WITH(memcmp(shared, expected, BYTES) == 0, what);
    shmem_barrier_all();
}

#define EACH_RUN(FUNCTION, TO, FROM, EACH, PE, ...) \
    for (size_t r = 0; r < COUNT(RUNS); r++) { \
        FUNCTION(__VA_ARGS__ at(TO, RUNS[r].to, EACH), at(FROM, RUNS[r].from, EACH), RUNS[r].count, PE); \
    }

/* A blocking put is done with its source when it returns, a blocking get has its data. */
#define MOVE(EACH, WHAT, PREFIX, QUIET, PE, PUT, GET, PUT_NBI, GET_NBI, ...) \
    EACH_RUN(PREFIX##PUT, shared + AT_PUT, here, EACH, PE, __VA_ARGS__) \
    memset(here, 0, RUN); \
    EACH_RUN(PREFIX##GET, got, shared + AT_GET, EACH, PE, __VA_ARGS__) \
    check_got(0, EACH, WHAT); \
    EACH_RUN(PREFIX##PUT_NBI, shared + AT_PUT_NBI, here + RUN, EACH, PE, __VA_ARGS__) \
    EACH_RUN(PREFIX##GET_NBI, got + RUN, shared + AT_GET, EACH, PE, __VA_ARGS__) \
    QUIET; \
    check_got(RUN, EACH, WHAT)

/* A value that fills its type. */
#define VALUE(TYPE, pe, k) ((TYPE) (0x9123456789abcdefull * (unsigned long long) ((k) + 1) + (pe)))

#define TYPED(NAME, TYPE, PREFIX, QUIET, PE, ...) \
    { \
        TYPE *values = (TYPE *) (shared + AT_P), *constants = (TYPE *) (shared + AT_G); \
        begin(shared); \
        for (int k = 0; k < 4; k++) constants[k] = VALUE(TYPE, me, k); \
        ready(shared); \
        for (int k = 0; k < 4; k++) { \
            PREFIX##NAME##_p(__VA_ARGS__ values + 2 * k + 1, VALUE(TYPE, me, 7 - k), PE); \
            CHECK_WITH(PREFIX##NAME##_g(__VA_ARGS__ constants + k, PE) == VALUE(TYPE, right, k), #NAME); \
        } \
        MOVE(sizeof(TYPE), #NAME, PREFIX, QUIET, PE, NAME##_put, NAME##_get, NAME##_put_nbi, NAME##_get_nbi, \
             __VA_ARGS__); \
        shmem_barrier_all(); \
        for (int k = 0; k < 4; k++) { \
            const size_t place = AT_P + (2 * k + 1) * sizeof(TYPE); \
            CHECK_WITH(values[2 * k + 1] == VALUE(TYPE, left, 7 - k), #NAME); \
            memcpy(expected + place, shared + place, sizeof(TYPE)); \
        } \
        check_shared(shared, sizeof(TYPE), #NAME); \
    }

#define UNTYPED(SIZE, EACH, PREFIX, QUIET, PE, ...) \
    begin(shared); \
    ready(shared); \
    MOVE(EACH, #SIZE, PREFIX, QUIET, PE, put##SIZE, get##SIZE, put##SIZE##_nbi, get##SIZE##_nbi, \
         __VA_ARGS__); \
    shmem_barrier_all(); \
    check_shared(shared, EACH, #SIZE);

#define ALL(...) \
    ORDER_TYPES(TYPED, __VA_ARGS__) \
    UNTYPED(8, 1, __VA_ARGS__) \
    UNTYPED(16, 2, __VA_ARGS__) \
    UNTYPED(32, 4, __VA_ARGS__) \
    UNTYPED(64, 8, __VA_ARGS__) \
    UNTYPED(128, 16, __VA_ARGS__) \
    UNTYPED(mem, 1, __VA_ARGS__)

#define COMMA ,

static void without_context(void *object) {
    unsigned char *shared = object;
    ALL(shmem_, shmem_quiet(), right, )
}

static void with_contexts(void *object) {
    unsigned char *shared = object;
    const shmem_ctx_t contexts[] = { SHMEM_CTX_DEFAULT, own };
    for (size_t i = 0; i < COUNT(contexts); i++) {
        ALL(shmem_ctx_, shmem_ctx_quiet(contexts[i]), right, contexts[i] COMMA)
    }
}

/* The team counts backwards. */
static void with_the_context_of_a_team(void *object) {
    unsigned char *shared = object;
    ALL(shmem_ctx_, shmem_ctx_quiet(of_team), n - 1 - right, of_team COMMA)
}

/* Any address, any length: this PE alone writes to the PE to the right, and knows what is there. */
static void unaligned(void *object) {
    static const size_t LENGTHS[] = { 0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 63, 64, 65, 200 };
    enum { AREA = 320 };
    unsigned char *shared = object, back[AREA], theirs[AREA], copy[AREA];
    round_now++;
    fill(shared, me, IN_SHARED, AREA);
    fill(theirs, right, IN_SHARED, AREA);
    shmem_barrier_all();
    for (int i = 0; i < 200; i++) {
        const size_t to = below(70), from = below(70), bytes = LENGTHS[below(COUNT(LENGTHS))];
        round_now++;
        fill(here, me, IN_HERE, AREA);
        switch (i % 4) {
            case 0: shmem_putmem(shared + to, here + from, bytes, right); break;
            case 1: shmem_put8_nbi(shared + to, here + from, bytes, right); break;
            case 2: shmem_ctx_putmem_nbi(own, shared + to, here + from, bytes, right); break;
            case 3: shmem_ctx_char_put(own, (char *) shared + to, (char *) here + from, bytes, right); break;
        }
        shmem_quiet();
        shmem_ctx_quiet(own);
        memcpy(theirs + to, here + from, bytes);
        shmem_getmem(back, shared, AREA, right);
        CHECK(memcmp(back, theirs, AREA) == 0);
        memcpy(copy, here, AREA);
        switch (i % 4) {
            case 0: shmem_ctx_getmem(own, here + to, shared + from, bytes, right); break;
            case 1: shmem_get8(here + to, shared + from, bytes, right); break;
            case 2: shmem_getmem_nbi(here + to, shared + from, bytes, right); break;
            case 3: shmem_ctx_get8_nbi(own, here + to, shared + from, bytes, right); break;
        }
        shmem_quiet();
        shmem_ctx_quiet(own);
        memcpy(copy + to, theirs + from, bytes);
        CHECK(memcmp(here, copy, AREA) == 0);
    }
    shmem_barrier_all();
}

enum { LARGE = (5 << 19) + 129 };

static unsigned char of_large[LARGE], large_here[LARGE], large_expected[LARGE];

#define LARGE_MOVE(PUT, GET, BITS, QUIET, TO, ELEMENTS) \
    do { \
        const size_t moved = (size_t) (ELEMENTS) * (BITS / 8); \
        round_now++; \
        fill(shared, me, IN_SHARED, LARGE); \
        fill(large_here, me, IN_HERE, LARGE); \
        shmem_barrier_all(); \
        PUT(shared + (TO), large_here + (TO) + 16, ELEMENTS, right); \
        QUIET; \
        shmem_barrier_all(); \
        fill(large_expected, me, IN_SHARED, LARGE); \
        for (size_t i = (TO); i < (TO) + moved; i++) large_expected[i] = byte_of(left, IN_HERE, i + 16); \
        CHECK(memcmp(shared, large_expected, LARGE) == 0); \
        shmem_barrier_all(); \
        fill(large_expected, me, IN_HERE, LARGE); \
        GET(large_here + (TO), shared + (TO), ELEMENTS, right); \
        QUIET; \
        /* That is what this PE has put there. */ \
        memmove(large_expected + (TO), large_expected + (TO) + 16, moved); \
        CHECK(memcmp(large_here, large_expected, LARGE) == 0); \
        shmem_barrier_all(); \
    } while (0)

static void large(void *object) {
    unsigned char *shared = object;
    LARGE_MOVE(shmem_putmem, shmem_getmem_nbi, 8, shmem_quiet(), 37, LARGE - 100);
    LARGE_MOVE(shmem_putmem_nbi, shmem_getmem, 8, shmem_quiet(), 0, (1 << 20) + 1);
    LARGE_MOVE(shmem_put64, shmem_get64_nbi, 64, shmem_quiet(), 64, 1 << 17);
    LARGE_MOVE(shmem_put128_nbi, shmem_get128, 128, shmem_quiet(), 32, (1 << 16) + 3);
}

/* Many at once without waiting, to all PEs in turn; then each finds what all have sent. */
static void many(void *object) {
    enum { MANY = 100 };
    int *numbers = object, sent[MANY], fetched[MANY];
    for (int i = 0; i < MANY; i++) sent[i] = 1000 * me + i;
    for (int i = 0; i < MANY * n; i++) numbers[i] = -1;
    shmem_barrier_all();
    for (int i = 0; i < MANY; i++) {
        for (int pe = 0; pe < n; pe++) shmem_int_put_nbi(&numbers[MANY * me + i], &sent[i], 1, (pe + i) % n);
    }
    shmem_quiet();
    shmem_barrier_all();
    for (int i = 0; i < MANY * n; i++) CHECK(numbers[i] == 1000 * (i / MANY) + i % MANY);
    for (int i = 0; i < MANY; i++) {
        shmem_int_get_nbi(&fetched[i], &numbers[MANY * right + i], 1, (me + i) % n);
    }
    shmem_quiet();
    for (int i = 0; i < MANY; i++) CHECK(fetched[i] == 1000 * right + i);
    shmem_barrier_all();
}

static long sources[100];

/* Source and destination on one PE; one of them, or both, in the heap or in static data. */
static void to_itself(void *object) {
    long *words = object, local[100];
    for (int i = 0; i < 100; i++) sources[i] = local[i] = 7000 + 100 * me + i;
    memset(object, 0, 300 * sizeof(long));
    shmem_barrier_all();
    shmem_long_put(words, local, 50, me);
    shmem_long_put_nbi(words + 50, sources + 50, 50, me);
    shmem_quiet();
    CHECK(memcmp(words, local, sizeof local) == 0 && words[100] == 0);
    shmem_long_get(words + 100, sources, 100, me);
    CHECK(memcmp(words + 100, local, sizeof local) == 0 && words[200] == 0);
    shmem_long_put(words + 200, words + 100, 100, me);
    shmem_quiet();
    CHECK(memcmp(words + 200, local, sizeof local) == 0);
    shmem_long_p(words, -1, me);
    shmem_quiet();
    CHECK(shmem_long_g(words, me) == -1 && words[0] == -1 && words[1] == local[1]);
    shmem_barrier_all();
}

/* From the heap to static data of another PE, and back. */
static void from_kind_to_kind(void *object) {
    static long target[64];
    long *words = object;
    for (int i = 0; i < 64; i++) words[i] = 500 * me + i, target[i] = -i;
    shmem_barrier_all();
    shmem_long_put(target, words, 60, right);
    shmem_quiet();
    shmem_barrier_all();
    for (int i = 0; i < 64; i++) CHECK(target[i] == (i < 60 ? 500 * left + i : -i));
    shmem_long_get_nbi(words, target, 60, right);
    shmem_quiet();
    for (int i = 0; i < 64; i++) CHECK(words[i] == 500 * me + i);
    shmem_barrier_all();
}

/* Nothing moves, whatever the pointers are. */
static void nothing(void *object) {
    shmem_long_put(NULL, NULL, 0, right);
    shmem_long_get(NULL, NULL, 0, right);
    shmem_double_put_nbi(NULL, NULL, 0, right);
    shmem_double_get_nbi(NULL, NULL, 0, right);
    shmem_longdouble_put(object, NULL, 0, right);
    shmem_put8(NULL, object, 0, right);
    shmem_get16(NULL, object, 0, right);
    shmem_put32_nbi(NULL, NULL, 0, right);
    shmem_get128_nbi(NULL, NULL, 0, right);
    shmem_putmem(NULL, NULL, 0, right);
    shmem_getmem(NULL, NULL, 0, right);
    shmem_putmem_nbi(NULL, NULL, 0, right);
    shmem_getmem_nbi(NULL, NULL, 0, right);
    shmem_ctx_int_put(own, NULL, NULL, 0, right);
    shmem_ctx_getmem_nbi(of_team, NULL, NULL, 0, n - 1 - right);
    shmem_barrier_all();
}

enum { WORDS = 64, ROUNDS = 200 };

/* Who sees a flag sees what was put before the fence, on every PE that both were put to. */
static void ordered(void *object) {
    static long data[ROUNDS + 1][WORDS];
    volatile long *words = object;
    long *flag = (long *) object + WORDS;
    memset(object, 0, (WORDS + 1) * sizeof(long));
    for (long i = 0; i <= ROUNDS; i++) {
        for (int word = 0; word < WORDS; word++) data[i][word] = i;
    }
    shmem_barrier_all();
    for (long i = 1; me == 0 && i <= ROUNDS; i++) {
        const shmem_ctx_t ctx = i <= ROUNDS / 2 ? SHMEM_CTX_DEFAULT : own;
        for (int pe = 0; pe < n; pe++) {
            if (i % 3) {
                shmem_ctx_long_put(ctx, object, data[i], WORDS, pe);
            } else {
                shmem_ctx_long_put_nbi(ctx, object, data[i], WORDS, pe);
            }
        }
        shmem_ctx_fence(ctx);
        for (int pe = 0; pe < n; pe++) shmem_ctx_long_p(ctx, flag, i, pe);
        /* The two contexts are not ordered with each other. */
        if (i == ROUNDS / 2) shmem_ctx_quiet(ctx);
    }
    for (long seen = 1; seen <= ROUNDS; seen++) {
        shmem_long_wait_until(flag, SHMEM_CMP_GE, seen);
        for (int word = 0; word < WORDS; word++) CHECK(words[word] >= seen);
    }
    shmem_barrier_all();
}

/* What the other PE has, by its address here; or no address. */
static void pointers(void *object) {
    long *words = object;
    int local = 0;
    for (int pe = 0; pe < n; pe++) words[pe] = 10 * me + pe;
    shmem_barrier_all();
    CHECK(shmem_ptr(words, me) == words);
    for (int pe = 0; pe < n; pe++) {
        long *theirs = shmem_ptr(&words[me], pe);
        CHECK((theirs != NULL) == is_mapped(pe, n));
        if (theirs != NULL) {
            CHECK(*theirs == 10 * pe + me);
            *theirs += 1000;
        } else {
            shmem_long_p(&words[me], 1000 + 10 * pe + me, pe);
            shmem_quiet();
        }
        CHECK(shmem_long_g(&words[me], pe) == 1000 + 10 * pe + me);
    }
    shmem_barrier_all();
    for (int pe = 0; pe < n; pe++) CHECK(words[pe] == 1000 + 10 * me + pe);
    CHECK(shmem_ptr(words, n) == NULL && shmem_ptr(words, -1) == NULL);
    CHECK(shmem_ptr(&local, me) == NULL && shmem_ptr(NULL, right) == NULL);
    shmem_barrier_all();
}

static unsigned char of_statics[BYTES] __attribute__((aligned(64)));

static int mistake_beside_the_library(const char *which) {
    long local = 0;
    static long word;
    if (!strcmp(which, "p before")) shmem_long_p(&word, 1, 0);
    if (!strcmp(which, "put before")) shmem_putmem(&word, &local, 8, 0);
    if (!strcmp(which, "ptr before")) shmem_ptr(&word, 0);
    shmem_init();
    long *words = shmem_malloc(64);
    shmem_finalize();
    if (!strcmp(which, "g after")) return (int) shmem_long_g(words, 0);
    if (!strcmp(which, "get after")) shmem_long_get(&local, words, 1, 0);
    if (!strcmp(which, "nbi after")) shmem_put64_nbi(&word, &local, 1, 0);
    return 0;
}

static int mistake(const char *which) {
    long *words = shmem_malloc(64 * sizeof *words), local[64] = { 0 };
    char *end = (char *) words + ((size_t) 1 << 40);
    shmem_team_t one;
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    if (!strcmp(which, "pe of p")) shmem_long_p(words, 1, n);
    if (!strcmp(which, "pe of g")) return (int) shmem_double_g((double *) words, -1);
    if (!strcmp(which, "pe of put")) shmem_float_put((float *) words, (float *) local, 4, -1);
    if (!strcmp(which, "pe of get")) shmem_get32(local, words, 4, n + 5);
    if (!strcmp(which, "pe of nbi")) shmem_putmem_nbi(words, local, 4, INT32_MIN);
    if (!strcmp(which, "pe of nothing")) shmem_long_put(words, local, 0, n);
    if (!strcmp(which, "pe of get of nothing")) shmem_getmem_nbi(local, words, 0, -2);
    if (!strcmp(which, "pe of long double")) shmem_longdouble_p((long double *) words, 1, n);
    if (!strcmp(which, "dest")) shmem_long_put(local, words, 4, 0);
    if (!strcmp(which, "dest of p")) shmem_int_p((int *) local, 1, 0);
    if (!strcmp(which, "dest of nbi")) shmem_put16_nbi(local, words, 4, 0);
    if (!strcmp(which, "source")) shmem_long_get(words, local, 4, 0);
    if (!strcmp(which, "source of g")) return shmem_short_g((short *) local, 0);
    if (!strcmp(which, "source of nbi")) shmem_getmem_nbi(words, local, 4, 0);
    if (!strcmp(which, "source of long double")) return shmem_longdouble_g((long double *) local, 0) > 0;
    if (!strcmp(which, "null dest")) shmem_uint8_put(NULL, (uint8_t *) local, 4, 0);
    if (!strcmp(which, "null of p")) shmem_char_p(NULL, 1, 0);
    if (!strcmp(which, "null source")) shmem_get64(local, NULL, 1, 0);
    if (!strcmp(which, "null of g")) return shmem_int_g(NULL, 0);
    if (!strcmp(which, "function")) shmem_int_p((int *) (uintptr_t) &mistake, 1, 0);
    if (!strcmp(which, "end")) shmem_putmem(words, local, (size_t) 1 << 40, 0);
    if (!strcmp(which, "end of get")) shmem_long_get(local, words, (size_t) 1 << 37, 0);
    if (!strcmp(which, "end of statics")) shmem_put8(of_statics, words, (size_t) 1 << 33, 0);
    if (!strcmp(which, "behind the end")) shmem_long_p((long *) end, 1, 0);
    if (!strcmp(which, "before the start")) shmem_char_get((char *) local, (char *) words - (1 << 20), 1, 0);
    if (!strcmp(which, "overflow")) shmem_long_put(words, local, SIZE_MAX / 4, 0);
    if (!strcmp(which, "overflow of get")) shmem_get128_nbi(local, words, SIZE_MAX / 16 + 2, 0);
    if (!strcmp(which, "overflow to 0")) shmem_put64(words, local, (size_t) 1 << 61, 0);
    if (!strcmp(which, "overflow of statics")) shmem_long_put((long *) of_statics, local, SIZE_MAX, 0);
    if (!strcmp(which, "no context")) shmem_ctx_long_p(ctx, words, 1, 0);
    if (!strcmp(which, "put on none")) shmem_ctx_putmem(ctx, words, local, 8, 0);
    if (!strcmp(which, "nothing on none")) shmem_ctx_getmem(ctx, local, words, 0, 0);
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    shmem_ctx_destroy(ctx);
    if (!strcmp(which, "destroyed")) shmem_ctx_long_put(ctx, words, local, 4, 0);
    if (!strcmp(which, "g on destroyed")) return (int) shmem_ctx_long_g(ctx, words, 0);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &one) == 0);
    if (!strcmp(which, "pe of team") && one != SHMEM_TEAM_INVALID) {
        CHECK(shmem_team_create_ctx(one, 0, &ctx) == 0);
        shmem_ctx_long_get(ctx, local, words, 4, 1);
    }
    return 0;
}

int main(int argc, char **argv) {
    shmem_team_t team;
    if (argc > 2) return mistake_beside_the_library(argv[1]);
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    left = (me + n - 1) % n;
    if (argc > 1) return mistake(argv[1]);
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &own) == 0);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, n > 1 ? -1 : 1, n, NULL, 0, &team) == 0);
    CHECK(shmem_team_create_ctx(team, 0, &of_team) == 0);
    on_both(without_context, of_statics, BYTES);
    on_both(with_contexts, of_statics, BYTES);
    on_both(with_the_context_of_a_team, of_statics, BYTES);
    on_both(unaligned, of_statics, BYTES);
    on_both(large, of_large, sizeof of_large);
    on_both(many, of_statics, BYTES);
    on_both(to_itself, of_statics, BYTES);
    on_both(from_kind_to_kind, of_statics, BYTES);
    on_both(nothing, of_statics, BYTES);
    on_both(ordered, of_statics, BYTES);
    on_both(pointers, of_statics, BYTES);
    shmem_ctx_destroy(own);
    shmem_ctx_destroy(of_team);
    shmem_team_destroy(team);
    shmem_finalize();
    return 0;
}
