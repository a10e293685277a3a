//! Operations of reductions.

use crate::abi::*;
use crate::collective::{Elements, Prepared};
use crate::datatype::{Basic, Datatype};
use crate::error::{Error, Result, ensure};
use crate::library::Mpi;
use num_complex::Complex;
use pelago_core::coll::reduction::{Combiner, ReduceOp, Reducible};

/// Gives a reduction its source, its target where there is one, and its operation: the size of an element.
///
/// # Safety
/// The buffers have the elements, until the operation is over.
pub unsafe fn operands(
    prepared: &mut Prepared,
    mpi: &Mpi,
    op: MPI_Op,
    source: Elements,
    target: Option<Elements>,
) -> Result<usize> {
    let combiner = combiner(op, mpi.datatype(source.datatype)?)?;
    let element_bytes = combiner.element_bytes();
    prepared.combines(combiner);
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(target) = target {
            prepared.target(mpi, target, false)?;
        }
        prepared.source(mpi, source)?;
    }
    Ok(element_bytes)
}

fn built_in(op: MPI_Op) -> Option<ReduceOp> {
    Some(match op {
        MPI_SUM => ReduceOp::Sum,
        MPI_PROD => ReduceOp::Product,
        MPI_MIN => ReduceOp::Min,
        MPI_MAX => ReduceOp::Max,
        MPI_BAND => ReduceOp::And,
        MPI_BOR => ReduceOp::Or,
        MPI_BXOR => ReduceOp::Xor,
        _ => return None,
    })
}

/// The combiner of an operation on elements of a datatype.
pub fn combiner(op: MPI_Op, datatype: &Datatype) -> Result<Combiner> {
    ensure!(op != MPI_OP_NULL, MPI_ERR_OP, "the operation is MPI_OP_NULL");
    let found = built_in(op).zip(datatype.basic()).and_then(|(op, basic)| of_basic(op, basic));
    found.ok_or_else(|| Error::new(MPI_ERR_OP, "the operation is not defined for this datatype"))
}

fn of_basic(op: ReduceOp, basic: Basic) -> Option<Combiner> {
    fn of<T: Reducible>(op: ReduceOp) -> Option<Combiner> {
        Combiner::of::<T>(op)
    }
    match basic {
        Basic::Signed(1) => of::<i8>(op),
        Basic::Signed(2) => of::<i16>(op),
        Basic::Signed(4) => of::<i32>(op),
        Basic::Signed(8) => of::<i64>(op),
        Basic::Signed(16) => of::<i128>(op),
        Basic::Unsigned(1) => of::<u8>(op),
        Basic::Unsigned(2) => of::<u16>(op),
        Basic::Unsigned(4) => of::<u32>(op),
        Basic::Unsigned(8) => of::<u64>(op),
        Basic::Float32 => of::<f32>(op),
        Basic::Float64 => of::<f64>(op),
        Basic::Complex32 => of::<Complex<f32>>(op),
        Basic::Complex64 => of::<Complex<f64>>(op),
        _ => None,
    }
}
