/* Memory management: each routine for itself, then a random sequence against a model: the same offsets on all
 * PEs, no overlap, all that was written kept, all memory back at the end. With an argument, a job of
 * another kind, or one mistake. */

#include "check.h"

#include <shmemx.h>

static int me, n, left, right;

static unsigned int state = 4711;

static unsigned int below(unsigned int bound) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % bound;
}

static inline unsigned char byte_of(int pe, int which, size_t i) {
    return (unsigned char) (pe * 53 + which * 29 + i * 7 + (i >> 8) * 13 + 1);
}

static void fill(void *block, int pe, int which, size_t bytes) {
    unsigned char *bytes_of = block;
    for (size_t i = 0; i < bytes; i++) bytes_of[i] = byte_of(pe, which, i);
}

static int holds(const void *block, int pe, int which, size_t bytes) {
    const unsigned char *bytes_of = block;
    for (size_t i = 0; i < bytes; i++) {
        if (bytes_of[i] != byte_of(pe, which, i)) return 0;
    }
    return 1;
}

static int is_multiple(const void *address, size_t of) { return (uintptr_t) address % of == 0; }

/* What the PE to the left puts into a block lies in the block. */
static void check_block(void *block, int which, size_t bytes) {
    void *local = malloc(bytes);
    CHECK(block != NULL && local != NULL);
    fill(local, me, which, bytes);
    shmem_barrier_all();
    shmem_putmem(block, local, bytes, right);
    shmem_barrier_all();
    CHECK(holds(block, left, which, bytes));
    free(local);
    shmem_barrier_all();
}

static void allocations(void) {
    CHECK(shmem_malloc(0) == NULL);
    CHECK(shmem_calloc(0, 8) == NULL && shmem_calloc(8, 0) == NULL);
    CHECK(shmem_malloc_with_hints(0, SHMEM_MALLOC_ATOMICS_REMOTE) == NULL);
    CHECK(shmem_align(64, 0) == NULL);
    CHECK(shmem_realloc(NULL, 0) == NULL);
    shmem_free(NULL);
    for (size_t bytes = 1; bytes < 5000; bytes = bytes * 3 + 1) {
        void *block = shmem_malloc(bytes);
        CHECK(is_multiple(block, _Alignof(max_align_t)));
        check_block(block, 1, bytes);
        void *of_null = shmem_realloc(NULL, bytes);
        check_block(of_null, 2, bytes);
        CHECK(holds(block, left, 1, bytes));
        shmem_free(of_null);
        shmem_free(block);
    }
    const long hints[] = { 0, SHMEM_MALLOC_ATOMICS_REMOTE, SHMEM_MALLOC_SIGNAL_REMOTE,
                           SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE };
    for (size_t i = 0; i < COUNT(hints); i++) {
        void *block = shmem_malloc_with_hints(100, hints[i]);
        check_block(block, 3, 100);
        shmem_free(block);
    }
}

/* Zero, also where something else was before. */
static void zeros(void) {
    for (int i = 0; i < 3; i++) {
        unsigned char *block = shmem_calloc(3, 333);
        for (int k = 0; k < 999; k++) CHECK(block[k] == 0);
        shmem_barrier_all();
        check_block(block, 5, 999);
        shmem_free(block);
    }
    CHECK(shmem_calloc(SIZE_MAX / 2, 3) == NULL);
    CHECK(shmem_calloc((size_t) 1 << 32, (size_t) 1 << 32) == NULL);
    CHECK(shmem_calloc(SIZE_MAX, 1) == NULL && shmem_calloc(SIZE_MAX / 16 + 2, 16) == NULL);
}

static void alignments(void) {
    for (size_t alignment = sizeof(void *); alignment <= 1 << 20; alignment *= 2) {
        char *block = shmem_align(alignment, 40), *other = shmem_align(alignment, 1000);
        CHECK(is_multiple(block, alignment) && is_multiple(other, alignment));
        CHECK(other >= block + 40 || block >= other + 1000);
        check_block(block, 7, 40);
        check_block(other, 8, 1000);
        CHECK(holds(block, left, 7, 40));
        shmem_free(block);
        shmem_free(other);
    }
    CHECK(shmem_align((size_t) 1 << 62, 8) == NULL);
    CHECK(shmem_align(4096, SIZE_MAX - 100) == NULL);
}

/* The last block of a heap that is otherwise empty behind it grows and shrinks where it is; one that has a
 * neighbour moves. */
static void resizes(void) {
    char *block = shmem_malloc(1000);
    fill(block, me, 10, 1000);
    CHECK(shmem_realloc(block, 300000) == block && holds(block, me, 10, 1000));
    fill(block, me, 11, 300000);
    CHECK(shmem_realloc(block, 5000) == block && holds(block, me, 11, 5000));
    char *wall = shmem_malloc(64);
    CHECK(wall > block);
    fill(wall, me, 12, 64);
    char *moved = shmem_realloc(block, 300000);
    CHECK(moved != block && holds(moved, me, 11, 5000) && holds(wall, me, 12, 64));
    check_block(moved, 13, 300000);
    CHECK(holds(wall, me, 12, 64));
    /* What it has left is free. */
    char *again = shmem_malloc(5000);
    CHECK(again == block);
    CHECK(shmem_realloc(moved, SIZE_MAX) == NULL && shmem_realloc(moved, (size_t) 1 << 50) == NULL);
    CHECK(holds(moved, left, 13, 300000));
    check_block(moved, 14, 300000);
    CHECK(shmem_realloc(moved, 0) == NULL);
    shmem_free(wall);
    shmem_free(again);
}

/* To the last byte, and null on all PEs after that; what there is stays, and comes back. */
static void exhaustion(void) {
    enum { MANY = 64 };
    const size_t most = shmemx_heap_largest(), each = most / 20;
    char *blocks[MANY];
    int count = 0;
    CHECK(shmem_malloc(most + 1) == NULL && shmem_malloc(SIZE_MAX) == NULL);
    while ((blocks[count] = shmem_malloc(each)) != NULL) {
        fill(blocks[count], me, count, 64);
        fill(blocks[count] + each - 64, me, count + 1, 64);
        count++;
        CHECK(count < MANY);
    }
    CHECK(count == 19 || count == 20);
    CHECK(shmem_calloc(each, 1) == NULL && shmem_align(64, each) == NULL);
    CHECK(shmem_realloc(blocks[0], 2 * each) == NULL && shmem_malloc_with_hints(each, 0) == NULL);
    for (int i = 0; i < count; i++) {
        CHECK(holds(blocks[i], me, i, 64) && holds(blocks[i] + each - 64, me, i + 1, 64));
        shmem_free(blocks[i]);
    }
    void *all = shmem_malloc(most);
    CHECK(all != NULL && shmem_malloc(1) == NULL);
    shmem_free(all);
}

enum { SLOTS = 24, STEPS = 600 };

static struct { unsigned char *at; size_t bytes; int which; } slots[SLOTS];
static int refusals;

static void check_slot(int slot) { CHECK(holds(slots[slot].at, me, slots[slot].which, slots[slot].bytes)); }

/* A block that is new, or has another place or size: it lies in nobody's way, and is filled. */
static void settle(int slot, void *block, size_t bytes, int which) {
    slots[slot].at = block;
    slots[slot].bytes = block == NULL ? 0 : bytes;
    slots[slot].which = which;
    for (int i = 0; i < SLOTS; i++) {
        if (i == slot || slots[i].at == NULL || block == NULL) continue;
        CHECK(slots[i].at + slots[i].bytes <= slots[slot].at || slots[slot].at + bytes <= slots[i].at);
    }
    if (block != NULL) fill(block, me, which, bytes);
}

static size_t any_size(void) { return 1 + below(10) * below(10) * below(300); }

/* One call, the same on all PEs. */
static void step(int number) {
    const int slot = (int) below(SLOTS);
    const size_t bytes = any_size(), alignment = (size_t) 8 << below(10);
    unsigned char *block = slots[slot].at;
    if (block == NULL) {
        switch (below(4)) {
            case 0: block = shmem_malloc(bytes); break;
            case 1: block = shmem_malloc_with_hints(bytes, SHMEM_MALLOC_SIGNAL_REMOTE); break;
            case 2: CHECK(is_multiple(block = shmem_align(alignment, bytes), alignment)); break;
            case 3:
                block = shmem_calloc(bytes, 1);
                for (size_t i = 0; block != NULL && i < bytes; i++) CHECK(block[i] == 0);
        }
        if (block == NULL) refusals++;
        settle(slot, block, bytes, number);
        return;
    }
    check_slot(slot);
    if (below(2)) {
        shmem_free(block);
        settle(slot, NULL, 0, 0);
        return;
    }
    const size_t kept = bytes < slots[slot].bytes ? bytes : slots[slot].bytes;
    unsigned char *resized = shmem_realloc(block, bytes);
    if (resized == NULL) {
        refusals++;
        check_slot(slot);
        return;
    }
    CHECK(holds(resized, me, slots[slot].which, kept));
    settle(slot, resized, bytes, number);
}

/* In a heap that is often full. */
static void at_random(void) {
    static long offsets[STEPS];
    const size_t free_before = shmemx_heap_free(), largest_before = shmemx_heap_largest();
    char *first = shmem_malloc(64), *rest = shmem_malloc(shmemx_heap_largest() - 30000);
    CHECK(first != NULL && rest != NULL);
    for (int i = 0; i < STEPS; i++) {
        step(i);
        for (int slot = 0; slot < SLOTS; slot++) {
            if (slots[slot].at != NULL) offsets[i] += (slot + 1) * ((char *) slots[slot].at - first);
        }
        for (int slot = i % 8; slot < SLOTS; slot += 8) check_slot(slot);
    }
    CHECK(refusals > STEPS / 50 && refusals < STEPS / 2);
    shmem_barrier_all();
    for (int i = 0; i < STEPS; i++) CHECK(shmem_long_g(&offsets[i], right) == offsets[i]);
    shmem_barrier_all();
    for (int slot = 0; slot < SLOTS; slot++) {
        check_slot(slot);
        shmem_free(slots[slot].at);
    }
    shmem_free(rest);
    shmem_free(first);
    CHECK(shmemx_heap_free() == free_before && shmemx_heap_largest() == largest_before);
}

/* Pending puts are done at a barrier, which an allocation ends with and which freeing begins with. */
static void barriers(void) {
    long *inbox = shmem_calloc(2, sizeof *inbox), mine = 40 + me;
    for (int i = 0; i < 50; i++) {
        shmem_long_put_nbi(&inbox[0], &mine, 1, right);
        void *block = i % 3 == 0 ? shmem_malloc(99) : i % 3 == 1 ? shmem_align(64, 99) : shmem_calloc(9, 11);
        CHECK(inbox[0] == 40 + left);
        shmem_long_p(&inbox[1], i + me, right);
        shmem_free(block);
        CHECK(inbox[1] == i + left);
        inbox[0] = inbox[1] = -1;
        shmem_barrier_all();
    }
    shmem_free(inbox);
}

/* A block may be written to as soon as this PE has it: no other PE clears or copies any more. */
static void at_once(void) {
    enum { PLACES = 16, EACH = 1 << 15 };
    for (int i = 0; i < 20; i++) {
        char *block = shmem_calloc(PLACES, EACH), *wall = shmem_malloc(8);
        shmem_barrier_all();
        char *moved = i % 2 ? shmem_realloc(block, 2 * PLACES * EACH) : shmem_calloc(PLACES, EACH);
        for (int place = 0; place < PLACES; place++) shmem_char_p(&moved[place * EACH + i], 1, right);
        shmem_barrier_all();
        for (int place = 0; place < PLACES; place++) CHECK(moved[place * EACH + i] == 1);
        if (i % 2 == 0) shmem_free(block);
        shmem_free(moved);
        shmem_free(wall);
    }
}

/* The names of before 1.2. */
static void old_names(void) {
    char *block = shmalloc(100), *aligned = shmemalign(1024, 100);
    CHECK(is_multiple(aligned, 1024));
    check_block(block, 20, 100);
    check_block(aligned, 21, 100);
    block = shrealloc(block, 4000);
    CHECK(holds(block, left, 20, 100));
    shfree(block);
    shfree(aligned);
}

/* The heap has as many bytes as were asked for, and not many more. */
static int has_size(size_t bytes) {
    char *block = shmem_malloc(bytes);
    CHECK((block != NULL) == (bytes > 0));
    if (bytes > 0) {
        shmem_char_p(block + bytes - 1, (char) me, right);
        shmem_barrier_all();
        CHECK(block[bytes - 1] == left);
    }
    shmem_free(block);
    CHECK(shmem_malloc(bytes + (32 << 20)) == NULL);
    shmem_finalize();
    return 0;
}

/* What `shmem_init_thread` says of an environment that is wrong. */
static int is_refused(void) {
    int provided, is_initialized;
    const int status = shmem_init_thread(SHMEM_THREAD_SINGLE, &provided);
    shmem_query_initialized(&is_initialized);
    return status == 0 ? 90 : is_initialized ? 91 : 0;
}

static int mistake(const char *which) {
    static char of_statics[100];
    char *block = shmem_malloc(100), *other = shmem_malloc(100), *local = malloc(100), *refused = NULL;
    const size_t differing = me == 0 ? 1000 : 2000;
    if (!strcmp(which, "free twice")) shmem_free(block), shmem_free(block);
    if (!strcmp(which, "free inside")) shmem_free(block + 64);
    if (!strcmp(which, "free local")) shmem_free(local);
    if (!strcmp(which, "free statics")) shmem_free(of_statics);
    if (!strcmp(which, "free beyond")) shmem_free(block + ((size_t) 1 << 40));
    if (!strcmp(which, "realloc freed")) shmem_free(block), refused = shmem_realloc(block, 10);
    if (!strcmp(which, "realloc inside")) refused = shmem_realloc(block + 8, 10);
    if (!strcmp(which, "realloc local")) refused = shmem_realloc(local, 10);
    if (!strcmp(which, "realloc local on one")) refused = shmem_realloc(me == 0 ? block : local, 10);
    CHECK(refused == NULL);
    if (!strcmp(which, "realloc local to nothing")) shmem_realloc(local, 0);
    if (!strcmp(which, "malloc differs")) shmem_malloc(differing);
    if (!strcmp(which, "calloc differs")) shmem_calloc(differing, 8);
    if (!strcmp(which, "calloc overflows on one")) shmem_calloc(me == 0 ? SIZE_MAX : 1, 8);
    if (!strcmp(which, "align differs")) shmem_align(differing - 1000 ? 64 : 4096, 100);
    if (!strcmp(which, "align is too large on one")) shmem_align(me == 0 ? (size_t) 1 << 40 : 64, 100);
    if (!strcmp(which, "realloc differs")) shmem_realloc(block, differing);
    if (!strcmp(which, "realloc of others")) shmem_realloc(me == 0 ? block : other, 1000);
    if (!strcmp(which, "free of others")) shmem_free(me == 0 ? block : other);
    if (!strcmp(which, "malloc and free")) me == 0 ? (void) shmem_malloc(100) : shmem_free(block);
    if (!strcmp(which, "realloc and free")) me == 0 ? (void) shmem_realloc(block, 10) : shmem_free(block);
    shmem_finalize();
    if (!strcmp(which, "malloc after")) shmem_malloc(8);
    if (!strcmp(which, "free after")) shmem_free(block);
    if (!strcmp(which, "realloc after")) shmem_realloc(block, 8);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "malloc before")) shmem_malloc(8);
    if (argc > 1 && !strcmp(argv[1], "free before")) shmem_free(argv);
    if (argc > 1 && !strcmp(argv[1], "refused")) return is_refused();
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    left = (me + n - 1) % n;
    if (argc > 2) return has_size(strtoul(argv[2], NULL, 10));
    if (argc > 1) return mistake(argv[1]);
    const size_t free_before = shmemx_heap_free();
    allocations();
    zeros();
    alignments();
    resizes();
    exhaustion();
    at_random();
    barriers();
    at_once();
    old_names();
    CHECK(shmemx_heap_free() == free_before);
    shmem_finalize();
    return 0;
}
