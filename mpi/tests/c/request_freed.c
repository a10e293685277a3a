/* Operations whose requests are freed go on: until a communicator is disconnected, and until the end. */
/* PEs: 2 4 */
#include "check.h"
#include <stdlib.h>

enum { LONG = 2000000, MEDIUM = 100000 };

static int me, n;

static int count_of(const char *data, int bytes, char value) {
    int found = 0;
    for (int i = 0; i < bytes; i++)
        found += data[i] == value;
    return found;
}

/* MPI_Comm_disconnect completes them: then the buffers belong to the program. */
static void disconnect(int peer) {
    MPI_Comm comm;
    MPI_Request request;
    char *data = malloc(LONG);
    memset(data, 5, LONG);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (me % 2 == 0)
        MPI_Isend(data, LONG, MPI_BYTE, peer, 1, comm, &request);
    else {
        memset(data, 0, LONG);
        MPI_Irecv(data, LONG, MPI_BYTE, peer, 1, comm, &request);
    }
    WORKS(MPI_Request_free(&request));
    WORKS(MPI_Comm_disconnect(&comm));
    if (me % 2 == 1) EQUAL("bytes after MPI_Comm_disconnect", LONG, count_of(data, LONG, 5));
    memset(data, 9, LONG);
    free(data);
}

/* A persistent buffered send uses the buffer of its communicator, whose handle is freed. */
static void buffered(int peer) {
    MPI_Comm comm;
    MPI_Request request;
    char *data = malloc(MEDIUM);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (me % 2 == 0) {
        char *room = malloc(2 * MEDIUM), *other = malloc(MEDIUM);
        memset(data, 5, MEDIUM);
        memset(other, 7, MEDIUM);
        WORKS(MPI_Comm_attach_buffer(comm, room, 2 * MEDIUM));
        WORKS(MPI_Bsend_init(data, MEDIUM, MPI_BYTE, peer, 1, comm, &request));
        WORKS(MPI_Comm_free(&comm));
        WORKS(MPI_Start(&request));
        WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
        WORKS(MPI_Request_free(&request));
        /* It takes memory of the same size. */
        WORKS(MPI_Sendrecv_replace(other, MEDIUM, MPI_BYTE, me, 9, me, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        free(other);
        free(room);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        WORKS(MPI_Recv(data, MEDIUM, MPI_BYTE, peer, 1, comm, MPI_STATUS_IGNORE));
        EQUAL("bytes of the buffered send", MEDIUM, count_of(data, MEDIUM, 5));
        WORKS(MPI_Comm_free(&comm));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(data);
}

/* The receive of an exchange can be cancelled. */
static void cancelled(int peer) {
    int one = 1, two = 2, flag;
    MPI_Request request;
    MPI_Status status;
    WORKS(MPI_Isendrecv(&one, 1, MPI_INT, MPI_PROC_NULL, 0, &two, 1, MPI_INT, peer, 5, MPI_COMM_WORLD, &request));
    WORKS(MPI_Cancel(&request));
    WORKS(MPI_Wait(&request, &status));
    WORKS(MPI_Test_cancelled(&status, &flag));
    HOLDS(flag && two == 2);
}

int main(int argc, char **argv) {
    static char first[LONG], last[LONG], other[4];
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    int peer = me ^ 1;
    disconnect(peer);
    buffered(peer);
    cancelled(peer);
    /* Both sides leave it to MPI_Finalize. Each first waits for its own send, and has to receive meanwhile. */
    memset(first, 6, LONG);
    MPI_Irecv(last, LONG, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(first, LONG, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &requests[1]);
    WORKS(MPI_Request_free(&requests[0]));
    WORKS(MPI_Request_free(&requests[1]));
    /* Afterwards the message is known. */
    MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 4, NULL, 0, MPI_BYTE, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* To this one nobody sends. */
    MPI_Irecv(other, 4, MPI_BYTE, peer, 77, MPI_COMM_WORLD, &requests[0]);
    WORKS(MPI_Request_free(&requests[0]));
    MPI_Finalize();
    EQUAL("bytes after MPI_Finalize", LONG, count_of(last, LONG, 6));
    return VERDICT();
}
