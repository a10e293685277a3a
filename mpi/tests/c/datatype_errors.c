/* Wrong arguments of the calls on datatypes: each is refused with its class, and changes nothing. */
#include "datatype_check.h"

static void constructors(void) {
    MPI_Datatype t = MPI_DATATYPE_NULL, freed;
    int one[] = {1}, minus[] = {-1}, zero[] = {0};
    MPI_Aint place[] = {0};
    FAILS(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &t));
    FAILS(MPI_ERR_TYPE, MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_contiguous(1, MPI_INT, NULL));
    FAILS(MPI_ERR_COUNT, MPI_Type_vector(-1, 1, 1, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_vector(1, -1, 1, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_hvector(1, -1, 1, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_indexed(1, minus, zero, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_indexed(1, NULL, zero, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_indexed(1, one, NULL, MPI_INT, &t));
    FAILS(MPI_ERR_COUNT, MPI_Type_create_hindexed(-1, one, place, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_indexed_block(1, -1, zero, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_hindexed_block(1, 1, NULL, MPI_INT, &t));
    MPI_Datatype null[] = {MPI_DATATYPE_NULL}, good[] = {MPI_INT};
    FAILS(MPI_ERR_TYPE, MPI_Type_create_struct(1, one, place, null, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_struct(1, one, place, NULL, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_struct(1, minus, place, good, &t));
    FAILS(MPI_ERR_TYPE, MPI_Type_create_resized(MPI_DATATYPE_NULL, 0, 4, &t));
    FAILS(MPI_ERR_TYPE, MPI_Type_dup(MPI_DATATYPE_NULL, &t));
    OK(MPI_Type_contiguous(2, MPI_INT, &freed));
    MPI_Datatype stale = freed;
    OK(MPI_Type_free(&freed));
    FAILS(MPI_ERR_TYPE, MPI_Type_contiguous(1, stale, &t));
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&stale));
    FAILS(MPI_ERR_TYPE, MPI_Type_commit(&stale));
    EXPECT("no datatype was made", 1, t == MPI_DATATYPE_NULL);
}

static void arrays(void) {
    MPI_Datatype t;
    int sizes[] = {4, 4}, parts[] = {2, 2}, starts[] = {3, 0}, good[] = {0, 0}, zeros[] = {0, 1};
    FAILS(MPI_ERR_ARG, MPI_Type_create_subarray(0, sizes, parts, good, MPI_ORDER_C, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_subarray(2, sizes, zeros, good, MPI_ORDER_C, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_subarray(2, zeros, parts, good, MPI_ORDER_C, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_subarray(2, sizes, parts, good, 99, MPI_INT, &t));
    int ways[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_NONE}, grid[] = {2, 1}, wrong[] = {2, 2};
    int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, small[] = {1, 1};
    FAILS(MPI_ERR_ARG,
          MPI_Type_create_darray(2, 2, 2, sizes, ways, arguments, grid, MPI_ORDER_C, MPI_INT, &t));
    FAILS(MPI_ERR_ARG,
          MPI_Type_create_darray(2, 0, 2, sizes, ways, arguments, wrong, MPI_ORDER_C, MPI_INT, &t));
    FAILS(MPI_ERR_ARG,
          MPI_Type_create_darray(4, 0, 2, sizes, ways, arguments, wrong, MPI_ORDER_C, MPI_INT, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_darray(2, 0, 2, sizes, ways, small, grid, MPI_ORDER_C, MPI_INT, &t));
    int strange[] = {99, MPI_DISTRIBUTE_NONE};
    FAILS(MPI_ERR_ARG,
          MPI_Type_create_darray(2, 0, 2, sizes, strange, arguments, grid, MPI_ORDER_C, MPI_INT, &t));
}

static void inquiries(void) {
    int size;
    MPI_Aint a;
    FAILS(MPI_ERR_TYPE, MPI_Type_size(MPI_DATATYPE_NULL, &size));
    FAILS(MPI_ERR_ARG, MPI_Type_size(MPI_INT, NULL));
    FAILS(MPI_ERR_TYPE, MPI_Type_get_extent(MPI_DATATYPE_NULL, &a, &a));
    FAILS(MPI_ERR_ARG, MPI_Type_get_extent(MPI_INT, NULL, &a));
    FAILS(MPI_ERR_ARG, MPI_Type_get_extent(MPI_INT, &a, NULL));
    FAILS(MPI_ERR_ARG, MPI_Type_get_true_extent(MPI_INT, &a, NULL));
    FAILS(MPI_ERR_ARG, MPI_Type_commit(NULL));
    FAILS(MPI_ERR_ARG, MPI_Type_free(NULL));
    MPI_Datatype integer = MPI_INT, null = MPI_DATATYPE_NULL;
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&integer));
    FAILS(MPI_ERR_TYPE, MPI_Type_free(&null));
    FAILS(MPI_ERR_TYPE, MPI_Type_commit(&null));
    OK(MPI_Type_commit(&integer));
    FAILS(MPI_ERR_ARG, MPI_Get_address(&size, NULL));
}

/* Datatypes that are not committed are for inquiries and constructors only. */
static void uncommitted(void) {
    MPI_Datatype t, outer;
    int data[8] = {0}, size = -1, position = 0;
    char packed[64];
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &t));
    OK(MPI_Type_size(t, &size));
    EXPECT("size", 8, size);
    OK(MPI_Type_contiguous(1, t, &outer));
    FAILS(MPI_ERR_TYPE, MPI_Send(data, 1, t, 0, 0, MPI_COMM_SELF));
    FAILS(MPI_ERR_TYPE, MPI_Recv(data, 1, t, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_TYPE, MPI_Pack(data, 1, t, packed, 64, &position, MPI_COMM_SELF));
    FAILS(MPI_ERR_TYPE, MPI_Unpack(packed, 64, &position, data, 1, t, MPI_COMM_SELF));
    FAILS(MPI_ERR_TYPE, MPI_Bcast(data, 1, t, 0, MPI_COMM_SELF));
    OK(MPI_Type_commit(&t));
    OK(MPI_Bcast(data, 1, t, 0, MPI_COMM_SELF));
    OK(MPI_Pack(data, 1, t, packed, 64, &position, MPI_COMM_SELF));
    FAILS(MPI_ERR_TYPE, MPI_Bcast(data, 1, outer, 0, MPI_COMM_SELF));
    OK(MPI_Type_free(&outer));
    OK(MPI_Type_dup(t, &outer));
    OK(MPI_Bcast(data, 1, outer, 0, MPI_COMM_SELF));
    OK(MPI_Type_free(&outer));
    OK(MPI_Type_free(&t));
}

static void packing(void) {
    int data[4] = {1, 2, 3, 4}, position = 0, size;
    char packed[16];
    FAILS(MPI_ERR_ARG, MPI_Pack(data, 4, MPI_INT, packed, 15, &position, MPI_COMM_SELF));
    position = -1;
    FAILS(MPI_ERR_ARG, MPI_Pack(data, 1, MPI_INT, packed, 16, &position, MPI_COMM_SELF));
    position = 17;
    FAILS(MPI_ERR_ARG, MPI_Pack(data, 1, MPI_INT, packed, 16, &position, MPI_COMM_SELF));
    position = 8;
    FAILS(MPI_ERR_ARG, MPI_Unpack(packed, 16, &position, data, 3, MPI_INT, MPI_COMM_SELF));
    EXPECT("the position after errors", 8, position);
    FAILS(MPI_ERR_COUNT, MPI_Pack(data, -1, MPI_INT, packed, 16, &position, MPI_COMM_SELF));
    FAILS(MPI_ERR_ARG, MPI_Pack(data, 1, MPI_INT, packed, 16, NULL, MPI_COMM_SELF));
    FAILS(MPI_ERR_BUFFER, MPI_Pack(data, 1, MPI_INT, NULL, 16, &position, MPI_COMM_SELF));
    FAILS(MPI_ERR_COMM, MPI_Pack(data, 1, MPI_INT, packed, 16, &position, MPI_COMM_NULL));
    FAILS(MPI_ERR_COMM, MPI_Pack_size(1, MPI_INT, MPI_COMM_NULL, &size));
    FAILS(MPI_ERR_COUNT, MPI_Pack_size(-1, MPI_INT, MPI_COMM_SELF, &size));
    position = 16;
    OK(MPI_Pack(data, 0, MPI_INT, packed, 16, &position, MPI_COMM_SELF));
    EXPECT("the position after no data", 16, position);
    MPI_Count large = 4, bytes = 0;
    OK(MPI_Pack_c(data, 3, MPI_INT, packed, 16, &large, MPI_COMM_SELF));
    EXPECT("the position of the larger form", 16, large);
    OK(MPI_Pack_size_c((MPI_Count)1 << 40, MPI_INT, MPI_COMM_SELF, &bytes));
    EXPECT("2^42 bytes", (MPI_Count)1 << 42, bytes);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    constructors();
    arrays();
    inquiries();
    uncommitted();
    packing();
    return end();
}
