/* PEs: 3 4 */
/* More non-blocking operations under way than a communicator has numbers for them, and as many persistent ones, of
 * which two have one number. */
#include "check.h"

enum { MANY = 4200, KEPT = 2049, ROUNDS = 400 };

static int mine[MANY], sums[MANY];
static MPI_Request requests[MANY];

int main(void)
{
    MPI_Init(NULL, NULL);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int ranks = size * (size - 1) / 2;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            mine[i] = i + rank;
            sums[i] = -1;
            if (i % 3 == 2) WORKS(MPI_Iscan(&mine[i], &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]));
            else WORKS(MPI_Iallreduce(&mine[i], &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]));
        }
        WORKS(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < MANY && failures < 10; i++) {
            int all = i * size + ranks, below = i * (rank + 1) + rank * (rank + 1) / 2;
            EQUAL("a sum", i % 3 == 2 ? below : all, sums[i]);
        }
    }

    for (int i = 0; i < KEPT; i++)
        WORKS(MPI_Allreduce_init(&mine[i], &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                                 &requests[i]));
    for (int round = 0; round < ROUNDS; round++) {
        int used[2] = {0, KEPT - 1};
        for (int k = 0; k < 2; k++) {
            mine[used[k]] = round * 10 + k + rank;
            WORKS(MPI_Start(&requests[used[k]]));
        }
        for (int k = 1; k >= 0; k--) WORKS(MPI_Wait(&requests[used[k]], MPI_STATUS_IGNORE));
        for (int k = 0; k < 2 && failures < 10; k++)
            EQUAL("a sum of a persistent operation", (round * 10 + k) * size + ranks, sums[used[k]]);
    }
    for (int i = 0; i < KEPT; i++) WORKS(MPI_Request_free(&requests[i]));
    MPI_Finalize();
    return VERDICT();
}
