//! The memory of bandwidth measurements: a private region of PE 0 and a symmetric one, of which PE 1's part
//! is read and written. Invariant: every page is touched before a measurement, and both regions start at a
//! page boundary, so that the alignment of a transfer depends only on its offset.

use std::cell::{Cell, RefCell};
use std::fs;

use pelago::Result;
use pelago::prelude::*;

const PAGE_BYTES: usize = 4096;
const WORD_BYTES: usize = size_of::<u64>();
/// The assumed size of the last-level cache if the system does not report it.
const LAST_CACHE_BYTES_FALLBACK: usize = 32 << 20;
/// The minimum size of a region of the memory measurements.
const MEMORY_REGION_BYTES_MIN: usize = 64 << 20;

/// Both regions.
pub struct Buffers<'w> {
    /// On PE 0; empty elsewhere.
    pub private: RefCell<Private>,
    pub symmetric: Symmetric<'w, u64>,
}

impl<'w> Buffers<'w> {
    /// Collective: allocates regions of `bytes` bytes, and touches all pages.
    ///
    /// # Errors
    /// If the symmetric heap has no such block.
    pub fn new(world: &'w World, bytes: usize) -> Result<Self> {
        let words = bytes / WORD_BYTES;
        let symmetric = world.alloc_aligned::<u64>(words, PAGE_BYTES)?;
        let is_first = world.my_pe() == 0;
        if is_first {
            (0..words).step_by(PAGE_BYTES / WORD_BYTES).try_for_each(|index| symmetric.p(1, index, 1))?;
        }
        Ok(Buffers { private: RefCell::new(Private::new(if is_first { words } else { 0 })), symmetric })
    }
}

/// Words that start at a page boundary.
pub struct Private {
    words: Vec<u64>,
    start: usize,
    len: usize,
}

impl Private {
    fn new(len: usize) -> Self {
        // Ones, because the system could map all pages of zeros to one page.
        let words = vec![1; len + PAGE_BYTES / WORD_BYTES];
        let start = words.as_ptr().align_offset(PAGE_BYTES);
        Private { words, start, len }
    }

    pub fn words(&self) -> &[u64] {
        &self.words[self.start..self.start + self.len]
    }

    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words[self.start..self.start + self.len]
    }
}

/// The start positions of transfers of equal length: each follows the previous one, and the sequence restarts
/// at the end of the region. A region of one transfer is used repeatedly.
#[derive(Debug)]
pub struct Rotation {
    step: usize,
    region: usize,
    at: Cell<usize>,
}

impl Rotation {
    /// Transfers of `step` words in a region of `region` words.
    pub fn new(step: usize, region: usize) -> Self {
        Rotation { step, region, at: Cell::new(0) }
    }

    /// The first word of the next transfer.
    #[inline]
    pub fn next(&self) -> usize {
        let at = self.at.get();
        let next = at + self.step;
        self.at.set(if next + self.step > self.region { 0 } else { next });
        at
    }
}

/// The largest of some sizes.
pub fn largest(sizes: &[usize]) -> usize {
    sizes.iter().copied().max().unwrap_or(0)
}

/// Reads a size in bytes that is a number of words.
///
/// # Errors
/// If the text is not such a size.
pub fn transfer_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse::<usize>().ok().filter(|bytes| *bytes > 0 && bytes.is_multiple_of(WORD_BYTES));
    bytes.ok_or_else(|| "this is not a number of bytes that is a multiple of 8".to_owned())
}

/// The size of each region, in bytes, for measurements of memory: two such regions have at least twice the
/// size of the last-level cache. `None` if the symmetric heap has no room for that.
pub fn memory_region_bytes(world: &World) -> Option<usize> {
    let bytes = last_cache_bytes().unwrap_or(LAST_CACHE_BYTES_FALLBACK).max(MEMORY_REGION_BYTES_MIN);
    (bytes <= world.heap_largest_free_bytes() / 2).then_some(bytes)
}

/// The size of the largest cache of the first processor, as the system reports it.
fn last_cache_bytes() -> Option<usize> {
    let caches = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    let size = |cache: fs::DirEntry| cache_bytes(&fs::read_to_string(cache.path().join("size")).ok()?);
    caches.flatten().filter_map(size).max()
}

/// Parses a size such as `32768K`.
fn cache_bytes(text: &str) -> Option<usize> {
    text.trim().strip_suffix('K')?.parse::<usize>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_stays_in_its_region() {
        let starts = |step, region| {
            let rotation = Rotation::new(step, region);
            [0; 5].map(|_| rotation.next())
        };
        assert_eq!(starts(4, 4), [0; 5]);
        assert_eq!(starts(4, 12), [0, 4, 8, 0, 4]);
        assert_eq!(starts(4, 11), [0, 4, 0, 4, 0]);
    }

    #[test]
    fn regions_start_at_a_page() {
        let aligned = spmd(2, |world| {
            let buffers = Buffers::new(world, 3 * PAGE_BYTES).unwrap();
            let private = buffers.private.borrow();
            let symmetric = buffers.symmetric.ptr(1).unwrap();
            let is_aligned = symmetric.addr().is_multiple_of(PAGE_BYTES)
                && private.words().as_ptr().addr().is_multiple_of(PAGE_BYTES);
            (is_aligned, private.words().len() * WORD_BYTES)
        });
        assert_eq!(aligned.unwrap(), [(true, 3 * PAGE_BYTES), (true, 0)]);
    }

    #[test]
    fn sizes_that_are_no_words_are_refused() {
        assert_eq!(transfer_bytes("4096"), Ok(4096));
        for text in ["0", "12", "-8", "4k", ""] {
            assert!(transfer_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_of_caches_are_read() {
        assert_eq!(cache_bytes("32768K\n"), Some(32 << 20));
        assert_eq!(cache_bytes("32M"), None);
    }
}
