/* Checks of numbers and of the outcome of calls, which return errors: one line for each failure. */
#ifndef OUTCOME_CHECK_H
#define OUTCOME_CHECK_H

#include <mpi.h>
#include <stdio.h>

/* The failures of this process, its rank, and the number of processes. */
static int failures, me, n;

#define CHECK(is, expected, ...)                                                                     \
    do {                                                                                             \
        long long is_ = (long long)(is), expected_ = (long long)(expected);                          \
        if (is_ != expected_ && ++failures < 20) {                                                   \
            printf("PE %d, %s:%d: ", me, __FILE__, __LINE__);                                        \
            printf(__VA_ARGS__);                                                                     \
            printf(": expected %lld, found %lld\n", expected_, is_);                                 \
        }                                                                                            \
    } while (0)

#define DONE(call) CHECK((call), MPI_SUCCESS, "%s", #call)
#define REFUSED(call, class) CHECK((call), (class), "%s", #call)

#endif
