/* Windows of shared memory, and the query of it in windows of other kinds. */
#include "win_check.h"

static void shared(MPI_Comm comm) {
    int rank, size, unit, *mine, *other;
    MPI_Win win;
    MPI_Aint bytes;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    DONE(MPI_Win_allocate_shared((rank + 1) * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &mine, &win));
    char *before = NULL;
    for (int r = 0; r < size; r++) {
        DONE(MPI_Win_shared_query(win, r, &bytes, &unit, &other));
        CHECK(bytes, (r + 1) * (MPI_Aint)sizeof(int), "bytes of rank %d", r);
        CHECK(unit, sizeof(int), "unit of rank %d", r);
        if (before) CHECK((char *)other - before, r * (MPI_Aint)sizeof(int), "the part of rank %d follows", r);
        if (r == rank) CHECK(other == mine, 1, "the own part");
        before = (char *)other;
    }
    DONE(MPI_Win_lock_all(0, win));
    for (int i = 0; i <= rank; i++) mine[i] = 100 * rank + i;
    DONE(MPI_Win_sync(win));
    MPI_Barrier(comm);
    DONE(MPI_Win_sync(win));
    for (int r = 0; r < size; r++) {
        DONE(MPI_Win_shared_query(win, r, &bytes, &unit, &other));
        for (int i = 0; i <= r; i++) CHECK(other[i], 100 * r + i, "element %d of rank %d", i, r);
    }
    MPI_Barrier(comm);
    DONE(MPI_Win_shared_query(win, (rank + 1) % size, &bytes, &unit, &other));
    other[0] = -rank;
    DONE(MPI_Win_sync(win));
    MPI_Barrier(comm);
    DONE(MPI_Win_sync(win));
    CHECK(mine[0], -((rank + size - 1) % size), "a store of another process");
    int sum = 1;
    MPI_Barrier(comm);
    DONE(MPI_Accumulate(&sum, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
    DONE(MPI_Win_unlock_all(win));
    MPI_Barrier(comm);
    if (rank == 0) CHECK(mine[0], -(size - 1) + size, "accumulates to shared memory");
    MPI_Barrier(comm);
    DONE(MPI_Win_free(&win));
}

/* While a process has locked all parts, no other one changes those that it loads from. */
static void locked(MPI_Comm comm, int is_allocated) {
    int rank, size, unit, *mine, value = 7;
    volatile int *found;
    MPI_Win win;
    MPI_Aint bytes;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (is_allocated) {
        DONE(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &mine, &win));
    } else {
        DONE(MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &mine, &win));
    }
    *mine = 1;
    MPI_Barrier(comm);
    int last = size - 1;
    DONE(MPI_Win_shared_query(win, last, &bytes, &unit, &found));
    if (rank == 0) DONE(MPI_Win_lock_all(0, win));
    MPI_Barrier(comm);
    if (rank == 0) {
        int before = *found;
        double end = MPI_Wtime() + 0.05;
        while (MPI_Wtime() < end) DONE(MPI_Win_sync(win));
        CHECK(*found, before, "the part of rank %d while this process holds the locks", last);
        DONE(MPI_Win_unlock_all(win));
    }
    if (rank == 1 || size == 1) {
        DONE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, win));
        DONE(MPI_Put(&value, 1, MPI_INT, last, 0, 1, MPI_INT, win));
        DONE(MPI_Win_unlock(last, win));
    }
    MPI_Barrier(comm);
    if (rank == last) CHECK(*mine, 7, "a put under an exclusive lock");
    DONE(MPI_Win_free(&win));
}

/* Only some processes have memory. */
static void uneven(MPI_Comm comm) {
    int rank, size, unit;
    double *mine, *found;
    MPI_Win win;
    MPI_Aint bytes;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int last = size - 1;
    DONE(MPI_Win_allocate_shared(rank == last ? 80 : 0, sizeof(double), MPI_INFO_NULL, comm, &mine, &win));
    DONE(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &found));
    CHECK(bytes, 80, "bytes of the first process with memory");
    DONE(MPI_Win_fence(0, win));
    if (rank == 0) found[3] = 2.5;
    DONE(MPI_Win_fence(0, win));
    double got = 0;
    DONE(MPI_Get(&got, 1, MPI_DOUBLE, last, 3, 1, MPI_DOUBLE, win));
    DONE(MPI_Win_fence(0, win));
    CHECK(got * 2, 5, "a store of rank 0 to the memory of the last");
    DONE(MPI_Win_free(&win));
    /* Nobody has any. */
    DONE(MPI_Win_allocate_shared(0, 1, MPI_INFO_NULL, comm, &mine, &win));
    DONE(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &found));
    CHECK(bytes, 0, "bytes of a window without memory");
    DONE(MPI_Win_free(&win));
}

static void others(MPI_Comm comm) {
    int rank, size, unit, *mine, *other, memory[2] = {3, 4};
    MPI_Win win;
    MPI_Aint bytes;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    DONE(MPI_Win_allocate(8, 4, MPI_INFO_NULL, comm, &mine, &win));
    mine[1] = 5 + rank;
    MPI_Barrier(comm);
    int next = (rank + 1) % size;
    DONE(MPI_Win_shared_query(win, next, &bytes, &unit, &other));
    CHECK(bytes, 8, "bytes of an allocated window of one node");
    if (bytes == 8) CHECK(other[1], 5 + next, "an element of an allocated window");
    MPI_Barrier(comm);
    DONE(MPI_Win_free(&win));
    DONE(MPI_Win_create(memory, 8, 4, MPI_INFO_NULL, comm, &win));
    DONE(MPI_Win_shared_query(win, next, &bytes, &unit, &other));
    CHECK(bytes, next == rank ? 8 : 0, "bytes of private memory");
    CHECK(other == (next == rank ? memory : NULL), 1, "the address of private memory");
    DONE(MPI_Win_free(&win));
    DONE(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    REFUSED(MPI_Win_shared_query(win, 0, &bytes, &unit, &other), MPI_ERR_RMA_FLAVOR);
    DONE(MPI_Win_free(&win));
    /* A window on memory that another window has shared. */
    MPI_Win first;
    DONE(MPI_Win_allocate_shared(16, 4, MPI_INFO_NULL, comm, &mine, &first));
    memset(mine, 0, 16);
    DONE(MPI_Win_create(mine, 16, 4, MPI_INFO_NULL, comm, &win));
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Put(&rank, 1, MPI_INT, next, 3, 1, MPI_INT, win));
    DONE(MPI_Win_fence(0, win));
    CHECK(mine[3], (rank + size - 1) % size, "put to memory of another window");
    DONE(MPI_Win_free(&win));
    DONE(MPI_Win_free(&first));
}

/* Parts that need not follow each other. */
static void apart(MPI_Comm comm) {
    int rank, size, unit, *mine, *other, flag, length = 8;
    char value[8];
    MPI_Win win;
    MPI_Aint bytes;
    MPI_Info info, used;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", "true");
    MPI_Info_set(info, "unknown", "true");
    DONE(MPI_Win_allocate_shared(12, 4, info, comm, &mine, &win));
    MPI_Info_free(&info);
    mine[2] = rank;
    MPI_Barrier(comm);
    for (int r = 0; r < size; r++) {
        DONE(MPI_Win_shared_query(win, r, &bytes, &unit, &other));
        CHECK(bytes, 12, "bytes of a part");
        CHECK(other[2], r, "an element of a part");
    }
    DONE(MPI_Win_get_info(win, &used));
    MPI_Info_get_string(used, "alloc_shared_noncontig", &length, value, &flag);
    CHECK(flag && strcmp(value, "true") == 0, 1, "the hint in use");
    MPI_Info_get_string(used, "unknown", &length, value, &flag);
    CHECK(flag, 0, "a hint that is unknown");
    DONE(MPI_Win_set_info(win, used));
    MPI_Info_free(&used);
    MPI_Barrier(comm);
    DONE(MPI_Win_free(&win));
}

/* The alignment in use is one that the memory of this process has. */
static void alignment(MPI_Comm comm) {
    static const char *const asked[] = {"64", "4096", "8192", "1048576", "48", "much"};
    for (int i = 0; i < 12; i++) {
        MPI_Info info, used;
        MPI_Win win;
        char *base;
        int flag, is_shared = i >= 6;
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_minimum_memory_alignment", asked[i % 6]);
        if (is_shared) {
            DONE(MPI_Win_allocate_shared(100, 1, info, comm, &base, &win));
        } else {
            DONE(MPI_Win_allocate(100, 1, info, comm, &base, &win));
        }
        for (int again = 0; again < 2; again++) {
            char value[16] = "";
            int length = sizeof value;
            DONE(MPI_Win_get_info(win, &used));
            MPI_Info_get_string(used, "mpi_minimum_memory_alignment", &length, value, &flag);
            MPI_Info_free(&used);
            long bytes = flag ? atol(value) : 1;
            CHECK((MPI_Aint)base % bytes, 0, "the alignment %s of memory at %p", value, (void *)base);
            if (!is_shared) CHECK(flag, i < 2, "whether the alignment %s is in use", asked[i]);
            DONE(MPI_Win_set_info(win, info));
        }
        MPI_Info_free(&info);
        DONE(MPI_Win_free(&win));
    }
}

/* Whether a window has a hint with a value. */
static int has_hint(MPI_Win win, const char *key, const char *expected) {
    char value[64] = "";
    int length = sizeof value, flag;
    MPI_Info used;
    DONE(MPI_Win_get_info(win, &used));
    MPI_Info_get_string(used, key, &length, value, &flag);
    MPI_Info_free(&used);
    return expected ? flag && strcmp(value, expected) == 0 : !flag;
}

/* Hints are taken if they are valid, and those of gaps say what holds. */
static void hints(MPI_Comm comm) {
    static const char *const taken[] = {"none", "rar", "war,waw", "waw,raw,war,rar"};
    static const char *const ignored[] = {"", "nonsense", "rar,none", "raw,", "raw;war", "RAR"};
    static const char gaps[] = "alloc_shared_noncontig", order[] = "accumulate_ordering";
    int rank, size, memory;
    char *base;
    MPI_Info info;
    MPI_Win win;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Info_create(&info);
    DONE(MPI_Win_create(&memory, sizeof memory, 4, MPI_INFO_NULL, comm, &win));
    CHECK(has_hint(win, order, "rar,raw,war,waw"), 1, "the order at first");
    for (int i = 0; i < 4; i++) {
        MPI_Info_set(info, order, taken[i]);
        DONE(MPI_Win_set_info(win, info));
        CHECK(has_hint(win, order, taken[i]), 1, "the order '%s'", taken[i]);
    }
    for (int i = 0; i < 6; i++) {
        MPI_Info_set(info, order, ignored[i]);
        DONE(MPI_Win_set_info(win, info));
        CHECK(has_hint(win, order, taken[3]), 1, "the order '%s' is ignored", ignored[i]);
    }
    MPI_Info_delete(info, order);
    MPI_Info_set(info, gaps, "true");
    DONE(MPI_Win_set_info(win, info));
    CHECK(has_hint(win, gaps, NULL), 1, "alloc_shared_noncontig of a window that is not shared");
    DONE(MPI_Win_free(&win));
    /* It cannot be changed later, and is not in use unless all processes give it. */
    DONE(MPI_Win_allocate_shared(8, 1, rank == 0 ? info : MPI_INFO_NULL, comm, &base, &win));
    const char *given_by_all = size == 1 ? "true" : "false";
    CHECK(has_hint(win, gaps, given_by_all), 1, "alloc_shared_noncontig, set by rank 0 alone");
    DONE(MPI_Win_free(&win));
    DONE(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, comm, &base, &win));
    CHECK(has_hint(win, gaps, "false"), 1, "alloc_shared_noncontig, set by no process");
    DONE(MPI_Win_set_info(win, info));
    CHECK(has_hint(win, gaps, "false"), 1, "alloc_shared_noncontig, set after the window was made");
    DONE(MPI_Win_free(&win));
    DONE(MPI_Win_allocate_shared(8, 1, info, comm, &base, &win));
    MPI_Info_set(info, gaps, "false");
    DONE(MPI_Win_set_info(win, info));
    CHECK(has_hint(win, gaps, "true"), 1, "alloc_shared_noncontig, set by all processes");
    DONE(MPI_Win_free(&win));
    MPI_Info_free(&info);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Comm comm;
    /* The processes of this node, of which `one_node` tells. */
    if (one_node(MPI_COMM_WORLD)) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    } else {
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    }
    shared(comm);
    locked(comm, 0);
    locked(comm, 1);
    uneven(comm);
    others(comm);
    apart(comm);
    alignment(comm);
    hints(comm);
    MPI_Comm_free(&comm);
    shared(MPI_COMM_SELF);
    return finish();
}
