/* Teams: the PEs with even and with odd numbers are two teams, each of which adds up numbers.
 *
 * Build: oshcc -O2 teams.c -o teams
 * Run:   oshrun -n 4 ./teams
 * Prints:
 *   the sum of the even PEs is 2, that of the odd PEs is 4
 */
#include <shmem.h>
#include <stdio.h>

static long number, sum;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    if (n < 2)
        shmem_global_exit(2);

    shmem_team_t even, odd; /* all PEs make both calls; the others get SHMEM_TEAM_INVALID */
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, NULL, 0, &even);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, n / 2, NULL, 0, &odd);
    shmem_team_t mine = me % 2 == 0 ? even : odd;

    number = me;
    shmem_sum_reduce(mine, &sum, &number, 1);
    shmem_barrier_all();
    if (me == 0)
        printf("the sum of the even PEs is %ld, that of the odd PEs is %ld\n", sum, shmem_g(&sum, 1));
    shmem_team_destroy(mine);
    shmem_finalize();
    return 0;
}
