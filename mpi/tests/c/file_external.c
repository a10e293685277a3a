/* Data representations: external32 with types that are shorter there, and those of the program. */
#include "file_check.h"

static MPI_Status status;

static void extents(MPI_File fh) {
    MPI_Datatype many, gaps;
    MPI_Aint extent;
    MPI_Count large;
    DONE(MPI_File_get_type_extent(fh, MPI_LONG, &extent));
    CHECK(extent, 4, "long");
    DONE(MPI_File_get_type_extent_c(fh, MPI_DOUBLE, &large));
    CHECK(large, 8, "double");
    MPI_Type_contiguous(5, MPI_LONG, &many);
    DONE(MPI_File_get_type_extent(fh, many, &extent));
    CHECK(extent, 20, "5 longs");
    MPI_Type_vector(3, 2, 4, MPI_LONG, &gaps);
    DONE(MPI_File_get_type_extent(fh, gaps, &extent));
    CHECK(extent, 40, "3 blocks of 2 longs, 4 apart");
    MPI_Type_free(&many);
    MPI_Type_free(&gaps);
    REFUSED(MPI_File_get_type_extent(fh, MPI_DATATYPE_NULL, &extent), MPI_ERR_TYPE);
    REFUSED(MPI_File_get_type_extent(fh, MPI_INT, NULL), MPI_ERR_ARG);
}

static void external32(void) {
    long longs[4] = {-2, 5, 1000000, -7}, got[6];
    short shorts[3] = {0x0102, -1, 7}, back[3];
    double number = 1.5, other = 0;
    unsigned char bytes[256];
    MPI_Datatype gaps, memory;
    MPI_Offset at;
    MPI_File fh = created();
    DONE(MPI_File_set_view(fh, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
    extents(fh);
    if (me == 0) {
        DONE(MPI_File_write(fh, longs, 4, MPI_LONG, &status));
        CHECK(count_of(&status, MPI_LONG), 4, "longs written");
        DONE(MPI_File_get_position(fh, &at));
        CHECK(at, 4, "the pointer in longs");
        CHECK(contents(bytes, 256), 16, "the bytes of the file");
        unsigned char right[] = {0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 5, 0, 0xf, 0x42, 0x40, 0xff, 0xff, 0xff, 0xf9};
        CHECK(memcmp(bytes, right, 16), 0, "big-endian numbers of 4 bytes");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    memset(got, 0x55, sizeof got);
    DONE(MPI_File_read_at(fh, 1, got, 6, MPI_LONG, &status));
    CHECK(count_of(&status, MPI_LONG), 3, "longs before the end");
    for (int i = 0; i < 3; i++) CHECK(got[i], longs[i + 1], "long %d", i);
    CHECK(got[3] == 0x5555555555555555, 1, "behind the end");
    DONE(MPI_File_get_byte_offset(fh, 3, &at));
    CHECK(at, 12, "the fourth long");
    MPI_Barrier(MPI_COMM_WORLD);
    /* A filetype with holes: each second long; from memory with holes. */
    MPI_Type_vector(2, 1, 2, MPI_LONG, &gaps);
    MPI_Type_create_resized(gaps, 0, 16, &memory);
    MPI_Type_free(&gaps);
    MPI_Type_vector(2, 1, 2, MPI_LONG, &gaps);
    MPI_Type_commit(&gaps);
    DONE(MPI_File_set_view(fh, 100, MPI_LONG, gaps, "external32", MPI_INFO_NULL));
    if (me == 0) {
        DONE(MPI_File_write_at(fh, 0, longs, 1, gaps, &status));
        CHECK(contents(bytes, 256), 112, "the bytes of the file");
        CHECK(bytes[103] == 0xfe && bytes[111] == 0x40 && bytes[107] == 0, 1, "longs with holes");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_File_read_at(fh, 0, got, 2, MPI_LONG, &status));
    CHECK(got[0] == -2 && got[1] == 1000000, 1, "longs through the holes");
    MPI_Type_free(&gaps);
    MPI_Type_free(&memory);
    DONE(MPI_File_set_view(fh, 200, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL));
    if (me == 0) {
        DONE(MPI_File_write(fh, shorts, 3, MPI_SHORT, &status));
        DONE(MPI_File_write(fh, &number, 1, MPI_DOUBLE, &status));
        CHECK(contents(bytes, 256), 214, "the bytes of the file");
        CHECK(bytes[200] == 1 && bytes[201] == 2 && bytes[206] == 0x3f && bytes[207] == 0xf8, 1, "big-endian");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_File_read_at_all(fh, 0, back, 3, MPI_SHORT, &status));
    DONE(MPI_File_read_at_all(fh, 6, &other, 1, MPI_DOUBLE, &status));
    CHECK(memcmp(shorts, back, sizeof back) == 0 && other == 1.5, 1, "the way back");
    DONE(MPI_File_close(&fh));
    removed();
}

/* A representation of the program: ints as decimal numbers of 6 characters, other types as 2 bytes. */
static int state, conversions;

static int extent_of(MPI_Datatype datatype, MPI_Aint *extent, void *extra) {
    CHECK(extra == &state, 1, "the program's data");
    *extent = datatype == MPI_INT ? 6 : 2;
    return MPI_SUCCESS;
}

static int to_text(void *user, MPI_Datatype datatype, int count, void *filebuf, MPI_Offset position,
                   void *extra) {
    int *ints = user;
    conversions++;
    CHECK(extra == &state && position == 0, 1, "arguments of the write conversion");
    for (int i = 0; i < count; i++) {
        char text[16];
        snprintf(text, sizeof text, "%6d", ints[i]);
        memcpy((char *)filebuf + 6 * i, text, 6);
    }
    return MPI_SUCCESS;
}

static int of_text(void *user, MPI_Datatype datatype, int count, void *filebuf, MPI_Offset position,
                   void *extra) {
    conversions++;
    for (int i = 0; i < count; i++) {
        char text[8] = "";
        memcpy(text, (char *)filebuf + 6 * i, 6);
        ((int *)user)[i] = atoi(text);
    }
    return MPI_SUCCESS;
}

static int to_text_c(void *user, MPI_Datatype datatype, MPI_Count count, void *filebuf, MPI_Offset position,
                     void *extra) {
    return to_text(user, datatype, (int)count, filebuf, position, extra);
}

static int of_text_c(void *user, MPI_Datatype datatype, MPI_Count count, void *filebuf, MPI_Offset position,
                     void *extra) {
    return of_text(user, datatype, (int)count, filebuf, position, extra);
}

static int fails(void *user, MPI_Datatype datatype, int count, void *filebuf, MPI_Offset position,
                 void *extra) {
    return MPI_ERR_OTHER;
}

static void registered(const char *name) {
    int numbers[3] = {7, -12, 99999}, got[5];
    unsigned char bytes[64];
    char found[MPI_MAX_DATAREP_STRING];
    MPI_Offset disp;
    MPI_Datatype etype, filetype;
    MPI_File fh = created();
    DONE(MPI_File_set_view(fh, 2, MPI_INT, MPI_INT, name, MPI_INFO_NULL));
    conversions = 0;
    if (me == 0) {
        DONE(MPI_File_write_at(fh, 1, numbers, 3, MPI_INT, &status));
        CHECK(count_of(&status, MPI_INT), 3, "written");
        CHECK(conversions, 1, "conversions");
        CHECK(contents(bytes, 64), 26, "the bytes of the file");
        CHECK(memcmp(bytes + 8, "     7   -12 99999", 18), 0, "the text in the file");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    memset(got, 0, sizeof got);
    DONE(MPI_File_read_at(fh, 1, got, 5, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT), 3, "read");
    for (int i = 0; i < 5; i++) CHECK(got[i], i < 3 ? numbers[i] : 0, "number %d", i);
    DONE(MPI_File_get_view(fh, &disp, &etype, &filetype, found));
    CHECK(strcmp(found, name), 0, "the name");
    /* The items of a derived datatype are converted at once, and those before the end of the file alone. */
    MPI_Datatype triple;
    MPI_Type_contiguous(3, MPI_INT, &triple);
    MPI_Type_commit(&triple);
    memset(got, 0, sizeof got);
    DONE(MPI_File_read_at(fh, 2, got, 1, triple, &status));
    CHECK(count_of(&status, MPI_INT), 2, "items before the end");
    CHECK(got[0] == -12 && got[1] == 99999 && got[2] == 0, 1, "items of a derived datatype");
    MPI_Type_free(&triple);
    DONE(MPI_File_close(&fh));
    removed();
}

static void representations(void) {
    char name[200];
    int word = 1;
    DONE(MPI_Register_datarep("text", of_text, to_text, extent_of, &state));
    DONE(MPI_Register_datarep_c("text_c", of_text_c, to_text_c, extent_of, &state));
    registered("text");
    registered("text_c");
    const char *taken[] = {"text", "text_c", "native", "internal", "external32"};
    for (int i = 0; i < 5; i++)
        REFUSED(MPI_Register_datarep(taken[i], of_text, to_text, extent_of, NULL), MPI_ERR_DUP_DATAREP);
    REFUSED(MPI_Register_datarep("other", of_text, to_text, NULL, NULL), MPI_ERR_ARG);
    REFUSED(MPI_Register_datarep(NULL, of_text, to_text, extent_of, NULL), MPI_ERR_ARG);
    REFUSED(MPI_Register_datarep("", of_text, to_text, extent_of, NULL), MPI_ERR_ARG);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    REFUSED(MPI_Register_datarep(name, of_text, to_text, extent_of, NULL), MPI_ERR_ARG);
    DONE(MPI_Register_datarep("failing", fails, fails, extent_of, &state));
    DONE(MPI_Register_datarep("as it is", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, &state));
    MPI_File fh = created();
    DONE(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "failing", MPI_INFO_NULL));
    REFUSED(MPI_File_write_at(fh, 0, &word, 1, MPI_INT, &status), MPI_ERR_CONVERSION);
    DONE(MPI_File_set_view(fh, 0, MPI_SHORT, MPI_SHORT, "as it is", MPI_INFO_NULL));
    DONE(MPI_File_write_at(fh, me, &(short){(short)me}, 1, MPI_SHORT, &status));
    short back = -1;
    DONE(MPI_File_read_at(fh, me, &back, 1, MPI_SHORT, &status));
    CHECK(back, me, "data that are not converted");
    DONE(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "as it is", MPI_INFO_NULL));
    REFUSED(MPI_File_write_at(fh, 0, &word, 1, MPI_INT, &status), MPI_ERR_CONVERSION);
    DONE(MPI_File_close(&fh));
    removed();
}

/* Displacements in bytes are those of the file, where a long has 4 bytes. */
static void displacements(void) {
    MPI_Datatype type;
    MPI_Aint bytes = -1;
    long data[3] = {10, 11, 12}, back[3] = {0};
    MPI_File fh = created();
    DONE(MPI_File_set_view(fh, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
    DONE(MPI_File_get_type_extent(fh, MPI_LONG, &bytes));
    MPI_Aint places[3] = {0, bytes, 3 * bytes};
    MPI_Type_create_hindexed(3, (int[]){1, 1, 1}, places, MPI_LONG, &type);
    MPI_Type_commit(&type);
    DONE(MPI_File_set_view(fh, 0, MPI_LONG, type, "external32", MPI_INFO_NULL));
    if (me == 0) DONE(MPI_File_write_at(fh, 0, data, 3, MPI_LONG, &status));
    DONE(MPI_File_sync(fh));
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_File_sync(fh));
    DONE(MPI_File_read_at(fh, 0, back, 3, MPI_LONG, &status));
    for (int i = 0; i < 3; i++) CHECK(back[i], data[i], "numbers at displacements of the file");
    DONE(MPI_File_close(&fh));
    MPI_Type_free(&type);
    removed();
}

int main(int argc, char **argv) {
    begin(&argc, &argv, "external");
    external32();
    representations();
    displacements();
    return finish();
}
