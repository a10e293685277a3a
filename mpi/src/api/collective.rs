//! Collective communication.

use crate::abi::*;

api! {
    call MPI_Barrier(comm: MPI_Comm) => crate::chapters::collective::barrier;
    call MPI_Ibarrier(comm: MPI_Comm, request: *mut MPI_Request) => crate::chapters::collective::ibarrier;
    call MPI_Barrier_init(
        comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::barrier_init;
    large MPI_Bcast(
        buffer: *mut c_void, count: Count, datatype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    ) => crate::chapters::collective::bcast;
    large MPI_Ibcast(
        buffer: *mut c_void, count: Count, datatype: MPI_Datatype, root: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::collective::ibcast;
    large MPI_Bcast_init(
        buffer: *mut c_void, count: Count, datatype: MPI_Datatype, root: c_int, comm: MPI_Comm,
        info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::bcast_init;
    large MPI_Gather(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    ) => crate::chapters::collective::gather;
    large MPI_Igather(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::collective::igather;
    large MPI_Gather_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, info: MPI_Info,
        request: *mut MPI_Request,
    ) => crate::chapters::collective::gather_init;
    large MPI_Gatherv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: Counts, displs: Displs, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    ) => crate::chapters::collective::gatherv;
    large MPI_Igatherv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: Counts, displs: Displs, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::collective::igatherv;
    large MPI_Gatherv_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: Counts, displs: Displs, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
        info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::gatherv_init;
    large MPI_Scatter(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    ) => crate::chapters::collective::scatter;
    large MPI_Iscatter(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::collective::iscatter;
    large MPI_Scatter_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm, info: MPI_Info,
        request: *mut MPI_Request,
    ) => crate::chapters::collective::scatter_init;
    large MPI_Scatterv(
        sendbuf: *const c_void, sendcounts: Counts, displs: Displs, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
    ) => crate::chapters::collective::scatterv;
    large MPI_Iscatterv(
        sendbuf: *const c_void, sendcounts: Counts, displs: Displs, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::collective::iscatterv;
    large MPI_Scatterv_init(
        sendbuf: *const c_void, sendcounts: Counts, displs: Displs, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcount: Count, recvtype: MPI_Datatype, root: c_int, comm: MPI_Comm,
        info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::scatterv_init;
    large MPI_Allgather(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm,
    ) => crate::chapters::collective::allgather;
    large MPI_Iallgather(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::collective::iallgather;
    large MPI_Allgather_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::allgather_init;
    large MPI_Allgatherv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: Counts, displs: Displs, recvtype: MPI_Datatype, comm: MPI_Comm,
    ) => crate::chapters::collective::allgatherv;
    large MPI_Iallgatherv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: Counts, displs: Displs, recvtype: MPI_Datatype, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::collective::iallgatherv;
    large MPI_Allgatherv_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: Counts, displs: Displs, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info,
        request: *mut MPI_Request,
    ) => crate::chapters::collective::allgatherv_init;
    large MPI_Alltoall(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm,
    ) => crate::chapters::collective::alltoall;
    large MPI_Ialltoall(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::collective::ialltoall;
    large MPI_Alltoall_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::alltoall_init;
    large MPI_Alltoallv(
        sendbuf: *const c_void, sendcounts: Counts, sdispls: Displs, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: Counts, rdispls: Displs, recvtype: MPI_Datatype, comm: MPI_Comm,
    ) => crate::chapters::collective::alltoallv;
    large MPI_Ialltoallv(
        sendbuf: *const c_void, sendcounts: Counts, sdispls: Displs, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: Counts, rdispls: Displs, recvtype: MPI_Datatype, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::collective::ialltoallv;
    large MPI_Alltoallv_init(
        sendbuf: *const c_void, sendcounts: Counts, sdispls: Displs, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: Counts, rdispls: Displs, recvtype: MPI_Datatype, comm: MPI_Comm,
        info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::alltoallv_init;
    large MPI_Alltoallw(
        sendbuf: *const c_void, sendcounts: Counts, sdispls: Displs, sendtypes: *const MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: Counts, rdispls: Displs, recvtypes: *const MPI_Datatype,
        comm: MPI_Comm,
    ) => crate::chapters::collective::alltoallw;
    large MPI_Ialltoallw(
        sendbuf: *const c_void, sendcounts: Counts, sdispls: Displs, sendtypes: *const MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: Counts, rdispls: Displs, recvtypes: *const MPI_Datatype,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::collective::ialltoallw;
    large MPI_Alltoallw_init(
        sendbuf: *const c_void, sendcounts: Counts, sdispls: Displs, sendtypes: *const MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: Counts, rdispls: Displs, recvtypes: *const MPI_Datatype,
        comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::alltoallw_init;
    large MPI_Reduce(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        root: c_int, comm: MPI_Comm,
    ) => crate::chapters::collective::reduce;
    large MPI_Ireduce(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        root: c_int, comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::collective::ireduce;
    large MPI_Reduce_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        root: c_int, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::reduce_init;
    large MPI_Allreduce(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm,
    ) => crate::chapters::collective::allreduce;
    large MPI_Iallreduce(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::collective::iallreduce;
    large MPI_Allreduce_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::allreduce_init;
    large MPI_Reduce_scatter_block(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm,
    ) => crate::chapters::collective::reduce_scatter_block;
    large MPI_Ireduce_scatter_block(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::collective::ireduce_scatter_block;
    large MPI_Reduce_scatter_block_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::reduce_scatter_block_init;
    large MPI_Reduce_scatter(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: Counts, datatype: MPI_Datatype,
        op: MPI_Op, comm: MPI_Comm,
    ) => crate::chapters::collective::reduce_scatter;
    large MPI_Ireduce_scatter(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: Counts, datatype: MPI_Datatype,
        op: MPI_Op, comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::collective::ireduce_scatter;
    large MPI_Reduce_scatter_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: Counts, datatype: MPI_Datatype,
        op: MPI_Op, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::reduce_scatter_init;
    large MPI_Scan(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm,
    ) => crate::chapters::collective::scan;
    large MPI_Iscan(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::collective::iscan;
    large MPI_Scan_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::scan_init;
    large MPI_Exscan(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm,
    ) => crate::chapters::collective::exscan;
    large MPI_Iexscan(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::collective::iexscan;
    large MPI_Exscan_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
        comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::exscan_init;
    large MPI_Neighbor_allgather(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm,
    ) => crate::chapters::collective::neighbor_allgather;
    large MPI_Ineighbor_allgather(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::collective::ineighbor_allgather;
    large MPI_Neighbor_allgather_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::neighbor_allgather_init;
    large MPI_Neighbor_allgatherv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: Counts, displs: Displs, recvtype: MPI_Datatype, comm: MPI_Comm,
    ) => crate::chapters::collective::neighbor_allgatherv;
    large MPI_Ineighbor_allgatherv(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: Counts, displs: Displs, recvtype: MPI_Datatype, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::collective::ineighbor_allgatherv;
    large MPI_Neighbor_allgatherv_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcounts: Counts, displs: Displs, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info,
        request: *mut MPI_Request,
    ) => crate::chapters::collective::neighbor_allgatherv_init;
    large MPI_Neighbor_alltoall(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm,
    ) => crate::chapters::collective::neighbor_alltoall;
    large MPI_Ineighbor_alltoall(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::collective::ineighbor_alltoall;
    large MPI_Neighbor_alltoall_init(
        sendbuf: *const c_void, sendcount: Count, sendtype: MPI_Datatype, recvbuf: *mut c_void,
        recvcount: Count, recvtype: MPI_Datatype, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::neighbor_alltoall_init;
    large MPI_Neighbor_alltoallv(
        sendbuf: *const c_void, sendcounts: Counts, sdispls: Displs, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: Counts, rdispls: Displs, recvtype: MPI_Datatype, comm: MPI_Comm,
    ) => crate::chapters::collective::neighbor_alltoallv;
    large MPI_Ineighbor_alltoallv(
        sendbuf: *const c_void, sendcounts: Counts, sdispls: Displs, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: Counts, rdispls: Displs, recvtype: MPI_Datatype, comm: MPI_Comm,
        request: *mut MPI_Request,
    ) => crate::chapters::collective::ineighbor_alltoallv;
    large MPI_Neighbor_alltoallv_init(
        sendbuf: *const c_void, sendcounts: Counts, sdispls: Displs, sendtype: MPI_Datatype,
        recvbuf: *mut c_void, recvcounts: Counts, rdispls: Displs, recvtype: MPI_Datatype, comm: MPI_Comm,
        info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::neighbor_alltoallv_init;
    large MPI_Neighbor_alltoallw(
        sendbuf: *const c_void, sendcounts: Counts, sdispls: *const MPI_Aint,
        sendtypes: *const MPI_Datatype, recvbuf: *mut c_void, recvcounts: Counts, rdispls: *const MPI_Aint,
        recvtypes: *const MPI_Datatype, comm: MPI_Comm,
    ) => crate::chapters::collective::neighbor_alltoallw;
    large MPI_Ineighbor_alltoallw(
        sendbuf: *const c_void, sendcounts: Counts, sdispls: *const MPI_Aint,
        sendtypes: *const MPI_Datatype, recvbuf: *mut c_void, recvcounts: Counts, rdispls: *const MPI_Aint,
        recvtypes: *const MPI_Datatype, comm: MPI_Comm, request: *mut MPI_Request,
    ) => crate::chapters::collective::ineighbor_alltoallw;
    large MPI_Neighbor_alltoallw_init(
        sendbuf: *const c_void, sendcounts: Counts, sdispls: *const MPI_Aint,
        sendtypes: *const MPI_Datatype, recvbuf: *mut c_void, recvcounts: Counts, rdispls: *const MPI_Aint,
        recvtypes: *const MPI_Datatype, comm: MPI_Comm, info: MPI_Info, request: *mut MPI_Request,
    ) => crate::chapters::collective::neighbor_alltoallw_init;
}
