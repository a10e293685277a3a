/* Checks of the programs of one-sided communication: one line for each failure. */
#ifndef WIN_CHECK_H
#define WIN_CHECK_H

#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outcome_check.h"

/* Whether all processes of a communicator have one node. */
static inline int one_node(MPI_Comm comm) {
    void *base;
    MPI_Win win;
    int size;
    MPI_Comm_size(comm, &size);
    if (size == 1) return 1;
    MPI_Errhandler before;
    MPI_Comm_get_errhandler(comm, &before);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int code = MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, comm, &base, &win);
    MPI_Comm_set_errhandler(comm, before);
    if (code == MPI_SUCCESS) MPI_Win_free(&win);
    return code == MPI_SUCCESS;
}

static inline int finish(void) {
    MPI_Finalize();
    return failures != 0;
}

static inline void begin(int *argc, char ***argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
}

/* The same for a program whose threads call MPI at the same time. */
static inline void begin_with_threads(int *argc, char ***argv) {
    int level;
    setvbuf(stdout, NULL, _IOLBF, 0);
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    CHECK(level, MPI_THREAD_MULTIPLE, "the level of threads");
}

/* A window of ints of each kind, with the same memory in all of them. */
enum kind { CREATED, ALLOCATED, DYNAMIC, KINDS };

static inline const char *kind_name(enum kind kind) {
    return kind == CREATED ? "create" : kind == ALLOCATED ? "allocate" : "dynamic";
}

/* `starts` gets the displacement at which the memory of each process begins. */
static inline MPI_Win open_window(enum kind kind, size_t bytes, int unit, char **base, MPI_Aint *starts) {
    MPI_Win win;
    MPI_Aint start = 0;
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (kind == ALLOCATED) {
        DONE(MPI_Win_allocate((MPI_Aint)bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, base, &win));
    } else {
        *base = malloc(bytes ? bytes : 1);
        if (kind == CREATED) {
            DONE(MPI_Win_create(*base, (MPI_Aint)bytes, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        } else {
            DONE(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
            DONE(MPI_Win_attach(win, *base, (MPI_Aint)bytes));
            start = (MPI_Aint)*base;
        }
    }
    memset(*base, 0, bytes);
    MPI_Allgather(&start, 1, MPI_AINT, starts, 1, MPI_AINT, MPI_COMM_WORLD);
    return win;
}

static inline void close_window(enum kind kind, MPI_Win *win, char *base) {
    if (kind == DYNAMIC) {
        MPI_Barrier(MPI_COMM_WORLD);
        DONE(MPI_Win_detach(*win, base));
    }
    DONE(MPI_Win_free(win));
    CHECK(*win == MPI_WIN_NULL, 1, "the handle of a freed window");
    if (kind != ALLOCATED) free(base);
}

/* A displacement of `index` elements of `bytes` bytes. */
static inline MPI_Aint at(enum kind kind, MPI_Aint start, int index, int bytes) {
    return kind == DYNAMIC ? start + (MPI_Aint)index * bytes : index;
}

#endif
