/* Collective operations on derived datatypes: data with gaps, elements that overlap in their extents, functions
   of the program on structures. */
#include "coll_check.h"
#include <stddef.h>

/* Every other integer of a block of `count`: the integers between must stay as they are. */
static MPI_Datatype every_other(int count) {
    MPI_Datatype strided, type;
    MPI_Type_vector(count, 1, 2, MPI_INT, &strided);
    MPI_Type_create_resized(strided, 0, 2 * count * (MPI_Aint)sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&strided);
    return type;
}

static int *spread(int blocks, int count) {
    int *data = malloc((2 * blocks * count + 1) * sizeof(int));
    for (int i = 0; i < 2 * blocks * count; i++) data[i] = -5;
    return data;
}

static void fill_spread(int *data, int block, int count, int from, int to) {
    for (int i = 0; i < count; i++) data[2 * (block * count + i)] = value(from, to, i);
}

static void check_spread(const int *data, int block, int count, int from, int to, const char *what, int form) {
    const int *start = data + 2 * block * count;
    for (int i = 0; i < count; i++) {
        ASSERT(start[2 * i] == value(from, to, i), "%s %s: element %d from %d is %d, expected %d", forms[form], what, i,
               from, start[2 * i], value(from, to, i));
        ASSERT(start[2 * i + 1] == -5, "%s %s: gap %d has changed", forms[form], what, i);
    }
}

static void strided(int form, int count, int root) {
    MPI_Datatype type = every_other(count);
    int counts[64], displs[64], bytes[64];
    MPI_Datatype types[64];
    for (int r = 0; r < size; r++) {
        counts[r] = 1;
        displs[r] = r;
        bytes[r] = 2 * r * count * (int)sizeof(int);
        types[r] = type;
    }
    int *one = spread(1, count), *all, *more;
    if (rank == root) fill_spread(one, 0, count, rank, 0);
    /* The root has the data with gaps, the others in one piece, and the other way round. */
    RUN(form, Bcast, Ibcast, one, 1, type, root);
    check_spread(one, 0, count, root, 0, "bcast", form);
    free(one);
    for (int in_place = 0; in_place < 2; in_place++) {
        one = spread(1, count), all = spread(size, count), more = spread(size, count);
        int *dense = malloc((count * size + 1) * sizeof(int));
        fill_spread(one, 0, count, rank, 0);
        fill_spread(all, rank, count, rank, 0);
        if (rank == root)
            RUN(form, Gather, Igather, in_place ? MPI_IN_PLACE : (void *)one, 1, type, all, 1, type, root);
        else
            RUN(form, Gather, Igather, one, 1, type, NULL, 0, MPI_DATATYPE_NULL, root);
        for (int r = 0; r < size && rank == root; r++) check_spread(all, r, count, r, 0, "gather", form);
        RUN(form, Allgather, Iallgather, in_place ? MPI_IN_PLACE : (void *)one, 1, type, all, 1, type);
        for (int r = 0; r < size; r++) check_spread(all, r, count, r, 0, "allgather", form);
        RUN(form, Allgather, Iallgather, one, 1, type, dense, count, MPI_INT);
        for (int r = 0; r < size; r++) check(dense + r * count, count, r, 0, "allgather of both kinds", form);
        RUN(form, Allgatherv, Iallgatherv, in_place ? MPI_IN_PLACE : (void *)one, 1, type, all, counts, displs, type);
        for (int r = 0; r < size; r++) check_spread(all, r, count, r, 0, "allgatherv", form);
        for (int r = 0; r < size; r++) fill_spread(all, r, count, rank, r);
        if (rank == root) {
            RUN(form, Scatter, Iscatter, all, 1, type, in_place ? MPI_IN_PLACE : (void *)one, 1, type, root);
            for (int r = 0; r < size; r++) check_spread(all, r, count, rank, r, "scatter's source", form);
        } else {
            RUN(form, Scatter, Iscatter, NULL, 0, MPI_DATATYPE_NULL, one, 1, type, root);
        }
        if (rank != root || !in_place) check_spread(one, 0, count, root, rank, "scatter", form);
        for (int kind = 0; kind < 3; kind++) {
            for (int r = 0; r < size; r++) {
                fill_spread(all, r, count, rank, r);
                fill_spread(more, r, count, in_place ? rank : -1, r);
            }
            const void *from = in_place ? MPI_IN_PLACE : (void *)all;
            if (kind == 0) RUN(form, Alltoall, Ialltoall, from, 1, type, more, 1, type);
            if (kind == 1)
                RUN(form, Alltoallv, Ialltoallv, from, counts, displs, type, more, counts, displs, type);
            if (kind == 2)
                RUN(form, Alltoallw, Ialltoallw, from, counts, bytes, types, more, counts, bytes, types);
            for (int r = 0; r < size; r++) check_spread(more, r, count, r, rank, "alltoall", form);
        }
        free(one);
        free(all);
        free(more);
        free(dense);
    }
    MPI_Type_free(&type);
}

/* A transposition: the rows of a matrix are sent, and columns are received. */
static void transposed(void) {
    enum { N = 6 };
    int *rows = malloc(N * size * sizeof(int)), *columns = malloc(N * size * sizeof(int));
    MPI_Datatype column, narrow;
    MPI_Type_vector(N, 1, size, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, sizeof(int), &narrow);
    MPI_Type_commit(&narrow);
    for (int r = 0; r < size; r++) fill(rows + N * r, N, rank, r);
    MPI_Alltoall(rows, N, MPI_INT, columns, 1, narrow, comm);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < N; i++)
            ASSERT(columns[i * size + r] == value(r, rank, i), "transposition: %d", columns[i * size + r]);
    MPI_Type_free(&column);
    MPI_Type_free(&narrow);
    free(rows);
    free(columns);
}

/* Maps x -> b x + a modulo 256, as structures with gaps whose parts are sent in another order. */
typedef struct {
    char kind;
    int a;
    char gap[3];
    unsigned char b;
} item;

static MPI_Datatype item_type;

static void join(void *in, void *inout, int *len, MPI_Datatype *type) {
    item *left = in, *right = inout;
    MPI_Aint lb, extent;
    MPI_Type_get_extent(*type, &lb, &extent);
    ASSERT(extent == sizeof(item), "the extent is %ld", (long)extent);
    ASSERT((size_t)in % _Alignof(item) == 0 && (size_t)inout % _Alignof(item) == 0, "the data are not aligned");
    for (int i = 0; i < *len; i++) {
        right[i].kind = (char)(left[i].kind + 1);
        right[i].a = (left[i].a * right[i].b + right[i].a) & 255;
        right[i].b = (unsigned char)(left[i].b * right[i].b);
    }
}

static void structures(int form, int count) {
    MPI_Op op;
    item *mine = calloc(count * size + 1, sizeof(item)), *result = calloc(count * size + 1, sizeof(item));
    MPI_Op_create(join, 0, &op);
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int i = 0; i < count; i++) {
            mine[i] = (item){(char)rank, (rank + i) & 255, {1, 2, 3}, (unsigned char)(2 * (rank * 5 + i) + 1)};
            result[i] = in_place ? mine[i] : (item){0, 0, {9, 9, 9}, 0};
        }
        const void *from = in_place ? MPI_IN_PLACE : (void *)mine;
        RUN(form, Allreduce, Iallreduce, from, result, count, item_type, op);
        int a = 0;
        for (int i = 0; i < count; i++) {
            unsigned char b = (unsigned char)(2 * i + 1);
            a = i & 255;
            for (int r = 1; r < size; r++) {
                unsigned char next = (unsigned char)(2 * (r * 5 + i) + 1);
                a = (a * next + r + i) & 255;
                b = (unsigned char)(b * next);
            }
            ASSERT(result[i].a == a && result[i].b == b, "%s structure %d: %d %d, expected %d %d", forms[form], i,
                   result[i].a, result[i].b, a, b);
            ASSERT(result[i].gap[0] == (in_place ? 1 : 9), "%s structure %d: the gap has changed", forms[form], i);
        }
    }
    MPI_Reduce_local(mine, result, count, item_type, op);
    MPI_Op_free(&op);
    free(mine);
    free(result);
}

/* Predefined operations are for predefined datatypes, and for their copies. */
static void predefined(void) {
    MPI_Datatype copy, pair;
    int x[2] = {rank, 1}, y[2] = {-1, -1}, code;
    MPI_Type_dup(MPI_INT, &copy);
    MPI_Allreduce(x, y, 2, copy, MPI_SUM, comm);
    ASSERT(y[0] == size * (size - 1) / 2 && y[1] == size, "a sum of a copy of MPI_INT: %d %d", y[0], y[1]);
    MPI_Type_free(&copy);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    code = MPI_Allreduce(x, y, 1, pair, MPI_SUM, comm);
    ASSERT(code == MPI_ERR_TYPE, "a datatype that is not committed returns %d", code);
    MPI_Type_commit(&pair);
    code = MPI_Allreduce(x, y, 1, pair, MPI_SUM, comm);
    ASSERT(code == MPI_ERR_OP, "a sum of a derived datatype returns %d", code);
    MPI_Type_free(&pair);
}

/* A datatype may be freed while an operation uses it, and after a persistent operation was created. */
static void freed(void) {
    int count = 3000;
    MPI_Datatype type = every_other(count);
    int *one = spread(1, count), *all[2] = {spread(size, count), spread(size, count)};
    MPI_Request requests[2];
    fill_spread(one, 0, count, rank, 0);
    MPI_Iallgather(one, 1, type, all[0], 1, type, comm, &requests[0]);
    MPI_Allgather_init(one, 1, type, all[1], 1, type, comm, MPI_INFO_NULL, &requests[1]);
    MPI_Type_free(&type);
    for (int round = 0; round < 2; round++) {
        MPI_Start(&requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 2; i++)
            for (int r = 0; r < size; r++) check_spread(all[i], r, count, r, 0, "freed datatype", i + 1);
    }
    MPI_Request_free(&requests[1]);
    free(one);
    free(all[0]);
    free(all[1]);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Aint places[] = {offsetof(item, a), offsetof(item, b), offsetof(item, kind)};
    int lengths[] = {1, 1, 1};
    MPI_Datatype types[] = {MPI_INT, MPI_UNSIGNED_CHAR, MPI_CHAR}, whole;
    MPI_Type_create_struct(3, lengths, places, types, &whole);
    MPI_Type_create_resized(whole, 0, sizeof(item), &item_type);
    MPI_Type_commit(&item_type);
    int counts[] = {1, 7, 900, 20000};
    for (int form = 0; form < 3; form++)
        for (int c = 0; c < 4; c++) {
            for (int root = 0; root < size; root += 1 + size / 2) strided(form, counts[c], root);
            structures(form, counts[c]);
        }
    structures(0, 0);
    transposed();
    predefined();
    freed();
    MPI_Type_free(&whole);
    MPI_Type_free(&item_type);
    return finish();
}
