/* fork in a program that has threads; in one that the C library is linked into it cannot be done. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <shmem.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long data = 1;

static void *sleeping(void *argument) {
    for (;;) pause();
    return argument;
}

int main(void) {
    pthread_t thread;
    int status = -1;
    pid_t child;
    shmem_init();
    if (pthread_create(&thread, NULL, sleeping, NULL) != 0) return 2;
    data = 2;
    child = fork();
    if (child == 0) {
        int is_right = data == 2;
        data = 3;
        _exit(is_right ? 42 : 1);
    }
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 42) return 3;
    if (data != 2) return 4;
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
