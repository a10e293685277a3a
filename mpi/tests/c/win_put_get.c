/* Puts and gets in windows of all kinds, in all kinds of epochs; also their forms with requests. */
#include "win_check.h"

enum { LEN = 64 };

enum sync { FENCE, LOCK, LOCK_ALL, START, SYNCS };

static MPI_Group world;

static void open_epoch(enum sync sync, int rank, MPI_Win win) {
    switch (sync) {
    case FENCE: DONE(MPI_Win_fence(0, win)); break;
    case LOCK: DONE(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win)); break;
    case LOCK_ALL: DONE(MPI_Win_lock_all(0, win)); break;
    default:
        DONE(MPI_Win_post(world, 0, win));
        DONE(MPI_Win_start(world, 0, win));
    }
}

static void close_epoch(enum sync sync, int rank, MPI_Win win) {
    switch (sync) {
    case FENCE: DONE(MPI_Win_fence(0, win)); break;
    case LOCK: DONE(MPI_Win_unlock(rank, win)); break;
    case LOCK_ALL: DONE(MPI_Win_unlock_all(win)); break;
    default:
        DONE(MPI_Win_complete(win));
        DONE(MPI_Win_wait(win));
    }
}

static void run(enum kind kind, enum sync sync, int len) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, LEN * 2 * sizeof(int), sizeof(int), &base, starts);
    volatile int *mine = (volatile int *)base;
    int to = (me + 1) % n, from = (me + n - 1) % n, data[LEN], got[LEN];
    for (int i = 0; i < LEN; i++) data[i] = 1000 * me + i, got[i] = -1;
    open_epoch(sync, to, win);
    DONE(MPI_Put(data, len, MPI_INT, to, at(kind, starts[to], 3, sizeof(int)), len, MPI_INT, win));
    close_epoch(sync, to, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < LEN; i++) {
        CHECK(mine[i + 3], i < len ? 1000 * from + i : 0, "%s, sync %d, element %d", kind_name(kind), sync, i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    open_epoch(sync, to, win);
    DONE(MPI_Get(got, len, MPI_INT, to, at(kind, starts[to], 3, sizeof(int)), len, MPI_INT, win));
    close_epoch(sync, to, win);
    for (int i = 0; i < LEN; i++) CHECK(got[i], i < len ? data[i] : -1, "%s, got %d", kind_name(kind), i);
    if (sync == LOCK || sync == LOCK_ALL) {
        MPI_Request requests[2];
        MPI_Status statuses[2];
        for (int i = 0; i < LEN; i++) data[i] = 7 * me - i, got[i] = -1;
        MPI_Barrier(MPI_COMM_WORLD);
        open_epoch(sync, to, win);
        DONE(MPI_Rput(data, len, MPI_INT, to, at(kind, starts[to], 0, 4), len, MPI_INT, win, &requests[0]));
        DONE(MPI_Wait(&requests[0], statuses));
        DONE(MPI_Win_flush(to, win));
        DONE(MPI_Rget(got, len, MPI_INT, to, at(kind, starts[to], 0, 4), len, MPI_INT, win, &requests[1]));
        DONE(MPI_Wait(&requests[1], &statuses[1]));
        CHECK(requests[1] == MPI_REQUEST_NULL, 1, "a request that is complete");
        for (int i = 0; i < len; i++) CHECK(got[i], data[i], "%s, got with a request %d", kind_name(kind), i);
        DONE(MPI_Get(got, len, MPI_INT, to, at(kind, starts[to], 0, 4), len, MPI_INT, win));
        DONE(MPI_Win_flush_local(to, win));
        DONE(MPI_Win_flush_all(win));
        DONE(MPI_Win_flush_local_all(win));
        DONE(MPI_Win_sync(win));
        close_epoch(sync, to, win);
    }
    /* Nobody. */
    open_epoch(sync, to, win);
    DONE(MPI_Put(data, 1, MPI_INT, MPI_PROC_NULL, 1 << 20, 1, MPI_INT, win));
    DONE(MPI_Get(data, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    close_epoch(sync, to, win);
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

/* Nothing is moved, to windows without memory and beyond their end. */
static void nothing(enum kind kind, size_t bytes) {
    MPI_Aint starts[64], far = 1 << 20;
    char *base;
    MPI_Win win = open_window(kind, bytes, 4, &base, starts);
    int to = (me + 1) % n, data = 1, got = 2;
    MPI_Datatype empty;
    MPI_Request request;
    DONE(MPI_Type_contiguous(0, MPI_INT, &empty));
    DONE(MPI_Type_commit(&empty));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    DONE(MPI_Win_fence(0, win));
    for (MPI_Aint disp = 0; disp <= far; disp += far) {
        DONE(MPI_Put(&data, 0, MPI_INT, to, disp, 0, MPI_INT, win));
        DONE(MPI_Put(&data, 3, empty, to, disp, 0, MPI_DOUBLE, win));
        DONE(MPI_Put_c(NULL, 0, MPI_LONG, to, disp, 0, MPI_LONG, win));
        DONE(MPI_Get(&got, 0, MPI_INT, to, disp, 5, empty, win));
        DONE(MPI_Accumulate(&data, 0, MPI_INT, to, disp, 0, MPI_INT, MPI_SUM, win));
        DONE(MPI_Get_accumulate(&data, 0, MPI_INT, &got, 0, MPI_INT, to, disp, 0, MPI_INT, MPI_SUM, win));
    }
    REFUSED(MPI_Put(&data, -1, MPI_INT, to, 0, 0, MPI_INT, win), MPI_ERR_COUNT);
    if (kind != DYNAMIC) REFUSED(MPI_Put(&data, 0, MPI_INT, to, far, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    if (kind != DYNAMIC) REFUSED(MPI_Put(&data, 1, MPI_INT, to, far, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    DONE(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
    DONE(MPI_Rput(&data, 0, MPI_INT, to, far, 0, MPI_INT, win, &request));
    DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
    DONE(MPI_Rget(&got, 0, MPI_INT, to, far, 0, MPI_INT, win, &request));
    DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
    DONE(MPI_Win_unlock(to, win));
    CHECK(got, 2, "%s: nothing was got", kind_name(kind));
    DONE(MPI_Type_free(&empty));
    close_window(kind, &win, base);
}

/* Many requests in one epoch, which are waited for one by one, together, or not before the flush. */
static void many(enum kind kind) {
    enum { GETS = 300, STEP = 3 };
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, GETS * sizeof(int), 4, &base, starts);
    int to = (me + 1) % n, got[GETS];
    MPI_Request requests[GETS];
    for (int i = 0; i < GETS; i++) ((int *)base)[i] = 1000 * me + i, got[i] = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_Win_lock_all(0, win));
    for (int i = 0; i < GETS; i++) {
        DONE(MPI_Rget(&got[i], 1, MPI_INT, to, at(kind, starts[to], i, 4), 1, MPI_INT, win, &requests[i]));
        if (i < GETS / STEP) DONE(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    }
    DONE(MPI_Waitall(GETS / STEP, requests + GETS / STEP, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2 * GETS / STEP; i++) CHECK(got[i], 1000 * to + i, "%s: got %d", kind_name(kind), i);
    DONE(MPI_Win_flush_all(win));
    for (int i = 2 * GETS / STEP; i < GETS; i++) CHECK(got[i], 1000 * to + i, "%s: flushed %d", kind_name(kind), i);
    DONE(MPI_Win_unlock_all(win));
    DONE(MPI_Waitall(GETS, requests, MPI_STATUSES_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

/* More data than fit into a message in one piece. */
static void large(enum kind kind) {
    enum { MANY = 300000 };
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, MANY * sizeof(long), 1, &base, starts);
    long *data = malloc(MANY * sizeof(long)), *mine = (long *)base;
    int to = (me + 1) % n, from = (me + n - 1) % n;
    for (long i = 0; i < MANY; i++) data[i] = me + 10 * i;
    DONE(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    DONE(MPI_Put(data, MANY, MPI_LONG, to, starts[to], MANY, MPI_LONG, win));
    DONE(MPI_Win_fence(0, win));
    for (long i = 0; i < MANY; i++) CHECK(mine[i], from + 10 * i, "%s, large put, %ld", kind_name(kind), i);
    memset(data, 0, MANY * sizeof(long));
    DONE(MPI_Get_c(data, MANY, MPI_LONG, to, starts[to], MANY, MPI_LONG, win));
    DONE(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (long i = 0; i < MANY; i++) CHECK(data[i], me + 10 * i, "%s, large get, %ld", kind_name(kind), i);
    free(data);
    close_window(kind, &win, base);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int kind = 0; kind < KINDS; kind++) {
        for (int sync = 0; sync < SYNCS; sync++) {
            run(kind, sync, LEN);
            run(kind, sync, 2);
            run(kind, sync, 1);
            run(kind, sync, 0);
        }
        nothing(kind, 0);
        nothing(kind, 8);
        many(kind);
        large(kind);
    }
    MPI_Group_free(&world);
    return finish();
}
