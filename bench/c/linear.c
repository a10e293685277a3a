/* A matrix product or a Cholesky factorisation by ScaLAPACK, timed: what `cargo xtask compare linear` runs
 * beside Pelago.
 *
 *     linear matmul|cholesky N BLOCK ROWS COLUMNS REPEATS
 *
 * The matrices are those of Pelago's applications: element (i, j) of matrix m is the word m * 2^56 + i * 2^28
 * + j, mixed by the finaliser of splitmix64, over 2^64; the matrix that is factored is symmetric, with N on its
 * diagonal. They are distributed in square blocks over a grid in row-major order. Prints one JSON object: the
 * seconds of the slowest rank in each repetition after one that is not timed, the sum of |C x| or the logarithm
 * of the determinant, and the core for which OpenBLAS computes.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

void Cblacs_get(int context, int what, int *value);
void Cblacs_gridinit(int *context, const char *order, int rows, int columns);
void Cblacs_gridinfo(int context, int *rows, int *columns, int *row, int *column);
int numroc_(const int *n, const int *block, const int *place, const int *first, const int *parts);
void descinit_(int *descriptor, const int *m, const int *n, const int *row_block, const int *column_block,
               const int *first_row, const int *first_column, const int *context, const int *leading, int *info);
void pdgemm_(const char *a_form, const char *b_form, const int *m, const int *n, const int *k,
             const double *alpha, const double *a, const int *ia, const int *ja, const int *a_descriptor,
             const double *b, const int *ib, const int *jb, const int *b_descriptor, const double *beta,
             double *c, const int *ic, const int *jc, const int *c_descriptor);
void pdpotrf_(const char *triangle, const int *n, double *a, const int *ia, const int *ja, const int *descriptor,
              int *info);
char *openblas_get_corename(void);

static int rank;

static void fail(const char *message)
{
    if (rank == 0)
        fprintf(stderr, "linear: %s\n", message);
    MPI_Finalize();
    exit(1);
}

static double element(uint64_t matrix, uint64_t row, uint64_t column)
{
    uint64_t word = matrix << 56 | row << 28 | column;
    word = (word ^ word >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    word = (word ^ word >> 27) * UINT64_C(0x94D049BB133111EB);
    return (double)(int64_t)(word ^ word >> 31) / 18446744073709551616.0;
}

static int n, block, rows, columns, row, column, own_rows, own_columns;

static int global(int local, int place, int parts)
{
    return (local / block * parts + place) * block + local % block;
}

/* Fills this rank's part of a matrix, or of the symmetric one if `diagonal` is not 0. */
static void fill(double *part, int matrix, double diagonal)
{
    for (int at = 0; at < own_columns; at++)
        for (int to = 0; to < own_rows; to++) {
            int i = global(to, row, rows), j = global(at, column, columns), is_above = diagonal != 0 && i < j;
            double value = is_above ? element(matrix, j, i) : element(matrix, i, j);
            part[(size_t)at * own_rows + to] = diagonal != 0 && i == j ? diagonal : value;
        }
}

/* The sum of |C x|. */
static double absolute_sum(const double *c)
{
    double *own = calloc(n, sizeof *own), *all = calloc(n, sizeof *all), sum = 0;
    if (!own || !all)
        fail("out of memory");
    for (int at = 0; at < own_columns; at++)
        for (int to = 0; to < own_rows; to++)
            own[global(to, row, rows)] +=
                c[(size_t)at * own_rows + to] * element(3, global(at, column, columns), 0);
    MPI_Allreduce(own, all, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++)
        sum += fabs(all[i]);
    free(own);
    free(all);
    return sum;
}

static double log_determinant(const double *factor)
{
    double own = 0, all;
    for (int at = 0; at < own_columns; at++)
        for (int to = 0; to < own_rows; to++)
            if (global(to, row, rows) == global(at, column, columns))
                own += 2 * log(factor[(size_t)at * own_rows + to]);
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv)
{
    int ranks, context, info, zero = 0, one = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 7)
        fail("usage: linear matmul|cholesky N BLOCK ROWS COLUMNS REPEATS");
    int is_product = strcmp(argv[1], "matmul") == 0, repeats = atoi(argv[6]);
    n = atoi(argv[2]);
    block = atoi(argv[3]);
    rows = atoi(argv[4]);
    columns = atoi(argv[5]);
    if (n < 1 || block < 1 || repeats < 1 || rows < 1 || columns < 1 || rows * columns != ranks)
        fail("orders and repeats are numbers from 1, and the grid has all ranks");

    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", rows, columns);
    Cblacs_gridinfo(context, &rows, &columns, &row, &column);
    own_rows = numroc_(&n, &block, &row, &zero, &rows);
    own_columns = numroc_(&n, &block, &column, &zero, &columns);
    int descriptor[9], leading = own_rows > 1 ? own_rows : 1;
    descinit_(descriptor, &n, &n, &block, &block, &zero, &zero, &context, &leading, &info);
    if (info != 0)
        fail("ScaLAPACK refuses the distribution");
    size_t bytes = sizeof(double) * ((size_t)own_rows * own_columns + 8);
    double *a = malloc(bytes), *b = malloc(bytes), *c = calloc(bytes, 1);
    if (!a || !b || !c)
        fail("out of memory");
    fill(a, 1, 0);
    fill(b, 2, 0);

    if (rank == 0)
        printf("{\"seconds\":[");
    for (int repeat = 0; repeat <= repeats; repeat++) {
        double done = 1, keep = 0, slowest;
        if (!is_product)
            fill(c, 1, n);
        MPI_Barrier(MPI_COMM_WORLD);
        double seconds = -MPI_Wtime();
        if (is_product)
            pdgemm_("N", "N", &n, &n, &n, &done, a, &one, &one, descriptor, b, &one, &one, descriptor, &keep, c,
                    &one, &one, descriptor);
        else
            pdpotrf_("L", &n, c, &one, &one, descriptor, &info);
        MPI_Barrier(MPI_COMM_WORLD);
        seconds += MPI_Wtime();
        if (info != 0)
            fail("the matrix is not positive definite");
        MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0 && repeat > 0)
            printf("%s%.9f", repeat > 1 ? "," : "", slowest);
    }
    double checksum = is_product ? absolute_sum(c) : log_determinant(c);
    if (rank == 0)
        printf("],\"checksum\":%.17g,\"core\":\"%s\"}\n", checksum, openblas_get_corename());
    free(a);
    free(b);
    free(c);
    MPI_Finalize();
    return 0;
}
