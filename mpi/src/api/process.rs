//! Creation and management of processes.

use crate::abi::*;

api! {
    call MPI_Comm_spawn(
        command: *const c_char, argv: *mut *mut c_char, maxprocs: c_int, info: MPI_Info, root: c_int,
        comm: MPI_Comm, intercomm: *mut MPI_Comm, array_of_errcodes: *mut c_int,
    ) => crate::chapters::process::comm_spawn;
    call MPI_Comm_spawn_multiple(
        count: c_int, array_of_commands: *mut *mut c_char, array_of_argv: *mut *mut *mut c_char,
        array_of_maxprocs: *const c_int, array_of_info: *const MPI_Info, root: c_int, comm: MPI_Comm,
        intercomm: *mut MPI_Comm, array_of_errcodes: *mut c_int,
    ) => crate::chapters::process::comm_spawn_multiple;
    call MPI_Comm_get_parent(parent: *mut MPI_Comm) => crate::chapters::process::comm_get_parent;
    call MPI_Open_port(info: MPI_Info, port_name: *mut c_char) => crate::chapters::comm::open_port;
    call MPI_Close_port(port_name: *const c_char) => crate::chapters::comm::close_port;
    call MPI_Comm_accept(
        port_name: *const c_char, info: MPI_Info, root: c_int, comm: MPI_Comm, newcomm: *mut MPI_Comm,
    ) => crate::chapters::comm::comm_accept;
    call MPI_Comm_connect(
        port_name: *const c_char, info: MPI_Info, root: c_int, comm: MPI_Comm, newcomm: *mut MPI_Comm,
    ) => crate::chapters::comm::comm_connect;
    call MPI_Comm_join(fd: c_int, intercomm: *mut MPI_Comm) => crate::chapters::comm::comm_join;
    call MPI_Publish_name(
        service_name: *const c_char, info: MPI_Info, port_name: *const c_char,
    ) => crate::chapters::names::publish_name;
    call MPI_Unpublish_name(
        service_name: *const c_char, info: MPI_Info, port_name: *const c_char,
    ) => crate::chapters::names::unpublish_name;
    call MPI_Lookup_name(
        service_name: *const c_char, info: MPI_Info, port_name: *mut c_char,
    ) => crate::chapters::names::lookup_name;
}
