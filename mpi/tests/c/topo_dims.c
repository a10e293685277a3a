/* Balanced dimensions: products, order, fixed dimensions, errors. */
#include "comm_check.h"

static void dims(int nodes, int n, const int *given, const int *expected) {
    int found[8];
    memcpy(found, given, n * sizeof *found);
    OK(MPI_Dims_create(nodes, n, found));
    for (int i = 0; i < n; i++) {
        if (found[i] != expected[i])
            printf("%d processes, dimension %d:\n", nodes, i);
        EXPECT("a dimension", expected[i], found[i]);
    }
}

#define DIMS(nodes, n, ...) dims(nodes, n, (int[]){__VA_ARGS__}, (int[]){__VA_ARGS__} + n)

/* All numbers of processes: the product is right, and dimensions do not increase. */
static void products(void) {
    for (int nodes = 1; nodes <= 1000; nodes++)
        for (int n = 1; n <= 6; n++) {
            int found[6] = {0}, product = 1;
            OK(MPI_Dims_create(nodes, n, found));
            for (int i = 0; i < n; i++) {
                product *= found[i];
                EXPECT("the order does not increase", 1, i == 0 || found[i] <= found[i - 1]);
            }
            EXPECT("the product", nodes, product);
        }
}

int main(int argc, char **argv) {
    int bad[2];
    MPI_Init(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    DIMS(6, 2, 0, 0, 3, 2);
    DIMS(7, 2, 0, 0, 7, 1);
    DIMS(6, 3, 0, 3, 0, 2, 3, 1);
    DIMS(12, 3, 0, 0, 0, 3, 2, 2);
    DIMS(64, 3, 0, 0, 0, 4, 4, 4);
    DIMS(16, 4, 0, 0, 0, 0, 2, 2, 2, 2);
    DIMS(36, 2, 0, 0, 6, 6);
    DIMS(30, 3, 0, 0, 0, 5, 3, 2);
    DIMS(144, 2, 0, 0, 12, 12);
    DIMS(24, 3, 0, 2, 0, 4, 2, 3);
    DIMS(24, 2, 4, 6, 4, 6);
    DIMS(2310, 4, 0, 0, 0, 0, 11, 7, 6, 5);
    DIMS(1 << 30, 3, 0, 0, 0, 1024, 1024, 1024);
    DIMS(1, 2, 0, 0, 1, 1);
    OK(MPI_Dims_create(4, 0, NULL));
    products();

    bad[0] = 0, bad[1] = -1;
    FAILS(MPI_ERR_DIMS, MPI_Dims_create(4, 2, bad));
    bad[0] = 0, bad[1] = 3;
    FAILS(MPI_ERR_DIMS, MPI_Dims_create(4, 2, bad));
    bad[0] = 2, bad[1] = 3;
    FAILS(MPI_ERR_DIMS, MPI_Dims_create(12, 2, bad));
    bad[0] = bad[1] = 0;
    FAILS(MPI_ERR_DIMS, MPI_Dims_create(4, -1, bad));
    FAILS(MPI_ERR_DIMS, MPI_Dims_create(0, 2, bad));
    FAILS(MPI_ERR_ARG, MPI_Dims_create(4, 2, NULL));
    return finish();
}
