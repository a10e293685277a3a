/* Counts of elements in statuses: whole datatypes, elementary types, and parts of both. */
#include "datatype_check.h"

static void counts(const char *what, const MPI_Status *status, MPI_Datatype type, int count, int elements) {
    int found = -1;
    MPI_Count large = -1;
    OK(MPI_Get_count(status, type, &found));
    EXPECT(what, count, found);
    OK(MPI_Get_count_c(status, type, &large));
    EXPECT(what, count, large);
    OK(MPI_Get_elements(status, type, &found));
    EXPECT(what, elements, found);
    OK(MPI_Get_elements_c(status, type, &large));
    EXPECT(what, elements, large);
    large = -1;
    OK(MPI_Get_elements_x(status, type, &large));
    EXPECT(what, elements, large);
}

/* The status of a message of this number of bytes. */
static MPI_Status message(int bytes) {
    static char from[256], to[256];
    MPI_Status status;
    OK(MPI_Sendrecv(from, bytes, MPI_BYTE, 0, 3, to, sizeof to, MPI_BYTE, 0, 3, MPI_COMM_SELF, &status));
    return status;
}

static void received(void) {
    MPI_Datatype record, array, empty;
    int lengths[] = {1, 2, 3};
    MPI_Aint places[] = {0, 8, 16};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT, MPI_CHAR};
    OK(MPI_Type_create_struct(3, lengths, places, types, &record));
    OK(MPI_Type_contiguous(4, record, &array));
    OK(MPI_Type_contiguous(0, MPI_INT, &empty));
    MPI_Status status = message(0);
    counts("no data", &status, record, 0, 0);
    counts("no data", &status, empty, 0, 0);
    status = message(19);
    counts("a record", &status, record, 1, 6);
    counts("a record of four", &status, array, MPI_UNDEFINED, 6);
    counts("data for an empty datatype", &status, empty, MPI_UNDEFINED, MPI_UNDEFINED);
    status = message(2 * 19 + 12);
    counts("a part of the third record", &status, record, MPI_UNDEFINED, 14);
    counts("a part of the third record", &status, array, MPI_UNDEFINED, 14);
    status = message(8 * 19);
    counts("two arrays", &status, array, 2, 48);
    status = message(10);
    counts("half an integer", &status, record, MPI_UNDEFINED, MPI_UNDEFINED);
    counts("half an integer", &status, MPI_INT, MPI_UNDEFINED, MPI_UNDEFINED);
    status = message(20);
    counts("a pair and a value", &status, MPI_DOUBLE_INT, MPI_UNDEFINED, 3);
    status = message(24);
    counts("two pairs", &status, MPI_DOUBLE_INT, 2, 4);
    OK(MPI_Type_free(&record));
    OK(MPI_Type_free(&array));
    OK(MPI_Type_free(&empty));
}

/* A message of fewer elements than there is room for fills a part of the layout. */
static void parts(void) {
    MPI_Datatype column;
    OK(MPI_Type_vector(4, 1, 3, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    int data[6] = {1, 2, 3, 4, 5, 6}, matrix[24];
    for (int i = 0; i < 24; i++) matrix[i] = -1;
    MPI_Status status;
    OK(MPI_Sendrecv(data, 6, MPI_INT, 0, 3, matrix, 2, column, 0, 3, MPI_COMM_SELF, &status));
    counts("one column and a half", &status, column, MPI_UNDEFINED, 6);
    int expected[6] = {0, 3, 6, 9, 10, 13}, changed = 0;
    for (int i = 0; i < 6; i++) EXPECT("an integer of the column", i + 1, matrix[expected[i]]);
    for (int i = 0; i < 24; i++) changed += matrix[i] != -1;
    EXPECT("integers that were changed", 6, changed);
    OK(MPI_Type_free(&column));
}

static void set(void) {
    MPI_Status status = message(0);
    MPI_Datatype record, huge;
    int lengths[] = {1, 2};
    MPI_Aint places[] = {0, 8};
    MPI_Datatype types[] = {MPI_DOUBLE, MPI_SHORT};
    OK(MPI_Type_create_struct(2, lengths, places, types, &record));
    OK(MPI_Status_set_elements(&status, MPI_INT, 5));
    counts("five integers", &status, MPI_INT, 5, 5);
    OK(MPI_Status_set_elements_c(&status, record, 6));
    counts("two records", &status, record, 2, 6);
    OK(MPI_Status_set_elements_x(&status, record, 5));
    counts("a record and a part", &status, record, MPI_UNDEFINED, 5);
    OK(MPI_Type_contiguous_c((MPI_Count)1 << 40, record, &huge));
    OK(MPI_Status_set_elements_x(&status, huge, (MPI_Count)3 << 40));
    MPI_Count large = -1;
    int count = -1;
    OK(MPI_Get_elements_x(&status, record, &large));
    EXPECT("3 * 2^40 elements", (MPI_Count)3 << 40, large);
    OK(MPI_Get_elements(&status, record, &count));
    EXPECT("more elements than an int can say", MPI_UNDEFINED, count);
    OK(MPI_Get_count(&status, huge, &count));
    EXPECT("one huge datatype", 1, count);
    OK(MPI_Type_free(&record));
    OK(MPI_Type_free(&huge));
    FAILS(MPI_ERR_COUNT, MPI_Status_set_elements(&status, MPI_INT, -1));
    FAILS(MPI_ERR_ARG, MPI_Status_set_elements(NULL, MPI_INT, 1));
    FAILS(MPI_ERR_ARG, MPI_Get_count(&status, MPI_INT, NULL));
    FAILS(MPI_ERR_TYPE, MPI_Get_count(&status, MPI_DATATYPE_NULL, &count));
    FAILS(MPI_ERR_TYPE, MPI_Get_elements(&status, MPI_DATATYPE_NULL, &count));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    received();
    parts();
    set();
    return end();
}
