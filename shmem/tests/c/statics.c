/* Global and static variables are symmetric, whatever they are and however the program is linked; C++ too. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "check.h"

long initialised[4] = {11, 22, 33, 44};
static long hidden = 55;
long zeros[1000];
static char last_bytes[5];
static int set_before_main, set_in_main;
static const int constant = 1;
static __thread int of_thread;
const char *text = "a relocated pointer";

__attribute__((constructor)) static void before_main(void) { set_before_main = 66; }

static long *in_function(void) {
    static long counter = 77;
    return &counter;
}

static void check_values(void) {
    CHECK(initialised[0] == 11 && initialised[3] == 44 && hidden == 55 && zeros[999] == 0);
    CHECK(set_before_main == 66 && set_in_main == 88 && *in_function() == 77);
    CHECK(strcmp(text, "a relocated pointer") == 0);
}

/* What the linker puts among the variables: the table of functions that are bound when they are called first,
   and the library's own variables, if it is linked into the program. */
extern char _GLOBAL_OFFSET_TABLE_[], __start_pelago_state[] __attribute__((weak));

static void check_accessible(void) {
    int on_stack = 0;
    void *on_heap = malloc(100);
    CHECK(shmem_addr_accessible(initialised, 0) == 1);
    CHECK(shmem_addr_accessible(&hidden, 0) == 1);
    CHECK(shmem_addr_accessible(&zeros[999], 0) == 1);
    CHECK(shmem_addr_accessible(&last_bytes[4], 0) == 1);
    CHECK(shmem_addr_accessible(in_function(), 0) == 1);
    CHECK(shmem_addr_accessible(&hidden, shmem_n_pes()) == 0);
    CHECK(shmem_addr_accessible(&hidden, -1) == 0);
    CHECK(shmem_addr_accessible(&on_stack, 0) == 0);
    CHECK(shmem_addr_accessible(on_heap, 0) == 0);
    CHECK(shmem_addr_accessible(&of_thread, 0) == 0);
    CHECK(shmem_addr_accessible(&constant, 0) == 0);
    CHECK(shmem_addr_accessible((const void *) check_accessible, 0) == 0);
    CHECK(shmem_addr_accessible("literal", 0) == 0);
    CHECK(shmem_addr_accessible(NULL, 0) == 0);
#if defined __x86_64__ && defined __pie__
    /* The assembler knows its name as a distance only. */
    for (int i = 0; i < 8; i++) CHECK(shmem_addr_accessible(_GLOBAL_OFFSET_TABLE_ + 8 * i, 0) == 0);
#endif
    CHECK(__start_pelago_state == NULL || shmem_addr_accessible(__start_pelago_state, 0) == 0);
    free(on_heap);
}

static void check_ring(int me, int n_pes) {
    int right = (me + 1) % n_pes, left = (me + n_pes - 1) % n_pes;
    long mine[4] = {me, me + 1, me + 2, me + 3}, theirs[4];
    shmem_long_put(initialised, mine, 4, right);
    shmem_long_p(&hidden, 1000 + me, right);
    shmem_long_p(in_function(), 2000 + me, right);
    shmem_putmem(last_bytes, "abcd", 5, right);
    shmem_long_p(&zeros[me], 3000 + me, right);
    shmem_barrier_all();
    CHECK(initialised[0] == left && initialised[3] == left + 3);
    CHECK(hidden == 1000 + left && *in_function() == 2000 + left && zeros[left] == 3000 + left);
    CHECK(strcmp(last_bytes, "abcd") == 0);
    CHECK(shmem_long_g(&hidden, right) == 1000 + me);
    shmem_long_get(theirs, initialised, 4, right);
    CHECK(memcmp(theirs, mine, sizeof mine) == 0);
    shmem_barrier_all();
    hidden = me;
    shmem_barrier_all();
    CHECK(shmem_long_g(&hidden, left) == left);
    shmem_barrier_all();
}

/* What PE 0 adds to with the others, and what it waits for. */
static long sum, arrived;

static void check_atomics(int me, int n_pes) {
    shmem_long_atomic_add(&sum, me + 1, 0);
    shmem_long_atomic_inc(&arrived, 0);
    if (me == 0) {
        shmem_long_wait_until(&arrived, SHMEM_CMP_EQ, n_pes);
        CHECK(sum == (long) n_pes * (n_pes + 1) / 2);
    }
    shmem_barrier_all();
    CHECK(shmem_long_atomic_fetch(&arrived, 0) == n_pes);
}

static void check_pointers(int me, int n_pes) {
    int right = (me + 1) % n_pes;
    long *mine = (long *) shmem_ptr(&zeros[500], me), *theirs = (long *) shmem_ptr(&zeros[500], right);
    CHECK(mine == &zeros[500]);
    CHECK((theirs != NULL) == is_mapped(right, n_pes));
    if (theirs != NULL) {
        *theirs = 4000 + me;
    } else {
        shmem_long_p(&zeros[500], 4000 + me, right);
    }
    shmem_barrier_all();
    CHECK(zeros[500] == 4000 + (me + n_pes - 1) % n_pes);
}

int main(int argc, char **argv) {
    int me, n_pes;
    (void) argv;
    set_in_main = 88;
    shmem_init();
    me = shmem_my_pe();
    n_pes = shmem_n_pes();
    check_values();
    check_accessible();
    shmem_barrier_all();
    check_ring(me, n_pes);
    check_atomics(me, n_pes);
    check_pointers(me, n_pes);
    if (me == 0 && argc > 1) printf("standard output\n");
    shmem_finalize();
    /* They stay what they are. */
    if (hidden != me || last_bytes[0] != 'a') return 3;
    hidden = 5;
    return hidden == 5 ? 0 : 4;
}
