/* Mistakes in calls on windows: each is refused with its class, and changes nothing. */
#include "win_check.h"

static int calls, last;

static void note(MPI_Win *win, int *code, ...) {
    (void)win;
    calls++;
    last = *code;
}

static void arguments(void) {
    MPI_Win win = MPI_WIN_NULL;
    int memory[4], data = 5;
    void *base;
    MPI_Aint size;
    int unit;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    REFUSED(MPI_Win_create(memory, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_SIZE);
    REFUSED(MPI_Win_create(memory, sizeof memory, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_DISP);
    REFUSED(MPI_Win_create(memory, sizeof memory, -4, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_DISP);
    REFUSED(MPI_Win_create(NULL, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_ARG);
    REFUSED(MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM);
    REFUSED(MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    REFUSED(MPI_Win_allocate(-8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_SIZE);
    REFUSED(MPI_Win_allocate_shared(8, -1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win), MPI_ERR_DISP);
    REFUSED(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM);
    REFUSED(MPI_Put(&data, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_WIN_NULL), MPI_ERR_WIN);
    REFUSED(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN);
    REFUSED(MPI_Win_flush(0, MPI_WIN_NULL), MPI_ERR_WIN);
    REFUSED(MPI_Win_free(&win), MPI_ERR_WIN);
    REFUSED(MPI_Win_shared_query(MPI_WIN_NULL, 0, &size, &unit, &base), MPI_ERR_WIN);
    if (!one_node(MPI_COMM_WORLD)) {
        REFUSED(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_RMA_SHARED);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Only the target knows the memory that it has attached to a dynamic window; it refuses at the latest when the
 * operation is flushed. */
#define OUTSIDE(call)                                                    \
    do {                                                                 \
        int code = (call), flushed = MPI_Win_flush(to, win);             \
        if (kind == DYNAMIC && code == MPI_SUCCESS) code = flushed;      \
        CHECK(code, MPI_ERR_RMA_RANGE, "%s", #call);                         \
    } while (0)

static void operations(enum kind kind) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, 10 * sizeof(int), 4, &base, starts);
    int data[20] = {1, 2, 3}, old = 0, to = (me + 1) % n;
    double real = 1;
    MPI_Request request;
    DONE(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    REFUSED(MPI_Put(data, 1, MPI_INT, to, at(kind, starts[to], 0, 4), 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Get(data, 1, MPI_INT, to, at(kind, starts[to], 0, 4), 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Accumulate(data, 1, MPI_INT, to, at(kind, starts[to], 0, 4), 1, MPI_INT, MPI_SUM, win),
            MPI_ERR_RMA_SYNC);
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
    OUTSIDE(MPI_Put(data, 11, MPI_INT, to, at(kind, starts[to], 0, 4), 11, MPI_INT, win));
    OUTSIDE(MPI_Get(data, 5, MPI_INT, to, at(kind, starts[to], 6, 4), 5, MPI_INT, win));
    OUTSIDE(MPI_Fetch_and_op(data, &old, MPI_INT, to, at(kind, starts[to], 10, 4), MPI_SUM, win));
    if (kind != DYNAMIC) {
        REFUSED(MPI_Put(data, 1, MPI_INT, to, -1, 1, MPI_INT, win), MPI_ERR_DISP);
        REFUSED(MPI_Put(data, 1, MPI_INT, to, (MPI_Aint)1 << 62, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    }
    REFUSED(MPI_Put(data, 1, MPI_INT, n, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    REFUSED(MPI_Put(data, 1, MPI_INT, -7, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    REFUSED(MPI_Put(data, -1, MPI_INT, to, 0, 1, MPI_INT, win), MPI_ERR_COUNT);
    REFUSED(MPI_Put(data, 1, MPI_INT, to, 0, -1, MPI_INT, win), MPI_ERR_COUNT);
    REFUSED(MPI_Put(data, 1, MPI_DATATYPE_NULL, to, 0, 1, MPI_INT, win), MPI_ERR_TYPE);
    REFUSED(MPI_Put(data, 2, MPI_INT, to, at(kind, starts[to], 0, 4), 1, MPI_INT, win), MPI_ERR_TRUNCATE);
    REFUSED(MPI_Accumulate(data, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_OP_NULL, win), MPI_ERR_OP);
    REFUSED(MPI_Accumulate(data, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_NO_OP, win), MPI_ERR_OP);
    REFUSED(MPI_Accumulate(&real, 1, MPI_DOUBLE, to, 0, 1, MPI_DOUBLE, MPI_BAND, win), MPI_ERR_OP);
    REFUSED(MPI_Accumulate(data, 1, MPI_INT, to, at(kind, starts[to], 0, 4), 1, MPI_FLOAT, MPI_SUM, win), MPI_ERR_TYPE);
    REFUSED(MPI_Get_accumulate(data, 1, MPI_UNSIGNED, &old, 1, MPI_INT, to, at(kind, starts[to], 0, 4), 1, MPI_INT,
                               MPI_MAX, win),
            MPI_ERR_TYPE);
    MPI_Datatype derived;
    DONE(MPI_Type_contiguous(1, MPI_INT, &derived));
    DONE(MPI_Type_commit(&derived));
    MPI_Aint first = at(kind, starts[to], 0, 4);
    REFUSED(MPI_Fetch_and_op(data, &old, derived, to, first, MPI_SUM, win), MPI_ERR_TYPE);
    REFUSED(MPI_Fetch_and_op(data, &old, derived, to, first, MPI_NO_OP, win), MPI_ERR_TYPE);
    REFUSED(MPI_Compare_and_swap(data, data, &old, derived, to, first, win), MPI_ERR_TYPE);
    DONE(MPI_Type_free(&derived));
    REFUSED(MPI_Compare_and_swap(&real, &real, &real, MPI_DOUBLE, to, 0, win), MPI_ERR_TYPE);
    REFUSED(MPI_Compare_and_swap(data, data, &old, MPI_PACKED, to, 0, win), MPI_ERR_TYPE);
    REFUSED(MPI_Rput(data, 1, MPI_INT, to, at(kind, starts[to], 0, 4), 1, MPI_INT, win, NULL), MPI_ERR_ARG);
    REFUSED(MPI_Rget(data, 1, MPI_INT, n, 0, 1, MPI_INT, win, &request), MPI_ERR_RANK);
    /* Bits are those of integers and bytes. */
    wchar_t wide = 3;
    MPI_Op bits[3] = {MPI_BAND, MPI_BOR, MPI_BXOR};
    for (int i = 0; i < 3; i++) {
        REFUSED(MPI_Accumulate(&wide, 1, MPI_WCHAR, to, at(kind, starts[to], 0, 4), 1, MPI_WCHAR, bits[i], win),
                MPI_ERR_OP);
        REFUSED(MPI_Fetch_and_op(&wide, &wide, MPI_WCHAR, to, at(kind, starts[to], 0, 4), bits[i], win),
                MPI_ERR_OP);
    }
    DONE(MPI_Fetch_and_op(&wide, &wide, MPI_WCHAR, to, at(kind, starts[to], 0, 4), MPI_NO_OP, win));
    DONE(MPI_Win_unlock(to, win));
    CHECK(wide, 0, "%s: a wide character", kind_name(kind));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 10; i++) CHECK(((int *)base)[i], 0, "%s: element %d after mistakes", kind_name(kind), i);
    close_window(kind, &win, base);
}

static void synchronisation(void) {
    int memory[4] = {0}, data = 1;
    MPI_Win win;
    MPI_Group world, other;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    DONE(MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    DONE(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    REFUSED(MPI_Win_lock(17, 0, 0, win), MPI_ERR_LOCKTYPE);
    REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, n, 0, win), MPI_ERR_RANK);
    REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
    REFUSED(MPI_Win_fence(MPI_MODE_NOCHECK, win), MPI_ERR_ASSERT);
    REFUSED(MPI_Win_lock_all(1, win), MPI_ERR_ASSERT);
    REFUSED(MPI_Win_start(world, MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
    REFUSED(MPI_Win_post(world, MPI_MODE_NOPRECEDE, win), MPI_ERR_ASSERT);
    REFUSED(MPI_Win_post(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    REFUSED(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_flush_local(0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_flush_local_all(win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_test(win, &data), MPI_ERR_RMA_SYNC);
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_start(world, 0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    if (n > 1) REFUSED(MPI_Put(&data, 1, MPI_INT, 1, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    DONE(MPI_Win_unlock(0, win));
    DONE(MPI_Win_lock_all(0, win));
    REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    DONE(MPI_Win_unlock_all(win));
    /* A lock of nobody begins an epoch, and gives no access. */
    REFUSED(MPI_Win_unlock(MPI_PROC_NULL, win), MPI_ERR_RMA_SYNC);
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win));
    REFUSED(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Put(&data, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    DONE(MPI_Win_unlock(MPI_PROC_NULL, win));
    REFUSED(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
    DONE(MPI_Win_post(world, 0, win));
    REFUSED(MPI_Win_post(world, 0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    DONE(MPI_Win_start(world, 0, win));
    REFUSED(MPI_Win_start(world, 0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    REFUSED(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
    DONE(MPI_Win_complete(win));
    REFUSED(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    DONE(MPI_Win_wait(win));
    /* A lock ends an epoch of a fence. */
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    DONE(MPI_Win_unlock(0, win));
    REFUSED(MPI_Get(&data, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    DONE(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    REFUSED(MPI_Get(&data, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    /* A group that is not that of the start. */
    int first = 0;
    MPI_Group_incl(world, 1, &first, &other);
    if (me == 0) DONE(MPI_Win_post(world, 0, win));
    DONE(MPI_Win_start(other, 0, win));
    if (n > 1) REFUSED(MPI_Put(&data, 1, MPI_INT, 1, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    DONE(MPI_Win_complete(win));
    if (me == 0) DONE(MPI_Win_wait(win));
    MPI_Group_free(&other);
    REFUSED(MPI_Win_attach(win, memory, 4), MPI_ERR_RMA_FLAVOR);
    DONE(MPI_Win_free(&win));
    MPI_Group_free(&world);
}

static void handlers(void) {
    MPI_Errhandler handler, found;
    MPI_Win win;
    int memory, length;
    char name[MPI_MAX_OBJECT_NAME];
    DONE(MPI_Win_create(&memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    DONE(MPI_Win_get_errhandler(win, &found));
    CHECK(found == MPI_ERRORS_ARE_FATAL, 1, "the first handler of a window");
    DONE(MPI_Win_create_errhandler((MPI_Win_errhandler_function *)note, &handler));
    DONE(MPI_Win_set_errhandler(win, handler));
    DONE(MPI_Errhandler_free(&handler));
    REFUSED(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    CHECK(calls, 1, "calls of the handler");
    CHECK(last, MPI_ERR_RMA_SYNC, "the code that the handler got");
    DONE(MPI_Win_call_errhandler(win, MPI_ERR_OTHER));
    CHECK(calls, 2, "calls of the handler");
    DONE(MPI_Win_get_name(win, name, &length));
    CHECK(length, 0, "the length of the first name");
    DONE(MPI_Win_set_name(win, "my window"));
    DONE(MPI_Win_get_name(win, name, &length));
    CHECK(length, 9, "the length of the name");
    CHECK(strcmp(name, "my window"), 0, "the name");
    MPI_Group group, world;
    int relation;
    DONE(MPI_Win_get_group(win, &group));
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &relation);
    CHECK(relation, MPI_IDENT, "the group of the window");
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    DONE(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    arguments();
    for (int kind = 0; kind < KINDS; kind++) operations(kind);
    synchronisation();
    handlers();
    return finish();
}
