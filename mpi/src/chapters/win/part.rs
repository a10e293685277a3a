//! The parts of a window: where the memory of each process lies, and what this process may do with it.
//!
//! Invariant: `base` is the address here of memory that this process accesses by loads and stores, and null
//! if it does not. It never changes.

use super::control::Peer;
use crate::chapters::library::Mpi;
use pelago_core::Pe;
use pelago_fabric::sync::AtomicBool;

/// Where the memory of a process lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// In the symmetric region of a PE, from an offset on.
    Region { pe: Pe, offset: usize },
    /// In the private memory of the process, from an address on.
    Private(u64),
    /// Wherever the process attaches memory: displacements are addresses.
    Dynamic,
}

/// The memory of one process.
#[repr(align(64))]
pub struct Part {
    /// Where it is mapped here, or null.
    pub base: *mut u8,
    pub bytes: usize,
    /// The same if it is mapped here, else 0.
    pub direct_bytes: usize,
    pub disp_unit: usize,
    /// Whether this process has access to it in an epoch of this target alone.
    pub is_open: AtomicBool,
    /// Whether elements that are words are accumulated by atomics of processors.
    pub has_atomics: bool,
    /// Its process.
    pub pe: Pe,
    pub home: Home,
    /// The process number, if the system lets this process access its memory.
    pub pid: Option<u32>,
    /// The control block.
    pub peer: Peer,
}

// SAFETY: as for the window, which has the parts.
unsafe impl Send for Part {}
// SAFETY: as for the window, which has the parts.
unsafe impl Sync for Part {}

impl Part {
    /// Where the program may access the memory by loads and stores, or null. Memory of this node is mapped
    /// even if operations on it go over the network.
    pub fn mapped(&self, mpi: &Mpi) -> *mut u8 {
        match self.home {
            Home::Region { pe, offset } if self.base.is_null() && !mpi.core.memory.heap(pe).is_null() => {
                mpi.core.memory.heap(pe).wrapping_add(offset)
            }
            _ => self.base,
        }
    }

    /// The offset in bytes of a displacement from the start of the part: an address, of a dynamic window.
    #[inline(always)]
    pub fn offset(&self, disp: isize) -> Option<usize> {
        let disp = disp as usize;
        match self.disp_unit {
            1 => Some(disp),
            unit => disp.checked_mul(unit),
        }
    }
}
