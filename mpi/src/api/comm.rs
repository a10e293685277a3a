//! Communicators.

use crate::abi::*;

api! {
    call MPI_Comm_size(comm: MPI_Comm, size: *mut c_int) => crate::chapters::comm::comm_size;
    call MPI_Comm_rank(comm: MPI_Comm, rank: *mut c_int) => crate::chapters::comm::comm_rank;
    call MPI_Comm_test_inter(comm: MPI_Comm, flag: *mut c_int) => crate::chapters::comm::comm_test_inter;
    call MPI_Comm_remote_size(comm: MPI_Comm, size: *mut c_int) => crate::chapters::comm::comm_remote_size;
    call MPI_Comm_group(comm: MPI_Comm, group: *mut MPI_Group) => crate::chapters::comm::comm_group;
    call MPI_Comm_remote_group(
        comm: MPI_Comm, group: *mut MPI_Group,
    ) => crate::chapters::comm::comm_remote_group;
    call MPI_Comm_compare(
        comm1: MPI_Comm, comm2: MPI_Comm, result: *mut c_int,
    ) => crate::chapters::comm::comm_compare;
    call MPI_Comm_set_name(comm: MPI_Comm, comm_name: *const c_char) => crate::chapters::comm::comm_set_name;
    call MPI_Comm_get_name(
        comm: MPI_Comm, comm_name: *mut c_char, resultlen: *mut c_int,
    ) => crate::chapters::comm::comm_get_name;
    call MPI_Comm_split(
        comm: MPI_Comm, color: c_int, key: c_int, newcomm: *mut MPI_Comm,
    ) => crate::chapters::comm::comm_split;
    call MPI_Comm_split_type(
        comm: MPI_Comm, split_type: c_int, key: c_int, info: MPI_Info, newcomm: *mut MPI_Comm,
    ) => crate::chapters::comm::comm_split_type;
    call MPI_Comm_dup(comm: MPI_Comm, newcomm: *mut MPI_Comm) => crate::chapters::comm::comm_dup;
    call MPI_Comm_create(
        comm: MPI_Comm, group: MPI_Group, newcomm: *mut MPI_Comm,
    ) => crate::chapters::comm::comm_create;
    call MPI_Comm_free(comm: *mut MPI_Comm) => crate::chapters::comm::comm_free;
    call MPI_Comm_dup_with_info(
        comm: MPI_Comm, info: MPI_Info, newcomm: *mut MPI_Comm,
    ) => crate::chapters::comm::comm_dup_with_info;
    call MPI_Comm_idup(
        comm: MPI_Comm, newcomm: *mut MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::comm::comm_idup;
    call MPI_Comm_idup_with_info(
        comm: MPI_Comm, info: MPI_Info, newcomm: *mut MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::comm::comm_idup_with_info;
    call MPI_Comm_create_group(
        comm: MPI_Comm, group: MPI_Group, tag: c_int, newcomm: *mut MPI_Comm,
    ) => crate::chapters::comm::comm_create_group;
    call MPI_Comm_create_from_group(
        group: MPI_Group, stringtag: *const c_char, info: MPI_Info, errhandler: MPI_Errhandler,
        newcomm: *mut MPI_Comm,
    ) => crate::chapters::comm::comm_create_from_group;
    call MPI_Intercomm_create(
        local_comm: MPI_Comm, local_leader: c_int, peer_comm: MPI_Comm, remote_leader: c_int, tag: c_int,
        newintercomm: *mut MPI_Comm,
    ) => crate::chapters::comm::intercomm_create;
    call MPI_Intercomm_create_from_groups(
        local_group: MPI_Group, local_leader: c_int, remote_group: MPI_Group, remote_leader: c_int,
        stringtag: *const c_char, info: MPI_Info, errhandler: MPI_Errhandler, newintercomm: *mut MPI_Comm,
    ) => crate::chapters::comm::intercomm_create_from_groups;
    call MPI_Intercomm_merge(
        intercomm: MPI_Comm, high: c_int, newintracomm: *mut MPI_Comm,
    ) => crate::chapters::comm::intercomm_merge;
    call MPI_Comm_disconnect(comm: *mut MPI_Comm) => crate::chapters::comm::comm_disconnect;
}
