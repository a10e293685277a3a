/* The data need not fill the buffer that receives them: the target's of puts and accumulates, the origin's of
 * gets. What accumulates fetch is all of the target buffer. */
#include "win_check.h"

enum { LEN = 500, MANY = 20, FAR = 600 };

/* 10, and twice `MANY`, elements with a gap behind each; `MANY` elements that are far apart. */
static MPI_Datatype ten, many, apart;

static void begin_epoch(int locks, int to, MPI_Win win) {
    if (locks) {
        DONE(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
    } else {
        DONE(MPI_Win_fence(0, win));
    }
}

static void end_epoch(int locks, int to, MPI_Win win) {
    if (locks) {
        DONE(MPI_Win_unlock(to, win));
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        DONE(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    }
}

#define HERE(index) to, at(kind, starts[to], (index), 4)

/* Data to parts of larger buffers, and elements behind the data. */
static void changes(enum kind kind, int locks) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, LEN * sizeof(int), sizeof(int), &base, starts);
    int to = (me + 1) % n, from = (me + n - 1) % n, *mine = (int *)base, data[MANY], expected[LEN];
    MPI_Request requests[2];
    for (int i = 0; i < LEN; i++) expected[i] = mine[i] = i;
    for (int i = 0; i < MANY; i++) data[i] = 1000 * (me + 1) + i;
    MPI_Barrier(MPI_COMM_WORLD);
    begin_epoch(locks, to, win);
    DONE(MPI_Put(data, 2, MPI_INT, HERE(0), 4, MPI_INT, win));
    DONE(MPI_Put_c(data, 3, MPI_INT, HERE(10), 1, ten, win));
    DONE(MPI_Put(data, MANY, MPI_INT, HERE(40), 1, many, win));
    DONE(MPI_Put(data, 0, MPI_INT, HERE(130), 4, MPI_INT, win));
    DONE(MPI_Put(data, 1, ten, HERE(140), 2, ten, win));
    DONE(MPI_Accumulate(data, 2, MPI_INT, HERE(200), 4, MPI_INT, MPI_SUM, win));
    DONE(MPI_Accumulate(data, MANY, MPI_INT, HERE(210), 1, many, MPI_SUM, win));
    DONE(MPI_Accumulate(data, 0, MPI_INT, HERE(300), 4, MPI_INT, MPI_SUM, win));
    if (locks) {
        DONE(MPI_Rput(data, 2, MPI_INT, HERE(310), 3, MPI_INT, win, &requests[0]));
        DONE(MPI_Raccumulate(data, 3, MPI_INT, HERE(320), 1, ten, MPI_REPLACE, win, &requests[1]));
        DONE(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    }
    end_epoch(locks, to, win);
    int first = 1000 * (from + 1);
    for (int i = 0; i < MANY; i++) {
        if (i < 2) expected[i] = first + i, expected[200 + i] += first + i;
        if (i < 3) expected[10 + 2 * i] = first + i;
        if (i < 10) expected[140 + 2 * i] = first + 2 * i;
        expected[40 + 2 * i] = first + i;
        expected[210 + 2 * i] += first + i;
        if (locks && i < 2) expected[310 + i] = first + i;
        if (locks && i < 3) expected[320 + 2 * i] = first + i;
    }
    for (int i = 0; i < LEN; i++) {
        CHECK(mine[i], expected[i], "%s, locks %d: element %d", kind_name(kind), locks, i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

/* Checks a result: elements that were fetched, `step` apart, and -1 elsewhere. */
static void expect(const char *what, const int *got, int room, int step, const int *fetched, int count) {
    for (int i = 0; i < room; i++) {
        int has = i % step == 0 && i / step < count;
        CHECK(got[i], has ? fetched[i / step] : -1, "%s: result %d", what, i);
    }
}

/* What is got and fetched into larger buffers, and only the elements that the origin has are changed. */
static void fetches(enum kind kind, int locks) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, LEN * sizeof(int), sizeof(int), &base, starts);
    int to = (me + 1) % n, *mine = (int *)base, data[MANY], got[11][3 * MANY], old[2 * MANY];
    MPI_Request requests[2];
    for (int i = 0; i < LEN; i++) mine[i] = i;
    for (int i = 0; i < MANY; i++) data[i] = 10000 + i;
    for (int k = 0; k < 11; k++) {
        for (int i = 0; i < 3 * MANY; i++) got[k][i] = -1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    begin_epoch(locks, to, win);
    DONE(MPI_Get(got[0], 8, MPI_INT, HERE(0), 2, MPI_INT, win));
    DONE(MPI_Get_c(got[1], 1, ten, HERE(10), 4, MPI_INT, win));
    DONE(MPI_Get(got[2], 3 * MANY, MPI_INT, HERE(20), 1, many, win));
    DONE(MPI_Get(got[3], 3, MPI_INT, HERE(0), 0, MPI_INT, win));
    DONE(MPI_Get_accumulate(data, 2, MPI_INT, got[4], 6, MPI_INT, HERE(110), 4, MPI_INT, MPI_SUM, win));
    DONE(MPI_Get_accumulate(data, MANY, MPI_INT, got[5], 3 * MANY, MPI_INT, HERE(120), 1, many, MPI_REPLACE,
                            win));
    DONE(MPI_Get_accumulate(NULL, 0, MPI_INT, got[6], 2, ten, HERE(210), 3, MPI_INT, MPI_NO_OP, win));
    DONE(MPI_Get_accumulate(data, 0, MPI_INT, got[7], 5, MPI_INT, HERE(220), 3, MPI_INT, MPI_SUM, win));
    DONE(MPI_Get_accumulate(data, 3, MPI_INT, got[8], 2, ten, HERE(230), 1, ten, MPI_SUM, win));
    if (locks) {
        DONE(MPI_Rget(got[9], 8, MPI_INT, HERE(300), 2, MPI_INT, win, &requests[0]));
        DONE(MPI_Rget_accumulate(data, 1, MPI_INT, got[10], 9, MPI_INT, HERE(310), 2, MPI_INT, MPI_SUM, win,
                                 &requests[1]));
        DONE(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    }
    end_epoch(locks, to, win);
    static const int begins[11] = {0, 10, 20, 0, 110, 120, 210, 220, 230, 300, 310};
    static const int counts[11] = {2, 4, 2 * MANY, 0, 4, 2 * MANY, 3, 3, 10, 2, 2};
    for (int k = 0; k < 11; k++) {
        char name[64];
        int is_vector = k == 2 || k == 5 || k == 8, step = k == 1 || k == 6 || k == 8 ? 2 : 1;
        for (int i = 0; i < counts[k]; i++) old[i] = begins[k] + (is_vector ? 2 : 1) * i;
        snprintf(name, sizeof name, "%s, locks %d, call %d", kind_name(kind), locks, k);
        expect(name, got[k], 3 * MANY, step, old, k < 9 || locks ? counts[k] : 0);
    }
    for (int i = 0; i < LEN; i++) {
        int value = i;
        if (i == 110 || i == 111) value += 10000 + i - 110;
        if (i >= 120 && i < 120 + 2 * MANY && i % 2 == 0) value = 10000 + (i - 120) / 2;
        if (i == 230 || i == 232 || i == 234) value += 10000 + (i - 230) / 2;
        if (locks && i == 310) value += 10000;
        CHECK(mine[i], value, "%s, locks %d: element %d after fetches", kind_name(kind), locks, i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

struct pair {
    short value;
    int place;
};

/* Elements with gaps, blocks with wide gaps between them, and elements that are not aligned. */
static void others(enum kind kind, int locks) {
    enum { BYTES = MANY * FAR * sizeof(int) };
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, BYTES + 64, 1, &base, starts);
    int to = (me + 1) % n, data[MANY], got[2 * MANY], old[3] = {-1, -1, -1}, seven = 7, odd[2] = {5, 6};
    struct pair own = {9, 99}, fetched[3] = {{-1, -1}, {-1, -1}, {-1, -1}};
    struct pair *pairs = (struct pair *)(base + BYTES);
    for (int i = 0; i < 3; i++) pairs[i].value = (short)(i + 1), pairs[i].place = 10 + i;
    for (int i = 0; i < MANY; i++) ((int *)base)[i * FAR] = i, data[i] = 100 + i;
    memcpy(base + BYTES + 33, odd, sizeof odd);
    for (int i = 0; i < 2 * MANY; i++) got[i] = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    begin_epoch(locks, to, win);
    MPI_Aint first = starts[to], second = starts[to] + BYTES;
    DONE(MPI_Get_accumulate(data, 5, MPI_INT, got, 2 * MANY, MPI_INT, to, first, 1, apart, MPI_REPLACE, win));
    DONE(MPI_Get_accumulate(&own, 1, MPI_SHORT_INT, fetched, 3, MPI_SHORT_INT, to, second, 2, MPI_SHORT_INT,
                            MPI_MAXLOC, win));
    DONE(MPI_Get_accumulate(&seven, 1, MPI_INT, old, 3, MPI_INT, to, second + 33, 2, MPI_INT, MPI_SUM, win));
    end_epoch(locks, to, win);
    for (int i = 0; i < 2 * MANY; i++) {
        CHECK(got[i], i < MANY ? i : -1, "%s: fetched from afar, %d", kind_name(kind), i);
    }
    for (int i = 0; i < MANY; i++) {
        CHECK(((int *)base)[i * FAR], i < 5 ? 100 + i : i, "%s: element %d that is far", kind_name(kind), i);
    }
    for (int i = 0; i < 3; i++) {
        CHECK(fetched[i].value, i < 2 ? i + 1 : -1, "%s: value %d of a pair", kind_name(kind), i);
        CHECK(fetched[i].place, i < 2 ? 10 + i : -1, "%s: place %d of a pair", kind_name(kind), i);
        CHECK(pairs[i].value, i == 0 ? 9 : i + 1, "%s: value %d of a pair there", kind_name(kind), i);
        CHECK(pairs[i].place, i == 0 ? 99 : 10 + i, "%s: place %d of a pair there", kind_name(kind), i);
        CHECK(old[i], i < 2 ? 5 + i : -1, "%s: element %d that is not aligned", kind_name(kind), i);
    }
    memcpy(odd, base + BYTES + 33, sizeof odd);
    CHECK(odd[0], 12, "%s: the first element that is not aligned", kind_name(kind));
    CHECK(odd[1], 6, "%s: the second one", kind_name(kind));
    MPI_Barrier(MPI_COMM_WORLD);
    close_window(kind, &win, base);
}

/* What does not fit, and target buffers that exceed the window, also where the data would not. */
static void refused(enum kind kind) {
    MPI_Aint starts[64];
    char *base;
    MPI_Win win = open_window(kind, 10 * sizeof(int), sizeof(int), &base, starts);
    int to = (me + 1) % n, data[12] = {1, 2, 3}, got[12] = {0};
    DONE(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    MPI_Barrier(MPI_COMM_WORLD);
    DONE(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
    REFUSED(MPI_Put(data, 2, MPI_INT, HERE(0), 1, MPI_INT, win), MPI_ERR_TRUNCATE);
    REFUSED(MPI_Put(data, 1, MPI_DOUBLE, HERE(0), 7, MPI_CHAR, win), MPI_ERR_TRUNCATE);
    REFUSED(MPI_Put(data, 2, MPI_INT, HERE(0), 0, MPI_INT, win), MPI_ERR_TRUNCATE);
    REFUSED(MPI_Get(got, 1, MPI_INT, HERE(0), 2, MPI_INT, win), MPI_ERR_TRUNCATE);
    REFUSED(MPI_Get(got, 0, MPI_INT, HERE(0), 2, MPI_INT, win), MPI_ERR_TRUNCATE);
    REFUSED(MPI_Accumulate(data, 2, MPI_INT, HERE(0), 1, MPI_INT, MPI_SUM, win), MPI_ERR_TRUNCATE);
    REFUSED(MPI_Get_accumulate(data, 3, MPI_INT, got, 3, MPI_INT, HERE(0), 2, MPI_INT, MPI_SUM, win),
            MPI_ERR_TRUNCATE);
    REFUSED(MPI_Get_accumulate(data, 2, MPI_INT, got, 2, MPI_INT, HERE(0), 3, MPI_INT, MPI_SUM, win),
            MPI_ERR_TRUNCATE);
    REFUSED(MPI_Get_accumulate(data, 2, MPI_INT, got, 0, MPI_INT, HERE(0), 2, MPI_INT, MPI_SUM, win),
            MPI_ERR_TRUNCATE);
    REFUSED(MPI_Get_accumulate(NULL, 0, MPI_INT, got, 2, MPI_INT, HERE(0), 3, MPI_INT, MPI_NO_OP, win),
            MPI_ERR_TRUNCATE);
    REFUSED(MPI_Accumulate(data, 3, MPI_BYTE, HERE(0), 1, MPI_INT, MPI_REPLACE, win), MPI_ERR_TYPE);
    /* Of a dynamic window, the target may be the only one that knows. */
    int code = MPI_Put(data, 1, MPI_INT, HERE(9), 2, MPI_INT, win), flushed = MPI_Win_flush(to, win);
    CHECK(code ? code : flushed, MPI_ERR_RMA_RANGE, "%s: a put", kind_name(kind));
    code = MPI_Accumulate(data, 1, MPI_INT, HERE(9), 2, MPI_INT, MPI_SUM, win);
    flushed = MPI_Win_flush(to, win);
    CHECK(code ? code : flushed, MPI_ERR_RMA_RANGE, "%s: an accumulate", kind_name(kind));
    code = MPI_Get(got, 12, MPI_INT, HERE(9), 2, MPI_INT, win), flushed = MPI_Win_flush(to, win);
    CHECK(code ? code : flushed, MPI_ERR_RMA_RANGE, "%s: a get", kind_name(kind));
    code = MPI_Get_accumulate(data, 1, MPI_INT, got, 2, MPI_INT, HERE(9), 2, MPI_INT, MPI_SUM, win);
    flushed = MPI_Win_flush(to, win);
    CHECK(code ? code : flushed, MPI_ERR_RMA_RANGE, "%s: a fetch", kind_name(kind));
    DONE(MPI_Put(data, 2, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    DONE(MPI_Win_unlock(to, win));
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 10; i++) {
        CHECK(((int *)base)[i], 0, "%s: element %d after mistakes", kind_name(kind), i);
    }
    for (int i = 0; i < 12; i++) CHECK(got[i], 0, "%s: result %d after mistakes", kind_name(kind), i);
    close_window(kind, &win, base);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    DONE(MPI_Type_vector(10, 1, 2, MPI_INT, &ten));
    DONE(MPI_Type_commit(&ten));
    DONE(MPI_Type_vector(2 * MANY, 1, 2, MPI_INT, &many));
    DONE(MPI_Type_commit(&many));
    DONE(MPI_Type_vector(MANY, 1, FAR, MPI_INT, &apart));
    DONE(MPI_Type_commit(&apart));
    for (int kind = 0; kind < KINDS; kind++) {
        for (int locks = 0; locks < 2; locks++) {
            changes(kind, locks);
            fetches(kind, locks);
            others(kind, locks);
        }
        refused(kind);
    }
    DONE(MPI_Type_free(&ten));
    DONE(MPI_Type_free(&many));
    DONE(MPI_Type_free(&apart));
    return finish();
}
