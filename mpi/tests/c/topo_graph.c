/* Graphs, known as a whole or by each process for itself. */
#include "comm_check.h"

static int rank, size;

/* A star: rank 0 and each other rank are neighbours. */
static void star(void) {
    MPI_Comm comm, copy;
    int *index = malloc(size * sizeof *index), *edges = malloc(2 * size * sizeof *edges), k = 0;
    int *index2 = malloc(size * sizeof *index), *edges2 = malloc(2 * size * sizeof *edges), n = -1, m = -1;
    for (int i = 1; i < size; i++)
        edges[k++] = i;
    index[0] = k;
    for (int i = 1; i < size; i++) {
        edges[k++] = 0;
        index[i] = k;
    }
    OK(MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm));
    OK(MPI_Comm_dup(comm, &copy));
    OK(MPI_Comm_free(&comm));
    ring(copy);
    OK(MPI_Topo_test(copy, &n));
    EXPECT("the kind of topology", MPI_GRAPH, n);
    OK(MPI_Graphdims_get(copy, &n, &m));
    EXPECT("the number of nodes", size, n);
    EXPECT("the number of edges", 2 * size - 2, m);
    OK(MPI_Graph_get(copy, size, 2 * size, index2, edges2));
    EXPECT("the index", 0, memcmp(index, index2, size * sizeof *index));
    EXPECT("the edges", 0, memcmp(edges, edges2, k * sizeof *edges));
    for (int i = 0; i < size; i++) {
        OK(MPI_Graph_neighbors_count(copy, i, &n));
        EXPECT("the number of neighbours", i ? 1 : size - 1, n);
        OK(MPI_Graph_neighbors(copy, i, n, edges2));
        for (int j = 0; j < n; j++)
            EXPECT("a neighbour", i ? 0 : j + 1, edges2[j]);
    }
    OK(MPI_Graph_map(MPI_COMM_WORLD, 1, (int[]){0}, NULL, &n));
    EXPECT("the rank by the map", rank ? MPI_UNDEFINED : 0, n);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Graph_create(MPI_COMM_WORLD, 1, (int[]){2}, (int[]){0, 0}, 0, &comm));
    EXPECT("only rank 0 is in the graph", rank == 0, comm != MPI_COMM_NULL);
    if (comm != MPI_COMM_NULL) {
        OK(MPI_Graph_neighbors(comm, 0, 2, edges2));
        EXPECT("an edge to itself", 0, edges2[1]);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &comm));
    EXPECT("the empty graph", 1, comm == MPI_COMM_NULL);
    free(index), free(edges), free(index2), free(edges2);
}

/* The edges of this process in a ring in which each one sends to the next two. */
static void expect_ring(MPI_Comm comm, int is_weighted) {
    int in = -1, out = -1, weighted = -1, from[2], to[2], from_weights[2] = {-1, -1}, to_weights[2] = {-1, -1};
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    EXPECT("the number of sources", 2, in);
    EXPECT("the number of destinations", 2, out);
    EXPECT("whether there are weights", is_weighted, weighted);
    OK(MPI_Dist_graph_neighbors(comm, 2, from, from_weights, 2, to, to_weights));
    int seen_from = 0, seen_to = 0;
    for (int i = 0; i < 2; i++) {
        for (int j = 1; j <= 2; j++) {
            int is_from = from[i] == (rank + 2 * size - j) % size, is_to = to[i] == (rank + j) % size;
            if (is_from && (!is_weighted || from_weights[i] == 10 * from[i] + j))
                seen_from |= j;
            if (is_to && (!is_weighted || to_weights[i] == 10 * rank + j))
                seen_to |= j;
        }
        if (!is_weighted)
            EXPECT("weights stay as they are", -2, from_weights[i] + to_weights[i]);
    }
    EXPECT("the sources", 3, seen_from);
    EXPECT("the destinations", 3, seen_to);
    ring(comm);
}

static void adjacent(int is_weighted) {
    MPI_Comm comm, copy;
    int from[2], to[2], from_weights[2], to_weights[2], kind;
    for (int j = 1; j <= 2; j++) {
        from[j - 1] = (rank + 2 * size - j) % size;
        to[j - 1] = (rank + j) % size;
        from_weights[j - 1] = 10 * from[j - 1] + j;
        to_weights[j - 1] = 10 * rank + j;
    }
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, is_weighted ? from_weights : MPI_UNWEIGHTED, 2, to,
                                      is_weighted ? to_weights : MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
    expect_ring(comm, is_weighted);
    OK(MPI_Comm_dup(comm, &copy));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Topo_test(copy, &kind));
    EXPECT("the kind of topology", MPI_DIST_GRAPH, kind);
    expect_ring(copy, is_weighted);
    int first = -1, none = -1;
    int *volatile no_weights = MPI_UNWEIGHTED, *volatile empty_weights = MPI_WEIGHTS_EMPTY;
    OK(MPI_Dist_graph_neighbors(copy, 1, &first, no_weights, 0, &none, empty_weights));
    EXPECT("the first source", from[0], first);
    EXPECT("no destination", -1, none);
    OK(MPI_Comm_free(&copy));
}

/* Rank 0 gives all edges, or each process those of its left neighbour. */
static void general(int by_one, int is_weighted) {
    MPI_Comm comm;
    int n = by_one ? (rank ? 0 : size) : 1, k = 0;
    int *from = malloc((n + 1) * sizeof *from), *degrees = malloc((n + 1) * sizeof *degrees);
    int *to = malloc((2 * n + 1) * sizeof *to), *weights = malloc((2 * n + 1) * sizeof *weights);
    for (int i = 0; i < n; i++) {
        from[i] = by_one ? i : (rank + size - 1) % size;
        degrees[i] = 2;
        for (int j = 1; j <= 2; j++) {
            weights[k] = 10 * from[i] + j;
            to[k++] = (from[i] + j) % size;
        }
    }
    int *given = !is_weighted ? MPI_UNWEIGHTED : n ? weights : MPI_WEIGHTS_EMPTY;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, n, from, degrees, to, given, MPI_INFO_NULL, 1, &comm));
    expect_ring(comm, is_weighted);
    OK(MPI_Comm_free(&comm));
    free(from), free(degrees), free(to), free(weights);
}

/* No edges at all. */
static void empty(int *weights, int is_weighted) {
    MPI_Comm comm;
    int in = -1, out = -1, weighted = -1;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NULL, NULL, NULL, weights, MPI_INFO_NULL, 0, &comm));
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    EXPECT("no sources", 0, in);
    EXPECT("no destinations", 0, out);
    EXPECT("whether there are weights", is_weighted, weighted);
    OK(MPI_Dist_graph_neighbors(comm, 0, NULL, NULL, 0, NULL, NULL));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, weights, 0, NULL, weights, MPI_INFO_NULL, 0, &comm));
    OK(MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted));
    EXPECT("whether there are weights", is_weighted, weighted);
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    rank = rank_of(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    star();
    for (int is_weighted = 0; is_weighted < 2; is_weighted++) {
        adjacent(is_weighted);
        general(0, is_weighted);
        general(1, is_weighted);
    }
    empty(MPI_UNWEIGHTED, 0);
    empty(MPI_WEIGHTS_EMPTY, 1);
    return finish();
}
