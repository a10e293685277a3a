/* One forward 3D FFT by FFTW-MPI, complex double, timed: what `cargo xtask compare fft` runs beside Pelago.
 *
 *     fft NX NY NZ REPEATS WISDOM
 *
 * The field is the initial one of NAS FT (x fastest, then y, then z; random numbers by x' = 5^13 x mod 2^46
 * from 314159265). The transform is planned with FFTW_MEASURE, out of place and free to destroy its input,
 * and leaves the spectrum transposed (FFTW_MPI_TRANSPOSED_OUT), so that both sides move the data across the
 * ranks once. Plans are kept in the file WISDOM. Prints one JSON object: the seconds of the slowest rank in
 * each repetition, and the mean of the 1024 modes (j mod NX, 3j mod NY, 5j mod NZ), j from 1.
 */
#include <complex.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <fftw3-mpi.h>

static const uint64_t multiplier = 1220703125, seed = 314159265, mask = (UINT64_C(1) << 46) - 1;

static uint64_t state_after(uint64_t count)
{
    uint64_t state = seed;
    for (uint64_t square = multiplier; count > 0; count >>= 1, square = square * square & mask)
        if (count & 1)
            state = state * square & mask;
    return state;
}

static double next(uint64_t *state)
{
    *state = *state * multiplier & mask;
    return (double)*state / (double)(UINT64_C(1) << 46);
}

static void fill(fftw_complex *field, ptrdiff_t first, ptrdiff_t count)
{
    uint64_t state = state_after(2 * (uint64_t)first);
    for (ptrdiff_t i = 0; i < count; i++) {
        double real = next(&state), imaginary = next(&state);
        field[i] = real + I * imaginary;
    }
}

static void fail(int rank, const char *message)
{
    if (rank == 0)
        fprintf(stderr, "fft: %s\n", message);
    MPI_Finalize();
    exit(1);
}

int main(int argc, char **argv)
{
    int rank, wise = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fftw_mpi_init();
    if (argc != 6)
        fail(rank, "usage: fft NX NY NZ REPEATS WISDOM");
    ptrdiff_t nx = atol(argv[1]), ny = atol(argv[2]), nz = atol(argv[3]);
    int repeats = atoi(argv[4]);
    const char *wisdom = argv[5];
    if (nx < 1 || ny < 1 || nz < 1 || repeats < 1)
        fail(rank, "lengths and repeats are numbers from 1");

    ptrdiff_t planes, first_plane, rows, first_row;
    ptrdiff_t room = fftw_mpi_local_size_3d_transposed(nz, ny, nx, MPI_COMM_WORLD, &planes, &first_plane, &rows,
                                                       &first_row);
    fftw_complex *field = fftw_alloc_complex(room), *spectrum = fftw_alloc_complex(room);
    if (!field || !spectrum)
        fail(rank, "out of memory");
    if (rank == 0)
        wise = fftw_import_wisdom_from_filename(wisdom);
    fftw_mpi_broadcast_wisdom(MPI_COMM_WORLD);
    fftw_plan plan = fftw_mpi_plan_dft_3d(nz, ny, nx, field, spectrum, MPI_COMM_WORLD, FFTW_FORWARD,
                                          FFTW_MEASURE | FFTW_DESTROY_INPUT | FFTW_MPI_TRANSPOSED_OUT);
    if (!plan)
        fail(rank, "FFTW makes no plan for this grid");
    fftw_mpi_gather_wisdom(MPI_COMM_WORLD);
    if (rank == 0 && !wise && !fftw_export_wisdom_to_filename(wisdom))
        fprintf(stderr, "fft: cannot write %s, the next run plans again\n", wisdom);

    if (rank == 0)
        printf("{\"seconds\":[");
    for (int repeat = 0; repeat <= repeats; repeat++) {
        fill(field, first_plane * ny * nx, planes * ny * nx);
        MPI_Barrier(MPI_COMM_WORLD);
        double seconds = -MPI_Wtime(), slowest;
        fftw_execute(plan);
        seconds += MPI_Wtime();
        MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0 && repeat > 0)
            printf("%s%.9f", repeat > 1 ? "," : "", slowest);
    }

    double own[2] = {0, 0}, sum[2];
    for (ptrdiff_t j = 1; j <= 1024; j++) {
        ptrdiff_t x = j % nx, row = 3 * j % ny - first_row, z = 5 * j % nz;
        if (row >= 0 && row < rows) {
            fftw_complex mode = spectrum[(row * nz + z) * nx + x];
            own[0] += creal(mode) / 1024;
            own[1] += cimag(mode) / 1024;
        }
    }
    MPI_Reduce(own, sum, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("],\"checksum\":[%.17g,%.17g]}\n", sum[0], sum[1]);
    fftw_destroy_plan(plan);
    fftw_free(field);
    fftw_free(spectrum);
    MPI_Finalize();
    return 0;
}
