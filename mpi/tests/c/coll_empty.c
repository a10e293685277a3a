/* PEs: 1 2 3 */
/* Blocks without elements, and buffers that a call does not access: they may be null, or the same. */
#include "check.h"
#include <stdlib.h>

int main(void)
{
    MPI_Init(NULL, NULL);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

    /* The last rank gets no element, and has no buffer. */
    int *counts = calloc(size, sizeof(int)), mine[2 * 8], block[2] = {-1, -1};
    for (int i = 0; i < size; i++) counts[i] = i == size - 1 ? 0 : 2;
    for (int i = 0; i < 2 * size; i++) mine[i] = i + rank;
    int is_last = rank == size - 1;
    WORKS(MPI_Reduce_scatter(mine, is_last ? NULL : block, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < 2; i++) {
        int sum = size * (2 * rank + i) + size * (size - 1) / 2;
        EQUAL("an element", is_last ? -1 : sum, block[i]);
    }
    /* Nothing lies where it is sent from. */
    WORKS(MPI_Reduce_scatter(mine, is_last ? mine : block, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    MPI_Request request;
    WORKS(MPI_Ireduce_scatter(mine, is_last ? NULL : block, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
    WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));

    /* The same arguments at both sides, with nothing to move. */
    int *zeros = calloc(size, sizeof(int));
    MPI_Datatype *types = malloc(size * sizeof *types);
    for (int i = 0; i < size; i++) types[i] = MPI_INT;
    WORKS(MPI_Alltoallv(mine, zeros, zeros, MPI_INT, mine, zeros, zeros, MPI_INT, MPI_COMM_WORLD));
    WORKS(MPI_Alltoallw(mine, zeros, zeros, types, mine, zeros, zeros, types, MPI_COMM_WORLD));
    if (size > 1) {
        counts[0] = 1;
        GIVES(MPI_ERR_BUFFER, MPI_Alltoallv(mine, counts, zeros, MPI_INT, mine, counts, zeros, MPI_INT,
                                            MPI_COMM_WORLD));
    }

    /* Rank 0 has no result. */
    int own = rank + 1, before = -1;
    WORKS(MPI_Exscan(&own, rank == 0 ? &own : &before, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    EQUAL("the own value", rank + 1, own);
    EQUAL("the values before", rank == 0 ? -1 : rank * (rank + 1) / 2, before);
    MPI_Finalize();
    return VERDICT();
}
