/* Collective accesses whose views interleave small pieces: random views, counts, offsets and datatypes in
   memory of all processes, and every form of call, against a model of the whole file. Buffered accesses
   with windows of several sizes leave the same bytes as those that are not buffered. */
#include "file_check.h"

enum { SPACE = 1 << 17, SLOTS = 64, MOST = 3000 };

static unsigned shared_state, own_state;

/* Random numbers: of the first kind all processes draw the same. */
static int drawn(unsigned *state, int limit) {
    *state = *state * 1103515245u + 12345u;
    return (int)((*state >> 8) % (unsigned)limit);
}
static int below(int limit) { return drawn(&shared_state, limit); }

static unsigned char model[SPACE], seen[SPACE];

/* The view of a process: its slots of the filetype, in elements of 4 bytes. */
typedef struct {
    int count, slots[SLOTS];
} Share;

static Share shares[64];
static int extent, disp;

/* Deals the slots of the filetype out: in turn, in blocks, or at random with some that nobody has. */
static void deal(int kind) {
    extent = n + below(SLOTS - n);
    if (kind == 0) extent -= extent % n;
    for (int rank = 0; rank < n; rank++) shares[rank].count = 0;
    int last = 0;
    for (int slot = 0; slot < extent; slot++) {
        int owner = kind == 0 ? slot % n : below(n + 1);
        if (kind == 2 && below(2)) owner = last;
        last = owner;
        if (owner < n) shares[owner].slots[shares[owner].count++] = slot;
    }
    for (int rank = 0; rank < n; rank++)
        if (shares[rank].count == 0) shares[rank].slots[shares[rank].count++] = extent++;
    disp = below(200);
}

/* The position in the file of an element of the view of a process. */
static long place_of(int rank, long element) {
    const Share *share = &shares[rank];
    return disp + 4L * (element / share->count * extent + share->slots[element % share->count]);
}

static MPI_Datatype filetype(void) {
    int lengths[SLOTS];
    MPI_Datatype indexed, resized;
    for (int i = 0; i < shares[me].count; i++) lengths[i] = 1;
    MPI_Type_indexed(shares[me].count, lengths, shares[me].slots, MPI_INT, &indexed);
    MPI_Type_create_resized(indexed, 0, 4 * extent, &resized);
    MPI_Type_free(&indexed);
    MPI_Type_commit(&resized);
    return resized;
}

static int value_of(int step, int rank, int i) { return (step * 64 + rank) * 100000 + i; }

/* A buffer: its elements follow each other, or there is a gap behind each. */
static int buffer[2 * MOST];

static MPI_Datatype memory_type(int has_gaps) {
    MPI_Datatype type;
    if (has_gaps)
        MPI_Type_create_resized(MPI_INT, 0, 8, &type);
    else
        MPI_Type_dup(MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

/* The calls of an access at the individual file pointers, or at an offset. */
enum { AT_POINTER, AT_OFFSET, SPLIT, STARTED, FORMS };

static void write_once(MPI_File fh, int form, long offset, int count, MPI_Datatype type, MPI_Status *status) {
    MPI_Request request;
    if (form == AT_POINTER || form == SPLIT) DONE(MPI_File_seek(fh, offset, MPI_SEEK_SET));
    if (form == AT_POINTER) DONE(MPI_File_write_all(fh, buffer, count, type, status));
    if (form == AT_OFFSET) DONE(MPI_File_write_at_all(fh, offset, buffer, count, type, status));
    if (form == SPLIT) {
        DONE(MPI_File_write_all_begin(fh, buffer, count, type));
        DONE(MPI_File_write_all_end(fh, buffer, status));
    }
    if (form == STARTED) {
        DONE(MPI_File_iwrite_at_all(fh, offset, buffer, count, type, &request));
        DONE(MPI_Wait(&request, status));
    }
}

static void read_once(MPI_File fh, int form, long offset, int count, MPI_Datatype type, MPI_Status *status) {
    MPI_Request request;
    if (form == AT_POINTER || form == SPLIT) DONE(MPI_File_seek(fh, offset, MPI_SEEK_SET));
    if (form == AT_POINTER) DONE(MPI_File_read_all(fh, buffer, count, type, status));
    if (form == AT_OFFSET) DONE(MPI_File_read_at_all(fh, offset, buffer, count, type, status));
    if (form == SPLIT) {
        DONE(MPI_File_read_all_begin(fh, buffer, count, type));
        DONE(MPI_File_read_all_end(fh, buffer, status));
    }
    if (form == STARTED) {
        DONE(MPI_File_iread_at_all(fh, offset, buffer, count, type, &request));
        DONE(MPI_Wait(&request, status));
    }
}

/* The access of each process: some have no data. */
static void draw(long offsets[], int counts[]) {
    int most = 1 + below(below(4) ? 40 : MOST);
    for (int rank = 0; rank < n; rank++) {
        offsets[rank] = below(30);
        counts[rank] = below(6) ? below(most) : 0;
        while (counts[rank] && place_of(rank, offsets[rank] + counts[rank]) >= SPACE) counts[rank]--;
    }
}

/* The size of the file, which writes make longer. */
static long size;

static void write_step(MPI_File fh, int step) {
    long offsets[64];
    int counts[64], gaps = drawn(&own_state, 2);
    MPI_Status status;
    MPI_Offset position;
    MPI_Datatype type = memory_type(gaps);
    int form = below(FORMS);
    draw(offsets, counts);
    for (int i = 0; i < counts[me]; i++) buffer[i << gaps] = value_of(step, me, i);
    write_once(fh, form, offsets[me], counts[me], type, &status);
    CHECK(count_of(&status, type), counts[me], "elements written by step %d", step);
    if (form == AT_POINTER) {
        DONE(MPI_File_get_position(fh, &position));
        CHECK(position, offsets[me] + counts[me], "the pointer after step %d", step);
    }
    MPI_Type_free(&type);
    for (int rank = 0; rank < n; rank++)
        for (int i = 0; i < counts[rank]; i++) {
            int value = value_of(step, rank, i);
            long place = place_of(rank, offsets[rank] + i);
            memcpy(model + place, &value, 4);
            if (place + 4 > size) size = place + 4;
        }
}

static void read_step(MPI_File fh, int step) {
    long offsets[64];
    int counts[64], gaps = drawn(&own_state, 2);
    MPI_Status status;
    MPI_Datatype type = memory_type(gaps);
    int form = below(FORMS), there = 0;
    draw(offsets, counts);
    for (int i = 0; i < 2 * MOST; i++) buffer[i] = -7;
    MPI_Barrier(MPI_COMM_WORLD);
    read_once(fh, form, offsets[me], counts[me], type, &status);
    /* The size of the file is a multiple of an element from the view's displacement on. */
    while (there < counts[me] && place_of(me, offsets[me] + there) < size) there++;
    CHECK(count_of(&status, MPI_INT), there, "elements read by step %d", step);
    for (int i = 0; i < MOST; i++) {
        int value = -7;
        if (i < there) memcpy(&value, model + place_of(me, offsets[me] + i), 4);
        CHECK(buffer[i << gaps], value, "element %d of step %d", i, step);
    }
    MPI_Type_free(&type);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void hint(MPI_File fh, const char *key, const char *value) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    DONE(MPI_File_set_info(fh, info));
    MPI_Info_free(&info);
}

static const char *const WINDOWS[] = {"4096", "16384", "4194304"};

static void round_of(int round) {
    char text[16];
    shared_state = 1000u * (unsigned)round + 3u;
    own_state = shared_state + (unsigned)me;
    MPI_File fh = created();
    size = 3 + 4 * below(2000);
    if (me == 0) {
        for (long i = 0; i < size; i++) model[i] = (unsigned char)(i * 7);
        DONE(MPI_File_write_at(fh, 0, model, (int)size, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MPI_Bcast(model, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
    memset(model + size, 0, (size_t)(SPACE - size));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int view = 0; view < 3; view++) {
        deal((round + view) % 3);
        /* So that the file ends between two elements of the view. */
        disp += (int)((size - disp) % 4 + 4) % 4;
        hint(fh, "cb_buffer_size", WINDOWS[below(3)]);
        snprintf(text, sizeof text, "%d", 1 + below(n));
        hint(fh, "cb_nodes", text);
        hint(fh, "collective_buffering", below(5) ? "true" : "false");
        MPI_Datatype type = filetype();
        DONE(MPI_File_set_view(fh, disp, MPI_INT, type, view % 2 ? "native" : "internal", MPI_INFO_NULL));
        MPI_Type_free(&type);
        for (int i = 0; i < 6; i++) {
            int step = (round * 3 + view) * 6 + i;
            if (below(2))
                write_step(fh, step % 300);
            else
                read_step(fh, step);
        }
    }
    DONE(MPI_File_close(&fh));
    if (me == 0) {
        CHECK(contents(seen, SPACE), size, "the bytes of the file of round %d", round);
        for (long i = 0; i < size; i++) CHECK(seen[i], model[i], "byte %ld of round %d", i, round);
    }
    removed();
}

/* Data in another representation go by the same way; the first process is in order by rank. */
static void converted(void) {
    enum { COUNT = 500 };
    double mine[COUNT], back[COUNT], other[COUNT];
    MPI_Datatype type, vector;
    MPI_Status status;
    MPI_File fh = created();
    MPI_Type_vector(1, 1, 1, MPI_DOUBLE, &vector);
    MPI_Type_create_resized(vector, 0, 8 * n, &type);
    MPI_Type_commit(&type);
    DONE(MPI_File_set_view(fh, 8 * me, MPI_DOUBLE, type, "external32", MPI_INFO_NULL));
    for (int i = 0; i < COUNT; i++) mine[i] = me + i / 1024.0;
    DONE(MPI_File_write_all(fh, mine, COUNT, MPI_DOUBLE, &status));
    CHECK(count_of(&status, MPI_DOUBLE), COUNT, "doubles written");
    DONE(MPI_File_read_at_all(fh, 0, back, COUNT, MPI_DOUBLE, &status));
    CHECK(memcmp(mine, back, sizeof mine), 0, "doubles read together");
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_File_set_view(fh, 8 * ((me + 1) % n), MPI_DOUBLE, type, "external32", MPI_INFO_NULL));
    DONE(MPI_File_read_at(fh, 0, other, COUNT, MPI_DOUBLE, &status));
    for (int i = 0; i < COUNT; i++)
        CHECK(other[i] == (me + 1) % n + i / 1024.0, 1, "double %d of another process", i);
    MPI_Type_free(&type);
    MPI_Type_free(&vector);
    DONE(MPI_File_close(&fh));
    removed();
}

/* A process reads its own bytes, which it has written just before, while others are in the read already. */
static void own_write(void) {
    MPI_Datatype type;
    MPI_File fh = created();
    hint(fh, "collective_buffering", "true");
    MPI_Type_create_resized(MPI_INT, 0, 4 * n, &type);
    MPI_Type_commit(&type);
    DONE(MPI_File_set_view(fh, 4 * me, MPI_INT, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
    for (int round = 0; round < 50; round++) {
        int mine[3] = {round, me, 7}, found[3] = {-1, -1, -1};
        MPI_Status status;
        if (me == n - 1) {
            if (round % 2) usleep(300);
            DONE(MPI_File_write_at(fh, 3 * round, mine, 3, MPI_INT, MPI_STATUS_IGNORE));
        }
        DONE(MPI_File_read_at_all(fh, 3 * round, found, me == n - 1 ? 3 : 0, MPI_INT, &status));
        if (me == n - 1) {
            CHECK(count_of(&status, MPI_INT), 3, "own numbers of round %d", round);
            CHECK(memcmp(mine, found, sizeof mine), 0, "the own numbers of round %d", round);
        }
    }
    DONE(MPI_File_close(&fh));
    removed();
}

/* A device has no size, and has data all the same. */
static void device(void) {
    MPI_Datatype type;
    MPI_File fh;
    MPI_Status status;
    int zeros[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    DONE(MPI_File_open(MPI_COMM_WORLD, "/dev/zero", MPI_MODE_RDONLY, MPI_INFO_NULL, &fh));
    hint(fh, "collective_buffering", "true");
    MPI_Type_create_resized(MPI_INT, 0, 4 * n, &type);
    MPI_Type_commit(&type);
    DONE(MPI_File_set_view(fh, 4 * me, MPI_INT, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
    DONE(MPI_File_read_all(fh, zeros, 8, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT), 8, "zeros");
    for (int i = 0; i < 8; i++) CHECK(zeros[i], 0, "zero %d", i);
    DONE(MPI_File_close(&fh));
}

/* Ordered accesses, whose data follow each other by rank. */
static void ordered(void) {
    MPI_Datatype type;
    MPI_File fh = created();
    int numbers[40], all = 0, before = 0;
    MPI_Type_create_resized(MPI_INT, 0, 12, &type);
    MPI_Type_commit(&type);
    DONE(MPI_File_set_view(fh, 4, MPI_INT, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
    for (int i = 0; i < 40; i++) numbers[i] = 1000 * me + i;
    DONE(MPI_File_write_ordered(fh, numbers, 10 + me, MPI_INT, MPI_STATUS_IGNORE));
    for (int rank = 0; rank < n; rank++) {
        if (rank < me) before += 10 + rank;
        all += 10 + rank;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 10 + me; i++) {
        int found = -1;
        DONE(MPI_File_read_at(fh, before + i, &found, 1, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(found, 1000 * me + i, "number %d", i);
    }
    MPI_Offset bytes;
    DONE(MPI_File_get_size(fh, &bytes));
    CHECK(bytes, 4 + 12 * (all - 1) + 4, "the size of the file");
    DONE(MPI_File_close(&fh));
    removed();
}

/* If the arguments of one process are wrong, a buffered access fails at all of them. */
static void one_fails(void) {
    int number = 5;
    MPI_Datatype type;
    MPI_File fh = created();
    MPI_Type_create_resized(MPI_INT, 0, 4 * n, &type);
    MPI_Type_commit(&type);
    DONE(MPI_File_set_view(fh, 4 * me, MPI_INT, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
    MPI_Datatype mine = me == n - 1 ? MPI_DATATYPE_NULL : MPI_INT;
    if (n > 1) {
        REFUSED(MPI_File_write_all(fh, &number, 1, mine, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
        REFUSED(MPI_File_read_at_all(fh, me == n - 1 ? -1 : 0, &number, 1, MPI_INT, MPI_STATUS_IGNORE),
                MPI_ERR_ARG);
    }
    DONE(MPI_File_write_all(fh, &number, 1, MPI_INT, MPI_STATUS_IGNORE));
    DONE(MPI_File_close(&fh));
    fh = opened(MPI_MODE_RDONLY);
    REFUSED(MPI_File_write_all(fh, &number, 1, MPI_INT, MPI_STATUS_IGNORE), MPI_ERR_READ_ONLY);
    DONE(MPI_File_close(&fh));
    removed();
}

/* Views that show bytes twice, or in another order from filetype to filetype, are not buffered. */
static void twice(void) {
    int lengths[] = {2, 2}, places[] = {0, 1}, found[8];
    MPI_Datatype indexed, type;
    MPI_File fh = created();
    if (me == 0) {
        for (int i = 0; i < 8; i++) found[i] = i;
        DONE(MPI_File_write_at(fh, 0, found, 32, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    DONE(MPI_File_close(&fh));
    fh = opened(MPI_MODE_RDONLY);
    MPI_Type_indexed(2, lengths, places, MPI_INT, &indexed);
    MPI_Type_create_resized(indexed, 0, 8, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&indexed);
    DONE(MPI_File_set_view(fh, 0, MPI_INT, type, "native", MPI_INFO_NULL));
    MPI_Type_free(&type);
    DONE(MPI_File_read_all(fh, found, 8, MPI_INT, MPI_STATUS_IGNORE));
    int expected[] = {0, 1, 1, 2, 2, 3, 3, 4};
    CHECK(memcmp(found, expected, sizeof expected), 0, "a view that shows bytes twice");
    DONE(MPI_File_close(&fh));
    removed();
}

int main(int argc, char **argv) {
    begin(&argc, &argv, "collective");
    for (int round = 0; round < 24; round++) round_of(round);
    converted();
    ordered();
    own_write();
    device();
    one_fails();
    twice();
    return finish();
}
