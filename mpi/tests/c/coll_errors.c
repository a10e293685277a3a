/* Wrong arguments of collective operations, which are found before anything is communicated. */
#include "coll_check.h"

#define FAILS(class, call)                                                                    \
    do {                                                                                      \
        int code = call;                                                                      \
        ASSERT(code == class, "%s returns %d, expected %d (" #class ")", #call, code, class); \
    } while (0)

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int a[200] = {0}, b[200], counts[64], displs[64];
    MPI_Request r;
    for (int i = 0; i < 64; i++) counts[i] = 1, displs[i] = i;
    FAILS(MPI_ERR_COMM, MPI_Barrier(MPI_COMM_NULL));
    FAILS(MPI_ERR_COUNT, MPI_Bcast(a, -1, MPI_INT, 0, comm));
    FAILS(MPI_ERR_TYPE, MPI_Bcast(a, 1, MPI_DATATYPE_NULL, 0, comm));
    FAILS(MPI_ERR_ROOT, MPI_Bcast(a, 1, MPI_INT, size, comm));
    FAILS(MPI_ERR_ROOT, MPI_Bcast(a, 1, MPI_INT, -1, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Bcast(NULL, 1, MPI_INT, 0, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, comm));
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    FAILS(MPI_ERR_BUFFER, MPI_Bcast(NULL, 1, pair, 0, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Allgather(NULL, 1, pair, b, 1, pair, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Allgather(a, 1, pair, NULL, 1, pair, comm));
    MPI_Type_free(&pair);
    for (int i = 0; i < 64; i++) displs[i] = i + 1;
    FAILS(MPI_ERR_BUFFER, MPI_Alltoallv(a, counts, displs, MPI_INT, NULL, counts, displs, MPI_INT, comm));
    for (int i = 0; i < 64; i++) displs[i] = i;
    MPI_Comm line;
    MPI_Cart_create(comm, 1, (int[]){size}, (int[]){0}, 0, &line);
    if (size > 1) FAILS(MPI_ERR_BUFFER, MPI_Neighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, b, 1, MPI_INT, line));
    if (size > 1) FAILS(MPI_ERR_BUFFER, MPI_Neighbor_allgather(a, 1, MPI_INT, NULL, 1, MPI_INT, line));
    MPI_Comm_free(&line);
    MPI_Info info, freed;
    MPI_Info_create(&info);
    freed = info;
    MPI_Info_free(&info);
    FAILS(MPI_ERR_INFO, MPI_Bcast_init(a, 1, MPI_INT, 0, comm, freed, &r));
    FAILS(MPI_ERR_INFO, MPI_Psend_init(a, 1, 1, MPI_INT, 0, 0, comm, freed, &r));
    FAILS(MPI_ERR_ARG, MPI_Ibcast(a, 1, MPI_INT, 0, comm, NULL));
    FAILS(MPI_ERR_ROOT, MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, size, comm));
    if (rank == 0) FAILS(MPI_ERR_COUNT, MPI_Gather(a, 1, MPI_INT, b, -1, MPI_INT, 0, comm));
    if (rank == 0) FAILS(MPI_ERR_TRUNCATE, MPI_Gather(a, 2, MPI_INT, b, 1, MPI_INT, 0, comm));
    if (rank == 0) FAILS(MPI_ERR_BUFFER, MPI_Gather(b, 1, MPI_INT, b, 1, MPI_INT, 0, comm));
    if (rank != 0) FAILS(MPI_ERR_BUFFER, MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, b, 1, MPI_INT, 0, comm));
    if (rank == 0) FAILS(MPI_ERR_ARG, MPI_Gatherv(a, 1, MPI_INT, b, NULL, displs, MPI_INT, 0, comm));
    if (rank != 0) FAILS(MPI_ERR_BUFFER, MPI_Scatter(a, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Allgather(a + rank, 1, MPI_INT, a, 1, MPI_INT, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Allgather(a, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, comm));
    FAILS(MPI_ERR_TRUNCATE, MPI_Allgather(a, 3, MPI_INT, b, 1, MPI_INT, comm));
    FAILS(MPI_ERR_ARG, MPI_Allgatherv(a, 1, MPI_INT, b, counts, NULL, MPI_INT, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Alltoall(a, 1, MPI_INT, a, 1, MPI_INT, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Alltoallv(a, counts, displs, MPI_INT, a, counts, displs, MPI_INT, comm));
    /* The root's own block counts, although it stays where it is. */
    const int own = counts[0];
    counts[0] = -1;
    if (rank == 0) {
        FAILS(MPI_ERR_COUNT, MPI_Gatherv(MPI_IN_PLACE, 1, MPI_INT, b, counts, displs, MPI_INT, 0, comm));
        FAILS(MPI_ERR_COUNT, MPI_Scatterv(a, counts, displs, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, comm));
    }
    counts[0] = own;
    counts[size - 1] = -3;
    FAILS(MPI_ERR_COUNT, MPI_Allgatherv(a, 1, MPI_INT, b, counts, displs, MPI_INT, comm));
    FAILS(MPI_ERR_COUNT, MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, comm));
    counts[size - 1] = 1;
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(a, a, 1, MPI_INT, MPI_SUM, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Allreduce(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, comm));
    FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_INT, MPI_OP_NULL, comm));
    FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_INT, MPI_REPLACE, comm));
    FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_INT, MPI_MINLOC, comm));
    FAILS(MPI_ERR_OP, MPI_Allreduce(a, b, 1, MPI_FLOAT, MPI_BAND, comm));
    FAILS(MPI_ERR_OP, MPI_Scan(a, b, 1, MPI_C_DOUBLE_COMPLEX, MPI_MAX, comm));
    FAILS(MPI_ERR_COUNT, MPI_Exscan(a, b, -1, MPI_INT, MPI_SUM, comm));
    int rank;
    MPI_Comm_rank(comm, &rank);
    /* Rank 0 has no result. */
    if (rank > 0) FAILS(MPI_ERR_BUFFER, MPI_Exscan(a, a, 1, MPI_INT, MPI_SUM, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Scan(a, a, 1, MPI_INT, MPI_SUM, comm));
    FAILS(MPI_ERR_BUFFER, MPI_Reduce_scatter_block(a, a, 1, MPI_INT, MPI_SUM, comm));
    FAILS(MPI_ERR_OP, MPI_Reduce_init(a, b, 1, MPI_INT, MPI_OP_NULL, 0, comm, MPI_INFO_NULL, &r));
    if (rank != 0) FAILS(MPI_ERR_BUFFER, MPI_Reduce(MPI_IN_PLACE, b, 1, MPI_INT, MPI_SUM, 0, comm));
    /* Sizes that disagree are found where the data arrive, beyond what travels with others. */
    if (size == 2) {
        int n = 40000;
        int *large = calloc(n + 1, sizeof(int));
        int code = MPI_Bcast(large, rank == 0 ? n + 1 : n, MPI_INT, 0, comm);
        ASSERT(code == (rank == 0 ? MPI_SUCCESS : MPI_ERR_TRUNCATE), "a broadcast of other sizes returns %d", code);
        MPI_Ibcast(large, rank == 0 ? n + 1 : n, MPI_INT, 0, comm, &r);
        code = MPI_Wait(&r, MPI_STATUS_IGNORE);
        ASSERT(code == (rank == 0 ? MPI_SUCCESS : MPI_ERR_TRUNCATE), "a wait for other sizes returns %d", code);
        free(large);
    }
    /* On a node all that see another size find it, in the first piece. */
    if (size >= 2 && getenv("PELAGO_ROUTE") == NULL && getenv("PELAGO_SIM_NODES") == NULL) {
        int n = rank == 0 ? 1000 : 900;
        int *from = calloc(1000 * size, sizeof(int)), *to = calloc(1000 * size, sizeof(int));
        int codes[5] = {
            MPI_Bcast(to, n, MPI_INT, 0, comm),
            MPI_Gather(from, n, MPI_INT, to, n, MPI_INT, 0, comm),
            MPI_Allreduce(from, to, n, MPI_INT, MPI_SUM, comm),
            MPI_Allgather(from, n, MPI_INT, to, n, MPI_INT, comm),
            MPI_Alltoall(from, n, MPI_INT, to, n, MPI_INT, comm),
        };
        for (int i = 0; i < 5; i++) {
            int sees = i == 0 ? rank != 0 : i == 1 ? rank == 0 : 1;
            ASSERT(codes[i] == (sees ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "operation %d of other sizes returns %d", i,
                   codes[i]);
        }
        free(from);
        free(to);
    }
    MPI_Barrier(comm);
    /* No operation was started by the calls that have failed. */
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    ASSERT(sum == size * (size - 1) / 2, "the sum is %d", sum);
    return finish();
}
