/* Checks of the programs in this folder: each prints one line for a failure, and counts it. */
#ifndef PELAGO_CHECK_H
#define PELAGO_CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int failures;

/* Two integers that must be equal: a name, the expected value, the found one. */
#define EQUAL(what, expected, found)                                                              \
    do {                                                                                          \
        long long expected_ = (long long)(expected), found_ = (long long)(found);                 \
        if (expected_ != found_) {                                                                \
            printf("%s:%d: %s: expected %lld, found %lld\n", __FILE__, __LINE__, what, expected_, \
                   found_);                                                                       \
            failures++;                                                                           \
        }                                                                                         \
    } while (0)

/* Two texts that must be equal. */
#define SAME_TEXT(what, expected, found)                                                            \
    do {                                                                                            \
        if (strcmp(expected, found) != 0) {                                                         \
            printf("%s:%d: %s: expected \"%s\", found \"%s\"\n", __FILE__, __LINE__, what, expected, \
                   found);                                                                          \
            failures++;                                                                             \
        }                                                                                           \
    } while (0)

/* A call that must return this error class. */
#define GIVES(class, call)                                                            \
    do {                                                                              \
        int code_ = (call), class_ = code_;                                           \
        if (code_ != MPI_SUCCESS) MPI_Error_class(code_, &class_);                    \
        EQUAL(#call, class, class_);                                                  \
    } while (0)

/* A call that must succeed. */
#define WORKS(call) GIVES(MPI_SUCCESS, call)

/* A condition that must hold. */
#define HOLDS(condition) EQUAL(#condition, 1, (condition) ? 1 : 0)

/* The exit status of the program. */
#define VERDICT() (failures == 0 ? 0 : 1)

#endif
