/* Division of communicators by color and by what processes share. */
#include "comm_check.h"

/* Division by a resource that is named: the size of the part, or 0 if there is none. */
static void guided(int type, const char *key, const char *value, int expected) {
    MPI_Comm comm;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, key, value));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, type, 0, info, &comm));
    EXPECT(value, expected, comm == MPI_COMM_NULL ? 0 : size_of(comm));
    if (comm != MPI_COMM_NULL) {
        ring(comm);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Info_free(&info));
}

int main(int argc, char **argv) {
    MPI_Comm comm, part;
    MPI_Init(&argc, &argv);
    int rank = rank_of(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD), rounds = 0;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm));
    int n = (size + 1 - rank % 2) / 2;
    EXPECT("the size of a half", n, size_of(comm));
    EXPECT("the rank by a key that decreases", n - 1 - rank / 2, rank_of(comm));
    ring(comm);
    OK(MPI_Comm_free(&comm));

    OK(MPI_Comm_split(MPI_COMM_WORLD, 5, 0, &comm));
    EXPECT("the rank by equal keys", rank, rank_of(comm));
    OK(MPI_Comm_free(&comm));

    OK(MPI_Comm_split(MPI_COMM_WORLD, rank ? MPI_UNDEFINED : 0, 0, &comm));
    EXPECT("only rank 0 gets one", rank == 0, comm != MPI_COMM_NULL);
    if (comm != MPI_COMM_NULL) {
        ring(comm);
        OK(MPI_Comm_free(&comm));
    }

    /* Halves of halves, down to single processes. */
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    while ((n = size_of(comm)) > 1) {
        OK(MPI_Comm_split(comm, rank_of(comm) < n / 2, 0x7fffffff - rank, &part));
        ring(part);
        OK(MPI_Comm_free(&comm));
        comm = part;
        rounds++;
    }
    OK(MPI_Comm_free(&comm));

    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &comm));
    ring(comm);
    int on_node = size_of(comm);
    EXPECT("this process is on its own node", 1, on_node >= 1 && on_node <= size);
    OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &part));
    EXPECT("a node is not divided", on_node, size_of(part));
    EXPECT("the order is that of the keys", on_node - 1 - rank_of(comm), rank_of(part));
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &part));
    EXPECT("a node has no smaller parts", 1, part == MPI_COMM_NULL);
    OK(MPI_Comm_free(&comm));
    MPI_Info given;
    OK(MPI_Info_create(&given));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_UNGUIDED, 0, given, &comm));
    EXPECT("parts are smaller than the whole", on_node == size, comm == MPI_COMM_NULL);
    if (comm != MPI_COMM_NULL) {
        MPI_Info info;
        char value[MPI_MAX_INFO_VAL + 1];
        int flag = 0, length = sizeof value;
        EXPECT("the part is the node", on_node, size_of(comm));
        OK(MPI_Comm_get_info(comm, &info));
        OK(MPI_Info_get_string(info, "mpi_hw_resource_type", &length, value, &flag));
        EXPECT("the hint of the communicator", 1, flag && !strcmp(value, "mpi_shared_memory"));
        OK(MPI_Info_get_string(given, "mpi_hw_resource_type", &length, value, &flag));
        EXPECT("the type of the resource is told", 1, flag && !strcmp(value, "mpi_shared_memory"));
        OK(MPI_Info_free(&info));
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Info_free(&given));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, MPI_INFO_NULL, &comm));
    EXPECT("no resource is named", 1, comm == MPI_COMM_NULL);
    guided(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "mpi_shared_memory", on_node);
    guided(MPI_COMM_TYPE_HW_GUIDED, "mpi_hw_resource_type", "the moon", 0);
    guided(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_hw_resource_type", "mpi_shared_memory", on_node);
    guided(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://WORLD", size);
    guided(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://world", size);
    guided(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "mpi://SELF", 1);
    guided(MPI_COMM_TYPE_RESOURCE_GUIDED, "mpi_pset_name", "another", 0);
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, rank ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm));
    EXPECT("only rank 0 gets one", rank == 0, comm != MPI_COMM_NULL);
    if (comm != MPI_COMM_NULL)
        OK(MPI_Comm_free(&comm));
    return finish();
}
