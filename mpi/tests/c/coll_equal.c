/* Collective operations with blocks of one size, in their three forms, in place and not. */
#include "coll_check.h"

static void test(int form, int count, int root) {
    int *one = malloc((count + 1) * sizeof(int)), *all = malloc((count * size + 1) * sizeof(int));
    int *more = malloc((count * size + 1) * sizeof(int));
    fill(one, count, rank, 0);
    RUN(form, Bcast, Ibcast, one, count, MPI_INT, root);
    check(one, count, root, 0, "broadcast", form);

    for (int in_place = 0; in_place < 2; in_place++) {
        memset(all, -1, count * size * sizeof(int));
        fill(one, count, rank, root);
        fill(all + count * rank, count, rank, root);
        if (rank == root && in_place)
            RUN(form, Gather, Igather, MPI_IN_PLACE, 0, MPI_INT, all, count, MPI_INT, root);
        else
            RUN(form, Gather, Igather, one, count, MPI_INT, rank == root ? all : NULL, count, MPI_INT, root);
        for (int r = 0; r < size && rank == root; r++)
            check(all + r * count, count, r, root, "gather", form);

        for (int r = 0; r < size; r++) fill(all + r * count, count, rank, r);
        memset(one, -1, count * sizeof(int));
        if (rank == root && in_place) {
            RUN(form, Scatter, Iscatter, all, count, MPI_INT, MPI_IN_PLACE, 0, MPI_INT, root);
            for (int r = 0; r < size; r++) check(all + r * count, count, rank, r, "scatter's source", form);
        } else {
            RUN(form, Scatter, Iscatter, rank == root ? all : NULL, count, MPI_INT, one, count, MPI_INT, root);
            check(one, count, root, rank, "scatter", form);
        }

        memset(all, -1, count * size * sizeof(int));
        fill(one, count, rank, 0);
        fill(all + count * rank, count, rank, 0);
        if (in_place)
            RUN(form, Allgather, Iallgather, MPI_IN_PLACE, 0, MPI_INT, all, count, MPI_INT);
        else
            RUN(form, Allgather, Iallgather, one, count, MPI_INT, all, count, MPI_INT);
        for (int r = 0; r < size; r++) check(all + r * count, count, r, 0, "allgather", form);

        for (int r = 0; r < size; r++) fill(more + r * count, count, rank, r);
        memcpy(all, more, count * size * sizeof(int));
        if (in_place)
            RUN(form, Alltoall, Ialltoall, MPI_IN_PLACE, 0, MPI_INT, all, count, MPI_INT);
        else
            RUN(form, Alltoall, Ialltoall, more, count, MPI_INT, all, count, MPI_INT);
        for (int r = 0; r < size; r++) check(all + r * count, count, r, rank, "alltoall", form);
    }
    free(one);
    free(all);
    free(more);
}

/* A persistent operation that is started several times, with other data, and several at once. */
static void restarts(void) {
    int number[2] = {0}, result[2][64];
    MPI_Request requests[2];
    for (int i = 0; i < 2; i++)
        MPI_Allgather_init(&number[i], 1, MPI_INT, result[i], 1, MPI_INT, comm, MPI_INFO_NULL, &requests[i]);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 2; i++) number[i] = 100 * round + 10 * i + rank;
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 2; i++)
            for (int r = 0; r < size; r++)
                ASSERT(result[i][r] == 100 * round + 10 * i + r, "round %d: %d", round, result[i][r]);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* Barriers: nobody leaves before the last has come. */
static void barriers(void) {
    for (int form = 0; form < 3; form++) {
        for (int last = 0; last < size; last++) {
            MPI_Request r;
            int token = 0, got = 0;
            if (rank == last)
                for (int other = 0; other < size; other++)
                    if (other != last) MPI_Send(&token, 1, MPI_INT, other, 7, comm);
            if (form == 0) MPI_Barrier(comm);
            if (form == 1) {
                MPI_Ibarrier(comm, &r);
                MPI_Wait(&r, MPI_STATUS_IGNORE);
            }
            if (form == 2) {
                MPI_Barrier_init(comm, MPI_INFO_NULL, &r);
                MPI_Start(&r);
                MPI_Wait(&r, MPI_STATUS_IGNORE);
                MPI_Request_free(&r);
            }
            if (rank != last) {
                MPI_Recv(&token, 1, MPI_INT, last, 7, comm, MPI_STATUS_IGNORE);
                got = 1;
            }
            ASSERT(got == (rank != last), "%s barrier", forms[form]);
        }
    }
}

/* Many operations at once, completed in another order, and while a process waits for a message. */
static void many(void) {
    enum { N = 60 };
    static int source[N], target[N][64];
    MPI_Request requests[N];
    for (int i = 0; i < N; i++) {
        source[i] = 1000 * i + rank;
        MPI_Iallgather(&source[i], 1, MPI_INT, target[i], 1, MPI_INT, comm, &requests[i]);
    }
    int token = 0;
    if (size > 1 && rank == 0) MPI_Recv(&token, 1, MPI_INT, 1, 3, comm, MPI_STATUS_IGNORE);
    for (int i = N - 1; i >= 0; i--) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(&token, 1, MPI_INT, 0, 3, comm);
    for (int i = 0; i < N; i++)
        for (int r = 0; r < size; r++)
            ASSERT(target[i][r] == 1000 * i + r, "operation %d: %d of rank %d", i, target[i][r], r);
}

/* Persistent operations that every rank starts in an order of its own. */
static void any_order(void) {
    enum { N = 6 };
    int sums[N], mine[N], value = -1, all[N][64];
    MPI_Request requests[N + 2];
    for (int i = 0; i < N; i++) {
        if (i % 2)
            MPI_Allreduce_init(&mine[i], &sums[i], 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &requests[i]);
        else
            MPI_Allgather_init(&mine[i], 1, MPI_INT, all[i], 1, MPI_INT, comm, MPI_INFO_NULL, &requests[i]);
    }
    MPI_Bcast_init(&value, 1, MPI_INT, 0, comm, MPI_INFO_NULL, &requests[N]);
    MPI_Barrier_init(comm, MPI_INFO_NULL, &requests[N + 1]);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < N; i++) mine[i] = 100 * i + rank + round;
        value = rank == 0 ? 42 + round : -1;
        for (int i = 0; i < N + 2; i++) {
            MPI_Start(&requests[(i * (rank % 2 ? 1 : 3) + rank + round) % (N + 2)]);
            /* Other operations are started in between. */
            if (i == N / 2) MPI_Barrier(comm);
        }
        MPI_Waitall(N + 2, requests, MPI_STATUSES_IGNORE);
        ASSERT(value == 42 + round, "round %d: %d from the root", round, value);
        for (int i = 0; i < N; i++) {
            int sum = size * (100 * i + round) + size * (size - 1) / 2;
            if (i % 2) ASSERT(sums[i] == sum, "round %d, operation %d: %d, not %d", round, i, sums[i], sum);
            else
                for (int r = 0; r < size; r++)
                    ASSERT(all[i][r] == 100 * i + r + round, "round %d, operation %d: %d of rank %d", round, i, all[i][r], r);
        }
    }
    for (int i = 0; i < N + 2; i++) MPI_Request_free(&requests[i]);
}

/* The root may scatter constants, and keeps its block where it is. */
static void constants(void) {
    static const int table[64] = {7, 8, 9, 10, 11, 12, 13, 14};
    int mine = -1;
    if (size > 8) return;
    if (rank == 0)
        MPI_Scatter(table, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, comm);
    else {
        MPI_Scatter(NULL, 1, MPI_INT, &mine, 1, MPI_INT, 0, comm);
        ASSERT(mine == 7 + rank, "the block of rank %d is %d", rank, mine);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int pass = 0; pass < 2; pass++) {
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &size);
        int counts[] = {0, 1, 3, 100, 5000, 70000};
        for (int form = 0; form < 3; form++)
            for (int c = 0; c < 6; c++)
                for (int root = 0; root < size; root += 1 + size / 3) test(form, counts[c], root);
        constants();
        restarts();
        barriers();
        many();
        any_order();
        /* Once more in a communicator of the same processes in reverse order. */
        if (pass == 0) MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &comm);
    }
    MPI_Comm_free(&comm);
    return finish();
}
