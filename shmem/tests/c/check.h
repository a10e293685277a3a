/* What the C programs under test share: checks that end the job with words, and objects in both kinds of
 * symmetric memory. */

#ifndef CHECK_H
#define CHECK_H

#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) CHECK_WITH(condition, "")

#define CHECK_WITH(condition, what) \
    do { \
        if (!(condition)) not_so(__FILE__, __LINE__, #condition, what); \
    } while (0)

/* Ends the job, or a process that is no PE: before initialisation, after finalisation, or a child. */
static inline void not_so(const char *file, int line, const char *condition, const char *what) {
    int is_initialized = 0;
    shmem_query_initialized(&is_initialized);
    if (!is_initialized) {
        fprintf(stderr, "%s:%d: not so: %s %s\n", file, line, condition, what);
        exit(99);
    }
    fprintf(stderr, "%s:%d: PE %d: not so: %s %s\n", file, line, shmem_my_pe(), condition, what);
    shmem_global_exit(99);
}

/* The node of a PE of `n`: PELAGO_SIM_NODES asks for nodes of PEs that follow one another. */
static inline int node_of(int pe, int n) {
    const char *nodes = getenv("PELAGO_SIM_NODES");
    int count = nodes ? atoi(nodes) : 1;
    return pe * (count < n ? count : n) / n;
}

/* Whether this PE has another one's memory mapped, of `n`. */
static inline int is_mapped(int pe, int n) {
    int me = shmem_my_pe();
    return pe == me || (getenv("PELAGO_ROUTE") == NULL && node_of(pe, n) == node_of(me, n));
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Runs a test on an object of the heap, and on one of the static data. */
static inline void on_both(void (*test)(void *object), void *of_statics, size_t bytes) {
    void *of_heap = shmem_calloc(1, bytes);
    CHECK(of_heap != NULL);
    test(of_heap);
    shmem_barrier_all();
    shmem_free(of_heap);
    CHECK(shmem_addr_accessible(of_statics, shmem_my_pe()));
    test(of_statics);
    shmem_barrier_all();
}

#endif
