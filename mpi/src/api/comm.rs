//! Communicators.

use crate::abi::*;

api! {
    call MPI_Comm_size(comm: MPI_Comm, size: *mut c_int) => crate::comm::comm_size;
    call MPI_Comm_rank(comm: MPI_Comm, rank: *mut c_int) => crate::comm::comm_rank;
    call MPI_Comm_test_inter(comm: MPI_Comm, flag: *mut c_int) => crate::comm::comm_test_inter;
    call MPI_Comm_remote_size(comm: MPI_Comm, size: *mut c_int) => crate::comm::comm_remote_size;
    call MPI_Comm_group(comm: MPI_Comm, group: *mut MPI_Group) => crate::comm::comm_group;
    call MPI_Comm_remote_group(comm: MPI_Comm, group: *mut MPI_Group) => crate::comm::comm_remote_group;
    call MPI_Comm_compare(comm1: MPI_Comm, comm2: MPI_Comm, result: *mut c_int) => crate::comm::comm_compare;
    call MPI_Comm_set_name(comm: MPI_Comm, comm_name: *const c_char) => crate::comm::comm_set_name;
    call MPI_Comm_get_name(comm: MPI_Comm, comm_name: *mut c_char, resultlen: *mut c_int) => crate::comm::comm_get_name;
    call MPI_Comm_split(comm: MPI_Comm, color: c_int, key: c_int, newcomm: *mut MPI_Comm) => crate::comm::comm_split;
    call MPI_Comm_dup(comm: MPI_Comm, newcomm: *mut MPI_Comm) => crate::comm::comm_dup;
    call MPI_Comm_create(comm: MPI_Comm, group: MPI_Group, newcomm: *mut MPI_Comm) => crate::comm::comm_create;
    call MPI_Comm_free(comm: *mut MPI_Comm) => crate::comm::comm_free;
}
