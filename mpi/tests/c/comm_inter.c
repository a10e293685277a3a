/* Inter-communicators: made, duplicated, divided, merged, compared. */
#include "comm_check.h"

static int rank, size, low;

static MPI_Comm half(int backwards) {
    MPI_Comm comm;
    OK(MPI_Comm_split(MPI_COMM_WORLD, low, backwards ? -rank : rank, &comm));
    return comm;
}

/* The inter-communicator of the lower third or so and the others; leaders are the last ones of each side. */
static MPI_Comm meet(MPI_Comm local, int n_low, int tag) {
    MPI_Comm inter;
    int leader = size_of(local) - 1;
    OK(MPI_Intercomm_create(local, leader, MPI_COMM_WORLD, low ? size - 1 : n_low - 1, tag, &inter));
    return inter;
}

static void merge(MPI_Comm inter, int high_of_low, int high_of_others, int n_low) {
    MPI_Comm all;
    int expected = rank;
    if (high_of_low && !high_of_others)
        expected = low ? rank + size - n_low : rank - n_low;
    OK(MPI_Intercomm_merge(inter, low ? high_of_low : high_of_others, &all));
    EXPECT("the size of the union", size, size_of(all));
    EXPECT("the rank in the union", expected, rank_of(all));
    ring(all);
    OK(MPI_Comm_free(&all));
}

static void divide(MPI_Comm inter, int n_low) {
    MPI_Comm part;
    MPI_Group group, some;
    int n = size_of(inter), other = low ? size - n_low : n_low, local = rank_of(inter), remote = -1;
    OK(MPI_Comm_split(inter, local % 2, local, &part));
    int is_lonely = local % 2 == 1 && other < 2;
    EXPECT("a part without a remote group is none", is_lonely, part == MPI_COMM_NULL);
    if (part != MPI_COMM_NULL) {
        OK(MPI_Comm_remote_size(part, &remote));
        EXPECT("the size of the remote part", (other + 1 - local % 2) / 2, remote);
        across(part);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_split(inter, low ? 0 : 1, 0, &part));
    EXPECT("the sides have no color in common", 1, part == MPI_COMM_NULL);
    int last[1] = {n - 1};
    OK(MPI_Comm_group(inter, &group));
    OK(MPI_Group_incl(group, 1, last, &some));
    OK(MPI_Comm_create(inter, some, &part));
    EXPECT("the last ones get one", local == n - 1, part != MPI_COMM_NULL);
    if (part != MPI_COMM_NULL) {
        across(part);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_create(inter, low ? group : MPI_GROUP_EMPTY, &part));
    EXPECT("one side is empty", 1, part == MPI_COMM_NULL);

    /* The members of the lower side give groups that differ: that of the first one counts. */
    int mine[1] = {local}, class = MPI_SUCCESS;
    MPI_Group own;
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    OK(MPI_Group_incl(group, 1, mine, &own));
    OK(MPI_Error_class(MPI_Comm_create(inter, low ? own : group, &part), &class));
    EXPECT("the class for another group", low && local > 0 ? MPI_ERR_GROUP : MPI_SUCCESS, class);
    if (class == MPI_SUCCESS) {
        across(part);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Group_free(&own));
    OK(MPI_Group_free(&some));
    OK(MPI_Group_free(&group));
}

static void duplicate(MPI_Comm inter, MPI_Comm local) {
    MPI_Comm copy, later;
    MPI_Request request;
    int result = -1;
    OK(MPI_Comm_idup(inter, &later, &request));
    OK(MPI_Comm_dup(inter, &copy));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    across(later);
    across(copy);
    OK(MPI_Comm_compare(inter, copy, &result));
    EXPECT("a duplicate is congruent", MPI_CONGRUENT, result);
    OK(MPI_Comm_compare(inter, inter, &result));
    EXPECT("it is identical to itself", MPI_IDENT, result);
    OK(MPI_Comm_compare(inter, local, &result));
    EXPECT("communicators of other kinds are unequal", MPI_UNEQUAL, result);
    OK(MPI_Comm_free(&copy));
    OK(MPI_Comm_disconnect(&later));
}

static void groups(MPI_Comm inter, MPI_Comm local, int n_low) {
    MPI_Group mine, theirs, world, of_local;
    MPI_Comm again;
    int n = -1, first[1] = {0}, there[1] = {-1}, result = -1;
    OK(MPI_Comm_group(inter, &mine));
    OK(MPI_Comm_remote_group(inter, &theirs));
    OK(MPI_Comm_group(local, &of_local));
    OK(MPI_Group_compare(mine, of_local, &result));
    EXPECT("the local group", MPI_IDENT, result);
    OK(MPI_Group_size(theirs, &n));
    EXPECT("the size of the remote group", low ? size - n_low : n_low, n);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_translate_ranks(theirs, 1, first, world, there));
    EXPECT("the first of the remote group", low ? n_low : 0, there[0]);
    OK(MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, "groups", MPI_INFO_NULL, MPI_ERRORS_RETURN, &again));
    across(again);
    OK(MPI_Comm_free(&again));
    MPI_Group none = MPI_GROUP_EMPTY;
    /* With an empty group the call is local. */
    if (rank == 0) {
        OK(MPI_Intercomm_create_from_groups(mine, 0, none, 0, "one", MPI_INFO_NULL, MPI_ERRORS_RETURN, &again));
        EXPECT("a communicator with no remote group", 1, again == MPI_COMM_NULL);
    }
    OK(MPI_Group_free(&mine));
    OK(MPI_Group_free(&theirs));
    OK(MPI_Group_free(&world));
    OK(MPI_Group_free(&of_local));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    rank = rank_of(MPI_COMM_WORLD), size = size_of(MPI_COMM_WORLD);
    int n_low = (size + 2) / 3;
    low = rank < n_low;
    if (size > 1) {
        MPI_Comm local = half(0), inter = meet(local, n_low, 5), other, of_peer;
        across(inter);
        groups(inter, local, n_low);
        duplicate(inter, local);
        merge(inter, 0, 1, n_low);
        merge(inter, 1, 0, n_low);
        merge(inter, 0, 0, n_low);
        merge(inter, 1, 1, n_low);
        divide(inter, n_low);
        /* The peer communicator may be an inter-communicator; tags tell two creations apart. */
        OK(MPI_Intercomm_create(local, 0, inter, 0, 0x7fffffff, &of_peer));
        across(of_peer);
        other = meet(local, n_low, 6);
        across(other);
        OK(MPI_Comm_free(&other));
        OK(MPI_Comm_free(&inter));
        across(of_peer);
        OK(MPI_Comm_free(&of_peer));
        OK(MPI_Comm_free(&local));
    }
    return finish();
}
