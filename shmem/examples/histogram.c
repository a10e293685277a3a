/* A histogram whose bins are distributed over the PEs: an atomic addition for each value.
 *
 * Build: oshcc -O2 histogram.c -o histogram
 * Run:   oshrun -n 4 ./histogram
 * Prints:
 *   40000 values in 64 bins, the smallest bin has 555, the largest 671
 */
#include <shmem.h>
#include <stdio.h>

enum { BINS = 64, VALUES = 10000 };

/* The value at a place of a sequence that looks random. */
static uint64_t value(uint64_t place)
{
    uint64_t x = (place + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    return (x ^ (x >> 27)) * 0x94d049bb133111ebu >> 32;
}

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    long *bins = shmem_calloc(BINS, sizeof *bins); /* bin b is bins[b / n] of PE b % n */

    for (int i = 0; i < VALUES; i++) {
        int bin = value((uint64_t)me * VALUES + i) % BINS;
        shmem_atomic_inc(&bins[bin / n], bin % n);
    }
    shmem_barrier_all(); /* all additions of all PEs are complete */

    if (me == 0) {
        long sum = 0, least = 0, most = 0;
        for (int bin = 0; bin < BINS; bin++) {
            long count = shmem_g(&bins[bin / n], bin % n);
            sum += count;
            least = bin == 0 || count < least ? count : least;
            most = count > most ? count : most;
        }
        printf("%ld values in %d bins, the smallest bin has %ld, the largest %ld\n", sum, BINS, least, most);
    }
    shmem_free(bins);
    shmem_finalize();
    return 0;
}
