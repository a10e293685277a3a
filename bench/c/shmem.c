/* OpenSHMEM calls, timed. The same source is built by every library's oshcc, so it uses what all of them
 * have: OpenSHMEM 1.4, active sets for collectives.
 *
 * Invariant: every decision is taken from figures that all PEs have, so that all decide alike.
 *
 * One-sided rows: PE 0 acts on the last PE while the others wait in a barrier. A block is `count` calls, timed
 * by PE 0; `count` is found by running, so that a block takes about `block_us`. Collective rows: all PEs meet,
 * then call `count` times, and the block's time is that of the slowest. Each row is checked once before it is
 * timed. One line of JSON a row.
 *
 * With `--count-only NAME N` the program makes exactly N calls of one row after it has warmed up, and nothing
 * else: for those who count instructions. */

#include <getopt.h>
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCKS_MIN = 5, BLOCKS_MAX = 10000, IN_TURN = 64, WINDOW = 64 };

static int me, n_pes, peer;
static size_t bytes_max = 4 << 20;
static long block_us = 200, blocks_max = 101, budget_ms = 30;
static const char *wanted, *counted;
static long counted_calls;

/* Symmetric. */
static char *source, *target;
static long *word, *lock_word, *sync_words;
static double *largest_in, *largest_out, *work;
static long turn;

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

static void die(const char *row, const char *what)
{
    fprintf(stderr, "PE %d: %s: %s\n", me, row, what);
    shmem_global_exit(2);
}

/* Work arrays of collectives go round, and all meet before one comes again. */
static long *next_sync(size_t words)
{
    turn = (turn + 1) % IN_TURN;
    if (turn == 0) {
        shmem_barrier_all();
    }
    return sync_words + turn * words;
}

/* What is timed: `count` calls on `bytes` bytes. */
typedef void (*calls)(long count, size_t bytes);

struct row {
    const char *name;
    calls run;
    /* Sizes of the row, up to the first 0; none: the row has no size. */
    size_t sizes[8];
    int is_collective;
    /* Whether a correct call leaves `value` in the peer's target, or what it must. */
    void (*check)(const char *name, size_t bytes);
};

/* ---- One-sided ------------------------------------------------------------------------------------------ */

static volatile long sink;

static void run_p(long count, size_t bytes)
{
    (void)bytes;
    for (long i = 0; i < count; i++) {
        shmem_long_p(word, i, peer);
    }
    shmem_quiet();
}

static void run_g(long count, size_t bytes)
{
    (void)bytes;
    for (long i = 0; i < count; i++) {
        sink = shmem_long_g(word, peer);
    }
}

static void run_put(long count, size_t bytes)
{
    for (long i = 0; i < count; i++) {
        shmem_putmem(target, source, bytes, peer);
        shmem_quiet();
    }
}

static void run_get(long count, size_t bytes)
{
    for (long i = 0; i < count; i++) {
        shmem_getmem(target, source, bytes, peer);
    }
}

static void run_put_nbi(long count, size_t bytes)
{
    for (long i = 0; i < count; i++) {
        shmem_putmem_nbi(target, source, bytes, peer);
        if (i % WINDOW == WINDOW - 1) {
            shmem_quiet();
        }
    }
    shmem_quiet();
}

static void run_get_nbi(long count, size_t bytes)
{
    for (long i = 0; i < count; i++) {
        shmem_getmem_nbi(target, source, bytes, peer);
        if (i % WINDOW == WINDOW - 1) {
            shmem_quiet();
        }
    }
    shmem_quiet();
}

static void run_iput(long count, size_t bytes)
{
    for (long i = 0; i < count; i++) {
        shmem_long_iput((long *)target, (long *)source, 2, 1, bytes / sizeof(long), peer);
        shmem_quiet();
    }
}

static void run_iget(long count, size_t bytes)
{
    for (long i = 0; i < count; i++) {
        shmem_long_iget((long *)target, (long *)source, 1, 2, bytes / sizeof(long), peer);
    }
}

#define ATOMIC(NAME, CALL)                                                                                    \
    static void NAME(long count, size_t bytes)                                                                \
    {                                                                                                         \
        (void)bytes;                                                                                          \
        for (long i = 0; i < count; i++) {                                                                    \
            CALL;                                                                                             \
        }                                                                                                     \
        shmem_quiet();                                                                                        \
    }

ATOMIC(run_fetch_add, sink = shmem_long_atomic_fetch_add(word, 1, peer))
ATOMIC(run_fetch_inc, sink = shmem_int_atomic_fetch_inc((int *)word, peer))
ATOMIC(run_add, shmem_long_atomic_add(word, 1, peer))
ATOMIC(run_inc, shmem_long_atomic_inc(word, peer))
ATOMIC(run_swap, sink = shmem_long_atomic_swap(word, i, peer))
ATOMIC(run_cswap, sink = shmem_long_atomic_compare_swap(word, i, i + 1, peer))
ATOMIC(run_fetch, sink = shmem_long_atomic_fetch(word, peer))
ATOMIC(run_set, shmem_long_atomic_set(word, i, peer))
ATOMIC(run_quiet, shmem_quiet())
ATOMIC(run_fence, shmem_fence())
ATOMIC(run_my_pe, sink = shmem_my_pe())
ATOMIC(run_lock, (shmem_set_lock(lock_word), shmem_clear_lock(lock_word)))

/* ---- Of two PEs ----------------------------------------------------------------------------------------- */

/* A round trip of a flag between the first and the last PE. Flags never repeat. */
static void run_ping_pong(long count, size_t bytes)
{
    static long flag;
    (void)bytes;
    const int other = me == 0 ? n_pes - 1 : 0;
    const int is_in = me == 0 || me == n_pes - 1;
    for (const long last = flag + count; flag < last;) {
        flag++;
        if (me == 0) {
            shmem_long_p(word + 1, flag, other);
        }
        if (is_in) {
            shmem_long_wait_until(word + 1, SHMEM_CMP_EQ, flag);
        }
        if (is_in && me != 0) {
            shmem_long_p(word + 1, flag, other);
        }
    }
}

/* ---- Collective ----------------------------------------------------------------------------------------- */

static void run_barrier(long count, size_t bytes)
{
    (void)bytes;
    for (long i = 0; i < count; i++) {
        shmem_barrier_all();
    }
}

static void run_sync(long count, size_t bytes)
{
    (void)bytes;
    for (long i = 0; i < count; i++) {
        shmem_sync_all();
    }
}

static void run_broadcast(long count, size_t bytes)
{
    for (long i = 0; i < count; i++) {
        long *sync = next_sync(SHMEM_BCAST_SYNC_SIZE);
        shmem_broadcast64(target, source, bytes / 8, i % n_pes, 0, 0, n_pes, sync);
    }
}

static void run_reduce(long count, size_t bytes)
{
    for (long i = 0; i < count; i++) {
        long *sync = next_sync(SHMEM_REDUCE_SYNC_SIZE);
        const size_t half = bytes_max / sizeof(double) / 2 + 1;
        double *own = work + i % 2 * (half > SHMEM_REDUCE_MIN_WRKDATA_SIZE ? half : SHMEM_REDUCE_MIN_WRKDATA_SIZE);
        shmem_double_sum_to_all((double *)target, (double *)source, bytes / 8, 0, 0, n_pes, own, sync);
    }
}

static void run_fcollect(long count, size_t bytes)
{
    for (long i = 0; i < count; i++) {
        shmem_fcollect64(target, source, bytes / 8, 0, 0, n_pes, next_sync(SHMEM_COLLECT_SYNC_SIZE));
    }
}

static void run_alltoall(long count, size_t bytes)
{
    for (long i = 0; i < count; i++) {
        shmem_alltoall64(target, source, bytes / 8, 0, 0, n_pes, next_sync(SHMEM_ALLTOALL_SYNC_SIZE));
    }
}

/* ---- Checks --------------------------------------------------------------------------------------------- */

/* Element `i` of the block of `from` for `to`. Sums of these are exact. */
static double value(int from, int to, size_t i)
{
    return from * 65536.0 + to * 1024.0 + i % 1021;
}

static void fill(size_t bytes)
{
    double *from = (double *)source, *into = (double *)target;
    for (int b = 0; b < n_pes; b++) {
        for (size_t i = 0; i < bytes / 8; i++) {
            from[b * (bytes / 8) + i] = value(me, b, i);
            into[b * (bytes / 8) + i] = -1;
        }
    }
    shmem_barrier_all();
}

static void expect(const char *name, int is_right)
{
    if (!is_right) {
        die(name, "a wrong result");
    }
}

/* A put of PE 0 has arrived at the last PE, or a get has brought what lies there. */
static void check_moved(const char *name, size_t bytes)
{
    const int is_get = strstr(name, "get") != NULL;
    if (me == (is_get ? 0 : n_pes - 1)) {
        expect(name, memcmp(target, source, bytes >= 8 ? 0 : bytes) == 0);
        for (size_t i = 0; i < bytes / 8; i++) {
            expect(name, ((double *)target)[i] == value(is_get ? n_pes - 1 : 0, 0, i));
        }
    }
}

static void check_broadcast(const char *name, size_t bytes)
{
    for (size_t i = 0; i < bytes / 8 && me != 0; i++) {
        expect(name, ((double *)target)[i] == value(0, 0, i));
    }
}

static void check_reduce(const char *name, size_t bytes)
{
    for (size_t i = 0; i < bytes / 8; i++) {
        double sum = 0;
        for (int from = 0; from < n_pes; from++) {
            sum += value(from, 0, i);
        }
        expect(name, ((double *)target)[i] == sum);
    }
}

static void check_fcollect(const char *name, size_t bytes)
{
    for (int from = 0; from < n_pes; from++) {
        for (size_t i = 0; i < bytes / 8; i++) {
            expect(name, ((double *)target)[from * (bytes / 8) + i] == value(from, 0, i));
        }
    }
}

static void check_alltoall(const char *name, size_t bytes)
{
    for (int from = 0; from < n_pes; from++) {
        for (size_t i = 0; i < bytes / 8; i++) {
            expect(name, ((double *)target)[from * (bytes / 8) + i] == value(from, me, i));
        }
    }
}

static void check_counted(const char *name, size_t bytes)
{
    (void)bytes;
    if (me == n_pes - 1) {
        expect(name, *word == 1);
    }
}

/* ---- Rows ----------------------------------------------------------------------------------------------- */

#define TRANSFERS {8, 64, 512, 4096, 65536, 1 << 20, 4 << 20}
#define LARGE {4096, 65536, 1 << 20, 4 << 20}

static const struct row ROWS[] = {
    {"my_pe", run_my_pe, {0}, 0, NULL},
    {"p", run_p, {0}, 0, NULL},
    {"g", run_g, {0}, 0, NULL},
    {"put", run_put, TRANSFERS, 0, check_moved},
    {"get", run_get, TRANSFERS, 0, check_moved},
    {"put-nbi", run_put_nbi, {8, 64}, 0, check_moved},
    {"get-nbi", run_get_nbi, {8, 64}, 0, check_moved},
    {"put-bandwidth", run_put_nbi, LARGE, 0, check_moved},
    {"iput", run_iput, {128, 4096}, 0, NULL},
    {"iget", run_iget, {128, 4096}, 0, NULL},
    {"fetch-add", run_fetch_add, {0}, 0, check_counted},
    {"fetch-inc-int", run_fetch_inc, {0}, 0, check_counted},
    {"add", run_add, {0}, 0, check_counted},
    {"inc", run_inc, {0}, 0, check_counted},
    {"swap", run_swap, {0}, 0, NULL},
    {"compare-swap", run_cswap, {0}, 0, check_counted},
    {"fetch", run_fetch, {0}, 0, NULL},
    {"set", run_set, {0}, 0, NULL},
    {"quiet", run_quiet, {0}, 0, NULL},
    {"fence", run_fence, {0}, 0, NULL},
    {"lock", run_lock, {0}, 0, NULL},
    {"ping-pong", run_ping_pong, {0}, 1, NULL},
    {"barrier_all", run_barrier, {0}, 1, NULL},
    {"sync_all", run_sync, {0}, 1, NULL},
    {"broadcast", run_broadcast, TRANSFERS, 1, check_broadcast},
    {"reduce", run_reduce, TRANSFERS, 1, check_reduce},
    {"fcollect", run_fcollect, TRANSFERS, 1, check_fcollect},
    {"alltoall", run_alltoall, TRANSFERS, 1, check_alltoall},
};

static double largest(double figure)
{
    *largest_in = figure;
    shmem_barrier_all();
    long *sync = next_sync(SHMEM_REDUCE_SYNC_SIZE);
    shmem_double_max_to_all(largest_out, largest_in, 1, 0, 0, n_pes, work, sync);
    const double result = *largest_out;
    shmem_barrier_all();
    return result;
}

/* Microseconds of a block; the same at all PEs. */
static double block(const struct row *row, size_t bytes, long count)
{
    shmem_barrier_all();
    const double start = now_us();
    if (row->is_collective || me == 0) {
        row->run(count, bytes);
    }
    return largest(row->is_collective || me == 0 ? now_us() - start : 0);
}

static double shortest_block(const struct row *row, size_t bytes, long count)
{
    double shortest = block(row, bytes, count);
    for (int i = 1; i < 4; i++) {
        const double time = block(row, bytes, count);
        shortest = time < shortest ? time : shortest;
    }
    return shortest;
}

static int ascending(const void *left, const void *right)
{
    const double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

static void measure(const struct row *row, size_t bytes)
{
    static double times_ns[BLOCKS_MAX];
    *word = 0;
    fill(bytes);
    block(row, bytes, 1);
    if (row->check != NULL) {
        row->check(row->name, bytes);
    }
    long count = 1;
    double time;
    while ((time = shortest_block(row, bytes, count)) * 2 < block_us) {
        const double factor = block_us / (time > 0 ? time : 1e-3);
        count *= factor < 2 ? 2 : factor > 16 ? 16 : (long)factor;
    }
    const double fitting = budget_ms * 1e3 / time;
    const long blocks = fitting < BLOCKS_MIN ? BLOCKS_MIN : fitting > blocks_max ? blocks_max : (long)fitting;
    for (long i = 0; i < blocks; i++) {
        times_ns[i] = block(row, bytes, count) * 1e3 / count;
    }
    qsort(times_ns, blocks, sizeof *times_ns, ascending);
    if (me == 0) {
        const double median = (times_ns[(blocks - 1) / 2] + times_ns[blocks / 2]) / 2;
        printf("{\"bench\":\"shmem\",\"operation\":\"%s\",\"bytes\":%zu,\"pes\":%d,\"unit\":\"ns\",\"min\":%.3f,\"median\":%.3f}\n",
               row->name, bytes, n_pes, times_ns[0], median);
    }
}

/* Exactly so many calls of a row by PE 0, after some that warm up. */
static void count_calls(void)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        if (strcmp(ROWS[i].name, counted) == 0) {
            fill(ROWS[i].sizes[0]);
            if (ROWS[i].is_collective || me == 0) {
                ROWS[i].run(100, ROWS[i].sizes[0]);
                ROWS[i].run(counted_calls, ROWS[i].sizes[0]);
            }
        }
    }
    shmem_barrier_all();
}

static void read_arguments(int count, char **arguments)
{
    static const struct option options[] = {
        {"rows", required_argument, NULL, 'r'},      {"block-us", required_argument, NULL, 'u'},
        {"blocks", required_argument, NULL, 'b'},    {"budget-ms", required_argument, NULL, 'm'},
        {"count-only", required_argument, NULL, 'c'}, {"calls", required_argument, NULL, 'n'},
        {NULL, 0, NULL, 0}};
    for (int name; (name = getopt_long(count, arguments, "", options, NULL)) != -1;) {
        switch (name) {
        case 'r': wanted = optarg; break;
        case 'u': block_us = atol(optarg); break;
        case 'b': blocks_max = atol(optarg) < BLOCKS_MAX ? atol(optarg) : BLOCKS_MAX; break;
        case 'm': budget_ms = atol(optarg); break;
        case 'c': counted = optarg; break;
        case 'n': counted_calls = atol(optarg); break;
        default: die("arguments", "an argument is unknown");
        }
    }
}

/* Whether a row is asked for, by its whole name in a list with commas. */
static int is_wanted(const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = wanted; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
            return 1;
        }
    }
    return wanted == NULL;
}

int main(int count, char **arguments)
{
    shmem_init();
    me = shmem_my_pe();
    n_pes = shmem_n_pes();
    peer = n_pes - 1;
    read_arguments(count, arguments);
    const size_t words = IN_TURN * (SHMEM_BCAST_SYNC_SIZE + SHMEM_COLLECT_SYNC_SIZE + SHMEM_REDUCE_SYNC_SIZE +
                                    SHMEM_ALLTOALL_SYNC_SIZE);
    sync_words = shmem_malloc(words * sizeof(long));
    source = shmem_align(4096, n_pes * bytes_max + 8);
    target = shmem_align(4096, n_pes * bytes_max + 8);
    work = shmem_malloc(bytes_max + (2 * SHMEM_REDUCE_MIN_WRKDATA_SIZE + 4) * sizeof(double));
    largest_in = shmem_malloc(sizeof(double));
    largest_out = shmem_malloc(sizeof(double));
    word = shmem_align(64, 64);
    lock_word = shmem_align(64, 64);
    if (!sync_words || !source || !target || !work || !largest_in || !largest_out || !word || !lock_word) {
        die("start", "no symmetric memory");
    }
    for (size_t i = 0; i < words; i++) {
        sync_words[i] = SHMEM_SYNC_VALUE;
    }
    memset(word, 0, 64);
    memset(lock_word, 0, 64);
    memset(source, 1, n_pes * bytes_max);
    memset(target, 0, n_pes * bytes_max);
    shmem_barrier_all();
    if (counted != NULL) {
        count_calls();
    }
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS && counted == NULL; i++) {
        const struct row *row = &ROWS[i];
        for (int s = 0; is_wanted(row->name) && (s == 0 || (s < 8 && row->sizes[s] != 0)); s++) {
            measure(row, row->sizes[s]);
        }
    }
    shmem_finalize();
    return 0;
}
