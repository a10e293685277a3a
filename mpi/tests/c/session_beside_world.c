/* Some processes use sessions alone, and the others MPI_Init: both come to their ends at any time. */
#include "check.h"
#include <stdlib.h>

static void use(MPI_Comm comm) {
    int one = 1, sum = 0, size;
    WORKS(MPI_Comm_size(comm, &size));
    WORKS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    EQUAL("the sum", size, sum);
}

int main(void) {
    const char *number = getenv("PMI_RANK");
    HOLDS(number != NULL);
    if (number != NULL && atoi(number) % 2) {
        MPI_Session session;
        MPI_Group self;
        MPI_Comm comm;
        WORKS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
        WORKS(MPI_Group_from_session_pset(session, "mpi://SELF", &self));
        WORKS(MPI_Comm_create_from_group(self, "own", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
        use(comm);
        WORKS(MPI_Comm_free(&comm));
        WORKS(MPI_Group_free(&self));
        WORKS(MPI_Session_finalize(&session));
    } else {
        MPI_Init(NULL, NULL);
        use(MPI_COMM_SELF);
        MPI_Finalize();
    }
    return VERDICT();
}
