/* Views: random displacements, etypes, filetypes with holes and datatypes in memory, against a model that
   goes byte by byte. */
#include "file_check.h"

enum { SPACE = 1 << 16, PLACES = 4096 };

static unsigned state = 1;

static int below(int limit) {
    state = state * 1103515245u + 12345u;
    return (int)((state >> 8) % (unsigned)limit);
}

/* A datatype as a list of the places of its bytes, in the order of the data. */
typedef struct {
    MPI_Datatype type;
    int bytes, extent;
    int places[PLACES];
} Map;

static void set_basic(Map *map, MPI_Datatype type, int bytes) {
    map->bytes = map->extent = bytes;
    MPI_Type_dup(type, &map->type);
    for (int i = 0; i < bytes; i++) map->places[i] = i;
}

/* Blocks of `old` at ascending places (in extents), with an upper bound behind them. */
static void set_blocks(Map *map, const Map *old, int blocks, int spread) {
    int lengths[8], places[8], next = 0;
    MPI_Datatype indexed;
    map->bytes = 0;
    for (int i = 0; i < blocks; i++) {
        places[i] = next + below(spread);
        lengths[i] = 1 + below(3);
        next = places[i] + lengths[i];
        for (int j = 0; j < lengths[i]; j++)
            for (int k = 0; k < old->bytes; k++)
                map->places[map->bytes++] = (places[i] + j) * old->extent + old->places[k];
    }
    map->extent = (next + below(spread)) * old->extent;
    MPI_Type_indexed(blocks, lengths, places, old->type, &indexed);
    MPI_Type_create_resized(indexed, 0, map->extent, &map->type);
    MPI_Type_free(&indexed);
    MPI_Type_commit(&map->type);
}

/* In memory the blocks may also lie in another order. */
static void set_vector(Map *map, const Map *old, int count, int length, int stride) {
    MPI_Datatype vector;
    int lowest = stride < 0 ? (count - 1) * -stride * old->extent : 0;
    map->bytes = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < length; j++)
            for (int k = 0; k < old->bytes; k++)
                map->places[map->bytes++] = (i * stride + j) * old->extent + old->places[k];
    map->extent = lowest + (count * abs(stride) + length) * old->extent;
    MPI_Type_vector(count, length, stride, old->type, &vector);
    MPI_Type_create_resized(vector, 0, map->extent, &map->type);
    MPI_Type_free(&vector);
    MPI_Type_commit(&map->type);
}

static long place_of(const Map *map, long byte) {
    return byte / map->bytes * map->extent + map->places[byte % map->bytes];
}

static const MPI_Datatype BASICS[] = {MPI_BYTE, MPI_SHORT, MPI_INT, MPI_DOUBLE};
static const int BASIC_BYTES[] = {1, 2, 4, 8};

static unsigned char model[SPACE], seen[SPACE], memory[2 * SPACE], expected[2 * SPACE];

/* The etype has `kind` as its elementary type; so have the filetype and the datatype in memory. */
static void make(int kind, Map *etype, Map *filetype, Map *inner) {
    Map basic;
    set_basic(&basic, BASICS[kind], BASIC_BYTES[kind]);
    if (below(2))
        set_basic(etype, BASICS[kind], BASIC_BYTES[kind]);
    else
        set_blocks(etype, &basic, 1 + below(2), 2);
    if (below(4) == 0)
        set_blocks(filetype, etype, 1, 1);
    else
        set_blocks(filetype, etype, 1 + below(5), 4);
    int stride = below(5) - 2;
    if (below(3) == 0 || stride == 0)
        set_basic(inner, BASICS[kind], BASIC_BYTES[kind]);
    else
        set_vector(inner, &basic, 2 + below(3), 1, stride);
    MPI_Type_free(&basic.type);
}

static void release(Map *map) { MPI_Type_free(&map->type); }

/* One random access to the model and to the file: a write or a read, by one of the calls. */
static void access_once(MPI_File fh, const Map *etype, const Map *filetype, const Map *inner, long disp,
                        long size) {
    /* As many elements as are a multiple of the etype. */
    long count = (long)etype->bytes * (1 + below(4)), offset = below(20);
    unsigned char *base = memory + SPACE;
    MPI_Status status;
    MPI_Offset place;
    long bytes = count * inner->bytes, first = offset * etype->bytes;
    DONE(MPI_File_get_byte_offset(fh, offset, &place));
    CHECK(place, disp + place_of(filetype, first), "byte offset of %ld", offset);
    for (int i = 0; i < 2 * SPACE; i++) memory[i] = expected[i] = (unsigned char)below(256);
    if (disp + place_of(filetype, first + bytes) >= SPACE) return;
    if (below(2)) {
        for (long i = 0; i < bytes; i++)
            model[disp + place_of(filetype, first + i)] = base[place_of(inner, i)];
        if (below(2)) {
            DONE(MPI_File_write_at(fh, offset, base, (int)count, inner->type, &status));
        } else {
            DONE(MPI_File_seek(fh, offset, MPI_SEEK_SET));
            DONE(MPI_File_write_c(fh, base, count, inner->type, &status));
            DONE(MPI_File_get_position(fh, &place));
            CHECK(place, offset + bytes / etype->bytes, "the pointer");
        }
        CHECK(count_of(&status, inner->type), count, "written");
    } else {
        long readable = 0;
        while (readable < bytes && disp + place_of(filetype, first + readable) < size) readable++;
        for (long i = 0; i < readable; i++)
            expected[SPACE + place_of(inner, i)] = model[disp + place_of(filetype, first + i)];
        if (below(2)) {
            DONE(MPI_File_read_at(fh, offset, base, (int)count, inner->type, &status));
        } else {
            MPI_Request request;
            DONE(MPI_File_iread_at_c(fh, offset, base, count, inner->type, &request));
            DONE(MPI_Wait(&request, &status));
        }
        CHECK(count_of(&status, MPI_BYTE), readable, "read");
        CHECK(memcmp(memory, expected, sizeof memory), 0, "the memory after a read");
    }
}

static void ends(MPI_File fh, const Map *etype, const Map *filetype, long disp, long size) {
    MPI_Offset end;
    long bytes = 0;
    while (disp + place_of(filetype, bytes) < size) bytes++;
    DONE(MPI_File_seek(fh, 0, MPI_SEEK_END));
    DONE(MPI_File_get_position(fh, &end));
    CHECK(end, (bytes + etype->bytes - 1) / etype->bytes, "the end of %ld bytes", size);
}

/* All give views whose etypes have the same extent; each process has its own part of the file. */
static void round_of(int round) {
    Map *etype = malloc(sizeof *etype), *filetype = malloc(sizeof *filetype), *inner = malloc(sizeof *inner);
    char own[300], name[MPI_MAX_DATAREP_STRING] = "";
    MPI_File fh;
    MPI_Offset disp_found;
    MPI_Datatype found[2];
    snprintf(own, sizeof own, "%s-%d", path, me);
    state = 1000u * (unsigned)round + (unsigned)me + 17u;
    DONE(MPI_File_open(MPI_COMM_SELF, own, MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE,
                       MPI_INFO_NULL, &fh));
    long size = 2000 + below(20000);
    memset(model, 0, sizeof model);
    for (long i = 0; i < size; i++) model[i] = (unsigned char)below(256);
    DONE(MPI_File_write_at(fh, 0, model, (int)size, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int view = 0; view < 6; view++) {
        make(below(4), etype, filetype, inner);
        long disp = below(300);
        DONE(MPI_File_set_view(fh, disp, etype->type, filetype->type, view % 2 ? "native" : "internal",
                               MPI_INFO_NULL));
        DONE(MPI_File_get_view(fh, &disp_found, &found[0], &found[1], name));
        CHECK(disp_found, disp, "disp");
        CHECK(strcmp(name, view % 2 ? "native" : "internal"), 0, "datarep");
        for (int i = 0; i < 2; i++) {
            int count[4];
            MPI_Aint lb, extent;
            MPI_Type_get_extent(found[i], &lb, &extent);
            CHECK(extent, i ? filetype->extent : etype->extent, "the extent of a datatype of the view");
            DONE(MPI_Type_get_envelope(found[i], &count[0], &count[1], &count[2], &count[3]));
            if (count[3] != MPI_COMBINER_NAMED) MPI_Type_free(&found[i]);
        }
        for (int i = 0; i < 12; i++) {
            access_once(fh, etype, filetype, inner, disp, size);
            DONE(MPI_File_get_size(fh, &disp_found));
            size = (long)disp_found;
        }
        ends(fh, etype, filetype, disp, size);
        release(etype);
        release(filetype);
        release(inner);
    }
    int file = open(own, O_RDONLY);
    CHECK(read(file, seen, SPACE), size, "the bytes of the file");
    close(file);
    CHECK(memcmp(seen, model, (size_t)size), 0, "the contents of round %d", round);
    DONE(MPI_File_close(&fh));
    free(etype);
    free(filetype);
    free(inner);
}

/* The rows of a matrix, dealt out to the processes, and read as columns. */
static void dealt_matrix(void) {
    enum { SIDE = 24 };
    int sizes[] = {SIDE, SIDE * n}, parts[] = {SIDE, SIDE}, starts[] = {0, SIDE * me}, row[SIDE * SIDE];
    int all = SIDE * SIDE;
    MPI_Datatype block;
    MPI_Status status;
    MPI_File fh = created();
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &block);
    MPI_Type_commit(&block);
    DONE(MPI_File_set_view(fh, 8, MPI_INT, block, "native", MPI_INFO_NULL));
    MPI_Type_free(&block);
    for (int i = 0; i < all; i++) row[i] = me * all + i;
    DONE(MPI_File_write_all(fh, row, all, MPI_INT, &status));
    CHECK(count_of(&status, MPI_INT), all, "a block");
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_File_set_view(fh, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int i = me; i < SIDE; i += n) {
        int *line = malloc(sizeof(int) * (size_t)(SIDE * n));
        DONE(MPI_File_read_at(fh, (MPI_Offset)i * SIDE * n, line, SIDE * n, MPI_INT, &status));
        for (int j = 0; j < SIDE * n; j++)
            CHECK(line[j], j / SIDE * all + i * SIDE + j % SIDE, "row %d, column %d", i, j);
        free(line);
    }
    DONE(MPI_File_close(&fh));
    removed();
}

static void wrong_views(void) {
    MPI_Datatype wrong, raw;
    MPI_Offset at;
    MPI_File fh = created();
    int lengths[] = {1, 1}, falling[] = {4, 0}, twice[] = {0, 0}, negative[] = {-2, 2};
    REFUSED(MPI_File_set_view(fh, -5, MPI_INT, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    REFUSED(MPI_File_set_view(fh, 0, MPI_DATATYPE_NULL, MPI_INT, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    REFUSED(MPI_File_set_view(fh, 0, MPI_INT, MPI_DATATYPE_NULL, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    REFUSED(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "nonsense", MPI_INFO_NULL),
            MPI_ERR_UNSUPPORTED_DATAREP);
    REFUSED(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, NULL, MPI_INFO_NULL), MPI_ERR_ARG);
    REFUSED(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "", MPI_INFO_NULL), MPI_ERR_ARG);
    REFUSED(MPI_File_set_view(fh, 0, MPI_INT, MPI_SHORT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    int *shapes[] = {falling, twice, negative};
    for (int i = 0; i < 3; i++) {
        MPI_Type_indexed(2, lengths, shapes[i], MPI_INT, &wrong);
        MPI_Type_commit(&wrong);
        REFUSED(MPI_File_set_view(fh, 0, MPI_INT, wrong, "native", MPI_INFO_NULL), MPI_ERR_IO);
        MPI_Type_free(&wrong);
    }
    MPI_Type_contiguous(2, MPI_INT, &raw);
    REFUSED(MPI_File_set_view(fh, 0, MPI_INT, raw, "native", MPI_INFO_NULL), MPI_ERR_TYPE);
    MPI_Type_free(&raw);
    if (n > 1) {
        REFUSED(MPI_File_set_view(fh, 0, me ? MPI_INT : MPI_BYTE, me ? MPI_INT : MPI_BYTE, "native",
                                  MPI_INFO_NULL),
                MPI_ERR_NOT_SAME);
        REFUSED(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, me ? "native" : "external32", MPI_INFO_NULL),
                MPI_ERR_NOT_SAME);
    }
    /* The old view stays, and a file that is only read may show bytes twice. */
    char three[3];
    DONE(MPI_File_write_at(fh, 3 * me, "abc", 3, MPI_BYTE, MPI_STATUS_IGNORE));
    DONE(MPI_File_set_view(fh, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    REFUSED(MPI_File_write_at(fh, 0, three, 3, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_IO);
    DONE(MPI_File_close(&fh));
    fh = opened(MPI_MODE_RDONLY);
    MPI_Type_indexed(2, lengths, twice, MPI_BYTE, &wrong);
    MPI_Type_commit(&wrong);
    DONE(MPI_File_set_view(fh, 0, MPI_BYTE, wrong, "native", MPI_INFO_NULL));
    MPI_Type_free(&wrong);
    DONE(MPI_File_read_at(fh, 0, three, 2, MPI_BYTE, MPI_STATUS_IGNORE));
    CHECK(three[0] == 'a' && three[1] == 'a', 1, "a byte twice");
    REFUSED(MPI_File_get_view(fh, &at, &wrong, &raw, NULL), MPI_ERR_ARG);
    DONE(MPI_File_close(&fh));
    removed();
}

int main(int argc, char **argv) {
    begin(&argc, &argv, "views");
    for (int round = 0; round < 30; round++) round_of(round);
    dealt_matrix();
    wrong_views();
    return finish();
}
