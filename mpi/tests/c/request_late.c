/* PEs: 2 4 */
/* A process comes to MPI_Finalize with a receive whose request was freed, long before the message is sent: the
 * sender waits until its data have left, and the receiver has them in the end. */
#include "check.h"
#include <stdlib.h>

enum { LONG = 1000000, LOOKS = 20000 };

/* The first thing that MPI_Finalize does in process 1: it tells process 0 where it is. */
static int tell(MPI_Comm comm, int keyval, void *value, void *state)
{
    int token = 0;
    (void)comm, (void)keyval, (void)value, (void)state;
    return MPI_Send(&token, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
}

int main(void)
{
    MPI_Init(NULL, NULL);
    int rank, token = -1, keyval, flag;
    MPI_Request request;
    char *data = malloc(LONG);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(data, rank == 0 ? 7 : 0, LONG);
    if (rank == 1) {
        WORKS(MPI_Irecv(data, LONG, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request));
        WORKS(MPI_Request_free(&request));
        WORKS(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, tell, &keyval, NULL));
        WORKS(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL));
    }
    if (rank == 0) {
        WORKS(MPI_Recv(&token, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < LOOKS; i++) WORKS(MPI_Iprobe(1, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        WORKS(MPI_Isend(data, LONG, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request));
        WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    MPI_Finalize();
    int got = 0;
    for (int i = 0; i < LONG; i++) got += data[i] == 7;
    if (rank <= 1) EQUAL("bytes of the message", LONG, got);
    return VERDICT();
}
