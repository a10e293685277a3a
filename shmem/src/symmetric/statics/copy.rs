//! Copies pages of static data, without memory for pages that are zero.
//!
//! Invariant: a copy calls nothing that writes to a variable, as the variables of the C library, or of this
//! one, may lie in the pages; memory that neither side uses is not touched. Words move as relaxed atomics:
//! peers may write to them at the same time, and a tool that checks `memcpy` does not know the gaps between
//! variables.

use super::system::page_bytes;
use pelago::sync::{AtomicU64, Ordering};
use std::ops::Range;

/// The number of pages in one query to the system.
const CHUNK_PAGES: usize = 1024;
/// Words of the smallest page.
const BLOCK_WORDS: usize = 512;

/// Copies pages to memory that is zero. From `zeros` on, pages without memory in the system contain only
/// zeros.
///
/// # Safety
/// The pages are mapped for reading, and `target`, page-aligned, for writing as many bytes.
pub(super) unsafe fn copy_pages(pages: &Range<usize>, zeros: usize, target: *mut u8) {
    let place = |address: usize| target.wrapping_add(address - pages.start);
    let zeros = zeros.clamp(pages.start, pages.end);
    // SAFETY: the caller guarantees both ranges; `place` keeps the distance between them.
    unsafe { copy_blocks(pages.start, zeros - pages.start, place(pages.start)) };
    let page_bytes = page_bytes();
    for start in (zeros..pages.end).step_by(CHUNK_PAGES * page_bytes) {
        let bytes = (pages.end - start).min(CHUNK_PAGES * page_bytes);
        let mut is_resident = [0u8; CHUNK_PAGES];
        // SAFETY: it writes one byte for each page, and the buffer is large enough.
        let outcome = unsafe { libc::mincore(start as *mut libc::c_void, bytes, is_resident.as_mut_ptr()) };
        // Pages that are swapped out are not resident either. The query is made afterwards: a page that was
        // swapped out before and not accessed since is still swapped out.
        let is_known = outcome == 0 && !is_swap_used();
        for (page, state) in is_resident.iter().enumerate().take(bytes / page_bytes) {
            if !is_known || state & 1 != 0 {
                let address = start + page * page_bytes;
                // SAFETY: the caller guarantees both ranges, which contain this page.
                unsafe { copy_blocks(address, page_bytes, place(address)) };
            }
        }
    }
}

fn is_swap_used() -> bool {
    let info = rustix::system::sysinfo();
    info.freeswap != info.totalswap
}

/// Copies whole blocks, except blocks of zeros.
unsafe fn copy_blocks(source: usize, bytes: usize, target: *mut u8) {
    let block_bytes = size_of::<[u64; BLOCK_WORDS]>();
    for offset in (0..bytes).step_by(block_bytes) {
        let source = (source + offset) as *const [AtomicU64; BLOCK_WORDS];
        let target: *const [AtomicU64; BLOCK_WORDS] = target.wrapping_add(offset).cast();
        // SAFETY: the caller guarantees both ranges, which are whole pages and so whole blocks.
        let (source, target) = unsafe { (&*source, &*target) };
        if source.iter().any(|word| word.load(Ordering::Relaxed) != 0) {
            for (from, to) in source.iter().zip(target) {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }
}
