/* Mistakes in point-to-point calls: the class of the error, and its text. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures, me, n;
#define CHECK(condition, ...) \
    do { if (!(condition)) { printf("rank %d, line %d: ", me, __LINE__); printf(__VA_ARGS__); printf("\n"); failures++; } } while (0)

static void expect(int code, int class, const char *word) {
    int found;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_class(code, &found);
    CHECK(found == class, "class %d, expected %d (%s)", found, class, word);
    MPI_Error_string(code, text, &length);
    CHECK(strstr(text, word) != NULL, "the text \"%s\" does not say \"%s\"", text, word);
}

static int errors_counted;

static void count_errors(MPI_Comm *comm, int *code, ...) {
    (void) comm;
    (void) code;
    errors_counted++;
}

int main(int argc, char **argv) {
    int all, data[4] = {1, 2, 3, 4}, flag;
    MPI_Request request;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    expect(MPI_Send(data, 1, MPI_INT, n, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "rank");
    expect(MPI_Send(data, 1, MPI_INT, -7, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "-7");
    expect(MPI_Send(data, -1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT, "-1");
    expect(MPI_Send(data, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE, "MPI_DATATYPE_NULL");
    expect(MPI_Send(data, 1, MPI_INT, 0, -5, MPI_COMM_WORLD), MPI_ERR_TAG, "-5");
    expect(MPI_Send(data, 1, MPI_INT, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM, "MPI_COMM_NULL");
    expect(MPI_Send(data, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD), MPI_ERR_TAG, "tag");
    /* A message to no process has a tag as well. */
    expect(MPI_Send(data, 1, MPI_INT, MPI_PROC_NULL, -5, MPI_COMM_WORLD), MPI_ERR_TAG, "-5");
    expect(MPI_Isend(data, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &request), MPI_ERR_TAG, "tag");
    expect(MPI_Send_init(data, 1, MPI_INT, MPI_PROC_NULL, -5, MPI_COMM_WORLD, &request), MPI_ERR_TAG, "-5");
    expect(MPI_Sendrecv(data, 1, MPI_INT, MPI_PROC_NULL, -5, data, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status),
           MPI_ERR_TAG, "-5");
    expect(MPI_Recv(data, 1, MPI_INT, n + 3, 0, MPI_COMM_WORLD, &status), MPI_ERR_RANK, "rank");
    expect(MPI_Irecv(data, 1, MPI_INT, 0, -9, MPI_COMM_WORLD, &request), MPI_ERR_TAG, "-9");
    expect(MPI_Probe(n, 0, MPI_COMM_WORLD, &status), MPI_ERR_RANK, "rank");
    request = MPI_REQUEST_NULL;
    expect(MPI_Start(&request), MPI_ERR_REQUEST, "request");
    expect(MPI_Request_free(&request), MPI_ERR_REQUEST, "request");
    /* A message that is longer than the room for it. */
    int small = 0, next = (me + 1) % n, before = (me + n - 1) % n;
    MPI_Isend(data, 4, MPI_INT, next, 1, MPI_COMM_WORLD, &request);
    expect(MPI_Recv(&small, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE, "longer");
    CHECK(small == 1 && status.MPI_SOURCE == before, "the beginning of the message is there: %d", small);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* One of several operations fails. */
    MPI_Request both[2];
    MPI_Status statuses[2];
    MPI_Irecv(&small, 1, MPI_INT, before, 2, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(data, 4, MPI_INT, next, 2, MPI_COMM_WORLD, &both[1]);
    expect(MPI_Waitall(2, both, statuses), MPI_ERR_IN_STATUS, "failed");
    CHECK(statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE && statuses[1].MPI_ERROR == MPI_SUCCESS, "errors %d and %d",
          statuses[0].MPI_ERROR, statuses[1].MPI_ERROR);
    MPI_Request three[3];
    MPI_Status of_some[3];
    int completed, places[3];
    MPI_Isend(data, 1, MPI_INT, me, 5, MPI_COMM_WORLD, &three[0]);
    MPI_Isend(data, 4, MPI_INT, me, 6, MPI_COMM_WORLD, &three[1]);
    MPI_Recv(&small, 1, MPI_INT, me, 5, MPI_COMM_WORLD, &status);
    MPI_Irecv(&small, 1, MPI_INT, me, 6, MPI_COMM_WORLD, &three[2]);
    for (int i = 0; i < 3; i++) of_some[i].MPI_ERROR = MPI_ERR_DIMS;
    expect(MPI_Waitsome(3, three, &completed, places, of_some), MPI_ERR_IN_STATUS, "failed");
    for (int i = 0; i < completed; i++)
        CHECK(of_some[i].MPI_ERROR == (places[i] == 2 ? MPI_ERR_TRUNCATE : MPI_SUCCESS), "error %d of request %d",
              of_some[i].MPI_ERROR, places[i]);
    MPI_Waitall(3, three, MPI_STATUSES_IGNORE);
    /* Buffered sends without a buffer, or with one that is too small. */
    expect(MPI_Bsend(data, 4, MPI_INT, next, 3, MPI_COMM_WORLD), MPI_ERR_BUFFER, "buffer");
    /* A receive that fails leaves a message that a probe has taken. */
    MPI_Message message;
    int got[4] = {0};
    MPI_Issend(data, 4, MPI_INT, next, 4, MPI_COMM_WORLD, &request);
    MPI_Mprobe(before, 4, MPI_COMM_WORLD, &message, &status);
    expect(MPI_Mrecv(NULL, 4, MPI_INT, &message, &status), MPI_ERR_BUFFER, "null");
    expect(MPI_Mrecv(got, -1, MPI_INT, &message, &status), MPI_ERR_COUNT, "-1");
    expect(MPI_Mrecv(got, 4, MPI_DATATYPE_NULL, &message, &status), MPI_ERR_TYPE, "MPI_DATATYPE_NULL");
    expect(MPI_Imrecv(NULL, 4, MPI_INT, &message, &both[0]), MPI_ERR_BUFFER, "null");
    expect(MPI_Imrecv(got, 4, MPI_INT, &message, NULL), MPI_ERR_ARG, "null");
    CHECK(message != MPI_MESSAGE_NULL, "the message is gone");
    /* Errors go to the handler of the communicator in which the message was found. */
    MPI_Comm own;
    MPI_Errhandler counter;
    MPI_Message of_own;
    MPI_Request sent;
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    MPI_Comm_create_errhandler(count_errors, &counter);
    MPI_Comm_set_errhandler(own, counter);
    MPI_Isend(data, 1, MPI_INT, 0, 0, own, &sent);
    MPI_Mprobe(0, 0, own, &of_own, &status);
    expect(MPI_Mrecv(got, -1, MPI_INT, &of_own, &status), MPI_ERR_COUNT, "-1");
    CHECK(errors_counted == 1, "the handler of the communicator was called %d times", errors_counted);
    CHECK(MPI_Mrecv(got, 4, MPI_INT, &of_own, &status) == MPI_SUCCESS, "the message cannot be received");
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Errhandler_free(&counter);
    MPI_Comm_free(&own);
    CHECK(MPI_Mrecv(got, 4, MPI_INT, &message, &status) == MPI_SUCCESS, "the message cannot be received");
    CHECK(message == MPI_MESSAGE_NULL && got[3] == 4, "the message has %d", got[3]);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(MPI_Mrecv(got, 4, MPI_INT, &message, &status), MPI_ERR_REQUEST, "null");
    /* A call that fails completes no request. */
    MPI_Request some[2];
    int found, indices[2];
    MPI_Isend(data, 1, MPI_INT, next, 2, MPI_COMM_WORLD, &some[0]);
    MPI_Recv(got, 1, MPI_INT, before, 2, MPI_COMM_WORLD, &status);
    MPI_Irecv(got, 1, MPI_INT, before, 3, MPI_COMM_WORLD, &some[1]);
    MPI_Request freed = some[1];
    MPI_Cancel(&some[1]);
    MPI_Wait(&some[1], &status);
    some[1] = freed;
    expect(MPI_Waitsome(2, some, &found, indices, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST, "freed");
    CHECK(some[0] != MPI_REQUEST_NULL, "a request was completed by a call that failed");
    MPI_Wait(&some[0], &status);
    /* Cancelled receives. */
    MPI_Irecv(data, 4, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag, "a receive without a message was not cancelled");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all != 0;
}
