/* Arrays of ranks and ranges of groups: null, empty, out of range. */
#include "check.h"
#include <limits.h>

int main(int argc, char **argv) {
    int size, rank = 0, translated = -1;
    MPI_Group world, group;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    WORKS(MPI_Group_translate_ranks(world, 0, NULL, world, NULL));
    GIVES(MPI_ERR_ARG, MPI_Group_translate_ranks(world, 1, NULL, world, &translated));
    GIVES(MPI_ERR_ARG, MPI_Group_translate_ranks(world, 1, &rank, world, NULL));
    WORKS(MPI_Group_translate_ranks(world, 1, &rank, world, &translated));
    EQUAL("the translated rank", 0, translated);
    WORKS(MPI_Group_incl(world, 0, NULL, &group));
    HOLDS(group == MPI_GROUP_EMPTY);
    GIVES(MPI_ERR_ARG, MPI_Group_incl(world, 1, NULL, &group));
    GIVES(MPI_ERR_ARG, MPI_Group_excl(world, -1, &rank, &group));
    GIVES(MPI_ERR_ARG, MPI_Group_range_incl(world, 1, NULL, &group));
    int wide[1][3] = {{0, INT_MAX, 1}}, jump[1][3] = {{0, INT_MAX, INT_MAX}}, none[1][3] = {{0, 0, 0}};
    GIVES(MPI_ERR_RANK, MPI_Group_range_incl(world, 1, wide, &group));
    GIVES(MPI_ERR_RANK, MPI_Group_range_incl(world, 1, jump, &group));
    GIVES(MPI_ERR_ARG, MPI_Group_range_incl(world, 1, none, &group));
    int away[2][3] = {{0, 1, -1}, {1, 0, 1}};
    for (int i = 0; i < 2; i++) {
        GIVES(MPI_ERR_ARG, MPI_Group_range_incl(world, 1, &away[i], &group));
        GIVES(MPI_ERR_ARG, MPI_Group_range_excl(world, 1, &away[i], &group));
    }
    int back[1][3] = {{size - 1, 0, -1}};
    WORKS(MPI_Group_range_incl(world, 1, back, &group));
    int found;
    WORKS(MPI_Group_size(group, &found));
    EQUAL("the size", size, found);
    WORKS(MPI_Group_translate_ranks(group, 1, &rank, world, &translated));
    EQUAL("the first of the reversed group", size - 1, translated);
    WORKS(MPI_Group_free(&group));
    WORKS(MPI_Group_free(&world));
    MPI_Finalize();
    return VERDICT();
}
