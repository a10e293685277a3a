/* PEs: 2 4 */
/* Many open requests: each function that completes one, some or all of them, in an order that is not theirs, and
 * sends in buffers whose receives come late. */
#include "check.h"
#include <stdlib.h>

enum { REQUESTS = 3000 };

static MPI_Request requests[REQUESTS];
static int values[REQUESTS], indices[REQUESTS];
static MPI_Status statuses[REQUESTS];

/* Starts the receives in one order; the partner sends in the other. */
static void start(int rank, int partner)
{
    for (int i = 0; i < REQUESTS; i++)
        WORKS(MPI_Irecv(&values[i], 1, MPI_INT, partner, i, MPI_COMM_WORLD, &requests[i]));
    for (int i = REQUESTS; i-- > 0;) {
        int value = rank * REQUESTS + i;
        WORKS(MPI_Bsend(&value, 1, MPI_INT, partner, i, MPI_COMM_WORLD));
    }
}

static void check_all(int partner)
{
    for (int i = 0; i < REQUESTS && failures < 10; i++) {
        EQUAL("a value", partner * REQUESTS + i, values[i]);
        EQUAL("a request", 1, requests[i] == MPI_REQUEST_NULL);
    }
}

int main(void)
{
    MPI_Init(NULL, NULL);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int partner = rank ^ 1, bytes = REQUESTS * (sizeof(int) + MPI_BSEND_OVERHEAD);
    void *buffer = malloc(bytes);
    WORKS(MPI_Buffer_attach(buffer, bytes));

    start(rank, partner);
    for (int done = 0; done < REQUESTS; done++) {
        int index;
        MPI_Status status;
        WORKS(MPI_Waitany(REQUESTS, requests, &index, &status));
        EQUAL("the tag of Waitany", index, status.MPI_TAG);
    }
    check_all(partner);

    WORKS(MPI_Buffer_flush());
    start(rank, partner);
    for (int done = 0, found; done < REQUESTS; done += found) {
        for (int i = 0; i < REQUESTS; i++) statuses[i].MPI_ERROR = MPI_ERR_DIMS;
        if (done % 2 == 0) WORKS(MPI_Waitsome(REQUESTS, requests, &found, indices, statuses));
        else WORKS(MPI_Testsome(REQUESTS, requests, &found, indices, statuses));
        for (int i = 0; i < found; i++) {
            EQUAL("the tag of some", indices[i], statuses[i].MPI_TAG);
            EQUAL("MPI_ERROR after a call that has succeeded", MPI_ERR_DIMS, statuses[i].MPI_ERROR);
        }
    }
    check_all(partner);

    WORKS(MPI_Buffer_flush());
    start(rank, partner);
    for (int flag = 0; !flag;) WORKS(MPI_Testall(REQUESTS, requests, &flag, MPI_STATUSES_IGNORE));
    check_all(partner);

    WORKS(MPI_Buffer_flush());
    start(rank, partner);
    for (int done = 0; done < REQUESTS;) {
        int index, flag;
        WORKS(MPI_Testany(REQUESTS, requests, &index, &flag, MPI_STATUS_IGNORE));
        if (flag) done += index != MPI_UNDEFINED;
    }
    check_all(partner);

    void *detached;
    WORKS(MPI_Buffer_detach(&detached, &bytes));
    free(buffer);
    MPI_Finalize();
    return VERDICT();
}
