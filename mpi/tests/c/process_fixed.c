/* Calls that would add processes to a job: they fail with the class of the standard. */
#include "check.h"

int main(int argc, char **argv) {
    MPI_Comm comm = MPI_COMM_SELF, parent = MPI_COMM_SELF;
    int codes[2] = {0, 0}, counts[2] = {1, 1}, rank, size, length;
    char port[MPI_MAX_PORT_NAME] = "", text[MPI_MAX_ERROR_STRING], *commands[2] = {"a", "b"};
    MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    WORKS(MPI_Comm_get_parent(&parent));
    HOLDS(parent == MPI_COMM_NULL);
    GIVES(MPI_ERR_SPAWN, MPI_Comm_spawn("prog", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm, codes));
    HOLDS(comm == MPI_COMM_NULL);
    if (rank == 0) HOLDS(codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN);
    WORKS(MPI_Error_string(MPI_ERR_SPAWN, text, &length));
    HOLDS(strstr(text, "Pelago job") != NULL);
    GIVES(MPI_ERR_SPAWN, MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, 0, MPI_COMM_WORLD, &comm,
                                                 MPI_ERRCODES_IGNORE));
    GIVES(MPI_ERR_ROOT, MPI_Comm_spawn("prog", MPI_ARGV_NULL, 1, MPI_INFO_NULL, size, MPI_COMM_WORLD, &comm,
                                       MPI_ERRCODES_IGNORE));
    GIVES(MPI_ERR_SERVICE, MPI_Unpublish_name("service", MPI_INFO_NULL, "port"));
    GIVES(MPI_ERR_NAME, MPI_Lookup_name("service", MPI_INFO_NULL, port));
    GIVES(MPI_ERR_ARG, MPI_Lookup_name(NULL, MPI_INFO_NULL, port));
    WORKS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    WORKS(MPI_Comm_disconnect(&comm));
    HOLDS(comm == MPI_COMM_NULL);
    GIVES(MPI_ERR_COMM, MPI_Comm_disconnect(&comm));
    MPI_Finalize();
    return VERDICT();
}
