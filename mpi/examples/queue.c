/* A work queue in a window: the next task is a word of process 0, and every process takes numbers from it by
 * an atomic operation.
 *
 * Build: mpicc -O2 queue.c -o queue
 * Run:   mpiexec -n 4 ./queue
 * Prints:
 *   200 tasks have found 17984 primes below 200000
 */
#include <mpi.h>
#include <stdio.h>

enum { TASKS = 200, NUMBERS = 1000 };

static int is_prime(long x)
{
    for (long d = 2; d * d <= x; d++)
        if (x % d == 0)
            return 0;
    return x > 1;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int me;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);

    MPI_Win win;
    long *next;
    MPI_Win_allocate(sizeof *next, sizeof *next, MPI_INFO_NULL, MPI_COMM_WORLD, &next, &win);
    MPI_Win_lock_all(0, win);
    *next = 0;
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);

    long counts[2] = { 0, 0 }, totals[2]; /* finished tasks, primes */
    const long one = 1;
    for (;;) {
        long task;
        MPI_Fetch_and_op(&one, &task, MPI_LONG, 0, 0, MPI_SUM, win);
        MPI_Win_flush(0, win);
        if (task >= TASKS)
            break;
        for (long x = task * NUMBERS; x < (task + 1) * NUMBERS; x++)
            counts[1] += is_prime(x);
        counts[0]++;
    }
    MPI_Win_unlock_all(win);
    MPI_Reduce(counts, totals, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (me == 0)
        printf("%ld tasks have found %ld primes below %d\n", totals[0], totals[1], TASKS * NUMBERS);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
