//! Windows of shared memory.
//!
//! Invariant: unless the program permits gaps (`alloc_shared_noncontig`), the parts follow each other in one
//! block of the pool of the process with rank 0.

use super::create::{Made, check, communicator, make};
use super::find;
use super::inquiry::GAPS_KEY;
use super::part::Home;
use crate::abi::*;
use crate::chapters::comm::gather_words;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::info;
use crate::chapters::library::{Mpi, output};
use crate::convert::IntegerOut;

/// `MPI_Win_allocate_shared`.
pub unsafe fn win_allocate_shared(
    mpi: &Mpi,
    size: MPI_Aint,
    disp_unit: i64,
    info: MPI_Info,
    comm: MPI_Comm,
    baseptr: *mut c_void,
    win: *mut MPI_Win,
) -> Result {
    let (place, base_place) = (output("win", win)?, output("baseptr", baseptr)?);
    let comm = communicator(mpi, comm)?;
    let (bytes, disp_unit) = check(size, disp_unit)?;
    if let Some(pe) = comm.group.pes().into_iter().find(|&pe| mpi.core.memory.heap(pe).is_null()) {
        return Err(Error::new(
            MPI_ERR_RMA_SHARED,
            format!(
                "PE {pe} is on another node and cannot share memory. Take a communicator of one node \
                 (MPI_Comm_split_type with MPI_COMM_TYPE_SHARED)"
            ),
        ));
    }
    let may_have_gaps = info::given(info)?.get(GAPS_KEY).as_deref() == Some("true");
    let told = gather_words(mpi, comm, [bytes as u64, may_have_gaps.into()])?;
    let sizes: Vec<usize> = told.iter().map(|[bytes, _]| *bytes as usize).collect();
    let me = comm.my_rank();
    // The parts of all lie at rank 0, or each at its own process.
    let has_gaps = told.iter().all(|[_, may_have_gaps]| *may_have_gaps != 0);
    let (owner, bytes_here) = match has_gaps {
        true => (me, Some(bytes)),
        false => (0, sizes.iter().try_fold(0usize, |sum, &bytes| sum.checked_add(bytes))),
    };
    let memory = match bytes_here.filter(|_| me == owner) {
        Some(bytes) => mpi.core.pool_alloc_for_program(bytes).map(|offset| (offset, bytes)),
        None => None,
    };
    let begin = memory.map_or(0, |(offset, _)| offset as u64 + 1);
    let start = gather_words(mpi, comm, [begin])?[owner][0];
    let owner_pe = comm.peer(owner as c_int)?;
    let offset = (start as usize).wrapping_sub(1).wrapping_add(sizes[owner..me].iter().sum::<usize>());
    let base = mpi.core.memory.heap(owner_pe).wrapping_add(offset);
    let made = Made {
        flavor: MPI_WIN_FLAVOR_SHARED,
        base,
        bytes,
        disp_unit,
        home: Some(Home::Region { pe: owner_pe, offset }),
        memory,
        private: None,
        has_failed: start == 0,
        has_gaps,
        info,
    };
    // SAFETY: the caller's pointers are valid for one value each.
    unsafe {
        place.write(make(mpi, comm, made)?);
        base_place.cast::<*mut u8>().write(base);
    }
    Ok(())
}

/// `MPI_Win_shared_query`: where the memory of a process is mapped here. The size is 0 if it is not.
pub unsafe fn win_shared_query(
    mpi: &Mpi,
    win: MPI_Win,
    rank: c_int,
    size: *mut MPI_Aint,
    disp_unit: IntegerOut,
    baseptr: *mut c_void,
) -> Result {
    let window = find(win)?;
    let (size, baseptr) = (output("size", size)?, output("baseptr", baseptr)?);
    ensure!(!disp_unit.is_null(), MPI_ERR_ARG, "disp_unit is null. Give the place of the result");
    ensure!(
        !window.is_dynamic(),
        MPI_ERR_RMA_FLAVOR,
        "the window is dynamic, and its memory not that of the window"
    );
    let rank = match rank {
        MPI_PROC_NULL => window.parts.iter().position(|part| part.bytes > 0).unwrap_or(0),
        _ => window.rank(rank)?,
    };
    let part = &window.parts[rank];
    let base = part.mapped(mpi);
    let (base, bytes) = match part.bytes {
        // Without memory of its own it has no place among the others, unless they follow each other.
        0 if window.has_gaps => (std::ptr::null_mut(), 0),
        _ if base.is_null() => (base, 0),
        bytes => (base, bytes),
    };
    // SAFETY: the caller's pointers are valid for one value each.
    unsafe {
        size.write(bytes as MPI_Aint);
        disp_unit.set(part.disp_unit as i64);
        baseptr.cast::<*mut u8>().write(base);
    }
    Ok(())
}
