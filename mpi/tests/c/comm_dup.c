/* Duplicates: contexts of their own, many of them, non-blocking ones, and those of inter-communicators. */
#include "comm_check.h"

enum { ALIVE = 300, ROUNDS = 2000, PENDING = 20 };

/* Messages with the same tag in two communicators do not meet. */
static void separate(MPI_Comm one, MPI_Comm two) {
    int rank = rank_of(one), size = size_of(one), a = 1, b = 2, got = 0;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request requests[2];
    OK(MPI_Isend(&a, 1, MPI_INT, right, 0, one, &requests[0]));
    OK(MPI_Isend(&b, 1, MPI_INT, right, 0, two, &requests[1]));
    OK(MPI_Recv(&got, 1, MPI_INT, left, 0, two, MPI_STATUS_IGNORE));
    EXPECT("the message of the second communicator", 2, got);
    OK(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, one, MPI_STATUS_IGNORE));
    EXPECT("the message of the first communicator", 1, got);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
}

static void pending(void) {
    MPI_Comm comms[PENDING], between, world;
    MPI_Request requests[PENDING];
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &world));
    for (int i = 0; i < PENDING; i++) {
        OK(MPI_Comm_idup(world, &comms[i], &requests[i]));
        if (i == PENDING / 2)
            OK(MPI_Comm_dup(world, &between));
    }
    OK(MPI_Comm_free(&world));
    ring(between);
    OK(MPI_Waitall(PENDING, requests, MPI_STATUSES_IGNORE));
    for (int i = 1; i < PENDING; i++)
        separate(comms[i - 1], comms[i]);
    for (int i = 0; i < PENDING; i++) {
        EXPECT("the request is null", 1, requests[i] == MPI_REQUEST_NULL);
        OK(MPI_Comm_free(&comms[i]));
    }
    OK(MPI_Comm_free(&between));
}

/* Requests go on when their communicator is freed. */
static void freed_early(void) {
    MPI_Comm comm;
    MPI_Request requests[3];
    static int large[2][100000];
    int rank = rank_of(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int i = 0; i < 100000; i++)
        large[0][i] = rank + i;
    OK(MPI_Irecv(large[1], 100000, MPI_INT, (rank + 1) % size, 5, comm, &requests[0]));
    OK(MPI_Isend(large[0], 100000, MPI_INT, (rank + size - 1) % size, 5, comm, &requests[1]));
    OK(MPI_Ibarrier(comm, &requests[2]));
    OK(MPI_Comm_free(&comm));
    EXPECT("the handle is null", 1, comm == MPI_COMM_NULL);
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    EXPECT("the last number", (rank + 1) % size + 99999, large[1][99999]);
}

int main(int argc, char **argv) {
    MPI_Comm comm, other, alive[ALIVE];
    int result = -1, length = -1;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Init(&argc, &argv);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_compare(MPI_COMM_WORLD, comm, &result));
    EXPECT("a duplicate is congruent", MPI_CONGRUENT, result);
    OK(MPI_Comm_compare(comm, comm, &result));
    EXPECT("a communicator is identical to itself", MPI_IDENT, result);
    OK(MPI_Comm_get_name(comm, name, &length));
    EXPECT("a duplicate has no name", 0, length);
    separate(MPI_COMM_WORLD, comm);
    ring(comm);
    OK(MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &other));
    separate(comm, other);
    OK(MPI_Comm_free(&comm));
    ring(other);
    OK(MPI_Comm_disconnect(&other));
    EXPECT("the handle is null", 1, other == MPI_COMM_NULL);
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    EXPECT("the size of a duplicate of MPI_COMM_SELF", 1, size_of(comm));
    ring(comm);
    OK(MPI_Comm_free(&comm));
    for (int i = 0; i < ALIVE; i++)
        OK(MPI_Comm_dup(i ? alive[i - 1] : MPI_COMM_WORLD, &alive[i]));
    separate(alive[0], alive[ALIVE - 1]);
    for (int i = 0; i < ALIVE; i++)
        OK(MPI_Comm_free(&alive[i]));
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        OK(MPI_Comm_free(&comm));
    }
    pending();
    freed_early();
    return finish();
}
