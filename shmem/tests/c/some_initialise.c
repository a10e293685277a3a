/* A job in which one process never initialises the library: its number, and then the status with which it
 * leaves, or `stay`. With the number -1 nobody does. */

#include <shmem.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const char *rank = getenv("PMI_RANK");
    if (argc != 3 || rank == NULL) return 2;
    if (strcmp(argv[1], "-1") == 0 || strcmp(argv[1], rank) == 0) {
        while (strcmp(argv[2], "stay") == 0) pause();
        return atoi(argv[2]);
    }
    shmem_init();
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
