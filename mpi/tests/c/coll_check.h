/* What the programs about collective operations share: checks that print what is wrong and go on, and the forms
   of an operation. */
#ifndef COLL_CHECK_H
#define COLL_CHECK_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, failures;
static MPI_Comm comm;

#define ASSERT(condition, ...)                                        \
    do {                                                              \
        if (!(condition) && failures++ < 20) {                        \
            printf("rank %d of %d, line %d: ", rank, size, __LINE__); \
            printf(__VA_ARGS__);                                      \
            printf("\n");                                             \
        }                                                             \
    } while (0)

/* The blocking, the non-blocking or the persistent form of an operation of `comm`. `iname` is the name of the
   non-blocking form. */
#define RUN(form, name, iname, ...)                                                \
    do {                                                                           \
        MPI_Request r = MPI_REQUEST_NULL;                                          \
        if (form == 0) {                                                           \
            MPI_##name(__VA_ARGS__, comm);                                         \
        } else if (form == 1) {                                                    \
            MPI_##iname(__VA_ARGS__, comm, &r);                                    \
            MPI_Wait(&r, MPI_STATUS_IGNORE);                                       \
            ASSERT(r == MPI_REQUEST_NULL, "the request of " #iname " is not null"); \
        } else {                                                                   \
            MPI_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &r);               \
            MPI_Start(&r);                                                         \
            MPI_Wait(&r, MPI_STATUS_IGNORE);                                       \
            ASSERT(r != MPI_REQUEST_NULL, "the request of " #name " is null");     \
            MPI_Request_free(&r);                                                  \
        }                                                                          \
    } while (0)

static const char *const forms[] = {"blocking", "non-blocking", "persistent"};

/* Element i of the block from a process to another. */
static inline int value(int from, int to, int i) { return from * 1000003 + to * 10007 + i; }

static inline void fill(int *block, int count, int from, int to) {
    for (int i = 0; i < count; i++) block[i] = value(from, to, i);
}

static inline void check(const int *block, int count, int from, int to, const char *what, int form) {
    for (int i = 0; i < count; i++)
        if (block[i] != value(from, to, i)) {
            ASSERT(0, "%s %s: element %d of %d from %d to %d is %d, expected %d", forms[form], what, i, count,
                   from, to, block[i], value(from, to, i));
            return;
        }
}

static inline void start(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    comm = MPI_COMM_WORLD;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
}

static inline int finish(void) {
    MPI_Finalize();
    return failures != 0;
}
#endif
