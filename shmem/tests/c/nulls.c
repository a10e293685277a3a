/* Calls whose output argument is null, and calls after the last finalisation: the first argument says which.
   The test expects that none of them returns. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <string.h>

#define CASE(name, call) if (strcmp(how, name) == 0) { call; return 9; }

static int after_the_end(const char *how, long *heap, shmem_ctx_t ctx)
{
    long value = 0, values[2] = {0, 0};
    size_t indices[2];
    CASE("p", shmem_long_p(heap, 1, 0))
    CASE("g", value = shmem_long_g(heap, 0))
    CASE("put", shmem_long_put(heap, values, 2, 0))
    CASE("get", shmem_long_get(values, heap, 2, 0))
    CASE("put_nbi", shmem_long_put_nbi(heap, values, 2, 0))
    CASE("iput", shmem_long_iput(heap, values, 1, 1, 2, 0))
    CASE("iget", shmem_long_iget(values, heap, 1, 1, 2, 0))
    CASE("fetch_add", value = shmem_long_atomic_fetch_add(heap, 1, 0))
    CASE("fetch_add_nbi", shmem_long_atomic_fetch_add_nbi(values, heap, 1, 0))
    CASE("put_signal", shmem_long_put_signal(heap, values, 1, (uint64_t *)heap, 1, SHMEM_SIGNAL_ADD, 0))
    CASE("signal_fetch", value = (long)shmem_signal_fetch((uint64_t *)heap))
    CASE("wait_until", shmem_long_wait_until(heap, SHMEM_CMP_EQ, 0))
    CASE("test", value = shmem_long_test(heap, SHMEM_CMP_EQ, 0))
    CASE("test_some", value = (long)shmem_long_test_some(heap, 2, indices, NULL, SHMEM_CMP_EQ, 0))
    CASE("sum_reduce", shmem_long_sum_reduce(SHMEM_TEAM_WORLD, heap, heap, 1))
    CASE("broadcast", shmem_long_broadcast(SHMEM_TEAM_WORLD, heap, heap, 1, 0))
    CASE("collect", shmem_long_collect(SHMEM_TEAM_WORLD, heap, heap, 1))
    CASE("set_lock", shmem_set_lock(heap))
    CASE("free", shmem_free(heap))
    CASE("malloc", heap = shmem_malloc(8))
    CASE("ptr", heap = shmem_ptr(heap, 0))
    CASE("barrier_all", shmem_barrier_all())
    CASE("sync_all", shmem_sync_all())
    CASE("quiet", shmem_quiet())
    CASE("fence", shmem_fence())
    CASE("my_pe", value = shmem_my_pe())
    CASE("ctx_p", shmem_ctx_long_p(ctx, heap, 1, 0))
    CASE("ctx_fetch_add", value = shmem_ctx_long_atomic_fetch_add(ctx, heap, 1, 0))
    CASE("ctx_quiet", shmem_ctx_quiet(ctx))
    return (int)(value & 0) + 8;
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    int provided, one = 1;
    shmem_init_thread(SHMEM_THREAD_SINGLE, &provided);
    long *heap = shmem_calloc(4, sizeof(long));
    long value = 0;
    shmem_team_t team;
    shmem_ctx_t ctx;
    shmem_ctx_create(0, &ctx);
    if (strncmp(how, "after-", 6) == 0) {
        shmem_finalize();
        return after_the_end(how + 6, heap, ctx);
    }
    CASE("init_thread", shmem_init_thread(SHMEM_THREAD_SINGLE, NULL))
    CASE("query_initialized", shmem_query_initialized(NULL))
    CASE("query_thread", shmem_query_thread(NULL))
    CASE("info_get_version-major", shmem_info_get_version(NULL, &one))
    CASE("info_get_version-minor", shmem_info_get_version(&one, NULL))
    CASE("info_get_name", shmem_info_get_name(NULL))
    CASE("ctx_create", shmem_ctx_create(0, NULL))
    CASE("team_create_ctx", shmem_team_create_ctx(SHMEM_TEAM_WORLD, 0, NULL))
    CASE("ctx_get_team", shmem_ctx_get_team(ctx, NULL))
    CASE("team_get_config", shmem_team_get_config(SHMEM_TEAM_WORLD, SHMEM_TEAM_NUM_CONTEXTS, NULL))
    CASE("team_split_strided", shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, NULL))
    CASE("team_split_2d-x", shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, NULL, 0, NULL, NULL, 0, &team))
    CASE("team_split_2d-y", shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, NULL, 0, &team, NULL, 0, NULL))
    CASE("test_all_vector", value = shmem_long_test_all_vector(heap, 1, NULL, SHMEM_CMP_EQ, NULL))
    CASE("test_any_vector", value = (long)shmem_long_test_any_vector(heap, 1, NULL, SHMEM_CMP_EQ, NULL))
    CASE("test_some_vector", value = (long)shmem_long_test_some_vector(heap, 1, (size_t *)&value, NULL,
                                                                       SHMEM_CMP_EQ, NULL))
    CASE("wait_until_all_vector", shmem_long_wait_until_all_vector(heap, 1, NULL, SHMEM_CMP_EQ, NULL))
    CASE("wait_until_any_vector", shmem_long_wait_until_any_vector(heap, 1, NULL, SHMEM_CMP_EQ, NULL))
    CASE("test_some", value = (long)shmem_long_test_some(heap, 1, NULL, NULL, SHMEM_CMP_EQ, 0))
    CASE("wait_until_some", shmem_long_wait_until_some(heap, 1, NULL, NULL, SHMEM_CMP_EQ, 0))
    CASE("wait_until_some_vector", shmem_long_wait_until_some_vector(heap, 1, NULL, NULL, SHMEM_CMP_EQ, heap))
    CASE("put", shmem_long_put(heap, NULL, 1, 0))
    CASE("get", shmem_long_get(NULL, heap, 1, 0))
    CASE("put_nbi", shmem_long_put_nbi(heap, NULL, 1, 0))
    CASE("get_nbi", shmem_long_get_nbi(NULL, heap, 1, 0))
    CASE("iput", shmem_long_iput(heap, NULL, 1, 1, 1, 0))
    CASE("iget", shmem_long_iget(NULL, heap, 1, 1, 1, 0))
    CASE("put_signal", shmem_long_put_signal(heap, NULL, 1, (uint64_t *)heap, 1, SHMEM_SIGNAL_ADD, 0))
    CASE("atomic_fetch_nbi", shmem_long_atomic_fetch_nbi(NULL, heap, 0))
    CASE("atomic_fetch_add_nbi", shmem_long_atomic_fetch_add_nbi(NULL, heap, 1, 0))
    CASE("atomic_compare_swap_nbi", shmem_long_atomic_compare_swap_nbi(NULL, heap, 0, 1, 0))
    CASE("atomic_swap_nbi", shmem_long_atomic_swap_nbi(NULL, heap, 1, 0))
    CASE("p", shmem_long_p(NULL, 1, 0))
    CASE("atomic_add", shmem_long_atomic_add(NULL, 1, 0))
    CASE("wait_until", shmem_long_wait_until(NULL, SHMEM_CMP_EQ, 0))
    CASE("set_lock", shmem_set_lock(NULL))
    CASE("sum_reduce", shmem_long_sum_reduce(SHMEM_TEAM_WORLD, NULL, heap, 1))
    CASE("pe_quiet", shmem_pe_quiet(NULL, 2))
    CASE("space_create", shmemx_space_create(SHMEM_TEAM_WORLD, 4096, NULL))
    CASE("team_split_color", shmemx_team_split_by_color(SHMEM_TEAM_WORLD, 0, 0, NULL, 0, NULL))
    CASE("team_split_3d", shmemx_team_split_xyz(SHMEM_TEAM_WORLD, 1, 1, NULL, 0, &team, NULL, 0, NULL, NULL, 0,
                                               &team))
    CASE("pcntr_get_issued_write", shmemx_pcntr_get_issued_write(SHMEM_CTX_DEFAULT, NULL))
    CASE("pcntr_get_completed_target", shmemx_pcntr_get_completed_target(NULL))
    CASE("pcntr_get_all", shmemx_pcntr_get_all(SHMEM_CTX_DEFAULT, NULL))
    CASE("ct_create", shmemx_ct_create(NULL))
    CASE("team_sync_nb", shmemx_team_sync_nb(SHMEM_TEAM_WORLD, NULL))
    CASE("req_test", shmemx_req_test(NULL))
    return 8;
}
