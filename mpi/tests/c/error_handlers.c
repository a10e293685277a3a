/* Error handlers of communicators and sessions. */
#include "check.h"

static int calls, last_code;
static MPI_Comm last_comm;
static MPI_Session last_session;

static void of_comm(MPI_Comm *comm, int *code, ...) {
    calls++;
    last_comm = *comm;
    last_code = *code;
}

static void of_session(MPI_Session *session, int *code, ...) {
    calls++;
    last_session = *session;
    last_code = *code;
}

int main(int argc, char **argv) {
    MPI_Errhandler comm_handler, session_handler, found, again;
    MPI_Session session;
    int n;
    /* Before the initialisation. */
    WORKS(MPI_Comm_create_errhandler(of_comm, &comm_handler));
    WORKS(MPI_Session_create_errhandler(of_session, &session_handler));
    MPI_Init(&argc, &argv);
    WORKS(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &found));
    HOLDS(found == MPI_ERRORS_ARE_FATAL);
    MPI_Comm early;
    MPI_Comm_dup(MPI_COMM_WORLD, &early);
    /* Errors of no object: those of the world's handler until MPI 3.1, of that of MPI_COMM_SELF since then. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    GIVES(MPI_ERR_INFO, MPI_Info_get_nkeys(MPI_INFO_NULL, &n));
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    GIVES(MPI_ERR_INFO, MPI_Info_get_nkeys(MPI_INFO_NULL, &n));
    WORKS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, comm_handler));
    WORKS(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &found));
    HOLDS(found == comm_handler);
    WORKS(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &again));
    WORKS(MPI_Errhandler_free(&again));
    HOLDS(again == MPI_ERRHANDLER_NULL);
    WORKS(MPI_Errhandler_free(&found));
    WORKS(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER));
    EQUAL("calls of the handler", 1, calls);
    EQUAL("its code", MPI_ERR_OTHER, last_code);
    HOLDS(last_comm == MPI_COMM_WORLD);
    /* A communicator from before any handler was set. */
    GIVES(MPI_ERR_RANK, MPI_Send(&n, 1, MPI_INT, -17, 0, early));
    WORKS(MPI_Comm_get_errhandler(early, &found));
    HOLDS(found == MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&early);
    EQUAL("calls of the handler", 1, calls);
    /* The handler lives on in the communicator, and duplicates have it. */
    WORKS(MPI_Errhandler_free(&comm_handler));
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    GIVES(MPI_ERR_RANK, MPI_Send(&n, 1, MPI_INT, -17, 0, copy));
    EQUAL("calls of the handler", 2, calls);
    HOLDS(last_comm == copy);
    /* Several requests: the handler of the one that has failed. */
    int two[2] = {1, 2}, rank;
    MPI_Request requests[2];
    MPI_Comm_rank(copy, &rank);
    WORKS(MPI_Irecv(&n, 1, MPI_INT, rank, 5, copy, &requests[0]));
    WORKS(MPI_Isend(two, 2, MPI_INT, rank, 5, copy, &requests[1]));
    calls = 0;
    GIVES(MPI_ERR_IN_STATUS, MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    HOLDS(calls == 1 && last_comm == copy);
    /* Errors of a request go to the handler of its communicator. */
    WORKS(MPI_Recv_init(&n, 1, MPI_INT, rank, 5, copy, &requests[0]));
    WORKS(MPI_Start(&requests[0]));
    calls = 0;
    GIVES(MPI_ERR_REQUEST, MPI_Start(&requests[0]));
    HOLDS(calls == 1 && last_comm == copy);
    WORKS(MPI_Send(two, 1, MPI_INT, rank, 5, copy));
    WORKS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    WORKS(MPI_Request_free(&requests[0]));
    WORKS(MPI_Psend_init(two, 1, 1, MPI_INT, MPI_PROC_NULL, 0, copy, MPI_INFO_NULL, &requests[0]));
    GIVES(MPI_ERR_REQUEST, MPI_Pready(0, requests[0]));
    HOLDS(calls == 2 && last_comm == copy);
    WORKS(MPI_Request_free(&requests[0]));
    /* Also if the communicator was freed meanwhile. */
    WORKS(MPI_Irecv(&n, 1, MPI_INT, rank, 5, copy, &requests[0]));
    WORKS(MPI_Isend(two, 2, MPI_INT, rank, 5, copy, &requests[1]));
    MPI_Comm_free(&copy);
    calls = 0;
    GIVES(MPI_ERR_TRUNCATE, MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    EQUAL("calls of the handler of a communicator that was freed", 1, calls);
    WORKS(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    calls = 0;
    GIVES(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(MPI_COMM_WORLD, session_handler));
    GIVES(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL));
    EQUAL("calls of the handler", 2, calls);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    GIVES(MPI_ERR_ARG, MPI_Comm_get_errhandler(MPI_COMM_WORLD, NULL));
    GIVES(MPI_ERR_COMM, MPI_Comm_call_errhandler(MPI_COMM_NULL, MPI_ERR_OTHER));

    WORKS(MPI_Session_init(MPI_INFO_NULL, session_handler, &session));
    WORKS(MPI_Session_get_errhandler(session, &found));
    HOLDS(found == session_handler);
    WORKS(MPI_Errhandler_free(&found));
    calls = 0;
    WORKS(MPI_Session_call_errhandler(session, MPI_ERR_ARG));
    HOLDS(calls == 1 && last_code == MPI_ERR_ARG && last_session == session);
    MPI_Group group;
    GIVES(MPI_ERR_ARG, MPI_Group_from_session_pset(session, "nothing", &group));
    EQUAL("calls of the handler", 2, calls);
    WORKS(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN));
    WORKS(MPI_Errhandler_free(&session_handler));
    GIVES(MPI_ERR_ERRHANDLER, MPI_Errhandler_free(&session_handler));
    WORKS(MPI_Session_finalize(&session));
    MPI_Finalize();
    return VERDICT();
}
