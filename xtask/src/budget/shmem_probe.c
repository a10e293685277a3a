/* Probes of the OpenSHMEM library, as tracer.rs asks for them: the functions as a program calls them, in a
 * job of one PE. Built by any library's oshcc, so that others can be counted as well. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <shmem.h>
#include <stdio.h>
#include <string.h>

static int *word;
static long *long_word;
static char *target, *source;

static shmem_team_t team;

static volatile long sink;

/* Each probe: the function as the linker has it, so that the count is that of the function itself. */
#define PROBE(NAME, TYPE, CALL)                                                                               \
    static void NAME##_probe(void)                                                                            \
    {                                                                                                         \
        TYPE volatile call = (TYPE)dlsym(RTLD_DEFAULT, #NAME);                                                \
        TYPE function = call;                                                                                 \
        CALL;                                                                                                 \
        __asm__ volatile("int3" ::: "memory");                                                                \
        function = call;                                                                                      \
        CALL;                                                                                                 \
        __asm__ volatile("int3" ::: "memory");                                                                \
    }

typedef void (*p_function)(int *, int, int);
typedef int (*g_function)(const int *, int);
typedef long (*fetch_add_function)(long *, long, int);
typedef void (*put_function)(void *, const void *, size_t, int);
typedef void (*plain_function)(void);
typedef int (*number_function)(void);
typedef int (*broadcast_function)(shmem_team_t, long *, const long *, size_t, int);

PROBE(shmem_int_p, p_function, function(word, 1, 0))
PROBE(shmem_int_g, g_function, sink = function(word, 0))
PROBE(shmem_long_atomic_fetch_add, fetch_add_function, sink = function(long_word, 1, 0))
PROBE(shmem_putmem, put_function, function(target, source, 8, 0))
PROBE(shmem_getmem, put_function, function(target, source, 8, 0))
PROBE(shmem_quiet, plain_function, function())
PROBE(shmem_fence, plain_function, function())
PROBE(shmem_my_pe, number_function, sink = function())
PROBE(shmem_barrier_all, plain_function, function())
PROBE(shmem_long_broadcast, broadcast_function, function(SHMEM_TEAM_WORLD, long_word, long_word + 1, 1, 0))
/* The same function under the name of its twin, on a team that the program has made. */
PROBE(pshmem_long_broadcast, broadcast_function, function(team, long_word, long_word + 1, 1, 0))

#define SAY(NAME) printf("probe %s %p\n", #NAME, dlsym(RTLD_DEFAULT, #NAME))

int main(void)
{
    shmem_init();
    word = shmem_malloc(64);
    long_word = shmem_malloc(64);
    target = shmem_malloc(64);
    source = shmem_malloc(64);
    memset(long_word, 0, 64);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &team);
    SAY(shmem_int_p);
    SAY(shmem_int_g);
    SAY(shmem_long_atomic_fetch_add);
    SAY(shmem_putmem);
    SAY(shmem_getmem);
    SAY(shmem_quiet);
    SAY(shmem_fence);
    SAY(shmem_my_pe);
    SAY(shmem_barrier_all);
    SAY(shmem_long_broadcast);
    SAY(pshmem_long_broadcast);
    fflush(stdout);
    shmem_int_p_probe();
    shmem_int_g_probe();
    shmem_long_atomic_fetch_add_probe();
    shmem_putmem_probe();
    shmem_getmem_probe();
    shmem_quiet_probe();
    shmem_fence_probe();
    shmem_my_pe_probe();
    shmem_barrier_all_probe();
    shmem_long_broadcast_probe();
    pshmem_long_broadcast_probe();
    shmem_finalize();
    return 0;
}
