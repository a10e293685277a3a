/* What a program measures between nodes, the same for all libraries.
 *
 * A block is `count` operations, one after the other, between two meetings of all ranks. Its time is that of
 * rank 0. `partner` is the first rank of the second node. The program that includes this defines the functions
 * that are declared here. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef BLOCKS
#define BLOCKS 15
#endif

enum { WINDOW = 16, BYTES_MAX = 1 << 20 };

enum operation { BARRIER, BROADCAST, ALL_REDUCE, ALL_TO_ALL, ALL_GATHER, COLLECTIVES };
static const char *const COLLECTIVE_NAMES[COLLECTIVES] = {
    "barrier", "broadcast", "all-reduce", "all-to-all", "all-gather",
};

/* The library's side. Source and target have room for `ranks` blocks of BYTES_MAX bytes. */
static int rank, ranks, partner;
static char *source, *target;
static void meet(void);
/* A message to the partner, and one back. */
static void round_trip(size_t bytes);
/* WINDOW messages to the partner, until all are there. */
static void window(size_t bytes);
static void collective(enum operation what, size_t bytes);
/* Whether a collective operation has the right result; one was done of sources that `fill` has set. */
static void check(enum operation what, size_t bytes);

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "rank %d: %s\n", rank, what);
    exit(2);
}

static int ascending(const void *left, const void *right)
{
    const double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

static void print(const char *name, size_t bytes, double *times)
{
    double sum = 0;
    for (int block = 0; block < BLOCKS; block++) {
        sum += times[block];
    }
    qsort(times, BLOCKS, sizeof *times, ascending);
    if (rank == 0) {
        printf("{\"bench\":\"net\",\"operation\":\"%s\",\"bytes\":%zu,\"min\":%.1f,\"median\":%.1f,\"mean\":%.1f}\n",
               name, bytes, times[0], times[BLOCKS / 2], sum / BLOCKS);
        fflush(stdout);
    }
}

/* Times `body` in blocks of `count`; a time is divided by `parts`. */
#define MEASURE(name, bytes, count, parts, body)                                                             \
    do {                                                                                                     \
        double times[BLOCKS];                                                                                \
        for (int block = 0; block < BLOCKS; block++) {                                                       \
            meet();                                                                                          \
            const double start = now_ns();                                                                   \
            for (int i = 0; i < (count); i++) {                                                              \
                body;                                                                                        \
            }                                                                                                \
            times[block] = (now_ns() - start) / (count) / (parts);                                           \
        }                                                                                                    \
        print(name, bytes, times);                                                                           \
    } while (0)

/* Memory that was never written may be one page of zeros, which is read faster than any other. */
static void write_all(void)
{
    memset(source, 1, (size_t)ranks * BYTES_MAX);
    memset(target, 1, (size_t)ranks * BYTES_MAX);
}

static long value(int from, int to, size_t i)
{
    return from * 1000003L + to * 1009L + (long)(i % 509);
}

static void fill(size_t bytes)
{
    long *words = (long *)source;
    const size_t n = bytes / sizeof(long);
    for (int to = 0; to < ranks; to++) {
        for (size_t i = 0; i < n; i++) {
            words[to * n + i] = value(rank, to, i);
        }
    }
    memset(target, -1, ranks * bytes);
}

/* What word `i` of block `of` of the target must be. */
static long expected(enum operation what, int of, size_t i)
{
    long sum = 0;
    switch (what) {
    case BROADCAST: return value(0, 0, i);
    case ALL_TO_ALL: return value(of, rank, i);
    case ALL_GATHER: return value(of, 0, i);
    default:
        for (int from = 0; from < ranks; from++) {
            sum += value(from, 0, i);
        }
        return sum;
    }
}

static void check_block(enum operation what, int of, const char *block, size_t bytes)
{
    const long *words = (const long *)block;
    for (size_t i = 0; i < bytes / sizeof(long); i++) {
        if (words[i] != expected(what, of, i)) {
            fprintf(stderr, "%s of %zu bytes: ", COLLECTIVE_NAMES[what], bytes);
            die("a wrong result");
        }
    }
}

static void check_all(enum operation what, size_t bytes)
{
    const int blocks = what == ALL_TO_ALL || what == ALL_GATHER ? ranks : 1;
    for (int of = 0; of < blocks; of++) {
        check_block(what, of, target + of * bytes, bytes);
    }
}

static void measure_all(void)
{
    static const size_t sizes[] = {8, 1024, 64 << 10, 1 << 20};
    static const int counts[] = {200, 200, 20, 4};
    write_all();
    for (int s = 0; s < 2; s++) {
        MEASURE("half-round-trip", sizes[s], counts[s], 2, round_trip(sizes[s]));
    }
    for (int s = 2; s < 4; s++) {
        MEASURE("bandwidth", sizes[s], s == 2 ? 20 : 2, WINDOW, window(sizes[s]));
    }
    MEASURE("barrier", (size_t)0, 200, 1, collective(BARRIER, 0));
    for (int s = 0; s < 4; s++) {
        for (int what = BROADCAST; what < COLLECTIVES; what++) {
            fill(sizes[s]);
            meet();
            collective(what, sizes[s]);
            meet();
            check(what, sizes[s]);
            MEASURE(COLLECTIVE_NAMES[what], sizes[s], counts[s], 1, collective(what, sizes[s]));
        }
    }
}
