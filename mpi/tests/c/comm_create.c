/* Communicators of groups: of a parent's members, by the members alone, and without a parent. */
#include "comm_check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 50 };

static MPI_Group reversed(MPI_Group of) {
    int n;
    MPI_Group_size(of, &n);
    int *ranks = malloc(n * sizeof *ranks);
    for (int i = 0; i < n; i++)
        ranks[i] = n - 1 - i;
    MPI_Group group;
    OK(MPI_Group_incl(of, n, ranks, &group));
    free(ranks);
    return group;
}

/* The members of each parity. */
static MPI_Group parity(MPI_Group of, int which) {
    int n, range[1][3];
    MPI_Group group;
    MPI_Group_size(of, &n);
    range[0][0] = which;
    range[0][1] = n - 1;
    range[0][2] = 2;
    OK(MPI_Group_range_incl(of, which < n, range, &group));
    return group;
}

static void use(MPI_Comm comm, MPI_Group group) {
    MPI_Group own;
    int result = -1;
    OK(MPI_Comm_group(comm, &own));
    OK(MPI_Group_compare(group, own, &result));
    EXPECT("the group of the new communicator", MPI_IDENT, result);
    OK(MPI_Group_free(&own));
    ring(comm);
    OK(MPI_Comm_free(&comm));
}

static MPI_Group all;

/* Each thread makes communicators of the same members with its own tag. */
static void *by_thread(void *tag) {
    MPI_Comm comm;
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, all, *(int *)tag, &comm));
        use(comm, all);
    }
    return NULL;
}

static void threads(void) {
    pthread_t ids[THREADS];
    int tags[THREADS];
    for (int i = 0; i < THREADS; i++) {
        tags[i] = i * 1000;
        pthread_create(&ids[i], NULL, by_thread, &tags[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
}

int main(int argc, char **argv) {
    MPI_Comm comm;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    int rank = rank_of(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    MPI_Group backwards = reversed(all), mine = parity(all, rank % 2), even = parity(all, 0);

    OK(MPI_Comm_create(MPI_COMM_WORLD, backwards, &comm));
    EXPECT("the rank in the reversed group", size - 1 - rank, rank_of(comm));
    use(comm, backwards);
    OK(MPI_Comm_create(MPI_COMM_WORLD, mine, &comm));
    use(comm, mine);
    OK(MPI_Comm_create(MPI_COMM_WORLD, even, &comm));
    EXPECT("only members get one", rank % 2 == 0, comm != MPI_COMM_NULL);
    if (comm != MPI_COMM_NULL)
        use(comm, even);
    OK(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm));
    EXPECT("nobody gets one of the empty group", 1, comm == MPI_COMM_NULL);

    /* A message of the program with the same tag is another one. */
    int number = 42, got = 0, right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request request;
    OK(MPI_Isend(&number, 1, MPI_INT, right, 9, MPI_COMM_WORLD, &request));
    OK(MPI_Comm_create_group(MPI_COMM_WORLD, backwards, 9, &comm));
    use(comm, backwards);
    OK(MPI_Recv(&got, 1, MPI_INT, left, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    EXPECT("the program's message", 42, got);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (rank % 2 == 0) {
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, even, 0x7fffffff, &comm));
        use(comm, even);
    }
    for (int i = 0; i < ROUNDS; i++) {
        OK(MPI_Comm_create_group(MPI_COMM_WORLD, i % 2 ? mine : backwards, 1, &comm));
        OK(MPI_Comm_free(&comm));
    }
    threads();

    OK(MPI_Comm_create_from_group(backwards, "backwards", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    MPI_Errhandler handler;
    OK(MPI_Comm_get_errhandler(comm, &handler));
    EXPECT("the error handler is the given one", 1, handler == MPI_ERRORS_RETURN);
    use(comm, backwards);
    for (int i = 0; i < 5; i++) {
        OK(MPI_Comm_create_from_group(mine, "the same", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
        use(comm, mine);
    }
    OK(MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    EXPECT("nobody gets one of the empty group", 1, comm == MPI_COMM_NULL);
    OK(MPI_Group_free(&backwards));
    OK(MPI_Group_free(&mine));
    OK(MPI_Group_free(&even));
    OK(MPI_Group_free(&all));
    return finish();
}
