/* external32: the bytes of all kinds of numbers, and data that become the same again. */
#include "datatype_check.h"
#include <complex.h>
#include <wchar.h>

/* Packs elements, compares the bytes, and unpacks them. */
static void bytes(const char *what, const void *data, int count, MPI_Datatype type, size_t size, int n,
                  const unsigned char *expected) {
    unsigned char packed[256], back[256];
    MPI_Aint room = -1, position = 0;
    memset(packed, 0xaa, sizeof packed);
    memset(back, 0, sizeof back);
    OK(MPI_Pack_external_size("external32", count, type, &room));
    EXPECT(what, n, room);
    OK(MPI_Pack_external("external32", data, count, type, packed, n, &position));
    EXPECT(what, n, position);
    for (int i = 0; i < n; i++) EXPECT(what, expected[i], packed[i]);
    EXPECT("the byte behind", 0xaa, packed[n]);
    position = 0;
    OK(MPI_Unpack_external("external32", packed, n, &position, back, count, type));
    EXPECT(what, n, position);
    EXPECT(what, 0, memcmp(data, back, size));
    MPI_Count large_room = -1, large_position = 0;
    OK(MPI_Pack_external_size_c("external32", count, type, &large_room));
    EXPECT(what, n, large_room);
    OK(MPI_Pack_external_c("external32", data, count, type, packed, n, &large_position));
    EXPECT(what, n, large_position);
}

#define BYTES(...) (int)sizeof((unsigned char[]){__VA_ARGS__}), (unsigned char[]){__VA_ARGS__}

static void numbers_of_c(void) {
    int i[] = {1, -2};
    bytes("int", i, 2, MPI_INT, sizeof i, BYTES(0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe));
    short s = 0x1234;
    bytes("short", &s, 1, MPI_SHORT, sizeof s, BYTES(0x12, 0x34));
    long l[] = {0x12345678, -3};
    bytes("long", l, 2, MPI_LONG, sizeof l, BYTES(0x12, 0x34, 0x56, 0x78, 0xff, 0xff, 0xff, 0xfd));
    unsigned long u = 0xfffffffe;
    bytes("unsigned long", &u, 1, MPI_UNSIGNED_LONG, sizeof u, BYTES(0xff, 0xff, 0xff, 0xfe));
    long long ll = -2;
    bytes("long long", &ll, 1, MPI_LONG_LONG, sizeof ll,
          BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe));
    MPI_Aint a = 258;
    bytes("aint", &a, 1, MPI_AINT, sizeof a, BYTES(0, 0, 0, 0, 0, 0, 1, 2));
    char c[] = "ab";
    bytes("char", c, 2, MPI_CHAR, 2, BYTES('a', 'b'));
    wchar_t w[] = {0x41, 0x20ac};
    bytes("wchar", w, 2, MPI_WCHAR, sizeof w, BYTES(0, 0x41, 0x20, 0xac));
    float f = -1.5f;
    bytes("float", &f, 1, MPI_FLOAT, sizeof f, BYTES(0xbf, 0xc0, 0, 0));
    double d = 2.0;
    bytes("double", &d, 1, MPI_DOUBLE, sizeof d, BYTES(0x40, 0, 0, 0, 0, 0, 0, 0));
    double complex z = 2.0 - 2.0 * I;
    bytes("double complex", &z, 1, MPI_C_DOUBLE_COMPLEX, sizeof z,
          BYTES(0x40, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0));
}

static void long_doubles(void) {
    unsigned char packed[64];
    long double back[3] = {0, 0, 0}, numbers[] = {1.0L, -0.1L, 1e-4940L};
    unsigned char one[] = {0x3f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    MPI_Aint position = 0;
    OK(MPI_Pack_external("external32", numbers, 3, MPI_LONG_DOUBLE, packed, 48, &position));
    EXPECT("three numbers of 16 bytes", 48, position);
    for (int i = 0; i < 16; i++) EXPECT("1 as a number of 128 bits", one[i], packed[i]);
    position = 0;
    OK(MPI_Unpack_external("external32", packed, 48, &position, back, 3, MPI_LONG_DOUBLE));
    for (int i = 0; i < 3; i++) EXPECT("long double", 1, numbers[i] == back[i]);
}

/* Derived datatypes: the data without gaps, each number as long as external32 says. */
static void derived(void) {
    struct {
        long l;
        char c;
        short s[3];
    } record = {5, 'x', {1, 2, 3}}, back;
    MPI_Datatype type, part, types[3] = {MPI_LONG, MPI_CHAR};
    OK(MPI_Type_vector(2, 1, 2, MPI_SHORT, &part));
    types[2] = part;
    int ones[] = {1, 1, 1};
    MPI_Aint offsets[] = {0, (char *)&record.c - (char *)&record, (char *)record.s - (char *)&record};
    OK(MPI_Type_create_struct(3, ones, offsets, types, &type));
    OK(MPI_Type_commit(&type));
    unsigned char packed[9], expected[] = {0, 0, 0, 5, 'x', 0, 1, 0, 3};
    MPI_Aint position = 0, size = 0;
    OK(MPI_Pack_external_size("external32", 1, type, &size));
    EXPECT("the size of a record", 9, size);
    OK(MPI_Pack_external("external32", &record, 1, type, packed, 9, &position));
    for (int i = 0; i < 9; i++) EXPECT("a record", expected[i], packed[i]);
    position = 0;
    memset(&back, 0, sizeof back);
    OK(MPI_Unpack_external("external32", packed, 9, &position, &back, 1, type));
    EXPECT("long", 5, back.l);
    EXPECT("char", 'x', back.c);
    EXPECT("short", 1, back.s[0]);
    EXPECT("the gap", 0, back.s[1]);
    EXPECT("short", 3, back.s[2]);
    OK(MPI_Type_free(&part));
    OK(MPI_Type_free(&type));
    struct {
        double value;
        int index;
    } pairs[2];
    memset(pairs, 0, sizeof pairs);
    pairs[0].value = 2.0, pairs[0].index = 7, pairs[1].value = -2.0, pairs[1].index = 8;
    bytes("pairs", pairs, 2, MPI_DOUBLE_INT, sizeof pairs - 4,
          BYTES(0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8));
}

static void errors(void) {
    int data = 1;
    char packed[8];
    MPI_Aint position = 0;
    FAILS(MPI_ERR_ARG, MPI_Pack_external("native", &data, 1, MPI_INT, packed, 8, &position));
    FAILS(MPI_ERR_ARG, MPI_Pack_external("external32", &data, 1, MPI_INT, packed, 3, &position));
    FAILS(MPI_ERR_ARG, MPI_Unpack_external("external32", packed, 3, &position, &data, 1, MPI_INT));
    FAILS(MPI_ERR_COUNT, MPI_Pack_external("external32", &data, -1, MPI_INT, packed, 8, &position));
    EXPECT("the position after errors", 0, position);
    OK(MPI_Pack_external("external32", &data, 0, MPI_INT, packed, 0, &position));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    numbers_of_c();
    long_doubles();
    derived();
    errors();
    return end();
}
