//! Collective operations.

use super::*;

api! {
    only plain "barrier_all": crate::collective::barrier_all, ();
    only plain "sync_all": crate::collective::sync_all, ();
    only plain "team_sync": crate::collective::team_sync, (team: TeamHandle) -> c_int;
    only generic(RMA) "_broadcast": crate::collective::broadcast,
        (team: TeamHandle, dest: *mut T, source: *const T, nelems: size_t, pe_root: c_int) -> c_int;
    only plain "broadcastmem": crate::collective::broadcastmem,
        (team: TeamHandle, dest: *mut c_void, source: *const c_void, nelems: size_t, pe_root: c_int) -> c_int;
    only generic(RMA) "_collect": crate::collective::collect,
        (team: TeamHandle, dest: *mut T, source: *const T, nelems: size_t) -> c_int;
    only plain "collectmem": crate::collective::collectmem,
        (team: TeamHandle, dest: *mut c_void, source: *const c_void, nelems: size_t) -> c_int;
    only generic(RMA) "_fcollect": crate::collective::fcollect,
        (team: TeamHandle, dest: *mut T, source: *const T, nelems: size_t) -> c_int;
    only plain "fcollectmem": crate::collective::fcollectmem,
        (team: TeamHandle, dest: *mut c_void, source: *const c_void, nelems: size_t) -> c_int;
    only generic(RMA) "_alltoall": crate::collective::alltoall,
        (team: TeamHandle, dest: *mut T, source: *const T, nelems: size_t) -> c_int;
    only plain "alltoallmem": crate::collective::alltoallmem,
        (team: TeamHandle, dest: *mut c_void, source: *const c_void, nelems: size_t) -> c_int;
    only generic(RMA) "_alltoalls": crate::collective::alltoalls,
        (team: TeamHandle, dest: *mut T, source: *const T, dst: ptrdiff_t, sst: ptrdiff_t, nelems: size_t)
        -> c_int;
    only plain "alltoallsmem": crate::collective::alltoallsmem,
        (team: TeamHandle, dest: *mut c_void, source: *const c_void, dst: ptrdiff_t, sst: ptrdiff_t,
         nelems: size_t) -> c_int;
    only generic(REDUCE_BITS) "_and_reduce": crate::collective::reduce::and_reduce,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t) -> c_int;
    only generic(REDUCE_BITS) "_or_reduce": crate::collective::reduce::or_reduce,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t) -> c_int;
    only generic(REDUCE_BITS) "_xor_reduce": crate::collective::reduce::xor_reduce,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t) -> c_int;
    only generic(RMA_VALUE) "_min_reduce": crate::collective::reduce::min_reduce,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t) -> c_int;
    foreign generic(LONG_DOUBLE) "_min_reduce": crate::foreign,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t) -> c_int;
    only generic(RMA_VALUE) "_max_reduce": crate::collective::reduce::max_reduce,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t) -> c_int;
    foreign generic(LONG_DOUBLE) "_max_reduce": crate::foreign,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t) -> c_int;
    only generic(REDUCE_SUM) "_sum_reduce": crate::collective::reduce::sum_reduce,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t) -> c_int;
    foreign generic(LONG_DOUBLE) "_sum_reduce": crate::foreign,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t) -> c_int;
    only generic(REDUCE_SUM) "_prod_reduce": crate::collective::reduce::prod_reduce,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t) -> c_int;
    foreign generic(LONG_DOUBLE) "_prod_reduce": crate::foreign,
        (team: TeamHandle, dest: *mut T, source: *const T, nreduce: size_t) -> c_int;
    only generic(REDUCE_SUM) "_sum_inscan": crate::collective::reduce::sum_inscan,
        (team: TeamHandle, dest: *mut T, source: *const T, nelems: size_t) -> c_int;
    foreign generic(LONG_DOUBLE) "_sum_inscan": crate::foreign,
        (team: TeamHandle, dest: *mut T, source: *const T, nelems: size_t) -> c_int;
    only generic(REDUCE_SUM) "_sum_exscan": crate::collective::reduce::sum_exscan,
        (team: TeamHandle, dest: *mut T, source: *const T, nelems: size_t) -> c_int;
    foreign generic(LONG_DOUBLE) "_sum_exscan": crate::foreign,
        (team: TeamHandle, dest: *mut T, source: *const T, nelems: size_t) -> c_int;
    /// Deprecated.
    only plain "barrier": crate::collective::active_set::barrier,
        (pe_start: c_int, log_pe_stride: c_int, pe_size: c_int, psync: *mut c_long);
    /// Deprecated.
    only plain "sync": crate::collective::active_set::sync,
        (pe_start: c_int, log_pe_stride: c_int, pe_size: c_int, psync: *mut c_long);
    /// Deprecated.
    only sized(ACTIVE_SIZES) "broadcast" "": crate::collective::active_set::broadcast,
        (dest: *mut T, source: *const T, nelems: size_t, pe_root: c_int, pe_start: c_int,
         log_pe_stride: c_int, pe_size: c_int, psync: *mut c_long);
    /// Deprecated.
    only sized(ACTIVE_SIZES) "collect" "": crate::collective::active_set::collect,
        (dest: *mut T, source: *const T, nelems: size_t, pe_start: c_int, log_pe_stride: c_int,
         pe_size: c_int, psync: *mut c_long);
    /// Deprecated.
    only sized(ACTIVE_SIZES) "fcollect" "": crate::collective::active_set::fcollect,
        (dest: *mut T, source: *const T, nelems: size_t, pe_start: c_int, log_pe_stride: c_int,
         pe_size: c_int, psync: *mut c_long);
    /// Deprecated.
    only sized(ACTIVE_SIZES) "alltoall" "": crate::collective::active_set::alltoall,
        (dest: *mut T, source: *const T, nelems: size_t, pe_start: c_int, log_pe_stride: c_int,
         pe_size: c_int, psync: *mut c_long);
    /// Deprecated.
    only sized(ACTIVE_SIZES) "alltoalls" "": crate::collective::active_set::alltoalls,
        (dest: *mut T, source: *const T, dst: ptrdiff_t, sst: ptrdiff_t, nelems: size_t,
         pe_start: c_int, log_pe_stride: c_int, pe_size: c_int, psync: *mut c_long);
    /// Deprecated.
    only typed(TO_ALL_BITS) "_and_to_all": crate::collective::reduce::and_to_all,
        (dest: *mut T, source: *const T, nreduce: c_int, pe_start: c_int, log_pe_stride: c_int,
         pe_size: c_int, pwrk: *mut T, psync: *mut c_long);
    /// Deprecated.
    only typed(TO_ALL_BITS) "_or_to_all": crate::collective::reduce::or_to_all,
        (dest: *mut T, source: *const T, nreduce: c_int, pe_start: c_int, log_pe_stride: c_int,
         pe_size: c_int, pwrk: *mut T, psync: *mut c_long);
    /// Deprecated.
    only typed(TO_ALL_BITS) "_xor_to_all": crate::collective::reduce::xor_to_all,
        (dest: *mut T, source: *const T, nreduce: c_int, pe_start: c_int, log_pe_stride: c_int,
         pe_size: c_int, pwrk: *mut T, psync: *mut c_long);
    /// Deprecated.
    only typed(TO_ALL_ORDER) "_min_to_all": crate::collective::reduce::min_to_all,
        (dest: *mut T, source: *const T, nreduce: c_int, pe_start: c_int, log_pe_stride: c_int,
         pe_size: c_int, pwrk: *mut T, psync: *mut c_long);
    /// Deprecated.
    foreign typed(LONG_DOUBLE) "_min_to_all": crate::foreign,
        (dest: *mut T, source: *const T, nreduce: c_int, pe_start: c_int, log_pe_stride: c_int,
         pe_size: c_int, pwrk: *mut T, psync: *mut c_long);
    /// Deprecated.
    only typed(TO_ALL_ORDER) "_max_to_all": crate::collective::reduce::max_to_all,
        (dest: *mut T, source: *const T, nreduce: c_int, pe_start: c_int, log_pe_stride: c_int,
         pe_size: c_int, pwrk: *mut T, psync: *mut c_long);
    /// Deprecated.
    foreign typed(LONG_DOUBLE) "_max_to_all": crate::foreign,
        (dest: *mut T, source: *const T, nreduce: c_int, pe_start: c_int, log_pe_stride: c_int,
         pe_size: c_int, pwrk: *mut T, psync: *mut c_long);
    /// Deprecated.
    only typed(TO_ALL_SUM) "_sum_to_all": crate::collective::reduce::sum_to_all,
        (dest: *mut T, source: *const T, nreduce: c_int, pe_start: c_int, log_pe_stride: c_int,
         pe_size: c_int, pwrk: *mut T, psync: *mut c_long);
    /// Deprecated.
    foreign typed(LONG_DOUBLE) "_sum_to_all": crate::foreign,
        (dest: *mut T, source: *const T, nreduce: c_int, pe_start: c_int, log_pe_stride: c_int,
         pe_size: c_int, pwrk: *mut T, psync: *mut c_long);
    /// Deprecated.
    only typed(TO_ALL_SUM) "_prod_to_all": crate::collective::reduce::prod_to_all,
        (dest: *mut T, source: *const T, nreduce: c_int, pe_start: c_int, log_pe_stride: c_int,
         pe_size: c_int, pwrk: *mut T, psync: *mut c_long);
    /// Deprecated.
    foreign typed(LONG_DOUBLE) "_prod_to_all": crate::foreign,
        (dest: *mut T, source: *const T, nreduce: c_int, pe_start: c_int, log_pe_stride: c_int,
         pe_size: c_int, pwrk: *mut T, psync: *mut c_long);
}
