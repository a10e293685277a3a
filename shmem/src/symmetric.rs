//! Symmetric memory: the heap, in which `memory.rs` allocates, and the program's static data (`statics.rs`),
//! of which each PE maps its own part twice in its address space.
//!
//! Invariant: symmetric memory is two arrays of bytes, the same on every PE. Each address that a call names
//! is looked up here, unless the fast path has found it in the heap.

pub(crate) mod blocks;
pub(crate) mod check;
pub(crate) mod spans;
pub(crate) mod statics;

use crate::base::abi::c_void;
use crate::base::fault::{Call, fail};
use crate::base::hot::Hot;
use blocks::Blocks;
use check::Checks;
use pelago::binding;
use pelago::{Pe, Symmetric, View, World};
use spans::Arrays;
use statics::Statics;
use std::sync::Mutex;

/// Bytes at the end of the heap that are never allocated, so that the fast path only needs to check the first
/// byte of a value.
const MARGIN_BYTES: usize = 64;
/// The alignment of the heap's part of each PE, and so the largest alignment of its blocks; a small heap is
/// aligned to a page.
const ALIGN_BYTES: usize = 16 << 20;
const PAGE_BYTES: usize = 4096;
/// The overhead of a heap in bytes: its size minus the bytes that can be allocated in it.
pub(crate) const OVERHEAD_BYTES: usize = 2 * ALIGN_BYTES;

/// The symmetric memory of the job.
pub(crate) struct Memory {
    pub(crate) world: &'static World,
    /// Dropped before the two arrays, of which it has views with other element types.
    arrays: Arrays,
    pub(crate) heap: Symmetric<'static, u8>,
    statics: Statics,
    /// The allocated blocks of the heap, by offsets in it.
    blocks: Mutex<Blocks>,
    /// Present if `PELAGO_CHECK` is on.
    pub(crate) checks: Option<Checks>,
    /// The largest alignment of blocks.
    pub(crate) align_bytes: usize,
}

/// A symmetric object: its place, the same on every PE, in one of the two arrays.
#[derive(Clone, Copy)]
pub(crate) struct RemoteAddress {
    pub(crate) array: &'static View<'static, u8>,
    pub(crate) offset: usize,
}

impl Memory {
    /// Makes the heap of all memory that the world has left. Collective.
    pub(crate) fn open(world: &'static World, statics: Statics) -> pelago::Result<Memory> {
        let free = world.heap_largest_free_bytes();
        let align_bytes = if free >= OVERHEAD_BYTES { ALIGN_BYTES } else { PAGE_BYTES };
        let heap = world.alloc_aligned::<u8>(free.saturating_sub(align_bytes), align_bytes)?;
        let checks = binding::compares_calls(world).then(Checks::default);
        let arrays = Arrays::new(&heap, checks.is_none());
        let blocks = Mutex::new(Blocks::new(usable_bytes(&heap)));
        Ok(Memory { world, arrays, heap, statics, blocks, checks, align_bytes })
    }

    /// Frees all blocks.
    pub(crate) fn forget_blocks(&mut self) {
        self.heap.forget_locks(0..self.heap.len());
        self.blocks = Mutex::new(Blocks::new(usable_bytes(&self.heap)));
        self.checks = self.checks.is_some().then(Checks::default);
    }

    /// The data that the fast path reads in the default context.
    pub(crate) fn hot(&self) -> Hot {
        let (reach, bytes) = (self.heap.reach(), usable_bytes(&self.heap));
        let limit = if self.checks.is_some() { 0 } else { reach.limit };
        let looked_at_bytes = if limit > 0 && self.world.fabric().is_none() { bytes } else { 0 };
        let (start, parts) = (reach.own as usize, reach.parts);
        Hot { limit, start, bytes, parts, looked_at_bytes, far: self.heap.far() }
    }

    /// The number of this PE.
    pub(crate) fn me(&self) -> Pe {
        self.world.my_pe()
    }

    /// The place of an address of this PE, if the `bytes` bytes from there on are symmetric.
    pub(crate) fn find(&'static self, address: usize, bytes: usize) -> Option<RemoteAddress> {
        let offset = address.wrapping_sub(self.heap.reach().own as usize);
        if offset < self.heap.len() && bytes <= self.heap.len() - offset {
            return Some(RemoteAddress { array: &self.heap, offset });
        }
        self.statics.find(address, bytes).map(|(array, offset)| RemoteAddress { array, offset })
    }

    /// Whether the `bytes` bytes at an address of this PE are constants of the program, the same on all PEs.
    /// They are no symmetric memory, but calls may read them from any PE.
    pub(crate) fn are_constant(&self, address: usize, bytes: usize) -> bool {
        self.statics.are_constant(address, bytes)
    }

    /// The same in a call that requires a symmetric address: `what` names the argument.
    pub(crate) fn locate(
        &'static self,
        call: Call,
        what: &str,
        address: usize,
        bytes: usize,
    ) -> RemoteAddress {
        let remote = self.find(address, bytes).unwrap_or_else(|| {
            let heap = self.heap.reach().own as usize;
            let statics = self.statics.description();
            fail(
                call,
                format_args!(
                    "{what} is {bytes} bytes at {address:#x}, which are not symmetric: the heap lies at \
                     {heap:#x} to {:#x}, {statics}. Allocate with shmem_malloc, or make it a global or \
                     static variable of the program",
                    heap + self.heap.len()
                ),
            )
        });
        self.check_object(call, what, address, bytes);
        remote
    }

    /// The array of a word at an address of this PE, and the word's index among the array's words of the
    /// type. `what` names the argument.
    pub(crate) fn word<T>(
        &'static self,
        call: Call,
        what: &str,
        address: *const T,
    ) -> (RemoteAddress, usize) {
        let remote = self.words(call, what, address, 1);
        (remote, remote.offset / size_of::<T>())
    }

    /// The same for `count` words.
    pub(crate) fn words<T>(
        &'static self,
        call: Call,
        what: &str,
        address: *const T,
        count: usize,
    ) -> RemoteAddress {
        let align_bytes = align_of::<T>();
        if !(address as usize).is_multiple_of(align_bytes) {
            fail(
                call,
                format_args!(
                    "{what} is {address:p}, no multiple of {align_bytes}: the object has to be aligned as \
                     its type asks for"
                ),
            );
        }
        self.locate(call, what, address as usize, count.saturating_mul(size_of::<T>()))
    }

    /// The address at which an object of another PE is mapped; `None` if it is not mapped, or not symmetric.
    pub(crate) fn mapped(&'static self, address: *const c_void, pe: Pe) -> Option<*mut c_void> {
        let remote = self.find(address as usize, 1)?;
        if pe == self.me() {
            return Some(address.cast_mut());
        }
        Some(remote.array.ptr(pe)?.wrapping_add(remote.offset).cast())
    }
}

/// The bytes of a heap in which blocks may lie.
fn usable_bytes(heap: &View<'static, u8>) -> usize {
    heap.reach().bytes.saturating_sub(MARGIN_BYTES)
}
