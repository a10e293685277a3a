/* Accumulates of logicals of Fortran, whose values the program names. */
#include "win_check.h"
#include <stdint.h>

/* Each process combines an element at its right neighbour, and sees the values before. */
#define COMBINE(op, first, second, expected)                                                            \
    do {                                                                                                \
        LOGICAL start = (first), operand = (second), old = 77, now = 77;                                \
        DONE(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, win));                                             \
        DONE(MPI_Accumulate(&start, 1, TYPE, to, there, 1, TYPE, MPI_REPLACE, win));                    \
        DONE(MPI_Fetch_and_op(&operand, &old, TYPE, to, there, op, win));                               \
        DONE(MPI_Win_flush(to, win));                                                                   \
        DONE(MPI_Get_accumulate(NULL, 0, TYPE, &now, 1, TYPE, to, there, 1, TYPE, MPI_NO_OP, win));     \
        DONE(MPI_Win_flush(to, win));                                                                   \
        CHECK(old, start, "%s: the value before %s", kind_name(kind), #op);                             \
        CHECK(now, expected, "%s: %s of %s and %s", kind_name(kind), #op, #first, #second);             \
        DONE(MPI_Accumulate(&start, 1, TYPE, to, there, 1, TYPE, MPI_REPLACE, win));                    \
        DONE(MPI_Accumulate(&operand, 1, TYPE, to, there, 1, TYPE, op, win));                           \
        DONE(MPI_Win_flush(to, win));                                                                   \
        DONE(MPI_Get(&now, 1, TYPE, to, there, 1, TYPE, win));                                          \
        DONE(MPI_Win_unlock(to, win));                                                                  \
        CHECK(now, expected, "%s: accumulated %s of %s and %s", kind_name(kind), #op, #first, #second); \
    } while (0)

#define ALL(yes, no)                                                                  \
    do {                                                                              \
        MPI_Aint starts[64];                                                          \
        char *base;                                                                   \
        MPI_Win win = open_window(kind, 8 * sizeof(LOGICAL), 1, &base, starts);       \
        MPI_Aint there = starts[to] + 3 * (MPI_Aint)sizeof(LOGICAL);                  \
        LOGICAL is_true = (yes), is_false = (no), old;                                \
        DONE(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));                         \
        MPI_Barrier(MPI_COMM_WORLD);                                                  \
        COMBINE(MPI_LAND, yes, yes, yes);                                             \
        COMBINE(MPI_LAND, yes, no, no);                                               \
        COMBINE(MPI_LAND, 9, yes, yes);                                               \
        COMBINE(MPI_LOR, no, yes, yes);                                               \
        COMBINE(MPI_LOR, no, no, no);                                                 \
        COMBINE(MPI_LXOR, yes, yes, no);                                              \
        COMBINE(MPI_LXOR, no, 9, yes);                                                \
        MPI_Barrier(MPI_COMM_WORLD);                                                  \
        /* One process of all wins. */                                                \
        DONE(MPI_Win_fence(0, win));                                                  \
        if (me == 0) memcpy(base, &is_false, sizeof(LOGICAL));                        \
        DONE(MPI_Win_fence(0, win));                                                  \
        DONE(MPI_Compare_and_swap(&is_true, &is_false, &old, TYPE, 0, starts[0], win)); \
        REFUSED(MPI_Accumulate(&is_true, 1, TYPE, 0, starts[0], 1, TYPE, MPI_SUM, win), MPI_ERR_OP); \
        DONE(MPI_Win_fence(0, win));                                                  \
        int won = old == is_false, winners;                                           \
        MPI_Allreduce(&won, &winners, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);           \
        CHECK(winners, 1, "%s: processes that have swapped", kind_name(kind));        \
        if (me == 0) CHECK(*(LOGICAL *)base, yes, "%s: the swapped value", kind_name(kind)); \
        DONE(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));                                 \
        close_window(kind, &win, base);                                               \
    } while (0)

#define LOGICAL int32_t
#define TYPE MPI_LOGICAL4
static void four(enum kind kind, int to) { ALL(-1, 5); }
#undef LOGICAL
#undef TYPE
#define LOGICAL int64_t
#define TYPE MPI_LOGICAL8
/* No values were named for this size. */
static void eight(enum kind kind, int to) { ALL(1, 0); }

int main(int argc, char **argv) {
    begin(&argc, &argv);
    int32_t yes = -1, no = 5;
    DONE(MPI_Abi_set_fortran_booleans(4, &yes, &no));
    for (int kind = 0; kind < KINDS; kind++) {
        four(kind, (me + 1) % n);
        eight(kind, (me + 1) % n);
    }
    return finish();
}
