/* Split collective accesses, and the rule that a file has one of them at a time. */
#include "file_check.h"

static MPI_Status status;

static void data(void) {
    int sent[4], got[4];
    MPI_Offset base = 16 * me;
    MPI_File fh = created();
    for (int i = 0; i < 4; i++) sent[i] = 100 * me + i;
#define BACK(what)                                                          \
    do {                                                                    \
        CHECK(count_of(&status, MPI_INT), 4, what);                         \
        for (int i = 0; i < 4; i++) CHECK(got[i], sent[i], what " %d", i);  \
        memset(got, -1, sizeof got);                                        \
    } while (0)
    DONE(MPI_File_write_at_all_begin(fh, base, sent, 4, MPI_INT));
    DONE(MPI_File_write_at_all_end(fh, sent, &status));
    CHECK(count_of(&status, MPI_INT), 4, "write_at_all");
    DONE(MPI_File_read_at_all_begin(fh, base, got, 4, MPI_INT));
    DONE(MPI_File_read_at_all_end(fh, got, &status));
    BACK("read_at_all");
    DONE(MPI_File_write_at_all_begin_c(fh, base, sent, 4, MPI_INT));
    DONE(MPI_File_write_at_all_end(fh, sent, MPI_STATUS_IGNORE));
    DONE(MPI_File_read_at_all_begin_c(fh, base, got, 4, MPI_INT));
    DONE(MPI_File_read_at_all_end(fh, got, &status));
    BACK("read_at_all_begin_c");
    for (int large = 0; large < 2; large++) {
        DONE(MPI_File_seek(fh, base, MPI_SEEK_SET));
        if (large)
            DONE(MPI_File_write_all_begin_c(fh, sent, 4, MPI_INT));
        else
            DONE(MPI_File_write_all_begin(fh, sent, 4, MPI_INT));
        DONE(MPI_File_write_all_end(fh, sent, &status));
        DONE(MPI_File_seek(fh, base, MPI_SEEK_SET));
        if (large)
            DONE(MPI_File_read_all_begin_c(fh, got, 4, MPI_INT));
        else
            DONE(MPI_File_read_all_begin(fh, got, 4, MPI_INT));
        DONE(MPI_File_read_all_end(fh, got, &status));
        BACK("read_all");
        DONE(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
        if (large)
            DONE(MPI_File_write_ordered_begin_c(fh, sent, 4, MPI_INT));
        else
            DONE(MPI_File_write_ordered_begin(fh, sent, 4, MPI_INT));
        DONE(MPI_File_write_ordered_end(fh, sent, &status));
        CHECK(count_of(&status, MPI_INT), 4, "write_ordered");
        DONE(MPI_File_seek_shared(fh, 0, MPI_SEEK_SET));
        if (large)
            DONE(MPI_File_read_ordered_begin_c(fh, got, 4, MPI_INT));
        else
            DONE(MPI_File_read_ordered_begin(fh, got, 4, MPI_INT));
        DONE(MPI_File_read_ordered_end(fh, got, &status));
        BACK("read_ordered");
    }
    DONE(MPI_File_close(&fh));
    removed();
}

static void one_at_a_time(void) {
    int words[4] = {0}, others[4];
    MPI_File fh = created(), second = created();
    REFUSED(MPI_File_write_all_end(fh, words, &status), MPI_ERR_OTHER);
    DONE(MPI_File_write_all_begin(fh, words, 4, MPI_INT));
    REFUSED(MPI_File_write_all_begin(fh, words, 4, MPI_INT), MPI_ERR_OTHER);
    REFUSED(MPI_File_read_ordered_begin(fh, words, 4, MPI_INT), MPI_ERR_OTHER);
    REFUSED(MPI_File_write_at_all_begin(fh, 0, words, 4, MPI_INT), MPI_ERR_OTHER);
    REFUSED(MPI_File_write_all(fh, words, 4, MPI_INT, &status), MPI_ERR_OTHER);
    REFUSED(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_OTHER);
    REFUSED(MPI_File_set_size(fh, 4), MPI_ERR_OTHER);
    REFUSED(MPI_File_sync(fh), MPI_ERR_OTHER);
    REFUSED(MPI_File_close(&fh), MPI_ERR_OTHER);
    REFUSED(MPI_File_read_all_end(fh, words, &status), MPI_ERR_OTHER);
    REFUSED(MPI_File_write_all_end(fh, others, &status), MPI_ERR_BUFFER);
    /* Independent accesses, and other handles of the file, are free. */
    DONE(MPI_File_read_at(fh, 0, others, 1, MPI_INT, &status));
    DONE(MPI_File_write_all_begin(second, words, 4, MPI_INT));
    DONE(MPI_File_write_all_end(second, words, &status));
    DONE(MPI_File_write_all_end(fh, words, &status));
    REFUSED(MPI_File_write_all_end(fh, words, &status), MPI_ERR_OTHER);
    /* A first half that is refused has begun nothing. */
    REFUSED(MPI_File_write_all_begin(fh, words, -4, MPI_INT), MPI_ERR_COUNT);
    REFUSED(MPI_File_write_all_end(fh, words, &status), MPI_ERR_OTHER);
    DONE(MPI_File_close(&second));
    DONE(MPI_File_close(&fh));
    removed();
}

int main(int argc, char **argv) {
    begin(&argc, &argv, "split");
    data();
    one_at_a_time();
    return finish();
}
