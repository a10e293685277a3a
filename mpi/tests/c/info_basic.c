/* Info objects: at any time, in order, within their limits. */
#include "check.h"
#include <stdlib.h>

static void whole_life(void) {
    MPI_Info info, copy;
    char key[MPI_MAX_INFO_KEY], value[MPI_MAX_INFO_VAL];
    int flag, n, length;
    WORKS(MPI_Info_create(&info));
    WORKS(MPI_Info_get_nkeys(info, &n));
    EQUAL("keys of a new info", 0, n);
    WORKS(MPI_Info_set(info, "one", "1"));
    WORKS(MPI_Info_set(info, "two", "22"));
    WORKS(MPI_Info_set(info, "three", ""));
    WORKS(MPI_Info_set(info, "one", " 111 "));
    WORKS(MPI_Info_get_nkeys(info, &n));
    EQUAL("keys", 3, n);
    const char *order[] = {"one", "two", "three"};
    for (int i = 0; i < 3; i++) {
        WORKS(MPI_Info_get_nthkey(info, i, key));
        SAME_TEXT("the key", order[i], key);
    }
    WORKS(MPI_Info_get(info, "one", MPI_MAX_INFO_VAL - 1, value, &flag));
    EQUAL("flag", 1, flag);
    SAME_TEXT("a replaced value with its blanks", " 111 ", value);
    WORKS(MPI_Info_get(info, "one", 2, value, &flag));
    SAME_TEXT("a value that is cut off", " 1", value);
    WORKS(MPI_Info_get(info, "three", 9, value, &flag));
    SAME_TEXT("an empty value", "", value);
    WORKS(MPI_Info_get_valuelen(info, "two", &length, &flag));
    EQUAL("length of a value", 2, length);
    length = 0;
    WORKS(MPI_Info_get_string(info, "two", &length, NULL, &flag));
    EQUAL("length with the end", 3, length);
    length = 2;
    strcpy(value, "xxxx");
    WORKS(MPI_Info_get_string(info, "two", &length, value, &flag));
    EQUAL("length with the end", 3, length);
    SAME_TEXT("a string that is cut off", "2", value);
    length = 7;
    WORKS(MPI_Info_get_string(info, "four", &length, value, &flag));
    EQUAL("flag of an absent key", 0, flag);
    EQUAL("length of an absent key", 7, length);
    WORKS(MPI_Info_dup(info, &copy));
    WORKS(MPI_Info_delete(info, "two"));
    WORKS(MPI_Info_get_nthkey(info, 1, key));
    SAME_TEXT("the key after a deleted one", "three", key);
    WORKS(MPI_Info_get(copy, "two", 9, value, &flag));
    EQUAL("the copy has the key", 1, flag);
    WORKS(MPI_Info_free(&copy));
    HOLDS(copy == MPI_INFO_NULL);
    WORKS(MPI_Info_free(&info));
}

static void mistakes(void) {
    MPI_Info info, stale;
    char longest[MPI_MAX_INFO_VAL + 1], value[MPI_MAX_INFO_VAL];
    int flag, n;
    WORKS(MPI_Info_create(&info));
    memset(longest, 'k', sizeof longest);
    longest[MPI_MAX_INFO_KEY - 1] = 0;
    WORKS(MPI_Info_set(info, longest, "value"));
    WORKS(MPI_Info_get(info, longest, 9, value, &flag));
    EQUAL("the longest key", 1, flag);
    longest[MPI_MAX_INFO_KEY - 1] = 'k';
    longest[MPI_MAX_INFO_KEY] = 0;
    GIVES(MPI_ERR_INFO_KEY, MPI_Info_set(info, longest, "value"));
    longest[MPI_MAX_INFO_KEY] = 'k';
    longest[MPI_MAX_INFO_VAL] = 0;
    GIVES(MPI_ERR_INFO_VALUE, MPI_Info_set(info, "key", longest));
    GIVES(MPI_ERR_INFO_KEY, MPI_Info_set(info, "", "value"));
    GIVES(MPI_ERR_INFO_KEY, MPI_Info_set(info, NULL, "value"));
    GIVES(MPI_ERR_INFO_VALUE, MPI_Info_set(info, "key", NULL));
    GIVES(MPI_ERR_INFO_NOKEY, MPI_Info_delete(info, "key"));
    GIVES(MPI_ERR_ARG, MPI_Info_get_nthkey(info, 1, value));
    GIVES(MPI_ERR_ARG, MPI_Info_get_nthkey(info, -1, value));
    GIVES(MPI_ERR_ARG, MPI_Info_get(info, "key", -1, value, &flag));
    GIVES(MPI_ERR_ARG, MPI_Info_get_nkeys(info, NULL));
    GIVES(MPI_ERR_INFO, MPI_Info_get_nkeys(MPI_INFO_NULL, &n));
    GIVES(MPI_ERR_INFO, MPI_Info_set(MPI_INFO_ENV, "key", "value"));
    stale = info;
    WORKS(MPI_Info_free(&info));
    GIVES(MPI_ERR_INFO, MPI_Info_free(&info));
    GIVES(MPI_ERR_INFO, MPI_Info_free(&stale));
    GIVES(MPI_ERR_INFO, MPI_Info_get_nkeys(stale, &n));
    stale = MPI_INFO_ENV;
    GIVES(MPI_ERR_INFO, MPI_Info_free(&stale));
}

static void environment(int argc, char **argv, int size) {
    MPI_Info info;
    char value[MPI_MAX_INFO_VAL];
    int flag;
    WORKS(MPI_Info_create_env(argc, argv, &info));
    WORKS(MPI_Info_get(info, "command", MPI_MAX_INFO_VAL - 1, value, &flag));
    SAME_TEXT("command", argv[0], value);
    WORKS(MPI_Info_get(info, "maxprocs", MPI_MAX_INFO_VAL - 1, value, &flag));
    EQUAL("maxprocs", size, atoi(value));
    WORKS(MPI_Info_free(&info));
    WORKS(MPI_Info_get(MPI_INFO_ENV, "wdir", MPI_MAX_INFO_VAL - 1, value, &flag));
    EQUAL("MPI_INFO_ENV has wdir", 1, flag);
    WORKS(MPI_Info_dup(MPI_INFO_ENV, &info));
    WORKS(MPI_Info_set(info, "command", "mine"));
    WORKS(MPI_Info_free(&info));
}

static void of_communicators(void) {
    MPI_Info info, used;
    MPI_Comm comm;
    char value[16];
    int flag;
    WORKS(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    WORKS(MPI_Info_create(&info));
    WORKS(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    WORKS(MPI_Info_set(info, "mpi_assert_no_any_source", "perhaps"));
    WORKS(MPI_Info_set(info, "a_key_of_mine", "true"));
    WORKS(MPI_Comm_set_info(comm, info));
    WORKS(MPI_Info_free(&info));
    WORKS(MPI_Comm_get_info(comm, &used));
    WORKS(MPI_Info_get(used, "mpi_assert_no_any_tag", 7, value, &flag));
    SAME_TEXT("a hint that was set", "true", value);
    WORKS(MPI_Info_get(used, "mpi_assert_no_any_source", 7, value, &flag));
    SAME_TEXT("a hint with no valid value", "false", value);
    WORKS(MPI_Info_get(used, "a_key_of_mine", 7, value, &flag));
    EQUAL("an unknown hint", 0, flag);
    WORKS(MPI_Info_get(used, "mpi_memory_alloc_kinds", 15, value, &flag));
    SAME_TEXT("the kinds of memory", "mpi,system", value);
    WORKS(MPI_Info_free(&used));
    MPI_Comm copy;
    WORKS(MPI_Info_create(&info));
    WORKS(MPI_Info_set(info, "mpi_assert_exact_length", "true"));
    WORKS(MPI_Comm_dup_with_info(comm, info, &copy));
    WORKS(MPI_Info_free(&info));
    WORKS(MPI_Comm_get_info(copy, &used));
    WORKS(MPI_Info_get(used, "mpi_assert_exact_length", 7, value, &flag));
    SAME_TEXT("a hint of a duplicate", "true", value);
    WORKS(MPI_Info_get(used, "mpi_assert_no_any_tag", 7, value, &flag));
    SAME_TEXT("a hint that a duplicate does not get", "false", value);
    WORKS(MPI_Info_free(&used));
    WORKS(MPI_Comm_free(&copy));
    GIVES(MPI_ERR_INFO, MPI_Comm_set_info(comm, MPI_INFO_NULL));
    GIVES(MPI_ERR_ARG, MPI_Comm_get_info(comm, NULL));
    WORKS(MPI_Comm_free(&comm));
}

int main(int argc, char **argv) {
    int size;
    whole_life();
    WORKS(MPI_Init(&argc, &argv));
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    whole_life();
    mistakes();
    environment(argc, argv, size);
    of_communicators();
    WORKS(MPI_Finalize());
    whole_life();
    return VERDICT();
}
