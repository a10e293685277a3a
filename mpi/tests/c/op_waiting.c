/* A PE that executes a program's function within a wait still serves others: the function waits for a put. */
/* PEs: 2 */
#include "check.h"

static MPI_Win win;
static volatile int *word;
static int me;

static void waits(void *in, void *inout, int *length, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *length; i++)
        ((int *)inout)[i] += ((int *)in)[i];
    if (me != 0) return;
    for (double end = MPI_Wtime() + 20; *word == 0 && MPI_Wtime() < end;)
        continue;
}

int main(int argc, char **argv) {
    int *memory, mine, sum = -1, one = 1;
    MPI_Op op;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    mine = 5 + me;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    word = memory;
    MPI_Win_lock_all(0, win);
    *word = 0;
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Op_create(waits, 1, &op);
    MPI_Ireduce(&mine, &sum, 1, MPI_INT, op, 0, MPI_COMM_WORLD, &request);
    if (me == 1) {
        /* The sum moves on first, so that the other one is in the function. */
        int is_sent = 0;
        for (double end = MPI_Wtime() + 0.1; !is_sent && MPI_Wtime() < end;)
            MPI_Request_get_status(request, &is_sent, MPI_STATUS_IGNORE);
        WORKS(MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
        WORKS(MPI_Win_flush(0, win));
    }
    WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (me == 0) {
        EQUAL("the sum", 11, sum);
        EQUAL("the word that the function has waited for", 1, *word);
    }
    MPI_Win_unlock_all(win);
    MPI_Op_free(&op);
    MPI_Win_free(&win);
    MPI_Finalize();
    return VERDICT();
}
