/* A token goes round the ring of processes by messages.
 *
 * Build: mpicc -O2 ring.c -o ring
 * Run:   mpiexec -n 4 ./ring
 * Prints:
 *   the token has passed 4 processes
 */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int me, n, token = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);

    if (me > 0)
        MPI_Recv(&token, 1, MPI_INT, me - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    token++;
    if (n > 1)
        MPI_Send(&token, 1, MPI_INT, (me + 1) % n, 0, MPI_COMM_WORLD);
    if (me == 0) {
        if (n > 1)
            MPI_Recv(&token, 1, MPI_INT, n - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("the token has passed %d processes\n", token);
    }
    MPI_Finalize();
    return 0;
}
