/* Accumulates of many elements beside those of few, by several threads of all processes: each element is updated
 * as a whole, and many elements are combined as one is. */
#include "win_check.h"
#include <math.h>
#include <pthread.h>
#include <stdint.h>

enum { THREADS = 2, ROUNDS = 100, LONG = 100, HUGE_COUNT = 20000, HUGE_ROUNDS = 4 };

static MPI_Win win;
static MPI_Aint starts[64];
static enum kind kind;
/* The failures of each thread; the checks of `win_check.h` are for one thread. */
static int wrong[THREADS];
static MPI_Datatype thirds;

#define WANT(condition) (wrong[t] += !(condition))
#define OK(call) WANT((call) == MPI_SUCCESS)

static MPI_Aint element(int i) {
    return at(kind, starts[0], i, 8);
}

/* Adds 1 to elements 0 to 99 by one long call, to one of them by fetch-and-op, to 20 to 59 by a call that
 * fetches, to every third one by a datatype, and to the last one by compare-and-swap. */
static void *add(void *argument) {
    int t = (int)(long)argument;
    int64_t ones[LONG], old[40], seen[40] = {0};
    for (int i = 0; i < LONG; i++) ones[i] = 1;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t before = -1, found, next;
        OK(MPI_Accumulate(ones, LONG, MPI_INT64_T, 0, element(0), LONG, MPI_INT64_T, MPI_SUM, win));
        OK(MPI_Fetch_and_op(ones, &before, MPI_INT64_T, 0, element(round * 7 % LONG), MPI_SUM, win));
        OK(MPI_Get_accumulate(ones, 40, MPI_INT64_T, old, 40, MPI_INT64_T, 0, element(20), 40, MPI_INT64_T, MPI_SUM,
                              win));
        OK(MPI_Accumulate(ones, 30, MPI_INT64_T, 0, element(0), 1, thirds, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
        WANT(before > 0);
        for (int i = 0; i < 40; i++) {
            WANT(old[i] > seen[i]);
            seen[i] = old[i];
        }
        do {
            OK(MPI_Fetch_and_op(NULL, &before, MPI_INT64_T, 0, element(LONG - 1), MPI_NO_OP, win));
            OK(MPI_Win_flush(0, win));
            next = before + 1;
            OK(MPI_Compare_and_swap(&next, &before, &found, MPI_INT64_T, 0, element(LONG - 1), win));
            OK(MPI_Win_flush(0, win));
        } while (found != before);
    }
    return NULL;
}

/* Adds to 20,000 elements by one call. Others may accumulate between its pieces. */
static void *add_huge(void *argument) {
    int t = (int)(long)argument;
    int64_t *ones = malloc(HUGE_COUNT * sizeof *ones);
    for (int i = 0; i < HUGE_COUNT; i++) ones[i] = 1;
    for (int round = 0; round < HUGE_ROUNDS; round++)
        OK(MPI_Accumulate(ones, HUGE_COUNT, MPI_INT64_T, 0, element(0), HUGE_COUNT, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
    free(ones);
    return NULL;
}

static void by_threads(void *(*work)(void *)) {
    pthread_t threads[THREADS];
    DONE(MPI_Win_lock_all(0, win));
    for (long t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, work, (void *)t);
    for (long t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        CHECK(wrong[t], 0, "%s: failures of thread %ld", kind_name(kind), t);
        wrong[t] = 0;
    }
    DONE(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void contend(void) {
    char *base;
    win = open_window(kind, HUGE_COUNT * sizeof(int64_t), 8, &base, starts);
    by_threads(add);
    int64_t *mine = (int64_t *)base, turns = (int64_t)n * THREADS * ROUNDS;
    if (me == 0) {
        DONE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        for (int i = 0; i < LONG; i++) {
            int64_t all = turns + turns / LONG + (i >= 20 && i < 60 ? turns : 0) + (i < 90 && i % 3 == 0 ? turns : 0) +
                          (i == LONG - 1 ? turns : 0);
            CHECK(mine[i], all, "%s: the sum of element %d", kind_name(kind), i);
        }
        memset(base, 0, HUGE_COUNT * sizeof(int64_t));
        DONE(MPI_Win_unlock(0, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    by_threads(add_huge);
    if (me == 0) {
        int others = 0;
        DONE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        for (int i = 0; i < HUGE_COUNT; i++) others += mine[i] != (int64_t)n * THREADS * HUGE_ROUNDS;
        CHECK(others, 0, "%s: elements with another sum", kind_name(kind));
        DONE(MPI_Win_unlock(0, win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

/* One call for LONG elements gives the same bits, in the target and as old values, as LONG calls for one. */
#define COMPARE(type, handle, op, value)                                                                         \
    do {                                                                                                         \
        type operands[LONG], start[LONG], old[2][LONG], now[2][LONG];                                            \
        memset(old, 0, sizeof old);                                                                              \
        for (int i = 0; i < LONG; i++) start[i] = (type)(i % 7 + 1), operands[i] = (type)(value);                \
        for (int way = 0; way < 2; way++) {                                                                      \
            DONE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win));                                                  \
            DONE(MPI_Put(start, LONG, handle, to, starts[to], LONG, handle, win));                               \
            DONE(MPI_Win_flush(to, win));                                                                        \
            int many = way ? LONG : 1;                                                                           \
            for (int i = 0; i < LONG; i += many)                                                                 \
                DONE(MPI_Get_accumulate(operands + i, many, handle, old[way] + i, many, handle, to,              \
                                        at(kind, starts[to], i, (int)sizeof(type)), many, handle, op, win));     \
            DONE(MPI_Win_flush(to, win));                                                                        \
            DONE(MPI_Get(now[way], LONG, handle, to, starts[to], LONG, handle, win));                            \
            DONE(MPI_Win_unlock(to, win));                                                                       \
        }                                                                                                        \
        CHECK(memcmp(old[0], start, sizeof start), 0, "%s: old values, %s of %s", kind_name(kind), #op, #handle); \
        CHECK(memcmp(old[1], start, sizeof start), 0, "%s: old values at once, %s of %s", kind_name(kind), #op,  \
              #handle);                                                                                          \
        CHECK(memcmp(now[0], now[1], sizeof now[0]), 0, "%s: new values, %s of %s", kind_name(kind), #op, #handle); \
    } while (0)

#define INTEGERS(type, handle)                     \
    COMPARE(type, handle, MPI_SUM, 1 << i % 40);   \
    COMPARE(type, handle, MPI_PROD, i - 50);       \
    COMPARE(type, handle, MPI_MIN, i % 5 - 2);     \
    COMPARE(type, handle, MPI_MAX, i % 5 - 2);     \
    COMPARE(type, handle, MPI_BAND, i);            \
    COMPARE(type, handle, MPI_BOR, i);             \
    COMPARE(type, handle, MPI_BXOR, i);            \
    COMPARE(type, handle, MPI_LAND, i % 2);        \
    COMPARE(type, handle, MPI_LOR, i % 2);         \
    COMPARE(type, handle, MPI_LXOR, i % 2);        \
    COMPARE(type, handle, MPI_REPLACE, i);         \
    COMPARE(type, handle, MPI_NO_OP, i)

#define FLOATS(type, handle)                                        \
    COMPARE(type, handle, MPI_SUM, 0.1 * i);                        \
    COMPARE(type, handle, MPI_PROD, 0.1 * i);                       \
    COMPARE(type, handle, MPI_MIN, i % 3 ? 0.5 * (i % 9) : -NAN);   \
    COMPARE(type, handle, MPI_MAX, i % 3 ? 0.5 * (i % 9) : NAN);    \
    COMPARE(type, handle, MPI_REPLACE, i)

static void compare(int unit) {
    char *base;
    win = open_window(kind, LONG * 8, unit, &base, starts);
    int to = (me + 1) % n;
    if (unit == 4) {
        INTEGERS(int, MPI_INT);
        INTEGERS(uint32_t, MPI_UINT32_T);
        FLOATS(float, MPI_FLOAT);
    } else {
        INTEGERS(int64_t, MPI_INT64_T);
        INTEGERS(uint64_t, MPI_UINT64_T);
        FLOATS(double, MPI_DOUBLE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

int main(int argc, char **argv) {
    begin_with_threads(&argc, &argv);
    MPI_Type_vector(30, 1, 3, MPI_INT64_T, &thirds);
    MPI_Type_commit(&thirds);
    for (int k = 0; k < KINDS; k++) {
        kind = (enum kind)k;
        contend();
        compare(4);
        compare(8);
    }
    MPI_Type_free(&thirds);
    return finish();
}
