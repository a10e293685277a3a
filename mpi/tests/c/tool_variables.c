/* The tools interface: before MPI_Init, during MPI, and after its end. */
#include "check.h"

/* Codes of this interface are compared as they are. */
#define CODE(expected, call) EQUAL(#call, expected, call)

static void categories(void) {
    int n, index, cvars, pvars, below, total = 0, length, number;
    char name[64];
    CODE(MPI_SUCCESS, MPI_T_category_get_num(&n));
    for (int i = 0; i < n; i++) {
        length = sizeof name;
        CODE(MPI_SUCCESS, MPI_T_category_get_info(i, name, &length, NULL, NULL, &cvars, &pvars, &below));
        EQUAL("the length of the name", strlen(name) + 1, length);
        CODE(MPI_SUCCESS, MPI_T_category_get_index(name, &index));
        EQUAL("the index", i, index);
        int indices[256];
        CODE(MPI_SUCCESS, MPI_T_category_get_cvars(i, 256, indices));
        CODE(MPI_SUCCESS, MPI_T_category_get_pvars(i, 256, indices));
        CODE(MPI_SUCCESS, MPI_T_category_get_categories(i, 256, indices));
        CODE(MPI_SUCCESS, MPI_T_category_get_events(i, 0, NULL));
        CODE(MPI_SUCCESS, MPI_T_category_get_num_events(i, &number));
        EQUAL("events", 0, number);
        total += cvars + pvars;
    }
    int all_cvars, all_pvars;
    MPI_T_cvar_get_num(&all_cvars);
    MPI_T_pvar_get_num(&all_pvars);
    EQUAL("variables in categories", all_cvars + all_pvars, total);
    CODE(MPI_SUCCESS, MPI_T_category_changed(&number));
    CODE(MPI_T_ERR_INVALID_NAME, MPI_T_category_get_index("nothing", &index));
    CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_category_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
}

static MPI_T_cvar_handle open_setting(const char *wanted) {
    int index, count, length = 100, verbosity, bind, scope;
    char name[100];
    MPI_Datatype type;
    MPI_T_enum items;
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    CODE(MPI_SUCCESS, MPI_T_cvar_get_index(wanted, &index));
    CODE(MPI_SUCCESS,
         MPI_T_cvar_get_info(index, name, &length, &verbosity, &type, &items, NULL, NULL, &bind, &scope));
    SAME_TEXT("the name", wanted, name);
    HOLDS(type == MPI_CHAR && items == MPI_T_ENUM_NULL && bind == MPI_T_BIND_NO_OBJECT);
    CODE(MPI_SUCCESS, MPI_T_cvar_handle_alloc(index, NULL, &handle, &count));
    EQUAL("room", 4096, count);
    return handle;
}

static void settings_before(void) {
    char value[4096];
    MPI_T_cvar_handle handle = open_setting("PELAGO_COUNTERS");
    CODE(MPI_SUCCESS, MPI_T_cvar_write(handle, "on"));
    CODE(MPI_SUCCESS, MPI_T_cvar_handle_free(&handle));
    handle = open_setting("PELAGO_YIELDS");
    CODE(MPI_SUCCESS, MPI_T_cvar_write(handle, "33"));
    CODE(MPI_T_ERR_INVALID, MPI_T_cvar_write(handle, "many"));
    CODE(MPI_SUCCESS, MPI_T_cvar_read(handle, value));
    SAME_TEXT("the changed setting", "33", value);
    CODE(MPI_SUCCESS, MPI_T_cvar_handle_free(&handle));
    HOLDS(handle == MPI_T_CVAR_HANDLE_NULL);
    CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_cvar_read(handle, value));
}

static void settings_after(void) {
    char value[4096];
    MPI_T_cvar_handle handle = open_setting("PELAGO_YIELDS");
    CODE(MPI_T_ERR_CVAR_SET_NEVER, MPI_T_cvar_write(handle, "44"));
    CODE(MPI_SUCCESS, MPI_T_cvar_read(handle, value));
    SAME_TEXT("the changed setting", "33", value);
    CODE(MPI_SUCCESS, MPI_T_cvar_handle_free(&handle));
}

static void performance(void) {
    int index, count, n;
    unsigned long long value = 99;
    MPI_T_pvar_session session, other;
    MPI_T_pvar_handle barriers, requests;
    CODE(MPI_SUCCESS, MPI_T_pvar_get_num(&n));
    HOLDS(n > 0);
    for (int i = 0; i < n; i++) {
        int length = 100, class, readonly, continuous, atomic;
        char name[100];
        MPI_Datatype type;
        CODE(MPI_SUCCESS, MPI_T_pvar_get_info(i, name, &length, NULL, &class, &type, NULL, NULL, NULL, NULL,
                                              &readonly, &continuous, &atomic));
        HOLDS(type == MPI_UNSIGNED_LONG_LONG && continuous == 1);
        CODE(MPI_SUCCESS, MPI_T_pvar_get_index(name, class, &index));
        EQUAL("the index", i, index);
        CODE(MPI_T_ERR_INVALID_NAME, MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_TIMER, &index));
    }
    CODE(MPI_SUCCESS, MPI_T_pvar_session_create(&session));
    CODE(MPI_SUCCESS, MPI_T_pvar_session_create(&other));
    MPI_T_pvar_get_index("pelago_barriers", MPI_T_PVAR_CLASS_COUNTER, &index);
    CODE(MPI_SUCCESS, MPI_T_pvar_handle_alloc(session, index, NULL, &barriers, &count));
    EQUAL("count", 1, count);
    CODE(MPI_T_ERR_INVALID_HANDLE, MPI_T_pvar_read(other, barriers, &value));
    CODE(MPI_T_ERR_PVAR_NO_STARTSTOP, MPI_T_pvar_start(session, barriers));
    CODE(MPI_SUCCESS, MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    CODE(MPI_SUCCESS, MPI_T_pvar_read(session, barriers, &value));
    EQUAL("a count at its start", 0, value);
    value = 5;
    CODE(MPI_SUCCESS, MPI_T_pvar_write(session, barriers, &value));
    CODE(MPI_SUCCESS, MPI_T_pvar_readreset(session, barriers, &value));
    HOLDS(value >= 5);
    MPI_T_pvar_get_index("pelago_requests", MPI_T_PVAR_CLASS_LEVEL, &index);
    CODE(MPI_SUCCESS, MPI_T_pvar_handle_alloc(session, index, NULL, &requests, &count));
    CODE(MPI_T_ERR_PVAR_NO_WRITE, MPI_T_pvar_reset(session, requests));
    CODE(MPI_T_ERR_PVAR_NO_ATOMIC, MPI_T_pvar_readreset(session, requests, &value));
    CODE(MPI_SUCCESS, MPI_T_pvar_reset(session, MPI_T_PVAR_ALL_HANDLES));
    int is_initialized, buffer;
    MPI_Initialized(&is_initialized);
    if (is_initialized) {
        MPI_Finalized(&buffer);
        if (!buffer) {
            MPI_Request request;
            MPI_Irecv(&buffer, 1, MPI_INT, MPI_ANY_SOURCE, 77, MPI_COMM_SELF, &request);
            CODE(MPI_SUCCESS, MPI_T_pvar_read(session, requests, &value));
            EQUAL("open requests", 1, value);
            MPI_Cancel(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
    }
    CODE(MPI_SUCCESS, MPI_T_pvar_read(session, requests, &value));
    EQUAL("open requests", 0, value);
    CODE(MPI_SUCCESS, MPI_T_pvar_handle_free(session, &requests));
    HOLDS(requests == MPI_T_PVAR_HANDLE_NULL);
    CODE(MPI_SUCCESS, MPI_T_pvar_session_free(&session));
    CODE(MPI_T_ERR_INVALID_SESSION, MPI_T_pvar_session_free(&session));
    CODE(MPI_SUCCESS, MPI_T_pvar_session_free(&other));
}

/* Handles of a counter of operations, from before MPI_Init and after it. */
static MPI_T_pvar_session counting;
static MPI_T_pvar_handle early, late;
static unsigned long long barriers_before;

static MPI_T_pvar_handle count_barriers(void) {
    int index, count;
    MPI_T_pvar_handle handle;
    CODE(MPI_SUCCESS, MPI_T_pvar_get_index("pelago_barriers", MPI_T_PVAR_CLASS_COUNTER, &index));
    CODE(MPI_SUCCESS, MPI_T_pvar_handle_alloc(counting, index, NULL, &handle, &count));
    return handle;
}

/* A counter does not go back when MPI is finalised. */
static void counts_stay(void) {
    unsigned long long value;
    CODE(MPI_SUCCESS, MPI_T_pvar_read(counting, early, &value));
    HOLDS(value >= barriers_before);
    CODE(MPI_SUCCESS, MPI_T_pvar_read(counting, late, &value));
    HOLDS(value < 1000);
    CODE(MPI_SUCCESS, MPI_T_pvar_session_free(&counting));
}

static void events(void) {
    int n, index, length = 0;
    MPI_Count first, second;
    CODE(MPI_SUCCESS, MPI_T_event_get_num(&n));
    EQUAL("events", 0, n);
    CODE(MPI_T_ERR_INVALID_NAME, MPI_T_event_get_index("nothing", &index));
    CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_event_get_info(0, NULL, &length, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                                       NULL, NULL));
    CODE(MPI_SUCCESS, MPI_T_source_get_num(&n));
    for (int i = 0; i < n; i++) {
        CODE(MPI_SUCCESS, MPI_T_source_get_timestamp(i, &first));
        CODE(MPI_SUCCESS, MPI_T_source_get_timestamp(i, &second));
        HOLDS(second >= first);
    }
    CODE(MPI_T_ERR_INVALID_INDEX, MPI_T_source_get_timestamp(n, &first));
}

int main(int argc, char **argv) {
    int n, level;
    CODE(MPI_T_ERR_NOT_INITIALIZED, MPI_T_cvar_get_num(&n));
    CODE(MPI_T_ERR_NOT_INITIALIZED, MPI_T_finalize());
    CODE(MPI_SUCCESS, MPI_T_init_thread(MPI_THREAD_MULTIPLE, &level));
    CODE(MPI_SUCCESS, MPI_T_init_thread(MPI_THREAD_SINGLE, &level));
    categories();
    settings_before();
    performance();
    events();
    CODE(MPI_SUCCESS, MPI_T_pvar_session_create(&counting));
    early = count_barriers();
    MPI_Init(&argc, &argv);
    categories();
    settings_after();
    performance();
    CODE(MPI_SUCCESS, MPI_T_pvar_read(counting, early, &barriers_before));
    HOLDS(barriers_before > 0);
    late = count_barriers();
    CODE(MPI_SUCCESS, MPI_T_finalize());
    MPI_Finalize();
    counts_stay();
    settings_after();
    performance();
    CODE(MPI_SUCCESS, MPI_T_finalize());
    CODE(MPI_T_ERR_NOT_INITIALIZED, MPI_T_category_get_num(&n));
    return VERDICT();
}
