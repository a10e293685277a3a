/* What the programs about communicators and topologies share: checks that print what is wrong and go on. */
#ifndef COMM_CHECK_H
#define COMM_CHECK_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

/* Compares two integers. */
#define EXPECT(what, expected, found)                                                                       \
    do {                                                                                                    \
        long long expected_ = (long long)(expected), found_ = (long long)(found);                           \
        if (expected_ != found_) {                                                                          \
            printf("%s:%d: %s: expected %lld, found %lld\n", __FILE__, __LINE__, what, expected_, found_);  \
            failures++;                                                                                     \
        }                                                                                                   \
    } while (0)

/* A call that must succeed. */
#define OK(call) EXPECT(#call, MPI_SUCCESS, call)

/* A call that must fail with a class. Codes of this library are classes. */
#define FAILS(class, call) EXPECT(#call, class, call)


static inline int rank_of(MPI_Comm comm) {
    int rank = -1;
    OK(MPI_Comm_rank(comm, &rank));
    return rank;
}

static inline int size_of(MPI_Comm comm) {
    int size = -1;
    OK(MPI_Comm_size(comm, &size));
    return size;
}

/* A communicator of one group works: its members pass a number around. */
static inline void ring(MPI_Comm comm) {
    int rank = rank_of(comm), size = size_of(comm), sum = 0;
    int right = (rank + 1) % size, left = (rank + size - 1) % size, got = -1;
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, right, 7, &got, 1, MPI_INT, left, 7, comm, MPI_STATUS_IGNORE));
    EXPECT("the left neighbour in a ring", left, got);
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    EXPECT("the sum of the ranks", size * (size - 1) / 2, sum);
}

/* An inter-communicator works: each process sends its local rank to all of the other group. */
static inline void across(MPI_Comm inter) {
    int rank = rank_of(inter), n = -1, is_inter = 0;
    OK(MPI_Comm_test_inter(inter, &is_inter));
    EXPECT("the communicator is an inter-communicator", 1, is_inter);
    OK(MPI_Comm_remote_size(inter, &n));
    MPI_Request *requests = malloc(2 * n * sizeof *requests);
    int *got = malloc(n * sizeof *got);
    for (int i = 0; i < n; i++) {
        OK(MPI_Irecv(&got[i], 1, MPI_INT, i, 3, inter, &requests[i]));
        OK(MPI_Isend(&rank, 1, MPI_INT, i, 3, inter, &requests[n + i]));
    }
    OK(MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < n; i++)
        EXPECT("the rank that a process of the remote group has", i, got[i]);
    free(requests);
    free(got);
}

static inline int finish(void) {
    MPI_Finalize();
    return failures != 0;
}
#endif
