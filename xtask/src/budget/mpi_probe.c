/* Probes of the MPI library, as tracer.rs asks for them: a process alone accesses its own part of a window. */

#define _GNU_SOURCE
#include <mpi.h>
#include <string.h>

#include "probe.h"

static long *part, number = 7, result;
static MPI_Win window;

typedef int (*transfer_function)(void *, int, MPI_Datatype, int, MPI_Aint, int, MPI_Datatype, MPI_Win);
typedef int (*fetch_function)(const void *, void *, MPI_Datatype, int, MPI_Aint, MPI_Op, MPI_Win);
typedef int (*flush_function)(int, MPI_Win);

PROBE(MPI_Put, transfer_function, function(&number, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window))
PROBE(MPI_Get, transfer_function, function(&result, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window))
PROBE(MPI_Fetch_and_op, fetch_function, function(&number, &result, MPI_LONG, 0, 1, MPI_SUM, window))
PROBE(MPI_Win_flush, flush_function, function(0, window))

int main(void)
{
    FILE *out = stdout;
    MPI_Init(NULL, NULL);
    MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &part, &window);
    memset(part, 0, 64);
    MPI_Win_lock_all(0, window);
    /* The first calls bind names and find the window. */
    MPI_Put(&number, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
    SAY(MPI_Put);
    SAY(MPI_Get);
    SAY(MPI_Fetch_and_op);
    SAY(MPI_Win_flush);
    fflush(out);
    MPI_Put_probe();
    MPI_Get_probe();
    MPI_Fetch_and_op_probe();
    MPI_Win_flush_probe();
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
