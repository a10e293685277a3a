/* Constants of the program as sources; with an argument, as a target. */
#include "check.h"

static const long numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static const double _Complex complex_number = 1.5;
static long got[8], all[64];

/* Whether the n elements are those of the constants, with this factor. */
static int are(const long *values, int n, long factor) {
    for (int i = 0; i < n; i++)
        if (values[i] != factor * numbers[i % 8]) return 0;
    return 1;
}

static void test_gets(int right) {
    shmem_long_get(got, numbers, 8, right);
    CHECK(are(got, 8, 1));
    CHECK(shmem_long_g(&numbers[5], right) == 6);
    memset(got, 0, sizeof got);
    shmem_getmem_nbi(got, numbers, sizeof got, right);
    shmem_quiet();
    CHECK(are(got, 8, 1));
    shmem_long_iget(got, numbers, 1, 3, 3, right);
    CHECK(got[0] == 1 && got[1] == 4 && got[2] == 7);
    shmem_barrier_all();
    shmem_long_put(got, numbers, 8, right);
    shmem_barrier_all();
    CHECK(are(got, 8, 1));
}

static void test_collectives(int n) {
    double _Complex sum;
    static double _Complex target;
    CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, all, numbers, 8) == 0 && are(all, 8, n));
    CHECK(shmem_long_fcollect(SHMEM_TEAM_WORLD, all, numbers, 8) == 0 && are(all, 8 * n, 1));
    memset(all, 0, sizeof all);
    CHECK(shmem_long_collect(SHMEM_TEAM_WORLD, all, numbers, 8) == 0 && are(all, 8 * n, 1));
    memset(got, 0, sizeof got);
    CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, got, numbers, 8, n - 1) == 0 && are(got, 8, 1));
    CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, got, &numbers[3], 1, 0) == 0 && got[0] == 4);
    CHECK(shmem_long_alltoall(SHMEM_TEAM_WORLD, all, numbers, 1) == 0);
    CHECK(all[0] == numbers[shmem_my_pe()] && all[n - 1] == all[0]);
    CHECK(shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, &target, &complex_number, 1) == 0);
    sum = target;
    CHECK(sum == 1.5 * n);
}

int main(int count, char **arguments) {
    (void) arguments;
    shmem_init();
    const int n = shmem_n_pes(), right = (shmem_my_pe() + 1) % n;
    CHECK(shmem_addr_accessible(numbers, right) == 0);
    if (count > 1) shmem_long_p((long *) &numbers[1], 3, right);
    test_gets(right);
    test_collectives(n);
    shmem_finalize();
    shmem_init();
    test_collectives(n);
    shmem_finalize();
    return 0;
}
