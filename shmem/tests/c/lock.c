/* Locks: one PE at a time, in the order in which they ask, in the heap and in static data. With an argument,
 * one mistake. */

#include "check.h"

static int me, n;

enum { LOCKS = 12, ROUNDS = 80, LONGS = 2048 };

struct board {
    long locks[LOCKS];
    /* Each of its own lock. */
    long counts[LOCKS];
    long many[LONGS];
};

/* What one PE reads and writes under a lock, no other one does meanwhile. */
static void one_at_a_time(void *object) {
    struct board *board = object;
    memset(board, 0, sizeof *board);
    shmem_barrier_all();
    for (int i = 0; i < ROUNDS; i++) {
        const int which = i % LOCKS, home = which % n;
        if (i % 3 == 0) {
            while (shmem_test_lock(&board->locks[which])) continue;
        } else {
            shmem_set_lock(&board->locks[which]);
        }
        const long count = shmem_long_g(&board->counts[which], home);
        /* Clearing the lock completes this. */
        shmem_long_p(&board->counts[which], count + 1, home);
        shmem_clear_lock(&board->locks[which]);
    }
    shmem_barrier_all();
    for (int which = 0; which < LOCKS; which++) {
        const int rounds = ROUNDS / LOCKS + (which < ROUNDS % LOCKS);
        CHECK(shmem_long_g(&board->counts[which], which % n) == (long) n * rounds);
        CHECK(board->locks[which] == 0);
    }
    shmem_barrier_all();
}

/* What was put under the lock is all there when the next one has it, wherever it was put. */
static void complete_when_cleared(void *object) {
    struct board *board = object;
    static long mine[LONGS];
    memset(board, 0, sizeof *board);
    shmem_barrier_all();
    for (int i = 0; i < ROUNDS; i++) {
        shmem_set_lock(&board->locks[1]);
        shmem_long_get(mine, board->many, LONGS, n - 1);
        for (int k = 0; k < LONGS; k++) CHECK(mine[k] == mine[0]);
        for (int k = 0; k < LONGS; k++) mine[k]++;
        shmem_long_put_nbi(board->many, mine, LONGS, n - 1);
        shmem_clear_lock(&board->locks[1]);
    }
    shmem_barrier_all();
    CHECK(shmem_long_g(&board->many[LONGS - 1], n - 1) == (long) n * ROUNDS);
    shmem_barrier_all();
}

/* Several locks at once, always in the same order. */
static void nested(void *object) {
    struct board *board = object;
    memset(board, 0, sizeof *board);
    shmem_barrier_all();
    for (int i = 0; i < 20; i++) {
        for (int which = 0; which < 3; which++) shmem_set_lock(&board->locks[which]);
        const long count = shmem_long_g(&board->counts[0], 0);
        shmem_long_p(&board->counts[0], count + 1, 0);
        for (int which = 0; which < 3; which++) shmem_clear_lock(&board->locks[which]);
    }
    shmem_barrier_all();
    CHECK(shmem_long_g(&board->counts[0], 0) == 20L * n);
    shmem_barrier_all();
}

static void tests(void *object) {
    struct board *board = object;
    memset(board, 0, sizeof *board);
    shmem_barrier_all();
    if (me == 0) CHECK(shmem_test_lock(&board->locks[5]) == 0);
    shmem_barrier_all();
    /* Nobody gets it twice, not even who has it. */
    CHECK(shmem_test_lock(&board->locks[5]) == 1);
    shmem_barrier_all();
    if (me == 0) shmem_clear_lock(&board->locks[5]);
    shmem_barrier_all();
    if (me == n - 1) {
        CHECK(shmem_test_lock(&board->locks[5]) == 0);
        shmem_clear_lock(&board->locks[5]);
    }
    shmem_barrier_all();
}

/* The end of the queue, which the lower half of the lock has on one of the PEs: it changes when a PE asks for
 * the lock. */
static uint64_t queue_end(long *lock) {
    uint64_t sum = 0;
    for (int pe = 0; pe < n; pe++) sum += (uint32_t) shmem_long_atomic_fetch(lock, pe);
    return sum;
}

/* PE 0 holds the lock and lets the others ask for it one after the other, in an order that is not theirs;
 * each writes down when it has had it. */
static void first_come_first_served(void *object) {
    struct board *board = object;
    long *lock = &board->locks[7], *go = &board->counts[0];
    long *next = &board->counts[1], *turn = &board->counts[2];
    memset(board, 0, sizeof *board);
    shmem_barrier_all();
    if (me == 0) {
        shmem_set_lock(lock);
        for (int i = 1; i < n; i++) {
            const uint64_t before = queue_end(lock);
            shmem_long_p(go, i, n - i);
            while (queue_end(lock) == before) continue;
        }
        shmem_clear_lock(lock);
    } else {
        shmem_long_wait_until(go, SHMEM_CMP_NE, 0);
        shmem_set_lock(lock);
        *turn = shmem_long_atomic_fetch_inc(next, 0);
        shmem_clear_lock(lock);
        CHECK(*turn == *go - 1);
    }
    shmem_barrier_all();
}

static struct board of_statics;

static int mistake(const char *which) {
    struct board *board = shmem_calloc(1, sizeof *board);
    long local = 0, *crooked = (long *) ((char *) board + 4);
    shmem_barrier_all();
    if (!strcmp(which, "set")) shmem_set_lock(&local);
    if (!strcmp(which, "test")) shmem_test_lock(&local);
    if (!strcmp(which, "clear")) shmem_clear_lock(&local);
    if (!strcmp(which, "null")) shmem_set_lock(NULL);
    if (!strcmp(which, "alignment")) shmem_set_lock(crooked);
    if (!strcmp(which, "not held")) shmem_clear_lock(&board->locks[3]);
    if (!strcmp(which, "held twice")) {
        if (me == 0) {
            shmem_set_lock(&board->locks[0]);
            shmem_set_lock(&board->locks[0]);
        }
        shmem_barrier_all();
    }
    if (!strcmp(which, "cleared twice")) {
        shmem_set_lock(&board->locks[2]);
        shmem_clear_lock(&board->locks[2]);
        shmem_clear_lock(&board->locks[2]);
    }
    if (!strcmp(which, "of another")) {
        if (me == 0) shmem_set_lock(&board->locks[2]);
        shmem_barrier_all();
        if (me == 1) shmem_clear_lock(&board->locks[2]);
        shmem_barrier_all();
    }
    return 0;
}

int main(int argc, char **argv) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    if (argc > 1) return mistake(argv[1]);
    on_both(one_at_a_time, &of_statics, sizeof of_statics);
    on_both(complete_when_cleared, &of_statics, sizeof of_statics);
    on_both(nested, &of_statics, sizeof of_statics);
    on_both(tests, &of_statics, sizeof of_statics);
    on_both(first_come_first_served, &of_statics, sizeof of_statics);
    shmem_finalize();
    return 0;
}
