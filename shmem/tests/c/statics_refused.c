/* Where static data cannot be symmetric, the program is told, and the heap works. The argument says why they
 * are not, and whether they are used nevertheless. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long data;
static char pages[3 << 16];

static void *sleeping(void *argument) {
    for (;;) pause();
    return argument;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int me;
    long *block;
    pthread_t thread;
    if (strcmp(how, "threads") == 0 && pthread_create(&thread, NULL, sleeping, NULL) != 0) return 2;
    if (strcmp(how, "protected") == 0) {
        char *page = (char *) (((unsigned long) pages + 0xffff) & ~0xffffUL);
        if (mprotect(page, 1 << 16, PROT_READ) != 0) return 2;
    }
    shmem_init();
    me = shmem_my_pe();
    block = (long *) shmem_malloc(sizeof *block);
    shmem_long_p(block, 7, (me + 1) % shmem_n_pes());
    shmem_barrier_all();
    if (*block != 7) return 3;
    if (shmem_addr_accessible(&data, 0) != 0) return 4;
    if (shmem_ptr(&data, me) != NULL) return 5;
    if (argc > 2) shmem_long_p(&data, 7, 0);
    shmem_finalize();
    return 0;
}
