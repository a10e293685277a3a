/* A receive that is started copies no long message that has come for another one: a process that is behind starts its
 * own sends first, for which others wait. It is copied when the process makes progress. */
#include "check.h"
#include <stdlib.h>

enum { LONG = 400000 };
static const double SECONDS = 60;

int main(void)
{
    /* Over a network the service thread would make progress while process 0 calls nothing. */
    setenv("PELAGO_SERVICE_THREAD", "off", 1);
    MPI_Init(NULL, NULL);
    MPI_Comm node;
    MPI_Win win;
    MPI_Request requests[2];
    int rank, size, *flag, unit, other = 0;
    MPI_Aint bytes;
    char *data = calloc(LONG, 1);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_size(node, &size);
    WORKS(MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, node, &flag, &win));
    WORKS(MPI_Win_shared_query(win, 0, &bytes, &unit, &flag));
    if (rank == 0) *flag = 0;
    MPI_Barrier(node);
    if (rank == 0 && size > 1) {
        WORKS(MPI_Irecv(data, LONG, MPI_CHAR, 1, 1, node, &requests[0]));
        MPI_Barrier(node);
        /* No call of MPI until the message is there. */
        const double begun = MPI_Wtime();
        while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) == 0 && MPI_Wtime() < begun + SECONDS) continue;
        EQUAL("the flag of process 1, within 60 s", 1, __atomic_load_n(flag, __ATOMIC_ACQUIRE));
        WORKS(MPI_Irecv(&other, 1, MPI_INT, 1, 2, node, &requests[1]));
        EQUAL("the first byte after MPI_Irecv", 0, *(volatile char *)data);
        WORKS(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        EQUAL("the last byte", 7, data[LONG - 1]);
        EQUAL("the other message", 8, other);
    } else if (rank == 1) {
        memset(data, 7, LONG);
        other = 8;
        MPI_Barrier(node);
        WORKS(MPI_Isend(data, LONG, MPI_CHAR, 0, 1, node, &requests[0]));
        __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
        WORKS(MPI_Send(&other, 1, MPI_INT, 0, 2, node));
        WORKS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    } else {
        MPI_Barrier(node);
    }
    WORKS(MPI_Win_free(&win));
    MPI_Comm_free(&node);
    MPI_Finalize();
    return VERDICT();
}
