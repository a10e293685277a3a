/* Threads of a process that use one window at the same time. */
#include "win_check.h"
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 60, PIECES = 50 };

static MPI_Win win;
static MPI_Aint starts[64];
static enum kind kind;
static pthread_barrier_t together;
/* The failures of each thread; the checks of `win_check.h` are for one thread. */
static int wrong[THREADS];

static void run(void *(*work)(void *)) {
    pthread_t threads[THREADS];
    for (long t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, work, (void *)t);
    for (long t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        CHECK(wrong[t], 0, "%s: failures of thread %ld", kind_name(kind), t);
        wrong[t] = 0;
    }
}

/* The first accesses of several threads wait for the post of the target. */
static void *put_early(void *argument) {
    int t = (int)(long)argument, value = t + 1;
    pthread_barrier_wait(&together);
    wrong[t] += MPI_Put(&value, 1, MPI_INT, n - 1, at(kind, starts[n - 1], t, 4), 1, MPI_INT, win) != MPI_SUCCESS;
    return NULL;
}

static void posts(void) {
    char *base;
    int first = 0, last = n - 1;
    MPI_Group world, origins, targets;
    win = open_window(kind, THREADS * sizeof(int), 4, &base, starts);
    volatile int *mine = (volatile int *)base;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &first, &origins);
    MPI_Group_incl(world, 1, &last, &targets);
    for (int round = 0; round < 5; round++) {
        for (int t = 0; t < THREADS; t++) mine[t] = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        if (n == 1) DONE(MPI_Win_post(origins, 0, win));
        if (me == 0) {
            DONE(MPI_Win_start(targets, 0, win));
            run(put_early);
            DONE(MPI_Win_complete(win));
        } else if (me == last) {
            double end = MPI_Wtime() + 0.02;
            while (MPI_Wtime() < end) DONE(MPI_Win_sync(win));
            for (int t = 0; t < THREADS; t++) CHECK(mine[t], 0, "%s: the put of thread %d before the post", kind_name(kind), t);
            DONE(MPI_Win_post(origins, 0, win));
        }
        if (me == last) DONE(MPI_Win_wait(win));
        if (me == last) for (int t = 0; t < THREADS; t++) CHECK(mine[t], t + 1, "%s: the put of thread %d", kind_name(kind), t);
    }
    MPI_Group_free(&world);
    MPI_Group_free(&origins);
    MPI_Group_free(&targets);
    close_window(kind, &win, base);
}

/* The flush of each thread completes its own operations, whatever the others flush at the same time. */
static void *flush_each(void *argument) {
    int t = (int)(long)argument, to = n - 1, got;
    for (int i = 1; i <= ROUNDS; i++) {
        MPI_Aint there = at(kind, starts[to], t, 4);
        MPI_Request request;
        wrong[t] += MPI_Accumulate(&i, 1, MPI_INT, to, there, 1, MPI_INT, MPI_REPLACE, win) != MPI_SUCCESS;
        wrong[t] += MPI_Win_flush(to, win) != MPI_SUCCESS;
        wrong[t] += MPI_Send(&i, 1, MPI_INT, n / 2, t, MPI_COMM_WORLD) != MPI_SUCCESS;
        got = -1;
        wrong[t] += MPI_Get(&got, 1, MPI_INT, to, there, 1, MPI_INT, win) != MPI_SUCCESS;
        wrong[t] += (i % 2 ? MPI_Win_flush_local(to, win) : MPI_Win_flush_all(win)) != MPI_SUCCESS;
        wrong[t] += got != i;
        got = -1;
        wrong[t] += MPI_Rget(&got, 1, MPI_INT, to, there, 1, MPI_INT, win, &request) != MPI_SUCCESS;
        wrong[t] += MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS || got != i;
    }
    return NULL;
}

static void *look_after_each(void *argument) {
    (void)argument;
    int to = n - 1, told, found;
    for (int i = 1; i <= ROUNDS; i++) {
        for (int t = 0; t < THREADS; t++) {
            MPI_Recv(&told, 1, MPI_INT, 0, t, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Fetch_and_op(NULL, &found, MPI_INT, to, at(kind, starts[to], t, 4), MPI_NO_OP, win);
            MPI_Win_flush(to, win);
            CHECK(found >= told, 1, "%s: %d was flushed by thread %d, found %d", kind_name(kind), told, t, found);
        }
    }
    return NULL;
}

static void flushes(void) {
    char *base;
    pthread_t looker;
    win = open_window(kind, THREADS * sizeof(int), 4, &base, starts);
    DONE(MPI_Win_lock_all(0, win));
    if (me == n / 2) pthread_create(&looker, NULL, look_after_each, NULL);
    if (me == 0) run(flush_each);
    if (me == n / 2) pthread_join(looker, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

/* Each thread attaches memory of its own. */
static int pieces[THREADS][PIECES][2];

static void *attach(void *argument) {
    int t = (int)(long)argument;
    pthread_barrier_wait(&together);
    for (int i = 0; i < PIECES; i++) {
        wrong[t] += MPI_Win_attach(win, pieces[t][i], sizeof pieces[t][i]) != MPI_SUCCESS;
        if (i % 3 == 0) wrong[t] += MPI_Win_detach(win, pieces[t][i]) != MPI_SUCCESS;
    }
    return NULL;
}

static void attaches(void) {
    DONE(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    run(attach);
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
    for (int t = 0; t < THREADS; t++) {
        for (int i = 0; i < PIECES; i++) {
            MPI_Aint there;
            int value = 100 * t + i, is_attached = i % 3 != 0;
            MPI_Get_address(pieces[t][i], &there);
            CHECK(MPI_Put(&value, 1, MPI_INT, me, there, 1, MPI_INT, win),
                  is_attached ? MPI_SUCCESS : MPI_ERR_RMA_RANGE, "a put to piece %d of thread %d", i, t);
            if (is_attached) DONE(MPI_Win_detach(win, pieces[t][i]));
        }
    }
    DONE(MPI_Win_unlock(me, win));
    DONE(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
    begin_with_threads(&argc, &argv);
    pthread_barrier_init(&together, NULL, THREADS);
    for (int k = 0; k < KINDS; k++) {
        kind = (enum kind)k;
        posts();
        flushes();
    }
    attaches();
    pthread_barrier_destroy(&together);
    return finish();
}
