/* Messages whose data have gaps at the sender, at the receiver or at both, of all lengths and ways to send and to
 * receive: the data arrive, and the bytes of the gaps stay as they are. */
#include "check.h"
#include <stdlib.h>

enum { BYTE, SHORT_BLOCKS, LONG_BLOCKS, MIXED, TYPES };
enum { GAP = 0x5A, ROOM = 3 << 20 };

static MPI_Datatype types[TYPES];
static int sizes[TYPES];
static unsigned char *out, *in, *packed;

static void make_types(void) {
    int lengths[4] = {3, 1, 40, 17};
    MPI_Aint places[4] = {5, 0, 16, 70};
    types[BYTE] = MPI_BYTE;
    MPI_Type_vector(2, 8, 16, MPI_BYTE, &types[SHORT_BLOCKS]);
    MPI_Type_create_resized(types[SHORT_BLOCKS], 0, 32, &types[SHORT_BLOCKS]);
    MPI_Type_vector(3, 1500, 2000, MPI_BYTE, &types[LONG_BLOCKS]);
    MPI_Type_create_hindexed(4, lengths, places, MPI_BYTE, &types[MIXED]);
    for (int type = 0; type < TYPES; type++) {
        MPI_Type_commit(&types[type]);
        MPI_Type_size(types[type], &sizes[type]);
    }
}

static unsigned char byte(int number, long place) {
    return (unsigned char)(number * 37 + place * 11 + place / 251);
}

/* Fills the data of `count` elements of a type in `buffer`, and all else with `GAP`. */
static void fill(unsigned char *buffer, int type, int count, int number) {
    int position = 0, bytes = count * sizes[type];
    memset(buffer, GAP, ROOM);
    for (int i = 0; i < bytes; i++) packed[i] = byte(number, i);
    WORKS(MPI_Unpack(packed, bytes, &position, buffer, count, types[type], MPI_COMM_WORLD));
}

/* Checks that a buffer has the first `bytes` bytes of a message as elements of this type, and no other bytes. */
static void check(unsigned char *buffer, int type, int room, long bytes, int number) {
    int position = 0, total = room * sizes[type];
    long changed = 0, wrong = 0;
    WORKS(MPI_Pack(buffer, room, types[type], packed, total, &position, MPI_COMM_WORLD));
    for (long i = 0; i < total; i++) wrong += packed[i] != (i < bytes ? byte(number, i) : GAP);
    memset(packed, GAP, total);
    position = 0;
    WORKS(MPI_Unpack(packed, total, &position, buffer, room, types[type], MPI_COMM_WORLD));
    for (long i = 0; i < ROOM; i++) changed += buffer[i] != GAP;
    if (wrong + changed > 0) printf("message %d, type %d, %ld bytes: ", number, type, bytes);
    EQUAL("wrong bytes", 0, wrong);
    EQUAL("bytes changed in gaps", 0, changed);
}

static void send(int way, int type, int count, int to, int tag) {
    MPI_Request request;
    if (way == 0) WORKS(MPI_Send(out, count, types[type], to, tag, MPI_COMM_WORLD));
    if (way == 1) WORKS(MPI_Ssend(out, count, types[type], to, tag, MPI_COMM_WORLD));
    if (way > 1) {
        WORKS(MPI_Isend(out, count, types[type], to, tag, MPI_COMM_WORLD, &request));
        WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
}

static long receive(int way, int type, int room, int from, int tag) {
    MPI_Status status = {0};
    MPI_Request request;
    MPI_Message message;
    int bytes;
    if (way == 0) WORKS(MPI_Recv(in, room, types[type], from, tag, MPI_COMM_WORLD, &status));
    if (way == 1) WORKS(MPI_Recv(in, room, types[type], MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
    if (way == 2) {
        WORKS(MPI_Irecv(in, room, types[type], from, tag, MPI_COMM_WORLD, &request));
        WORKS(MPI_Wait(&request, &status));
    }
    if (way == 3) {
        WORKS(MPI_Mprobe(from, tag, MPI_COMM_WORLD, &message, &status));
        WORKS(MPI_Mrecv(in, room, types[type], &message, &status));
    }
    EQUAL("source", from, status.MPI_SOURCE);
    EQUAL("tag", tag, status.MPI_TAG);
    WORKS(MPI_Get_elements(&status, MPI_BYTE, &bytes));
    return bytes;
}

/* All pairs of types, of lengths from a few bytes to some that come in many pieces. */
static void to_the_next(int rank, int size) {
    static const int bytes[] = {60, 4000, 16384, 16500, 70000, 131072 + 61, 1000000};
    int next = (rank + 1) % size, previous = (rank + size - 1) % size, number = 0;
    for (int from = 0; from < TYPES; from++)
        for (int to = 0; to < TYPES; to++)
            for (int i = 0; i < 7; i++, number++) {
                int count = (bytes[i] + sizes[from] - 1) / sizes[from];
                long total = (long)count * sizes[from];
                /* Some messages end within an element, and some find more room. */
                int room = (int)((total + sizes[to] - 1) / sizes[to]) + number % 2;
                fill(out, from, count, number);
                memset(in, GAP, ROOM);
                for (int turn = 0; turn < 2; turn++) {
                    if (rank % 2 == turn) send(number % 3, from, count, next, number);
                    if (previous % 2 == turn) {
                        EQUAL("bytes", total, receive(number % 4, to, room, previous, number));
                        check(in, to, room, total, number);
                    }
                }
            }
}

/* A receiver that asks for less gets the beginning. */
static void truncated(int rank) {
    for (int type = 1; type < TYPES; type++) {
        int count = 200000 / sizes[type], room = count / 2;
        if (rank == 0) {
            fill(out, type, count, type);
            WORKS(MPI_Send(out, count, types[type], 1, 1, MPI_COMM_WORLD));
        } else if (rank == 1) {
            memset(in, GAP, ROOM);
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
            GIVES(MPI_ERR_TRUNCATE, MPI_Recv(in, room, types[type], 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
            check(in, type, room, (long)room * sizes[type], type);
        }
    }
}

/* Both directions at once, and a datatype that is freed before its receive is complete. */
static void exchanged(int rank, int size) {
    int other = rank ^ 1;
    if (other >= size) return;
    for (int type = 1; type < TYPES; type++) {
        int count = 300000 / sizes[type];
        MPI_Datatype copy;
        MPI_Request request;
        fill(out, type, count, rank);
        memset(in, GAP, ROOM);
        WORKS(MPI_Sendrecv(out, count, types[type], other, 2, in, count, types[type], other, 2, MPI_COMM_WORLD,
                           MPI_STATUS_IGNORE));
        check(in, type, count, (long)count * sizes[type], other);
        memset(in, GAP, ROOM);
        MPI_Type_dup(types[type], &copy);
        WORKS(MPI_Irecv(in, count, copy, other, 3, MPI_COMM_WORLD, &request));
        MPI_Type_free(&copy);
        WORKS(MPI_Send(out, count, types[type], other, 3, MPI_COMM_WORLD));
        WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
        check(in, type, count, (long)count * sizes[type], other);
    }
}

/* A message to oneself, and a receive that is cancelled. */
static void alone(int rank) {
    for (int type = 1; type < TYPES; type++) {
        int count = 100000 / sizes[type], is_cancelled;
        MPI_Request request;
        MPI_Status status;
        fill(out, type, count, type);
        memset(in, GAP, ROOM);
        WORKS(MPI_Irecv(in, count, types[type], rank, 4, MPI_COMM_WORLD, &request));
        WORKS(MPI_Send(out, count, types[type], rank, 4, MPI_COMM_WORLD));
        WORKS(MPI_Wait(&request, MPI_STATUS_IGNORE));
        check(in, type, count, (long)count * sizes[type], type);
        memset(in, GAP, ROOM);
        WORKS(MPI_Irecv(in, count, types[type], rank, 5, MPI_COMM_WORLD, &request));
        WORKS(MPI_Cancel(&request));
        WORKS(MPI_Wait(&request, &status));
        MPI_Test_cancelled(&status, &is_cancelled);
        HOLDS(is_cancelled);
        check(in, type, count, 0, type);
    }
}

int main(void) {
    int rank, size;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    out = malloc(ROOM);
    in = malloc(ROOM);
    packed = malloc(ROOM);
    make_types();
    if (size > 1) {
        to_the_next(rank, size);
        truncated(rank);
        exchanged(rank, size);
    }
    alone(rank);
    for (int type = 1; type < TYPES; type++) MPI_Type_free(&types[type]);
    MPI_Finalize();
    return VERDICT();
}
