/* Two-sided messages of an MPI library between ranks 0 and 1: half a round trip, and windows of messages.
 *
 * Each operation runs in blocks of about BLOCK_NS, as many as were calibrated; a line has the shortest and the
 * median block of BLOCKS. Rank 0 prints; a window is answered by a message of one byte. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Windows of the longest messages have 16. */
enum { BLOCKS = 101, WINDOW_MAX = 64, BYTES_MAX = 4 << 20, TARGET_BYTES = 16 * BYTES_MAX };
static const double BLOCK_NS = 200e3;

static int rank;
static char *source, *target;

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void send(int to, size_t bytes, int tag)
{
    MPI_Send(source, (int)bytes, MPI_CHAR, to, tag, MPI_COMM_WORLD);
}

static void receive(int from, size_t bytes, int tag)
{
    MPI_Recv(target, (int)bytes, MPI_CHAR, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void round_trip(size_t bytes)
{
    if (rank == 0) {
        send(1, bytes, 0);
        receive(1, bytes, 0);
    } else if (rank == 1) {
        receive(0, bytes, 0);
        send(0, bytes, 0);
    }
}

static void window(size_t bytes, int messages)
{
    MPI_Request requests[WINDOW_MAX];
    if (rank == 0) {
        for (int i = 0; i < messages; i++) {
            MPI_Isend(source, (int)bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
        receive(1, 1, 1);
    } else if (rank == 1) {
        for (int i = 0; i < messages; i++) {
            /* Each has a place of its own, as the standard demands, and as Pelago's program has. */
            MPI_Irecv(target + (size_t)i * bytes, (int)bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
        send(0, 1, 1);
    }
}

/* The time of `count` operations: round trips without `messages`, else windows. */
static double block_ns(size_t bytes, int messages, long count)
{
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_ns();
    for (long i = 0; i < count; i++) {
        if (messages == 0) {
            round_trip(bytes);
        } else {
            window(bytes, messages);
        }
    }
    return now_ns() - start;
}

static int ascending(const void *left, const void *right)
{
    const double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

static void measure(const char *name, size_t bytes, int messages)
{
    double times[BLOCKS];
    long count = 1;
    for (double ns = 0; ns < BLOCK_NS / 2; count *= 2) {
        block_ns(bytes, messages, count);
        ns = block_ns(bytes, messages, count);
        MPI_Bcast(&ns, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (ns >= BLOCK_NS / 2) {
            break;
        }
    }
    for (int block = 0; block < BLOCKS; block++) {
        times[block] = block_ns(bytes, messages, count) / count / (messages == 0 ? 2 : messages);
    }
    qsort(times, BLOCKS, sizeof *times, ascending);
    if (rank == 0) {
        printf("{\"bench\":\"two-sided\",\"operation\":\"%s\",\"bytes\":%zu,\"min\":%.1f,\"median\":%.1f}\n", name, bytes,
               times[0], times[BLOCKS / 2]);
        fflush(stdout);
    }
}

int main(int count, char **arguments)
{
    static const size_t SIZES[] = {0, 8, 64, 1024, 8192, 65536, 1 << 20, 4 << 20};
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    source = malloc(BYTES_MAX);
    target = malloc(TARGET_BYTES);
    if (source == NULL || target == NULL) {
        fprintf(stderr, "rank %d: no memory\n", rank);
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    }
    memset(source, 1, BYTES_MAX);
    memset(target, 1, TARGET_BYTES);
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        measure("one-way", SIZES[i], 0);
    }
    for (size_t i = 1; i < sizeof SIZES / sizeof *SIZES; i++) {
        measure("send", SIZES[i], SIZES[i] < 65536 ? 64 : 16);
    }
    MPI_Finalize();
    return 0;
}
