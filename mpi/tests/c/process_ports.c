/* Ports: groups of a job meet that use no communicator in common, and two processes that have a socket. */
#include "check.h"
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

static int rank, size;
static char port[MPI_MAX_PORT_NAME];

/* The other group has these members, whose ranks have this sum; its messages arrive. */
static void use(MPI_Comm inter, int members, int sum) {
    int remote = -1, is_inter = 0, got = -1;
    WORKS(MPI_Comm_test_inter(inter, &is_inter));
    HOLDS(is_inter);
    WORKS(MPI_Comm_remote_size(inter, &remote));
    EQUAL("the size of the remote group", members, remote);
    WORKS(MPI_Allreduce(&rank, &got, 1, MPI_INT, MPI_SUM, inter));
    EQUAL("the sum of its ranks", sum, got);
    WORKS(MPI_Comm_disconnect(&inter));
}

/* One process, and all others together: `root` of the others accepts or connects for them. */
static void one_and_others(int one_accepts, int root) {
    MPI_Comm others, inter = MPI_COMM_NULL;
    WORKS(MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &others));
    int opener = one_accepts ? 0 : root + 1, is_one = rank == 0, accepts = is_one == one_accepts;
    if (rank == opener) WORKS(MPI_Open_port(MPI_INFO_NULL, port));
    MPI_Bcast(port, sizeof port, MPI_CHAR, opener, MPI_COMM_WORLD);
    /* The name matters at the root alone. */
    const char *name = is_one || rank == root + 1 ? port : NULL;
    if (accepts)
        WORKS(MPI_Comm_accept(name, MPI_INFO_NULL, is_one ? 0 : root, others, &inter));
    else
        WORKS(MPI_Comm_connect(name, MPI_INFO_NULL, is_one ? 0 : root, others, &inter));
    use(inter, is_one ? size - 1 : 1, is_one ? size * (size - 1) / 2 : 0);
    if (rank == opener) {
        WORKS(MPI_Close_port(port));
        GIVES(MPI_ERR_PORT, MPI_Close_port(port));
        GIVES(MPI_ERR_PORT, MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
        HOLDS(inter == MPI_COMM_NULL);
    }
    WORKS(MPI_Comm_free(&others));
}

/* Clients that come one by one, at a port that stays open. */
static void clients(void) {
    MPI_Comm inter;
    int sum = 0;
    if (rank == 0) WORKS(MPI_Open_port(MPI_INFO_NULL, port));
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 1; i < size && rank == 0; i++) {
        int client = -1;
        WORKS(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
        WORKS(MPI_Recv(&client, 1, MPI_INT, 0, 5, inter, MPI_STATUS_IGNORE));
        sum += client;
        WORKS(MPI_Comm_disconnect(&inter));
    }
    if (rank > 0) {
        WORKS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
        WORKS(MPI_Send(&rank, 1, MPI_INT, 0, 5, inter));
        WORKS(MPI_Comm_disconnect(&inter));
    } else {
        EQUAL("the sum of the clients", size * (size - 1) / 2, sum);
        GIVES(MPI_ERR_PORT, MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
        WORKS(MPI_Close_port(port));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A port that is closed, before others connect or while they do. */
static void closed(void) {
    MPI_Comm inter = MPI_COMM_SELF;
    int flag;
    for (int turn = 0; turn < 2; turn++) {
        if (rank == 0) WORKS(MPI_Open_port(MPI_INFO_NULL, port));
        if (rank == 0 && turn == 0) WORKS(MPI_Close_port(port));
        MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
        if (rank > 0) {
            GIVES(MPI_ERR_PORT, MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
            HOLDS(inter == MPI_COMM_NULL);
        } else if (turn == 1) {
            for (int i = 0; i < 5000; i++) MPI_Iprobe(0, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
            WORKS(MPI_Close_port(port));
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Processes 0 and 1 by a connection of theirs. */
static void join(void) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    int listener = -1, fd = -1;
    MPI_Comm inter;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (rank == 0) {
        listener = socket(AF_INET, SOCK_STREAM, 0);
        HOLDS(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0);
        HOLDS(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    }
    MPI_Bcast(&address, sizeof address, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank == 0) fd = accept(listener, NULL, NULL);
    if (rank == 1) {
        fd = socket(AF_INET, SOCK_STREAM, 0);
        HOLDS(connect(fd, (struct sockaddr *)&address, length) == 0);
    }
    if (rank < 2) {
        HOLDS(fd >= 0);
        /* Process 1 joins after it has a message that needs process 0 to make progress. */
        enum { BLOCKS = 100000 };
        static int words[2 * BLOCKS];
        MPI_Datatype gaps;
        MPI_Request request = MPI_REQUEST_NULL;
        WORKS(MPI_Type_vector(BLOCKS, 1, 2, MPI_INT, &gaps));
        WORKS(MPI_Type_commit(&gaps));
        if (rank == 0) WORKS(MPI_Isend(words, 1, gaps, 1, 6, MPI_COMM_WORLD, &request));
        if (rank == 1) WORKS(MPI_Recv(words, 1, gaps, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        WORKS(MPI_Comm_join(fd, &inter));
        WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
        WORKS(MPI_Type_free(&gaps));
        use(inter, 1, 1 - rank);
        close(fd);
    }
    if (rank == 0) close(listener);
}

static void mistakes(void) {
    MPI_Comm inter = MPI_COMM_SELF;
    const char *names[] = {"", "port", "pelago:", "pelago:0:x:0", "pelago:1000000:1:1", "pelago:0:1:1:1"};
    for (int i = 0; i < 6; i++) {
        GIVES(MPI_ERR_PORT, MPI_Comm_connect(names[i], MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
        GIVES(MPI_ERR_PORT, MPI_Comm_accept(names[i], MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
        GIVES(MPI_ERR_PORT, MPI_Close_port(names[i]));
        HOLDS(inter == MPI_COMM_NULL);
    }
    GIVES(MPI_ERR_ROOT, MPI_Comm_connect("port", MPI_INFO_NULL, 1, MPI_COMM_SELF, &inter));
    GIVES(MPI_ERR_ARG, MPI_Comm_connect(NULL, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    GIVES(MPI_ERR_ARG, MPI_Open_port(MPI_INFO_NULL, NULL));
    GIVES(MPI_ERR_ARG, MPI_Comm_join(-1, &inter));
    int ends[2];
    HOLDS(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    close(ends[1]);
    GIVES(MPI_ERR_OTHER, MPI_Comm_join(ends[0], &inter));
    close(ends[0]);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    mistakes();
    if (size > 1) {
        one_and_others(1, 0);
        one_and_others(0, size - 2);
        one_and_others(0, 0);
        clients();
        closed();
        join();
    }
    MPI_Finalize();
    return VERDICT();
}
