/* Wrong arguments are refused; if one member gives them, the call fails at all of them. */
#include "comm_check.h"

int main(int argc, char **argv) {
    MPI_Comm comm = MPI_COMM_NULL, stale, half, inter = MPI_COMM_NULL;
    MPI_Group group, outside;
    MPI_Request request;
    int number, length;
    char name[MPI_MAX_OBJECT_NAME], text[2 * MPI_MAX_STRINGTAG_LEN];
    MPI_Init(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    int rank = rank_of(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD), last = size - 1;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));

    /* The last member gives a wrong argument. */
    FAILS(MPI_ERR_ARG, MPI_Comm_split(MPI_COMM_WORLD, rank == last ? -3 : 1, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Comm_split_type(MPI_COMM_WORLD, rank == last ? 77 : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm));
    FAILS(MPI_ERR_ARG, MPI_Comm_dup(MPI_COMM_WORLD, rank == last ? NULL : &comm));
    FAILS(MPI_ERR_GROUP, MPI_Comm_create(MPI_COMM_WORLD, rank == last ? MPI_GROUP_NULL : group, &comm));
    if (rank == last) {
        FAILS(MPI_ERR_ARG, MPI_Comm_idup(MPI_COMM_WORLD, NULL, &request));
    } else {
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request));
        FAILS(MPI_ERR_ARG, MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    FAILS(MPI_ERR_ARG, MPI_Comm_create_group(MPI_COMM_WORLD, group, 4, rank == last ? NULL : &comm));
    ring(MPI_COMM_WORLD);

    /* All give it. */
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    stale = comm;
    OK(MPI_Comm_free(&comm));
    FAILS(MPI_ERR_COMM, MPI_Comm_free(&stale));
    FAILS(MPI_ERR_COMM, MPI_Comm_dup(stale, &comm));
    FAILS(MPI_ERR_COMM, MPI_Comm_rank(stale, &number));
    FAILS(MPI_ERR_COMM, MPI_Comm_dup(MPI_COMM_NULL, &comm));
    FAILS(MPI_ERR_COMM, MPI_Comm_split(MPI_COMM_NULL, 0, 0, &comm));
    FAILS(MPI_ERR_COMM, MPI_Comm_size(MPI_COMM_NULL, &number));
    FAILS(MPI_ERR_ARG, MPI_Comm_size(MPI_COMM_WORLD, NULL));
    FAILS(MPI_ERR_ARG, MPI_Comm_free(NULL));
    comm = MPI_COMM_WORLD;
    FAILS(MPI_ERR_COMM, MPI_Comm_free(&comm));
    FAILS(MPI_ERR_COMM, MPI_Comm_disconnect(&comm));
    comm = MPI_COMM_NULL;
    FAILS(MPI_ERR_COMM, MPI_Comm_free(&comm));
    FAILS(MPI_ERR_COMM, MPI_Comm_remote_size(MPI_COMM_WORLD, &number));
    FAILS(MPI_ERR_COMM, MPI_Comm_remote_group(MPI_COMM_WORLD, &outside));
    FAILS(MPI_ERR_COMM, MPI_Intercomm_merge(MPI_COMM_WORLD, 0, &comm));
    FAILS(MPI_ERR_TAG, MPI_Comm_create_group(MPI_COMM_WORLD, group, -1, &comm));
    FAILS(MPI_ERR_GROUP, MPI_Comm_create_group(MPI_COMM_WORLD, MPI_GROUP_NULL, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Comm_set_name(MPI_COMM_WORLD, NULL));
    OK(MPI_Comm_set_name(MPI_COMM_WORLD, ""));
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
    EXPECT("the empty name", 0, length);

    /* A part does not have the members of the whole. */
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &half));
    if (size > 1) {
        FAILS(MPI_ERR_GROUP, MPI_Comm_create(half, group, &comm));
        FAILS(MPI_ERR_GROUP, MPI_Comm_create_group(half, group, 0, &comm));
    }

    /* Without a parent the error goes to the given handler. */
    FAILS(MPI_ERR_ARG, MPI_Comm_create_from_group(group, NULL, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    FAILS(MPI_ERR_GROUP, MPI_Comm_create_from_group(MPI_GROUP_NULL, "", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    FAILS(MPI_ERR_ARG, MPI_Comm_create_from_group(group, text, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    FAILS(MPI_ERR_ERRHANDLER, MPI_Comm_create_from_group(group, "", MPI_INFO_NULL, MPI_ERRHANDLER_NULL, &comm));

    if (size > 1) {
        int partner = rank % 2 ? 0 : 1, leader_wrong = rank == 0;
        FAILS(MPI_ERR_RANK, MPI_Intercomm_create(half, size, MPI_COMM_WORLD, partner, 0, &inter));
        FAILS(MPI_ERR_RANK, MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, size, 0, &inter));
        FAILS(MPI_ERR_COMM, MPI_Intercomm_create(half, 0, MPI_COMM_NULL, partner, 0, &inter));
        FAILS(MPI_ERR_ARG, MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, partner, 0, leader_wrong ? NULL : &inter));
        OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, partner, 0, &inter));
        across(inter);
        FAILS(MPI_ERR_ARG, MPI_Intercomm_merge(inter, 0, rank == last ? NULL : &comm));
        FAILS(MPI_ERR_COMM, MPI_Intercomm_create(inter, 0, MPI_COMM_WORLD, partner, 0, &comm));
        FAILS(MPI_ERR_COMM, MPI_Comm_create_group(inter, group, 0, &comm));
        if (size > 3)
            FAILS(MPI_ERR_ARG, MPI_Intercomm_merge(inter, rank / 2 % 2, &comm));
        across(inter);
        OK(MPI_Comm_free(&inter));
    }
    OK(MPI_Comm_free(&half));
    OK(MPI_Group_free(&group));
    ring(MPI_COMM_WORLD);
    return finish();
}
