/* Cartesian grids. */
#include "comm_check.h"

static int rank, size;

/* A ring, periodic or not. */
static void line(int is_periodic) {
    MPI_Comm comm, copy;
    int n = -1, dim = -1, period = -1, coord = -1, source, dest, found = -1, kind = -1, far = 2 * size + 1;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &is_periodic, 0, &comm));
    ring(comm);
    OK(MPI_Comm_dup(comm, &copy));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Topo_test(copy, &kind));
    EXPECT("a duplicate keeps the topology", MPI_CART, kind);
    OK(MPI_Cartdim_get(copy, &n));
    EXPECT("the number of dimensions", 1, n);
    OK(MPI_Cart_get(copy, 1, &dim, &period, &coord));
    EXPECT("the dimension", size, dim);
    EXPECT("whether it is periodic", is_periodic, period);
    EXPECT("the coordinate", rank, coord);
    OK(MPI_Cart_shift(copy, 0, 1, &source, &dest));
    EXPECT("the source", rank > 0 || is_periodic ? (rank + size - 1) % size : MPI_PROC_NULL, source);
    EXPECT("the destination", rank < size - 1 || is_periodic ? (rank + 1) % size : MPI_PROC_NULL, dest);
    OK(MPI_Cart_shift(copy, 0, -far, &source, &dest));
    EXPECT("a far source", is_periodic ? (rank + 1) % size : MPI_PROC_NULL, source);
    EXPECT("a far destination", is_periodic ? (rank + size - 1) % size : MPI_PROC_NULL, dest);
    OK(MPI_Cart_shift(copy, 0, 0, &source, &dest));
    EXPECT("the source at distance 0", rank, source);
    EXPECT("the destination at distance 0", rank, dest);
    coord = -1;
    if (is_periodic) {
        OK(MPI_Cart_rank(copy, &coord, &found));
        EXPECT("the rank at -1", size - 1, found);
    }
    OK(MPI_Comm_free(&copy));
}

/* A grid with balanced dimensions, its parts, and a grid that leaves processes out. */
static void grid(void) {
    MPI_Comm comm, part;
    int dims[3] = {0}, periods[3] = {0, 1, 0}, coords[3], again = -1, n = -1;
    OK(MPI_Dims_create(size, 3, dims));
    OK(MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 1, &comm));
    OK(MPI_Cart_coords(comm, rank_of(comm), 3, coords));
    EXPECT("the coordinates", rank_of(comm), (coords[0] * dims[1] + coords[1]) * dims[2] + coords[2]);
    OK(MPI_Cart_rank(comm, coords, &again));
    EXPECT("the rank at the coordinates", rank_of(comm), again);
    for (int mask = 0; mask < 8; mask++) {
        int remain[3] = {mask & 1, mask & 2, mask & 4}, expected = 1, wanted[3], has[3], its[3], k = 0;
        int part_dims[3], part_periods[3];
        for (int i = 0; i < 3; i++)
            if (remain[i]) {
                expected *= dims[i];
                wanted[k] = dims[i];
                its[k++] = coords[i];
            }
        OK(MPI_Cart_sub(comm, remain, &part));
        EXPECT("the size of a part", expected, size_of(part));
        OK(MPI_Cartdim_get(part, &n));
        EXPECT("the dimensions of a part", k, n);
        OK(MPI_Cart_get(part, 3, part_dims, part_periods, has));
        for (int i = 0; i < k; i++) {
            EXPECT("a dimension of a part", wanted[i], part_dims[i]);
            EXPECT("a coordinate in a part", its[i], has[i]);
        }
        ring(part);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_free(&comm));
    int fewer[2] = {1, size > 1 ? size - 1 : 1}, new_rank = -5;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, fewer, periods, 0, &comm));
    EXPECT("the last process is left out", size > 1 && rank == size - 1, comm == MPI_COMM_NULL);
    if (comm != MPI_COMM_NULL) {
        ring(comm);
        OK(MPI_Comm_free(&comm));
    }
    OK(MPI_Cart_map(MPI_COMM_WORLD, 2, fewer, periods, &new_rank));
    EXPECT("the rank by the map", size > 1 && rank == size - 1 ? MPI_UNDEFINED : rank, new_rank);
}

static void no_dimensions(void) {
    MPI_Comm comm;
    int n = -1, found = -1;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &comm));
    EXPECT("only rank 0 gets one", rank == 0, comm != MPI_COMM_NULL);
    if (comm == MPI_COMM_NULL)
        return;
    OK(MPI_Cartdim_get(comm, &n));
    EXPECT("no dimensions", 0, n);
    OK(MPI_Cart_get(comm, 0, NULL, NULL, NULL));
    OK(MPI_Cart_rank(comm, NULL, &found));
    EXPECT("the only rank", 0, found);
    OK(MPI_Cart_coords(comm, 0, 0, NULL));
    OK(MPI_Comm_free(&comm));
}

int main(int argc, char **argv) {
    int kind = -1;
    MPI_Init(&argc, &argv);
    rank = rank_of(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    OK(MPI_Topo_test(MPI_COMM_WORLD, &kind));
    EXPECT("all processes have no topology", MPI_UNDEFINED, kind);
    line(0);
    line(1);
    grid();
    no_dimensions();
    return finish();
}
