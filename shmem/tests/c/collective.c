/* Collective operations on teams: every operation of every type against a model, on teams of several shapes,
 * of no, few and many elements, in the heap and in static data. With an argument, one mistake. */

#include "models.h"
#include <pthread.h>

static int me, n;
static area_t area_static, *area;

/* The team at hand, and this PE's number in it. */
static shmem_team_t team;
static int rank, size;

static const size_t lengths[] = {0, 1, 7, 150, LENGTH_MAX};

static void mark(void) {
    memset(area->dest, MARKER, sizeof area->dest);
    /* A target may be written from the first member's call on. */
    CHECK(shmem_team_sync(team) == 0);
}

#define END_OF(TYPE, count) ((unsigned char *) ((TYPE *) area->dest + (count)))
#define DEST_END (area->dest + sizeof area->dest)

#define CHECK_MOVES(NAME, TYPE, ...) \
    static void moves_##NAME(size_t count) { \
        TYPE *source = (TYPE *) area->source, *dest = (TYPE *) area->dest; \
        for (size_t i = 0; i < count * size; i++) { \
            source[i] = ELEMENT(TYPE, rank, i); \
        } \
        for (int root = 0; root < size; root++) { \
            mark(); \
            CHECK(shmem_##NAME##_broadcast(team, dest, source, count, root) == 0); \
            for (size_t i = 0; i < count; i++) { \
                CHECK_WITH(dest[i] == ELEMENT(TYPE, root, i), #NAME "_broadcast"); \
            } \
            check_marked(END_OF(TYPE, count), DEST_END, #NAME "_broadcast"); \
        } \
        mark(); \
        CHECK(shmem_##NAME##_fcollect(team, dest, source, count) == 0); \
        for (size_t i = 0; i < count * size; i++) { \
            CHECK_WITH(dest[i] == ELEMENT(TYPE, (int) (i / count), i % count), #NAME "_fcollect"); \
        } \
        check_marked(END_OF(TYPE, count * size), DEST_END, #NAME "_fcollect"); \
        for (int kind = 0; kind < 3; kind++) { \
            /* All the same, some none, all different. */ \
            size_t at = 0; \
            mark(); \
            CHECK(shmem_##NAME##_collect(team, dest, source, LENGTH(kind, rank, count)) == 0); \
            for (int from = 0; from < size; from++) { \
                for (size_t i = 0; i < LENGTH(kind, from, count); i++) { \
                    CHECK_WITH(dest[at++] == ELEMENT(TYPE, from, i), #NAME "_collect"); \
                } \
            } \
            check_marked(END_OF(TYPE, at), DEST_END, #NAME "_collect"); \
        } \
        mark(); \
        CHECK(shmem_##NAME##_alltoall(team, dest, source, count) == 0); \
        for (size_t i = 0; i < count * size; i++) { \
            size_t from = rank * count + i % count; \
            CHECK_WITH(dest[i] == ELEMENT(TYPE, (int) (i / count), from), #NAME "_alltoall"); \
        } \
        check_marked(END_OF(TYPE, count * size), DEST_END, #NAME "_alltoall"); \
        for (int strides = 0; strides < 3; strides++) { \
            size_t dst = 1 + strides % 2 * 2, sst = 1 + strides / 2, blocks = count / 2; \
            mark(); \
            CHECK(shmem_##NAME##_alltoalls(team, dest, source, dst, sst, blocks) == 0); \
            for (size_t i = 0; i < blocks * size; i++) { \
                size_t from = (rank * blocks + i % blocks) * sst; \
                CHECK_WITH(dest[i * dst] == ELEMENT(TYPE, (int) (i / blocks), from), #NAME "_alltoalls"); \
                if (i > 0 && dst > 1) { \
                    check_marked(END_OF(TYPE, i * dst - 1), END_OF(TYPE, i * dst), #NAME "_alltoalls"); \
                } \
            } \
            size_t extent = blocks * size == 0 ? 0 : (blocks * size - 1) * dst + 1; \
            check_marked(END_OF(TYPE, extent), DEST_END, #NAME "_alltoalls"); \
        } \
    }

#define LENGTH(kind, from, count) \
    ((kind) == 0 ? (count) : (kind) == 1 ? ((from) % 2) * (count) : (count) * ((from) + 1) / size)

ORDER_TYPES(CHECK_MOVES, )

static void moves_of_bytes(size_t count) {
    for (size_t i = 0; i < count * size; i++) {
        area->source[i] = ELEMENT(unsigned char, rank, i);
    }
    mark();
    CHECK(shmem_broadcastmem(team, area->dest, area->source, count, size - 1) == 0);
    for (size_t i = 0; i < count; i++) {
        CHECK(area->dest[i] == ELEMENT(unsigned char, size - 1, i));
    }
    mark();
    CHECK(shmem_fcollectmem(team, area->dest, area->source, count) == 0);
    for (size_t i = 0; i < count * size; i++) {
        CHECK(area->dest[i] == ELEMENT(unsigned char, (int) (i / count), i % count));
    }
    mark();
    CHECK(shmem_collectmem(team, area->dest, area->source, count * rank) == 0);
    size_t at = 0;
    for (int from = 0; from < size; from++) {
        for (size_t i = 0; i < count * from; i++) {
            CHECK(area->dest[at++] == ELEMENT(unsigned char, from, i));
        }
    }
    mark();
    CHECK(shmem_alltoallmem(team, area->dest, area->source, count) == 0);
    for (size_t i = 0; i < count * size; i++) {
        CHECK(area->dest[i] == ELEMENT(unsigned char, (int) (i / count), rank * count + i % count));
    }
    mark();
    CHECK(shmem_alltoallsmem(team, area->dest, area->source, 2, 1, count) == 0);
    for (size_t i = 0; i < count * size; i++) {
        CHECK(area->dest[2 * i] == ELEMENT(unsigned char, (int) (i / count), rank * count + i % count));
    }
}

/* An operation, with another target and in place; `from` and `to` say which members' elements it combines
 * (none gives zeros), `shift` how far from an aligned place source and target lie, in elements' halves. */
#define CHECK_COMBINES(NAME, TYPE, FUNCTION, OP, FROM_ALL, UP_TO) \
    static void FUNCTION##_##NAME(size_t count, size_t shift) { \
        TYPE *source = (TYPE *) (area->source + shift), *dest = (TYPE *) (area->dest + shift); \
        for (int in_place = 0; in_place < 2; in_place++) { \
            mark(); \
            TYPE *from = in_place ? dest : source; \
            for (size_t i = 0; i < count; i++) { \
                from[i] = ELEMENT(TYPE, rank, i); \
            } \
            CHECK(shmem_team_sync(team) == 0); \
            CHECK(shmem_##NAME##_##FUNCTION(team, dest, from, count) == 0); \
            for (size_t i = 0; i < count; i++) { \
                int last = FROM_ALL ? size : rank + UP_TO; \
                TYPE expected = last == 0 ? (TYPE) 0 : ELEMENT(TYPE, 0, i); \
                for (int other = 1; other < last; other++) { \
                    TYPE element = ELEMENT(TYPE, other, i); \
                    expected = (TYPE) OP(expected, element); \
                } \
                CHECK_WITH(dest[i] == expected, #NAME "_" #FUNCTION); \
                CHECK(in_place || source[i] == ELEMENT(TYPE, rank, i)); \
            } \
            check_marked((unsigned char *) (dest + count), DEST_END, #NAME "_" #FUNCTION); \
        } \
    }

BIT_TYPES(CHECK_COMBINES, and_reduce, OP_and, 1, 0)
BIT_TYPES(CHECK_COMBINES, or_reduce, OP_or, 1, 0)
BIT_TYPES(CHECK_COMBINES, xor_reduce, OP_xor, 1, 0)
ORDER_TYPES(CHECK_COMBINES, min_reduce, OP_min, 1, 0)
ORDER_TYPES(CHECK_COMBINES, max_reduce, OP_max, 1, 0)
SUM_TYPES(CHECK_COMBINES, sum_reduce, OP_sum, 1, 0)
SUM_TYPES(CHECK_COMBINES, prod_reduce, OP_prod, 1, 0)
SUM_TYPES(CHECK_COMBINES, sum_inscan, OP_sum, 0, 1)
SUM_TYPES(CHECK_COMBINES, sum_exscan, OP_sum, 0, 0)

#define RUN_MOVES(NAME, TYPE, ...) moves_##NAME(lengths[i]);
#define RUN_COMBINES(NAME, TYPE, FUNCTION) FUNCTION##_##NAME(lengths[i], 0);
#define RUN_SHIFTED(NAME, TYPE, FUNCTION) FUNCTION##_##NAME(lengths[i], sizeof(TYPE) / 2);

static void check_team(shmem_team_t which, size_t first, size_t step) {
    team = which;
    rank = shmem_team_my_pe(team);
    size = shmem_team_n_pes(team);
    for (size_t i = first; i < COUNT(lengths); i += step) {
        ORDER_TYPES(RUN_MOVES, )
        moves_of_bytes(lengths[i]);
        BIT_TYPES(RUN_COMBINES, and_reduce)
        BIT_TYPES(RUN_COMBINES, or_reduce)
        BIT_TYPES(RUN_COMBINES, xor_reduce)
        ORDER_TYPES(RUN_COMBINES, min_reduce)
        ORDER_TYPES(RUN_COMBINES, max_reduce)
        SUM_TYPES(RUN_COMBINES, sum_reduce)
        SUM_TYPES(RUN_COMBINES, prod_reduce)
        SUM_TYPES(RUN_COMBINES, sum_inscan)
        SUM_TYPES(RUN_COMBINES, sum_exscan)
        /* Complex numbers need lie at multiples of their half only. */
        COMPLEX_TYPES(RUN_SHIFTED, sum_reduce)
        COMPLEX_TYPES(RUN_SHIFTED, prod_reduce)
        COMPLEX_TYPES(RUN_SHIFTED, sum_inscan)
    }
}

static void check_on(void *object) {
    area = object;
    int is_static = object == &area_static;
    check_team(SHMEM_TEAM_WORLD, is_static, 1 + is_static);
    check_team(SHMEM_TEAM_SHARED, 1, 3);
    /* The last ones turned round, and every other one. */
    const int triplets[][3] = {{n - 1, -1, n - n / 4}, {0, 2, (n + 1) / 2}};
    for (size_t i = 0; i < COUNT(triplets); i++) {
        const int *triplet = triplets[i];
        shmem_team_t made;
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, triplet[0], triplet[1], triplet[2], NULL, 0, &made)
              == 0);
        if (made != SHMEM_TEAM_INVALID) {
            check_team(made, 1 + i, 2);
        }
        shmem_team_destroy(made);
    }
    shmem_barrier_all();
}

/* Numbers that are treated in ways of their own. */
static void check_long_double(void) {
    static long double source[3], dest[3];
    source[0] = me == 0 ? -0.0L : 0.0L;
    source[1] = me == n - 1 ? __builtin_nanl("") : 1.0L;
    source[2] = 1.0L + me * 0x1p-60L;
    shmem_sync_all();
    CHECK(shmem_longdouble_min_reduce(SHMEM_TEAM_WORLD, dest, source, 3) == 0);
    CHECK(dest[0] == 0 && __builtin_signbit(dest[0]) && dest[1] != dest[1] && dest[2] == 1.0L);
    shmem_sync_all();
    CHECK(shmem_longdouble_max_reduce(SHMEM_TEAM_WORLD, dest, source, 3) == 0);
    CHECK(dest[0] == 0 && !!__builtin_signbit(dest[0]) == (n == 1) && dest[1] != dest[1]);
    CHECK(dest[2] == 1.0L + (n - 1) * 0x1p-60L);
    shmem_sync_all();
}

/* A barrier completes what was put, and nobody leaves it before all have come. */
static void check_barriers(void) {
    static long slots[PES_MAX], source = 0;
    for (long turn = 1; turn < 200; turn++) {
        source = turn;
        for (int pe = 0; pe < n; pe++) {
            shmem_long_put_nbi(&slots[me], &source, 1, pe);
        }
        shmem_barrier_all();
        for (int pe = 0; pe < n; pe++) {
            CHECK(slots[pe] == turn);
        }
        if (turn % 2) {
            shmem_sync_all();
        } else {
            CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) == 0);
        }
    }
}

/* Calls one after the other, without anything between them. */
static void check_streams(void) {
    static long source[64], dest[64];
    for (int i = 0; i < 64; i++) {
        source[i] = i;
    }
    shmem_barrier_all();
    for (int i = 0; i < 3000; i++) {
        CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, &dest[i % 64], &source[i % 64], 1, i % n) == 0);
        CHECK(dest[i % 64] == i % 64);
    }
    shmem_barrier_all();
}

typedef struct {
    shmem_team_t team;
    long *source, *dest;
} part_t;

static void *run_thread(void *argument) {
    part_t *part = argument;
    int members = shmem_team_n_pes(part->team), own = shmem_team_my_pe(part->team);
    for (int i = 0; i < 300; i++) {
        part->source[0] = own + i;
        if (shmem_long_sum_reduce(part->team, part->dest, part->source, 1) != 0
            || part->dest[0] != (long) members * (members - 1) / 2 + (long) members * i
            || shmem_long_broadcast(part->team, part->dest + 1, part->source, 1, i % members) != 0
            || part->dest[1] != i % members + i || shmem_team_sync(part->team) != 0) {
            return argument;
        }
    }
    return NULL;
}

/* Threads on teams of their own: all PEs in both orders. */
static void check_threads(void) {
    part_t parts[2];
    pthread_t threads[2];
    long *memory = shmem_calloc(2, 3 * sizeof(long));
    for (int i = 0; i < 2; i++) {
        parts[i].source = memory + 3 * i;
        parts[i].dest = memory + 3 * i + 1;
        shmem_team_t *made = &parts[i].team;
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, i * (n - 1), 1 - 2 * i, n, NULL, 0, made) == 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, run_thread, &parts[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        void *failed;
        CHECK(pthread_join(threads[i], &failed) == 0 && failed == NULL);
        shmem_team_destroy(parts[i].team);
    }
    shmem_free(memory);
}

/* Type-generic forms. */
/* A source and a target whose elements alternate do not overlap. */
static void check_alternating(void) {
    static long pairs[2 * PES_MAX];
    for (int i = 0; i < n; i++) pairs[2 * i + 1] = 100 * me + i;
    shmem_sync(SHMEM_TEAM_WORLD);
    CHECK(shmem_long_alltoalls(SHMEM_TEAM_WORLD, pairs, pairs + 1, 2, 2, 1) == 0);
    for (int i = 0; i < n; i++) CHECK(pairs[2 * i] == 100 * i + me && pairs[2 * i + 1] == 100 * me + i);
    shmem_sync(SHMEM_TEAM_WORLD);
}

static void check_generics(void) {
    static double source[2], dest[2 * PES_MAX];
    source[0] = me;
    shmem_sync(SHMEM_TEAM_WORLD);
    CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, dest, source, 1, n - 1) == 0 && dest[0] == n - 1);
    shmem_sync(SHMEM_TEAM_WORLD);
    CHECK(shmem_fcollect(SHMEM_TEAM_WORLD, dest, source, 1) == 0 && dest[n - 1] == n - 1);
    shmem_sync(SHMEM_TEAM_WORLD);
    CHECK(shmem_collect(SHMEM_TEAM_WORLD, dest, source, 1) == 0 && dest[n - 1] == n - 1);
    shmem_sync(SHMEM_TEAM_WORLD);
    CHECK(shmem_alltoall(SHMEM_TEAM_SHARED, dest, dest + PES_MAX, 0) == 0);
    CHECK(shmem_alltoalls(SHMEM_TEAM_SHARED, dest, dest + PES_MAX, 1, 1, 0) == 0);
    CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 1) == 0 && dest[0] == n * (n - 1) / 2);
    shmem_sync(SHMEM_TEAM_WORLD);
    CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, dest, source, 1) == 0 && dest[0] == n - 1);
    shmem_sync(SHMEM_TEAM_WORLD);
    CHECK(shmem_sum_exscan(SHMEM_TEAM_WORLD, dest, source, 1) == 0 && dest[0] == me * (me - 1) / 2);
    shmem_sync(SHMEM_TEAM_WORLD);
}

static void check_mistake(const char *mistake) {
    static long source[8], dest[8];
    static char bytes[64];
    long local[8] = {0};
    void *large = shmem_malloc(1 << 16);
    if (!strcmp(mistake, "root")) {
        shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, 1, n);
    } else if (!strcmp(mistake, "negative root")) {
        shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, 1, -1);
    } else if (!strcmp(mistake, "team")) {
        shmem_double_sum_reduce(SHMEM_TEAM_INVALID, large, large, 1);
    } else if (!strcmp(mistake, "local source")) {
        shmem_long_fcollect(SHMEM_TEAM_WORLD, dest, local, 1);
    } else if (!strcmp(mistake, "local dest")) {
        shmem_long_alltoall(SHMEM_TEAM_WORLD, local, source, 1);
    } else if (!strcmp(mistake, "null")) {
        shmem_long_collect(SHMEM_TEAM_WORLD, NULL, source, 1);
    } else if (!strcmp(mistake, "size")) {
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, large, source, SIZE_MAX);
    } else if (!strcmp(mistake, "long")) {
        shmem_long_fcollect(SHMEM_TEAM_WORLD, large, source, (size_t) 1 << 40);
    } else if (!strcmp(mistake, "misaligned")) {
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, (long *) (uintptr_t) ((uintptr_t) bytes | 1), 1);
    } else if (!strcmp(mistake, "stride")) {
        shmem_long_alltoalls(SHMEM_TEAM_WORLD, dest, source, 0, 1, 1);
    } else if (!strcmp(mistake, "negative stride")) {
        shmem_long_alltoalls(SHMEM_TEAM_WORLD, dest, source, 1, -2, 1);
    } else if (!strcmp(mistake, "overlap")) {
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, dest + 1, 2);
    } else if (!strcmp(mistake, "strided overlap")) {
        shmem_long_alltoalls(SHMEM_TEAM_WORLD, (long *) large, (long *) large + 2, 2, 2, 1);
    } else if (!strcmp(mistake, "in place")) {
        shmem_long_alltoall(SHMEM_TEAM_WORLD, large, large, 1);
    } else if (!strcmp(mistake, "long double")) {
        shmem_longdouble_sum_reduce(SHMEM_TEAM_WORLD, (long double *) (void *) local, large, 1);
    } else if (!strcmp(mistake, "other root")) {
        shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, 1, me);
    } else if (!strcmp(mistake, "other size")) {
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 1 + me);
    } else if (!strcmp(mistake, "other type")) {
        if (me == 0) {
            shmem_int_sum_reduce(SHMEM_TEAM_WORLD, (int *) large, (int *) large + 9, 2);
        } else {
            shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 2);
        }
    } else if (!strcmp(mistake, "other call")) {
        if (me == 0) {
            shmem_team_sync(SHMEM_TEAM_WORLD);
        } else {
            shmem_long_fcollect(SHMEM_TEAM_WORLD, dest, source, 1);
        }
    } else if (!strcmp(mistake, "collect")) {
        if (me == 0) {
            shmem_long_collect(SHMEM_TEAM_WORLD, dest, source, 1);
        } else {
            shmem_int_collect(SHMEM_TEAM_WORLD, (int *) large, (int *) large + 9, 1);
        }
    }
    /* Not refused. */
    shmem_global_exit(98);
}

int main(int count, char **words) {
    int provided;
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0);
    me = shmem_my_pe();
    n = shmem_n_pes();
    if (count > 1) {
        check_mistake(words[1]);
    }
    check_barriers();
    check_streams();
    check_alternating();
    check_generics();
    check_long_double();
    check_threads();
    on_both(check_on, &area_static, sizeof area_static);
    shmem_finalize();
    return 0;
}
