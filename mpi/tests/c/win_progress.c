/* A process that waits for a flag in a window, by calls that are complete at once, serves the messages of others. */
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
    free(buffer);
    return finish();
}
