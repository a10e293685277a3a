/* Collective operations of inter-communicators: even ranks are one group, odd ranks the other. */
/* PEs: 2 3 5 8 */
#include "coll_check.h"

static MPI_Comm all;
static int me, others, is_even, all_size;

static int of_group(int even, int i) { return 2 * i + !even; }

/* The world rank of a rank of the remote group. */
static int far(int i) { return of_group(!is_even, i); }

static void add(void *in, void *inout, int *len, MPI_Datatype *type) {
    /* Digits of a number to the base 10: does not commute. */
    long *left = in, *right = inout;
    (void)type;
    for (int i = 0; i < *len; i++) {
        long scale = 1;
        while (scale <= right[i]) scale *= 10;
        right[i] = left[i] * scale + right[i];
    }
}

/* The digits of a group: rank i has digit i + 1, or of the odd group 9 - i. */
static long digit(int even, int i) { return even ? i + 1 : 9 - i; }

static long digits(int even) {
    long result = 0;
    for (int i = 0; of_group(even, i) < all_size; i++) result = result * 10 + digit(even, i);
    return result;
}

static void rooted(int form, int count, int even_is_root, int root) {
    int in_root_group = is_even == even_is_root, is_root = in_root_group && me == root;
    int argument = in_root_group ? (is_root ? MPI_ROOT : MPI_PROC_NULL) : root;
    int *one = malloc((count + 1) * sizeof(int)), *many = malloc((others * count + 1) * sizeof(int));
    int counts[64], displs[64];
    for (int i = 0; i < others; i++) {
        counts[i] = count;
        displs[i] = (others - 1 - i) * count;
    }
    memset(one, -1, count * sizeof(int));
    if (is_root) fill(one, count, rank, 5);
    RUN(form, Bcast, Ibcast, one, count, MPI_INT, argument);
    if (!in_root_group) check(one, count, far(root), 5, "broadcast between groups", form);

    fill(one, count, rank, 1);
    RUN(form, Gather, Igather, one, count, MPI_INT, many, count, MPI_INT, argument);
    for (int i = 0; i < others && is_root; i++)
        check(many + i * count, count, far(i), 1, "gather between groups", form);
    RUN(form, Gatherv, Igatherv, one, count, MPI_INT, many, counts, displs, MPI_INT, argument);
    for (int i = 0; i < others && is_root; i++)
        check(many + displs[i], count, far(i), 1, "gatherv between groups", form);

    for (int i = 0; i < others; i++) fill(many + i * count, count, rank, i);
    memset(one, -1, count * sizeof(int));
    RUN(form, Scatter, Iscatter, many, count, MPI_INT, one, count, MPI_INT, argument);
    if (!in_root_group) check(one, count, far(root), me, "scatter between groups", form);
    for (int i = 0; i < others; i++) fill(many + displs[i], count, rank, i);
    memset(one, -1, count * sizeof(int));
    RUN(form, Scatterv, Iscatterv, many, counts, displs, MPI_INT, one, count, MPI_INT, argument);
    if (!in_root_group) check(one, count, far(root), me, "scatterv between groups", form);
    free(one);
    free(many);
}

static void everybody(int form, int count) {
    int *one = malloc((count + 1) * sizeof(int)), *many = malloc((others * count + 1) * sizeof(int));
    int *back = malloc((others * count + 1) * sizeof(int));
    int counts[64], displs[64], bytes[64];
    MPI_Datatype types[64];
    for (int i = 0; i < others; i++) {
        counts[i] = count;
        displs[i] = i * count;
        bytes[i] = displs[i] * sizeof(int);
        types[i] = MPI_INT;
    }
    fill(one, count, rank, 2);
    memset(many, -1, others * count * sizeof(int));
    RUN(form, Allgather, Iallgather, one, count, MPI_INT, many, count, MPI_INT);
    for (int i = 0; i < others; i++) check(many + i * count, count, far(i), 2, "allgather between groups", form);
    memset(many, -1, others * count * sizeof(int));
    RUN(form, Allgatherv, Iallgatherv, one, count, MPI_INT, many, counts, displs, MPI_INT);
    for (int i = 0; i < others; i++) check(many + i * count, count, far(i), 2, "allgatherv between groups", form);
    for (int i = 0; i < others; i++) fill(many + i * count, count, rank, far(i));
    for (int kind = 0; kind < 3; kind++) {
        memset(back, -1, others * count * sizeof(int));
        if (kind == 0) RUN(form, Alltoall, Ialltoall, many, count, MPI_INT, back, count, MPI_INT);
        if (kind == 1)
            RUN(form, Alltoallv, Ialltoallv, many, counts, displs, MPI_INT, back, counts, displs, MPI_INT);
        if (kind == 2)
            RUN(form, Alltoallw, Ialltoallw, many, counts, bytes, types, back, counts, bytes, types);
        for (int i = 0; i < others; i++)
            check(back + i * count, count, far(i), rank, "alltoall between groups", form);
    }
    free(one);
    free(many);
    free(back);
}

static void reductions(int form, MPI_Op op) {
    long mine[8], result[8];
    long theirs = digits(!is_even);
    for (int i = 0; i < 8; i++) mine[i] = digit(is_even, me);
    memset(result, -1, sizeof result);
    RUN(form, Allreduce, Iallreduce, mine, result, 8, MPI_LONG, op);
    for (int i = 0; i < 8; i++) ASSERT(result[i] == theirs, "%s allreduce: %ld, not %ld", forms[form], result[i], theirs);
    for (int even = 0; even < 2; even++) {
        int argument = is_even == even ? (me == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
        memset(result, -1, sizeof result);
        RUN(form, Reduce, Ireduce, mine, result, 8, MPI_LONG, op, argument);
        for (int i = 0; i < 8 && argument == MPI_ROOT; i++)
            ASSERT(result[i] == theirs, "%s reduce: %ld, not %ld", forms[form], result[i], theirs);
    }
    /* Both groups have the same number of elements in all: a multiple of both sizes. */
    int n = size, total = n * others, counts[64];
    long *long_mine = malloc(total * sizeof(long)), *long_result = malloc((total + 1) * sizeof(long));
    for (int i = 0; i < total; i++) long_mine[i] = digit(is_even, me);
    memset(long_result, -1, total * sizeof(long));
    RUN(form, Reduce_scatter_block, Ireduce_scatter_block, long_mine, long_result, others, MPI_LONG, op);
    for (int i = 0; i < others; i++)
        ASSERT(long_result[i] == theirs, "%s reduce_scatter_block: %ld", forms[form], long_result[i]);
    for (int i = 0; i < n; i++) counts[i] = i == 0 ? total : 0;
    memset(long_result, -1, total * sizeof(long));
    RUN(form, Reduce_scatter, Ireduce_scatter, long_mine, long_result, counts, MPI_LONG, op);
    for (int i = 0; i < counts[me]; i++)
        ASSERT(long_result[i] == theirs, "%s reduce_scatter: %ld", forms[form], long_result[i]);
    free(long_mine);
    free(long_result);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    all_size = size;
    if (size < 2) return finish();
    all = comm;
    is_even = rank % 2 == 0;
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_even ? 1 : 0, 42, &inter);
    comm = inter;
    MPI_Comm_rank(inter, &me);
    MPI_Comm_size(inter, &size);
    MPI_Comm_remote_size(inter, &others);
    MPI_Op op;
    MPI_Op_create(add, 0, &op);
    int counts[] = {0, 1, 10, 20000};
    for (int form = 0; form < 3; form++) {
        for (int c = 0; c < 4; c++) {
            for (int even = 0; even < 2; even++)
                for (int root = 0; of_group(even, root) < all_size; root++) rooted(form, counts[c], even, root);
            everybody(form, counts[c]);
        }
        reductions(form, op);
        MPI_Request r;
        if (form == 0) MPI_Barrier(inter);
        if (form == 1) {
            MPI_Ibarrier(inter, &r);
            MPI_Wait(&r, MPI_STATUS_IGNORE);
        }
    }
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    long x = 1, y = 0;
    int code = MPI_Scan(&x, &y, 1, MPI_LONG, MPI_SUM, inter);
    ASSERT(code == MPI_ERR_COMM, "a scan of an inter-communicator returns %d", code);
    code = MPI_Bcast(&x, 1, MPI_LONG, others, inter);
    ASSERT(code == MPI_ERR_ROOT, "a broadcast of a root that does not exist returns %d", code);
    MPI_Op_free(&op);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    return finish();
}
