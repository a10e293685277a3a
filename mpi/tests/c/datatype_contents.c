/* Envelopes and contents of all combiners, in both forms. */
#include "datatype_check.h"

enum { ROOM = 64 };

/* Checks envelope and contents of a datatype that was made by the usual form of a call, and frees it. */
static void contents(const char *what, MPI_Datatype type, int combiner, int ni, const int *integers, int na,
                     const MPI_Aint *addresses, int nd, const MPI_Datatype *types) {
    int found[4] = {-1, -1, -1, -1}, i[ROOM];
    MPI_Aint a[ROOM];
    MPI_Datatype d[ROOM];
    OK(MPI_Type_get_envelope(type, &found[0], &found[1], &found[2], &found[3]));
    EXPECT(what, ni, found[0]);
    EXPECT(what, na, found[1]);
    EXPECT(what, nd, found[2]);
    EXPECT(what, combiner, found[3]);
    OK(MPI_Type_get_contents(type, ni, na, nd, i, a, d));
    for (int k = 0; k < ni; k++) EXPECT(what, integers[k], i[k]);
    for (int k = 0; k < na; k++) EXPECT(what, addresses[k], a[k]);
    for (int k = 0; k < nd; k++) EXPECT(what, 1, types[k] == d[k]);
    MPI_Count large[4] = {-1, -1, -1, -1};
    OK(MPI_Type_get_envelope_c(type, &large[0], &large[1], &large[2], &large[3], &found[3]));
    EXPECT(what, ni, large[0]);
    EXPECT(what, na, large[1]);
    EXPECT(what, 0, large[2]);
    EXPECT(what, nd, large[3]);
    OK(MPI_Type_get_contents_c(type, ni, na, 0, nd, i, a, NULL, d));
    for (int k = 0; k < ni; k++) EXPECT(what, integers[k], i[k]);
    if (ni > 0) FAILS(MPI_ERR_ARG, MPI_Type_get_contents(type, ni - 1, na, nd, i, a, d));
    if (nd > 0) FAILS(MPI_ERR_ARG, MPI_Type_get_contents(type, ni, na, nd - 1, i, a, d));
    OK(MPI_Type_free(&type));
}

/* The same for the form with larger integers. */
static void contents_c(const char *what, MPI_Datatype type, int combiner, int ni, const int *integers, int nc,
                       const MPI_Count *counts, int nd, const MPI_Datatype *types) {
    int found = -1, i[ROOM], unused[4];
    MPI_Aint a[ROOM];
    MPI_Count large[4] = {-1, -1, -1, -1}, c[ROOM];
    MPI_Datatype d[ROOM];
    OK(MPI_Type_get_envelope_c(type, &large[0], &large[1], &large[2], &large[3], &found));
    EXPECT(what, combiner, found);
    EXPECT(what, ni, large[0]);
    EXPECT(what, 0, large[1]);
    EXPECT(what, nc, large[2]);
    EXPECT(what, nd, large[3]);
    OK(MPI_Type_get_contents_c(type, ni, 0, nc, nd, i, a, c, d));
    for (int k = 0; k < ni; k++) EXPECT(what, integers[k], i[k]);
    for (int k = 0; k < nc; k++) EXPECT(what, counts[k], c[k]);
    for (int k = 0; k < nd; k++) EXPECT(what, 1, types[k] == d[k]);
    FAILS(MPI_ERR_TYPE, MPI_Type_get_envelope(type, &unused[0], &unused[1], &unused[2], &unused[3]));
    FAILS(MPI_ERR_TYPE, MPI_Type_get_contents(type, ROOM, ROOM, ROOM, i, a, d));
    OK(MPI_Type_free(&type));
}

#define INTS(...) (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__}
#define AINTS(...) (int)(sizeof((MPI_Aint[]){__VA_ARGS__}) / sizeof(MPI_Aint)), (MPI_Aint[]){__VA_ARGS__}
#define COUNTS(...) (int)(sizeof((MPI_Count[]){__VA_ARGS__}) / sizeof(MPI_Count)), (MPI_Count[]){__VA_ARGS__}
#define TYPES(...)                                                                                          \
    (int)(sizeof((MPI_Datatype[]){__VA_ARGS__}) / sizeof(MPI_Datatype)), (MPI_Datatype[]){__VA_ARGS__}
#define NONE 0, NULL

static void usual_forms(void) {
    MPI_Datatype t;
    int lengths[] = {1, 2}, places[] = {3, 7};
    MPI_Aint bytes[] = {16, 48};
    OK(MPI_Type_dup(MPI_FLOAT, &t));
    contents("dup", t, MPI_COMBINER_DUP, NONE, NONE, TYPES(MPI_FLOAT));
    OK(MPI_Type_contiguous(5, MPI_INT, &t));
    contents("contiguous", t, MPI_COMBINER_CONTIGUOUS, INTS(5), NONE, TYPES(MPI_INT));
    OK(MPI_Type_vector(5, 2, -3, MPI_INT, &t));
    contents("vector", t, MPI_COMBINER_VECTOR, INTS(5, 2, -3), NONE, TYPES(MPI_INT));
    OK(MPI_Type_create_hvector(5, 2, -24, MPI_INT, &t));
    contents("hvector", t, MPI_COMBINER_HVECTOR, INTS(5, 2), AINTS(-24), TYPES(MPI_INT));
    OK(MPI_Type_indexed(2, lengths, places, MPI_CHAR, &t));
    contents("indexed", t, MPI_COMBINER_INDEXED, INTS(2, 1, 2, 3, 7), NONE, TYPES(MPI_CHAR));
    OK(MPI_Type_create_hindexed(2, lengths, bytes, MPI_CHAR, &t));
    contents("hindexed", t, MPI_COMBINER_HINDEXED, INTS(2, 1, 2), AINTS(16, 48), TYPES(MPI_CHAR));
    OK(MPI_Type_create_indexed_block(2, 4, places, MPI_CHAR, &t));
    contents("indexed block", t, MPI_COMBINER_INDEXED_BLOCK, INTS(2, 4, 3, 7), NONE, TYPES(MPI_CHAR));
    OK(MPI_Type_create_hindexed_block(2, 4, bytes, MPI_CHAR, &t));
    contents("hindexed block", t, MPI_COMBINER_HINDEXED_BLOCK, INTS(2, 4), AINTS(16, 48), TYPES(MPI_CHAR));
    MPI_Datatype two[] = {MPI_INT, MPI_DOUBLE};
    OK(MPI_Type_create_struct(2, lengths, bytes, two, &t));
    contents("struct", t, MPI_COMBINER_STRUCT, INTS(2, 1, 2), AINTS(16, 48), TYPES(MPI_INT, MPI_DOUBLE));
    OK(MPI_Type_create_resized(MPI_INT, -8, 32, &t));
    contents("resized", t, MPI_COMBINER_RESIZED, NONE, AINTS(-8, 32), TYPES(MPI_INT));
    int sizes[] = {4, 5}, parts[] = {2, 3}, starts[] = {1, 2};
    OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &t));
    contents("subarray", t, MPI_COMBINER_SUBARRAY, INTS(2, 4, 5, 2, 3, 1, 2, MPI_ORDER_C), NONE,
             TYPES(MPI_INT));
    int ways[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
    int grid[] = {3, 2};
    OK(MPI_Type_create_darray(6, 4, 2, sizes, ways, arguments, grid, MPI_ORDER_FORTRAN, MPI_INT, &t));
    contents("darray", t, MPI_COMBINER_DARRAY,
             INTS(6, 4, 2, 4, 5, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_DFLT_DARG, 2, 3,
                  2, MPI_ORDER_FORTRAN),
             NONE, TYPES(MPI_INT));
}

static void large_forms(void) {
    MPI_Datatype t;
    MPI_Count lengths[] = {1, 2}, places[] = {3, 7};
    OK(MPI_Type_contiguous_c(5, MPI_INT, &t));
    contents_c("contiguous", t, MPI_COMBINER_CONTIGUOUS, NONE, COUNTS(5), TYPES(MPI_INT));
    OK(MPI_Type_vector_c(5, 2, -3, MPI_INT, &t));
    contents_c("vector", t, MPI_COMBINER_VECTOR, NONE, COUNTS(5, 2, -3), TYPES(MPI_INT));
    OK(MPI_Type_create_hvector_c(5, 2, -24, MPI_INT, &t));
    contents_c("hvector", t, MPI_COMBINER_HVECTOR, NONE, COUNTS(5, 2, -24), TYPES(MPI_INT));
    OK(MPI_Type_indexed_c(2, lengths, places, MPI_CHAR, &t));
    contents_c("indexed", t, MPI_COMBINER_INDEXED, NONE, COUNTS(2, 1, 2, 3, 7), TYPES(MPI_CHAR));
    OK(MPI_Type_create_hindexed_c(2, lengths, places, MPI_CHAR, &t));
    contents_c("hindexed", t, MPI_COMBINER_HINDEXED, NONE, COUNTS(2, 1, 2, 3, 7), TYPES(MPI_CHAR));
    OK(MPI_Type_create_indexed_block_c(2, 4, places, MPI_CHAR, &t));
    contents_c("indexed block", t, MPI_COMBINER_INDEXED_BLOCK, NONE, COUNTS(2, 4, 3, 7), TYPES(MPI_CHAR));
    OK(MPI_Type_create_hindexed_block_c(2, 4, places, MPI_CHAR, &t));
    contents_c("hindexed block", t, MPI_COMBINER_HINDEXED_BLOCK, NONE, COUNTS(2, 4, 3, 7), TYPES(MPI_CHAR));
    MPI_Datatype two[] = {MPI_INT, MPI_DOUBLE};
    OK(MPI_Type_create_struct_c(2, lengths, places, two, &t));
    contents_c("struct", t, MPI_COMBINER_STRUCT, NONE, COUNTS(2, 1, 2, 3, 7), TYPES(MPI_INT, MPI_DOUBLE));
    OK(MPI_Type_create_resized_c(MPI_INT, -8, 32, &t));
    contents_c("resized", t, MPI_COMBINER_RESIZED, NONE, COUNTS(-8, 32), TYPES(MPI_INT));
    MPI_Count sizes[] = {4, 5}, parts[] = {2, 3}, starts[] = {1, 2};
    OK(MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &t));
    contents_c("subarray", t, MPI_COMBINER_SUBARRAY, INTS(2, MPI_ORDER_C), COUNTS(4, 5, 2, 3, 1, 2),
               TYPES(MPI_INT));
    int ways[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
    int grid[] = {3, 2};
    OK(MPI_Type_create_darray_c(6, 4, 2, sizes, ways, arguments, grid, MPI_ORDER_C, MPI_INT, &t));
    contents_c("darray", t, MPI_COMBINER_DARRAY,
               INTS(6, 4, 2, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_DFLT_DARG, 2, 3, 2,
                    MPI_ORDER_C),
               COUNTS(4, 5), TYPES(MPI_INT));
}

/* The datatypes of contents are objects of their own, also when the original was freed. */
static void nested(void) {
    MPI_Datatype inner, outer, found = MPI_DATATYPE_NULL;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &inner));
    OK(MPI_Type_set_name(inner, "inner"));
    OK(MPI_Type_contiguous(3, inner, &outer));
    OK(MPI_Type_free(&inner));
    int count = 0;
    OK(MPI_Type_get_contents(outer, 1, 0, 1, &count, NULL, &found));
    OK(MPI_Type_free(&outer));
    contents("of contents", found, MPI_COMBINER_VECTOR, INTS(2, 1, 2), NONE, TYPES(MPI_INT));
}

static void predefined(void) {
    int n[4], i[1];
    MPI_Aint a[1];
    MPI_Datatype d[1];
    OK(MPI_Type_get_envelope(MPI_INT, &n[0], &n[1], &n[2], &n[3]));
    for (int k = 0; k < 3; k++) EXPECT("a named datatype", 0, n[k]);
    EXPECT("a named datatype", MPI_COMBINER_NAMED, n[3]);
    FAILS(MPI_ERR_TYPE, MPI_Type_get_contents(MPI_INT, 1, 1, 1, i, a, d));
    FAILS(MPI_ERR_TYPE, MPI_Type_get_contents(MPI_DATATYPE_NULL, 1, 1, 1, i, a, d));
    FAILS(MPI_ERR_TYPE, MPI_Type_get_envelope(MPI_DATATYPE_NULL, &n[0], &n[1], &n[2], &n[3]));
    FAILS(MPI_ERR_ARG, MPI_Type_get_envelope(MPI_INT, NULL, &n[1], &n[2], &n[3]));
    MPI_Datatype real, again, integer;
    OK(MPI_Type_create_f90_real(10, 100, &real));
    OK(MPI_Type_create_f90_real(10, 100, &again));
    EXPECT("the same arguments give the same handle", 1, real == again);
    OK(MPI_Type_get_envelope(real, &n[0], &n[1], &n[2], &n[3]));
    EXPECT("f90_real", 2, n[0]);
    EXPECT("f90_real", 0, n[2]);
    EXPECT("f90_real", MPI_COMBINER_F90_REAL, n[3]);
    int p_and_r[2];
    OK(MPI_Type_get_contents(real, 2, 0, 0, p_and_r, NULL, NULL));
    EXPECT("f90_real: p", 10, p_and_r[0]);
    EXPECT("f90_real: r", 100, p_and_r[1]);
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&real));
    OK(MPI_Type_create_f90_integer(9, &integer));
    OK(MPI_Type_get_envelope(integer, &n[0], &n[1], &n[2], &n[3]));
    EXPECT("f90_integer", 1, n[0]);
    EXPECT("f90_integer", MPI_COMBINER_F90_INTEGER, n[3]);
    MPI_Datatype array;
    OK(MPI_Type_contiguous(2, integer, &array));
    contents("of f90_integer", array, MPI_COMBINER_CONTIGUOUS, INTS(2), NONE, TYPES(integer));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    usual_forms();
    large_forms();
    nested();
    predefined();
    return end();
}
