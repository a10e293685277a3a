/* MPI_Request_get_status and its forms for several requests: the requests stay. */
#include "check.h"

int main(int argc, char **argv) {
    int rank, flag, index, n, indices[4], in[2] = {0, 0}, out = 42;
    MPI_Status status, statuses[4];
    MPI_Request requests[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    status.MPI_ERROR = MPI_ERR_DIMS;
    WORKS(MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &status));
    HOLDS(flag && status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
    EQUAL("the error of an empty status", MPI_SUCCESS, status.MPI_ERROR);
    status.MPI_ERROR = MPI_ERR_DIMS;
    WORKS(MPI_Wait(&requests[0], &status));
    EQUAL("the error of an empty status", MPI_SUCCESS, status.MPI_ERROR);
    status.MPI_ERROR = MPI_ERR_DIMS;
    WORKS(MPI_Testany(4, requests, &index, &flag, &status));
    EQUAL("the error of an empty status", MPI_SUCCESS, status.MPI_ERROR);
    statuses[3].MPI_ERROR = MPI_ERR_DIMS;
    WORKS(MPI_Request_get_status_all(4, requests, &flag, statuses));
    HOLDS(flag && statuses[3].MPI_SOURCE == MPI_ANY_SOURCE);
    EQUAL("the error of an empty status", MPI_SUCCESS, statuses[3].MPI_ERROR);
    statuses[2].MPI_ERROR = MPI_ERR_DIMS;
    WORKS(MPI_Waitall(4, requests, statuses));
    EQUAL("the error of an empty status", MPI_SUCCESS, statuses[2].MPI_ERROR);
    statuses[1].MPI_ERROR = MPI_ERR_DIMS;
    WORKS(MPI_Testall(4, requests, &flag, statuses));
    EQUAL("the error of an empty status", MPI_SUCCESS, statuses[1].MPI_ERROR);
    WORKS(MPI_Request_get_status_any(4, requests, &index, &flag, &status));
    HOLDS(flag && index == MPI_UNDEFINED && status.MPI_TAG == MPI_ANY_TAG);
    WORKS(MPI_Request_get_status_some(4, requests, &n, indices, statuses));
    EQUAL("outcount of null requests", MPI_UNDEFINED, n);
    WORKS(MPI_Request_get_status_all(0, NULL, &flag, MPI_STATUSES_IGNORE));
    EQUAL("flag of no requests", 1, flag);

    MPI_Irecv(&in[0], 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(&in[1], 1, MPI_INT, rank, 2, MPI_COMM_WORLD, &requests[2]);
    WORKS(MPI_Request_get_status_all(4, requests, &flag, statuses));
    EQUAL("open receives", 0, flag);
    WORKS(MPI_Request_get_status_any(4, requests, &index, &flag, &status));
    HOLDS(!flag);
    WORKS(MPI_Request_get_status_some(4, requests, &n, indices, statuses));
    EQUAL("open receives", 0, n);
    MPI_Send(&out, 1, MPI_INT, rank, 2, MPI_COMM_WORLD);
    do WORKS(MPI_Request_get_status(requests[2], &flag, &status));
    while (!flag);
    HOLDS(status.MPI_SOURCE == rank && status.MPI_TAG == 2 && in[1] == 42);
    WORKS(MPI_Request_get_status_any(4, requests, &index, &flag, &status));
    HOLDS(flag && index == 2 && status.MPI_TAG == 2);
    WORKS(MPI_Request_get_status_some(4, requests, &n, indices, statuses));
    HOLDS(n == 1 && indices[0] == 2 && statuses[0].MPI_TAG == 2);
    WORKS(MPI_Request_get_status_all(4, requests, &flag, MPI_STATUSES_IGNORE));
    EQUAL("one of two", 0, flag);
    HOLDS(requests[2] != MPI_REQUEST_NULL);
    MPI_Send(&out, 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
    do WORKS(MPI_Request_get_status_all(4, requests, &flag, statuses));
    while (!flag);
    HOLDS(statuses[1].MPI_TAG == 1 && statuses[2].MPI_TAG == 2 && statuses[0].MPI_TAG == MPI_ANY_TAG);
    WORKS(MPI_Waitall(4, requests, statuses));
    HOLDS(requests[1] == MPI_REQUEST_NULL && statuses[1].MPI_TAG == 1);

    /* An inactive request counts as null. */
    MPI_Recv_init(&in[0], 1, MPI_INT, rank, 4, MPI_COMM_WORLD, &requests[0]);
    WORKS(MPI_Request_get_status_any(1, requests, &index, &flag, &status));
    HOLDS(flag && index == MPI_UNDEFINED);
    status.MPI_ERROR = statuses[0].MPI_ERROR = MPI_ERR_DIMS;
    WORKS(MPI_Request_get_status(requests[0], &flag, &status));
    HOLDS(flag && status.MPI_TAG == MPI_ANY_TAG && status.MPI_ERROR == MPI_SUCCESS);
    WORKS(MPI_Request_get_status_all(1, requests, &flag, statuses));
    HOLDS(flag && statuses[0].MPI_TAG == MPI_ANY_TAG && statuses[0].MPI_ERROR == MPI_SUCCESS);
    status.MPI_ERROR = statuses[0].MPI_ERROR = MPI_ERR_DIMS;
    WORKS(MPI_Wait(&requests[0], &status));
    HOLDS(status.MPI_TAG == MPI_ANY_TAG && status.MPI_ERROR == MPI_SUCCESS);
    WORKS(MPI_Waitall(1, requests, statuses));
    HOLDS(statuses[0].MPI_TAG == MPI_ANY_TAG && statuses[0].MPI_ERROR == MPI_SUCCESS);
    /* It stays inactive, also where a test of several finds others open: it can be started. */
    MPI_Irecv(&in[1], 1, MPI_INT, rank, 5, MPI_COMM_WORLD, &requests[1]);
    WORKS(MPI_Testall(2, requests, &flag, statuses));
    EQUAL("an inactive request and an open one", 0, flag);
    WORKS(MPI_Start(&requests[0]));
    out = 43;
    MPI_Send(&out, 1, MPI_INT, rank, 4, MPI_COMM_WORLD);
    MPI_Send(&out, 1, MPI_INT, rank, 5, MPI_COMM_WORLD);
    WORKS(MPI_Waitall(2, requests, statuses));
    HOLDS(in[0] == 43 && in[1] == 43 && statuses[0].MPI_TAG == 4 && statuses[1].MPI_TAG == 5);
    MPI_Request_free(&requests[0]);

    GIVES(MPI_ERR_COUNT, MPI_Request_get_status_all(-1, requests, &flag, statuses));
    GIVES(MPI_ERR_ARG, MPI_Request_get_status_any(1, requests, &index, NULL, &status));
    GIVES(MPI_ERR_REQUEST, MPI_Request_get_status_some(1, NULL, &n, indices, statuses));
    MPI_Finalize();
    return VERDICT();
}
