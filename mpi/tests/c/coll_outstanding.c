/* Non-blocking collective operations leave nothing behind when they are complete. */
#include "win_check.h"

#include <malloc.h>

enum { OPERATIONS = 20000, BYTES_MAX = 256 << 10 };

int main(int argc, char **argv) {
    begin(&argc, &argv);
    size_t before = 0;
    for (int i = 0; i < OPERATIONS; i++) {
        long mine = i, sum = 0;
        MPI_Request request;
        DONE(MPI_Iallreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, &request));
        DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
        if (sum != (long)n * i) CHECK(sum, (long)n * i, "operation %d", i);
        if (i == 1000) before = mallinfo2().uordblks;
    }
    size_t after = mallinfo2().uordblks;
    CHECK(after < before + BYTES_MAX, 1, "%zu bytes before, %zu bytes after", before, after);
    return finish();
}
