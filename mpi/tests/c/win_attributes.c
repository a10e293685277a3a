/* Attributes of windows: predefined ones, those of the program, and what happens to them at the end. */
#include "win_check.h"

static int deleted, refuses;

static int on_delete(MPI_Win win, int keyval, void *value, void *extra) {
    (void)win, (void)keyval, (void)value;
    if (refuses) return MPI_ERR_OTHER;
    deleted += *(int *)extra;
    return MPI_SUCCESS;
}

static void predefined(int flavor) {
    MPI_Win win;
    void *base = NULL, *value;
    char memory[24];
    int flag;
    MPI_Aint size = 24;
    int unit = 8;
    switch (flavor) {
    case MPI_WIN_FLAVOR_CREATE:
        base = memory;
        DONE(MPI_Win_create(base, size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        break;
    case MPI_WIN_FLAVOR_ALLOCATE:
        DONE(MPI_Win_allocate_c(size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
        break;
    case MPI_WIN_FLAVOR_SHARED:
        DONE(MPI_Win_allocate_shared(size, unit, MPI_INFO_NULL, MPI_COMM_SELF, &base, &win));
        break;
    default:
        size = 0, unit = 1;
        DONE(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    }
    DONE(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag));
    CHECK(flag && value == base, 1, "the base, flavor %d", flavor);
    DONE(MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag));
    CHECK(flag ? *(MPI_Aint *)value : -1, size, "the size, flavor %d", flavor);
    DONE(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag));
    CHECK(flag ? *(int *)value : -1, unit, "the unit, flavor %d", flavor);
    DONE(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag));
    CHECK(flag ? *(int *)value : -1, flavor, "the flavor");
    DONE(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag));
    CHECK(flag ? *(int *)value : -1, MPI_WIN_UNIFIED, "the memory model");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    REFUSED(MPI_Win_set_attr(win, MPI_WIN_SIZE, NULL), MPI_ERR_KEYVAL);
    REFUSED(MPI_Win_delete_attr(win, MPI_WIN_BASE), MPI_ERR_KEYVAL);
    DONE(MPI_Win_free(&win));
}

/* The attribute is an int, which a larger unit is not. */
static void large_units(void) {
    MPI_Aint units[3] = {2147483647, 2147483648, ((MPI_Aint)1 << 32) + 8};
    for (int i = 0; i < 3; i++) {
        MPI_Win win;
        void *value;
        int flag;
        DONE(MPI_Win_create_c(NULL, 0, units[i], MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        DONE(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag));
        CHECK(flag ? *(int *)value : -1, i == 0 ? 2147483647 : MPI_UNDEFINED, "the unit %ld", (long)units[i]);
        DONE(MPI_Win_free(&win));
    }
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    large_units();
    int flavors[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED, MPI_WIN_FLAVOR_DYNAMIC};
    for (int i = 0; i < 4; i++) predefined(flavors[i]);
    int key, other, step = 5, flag, number = 7;
    void *value;
    MPI_Win win;
    DONE(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &key, &step));
    DONE(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &other, NULL));
    DONE(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    DONE(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK(flag, 0, "an attribute that was not set");
    DONE(MPI_Win_set_attr(win, key, &number));
    DONE(MPI_Win_set_attr(win, other, &number));
    DONE(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK(flag && value == &number, 1, "an attribute");
    DONE(MPI_Win_set_attr(win, key, &step));
    CHECK(deleted, 5, "the old value is deleted");
    DONE(MPI_Win_delete_attr(win, key));
    CHECK(deleted, 10, "the value is deleted");
    DONE(MPI_Win_set_attr(win, key, &step));
    refuses = 1;
    CHECK(MPI_Win_free(&win) != MPI_SUCCESS, 1, "a window whose attribute cannot be deleted stays");
    CHECK(win != MPI_WIN_NULL, 1, "its handle");
    refuses = 0;
    DONE(MPI_Win_free(&win));
    CHECK(deleted, 15, "the value is deleted with the window");
    DONE(MPI_Win_free_keyval(&key));
    DONE(MPI_Win_free_keyval(&other));
    CHECK(key, MPI_KEYVAL_INVALID, "a key that was freed");
    return finish();
}
