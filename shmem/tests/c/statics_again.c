/* Variables keep their values from one initialisation to the next, and are symmetric in each. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "check.h"

static long rounds, from_left[10] = {1}, large[1 << 20];

int main(void) {
    for (long round = 0; round < 4; round++) {
        int me, n_pes, left;
        shmem_init();
        me = shmem_my_pe();
        n_pes = shmem_n_pes();
        left = (me + n_pes - 1) % n_pes;
        CHECK(rounds == round && from_left[0] == 1);
        CHECK(large[1000 * round + 5] == 0);
        shmem_long_p(&from_left[round + 1], 100 * round + me, (me + 1) % n_pes);
        /* Pages that this PE does not touch before the next round. */
        shmem_long_p(&large[100000 * (round + 1)], 7 + round, (me + 1) % n_pes);
        shmem_barrier_all();
        for (long i = 0; i <= round; i++) CHECK(from_left[i + 1] == 100 * i + left);
        if (round == 3)
            for (long i = 0; i <= round; i++) CHECK(large[100000 * (i + 1)] == 7 + i);
        rounds++;
        shmem_finalize();
        CHECK(rounds == round + 1);
        from_left[9] = round;
        CHECK(from_left[9] == round);
    }
    return 0;
}
