/* A large array that is hardly used takes hardly any memory. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <shmem.h>
#include <stdio.h>
#include <string.h>

enum { BYTES = 1 << 30 };
static char large[BYTES];

static long kib(const char *path, const char *name) {
    char line[256];
    long value = -1;
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0) sscanf(line + strlen(name), "%ld", &value);
    if (file != NULL) fclose(file);
    return value;
}

int main(void) {
    long before = kib("/proc/self/status", "VmRSS:"), after;
    int me, n_pes;
    large[BYTES / 2] = 9;
    shmem_init();
    me = shmem_my_pe();
    n_pes = shmem_n_pes();
    after = kib("/proc/self/status", "VmRSS:");
    if (large[BYTES / 2] != 9) return 2;
    if (before <= 0 || after - before > 64 << 10) {
        fprintf(stderr, "resident: %ld KiB before, %ld KiB after the start\n", before, after);
        return 3;
    }
    shmem_char_p(&large[BYTES - 1 - me], (char) (me + 1), (me + 1) % n_pes);
    shmem_barrier_all();
    if (large[BYTES - 1 - (me + n_pes - 1) % n_pes] != (me + n_pes - 1) % n_pes + 1) return 4;
    if (kib("/proc/self/status", "VmRSS:") - before > 64 << 10) return 5;
    shmem_finalize();
    return 0;
}
