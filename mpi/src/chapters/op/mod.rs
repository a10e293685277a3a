//! Operations of reductions: the predefined ones and those of the program.
//!
//! Invariant: a combiner works on elements in one piece. A function of the program gets elements in the
//! layout of their datatype.

mod built_in;
mod soft;
mod user;

use crate::abi::*;
use crate::chapters::datatype::{self, Datatype};
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::chapters::p2p::{bytes_of, given};
use crate::convert::UserCombine;
use crate::table::{Kind, Table};
use pelago_core::coll::reduction::Combiner;
use std::sync::Arc;
use user::{Function, OnElements};

/// Operations of the program.
static OPS: Table<Function> = Table::new(Kind::Op);

/// Whether it is one of the predefined operations that reductions may use.
pub fn is_predefined(op: MPI_Op) -> bool {
    matches!(
        op,
        MPI_SUM
            | MPI_MIN
            | MPI_MAX
            | MPI_PROD
            | MPI_BAND
            | MPI_BOR
            | MPI_BXOR
            | MPI_LAND
            | MPI_LOR
            | MPI_LXOR
            | MPI_MINLOC
            | MPI_MAXLOC
    )
}

/// The name of a predefined operation, for messages.
fn name(op: MPI_Op) -> &'static str {
    match op {
        MPI_SUM => "MPI_SUM",
        MPI_MIN => "MPI_MIN",
        MPI_MAX => "MPI_MAX",
        MPI_PROD => "MPI_PROD",
        MPI_BAND => "MPI_BAND",
        MPI_BOR => "MPI_BOR",
        MPI_BXOR => "MPI_BXOR",
        MPI_LAND => "MPI_LAND",
        MPI_LOR => "MPI_LOR",
        MPI_LXOR => "MPI_LXOR",
        MPI_MINLOC => "MPI_MINLOC",
        MPI_MAXLOC => "MPI_MAXLOC",
        MPI_REPLACE => "MPI_REPLACE",
        MPI_NO_OP => "MPI_NO_OP",
        _ => "the operation",
    }
}

/// The combiner of a predefined operation on elements of a datatype, in one piece. `MPI_REPLACE` takes the
/// right operand and `MPI_NO_OP` the left one, of any datatype.
pub fn combiner(op: MPI_Op, datatype: &Datatype) -> Result<Combiner> {
    ensure!(op != MPI_OP_NULL, MPI_ERR_OP, "the operation is MPI_OP_NULL");
    let found = built_in::choosing(op, datatype.size())
        .or_else(|| datatype.basic().and_then(|basic| built_in::combiner(op, basic)));
    found.ok_or_else(|| undefined(op))
}

#[cold]
fn undefined(op: MPI_Op) -> Error {
    let text = match is_predefined(op) {
        true => {
            format!(
                "{} is not defined for this datatype. Give another, or a function: MPI_Op_create",
                name(op)
            )
        }
        false => "the operation was freed, never was one, or is not one of accumulations".to_owned(),
    };
    Error::new(MPI_ERR_OP, text)
}

/// The combiner of an operation in a reduction, on elements of the datatype with a handle.
#[inline]
pub fn of_reduction(mpi: &Mpi, op: MPI_Op, handle: MPI_Datatype) -> Result<Combiner> {
    if is_predefined(op) {
        return combiner(op, mpi.datatype(handle)?);
    }
    let function = find(op)?;
    Ok(OnElements::combiner(function, handle, datatype::share(handle)?))
}

/// The operation of the program with a handle.
fn find(op: MPI_Op) -> Result<Arc<Function>> {
    OPS.share(op.0).ok_or_else(|| {
        let text = match op {
            MPI_OP_NULL => "the operation is MPI_OP_NULL".to_owned(),
            MPI_REPLACE | MPI_NO_OP => {
                format!("{} is for accumulations in windows, not for reductions", name(op))
            }
            _ => "the operation was freed, or never was one".to_owned(),
        };
        Error::new(MPI_ERR_OP, text)
    })
}

/// `MPI_Op_create`.
pub unsafe fn op_create(_mpi: &Mpi, user_fn: UserCombine, commute: c_int, op: *mut MPI_Op) -> Result {
    let place = output("op", op)?;
    ensure!(!user_fn.is_null(), MPI_ERR_ARG, "user_fn is null. Give a function");
    let handle = OPS.insert(Arc::new(Function { function: user_fn, is_commutative: commute != 0 }));
    let handle =
        handle.ok_or_else(|| Error::new(MPI_ERR_NO_MEM, "there are too many operations. Free some"))?;
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(MPI_Op(handle)) };
    Ok(())
}

/// `MPI_Op_free`. Reductions under way keep the function.
pub unsafe fn op_free(_mpi: &Mpi, op: *mut MPI_Op) -> Result {
    let place = output("op", op)?;
    // SAFETY: the caller's pointer is valid for one value.
    let handle = unsafe { place.read() };
    let is_constant = is_predefined(handle) || matches!(handle, MPI_REPLACE | MPI_NO_OP);
    ensure!(!is_constant, MPI_ERR_OP, "{} is predefined and cannot be freed", name(handle));
    ensure!(OPS.remove(handle.0).is_some(), MPI_ERR_OP, "the operation is null, was freed or never was one");
    // SAFETY: the caller promises what this function requires, as above.
    unsafe { place.write(MPI_OP_NULL) };
    Ok(())
}

/// `MPI_Op_commutative`.
pub unsafe fn op_commutative(_mpi: &Mpi, op: MPI_Op, commute: *mut c_int) -> Result {
    let place = output("commute", commute)?;
    let is_commutative = match op {
        MPI_REPLACE | MPI_NO_OP => false,
        _ => is_predefined(op) || find(op)?.is_commutative,
    };
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(is_commutative.into()) };
    Ok(())
}

/// `MPI_Reduce_local`: the elements of `inbuf` stand on the left.
pub unsafe fn reduce_local(
    mpi: &Mpi,
    inbuf: *const c_void,
    inoutbuf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    op: MPI_Op,
) -> Result {
    let layout = mpi.datatype(datatype)?;
    let bytes = bytes_of(count, layout)?;
    let in_place = MPI_IN_PLACE.cast_const();
    let is_given = inbuf != in_place && inoutbuf.cast_const() != in_place;
    ensure!(is_given, MPI_ERR_BUFFER, "a buffer is MPI_IN_PLACE, which this call does not have");
    ensure!(bytes == 0 || inbuf != inoutbuf.cast_const(), MPI_ERR_BUFFER, "both buffers are the same");
    if !is_predefined(op) {
        let function = find(op)?;
        // SAFETY: the caller promises the elements of both buffers.
        unsafe { function.call(inbuf.cast_mut(), inoutbuf, count as usize, datatype, layout.extent()) };
        return Ok(());
    }
    let combiner = combiner(op, layout)?;
    if count == 0 {
        return Ok(());
    }
    given(inbuf.cast(), bytes)?;
    given(inoutbuf.cast_const().cast(), bytes)?;
    let (one, both): (*const u8, *mut u8) = (inbuf.cast(), inoutbuf.cast());
    // SAFETY: the caller promises the elements of both buffers; packed, they have `bytes` bytes each.
    unsafe {
        if let Some(offset) = layout.run(count as usize) {
            let both = both.wrapping_offset(offset);
            combiner.combine(one.wrapping_offset(offset), both, both, bytes);
        } else {
            let [mut left, mut right] = [(); 2].map(|()| vec![0u8; bytes]);
            layout.pack(one, count as usize, left.as_mut_ptr());
            layout.pack(both, count as usize, right.as_mut_ptr());
            combiner.combine(left.as_ptr(), right.as_ptr(), right.as_mut_ptr(), bytes);
            layout.unpack(right.as_ptr(), bytes, both);
        }
    }
    Ok(())
}
