//! Memory that programs allocate through the library.
//!
//! Invariant: `ALLOCATED` has the blocks that the program has not freed.

use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::info;
use crate::chapters::library::{Mpi, output};
use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// That of a cache line, so that no two blocks share one.
const ALIGNMENT: usize = 64;
const ALIGNMENT_KEY: &str = "mpi_minimum_memory_alignment";

/// Blocks by address.
static ALLOCATED: Mutex<BTreeMap<usize, Layout>> = Mutex::new(BTreeMap::new());

/// `MPI_Alloc_mem`. The info may ask for an alignment.
pub unsafe fn alloc_mem(_mpi: &Mpi, size: MPI_Aint, info: MPI_Info, baseptr: *mut c_void) -> Result {
    ensure!(size >= 0, MPI_ERR_ARG, "size is {size}, which is negative");
    let (hints, place) = (info::given(info)?, output("baseptr", baseptr)?);
    let alignment = hints.get(ALIGNMENT_KEY).and_then(|text| text.parse::<usize>().ok());
    let alignment = alignment.filter(|bytes| bytes.is_power_of_two()).unwrap_or(1).max(ALIGNMENT);
    let layout =
        Layout::from_size_align(size.unsigned_abs().max(1), alignment).map_err(|_| no_memory(size))?;
    // SAFETY: the size is not 0.
    let block = unsafe { alloc(layout) };
    if block.is_null() {
        return Err(no_memory(size));
    }
    ALLOCATED.lock().unwrap_or_else(PoisonError::into_inner).insert(block.expose_provenance(), layout);
    // SAFETY: the caller's pointer is that of a place for an address.
    unsafe { place.cast::<*mut u8>().write(block) };
    Ok(())
}

fn no_memory(bytes: MPI_Aint) -> Error {
    Error::new(MPI_ERR_NO_MEM, format!("there is no room for {bytes} bytes"))
}

/// `MPI_Free_mem`.
pub unsafe fn free_mem(_mpi: &Mpi, base: *mut c_void) -> Result {
    let layout = ALLOCATED.lock().unwrap_or_else(PoisonError::into_inner).remove(&base.addr());
    let Some(layout) = layout else {
        let text = format!("{base:p} is no memory of MPI_Alloc_mem, or it was freed");
        return Err(Error::new(MPI_ERR_BASE, text));
    };
    // SAFETY: the block was allocated with this layout, and it is freed once, as it has left the table.
    unsafe { dealloc(base.cast(), layout) };
    Ok(())
}
