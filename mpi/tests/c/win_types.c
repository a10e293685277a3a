/* Derived datatypes at the origin and at the target, and pairs of a value and its place. */
#include "win_check.h"

enum { LEN = 64 };

static void vectors(enum kind kind) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, LEN * sizeof(int), sizeof(int), &base, starts);
    int to = (me + 1) % n, from = (me + n - 1) % n, data[LEN], got[LEN], *mine = (int *)base;
    MPI_Datatype every_other, reversed, row;
    DONE(MPI_Type_vector(10, 1, 2, MPI_INT, &every_other));
    DONE(MPI_Type_commit(&every_other));
    int lengths[3] = {4, 1, 5}, places[3] = {20, 0, 8};
    DONE(MPI_Type_indexed(3, lengths, places, MPI_INT, &reversed));
    DONE(MPI_Type_commit(&reversed));
    DONE(MPI_Type_contiguous(10, MPI_INT, &row));
    DONE(MPI_Type_commit(&row));
    for (int i = 0; i < LEN; i++) data[i] = 100 * me + i, got[i] = -1;
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Put(data, 1, every_other, to, at(kind, starts[to], 2, 4), 1, reversed, win));
    DONE(MPI_Win_fence(0, win));
    int expected[LEN] = {0}, next = 0;
    for (int block = 0; block < 3; block++) {
        for (int i = 0; i < lengths[block]; i++) expected[2 + places[block] + i] = 100 * from + 2 * next++;
    }
    for (int i = 0; i < LEN; i++) CHECK(mine[i], expected[i], "%s: put of a vector, element %d", kind_name(kind), i);
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Get(got, 1, every_other, to, at(kind, starts[to], 2, 4), 1, reversed, win));
    DONE(MPI_Win_fence(0, win));
    for (int i = 0; i < LEN; i++) {
        CHECK(got[i], i < 20 && i % 2 == 0 ? data[i] : -1, "%s: got a vector, element %d", kind_name(kind), i);
    }
    /* All processes add to the same elements. */
    for (int i = 0; i < LEN; i++) mine[i] = 0, data[i] = i + 1;
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Accumulate(data, 1, row, 0, at(kind, starts[0], 2, 4), 1, every_other, MPI_SUM, win));
    DONE(MPI_Win_fence(0, win));
    for (int i = 0; i < LEN && me == 0; i++) {
        int is_hit = i >= 2 && i < 22 && i % 2 == 0;
        CHECK(mine[i], is_hit ? n * (i / 2) : 0, "%s: accumulate to a vector, element %d", kind_name(kind), i);
    }
    for (int i = 0; i < LEN; i++) got[i] = -1;
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Get_accumulate(NULL, 0, MPI_INT, got, 1, every_other, 0, at(kind, starts[0], 2, 4), 1, every_other,
                            MPI_NO_OP, win));
    DONE(MPI_Win_fence(0, win));
    for (int i = 0; i < LEN; i++) {
        CHECK(got[i], i < 20 && i % 2 == 0 ? n * (i / 2 + 1) : -1, "%s: fetched vector, element %d", kind_name(kind), i);
    }
    MPI_Request request;
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    DONE(MPI_Rget(data, 1, row, 0, at(kind, starts[0], 2, 4), 1, every_other, win, &request));
    /* The datatype may go before the operation is complete. */
    DONE(MPI_Type_free(&every_other));
    DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
    DONE(MPI_Win_unlock(0, win));
    for (int i = 0; i < 10; i++) CHECK(data[i], n * (i + 1), "%s: got with a request, element %d", kind_name(kind), i);
    DONE(MPI_Type_free(&reversed));
    DONE(MPI_Type_free(&row));
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

struct pair {
    short value;
    int place;
};

static void pairs(enum kind kind) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, 8 * sizeof(struct pair), 1, &base, starts);
    struct pair own[2] = {{(short)(10 * me), me}, {(short)(-10 * me), me}}, old[2], *mine = (struct pair *)base;
    for (int i = 0; i < 8; i++) mine[i].value = -1;
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Accumulate(own, 2, MPI_SHORT_INT, 0, starts[0], 2, MPI_SHORT_INT, MPI_MAXLOC, win));
    DONE(MPI_Win_fence(0, win));
    if (me == n - 1) {
        DONE(MPI_Get_accumulate(own, 2, MPI_SHORT_INT, old, 2, MPI_SHORT_INT, 0, starts[0], 2, MPI_SHORT_INT,
                                MPI_REPLACE, win));
    }
    DONE(MPI_Win_fence(0, win));
    if (me == n - 1) {
        CHECK(old[0].value, 10 * (n - 1), "%s: the largest value", kind_name(kind));
        CHECK(old[0].place, n - 1, "%s: its place", kind_name(kind));
        CHECK(old[1].value, 0, "%s: the largest negative value", kind_name(kind));
        CHECK(old[1].place, 0, "%s: its place", kind_name(kind));
    }
    if (me == 0) {
        CHECK(mine[0].value, 10 * (n - 1), "%s: the value that replaces", kind_name(kind));
        CHECK(mine[1].value, -10 * (n - 1), "%s: the value that replaces", kind_name(kind));
        CHECK(mine[2].value, -1, "%s: the value behind", kind_name(kind));
    }
    DONE(MPI_Win_fence(0, win));
    close_window(kind, &win, base);
}

static void refused(void) {
    MPI_Datatype type, mixed;
    MPI_Win win;
    int memory[8] = {0}, data[8] = {0};
    DONE(MPI_Win_create(memory, sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    DONE(MPI_Type_vector(2, 1, 4, MPI_INT, &type));
    DONE(MPI_Win_fence(0, win));
    REFUSED(MPI_Put(data, 1, type, 0, 0, 2, MPI_INT, win), MPI_ERR_TYPE);
    REFUSED(MPI_Put(data, 2, MPI_INT, 0, 0, 1, type, win), MPI_ERR_TYPE);
    DONE(MPI_Type_commit(&type));
    REFUSED(MPI_Put(data, 2, MPI_INT, 0, 4, 1, type, win), MPI_ERR_RMA_RANGE);
    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_FLOAT};
    DONE(MPI_Type_create_struct(2, lengths, places, types, &mixed));
    DONE(MPI_Type_commit(&mixed));
    REFUSED(MPI_Accumulate(data, 1, mixed, 0, 0, 1, mixed, MPI_SUM, win), MPI_ERR_TYPE);
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Type_free(&type));
    DONE(MPI_Type_free(&mixed));
    DONE(MPI_Win_free(&win));
}

/* More blocks than one call of the system moves, small ones and one that is large. */
static void many_blocks(enum kind kind) {
    enum { BLOCKS = 2500, ALL = BLOCKS + 5000, WORDS = 3 * BLOCKS + 5002 };
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, WORDS * sizeof(int), sizeof(int), &base, starts);
    int to = (me + 1) % n, from = (me + n - 1) % n, *mine = (int *)base, wrong = 0;
    int *data = malloc(ALL * sizeof *data), *got = malloc(ALL * sizeof *got);
    int *lengths = malloc(BLOCKS * sizeof *lengths), *places = malloc(BLOCKS * sizeof *places);
    MPI_Datatype type;
    for (int i = 0; i < BLOCKS; i++) {
        lengths[i] = i == 1700 ? 5001 : 1;
        places[i] = 3 * i + 1 + (i > 1700 ? 5000 : 0);
    }
    DONE(MPI_Type_indexed(BLOCKS, lengths, places, MPI_INT, &type));
    DONE(MPI_Type_commit(&type));
    for (int i = 0; i < ALL; i++) data[i] = 10 * i + me, got[i] = -1;
    MPI_Aint place = at(kind, starts[to], 0, 4);
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Put(data, ALL, MPI_INT, to, place, 1, type, win));
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Accumulate(data, ALL, MPI_INT, to, place, 1, type, MPI_SUM, win));
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Get(got, ALL, MPI_INT, to, place, 1, type, win));
    DONE(MPI_Win_fence(0, win));
    for (int i = 0; i < ALL; i++) wrong += got[i] != 2 * data[i];
    CHECK(wrong, 0, "%s: elements got of many blocks", kind_name(kind));
    wrong = 0;
    for (int block = 0, i = 0, word = 0; block < BLOCKS; block++) {
        for (; word < places[block]; word++) wrong += mine[word] != 0;
        for (int k = 0; k < lengths[block]; k++) wrong += mine[word++] != 2 * (10 * i++ + from);
    }
    CHECK(wrong, 0, "%s: words of many blocks and between them", kind_name(kind));
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
    DONE(MPI_Type_free(&type));
    free(data), free(got), free(lengths), free(places);
}

/* Blocks with wide gaps between them. */
static void far_apart(enum kind kind) {
    enum { BLOCKS = 200, STRIDE = 600 };
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, BLOCKS * STRIDE * sizeof(int), sizeof(int), &base, starts);
    int to = (me + 1) % n, data[2 * BLOCKS], got[2 * BLOCKS], *mine = (int *)base, wrong = 0;
    MPI_Datatype type;
    MPI_Request request;
    DONE(MPI_Type_vector(BLOCKS, 2, STRIDE, MPI_INT, &type));
    DONE(MPI_Type_commit(&type));
    for (int i = 0; i < 2 * BLOCKS; i++) {
        mine[i / 2 * STRIDE + i % 2] = 1000 * me + i;
        data[i] = got[i] = -1;
    }
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Get(data, 2 * BLOCKS, MPI_INT, to, at(kind, starts[to], 0, 4), 1, type, win));
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
    DONE(MPI_Rget(got, 2 * BLOCKS, MPI_INT, to, at(kind, starts[to], 0, 4), 1, type, win, &request));
    DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
    DONE(MPI_Win_unlock(to, win));
    for (int i = 0; i < 2 * BLOCKS; i++) wrong += data[i] != 1000 * to + i || got[i] != data[i];
    CHECK(wrong, 0, "%s: elements that are far apart", kind_name(kind));
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
    DONE(MPI_Type_free(&type));
}

/* Accumulates keep their order, one of many blocks and others of few, in an epoch of a post. */
static void blocks_in_order(enum kind kind) {
    enum { BLOCKS = 3000 };
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, 2 * BLOCKS * sizeof(int), sizeof(int), &base, starts);
    int to = (me + 1) % n, from = (me + n - 1) % n, *mine = (int *)base, wrong = 0;
    int last = -me - 1, seen = -1, old = -1, *data = malloc(BLOCKS * sizeof *data);
    MPI_Aint first = at(kind, starts[to], 0, 4), second = at(kind, starts[to], 2, 4);
    MPI_Datatype type;
    MPI_Group world;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    DONE(MPI_Type_vector(BLOCKS, 1, 2, MPI_INT, &type));
    DONE(MPI_Type_commit(&type));
    for (int i = 0; i < BLOCKS; i++) data[i] = 10 * i + me;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < 3; round++) {
        DONE(MPI_Win_post(world, 0, win));
        DONE(MPI_Win_start(world, 0, win));
        DONE(MPI_Accumulate(data, BLOCKS, MPI_INT, to, first, 1, type, MPI_REPLACE, win));
        DONE(MPI_Fetch_and_op(&last, &seen, MPI_INT, to, first, MPI_REPLACE, win));
        DONE(MPI_Get_accumulate(NULL, 0, MPI_INT, &old, 1, MPI_INT, to, second, 1, MPI_INT, MPI_NO_OP, win));
        DONE(MPI_Win_complete(win));
        CHECK(seen, data[0], "%s: fetched behind many blocks", kind_name(kind));
        CHECK(old, data[1], "%s: got behind many blocks", kind_name(kind));
        DONE(MPI_Win_wait(win));
        CHECK(mine[0], -from - 1, "%s: the later value", kind_name(kind));
        for (int i = 1; i < BLOCKS; i++) wrong += mine[2 * i] != 10 * i + from || mine[2 * i + 1] != 0;
        CHECK(wrong, 0, "%s: blocks of a post", kind_name(kind));
        MPI_Barrier(MPI_COMM_WORLD);
        /* Between two posts, an epoch of a lock. */
        int value = 0;
        DONE(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
        DONE(MPI_Put(data, BLOCKS, MPI_INT, to, first, 1, type, win));
        DONE(MPI_Win_flush(to, win));
        DONE(MPI_Get(&value, 1, MPI_INT, to, second, 1, MPI_INT, win));
        DONE(MPI_Win_unlock(to, win));
        CHECK(value == 10 + me, 1, "%s: blocks put under a lock", kind_name(kind));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    close_window(kind, &win, base);
    DONE(MPI_Type_free(&type));
    MPI_Group_free(&world);
    free(data);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (int kind = 0; kind < KINDS; kind++) {
        vectors(kind);
        pairs(kind);
        many_blocks(kind);
        far_apart(kind);
        blocks_in_order(kind);
    }
    refused();
    return finish();
}
