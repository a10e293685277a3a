/* What PELAGO_CHECK=on finds, one mistake by its name; without a mistake, calls that go to the very ends of
 * their objects. */

#include "check.h"
#include <shmemx.h>
#include <unistd.h>

static int me, n, to;
static long table[5], counter;
static long local[200];
static long *block, *other;

static void beyond(void) { shmem_long_put(block, local, 6, to); }
static void beyond_get(void) { shmem_long_get(local, block + 1, 5, to); }
static void beyond_static(void) { shmem_long_put(table + 2, local, 4, to); }
static void beyond_strided(void) { shmem_long_iput(block, local, 2, 1, 4, to); }
static void beyond_source(void) { shmem_long_put(other, block, 6, to); }
static void beyond_dest(void) { shmem_long_get(block, other, 6, to); }
static void beyond_signal(void) { shmem_long_put_signal(block, local, 6, (uint64_t *) other, 1, SHMEM_SIGNAL_SET, to); }
static void beyond_broadcast(void) { shmem_long_broadcast(SHMEM_TEAM_WORLD, other, block, 6, 0); }
static void beyond_wait(void) { shmem_long_wait_until_all(block, 6, NULL, SHMEM_CMP_EQ, 0); }
static void null_source(void) { shmem_long_put(block, NULL, 2, to); }
static void null_dest(void) { shmem_long_get(NULL, block, 2, to); }
static void between(void) { shmem_long_p(block + 6, 1, to); }

static void freed(void) {
    shmem_free(other);
    shmem_long_p(other, 1, to);
}

static void freed_atomic(void) {
    shmem_free(other);
    shmem_long_atomic_add(other, 1, to);
}

static void freed_wait(void) {
    shmem_free(other);
    shmem_long_wait_until(other, SHMEM_CMP_EQ, 1);
}

static void freed_source(void) {
    shmem_free(other);
    shmem_long_put(block, other, 2, to);
}

static void freed_reduce(void) {
    shmem_free(other);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, block, other, 2);
}

static void moved(void) {
    long *larger = shmem_realloc(block, 400 * sizeof(long));
    CHECK(larger != block);
    shmem_long_p(block, 1, to);
}

static void shrunk(void) {
    long *smaller = shmem_realloc(other, 3 * sizeof(long));
    shmem_long_p(smaller + 3, 1, to);
}

static void changed_quiet(void) {
    shmem_long_put_nbi(other, local, 100, to);
    local[99]++;
    shmem_quiet();
}

static void changed_barrier(void) {
    shmem_long_put_nbi(other, local, 100, to);
    local[0]++;
    shmem_barrier_all();
}

static void changed_signal(void) {
    shmem_long_put_signal_nbi(other, local, 50, (uint64_t *) other + 60, 1, SHMEM_SIGNAL_SET, to);
    local[49]++;
    shmem_finalize();
}

static void changed_context(void) {
    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    shmem_ctx_putmem_nbi(ctx, other, local, 8, to);
    local[0]++;
    shmem_ctx_destroy(ctx);
}

static void changed_free(void) {
    shmem_long_put_nbi(block, local, 5, to);
    local[4]++;
    shmem_free(other);
}

static void changed_request(void) {
    shmemx_req_t request;
    shmemx_long_sum_reduce_nb(SHMEM_TEAM_WORLD, block, other, 5, &request);
    other[4]++;
    shmemx_req_wait(&request);
}

static void unmapped(void) {
    /* So large that the C library gives it back to the system. */
    char *source = calloc(1, 1 << 24);
    shmem_putmem_nbi(other, source, 800, to);
    free(source);
    shmem_quiet();
}

/* What PE 0 calls, and what the others call. */
#define DIFFER(mine, theirs)                                                                                  \
    do {                                                                                                     \
        if (me == 0) mine;                                                                                   \
        else theirs;                                                                                         \
    } while (0)

static void operation(void) {
    DIFFER(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, block, other, 2),
           shmem_long_max_reduce(SHMEM_TEAM_WORLD, block, other, 2));
}

static void operation_of_many(void) {
    unsigned long *target = shmem_malloc(1000 * sizeof(long)), *source = shmem_calloc(1000, sizeof(long));
    DIFFER(shmem_ulong_and_reduce(SHMEM_TEAM_WORLD, target, source, 1000),
           shmem_ulong_or_reduce(SHMEM_TEAM_WORLD, target, source, 1000));
}

static void operation_of_set(void) {
    static long sync[SHMEM_REDUCE_SYNC_SIZE], work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
    for (size_t i = 0; i < COUNT(sync); i++) sync[i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    DIFFER(shmem_long_prod_to_all(block, other, 2, 0, 0, n, work, sync),
           shmem_long_min_to_all(block, other, 2, 0, 0, n, work, sync));
}

static void operation_of_request(void) {
    shmemx_req_t request;
    DIFFER(shmemx_long_sum_reduce_nb(SHMEM_TEAM_WORLD, block, other, 2, &request),
           shmemx_long_max_reduce_nb(SHMEM_TEAM_WORLD, block, other, 2, &request));
    shmemx_req_wait(&request);
}

static void operation_of_long_double(void) {
    long double *target = (long double *) other, *source = target + 4;
    DIFFER(shmem_longdouble_sum_reduce(SHMEM_TEAM_WORLD, target, source, 2),
           shmem_longdouble_prod_reduce(SHMEM_TEAM_WORLD, target, source, 2));
}

static void element(void) {
    DIFFER(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, block, other, 2),
           shmem_double_sum_reduce(SHMEM_TEAM_WORLD, (double *) block, (double *) other, 2));
}

static void element_of_scan(void) {
    DIFFER(shmem_long_sum_inscan(SHMEM_TEAM_WORLD, block, other, 2),
           shmem_double_sum_inscan(SHMEM_TEAM_WORLD, (double *) block, (double *) other, 2));
}

static const struct {
    const char *name;
    void (*make)(void);
} mistakes[] = {
    {"beyond", beyond}, {"beyond get", beyond_get}, {"beyond static", beyond_static},
    {"beyond strided", beyond_strided}, {"beyond source", beyond_source}, {"beyond dest", beyond_dest},
    {"beyond signal", beyond_signal}, {"beyond broadcast", beyond_broadcast}, {"beyond wait", beyond_wait},
    {"null source", null_source}, {"null dest", null_dest},
    {"between", between}, {"freed", freed}, {"freed atomic", freed_atomic}, {"freed wait", freed_wait},
    {"freed source", freed_source}, {"freed reduce", freed_reduce}, {"moved", moved}, {"shrunk", shrunk},
    {"changed quiet", changed_quiet}, {"changed barrier", changed_barrier},
    {"changed signal", changed_signal}, {"changed context", changed_context}, {"changed free", changed_free},
    {"changed request", changed_request}, {"unmapped", unmapped},
    {"operation", operation}, {"operation of many", operation_of_many},
    {"operation of set", operation_of_set}, {"operation of request", operation_of_request},
    {"operation of long double", operation_of_long_double},
    {"element", element}, {"element of scan", element_of_scan},
};

/* All that is close to a mistake, and none. */
static void keep_to_the_rules(void) {
    shmem_long_put(block, local, 5, to);
    shmem_long_put(table, local, 5, to);
    shmem_long_get(local, block + 4, 1, to);
    shmem_long_get(block, other, 5, me);
    shmem_long_put(other, block, 5, to);
    shmem_long_iput(block, local, 2, 1, 3, to);
    shmem_long_p(&counter, 1, to);
    shmem_barrier_all();
    shmem_long_put_nbi(other, local, 100, to);
    shmem_quiet();
    local[5]++;
    shmem_long_put_nbi(other, local, 100, to);
    shmem_barrier_all();
    local[5]++;
    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    shmem_ctx_long_put_nbi(ctx, other, local, 100, to);
    shmem_ctx_quiet(ctx);
    local[5]++;
    shmem_ctx_destroy(ctx);
    shmem_long_get_nbi(local, other, 100, to);
    shmem_quiet();
    shmemx_req_t request;
    shmemx_long_sum_reduce_nb(SHMEM_TEAM_WORLD, other, other, 5, &request);
    shmemx_req_wait(&request);
    shmemx_long_sum_reduce_nb(SHMEM_TEAM_WORLD, block, other, 5, &request);
    shmemx_req_wait(&request);
    other[4]++;
    long *smaller = shmem_realloc(other, 3 * sizeof(long));
    shmem_long_p(smaller + 2, 1, to);
    shmem_barrier_all();
    /* Memory that was given back and allocated again. */
    shmem_free(smaller);
    long *again = shmem_malloc(100 * sizeof(long));
    shmem_long_put(again, local, 100, to);
    shmem_barrier_all();
}

int main(int argc, char **argv) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    to = (me + 1) % n;
    block = shmem_calloc(5, sizeof(long));
    other = shmem_calloc(100, sizeof(long));
    if (argc < 2) {
        keep_to_the_rules();
        shmem_finalize();
        return 0;
    }
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        if (strcmp(argv[1], mistakes[i].name) == 0) {
            mistakes[i].make();
            return 0;
        }
    }
    return 98;
}
