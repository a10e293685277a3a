//! Operations of reductions.

use crate::abi::*;

api! {
    large MPI_Op_create(
        user_fn: UserFunction, commute: c_int, op: *mut MPI_Op,
    ) => crate::chapters::op::op_create;
    call MPI_Op_free(op: *mut MPI_Op) => crate::chapters::op::op_free;
    call MPI_Op_commutative(op: MPI_Op, commute: *mut c_int) => crate::chapters::op::op_commutative;
    large MPI_Reduce_local(
        inbuf: *const c_void, inoutbuf: *mut c_void, count: Count, datatype: MPI_Datatype, op: MPI_Op,
    ) => crate::chapters::op::reduce_local;
}
