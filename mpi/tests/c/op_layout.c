/* Functions of the program get elements as C has them: with their gaps, aligned, and with a handle of their
   datatype. */
#include "outcome_check.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    long tag;
    double x;
} Tagged;

typedef struct {
    long double a, b;
} Wide;

typedef struct {
    long double a;
    int b;
} Uneven;

typedef struct {
    double x;
    char note[1016];
} Noted;

static int misaligned, wrong_sizes, expected_size;

static void look(const void *in, const void *inout, MPI_Datatype type, size_t align) {
    int size = -1;
    misaligned += (uintptr_t)in % align != 0 || (uintptr_t)inout % align != 0;
    MPI_Type_size(type, &size);
    wrong_sizes += size != expected_size;
}

/* Each assigns whole structures. */
#define FUNCTION(TYPE, MEMBER)                                                                       \
    static void add_##TYPE(void *in, void *inout, int *len, MPI_Datatype *type) {                    \
        const TYPE *left = in;                                                                       \
        TYPE *right = inout;                                                                         \
        look(in, inout, *type, _Alignof(TYPE));                                                      \
        for (int i = 0; i < *len; i++) {                                                             \
            TYPE sum = left[i];                                                                      \
            sum.MEMBER += right[i].MEMBER;                                                           \
            right[i] = sum;                                                                          \
        }                                                                                            \
    }

FUNCTION(Tagged, x)
FUNCTION(Wide, b)
FUNCTION(Uneven, b)
FUNCTION(Noted, x)

static MPI_Datatype member(MPI_Datatype of, MPI_Aint at, MPI_Aint extent) {
    MPI_Datatype block, type;
    int one = 1;
    MPI_Type_create_struct(1, &one, &at, &of, &block);
    MPI_Type_create_resized(block, 0, extent, &type);
    MPI_Type_free(&block);
    MPI_Type_commit(&type);
    return type;
}

/* Every kind of reduction of up to 3 elements, whose member is the rank and the index. */
#define CHECK_ALL(TYPE, MEMBER, DATATYPE)                                                            \
    do {                                                                                             \
        TYPE *mine = calloc(3 * (size_t)n, sizeof(TYPE)), *sum = calloc(3 * (size_t)n, sizeof(TYPE)); \
        MPI_Datatype type = DATATYPE;                                                                \
        MPI_Request request;                                                                         \
        MPI_Op op;                                                                                   \
        long all = (long)n * (n - 1) / 2;                                                            \
        MPI_Type_size(type, &expected_size);                                                         \
        MPI_Op_create(add_##TYPE, 1, &op);                                                           \
        for (int i = 0; i < 3 * n; i++) mine[i].MEMBER = me + i;                                     \
        for (int count = 1; count <= 3; count++) {                                                   \
            DONE(MPI_Allreduce(mine, sum, count, type, op, MPI_COMM_WORLD));                         \
            for (int i = 0; i < count; i++) CHECK((long)sum[i].MEMBER, all + n * i, #TYPE);          \
            DONE(MPI_Iallreduce(mine, sum, count, type, op, MPI_COMM_WORLD, &request));              \
            DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));                                             \
            for (int i = 0; i < count; i++) CHECK((long)sum[i].MEMBER, all + n * i, #TYPE);          \
            DONE(MPI_Reduce(mine, sum, count, type, op, n - 1, MPI_COMM_WORLD));                     \
            for (int i = 0; i < count && me == n - 1; i++)                                           \
                CHECK((long)sum[i].MEMBER, all + n * i, #TYPE);                                      \
            DONE(MPI_Reduce_scatter_block(mine, sum, count, type, op, MPI_COMM_WORLD));              \
            for (int i = 0; i < count; i++)                                                          \
                CHECK((long)sum[i].MEMBER, all + n * (me * count + i), #TYPE);                       \
            DONE(MPI_Scan(mine, sum, count, type, op, MPI_COMM_WORLD));                              \
            for (int i = 0; i < count; i++)                                                          \
                CHECK((long)sum[i].MEMBER, (long)me * (me + 1) / 2 + (me + 1) * i, #TYPE);           \
        }                                                                                            \
        /* The handle is freed while the operation is under way. */                                  \
        DONE(MPI_Iallreduce(mine, sum, 2, type, op, MPI_COMM_WORLD, &request));                      \
        MPI_Type_free(&type);                                                                        \
        DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));                                                 \
        CHECK((long)sum[1].MEMBER, all + n, #TYPE);                                                  \
        MPI_Op_free(&op);                                                                            \
        free(mine);                                                                                  \
        free(sum);                                                                                   \
    } while (0)

static MPI_Datatype wide(void) {
    MPI_Datatype type;
    MPI_Type_contiguous(2, MPI_LONG_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

static MPI_Datatype uneven(void) {
    MPI_Datatype type, types[] = {MPI_LONG_DOUBLE, MPI_INT};
    int ones[] = {1, 1};
    MPI_Aint places[] = {offsetof(Uneven, a), offsetof(Uneven, b)};
    MPI_Type_create_struct(2, ones, places, types, &type);
    MPI_Type_commit(&type);
    return type;
}

/* Edge and ghost cells of one array, exchanged with all, oneself included. */
static void own_neighbour(void) {
    int cells[64], ones[64], zeros[64];
    MPI_Datatype edges[64], ghosts[64];
    for (int i = 0; i < n; i++) {
        int width = 2 * n, one = 1, edge = i, ghost = n + i;
        ones[i] = 1;
        zeros[i] = 0;
        cells[i] = 100 * me + i;
        MPI_Type_create_subarray(1, &width, &one, &edge, MPI_ORDER_C, MPI_INT, &edges[i]);
        MPI_Type_create_subarray(1, &width, &one, &ghost, MPI_ORDER_C, MPI_INT, &ghosts[i]);
        MPI_Type_commit(&edges[i]);
        MPI_Type_commit(&ghosts[i]);
    }
    DONE(MPI_Alltoallw(cells, ones, zeros, edges, cells, ones, zeros, ghosts, MPI_COMM_WORLD));
    for (int i = 0; i < n; i++) {
        CHECK(cells[n + i], 100 * i + me, "ghost cell %d", i);
        MPI_Type_free(&edges[i]);
        MPI_Type_free(&ghosts[i]);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK_ALL(Tagged, x, member(MPI_DOUBLE, offsetof(Tagged, x), sizeof(Tagged)));
    CHECK_ALL(Wide, b, wide());
    CHECK_ALL(Uneven, b, uneven());
    CHECK_ALL(Noted, x, member(MPI_DOUBLE, offsetof(Noted, x), sizeof(Noted)));
    CHECK(misaligned, 0, "calls with misaligned elements");
    CHECK(wrong_sizes, 0, "calls with another datatype");
    own_neighbour();
    MPI_Finalize();
    return failures != 0;
}
