/* Error classes, codes and their texts. */
#include "check.h"

int main(int argc, char **argv) {
    char text[MPI_MAX_ERROR_STRING];
    int length, class, code, of_standard, *last, flag, before;
    /* Before the initialisation. */
    WORKS(MPI_Error_string(MPI_ERR_TAG, text, &length));
    EQUAL("the length of the text", strlen(text), length);
    WORKS(MPI_Add_error_class(&class));
    WORKS(MPI_Remove_error_class(class));
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int of = MPI_SUCCESS; of <= MPI_ERR_ABI; of++) {
        WORKS(MPI_Error_class(of, &class));
        EQUAL("the class of a class", of, class);
        WORKS(MPI_Error_string(of, text, &length));
        HOLDS(length > 0 && length < MPI_MAX_ERROR_STRING && text[length] == 0);
    }
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    before = *last;
    WORKS(MPI_Add_error_class(&class));
    WORKS(MPI_Add_error_code(class, &code));
    WORKS(MPI_Add_error_code(MPI_ERR_ROOT, &of_standard));
    HOLDS(class > MPI_ERR_LASTCODE && code > MPI_ERR_LASTCODE && code != class);
    EQUAL("MPI_LASTUSEDCODE", of_standard, *last);
    int found;
    WORKS(MPI_Error_class(code, &found));
    EQUAL("the class of a code", class, found);
    WORKS(MPI_Error_class(of_standard, &found));
    EQUAL("the class of a code", MPI_ERR_ROOT, found);
    WORKS(MPI_Error_string(code, text, &length));
    SAME_TEXT("the text of a code without one", "", text);
    WORKS(MPI_Add_error_string(code, "too late"));
    WORKS(MPI_Add_error_string(code, "too early"));
    WORKS(MPI_Error_string(code, text, &length));
    SAME_TEXT("the text of a code", "too early", text);
    EQUAL("its length", 9, length);
    GIVES(MPI_ERR_ARG, MPI_Add_error_string(MPI_ERR_TAG, "mine"));
    GIVES(MPI_ERR_ARG, MPI_Add_error_code(code, &found));
    GIVES(MPI_ERR_ARG, MPI_Remove_error_class(class));
    GIVES(MPI_ERR_ARG, MPI_Remove_error_code(code));
    WORKS(MPI_Remove_error_string(code));
    WORKS(MPI_Remove_error_code(code));
    WORKS(MPI_Remove_error_code(of_standard));
    WORKS(MPI_Remove_error_class(class));
    EQUAL("MPI_LASTUSEDCODE", before, *last);
    WORKS(MPI_Add_error_class(&class));
    WORKS(MPI_Add_error_string(class, "goes with its class"));
    WORKS(MPI_Remove_error_class(class));
    EQUAL("MPI_LASTUSEDCODE", before, *last);
    GIVES(MPI_ERR_ARG, MPI_Error_class(code, &found));
    GIVES(MPI_ERR_ARG, MPI_Error_string(-5, text, &length));
    GIVES(MPI_ERR_ARG, MPI_Remove_error_class(MPI_ERR_TAG));
    /* The text of an error has its details. */
    int rank = MPI_Send(NULL, 0, MPI_INT, 1000000, 0, MPI_COMM_WORLD);
    GIVES(MPI_ERR_RANK, rank);
    WORKS(MPI_Error_string(rank, text, &length));
    HOLDS(strstr(text, "MPI_Send") != NULL && strstr(text, "1000000") != NULL);
    MPI_Finalize();
    WORKS(MPI_Error_class(MPI_ERR_TAG, &class));
    return VERDICT();
}
