/* Collective operations whose blocks have sizes of their own, in their three forms, in place and not. */
#include "coll_check.h"

enum { MAX = 64 };

/* Blocks of these lengths, dense or with gaps, in the order of ranks or in the reverse order. */
static int layout(const int *counts, int *displs, int gap, int reverse) {
    int at = gap;
    for (int i = 0; i < size; i++) {
        int r = reverse ? size - 1 - i : i;
        displs[r] = at;
        at += counts[r] + gap;
    }
    return at;
}

static void test(int form, int scale, int gap, int reverse, int root) {
    int counts[MAX], displs[MAX];
    for (int r = 0; r < size; r++) counts[r] = (r * 7 + 3) % 5 * scale;
    int total = layout(counts, displs, gap, reverse), mine = counts[rank];
    int *one = malloc((mine + 1) * sizeof(int)), *all = malloc((total + 1) * sizeof(int));

    for (int in_place = 0; in_place < 2; in_place++) {
        fill(one, mine, rank, root);
        memset(all, -1, total * sizeof(int));
        fill(all + displs[rank], mine, rank, root);
        if (rank == root && in_place)
            RUN(form, Gatherv, Igatherv, MPI_IN_PLACE, 0, MPI_INT, all, counts, displs, MPI_INT, root);
        else if (rank == root)
            RUN(form, Gatherv, Igatherv, one, mine, MPI_INT, all, counts, displs, MPI_INT, root);
        else
            RUN(form, Gatherv, Igatherv, one, mine, MPI_INT, NULL, NULL, NULL, MPI_INT, root);
        for (int r = 0; r < size && rank == root; r++)
            check(all + displs[r], counts[r], r, root, "gatherv", form);
        for (int i = 0; i < gap && rank == root; i++) ASSERT(all[i] == -1, "gatherv has changed a gap");

        for (int r = 0; r < size; r++) fill(all + displs[r], counts[r], rank, r);
        memset(one, -1, mine * sizeof(int));
        if (rank == root && in_place)
            RUN(form, Scatterv, Iscatterv, all, counts, displs, MPI_INT, MPI_IN_PLACE, 0, MPI_INT, root);
        else {
            if (rank == root)
                RUN(form, Scatterv, Iscatterv, all, counts, displs, MPI_INT, one, mine, MPI_INT, root);
            else
                RUN(form, Scatterv, Iscatterv, NULL, NULL, NULL, MPI_INT, one, mine, MPI_INT, root);
            check(one, mine, root, rank, "scatterv", form);
        }

        memset(all, -1, total * sizeof(int));
        fill(one, mine, rank, 0);
        fill(all + displs[rank], mine, rank, 0);
        if (in_place)
            RUN(form, Allgatherv, Iallgatherv, MPI_IN_PLACE, 0, MPI_INT, all, counts, displs, MPI_INT);
        else
            RUN(form, Allgatherv, Iallgatherv, one, mine, MPI_INT, all, counts, displs, MPI_INT);
        for (int r = 0; r < size; r++) check(all + displs[r], counts[r], r, 0, "allgatherv", form);
        for (int i = 0; i < gap; i++) ASSERT(all[i] == -1, "allgatherv has changed a gap");
    }
    free(one);
    free(all);
}

/* The number of elements from a rank to another; the same in both directions if `same`. */
static int between(int from, int to, int scale, int same) {
    return same ? (from + to) % 4 * scale : (from * 3 + to * 5 + 2) % 4 * scale;
}

static void all_to_all(int form, int scale, int gap, int reverse) {
    int sends[MAX], receives[MAX], sdispls[MAX], rdispls[MAX], sbytes[MAX], rbytes[MAX];
    MPI_Datatype stypes[MAX], rtypes[MAX];
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int r = 0; r < size; r++) {
            sends[r] = between(rank, r, scale, in_place);
            receives[r] = between(r, rank, scale, in_place);
        }
        int from = layout(sends, sdispls, gap, 0), into = layout(receives, rdispls, gap, reverse);
        int *source = malloc((from + 1) * sizeof(int)), *target = malloc((into + 1) * sizeof(int));
        for (int w = 0; w < 2; w++) {
            memset(target, -1, into * sizeof(int));
            for (int r = 0; r < size; r++) {
                fill(source + sdispls[r], sends[r], rank, r);
                if (in_place) fill(target + rdispls[r], sends[r], rank, r);
                sbytes[r] = sdispls[r] * sizeof(int);
                rbytes[r] = rdispls[r] * sizeof(int);
                stypes[r] = rtypes[r] = r % 2 ? MPI_INT : MPI_FLOAT;
            }
            if (in_place && !w)
                RUN(form, Alltoallv, Ialltoallv, MPI_IN_PLACE, NULL, NULL, MPI_INT, target, receives, rdispls, MPI_INT);
            if (!in_place && !w)
                RUN(form, Alltoallv, Ialltoallv, source, sends, sdispls, MPI_INT, target, receives, rdispls, MPI_INT);
            if (in_place && w)
                RUN(form, Alltoallw, Ialltoallw, MPI_IN_PLACE, NULL, NULL, NULL, target, receives, rbytes, rtypes);
            if (!in_place && w)
                RUN(form, Alltoallw, Ialltoallw, source, sends, sbytes, stypes, target, receives, rbytes, rtypes);
            for (int r = 0; r < size; r++)
                check(target + rdispls[r], receives[r], r, rank, w ? "alltoallw" : "alltoallv", form);
            for (int i = 0; i < gap; i++) ASSERT(target[i] == -1, "alltoallv has changed a gap");
        }
        free(source);
        free(target);
    }
}

/* The forms with large counts and displacements. */
static void large(void) {
    MPI_Count counts[MAX];
    MPI_Aint displs[MAX];
    int all[MAX * 3], mine[3];
    for (int r = 0; r < size; r++) {
        counts[r] = 2;
        displs[r] = 3 * r;
    }
    fill(mine, 2, rank, 0);
    MPI_Allgatherv_c(mine, 2, MPI_INT, all, counts, displs, MPI_INT, comm);
    for (int r = 0; r < size; r++) check(all + 3 * r, 2, r, 0, "allgatherv_c", 0);
    int back[MAX * 3];
    for (int r = 0; r < size; r++) fill(all + 3 * r, 2, rank, r);
    MPI_Alltoallv_c(all, counts, displs, MPI_INT, back, counts, displs, MPI_INT, comm);
    for (int r = 0; r < size; r++) check(back + 3 * r, 2, r, rank, "alltoallv_c", 0);
    MPI_Gatherv_c(mine, 2, MPI_INT, all, counts, displs, MPI_INT, 0, comm);
    memset(mine, 0, sizeof mine);
    MPI_Scatterv_c(all, counts, displs, MPI_INT, mine, 2, MPI_INT, 0, comm);
    check(mine, 2, rank, 0, "gatherv_c and scatterv_c", 0);
}

/* The arrays of a persistent operation are read when it is created. */
static void arrays(void) {
    int counts[MAX], displs[MAX], all[MAX], mine = rank;
    MPI_Request request;
    for (int r = 0; r < size; r++) {
        counts[r] = 1;
        displs[r] = size - 1 - r;
    }
    MPI_Allgatherv_init(&mine, 1, MPI_INT, all, counts, displs, MPI_INT, comm, MPI_INFO_NULL, &request);
    memset(counts, -1, sizeof counts);
    memset(displs, -1, sizeof displs);
    for (int round = 0; round < 3; round++) {
        mine = 10 * round + rank;
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int r = 0; r < size; r++)
            ASSERT(all[size - 1 - r] == 10 * round + r, "round %d: %d", round, all[size - 1 - r]);
    }
    MPI_Request_free(&request);
}

/* Blocks that are shorter than the room for them, as in point-to-point communication: the rest stays. */
static void shorter(int form, int root, int each) {
    int counts[MAX], displs[MAX], room = each + 7;
    int *all = malloc(size * room * sizeof(int)), *one = malloc(2 * room * sizeof(int));
    for (int r = 0; r < size; r++) {
        counts[r] = each;
        displs[r] = r * each;
        fill(all + displs[r], each, root, r);
    }
    memset(one, -1, 2 * room * sizeof(int));
    RUN(form, Scatterv, Iscatterv, all, counts, displs, MPI_INT, one, room, MPI_INT, root);
    check(one, each, root, rank, "a shorter scatterv", form);
    for (int i = each; i < 2 * room; i++) ASSERT(one[i] == -1, "scatterv has changed element %d", i);

    MPI_Datatype every_second;
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_second);
    MPI_Type_commit(&every_second);
    memset(one, -1, 2 * room * sizeof(int));
    RUN(form, Scatterv, Iscatterv, all, counts, displs, MPI_INT, one, room, every_second, root);
    for (int i = 0; i < 2 * room; i++) {
        int expected = i % 2 || i / 2 >= each ? -1 : value(root, rank, i / 2);
        ASSERT(one[i] == expected, "scatterv with gaps: element %d is %d", i, one[i]);
    }
    MPI_Type_free(&every_second);

    for (int r = 0; r < size; r++) counts[r] = room, displs[r] = r * room;
    memset(all, -1, size * room * sizeof(int));
    fill(one, each, rank, root);
    RUN(form, Gatherv, Igatherv, one, each, MPI_INT, all, counts, displs, MPI_INT, root);
    for (int r = 0; r < size && rank == root; r++) {
        check(all + displs[r], each, r, root, "a shorter gatherv", form);
        for (int i = each; i < room; i++) ASSERT(all[displs[r] + i] == -1, "gatherv has changed %d of %d", i, r);
    }
    free(all);
    free(one);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int form = 0; form < 3; form++)
        for (int root = 0; root < size; root += 1 + size / 3) {
            shorter(form, root, 1);
            shorter(form, root, 3000);
        }
    int scales[] = {0, 1, 50, 9000};
    for (int form = 0; form < 3; form++)
        for (int s = 0; s < 4; s++)
            for (int gap = 0; gap < 3; gap += 2)
                for (int reverse = 0; reverse < 2; reverse++) {
                    for (int root = 0; root < size; root += 1 + size / 3)
                        test(form, scales[s], gap, reverse, root);
                    all_to_all(form, scales[s], gap, reverse);
                }
    large();
    arrays();
    return finish();
}
