/* Signals: every form of a put with a signal, that its data are there when the signal is, signals without
 * data, in the heap and in static data. With an argument, one mistake. */

#include "check.h"

static shmem_ctx_t ctx;
static int me, n, right, left;

#define COMMA ,

enum { ELEMENTS = 11, SIGNALS = 8 };

/* What all forms of a put with a signal move: to the right, from the left. */
struct board {
    uint64_t signals[SIGNALS];
    unsigned char data[ELEMENTS * 16 + 16] __attribute__((aligned(16)));
};

static uint64_t round_of_puts;

/* Sends `elements` of `bytes` bytes each by CALL, and checks what comes: only so much, and the signal. */
#define EXCHANGE(BYTES, QUIET, CALL) \
    do { \
        unsigned char sent[ELEMENTS * 16] __attribute__((aligned(16))); \
        const size_t all = ELEMENTS * (BYTES); \
        round_of_puts++; \
        for (size_t i = 0; i < sizeof sent; i++) { \
            sent[i] = (unsigned char) (round_of_puts * 31 + me * 7 + i); \
        } \
        memset(board->data, 0xee, sizeof board->data); \
        board->signals[1] = 5; \
        shmem_barrier_all(); \
        { \
            uint64_t *signal = &board->signals[0]; \
            const int op = SHMEM_SIGNAL_SET; \
            const uint64_t value = round_of_puts; \
            CALL; \
        } \
        CHECK(shmem_signal_wait_until(&board->signals[0], SHMEM_CMP_EQ, round_of_puts) == round_of_puts); \
        for (size_t i = 0; i < sizeof board->data; i++) { \
            unsigned char there = (unsigned char) (round_of_puts * 31 + left * 7 + i); \
            CHECK(board->data[i] == (i < all ? there : 0xee)); \
        } \
        shmem_barrier_all(); \
        { \
            uint64_t *signal = &board->signals[1]; \
            const int op = SHMEM_SIGNAL_ADD; \
            const uint64_t value = round_of_puts; \
            CALL; \
            CALL; \
        } \
        shmem_signal_wait_until(&board->signals[1], SHMEM_CMP_EQ, 5 + 2 * round_of_puts); \
        CHECK(shmem_signal_fetch(&board->signals[1]) == 5 + 2 * round_of_puts); \
        QUIET; \
        shmem_barrier_all(); \
    } while (0)

#define ARGUMENTS(TYPE) (TYPE *) board->data, (const TYPE *) sent, ELEMENTS, signal, value, op, right

static void every_type(void *object) {
    struct board *board = object;
#define TYPED(NAME, TYPE) \
    EXCHANGE(sizeof(TYPE), , shmem_##NAME##_put_signal(ARGUMENTS(TYPE))); \
    EXCHANGE(sizeof(TYPE), shmem_quiet(), shmem_##NAME##_put_signal_nbi(ARGUMENTS(TYPE))); \
    EXCHANGE(sizeof(TYPE), , shmem_ctx_##NAME##_put_signal(ctx, ARGUMENTS(TYPE))); \
    EXCHANGE(sizeof(TYPE), shmem_ctx_quiet(ctx), shmem_ctx_##NAME##_put_signal_nbi(ctx, ARGUMENTS(TYPE)));
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
#define SIZED(NAME, BYTES) \
    EXCHANGE(BYTES, , shmem_put##NAME##_signal(ARGUMENTS(void))); \
    EXCHANGE(BYTES, shmem_quiet(), shmem_put##NAME##_signal_nbi(ARGUMENTS(void))); \
    EXCHANGE(BYTES, , shmem_ctx_put##NAME##_signal(ctx, ARGUMENTS(void))); \
    EXCHANGE(BYTES, shmem_ctx_quiet(ctx), shmem_ctx_put##NAME##_signal_nbi(ctx, ARGUMENTS(void)));
    SIZED(8, 1)
    SIZED(16, 2)
    SIZED(32, 4)
    SIZED(64, 8)
    SIZED(128, 16)
    SIZED(mem, 1)
}

/* Nothing is put, and the null pointers of nothing are looked at by nobody; but the signal comes. */
static void no_data(void *object) {
    struct board *board = object;
    memset(board, 0, sizeof *board);
    shmem_barrier_all();
    shmem_long_put_signal(NULL, NULL, 0, &board->signals[0], 3, SHMEM_SIGNAL_SET, right);
    shmem_putmem_signal_nbi(board->data, NULL, 0, &board->signals[1], 4, SHMEM_SIGNAL_ADD, right);
    shmem_ctx_put64_signal(ctx, NULL, NULL, 0, &board->signals[2], 5, SHMEM_SIGNAL_ADD, right);
    shmem_signal_wait_until(&board->signals[0], SHMEM_CMP_EQ, 3);
    shmem_signal_wait_until(&board->signals[1], SHMEM_CMP_EQ, 4);
    shmem_signal_wait_until(&board->signals[2], SHMEM_CMP_EQ, 5);
    shmem_barrier_all();
}

static void alone(void *object) {
    struct board *board = object;
    memset(board, 0, sizeof *board);
    shmem_barrier_all();
    for (int i = 0; i < 100; i++) {
        shmem_signal_add(&board->signals[0], 1, right);
        shmem_ctx_signal_add(ctx, &board->signals[0], UINT64_C(1) << 40, right);
    }
    shmem_signal_set(&board->signals[1], UINT64_MAX, right);
    shmem_ctx_signal_set(ctx, &board->signals[2], 17, right);
    const uint64_t all = 100 * (1 + (UINT64_C(1) << 40));
    CHECK(shmem_signal_wait_until(&board->signals[0], SHMEM_CMP_GE, all) == all);
    CHECK(shmem_signal_wait_until(&board->signals[1], SHMEM_CMP_GT, UINT64_MAX - 1) == UINT64_MAX);
    CHECK(shmem_signal_wait_until(&board->signals[2], SHMEM_CMP_NE, 0) == 17);
    shmem_barrier_all();
    /* Who looks again and again sees it, too. */
    shmem_signal_set(&board->signals[3], 1, right);
    while (shmem_signal_fetch(&board->signals[3]) != 1) continue;
    shmem_barrier_all();
}

/* A large put goes from PE to PE: all of it is there when its signal is, its end too, for one who waits for
 * nothing else. */
static void large(void) {
    enum { LONGS = 1 << 17, ROUNDS = 24 };
    long *inbox = shmem_calloc(LONGS, sizeof *inbox), *outbox = malloc(LONGS * sizeof *outbox);
    uint64_t *signal = shmem_calloc(1, sizeof *signal);
    for (int turn = 0; turn < ROUNDS * n; turn++) {
        if (turn % n == me) {
            for (long i = 0; i < LONGS; i++) outbox[i] = turn * 1000003L + i;
            if (turn / n % 2) {
                shmem_long_put_signal(inbox, outbox, LONGS, signal, 1, SHMEM_SIGNAL_ADD, right);
            } else {
                shmem_long_put_signal_nbi(inbox, outbox, LONGS, signal, 1, SHMEM_SIGNAL_ADD, right);
                shmem_quiet();
            }
        }
        if (turn % n == left) {
            const uint64_t awaited = (uint64_t) turn / n + 1;
            /* Looking is sharper, but takes a core that others may need. */
            if (n > 2) shmem_signal_wait_until(signal, SHMEM_CMP_EQ, awaited);
            while (shmem_signal_fetch(signal) != awaited) continue;
            for (long i = LONGS; i-- > 0;) CHECK(inbox[i] == turn * 1000003L + i);
        }
        shmem_barrier_all();
    }
    shmem_free(inbox);
    shmem_free(signal);
    free(outbox);
}

static struct board of_statics;

/* Data here and signal there. */
static void mixed(void) {
    struct board *of_heap = shmem_calloc(1, sizeof *of_heap);
    memset(&of_statics, 0, sizeof of_statics);
    shmem_barrier_all();
    long sent[3] = { me, me + 1, me + 2 };
    const int op = SHMEM_SIGNAL_SET;
    shmem_long_put_signal((long *) of_heap->data, sent, 3, &of_statics.signals[0], 1, op, right);
    shmem_long_put_signal((long *) of_statics.data, sent, 3, &of_heap->signals[0], 1, op, right);
    shmem_signal_wait_until(&of_statics.signals[0], SHMEM_CMP_EQ, 1);
    for (int i = 0; i < 3; i++) CHECK(((long *) of_heap->data)[i] == left + i);
    shmem_signal_wait_until(&of_heap->signals[0], SHMEM_CMP_EQ, 1);
    for (int i = 0; i < 3; i++) CHECK(((long *) of_statics.data)[i] == left + i);
    shmem_barrier_all();
    shmem_free(of_heap);
}

/* On a context of a team, PEs are numbered as in the team: here backwards. */
static void backwards(void *object) {
    struct board *board = object;
    long *data = (long *) board->data, sent[2] = { me, -me };
    shmem_team_t team;
    shmem_ctx_t of_team;
    memset(board, 0, sizeof *board);
    shmem_barrier_all();
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, n > 1 ? -1 : 1, n, NULL, 0, &team) == 0);
    CHECK(shmem_team_create_ctx(team, 0, &of_team) == 0);
    const int to = n - 1 - right;
    shmem_ctx_long_put_signal(of_team, data, sent, 2, &board->signals[0], 1, SHMEM_SIGNAL_SET, to);
    shmem_ctx_signal_add(of_team, &board->signals[1], 9, to);
    shmem_signal_wait_until(&board->signals[0], SHMEM_CMP_EQ, 1);
    CHECK(data[0] == left && data[1] == -left);
    shmem_signal_wait_until(&board->signals[1], SHMEM_CMP_EQ, 9);
    shmem_barrier_all();
    shmem_ctx_destroy(of_team);
    shmem_team_destroy(team);
}

static int mistake(const char *which) {
    struct board *board = shmem_malloc(sizeof *board);
    uint64_t local = 0, *signal = board->signals, *crooked = (uint64_t *) (board->data + 1);
    long *data = (long *) board->data, source[2] = { 0, 0 };
    if (!strcmp(which, "sig_op")) shmem_long_put_signal(data, source, 2, signal, 1, 7, 0);
    if (!strcmp(which, "sig_op of nothing")) shmem_long_put_signal(data, source, 0, signal, 1, -1, 0);
    if (!strcmp(which, "pe")) shmem_long_put_signal(data, source, 2, signal, 1, SHMEM_SIGNAL_SET, n);
    if (!strcmp(which, "dest")) shmem_putmem_signal(&local, source, 8, signal, 1, SHMEM_SIGNAL_SET, 0);
    if (!strcmp(which, "sig_addr")) shmem_put8_signal(data, source, 8, &local, 1, SHMEM_SIGNAL_SET, 0);
    if (!strcmp(which, "alignment")) shmem_long_put_signal_nbi(data, source, 1, crooked, 1, 0, 0);
    if (!strcmp(which, "set")) shmem_signal_set(&local, 1, 0);
    if (!strcmp(which, "add")) shmem_signal_add(signal, 1, -3);
    if (!strcmp(which, "alignment of add")) shmem_signal_add(crooked, 1, 0);
    if (!strcmp(which, "fetch")) shmem_signal_fetch(&local);
    if (!strcmp(which, "alignment of fetch")) shmem_signal_fetch(crooked);
    if (!strcmp(which, "wait")) shmem_signal_wait_until(&local, SHMEM_CMP_EQ, 0);
    if (!strcmp(which, "cmp")) shmem_signal_wait_until(signal, 0, 0);
    if (!strcmp(which, "context")) {
        shmem_ctx_long_put_signal(SHMEM_CTX_INVALID, data, source, 2, signal, 1, SHMEM_SIGNAL_SET, 0);
    }
    return 0;
}

int main(int argc, char **argv) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    left = (me + n - 1) % n;
    if (argc > 1) return mistake(argv[1]);
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    on_both(every_type, &of_statics, sizeof of_statics);
    on_both(no_data, &of_statics, sizeof of_statics);
    on_both(alone, &of_statics, sizeof of_statics);
    on_both(backwards, &of_statics, sizeof of_statics);
    mixed();
    large();
    shmem_ctx_destroy(ctx);
    shmem_finalize();
    return 0;
}
