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
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all != 0;
}
