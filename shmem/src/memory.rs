//! Memory management (OpenSHMEM 1.6, 9.3): the symmetric heap.
//!
//! Invariant: all PEs make the same calls, so a block lies at the same offset on every PE; every call
//! compares the calls of all PEs. A call that allocates or frees is a barrier of all PEs, unless there is
//! nothing to do. If spaces of some PEs (`extension/space.rs`) conflict with the plan of all PEs, which those
//! PEs report in the same agreement, the PEs search for a place that is free on all of them.

use crate::base::abi::{c_long, c_void, size_t};
use crate::base::fault::{Call, OrFail, fail};
use crate::base::say::say;
use crate::library::{self, Library};
use crate::symmetric::blocks::{ANY_ALIGN_BYTES, Plan};
use pelago::binding;
use std::ptr::null_mut;

/// `shmem_malloc`.
pub(crate) unsafe fn malloc(call: Call, size: size_t) -> *mut c_void {
    library::of(call).alloc(call, size, ANY_ALIGN_BYTES)
}

/// `shmem_malloc_with_hints`: "hints may be ignored".
pub(crate) unsafe fn malloc_with_hints(call: Call, size: size_t, _hints: c_long) -> *mut c_void {
    library::of(call).alloc(call, size, ANY_ALIGN_BYTES)
}

/// `shmem_align`: "alignment must be a power of two and a multiple of sizeof(void *)"; smaller powers of two,
/// which some programs use, are satisfied by any block. Other alignments above that size count as the next
/// power of two, as in libraries that programs come from. For any other alignment it returns null on all PEs,
/// as `aligned_alloc` does. With `PELAGO_CHECK` both print a message.
pub(crate) unsafe fn align(call: Call, given: size_t, size: size_t) -> *mut c_void {
    let library = library::of(call);
    let alignment = if given > size_of::<*const c_void>() {
        given.checked_next_power_of_two().unwrap_or(given)
    } else {
        given
    };
    if !given.is_power_of_two() && library.checks.is_some() {
        let (me, remedy) = (library.me(), "give a power of two that is a multiple of 8");
        let effect = match alignment == given {
            true => "the result is null".to_owned(),
            false => format!("{alignment} is used"),
        };
        say(&format!("PE {me}: {call}: alignment is {given}, so {effect}: {remedy}"));
    }
    let is_possible = alignment.is_power_of_two() && alignment <= library.align_bytes;
    if size > 0 && !is_possible {
        let _mark = library.enter_barrier(call);
        binding::agree_on_alloc(library.world, size, alignment, true).or_fail(call);
        return null_mut();
    }
    library.alloc(call, size, alignment.max(ANY_ALIGN_BYTES))
}

/// `shmem_calloc`: the block is zero on every PE.
pub(crate) unsafe fn calloc(call: Call, count: size_t, size: size_t) -> *mut c_void {
    let library = library::of(call);
    // If the product overflows, the allocation fails.
    let bytes = count.saturating_mul(size);
    let block = library.alloc(call, bytes, ANY_ALIGN_BYTES);
    if !block.is_null() {
        // SAFETY: the block has `bytes` bytes, and no PE uses it before the barrier below.
        unsafe { block.cast::<u8>().write_bytes(0, bytes) };
        library.barrier(call);
    }
    block
}

/// `shmem_free`: no effect for null; else it begins with a barrier.
pub(crate) unsafe fn free(call: Call, ptr: *mut c_void) {
    if library::has_ended() {
        return;
    }
    let library = library::of(call);
    if !ptr.is_null() {
        let offset = library.block(call, ptr);
        let _mark = library.enter_barrier(call);
        binding::agree_on_free(library.world, offset).or_fail(call);
        let mut blocks = library.blocks();
        let bytes = blocks.own.block_bytes(offset).unwrap_or(0);
        library.heap.forget_locks(offset..offset + bytes);
        blocks.free(offset);
        library.forget_block(call, ptr as usize);
    }
}

/// `shmem_realloc`: for null it allocates, for size 0 it frees. If there is not enough memory, the result is
/// null on all PEs, and the block does not change. It is also null, with a message, where no block begins;
/// with `PELAGO_CHECK` that ends the job.
pub(crate) unsafe fn realloc(call: Call, ptr: *mut c_void, size: size_t) -> *mut c_void {
    let library = library::of(call);
    if ptr.is_null() {
        return library.alloc(call, size, ANY_ALIGN_BYTES);
    }
    if size == 0 {
        // SAFETY: the caller's promises are the same.
        unsafe { free(call, ptr) };
        return null_mut();
    }
    let offset = match library.find_block(ptr) {
        Ok(offset) => offset,
        Err(NO_BLOCK) if library.checks.is_none() => return refuse_to_resize(library, call, ptr, size),
        Err(what) => fail(call, format_args!("ptr is {ptr:p}, {what}")),
    };
    let _mark = library.enter_barrier(call);
    let plan = library.blocks().plan_resize(offset, size);
    let agree = |can| binding::agree_on_resize(library.world, offset, size, can);
    let new = match library.settle(call, plan, (size, ANY_ALIGN_BYTES), agree) {
        Plan::Place(None) => return null_mut(),
        Plan::Place(Some(new)) => new,
        Plan::Stay { .. } => {
            library.note_block(call, ptr as usize, size);
            return ptr;
        }
    };
    let kept = library.blocks().own.block_bytes(offset).map_or(0, |bytes| bytes.min(size));
    let moved = library.address(new);
    // SAFETY: both blocks have `kept` bytes and do not overlap; no PE uses the old one any more, as the
    // agreement was a barrier, and no PE uses the new one before the barrier below.
    unsafe { moved.cast::<u8>().copy_from_nonoverlapping(ptr.cast(), kept) };
    let mut blocks = library.blocks();
    let bytes = blocks.own.block_bytes(offset).unwrap_or(0);
    library.heap.forget_locks(offset..offset + bytes);
    blocks.free(offset);
    drop(blocks);
    library.forget_block(call, ptr as usize);
    library.note_block(call, moved as usize, size);
    library.world.barrier();
    moved
}

/// A call of `realloc` for an address at which no block begins: null on all PEs, which must all make this
/// mistake.
fn refuse_to_resize(library: &Library, call: Call, ptr: *mut c_void, size: size_t) -> *mut c_void {
    say(&format!("PE {}: {call}: ptr is {ptr:p}, {NO_BLOCK}. The result is null", library.me()));
    let _mark = library.enter_barrier(call);
    // The offset of no block, as the address may differ from PE to PE.
    binding::agree_on_resize(library.world, usize::MAX, size, false).or_fail(call);
    null_mut()
}

const NO_BLOCK: &str = "where no block of the symmetric heap begins: it was freed, or not allocated by \
                        shmem_malloc and its like";
const IN_A_SPACE: &str = "which lies in a space: blocks of a space are given back by shmemx_space_free";

impl Library {
    /// Allocates on all PEs; null if there is not enough memory or if `bytes` is 0.
    fn alloc(&self, call: Call, bytes: usize, align_bytes: usize) -> *mut c_void {
        if bytes == 0 {
            return null_mut();
        }
        let _mark = self.enter_barrier(call);
        let plan = self.blocks().plan_alloc(bytes, align_bytes);
        let agree = |can| binding::agree_on_alloc(self.world, bytes, align_bytes, can);
        match self.settle(call, plan, (bytes, align_bytes), agree) {
            Plan::Place(Some(offset)) => {
                let block = self.address(offset);
                self.note_block(call, block as usize, bytes);
                block
            }
            Plan::Place(None) | Plan::Stay { .. } => null_mut(),
        }
    }

    /// Carries out a plan for a block of `bytes` bytes if all PEs can; else finds a place for it that is free
    /// on all PEs. Returns the plan that was carried out, the same on all PEs.
    fn settle(
        &self,
        call: Call,
        plan: Plan,
        (bytes, align_bytes): (usize, usize),
        agree: impl FnOnce(bool) -> pelago::Result<bool>,
    ) -> Plan {
        let is_held = self.blocks().hold(plan, bytes);
        let mut done = plan;
        if !agree(is_held).or_fail(call) {
            if is_held {
                self.blocks().give_up(plan);
            }
            let team = &self.teams.world.team;
            done = Plan::Place(self.hold_at_all((bytes, align_bytes), |place| {
                let told = team.exchange_words("a common place", [place.unwrap_or(0) as u64, bytes as u64]);
                told.or_fail(call).iter().map(|&[place, _]| (place != 0).then_some(place as usize)).collect()
            }));
        }
        self.blocks().carry_out(done, bytes);
        done
    }

    /// The offset of a block, from its address in a call.
    fn block(&self, call: Call, ptr: *mut c_void) -> usize {
        self.find_block(ptr).unwrap_or_else(|what| fail(call, format_args!("ptr is {ptr:p}, {what}")))
    }

    /// The same, or the mistake.
    fn find_block(&self, ptr: *mut c_void) -> Result<usize, &'static str> {
        let offset = self.offset(ptr);
        let blocks = self.blocks();
        if blocks.is_common(offset) {
            return Ok(offset);
        }
        let is_in_space = blocks.own.block_around(offset).is_some_and(|start| !blocks.is_common(start));
        Err(if is_in_space { IN_A_SPACE } else { NO_BLOCK })
    }
}
