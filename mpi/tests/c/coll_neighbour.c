/* Operations with the neighbours of grids and graphs. */
#include "coll_check.h"

enum { MAX = 64 };

/* The operations of a communicator whose neighbours are these. Block k goes to destination k; tag `to[k]` is what
   the block tells, and `from[k]` what is expected from source k. */
static void test(int form, int count, int indegree, const int *sources, int outdegree, const int *destinations,
                 const int *from, const int *to, const char *what) {
    int *mine = malloc((outdegree * count + 1) * sizeof(int)), *got = malloc((indegree * count + 1) * sizeof(int));
    int sends[MAX], sdispls[MAX], receives[MAX], rdispls[MAX];
    MPI_Aint sbytes[MAX], rbytes[MAX];
    MPI_Datatype types[MAX];
    for (int k = 0; k < MAX; k++) types[k] = MPI_INT;
    for (int k = 0; k < outdegree; k++) {
        sends[k] = count;
        sdispls[k] = (outdegree - 1 - k) * count;
        sbytes[k] = sdispls[k] * (MPI_Aint)sizeof(int);
    }
    for (int k = 0; k < indegree; k++) {
        receives[k] = count;
        rdispls[k] = (indegree - 1 - k) * count;
        rbytes[k] = rdispls[k] * (MPI_Aint)sizeof(int);
    }
    for (int kind = 0; kind < 5; kind++) {
        int is_gather = kind < 2, is_dense = kind == 0 || kind == 2;
        memset(got, -1, indegree * count * sizeof(int));
        if (is_gather)
            fill(mine, count, rank, 1);
        else
            for (int k = 0; k < outdegree; k++) fill(mine + (is_dense ? k * count : sdispls[k]), count, rank, to[k]);
        if (kind == 0)
            RUN(form, Neighbor_allgather, Ineighbor_allgather, mine, count, MPI_INT, got, count, MPI_INT);
        if (kind == 1)
            RUN(form, Neighbor_allgatherv, Ineighbor_allgatherv, mine, count, MPI_INT, got, receives, rdispls, MPI_INT);
        if (kind == 2)
            RUN(form, Neighbor_alltoall, Ineighbor_alltoall, mine, count, MPI_INT, got, count, MPI_INT);
        if (kind == 3)
            RUN(form, Neighbor_alltoallv, Ineighbor_alltoallv, mine, sends, sdispls, MPI_INT, got, receives,
                rdispls, MPI_INT);
        if (kind == 4)
            RUN(form, Neighbor_alltoallw, Ineighbor_alltoallw, mine, sends, sbytes, types, got, receives, rbytes,
                types);
        for (int k = 0; k < indegree; k++) {
            const int *block = got + (is_dense ? k * count : rdispls[k]);
            if (sources[k] == MPI_PROC_NULL) {
                for (int i = 0; i < count; i++) ASSERT(block[i] == -1, "%s: the block of nobody has changed", what);
            } else {
                check(block, count, sources[k], is_gather ? 1 : from[k], what, form);
            }
        }
    }
    free(mine);
    free(got);
    (void)destinations;
}

/* A grid: the message in one direction arrives from the other one. */
static void grid(int dimensions, int is_periodic) {
    int dims[3] = {0}, periods[3], near[6], from[6], to[6];
    MPI_Dims_create(size, dimensions, dims);
    for (int d = 0; d < dimensions; d++) periods[d] = is_periodic;
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, dims, periods, 0, &comm);
    for (int d = 0; d < dimensions; d++) {
        MPI_Cart_shift(comm, d, 1, &near[2 * d], &near[2 * d + 1]);
        for (int k = 2 * d; k < 2 * d + 2; k++) {
            to[k] = 100 + k;
            from[k] = 100 + (k ^ 1);
        }
    }
    for (int form = 0; form < 3; form++)
        for (int count = 0; count < 10000; count = 7 * count + 1)
            test(form, count, 2 * dimensions, near, 2 * dimensions, near, from, to,
                 is_periodic ? "periodic grid" : "grid");
    MPI_Comm_free(&comm);
}

/* A graph: a star, whose centre is rank 0. */
static void star(void) {
    int index[MAX], edges[2 * MAX], near[MAX], from[MAX], to[MAX], n = 0, degree;
    for (int r = 1; r < size; r++) edges[n++] = r;
    index[0] = n;
    for (int r = 1; r < size; r++) {
        edges[n++] = 0;
        index[r] = n;
    }
    MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm);
    MPI_Graph_neighbors_count(comm, rank, &degree);
    MPI_Graph_neighbors(comm, rank, degree, near);
    for (int k = 0; k < degree; k++) {
        to[k] = near[k];
        from[k] = rank;
    }
    for (int form = 0; form < 3; form++)
        test(form, 5, degree, near, degree, near, from, to, "star");
    MPI_Comm_free(&comm);
}

/* A directed graph: each process sends to the next, to itself, and twice to the one after the next. */
static void directed(void) {
    int destinations[4] = {(rank + 1) % size, rank, (rank + 2) % size, (rank + 2) % size};
    int sources[4] = {(rank + size - 1) % size, rank, (rank + size - 2) % size, (rank + size - 2) % size};
    int tags[4] = {1, 2, 3, 4};
    if (size < 3) return;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, sources, MPI_UNWEIGHTED, 4, destinations, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    for (int form = 0; form < 3; form++)
        for (int count = 1; count < 9000; count *= 20)
            test(form, count, 4, sources, 4, destinations, tags, tags, "directed graph");
    MPI_Comm_free(&comm);
    /* Nobody has neighbours. */
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, sources, MPI_UNWEIGHTED, 0, destinations, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    for (int form = 0; form < 3; form++) test(form, 1, 0, sources, 0, destinations, tags, tags, "nobody");
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int dimensions = 1; dimensions <= 3; dimensions++)
        for (int periodic = 0; periodic < 2; periodic++) grid(dimensions, periodic);
    if (size > 1) star();
    directed();
    int x = 0, y = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Neighbor_allgather(&x, 1, MPI_INT, &y, 1, MPI_INT, MPI_COMM_WORLD);
    ASSERT(code == MPI_ERR_TOPOLOGY, "neighbours of a communicator without a topology: %d", code);
    return finish();
}
