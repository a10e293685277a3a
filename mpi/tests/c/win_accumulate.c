/* Accumulates in windows of all kinds: every operation, contention, what is fetched, compare-and-swap. */
#include "win_check.h"
#include <stdint.h>

enum { ROUNDS = 200 };

/* All processes add to the same elements of process 0. */
static void contend(enum kind kind) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, 64 * sizeof(int64_t), 8, &base, starts);
    int64_t one[3] = {1, 2, 3}, old, seen = -1;
    double half = 0.5;
    int ok = 1;
    DONE(MPI_Win_lock_all(0, win));
    for (int i = 0; i < ROUNDS; i++) {
        DONE(MPI_Accumulate(one, 3, MPI_INT64_T, 0, at(kind, starts[0], 0, 8), 3, MPI_INT64_T, MPI_SUM, win));
        DONE(MPI_Fetch_and_op(one, &old, MPI_INT64_T, 0, at(kind, starts[0], 4, 8), MPI_SUM, win));
        DONE(MPI_Accumulate(&half, 1, MPI_DOUBLE, 0, at(kind, starts[0], 5, 8), 1, MPI_DOUBLE, MPI_SUM, win));
        DONE(MPI_Win_flush(0, win));
        ok &= old > seen, seen = old;
    }
    CHECK(ok, 1, "%s: fetched values rise", kind_name(kind));
    DONE(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) {
        int64_t *mine = (int64_t *)base;
        DONE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        for (int i = 0; i < 3; i++) CHECK(mine[i], (int64_t)n * ROUNDS * (i + 1), "%s: sum %d", kind_name(kind), i);
        CHECK(mine[4], (int64_t)n * ROUNDS, "%s: fetched sum", kind_name(kind));
        CHECK(2 * ((double *)mine)[5], (int64_t)n * ROUNDS, "%s: sum of doubles", kind_name(kind));
        DONE(MPI_Win_unlock(0, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

/* A lock by compare-and-swap protects a counter that is read and written. */
static void spin(enum kind kind) {
    enum { TURNS = 20 };
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, 2 * sizeof(int), sizeof(int), &base, starts);
    int zero = 0, id = me + 1, old, count;
    DONE(MPI_Win_lock_all(0, win));
    for (int i = 0; i < TURNS; i++) {
        do {
            DONE(MPI_Compare_and_swap(&id, &zero, &old, MPI_INT, 0, at(kind, starts[0], 0, 4), win));
            DONE(MPI_Win_flush(0, win));
        } while (old != 0);
        DONE(MPI_Get(&count, 1, MPI_INT, 0, at(kind, starts[0], 1, 4), 1, MPI_INT, win));
        DONE(MPI_Win_flush(0, win));
        count++;
        DONE(MPI_Put(&count, 1, MPI_INT, 0, at(kind, starts[0], 1, 4), 1, MPI_INT, win));
        DONE(MPI_Win_flush(0, win));
        DONE(MPI_Compare_and_swap(&zero, &id, &old, MPI_INT, 0, at(kind, starts[0], 0, 4), win));
        DONE(MPI_Win_flush(0, win));
        CHECK(old, id, "%s: the holder of the lock", kind_name(kind));
    }
    DONE(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) CHECK(((int *)base)[1], n * TURNS, "%s: count under the lock", kind_name(kind));
    close_window(kind, &win, base);
}

#define OPERATION(type, handle, op, first, second, expected)                                                  \
    do {                                                                                                      \
        type start = (first), operand = (second), old = 0, now = 0;                                           \
        DONE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win));                                                   \
        DONE(MPI_Put(&start, 1, handle, to, starts[to] + 16, 1, handle, win));                                \
        DONE(MPI_Win_flush(to, win));                                                                         \
        DONE(MPI_Get_accumulate(&operand, 1, handle, &old, 1, handle, to, starts[to] + 16, 1, handle, op, win)); \
        DONE(MPI_Win_flush(to, win));                                                                         \
        DONE(MPI_Fetch_and_op(NULL, &now, handle, to, starts[to] + 16, MPI_NO_OP, win));                      \
        DONE(MPI_Win_unlock(to, win));                                                                        \
        CHECK(old == start, 1, "%s: old value, %s of %s", kind_name(kind), #op, #handle);                     \
        CHECK(now == (type)(expected), 1, "%s: new value, %s of %s", kind_name(kind), #op, #handle);          \
    } while (0)

#define INTEGERS(type, handle)                                      \
    OPERATION(type, handle, MPI_SUM, 100, 27, 127);                 \
    OPERATION(type, handle, MPI_PROD, 7, 11, 77);                   \
    OPERATION(type, handle, MPI_MIN, 7, 11, 7);                     \
    OPERATION(type, handle, MPI_MAX, 7, 11, 11);                    \
    OPERATION(type, handle, MPI_BAND, 6, 3, 2);                     \
    OPERATION(type, handle, MPI_BOR, 6, 3, 7);                      \
    OPERATION(type, handle, MPI_BXOR, 6, 3, 5);                     \
    OPERATION(type, handle, MPI_LAND, 6, 0, 0);                     \
    OPERATION(type, handle, MPI_LAND, 6, 8, 1);                     \
    OPERATION(type, handle, MPI_LOR, 6, 0, 1);                      \
    OPERATION(type, handle, MPI_LXOR, 6, 3, 0);                     \
    OPERATION(type, handle, MPI_REPLACE, 6, 3, 3);                  \
    OPERATION(type, handle, MPI_NO_OP, 6, 3, 6)

static void operations(enum kind kind) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, 64, 1, &base, starts);
    int to = (me + 1) % n;
    INTEGERS(int8_t, MPI_INT8_T);
    INTEGERS(uint8_t, MPI_UINT8_T);
    INTEGERS(signed char, MPI_CHAR);
    INTEGERS(short, MPI_SHORT);
    INTEGERS(unsigned short, MPI_UNSIGNED_SHORT);
    INTEGERS(int, MPI_INT);
    INTEGERS(unsigned, MPI_UNSIGNED);
    INTEGERS(long, MPI_LONG);
    INTEGERS(unsigned long long, MPI_UNSIGNED_LONG_LONG);
    OPERATION(int, MPI_INT, MPI_MIN, -5, 3, -5);
    OPERATION(unsigned, MPI_UNSIGNED, MPI_MIN, -5, 3, 3);
    OPERATION(float, MPI_FLOAT, MPI_SUM, 1.5f, 2, 3.5f);
    OPERATION(float, MPI_FLOAT, MPI_MAX, -1.5f, -2, -1.5f);
    OPERATION(double, MPI_DOUBLE, MPI_PROD, 1.5, 3, 4.5);
    OPERATION(double, MPI_DOUBLE, MPI_MIN, 1.5, 3, 1.5);
    OPERATION(double, MPI_DOUBLE, MPI_REPLACE, 1.5, 3, 3.0);
    OPERATION(char, MPI_BYTE, MPI_BXOR, 6, 3, 5);
    OPERATION(char, MPI_CHAR, MPI_REPLACE, 6, 3, 3);
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

/* Types that are no words, places that are not aligned, and requests. */
static void odd(enum kind kind) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, 256, 1, &base, starts);
    double _Complex one = 1.0 + 2.0 * (double _Complex)__builtin_complex(0.0, 1.0), got[2];
    int three = 3, old = -1;
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Accumulate(&one, 1, MPI_C_DOUBLE_COMPLEX, 0, starts[0], 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM, win));
    DONE(MPI_Accumulate(&three, 1, MPI_INT, 0, starts[0] + 33, 1, MPI_INT, MPI_SUM, win));
    DONE(MPI_Win_fence(0, win));
    if (me == n - 1) {
        DONE(MPI_Get(got, 1, MPI_C_DOUBLE_COMPLEX, 0, starts[0], 1, MPI_C_DOUBLE_COMPLEX, win));
        DONE(MPI_Fetch_and_op(&three, &old, MPI_INT, 0, starts[0] + 33, MPI_SUM, win));
    }
    DONE(MPI_Win_fence(0, win));
    if (me == n - 1) {
        CHECK(__real__ got[0], n, "%s: real part", kind_name(kind));
        CHECK(__imag__ got[0], 2 * n, "%s: imaginary part", kind_name(kind));
        CHECK(old, 3 * n, "%s: an element that is not aligned", kind_name(kind));
    }
    DONE(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    MPI_Request requests[2];
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    DONE(MPI_Raccumulate(&three, 1, MPI_INT, 0, starts[0] + 64, 1, MPI_INT, MPI_SUM, win, &requests[0]));
    DONE(MPI_Rget_accumulate(&three, 1, MPI_INT, &old, 1, MPI_INT, 0, starts[0] + 64, 1, MPI_INT, MPI_SUM, win,
                             &requests[1]));
    DONE(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(old >= 3 && old <= 6 * n - 3 && old % 3 == 0, 1, "%s: fetched %d with a request", kind_name(kind), old);
    DONE(MPI_Win_unlock(0, win));
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    DONE(MPI_Get_accumulate(NULL, 0, MPI_INT, &old, 1, MPI_INT, 0, starts[0] + 64, 1, MPI_INT, MPI_NO_OP, win));
    DONE(MPI_Accumulate(&three, 0, MPI_INT, 0, starts[0], 0, MPI_INT, MPI_SUM, win));
    DONE(MPI_Accumulate(&three, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win));
    DONE(MPI_Fetch_and_op(&three, &three, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, win));
    DONE(MPI_Compare_and_swap(&three, &three, &three, MPI_INT, MPI_PROC_NULL, 0, win));
    DONE(MPI_Win_unlock(0, win));
    CHECK(old, 6 * n, "%s: sum with requests", kind_name(kind));
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

/* Accumulates of one process on one element happen in their order. */
static void order(enum kind kind) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, 64 * sizeof(int), 4, &base, starts);
    int to = (me + 1) % n, values[50], old[50];
    DONE(MPI_Win_lock_all(0, win));
    for (int i = 0; i < 50; i++) {
        values[i] = i + 1;
        DONE(MPI_Get_accumulate(&values[i], 1, MPI_INT, &old[i], 1, MPI_INT, to, at(kind, starts[to], 1, 4), 1,
                                MPI_INT, MPI_REPLACE, win));
    }
    DONE(MPI_Win_unlock_all(win));
    for (int i = 0; i < 50; i++) CHECK(old[i], i, "%s: replaced value %d", kind_name(kind), i);
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (int kind = 0; kind < KINDS; kind++) {
        contend(kind);
        spin(kind);
        operations(kind);
        odd(kind);
        order(kind);
    }
    return finish();
}
