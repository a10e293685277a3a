/* Attributes of communicators: copies, deletion, errors of callbacks, predefined attributes, the end. */
#include "check.h"
#include <stdint.h>

#define MANY 8

static long deleted[64];
static int is_duplication, deletions, delete_error, is_finalized_in_callback = -1;

static int copy_plus_one(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
    *(void **)out = (void *)((intptr_t)in + *(int *)extra);
    *flag = 1;
    return MPI_SUCCESS;
}

static int copy_not(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
    *flag = 0;
    return MPI_SUCCESS;
}

static int copy_fails(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
    *flag = 1;
    return MPI_ERR_OTHER;
}

static int note_delete(MPI_Comm comm, int keyval, void *value, void *extra) {
    int flag;
    void *found = NULL;
    if (delete_error) return MPI_ERR_ARG;
    WORKS(MPI_Comm_get_attr(comm, keyval, &found, &flag));
    if (!is_duplication) {
        /* The attribute and its object still exist. */
        HOLDS(flag && found == value);
    }
    deleted[deletions++] = (long)(intptr_t)value;
    return MPI_SUCCESS;
}

static int delete_at_end(MPI_Comm comm, int keyval, void *value, void *extra) {
    MPI_Finalized(&is_finalized_in_callback);
    deleted[deletions++] = (long)(intptr_t)value;
    return MPI_SUCCESS;
}

static void set_and_get(void) {
    int key, other, flag, one = 1;
    void *value = NULL;
    WORKS(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note_delete, &key, &one));
    WORKS(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &other, NULL));
    WORKS(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
    EQUAL("flag before an attribute is set", 0, flag);
    WORKS(MPI_Comm_set_attr(MPI_COMM_WORLD, key, (void *)11));
    WORKS(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
    HOLDS(flag && value == (void *)11);
    deletions = 0;
    WORKS(MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL));
    EQUAL("a replaced value is deleted", 11, deletions == 1 ? deleted[0] : -1);
    delete_error = 1;
    GIVES(MPI_ERR_ARG, MPI_Comm_set_attr(MPI_COMM_WORLD, key, (void *)12));
    GIVES(MPI_ERR_ARG, MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    delete_error = 0;
    WORKS(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag));
    HOLDS(flag && value == NULL);
    WORKS(MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    GIVES(MPI_ERR_KEYVAL, MPI_Comm_delete_attr(MPI_COMM_WORLD, key));
    WORKS(MPI_Comm_free_keyval(&key));
    EQUAL("a freed keyval", MPI_KEYVAL_INVALID, key);
    GIVES(MPI_ERR_KEYVAL, MPI_Comm_free_keyval(&key));
    GIVES(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL));
    GIVES(MPI_ERR_COMM, MPI_Comm_set_attr(MPI_COMM_NULL, other, NULL));
    GIVES(MPI_ERR_ARG, MPI_Comm_get_attr(MPI_COMM_WORLD, other, NULL, &flag));
    WORKS(MPI_Comm_free_keyval(&other));
}

static void duplicates(void) {
    int keys[3], flag, two = 2, fails;
    void *value;
    MPI_Comm from, to = MPI_COMM_SELF;
    WORKS(MPI_Comm_dup(MPI_COMM_WORLD, &from));
    WORKS(MPI_Comm_create_keyval(copy_plus_one, note_delete, &keys[0], &two));
    WORKS(MPI_Comm_create_keyval(copy_not, note_delete, &keys[1], NULL));
    WORKS(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, note_delete, &keys[2], NULL));
    for (int i = 0; i < 3; i++) WORKS(MPI_Comm_set_attr(from, keys[i], (void *)(intptr_t)(10 + i)));
    WORKS(MPI_Comm_dup(from, &to));
    int expected[] = {12, -1, 12};
    for (int i = 0; i < 3; i++) {
        WORKS(MPI_Comm_get_attr(to, keys[i], &value, &flag));
        EQUAL("the copy", expected[i], flag ? (long)(intptr_t)value : -1);
    }
    /* A keyval that is freed lives on in the attributes. */
    int kept = keys[0];
    WORKS(MPI_Comm_free_keyval(&keys[0]));
    WORKS(MPI_Comm_get_attr(from, kept, &value, &flag));
    HOLDS(flag && value == (void *)10);
    deletions = 0;
    delete_error = 1;
    GIVES(MPI_ERR_ARG, MPI_Comm_free(&to));
    HOLDS(to != MPI_COMM_NULL);
    delete_error = 0;
    WORKS(MPI_Comm_free(&to));
    EQUAL("deletions", 2, deletions);
    /* A copy function that fails makes the duplication fail, and the copies go. */
    WORKS(MPI_Comm_create_keyval(copy_fails, MPI_COMM_NULL_DELETE_FN, &fails, NULL));
    WORKS(MPI_Comm_set_attr(from, fails, NULL));
    deletions = 0;
    is_duplication = 1;
    GIVES(MPI_ERR_OTHER, MPI_Comm_dup(from, &to));
    is_duplication = 0;
    HOLDS(to == MPI_COMM_NULL);
    EQUAL("copies that are deleted again", 2, deletions);
    WORKS(MPI_Comm_delete_attr(from, fails));
    WORKS(MPI_Comm_free_keyval(&fails));
    deletions = 0;
    WORKS(MPI_Comm_free(&from));
    EQUAL("deletions", 3, deletions);
    for (int i = 0; i < 3; i++) EQUAL("the latest goes first", 12 - i, deleted[i]);
    WORKS(MPI_Comm_free_keyval(&keys[1]));
    WORKS(MPI_Comm_free_keyval(&keys[2]));
    GIVES(MPI_ERR_KEYVAL, MPI_Comm_free_keyval(&kept));
}

static void predefined(void) {
    int flag, size, *value;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    WORKS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    HOLDS(flag && *value >= 32767);
    WORKS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag));
    HOLDS(flag && *value == size);
    WORKS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &flag));
    HOLDS(flag && *value == MPI_PROC_NULL);
    WORKS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag));
    HOLDS(flag && *value == MPI_ANY_SOURCE);
    WORKS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag));
    HOLDS(flag && (*value == 0 || *value == 1));
    WORKS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag));
    HOLDS(flag && *value == 0);
    WORKS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    HOLDS(flag && *value >= MPI_ERR_LASTCODE);
    WORKS(MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    HOLDS(flag);
    GIVES(MPI_ERR_KEYVAL, MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL));
    GIVES(MPI_ERR_KEYVAL, MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_IO));
}

static void old_names(void) {
    int key, flag;
    void *value;
    MPI_Comm copy;
    WORKS(MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &key, NULL));
    WORKS(MPI_Attr_put(MPI_COMM_SELF, key, (void *)5));
    WORKS(MPI_Comm_dup(MPI_COMM_SELF, &copy));
    WORKS(MPI_Attr_get(copy, key, &value, &flag));
    HOLDS(flag && value == (void *)5);
    WORKS(MPI_Attr_delete(MPI_COMM_SELF, key));
    WORKS(MPI_Comm_free(&copy));
    WORKS(MPI_Keyval_free(&key));
}

int main(int argc, char **argv) {
    int keys[MANY];
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    set_and_get();
    duplicates();
    predefined();
    old_names();
    deletions = 0;
    for (int i = 0; i < MANY; i++) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_at_end, &keys[i], NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, keys[i], (void *)(intptr_t)i);
        MPI_Comm_free_keyval(&keys[i]);
    }
    WORKS(MPI_Finalize());
    EQUAL("deletions at the end", MANY, deletions);
    for (int i = 0; i < MANY; i++) EQUAL("the latest goes first", MANY - 1 - i, deleted[i]);
    EQUAL("MPI_Finalized during the deletions", 0, is_finalized_in_callback);
    return VERDICT();
}
