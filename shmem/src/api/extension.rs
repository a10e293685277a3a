//! Extensions: docs/openshmem-extensions.md describes each of them and the origin of its name.

use super::*;

api! {
    extra plain "wtime": crate::extension::machine::wtime, () -> f64;
    extra plain "nodename": crate::extension::machine::nodename, () -> *mut c_char;
    extra plain "register_gettid": crate::extension::machine::register_gettid, (gettid_fn: ThreadNumber);
    extra plain "query_interoperability": crate::extension::machine::query_interoperability,
        (property: c_int) -> c_int;
    extra_both generic(RMA) "_ibput": crate::strided::ibput,
        (dest: *mut T, source: *const T, dst: ptrdiff_t, sst: ptrdiff_t, bsize: size_t, nblocks: size_t,
        pe: c_int);
    extra_both sized(SIZES) "ibput" "": crate::strided::ibput,
        (dest: *mut T, source: *const T, dst: ptrdiff_t, sst: ptrdiff_t, bsize: size_t,
        nblocks: size_t, pe: c_int);
    extra_both generic(RMA) "_ibget": crate::strided::ibget,
        (dest: *mut T, source: *const T, dst: ptrdiff_t, sst: ptrdiff_t, bsize: size_t, nblocks: size_t,
        pe: c_int);
    extra_both sized(SIZES) "ibget" "": crate::strided::ibget,
        (dest: *mut T, source: *const T, dst: ptrdiff_t, sst: ptrdiff_t, bsize: size_t,
        nblocks: size_t, pe: c_int);
    extra_both plain "signal_add": crate::signal::add, (sig_addr: *mut u64, signal: u64, pe: c_int);
    extra_both plain "signal_set": crate::signal::set, (sig_addr: *mut u64, signal: u64, pe: c_int);
    extra generic(REDUCE_SUM) "_sum_inscan": crate::collective::reduce::sum_inscan,
        (team: TeamHandle, dest: *mut T, source: *const T, nelems: size_t) -> c_int;
    foreign_extra generic(LONG_DOUBLE) "_sum_inscan": crate::foreign,
        (team: TeamHandle, dest: *mut T, source: *const T, nelems: size_t) -> c_int;
    extra generic(REDUCE_SUM) "_sum_exscan": crate::collective::reduce::sum_exscan,
        (team: TeamHandle, dest: *mut T, source: *const T, nelems: size_t) -> c_int;
    foreign_extra generic(LONG_DOUBLE) "_sum_exscan": crate::foreign,
        (team: TeamHandle, dest: *mut T, source: *const T, nelems: size_t) -> c_int;
    extra joined(SYNC_JOINED) "_wait_until_all": crate::p2p::wait_until_all,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_value: T);
    extra joined(SYNC_JOINED) "_wait_until_any": crate::p2p::wait_until_any,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_value: T) -> size_t;
    extra joined(SYNC_JOINED) "_wait_until_some": crate::p2p::wait_until_some,
        (ivars: *mut T, nelems: size_t, indices: *mut size_t, status: *const c_int, cmp: c_int,
        cmp_value: T) -> size_t;
    extra joined(SYNC_JOINED) "_wait_until_all_vector": crate::p2p::wait_until_all_vector,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_values: *const T);
    extra joined(SYNC_JOINED) "_wait_until_any_vector": crate::p2p::wait_until_any_vector,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_values: *const T) -> size_t;
    extra joined(SYNC_JOINED) "_wait_until_some_vector": crate::p2p::wait_until_some_vector,
        (ivars: *mut T, nelems: size_t, indices: *mut size_t, status: *const c_int, cmp: c_int,
        cmp_values: *const T) -> size_t;
    extra joined(SYNC_JOINED) "_test_all": crate::p2p::test_all,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_value: T) -> c_int;
    extra joined(SYNC_JOINED) "_test_any": crate::p2p::test_any,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_value: T) -> size_t;
    extra joined(SYNC_JOINED) "_test_some": crate::p2p::test_some,
        (ivars: *mut T, nelems: size_t, indices: *mut size_t, status: *const c_int, cmp: c_int,
        cmp_value: T) -> size_t;
    extra joined(SYNC_JOINED) "_test_all_vector": crate::p2p::test_all_vector,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_values: *const T) -> c_int;
    extra joined(SYNC_JOINED) "_test_any_vector": crate::p2p::test_any_vector,
        (ivars: *mut T, nelems: size_t, status: *const c_int, cmp: c_int, cmp_values: *const T) -> size_t;
    extra joined(SYNC_JOINED) "_test_some_vector": crate::p2p::test_some_vector,
        (ivars: *mut T, nelems: size_t, indices: *mut size_t, status: *const c_int, cmp: c_int,
        cmp_values: *const T) -> size_t;
    extra plain "heap_free": crate::extension::heap::free_bytes, () -> size_t;
    extra plain "heap_largest": crate::extension::heap::largest_bytes, () -> size_t;
    extra plain "space_create": crate::extension::space::create,
        (team: TeamHandle, bytes: size_t, space: *mut SpaceHandle) -> c_int;
    extra plain "space_destroy": crate::extension::space::destroy, (space: SpaceHandle);
    extra plain "space_malloc": crate::extension::space::malloc,
        (space: SpaceHandle, size: size_t) -> *mut c_void;
    extra plain "space_calloc": crate::extension::space::calloc,
        (space: SpaceHandle, count: size_t, size: size_t) -> *mut c_void;
    extra plain "space_align": crate::extension::space::align,
        (space: SpaceHandle, alignment: size_t, size: size_t) -> *mut c_void;
    extra plain "space_free": crate::extension::space::free, (space: SpaceHandle, ptr: *mut c_void);
    extra plain "space_available": crate::extension::space::available, (space: SpaceHandle) -> size_t;
    extra plain "space_team": crate::extension::space::team, (space: SpaceHandle) -> TeamHandle;
    extra_both plain "local_complete": crate::extension::completion::local_complete, ();
    extra plain "ctx_local_query": crate::extension::completion::local_query, (ctx: Ctx) -> c_int;
    extra_both plain "quiet_test": crate::extension::completion::quiet_test, () -> c_int;
    extra plain "team_split_by_color": crate::extension::teams::split_color,
        (parent_team: TeamHandle, color: c_int, key: c_int, config: *const TeamConfig, config_mask: c_long,
         new_team: *mut TeamHandle) -> c_int;
    extra plain "team_split_xyz": crate::extension::teams::split_3d,
        (parent_team: TeamHandle, xrange: c_int, yrange: c_int, xaxis_config: *const TeamConfig,
         xaxis_mask: c_long, xaxis_team: *mut TeamHandle, yaxis_config: *const TeamConfig, yaxis_mask: c_long,
         yaxis_team: *mut TeamHandle, zaxis_config: *const TeamConfig, zaxis_mask: c_long,
         zaxis_team: *mut TeamHandle) -> c_int;
    extra plain "alltoallvmem": crate::extension::exchange::alltoallv,
        (team: TeamHandle, dest: *mut c_void, t_offset: *const size_t, t_size: *const size_t,
         source: *const c_void, s_offset: *const size_t, s_size: *const size_t) -> c_int;
    extra plain "pcntr_get_issued_write": crate::extension::counts::issued_write,
        (ctx: Ctx, cntr_value: *mut u64);
    extra plain "pcntr_get_issued_read": crate::extension::counts::issued_read,
        (ctx: Ctx, cntr_value: *mut u64);
    extra plain "pcntr_get_completed_write": crate::extension::counts::completed_write,
        (ctx: Ctx, cntr_value: *mut u64);
    extra plain "pcntr_get_completed_read": crate::extension::counts::completed_read,
        (ctx: Ctx, cntr_value: *mut u64);
    extra plain "pcntr_get_completed_target": crate::extension::counts::completed_target,
        (cntr_value: *mut u64);
    extra plain "pcntr_get_all": crate::extension::counts::all, (ctx: Ctx, pcntr: *mut ContextCounts);
    extra plain "ct_create": crate::extension::arrival::create, (ct: *mut Counter);
    extra plain "ct_free": crate::extension::arrival::free, (ct: *mut Counter);
    extra plain "ct_get": crate::extension::arrival::get, (ct: Counter) -> c_long;
    extra plain "ct_set": crate::extension::arrival::set, (ct: Counter, value: c_long);
    extra plain "ct_wait": crate::extension::arrival::wait, (ct: Counter, wait_for: c_long);
    extra plain "putmem_ct": crate::extension::arrival::putmem,
        (ct: Counter, target: *mut c_void, source: *const c_void, len: size_t, pe: c_int);
    extra plain "getmem_ct": crate::extension::arrival::getmem,
        (ct: Counter, target: *mut c_void, source: *const c_void, len: size_t, pe: c_int);
    extra plain "team_sync_nb": crate::extension::request::team_sync,
        (team: TeamHandle, request: *mut Request) -> c_int;
    extra plain "team_barrier_nb": crate::extension::request::team_barrier,
        (team: TeamHandle, request: *mut Request) -> c_int;
    extra plain "broadcastmem_nb": crate::extension::request::broadcastmem,
        (team: TeamHandle, dest: *mut c_void, source: *const c_void, nelems: size_t, pe_root: c_int,
         request: *mut Request) -> c_int;
    extra plain "fcollectmem_nb": crate::extension::request::fcollectmem,
        (team: TeamHandle, dest: *mut c_void, source: *const c_void, nelems: size_t, request: *mut Request)
        -> c_int;
    extra plain "alltoallmem_nb": crate::extension::request::alltoallmem,
        (team: TeamHandle, dest: *mut c_void, source: *const c_void, nelems: size_t, request: *mut Request)
        -> c_int;
    extra generic(REDUCE_BITS) "_and_reduce_nb": crate::extension::request::and_reduce,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t, request: *mut Request) -> c_int;
    extra generic(REDUCE_BITS) "_or_reduce_nb": crate::extension::request::or_reduce,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t, request: *mut Request) -> c_int;
    extra generic(REDUCE_BITS) "_xor_reduce_nb": crate::extension::request::xor_reduce,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t, request: *mut Request) -> c_int;
    extra generic(RMA_VALUE) "_min_reduce_nb": crate::extension::request::min_reduce,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t, request: *mut Request) -> c_int;
    foreign_extra generic(LONG_DOUBLE) "_min_reduce_nb": crate::foreign,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t, request: *mut Request) -> c_int;
    extra generic(RMA_VALUE) "_max_reduce_nb": crate::extension::request::max_reduce,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t, request: *mut Request) -> c_int;
    foreign_extra generic(LONG_DOUBLE) "_max_reduce_nb": crate::foreign,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t, request: *mut Request) -> c_int;
    extra generic(REDUCE_SUM) "_sum_reduce_nb": crate::extension::request::sum_reduce,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t, request: *mut Request) -> c_int;
    foreign_extra generic(LONG_DOUBLE) "_sum_reduce_nb": crate::foreign,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t, request: *mut Request) -> c_int;
    extra generic(REDUCE_SUM) "_prod_reduce_nb": crate::extension::request::prod_reduce,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t, request: *mut Request) -> c_int;
    foreign_extra generic(LONG_DOUBLE) "_prod_reduce_nb": crate::foreign,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t, request: *mut Request) -> c_int;
    extra plain "req_test": crate::extension::request::test, (request: *mut Request) -> c_int;
    extra plain "req_wait": crate::extension::request::wait, (request: *mut Request);
}
