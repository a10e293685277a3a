/* A token goes round the ring of PEs, by a signal to the next one. A global variable is symmetric.
 *
 * Build: oshcc -O2 ring.c -o ring
 * Run:   oshrun -n 4 ./ring
 * Prints:
 *   the token has passed 4 PEs
 */
#include <shmem.h>
#include <stdio.h>

static uint64_t token; /* every PE has one */

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    int next = (me + 1) % n;

    if (me == 0)
        shmem_signal_set(&token, 1, next);
    shmem_signal_wait_until(&token, SHMEM_CMP_NE, 0);
    if (me == 0)
        printf("the token has passed %lu PEs\n", (unsigned long)token);
    else
        shmem_signal_set(&token, token + 1, next);
    shmem_finalize();
    return 0;
}
