/* A process that waits for a flag in a window, by calls that are complete at once, serves the messages of others.
 * One that computes serves gets from the pool. */
#include "win_check.h"

enum { BYTES = 1 << 20, WAYS = 5 };

static const char *way_name(int way) {
    static const char *const NAMES[WAYS] = { "get and flush", "get and flush of all", "get and local flush",
                                             "fetch and flush", "lock, get and unlock" };
    return NAMES[way];
}

/* The flag of this process, read in one of the ways. */
static long flag(MPI_Win win, int way) {
    long value = 0;
    if (way == 4) DONE(MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
    if (way == 3) {
        DONE(MPI_Fetch_and_op(NULL, &value, MPI_LONG, me, 0, MPI_NO_OP, win));
    } else {
        DONE(MPI_Get(&value, 1, MPI_LONG, me, 0, 1, MPI_LONG, win));
    }
    switch (way) {
    case 1: DONE(MPI_Win_flush_all(win)); break;
    case 2: DONE(MPI_Win_flush_local(me, win)); break;
    case 4: DONE(MPI_Win_unlock(me, win)); break;
    default: DONE(MPI_Win_flush(me, win));
    }
    return value;
}

/* The partner's send ends only when this process has received, and only then it sets the flag. */
static void receive(MPI_Win win, int way, int partner, char *buffer) {
    MPI_Request request;
    memset(buffer, 0, BYTES);
    DONE(MPI_Irecv(buffer, BYTES, MPI_CHAR, partner, way, MPI_COMM_WORLD, &request));
    if (way != 4) DONE(MPI_Win_lock_all(0, win));
    while (flag(win, way) != way + 1) {}
    if (way != 4) DONE(MPI_Win_unlock_all(win));
    DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(buffer[BYTES - 1], way + 1, "%s: the last byte", way_name(way));
}

static void send(MPI_Win win, int way, int partner, char *buffer) {
    long value = way + 1;
    memset(buffer, way + 1, BYTES);
    DONE(MPI_Ssend(buffer, BYTES, MPI_CHAR, partner, way, MPI_COMM_WORLD));
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, partner, 0, win));
    DONE(MPI_Accumulate(&value, 1, MPI_LONG, partner, 0, 1, MPI_LONG, MPI_REPLACE, win));
    DONE(MPI_Win_unlock(partner, win));
}

/* A get of many small blocks from the pool, in an epoch of a lock, needs nothing of its target: that computes
 * until the origin has the data. */
static void blocks_of_a_busy_target(int partner) {
    enum { BLOCKS = 100, WORDS = 2 * BLOCKS };
    int *mine, got[BLOCKS], one = 1, wrong = 0;
    MPI_Datatype every_other;
    MPI_Win win;
    DONE(MPI_Type_vector(BLOCKS, 1, 2, MPI_INT, &every_other));
    DONE(MPI_Type_commit(&every_other));
    DONE(MPI_Win_allocate((WORDS + 1) * sizeof(int), 4, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    for (int all = 0; all < 2; all++) {
        volatile int *is_done = &mine[WORDS];
        double start = MPI_Wtime();
        for (int i = 0; i < WORDS; i++) mine[i] = 1000 * me + i;
        *is_done = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        if (partner >= n) continue;
        if (me % 2) {
            while (!*is_done && MPI_Wtime() - start < 10) {}
            CHECK(*is_done, 1, "the end of the get while the target computes, all %d", all);
        } else {
            DONE(all ? MPI_Win_lock_all(0, win) : MPI_Win_lock(MPI_LOCK_SHARED, partner, 0, win));
            DONE(MPI_Get(got, BLOCKS, MPI_INT, partner, 0, 1, every_other, win));
            DONE(MPI_Win_flush(partner, win));
            DONE(MPI_Put(&one, 1, MPI_INT, partner, WORDS, 1, MPI_INT, win));
            DONE(all ? MPI_Win_unlock_all(win) : MPI_Win_unlock(partner, win));
            for (int i = 0; i < BLOCKS; i++) wrong += got[i] != 1000 * partner + 2 * i;
            CHECK(wrong, 0, "elements got while the target computes, all %d", all);
        }
    }
    DONE(MPI_Win_free(&win));
    DONE(MPI_Type_free(&every_other));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    char *buffer = malloc(BYTES);
    int partner = me ^ 1;
    long *mine;
    MPI_Win win;
    DONE(MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    *mine = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int way = 0; way < WAYS && partner < n; way++) {
        if (me % 2) {
            send(win, way, partner, buffer);
        } else {
            receive(win, way, partner, buffer);
        }
    }
    DONE(MPI_Win_free(&win));
    blocks_of_a_busy_target(partner);
    free(buffer);
    return finish();
}
