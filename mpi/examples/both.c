/* MPI and OpenSHMEM in one program: memory of shmem_malloc is a buffer of MPI, and ranks are numbers of PEs.
 *
 * Build: mpicc -O2 both.c -lpelago_shmem -o both
 * Run:   mpiexec -n 4 ./both
 * Prints:
 *   the sum is 6, and PE 0 has got 10 from its left neighbour
 */
#include <mpi.h>
#include <shmem.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    long *words = shmem_calloc(2, sizeof *words);

    words[0] = me;
    MPI_Allreduce(MPI_IN_PLACE, &words[0], 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    shmem_p(&words[1], 10L, (me + 1) % n);
    shmem_barrier_all();
    if (me == 0)
        printf("the sum is %ld, and PE 0 has got %ld from its left neighbour\n", words[0], words[1]);

    shmem_free(words);
    shmem_finalize();
    MPI_Finalize();
    return 0;
}
