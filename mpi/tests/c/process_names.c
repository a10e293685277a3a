/* Names of services: what one process publishes, all others look up. */
#include "check.h"

static int rank, size;

/* Looks a service up: it has this port, or is not published. */
static void look(const char *service, const char *expected) {
    char port[MPI_MAX_PORT_NAME];
    memset(port, 'x', sizeof port);
    if (expected == NULL) {
        GIVES(MPI_ERR_NAME, MPI_Lookup_name(service, MPI_INFO_NULL, port));
        HOLDS(port[0] == 'x');
    } else {
        WORKS(MPI_Lookup_name(service, MPI_INFO_NULL, port));
        HOLDS(strcmp(port, expected) == 0);
    }
}

/* Each process publishes two names; all see all; they go in another order than they came. */
static void everyone(void) {
    char name[2][32], port[2][32], other[32], expected[32];
    for (int i = 0; i < 2; i++) {
        sprintf(name[i], "service %d %d", rank, i);
        sprintf(port[i], "port %d %d", i, rank);
        WORKS(MPI_Publish_name(name[i], MPI_INFO_NULL, port[i]));
        look(name[i], port[i]);
    }
    GIVES(MPI_ERR_SERVICE, MPI_Publish_name(name[0], MPI_INFO_NULL, "another port"));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 2 * size; i++) {
        sprintf(other, "service %d %d", i / 2, i % 2);
        sprintf(expected, "port %d %d", i % 2, i / 2);
        look(other, expected);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    GIVES(MPI_ERR_SERVICE, MPI_Unpublish_name(name[0], MPI_INFO_NULL, port[1]));
    WORKS(MPI_Unpublish_name(name[0], MPI_INFO_NULL, port[0]));
    GIVES(MPI_ERR_SERVICE, MPI_Unpublish_name(name[0], MPI_INFO_NULL, port[0]));
    look(name[0], NULL);
    look(name[1], port[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    WORKS(MPI_Unpublish_name(name[1], MPI_INFO_NULL, port[1]));
    MPI_Barrier(MPI_COMM_WORLD);
    sprintf(other, "service %d 1", (rank + 1) % size);
    look(other, NULL);
}

/* All processes try to publish one name: one of them does. Another one takes it back. */
static void one_of_all(void) {
    for (int turn = 0; turn < 20; turn++) {
        char port[32];
        int published, publishers = -1, code;
        sprintf(port, "port %d", rank);
        code = MPI_Publish_name("all", MPI_INFO_NULL, port);
        published = code == MPI_SUCCESS;
        HOLDS(published || code == MPI_ERR_SERVICE);
        MPI_Allreduce(&published, &publishers, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        EQUAL("publishers", 1, publishers);
        char found[MPI_MAX_PORT_NAME];
        WORKS(MPI_Lookup_name("all", MPI_INFO_NULL, found));
        HOLDS(!published || strcmp(found, port) == 0);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == turn % size) WORKS(MPI_Unpublish_name("all", MPI_INFO_NULL, found));
        MPI_Barrier(MPI_COMM_WORLD);
        look("all", NULL);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Process 0 is found by its service, as clients find a server. */
static void server(void) {
    char port[MPI_MAX_PORT_NAME];
    MPI_Comm inter;
    if (rank == 0) {
        WORKS(MPI_Open_port(MPI_INFO_NULL, port));
        WORKS(MPI_Publish_name("sum", MPI_INFO_NULL, port));
        int sum = 0;
        for (int i = 1; i < size; i++) {
            int term = 0;
            WORKS(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
            WORKS(MPI_Recv(&term, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE));
            sum += term;
            WORKS(MPI_Comm_disconnect(&inter));
        }
        EQUAL("the sum of the clients", size * (size - 1) / 2, sum);
        WORKS(MPI_Unpublish_name("sum", MPI_INFO_NULL, port));
        WORKS(MPI_Close_port(port));
    } else {
        while (MPI_Lookup_name("sum", MPI_INFO_NULL, port) != MPI_SUCCESS) continue;
        WORKS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
        WORKS(MPI_Send(&rank, 1, MPI_INT, 0, 0, inter));
        WORKS(MPI_Comm_disconnect(&inter));
    }
}

int main(int argc, char **argv) {
    static char service[4096], port[MPI_MAX_PORT_NAME + 1];
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    everyone();
    one_of_all();
    server();
    memset(service, 's', sizeof service - 1);
    GIVES(MPI_ERR_ARG, MPI_Publish_name(service, MPI_INFO_NULL, "port"));
    memset(port, 'p', sizeof port - 1);
    GIVES(MPI_ERR_ARG, MPI_Publish_name("long", MPI_INFO_NULL, port));
    GIVES(MPI_ERR_ARG, MPI_Publish_name(NULL, MPI_INFO_NULL, "port"));
    GIVES(MPI_ERR_ARG, MPI_Publish_name("none", MPI_INFO_NULL, NULL));
    look("long", NULL);
    MPI_Finalize();
    return VERDICT();
}
