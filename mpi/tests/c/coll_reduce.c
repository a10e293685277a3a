/* Operations that combine elements, in their three forms, in place and not, with functions that do not commute. */
#include "coll_check.h"

/* Maps x -> a x + b of integers modulo 2^32, one after the other. They do not commute. */
typedef struct {
    unsigned a, b;
} map;

static map then(map f, map g) { return (map){f.a * g.a, f.b * g.a + g.b}; }

static void compose(void *in, void *inout, int *len, MPI_Datatype *type) {
    map *left = in, *right = inout;
    (void)type;
    for (int i = 0; i < *len; i++) right[i] = then(left[i], right[i]);
}

static void compose_c(void *in, void *inout, MPI_Count *len, MPI_Datatype *type) {
    int n = (int)*len;
    compose(in, inout, &n, type);
}

static map of(int from, int i) { return (map){2 * (from * 31 + i) + 1, from * 17 + 5 * i}; }

/* The maps of ranks `first` to `last`, one after the other. */
static map combined(int first, int last, int i) {
    map result = of(first, i);
    for (int r = first + 1; r <= last; r++) result = then(result, of(r, i));
    return result;
}

static void expect(const map *found, map expected, const char *what, int form, int i) {
    ASSERT(found->a == expected.a && found->b == expected.b, "%s %s: element %d is %u x + %u, expected %u x + %u",
           forms[form], what, i, found->a, found->b, expected.a, expected.b);
}

/* Maps are elements of 8 bytes: of MPI_UNSIGNED_LONG for the library. */
static void maps(int form, int count, MPI_Op op, int root) {
    MPI_Datatype type = MPI_UNSIGNED_LONG;
    map *source = malloc((count * size + 1) * sizeof(map)), *target = malloc((count * size + 1) * sizeof(map));
    for (int in_place = 0; in_place < 2; in_place++) {
        const void *from = in_place ? MPI_IN_PLACE : source;
#define PREPARE(n)                                           \
    for (int i = 0; i < n; i++) {                            \
        source[i] = of(rank, i);                             \
        target[i] = in_place ? source[i] : (map){7777, 7777}; \
    }
        PREPARE(count);
        if (rank == root)
            RUN(form, Reduce, Ireduce, from, target, count, type, op, root);
        else
            RUN(form, Reduce, Ireduce, source, NULL, count, type, op, root);
        for (int i = 0; i < count && rank == root; i++)
            expect(&target[i], combined(0, size - 1, i), "reduce", form, i);
        PREPARE(count);
        RUN(form, Allreduce, Iallreduce, from, target, count, type, op);
        for (int i = 0; i < count; i++) expect(&target[i], combined(0, size - 1, i), "allreduce", form, i);
        PREPARE(count);
        RUN(form, Scan, Iscan, from, target, count, type, op);
        for (int i = 0; i < count; i++) expect(&target[i], combined(0, rank, i), "scan", form, i);
        PREPARE(count);
        RUN(form, Exscan, Iexscan, from, target, count, type, op);
        for (int i = 0; i < count; i++) {
            if (rank > 0) expect(&target[i], combined(0, rank - 1, i), "exscan", form, i);
            if (rank == 0 && !in_place) expect(&target[i], (map){7777, 7777}, "exscan at rank 0", form, i);
        }
        PREPARE(count * size);
        RUN(form, Reduce_scatter_block, Ireduce_scatter_block, from, target, count, type, op);
        for (int i = 0; i < count; i++)
            expect(&target[i], combined(0, size - 1, rank * count + i), "reduce_scatter_block", form, i);
        int counts[64], before = 0, total = 0;
        for (int r = 0; r < size; r++) {
            counts[r] = r == size - 1 ? count * size - total : (r % 3) * count / 2;
            if (r < rank) before += counts[r];
            total += counts[r];
        }
        PREPARE(count * size);
        RUN(form, Reduce_scatter, Ireduce_scatter, from, target, counts, type, op);
        for (int i = 0; i < counts[rank]; i++)
            expect(&target[i], combined(0, size - 1, before + i), "reduce_scatter", form, i);
    }
    free(source);
    free(target);
}

/* The sum of element i of ranks 0 to `end` - 1 is expected in all elements of the target. */
static void expect_sums(const double *target, int count, int end, const char *what, int form) {
    for (int i = 0; i < count; i++) {
        const double expected = end * (end - 1) / 2 + (double)end * i;
        if (target[i] != expected) {
            ASSERT(0, "%s %s: element %d is %g, expected %g", forms[form], what, i, target[i], expected);
            return;
        }
    }
}

/* Sums, of which the order does not matter. */
static void sums(int form, int count, int root) {
    double *source = malloc((count + 1) * sizeof(double)), *target = malloc((count + 1) * sizeof(double));
    for (int i = 0; i < count; i++) source[i] = rank + i;
    RUN(form, Reduce, Ireduce, source, rank == root ? target : NULL, count, MPI_DOUBLE, MPI_SUM, root);
    if (rank == root) expect_sums(target, count, size, "reduced sum", form);
    RUN(form, Scan, Iscan, source, target, count, MPI_DOUBLE, MPI_SUM);
    expect_sums(target, count, rank + 1, "inclusive sum", form);
    for (int i = 0; i < count; i++) target[i] = -1;
    RUN(form, Exscan, Iexscan, source, target, count, MPI_DOUBLE, MPI_SUM);
    if (rank > 0) expect_sums(target, count, rank, "exclusive sum", form);
    for (int i = 0; rank == 0 && i < count; i++)
        ASSERT(target[i] == -1, "%s exclusive sum: rank 0 has got %g", forms[form], target[i]);
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int i = 0; i < count; i++) source[i] = target[i] = rank + i;
        RUN(form, Allreduce, Iallreduce, in_place ? MPI_IN_PLACE : source, target, count, MPI_DOUBLE, MPI_SUM);
        expect_sums(target, count, size, "sum", form);
    }
    free(source);
    free(target);
}

/* An operation may be freed while it is in use, and after a persistent one was created. */
static void freed(void) {
    MPI_Op op;
    MPI_Request requests[2];
    map mine = of(rank, 0), results[2];
    MPI_Op_create(compose, 0, &op);
    MPI_Iallreduce(&mine, &results[0], 1, MPI_UNSIGNED_LONG, op, comm, &requests[0]);
    MPI_Allreduce_init(&mine, &results[1], 1, MPI_UNSIGNED_LONG, op, comm, MPI_INFO_NULL, &requests[1]);
    MPI_Op_free(&op);
    ASSERT(op == MPI_OP_NULL, "the handle of a freed operation is not null");
    MPI_Start(&requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[1]);
    for (int i = 0; i < 2; i++) expect(&results[i], combined(0, size - 1, 0), "freed operation", i, 0);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    int counts[] = {0, 1, 2, 37, 1000, 9000};
    MPI_Op op, op_c;
    MPI_Op_create(compose, 0, &op);
    MPI_Op_create_c(compose_c, 0, &op_c);
    for (int form = 0; form < 3; form++)
        for (int c = 0; c < 6; c++) {
            for (int root = 0; root < size; root += 1 + size / 3) maps(form, counts[c], op, root);
            maps(form, counts[c], op_c, size - 1);
            sums(form, counts[c], c % size);
            sums(form, 20 * counts[c], size - 1);
        }
    freed();
    MPI_Op_free(&op);
    MPI_Op_free(&op_c);
    return finish();
}
