/* Partitioned communication: other numbers of partitions on both sides, partitions in any order, several rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures, me, n;
#define CHECK(condition, ...) \
    do { if (!(condition)) { printf("rank %d, line %d: ", me, __LINE__); printf(__VA_ARGS__); printf("\n"); failures++; } } while (0)

static void exchange(int send_partitions, int receive_partitions, int elements, int rounds) {
    int next = (me + 1) % n, before = (me + n - 1) % n, flag;
    int *out = malloc(elements * sizeof(int)), *in = malloc(elements * sizeof(int));
    MPI_Request requests[2];
    MPI_Psend_init(out, send_partitions, elements / send_partitions, MPI_INT, next, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(in, receive_partitions, elements / receive_partitions, MPI_INT, before, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < elements; i++) out[i] = me * 100000 + round * 1000 + i;
        memset(in, 0, elements * sizeof(int));
        MPI_Startall(2, requests);
        int half = send_partitions / 2;
        for (int i = send_partitions - 1; i >= half; i--) MPI_Pready(i, requests[0]);
        if (half > 0) MPI_Pready_range(0, half - 1, requests[0]);
        for (int i = 0; i < receive_partitions; i++) {
            do MPI_Parrived(requests[1], i, &flag); while (!flag);
            int last = (i + 1) * (elements / receive_partitions) - 1;
            CHECK(in[last] == before * 100000 + round * 1000 + last, "partition %d of round %d has %d", i, round, in[last]);
        }
        MPI_Status statuses[2];
        MPI_Waitall(2, requests, statuses);
        int count;
        MPI_Get_count(&statuses[1], MPI_INT, &count);
        CHECK(count == elements && statuses[1].MPI_SOURCE == before && statuses[1].MPI_TAG == 5, "count %d", count);
        for (int i = 0; i < elements; i++)
            if (in[i] != before * 100000 + round * 1000 + i) { CHECK(0, "element %d is %d", i, in[i]); break; }
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    free(out);
    free(in);
}

/* Partitions with gaps in the receive buffer are in their places as soon as they have arrived. */
static void gaps(void) {
    enum { PARTITIONS = 8, EACH = 5, STRIDE = 3, ROOM = PARTITIONS * EACH * STRIDE };
    int next = (me + 1) % n, before = (me + n - 1) % n, flag, out[PARTITIONS * EACH], in[ROOM], token = 0;
    MPI_Datatype column, element;
    MPI_Type_vector(1, 1, STRIDE, MPI_INT, &column);
    MPI_Type_create_resized(column, 0, STRIDE * sizeof(int), &element);
    MPI_Type_commit(&element);
    MPI_Request requests[2];
    MPI_Psend_init(out, PARTITIONS, EACH, MPI_INT, next, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(in, PARTITIONS, EACH, element, before, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < PARTITIONS * EACH; i++) out[i] = me * 1000 + round * 100 + i;
        memset(in, 0, sizeof in);
        MPI_Startall(2, requests);
        MPI_Pready(5, requests[0]);
        do MPI_Parrived(requests[1], 5, &flag); while (!flag);
        for (int i = 5 * EACH; i < 6 * EACH; i++)
            CHECK(in[i * STRIDE] == before * 1000 + round * 100 + i, "element %d is %d", i, in[i * STRIDE]);
        in[5 * EACH * STRIDE] = -7;
        MPI_Pready_range(0, 4, requests[0]);
        MPI_Pready_range(6, 7, requests[0]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(in[5 * EACH * STRIDE] == -7, "a partition that had arrived was written again: %d", in[5 * EACH * STRIDE]);
        for (int i = 0; i < ROOM; i++) {
            int expected = i % STRIDE ? 0 : before * 1000 + round * 100 + i / STRIDE;
            if (i != 5 * EACH * STRIDE) CHECK(in[i] == expected, "place %d has %d, not %d", i, in[i], expected);
        }
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Type_free(&element);
    MPI_Type_free(&column);
    /* An empty message needs no datatype. */
    MPI_Sendrecv(NULL, 0, MPI_DATATYPE_NULL, next, 7, NULL, 0, MPI_DATATYPE_NULL, before, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&token, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A call that fails makes no partition ready, also not those that are right. */
static void mistakes(void) {
    int next = (me + 1) % n, before = (me + n - 1) % n, out[4] = {1, 2, 3, 4}, in[4] = {0}, list[3] = {1, 2, 4}, class;
    MPI_Request requests[2];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Psend_init(out, 4, 1, MPI_INT, next, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(in, 4, 1, MPI_INT, before, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Error_class(MPI_Pready_range(2, 4, requests[0]), &class);
    CHECK(class == MPI_ERR_ARG, "a range with a partition that is not there has the class %d", class);
    MPI_Error_class(MPI_Pready_list(3, list, requests[0]), &class);
    CHECK(class == MPI_ERR_ARG, "a list with a partition that is not there has the class %d", class);
    CHECK(MPI_Pready_range(1, 2, requests[0]) == MPI_SUCCESS, "partitions are ready after mistakes");
    MPI_Error_class(MPI_Pready_range(0, 1, requests[0]), &class);
    CHECK(class == MPI_ERR_ARG, "a range with a partition that is ready has the class %d", class);
    CHECK(MPI_Pready(0, requests[0]) == MPI_SUCCESS, "partition 0 is ready after a mistake");
    CHECK(MPI_Pready(3, requests[0]) == MPI_SUCCESS, "partition 3 is ready after a mistake");
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 4; i++) CHECK(in[i] == i + 1, "partition %d has %d", i, in[i]);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* A send to MPI_PROC_NULL takes its partitions also when calls for other requests have found it complete. */
static void to_nobody(void) {
    int next = (me + 1) % n, before = (me + n - 1) % n, out[2] = {1, 2}, in[2] = {0}, flag;
    MPI_Request requests[3];
    MPI_Psend_init(out, 2, 1, MPI_INT, MPI_PROC_NULL, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Psend_init(out, 2, 1, MPI_INT, next, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    MPI_Precv_init(in, 2, 1, MPI_INT, before, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]);
    for (int round = 0; round < 2; round++) {
        MPI_Startall(3, requests);
        MPI_Pready(0, requests[0]);
        MPI_Pready(0, requests[1]);
        MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
        CHECK(!flag, "all are complete before partition 1 is ready");
        MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
        MPI_Pready(1, requests[0]);
        MPI_Pready(1, requests[1]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        CHECK(in[0] == 1 && in[1] == 2, "partitions %d and %d", in[0], in[1]);
        in[0] = in[1] = 0;
    }
    for (int i = 0; i < 3; i++) MPI_Request_free(&requests[i]);
}

/* A message that is shorter than the buffer changes nothing behind its end, also where the receiver's type has
 * gaps. A partition behind it has arrived when all of the message has. */
static void shorter(void) {
    int next = (me + 1) % n, before = (me + n - 1) % n, out[4] = {1, 2, 3, 4}, in[16], flag, count;
    MPI_Datatype wide;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &wide);
    MPI_Type_commit(&wide);
    for (int with_gaps = 0; with_gaps < 2; with_gaps++) {
        const int step = with_gaps ? 2 : 1;
        const MPI_Datatype type = with_gaps ? wide : MPI_INT;
        MPI_Request requests[2];
        MPI_Status statuses[2];
        for (int i = 0; i < 16; i++) in[i] = -1;
        MPI_Psend_init(out, 2, 2, MPI_INT, next, 10, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
        MPI_Precv_init(in, 2, 4, type, before, 10, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
        MPI_Startall(2, requests);
        MPI_Parrived(requests[1], 1, &flag);
        CHECK(n > 1 || !flag, "partition 1 has arrived before one is ready");
        MPI_Pready_range(0, 1, requests[0]);
        do MPI_Parrived(requests[1], 1, &flag); while (!flag);
        MPI_Waitall(2, requests, statuses);
        MPI_Get_count(&statuses[1], type, &count);
        CHECK(count == 4, "%d elements", count);
        for (int i = 0; i < 8; i++) {
            const int expected = i < 4 ? i + 1 : -1;
            CHECK(in[i * step] == expected, "element %d is %d, step %d", i, in[i * step], step);
        }
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
    }
    MPI_Type_free(&wide);
}

int main(int argc, char **argv) {
    int all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    exchange(1, 1, 1, 1);
    exchange(4, 4, 64, 3);
    exchange(8, 2, 800, 3);
    exchange(3, 12, 1200, 2);
    exchange(2, 5, 100000, 2);
    gaps();
    shorter();
    to_nobody();
    mistakes();
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all != 0;
}
