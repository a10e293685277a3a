/* Ways in which a program may initialise, finalise and end; the first argument says which. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <shmem.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long flag;

static void *set_later(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "worker");
    usleep(50000);
    shmem_long_p(&flag, 1, shmem_my_pe());
    return NULL;
}

static void *end_the_job(void *unused)
{
    (void)unused;
    usleep(200000);
    shmem_global_exit(7);
    return NULL;
}

/* Whether a child of this process cannot become a PE, and is told so. */
static int is_child_refused(void)
{
    int provided, status = 1;
    const pid_t child = fork();
    if (child == 0) {
        _exit(shmem_init_thread(SHMEM_THREAD_SINGLE, &provided) == 1 ? 0 : 1);
    }
    waitpid(child, &status, 0);
    return status == 0;
}

/* A context that the program does not destroy before its end. */
static shmem_ctx_t made_before = SHMEM_CTX_INVALID;

/* Runs after the exit of the process has finalised. */
static void use_and_finalise(void)
{
    int is_initialized = 1;
    const int next = (shmem_my_pe() + 1) % shmem_n_pes();
    static uint64_t word;
    long got = 3, fetched = 3, values[2] = {1, 2};
    shmem_ctx_t other = SHMEM_CTX_INVALID;
    shmem_barrier_all();
    shmem_sync_all();
    shmem_team_sync(SHMEM_TEAM_WORLD);
    shmem_quiet();
    shmem_fence();
    shmem_query_initialized(&is_initialized);
    shmem_long_p(&flag, 10, next);
    shmem_ctx_long_put(made_before, &flag, values, 1, next);
    shmem_long_iput(&flag, values, 1, 2, 1, next);
    shmem_long_put_signal(&flag, values, 1, &word, 1, SHMEM_SIGNAL_SET, next);
    shmem_signal_add(&word, 1, next);
    shmem_long_get(&got, &flag, 1, next);
    shmem_long_atomic_add(&flag, 1, next);
    fetched = shmem_long_atomic_fetch_inc(&flag, next);
    fetched += shmem_long_atomic_compare_swap(&flag, 9, 11, next);
    shmem_ctx_quiet(made_before);
    shmem_ctx_destroy(made_before);
    if (shmem_ctx_create(0, &other) == 0 || got != 3 || fetched != 0) {
        printf("in an exit handler: got %ld, fetched %ld\n", got, fetched);
        fflush(stdout);
    }
    if (is_initialized || shmem_n_pes() < 1 || flag != 9 || word != 0) {
        printf("in an exit handler: initialised %d, flag %ld\n", is_initialized, flag);
        fflush(stdout);
    }
    shmem_finalize();
}

static pid_t first;

/* Waits until the launcher knows that PE 0 has ended the job, and gets its signal. */
static void outlive_first(void)
{
    while (first != getpid() && kill(first, 0) == 0) {
        usleep(1000);
    }
    if (first != getpid()) {
        raise(SIGTERM);
        puts("saved");
    }
}

/* All PEs end the job, and have output that is not written yet. */
static void all_end_the_job(void)
{
    static pid_t mine;
    shmem_init();
    mine = getpid();
    shmem_barrier_all();
    shmem_getmem(&first, &mine, sizeof first, 0);
    printf("PE %d\n", shmem_my_pe());
    atexit(outlive_first);
    shmem_barrier_all();
    shmem_global_exit(6);
}

static void say_saved(void)
{
    puts("saved");
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    int provided;
    if (strcmp(how, "atexit") == 0) {
        atexit(shmem_finalize);
    }
    if (strcmp(how, "global-handler") == 0) {
        atexit(say_saved);
        shmem_init();
        if (shmem_my_pe() == 0) {
            shmem_global_exit(5);
        }
        shmem_barrier_all();
        pause();
    }
    if (strcmp(how, "handler") == 0) {
        atexit(use_and_finalise);
        shmem_init();
        if (shmem_ctx_create(0, &made_before) != 0) {
            return 1;
        }
        shmem_long_p(&flag, 9, (shmem_my_pe() + 1) % shmem_n_pes());
        return 0;
    }
    if (strcmp(how, "global-all") == 0) {
        all_end_the_job();
    }
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    if (strcmp(how, "return") == 0 || strcmp(how, "atexit") == 0) {
        return 0;
    }
    if (strcmp(how, "_exit") == 0) {
        shmem_finalize();
        _exit(0);
    }
    if (strcmp(how, "_exit-3") == 0) {
        shmem_finalize();
        _exit(3);
    }
    if (strcmp(how, "counted") == 0) {
        int is_initialized;
        shmem_init();
        shmem_finalize();
        shmem_query_initialized(&is_initialized);
        shmem_barrier_all();
        shmem_finalize();
        if (!is_initialized) {
            return 1;
        }
        shmem_query_initialized(&is_initialized);
        return is_initialized;
    }
    if (strcmp(how, "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, set_later, NULL);
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
        pthread_join(thread, NULL);
        shmem_finalize();
        return 0;
    }
    if (strcmp(how, "child") == 0) {
        int is_refused = is_child_refused();
        shmem_finalize();
        /* The process is in its job still, and a child of it finds what it has of that. */
        is_refused &= is_child_refused();
        return !is_refused;
    }
    /* A PE waits in finalize for one that never comes; a thread of it ends the job all the same. */
    if (shmem_my_pe() == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, end_the_job, NULL);
        shmem_finalize();
    }
    for (;;) {
        pause();
    }
}
