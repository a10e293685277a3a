/* Messages and collective operations of an MPI library between nodes, as net_rows.h says. */

#include <mpi.h>

#include "net_rows.h"

static void meet(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void send(int to, size_t bytes)
{
    MPI_Send(source, (int)bytes, MPI_CHAR, to, 0, MPI_COMM_WORLD);
}

static void receive(int from, size_t bytes)
{
    MPI_Recv(target, (int)bytes, MPI_CHAR, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void round_trip(size_t bytes)
{
    if (rank == 0) {
        send(partner, bytes);
        receive(partner, bytes);
    } else if (rank == partner) {
        receive(0, bytes);
        send(0, bytes);
    }
}

static void window(size_t bytes)
{
    MPI_Request requests[WINDOW];
    if (rank == 0) {
        for (int i = 0; i < WINDOW; i++) {
            MPI_Isend(source, (int)bytes, MPI_CHAR, partner, 0, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        receive(partner, 1);
    } else if (rank == partner) {
        for (int i = 0; i < WINDOW; i++) {
            MPI_Irecv(target, (int)bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        send(0, 1);
    }
}

static void collective(enum operation what, size_t bytes)
{
    const int n = (int)(bytes / sizeof(long));
    switch (what) {
    case BARRIER: MPI_Barrier(MPI_COMM_WORLD); break;
    case BROADCAST: MPI_Bcast(rank == 0 ? source : target, n, MPI_LONG, 0, MPI_COMM_WORLD); break;
    case ALL_REDUCE: MPI_Allreduce(source, target, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD); break;
    case ALL_TO_ALL: MPI_Alltoall(source, n, MPI_LONG, target, n, MPI_LONG, MPI_COMM_WORLD); break;
    case ALL_GATHER: MPI_Allgather(source, n, MPI_LONG, target, n, MPI_LONG, MPI_COMM_WORLD); break;
    default: die("no such operation");
    }
}

static void check(enum operation what, size_t bytes)
{
    /* The root of a broadcast has no target. */
    if (what != BROADCAST || rank != 0) {
        check_all(what, bytes);
    }
}

static void reduce(size_t bytes)
{
    MPI_Reduce(source, target, (int)(bytes / sizeof(long)), MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void gather(size_t bytes)
{
    const int n = (int)(bytes / sizeof(long));
    MPI_Gather(source, n, MPI_LONG, target, n, MPI_LONG, 0, MPI_COMM_WORLD);
}

/* Operations with a root, one after the other: ranks that only send need not wait for the root. */
static void measure_rooted(void)
{
    for (size_t bytes = 8; bytes <= 1024; bytes *= 128) {
        fill(bytes);
        reduce(bytes);
        if (rank == 0) {
            check_all(ALL_REDUCE, bytes);
        }
        MEASURE("reduce", bytes, 200, 1, reduce(bytes));
        fill(bytes);
        gather(bytes);
        if (rank == 0) {
            check_all(ALL_GATHER, bytes);
        }
        MEASURE("gather", bytes, 200, 1, gather(bytes));
    }
}

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    partner = ranks / 2;
    source = calloc(ranks, BYTES_MAX);
    target = calloc(ranks, BYTES_MAX);
    if (source == NULL || target == NULL) {
        die("no memory");
    }
    measure_all();
    measure_rooted();
    MPI_Finalize();
    return 0;
}
