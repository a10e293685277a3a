/* Accesses to a file whose pieces are dealt out to the ranks in turn: to small pieces with holes between them,
 * as a rank sees them.
 *
 * A row is the size of a piece. Each rank moves BYTES in all by a call, between two barriers; a line has the
 * shortest and the median call of CALLS. The file is in TMPDIR, or in /tmp, and new for each size. What is read
 * is compared with what was written. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALLS = 15, BYTES = 1 << 19 };

enum operation { WRITE_ALL, READ_ALL, READ, OPERATIONS };
static const char *const NAMES[OPERATIONS] = {"write_at_all", "read_at_all", "read_at"};

static int rank, ranks;
static MPI_File file;
static char path[4096], own[BYTES], back[BYTES];

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void check(int is_right, const char *what)
{
    if (!is_right) {
        fprintf(stderr, "rank %d: %s\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

static int operate(enum operation what)
{
    switch (what) {
    case WRITE_ALL: return MPI_File_write_at_all(file, 0, own, BYTES, MPI_CHAR, MPI_STATUS_IGNORE);
    case READ_ALL: return MPI_File_read_at_all(file, 0, back, BYTES, MPI_CHAR, MPI_STATUS_IGNORE);
    default: return MPI_File_read_at(file, 0, back, BYTES, MPI_CHAR, MPI_STATUS_IGNORE);
    }
}

static int ascending(const void *left, const void *right)
{
    const double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

static void measure(enum operation what, int piece)
{
    double times[CALLS];
    for (int call = 0; call < CALLS; call++) {
        memset(back, 0, BYTES);
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = now_ns();
        check(operate(what) == MPI_SUCCESS, NAMES[what]);
        MPI_Barrier(MPI_COMM_WORLD);
        times[call] = now_ns() - start;
        check(what == WRITE_ALL || memcmp(own, back, BYTES) == 0, "a read gives other data than were written");
    }
    qsort(times, CALLS, sizeof *times, ascending);
    if (rank == 0) {
        printf("{\"bench\":\"file\",\"operation\":\"%s\",\"bytes\":%d,\"min\":%.1f,\"median\":%.1f}\n", NAMES[what],
               piece, times[0], times[CALLS / 2]);
        fflush(stdout);
    }
}

static void measure_pieces(int piece)
{
    MPI_Datatype block, dealt;
    MPI_Type_contiguous(piece, MPI_CHAR, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)piece * ranks, &dealt);
    MPI_Type_commit(&dealt);
    check(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                        MPI_INFO_NULL, &file) == MPI_SUCCESS, "MPI_File_open");
    MPI_File_set_view(file, (MPI_Offset)piece * rank, MPI_CHAR, dealt, "native", MPI_INFO_NULL);
    for (int what = 0; what < OPERATIONS; what++) {
        measure((enum operation)what, piece);
    }
    MPI_File_close(&file);
    MPI_Type_free(&dealt);
    MPI_Type_free(&block);
}

int main(int count, char **arguments)
{
    static const int PIECES[] = {8, 512, 4096};
    const char *folder = getenv("TMPDIR");
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) {
        snprintf(path, sizeof path, "%s/pelago-compare-%.0f", folder ? folder : "/tmp", now_ns());
    }
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; i < BYTES; i++) {
        own[i] = (char)(i * 7 + rank);
    }
    for (size_t i = 0; i < sizeof PIECES / sizeof *PIECES; i++) {
        measure_pieces(PIECES[i]);
    }
    MPI_Finalize();
    return 0;
}
