/* Atomic mode, sizes, and the transfer to the device. */
#include "file_check.h"

enum { BLOCKS = 1024, ROUNDS = 50 };

/* All processes write the same places again and again. A read in atomic mode sees the data of one. */
static void one_writer_at_a_time(int has_holes) {
    int words[BLOCKS], flag;
    MPI_Datatype every;
    MPI_Status status;
    MPI_File fh = created();
    MPI_Type_create_resized(MPI_INT, 0, has_holes ? 8 : 4, &every);
    MPI_Type_commit(&every);
    DONE(MPI_File_set_view(fh, 0, MPI_INT, every, "native", MPI_INFO_NULL));
    DONE(MPI_File_get_atomicity(fh, &flag));
    CHECK(flag, 0, "the mode of a new file");
    DONE(MPI_File_set_atomicity(fh, 1));
    DONE(MPI_File_get_atomicity(fh, &flag));
    CHECK(flag, 1, "atomic mode");
    memset(words, 0, sizeof words);
    if (me == 0) DONE(MPI_File_write_at(fh, 0, words, BLOCKS, MPI_INT, &status));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BLOCKS; i++) words[i] = 1000 * me + round + 1;
        DONE(MPI_File_write_at(fh, 0, words, BLOCKS, MPI_INT, &status));
        DONE(MPI_File_read_at(fh, 0, words, BLOCKS, MPI_INT, &status));
        CHECK(count_of(&status, MPI_INT), BLOCKS, "count");
        for (int i = 1; i < BLOCKS; i++) CHECK(words[i], words[0], "word %d of round %d", i, round);
    }
    DONE(MPI_File_read_all(fh, words, BLOCKS, MPI_INT, &status));
    DONE(MPI_File_set_atomicity(fh, 0));
    DONE(MPI_File_get_atomicity(fh, &flag));
    CHECK(flag, 0, "the usual mode");
    if (n > 1) REFUSED(MPI_File_set_atomicity(fh, me == 0), MPI_ERR_NOT_SAME);
    REFUSED(MPI_File_get_atomicity(fh, NULL), MPI_ERR_ARG);
    MPI_Type_free(&every);
    DONE(MPI_File_close(&fh));
    removed();
}

/* Two handles of one file in one process. */
static void two_handles(void) {
    char own[300];
    int words[BLOCKS] = {0};
    MPI_File fh[2];
    snprintf(own, sizeof own, "%s-%d", path, me);
    for (int i = 0; i < 2; i++) {
        DONE(MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &fh[i]));
        DONE(MPI_File_set_atomicity(fh[i], 1));
    }
    for (int i = 0; i < 20; i++) {
        int got = -1;
        words[0] = i;
        DONE(MPI_File_write_at(fh[i % 2], 0, words, BLOCKS, MPI_INT, MPI_STATUS_IGNORE));
        DONE(MPI_File_read_at(fh[(i + 1) % 2], 0, &got, 1, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(got, i, "the other handle");
    }
    DONE(MPI_File_close(&fh[0]));
    DONE(MPI_File_close(&fh[1]));
    DONE(MPI_File_delete(own, MPI_INFO_NULL));
}

static void sizes(void) {
    MPI_Offset size;
    unsigned char bytes[64];
    MPI_File fh = created();
#define HAS(expected)                        \
    do {                                     \
        DONE(MPI_File_get_size(fh, &size));  \
        CHECK(size, expected, "the size");   \
        MPI_Barrier(MPI_COMM_WORLD);         \
    } while (0)
    DONE(MPI_File_set_size(fh, 40));
    HAS(40);
    DONE(MPI_File_preallocate(fh, 20));
    HAS(40);
    DONE(MPI_File_preallocate(fh, 60));
    HAS(60);
    DONE(MPI_File_preallocate(fh, 0));
    DONE(MPI_File_write_at(fh, me, "x", 1, MPI_BYTE, MPI_STATUS_IGNORE));
    DONE(MPI_File_sync(fh));
    CHECK(contents(bytes, 64), 60, "the bytes of the file");
    for (int i = 0; i < 60 && n < 60; i++) CHECK(bytes[i], i < n ? 'x' : 0, "byte %d", i);
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_File_set_size(fh, 1));
    HAS(1);
    DONE(MPI_File_set_size(fh, (MPI_Offset)5 << 32));
    HAS((MPI_Offset)5 << 32);
    REFUSED(MPI_File_set_size(fh, -1), MPI_ERR_ARG);
    REFUSED(MPI_File_preallocate(fh, -1), MPI_ERR_ARG);
    REFUSED(MPI_File_get_size(fh, NULL), MPI_ERR_ARG);
    if (n > 1) {
        REFUSED(MPI_File_set_size(fh, me), MPI_ERR_NOT_SAME);
        REFUSED(MPI_File_preallocate(fh, me), MPI_ERR_NOT_SAME);
    }
    /* Places beyond 4 GiB, in a file with a hole. */
    MPI_Offset far = ((MPI_Offset)3 << 32) + 8 * me;
    long word = me, got = -1;
    DONE(MPI_File_write_at(fh, far, &word, 1, MPI_LONG, MPI_STATUS_IGNORE));
    DONE(MPI_File_read_at(fh, far, &got, 1, MPI_LONG, MPI_STATUS_IGNORE));
    CHECK(got, me, "a word far away");
    DONE(MPI_File_set_view(fh, far, MPI_LONG, MPI_LONG, "native", MPI_INFO_NULL));
    DONE(MPI_File_get_byte_offset(fh, (MPI_Offset)1 << 40, &size));
    CHECK(size, far + ((MPI_Offset)1 << 43), "a byte offset");
    DONE(MPI_File_close(&fh));
    removed();
}

int main(int argc, char **argv) {
    begin(&argc, &argv, "atomic");
    one_writer_at_a_time(0);
    one_writer_at_a_time(1);
    two_handles();
    sizes();
    return finish();
}
