/* A call for one request also advances the others. An operation goes on when the program frees its request or
   its communicator. */
#include "partitioned_check.h"
#include <unistd.h>

/* Rank 0 tests a receive, whose message comes when a barrier is over, which needs rank 0 to go on. */
static void tests_advance_collectives(int form) {
    int token = 0, flag = 0;
    MPI_Request barrier, receive, other;
    MPI_Status status;
    if (n < 3) return;
    if (me == 2) usleep(20000);
    DONE(MPI_Ibarrier(MPI_COMM_WORLD, &barrier));
    if (me == 0) {
        DONE(MPI_Irecv(&token, 1, MPI_INT, 2, form, MPI_COMM_WORLD, &receive));
        while (!flag) {
            switch (form) {
            case 0: DONE(MPI_Test(&receive, &flag, MPI_STATUS_IGNORE)); break;
            case 1: DONE(MPI_Request_get_status(receive, &flag, MPI_STATUS_IGNORE)); break;
            default:
                DONE(MPI_Iprobe(2, 9, MPI_COMM_WORLD, &flag, &status));
                if (flag) DONE(MPI_Recv(NULL, 0, MPI_INT, 2, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            }
        }
        DONE(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        CHECK(form && !token, 0, "a token");
    }
    DONE(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
    if (me == 2) {
        token = 5;
        DONE(MPI_Send(&token, 1, MPI_INT, 0, form, MPI_COMM_WORLD));
        if (form == 2) DONE(MPI_Send(NULL, 0, MPI_INT, 0, 9, MPI_COMM_WORLD));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    /* The same, tested by another collective operation, which ends later. */
    if (me == 2) usleep(1000);
    DONE(MPI_Ibarrier(MPI_COMM_WORLD, &barrier));
    if (me == 2) DONE(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
    DONE(MPI_Ibarrier(MPI_COMM_WORLD, &other));
    for (flag = 0; !flag;) DONE(MPI_Test(&other, &flag, MPI_STATUS_IGNORE));
    if (me != 2) DONE(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
}

/* Partitioned requests that are freed before they were started. */
static void partitions_are_given_up(void) {
    MPI_Request request;
    char byte = 0;
    if (me == 0 && n > 1) {
        DONE(MPI_Precv_init(&byte, 1, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        DONE(MPI_Request_free(&request));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 1) {
        DONE(MPI_Psend_init(&byte, 1, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        DONE(MPI_Request_free(&request));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Partitions without bytes arrive one by one all the same. */
static void empty_partitions(void) {
    MPI_Request request;
    int flag = 1;
    if (me == 0 && n > 1) {
        DONE(MPI_Precv_init(NULL, 4, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        DONE(MPI_Start(&request));
        MPI_Barrier(MPI_COMM_WORLD);
        DONE(MPI_Parrived(request, 3, &flag));
        CHECK(flag, 0, "a partition that is not ready");
        MPI_Barrier(MPI_COMM_WORLD);
        DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
        DONE(MPI_Request_free(&request));
    } else if (me == 1) {
        DONE(MPI_Psend_init(NULL, 4, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        DONE(MPI_Start(&request));
        DONE(MPI_Pready_range(0, 2, request));
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        DONE(MPI_Pready(3, request));
        DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
        DONE(MPI_Request_free(&request));
    } else if (n > 1) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Overwrites memory that was freed too early, until rank 1 has received. */
static void use_free_memory(void) {
    char *others[8];
    for (int i = 0; i < 8; i++) others[i] = block(1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 8; i++) free(others[i]);
}

/* The data of a combined operation whose request is freed. */
static void freed_exchange(int replaces) {
    MPI_Request request;
    if (me == 0 && n > 1) {
        char *bytes = block(9);
        if (replaces)
            DONE(MPI_Isendrecv_replace(bytes, LONG, MPI_BYTE, 1, 0, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
        else
            DONE(MPI_Isendrecv(bytes, LONG, MPI_BYTE, 1, 0, NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                               &request));
        DONE(MPI_Request_free(&request));
        use_free_memory();
        free(bytes);
    } else if (me == 1) {
        char *bytes = block(0);
        MPI_Barrier(MPI_COMM_WORLD);
        DONE(MPI_Recv(bytes, LONG, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        check_block(bytes, 9, "a message of a freed request");
        MPI_Barrier(MPI_COMM_WORLD);
        free(bytes);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* A partition goes on when its request is freed, and so do the data that were packed for it. */
static void freed_partition(void) {
    MPI_Datatype gaps;
    MPI_Request request;
    DONE(MPI_Type_vector(LONG / 2, 1, 2, MPI_BYTE, &gaps));
    DONE(MPI_Type_commit(&gaps));
    if (me == 0 && n > 1) {
        char *bytes = block(6);
        DONE(MPI_Psend_init(bytes, 1, 1, gaps, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        DONE(MPI_Start(&request));
        DONE(MPI_Pready(0, request));
        DONE(MPI_Request_free(&request));
        use_free_memory();
        free(bytes);
    } else if (me == 1) {
        char *bytes = block(6);
        memset(bytes, 0, LONG / 2);
        MPI_Barrier(MPI_COMM_WORLD);
        DONE(MPI_Precv_init(bytes, 1, LONG / 2, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        DONE(MPI_Start(&request));
        DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
        DONE(MPI_Request_free(&request));
        check_block(bytes, 6, "a partition of a freed request");
        MPI_Barrier(MPI_COMM_WORLD);
        free(bytes);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    DONE(MPI_Type_free(&gaps));
}

/* A buffered message goes on when its communicator is freed. */
static void freed_communicator_of_a_buffered_message(void) {
    MPI_Comm own;
    DONE(MPI_Comm_dup(MPI_COMM_WORLD, &own));
    if (me == 0 && n > 1) {
        char *buffer = malloc(LONG + MPI_BSEND_OVERHEAD), *bytes = block(4);
        DONE(MPI_Comm_attach_buffer(own, buffer, LONG + MPI_BSEND_OVERHEAD));
        DONE(MPI_Bsend(bytes, LONG, MPI_BYTE, 1, 0, own));
        free(bytes);
        DONE(MPI_Comm_free(&own));
        bytes = block(5);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        free(bytes);
        free(buffer);
        return;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 1) {
        char *bytes = block(0);
        DONE(MPI_Recv(bytes, LONG, MPI_BYTE, 0, 0, own, MPI_STATUS_IGNORE));
        check_block(bytes, 4, "a buffered message");
        free(bytes);
    }
    DONE(MPI_Comm_free(&own));
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Persistent requests go on when their communicator is freed. */
static void freed_communicator_of_persistent_requests(void) {
    int mine = me, left = -1, buffered = -1, room[1024];
    MPI_Comm own;
    MPI_Request requests[4];
    DONE(MPI_Comm_dup(MPI_COMM_WORLD, &own));
    DONE(MPI_Buffer_attach(room, sizeof room));
    DONE(MPI_Send_init(&mine, 1, MPI_INT, (me + 1) % n, 0, own, &requests[0]));
    DONE(MPI_Recv_init(&left, 1, MPI_INT, (me + n - 1) % n, 0, own, &requests[1]));
    DONE(MPI_Bsend_init(&mine, 1, MPI_INT, (me + 1) % n, 1, own, &requests[2]));
    DONE(MPI_Recv_init(&buffered, 1, MPI_INT, (me + n - 1) % n, 1, own, &requests[3]));
    DONE(MPI_Comm_free(&own));
    for (int round = 0; round < 3; round++) {
        left = buffered = -1;
        DONE(MPI_Startall(4, requests));
        DONE(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        CHECK(left, (me + n - 1) % n, "round %d", round);
        CHECK(buffered, (me + n - 1) % n, "the buffered message of round %d", round);
    }
    for (int i = 0; i < 4; i++) DONE(MPI_Request_free(&requests[i]));
    void *address;
    int bytes;
    DONE(MPI_Buffer_detach(&address, &bytes));
}

/* Blocks of one buffer that are apart. */
static void one_buffer_of_an_all_to_all(void) {
    int *all = malloc(sizeof(int) * 2 * (size_t)n), *counts = malloc(sizeof(int) * 3 * (size_t)n);
    int *from = counts + n, *into = from + n;
    for (int i = 0; i < n; i++) {
        counts[i] = 1;
        from[i] = i;
        into[i] = n + i;
        all[i] = 100 * me + i;
    }
    DONE(MPI_Alltoallv(all, counts, from, MPI_INT, all, counts, into, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < n; i++) CHECK(all[n + i], 100 * i + me, "block %d", i);
    free(all);
    free(counts);
}

/* The error of every status is set if an operation has failed. */
static void statuses_of_a_failure(void) {
    int numbers[2] = {1, 2}, one;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    DONE(MPI_Irecv(&one, 1, MPI_INT, me, 0, MPI_COMM_WORLD, &requests[0]));
    requests[1] = MPI_REQUEST_NULL;
    DONE(MPI_Isend(numbers, 2, MPI_INT, me, 0, MPI_COMM_WORLD, &requests[2]));
    memset(statuses, 0x5a, sizeof statuses);
    REFUSED(MPI_Waitall(3, requests, statuses), MPI_ERR_IN_STATUS);
    CHECK(statuses[0].MPI_ERROR, MPI_ERR_TRUNCATE, "the receive");
    CHECK(statuses[1].MPI_ERROR, MPI_SUCCESS, "no request");
    CHECK(statuses[2].MPI_ERROR, MPI_SUCCESS, "the send");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int form = 0; form < 3; form++) tests_advance_collectives(form);
    partitions_arrive_meanwhile(MPI_COMM_WORLD);
    partitions_are_given_up();
    empty_partitions();
    freed_exchange(0);
    freed_exchange(1);
    freed_partition();
    freed_communicator_of_a_buffered_message();
    freed_communicator_of_persistent_requests();
    one_buffer_of_an_all_to_all();
    statuses_of_a_failure();
    MPI_Finalize();
    return failures != 0;
}
