/* Generalised requests, completed by this thread and by another. */
#include "check.h"
#include <pthread.h>

static int queries, frees, cancels, was_complete, query_code, free_code;

static int query(void *extra, MPI_Status *status) {
    queries++;
    MPI_Status_set_source(status, 5);
    MPI_Status_set_tag(status, *(int *)extra);
    MPI_Status_set_cancelled(status, cancels > 0);
    return query_code;
}

static int release(void *extra) {
    frees++;
    return free_code;
}

static int cancel(void *extra, int complete) {
    cancels++;
    was_complete = complete;
    return MPI_SUCCESS;
}

static void *complete(void *request) {
    WORKS(MPI_Grequest_complete(*(MPI_Request *)request));
    return NULL;
}

static void reset(void) { queries = frees = cancels = query_code = free_code = 0; }

static MPI_Request begin(int *tag) {
    MPI_Request request = MPI_REQUEST_NULL;
    reset();
    WORKS(MPI_Grequest_start(query, release, cancel, tag, &request));
    return request;
}

static void one_thread(void) {
    int tag = 7, flag;
    MPI_Status status;
    MPI_Request request = begin(&tag);
    WORKS(MPI_Test(&request, &flag, &status));
    EQUAL("an open operation", 0, flag);
    WORKS(MPI_Request_get_status(request, &flag, &status));
    EQUAL("an open operation", 0, flag);
    EQUAL("queries", 0, queries);
    WORKS(MPI_Cancel(&request));
    HOLDS(cancels == 1 && was_complete == 0);
    WORKS(MPI_Grequest_complete(request));
    GIVES(MPI_ERR_REQUEST, MPI_Grequest_complete(request));
    for (int i = 1; i <= 2; i++) {
        WORKS(MPI_Request_get_status(request, &flag, &status));
        HOLDS(flag && status.MPI_TAG == 7 && queries == i && frees == 0);
    }
    WORKS(MPI_Wait(&request, &status));
    HOLDS(request == MPI_REQUEST_NULL && queries == 3 && frees == 1);
    HOLDS(status.MPI_SOURCE == 5 && status.MPI_TAG == 7);
    WORKS(MPI_Test_cancelled(&status, &flag));
    EQUAL("cancelled", 1, flag);
    request = begin(&tag);
    MPI_Grequest_complete(request);
    WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    HOLDS(queries == 1 && frees == 1);
}

static void early_free(void) {
    int tag = 1;
    MPI_Request request = begin(&tag), copy = request;
    WORKS(MPI_Request_free(&request));
    HOLDS(request == MPI_REQUEST_NULL && frees == 0);
    WORKS(MPI_Grequest_complete(copy));
    HOLDS(queries == 0 && frees == 1);
    GIVES(MPI_ERR_REQUEST, MPI_Grequest_complete(copy));
    request = begin(&tag);
    MPI_Grequest_complete(request);
    WORKS(MPI_Request_free(&request));
    EQUAL("frees", 1, frees);
}

static void failing_functions(void) {
    int tag = 2;
    MPI_Status status;
    MPI_Request request = begin(&tag);
    query_code = MPI_ERR_OTHER;
    MPI_Grequest_complete(request);
    int flag = 0;
    GIVES(MPI_ERR_OTHER, MPI_Request_get_status(request, &flag, &status));
    HOLDS(flag);
    GIVES(MPI_ERR_OTHER, MPI_Wait(&request, &status));
    HOLDS(request == MPI_REQUEST_NULL && frees == 1);
    request = begin(&tag);
    free_code = MPI_ERR_ARG;
    MPI_Grequest_complete(request);
    GIVES(MPI_ERR_IN_STATUS, MPI_Waitall(1, &request, &status));
    EQUAL("the error in the status", MPI_ERR_ARG, status.MPI_ERROR);
    reset();
    GIVES(MPI_ERR_ARG, MPI_Grequest_start(NULL, release, cancel, &tag, &request));
    GIVES(MPI_ERR_REQUEST, MPI_Grequest_complete(MPI_REQUEST_NULL));
    int rank, buffer;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Irecv(&buffer, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &request);
    GIVES(MPI_ERR_REQUEST, MPI_Grequest_complete(request));
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void with_others(void) {
    int tag = 3, flag, index, indices[2], n, zero = 0;
    MPI_Status statuses[2];
    MPI_Request requests[2];
    reset();
    requests[0] = begin(&tag);
    requests[1] = begin(&zero);
    MPI_Grequest_complete(requests[1]);
    WORKS(MPI_Testall(2, requests, &flag, statuses));
    HOLDS(!flag && queries == 0 && frees == 0);
    WORKS(MPI_Waitany(2, requests, &index, statuses));
    HOLDS(index == 1 && statuses[0].MPI_TAG == 0 && frees == 1);
    MPI_Grequest_complete(requests[0]);
    WORKS(MPI_Waitsome(2, requests, &n, indices, statuses));
    HOLDS(n == 1 && indices[0] == 0 && statuses[0].MPI_TAG == 3);
}

static void another_thread(void) {
    int tag = 9;
    for (int round = 0; round < 50; round++) {
        MPI_Status status;
        MPI_Request request = begin(&tag), copy = request;
        pthread_t thread;
        pthread_create(&thread, NULL, complete, &copy);
        if (round % 2) {
            WORKS(MPI_Wait(&request, &status));
        } else {
            WORKS(MPI_Waitall(1, &request, &status));
        }
        pthread_join(thread, NULL);
        HOLDS(status.MPI_TAG == 9 && queries == 1 && frees == 1);
    }
}

int main(int argc, char **argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    one_thread();
    early_free();
    failing_functions();
    with_others();
    another_thread();
    MPI_Finalize();
    return VERDICT();
}
