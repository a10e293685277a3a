/* Error handlers of files, and handles that are no files. */
#include "file_check.h"

static int calls, last;
static MPI_File whose;

static void note(MPI_File *fh, int *code, ...) {
    calls++;
    last = *code;
    whose = *fh;
}

static void default_handler(void) {
    MPI_Errhandler found, own;
    MPI_File fh;
    DONE(MPI_File_get_errhandler(MPI_FILE_NULL, &found));
    CHECK(found == MPI_ERRORS_RETURN, 1, "the handler at the beginning");
    DONE(MPI_File_create_errhandler(note, &own));
    DONE(MPI_File_set_errhandler(MPI_FILE_NULL, own));
    DONE(MPI_File_get_errhandler(MPI_FILE_NULL, &found));
    CHECK(found == own, 1, "the handler that was set");
    DONE(MPI_Errhandler_free(&found));
    REFUSED(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &fh), MPI_ERR_NO_SUCH_FILE);
    CHECK(calls == 1 && last == MPI_ERR_NO_SUCH_FILE && whose == MPI_FILE_NULL, 1, "an error of open");
    REFUSED(MPI_File_delete(path, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
    CHECK(calls, 2, "an error of delete");
    REFUSED(MPI_File_sync(MPI_FILE_NULL), MPI_ERR_FILE);
    CHECK(calls == 3 && last == MPI_ERR_FILE, 1, "an error of no file");
    /* Files are opened with it. */
    fh = created();
    REFUSED(MPI_File_seek(fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    CHECK(calls == 4 && whose == fh, 1, "an error of a file");
    DONE(MPI_File_set_errhandler(fh, MPI_ERRORS_RETURN));
    REFUSED(MPI_File_seek(fh, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    CHECK(calls, 4, "the handler was replaced");
    DONE(MPI_File_set_errhandler(fh, own));
    DONE(MPI_File_call_errhandler(fh, MPI_ERR_QUOTA));
    CHECK(calls == 5 && last == MPI_ERR_QUOTA && whose == fh, 1, "a call");
    DONE(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
    DONE(MPI_Errhandler_free(&own));
    DONE(MPI_File_call_errhandler(fh, MPI_ERR_IO));
    CHECK(calls, 6, "a handler that was freed");
    DONE(MPI_File_close(&fh));
    removed();
}

static void wrong_handlers(void) {
    MPI_Errhandler other;
    MPI_File fh = created();
    MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)0 + 1, &other);
    REFUSED(MPI_File_set_errhandler(fh, other), MPI_ERR_ERRHANDLER);
    REFUSED(MPI_File_set_errhandler(fh, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
    REFUSED(MPI_File_get_errhandler(fh, NULL), MPI_ERR_ARG);
    MPI_Errhandler_free(&other);
    DONE(MPI_File_close(&fh));
    CHECK(fh == MPI_FILE_NULL, 1, "the handle of a closed file");
    removed();
}

static void no_files(void) {
    int word = 0;
    MPI_Offset at;
    MPI_Info info;
    MPI_Group group;
    MPI_Status status;
    MPI_Request request;
    MPI_Datatype type;
    MPI_Errhandler handler;
    MPI_Aint extent;
    char name[MPI_MAX_DATAREP_STRING];
    MPI_File fh = created(), stale = fh;
    DONE(MPI_File_close(&fh));
    removed();
    MPI_File wrong[] = {MPI_FILE_NULL, stale, (MPI_File)12345};
    for (int i = 0; i < 3; i++) {
        MPI_File file = wrong[i];
        REFUSED(MPI_File_close(&file), MPI_ERR_FILE);
        REFUSED(MPI_File_read(file, &word, 1, MPI_INT, &status), MPI_ERR_FILE);
        REFUSED(MPI_File_write_at(file, 0, &word, 1, MPI_INT, &status), MPI_ERR_FILE);
        REFUSED(MPI_File_iwrite(file, &word, 1, MPI_INT, &request), MPI_ERR_FILE);
        REFUSED(MPI_File_read_all(file, &word, 1, MPI_INT, &status), MPI_ERR_FILE);
        REFUSED(MPI_File_write_shared(file, &word, 1, MPI_INT, &status), MPI_ERR_FILE);
        REFUSED(MPI_File_write_ordered(file, &word, 1, MPI_INT, &status), MPI_ERR_FILE);
        REFUSED(MPI_File_read_all_begin(file, &word, 1, MPI_INT), MPI_ERR_FILE);
        REFUSED(MPI_File_read_all_end(file, &word, &status), MPI_ERR_FILE);
        REFUSED(MPI_File_seek(file, 0, MPI_SEEK_SET), MPI_ERR_FILE);
        REFUSED(MPI_File_seek_shared(file, 0, MPI_SEEK_SET), MPI_ERR_FILE);
        REFUSED(MPI_File_get_position(file, &at), MPI_ERR_FILE);
        REFUSED(MPI_File_get_position_shared(file, &at), MPI_ERR_FILE);
        REFUSED(MPI_File_get_byte_offset(file, 0, &at), MPI_ERR_FILE);
        REFUSED(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_FILE);
        REFUSED(MPI_File_get_view(file, &at, &type, &type, name), MPI_ERR_FILE);
        REFUSED(MPI_File_get_type_extent(file, MPI_INT, &extent), MPI_ERR_FILE);
        REFUSED(MPI_File_set_size(file, 0), MPI_ERR_FILE);
        REFUSED(MPI_File_get_size(file, &at), MPI_ERR_FILE);
        REFUSED(MPI_File_preallocate(file, 0), MPI_ERR_FILE);
        REFUSED(MPI_File_get_group(file, &group), MPI_ERR_FILE);
        REFUSED(MPI_File_get_amode(file, &word), MPI_ERR_FILE);
        REFUSED(MPI_File_get_info(file, &info), MPI_ERR_FILE);
        REFUSED(MPI_File_set_info(file, MPI_INFO_NULL), MPI_ERR_FILE);
        REFUSED(MPI_File_get_atomicity(file, &word), MPI_ERR_FILE);
        REFUSED(MPI_File_set_atomicity(file, 0), MPI_ERR_FILE);
        REFUSED(MPI_File_sync(file), MPI_ERR_FILE);
        if (i > 0) REFUSED(MPI_File_get_errhandler(file, &handler), MPI_ERR_FILE);
        if (i > 0) REFUSED(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN), MPI_ERR_FILE);
        if (i > 0) REFUSED(MPI_File_call_errhandler(file, MPI_ERR_IO), MPI_ERR_FILE);
    }
    REFUSED(MPI_File_close(NULL), MPI_ERR_ARG);
    REFUSED(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, NULL),
            MPI_ERR_ARG);
    CHECK(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) == MPI_FILE_NULL, 1, "the null handle as an integer");
}

int main(int argc, char **argv) {
    begin(&argc, &argv, "handlers");
    default_handler();
    wrong_handlers();
    no_files();
    return finish();
}
