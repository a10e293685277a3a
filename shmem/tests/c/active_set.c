/* Active sets: every deprecated operation against a model, over all sets, of which only the members call. With
 * an argument, one mistake. */

#include "models.h"

static int me, n;
static area_t area_static, *area;

/* The active set at hand, and this PE's number in it. */
static int start, log_stride, size, rank;

#define SET start, log_stride, size, area->psync

static const size_t lengths[] = {0, 1, 3, 200};

static void mark(void) {
    memset(area->dest, MARKER, sizeof area->dest);
    shmem_sync(start, log_stride, size, area->turn);
}

#define END_OF(TYPE, count) ((unsigned char *) ((TYPE *) area->dest + (count)))
#define DEST_END (area->dest + sizeof area->dest)

#define CHECK_MOVES(BITS, TYPE) \
    static void moves_##BITS(size_t count) { \
        TYPE *source = (TYPE *) area->source, *dest = (TYPE *) area->dest; \
        for (size_t i = 0; i < count * size; i++) { \
            source[i] = ELEMENT(TYPE, rank, i); \
        } \
        for (int root = 0; root < size; root++) { \
            mark(); \
            shmem_broadcast##BITS(dest, source, count, root, SET); \
            for (size_t i = 0; rank != root && i < count; i++) { \
                CHECK(dest[i] == ELEMENT(TYPE, root, i)); \
            } \
            /* The root's own is not written. */ \
            check_marked(END_OF(TYPE, rank == root ? 0 : count), DEST_END, "broadcast" #BITS); \
        } \
        mark(); \
        shmem_fcollect##BITS(dest, source, count, SET); \
        for (size_t i = 0; i < count * size; i++) { \
            CHECK(dest[i] == ELEMENT(TYPE, (int) (i / count), i % count)); \
        } \
        check_marked(END_OF(TYPE, count * size), DEST_END, "fcollect" #BITS); \
        mark(); \
        shmem_collect##BITS(dest, source, count * rank / size, SET); \
        size_t at = 0; \
        for (int from = 0; from < size; from++) { \
            for (size_t i = 0; i < count * from / size; i++) { \
                CHECK(dest[at++] == ELEMENT(TYPE, from, i)); \
            } \
        } \
        check_marked(END_OF(TYPE, at), DEST_END, "collect" #BITS); \
        mark(); \
        shmem_alltoall##BITS(dest, source, count, SET); \
        for (size_t i = 0; i < count * size; i++) { \
            CHECK(dest[i] == ELEMENT(TYPE, (int) (i / count), rank * count + i % count)); \
        } \
        check_marked(END_OF(TYPE, count * size), DEST_END, "alltoall" #BITS); \
        mark(); \
        shmem_alltoalls##BITS(dest, source, 2, 1, count, SET); \
        for (size_t i = 0; i < count * size; i++) { \
            CHECK(dest[2 * i] == ELEMENT(TYPE, (int) (i / count), rank * count + i % count)); \
        } \
    }

CHECK_MOVES(32, uint32_t)
CHECK_MOVES(64, uint64_t)

#define CHECK_COMBINES(NAME, TYPE, FUNCTION, OP) \
    static void FUNCTION##_##NAME(int count) { \
        TYPE *source = (TYPE *) area->source, *dest = (TYPE *) area->dest; \
        for (int in_place = 0; in_place < 2; in_place++) { \
            mark(); \
            TYPE *from = in_place ? dest : source; \
            for (int i = 0; i < count; i++) { \
                from[i] = ELEMENT(TYPE, rank, i); \
            } \
            shmem_sync(start, log_stride, size, area->turn); \
            TYPE *work = (TYPE *) area->work; \
            shmem_##NAME##_##FUNCTION(dest, from, count, start, log_stride, size, work, area->psync); \
            for (int i = 0; i < count; i++) { \
                TYPE expected = ELEMENT(TYPE, 0, i); \
                for (int other = 1; other < size; other++) { \
                    TYPE element = ELEMENT(TYPE, other, i); \
                    expected = (TYPE) OP(expected, element); \
                } \
                CHECK_WITH(dest[i] == expected, #NAME "_" #FUNCTION); \
            } \
            check_marked(END_OF(TYPE, count), DEST_END, #NAME "_" #FUNCTION); \
        } \
    }

#define SET_BIT_TYPES(X, ...) \
    X(short, short, __VA_ARGS__) X(int, int, __VA_ARGS__) X(long, long, __VA_ARGS__) \
    X(longlong, long long, __VA_ARGS__)
#define SET_ORDER_TYPES(X, ...) \
    SET_BIT_TYPES(X, __VA_ARGS__) X(float, float, __VA_ARGS__) X(double, double, __VA_ARGS__) \
    X(longdouble, long double, __VA_ARGS__)
#define SET_SUM_TYPES(X, ...) SET_ORDER_TYPES(X, __VA_ARGS__) COMPLEX_TYPES(X, __VA_ARGS__)

SET_BIT_TYPES(CHECK_COMBINES, and_to_all, OP_and)
SET_BIT_TYPES(CHECK_COMBINES, or_to_all, OP_or)
SET_BIT_TYPES(CHECK_COMBINES, xor_to_all, OP_xor)
SET_ORDER_TYPES(CHECK_COMBINES, min_to_all, OP_min)
SET_ORDER_TYPES(CHECK_COMBINES, max_to_all, OP_max)
SET_SUM_TYPES(CHECK_COMBINES, sum_to_all, OP_sum)
SET_SUM_TYPES(CHECK_COMBINES, prod_to_all, OP_prod)

#define RUN_COMBINES(NAME, TYPE, FUNCTION) FUNCTION##_##NAME((int) lengths[i]);

/* A barrier completes what was put, and nobody leaves it before all members have come. */
static void check_barriers(void) {
    long *slots = (long *) area->dest, *source = (long *) area->source;
    /* The other members are done with the sets before. */
    shmem_sync(start, log_stride, size, area->turn);
    for (long turn = 1; turn < 20; turn++) {
        source[0] = turn;
        for (int i = 0; i < size; i++) {
            shmem_long_put_nbi(&slots[rank], source, 1, start + (i << log_stride));
        }
        shmem_barrier(SET);
        for (int i = 0; i < size; i++) {
            CHECK(slots[i] == turn);
        }
        shmem_sync(start, log_stride, size, area->turn);
    }
}

static void check_set(size_t first, size_t step) {
    check_barriers();
    for (size_t i = first; i < COUNT(lengths); i += step) {
        moves_32(lengths[i]);
        moves_64(lengths[i]);
        SET_BIT_TYPES(RUN_COMBINES, and_to_all)
        SET_BIT_TYPES(RUN_COMBINES, or_to_all)
        SET_BIT_TYPES(RUN_COMBINES, xor_to_all)
        SET_ORDER_TYPES(RUN_COMBINES, min_to_all)
        SET_ORDER_TYPES(RUN_COMBINES, max_to_all)
        SET_SUM_TYPES(RUN_COMBINES, sum_to_all)
        SET_SUM_TYPES(RUN_COMBINES, prod_to_all)
    }
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++) {
        CHECK(area->psync[i] == SHMEM_SYNC_VALUE);
    }
}

static void check_on(void *object) {
    area = object;
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++) {
        area->psync[i] = area->turn[i] = SHMEM_SYNC_VALUE;
    }
    shmem_barrier_all();
    for (size = n; size >= 1; size--) {
        for (log_stride = 0; log_stride < 3; log_stride++) {
            for (start = 0; start + ((size - 1) << log_stride) < n; start++) {
                int distance = me - start;
                rank = distance >> log_stride;
                if (distance >= 0 && rank < size && rank << log_stride == distance) {
                    check_set(size == n ? 0 : (size_t) start % 2, size == n ? 1 : 2);
                }
            }
        }
    }
    shmem_barrier_all();
}

static void check_mistake(const char *mistake) {
    static long psync[SHMEM_SYNC_SIZE], bad[SHMEM_SYNC_SIZE], source[4], dest[4], work[4];
    bad[SHMEM_SYNC_SIZE - 1] = 5;
    if (!strcmp(mistake, "not a member")) {
        shmem_barrier(1 - me, 0, 1, psync);
    } else if (!strcmp(mistake, "no members")) {
        shmem_sync(0, 0, 0, psync);
    } else if (!strcmp(mistake, "too many")) {
        shmem_barrier(0, 0, n + 1, psync);
    } else if (!strcmp(mistake, "too far")) {
        shmem_barrier(0, 3, n, psync);
    } else if (!strcmp(mistake, "negative")) {
        shmem_barrier(-1, 0, n, psync);
    } else if (!strcmp(mistake, "stride")) {
        shmem_barrier(0, -1, n, psync);
    } else if (!strcmp(mistake, "huge stride")) {
        shmem_barrier(0, 63, n, psync);
    } else if (!strcmp(mistake, "root")) {
        shmem_broadcast64(dest, source, 1, 2, 0, 0, n, psync);
    } else if (!strcmp(mistake, "nreduce")) {
        shmem_long_sum_to_all(dest, source, -1, 0, 0, n, work, psync);
    } else if (!strcmp(mistake, "dest")) {
        long local[4] = {0};
        shmem_long_sum_to_all(local, source, 1, 0, 0, n, work, psync);
    } else if (!strcmp(mistake, "long double")) {
        static long double values[4], more[4];
        shmem_longdouble_sum_to_all(values, more, -7, 0, 0, n, values, psync);
    } else if (!strcmp(mistake, "psync")) {
        shmem_long_sum_to_all(dest, source, 1, 0, 0, n, work, bad);
    } else if (!strcmp(mistake, "local psync")) {
        long local[SHMEM_SYNC_SIZE] = {0};
        shmem_barrier(0, 0, n, local);
    } else if (!strcmp(mistake, "other root")) {
        shmem_broadcast64(dest, source, 1, me, 0, 0, n, psync);
    } else if (!strcmp(mistake, "other size")) {
        shmem_broadcast64(dest, source, me, 0, 0, 0, n, psync);
    } else if (!strcmp(mistake, "other call")) {
        if (me == 0) {
            shmem_barrier(0, 0, n, psync);
        } else {
            shmem_broadcast64(dest, source, 1, 0, 0, 0, n, psync);
        }
    }
    /* Not refused. */
    shmem_global_exit(98);
}

/* Functions that the standard removed, and that change nothing. */
static void check_caches(void) {
    long value = 7;
    shmem_set_cache_inv();
    shmem_set_cache_line_inv(&value);
    shmem_udcflush();
    shmem_udcflush_line(&value);
    shmem_clear_cache_line_inv(&value);
    shmem_clear_cache_inv();
    CHECK(value == 7);
}

/* Blocks from one that fits into a message to one that takes several, from every root; the root's own is not
 * written. */
static void check_broadcasts(void) {
    static long psync[SHMEM_BCAST_SYNC_SIZE];
    static const size_t counts[] = {1, 1000, 5000, 100001};
    const size_t most = 100001;
    long *source = shmem_malloc(most * sizeof *source), *dest = shmem_malloc(most * sizeof *dest);
    for (size_t i = 0; i < SHMEM_BCAST_SYNC_SIZE; i++) {
        psync[i] = SHMEM_SYNC_VALUE;
    }
    for (size_t at = 0; at < COUNT(counts) * n; at++) {
        const size_t length = counts[at / n];
        const int root = at % n;
        for (size_t i = 0; i < most; i++) {
            source[i] = me * 1000003L + (long) (i + at);
            dest[i] = -1;
        }
        shmem_barrier_all();
        shmem_broadcast64(dest, source, length, root, 0, 0, n, psync);
        for (size_t i = 0; i < most; i++) {
            CHECK(dest[i] == (me != root && i < length ? root * 1000003L + (long) (i + at) : -1));
            CHECK(source[i] == me * 1000003L + (long) (i + at));
        }
    }
    shmem_free(dest);
    shmem_free(source);
}

int main(int count, char **words) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    if (count > 1 && strcmp(words[1], "broadcasts") == 0) {
        check_broadcasts();
        shmem_finalize();
        return 0;
    }
    if (count > 1) {
        check_mistake(words[1]);
    }
    check_caches();
    on_both(check_on, &area_static, sizeof area_static);
    shmem_finalize();
    return 0;
}
