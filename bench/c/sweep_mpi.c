/* Many operations of an MPI library, each with several sizes, as common benchmarks time them.
 *
 * A row is timed in BLOCKS blocks of calls. Of operations that `is_alone`, a barrier stands before each call and
 * is not timed, and the time is the mean of all ranks; of the others calls follow each other, and the time is
 * that of rank 0. Ranks of the first half have a partner in the second half, which is on the other node if there
 * are two. Rank 0 prints. Arguments: --only TEXT (names that contain it), --largest BYTES, --block-us N. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef BLOCKS
#define BLOCKS 25
#endif

enum { WINDOW = 16, BYTES_MAX = 4 << 20, RANKS_MAX = 64, GAP = 2 };

static int rank, ranks, partner, is_first, has_window;
static char *source, *target;
static double block_ns = 300e3;
static MPI_Datatype every_second, short_blocks;
static MPI_Comm ring;
static MPI_Win win;
static MPI_Request persistent[2];
static size_t persistent_bytes;
static int counts[RANKS_MAX], starts[RANKS_MAX];

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* Only the first pair takes part in operations of two ranks. */
static int is_idle(void)
{
    return rank != 0 && rank != ranks / 2;
}

static void there_and_back(MPI_Datatype type, int n)
{
    if (is_idle()) {
        return;
    }
    if (is_first) {
        MPI_Send(source, n, type, partner, 0, MPI_COMM_WORLD);
        MPI_Recv(target, n, type, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(target, n, type, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(source, n, type, partner, 0, MPI_COMM_WORLD);
    }
}

static void both_ways(MPI_Datatype type, int n)
{
    MPI_Sendrecv(source, n, type, partner, 0, target, n, type, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void round_trip(int n) { there_and_back(MPI_CHAR, n); }
static void vector(int n) { there_and_back(every_second, n / 8 ? n / 8 : 1); }
static void records(int n) { there_and_back(short_blocks, n / 24 ? n / 24 : 1); }
static void sendrecv(int n) { both_ways(MPI_CHAR, n); }
static void vector_sendrecv(int n) { both_ways(every_second, n / 8 ? n / 8 : 1); }

static void synchronous(int n)
{
    if (is_idle()) {
        return;
    }
    if (is_first) {
        MPI_Ssend(source, n, MPI_CHAR, partner, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(target, n, MPI_CHAR, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void exchange(int n)
{
    MPI_Request requests[2];
    MPI_Irecv(target, n, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(source, n, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void started(int n)
{
    if (persistent_bytes != (size_t)n) {
        if (persistent_bytes != 0) {
            MPI_Request_free(&persistent[0]);
            MPI_Request_free(&persistent[1]);
        }
        persistent_bytes = n;
        MPI_Recv_init(target, n, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &persistent[0]);
        MPI_Send_init(source, n, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &persistent[1]);
    }
    MPI_Startall(2, persistent);
    MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
}

static void any_of_four(int n)
{
    MPI_Request requests[8];
    for (int i = 0; i < 4; i++) {
        MPI_Irecv(target + (size_t)i * n, n, MPI_CHAR, partner, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < 4; i++) {
        MPI_Isend(source, n, MPI_CHAR, partner, i, MPI_COMM_WORLD, &requests[4 + i]);
    }
    for (int i = 0; i < 8; i++) {
        int which;
        MPI_Waitany(8, requests, &which, MPI_STATUS_IGNORE);
    }
}

static void probed(int n)
{
    MPI_Message message;
    MPI_Status status;
    if (is_idle()) {
        return;
    }
    if (is_first) {
        MPI_Send(source, n, MPI_CHAR, partner, 0, MPI_COMM_WORLD);
    }
    MPI_Mprobe(partner, 0, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(target, n, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    if (!is_first) {
        MPI_Send(source, n, MPI_CHAR, partner, 0, MPI_COMM_WORLD);
    }
}

/* WINDOW messages to the partner, which answers when it has them. */
static void window_of(int n, int takes_part)
{
    MPI_Request requests[WINDOW];
    char answer = 0;
    if (!takes_part) {
        return;
    }
    for (int i = 0; i < WINDOW; i++) {
        if (is_first) {
            MPI_Isend(source, n, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[i]);
        } else {
            MPI_Irecv(target + (size_t)i * n, n, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[i]);
        }
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (is_first) {
        MPI_Recv(&answer, 1, MPI_CHAR, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(&answer, 1, MPI_CHAR, partner, 1, MPI_COMM_WORLD);
    }
}

static void window(int n) { window_of(n, !is_idle()); }
static void windows(int n) { window_of(n, 1); }

/* WINDOW messages in each direction at once, of all pairs. */
static void windows_both(int n)
{
    MPI_Request requests[2 * WINDOW];
    for (int i = 0; i < WINDOW; i++) {
        MPI_Irecv(target + (size_t)i * n, n, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < WINDOW; i++) {
        MPI_Isend(source, n, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[WINDOW + i]);
    }
    MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
}

#define WORLD MPI_COMM_WORLD
static int doubles(int n) { return n / 8; }
static void barrier(int n) { (void)n; MPI_Barrier(WORLD); }
static void bcast(int n) { MPI_Bcast(source, n, MPI_CHAR, 0, WORLD); }
static void reduce(int n) { MPI_Reduce(source, target, doubles(n), MPI_DOUBLE, MPI_SUM, 0, WORLD); }
static void allreduce(int n) { MPI_Allreduce(source, target, doubles(n), MPI_DOUBLE, MPI_SUM, WORLD); }
static void in_place(int n) { MPI_Allreduce(MPI_IN_PLACE, target, doubles(n), MPI_DOUBLE, MPI_MAX, WORLD); }
static void gather(int n) { MPI_Gather(source, n, MPI_CHAR, target, n, MPI_CHAR, 0, WORLD); }
static void scatter(int n) { MPI_Scatter(source, n, MPI_CHAR, target, n, MPI_CHAR, 0, WORLD); }
static void allgather(int n) { MPI_Allgather(source, n, MPI_CHAR, target, n, MPI_CHAR, WORLD); }
static void alltoall(int n) { MPI_Alltoall(source, n, MPI_CHAR, target, n, MPI_CHAR, WORLD); }
static void scan(int n) { MPI_Scan(source, target, doubles(n), MPI_DOUBLE, MPI_SUM, WORLD); }
static void exscan(int n) { MPI_Exscan(source, target, doubles(n), MPI_DOUBLE, MPI_SUM, WORLD); }

static void reduce_scatter_block(int n)
{
    MPI_Reduce_scatter_block(source, target, doubles(n), MPI_DOUBLE, MPI_SUM, WORLD);
}

static void spread(int n)
{
    for (int i = 0; i < ranks; i++) {
        counts[i] = n;
        starts[i] = i * n;
    }
}

static void reduce_scatter(int n)
{
    spread(doubles(n));
    MPI_Reduce_scatter(source, target, counts, MPI_DOUBLE, MPI_SUM, WORLD);
}

static void gatherv(int n)
{
    spread(n);
    MPI_Gatherv(source, n, MPI_CHAR, target, counts, starts, MPI_CHAR, 0, WORLD);
}

static void scatterv(int n)
{
    spread(n);
    MPI_Scatterv(source, counts, starts, MPI_CHAR, target, n, MPI_CHAR, 0, WORLD);
}

static void allgatherv(int n)
{
    spread(n);
    MPI_Allgatherv(source, n, MPI_CHAR, target, counts, starts, MPI_CHAR, WORLD);
}

static void alltoallv(int n)
{
    spread(n);
    MPI_Alltoallv(source, counts, starts, MPI_CHAR, target, counts, starts, MPI_CHAR, WORLD);
}

#define WAITED(start)                                                                                        \
    do {                                                                                                     \
        MPI_Request request;                                                                                 \
        start;                                                                                               \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                               \
    } while (0)

static void ibarrier(int n) { (void)n; WAITED(MPI_Ibarrier(WORLD, &request)); }
static void ibcast(int n) { WAITED(MPI_Ibcast(source, n, MPI_CHAR, 0, WORLD, &request)); }
static void iallreduce(int n)
{
    WAITED(MPI_Iallreduce(source, target, doubles(n), MPI_DOUBLE, MPI_SUM, WORLD, &request));
}
static void iallgather(int n) { WAITED(MPI_Iallgather(source, n, MPI_CHAR, target, n, MPI_CHAR, WORLD, &request)); }
static void ialltoall(int n) { WAITED(MPI_Ialltoall(source, n, MPI_CHAR, target, n, MPI_CHAR, WORLD, &request)); }
static void igather(int n) { WAITED(MPI_Igather(source, n, MPI_CHAR, target, n, MPI_CHAR, 0, WORLD, &request)); }
static void neighbour_gather(int n) { MPI_Neighbor_allgather(source, n, MPI_CHAR, target, n, MPI_CHAR, ring); }
static void neighbour_all(int n) { MPI_Neighbor_alltoall(source, n, MPI_CHAR, target, n, MPI_CHAR, ring); }

/* One-sided operations of rank 0 on its partner; all are inside MPI_Win_lock_all. */
#define FLUSHED(operation)                                                                                   \
    do {                                                                                                     \
        if (rank == 0) {                                                                                     \
            operation;                                                                                       \
            MPI_Win_flush(partner, win);                                                                     \
        }                                                                                                    \
    } while (0)

static void put(int n) { FLUSHED(MPI_Put(source, n, MPI_CHAR, partner, 0, n, MPI_CHAR, win)); }
static void get(int n) { FLUSHED(MPI_Get(target, n, MPI_CHAR, partner, 0, n, MPI_CHAR, win)); }
static void accumulate(int n)
{
    const int count = doubles(n);
    FLUSHED(MPI_Accumulate(source, count, MPI_DOUBLE, partner, 0, count, MPI_DOUBLE, MPI_SUM, win));
}
static void get_accumulate(int n)
{
    const int count = doubles(n);
    FLUSHED(MPI_Get_accumulate(source, count, MPI_DOUBLE, target, count, MPI_DOUBLE, partner, 0, count, MPI_DOUBLE,
                               MPI_SUM, win));
}
static void fetch_and_op(int n)
{
    (void)n;
    FLUSHED(MPI_Fetch_and_op(source, target, MPI_INT64_T, partner, 0, MPI_SUM, win));
}

/* `smallest` and `largest` are the bytes of calls; 0 is a call without data. */
static const struct {
    const char *name;
    void (*call)(int);
    int is_alone, smallest, largest;
} OPERATIONS[] = {
    {"round-trip", round_trip, 0, 8, 4 << 20},
    {"sendrecv", sendrecv, 0, 8, 4 << 20},
    {"exchange", exchange, 0, 8, 4 << 20},
    {"persistent", started, 0, 8, 1 << 20},
    {"synchronous", synchronous, 0, 8, 1 << 20},
    {"waitany", any_of_four, 0, 8, 1 << 20},
    {"mprobe", probed, 0, 8, 1 << 20},
    {"window", window, 0, 8, 256 << 10},
    {"windows", windows, 0, 8, 256 << 10},
    {"windows-both", windows_both, 0, 8, 256 << 10},
    {"vector", vector, 0, 512, 2 << 20},
    {"vector-sendrecv", vector_sendrecv, 0, 512, 2 << 20},
    {"records", records, 0, 512, 1 << 20},
    {"barrier", barrier, 1, 0, 0},
    {"bcast", bcast, 1, 8, 1 << 20},
    {"reduce", reduce, 1, 8, 1 << 20},
    {"all-reduce", allreduce, 1, 8, 1 << 20},
    {"all-reduce-in-place", in_place, 1, 8, 1 << 20},
    {"gather", gather, 1, 8, 1 << 20},
    {"scatter", scatter, 1, 8, 1 << 20},
    {"all-gather", allgather, 1, 8, 1 << 20},
    {"all-to-all", alltoall, 1, 8, 1 << 20},
    {"reduce-scatter", reduce_scatter, 1, 8, 1 << 20},
    {"reduce-scatter-block", reduce_scatter_block, 1, 8, 1 << 20},
    {"scan", scan, 1, 8, 1 << 20},
    {"exscan", exscan, 1, 8, 1 << 20},
    {"gatherv", gatherv, 1, 8, 1 << 20},
    {"scatterv", scatterv, 1, 8, 1 << 20},
    {"all-gatherv", allgatherv, 1, 8, 1 << 20},
    {"all-to-allv", alltoallv, 1, 8, 1 << 20},
    {"ibarrier", ibarrier, 1, 0, 0},
    {"ibcast", ibcast, 1, 8, 1 << 20},
    {"iall-reduce", iallreduce, 1, 8, 1 << 20},
    {"iall-gather", iallgather, 1, 8, 1 << 20},
    {"iall-to-all", ialltoall, 1, 8, 1 << 20},
    {"igather", igather, 1, 8, 1 << 20},
    {"neighbor-allgather", neighbour_gather, 1, 8, 1 << 20},
    {"neighbor-alltoall", neighbour_all, 1, 8, 1 << 20},
    {"win-put", put, 0, 8, 1 << 20},
    {"win-get", get, 0, 8, 1 << 20},
    {"win-accumulate", accumulate, 0, 8, 1 << 20},
    {"win-get-accumulate", get_accumulate, 0, 8, 1 << 20},
    {"win-fetch-and-op", fetch_and_op, 0, 0, 0},
};

/* Nanoseconds of `count` calls. */
static double time_of(void (*call)(int), int bytes, long count, int is_alone)
{
    double sum = 0, mean;
    MPI_Barrier(WORLD);
    if (!is_alone) {
        const double start = now_ns();
        for (long i = 0; i < count; i++) {
            call(bytes);
        }
        return now_ns() - start;
    }
    for (long i = 0; i < count; i++) {
        MPI_Barrier(WORLD);
        const double start = now_ns();
        call(bytes);
        sum += now_ns() - start;
    }
    MPI_Allreduce(&sum, &mean, 1, MPI_DOUBLE, MPI_SUM, WORLD);
    return mean / ranks;
}

static int ascending(const void *left, const void *right)
{
    const double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

static void measure(const char *name, void (*call)(int), int bytes, int is_alone)
{
    double times[BLOCKS], ns = 0, sum = 0;
    long count = 1;
    for (;; count *= 2) {
        time_of(call, bytes, count, is_alone);
        ns = time_of(call, bytes, count, is_alone);
        MPI_Bcast(&ns, 1, MPI_DOUBLE, 0, WORLD);
        if (ns >= block_ns / 2) {
            break;
        }
    }
    for (int block = 0; block < BLOCKS; block++) {
        times[block] = time_of(call, bytes, count, is_alone) / count;
        sum += times[block];
    }
    qsort(times, BLOCKS, sizeof *times, ascending);
    if (rank == 0) {
        printf("{\"bench\":\"sweep\",\"operation\":\"%s\",\"bytes\":%d,\"min\":%.1f,\"median\":%.1f,\"mean\":%.1f}\n", name,
               bytes, times[0], times[BLOCKS / 2], sum / BLOCKS);
        fflush(stdout);
    }
}

static void prepare(void)
{
    const int lengths[] = {1, 1, 1};
    const MPI_Aint offsets[] = {0, 16, 40};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT64_T, MPI_DOUBLE};
    const int period = 1;
    char *base;
    MPI_Type_create_resized(MPI_DOUBLE, 0, GAP * sizeof(double), &every_second);
    MPI_Type_commit(&every_second);
    MPI_Type_create_struct(3, lengths, offsets, types, &short_blocks);
    MPI_Type_commit(&short_blocks);
    MPI_Cart_create(WORLD, 1, &ranks, &period, 0, &ring);
    /* A library may have no windows on a network; their rows are then left out. */
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
    has_window = MPI_Win_allocate(BYTES_MAX, 1, MPI_INFO_NULL, WORLD, &base, &win) == MPI_SUCCESS;
    MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_ARE_FATAL);
    if (has_window) {
        memset(base, 0, BYTES_MAX);
        MPI_Win_lock_all(0, win);
    }
    /* Elements with gaps are twice as long, and a window has a place for each message. */
    const size_t room = (size_t)BYTES_MAX * (ranks < 4 ? 4 : ranks);
    source = aligned_alloc(4096, room);
    target = aligned_alloc(4096, room);
    if (source == NULL || target == NULL) {
        die("no memory");
    }
    memset(source, 0, room);
    memset(target, 0, room);
}

int main(int count, char **arguments)
{
    static const int SIZES[] = {0, 8, 512, 2 << 10, 8 << 10, 32 << 10, 128 << 10, 256 << 10, 1 << 20, 2 << 20, 4 << 20};
    const char *only = "";
    int largest = BYTES_MAX;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(WORLD, &rank);
    MPI_Comm_size(WORLD, &ranks);
    for (int i = 1; i + 1 < count; i += 2) {
        if (strcmp(arguments[i], "--only") == 0) {
            only = arguments[i + 1];
        } else if (strcmp(arguments[i], "--largest") == 0) {
            largest = atoi(arguments[i + 1]);
        } else if (strcmp(arguments[i], "--block-us") == 0) {
            block_ns = atof(arguments[i + 1]) * 1e3;
        } else {
            die("no such argument");
        }
    }
    if (ranks % 2 != 0 || ranks > RANKS_MAX) {
        die("an even number of ranks up to 64 is needed");
    }
    is_first = rank < ranks / 2;
    partner = (rank + ranks / 2) % ranks;
    prepare();
    for (size_t o = 0; o < sizeof OPERATIONS / sizeof *OPERATIONS; o++) {
        for (size_t s = 0; s < sizeof SIZES / sizeof *SIZES; s++) {
            const int bytes = SIZES[s];
            const int fits = OPERATIONS[o].smallest <= bytes && bytes <= OPERATIONS[o].largest && bytes <= largest;
            const int can_run = has_window || strncmp(OPERATIONS[o].name, "win-", 4) != 0;
            if (fits && can_run && strstr(OPERATIONS[o].name, only) != NULL) {
                measure(OPERATIONS[o].name, OPERATIONS[o].call, bytes, OPERATIONS[o].is_alone);
            }
        }
    }
    if (has_window) {
        MPI_Win_unlock_all(win);
        MPI_Win_free(&win);
    }
    MPI_Comm_free(&ring);
    MPI_Finalize();
    return 0;
}
