/* Children of fork have static data of their own; those of system and popen end as usual. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long data = 1;
static volatile long zeros[100000];
/* What handlers of the program do: they must see, and leave, the data of their own process. */
static volatile int is_held, parents, children;

static void hold(void) { is_held = 1; }
static void in_parent(void) { is_held = 0, parents++; }
static void in_child(void) { is_held = 0, children++; }

__attribute__((constructor)) static void before_main(void) { pthread_atfork(hold, in_parent, in_child); }

static int status_of(pid_t child) {
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The child waits until the parent, or a peer, has changed its data; neither sees the other's. */
static void check_child(int peer) {
    int go[2], ready[2], n = children;
    char byte = 0;
    pid_t child;
    CHECK(pipe(go) == 0 && pipe(ready) == 0);
    data = 10;
    zeros[7] = 20;
    zeros[8] = 0;
    if (peer >= 0) shmem_barrier_all();
    child = fork();
    CHECK(child >= 0);
    /* Whoever ends early ends the wait of the other. */
    close(child == 0 ? ready[0] : ready[1]), close(child == 0 ? go[1] : go[0]);
    if (child == 0) {
        CHECK(data == 10 && zeros[7] == 20 && !is_held && children == n + 1);
        data = 11;
        zeros[99999] = 21;
        CHECK(write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 1);
        CHECK(data == 11 && zeros[7] == 20 && zeros[8] == 0 && zeros[99999] == 21);
        _exit(42);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    CHECK(!is_held && children == n && data == 10 && zeros[99999] == 0);
    data = 12;
    if (peer >= 0) {
        /* No child is made while a peer changes what it should find. */
        shmem_barrier_all();
        shmem_long_p((long *) &zeros[7], 30, peer);
        shmem_long_p((long *) &zeros[8], 31, peer);
        shmem_barrier_all();
        CHECK(zeros[7] == 30 && zeros[8] == 31);
    }
    CHECK(write(go[1], &byte, 1) == 1);
    CHECK(status_of(child) == 42);
    CHECK(data == 12 && zeros[99999] == 0);
    close(go[1]), close(ready[0]);
}

/* A child of a child, and one that ends by exit, as no PE does. */
static void check_grandchild(void) {
    pid_t child;
    data = 50;
    child = fork();
    if (child == 0) {
        data = 51;
        pid_t grandchild = fork();
        if (grandchild == 0) {
            CHECK(data == 51);
            data = 52;
            exit(7);
        }
        CHECK(status_of(grandchild) == 7 && data == 51);
        exit(0);
    }
    CHECK(status_of(child) == 0);
    CHECK(data == 50);
}

static void check_commands(void) {
    char line[16];
    FILE *output;
    fflush(NULL);
    CHECK(system("exit 3") == 3 << 8);
    output = popen("echo words", "r");
    CHECK(output != NULL && fgets(line, sizeof line, output) != NULL && line[0] == 'w');
    CHECK(pclose(output) == 0);
}

int main(void) {
    int me, n_pes;
    signal(SIGPIPE, SIG_IGN);
    check_child(-1);
    shmem_init();
    me = shmem_my_pe();
    n_pes = shmem_n_pes();
    for (int i = 0; i < 3; i++) check_child((me + 1) % n_pes);
    check_grandchild();
    check_commands();
    shmem_barrier_all();
    shmem_long_p((long *) &zeros[9], 60 + me, (me + 1) % n_pes);
    shmem_barrier_all();
    CHECK(zeros[9] == 60 + (me + n_pes - 1) % n_pes);
    shmem_finalize();
    check_child(-1);
    check_grandchild();
    return 0;
}
