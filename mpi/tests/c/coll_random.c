/* Random sequences of collective operations of many sizes, in several communicators at once, without a barrier
 * between them: members run ahead of each other as far as the library lets them. All members draw the same
 * sequence; each checks every element of its results. */
#include "check.h"
#include <stdlib.h>

enum { STEPS = 400, COUNT_MAX = 40000, KINDS = 8 };
static const int COUNTS[] = {1, 7, 128, 129, 500, 2000, 2048, 2049, 4096, 8192, 8193, 20000, COUNT_MAX};

static unsigned long state = 88172645463325252UL;

static unsigned drawn(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 11) % below;
}

/* Element `i` of the data that rank `from` has for rank `to` in a step. */
static long value(int step, int from, int to, int i)
{
    return step * 1000003L + from * 4099L + to * 131L + i % 1021;
}

static long sum(int step, int n, int to, int i)
{
    long total = 0;
    for (int from = 0; from < n; from++) total += value(step, from, to, i);
    return total;
}

static long *source, *target;
static int me, n;

static void fill(int step, int count, int blocks)
{
    for (int to = 0; to < blocks; to++)
        for (int i = 0; i < count; i++) source[(long)to * count + i] = value(step, me, to, i);
}

static void holds(const char *what, int step, long expected, long found)
{
    if (expected != found && failures < 20) {
        printf("step %d of rank %d of %d: ", step, me, n);
        EQUAL(what, expected, found);
    }
}

/* Members that compute for different times. */
static void work(int step)
{
    volatile long x = 0;
    for (long i = 0; i < (long)(me * 7919 + step * 104729L) % 20000; i++) x += i;
}

/* A user's operation that is associative, but not commutative: the right operand. */
static void right(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)len, (void)type;
}

static void reduce(MPI_Comm comm, int step, int count, int root, int in_place, MPI_Op last)
{
    int is_sum = step % 3 != 0;
    MPI_Op op = is_sum ? MPI_SUM : last;
    fill(step, count, 1);
    if (in_place) memcpy(target, source, count * sizeof(long));
    if (root < 0)
        WORKS(MPI_Allreduce(in_place ? MPI_IN_PLACE : source, target, count, MPI_LONG, op, comm));
    else if (me == root)
        WORKS(MPI_Reduce(in_place ? MPI_IN_PLACE : source, target, count, MPI_LONG, op, root, comm));
    else
        WORKS(MPI_Reduce(source, NULL, count, MPI_LONG, op, root, comm));
    for (int i = 0; i < count && (root < 0 || me == root); i++)
        holds(root < 0 ? "all-reduce" : "reduce", step, is_sum ? sum(step, n, 0, i) : value(step, n - 1, 0, i),
              target[i]);
}

static void one(MPI_Comm comm, int step, MPI_Op last)
{
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    int what = drawn(KINDS), count = COUNTS[drawn(sizeof COUNTS / sizeof *COUNTS)], root = drawn(n);
    int in_place = drawn(3) == 0;
    work(step);
    switch (what) {
    case 0: reduce(comm, step, count, -1, in_place, last); break;
    case 1: reduce(comm, step, count, root, in_place, last); break;
    case 2:
        fill(step, count, 1);
        WORKS(MPI_Bcast(source, count, MPI_LONG, root, comm));
        for (int i = 0; i < count; i++) holds("broadcast", step, value(step, root, 0, i), source[i]);
        break;
    case 3:
        fill(step, count, 1);
        WORKS(MPI_Gather(source, count, MPI_LONG, target, count, MPI_LONG, root, comm));
        for (int from = 0; from < n && me == root; from++)
            for (int i = 0; i < count; i++)
                holds("gather", step, value(step, from, 0, i), target[(long)from * count + i]);
        break;
    case 4:
        fill(step, count, n);
        WORKS(MPI_Scatter(source, count, MPI_LONG, target, count, MPI_LONG, root, comm));
        for (int i = 0; i < count; i++) holds("scatter", step, value(step, root, me, i), target[i]);
        break;
    case 5:
        fill(step, count, 1);
        if (in_place) memcpy(target + (long)me * count, source, count * sizeof(long));
        WORKS(MPI_Allgather(in_place ? MPI_IN_PLACE : source, count, MPI_LONG, target, count, MPI_LONG, comm));
        for (int from = 0; from < n; from++)
            for (int i = 0; i < count; i++)
                holds("all-gather", step, value(step, from, 0, i), target[(long)from * count + i]);
        break;
    case 6:
        fill(step, count, n);
        if (in_place) memcpy(target, source, (long)n * count * sizeof(long));
        WORKS(MPI_Alltoall(in_place ? MPI_IN_PLACE : source, count, MPI_LONG, target, count, MPI_LONG, comm));
        for (int from = 0; from < n; from++)
            for (int i = 0; i < count; i++)
                holds("all-to-all", step, value(step, from, me, i), target[(long)from * count + i]);
        break;
    case 7:
        fill(step, count, n);
        if (in_place) memcpy(target, source, (long)n * count * sizeof(long));
        WORKS(MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : source, target, count, MPI_LONG, MPI_SUM, comm));
        for (int i = 0; i < count; i++) holds("reduce-scatter", step, sum(step, n, me, i), target[i]);
        break;
    }
}

int main(void)
{
    MPI_Init(NULL, NULL);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    source = malloc((size_t)size * COUNT_MAX * sizeof(long));
    target = malloc((size_t)size * COUNT_MAX * sizeof(long));
    MPI_Op last;
    MPI_Op_create(right, 0, &last);
    MPI_Comm comms[4] = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[3]);
    for (int step = 0; step < STEPS && failures == 0; step++) {
        int which = drawn(4);
        /* The members of the two halves draw as many numbers. */
        one(comms[which], step, last);
        if (step == STEPS / 2) {
            MPI_Comm_free(&comms[1]);
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
        }
    }
    for (int i = 1; i < 4; i++) MPI_Comm_free(&comms[i]);
    MPI_Op_free(&last);
    MPI_Finalize();
    return VERDICT();
}
