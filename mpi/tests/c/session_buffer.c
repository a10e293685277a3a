/* The buffer of a session: for buffered sends on communicators that come from it. */
#include "check.h"
#include <stdlib.h>

int main(void) {
    MPI_Session session;
    MPI_Group world, half;
    MPI_Comm comm, same;
    MPI_Request request;
    int me, n, sent[8], got[8], size, zero = 0;
    MPI_Count large;
    void *address;
    WORKS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    WORKS(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    MPI_Group_rank(world, &me);
    MPI_Group_size(world, &n);
    WORKS(MPI_Comm_create_from_group(world, "one", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    MPI_Group_excl(world, 0, &zero, &half);
    WORKS(MPI_Comm_create_from_group(half, "two", MPI_INFO_NULL, MPI_ERRORS_RETURN, &same));
    int bytes = 2 * (MPI_BSEND_OVERHEAD + (int)sizeof sent);
    char *buffer = malloc((size_t)bytes);
    GIVES(MPI_ERR_BUFFER, MPI_Session_detach_buffer(session, &address, &size));
    GIVES(MPI_ERR_BUFFER, MPI_Bsend(sent, 8, MPI_INT, me, 1, comm));
    WORKS(MPI_Session_attach_buffer(session, buffer, bytes));
    GIVES(MPI_ERR_BUFFER, MPI_Session_attach_buffer(session, buffer, bytes));
    GIVES(MPI_ERR_ARG, MPI_Session_attach_buffer_c(session, buffer, -1));
    MPI_Comm comms[] = {comm, same};
    for (int i = 0; i < 8; i++) sent[i] = 10 * me + i;
    for (int i = 0; i < 2; i++) {
        WORKS(MPI_Bsend(sent, 8, MPI_INT, (me + 1) % n, 1, comms[i]));
        int from = (me + n - 1) % n;
        WORKS(MPI_Recv(got, 8, MPI_INT, from, 1, comms[i], MPI_STATUS_IGNORE));
        EQUAL("the last number", 10 * from + 7, got[7]);
        WORKS(MPI_Session_flush_buffer(session));
        WORKS(MPI_Session_iflush_buffer(session, &request));
        WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    WORKS(MPI_Session_detach_buffer(session, &address, &size));
    HOLDS(address == buffer && size == bytes);
    WORKS(MPI_Session_attach_buffer_c(session, buffer, bytes));
    WORKS(MPI_Session_detach_buffer_c(session, &address, &large));
    HOLDS(address == buffer && large == bytes);
    GIVES(MPI_ERR_ARG, MPI_Session_iflush_buffer(session, NULL));
    MPI_Group_free(&world);
    MPI_Group_free(&half);
    MPI_Comm_disconnect(&comm);
    MPI_Comm_disconnect(&same);
    WORKS(MPI_Session_finalize(&session));
    free(buffer);
    return VERDICT();
}
