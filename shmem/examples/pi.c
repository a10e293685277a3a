/* The area below a quarter of the unit circle: each PE adds up its share of the intervals, and a reduction
 * adds the sums of all PEs. The variables of a reduction are symmetric.
 *
 * Build: oshcc -O2 pi.c -o pi
 * Run:   oshrun -n 4 ./pi
 * Prints:
 *   pi is 3.14159265
 */
#include <shmem.h>
#include <stdio.h>

static double mine, all;

int main(void)
{
    const int intervals = 1000000;
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();

    for (int i = me; i < intervals; i += n) {
        double x = (i + 0.5) / intervals;
        mine += 4.0 / (1.0 + x * x) / intervals;
    }
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &all, &mine, 1);
    if (me == 0)
        printf("pi is %.8f\n", all);
    shmem_finalize();
    return 0;
}
