/* Rounds of puts, atomics, collectives and barriers whose results are checked. `rounds SECONDS`: PE 0 ends it. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WORDS 512

static long inbox[WORDS], counter, go_on, sum, mine;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void expect(long found, long wanted, const char *what, long round) {
    if (found == wanted) return;
    fprintf(stderr, "PE %d: %s is %ld, not %ld, in round %ld\n", shmem_my_pe(), what, found, wanted, round);
    shmem_global_exit(3);
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    double end = now() + seconds;
    static long source[WORDS];
    for (long round = 1; ; round++) {
        for (int i = 0; i < WORDS; i++) source[i] = round * 1000 + me;
        shmem_long_put(inbox, source, WORDS, (me + 1) % n);
        shmem_long_atomic_add(&counter, 1, (me + n - 1) % n);
        if (me == 0) go_on = now() < end;
        shmem_barrier_all();
        int left = (me + n - 1) % n;
        expect(inbox[0], round * 1000 + left, "the first word of the inbox", round);
        expect(inbox[WORDS - 1], round * 1000 + left, "the last word of the inbox", round);
        expect(counter, round, "the counter", round);
        mine = round + me;
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &mine, 1);
        expect(sum, n * round + (long)n * (n - 1) / 2, "the sum", round);
        if (shmem_long_g(&go_on, 0) == 0) break;
        shmem_barrier_all();
    }
    shmem_barrier_all();
    if (me == 0) puts("all rounds are right");
    shmem_finalize();
    return 0;
}
