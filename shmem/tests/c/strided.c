/* Strided transfers: every form of every size against a model, which also says what stays as it is; in the
 * heap and in static data. With an argument, one mistake. */

#include "check.h"

static shmem_ctx_t ctx;
static int me, n, right;

enum { BYTES = 4096 };

/* The pattern of one transfer, in elements; a different one each time. */
static ptrdiff_t dst, sst;
static size_t block, count;

static unsigned int state = 12345;

static unsigned int below(unsigned int bound) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % bound;
}

static void choose(size_t blocks_of) {
    block = blocks_of;
    count = below(10);
    dst = (ptrdiff_t) blocks_of + below(5);
    sst = (ptrdiff_t) blocks_of + below(5);
    if (below(4) == 0) dst = sst = (ptrdiff_t) blocks_of;
}

static void model(unsigned char *dest, const unsigned char *source, size_t bytes) {
    for (size_t i = 0; i < count; i++) {
        memcpy(dest + i * dst * bytes, source + i * sst * bytes, block * bytes);
    }
}

static unsigned char here[BYTES] __attribute__((aligned(64)));
static unsigned char expected[BYTES] __attribute__((aligned(64)));

/* A put from `here` to the right, or a get from there; `shared` is the same object on every PE. */
static void prepare(unsigned char *shared, int of) {
    for (int i = 0; i < BYTES; i++) {
        here[i] = (unsigned char) (me * 3 + i * 7 + 1);
        shared[i] = (unsigned char) (me * 5 + i * 11 + 2);
        expected[i] = (unsigned char) (of * 5 + i * 11 + 2);
    }
    shmem_barrier_all();
}

#define PUT(BYTES_OF, QUIET, CALL) \
    do { \
        prepare(shared, right); \
        CALL; \
        QUIET; \
        model(expected, here, BYTES_OF); \
        unsigned char back[BYTES]; \
        shmem_getmem(back, shared, BYTES, right); \
        CHECK(memcmp(back, expected, BYTES) == 0); \
        shmem_barrier_all(); \
    } while (0)

#define GET(BYTES_OF, CALL) \
    do { \
        unsigned char copy[BYTES]; \
        prepare(shared, right); \
        memcpy(copy, here, BYTES); \
        CALL; \
        model(copy, expected, BYTES_OF); \
        CHECK(memcmp(copy, here, BYTES) == 0); \
        shmem_barrier_all(); \
    } while (0)

#define ALL(BYTES_OF, PREFIX, CTX, QUIET, IPUT, IGET, IBPUT, IBGET, TYPE) \
    do { \
        TYPE *to = (TYPE *) shared, *mine = (TYPE *) here; \
        choose(1); \
        PUT(BYTES_OF, QUIET, PREFIX##IPUT(CTX to, mine, dst, sst, count, right)); \
        choose(1); \
        GET(BYTES_OF, PREFIX##IGET(CTX mine, to, dst, sst, count, right)); \
        choose(1 + below(6)); \
        PUT(BYTES_OF, QUIET, PREFIX##IBPUT(CTX to, mine, dst, sst, block, count, right)); \
        choose(1 + below(6)); \
        GET(BYTES_OF, PREFIX##IBGET(CTX mine, to, dst, sst, block, count, right)); \
    } while (0)

#define COMMA ,

static void every_type(void *object) {
    unsigned char *shared = object;
#define TYPED(NAME, TYPE) \
    ALL(sizeof(TYPE), shmem_, , shmem_quiet(), NAME##_iput, NAME##_iget, NAME##_ibput, NAME##_ibget, TYPE); \
    ALL(sizeof(TYPE), shmem_ctx_, ctx COMMA, shmem_ctx_quiet(ctx), NAME##_iput, NAME##_iget, NAME##_ibput, \
        NAME##_ibget, TYPE);
    TYPED(float, float)
    TYPED(double, double)
    TYPED(longdouble, long double)
    TYPED(char, char)
    TYPED(schar, signed char)
    TYPED(short, short)
    TYPED(int, int)
    TYPED(long, long)
    TYPED(longlong, long long)
    TYPED(uchar, unsigned char)
    TYPED(ushort, unsigned short)
    TYPED(uint, unsigned int)
    TYPED(ulong, unsigned long)
    TYPED(ulonglong, unsigned long long)
    TYPED(int8, int8_t)
    TYPED(int16, int16_t)
    TYPED(int32, int32_t)
    TYPED(int64, int64_t)
    TYPED(uint8, uint8_t)
    TYPED(uint16, uint16_t)
    TYPED(uint32, uint32_t)
    TYPED(uint64, uint64_t)
    TYPED(size, size_t)
    TYPED(ptrdiff, ptrdiff_t)
#define SIZED(BITS) \
    ALL(BITS / 8, shmem_, , shmem_quiet(), iput##BITS, iget##BITS, ibput##BITS, ibget##BITS, void); \
    ALL(BITS / 8, shmem_ctx_, ctx COMMA, shmem_ctx_quiet(ctx), iput##BITS, iget##BITS, ibput##BITS, \
        ibget##BITS, void);
    for (int i = 0; i < 6; i++) {
        SIZED(8)
        SIZED(16)
        SIZED(32)
        SIZED(64)
        SIZED(128)
    }
}

/* Large blocks, which are copied, and objects that are not aligned for their elements. */
static void blocks(void *object) {
    unsigned char *shared = object;
    block = 33;
    count = 5;
    dst = 40;
    sst = 34;
    PUT(8, shmem_quiet(), shmem_ibput64(shared, here, dst, sst, block, count, right));
    GET(8, shmem_ibget64(here, shared, dst, sst, block, count, right));
    PUT(1, shmem_quiet(), shmem_ibput8(shared, here, dst, sst, block, count, right));
    GET(16, shmem_ibget128(here, shared, dst, sst, block, count, right));
}

/* Nothing moves, whatever the pointers and strides are. */
static void nothing(void *object) {
    shmem_long_iput(NULL, NULL, 1, 1, 0, right);
    shmem_long_iget(NULL, NULL, 1, 1, 0, right);
    shmem_ibput32(NULL, NULL, 4, 4, 4, 0, right);
    shmem_ibget128(NULL, NULL, 4, 4, 4, 0, right);
    shmem_double_ibput(object, NULL, 1, 1, 0, 5, right);
    shmem_ctx_int_iput(ctx, NULL, NULL, 2, 2, 0, right);
    shmem_barrier_all();
}

/* On a context of a team, PEs are numbered as in the team: here backwards. */
static void backwards(void *object) {
    unsigned char *shared = object;
    shmem_team_t team;
    shmem_ctx_t of_team;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, n > 1 ? -1 : 1, n, NULL, 0, &team) == 0);
    CHECK(shmem_team_create_ctx(team, 0, &of_team) == 0);
    const int to = n - 1 - right;
    int *theirs = object, *mine = (int *) here;
    choose(1);
    PUT(4, shmem_ctx_quiet(of_team), shmem_ctx_int_iput(of_team, theirs, mine, dst, sst, count, to));
    choose(3);
    GET(4, shmem_ctx_int_ibget(of_team, mine, theirs, dst, sst, block, count, to));
    shmem_ctx_destroy(of_team);
    shmem_team_destroy(team);
}

static unsigned char of_statics[BYTES] __attribute__((aligned(64)));

static int mistake(const char *which) {
    long *words = shmem_malloc(64 * sizeof *words), local[64] = { 0 };
    if (!strcmp(which, "dst")) shmem_long_iput(words, local, 0, 1, 4, 0);
    if (!strcmp(which, "sst")) shmem_long_iput(words, local, 1, -1, 4, 0);
    if (!strcmp(which, "dst of get")) shmem_iget32(local, words, -5, 1, 4, 0);
    if (!strcmp(which, "sst of get")) shmem_double_iget((double *) local, (double *) words, 1, 0, 4, 0);
    if (!strcmp(which, "block")) shmem_ibput64(words, local, 3, 4, 4, 2, 0);
    if (!strcmp(which, "block of get")) shmem_int_ibget((int *) local, (int *) words, 4, 3, 4, 2, 0);
    if (!strcmp(which, "pe")) shmem_long_iput(words, local, 1, 1, 4, n);
    if (!strcmp(which, "pe of nothing")) shmem_long_iget(local, words, 1, 1, 0, -1);
    if (!strcmp(which, "dest")) shmem_long_iput(local, words, 1, 1, 4, 0);
    if (!strcmp(which, "source")) shmem_long_iget(words, local, 1, 1, 4, 0);
    if (!strcmp(which, "end")) shmem_iput8(words, local, (ptrdiff_t) 1 << 40, 1, 4, 0);
    if (!strcmp(which, "overflow")) shmem_long_iput(words, local, PTRDIFF_MAX / 2, 1, 9, 0);
    if (!strcmp(which, "overflow here")) shmem_long_iget(local, words, PTRDIFF_MAX / 2, 1, 9, 0);
    if (!strcmp(which, "context")) shmem_ctx_iput16(SHMEM_CTX_INVALID, words, local, 1, 1, 4, 0);
    return 0;
}

int main(int argc, char **argv) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    if (argc > 1) return mistake(argv[1]);
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    on_both(every_type, of_statics, sizeof of_statics);
    on_both(blocks, of_statics, sizeof of_statics);
    on_both(backwards, of_statics, sizeof of_statics);
    on_both(nothing, of_statics, sizeof of_statics);
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return 0;
}
