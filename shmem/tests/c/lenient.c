/* What the standard leaves undefined and programs rely on; the first argument says which. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static long sync_words[SHMEM_REDUCE_SYNC_SIZE];
static long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static long source, sum;
static uint64_t addresses[16];
static char many[40 << 20];

/* Where the heaps of a job are, if nothing else is there. */
static void take_the_home_of_heaps(void)
{
    void *place = mmap((void *)0x520000000000, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place != (void *)0x520000000000) {
        printf("the range was taken already\n");
    }
}

/* PE 0 says how many PEs have a block of the heap at its address. */
static void compare_addresses(void)
{
    char *block = shmem_malloc(1 << 20);
    int equal = 0;
    shmem_uint64_p(&addresses[shmem_my_pe()], (uint64_t)(uintptr_t)block, 0);
    shmem_barrier_all();
    for (int pe = 0; pe < shmem_n_pes(); ++pe) {
        equal += addresses[pe] == addresses[0];
    }
    if (shmem_my_pe() == 0) {
        printf("%d equal\n", equal);
    }
    /* The blocks are reached all the same. */
    shmem_char_p(block, (char)(shmem_my_pe() + 1), (shmem_my_pe() + 1) % shmem_n_pes());
    shmem_barrier_all();
    if (*block != (char)((shmem_my_pe() + shmem_n_pes() - 1) % shmem_n_pes() + 1)) {
        printf("PE %d has %d\n", shmem_my_pe(), *block);
    }
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    const char *rank = count > 2 ? arguments[2] : "";
    const char *me = getenv("PMI_RANK");
    if (strcmp(how, "addresses") == 0 && me != NULL && strcmp(rank, me) == 0) {
        take_the_home_of_heaps();
    }
    shmem_init();
    if (strcmp(how, "addresses") == 0) {
        compare_addresses();
    }
    if (strcmp(how, "default heap") == 0) {
        shmem_char_p(&many[shmem_my_pe()], 1, 0);
        char *block = shmem_malloc((size_t)512 << 20);
        printf("%s\n", block == NULL ? "no" : "yes");
    }
    if (strcmp(how, "align") == 0) {
        for (size_t alignment = 0; alignment < 100; alignment = 2 * alignment + 3) {
            char *block = shmem_align(alignment, 64);
            /* Above 8, the next power of two is used. */
            size_t used = 16;
            while (used < alignment) used *= 2;
            if (alignment < 8 ? block != NULL : block == NULL || (size_t)block % used != 0) {
                printf("alignment %zu\n", alignment);
            }
        }
        if (shmem_align(64, 64) == NULL || shmem_malloc(64) == NULL) {
            printf("nothing can be allocated any more\n");
        }
    }
    if (strcmp(how, "outside") == 0) {
        source = shmem_my_pe() + 1;
        for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; ++i) {
            sync_words[i] = SHMEM_SYNC_VALUE;
        }
        shmem_barrier_all();
        for (int round = 0; round < 3; ++round) {
            shmem_long_sum_to_all(&sum, &source, 1, 0, 0, shmem_n_pes() - 1, work, sync_words);
            shmem_barrier_all();
        }
        const int members = shmem_n_pes() - 1;
        const long expected = shmem_my_pe() < members ? (long)members * (members + 1) / 2 : 0;
        if (sum != expected) {
            printf("PE %d has %ld\n", shmem_my_pe(), sum);
        }
    }
    shmem_finalize();
    if (strcmp(how, "finalize") == 0) {
        shmem_finalize();
        shmem_finalize();
    }
    return 0;
}
