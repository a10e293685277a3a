/* Partitioned receives make progress in every session of a process, which leaves its job between them. */
#include "partitioned_check.h"

static void in_a_session(int round) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    DONE(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    DONE(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    DONE(MPI_Group_rank(group, &me));
    DONE(MPI_Group_size(group, &n));
    DONE(MPI_Comm_create_from_group(group, round ? "again" : "first", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    partitions_arrive_meanwhile(comm);
    DONE(MPI_Group_free(&group));
    DONE(MPI_Comm_free(&comm));
    DONE(MPI_Session_finalize(&session));
}

int main(void) {
    for (int round = 0; round < 3; round++) in_a_session(round);
    return failures != 0;
}
