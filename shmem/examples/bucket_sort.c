/* A bucket sort: PE p sorts the keys of bucket p. Each PE reserves room in the bucket of another PE by an
 * atomic addition, and puts its keys there.
 *
 * Build: oshcc -O2 bucket_sort.c -o bucket_sort
 * Run:   oshrun -n 4 ./bucket_sort
 * Prints:
 *   40000 keys are sorted
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEYS = 10000, LIMIT = 1 << 20 }; /* keys of each PE; they are smaller than LIMIT */

static long used;          /* keys in the bucket of this PE */
static long wrong, sorted; /* keys in a wrong place, of this PE and of all */

static int ascending(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    int *bucket = shmem_malloc((size_t)KEYS * n * sizeof *bucket); /* room for all keys */

    /* The keys of this PE, in the order of their buckets; first[p] is where those of PE p begin. */
    int *keys = malloc(KEYS * sizeof *keys);
    long *first = calloc(n + 1, sizeof *first);
    for (int i = 0; i < KEYS; i++)
        keys[i] = (int)(((uint64_t)i * n + me + 1) * 0x9e3779b97f4a7c15u >> 44);
    qsort(keys, KEYS, sizeof *keys, ascending);
    for (int i = 0; i < KEYS; i++)
        first[(int64_t)keys[i] * n / LIMIT + 1]++;
    for (int p = 0; p < n; p++)
        first[p + 1] += first[p];

    for (int step = 0; step < n; step++) {
        int p = (me + step) % n; /* not all PEs begin with PE 0 */
        long count = first[p + 1] - first[p];
        long place = shmem_atomic_fetch_add(&used, count, p);
        shmem_put(&bucket[place], &keys[first[p]], count, p);
    }
    shmem_barrier_all(); /* all keys have arrived */

    qsort(bucket, used, sizeof *bucket, ascending);
    for (long i = 0; i < used; i++)
        wrong += (int64_t)bucket[i] * n / LIMIT != me || (i > 0 && bucket[i - 1] > bucket[i]);
    used -= wrong;
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &sorted, &used, 1);
    if (me == 0)
        printf("%ld keys are sorted\n", sorted);
    shmem_finalize();
    return 0;
}
