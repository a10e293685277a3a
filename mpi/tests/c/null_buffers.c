/* A null buffer that has elements is an error, except where nothing is moved. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures, me, n;
#define CHECK(condition, ...) \
    do { if (!(condition)) { printf("rank %d, line %d: ", me, __LINE__); printf(__VA_ARGS__); printf("\n"); failures++; } } while (0)
#define REFUSED(call) refused(call, #call)
#define DONE(call) CHECK((call) == MPI_SUCCESS, "%s", #call)

static void refused(int code, const char *call) {
    int class, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    CHECK(class == MPI_ERR_BUFFER && strstr(text, "null"), "class %d, \"%s\" of %s", class, text, call);
}

static void messages(MPI_Datatype absolute) {
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request;
    int next = (me + 1) % n, before = (me + n - 1) % n, data[4], flag;
    static char room[4096];
    REFUSED(MPI_Send(NULL, 4, MPI_INT, next, 0, comm));
    REFUSED(MPI_Ssend(NULL, 4, MPI_INT, next, 0, comm));
    REFUSED(MPI_Rsend(NULL, 4, MPI_INT, next, 0, comm));
    MPI_Buffer_attach(room, sizeof room);
    REFUSED(MPI_Bsend(NULL, 4, MPI_INT, next, 0, comm));
    void *detached;
    MPI_Buffer_detach(&detached, &flag);
    REFUSED(MPI_Isend(NULL, 4, MPI_INT, next, 0, comm, &request));
    REFUSED(MPI_Recv(NULL, 4, MPI_INT, before, 0, comm, MPI_STATUS_IGNORE));
    REFUSED(MPI_Irecv(NULL, 4, MPI_INT, before, 0, comm, &request));
    REFUSED(MPI_Send_init(NULL, 4, MPI_INT, next, 0, comm, &request));
    REFUSED(MPI_Sendrecv(NULL, 4, MPI_INT, next, 0, data, 4, MPI_INT, before, 0, comm, MPI_STATUS_IGNORE));
    REFUSED(MPI_Sendrecv(data, 4, MPI_INT, next, 0, NULL, 4, MPI_INT, before, 0, comm, MPI_STATUS_IGNORE));
    REFUSED(MPI_Sendrecv_replace(NULL, 4, MPI_INT, next, 0, before, 0, comm, MPI_STATUS_IGNORE));
    /* Nothing is moved. */
    DONE(MPI_Send(NULL, 4, MPI_INT, MPI_PROC_NULL, 0, comm));
    DONE(MPI_Recv(NULL, 4, MPI_INT, MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE));
    DONE(MPI_Sendrecv(NULL, 4, MPI_INT, MPI_PROC_NULL, 0, NULL, 4, MPI_INT, MPI_PROC_NULL, 0, comm,
                      MPI_STATUS_IGNORE));
    DONE(MPI_Sendrecv_replace(NULL, 4, MPI_INT, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, comm, MPI_STATUS_IGNORE));
    DONE(MPI_Sendrecv_replace(NULL, 0, MPI_DATATYPE_NULL, next, 0, before, 0, comm, MPI_STATUS_IGNORE));
    DONE(MPI_Bsend(NULL, 4, MPI_INT, MPI_PROC_NULL, 0, comm));
    MPI_Datatype column;
    MPI_Type_vector(4, 1, 8, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    DONE(MPI_Isend(NULL, 1, column, MPI_PROC_NULL, 0, comm, &request));
    DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
    DONE(MPI_Issend(NULL, 1, column, MPI_PROC_NULL, 0, comm, &request));
    DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
    DONE(MPI_Isendrecv(NULL, 1, column, MPI_PROC_NULL, 0, NULL, 1, column, MPI_PROC_NULL, 0, comm, &request));
    DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
    DONE(MPI_Send_init(NULL, 1, column, MPI_PROC_NULL, 0, comm, &request));
    DONE(MPI_Start(&request));
    DONE(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Request_free(&request);
    MPI_Type_free(&column);
    DONE(MPI_Sendrecv(NULL, 0, MPI_INT, next, 1, NULL, 0, MPI_INT, before, 1, comm, MPI_STATUS_IGNORE));
    /* A datatype with addresses has its data there. */
    DONE(MPI_Sendrecv(MPI_BOTTOM, 1, absolute, next, 2, data, 4, MPI_INT, before, 2, comm, MPI_STATUS_IGNORE));
    for (int i = 0; i < 4; i++)
        CHECK(data[i] == 10 * before + i, "element %d is %d", i, data[i]);
    request = MPI_REQUEST_NULL;
    flag = 0;
    DONE(MPI_Parrived(request, 0, &flag));
    CHECK(flag, "a null request has arrived");
}

static void windows(void) {
    MPI_Win win;
    int *part, word = 5;
    MPI_Win_allocate(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < 16; i++)
        part[i] = i;
    MPI_Win_fence(0, win);
    int next = (me + 1) % n;
    REFUSED(MPI_Put(NULL, 2, MPI_INT, next, 0, 2, MPI_INT, win));
    REFUSED(MPI_Put(NULL, 1, MPI_INT, next, 0, 1, MPI_INT, win));
    REFUSED(MPI_Get(NULL, 2, MPI_INT, next, 0, 2, MPI_INT, win));
    REFUSED(MPI_Get(NULL, 3, MPI_INT, next, 0, 3, MPI_INT, win));
    REFUSED(MPI_Accumulate(NULL, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_SUM, win));
    DONE(MPI_Put(NULL, 0, MPI_INT, next, 0, 0, MPI_INT, win));
    DONE(MPI_Put(NULL, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    DONE(MPI_Get_accumulate(NULL, 0, MPI_INT, &word, 1, MPI_INT, next, 3, 1, MPI_INT, MPI_NO_OP, win));
    MPI_Win_fence(0, win);
    CHECK(word == 3, "the word is %d", word);
    for (int i = 0; i < 16; i++)
        CHECK(part[i] == i, "element %d is %d", i, part[i]);
    MPI_Win_free(&win);
}

int main(int argc, char **argv) {
    int data[4], position = 0;
    char packed[64];
    MPI_Datatype absolute, at[1] = {MPI_INT};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < 4; i++)
        data[i] = 10 * me + i;
    MPI_Aint address;
    MPI_Get_address(data, &address);
    MPI_Type_create_struct(1, (int[]){4}, &address, at, &absolute);
    MPI_Type_commit(&absolute);
    messages(absolute);
    windows();
    REFUSED(MPI_Pack(NULL, 4, MPI_INT, packed, 64, &position, MPI_COMM_WORLD));
    DONE(MPI_Pack(MPI_BOTTOM, 1, absolute, packed, 64, &position, MPI_COMM_WORLD));
    position = 0;
    REFUSED(MPI_Unpack(packed, 64, &position, NULL, 4, MPI_INT, MPI_COMM_WORLD));
    DONE(MPI_Unpack(packed, 64, &position, MPI_BOTTOM, 1, absolute, MPI_COMM_WORLD));
    REFUSED(MPI_Reduce_local(NULL, data, 4, MPI_INT, MPI_SUM));
    REFUSED(MPI_Reduce_local(data, NULL, 4, MPI_INT, MPI_SUM));
    MPI_Type_free(&absolute);
    MPI_Finalize();
    return failures != 0;
}
