// Programs that wait for what never comes: the argument says how. PE 0 does one thing and the others another.
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long flag;
static long sum, one = 1;

static void *meet(void *team) {
    shmem_team_sync(*(shmem_team_t *) team);
    return NULL;
}

/* Two threads of PE 0 in calls of two teams, against PE 1 in the barrier of all PEs. */
static void threads(int me) {
    shmem_team_t teams[2];
    for (int i = 0; i < 2; i++) {
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &teams[i]);
    }
    if (me != 0) {
        shmem_barrier_all();
        return;
    }
    pthread_t thread;
    if (pthread_create(&thread, NULL, meet, &teams[0])) exit(97);
    meet(&teams[1]);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    if (argc < 2) return 98;
    const char *which = argv[1];
    int provided, level = strcmp(which, "threads") == 0 ? SHMEM_THREAD_MULTIPLE : SHMEM_THREAD_SINGLE;
    shmem_init_thread(level, &provided);
    int me = shmem_my_pe();
    if (strcmp(which, "threads") == 0) {
        threads(me);
    } else if (strcmp(which, "mismatch") == 0) {
        if (me == 0) shmem_barrier_all();
        else shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &one, 1);
    } else if (strcmp(which, "flag") == 0) {
        if (me == 0) shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
        shmem_barrier_all();
    } else if (strcmp(which, "computes") == 0) {
        if (me != 0) {
            puts("computing");
            fflush(stdout);
            for (volatile long i = 0;; i++) continue;
        }
        shmem_barrier_all();
    }
    shmem_finalize();
    return 0;
}
