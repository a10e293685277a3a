/* Handles as integers. */
#include "check.h"

int main(int argc, char **argv) {
    MPI_Comm comm;
    MPI_Group group;
    MPI_Info info;
    HOLDS(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_group(comm, &group);
    MPI_Info_create(&info);
    HOLDS(MPI_Comm_fromint(MPI_Comm_toint(comm)) == comm);
    HOLDS(MPI_Comm_toint(comm) > 0);
    HOLDS(MPI_Group_fromint(MPI_Group_toint(group)) == group);
    HOLDS(MPI_Info_fromint(MPI_Info_toint(info)) == info);
    HOLDS(MPI_Type_fromint(MPI_Type_toint(MPI_DOUBLE)) == MPI_DOUBLE);
    HOLDS(MPI_Op_fromint(MPI_Op_toint(MPI_SUM)) == MPI_SUM);
    HOLDS(MPI_Errhandler_fromint(MPI_Errhandler_toint(MPI_ERRORS_RETURN)) == MPI_ERRORS_RETURN);
    HOLDS(MPI_Request_fromint(MPI_Request_toint(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
    HOLDS(MPI_Message_fromint(MPI_Message_toint(MPI_MESSAGE_NO_PROC)) == MPI_MESSAGE_NO_PROC);
    HOLDS(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL);
    HOLDS(MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL);
    HOLDS(MPI_Session_fromint(MPI_Session_toint(MPI_SESSION_NULL)) == MPI_SESSION_NULL);
    HOLDS(MPI_Comm_fromint(-1) == MPI_COMM_NULL);
    HOLDS(MPI_Comm_fromint(0) == MPI_COMM_NULL);
    HOLDS(MPI_Comm_fromint(MPI_Group_toint(group)) == MPI_COMM_NULL);
    HOLDS(MPI_Type_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) == MPI_DATATYPE_NULL);
    MPI_Info_free(&info);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return VERDICT();
}
