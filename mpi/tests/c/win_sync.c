/* Synchronisation: groups of post and start, tests, exclusive locks, assertions, several windows at once. */
#include "win_check.h"

/* Each process exposes its part to its neighbours only. */
static void neighbours(enum kind kind, int assert_post, int assert_start) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, 2 * sizeof(int), 4, &base, starts);
    MPI_Group world, origins, targets;
    int left = (me + n - 1) % n, right = (me + 1) % n, flag = 0;
    volatile int *mine = (volatile int *)base;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &left, &origins);
    MPI_Group_incl(world, 1, &right, &targets);
    for (int round = 1; round <= 10; round++) {
        int value = 100 * round + me;
        MPI_Barrier(MPI_COMM_WORLD);
        DONE(MPI_Win_post(origins, assert_post, win));
        if (assert_start & MPI_MODE_NOCHECK) MPI_Barrier(MPI_COMM_WORLD);
        DONE(MPI_Win_start(targets, assert_start, win));
        DONE(MPI_Put(&value, 1, MPI_INT, right, at(kind, starts[right], 0, 4), 1, MPI_INT, win));
        DONE(MPI_Accumulate(&value, 1, MPI_INT, right, at(kind, starts[right], 1, 4), 1, MPI_INT, MPI_SUM, win));
        DONE(MPI_Win_complete(win));
        if (round % 2) {
            DONE(MPI_Win_wait(win));
        } else {
            for (flag = 0; !flag;) DONE(MPI_Win_test(win, &flag));
        }
        CHECK(mine[0], 100 * round + left, "%s: put of round %d", kind_name(kind), round);
        CHECK(mine[1], 50 * round * (round + 1) + left * round, "%s: sum of round %d", kind_name(kind), round);
    }
    /* Epochs without anyone. */
    DONE(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
    DONE(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
    DONE(MPI_Win_complete(win));
    DONE(MPI_Win_test(win, &flag));
    CHECK(flag, 1, "%s: the end of an epoch without anyone", kind_name(kind));
    /* The start comes before the post, which it does not wait for. */
    DONE(MPI_Win_start(targets, 0, win));
    DONE(MPI_Win_post(origins, 0, win));
    DONE(MPI_Win_complete(win));
    DONE(MPI_Win_wait(win));
    MPI_Group_free(&world);
    MPI_Group_free(&origins);
    MPI_Group_free(&targets);
    close_window(kind, &win, base);
}

/* A counter that is read and written under an exclusive lock. */
static void exclusive(enum kind kind) {
    enum { TURNS = 40 };
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, sizeof(long), 8, &base, starts);
    long count;
    for (int i = 0; i < TURNS; i++) {
        DONE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        DONE(MPI_Get(&count, 1, MPI_LONG, 0, starts[0], 1, MPI_LONG, win));
        DONE(MPI_Win_flush(0, win));
        count++;
        DONE(MPI_Put(&count, 1, MPI_LONG, 0, starts[0], 1, MPI_LONG, win));
        DONE(MPI_Win_unlock(0, win));
        DONE(MPI_Win_lock(MPI_LOCK_SHARED, n - 1, 0, win));
        DONE(MPI_Win_unlock(n - 1, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    DONE(MPI_Get(&count, 1, MPI_LONG, 0, starts[0], 1, MPI_LONG, win));
    DONE(MPI_Win_unlock(0, win));
    CHECK(count, (long)n * TURNS, "%s: count under exclusive locks", kind_name(kind));
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

/* One process sets a flag under an exclusive lock. The others read it under shared locks, of which almost always
 * some are held: they let it go first. */
static void exclusive_among_shared(enum kind kind, int all) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, sizeof(int), 4, &base, starts);
    int one = 1, flag = 0, to = all ? n - 1 : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    if (me == n - 1) {
        while (MPI_Wtime() - start < 0.02) DONE(MPI_Win_sync(win));
        DONE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win));
        DONE(MPI_Put(&one, 1, MPI_INT, to, starts[to], 1, MPI_INT, win));
        DONE(MPI_Win_unlock(to, win));
    } else {
        while (!flag && MPI_Wtime() - start < 10) {
            DONE(all ? MPI_Win_lock_all(0, win) : MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
            for (int i = 0; i < 20; i++) {
                DONE(MPI_Get(&flag, 1, MPI_INT, to, starts[to], 1, MPI_INT, win));
                DONE(MPI_Win_flush(to, win));
            }
            DONE(all ? MPI_Win_unlock_all(win) : MPI_Win_unlock(to, win));
        }
        CHECK(flag, 1, "%s: the flag that is set under an exclusive lock", kind_name(kind));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

/* Locks of several targets at once, and of no process. */
static void several(enum kind kind) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, 64 * sizeof(int), 4, &base, starts);
    int value = me + 1;
    for (int to = 0; to < n; to++) DONE(MPI_Win_lock(MPI_LOCK_SHARED, to, to % 2 ? MPI_MODE_NOCHECK : 0, win));
    DONE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, MPI_PROC_NULL, 0, win));
    for (int to = 0; to < n; to++) {
        DONE(MPI_Put(&value, 1, MPI_INT, to, at(kind, starts[to], me, 4), 1, MPI_INT, win));
    }
    DONE(MPI_Win_flush(MPI_PROC_NULL, win));
    DONE(MPI_Win_unlock(MPI_PROC_NULL, win));
    for (int to = n - 1; to >= 0; to--) DONE(MPI_Win_unlock(to, win));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int from = 0; from < n; from++) CHECK(((int *)base)[from], from + 1, "%s: put of %d", kind_name(kind), from);
    close_window(kind, &win, base);
}

/* Locks of nobody are an epoch like those of others, beside them and alone. */
static void nobody(enum kind kind) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, sizeof(int), 4, &base, starts);
    int value = 1, before = me > 0 ? me - 1 : MPI_PROC_NULL, behind = me < n - 1 ? me + 1 : MPI_PROC_NULL;
    for (int round = 0; round < 3; round++) {
        /* Of one process, both neighbours are nobody. */
        DONE(MPI_Win_lock(MPI_LOCK_SHARED, behind, 0, win));
        if (round != 1) DONE(MPI_Win_lock(MPI_LOCK_SHARED, before, MPI_MODE_NOCHECK, win));
        if (behind == MPI_PROC_NULL) DONE(MPI_Put(&value, 1, MPI_INT, behind, 0, 1, MPI_INT, win));
        DONE(MPI_Win_flush(behind, win));
        DONE(MPI_Win_flush_local(behind, win));
        DONE(MPI_Win_flush_all(win));
        DONE(MPI_Win_flush_local_all(win));
        DONE(MPI_Win_unlock(behind, win));
        if (round != 1) {
            DONE(MPI_Win_flush_all(win));
            DONE(MPI_Win_unlock(before, win));
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

/* Two windows that are used at the same time, and one of a part of the processes. */
static void apart(void) {
    MPI_Aint starts[2][64];
    char *base[2];
    MPI_Win win[2] = {open_window(ALLOCATED, 8, 4, &base[0], starts[0]), open_window(CREATED, 8, 4, &base[1], starts[1])};
    int to = (me + 1) % n, from = (me + n - 1) % n, value[2] = {me + 10, me + 20};
    for (int i = 0; i < 2; i++) DONE(MPI_Win_fence(MPI_MODE_NOPRECEDE, win[i]));
    for (int i = 0; i < 2; i++) DONE(MPI_Put(&value[i], 1, MPI_INT, to, 1, 1, MPI_INT, win[i]));
    for (int i = 1; i >= 0; i--) DONE(MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED, win[i]));
    for (int i = 0; i < 2; i++) CHECK(((int *)base[i])[1], from + 10 * (i + 1), "put to window %d", i);
    close_window(ALLOCATED, &win[0], base[0]);
    close_window(CREATED, &win[1], base[1]);

    MPI_Comm half;
    int *memory, rank, size;
    MPI_Win own;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &half);
    MPI_Comm_rank(half, &rank);
    MPI_Comm_size(half, &size);
    DONE(MPI_Win_allocate(sizeof(int) * (rank + 1), 4, MPI_INFO_NULL, half, &memory, &own));
    MPI_Comm_free(&half);
    DONE(MPI_Win_fence(0, own));
    to = (rank + 1) % size;
    DONE(MPI_Put(&me, 1, MPI_INT, to, to, 1, MPI_INT, own));
    DONE(MPI_Win_fence(0, own));
    /* Ranks are in the reverse order: the left neighbour is the next process of this half. */
    int expected = size == 1 ? me : rank == 0 ? me % 2 : me + 2;
    CHECK(memory[rank], expected, "put in a window of half of the processes");
    DONE(MPI_Win_free(&own));
}

/* A loop of any flush serves the requests of other processes. */
static void served(void) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(CREATED, sizeof(int), 4, &base, starts);
    volatile int *mine = (volatile int *)base;
    enum { FLUSHES = 4 };
    for (int flush = 0; flush < FLUSHES; flush++) {
        int value = flush + 1;
        DONE(MPI_Win_lock_all(0, win));
        if (me == 1) {
            DONE(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_REPLACE, win));
            DONE(MPI_Win_flush(0, win));
        }
        if (me == 0 && n > 1) {
            double end = MPI_Wtime() + 10;
            while (*mine != value && MPI_Wtime() < end) {
                DONE(flush == 0   ? MPI_Win_flush(n - 1, win)
                     : flush == 1 ? MPI_Win_flush_all(win)
                     : flush == 2 ? MPI_Win_flush_local(n - 1, win)
                                  : MPI_Win_flush_local_all(win));
            }
            CHECK(*mine, value, "an accumulate during flushes of kind %d", flush);
        }
        DONE(MPI_Win_unlock_all(win));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    close_window(CREATED, &win, base);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (int kind = 0; kind < KINDS; kind++) {
        neighbours(kind, 0, 0);
        neighbours(kind, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE, MPI_MODE_NOCHECK);
        exclusive(kind);
        exclusive_among_shared(kind, 0);
        /* Of memory that is not mapped, locks of all are taken late. */
        if (kind == ALLOCATED && one_node(MPI_COMM_WORLD)) exclusive_among_shared(kind, 1);
        several(kind);
        nobody(kind);
    }
    served();
    apart();
    return finish();
}
