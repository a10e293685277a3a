// Jacobi iterations in C++: halo exchange by puts with signals, convergence by a reduction.
//
// Build: oshc++ -O2 jacobi.cpp -o jacobi
// Run:   oshrun -n 4 ./jacobi
// Prints:
//   converged after 1037 steps
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <shmem.h>
#include <vector>

constexpr int N = 48, WIDTH = N + 2;

static double halo[2][WIDTH];    // a row from above, a row from below
static uint64_t arrived[2];      // the step of these rows
static double change;
static double largest[2];        // in turn, as others may still read theirs

int main()
{
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes(), rows = N / n;
    if (rows * n != N)
        shmem_global_exit(2);

    // Rows 1 to `rows` belong to this PE; the upper edge of the grid is hot.
    std::vector<double> old((rows + 2) * WIDTH);
    if (me == 0)
        std::fill_n(old.begin(), WIDTH, 1.0);
    auto next = old;

    uint64_t step = 0;
    do {
        step++;
        if (me > 0)
            shmem_putmem_signal(halo[1], &old[WIDTH], sizeof halo[1], &arrived[1], step, SHMEM_SIGNAL_SET, me - 1);
        if (me + 1 < n)
            shmem_putmem_signal(halo[0], &old[rows * WIDTH], sizeof halo[0], &arrived[0], step, SHMEM_SIGNAL_SET, me + 1);
        if (me > 0) {
            shmem_signal_wait_until(&arrived[0], SHMEM_CMP_GE, step);
            std::copy_n(halo[0], WIDTH, old.begin());
        }
        if (me + 1 < n) {
            shmem_signal_wait_until(&arrived[1], SHMEM_CMP_GE, step);
            std::copy_n(halo[1], WIDTH, old.begin() + (rows + 1) * WIDTH);
        }
        change = 0.0;
        for (int y = 1; y <= rows; y++)
            for (int at = y * WIDTH + 1; at <= y * WIDTH + N; at++) {
                next[at] = 0.25 * (old[at - 1] + old[at + 1] + old[at - WIDTH] + old[at + WIDTH]);
                change = std::max(change, std::fabs(next[at] - old[at]));
            }
        std::swap(old, next);
        shmem_double_max_reduce(SHMEM_TEAM_WORLD, &largest[step % 2], &change, 1);
    } while (largest[step % 2] >= 1e-4);
    if (me == 0)
        std::printf("converged after %lu steps\n", (unsigned long)step);
    shmem_finalize();
}
