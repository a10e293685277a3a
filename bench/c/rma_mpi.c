/* One-sided operations of an MPI library from rank 0 to a window of rank 1, each with its flush.
 *
 * Each operation runs in blocks of about BLOCK_NS, as many as were calibrated; a line has the shortest and the
 * median block of BLOCKS. Rank 1 waits in a barrier meanwhile. Results are checked once. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BLOCKS = 101, BYTES_MAX = 1 << 20 };
static const double BLOCK_NS = 200e3;

enum operation { PUT, GET, FETCH_AND_OP, OPERATIONS };
static const char *const NAMES[OPERATIONS] = {"put", "get", "fetch-and-op"};

static int rank;
static MPI_Win window;
static char *memory, *own;

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void operate(enum operation what, int bytes)
{
    static long one = 1, old;
    switch (what) {
    case PUT: MPI_Put(own, bytes, MPI_CHAR, 1, 0, bytes, MPI_CHAR, window); break;
    case GET: MPI_Get(own, bytes, MPI_CHAR, 1, 0, bytes, MPI_CHAR, window); break;
    default: MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 0, MPI_SUM, window); break;
    }
    MPI_Win_flush(1, window);
}

static double block_ns(enum operation what, int bytes, long count)
{
    const double start = now_ns();
    for (long i = 0; i < count; i++) {
        operate(what, bytes);
    }
    return now_ns() - start;
}

static int ascending(const void *left, const void *right)
{
    const double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

static void measure(enum operation what, int bytes)
{
    double times[BLOCKS];
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        long count = 1;
        block_ns(what, bytes, count);
        while (block_ns(what, bytes, count) < BLOCK_NS / 2) {
            count *= 2;
        }
        for (int block = 0; block < BLOCKS; block++) {
            times[block] = block_ns(what, bytes, count) / count;
        }
        qsort(times, BLOCKS, sizeof *times, ascending);
        printf("{\"bench\":\"rma\",\"operation\":\"%s\",\"bytes\":%d,\"min\":%.1f,\"median\":%.1f}\n", NAMES[what], bytes,
               times[0], times[BLOCKS / 2]);
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void check(int is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "rank %d: wrong result of %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

int main(int count, char **arguments)
{
    static const int SIZES[] = {8, 1024, 65536, BYTES_MAX};
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    own = malloc(BYTES_MAX);
    check(own != NULL, "malloc");
    memset(own, 7, BYTES_MAX);
    MPI_Win_allocate(BYTES_MAX, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    memset(memory, rank, BYTES_MAX);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    if (rank == 0) {
        operate(GET, BYTES_MAX);
        check(own[0] == 1 && own[BYTES_MAX - 1] == 1, "get");
        memset(own, 7, BYTES_MAX);
        operate(PUT, BYTES_MAX);
        memset(own, 0, BYTES_MAX);
        operate(GET, BYTES_MAX);
        check(own[0] == 7 && own[BYTES_MAX - 1] == 7, "put");
    }
    for (int what = PUT; what <= GET; what++) {
        for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
            measure((enum operation)what, SIZES[i]);
        }
    }
    measure(FETCH_AND_OP, 8);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
