//! Memory that programs allocate through the library. Blocks of a page and more come from the pool of this PE
//! while it has room, so that windows which are created on them are accessed by loads and stores.
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
/// The hint of the least alignment.
pub const ALIGNMENT_KEY: &str = "mpi_minimum_memory_alignment";

/// The alignment of blocks of the pool, and the size from which on it is used.
const PAGE_BYTES: usize = 4096;

/// Where a block comes from.
enum Block {
    /// The allocator of the process.
    Private(Layout),
    /// The pool: offset and length.
    Pool(usize, usize),
}

/// Blocks by address.
static ALLOCATED: Mutex<BTreeMap<usize, Block>> = Mutex::new(BTreeMap::new());

/// `MPI_Alloc_mem`. The info may ask for an alignment.
pub unsafe fn alloc_mem(mpi: &Mpi, size: MPI_Aint, info: MPI_Info, baseptr: *mut c_void) -> Result {
    ensure!(size >= 0, MPI_ERR_ARG, "size is {size}, which is negative");
    let (hints, place) = (info::given(info)?, output("baseptr", baseptr)?);
    let alignment = hints.get(ALIGNMENT_KEY).and_then(|text| text.parse::<usize>().ok());
    let alignment = alignment.filter(|bytes| bytes.is_power_of_two()).unwrap_or(1).max(ALIGNMENT);
    let (block, start) = allocate(mpi, size.unsigned_abs(), alignment).ok_or_else(|| no_memory(size))?;
    ALLOCATED.lock().unwrap_or_else(PoisonError::into_inner).insert(start.expose_provenance(), block);
    // SAFETY: the caller's pointer is that of a place for an address.
    unsafe { place.cast::<*mut u8>().write(start) };
    Ok(())
}

fn allocate(mpi: &Mpi, bytes: usize, alignment: usize) -> Option<(Block, *mut u8)> {
    let is_for_pool = bytes >= PAGE_BYTES && alignment <= PAGE_BYTES;
    if let Some(offset) = is_for_pool.then(|| mpi.core.pool_alloc_for_program(bytes)).flatten() {
        let start = mpi.core.memory.heap(mpi.core.my_pe()).wrapping_add(offset);
        return Some((Block::Pool(offset, bytes), start));
    }
    let layout = Layout::from_size_align(bytes.max(1), alignment).ok()?;
    // SAFETY: the size is not 0.
    let start = unsafe { alloc(layout) };
    (!start.is_null()).then_some((Block::Private(layout), start))
}

fn no_memory(bytes: MPI_Aint) -> Error {
    Error::new(MPI_ERR_NO_MEM, format!("there is no room for {bytes} bytes"))
}

/// `MPI_Free_mem`. To free no memory is no error, as with C's `free`.
pub unsafe fn free_mem(mpi: &Mpi, base: *mut c_void) -> Result {
    if base.is_null() {
        return Ok(());
    }
    let block = ALLOCATED.lock().unwrap_or_else(PoisonError::into_inner).remove(&base.addr());
    let Some(block) = block else {
        let text = format!("{base:p} is no memory of MPI_Alloc_mem, or it was freed");
        return Err(Error::new(MPI_ERR_BASE, text));
    };
    match block {
        // SAFETY: the block was allocated with this layout, and it is freed once, as it has left the table.
        Block::Private(layout) => unsafe { dealloc(base.cast(), layout) },
        Block::Pool(offset, bytes) => mpi.core.pool_free(offset, bytes),
    }
    Ok(())
}
