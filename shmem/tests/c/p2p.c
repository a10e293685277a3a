/* Point-to-point synchronisation: every comparison of every type, sets of words, status arrays, empty sets,
 * words that atomics change and words that plain puts change, in the heap and in static data. With an
 * argument, one mistake. */

#include "check.h"
#include <pthread.h>

static int me, n, right, left;

enum { WORDS = 6 };

/* One round: all go to the right by `SEND`, and wait for what comes from the left. */
#define ROUND(NAME, SEND, WAIT) \
    do { \
        ivars[0] = 0; \
        shmem_barrier_all(); \
        SEND; \
        WAIT; \
        shmem_barrier_all(); \
    } while (0)

#define COMPARISONS(NAME, TYPE, SEND) \
    do { \
        const TYPE top = (TYPE) -1 > 0 ? (TYPE) -1 : (TYPE) ((UINT64_C(1) << (8 * sizeof(TYPE) - 1)) - 1); \
        const TYPE below = (TYPE) -1 > 0 ? (TYPE) 1 : (TYPE) -4; \
        TYPE sent = 7; \
        ROUND(NAME, SEND, shmem_##NAME##_wait_until(ivars, SHMEM_CMP_EQ, 7)); \
        ROUND(NAME, SEND, shmem_##NAME##_wait_until(ivars, SHMEM_CMP_NE, 0)); \
        ROUND(NAME, SEND, shmem_##NAME##_wait_until(ivars, SHMEM_CMP_GT, 6)); \
        ROUND(NAME, SEND, shmem_##NAME##_wait_until(ivars, SHMEM_CMP_GE, 7)); \
        ROUND(NAME, SEND, while (!shmem_##NAME##_test(ivars, SHMEM_CMP_EQ, 7))); \
        sent = top; \
        ROUND(NAME, SEND, shmem_##NAME##_wait_until(ivars, SHMEM_CMP_GT, (TYPE) (top - 1))); \
        CHECK(ivars[0] == top); \
        sent = below; \
        ivars[1] = 9; \
        if (below != 1) { \
            ROUND(NAME, SEND, shmem_##NAME##_wait_until(ivars, SHMEM_CMP_LT, 0)); \
            ROUND(NAME, SEND, shmem_##NAME##_wait_until(ivars, SHMEM_CMP_LE, -4)); \
        } \
        shmem_##NAME##_wait_until(&ivars[1], SHMEM_CMP_LT, 10); \
        shmem_##NAME##_wait_until(&ivars[1], SHMEM_CMP_LE, 9); \
        CHECK(shmem_##NAME##_test(&ivars[1], SHMEM_CMP_EQ, 9) == 1); \
        CHECK(shmem_##NAME##_test(&ivars[1], SHMEM_CMP_EQ, 8) == 0); \
        CHECK(shmem_##NAME##_test(&ivars[1], SHMEM_CMP_NE, 9) == 0); \
        CHECK(shmem_##NAME##_test(&ivars[1], SHMEM_CMP_NE, 8) == 1); \
        CHECK(shmem_##NAME##_test(&ivars[1], SHMEM_CMP_GT, 9) == 0); \
        CHECK(shmem_##NAME##_test(&ivars[1], SHMEM_CMP_GT, 8) == 1); \
        CHECK(shmem_##NAME##_test(&ivars[1], SHMEM_CMP_GE, 10) == 0); \
        CHECK(shmem_##NAME##_test(&ivars[1], SHMEM_CMP_GE, 9) == 1); \
        CHECK(shmem_##NAME##_test(&ivars[1], SHMEM_CMP_LT, 9) == 0); \
        CHECK(shmem_##NAME##_test(&ivars[1], SHMEM_CMP_LT, top) == 1); \
        CHECK(shmem_##NAME##_test(&ivars[1], SHMEM_CMP_LE, 8) == 0); \
        CHECK(shmem_##NAME##_test(&ivars[1], SHMEM_CMP_LE, 9) == 1); \
    } while (0)

/* Each PE sets word after word of its right neighbour, in an order of its own. */
#define SETS(NAME, TYPE) \
    do { \
        const int none[WORDS] = { 0 }, all[WORDS] = { 1, 2, -1, 1, 1, 1 }; \
        const int odd[WORDS] = { 0, 1, 0, 1, 0, 1 }; \
        const TYPE each[WORDS] = { 1, 2, 3, 4, 5, 6 }; \
        size_t indices[WORDS], count, found; \
        int seen[WORDS] = { 0 }; \
        const int *statuses[] = { NULL, none }; \
        memset(ivars, 0, WORDS * sizeof(TYPE)); \
        shmem_barrier_all(); \
        /* Nothing has come. */ \
        CHECK(shmem_##NAME##_test_all(ivars, WORDS, NULL, SHMEM_CMP_NE, 0) == 0); \
        CHECK(shmem_##NAME##_test_any(ivars, WORDS, none, SHMEM_CMP_NE, 0) == SIZE_MAX); \
        CHECK(shmem_##NAME##_test_some(ivars, WORDS, indices, NULL, SHMEM_CMP_NE, 0) == 0); \
        CHECK(shmem_##NAME##_test_all_vector(ivars, WORDS, NULL, SHMEM_CMP_EQ, each) == 0); \
        CHECK(shmem_##NAME##_test_any_vector(ivars, WORDS, NULL, SHMEM_CMP_EQ, each) == SIZE_MAX); \
        CHECK(shmem_##NAME##_test_some_vector(ivars, WORDS, indices, NULL, SHMEM_CMP_EQ, each) == 0); \
        shmem_barrier_all(); \
        for (int i = 0; i < WORDS; i++) { \
            const int at = (i * 5 + 2) % WORDS; \
            if (i % 2) shmem_##NAME##_p(&ivars[at], (TYPE) (at + 1), right); \
            else shmem_##NAME##_atomic_set(&ivars[at], (TYPE) (at + 1), right); \
        } \
        /* What has come is found, each once. */ \
        for (size_t left_over = WORDS; left_over > 0; left_over -= count) { \
            count = shmem_##NAME##_wait_until_some(ivars, WORDS, indices, seen, SHMEM_CMP_NE, 0); \
            CHECK(count >= 1 && count <= left_over); \
            for (size_t i = 0; i < count; i++) { \
                CHECK(indices[i] < WORDS && !seen[indices[i]]); \
                CHECK(ivars[indices[i]] == (TYPE) (indices[i] + 1)); \
                seen[indices[i]] = 1; \
            } \
        } \
        memset(seen, 0, sizeof seen); \
        for (int i = 0; i < WORDS; i++) { \
            found = i % 2 ? shmem_##NAME##_wait_until_any(ivars, WORDS, seen, SHMEM_CMP_GE, 1) \
                          : shmem_##NAME##_wait_until_any_vector(ivars, WORDS, seen, SHMEM_CMP_EQ, each); \
            CHECK(found < WORDS && !seen[found]); \
            seen[found] = 1; \
        } \
        for (int s = 0; s < 2; s++) { \
            const int *status = statuses[s]; \
            shmem_##NAME##_wait_until_all(ivars, WORDS, status, SHMEM_CMP_NE, 0); \
            shmem_##NAME##_wait_until_all_vector(ivars, WORDS, status, SHMEM_CMP_EQ, each); \
            CHECK(shmem_##NAME##_test_all(ivars, WORDS, status, SHMEM_CMP_GT, 0) == 1); \
            CHECK(shmem_##NAME##_test_all(ivars, WORDS, status, SHMEM_CMP_GT, 1) == 0); \
            CHECK(shmem_##NAME##_test_all_vector(ivars, WORDS, status, SHMEM_CMP_LE, each) == 1); \
            CHECK(shmem_##NAME##_wait_until_any(ivars, WORDS, status, SHMEM_CMP_EQ, 4) == 3); \
            CHECK(shmem_##NAME##_test_any(ivars, WORDS, status, SHMEM_CMP_GE, 6) == 5); \
            CHECK(shmem_##NAME##_test_some(ivars, WORDS, indices, status, SHMEM_CMP_LT, 3) == 2); \
            CHECK(indices[0] + indices[1] == 1); \
            count = shmem_##NAME##_test_some_vector(ivars, WORDS, indices, status, SHMEM_CMP_GE, each); \
            CHECK(count == WORDS); \
            CHECK(shmem_##NAME##_wait_until_some_vector(ivars, WORDS, indices, status, SHMEM_CMP_EQ, each) \
                  == WORDS); \
        } \
        /* What is left out is not looked at. */ \
        CHECK(shmem_##NAME##_test_any(ivars, WORDS, odd, SHMEM_CMP_EQ, 2) == SIZE_MAX); \
        CHECK(shmem_##NAME##_test_some(ivars, WORDS, indices, odd, SHMEM_CMP_LE, 3) == 2); \
        CHECK(shmem_##NAME##_test_all(ivars, WORDS, odd, SHMEM_CMP_NE, 4) == 1); \
        shmem_##NAME##_wait_until_all(ivars, WORDS, odd, SHMEM_CMP_NE, 4); \
        CHECK(shmem_##NAME##_wait_until_some(ivars, WORDS, indices, odd, SHMEM_CMP_GT, 4) == 1); \
        CHECK(indices[0] == 4); \
        /* Of empty sets. */ \
        for (int s = 0; s < 2; s++) { \
            const size_t words = s ? WORDS : 0; \
            TYPE *const where = s ? ivars : NULL; \
            const TYPE *const values = s ? each : NULL; \
            const int *status = s ? all : NULL; \
            shmem_##NAME##_wait_until_all(where, words, status, SHMEM_CMP_EQ, 99); \
            shmem_##NAME##_wait_until_all_vector(where, words, status, SHMEM_CMP_EQ, values); \
            CHECK(shmem_##NAME##_wait_until_any(where, words, status, SHMEM_CMP_EQ, 99) == SIZE_MAX); \
            found = shmem_##NAME##_wait_until_any_vector(where, words, status, SHMEM_CMP_NE, values); \
            CHECK(found == SIZE_MAX); \
            CHECK(shmem_##NAME##_wait_until_some(where, words, indices, status, SHMEM_CMP_EQ, 99) == 0); \
            count = shmem_##NAME##_wait_until_some_vector(where, words, NULL, status, SHMEM_CMP_NE, values); \
            CHECK(count == 0); \
            CHECK(shmem_##NAME##_test_all(where, words, status, SHMEM_CMP_EQ, 99) == 1); \
            CHECK(shmem_##NAME##_test_all_vector(where, words, status, SHMEM_CMP_NE, values) == 1); \
            CHECK(shmem_##NAME##_test_any(where, words, status, SHMEM_CMP_EQ, 1) == SIZE_MAX); \
            CHECK(shmem_##NAME##_test_any_vector(where, words, status, SHMEM_CMP_EQ, values) == SIZE_MAX); \
            CHECK(shmem_##NAME##_test_some(where, words, indices, status, SHMEM_CMP_EQ, 1) == 0); \
            count = shmem_##NAME##_test_some_vector(where, words, indices, status, SHMEM_CMP_EQ, values); \
            CHECK(count == 0); \
        } \
        shmem_barrier_all(); \
    } while (0)

static void every_type(void *object) {
#define TYPED(NAME, TYPE) \
    { \
        TYPE *ivars = object; \
        COMPARISONS(NAME, TYPE, shmem_##NAME##_p(ivars, sent, right)); \
        COMPARISONS(NAME, TYPE, shmem_##NAME##_atomic_set(ivars, sent, right)); \
        SETS(NAME, TYPE); \
    }
    TYPED(int, int)
    TYPED(long, long)
    TYPED(longlong, long long)
    TYPED(uint, unsigned int)
    TYPED(ulong, unsigned long)
    TYPED(ulonglong, unsigned long long)
    TYPED(int32, int32_t)
    TYPED(int64, int64_t)
    TYPED(uint32, uint32_t)
    TYPED(uint64, uint64_t)
    TYPED(size, size_t)
    TYPED(ptrdiff, ptrdiff_t)
#define SHORT(NAME, TYPE) \
    { \
        TYPE *ivars = object; \
        COMPARISONS(NAME, TYPE, shmem_##NAME##_p(ivars, sent, right)); \
    }
    SHORT(short, short)
    SHORT(ushort, unsigned short)
}

/* The names of before 1.4. */
static void old_names(void *object) {
    *(long *) object = 0;
    shmem_barrier_all();
    shmem_long_p(object, me + 1, right);
    shmem_wait(object, 0);
    CHECK(*(long *) object == left + 1);
    shmem_long_wait(object, -1);
    (shmem_wait_until)(object, SHMEM_CMP_EQ, left + 1);
    shmem_barrier_all();
    shmem_int_p(object, me + 20, right);
    shmem_int_wait(object, left + 1);
    shmem_int_wait(object, 0);
    shmem_barrier_all();
    shmem_longlong_p(object, me + 300, right);
    shmem_longlong_wait(object, left + 20);
    shmem_barrier_all();
    shmem_short_p(object, (short) (me - 1000), right);
    shmem_short_wait(object, (short) (left + 300));
    CHECK(*(short *) object == left - 1000);
    shmem_barrier_all();
}

/* Of several words that hold, each is found, though nobody leaves out what was found: also when two sets are
 * searched in turn. */
static void each_is_found(void *object) {
    enum { MANY = 40, CALLS = 20 * MANY };
    int *words = object, *others = words + MANY;
    int seen[MANY] = { 0 }, seen_of_others[2] = { 0 }, count = 0;
    for (int i = 0; i < MANY + 2; i++) words[i] = 1;
    for (int i = 0; i < CALLS; i++) {
        size_t found = i % 3 ? shmem_int_wait_until_any(words, MANY, NULL, SHMEM_CMP_EQ, 1)
                             : shmem_int_test_any(words, MANY, NULL, SHMEM_CMP_EQ, 1);
        CHECK(found < MANY);
        count += !seen[found]++;
        found = shmem_int_test_any(others, 2, NULL, SHMEM_CMP_EQ, 1);
        CHECK(found < 2);
        seen_of_others[found]++;
    }
    CHECK(count == MANY);
    CHECK(seen_of_others[0] && seen_of_others[1]);
    shmem_barrier_all();
}

/* A token goes round, by a plain put and by an atomic in turn; those who wait for it sleep sometimes. */
static void token(void *object) {
    enum { ROUNDS = 60 };
    long *word = object;
    *word = 0;
    shmem_barrier_all();
    for (long turn = 1; turn <= ROUNDS; turn++) {
        if (me != 0) shmem_long_wait_until(word, SHMEM_CMP_EQ, turn);
        if (turn % 2) shmem_long_p(word, turn + (right == 0 ? 1000 : 0), right);
        else shmem_long_atomic_set(word, turn + (right == 0 ? 1000 : 0), right);
        if (me == 0) shmem_long_wait_until(word, SHMEM_CMP_EQ, turn + 1000);
    }
    shmem_barrier_all();
}

/* What was put and fenced before the word is there when the word is. */
static void data_before_the_word(void *object) {
    enum { LONGS = 500, ROUNDS = 40 };
    static long sent[LONGS];
    long *data = shmem_malloc(LONGS * sizeof *data), *words = object;
    words[0] = words[1] = 0;
    shmem_barrier_all();
    for (long turn = 1; turn <= ROUNDS; turn++) {
        for (int i = 0; i < LONGS; i++) sent[i] = turn * 77 + me + i;
        shmem_long_put(data, sent, LONGS, right);
        shmem_fence();
        shmem_long_p(&words[0], turn, right);
        if (turn % 2) shmem_long_wait_until(&words[0], SHMEM_CMP_EQ, turn);
        else while (!shmem_long_test(&words[0], SHMEM_CMP_EQ, turn));
        for (int i = 0; i < LONGS; i++) CHECK(data[i] == turn * 77 + left + i);
        shmem_long_atomic_inc(&words[1], left);
        shmem_long_wait_until(&words[1], SHMEM_CMP_GE, turn);
    }
    shmem_barrier_all();
    shmem_free(data);
}

enum { THREADS = 3 };

static long *lanes;

/* One thread of each PE: a token of their own goes round. */
static void *lane(void *number) {
    long *word = &lanes[(intptr_t) number];
    for (long turn = 1; turn <= 30; turn++) {
        if (me != 0) shmem_long_wait_until_any(word, 1, NULL, SHMEM_CMP_EQ, turn);
        shmem_long_atomic_set(word, turn + (right == 0 ? 1000 : 0), right);
        if (me == 0) shmem_long_wait_until(word, SHMEM_CMP_EQ, turn + 1000);
    }
    return NULL;
}

/* A thread that waits keeps no other one from doing so, nor from sending. */
static void threads(void *object) {
    pthread_t those[THREADS];
    lanes = object;
    memset(lanes, 0, THREADS * sizeof *lanes);
    shmem_barrier_all();
    for (intptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&those[i], NULL, lane, (void *) i) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(those[i], NULL) == 0);
    shmem_barrier_all();
}

static long of_statics[64];

static int mistake(const char *which) {
    long *words = shmem_calloc(4, sizeof *words), local = 0, *crooked = (long *) ((char *) words + 4);
    size_t indices[4];
    if (!strcmp(which, "cmp")) shmem_long_wait_until(words, 7, 0);
    if (!strcmp(which, "cmp of test")) shmem_int_test((int *) words, -1, 0);
    if (!strcmp(which, "cmp of all")) shmem_long_wait_until_all(words, 4, NULL, 0, 0);
    if (!strcmp(which, "ivar")) shmem_long_wait_until(&local, SHMEM_CMP_EQ, 0);
    if (!strcmp(which, "null")) shmem_uint_wait_until(NULL, SHMEM_CMP_EQ, 0);
    if (!strcmp(which, "alignment")) shmem_long_wait_until(crooked, SHMEM_CMP_EQ, 0);
    if (!strcmp(which, "test")) shmem_long_test(&local, SHMEM_CMP_EQ, 0);
    if (!strcmp(which, "any")) shmem_long_wait_until_any(&local, 1, NULL, SHMEM_CMP_EQ, 0);
    if (!strcmp(which, "some")) shmem_long_test_some(&local, 1, indices, NULL, SHMEM_CMP_EQ, 0);
    if (!strcmp(which, "length")) shmem_long_test_all(words, SIZE_MAX / 4, NULL, SHMEM_CMP_EQ, 0);
    if (!strcmp(which, "vector")) shmem_long_test_any_vector(crooked, 1, NULL, SHMEM_CMP_EQ, &local);
    if (!strcmp(which, "old name")) shmem_wait(&local, 0);
    if (!strcmp(which, "in vain") && me == 0) shmem_long_wait_until(words, SHMEM_CMP_EQ, 1);
    return 0;
}

int main(int argc, char **argv) {
    int provided;
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0 && provided == SHMEM_THREAD_MULTIPLE);
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    left = (me + n - 1) % n;
    if (argc > 1) return mistake(argv[1]);
    on_both(every_type, of_statics, sizeof of_statics);
    on_both(old_names, of_statics, sizeof of_statics);
    on_both(each_is_found, of_statics, sizeof of_statics);
    on_both(token, of_statics, sizeof of_statics);
    on_both(threads, of_statics, sizeof of_statics);
    on_both(data_before_the_word, of_statics, sizeof of_statics);
    shmem_finalize();
    return 0;
}
