/* Probes of the OpenSHMEM library, as tracer.rs asks for them: the functions as a program calls them. PE 0
 * calls them for a PE of its node, in a job of one PE itself; over a net that PE is far. Built by any
 * library's oshcc, so that others can be counted as well. */

#define _GNU_SOURCE
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probe.h"

static int *word;
static long *long_word;
static char *target, *source;
static int pe;
/* The process of that PE, if it is far. */
static long *process;

static shmem_team_t team;

static volatile long sink;

typedef void (*p_function)(int *, int, int);
typedef int (*g_function)(const int *, int);
typedef long (*fetch_add_function)(long *, long, int);
typedef void (*put_function)(void *, const void *, size_t, int);
typedef void (*plain_function)(void);
typedef int (*number_function)(void);
typedef int (*broadcast_function)(shmem_team_t, long *, const long *, size_t, int);

PROBE(shmem_int_p, p_function, function(word, 1, pe))
PROBE(shmem_int_g, g_function, sink = function(word, pe))
PROBE(shmem_long_atomic_fetch_add, fetch_add_function, sink = function(long_word, 1, pe))
PROBE(shmem_putmem, put_function, function(target, source, 8, pe))
PROBE(shmem_getmem, put_function, function(target, source, 8, pe))
PROBE(shmem_quiet, plain_function, function())
PROBE(shmem_fence, plain_function, function())
PROBE(shmem_my_pe, number_function, sink = function())
PROBE(shmem_barrier_all, plain_function, function())
PROBE(shmem_long_broadcast, broadcast_function, function(SHMEM_TEAM_WORLD, long_word, long_word + 1, 1, 0))
/* The same function under the name of its twin, on a team that the program has made. */
PROBE(pshmem_long_broadcast, broadcast_function, function(team, long_word, long_word + 1, 1, 0))

/* Whether a tracer has attached itself. */
static int is_traced(void)
{
    char line[256];
    int tracer = 0;
    FILE *status = fopen("/proc/self/status", "r");
    if (!status)
        return 0;
    while (fgets(line, sizeof line, status))
        sscanf(line, "TracerPid: %d", &tracer);
    fclose(status);
    return tracer != 0;
}

/* In a job of several PEs: leaves the file for the tracer in its place, and waits for it. */
static void wait_for_tracer(const char *unfinished, const char *path)
{
    if (rename(unfinished, path) != 0)
        exit(3);
    for (int tries = 0; !is_traced(); tries++) {
        if (tries > 60 * 1000)
            exit(4);
        usleep(1000);
    }
}

/* Another PE of this node, if there is one that is mapped; else this one. With BUDGET_FAR the next PE, which is
 * not mapped. */
static int neighbour(void)
{
    if (getenv("BUDGET_FAR"))
        return (shmem_my_pe() + 1) % shmem_n_pes();
    for (int other = 0; other < shmem_n_pes(); other++)
        if (other != shmem_my_pe() && shmem_ptr(word, other))
            return other;
    if (shmem_n_pes() > 1)
        exit(5);
    return shmem_my_pe();
}

static void say(FILE *out, int with_collectives)
{
    SAY(shmem_int_p);
    SAY(shmem_int_g);
    SAY(shmem_long_atomic_fetch_add);
    SAY(shmem_putmem);
    SAY(shmem_getmem);
    SAY(shmem_quiet);
    SAY(shmem_fence);
    SAY(shmem_my_pe);
    if (with_collectives) {
        SAY(shmem_barrier_all);
        SAY(shmem_long_broadcast);
        SAY(pshmem_long_broadcast);
    }
    fflush(out);
}

static void probe(int with_collectives)
{
    /* Over TCP the first put connects, the next four are sent, and another one begins a batch, to which the counted
     * one is added. The far PE is stopped, because a put that it acknowledges makes place for one more to be sent. */
    long far = getenv("BUDGET_FAR") && pe != shmem_my_pe() ? shmem_long_g(process, pe) : 0;
    shmem_int_p(word, 1, pe);
    shmem_quiet();
    if (far && kill(far, SIGSTOP) != 0)
        exit(6);
    for (int i = 0; i < 5; i++)
        shmem_int_p(word, 1, pe);
    shmem_int_p_probe();
    if (far && kill(far, SIGCONT) != 0)
        exit(7);
    /* What is got is alone: nothing else is under way. */
    shmem_quiet();
    shmem_int_g_probe();
    shmem_long_atomic_fetch_add_probe();
    shmem_putmem_probe();
    shmem_quiet();
    shmem_getmem_probe();
    shmem_quiet_probe();
    shmem_fence_probe();
    shmem_my_pe_probe();
    if (with_collectives) {
        shmem_barrier_all_probe();
        shmem_long_broadcast_probe();
        pshmem_long_broadcast_probe();
    }
}

int main(void)
{
    const char *path = getenv("BUDGET_FILE");
    const char *names = getenv("BUDGET_COLLECTIVES");
    int with_collectives = !names || strcmp(names, "no") != 0;
    shmem_init();
    word = shmem_malloc(64);
    long_word = shmem_malloc(64);
    target = shmem_malloc(64);
    source = shmem_malloc(64);
    memset(long_word, 0, 64);
    process = shmem_malloc(sizeof *process);
    *process = getpid();
    shmem_barrier_all();
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &team);
    if (shmem_my_pe() == 0)
        pe = neighbour();
    if (shmem_my_pe() == 0 && path) {
        char unfinished[4096];
        snprintf(unfinished, sizeof unfinished, "%s.new", path);
        FILE *out = fopen(unfinished, "w");
        if (!out)
            exit(2);
        fprintf(out, "process %d\n", (int)getpid());
        say(out, with_collectives);
        fclose(out);
        shmem_quiet();
        wait_for_tracer(unfinished, path);
        probe(with_collectives);
    } else if (shmem_my_pe() == 0) {
        say(stdout, with_collectives);
        probe(with_collectives);
    }
    shmem_finalize();
    return 0;
}
