/* Messages and collective operations with derived datatypes between processes, of many sizes. */
#include "datatype_check.h"

static int rank, size;

/* A column of a matrix goes around as a row, in blocking and non-blocking form. The datatype is freed while
 * the operations go on. */
static void columns(int rows) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    long *matrix = malloc(3 * rows * sizeof(long)), *row = malloc(rows * sizeof(long));
    for (int i = 0; i < 3 * rows; i++) matrix[i] = 1000000L * rank + i;
    MPI_Datatype column;
    OK(MPI_Type_vector(rows, 1, 3, MPI_LONG, &column));
    OK(MPI_Type_commit(&column));
    MPI_Request requests[2];
    OK(MPI_Irecv(row, rows, MPI_LONG, left, 5, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(matrix + 1, 1, column, right, 5, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    int wrong = 0;
    for (int i = 0; i < rows; i++) wrong += row[i] != 1000000L * left + 3 * i + 1;
    EXPECT("numbers of a row that are wrong", 0, wrong);
    OK(MPI_Irecv(matrix + 2, 1, column, left, 6, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(row, rows, MPI_LONG, right, 6, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Type_free(&column));
    MPI_Status statuses[2];
    OK(MPI_Waitall(2, requests, statuses));
    int from = (left + size - 1) % size, count = 0;
    wrong = 0;
    for (int i = 0; i < rows; i++) {
        wrong += matrix[3 * i + 2] != 1000000L * from + 3 * i + 1;
        wrong += matrix[3 * i] != 1000000L * rank + 3 * i;
    }
    EXPECT("numbers of a matrix that are wrong", 0, wrong);
    OK(MPI_Get_count(&statuses[0], MPI_LONG, &count));
    EXPECT("the numbers of the message", rows, count);
    free(matrix);
    free(row);
}

/* Records with gaps are broadcast, and gathered as another datatype with the same signature. */
static void collectives(void) {
    struct record {
        char tag;
        double value;
        short parts[3];
    } mine[4];
    memset(mine, 0, sizeof mine);
    int lengths[] = {1, 1, 2};
    MPI_Aint places[] = {offsetof(struct record, tag), offsetof(struct record, value),
                         offsetof(struct record, parts)};
    MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT}, plain, type;
    OK(MPI_Type_create_struct(3, lengths, places, types, &plain));
    OK(MPI_Type_create_resized(plain, 0, sizeof(struct record), &type));
    OK(MPI_Type_commit(&type));
    int root = size - 1;
    for (int i = 0; i < 4; i++) {
        mine[i].parts[2] = 99;
        if (rank == root) mine[i] = (struct record){'a' + i, 0.5 * i, {i, i + 1, 77}};
    }
    OK(MPI_Bcast(mine, 4, type, root, MPI_COMM_WORLD));
    for (int i = 0; i < 4; i++) {
        EXPECT("the tag", 'a' + i, mine[i].tag);
        EXPECT("the value", i, 2 * mine[i].value);
        EXPECT("the second part", i + 1, mine[i].parts[1]);
        EXPECT("the gap", rank == root ? 77 : 99, mine[i].parts[2]);
    }
    struct record *all = calloc(4 * size, sizeof *all);
    for (int i = 0; i < 4; i++) mine[i].value = rank + i;
    OK(MPI_Allgather(mine, 4, type, all, 4, type, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < 4; i++) EXPECT("a gathered value", r + i, all[4 * r + i].value);
    free(all);
    OK(MPI_Type_free(&plain));
    OK(MPI_Type_free(&type));
}

/* Persistent requests go on with a datatype that the program has freed, also when its handle is used again. */
static void persistent(void) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size, from[6], to[6];
    MPI_Datatype pairs, other;
    MPI_Request requests[2];
    OK(MPI_Type_vector(2, 1, 3, MPI_INT, &pairs));
    OK(MPI_Type_commit(&pairs));
    OK(MPI_Recv_init(to, 1, pairs, left, 8, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Send_init(from, 1, pairs, right, 8, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Type_free(&pairs));
    OK(MPI_Type_contiguous(6, MPI_DOUBLE, &other));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 6; i++) from[i] = 100 * rank + 10 * round + i, to[i] = -1;
        OK(MPI_Startall(2, requests));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 6; i++)
            EXPECT("a number", i % 3 == 0 ? 100 * left + 10 * round + i : -1, to[i]);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    OK(MPI_Type_free(&other));
}

/* A message that is longer than the room for it is an error, and fills the room. */
static void truncated(void) {
    MPI_Datatype pairs;
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &pairs));
    OK(MPI_Type_commit(&pairs));
    int from[6] = {1, 2, 3, 4, 5, 6}, to[8];
    for (int i = 0; i < 8; i++) to[i] = -1;
    MPI_Request request;
    OK(MPI_Isend(from, 6, MPI_INT, 0, 9, MPI_COMM_SELF, &request));
    FAILS(MPI_ERR_TRUNCATE, MPI_Recv(to, 2, pairs, 0, 9, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    EXPECT("the gap", -1, to[1]);
    EXPECT("the byte behind the room", -1, to[6]);
    OK(MPI_Type_free(&pairs));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    columns(1);
    columns(10);
    columns(1000);
    columns(100000);
    persistent();
    collectives();
    truncated();
    return end();
}
