/* The measuring loop of the C programs, the same for all libraries. Pelago's side (bench/src/topics/coll.rs)
 * does the same and takes the same arguments.
 *
 * Invariant: every decision is taken from figures that all ranks have, so that all decide alike.
 *
 * A block is `count` rounds, a round as many operations as there are ranks, one after the other. All ranks
 * meet in a barrier, then each takes its own time; the time of the block is that of the slowest rank. `count`
 * is found by running, so that a block takes about `block_us`. In a round each rank is the root once, so that
 * none runs ahead of the others; with `--root fixed` it is rank 0 always, which may run ahead. Before it is
 * timed, each operation is done once with each root, and its result checked.
 *
 * The program that includes this defines the functions that are declared here. */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum operation {
    BARRIER,
    BROADCAST,
    SCATTER,
    GATHER,
    ALL_GATHER,
    ALL_TO_ALL,
    REDUCE,
    ALL_REDUCE,
    OPERATIONS
};

static const char *const NAMES[OPERATIONS] = {
    "barrier", "broadcast", "scatter", "gather", "all-gather", "all-to-all", "reduce", "all-reduce",
};

enum { SIZES_MAX = 64, BLOCKS_MIN = 5, BLOCKS_MAX = 10000 };

/* What is asked for. */
static int is_wanted[OPERATIONS];
static size_t sizes[SIZES_MAX], size_count, bytes_max;
static int is_root_fixed;
static long block_us = 200, blocks_max = 101, budget_ms = 30;

/* The library's side. Source and target have room for `ranks` blocks of `bytes_max` bytes; `number` counts
 * the operations since all have met. */
static int rank, ranks;
static double *source, *target;
static int has(enum operation what);
static void meet(void);
static double largest(double value);
static void operate(enum operation what, size_t doubles, int root, long number);

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

static void die(const char *what)
{
    fprintf(stderr, "rank %d: %s\n", rank, what);
    exit(2);
}

/* Microseconds that the slowest rank takes for `count` rounds. */
static double block(enum operation what, size_t doubles, long count)
{
    meet();
    const double start = now_us();
    for (long i = 0; i < count; i++) {
        for (int root = 0; root < ranks; root++) {
            operate(what, doubles, is_root_fixed ? 0 : root, i * ranks + root);
        }
    }
    return largest(now_us() - start);
}

/* The shortest of four, so that an interruption or two do not make all blocks too short. */
static double shortest_block(enum operation what, size_t doubles, long count)
{
    double shortest = block(what, doubles, count);
    for (int i = 1; i < 4; i++) {
        const double time = block(what, doubles, count);
        shortest = time < shortest ? time : shortest;
    }
    return shortest;
}

/* The number of rounds of a block, and its time. */
static long calibrate(enum operation what, size_t doubles, double *time)
{
    long count = 1;
    for (;;) {
        *time = shortest_block(what, doubles, count);
        if (*time * 2 >= block_us) {
            return count;
        }
        const double factor = block_us / *time;
        count *= factor < 2 ? 2 : factor > 16 ? 16 : (long)factor;
    }
}

/* Element `i` of the block that rank `from` has for rank `to`. Sums of these are exact. */
static double value(int from, int to, size_t i)
{
    return from * 65536.0 + to * 1024.0 + i % 1021;
}

static double sum(int to, size_t i)
{
    double total = 0;
    for (int from = 0; from < ranks; from++) {
        total += value(from, to, i);
    }
    return total;
}

/* What element `i` of block `b` of this rank's target must be. */
static double expected(enum operation what, int root, int b, size_t i)
{
    switch (what) {
    case BROADCAST: return value(root, 0, i);
    case SCATTER: return value(root, rank, i);
    case GATHER:
    case ALL_GATHER: return value(b, 0, i);
    case ALL_TO_ALL: return value(b, rank, i);
    default: return sum(0, i);
    }
}

static void check(enum operation what, size_t doubles, int root)
{
    for (int b = 0; b < ranks; b++) {
        for (size_t i = 0; i < doubles; i++) {
            source[b * doubles + i] = value(rank, b, i);
            target[b * doubles + i] = -1;
        }
    }
    meet();
    operate(what, doubles, root, root);
    meet();
    /* A broadcast leaves the root's own target alone in these libraries. */
    const int has_result = rank == root ? what != BROADCAST : what != GATHER && what != REDUCE;
    const int has_all = what == GATHER || what == ALL_GATHER || what == ALL_TO_ALL;
    for (int b = 0; has_result && what != BARRIER && b < (has_all ? ranks : 1); b++) {
        for (size_t i = 0; i < doubles; i++) {
            if (target[b * doubles + i] != expected(what, root, b, i)) {
                fprintf(stderr, "%s of %zu doubles, root %d: ", NAMES[what], doubles, root);
                die("a wrong result");
            }
        }
    }
    meet();
}

static int ascending(const void *left, const void *right)
{
    const double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

/* Times one operation of one size and prints what came out. */
static void measure(enum operation what, size_t bytes)
{
    static double times_ns[BLOCKS_MAX];
    const size_t doubles = bytes / sizeof(double);
    for (int root = 0; root < ranks; root++) {
        check(what, doubles, root);
    }
    double time;
    const long count = calibrate(what, doubles, &time);
    const double fitting = budget_ms * 1e3 / time;
    const long blocks = fitting < BLOCKS_MIN ? BLOCKS_MIN : fitting > blocks_max ? blocks_max : (long)fitting;
    for (long i = 0; i < blocks; i++) {
        times_ns[i] = block(what, doubles, count) * 1e3 / count / ranks;
    }
    qsort(times_ns, blocks, sizeof *times_ns, ascending);
    const double median = (times_ns[(blocks - 1) / 2] + times_ns[blocks / 2]) / 2;
    if (rank == 0) {
        printf("{\"bench\":\"collective\",\"operation\":\"%s\",\"bytes\":%zu,\"pes\":%d,"
               "\"unit\":\"ns\",\"min\":%.3f,\"median\":%.3f,\"max\":%.3f,\"samples\":%ld}\n",
               NAMES[what], bytes, ranks, times_ns[0], median, times_ns[blocks - 1], blocks);
    }
}

static void want(char *names)
{
    for (char *name = strtok(names, ","); name != NULL; name = strtok(NULL, ",")) {
        int what = 0;
        while (what < OPERATIONS && strcmp(name, NAMES[what]) != 0) {
            what++;
        }
        if (what == OPERATIONS) {
            die("there is no such operation");
        }
        is_wanted[what] = 1;
    }
}

static void read_sizes(char *text)
{
    for (char *size = strtok(text, ","); size != NULL && size_count < SIZES_MAX; size = strtok(NULL, ",")) {
        sizes[size_count] = strtoull(size, NULL, 10);
        bytes_max = sizes[size_count] > bytes_max ? sizes[size_count] : bytes_max;
        size_count++;
    }
}

static void read_arguments(int count, char **arguments)
{
    static const struct option options[] = {
        {"operations", required_argument, NULL, 'o'}, {"sizes", required_argument, NULL, 's'},
        {"root", required_argument, NULL, 'r'},       {"block-us", required_argument, NULL, 'u'},
        {"blocks", required_argument, NULL, 'b'},     {"budget-ms", required_argument, NULL, 'm'},
        {NULL, 0, NULL, 0}};
    for (int name; (name = getopt_long(count, arguments, "", options, NULL)) != -1;) {
        switch (name) {
        case 'o': want(optarg); break;
        case 's': read_sizes(optarg); break;
        case 'r': is_root_fixed = strcmp(optarg, "fixed") == 0; break;
        case 'u': block_us = atol(optarg); break;
        case 'b': blocks_max = atol(optarg) < BLOCKS_MAX ? atol(optarg) : BLOCKS_MAX; break;
        case 'm': budget_ms = atol(optarg); break;
        default: die("an argument is unknown");
        }
    }
}

/* All operations that are asked for and that the library has. */
static void measure_all(void)
{
    for (int what = 0; what < OPERATIONS; what++) {
        const size_t count = what == BARRIER ? 1 : size_count;
        for (size_t i = 0; i < count && is_wanted[what] && has(what); i++) {
            measure(what, what == BARRIER ? 0 : sizes[i]);
        }
    }
}
