/* Sends in all modes, blocking, non-blocking and persistent, of sizes around the protocols' limits; order; probes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures, me, n;
#define CHECK(condition, ...) \
    do { if (!(condition)) { printf("rank %d, line %d: ", me, __LINE__); printf(__VA_ARGS__); printf("\n"); failures++; } } while (0)

static const int sizes[] = {0, 1, 7, 40, 41, 1000, 16383, 16384, 16385, 70000, 1 << 20};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static unsigned char value(int from, int size, int i) { return (unsigned char)(from * 31 + size * 7 + i * 13 + (i >> 8)); }

static void fill(unsigned char *data, int from, int size) {
    for (int i = 0; i < size; i++) data[i] = value(from, size, i);
}

static int is_right(const unsigned char *data, int from, int size) {
    for (int i = 0; i < size; i++)
        if (data[i] != value(from, size, i)) return 0;
    return 1;
}

/* Each rank sends to the next one in a mode, and receives from the one before. */
static void in_mode(int mode, int size) {
    int next = (me + 1) % n, before = (me + n - 1) % n, count;
    unsigned char *out = malloc(size + 1), *in = malloc(size + 1);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    fill(out, me, size);
    memset(in, 0, size + 1);
    MPI_Irecv(in, size, MPI_BYTE, before, 3, MPI_COMM_WORLD, &requests[0]);
    switch (mode) {
    case 0: MPI_Isend(out, size, MPI_BYTE, next, 3, MPI_COMM_WORLD, &requests[1]); break;
    case 1: MPI_Issend(out, size, MPI_BYTE, next, 3, MPI_COMM_WORLD, &requests[1]); break;
    case 2: MPI_Ibsend(out, size, MPI_BYTE, next, 3, MPI_COMM_WORLD, &requests[1]); memset(out, 0, size); break;
    case 3: MPI_Barrier(MPI_COMM_WORLD); MPI_Irsend(out, size, MPI_BYTE, next, 3, MPI_COMM_WORLD, &requests[1]); break;
    }
    MPI_Waitall(2, requests, statuses);
    CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL, "requests of mode %d are not null", mode);
    MPI_Get_count(&statuses[0], MPI_BYTE, &count);
    CHECK(count == size, "mode %d: count %d, expected %d", mode, count, size);
    CHECK(statuses[0].MPI_SOURCE == before && statuses[0].MPI_TAG == 3, "mode %d: source %d, tag %d", mode,
          statuses[0].MPI_SOURCE, statuses[0].MPI_TAG);
    CHECK(is_right(in, before, size) && in[size] == 0, "mode %d: wrong data of %d bytes", mode, size);
    free(out);
    free(in);
}

static void persistent(int size) {
    int next = (me + 1) % n, before = (me + n - 1) % n;
    unsigned char *out = malloc(size + 1), *in = malloc(size + 1);
    MPI_Request requests[4];
    MPI_Recv_init(in, size, MPI_BYTE, before, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, size, MPI_BYTE, next, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Recv_init(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &requests[2]);
    MPI_Ssend_init(NULL, 0, MPI_BYTE, next, 5, MPI_COMM_WORLD, &requests[3]);
    for (int round = 0; round < 5; round++) {
        fill(out, me + round, size);
        memset(in, 0, size + 1);
        MPI_Startall(4, requests);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        CHECK(is_right(in, before + round, size), "persistent: wrong data of %d bytes in round %d", size, round);
        CHECK(requests[0] != MPI_REQUEST_NULL, "a persistent request became null");
    }
    /* Inactive requests are complete, with the empty status. */
    MPI_Status status;
    int flag = 0, index = 0;
    MPI_Test(&requests[0], &flag, &status);
    CHECK(flag && status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG, "test of an inactive request");
    MPI_Waitany(4, requests, &index, &status);
    CHECK(index == MPI_UNDEFINED, "index %d of inactive requests", index);
    for (int i = 0; i < 4; i++) MPI_Request_free(&requests[i]);
    free(out);
    free(in);
}

/* Messages from one sender are received in their order, whatever their lengths are. */
static void order(void) {
    enum { MESSAGES = 60 };
    static int data[MESSAGES][9000];
    int next = (me + 1) % n, before = (me + n - 1) % n;
    MPI_Request requests[2 * MESSAGES];
    static int out[MESSAGES][9000];
    for (int i = 0; i < MESSAGES; i++) {
        int count = (i * 577) % 9000 + 1;
        out[i][0] = i;
        MPI_Isend(out[i], count, MPI_INT, next, i % 2, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < MESSAGES; i++)
        MPI_Irecv(data[i], 9000, MPI_INT, i % 3 ? before : MPI_ANY_SOURCE, i % 2, MPI_COMM_WORLD, &requests[MESSAGES + i]);
    MPI_Status statuses[2 * MESSAGES];
    MPI_Waitall(2 * MESSAGES, requests, statuses);
    for (int i = 0; i < MESSAGES; i++) {
        int count;
        MPI_Get_count(&statuses[MESSAGES + i], MPI_INT, &count);
        CHECK(data[i][0] == i && count == (i * 577) % 9000 + 1, "message %d came as %d with %d elements", data[i][0], i, count);
    }
}

static void probes(void) {
    int next = (me + 1) % n, before = (me + n - 1) % n, flag, count;
    MPI_Request request;
    MPI_Status status;
    MPI_Message message;
    double out[3] = {me, 2, 3}, in[3] = {0, 0, 0};
    MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, &status);
    CHECK(!flag, "a message that nobody has sent was found");
    MPI_Isend(out, 3, MPI_DOUBLE, next, 9, MPI_COMM_WORLD, &request);
    MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    CHECK(status.MPI_SOURCE == before && status.MPI_TAG == 9 && count == 3, "probe: %d %d %d", status.MPI_SOURCE, status.MPI_TAG, count);
    MPI_Mprobe(before, 9, MPI_COMM_WORLD, &message, &status);
    MPI_Iprobe(before, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(!flag, "a message that was taken is found again");
    MPI_Mrecv(in, 3, MPI_DOUBLE, &message, &status);
    CHECK(message == MPI_MESSAGE_NULL && in[0] == before && in[2] == 3, "mrecv: %g %g", in[0], in[2]);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Improbe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &message, &status);
    CHECK(flag && message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL, "improbe of no process");
    MPI_Imrecv(in, 3, MPI_DOUBLE, &message, &request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && count == 0, "imrecv of no process: %d", count);
}

static void replace(void) {
    int next = (me + 1) % n, before = (me + n - 1) % n;
    int data[5000];
    MPI_Status status;
    MPI_Request request;
    for (int i = 0; i < 5000; i++) data[i] = me * 10000 + i;
    MPI_Sendrecv_replace(data, 5000, MPI_INT, next, 6, before, 6, MPI_COMM_WORLD, &status);
    CHECK(data[4999] == before * 10000 + 4999 && status.MPI_SOURCE == before, "sendrecv_replace: %d", data[4999]);
    MPI_Isendrecv_replace(data, 5000, MPI_INT, before, 7, next, 7, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    CHECK(data[1] == me * 10000 + 1 && status.MPI_SOURCE == next, "isendrecv_replace: %d", data[1]);
}

int main(int argc, char **argv) {
    int all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    int room = (1 << 20) + MPI_BSEND_OVERHEAD;
    void *buffer = malloc(room), *detached;
    MPI_Buffer_attach(buffer, room);
    for (int i = 0; i < SIZES; i++) {
        for (int mode = 0; mode < 4; mode++) in_mode(mode, sizes[i]);
        persistent(sizes[i]);
    }
    MPI_Buffer_detach(&detached, &room);
    CHECK(detached == buffer && room == (1 << 20) + MPI_BSEND_OVERHEAD, "detach: %p %d", detached, room);
    MPI_Barrier(MPI_COMM_WORLD);
    order();
    MPI_Barrier(MPI_COMM_WORLD);
    probes();
    replace();
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all != 0;
}
