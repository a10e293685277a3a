/* Names of datatypes, datatypes that are found by size, precision or components, and addresses. */
#include "datatype_check.h"

static void named(const char *expected, MPI_Datatype type) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = -1;
    OK(MPI_Type_get_name(type, name, &length));
    if (strcmp(expected, name) != 0 || length != (int)strlen(expected)) {
        printf("a name: expected %s, found %s of length %d\n", expected, name, length);
        failures++;
    }
}

static void names(void) {
    named("MPI_INT", MPI_INT);
    named("MPI_LONG_LONG_INT", MPI_LONG_LONG);
    named("MPI_C_COMPLEX", MPI_C_FLOAT_COMPLEX);
    named("MPI_2DOUBLE_PRECISION", MPI_2DOUBLE_PRECISION);
    named("MPI_INTEGER16", MPI_INTEGER16);
    named("MPI_DATATYPE_NULL", MPI_DATATYPE_NULL);
    MPI_Datatype type, copy;
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    named("", type);
    OK(MPI_Type_set_name(type, "a pair"));
    named("a pair", type);
    OK(MPI_Type_dup(type, &copy));
    named("", copy);
    named("a pair", type);
    char large[2 * MPI_MAX_OBJECT_NAME];
    memset(large, 'x', sizeof large);
    large[sizeof large - 1] = 0;
    OK(MPI_Type_set_name(type, large));
    large[MPI_MAX_OBJECT_NAME - 1] = 0;
    named(large, type);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&copy));
    OK(MPI_Type_set_name(MPI_FLOAT, "single"));
    named("single", MPI_FLOAT);
    OK(MPI_Type_set_name(MPI_FLOAT, "MPI_FLOAT"));
    FAILS(MPI_ERR_TYPE, MPI_Type_set_name(MPI_DATATYPE_NULL, "x"));
    FAILS(MPI_ERR_ARG, MPI_Type_set_name(MPI_INT, NULL));
}

static int size_of(MPI_Datatype type) {
    int size = -1;
    OK(MPI_Type_size(type, &size));
    return size;
}

static void kinds(void) {
    MPI_Datatype t;
    int precisions[] = {1, 6, 7, 15, 16, 18, 19, 33}, sizes[] = {4, 4, 8, 8, 16, 16, 16, 16};
    for (int i = 0; i < 8; i++) {
        OK(MPI_Type_create_f90_real(precisions[i], MPI_UNDEFINED, &t));
        EXPECT("the size of a real", sizes[i], size_of(t));
        OK(MPI_Type_create_f90_complex(precisions[i], MPI_UNDEFINED, &t));
        EXPECT("the size of a complex", 2 * sizes[i], size_of(t));
    }
    OK(MPI_Type_create_f90_real(MPI_UNDEFINED, 300, &t));
    EXPECT("a range of 300", 8, size_of(t));
    int ranges[] = {1, 2, 3, 4, 5, 9, 10, 18, 19, 38}, bytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 16, 16};
    for (int i = 0; i < 10; i++) {
        OK(MPI_Type_create_f90_integer(ranges[i], &t));
        EXPECT("the size of an integer", bytes[i], size_of(t));
    }
    FAILS(MPI_ERR_ARG, MPI_Type_create_f90_real(34, 10, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_create_f90_integer(39, &t));
    double d[2] = {1.5, 2.5}, back[2] = {0, 0};
    OK(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &t));
    OK(MPI_Sendrecv(d, 2, t, 0, 0, back, 2, t, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    EXPECT("a message of reals", 1, back[0] == 1.5 && back[1] == 2.5);
}

static void sizes(void) {
    MPI_Datatype t;
    int classes[] = {MPI_TYPECLASS_REAL, MPI_TYPECLASS_INTEGER, MPI_TYPECLASS_COMPLEX};
    int known[3][5] = {{4, 8, 16, 0, 0}, {1, 2, 4, 8, 16}, {8, 16, 32, 0, 0}};
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 5 && known[c][i] > 0; i++) {
            OK(MPI_Type_match_size(classes[c], known[c][i], &t));
            EXPECT("the size of a match", known[c][i], size_of(t));
        }
    OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t));
    EXPECT("the real number of 8 bytes", 1, t == MPI_REAL8);
    FAILS(MPI_ERR_ARG, MPI_Type_match_size(MPI_TYPECLASS_REAL, 3, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_match_size(99, 4, &t));
    FAILS(MPI_ERR_ARG, MPI_Type_match_size(MPI_TYPECLASS_REAL, 4, NULL));
    OK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &t));
    EXPECT("the pair of double and int", 1, t == MPI_DOUBLE_INT);
    OK(MPI_Type_get_value_index(MPI_INT, MPI_INT, &t));
    EXPECT("the pair of int and int", 1, t == MPI_2INT);
    OK(MPI_Type_get_value_index(MPI_CHAR, MPI_CHAR, &t));
    EXPECT("a pair that is not predefined", 1, t == MPI_DATATYPE_NULL);
    FAILS(MPI_ERR_TYPE, MPI_Type_get_value_index(MPI_DATATYPE_NULL, MPI_INT, &t));
}

/* Absolute addresses with MPI_BOTTOM. */
static void addresses(void) {
    int a = 7, b = 8;
    double c = 1.5;
    MPI_Aint places[3];
    OK(MPI_Get_address(&a, &places[0]));
    OK(MPI_Get_address(&b, &places[1]));
    OK(MPI_Get_address(&c, &places[2]));
    EXPECT("the distance", (char *)&b - (char *)&a, MPI_Aint_diff(places[1], places[0]));
    EXPECT("the sum", places[1], MPI_Aint_add(places[0], MPI_Aint_diff(places[1], places[0])));
    int ones[] = {1, 1, 1};
    MPI_Datatype types[] = {MPI_INT, MPI_INT, MPI_DOUBLE}, t;
    OK(MPI_Type_create_struct(3, ones, places, types, &t));
    OK(MPI_Type_commit(&t));
    char packed[16];
    int position = 0, found = 0;
    OK(MPI_Pack(MPI_BOTTOM, 1, t, packed, 16, &position, MPI_COMM_SELF));
    memcpy(&found, packed + 4, 4);
    EXPECT("the second integer", 8, found);
    a = b = 0;
    c = 0;
    OK(MPI_Sendrecv(packed, 16, MPI_PACKED, 0, 0, MPI_BOTTOM, 1, t, 0, 0, MPI_COMM_SELF,
                    MPI_STATUS_IGNORE));
    EXPECT("the data at absolute addresses", 1, a == 7 && b == 8 && c == 1.5);
    OK(MPI_Type_free(&t));
    MPI_Aint bottom = -1;
    OK(MPI_Get_address(MPI_BOTTOM, &bottom));
    EXPECT("the address of MPI_BOTTOM", 0, bottom);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    names();
    kinds();
    sizes();
    addresses();
    return end();
}
