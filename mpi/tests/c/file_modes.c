/* Opening, closing and deleting files: access modes, errors, and agreement of all processes on them. */
#include "file_check.h"
#include <signal.h>
#include <sys/resource.h>

static int try_open(const char *name, int amode) {
    MPI_File fh = MPI_FILE_NULL;
    int code = MPI_File_open(MPI_COMM_WORLD, name, amode, MPI_INFO_NULL, &fh);
    if (code == MPI_SUCCESS) DONE(MPI_File_close(&fh));
    CHECK(fh == MPI_FILE_NULL, 1, "the handle of %s", name);
    return code;
}

static void wrong_modes(void) {
    int wrong[] = {0, MPI_MODE_CREATE, MPI_MODE_RDONLY | MPI_MODE_WRONLY, MPI_MODE_RDONLY | MPI_MODE_RDWR,
                   MPI_MODE_WRONLY | MPI_MODE_RDWR, MPI_MODE_RDONLY | MPI_MODE_CREATE,
                   MPI_MODE_RDONLY | MPI_MODE_EXCL, MPI_MODE_RDWR | MPI_MODE_SEQUENTIAL | MPI_MODE_CREATE,
                   MPI_MODE_RDWR | 512, -1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(try_open(path, wrong[i]), MPI_ERR_AMODE, "amode %d", wrong[i]);
    if (n > 1) {
        int amode = MPI_MODE_CREATE | (me == 0 ? MPI_MODE_RDWR : MPI_MODE_WRONLY);
        REFUSED(try_open(path, amode), MPI_ERR_NOT_SAME);
    }
    CHECK(access(path, F_OK), -1, "a refused call has created the file");
}

static void wrong_names(void) {
    char name[5000];
    REFUSED(try_open(path, MPI_MODE_RDONLY), MPI_ERR_NO_SUCH_FILE);
    REFUSED(try_open(path, MPI_MODE_RDWR), MPI_ERR_NO_SUCH_FILE);
    REFUSED(try_open(NULL, MPI_MODE_RDONLY), MPI_ERR_BAD_FILE);
    REFUSED(try_open("", MPI_MODE_RDONLY), MPI_ERR_BAD_FILE);
    REFUSED(try_open("/tmp", MPI_MODE_RDONLY), MPI_ERR_BAD_FILE);
    REFUSED(try_open("/tmp", MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_BAD_FILE);
    REFUSED(try_open("/no such folder/file", MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_NO_SUCH_FILE);
    REFUSED(try_open("/etc/passwd/file", MPI_MODE_RDONLY), MPI_ERR_BAD_FILE);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    REFUSED(try_open(name, MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_BAD_FILE);
    if (geteuid() != 0) REFUSED(try_open("/etc/shadow", MPI_MODE_RDONLY), MPI_ERR_ACCESS);
    /* One process alone is wrong: all fail, with its class. */
    REFUSED(try_open(me == n - 1 ? "" : path, MPI_MODE_RDWR | MPI_MODE_CREATE), MPI_ERR_BAD_FILE);
    REFUSED(try_open(me == n - 1 ? "/no such folder/file" : path, MPI_MODE_RDWR | MPI_MODE_CREATE),
            MPI_ERR_NO_SUCH_FILE);
    removed();
}

static void messages(void) {
    char text[MPI_MAX_ERROR_STRING];
    int length;
    int code = try_open(path, MPI_MODE_RDONLY);
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, path) != NULL && strstr(text, "MPI_File_open") != NULL, 1, "the message %s", text);
    code = try_open("/tmp", MPI_MODE_RDONLY);
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, "/tmp") != NULL, 1, "the message %s", text);
}

static void exclusive_and_deleted(void) {
    MPI_File fh;
    DONE(try_open(path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL));
    REFUSED(try_open(path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL), MPI_ERR_FILE_EXISTS);
    DONE(try_open(path, MPI_MODE_RDWR | MPI_MODE_CREATE));
    fh = opened(MPI_MODE_RDONLY | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN);
    CHECK(access(path, F_OK), 0, "the file is there until it is closed");
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_File_close(&fh));
    CHECK(access(path, F_OK), -1, "the file is gone when it is closed");
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) {
        REFUSED(MPI_File_delete(path, MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);
        REFUSED(MPI_File_delete(NULL, MPI_INFO_NULL), MPI_ERR_BAD_FILE);
        REFUSED(MPI_File_delete("", MPI_INFO_NULL), MPI_ERR_BAD_FILE);
        REFUSED(MPI_File_delete("/tmp/.", MPI_INFO_NULL), MPI_ERR_BAD_FILE);
    }
    DONE(try_open(path, MPI_MODE_WRONLY | MPI_MODE_CREATE));
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) DONE(MPI_File_delete(path, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
}

static void permissions(void) {
    MPI_File fh;
    MPI_Info info, used;
    struct stat found;
    char value[64];
    int flag, length = 64;
    MPI_Info_create(&info);
    MPI_Info_set(info, "file_perm", "0640");
    MPI_Info_set(info, "unknown", "1");
    DONE(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, info, &fh));
    CHECK(stat(path, &found), 0, "stat");
    mode_t mask = umask(0);
    umask(mask);
    CHECK(found.st_mode & 0777, 0640 & ~mask, "permissions");
    DONE(MPI_File_get_info(fh, &used));
    MPI_Info_get_string(used, "file_perm", &length, value, &flag);
    CHECK(flag && !strcmp(value, "0640"), 1, "file_perm is %s", flag ? value : "absent");
    MPI_Info_get_valuelen(used, "unknown", &length, &flag);
    CHECK(flag, 0, "an unknown hint");
    MPI_Info_get_valuelen(used, "filename", &length, &flag);
    CHECK(flag && length == (int)strlen(path), 1, "filename");
    MPI_Info_free(&used);
    DONE(MPI_File_set_info(fh, info));
    MPI_Info_free(&info);
    REFUSED(MPI_File_set_info(fh, MPI_INFO_NULL), MPI_ERR_INFO);
    DONE(MPI_File_close(&fh));
    removed();
}

static void append(void) {
    MPI_Offset at;
    int word = me;
    MPI_File fh = created();
    DONE(MPI_File_write_at(fh, me * 4, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
    DONE(MPI_File_close(&fh));
    fh = opened(MPI_MODE_RDWR | MPI_MODE_APPEND);
    DONE(MPI_File_get_position(fh, &at));
    CHECK(at, 4 * n, "the individual pointer");
    DONE(MPI_File_get_position_shared(fh, &at));
    CHECK(at, 4 * n, "the shared pointer");
    DONE(MPI_File_write_ordered(fh, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
    DONE(MPI_File_get_size(fh, &at));
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_File_get_size(fh, &at));
    CHECK(at, 8 * n, "the size");
    DONE(MPI_File_close(&fh));
    removed();
}

static void access_rules(void) {
    int word = 0, got;
    MPI_Group group, world;
    MPI_Status status;
    MPI_File fh = opened(MPI_MODE_WRONLY | MPI_MODE_CREATE);
    REFUSED(MPI_File_read(fh, &word, 1, MPI_INT, &status), MPI_ERR_ACCESS);
    REFUSED(MPI_File_read_at_all(fh, 0, &word, 1, MPI_INT, &status), MPI_ERR_ACCESS);
    REFUSED(MPI_File_read_shared(fh, &word, 1, MPI_INT, &status), MPI_ERR_ACCESS);
    REFUSED(MPI_File_read_ordered(fh, &word, 1, MPI_INT, &status), MPI_ERR_ACCESS);
    DONE(MPI_File_get_amode(fh, &got));
    CHECK(got, MPI_MODE_WRONLY | MPI_MODE_CREATE, "amode");
    DONE(MPI_File_close(&fh));
    fh = opened(MPI_MODE_RDONLY);
    REFUSED(MPI_File_write(fh, &word, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
    REFUSED(MPI_File_write_all(fh, &word, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
    REFUSED(MPI_File_write_shared(fh, &word, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
    REFUSED(MPI_File_write_ordered(fh, &word, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
    REFUSED(MPI_File_set_size(fh, 10), MPI_ERR_READ_ONLY);
    REFUSED(MPI_File_preallocate(fh, 10), MPI_ERR_READ_ONLY);
    DONE(MPI_File_get_group(fh, &group));
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_compare(group, world, &got);
    CHECK(got, MPI_IDENT, "the group");
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    DONE(MPI_File_close(&fh));
    removed();
}

/* A device that is always full, and a limit of the length of files. */
static void no_room(void) {
    char text[MPI_MAX_ERROR_STRING];
    int word = 7, length;
    MPI_File fh;
    MPI_Status status;
    DONE(MPI_File_open(MPI_COMM_WORLD, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &fh));
    REFUSED(MPI_File_write_at(fh, 0, &word, 1, MPI_INT, &status), MPI_ERR_NO_SPACE);
    MPI_Error_string(MPI_ERR_NO_SPACE, text, &length);
    CHECK(strstr(text, "MPI_File_write_at") && strstr(text, "/dev/full"), 1, "the message %s", text);
    REFUSED(MPI_File_write_all(fh, &word, 1, MPI_INT, &status), MPI_ERR_NO_SPACE);
    DONE(MPI_File_sync(fh));
    DONE(MPI_File_close(&fh));
    struct rlimit limit = {4096, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    fh = created();
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit), 0, "setrlimit");
    REFUSED(MPI_File_write_at(fh, 5000, &word, 1, MPI_INT, &status), MPI_ERR_NO_SPACE);
    /* The end of an access may be beyond the limit. */
    REFUSED(MPI_File_write_at(fh, 4094, &word, 1, MPI_INT, &status), MPI_ERR_NO_SPACE);
    REFUSED(MPI_File_set_size(fh, 8192), MPI_ERR_NO_SPACE);
    CHECK(setrlimit(RLIMIT_FSIZE, &none), 0, "setrlimit");
    DONE(MPI_File_close(&fh));
    removed();
}

/* Every process a file of its own, and a file of a part of the processes. */
static void communicators(void) {
    char own[300];
    MPI_File fh, other;
    MPI_Comm half;
    int word = 0;
    snprintf(own, sizeof own, "%s-%d", path, me);
    DONE(MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                       MPI_INFO_NULL, &fh));
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &half);
    snprintf(own, sizeof own, "%s-half-%d", path, me % 2);
    DONE(MPI_File_open(half, own, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                       &other));
    MPI_Comm_free(&half);
    for (int i = 0; i < 10; i++) {
        DONE(MPI_File_write_shared(fh, &i, 1, MPI_INT, MPI_STATUS_IGNORE));
        DONE(MPI_File_write_ordered(other, &i, 1, MPI_INT, MPI_STATUS_IGNORE));
    }
    DONE(MPI_File_read_at(fh, 36, &word, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(word, 9, "the last number");
    DONE(MPI_File_close(&other));
    DONE(MPI_File_close(&fh));
    REFUSED(MPI_File_open(MPI_COMM_NULL, own, MPI_MODE_RDWR, MPI_INFO_NULL, &fh), MPI_ERR_COMM);
}

int main(int argc, char **argv) {
    begin(&argc, &argv, "modes");
    wrong_modes();
    wrong_names();
    messages();
    exclusive_and_deleted();
    permissions();
    append();
    access_rules();
    no_room();
    communicators();
    return finish();
}
