/* Checks of the programs about files: one line for each failure, and a file that all processes share. */
#ifndef FILE_CHECK_H
#define FILE_CHECK_H

#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "outcome_check.h"

static char path[256];

static inline void begin(int *argc, char ***argv, const char *name) {
    int pid = (int)getpid();
    const char *folder = getenv("TMPDIR");
    setvbuf(stdout, NULL, _IOLBF, 0);
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(path, sizeof path, "%s/pelago-%s-%d", folder ? folder : "/tmp", name, pid);
}

static inline int finish(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) unlink(path);
    MPI_Finalize();
    return failures != 0;
}

static inline MPI_File opened(int amode) {
    MPI_File fh = MPI_FILE_NULL;
    DONE(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &fh));
    return fh;
}

static inline MPI_File created(void) { return opened(MPI_MODE_RDWR | MPI_MODE_CREATE); }

static inline void removed(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) unlink(path);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* The elements of a status. */
static inline long long count_of(MPI_Status *status, MPI_Datatype datatype) {
    MPI_Count count = -2;
    DONE(MPI_Get_count_c(status, datatype, &count));
    return count;
}

/* The bytes of the file as the system sees them: their number. */
static inline long contents(unsigned char *into, long room) {
    int file = open(path, O_RDONLY);
    long bytes = file < 0 ? -1 : (long)read(file, into, (size_t)room);
    if (file >= 0) close(file);
    return bytes;
}

#endif
