/* Random puts, gets and accumulates, compared with a model. Each process has a stripe of every part, which
 * only it writes and reads within an epoch; a further stripe gets sums of all processes. */
#include "win_check.h"
#include <stdint.h>

enum { STRIPE = 24, SUMS = 16, OPS = 60 };

static uint32_t state;

static uint32_t random_below(uint32_t bound) {
    state = state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(state >> 8) * bound) >> 24);
}

/* Operations of one epoch: the model follows, and what is fetched is compared when the epoch is over. */
static void run(enum kind kind, int sync) {
    MPI_Aint starts[64];
    char *base;
    int len = n * STRIPE + SUMS;
    MPI_Win win = open_window(kind, len * sizeof(int), 4, &base, starts);
    int (*model)[STRIPE] = calloc(n, sizeof *model), (*sums)[SUMS] = calloc(n, sizeof *sums);
    int own_stripe = me * STRIPE;
    DONE(MPI_Win_fence(0, win));
    DONE(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    for (int epoch = 0; epoch < 6; epoch++) {
        static int source[OPS][STRIPE], result[OPS][STRIPE], expected[OPS][STRIPE], length[OPS];
        char done[64][STRIPE] = {{0}};
        int only = (int)random_below(n);
        MPI_Request requests[OPS];
        int pending = 0;
        if (sync == 0) DONE(MPI_Win_fence(0, win));
        if (sync == 1) DONE(MPI_Win_lock_all(0, win));
        if (sync == 2) DONE(MPI_Win_lock(epoch % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, only, 0, win));
        for (int op = 0; op < OPS; op++) {
            int to = sync == 2 ? only : (int)random_below(n);
            int at_element = (int)random_below(STRIPE), count = 1 + (int)random_below(STRIPE - at_element);
            int sort = (int)random_below(5);
            MPI_Aint disp = at(kind, starts[to], own_stripe + at_element, 4);
            length[op] = 0;
            for (int i = 0; i < count; i++) source[op][i] = (int)random_below(1 << 20);
            /* Elements take part in one operation of an epoch, unless it is flushed in between. */
            int is_used = 0;
            for (int i = 0; i < count; i++) is_used |= done[to][at_element + i];
            if (sort < 4 && is_used) {
                if (sync == 0) continue;
                DONE(MPI_Win_flush(to, win));
                memset(done[to], 0, STRIPE);
            }
            for (int i = 0; i < count && sort < 4; i++) done[to][at_element + i] = 1;
            int *place = model[to] + at_element;
            if (sort == 0) {
                if (sync == 1) {
                    DONE(MPI_Rput(source[op], count, MPI_INT, to, disp, count, MPI_INT, win, &requests[pending++]));
                } else {
                    DONE(MPI_Put(source[op], count, MPI_INT, to, disp, count, MPI_INT, win));
                }
                memcpy(place, source[op], count * sizeof(int));
            } else if (sort == 1) {
                length[op] = count;
                memcpy(expected[op], place, count * sizeof(int));
                if (sync == 1) {
                    DONE(MPI_Rget(result[op], count, MPI_INT, to, disp, count, MPI_INT, win, &requests[pending++]));
                } else {
                    DONE(MPI_Get(result[op], count, MPI_INT, to, disp, count, MPI_INT, win));
                }
            } else if (sort == 2) {
                DONE(MPI_Accumulate(source[op], count, MPI_INT, to, disp, count, MPI_INT, MPI_BXOR, win));
                for (int i = 0; i < count; i++) place[i] ^= source[op][i];
            } else if (sort == 3) {
                length[op] = count;
                memcpy(expected[op], place, count * sizeof(int));
                DONE(MPI_Get_accumulate(source[op], count, MPI_INT, result[op], count, MPI_INT, to, disp, count,
                                        MPI_INT, MPI_MAX, win));
                for (int i = 0; i < count; i++) place[i] = place[i] > source[op][i] ? place[i] : source[op][i];
            } else {
                int first = (int)random_below(SUMS), many = 1 + (int)random_below(SUMS - first);
                for (int i = 0; i < many; i++) source[op][i] = (int)random_below(1000), sums[to][first + i] += source[op][i];
                DONE(MPI_Accumulate(source[op], many, MPI_INT, to, at(kind, starts[to], n * STRIPE + first, 4), many,
                                    MPI_INT, MPI_SUM, win));
            }
        }
        DONE(MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE));
        if (sync == 0) DONE(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        if (sync == 1) DONE(MPI_Win_unlock_all(win));
        if (sync == 2) DONE(MPI_Win_unlock(only, win));
        for (int op = 0; op < OPS; op++) {
            for (int i = 0; i < length[op]; i++) {
                CHECK(result[op][i], expected[op][i], "%s, sync %d, epoch %d: operation %d, element %d",
                      kind_name(kind), sync, epoch, op, i);
            }
        }
    }
    /* The parts are those of the models of all processes. */
    MPI_Barrier(MPI_COMM_WORLD);
    int *stripes = malloc(n * STRIPE * sizeof(int)), total[SUMS], *all_sums = malloc(n * SUMS * sizeof(int));
    MPI_Alltoall(model, STRIPE, MPI_INT, stripes, STRIPE, MPI_INT, MPI_COMM_WORLD);
    MPI_Allreduce(sums, all_sums, n * SUMS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    memcpy(total, all_sums + me * SUMS, sizeof total);
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
    int *mine = (int *)base;
    for (int i = 0; i < n * STRIPE; i++) {
        CHECK(mine[i], stripes[i], "%s, sync %d: element %d at the end", kind_name(kind), sync, i);
    }
    for (int i = 0; i < SUMS; i++) CHECK(mine[n * STRIPE + i], total[i], "%s, sync %d: sum %d", kind_name(kind), sync, i);
    DONE(MPI_Win_unlock(me, win));
    free(stripes), free(all_sums), free(model), free(sums);
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    const char *seed = getenv("SEED");
    state = 77u * (unsigned)me + (seed ? (unsigned)atoi(seed) : 1u);
    for (int kind = 0; kind < KINDS; kind++) {
        for (int sync = 0; sync < 3; sync++) run(kind, sync);
    }
    return finish();
}
