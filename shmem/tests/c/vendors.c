/* Functions of other libraries whose names begin with shmemx_, as those libraries declare them: what shmemx.h
   declares as well must be the same, or this does not compile. */
#include <shmem.h>
#include <shmemx.h>
#include <stddef.h>
#include <stdint.h>

/* Cray OpenSHMEMX. */
void shmemx_alltoallv(void *target, size_t *t_offsets, size_t *t_sizes, const void *source, size_t *s_offsets,
                      size_t *s_sizes, int PE_start, int logPE_stride, int PE_size, long *pSync);
void shmemx_team_alltoallv(void *target, size_t *t_offsets, size_t *t_sizes, const void *source,
                           size_t *s_offsets, size_t *s_sizes, shmem_team_t team, long *pSync);
void shmemx_team_split_color(shmem_team_t parent_team, int color, int key, shmem_team_t *newteam);
void shmemx_team_split_3d(shmem_team_t parent_team, int xrange, int yrange, int zrange, shmem_team_t *xaxis_team,
                          shmem_team_t *yaxis_team, shmem_team_t *zaxis_team);
void shmemx_team_barrier(shmem_team_t team, long *pSync);
void shmemx_local_complete(void);
void shmemx_pe_quiet(int pe);
void shmemx_thread_quiet(void);
void shmemx_thread_fence(void);

/* Sandia OpenSHMEM. */
double shmemx_wtime(void);
char *shmemx_nodename(void);
void shmemx_pcontrol(int level, ...);
void shmemx_register_gettid(uint64_t (*gettid_fn)(void));
void shmemx_getmem_ct(shmemx_ct_t ct, void *target, const void *source, size_t len, int pe);
void shmemx_putmem_ct(shmemx_ct_t ct, void *target, const void *source, size_t len, int pe);
void shmemx_ct_create(shmemx_ct_t *ct);
void shmemx_ct_free(shmemx_ct_t *ct);
long shmemx_ct_get(shmemx_ct_t ct);
void shmemx_ct_set(shmemx_ct_t ct, long value);
void shmemx_ct_wait(shmemx_ct_t ct, long wait_for);
void shmemx_pcntr_get_issued_write(shmem_ctx_t ctx, uint64_t *cntr_value);
void shmemx_pcntr_get_completed_target(uint64_t *cntr_value);
void shmemx_pcntr_get_all(shmem_ctx_t ctx, shmemx_pcntr_t *pcntr);
void (shmemx_signal_add)(uint64_t *sig_addr, uint64_t signal, int pe);
void shmemx_ctx_signal_set(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe);
void shmemx_long_ibput(long *target, const long *source, ptrdiff_t tst, ptrdiff_t sst, size_t bsize,
                       size_t nblocks, int pe);
int shmemx_int_sum_exscan(shmem_team_t team, int *dest, const int *source, size_t nelems);
void shmemx_short_wait_until_all(short *vars, size_t nelems, int cmp, short value);
int shmemx_ushort_test_all(unsigned short *vars, size_t nelems, int cmp, unsigned short value);
size_t shmemx_short_test_any(short *vars, size_t nelems, int *status, int cmp, short value);
void shmemx_heap_create(void *base, size_t size, int device_type, int device_index);

/* OSSS-UCX. */
int shmemx_quiet_test(void);
int shmemx_ctx_quiet_test(shmem_ctx_t ctx);

/* Open MPI. */
void *shmemx_malloc_with_hint(size_t size, long hint);
void shmemx_alltoall_global_nb(void *dest, const void *source, size_t size, long *counter);

int main(void)
{
    return 0;
}
