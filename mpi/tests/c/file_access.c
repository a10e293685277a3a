/* Every independent and collective access: data, statuses, file pointers, the end of the file, requests. */
#include "file_check.h"

enum { LONG = 12 };

static int sent[LONG], got[LONG];
static MPI_Status status;

static void clear(void) { memset(got, -1, sizeof got); }

static void same(const char *what, int count) {
    CHECK(count_of(&status, MPI_INT), count, "%s: count", what);
    for (int i = 0; i < count; i++) CHECK(got[i], sent[i], "%s: element %d", what, i);
    for (int i = count; i < LONG; i++) CHECK(got[i], -1, "%s: element %d is not touched", what, i);
    clear();
}

static void complete(MPI_Request *request) {
    int flag = 0;
    memset(&status, -1, sizeof status);
    if (me % 2) {
        while (!flag) DONE(MPI_Test(request, &flag, &status));
    } else {
        DONE(MPI_Wait(request, &status));
    }
    CHECK(*request == MPI_REQUEST_NULL, 1, "the request");
}

static void explicit_offsets(MPI_File fh, MPI_Offset base) {
    MPI_Request request;
    DONE(MPI_File_write_at(fh, base, sent, LONG, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT), LONG, "write_at");
    DONE(MPI_File_read_at(fh, base, got, LONG, MPI_INT, &status));
    same("read_at", LONG);
    DONE(MPI_File_write_at_c(fh, base, sent, 3, MPI_INT, &status));
    DONE(MPI_File_read_at_c(fh, base, got, 5, MPI_INT, &status));
    same("read_at_c", 5);
    DONE(MPI_File_iwrite_at(fh, base, sent, 4, MPI_INT, &request));
    complete(&request);
    CHECK(count_of(&status, MPI_INT), 4, "iwrite_at");
    DONE(MPI_File_iread_at(fh, base, got, 4, MPI_INT, &request));
    complete(&request);
    same("iread_at", 4);
    DONE(MPI_File_iwrite_at_c(fh, base, sent, 4, MPI_INT, &request));
    complete(&request);
    DONE(MPI_File_iread_at_c(fh, base, got, 6, MPI_INT, &request));
    complete(&request);
    same("iread_at_c", 6);
    DONE(MPI_File_write_at_all(fh, base, sent, LONG, MPI_INT, &status));
    DONE(MPI_File_read_at_all(fh, base, got, LONG, MPI_INT, &status));
    same("read_at_all", LONG);
    DONE(MPI_File_write_at_all_c(fh, base, sent, me, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT), me, "write_at_all_c");
    DONE(MPI_File_read_at_all_c(fh, base, got, me, MPI_INT, &status));
    same("read_at_all_c", me);
    DONE(MPI_File_iwrite_at_all(fh, base, sent, 2, MPI_INT, &request));
    complete(&request);
    DONE(MPI_File_iread_at_all(fh, base, got, 2, MPI_INT, &request));
    complete(&request);
    same("iread_at_all", 2);
    DONE(MPI_File_iwrite_at_all_c(fh, base, sent, 7, MPI_INT, &request));
    complete(&request);
    DONE(MPI_File_iread_at_all_c(fh, base, got, 7, MPI_INT, &request));
    complete(&request);
    same("iread_at_all_c", 7);
}

static void seek(MPI_File fh, MPI_Offset base) { DONE(MPI_File_seek(fh, base, MPI_SEEK_SET)); }

static void at(MPI_File fh, MPI_Offset expected) {
    MPI_Offset position = -7;
    DONE(MPI_File_get_position(fh, &position));
    CHECK(position, expected, "the file pointer");
}

static void individual_pointer(MPI_File fh, MPI_Offset base) {
    MPI_Request request;
    seek(fh, base);
    DONE(MPI_File_write(fh, sent, 4, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT), 4, "write");
    at(fh, base + 16);
    DONE(MPI_File_write_c(fh, sent + 4, 4, MPI_INT, &status));
    at(fh, base + 32);
    seek(fh, base);
    DONE(MPI_File_read(fh, got, 4, MPI_INT, &status));
    DONE(MPI_File_read_c(fh, got + 4, 4, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT), 4, "read_c");
    DONE(MPI_File_seek(fh, -32, MPI_SEEK_CUR));
    at(fh, base);
    DONE(MPI_File_read(fh, got, 8, MPI_INT, &status));
    same("read", 8);
    seek(fh, base);
    DONE(MPI_File_iwrite(fh, sent, 2, MPI_INT, &request));
    complete(&request);
    DONE(MPI_File_iwrite_c(fh, sent + 2, 2, MPI_INT, &request));
    complete(&request);
    at(fh, base + 16);
    seek(fh, base);
    DONE(MPI_File_iread(fh, got, 3, MPI_INT, &request));
    complete(&request);
    same("iread", 3);
    seek(fh, base);
    DONE(MPI_File_iread_c(fh, got, 4, MPI_INT, &request));
    complete(&request);
    same("iread_c", 4);
    seek(fh, base);
    DONE(MPI_File_write_all(fh, sent, 5, MPI_INT, &status));
    DONE(MPI_File_write_all_c(fh, sent + 5, 2, MPI_INT, &status));
    seek(fh, base);
    DONE(MPI_File_read_all(fh, got, 5, MPI_INT, &status));
    same("read_all", 5);
    seek(fh, base);
    DONE(MPI_File_read_all_c(fh, got, 7, MPI_INT, &status));
    same("read_all_c", 7);
    seek(fh, base);
    DONE(MPI_File_iwrite_all(fh, sent, 5, MPI_INT, &request));
    complete(&request);
    DONE(MPI_File_iwrite_all_c(fh, sent + 5, 2, MPI_INT, &request));
    complete(&request);
    seek(fh, base);
    DONE(MPI_File_iread_all(fh, got, 5, MPI_INT, &request));
    complete(&request);
    same("iread_all", 5);
    seek(fh, base);
    DONE(MPI_File_iread_all_c(fh, got, 7, MPI_INT, &request));
    complete(&request);
    same("iread_all_c", 7);
}

/* A file of 10 bytes. */
static void end_of_file(void) {
    char bytes[16];
    MPI_Offset end;
    MPI_Request requests[3];
    MPI_Status all[3];
    MPI_Datatype pair;
    MPI_Count elements;
    MPI_File fh = created();
    memset(bytes, 5, sizeof bytes);
    DONE(MPI_File_set_size(fh, 0));
    if (me == 0) DONE(MPI_File_write(fh, bytes, 10, MPI_BYTE, &status));
    DONE(MPI_File_sync(fh));
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_File_get_size(fh, &end));
    CHECK(end, 10, "size");
    DONE(MPI_File_read_at(fh, 4, bytes, 16, MPI_BYTE, &status));
    CHECK(count_of(&status, MPI_BYTE), 6, "a short read");
    CHECK(count_of(&status, MPI_INT), MPI_UNDEFINED, "no whole number of elements");
    DONE(MPI_File_read_at(fh, 10, bytes, 1, MPI_BYTE, &status));
    CHECK(count_of(&status, MPI_BYTE), 0, "at the end");
    DONE(MPI_File_read_at(fh, 1000, bytes, 4, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT), 0, "beyond the end");
    MPI_Type_contiguous(2, MPI_SHORT, &pair);
    MPI_Type_commit(&pair);
    DONE(MPI_File_read_at(fh, 0, bytes, 4, pair, &status));
    DONE(MPI_Get_elements_c(&status, pair, &elements));
    CHECK(elements, 5, "elements");
    CHECK(count_of(&status, pair), MPI_UNDEFINED, "pairs");
    MPI_Type_free(&pair);
    DONE(MPI_File_seek(fh, 0, MPI_SEEK_END));
    at(fh, 10);
    DONE(MPI_File_seek(fh, -3, MPI_SEEK_END));
    DONE(MPI_File_read(fh, bytes, 16, MPI_BYTE, &status));
    CHECK(count_of(&status, MPI_BYTE), 3, "the last bytes");
    at(fh, 10);
    DONE(MPI_File_iread_at(fh, 0, bytes, 16, MPI_BYTE, &requests[0]));
    DONE(MPI_File_iread_at(fh, 9, bytes, 16, MPI_BYTE, &requests[1]));
    DONE(MPI_File_iread_at(fh, 10, bytes, 16, MPI_BYTE, &requests[2]));
    DONE(MPI_Waitall(3, requests, all));
    for (int i = 0; i < 3; i++) CHECK(count_of(&all[i], MPI_BYTE), i == 0 ? 10 : 2 - i, "request %d", i);
    DONE(MPI_File_iread_at(fh, 3, bytes, 16, MPI_BYTE, &requests[0]));
    DONE(MPI_Request_free(&requests[0]));
    DONE(MPI_File_close(&fh));
    removed();
}

static void bad_arguments(void) {
    MPI_Request request;
    MPI_Datatype raw;
    MPI_Offset offset;
    MPI_File fh = created();
    MPI_Type_contiguous(2, MPI_INT, &raw);
    REFUSED(MPI_File_read_at(fh, -1, got, 1, MPI_INT, &status), MPI_ERR_ARG);
    REFUSED(MPI_File_write_at(fh, -5, got, 1, MPI_INT, &status), MPI_ERR_ARG);
    REFUSED(MPI_File_write_at(fh, 0x7ffffffffffffffe, got, 1, MPI_INT, &status), MPI_ERR_ARG);
    REFUSED(MPI_File_read(fh, got, -1, MPI_INT, &status), MPI_ERR_COUNT);
    REFUSED(MPI_File_write_c(fh, got, -1, MPI_INT, &status), MPI_ERR_COUNT);
    REFUSED(MPI_File_read_c(fh, got, 0x7fffffffffffffff, MPI_INT, &status), MPI_ERR_COUNT);
    REFUSED(MPI_File_read(fh, got, 1, MPI_DATATYPE_NULL, &status), MPI_ERR_TYPE);
    REFUSED(MPI_File_read(fh, got, 1, raw, &status), MPI_ERR_TYPE);
    REFUSED(MPI_File_iread(fh, got, 1, MPI_INT, NULL), MPI_ERR_ARG);
    REFUSED(MPI_File_iwrite_at(fh, 0, got, -2, MPI_INT, &request), MPI_ERR_COUNT);
    REFUSED(MPI_File_write(fh, NULL, 4, MPI_INT, &status), MPI_ERR_BUFFER);
    REFUSED(MPI_File_seek(fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    REFUSED(MPI_File_seek(fh, -1, MPI_SEEK_CUR), MPI_ERR_ARG);
    REFUSED(MPI_File_seek(fh, 0, 77), MPI_ERR_ARG);
    REFUSED(MPI_File_get_position(fh, NULL), MPI_ERR_ARG);
    REFUSED(MPI_File_get_byte_offset(fh, -1, &offset), MPI_ERR_ARG);
    DONE(MPI_File_write(fh, NULL, 0, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT), 0, "nothing");
    at(fh, 0);
    MPI_Type_free(&raw);
    DONE(MPI_File_close(&fh));
    removed();
}

int main(int argc, char **argv) {
    begin(&argc, &argv, "access");
    for (int i = 0; i < LONG; i++) sent[i] = 1000 * me + i;
    clear();
    MPI_File fh = created();
    explicit_offsets(fh, (MPI_Offset)me * sizeof sent);
    individual_pointer(fh, (MPI_Offset)(n + me) * sizeof sent);
    DONE(MPI_File_close(&fh));
    removed();
    end_of_file();
    bad_arguments();
    return finish();
}
