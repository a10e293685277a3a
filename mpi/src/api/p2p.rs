//! Point-to-point communication.

use crate::abi::*;

api! {
    large MPI_Send(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
    ) => crate::chapters::p2p::send;
    large MPI_Isend(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::p2p::isend;
    large MPI_Send_init(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::p2p::send_init;
    large MPI_Ssend(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
    ) => crate::chapters::p2p::ssend;
    large MPI_Issend(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::p2p::issend;
    large MPI_Ssend_init(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::p2p::ssend_init;
    large MPI_Rsend(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
    ) => crate::chapters::p2p::send;
    large MPI_Irsend(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::p2p::isend;
    large MPI_Rsend_init(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::p2p::send_init;
    large MPI_Bsend(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
    ) => crate::chapters::p2p::bsend;
    large MPI_Ibsend(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::p2p::ibsend;
    large MPI_Bsend_init(
        buf: *const c_void, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::p2p::bsend_init;
    large MPI_Buffer_attach(buffer: *mut c_void, size: Count) => crate::chapters::p2p::buffer_attach;
    large MPI_Buffer_detach(buffer_addr: *mut c_void, size: CountOut) => crate::chapters::p2p::buffer_detach;
    call MPI_Buffer_flush() => crate::chapters::p2p::buffer_flush;
    call MPI_Buffer_iflush(request: *mut MPI_Request) => crate::chapters::p2p::buffer_iflush;
    large MPI_Comm_attach_buffer(
        comm: MPI_Comm, buffer: *mut c_void, size: Count,
    ) => crate::chapters::p2p::comm_attach_buffer;
    large MPI_Comm_detach_buffer(
        comm: MPI_Comm, buffer_addr: *mut c_void, size: CountOut,
    ) => crate::chapters::p2p::comm_detach_buffer;
    call MPI_Comm_flush_buffer(comm: MPI_Comm) => crate::chapters::p2p::comm_flush_buffer;
    call MPI_Comm_iflush_buffer(
        comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::p2p::comm_iflush_buffer;
    large MPI_Recv(
        buf: *mut c_void, count: Count, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        status: *mut MPI_Status,
    ) => crate::chapters::p2p::recv;
    large MPI_Irecv(
        buf: *mut c_void, count: Count, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::p2p::irecv;
    large MPI_Recv_init(
        buf: *mut c_void, count: Count, datatype: MPI_Datatype, source: c_int, tag: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::p2p::recv_init;
    large MPI_Sendrecv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, dest: c_int, sendtag: c_int,
        recvbuf: *mut c_void, recvcount: Count, recvtype: MPI_Datatype, source: c_int, recvtag: c_int,
        comm: MPI_Comm, status: *mut MPI_Status,
    ) => crate::chapters::p2p::sendrecv;
    large MPI_Sendrecv_replace(
        buf: *mut c_void, count: Count, datatype: MPI_Datatype, dest: c_int, sendtag: c_int, source: c_int,
        recvtag: c_int, comm: MPI_Comm, status: *mut MPI_Status,
    ) => crate::chapters::p2p::sendrecv_replace;
    large MPI_Isendrecv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, dest: c_int, sendtag: c_int,
        recvbuf: *mut c_void, recvcount: Count, recvtype: MPI_Datatype, source: c_int, recvtag: c_int,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::p2p::isendrecv;
    large MPI_Isendrecv_replace(
        buf: *mut c_void, count: Count, datatype: MPI_Datatype, dest: c_int, sendtag: c_int, source: c_int,
        recvtag: c_int, comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::p2p::isendrecv_replace;
    call MPI_Probe(
        source: c_int, tag: c_int, comm: MPI_Comm, status: *mut MPI_Status,
    ) => crate::chapters::p2p::probe;
    call MPI_Iprobe(
        source: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int, status: *mut MPI_Status,
    ) => crate::chapters::p2p::iprobe;
    call MPI_Mprobe(
        source: c_int, tag: c_int, comm: MPI_Comm, message: *mut MPI_Message, status: *mut MPI_Status,
    ) => crate::chapters::p2p::mprobe;
    call MPI_Improbe(
        source: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int, message: *mut MPI_Message,
        status: *mut MPI_Status,
    ) => crate::chapters::p2p::improbe;
    large MPI_Mrecv(
        buf: *mut c_void, count: Count, datatype: MPI_Datatype, message: *mut MPI_Message,
        status: *mut MPI_Status,
    ) => crate::chapters::p2p::mrecv;
    large MPI_Imrecv(
        buf: *mut c_void, count: Count, datatype: MPI_Datatype, message: *mut MPI_Message,
        request: *mut MPI_Request,
    ) => crate::chapters::p2p::imrecv;
    large MPI_Psend_init(
        buf: *const c_void, partitions: c_int, count: Count, datatype: MPI_Datatype, dest: c_int,
        tag: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::p2p::psend_init;
    large MPI_Precv_init(
        buf: *mut c_void, partitions: c_int, count: Count, datatype: MPI_Datatype, dest: c_int, tag: c_int,
        comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::p2p::precv_init;
    call MPI_Pready(partition: c_int, request: MPI_Request) => crate::chapters::p2p::pready;
    call MPI_Pready_range(
        partition_low: c_int, partition_high: c_int, request: MPI_Request,
    ) => crate::chapters::p2p::pready_range;
    call MPI_Pready_list(
        length: c_int, array_of_partitions: *const c_int, request: MPI_Request,
    ) => crate::chapters::p2p::pready_list;
    call MPI_Parrived(
        request: MPI_Request, partition: c_int, flag: *mut c_int,
    ) => crate::chapters::p2p::parrived;
}
