//! Groups.

use crate::abi::*;

api! {
    early MPI_Group_size(group: MPI_Group, size: *mut c_int) => crate::chapters::group::group_size;
    early MPI_Group_rank(group: MPI_Group, rank: *mut c_int) => crate::chapters::group::group_rank;
    early MPI_Group_translate_ranks(
        group1: MPI_Group, n: c_int, ranks1: *const c_int, group2: MPI_Group, ranks2: *mut c_int,
    ) => crate::chapters::group::group_translate_ranks;
    early MPI_Group_compare(
        group1: MPI_Group, group2: MPI_Group, result: *mut c_int,
    ) => crate::chapters::group::group_compare;
    early MPI_Group_union(
        group1: MPI_Group, group2: MPI_Group, newgroup: *mut MPI_Group,
    ) => crate::chapters::group::group_union;
    early MPI_Group_intersection(
        group1: MPI_Group, group2: MPI_Group, newgroup: *mut MPI_Group,
    ) => crate::chapters::group::group_intersection;
    early MPI_Group_difference(
        group1: MPI_Group, group2: MPI_Group, newgroup: *mut MPI_Group,
    ) => crate::chapters::group::group_difference;
    early MPI_Group_incl(
        group: MPI_Group, n: c_int, ranks: *const c_int, newgroup: *mut MPI_Group,
    ) => crate::chapters::group::group_incl;
    early MPI_Group_excl(
        group: MPI_Group, n: c_int, ranks: *const c_int, newgroup: *mut MPI_Group,
    ) => crate::chapters::group::group_excl;
    early MPI_Group_range_incl(
        group: MPI_Group, n: c_int, ranges: *mut [c_int; 3], newgroup: *mut MPI_Group,
    ) => crate::chapters::group::group_range_incl;
    early MPI_Group_range_excl(
        group: MPI_Group, n: c_int, ranges: *mut [c_int; 3], newgroup: *mut MPI_Group,
    ) => crate::chapters::group::group_range_excl;
    early MPI_Group_free(group: *mut MPI_Group) => crate::chapters::group::group_free;
}
