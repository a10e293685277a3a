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

/* A duplicate has the error handler that the communicator had at the call. */
static void handlers(void) {
    MPI_Comm comm, copy;
    MPI_Errhandler found;
    MPI_Request request;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_ABORT));
    OK(MPI_Comm_idup(comm, &copy, &request));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_get_errhandler(copy, &found));
    EXPECT("the handler at the call", 1, found == MPI_ERRORS_ABORT);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&copy));
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

static int deleted;

static int copy(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag) {
    (void)comm, (void)keyval, (void)state;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

/* Refuses where the value is a secret one. */
static int refuse(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag) {
    return in == state ? MPI_ERR_OTHER : copy(comm, keyval, state, in, out, flag);
}

static int delete(MPI_Comm comm, int keyval, void *value, void *state) {
    (void)comm, (void)keyval, (void)value, (void)state;
    deleted++;
    return MPI_SUCCESS;
}

static int value_of(MPI_Comm comm, int keyval) {
    void *value = NULL;
    int flag = 0;
    OK(MPI_Comm_get_attr(comm, keyval, &value, &flag));
    return flag ? (int)(size_t)value : -1;
}

/* Attributes are copied when a duplicate is called for; if one member cannot, all fail. */
static void attributes(void) {
    MPI_Comm from, one, two = MPI_COMM_WORLD;
    MPI_Request request;
    int keyval, picky, rank = rank_of(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    OK(MPI_Comm_create_keyval(copy, delete, &keyval, NULL));
    OK(MPI_Comm_create_keyval(refuse, delete, &picky, (void *)7));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &from));
    OK(MPI_Comm_set_attr(from, keyval, (void *)10));
    OK(MPI_Comm_dup(from, &one));
    EXPECT("the copied attribute", 11, value_of(one, keyval));
    OK(MPI_Comm_idup(one, &two, &request));
    OK(MPI_Comm_set_attr(one, keyval, (void *)50));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT("the attribute as it was at the call", 12, value_of(two, keyval));
    EXPECT("values deleted", 1, deleted);
    OK(MPI_Comm_free(&two));
    EXPECT("values deleted", 2, deleted);
    OK(MPI_Comm_set_errhandler(one, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_attr(one, picky, (void *)(size_t)(rank == size - 1 ? 7 : 3)));
    FAILS(MPI_ERR_OTHER, MPI_Comm_dup(one, &two));
    EXPECT("no duplicate", 1, two == MPI_COMM_NULL);
    EXPECT("values deleted", rank == size - 1 ? 3 : 4, deleted);
    ring(one);
    OK(MPI_Comm_free(&one));
    OK(MPI_Comm_free(&from));
    OK(MPI_Comm_free_keyval(&keyval));
    OK(MPI_Comm_free_keyval(&picky));
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
    attributes();
    pending();
    handlers();
    freed_early();
    return finish();
}
