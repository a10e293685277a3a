/* A program that knows the library by dlopen only, or because it is preloaded: the argument says which. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static long data = 5;

int main(int argc, char **argv) {
    int is_preloaded = argc > 1 && strcmp(argv[1], "preloaded") == 0;
    void *library = is_preloaded ? RTLD_DEFAULT : dlopen("libpelago_shmem.so", RTLD_NOW);
    void (*init)(void) = (void (*)(void)) dlsym(library, "shmem_init");
    int (*my_pe)(void) = (int (*)(void)) dlsym(library, "shmem_my_pe");
    int (*n_pes)(void) = (int (*)(void)) dlsym(library, "shmem_n_pes");
    int (*accessible)(const void *, int) =
        (int (*)(const void *, int)) dlsym(library, "shmem_addr_accessible");
    void (*barrier)(void) = (void (*)(void)) dlsym(library, "shmem_barrier_all");
    void (*put)(long *, long, int) = (void (*)(long *, long, int)) dlsym(library, "shmem_long_p");
    void (*finalize)(void) = (void (*)(void)) dlsym(library, "shmem_finalize");
    if (init == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    init();
    if (accessible(&data, 0) != is_preloaded) return 3;
    if (is_preloaded || argc > 2) {
        put(&data, 100 + my_pe(), (my_pe() + 1) % n_pes());
        barrier();
        if (data != 100 + (my_pe() + n_pes() - 1) % n_pes()) return 4;
    }
    finalize();
    return data == 5 || is_preloaded ? 0 : 5;
}
