/* Sessions without MPI_Init: one after another, at once, and not as many on each process. */
#include "check.h"
#include <stdlib.h>

static void process_sets(MPI_Session session) {
    int n, length, flag, size, rank;
    char name[MPI_MAX_PSET_NAME_LEN], value[16];
    MPI_Group group;
    MPI_Info info;
    WORKS(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n));
    HOLDS(n >= 2);
    for (int i = 0; i < n; i++) {
        length = 0;
        WORKS(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL));
        HOLDS(length > 1);
        GIVES(MPI_ERR_ARG, MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, NULL));
        WORKS(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name));
        EQUAL("the length of the name", strlen(name) + 1, length);
        WORKS(MPI_Session_get_pset_info(session, name, &info));
        WORKS(MPI_Info_get(info, "mpi_size", 15, value, &flag));
        WORKS(MPI_Info_free(&info));
        WORKS(MPI_Group_from_session_pset(session, name, &group));
        WORKS(MPI_Group_size(group, &size));
        WORKS(MPI_Group_rank(group, &rank));
        EQUAL("mpi_size", size, atoi(value));
        HOLDS(rank >= 0 && rank < size);
        if (strcmp(name, "mpi://SELF") == 0) EQUAL("the size of mpi://SELF", 1, size);
        WORKS(MPI_Group_free(&group));
    }
    length = 5;
    WORKS(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name));
    EQUAL("a name that is cut off", 4, strlen(name));
    WORKS(MPI_Group_from_session_pset(session, "MPI://world", &group));
    WORKS(MPI_Group_free(&group));
    length = 0;
    GIVES(MPI_ERR_ARG, MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &length, NULL));
    GIVES(MPI_ERR_ARG, MPI_Session_get_nth_pset(session, MPI_INFO_NULL, -1, &length, NULL));
    GIVES(MPI_ERR_ARG, MPI_Session_get_pset_info(session, "nothing", &info));
    group = MPI_GROUP_EMPTY;
    GIVES(MPI_ERR_ARG, MPI_Group_from_session_pset(session, "nothing", &group));
    HOLDS(group == MPI_GROUP_NULL);
}

/* Of the standard's attributes a communicator of a session has MPI_TAG_UB alone. */
static void attributes(MPI_Comm comm) {
    int others[] = {MPI_HOST, MPI_IO, MPI_APPNUM, MPI_LASTUSEDCODE, MPI_WTIME_IS_GLOBAL, MPI_UNIVERSE_SIZE};
    int *value, flag;
    WORKS(MPI_Comm_get_attr(comm, MPI_TAG_UB, &value, &flag));
    HOLDS(flag && *value >= 32767);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        WORKS(MPI_Comm_get_attr(comm, others[i], &value, &flag));
        EQUAL("an attribute of the world", 0, flag);
    }
}

static void two_sessions(void) {
    MPI_Session sessions[2];
    MPI_Comm comms[2];
    int relation;
    for (int i = 0; i < 2; i++) {
        MPI_Group group;
        WORKS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &sessions[i]));
        WORKS(MPI_Group_from_session_pset(sessions[i], "mpi://WORLD", &group));
        WORKS(MPI_Comm_create_from_group(group, "of two", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comms[i]));
        WORKS(MPI_Group_free(&group));
    }
    GIVES(MPI_ERR_COMM, MPI_Comm_compare(comms[0], comms[1], &relation));
    for (int i = 0; i < 2; i++) {
        WORKS(MPI_Comm_free(&comms[i]));
        WORKS(MPI_Session_finalize(&sessions[i]));
    }
}

/* A group of the same processes, made in another way. */
static void same_group(MPI_Session session) {
    MPI_Group group, same, empty;
    MPI_Comm comm, other;
    int relation;
    WORKS(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    /* The handler of the session gets errors of its groups. */
    GIVES(MPI_ERR_RANK, MPI_Group_incl(group, 1, (int[]){-5}, &same));
    WORKS(MPI_Comm_create_from_group(group, "same group", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
    WORKS(MPI_Group_incl(group, 0, NULL, &empty));
    WORKS(MPI_Group_union(MPI_GROUP_EMPTY, group, &same));
    WORKS(MPI_Comm_create(comm, same, &other));
    attributes(comm);
    attributes(other);
    WORKS(MPI_Comm_compare(comm, other, &relation));
    EQUAL("the relation", MPI_CONGRUENT, relation);
    WORKS(MPI_Comm_free(&other));
    WORKS(MPI_Comm_create_from_group(same, "same group again", MPI_INFO_NULL, MPI_ERRORS_RETURN, &other));
    WORKS(MPI_Comm_free(&other));
    WORKS(MPI_Comm_free(&comm));
    WORKS(MPI_Group_free(&group));
    WORKS(MPI_Group_free(&same));
    WORKS(MPI_Group_free(&empty));
}

static void levels(void) {
    MPI_Info info, used;
    MPI_Session session, stale;
    char value[64];
    int flag, n;
    WORKS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    WORKS(MPI_Session_get_info(session, &used));
    WORKS(MPI_Info_get(used, "thread_level", 63, value, &flag));
    SAME_TEXT("thread_level of a session that asks for none", "MPI_THREAD_MULTIPLE", value);
    MPI_Info_free(&used);
    WORKS(MPI_Session_finalize(&session));
    MPI_Info_create(&info);
    MPI_Info_set(info, "thread_level", "none");
    GIVES(MPI_ERR_INFO_VALUE, MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    MPI_Info_set(info, "thread_level", "MPI_THREAD_SERIALIZED");
    GIVES(MPI_ERR_ARG, MPI_Session_init(info, MPI_ERRORS_RETURN, NULL));
    WORKS(MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
    MPI_Info_free(&info);
    WORKS(MPI_Session_get_info(session, &used));
    WORKS(MPI_Info_get(used, "thread_level", 63, value, &flag));
    SAME_TEXT("thread_level", "MPI_THREAD_SERIALIZED", value);
    MPI_Info_free(&used);
    /* Another session, so that the library stays open. */
    MPI_Session other;
    WORKS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other));
    stale = session;
    WORKS(MPI_Session_finalize(&session));
    HOLDS(session == MPI_SESSION_NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    GIVES(MPI_ERR_SESSION, MPI_Session_get_num_psets(stale, MPI_INFO_NULL, &n));
    GIVES(MPI_ERR_SESSION, MPI_Session_finalize(&stale));
    GIVES(MPI_ERR_SESSION, MPI_Session_finalize(&session));
    process_sets(other);
    WORKS(MPI_Session_finalize(&other));
}

int main(int argc, char **argv) {
    MPI_Session session;
    MPI_Group group;
    int rank, flag;
    WORKS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    WORKS(MPI_Initialized(&flag));
    EQUAL("MPI_Initialized with a session", 0, flag);
    process_sets(session);
    same_group(session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Group_rank(group, &rank);
    MPI_Group_free(&group);
    WORKS(MPI_Session_finalize(&session));
    levels();
    two_sessions();
    /* No process waits for another here. */
    for (int i = 0; i < 3 * rank; i++) {
        WORKS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
        process_sets(session);
        WORKS(MPI_Session_finalize(&session));
    }
    WORKS(MPI_Finalized(&flag));
    EQUAL("MPI_Finalized", 0, flag);
    return VERDICT();
}
