/* The shared file pointer: places of concurrent accesses, ordered accesses, sequential files. */
#include "file_check.h"

enum { ROUNDS = 60 };

/* Each record appears once, and those of a process in their order. */
static void records_of_all(MPI_File fh, int total) {
    int *all = malloc(sizeof *all * 2 * (size_t)total), *next = calloc((size_t)n, sizeof *next);
    MPI_Status status;
    DONE(MPI_File_read_at(fh, 0, all, 2 * total, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT), 2 * total, "all records");
    for (int i = 0; i < total; i++) {
        int of = all[2 * i];
        CHECK(of >= 0 && of < n, 1, "the rank of record %d", i);
        if (of >= 0 && of < n) CHECK(all[2 * i + 1], next[of]++, "the number of record %d", i);
    }
    free(all);
    free(next);
}

static void concurrent(void) {
    MPI_Offset position;
    MPI_Request request;
    MPI_Status status;
    MPI_File fh = created();
    for (int i = 0; i < ROUNDS; i++) {
        int record[2] = {me, i};
        switch (i % 4) {
        case 0: DONE(MPI_File_write_shared(fh, record, 2, MPI_INT, &status)); break;
        case 1: DONE(MPI_File_write_shared_c(fh, record, 2, MPI_INT, &status)); break;
        case 2: DONE(MPI_File_iwrite_shared(fh, record, 2, MPI_INT, &request)); break;
        default: DONE(MPI_File_iwrite_shared_c(fh, record, 2, MPI_INT, &request));
        }
        if (i % 4 >= 2) DONE(MPI_Wait(&request, &status));
        CHECK(count_of(&status, MPI_INT), 2, "a record");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_File_get_position_shared(fh, &position));
    CHECK(position, 8 * ROUNDS * n, "the pointer");
    records_of_all(fh, ROUNDS * n);
    DONE(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
    long long mine = 0, sum, expected = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int record[2] = {-1, -1};
        switch (i % 4) {
        case 0: DONE(MPI_File_read_shared(fh, record, 2, MPI_INT, &status)); break;
        case 1: DONE(MPI_File_read_shared_c(fh, record, 2, MPI_INT, &status)); break;
        case 2: DONE(MPI_File_iread_shared(fh, record, 2, MPI_INT, &request)); break;
        default: DONE(MPI_File_iread_shared_c(fh, record, 2, MPI_INT, &request));
        }
        if (i % 4 >= 2) DONE(MPI_Wait(&request, &status));
        mine += record[0] * 1000 + record[1];
    }
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int of = 0; of < n; of++)
        for (int i = 0; i < ROUNDS; i++) expected += of * 1000 + i;
    CHECK(sum, expected, "all records are read once");
    int word = 5;
    DONE(MPI_File_read_shared(fh, &word, 1, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT), 0, "at the end");
    DONE(MPI_File_close(&fh));
    removed();
}

static void ordered(void) {
    int words[16], length = 0;
    MPI_Status status;
    MPI_Offset position;
    MPI_File fh = created();
    /* Process r gives r + 1 numbers, and in each second round none. */
    for (int round = 0; round < 6; round++) {
        int count = (me + round) % 2 ? 0 : me % 8 + 1;
        for (int i = 0; i < count; i++) words[i] = 10000 * round + 100 * me + i;
        if (round % 2)
            DONE(MPI_File_write_ordered(fh, words, count, MPI_INT, &status));
        else
            DONE(MPI_File_write_ordered_c(fh, words, count, MPI_INT, &status));
        CHECK(count_of(&status, MPI_INT), count, "round %d", round);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < 6; round++)
        for (int of = 0; of < n; of++)
            for (int i = 0; i < ((of + round) % 2 ? 0 : of % 8 + 1); i++, length++) {
                int word = -1;
                DONE(MPI_File_read_at(fh, 4 * length, &word, 1, MPI_INT, &status));
                CHECK(word, 10000 * round + 100 * of + i, "number %d", length);
            }
    DONE(MPI_File_get_position_shared(fh, &position));
    CHECK(position, 4 * length, "the pointer");
    DONE(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
    for (int round = 0; round < 6; round++) {
        int count = (me + round) % 2 ? 0 : me % 8 + 1;
        memset(words, -1, sizeof words);
        if (round % 2)
            DONE(MPI_File_read_ordered(fh, words, count, MPI_INT, &status));
        else
            DONE(MPI_File_read_ordered_c(fh, words, count, MPI_INT, &status));
        CHECK(count_of(&status, MPI_INT), count, "reading round %d", round);
        for (int i = 0; i < count; i++) CHECK(words[i], 10000 * round + 100 * me + i, "number %d", i);
    }
    DONE(MPI_File_seek_shared(fh, -4, MPI_SEEK_END));
    DONE(MPI_File_get_position_shared(fh, &position));
    CHECK(position, 4 * length - 4, "from the end");
    DONE(MPI_File_seek_shared(fh, 4, MPI_SEEK_CUR));
    DONE(MPI_File_get_position_shared(fh, &position));
    CHECK(position, 4 * length, "from the pointer");
    /* At the end the last processes get nothing. */
    DONE(MPI_File_seek_shared(fh, -4, MPI_SEEK_END));
    DONE(MPI_File_read_ordered(fh, words, 1, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT), me == 0, "the last number");
    REFUSED(MPI_File_seek_shared(fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    REFUSED(MPI_File_seek_shared(fh, 0, 5), MPI_ERR_ARG);
    if (n > 1) REFUSED(MPI_File_seek_shared(fh, me == 0, MPI_SEEK_SET), MPI_ERR_NOT_SAME);
    /* All fail if one does. */
    REFUSED(MPI_File_write_ordered(fh, words, me == n - 1 ? -1 : 1, MPI_INT, &status), MPI_ERR_COUNT);
    DONE(MPI_File_close(&fh));
    removed();
}

static void views(void) {
    MPI_Datatype every;
    MPI_Status status;
    MPI_File fh = created();
    int word = me, all[64];
    MPI_Type_create_resized(MPI_INT, 0, 12, &every);
    MPI_Type_commit(&every);
    DONE(MPI_File_set_view(fh, 4, MPI_INT, every, "native", MPI_INFO_NULL));
    DONE(MPI_File_write_ordered(fh, &word, 1, MPI_INT, &status));
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_File_set_view(fh, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    DONE(MPI_File_read_at(fh, 0, all, 64, MPI_INT, &status));
    for (int i = 0; i < n && i < 20; i++) CHECK(all[3 * i + 1], i, "place %d", i);
    MPI_Type_free(&every);
    DONE(MPI_File_close(&fh));
    removed();
}

static void sequential(void) {
    int word = me;
    MPI_Offset offset;
    MPI_Status status;
    MPI_Request request;
    MPI_File fh = opened(MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL);
    int wrong = MPI_ERR_UNSUPPORTED_OPERATION;
    REFUSED(MPI_File_write(fh, &word, 1, MPI_INT, &status), wrong);
    REFUSED(MPI_File_write_at(fh, 0, &word, 1, MPI_INT, &status), wrong);
    REFUSED(MPI_File_iwrite_at(fh, 0, &word, 1, MPI_INT, &request), wrong);
    REFUSED(MPI_File_write_all(fh, &word, 1, MPI_INT, &status), wrong);
    REFUSED(MPI_File_seek(fh, 0, MPI_SEEK_SET), wrong);
    REFUSED(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET), wrong);
    REFUSED(MPI_File_get_position(fh, &offset), wrong);
    REFUSED(MPI_File_get_position_shared(fh, &offset), wrong);
    REFUSED(MPI_File_get_byte_offset(fh, 0, &offset), wrong);
    REFUSED(MPI_File_set_size(fh, 0), wrong);
    REFUSED(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    DONE(MPI_File_write_ordered(fh, &word, 1, MPI_INT, &status));
    DONE(MPI_File_set_view(fh, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    DONE(MPI_File_get_view(fh, &offset, &(MPI_Datatype){MPI_INT}, &(MPI_Datatype){MPI_INT},
                           (char[MPI_MAX_DATAREP_STRING]){0}));
    CHECK(offset, 4 * n, "the current displacement");
    DONE(MPI_File_write_shared(fh, &word, 1, MPI_INT, &status));
    DONE(MPI_File_close(&fh));
    fh = opened(MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
    DONE(MPI_File_read_ordered(fh, &word, 1, MPI_INT, &status));
    CHECK(word, me, "the number of this process");
    DONE(MPI_File_close(&fh));
    fh = opened(MPI_MODE_RDONLY);
    DONE(MPI_File_get_size(fh, &offset));
    CHECK(offset, 8 * n, "the size");
    REFUSED(MPI_File_set_view(fh, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL),
            MPI_ERR_ARG);
    DONE(MPI_File_close(&fh));
    removed();
}

/* The displacement that a new view begins at counts the accesses of all, also of one that comes late. */
static void current_displacement(void) {
    enum { WRITES = 300 };
    int word = me;
    MPI_Offset offset;
    MPI_Datatype type;
    MPI_Status status;
    char name[MPI_MAX_DATAREP_STRING];
    MPI_File fh = opened(MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL);
    for (int i = 0; i < WRITES && me == 0; i++) DONE(MPI_File_write_shared(fh, &word, 1, MPI_INT, &status));
    DONE(MPI_File_set_view(fh, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    DONE(MPI_File_get_view(fh, &offset, &type, &type, name));
    CHECK(offset, 4 * WRITES, "the displacement of the view");
    DONE(MPI_File_close(&fh));
    removed();
}

int main(int argc, char **argv) {
    begin(&argc, &argv, "shared");
    concurrent();
    ordered();
    views();
    sequential();
    current_displacement();
    return finish();
}
