/* A partitioned exchange of the first two processes of a communicator, which needs progress in other calls. */
#ifndef PARTITIONED_CHECK_H
#define PARTITIONED_CHECK_H

#include "outcome_check.h"
#include <stdlib.h>
#include <string.h>

enum { LONG = 1 << 20 };

static inline char *block(int value) {
    char *bytes = malloc(LONG);
    memset(bytes, value, LONG);
    return bytes;
}

static inline void check_block(const char *bytes, int value, const char *what) {
    for (int i = 0; i < LONG; i++)
        if (bytes[i] != (char)value) {
            CHECK(bytes[i], (char)value, "byte %d of %s", i, what);
            return;
        }
}

/* A partitioned receive that was started makes progress in calls for other messages. */
static inline void partitions_arrive_meanwhile(MPI_Comm comm) {
    MPI_Request request;
    int token = 0;
    if (me == 0 && n > 1) {
        char *bytes = block(0);
        DONE(MPI_Precv_init(bytes, 1, LONG, MPI_BYTE, 1, 0, comm, MPI_INFO_NULL, &request));
        DONE(MPI_Start(&request));
        DONE(MPI_Send(&token, 1, MPI_INT, 1, 1, comm));
        DONE(MPI_Recv(&token, 1, MPI_INT, 1, 2, comm, MPI_STATUS_IGNORE));
        DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
        check_block(bytes, 3, "a partition");
        DONE(MPI_Request_free(&request));
        free(bytes);
    } else if (me == 1) {
        char *bytes = block(3);
        DONE(MPI_Recv(&token, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE));
        DONE(MPI_Psend_init(bytes, 1, LONG, MPI_BYTE, 0, 0, comm, MPI_INFO_NULL, &request));
        DONE(MPI_Start(&request));
        DONE(MPI_Pready(0, request));
        DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
        DONE(MPI_Send(&token, 1, MPI_INT, 0, 2, comm));
        DONE(MPI_Request_free(&request));
        free(bytes);
    }
    MPI_Barrier(comm);
}

#endif
