/* Dynamic windows: several pieces of memory that come and go, and a list that processes build together. */
#include "win_check.h"

enum { PIECES = 20, LEN = 10 };

struct cell {
    int value;
    int next_rank;
    MPI_Aint next;
};

static void pieces(void) {
    MPI_Win win;
    int *memory[PIECES], to = (me + 1) % n;
    MPI_Aint own[PIECES], all[64 * PIECES];
    DONE(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < PIECES; i++) {
        memory[i] = calloc(LEN, sizeof(int));
        DONE(MPI_Win_attach(win, memory[i], LEN * sizeof(int)));
        MPI_Get_address(memory[i], &own[i]);
    }
    REFUSED(MPI_Win_attach(win, memory[3] + 1, 4), MPI_ERR_RMA_ATTACH);
    REFUSED(MPI_Win_attach(win, memory[3], -4), MPI_ERR_SIZE);
    REFUSED(MPI_Win_detach(win, memory[3] + 1), MPI_ERR_RMA_ATTACH);
    MPI_Allgather(own, PIECES, MPI_AINT, all, PIECES, MPI_AINT, MPI_COMM_WORLD);
    DONE(MPI_Win_lock_all(0, win));
    for (int i = 0; i < PIECES; i++) {
        int values[LEN];
        for (int k = 0; k < LEN; k++) values[k] = 100 * i + 10 * me + k;
        MPI_Aint there = MPI_Aint_add(all[to * PIECES + i], 2 * sizeof(int));
        DONE(MPI_Put(values, LEN - 2, MPI_INT, to, there, LEN - 2, MPI_INT, win));
        DONE(MPI_Win_flush(to, win));
        DONE(MPI_Accumulate(values, LEN - 2, MPI_INT, to, there, LEN - 2, MPI_INT, MPI_SUM, win));
    }
    DONE(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
    int from = (me + n - 1) % n;
    for (int i = 0; i < PIECES; i++) {
        for (int k = 0; k < LEN; k++) {
            int expected = k < 2 ? 0 : 2 * (100 * i + 10 * from + k - 2);
            CHECK(memory[i][k], expected, "piece %d, element %d", i, k);
        }
    }
    /* Memory that is detached is refused. */
    DONE(MPI_Win_detach(win, memory[5]));
    MPI_Barrier(MPI_COMM_WORLD);
    int value = 1, got = 0;
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
    int code = MPI_Put(&value, 1, MPI_INT, to, all[to * PIECES + 5], 1, MPI_INT, win);
    int flushed = MPI_Win_flush(to, win);
    CHECK(code != MPI_SUCCESS ? code : flushed, MPI_ERR_RMA_RANGE, "a put to memory that is detached");
    code = MPI_Get(&got, 1, MPI_INT, to, all[to * PIECES + 5], 1, MPI_INT, win);
    flushed = MPI_Win_flush(to, win);
    CHECK(code != MPI_SUCCESS ? code : flushed, MPI_ERR_RMA_RANGE, "a get of memory that is detached");
    /* Whoever waits for the request gets its error, and the flush has no other one. */
    MPI_Request request;
    code = MPI_Rget(&got, 1, MPI_INT, to, all[to * PIECES + 5], 1, MPI_INT, win, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(code, MPI_ERR_RMA_RANGE, "a get with a request of memory that is detached");
    DONE(MPI_Win_flush(to, win));
    DONE(MPI_Put(&value, 1, MPI_INT, to, all[to * PIECES + 6], 1, MPI_INT, win));
    DONE(MPI_Win_unlock(to, win));
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(memory[6][0], 1, "a put after one that was refused");
    DONE(MPI_Win_attach(win, memory[5], LEN * sizeof(int)));
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_Win_free(&win));
    for (int i = 0; i < PIECES; i++) free(memory[i]);
}

/* Every process appends cells of its own to one list, whose head is that of process 0. */
static void list(void) {
    enum { CELLS = 8 };
    MPI_Win win;
    struct cell head = {-1, -1, 0}, *cells[CELLS];
    struct { MPI_Aint at; } start;
    DONE(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    DONE(MPI_Win_attach(win, &head, sizeof head));
    MPI_Get_address(&head, &start.at);
    MPI_Bcast(&start.at, 1, MPI_AINT, 0, MPI_COMM_WORLD);
    DONE(MPI_Win_lock_all(0, win));
    int rank = 0;
    MPI_Aint at = start.at;
    for (int i = 0; i < CELLS; i++) {
        MPI_Aint mine, seen, next;
        cells[i] = malloc(sizeof(struct cell));
        *cells[i] = (struct cell){me * CELLS + i, -1, 0};
        DONE(MPI_Win_attach(win, cells[i], sizeof(struct cell)));
        MPI_Get_address(cells[i], &mine);
        for (;;) {
            /* The word says rank and place of the next cell at once: its rank in the lowest bits, which the
             * addresses of cells do not use. */
            MPI_Aint word = mine | (me & 7), none = 0;
            DONE(MPI_Compare_and_swap(&word, &none, &seen, MPI_AINT, rank, at + offsetof(struct cell, next), win));
            DONE(MPI_Win_flush(rank, win));
            if (seen == 0) break;
            next = seen & ~(MPI_Aint)7, rank = (int)(seen & 7), at = next;
        }
    }
    DONE(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) {
        int found[8 * CELLS] = {0}, count = 0;
        MPI_Aint word = head.next;
        DONE(MPI_Win_lock_all(0, win));
        while (word != 0) {
            struct cell cell;
            int from = (int)(word & 7);
            DONE(MPI_Get(&cell, sizeof cell, MPI_BYTE, from, word & ~(MPI_Aint)7, sizeof cell, MPI_BYTE, win));
            DONE(MPI_Win_flush(from, win));
            if (cell.value >= 0 && cell.value < n * CELLS) found[cell.value]++;
            word = cell.next;
            if (++count > n * CELLS) break;
        }
        DONE(MPI_Win_unlock_all(win));
        CHECK(count, n * CELLS, "cells of the list");
        for (int i = 0; i < n * CELLS; i++) CHECK(found[i], 1, "cell %d", i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < CELLS; i++) DONE(MPI_Win_detach(win, cells[i]));
    DONE(MPI_Win_detach(win, &head));
    DONE(MPI_Win_free(&win));
    for (int i = 0; i < CELLS; i++) free(cells[i]);
}

/* A process that has locked all parts is alone with its own one, whose memory it loads and stores. */
static void own_part(void) {
    MPI_Win win;
    volatile int memory[2] = {1, 1};
    MPI_Aint at;
    int value = 5;
    DONE(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    DONE(MPI_Win_attach(win, (void *)memory, sizeof memory));
    MPI_Get_address((void *)memory, &at);
    MPI_Bcast(&at, 1, MPI_AINT, 0, MPI_COMM_WORLD);
    if (me == 0) DONE(MPI_Win_lock_all(0, win));
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) {
        int before = memory[0];
        double end = MPI_Wtime() + 0.05;
        /* The window makes progress for the others, also where no lock is held. */
        while (MPI_Wtime() < end) DONE(MPI_Win_sync(win));
        CHECK(memory[0], before, "the own part while this process holds the locks");
        memory[1]++;
        DONE(MPI_Put(&value, 1, MPI_INT, 0, at + 4, 1, MPI_INT, win));
        DONE(MPI_Win_unlock_all(win));
    }
    if (me == 1) {
        DONE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        DONE(MPI_Put(&value, 1, MPI_INT, 0, at, 1, MPI_INT, win));
        DONE(MPI_Win_unlock(0, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* All locks were given back. */
    DONE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    DONE(MPI_Win_unlock(0, win));
    if (me == 0) CHECK(memory[0] + memory[1], n > 1 ? 10 : 6, "the own part after all locks");
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_Win_free(&win));
}

/* Attaches of no bytes. */
static void nothing(void) {
    MPI_Win win;
    int memory[4];
    DONE(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    DONE(MPI_Win_attach(win, memory, sizeof memory));
    DONE(MPI_Win_attach(win, memory + 1, 0));
    DONE(MPI_Win_attach(win, memory, 0));
    DONE(MPI_Win_attach(win, NULL, 0));
    DONE(MPI_Win_detach(win, memory + 1));
    REFUSED(MPI_Win_detach(win, memory + 1), MPI_ERR_RMA_ATTACH);
    DONE(MPI_Win_detach(win, memory));
    DONE(MPI_Win_detach(win, memory));
    REFUSED(MPI_Win_detach(win, memory), MPI_ERR_RMA_ATTACH);
    DONE(MPI_Win_detach(win, NULL));
    DONE(MPI_Win_free(&win));
}

/* More ranges than one block has room for: every second word of an array. */
static void many_ranges(void) {
    enum { RANGES = 40000, STEP = 97 };
    MPI_Win win;
    MPI_Aint own, there;
    int *memory = calloc(2 * RANGES, sizeof *memory), to = (me + 1) % n, from = (me + n - 1) % n, wrong = 0;
    DONE(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < RANGES; i++) {
        memory[2 * i] = i + me;
        wrong += MPI_Win_attach(win, memory + 2 * i, sizeof *memory) != MPI_SUCCESS;
    }
    CHECK(wrong, 0, "attaches that were refused");
    REFUSED(MPI_Win_attach(win, memory + 1000, 4), MPI_ERR_RMA_ATTACH);
    REFUSED(MPI_Win_attach(win, memory + 1001, 8), MPI_ERR_RMA_ATTACH);
    MPI_Get_address(memory, &own);
    MPI_Sendrecv(&own, 1, MPI_AINT, from, 0, &there, 1, MPI_AINT, to, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    DONE(MPI_Win_lock_all(0, win));
    for (int i = 0; i < RANGES; i += STEP) {
        int got = -1;
        DONE(MPI_Get(&got, 1, MPI_INT, to, there + 8 * i, 1, MPI_INT, win));
        DONE(MPI_Win_flush(to, win));
        wrong += got != i + to;
    }
    CHECK(wrong, 0, "wrong words");
    DONE(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
    /* Detached ranges are refused, and give their places to others. */
    for (int i = 0; i < RANGES; i += STEP) wrong += MPI_Win_detach(win, memory + 2 * i) != MPI_SUCCESS;
    CHECK(wrong, 0, "detaches that were refused");
    DONE(MPI_Win_attach(win, memory, 4));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 4 * STEP; i++) {
        int got = -1, is_attached = i == 0 || i % STEP != 0;
        DONE(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
        int code = MPI_Get(&got, 1, MPI_INT, to, there + 8 * i, 1, MPI_INT, win);
        int flushed = MPI_Win_flush(to, win);
        CHECK(code != MPI_SUCCESS ? code : flushed, is_attached ? MPI_SUCCESS : MPI_ERR_RMA_RANGE, "range %d", i);
        DONE(MPI_Win_unlock(to, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_Win_free(&win));
    free(memory);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    pieces();
    if (n <= 8) list();
    own_part();
    nothing();
    many_ranges();
    return finish();
}
