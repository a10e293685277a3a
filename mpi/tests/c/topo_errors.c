/* Wrong arguments of calls of topologies; if one member gives them, the call fails at all of them. */
#include "comm_check.h"

int main(int argc, char **argv) {
    MPI_Comm cart, graph, dist, comm;
    int n, a[4], b[4], c[4], none = MPI_UNDEFINED;
    /* The compiler must not see that these are no arrays. */
    int *volatile unweighted = MPI_UNWEIGHTED, *volatile empty = MPI_WEIGHTS_EMPTY;
    MPI_Init(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    int rank = rank_of(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD), last = size - 1;
    int dims[2] = {size, 1}, periods[2] = {0, 1}, bad[2] = {size, 0}, large[2] = {size, 2};
    int index[1] = {1}, edges[1] = {0}, outside[1] = {1}, far[1] = {size}, falling[2] = {1, 0}, one[1] = {1};
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &cart));
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NULL, NULL, NULL, unweighted, MPI_INFO_NULL, 0, &dist));
    int *all = calloc(size, sizeof *all);
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, all, NULL, 0, &graph));

    FAILS(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, 2, rank == last ? bad : dims, periods, 0, &comm));
    FAILS(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, 2, large, periods, 0, &comm));
    FAILS(MPI_ERR_DIMS, MPI_Cart_create(MPI_COMM_WORLD, -1, dims, periods, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Cart_create(MPI_COMM_WORLD, 2, NULL, periods, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Cart_create(MPI_COMM_WORLD, 2, dims, rank == last ? NULL : periods, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, NULL));
    if (size > 1) {
        int turned[2] = {1, size};
        FAILS(MPI_ERR_ARG, MPI_Cart_create(MPI_COMM_WORLD, 2, rank == last ? turned : dims, periods, 0, &comm));
    }
    FAILS(MPI_ERR_ARG, MPI_Cart_get(cart, 1, a, b, c));
    FAILS(MPI_ERR_ARG, MPI_Cart_coords(cart, 0, 1, a));
    FAILS(MPI_ERR_RANK, MPI_Cart_coords(cart, size, 2, a));
    FAILS(MPI_ERR_RANK, MPI_Cart_coords(cart, -1, 2, a));
    a[0] = size, a[1] = 0;
    FAILS(MPI_ERR_ARG, MPI_Cart_rank(cart, a, &n));
    a[0] = -1;
    FAILS(MPI_ERR_ARG, MPI_Cart_rank(cart, a, &n));
    FAILS(MPI_ERR_ARG, MPI_Cart_rank(cart, NULL, &n));
    FAILS(MPI_ERR_ARG, MPI_Cart_shift(cart, 2, 1, &a[0], &a[1]));
    FAILS(MPI_ERR_ARG, MPI_Cart_shift(cart, -1, 1, &a[0], &a[1]));
    FAILS(MPI_ERR_ARG, MPI_Cart_sub(cart, rank == last ? NULL : dims, &comm));

    FAILS(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(MPI_COMM_WORLD, &n));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Cart_get(graph, 2, a, b, c));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Cart_sub(dist, dims, &comm));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Graphdims_get(cart, &n, &n));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Graph_neighbors_count(dist, 0, &n));
    FAILS(MPI_ERR_TOPOLOGY, MPI_Dist_graph_neighbors_count(graph, &n, &n, &n));

    FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, -1, index, edges, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, size + 1, index, edges, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, 1, index, rank == last ? outside : edges, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, 1, index, NULL, 0, &comm));
    if (size > 1)
        FAILS(MPI_ERR_ARG, MPI_Graph_create(MPI_COMM_WORLD, 2, falling, edges, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Graph_get(graph, size - 1, 0, a, b));
    FAILS(MPI_ERR_RANK, MPI_Graph_neighbors_count(graph, size, &n));
    FAILS(MPI_ERR_RANK, MPI_Graph_neighbors(graph, -1, 1, a));

    n = rank == last;
    FAILS(MPI_ERR_RANK, MPI_Dist_graph_create(MPI_COMM_WORLD, n, edges, one, far, unweighted, MPI_INFO_NULL, 0, &comm));
    FAILS(MPI_ERR_RANK, MPI_Dist_graph_create(MPI_COMM_WORLD, n, &none, one, edges, unweighted, MPI_INFO_NULL, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(MPI_COMM_WORLD, n, edges, one, edges, empty, MPI_INFO_NULL, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(MPI_COMM_WORLD, n, edges, one, edges, NULL, MPI_INFO_NULL, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(MPI_COMM_WORLD, n, edges, &none, edges, unweighted, MPI_INFO_NULL, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(MPI_COMM_WORLD, n, edges, one, edges, &none, MPI_INFO_NULL, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(MPI_COMM_WORLD, -1, edges, one, edges, one, MPI_INFO_NULL, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, edges, unweighted, 1, edges, one, MPI_INFO_NULL, 0, &comm));
    FAILS(MPI_ERR_RANK, MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, edges, one, 1, far, one, MPI_INFO_NULL, 0, &comm));
    FAILS(MPI_ERR_ARG, MPI_Dist_graph_neighbors(dist, -1, a, a, 0, b, b));
    if (size > 1) {
        int *weights = rank == last ? one : unweighted;
        FAILS(MPI_ERR_ARG, MPI_Dist_graph_create(MPI_COMM_WORLD, 1, edges, one, edges, weights, MPI_INFO_NULL, 0, &comm));
    }
    free(all);
    OK(MPI_Comm_free(&cart));
    OK(MPI_Comm_free(&graph));
    OK(MPI_Comm_free(&dist));
    ring(MPI_COMM_WORLD);
    return finish();
}
