//! Point-to-point communication.

use crate::abi::*;

api! {
    large MPI_Send(buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm) => crate::p2p::send;
    large MPI_Isend(buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) => crate::p2p::isend;
    large MPI_Send_init(buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) => crate::p2p::send_init;
    large MPI_Ssend(buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm) => crate::p2p::ssend;
    large MPI_Issend(buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) => crate::p2p::issend;
    large MPI_Ssend_init(buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) => crate::p2p::ssend_init;
    large MPI_Recv(buf: *mut c_void, count: Count, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm, status: *mut MPI_Status) => crate::p2p::recv;
    large MPI_Irecv(buf: *mut c_void, count: Count, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) => crate::p2p::irecv;
    large MPI_Recv_init(buf: *mut c_void, count: Count, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm, request: *mut MPI_Request) => crate::p2p::recv_init;
    large MPI_Sendrecv(sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: Count, recvtype: MPI_Datatype, source: c_int, recvtag: c_int, comm: MPI_Comm, status: *mut MPI_Status) => crate::p2p::sendrecv;
    call MPI_Probe(source: c_int, tag: c_int, comm: MPI_Comm, status: *mut MPI_Status) => crate::p2p::probe;
    call MPI_Iprobe(source: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int, status: *mut MPI_Status) => crate::p2p::iprobe;
}
