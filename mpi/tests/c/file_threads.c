/* Threads of a process that use one file, and files of their own, at the same time. */
#include "file_check.h"
#include <pthread.h>

enum { THREADS = 3, ROUNDS = 50, WORDS = 600 };

static MPI_File common, strict;
static int wrong[THREADS];

/* Counts what is wrong; the checks of `file_check.h` are for one thread. */
#define OR_WRONG(condition) \
    do {                    \
        if (!(condition)) wrong[me_here]++; \
    } while (0)

static void *work(void *argument) {
    int me_here = (int)(long)argument;
    char own[300];
    MPI_Comm alone = MPI_COMM_NULL;
    MPI_File fh;
    MPI_Status status;
    static pthread_mutex_t dup_lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&dup_lock);
    MPI_Comm_dup(MPI_COMM_SELF, &alone);
    pthread_mutex_unlock(&dup_lock);
    snprintf(own, sizeof own, "%s-%d-%d", path, me, me_here);
    OR_WRONG(MPI_File_open(alone, own, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &fh) == MPI_SUCCESS);
    for (int i = 0; i < ROUNDS; i++) {
        int record[2] = {me * THREADS + me_here, i}, words[WORDS];
        OR_WRONG(MPI_File_write_shared(common, record, 2, MPI_INT, &status) == MPI_SUCCESS);
        OR_WRONG(MPI_File_write(fh, record, 2, MPI_INT, &status) == MPI_SUCCESS);
        for (int j = 0; j < WORDS; j++) words[j] = record[0] * 1000 + i;
        OR_WRONG(MPI_File_write_at(strict, 0, words, WORDS, MPI_INT, &status) == MPI_SUCCESS);
        OR_WRONG(MPI_File_read_at(strict, 0, words, WORDS, MPI_INT, &status) == MPI_SUCCESS);
        for (int j = 1; j < WORDS; j++) OR_WRONG(words[j] == words[0]);
    }
    for (int i = 0; i < ROUNDS; i++) {
        int record[2];
        OR_WRONG(MPI_File_read_at(fh, 8 * i, record, 2, MPI_INT, &status) == MPI_SUCCESS);
        OR_WRONG(record[0] == me * THREADS + me_here && record[1] == i);
    }
    OR_WRONG(MPI_File_close(&fh) == MPI_SUCCESS);
    MPI_Comm_free(&alone);
    return NULL;
}

int main(int argc, char **argv) {
    int level, pid = (int)getpid();
    char second[300];
    MPI_Datatype every;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/pelago-threads-%d", folder ? folder : "/tmp", pid);
    snprintf(second, sizeof second, "%s-strict", path);
    common = created();
    DONE(MPI_File_open(MPI_COMM_WORLD, second, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                       MPI_INFO_NULL, &strict));
    MPI_Type_create_resized(MPI_INT, 0, 8, &every);
    MPI_Type_commit(&every);
    DONE(MPI_File_set_view(strict, 0, MPI_INT, every, "native", MPI_INFO_NULL));
    DONE(MPI_File_set_atomicity(strict, 1));
    MPI_Type_free(&every);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) CHECK(wrong[i], 0, "mistakes of thread %d", i);
    MPI_Barrier(MPI_COMM_WORLD);
    int total = n * THREADS * ROUNDS, *next = calloc((size_t)(n * THREADS), sizeof *next);
    for (int i = 0; i < total; i++) {
        int record[2] = {-1, -1};
        DONE(MPI_File_read_at(common, 8 * i, record, 2, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(record[0] >= 0 && record[0] < n * THREADS, 1, "the writer of record %d", i);
        if (record[0] >= 0 && record[0] < n * THREADS) CHECK(record[1], next[record[0]]++, "record %d", i);
    }
    free(next);
    DONE(MPI_File_close(&strict));
    DONE(MPI_File_close(&common));
    return finish();
}
