/* Flushes of buffered sends: they wait for the messages that were buffered before them, and for no others. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* So long that a message leaves only when it is received, unless it is one to its own sender. */
enum { BYTES = 1 << 20, TRIES = 2000 };
enum kind { PROCESS, COMM, SESSION, KINDS };

static int me, n, next, before;
static char *data, *got;
static atomic_int has_begun, has_flushed;

static void attach(enum kind kind, MPI_Comm comm, MPI_Session session, char *buffer, int bytes) {
    switch (kind) {
    case PROCESS: WORKS(MPI_Buffer_attach(buffer, bytes)); break;
    case COMM: WORKS(MPI_Comm_attach_buffer(comm, buffer, bytes)); break;
    default: WORKS(MPI_Session_attach_buffer(session, buffer, bytes));
    }
}

static void detach(enum kind kind, MPI_Comm comm, MPI_Session session, char *buffer, int bytes) {
    void *address = NULL;
    int size = -1;
    switch (kind) {
    case PROCESS: WORKS(MPI_Buffer_detach(&address, &size)); break;
    case COMM: WORKS(MPI_Comm_detach_buffer(comm, &address, &size)); break;
    default: WORKS(MPI_Session_detach_buffer(session, &address, &size));
    }
    HOLDS(address == buffer);
    EQUAL("the size of the buffer", bytes, size);
}

static void start_flush(enum kind kind, MPI_Comm comm, MPI_Session session, MPI_Request *request) {
    switch (kind) {
    case PROCESS: WORKS(MPI_Buffer_iflush(request)); break;
    case COMM: WORKS(MPI_Comm_iflush_buffer(comm, request)); break;
    default: WORKS(MPI_Session_iflush_buffer(session, request));
    }
}

static void receive(int tag, MPI_Comm comm) {
    got[0] = -1;
    WORKS(MPI_Recv(got, BYTES, MPI_BYTE, before, tag, comm, MPI_STATUS_IGNORE));
    EQUAL("the first byte of the message", tag, got[0]);
}

static void send(int tag, MPI_Comm comm) {
    data[0] = (char)tag;
    WORKS(MPI_Bsend(data, BYTES, MPI_BYTE, next, tag, comm));
}

/* The second message is received only after the flush of the first one. */
static void later_messages(enum kind kind, MPI_Comm comm, MPI_Session session, char *buffer, int bytes) {
    MPI_Request first, second;
    int flag = 0;
    attach(kind, comm, session, buffer, bytes);
    send(1, comm);
    start_flush(kind, comm, session, &first);
    send(2, comm);
    start_flush(kind, comm, session, &second);
    receive(1, comm);
    WORKS(MPI_Wait(&first, MPI_STATUS_IGNORE));
    WORKS(MPI_Test(&second, &flag, MPI_STATUS_IGNORE));
    HOLDS(!flag || n == 1);
    MPI_Barrier(comm);
    receive(2, comm);
    WORKS(MPI_Wait(&second, MPI_STATUS_IGNORE));
    detach(kind, comm, session, buffer, bytes);
}

static void *flush(void *unused) {
    atomic_store(&has_begun, 1);
    WORKS(MPI_Buffer_flush());
    atomic_store(&has_flushed, 1);
    return unused;
}

/* A thread that waits for messages does not take them from the waits of others. */
static void threads(char *buffer, int bytes) {
    MPI_Request request;
    pthread_t thread;
    int flag = 0;
    WORKS(MPI_Buffer_attach(buffer, bytes));
    send(3, MPI_COMM_WORLD);
    WORKS(MPI_Buffer_iflush(&request));
    pthread_create(&thread, NULL, flush, NULL);
    while (!atomic_load(&has_begun)) MPI_Iprobe(before, 4, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < TRIES && !flag; i++) WORKS(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    HOLDS((!flag && !atomic_load(&has_flushed)) || n == 1);
    MPI_Barrier(MPI_COMM_WORLD);
    receive(3, MPI_COMM_WORLD);
    WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    pthread_join(thread, NULL);
    detach(PROCESS, MPI_COMM_WORLD, MPI_SESSION_NULL, buffer, bytes);
}

/* Room that was used comes back, in whatever order messages leave. */
static void reuse(char *buffer) {
    enum { SMALL = 100, MESSAGES = 1000 };
    int bytes = 16 * (MPI_BSEND_OVERHEAD + (int)sizeof(int)), large = BYTES + MPI_BSEND_OVERHEAD;
    attach(PROCESS, MPI_COMM_WORLD, MPI_SESSION_NULL, buffer, bytes + large);
    send(5, MPI_COMM_WORLD);
    for (int i = 0; i < MESSAGES; i++) {
        int value = -1;
        WORKS(MPI_Bsend(&i, 1, MPI_INT, next, SMALL, MPI_COMM_WORLD));
        WORKS(MPI_Recv(&value, 1, MPI_INT, before, SMALL, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        EQUAL("a small message", i, value);
    }
    if (n > 1) GIVES(MPI_ERR_BUFFER, MPI_Bsend(data, BYTES, MPI_BYTE, next, 6, MPI_COMM_WORLD));
    MPI_Barrier(MPI_COMM_WORLD);
    receive(5, MPI_COMM_WORLD);
    WORKS(MPI_Buffer_flush());
    send(6, MPI_COMM_WORLD);
    receive(6, MPI_COMM_WORLD);
    detach(PROCESS, MPI_COMM_WORLD, MPI_SESSION_NULL, buffer, bytes + large);
}

int main(int argc, char **argv) {
    MPI_Session session;
    MPI_Group world;
    MPI_Comm of_session;
    int provided, bytes = 2 * (BYTES + MPI_BSEND_OVERHEAD);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    next = (me + 1) % n, before = (me + n - 1) % n;
    data = calloc(1, BYTES), got = calloc(1, BYTES);
    char *buffer = malloc((size_t)bytes);
    WORKS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    WORKS(MPI_Group_from_session_pset(session, "mpi://WORLD", &world));
    WORKS(MPI_Comm_create_from_group(world, "flush", MPI_INFO_NULL, MPI_ERRORS_RETURN, &of_session));
    for (enum kind kind = 0; kind < KINDS; kind++) {
        later_messages(kind, kind == SESSION ? of_session : MPI_COMM_WORLD, session, buffer, bytes);
    }
    threads(buffer, bytes);
    reuse(buffer);
    MPI_Group_free(&world);
    MPI_Comm_free(&of_session);
    WORKS(MPI_Session_finalize(&session));
    free(buffer);
    free(data);
    free(got);
    MPI_Finalize();
    return VERDICT();
}
