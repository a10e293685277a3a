/* Static data and the heap in a program that AddressSanitizer watches, or Valgrind, where static data are not
 * symmetric. The argument names a mistake that is found. */

#include "check.h"

static long filled[3] = {1, 2, 3}, empty[50];

int main(int argc, char **argv) {
    const char *mistake = argc > 1 ? argv[1] : "";
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    long *heap = shmem_calloc(50, sizeof *heap), *own = malloc(4 * sizeof *own);
    for (int i = 0; i < 4; i++) own[i] = me;
    shmem_barrier_all();
    shmem_long_put(heap + 10, own, 4, right);
    const int is_symmetric = shmem_addr_accessible(filled, right) && shmem_addr_accessible(empty, right);
    if (is_symmetric) {
        shmem_long_p(&filled[1], me, right);
        shmem_long_put(empty + 46, own, 4, right);
    }
    shmem_barrier_all();
    CHECK(heap[13] == left && heap[14] == 0);
    CHECK(filled[0] == 1 && filled[1] == (is_symmetric ? left : 2) && empty[49] == (is_symmetric ? left : 0));
    volatile long *array = NULL;
    if (strcmp(mistake, "variable") == 0) array = filled + 3;
    if (strcmp(mistake, "malloc") == 0) array = own + 4;
    if (array != NULL) *array = 1;
    if (strcmp(mistake, "source") == 0) shmem_long_put(heap, own, 20, right);
    if (strcmp(mistake, "symmetric") == 0) CHECK(is_symmetric);
    if (strcmp(mistake, "use") == 0) shmem_long_p(&filled[1], me, right);
    free(own);
    shmem_finalize();
    return 0;
}
