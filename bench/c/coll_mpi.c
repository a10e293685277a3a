/* Collective operations of an MPI library, timed as coll_measure.h says. Memory is the process's own. */

#include <mpi.h>

#include "coll_measure.h"

static int has(enum operation what)
{
    (void)what;
    return 1;
}

static void meet(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static double largest(double value)
{
    double result;
    MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return result;
}

static void operate(enum operation what, size_t doubles, int root, long number)
{
    const int n = (int)doubles;
    (void)number;
    switch (what) {
    case BARRIER: MPI_Barrier(MPI_COMM_WORLD); break;
    case BROADCAST: MPI_Bcast(rank == root ? source : target, n, MPI_DOUBLE, root, MPI_COMM_WORLD); break;
    case SCATTER: MPI_Scatter(source, n, MPI_DOUBLE, target, n, MPI_DOUBLE, root, MPI_COMM_WORLD); break;
    case GATHER: MPI_Gather(source, n, MPI_DOUBLE, target, n, MPI_DOUBLE, root, MPI_COMM_WORLD); break;
    case ALL_GATHER: MPI_Allgather(source, n, MPI_DOUBLE, target, n, MPI_DOUBLE, MPI_COMM_WORLD); break;
    case ALL_TO_ALL: MPI_Alltoall(source, n, MPI_DOUBLE, target, n, MPI_DOUBLE, MPI_COMM_WORLD); break;
    case REDUCE: MPI_Reduce(source, target, n, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD); break;
    case ALL_REDUCE: MPI_Allreduce(source, target, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
    default: die("no such operation");
    }
}

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    read_arguments(count, arguments);
    source = aligned_alloc(4096, (ranks * bytes_max + 8191) / 4096 * 4096);
    target = aligned_alloc(4096, (ranks * bytes_max + 8191) / 4096 * 4096);
    if (source == NULL || target == NULL) {
        die("no memory");
    }
    measure_all();
    MPI_Finalize();
    return 0;
}
