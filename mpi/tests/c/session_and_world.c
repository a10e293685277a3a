/* Sessions beside MPI_Init: before it, over its end, and after it. */
#include "check.h"

int main(int argc, char **argv) {
    MPI_Session before, during, after;
    int flag, rank, size, level;
    MPI_Group group;
    WORKS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &before));
    WORKS(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level));
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    WORKS(MPI_Query_thread(&level));
    EQUAL("the level of the world", MPI_THREAD_SERIALIZED, level);
    WORKS(MPI_Is_thread_main(&flag));
    EQUAL("the main thread", 1, flag);
    GIVES(MPI_ERR_OTHER, MPI_Init(&argc, &argv));
    WORKS(MPI_Session_finalize(&before));
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int one = 1, sum = 0;
    WORKS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    EQUAL("the sum", size, sum);
    WORKS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &during));
    WORKS(MPI_Finalize());
    WORKS(MPI_Finalized(&flag));
    EQUAL("MPI_Finalized", 1, flag);
    WORKS(MPI_Group_from_session_pset(during, "mpi://WORLD", &group));
    int found;
    MPI_Group_size(group, &found);
    EQUAL("processes", size, found);
    MPI_Group_free(&group);
    GIVES(MPI_ERR_OTHER, MPI_Finalize());
    GIVES(MPI_ERR_OTHER, MPI_Init(&argc, &argv));
    WORKS(MPI_Session_finalize(&during));
    if (rank % 2 == 0) {
        WORKS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &after));
        WORKS(MPI_Session_finalize(&after));
    }
    return VERDICT();
}
