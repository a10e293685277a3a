/* PEs: 3 5 */
/* Processes that leave while messages are under way: buffered ones that two others receive late, in the buffers of
 * the process and of a communicator, and one for a receive whose request was freed. */
#include "check.h"
#include <stdlib.h>

enum { SMALL = 6000, LONG = 75000, GO = 1, LATE = 2, BEHIND = 3 };

static int data[LONG];

/* Sends everything to processes 1 and 2, and leaves at once. */
static void send_and_leave(MPI_Comm other)
{
    int bytes = 2 * SMALL * (sizeof(int) + MPI_BSEND_OVERHEAD);
    int others = 2 * (LONG * sizeof(int) + MPI_BSEND_OVERHEAD);
    WORKS(MPI_Buffer_attach(malloc(bytes), bytes));
    WORKS(MPI_Comm_attach_buffer(other, malloc(others), others));
    for (int i = 0; i < SMALL; i++)
        for (int to = 1; to <= 2; to++) WORKS(MPI_Bsend(&i, 1, MPI_INT, to, 0, MPI_COMM_WORLD));
    for (int to = 1; to <= 2; to++) {
        for (int i = 0; i < LONG; i++) data[i] = to * LONG + i;
        WORKS(MPI_Bsend(data, LONG, MPI_INT, to, 0, other));
    }
}

static void receive_all(int rank, MPI_Comm other)
{
    for (int i = 0; i < SMALL && failures < 10; i++) {
        int value = -1;
        WORKS(MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        EQUAL("a small message", i, value);
    }
    WORKS(MPI_Recv(data, LONG, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE));
    for (int i = 0; i < LONG && failures < 10; i++) EQUAL("the long message", rank * LONG + i, data[i]);
}

int main(void)
{
    MPI_Init(NULL, NULL);
    int rank, token = 0;
    MPI_Comm other;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    WORKS(MPI_Comm_dup(MPI_COMM_WORLD, &other));

    int *apart = calloc(2 * LONG, sizeof(int));
    if (rank == 0) send_and_leave(other);
    if (rank == 1) {
        MPI_Datatype every_second;
        MPI_Request request;
        WORKS(MPI_Type_vector(LONG, 1, 2, MPI_INT, &every_second));
        WORKS(MPI_Type_commit(&every_second));
        WORKS(MPI_Irecv(apart, 1, every_second, 2, LATE, MPI_COMM_WORLD, &request));
        WORKS(MPI_Request_free(&request));
        WORKS(MPI_Type_free(&every_second));
        receive_all(rank, other);
        WORKS(MPI_Send(&token, 1, MPI_INT, 2, GO, MPI_COMM_WORLD));
        /* Behind this message the freed receive has its own. */
        WORKS(MPI_Recv(&token, 1, MPI_INT, 2, BEHIND, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    if (rank == 2) {
        MPI_Request request;
        for (int i = 0; i < LONG; i++) apart[i] = 5 * i;
        WORKS(MPI_Recv(&token, 1, MPI_INT, 1, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        WORKS(MPI_Isend(apart, LONG, MPI_INT, 1, LATE, MPI_COMM_WORLD, &request));
        WORKS(MPI_Send(&token, 1, MPI_INT, 1, BEHIND, MPI_COMM_WORLD));
        WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
        receive_all(rank, other);
    }
    MPI_Finalize();
    /* MPI_Finalize has completed the receive. */
    for (int i = 0; rank == 1 && i < LONG && failures < 10; i++) EQUAL("late data", 5 * i, apart[2 * i]);
    return VERDICT();
}
