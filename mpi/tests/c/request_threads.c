/* Threads that look at a request while another one waits for it, or looks too. */
/* PEs: 2 */
#include "check.h"
#include <pthread.h>

enum { ROUNDS = 300, PARTITIONS = 4, LOOKERS = 2 };

static MPI_Request request;
static pthread_barrier_t meeting;
static int absent;

static void *partitions(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        int arrived;
        pthread_barrier_wait(&meeting);
        for (int i = 0; i < PARTITIONS; i++)
            do
                MPI_Parrived(request, i, &arrived);
            while (!arrived);
        for (int i = 0; i < 20; i++) {
            MPI_Parrived(request, i % PARTITIONS, &arrived);
            if (!arrived) __atomic_fetch_add(&absent, 1, __ATOMIC_RELAXED);
        }
        pthread_barrier_wait(&meeting);
    }
    return NULL;
}

static void *status(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        int flag;
        pthread_barrier_wait(&meeting);
        do
            MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        while (!flag);
        pthread_barrier_wait(&meeting);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int me, provided, word = 0, data[PARTITIONS] = {0};
    pthread_t lookers[LOOKERS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (me == 0) {
        pthread_barrier_init(&meeting, NULL, LOOKERS + 1);
        MPI_Precv_init(data, PARTITIONS, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        for (int i = 0; i < LOOKERS; i++) pthread_create(&lookers[i], NULL, partitions, NULL);
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Start(&request);
            pthread_barrier_wait(&meeting);
            MPI_Send(&word, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
            WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
            pthread_barrier_wait(&meeting);
        }
        for (int i = 0; i < LOOKERS; i++) pthread_join(lookers[i], NULL);
        WORKS(MPI_Request_free(&request));
        EQUAL("partitions that have gone again", 0, absent);
        for (int i = 0; i < LOOKERS; i++) pthread_create(&lookers[i], NULL, status, NULL);
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Irecv(&word, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
            pthread_barrier_wait(&meeting);
            MPI_Send(&word, 0, MPI_INT, 1, 4, MPI_COMM_WORLD);
            pthread_barrier_wait(&meeting);
            WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
            EQUAL("the message", round, word);
        }
        for (int i = 0; i < LOOKERS; i++) pthread_join(lookers[i], NULL);
    } else {
        MPI_Psend_init(data, PARTITIONS, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Start(&request);
            MPI_Recv(&word, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Pready_range(0, PARTITIONS - 1, request);
            WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        WORKS(MPI_Request_free(&request));
        for (int round = 0; round < ROUNDS; round++) {
            MPI_Recv(&word, 0, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&round, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        }
    }
    MPI_Finalize();
    return VERDICT();
}
