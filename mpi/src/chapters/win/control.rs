//! The control blocks of a window: what processes of a node share about the part of one of them.
//!
//! ```text
//! word 0: the lock of the window | word 1: the spinlock of accumulates | word 2: ranges in use
//! from word 8 on: address and length of each attached range
//! ```
//!
//! Invariant: the block is in the pool of its PE, all zero at first. Only its process changes the
//! ranges; a range whose length is 0 is empty.

use crate::chapters::library::Mpi;
use pelago_core::Pe;
use pelago_core::base::awaited::Awaited;
use pelago_fabric::sync::{AtomicU64, Ordering};

/// The size of the control block of a window that nothing is attached to.
pub const BLOCK_BYTES: usize = 4096;
/// The size of that of a dynamic window.
pub const DYNAMIC_BLOCK_BYTES: usize = 256 << 10;
const LOCK: usize = 0;
const SPIN: usize = 1;
const USED: usize = 2;
const FIRST_RANGE: usize = 8;
/// The number of ranges that can be attached to a window at once.
pub const RANGES: usize = (DYNAMIC_BLOCK_BYTES / 8 - FIRST_RANGE) / 2;

/// The control block of this process: its offset in the region, and its size.
pub struct Control {
    pub offset: usize,
    pub bytes: usize,
}

/// The control block of a process, as this one reaches it.
#[derive(Clone, Copy)]
pub struct Peer {
    pe: Pe,
    offset: usize,
    /// Where it is mapped here, or null.
    words: *const AtomicU64,
    /// Whether this process may use atomics of its processor on the lock.
    is_mapped: bool,
}

impl Peer {
    /// The block at an offset of a PE's region.
    pub fn new(mpi: &Mpi, pe: Pe, offset: usize) -> Peer {
        let is_mapped = mpi.core.memory.is_mapped(pe);
        let has_words = is_mapped || pe == mpi.core.my_pe();
        let words = match has_words {
            true => mpi.core.memory.heap(pe).wrapping_add(offset).cast_const().cast(),
            false => std::ptr::null(),
        };
        Peer { pe, offset, words, is_mapped }
    }

    pub fn pe(&self) -> Pe {
        self.pe
    }

    fn word(&self, index: usize) -> Option<&AtomicU64> {
        // SAFETY: the block is mapped and has more words; it is freed after the window.
        unsafe { self.words.wrapping_add(index).as_ref() }.filter(|_| !self.words.is_null())
    }

    /// The word of the lock, for atomics of this processor.
    pub fn lock(&self) -> Option<&AtomicU64> {
        self.word(LOCK).filter(|_| self.is_mapped)
    }

    /// The offset of the word of the lock in the region.
    pub fn lock_offset(&self) -> usize {
        self.offset + 8 * LOCK
    }

    /// Takes the spinlock for accumulates if it is free. It is that of a mapped process, or of this one.
    pub fn try_exclude(&self) -> Option<Excluding<'_>> {
        let word = self.word(SPIN)?;
        // SYNC POINT accumulate: acquires the data of the accumulate before.
        let is_taken = word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // A lock that was not taken must not be made: dropping it would release that of another process.
        if is_taken { Some(Excluding(word)) } else { None }
    }

    /// Takes the spinlock.
    pub fn exclude(&self, mpi: &Mpi) -> Excluding<'_> {
        let mut taken = self.try_exclude();
        if taken.is_none() {
            mpi.core.wait(Awaited::Completion { operation: "accumulate", pe: self.pe }, || {
                taken = taken.take().or_else(|| self.try_exclude());
                taken.is_some()
            });
        }
        taken.expect("a wait ends when the lock is taken")
    }

    /// Attaches a range to this process's part of a dynamic window; `false` if there are too many.
    pub fn attach(&self, start: usize, bytes: usize) -> bool {
        let used = self.used();
        let free = (0..used).find(|&i| self.range(i).is_some_and(|(_, bytes)| bytes == 0)).unwrap_or(used);
        let words = self.range_words(free).filter(|_| free < RANGES);
        let (Some([at, length]), Some(used)) = (words, self.word(USED)) else { return false };
        at.store(start as u64, Ordering::Relaxed);
        // SYNC POINT attach: releases the address.
        length.store(bytes as u64, Ordering::Release);
        used.fetch_max(free as u64 + 1, Ordering::Release);
        true
    }

    /// Detaches the range that begins at an address; `false` if there is none.
    pub fn detach(&self, start: usize) -> bool {
        let mut all = (0..self.used()).rev();
        let found = all.find(|&i| self.range(i).is_some_and(|(at, n)| at == start && n > 0));
        let Some([_, length]) = found.and_then(|i| self.range_words(i)) else { return false };
        length.store(0, Ordering::Relaxed);
        true
    }

    /// Whether attached memory has all bytes of a range, also where it consists of several pieces that follow
    /// each other; `None` if that is not known here.
    pub fn has_attached(&self, start: usize, bytes: usize) -> Option<bool> {
        self.word(LOCK)?;
        let Some(end) = start.checked_add(bytes) else { return Some(false) };
        let mut at = start;
        while at < end {
            let mut all = (0..self.used()).filter_map(|i| self.range(i));
            match all.find(|&(first, n)| first <= at && at - first < n) {
                Some((first, n)) => at = first + n,
                None => return Some(false),
            }
        }
        Some(true)
    }

    /// Whether a range overlaps attached memory of this process.
    pub fn overlaps_attached(&self, start: usize, bytes: usize) -> bool {
        (0..self.used())
            .filter_map(|i| self.range(i))
            .any(|(at, n)| n > 0 && start < at + n && at < start.saturating_add(bytes))
    }

    fn used(&self) -> usize {
        // SYNC POINT attach: acquires the ranges.
        self.word(USED).map_or(0, |used| used.load(Ordering::Acquire) as usize)
    }

    fn range_words(&self, i: usize) -> Option<[&AtomicU64; 2]> {
        Some([self.word(FIRST_RANGE + 2 * i)?, self.word(FIRST_RANGE + 2 * i + 1)?])
    }

    fn range(&self, i: usize) -> Option<(usize, usize)> {
        let [at, length] = self.range_words(i)?;
        // SYNC POINT attach: acquires the address.
        let bytes = length.load(Ordering::Acquire) as usize;
        Some((at.load(Ordering::Relaxed) as usize, bytes))
    }
}

/// The spinlock for accumulates, until it is dropped.
pub struct Excluding<'a>(&'a AtomicU64);

impl Drop for Excluding<'_> {
    fn drop(&mut self) {
        // SYNC POINT accumulate: releases the data of this accumulate.
        self.0.store(0, Ordering::Release);
    }
}
