/* Attributes of datatypes, and keyvals of another kind. */
#include "check.h"

static int deletions;

static int count_delete(MPI_Datatype type, int keyval, void *value, void *extra) {
    deletions++;
    return MPI_SUCCESS;
}

static int copy_fails(MPI_Datatype type, int keyval, void *extra, void *in, void *out, int *flag) {
    return MPI_ERR_OTHER;
}

int main(int argc, char **argv) {
    int key, of_comm, of_win, flag;
    void *value;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    WORKS(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, count_delete, &key, NULL));
    WORKS(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &of_comm, NULL));
    WORKS(MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, &of_win, NULL));
    WORKS(MPI_Type_set_attr(MPI_INT, key, (void *)3));
    WORKS(MPI_Type_get_attr(MPI_INT, key, &value, &flag));
    HOLDS(flag && value == (void *)3);
    WORKS(MPI_Type_get_attr(MPI_DOUBLE, key, &value, &flag));
    EQUAL("another datatype", 0, flag);
    WORKS(MPI_Type_set_attr(MPI_INT, key, (void *)4));
    EQUAL("deletions", 1, deletions);
    GIVES(MPI_ERR_KEYVAL, MPI_Type_set_attr(MPI_INT, of_comm, NULL));
    GIVES(MPI_ERR_KEYVAL, MPI_Type_get_attr(MPI_INT, of_win, &value, &flag));
    GIVES(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL));
    GIVES(MPI_ERR_KEYVAL, MPI_Comm_free_keyval(&key));
    GIVES(MPI_ERR_KEYVAL, MPI_Win_free_keyval(&of_comm));
    GIVES(MPI_ERR_TYPE, MPI_Type_set_attr(MPI_DATATYPE_NULL, key, NULL));
    MPI_Datatype pair, copy;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    WORKS(MPI_Type_set_attr(pair, key, (void *)8));
    WORKS(MPI_Type_dup(pair, &copy));
    WORKS(MPI_Type_free(&pair));
    EQUAL("deletions after the original is freed", 2, deletions);
    WORKS(MPI_Type_get_attr(copy, key, &value, &flag));
    HOLDS(flag && value == (void *)8);
    WORKS(MPI_Type_free(&copy));
    EQUAL("deletions after the copy is freed", 3, deletions);
    int fails;
    WORKS(MPI_Type_create_keyval(copy_fails, MPI_TYPE_NULL_DELETE_FN, &fails, NULL));
    MPI_Type_contiguous(2, MPI_INT, &pair);
    WORKS(MPI_Type_set_attr(pair, fails, (void *)1));
    copy = MPI_INT;
    GIVES(MPI_ERR_OTHER, MPI_Type_dup(pair, &copy));
    HOLDS(copy == MPI_DATATYPE_NULL);
    WORKS(MPI_Type_free(&pair));
    WORKS(MPI_Type_free_keyval(&fails));
    WORKS(MPI_Type_delete_attr(MPI_INT, key));
    EQUAL("deletions", 4, deletions);
    GIVES(MPI_ERR_KEYVAL, MPI_Type_delete_attr(MPI_INT, key));
    WORKS(MPI_Type_free_keyval(&key));
    WORKS(MPI_Comm_free_keyval(&of_comm));
    WORKS(MPI_Win_free_keyval(&of_win));
    MPI_Finalize();
    return VERDICT();
}
