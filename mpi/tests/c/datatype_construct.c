/* Every constructor of datatypes: sizes, bounds, and where the data are. Both forms of a call make the same. */
#include "datatype_check.h"

/* Checks two datatypes of the two forms of a call, and frees them. */
static void both(const char *what, MPI_Datatype small, MPI_Datatype large, MPI_Count size, MPI_Count lb,
                 MPI_Count extent, MPI_Count true_lb, MPI_Count true_extent, int count, int n,
                 const int *expected) {
    MPI_Datatype types[2] = {small, large};
    for (int i = 0; i < 2; i++) {
        numbers(what, types[i], size, lb, extent, true_lb, true_extent);
        OK(MPI_Type_commit(&types[i]));
        check_places(what, types[i], count, n, expected);
        OK(MPI_Type_free(&types[i]));
        EXPECT("a freed handle", 1, types[i] == MPI_DATATYPE_NULL);
    }
}

#define PLACES(...) (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__}

static void vectors(void) {
    MPI_Datatype a, b;
    OK(MPI_Type_contiguous(3, MPI_INT, &a));
    OK(MPI_Type_contiguous_c(3, MPI_INT, &b));
    both("contiguous", a, b, 12, 0, 12, 0, 12, 2, PLACES(0, 1, 2, 3, 4, 5));
    OK(MPI_Type_vector(3, 2, 4, MPI_INT, &a));
    OK(MPI_Type_vector_c(3, 2, 4, MPI_INT, &b));
    both("vector", a, b, 24, 0, 40, 0, 40, 2, PLACES(0, 1, 4, 5, 8, 9, 10, 11, 14, 15, 18, 19));
    OK(MPI_Type_vector(2, 1, -3, MPI_INT, &a));
    OK(MPI_Type_vector_c(2, 1, -3, MPI_INT, &b));
    both("vector backwards", a, b, 8, -12, 16, -12, 16, 2, PLACES(0, -3, 4, 1));
    OK(MPI_Type_create_hvector(3, 1, 12, MPI_INT, &a));
    OK(MPI_Type_create_hvector_c(3, 1, 12, MPI_INT, &b));
    both("hvector", a, b, 12, 0, 28, 0, 28, 1, PLACES(0, 3, 6));
}

static void lists(void) {
    MPI_Datatype a, b;
    int lengths[] = {2, 0, 1, 1}, places[] = {3, 50, 0, 5};
    MPI_Count large_lengths[] = {2, 0, 1, 1}, large_places[] = {3, 50, 0, 5};
    MPI_Aint bytes[] = {12, 200, 0, 20};
    MPI_Count large_bytes[] = {12, 200, 0, 20};
    OK(MPI_Type_indexed(4, lengths, places, MPI_INT, &a));
    OK(MPI_Type_indexed_c(4, large_lengths, large_places, MPI_INT, &b));
    both("indexed", a, b, 16, 0, 24, 0, 24, 2, PLACES(3, 4, 0, 5, 9, 10, 6, 11));
    OK(MPI_Type_create_hindexed(4, lengths, bytes, MPI_INT, &a));
    OK(MPI_Type_create_hindexed_c(4, large_lengths, large_bytes, MPI_INT, &b));
    both("hindexed", a, b, 16, 0, 24, 0, 24, 1, PLACES(3, 4, 0, 5));
    int starts[] = {8, -2, 3};
    MPI_Count large_starts[] = {8, -2, 3};
    MPI_Aint start_bytes[] = {32, -8, 12};
    MPI_Count large_start_bytes[] = {32, -8, 12};
    OK(MPI_Type_create_indexed_block(3, 2, starts, MPI_INT, &a));
    OK(MPI_Type_create_indexed_block_c(3, 2, large_starts, MPI_INT, &b));
    both("indexed block", a, b, 24, -8, 48, -8, 48, 1, PLACES(8, 9, -2, -1, 3, 4));
    OK(MPI_Type_create_hindexed_block(3, 2, start_bytes, MPI_INT, &a));
    OK(MPI_Type_create_hindexed_block_c(3, 2, large_start_bytes, MPI_INT, &b));
    both("hindexed block", a, b, 24, -8, 48, -8, 48, 1, PLACES(8, 9, -2, -1, 3, 4));
}

static void structs(void) {
    MPI_Datatype pair, a, b, types[3];
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &pair));
    int lengths[] = {1, 2, 1};
    MPI_Aint places[] = {0, 16, 60};
    MPI_Count large_lengths[] = {1, 2, 1}, large_places[] = {0, 16, 60};
    types[0] = types[2] = MPI_INT;
    types[1] = pair;
    OK(MPI_Type_create_struct(3, lengths, places, types, &a));
    OK(MPI_Type_create_struct_c(3, large_lengths, large_places, types, &b));
    OK(MPI_Type_free(&pair));
    both("struct", a, b, 24, 0, 64, 0, 64, 2, PLACES(0, 4, 6, 7, 9, 15, 16, 20, 22, 23, 25, 31));
    struct {
        double d;
        char c;
    } record;
    MPI_Datatype padded[] = {MPI_DOUBLE, MPI_CHAR};
    int ones[] = {1, 1};
    MPI_Aint offsets[2];
    OK(MPI_Get_address(&record.d, &offsets[0]));
    OK(MPI_Get_address(&record.c, &offsets[1]));
    offsets[1] = MPI_Aint_diff(offsets[1], offsets[0]);
    offsets[0] = 0;
    OK(MPI_Type_create_struct(2, ones, offsets, padded, &a));
    numbers("struct with padding", a, 9, 0, sizeof record, 0, 9);
    OK(MPI_Type_contiguous(3, a, &b));
    numbers("array of structs", b, 27, 0, 3 * sizeof record, 0, 2 * sizeof record + 9);
    OK(MPI_Type_free(&a));
    OK(MPI_Type_free(&b));
}

/* Bounds that MPI_Type_create_resized sets stay those of datatypes that are made of it. */
static void bounds(void) {
    MPI_Datatype a, b, c;
    OK(MPI_Type_create_resized(MPI_INT, -4, 12, &a));
    OK(MPI_Type_create_resized_c(MPI_INT, -4, 12, &b));
    both("resized", a, b, 4, -4, 12, 0, 4, 3, PLACES(0, 3, 6));
    OK(MPI_Type_create_resized(MPI_INT, -3, 9, &a));
    OK(MPI_Type_contiguous(2, a, &b));
    numbers("two resized integers", b, 8, -3, 18, 0, 13);
    int ones[] = {1, 1};
    MPI_Aint places[] = {100, 8};
    MPI_Datatype types[] = {MPI_INT, a};
    OK(MPI_Type_create_struct(2, ones, places, types, &c));
    numbers("a struct with bounds", c, 8, 5, 9, 8, 96);
    OK(MPI_Type_free(&a));
    OK(MPI_Type_free(&b));
    OK(MPI_Type_free(&c));
    OK(MPI_Type_create_resized(MPI_INT, 0, 0, &a));
    OK(MPI_Type_commit(&a));
    check_places("extent 0", a, 2, PLACES(0, 0));
    OK(MPI_Type_free(&a));
    OK(MPI_Type_create_resized(MPI_INT, 4, -8, &a));
    OK(MPI_Type_commit(&a));
    numbers("a negative extent", a, 4, 4, -8, 0, 4);
    check_places("a negative extent", a, 3, PLACES(0, -2, -4));
    OK(MPI_Type_free(&a));
}

static void arrays(void) {
    MPI_Datatype a, b;
    int sizes[] = {3, 4, 5}, parts[] = {2, 2, 3}, starts[] = {1, 0, 2};
    MPI_Count large_sizes[] = {3, 4, 5}, large_parts[] = {2, 2, 3}, large_starts[] = {1, 0, 2};
    OK(MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &a));
    OK(MPI_Type_create_subarray_c(3, large_sizes, large_parts, large_starts, MPI_ORDER_C, MPI_INT, &b));
    both("subarray", a, b, 48, 0, 240, 88, 112, 1,
         PLACES(22, 23, 24, 27, 28, 29, 42, 43, 44, 47, 48, 49));
    OK(MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_INT, &a));
    OK(MPI_Type_create_subarray_c(3, large_sizes, large_parts, large_starts, MPI_ORDER_FORTRAN, MPI_INT,
                                  &b));
    both("subarray of Fortran", a, b, 48, 0, 240, 100, 116, 1,
         PLACES(25, 26, 28, 29, 37, 38, 40, 41, 49, 50, 52, 53));
    int all[] = {4, 5}, ways[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[] = {2, 2};
    MPI_Count large_all[] = {4, 5};
    OK(MPI_Type_create_darray(4, 2, 2, all, ways, arguments, grid, MPI_ORDER_C, MPI_INT, &a));
    OK(MPI_Type_create_darray_c(4, 2, 2, large_all, ways, arguments, grid, MPI_ORDER_C, MPI_INT, &b));
    both("darray", a, b, 24, 0, 80, 40, 40, 1, PLACES(10, 11, 14, 15, 16, 19));
    OK(MPI_Type_create_darray(4, 1, 2, all, ways, arguments, grid, MPI_ORDER_FORTRAN, MPI_INT, &a));
    OK(MPI_Type_create_darray_c(4, 1, 2, large_all, ways, arguments, grid, MPI_ORDER_FORTRAN, MPI_INT, &b));
    both("darray of Fortran", a, b, 16, 0, 80, 32, 24, 1, PLACES(8, 9, 12, 13));
    int none[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK}, two[] = {1, 4};
    int defaults[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
    OK(MPI_Type_create_darray(4, 3, 2, all, none, defaults, two, MPI_ORDER_C, MPI_INT, &a));
    numbers("darray without a part", a, 0, 0, 80, 0, 0);
    OK(MPI_Type_free(&a));
}

/* Datatypes of datatypes: a transposed matrix, triangles, and a tree of four levels. */
static void nested(void) {
    MPI_Datatype column, columns, row, matrix, type;
    OK(MPI_Type_vector(3, 1, 4, MPI_INT, &column));
    OK(MPI_Type_create_resized(column, 0, sizeof(int), &columns));
    OK(MPI_Type_contiguous(4, columns, &type));
    OK(MPI_Type_commit(&type));
    check_places("a transposed matrix", type, 1, PLACES(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&columns));
    OK(MPI_Type_free(&type));
    int lengths[] = {3, 2, 1}, starts[] = {0, 4, 8};
    OK(MPI_Type_indexed(3, lengths, starts, MPI_INT, &row));
    OK(MPI_Type_vector(2, 1, 2, row, &matrix));
    OK(MPI_Type_commit(&matrix));
    numbers("triangles", matrix, 48, 0, 108, 0, 108);
    check_places("triangles", matrix, 1, PLACES(0, 1, 2, 4, 5, 8, 18, 19, 20, 22, 23, 26));
    OK(MPI_Type_dup(matrix, &type));
    OK(MPI_Type_free(&matrix));
    check_places("a duplicate of a freed datatype", type, 1, PLACES(0, 1, 2, 4, 5, 8, 18, 19, 20, 22, 23, 26));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&row));
}

static void empty(void) {
    MPI_Datatype a, b;
    OK(MPI_Type_contiguous(0, MPI_INT, &a));
    OK(MPI_Type_contiguous_c(0, MPI_INT, &b));
    both("empty", a, b, 0, 0, 0, 0, 0, 7, 0, NULL);
    OK(MPI_Type_indexed(0, NULL, NULL, MPI_INT, &a));
    OK(MPI_Type_create_struct(0, NULL, NULL, NULL, &b));
    both("without blocks", a, b, 0, 0, 0, 0, 0, 7, 0, NULL);
    OK(MPI_Type_vector(3, 0, 5, MPI_DOUBLE, &a));
    OK(MPI_Type_contiguous(0, MPI_DOUBLE, &b));
    both("blocks without length", a, b, 0, 0, 0, 0, 0, 7, 0, NULL);
}

/* Datatypes that are larger than an int can say. */
static void large(void) {
    MPI_Datatype mega, type;
    int size = 0;
    MPI_Count bytes = 0;
    OK(MPI_Type_contiguous_c((MPI_Count)1 << 33, MPI_INT, &mega));
    numbers("2^35 bytes", mega, (MPI_Count)1 << 35, 0, (MPI_Count)1 << 35, 0, (MPI_Count)1 << 35);
    OK(MPI_Type_size(mega, &size));
    EXPECT("a size that is larger than an int", MPI_UNDEFINED, size);
    OK(MPI_Type_size_x(mega, &bytes));
    EXPECT("size_x", (MPI_Count)1 << 35, bytes);
    OK(MPI_Type_vector_c(3, 1, (MPI_Count)1 << 20, mega, &type));
    MPI_Count extent = ((MPI_Count)1 << 56) + ((MPI_Count)1 << 35);
    numbers("three of them", type, (MPI_Count)3 << 35, 0, extent, 0, extent);
    MPI_Count lb = -1, found = -1;
    OK(MPI_Type_get_extent_x(type, &lb, &found));
    EXPECT("extent_x", extent, found);
    OK(MPI_Type_get_true_extent_x(type, &lb, &found));
    EXPECT("true extent_x", extent, found);
    OK(MPI_Type_free(&type));
    FAILS(MPI_ERR_COUNT, MPI_Type_contiguous_c((MPI_Count)1 << 40, mega, &type));
    FAILS(MPI_ERR_ARG, MPI_Type_create_hvector_c(3, 1, (MPI_Count)1 << 62, mega, &type));
    OK(MPI_Type_free(&mega));
}

static int calls;

static void uncalled(void *in, void *inout, MPI_Count *count, MPI_Datatype *type) {
    (void)in, (void)inout, (void)type;
    calls += *count == 0;
}

/* Types that need not be committed, and those that only look too large. */
static void extremes(void) {
    MPI_Datatype pair, wide, type;
    int size = -1;
    MPI_Aint external = -1;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Pack_size(3, pair, MPI_COMM_SELF, &size));
    EXPECT("the size of an uncommitted type", 24, size);
    OK(MPI_Pack_external_size("external32", 3, pair, &external));
    EXPECT("its external size", 24, external);
    OK(MPI_Type_free(&pair));
    /* An empty block has no place. */
    OK(MPI_Type_indexed_c(2, (MPI_Count[]){0, 1}, (MPI_Count[]){(MPI_Count)1 << 62, 0}, MPI_INT, &type));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_create_resized_c(MPI_INT, 0, -((MPI_Count)1 << 62), &wide));
    FAILS(MPI_ERR_ARG, MPI_Type_create_hvector_c(1, 3, 16, wide, &type));
    OK(MPI_Type_free(&wide));
    OK(MPI_Type_contiguous(0, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    MPI_Op op;
    OK(MPI_Op_create_c(uncalled, 1, &op));
    OK(MPI_Reduce_local(NULL, NULL, 5, type, op));
    OK(MPI_Reduce_local(NULL, NULL, 0, MPI_INT, op));
    EXPECT("calls without elements", 0, calls);
    OK(MPI_Op_free(&op));
    OK(MPI_Type_free(&type));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    vectors();
    lists();
    structs();
    bounds();
    arrays();
    nested();
    empty();
    large();
    extremes();
    return end();
}
