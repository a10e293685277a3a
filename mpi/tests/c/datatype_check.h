/* What the programs about datatypes share: checks that print what is wrong and go on. */
#ifndef DATATYPE_CHECK_H
#define DATATYPE_CHECK_H
#include <mpi.h>
#include <stddef.h>
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

/* The numbers of a datatype. */
static inline void numbers(const char *what, MPI_Datatype type, MPI_Count size, MPI_Count lb,
                           MPI_Count extent, MPI_Count true_lb, MPI_Count true_extent) {
    MPI_Count found[5] = {-1, -1, -1, -1, -1}, expected[5] = {size, lb, extent, true_lb, true_extent};
    static const char *const names[5] = {"size", "lb", "extent", "true lb", "true extent"};
    OK(MPI_Type_size_c(type, &found[0]));
    OK(MPI_Type_get_extent_c(type, &found[1], &found[2]));
    OK(MPI_Type_get_true_extent_c(type, &found[3], &found[4]));
    for (int i = 0; i < 5; i++)
        if (found[i] != expected[i]) {
            printf("%s: %s: expected %lld, found %lld\n", what, names[i], (long long)expected[i],
                   (long long)found[i]);
            failures++;
        }
}

/* Integers of 4 bytes that `count` elements of a committed datatype have, by their index in the memory. The
 * data go out by MPI_Pack and back in by MPI_Unpack, and the same by a message to the process itself. */
static inline void check_places(const char *what, MPI_Datatype type, int count, int n, const int *expected) {
    enum { ROOM = 4096, ORIGIN = 1024 };
    static int memory[ROOM], packed[ROOM], back[ROOM];
    for (int i = 0; i < ROOM; i++) {
        memory[i] = i - ORIGIN;
        packed[i] = back[i] = -9999;
    }
    int size = -1, position = 0;
    OK(MPI_Pack_size(count, type, MPI_COMM_SELF, &size));
    EXPECT(what, n * (int)sizeof(int), size);
    OK(MPI_Pack(memory + ORIGIN, count, type, packed, sizeof packed, &position, MPI_COMM_SELF));
    EXPECT(what, n * (int)sizeof(int), position);
    for (int i = 0; i < n; i++) EXPECT(what, expected[i], packed[i]);
    for (int way = 0; way < 2; way++) {
        for (int i = 0; i < ROOM; i++) back[i] = -9999;
        position = 0;
        if (way == 0)
            OK(MPI_Unpack(packed, size, &position, back + ORIGIN, count, type, MPI_COMM_SELF));
        else
            OK(MPI_Sendrecv(memory + ORIGIN, count, type, 0, 1, back + ORIGIN, count, type, 0, 1,
                            MPI_COMM_SELF, MPI_STATUS_IGNORE));
        int changed = 0, different = 0;
        for (int i = 0; i < n; i++) EXPECT(what, expected[i], back[ORIGIN + expected[i]]);
        for (int i = 0; i < n; i++) {
            int is_first = 1;
            for (int j = 0; j < i; j++) is_first &= expected[j] != expected[i];
            different += is_first;
        }
        for (int i = 0; i < ROOM; i++) changed += back[i] != -9999;
        EXPECT("integers that were changed", different, changed);
    }
}

/* The end: the failures of all processes are those of the job. */
static inline int end(void) {
    MPI_Finalize();
    return failures != 0;
}
#endif
