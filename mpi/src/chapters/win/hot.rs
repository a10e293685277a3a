//! The record of a window that its hot calls read, and the window that was used last.
//!
//! Invariant: a record stays where it is for the duration of the process, and is used again by a later
//! window. So a thread may read the handle in the record of the last window at any time. If it is the handle
//! that the program has passed, the window exists, and the rest of the record is that of the window.

use super::part::Part;
use crate::abi::*;
use pelago_fabric::sync::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// How many calls in a row may return without a round of progress.
const CALLS_A_ROUND: u32 = 256;

/// The data of a window that hot calls read.
#[repr(align(64))]
pub struct Record {
    handle: AtomicUsize,
    parts: AtomicPtr<Part>,
    len: AtomicUsize,
    /// Whether this process has access to all parts: since a fence, or by `MPI_Win_lock_all`.
    pub is_open: AtomicBool,
    /// Whether there is an epoch of locks, in which operations may be flushed.
    pub is_passive: AtomicBool,
    /// How many flushes may still do no more than order stores, before a round of progress is due. 0 in a
    /// window where operations are not complete at return.
    direct_flushes: AtomicU32,
}

impl Record {
    const fn new() -> Record {
        Record {
            handle: AtomicUsize::new(0),
            parts: AtomicPtr::new(null_mut()),
            len: AtomicUsize::new(0),
            is_open: AtomicBool::new(false),
            is_passive: AtomicBool::new(false),
            direct_flushes: AtomicU32::new(0),
        }
    }
}

/// A record without a window: no handle is 0.
static NONE: Record = Record::new();
/// The record of the window that was used last.
static LAST: AtomicPtr<Record> = AtomicPtr::new((&raw const NONE).cast_mut());
/// The records that no window has.
static FREE: Mutex<Vec<&'static Record>> = Mutex::new(Vec::new());

/// A record that no other window has.
pub fn take() -> &'static Record {
    let free = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    free.unwrap_or_else(|| Box::leak(Box::new(Record::new())))
}

impl Record {
    /// Begins to stand for a window.
    pub fn open(&self, handle: MPI_Win, parts: &[Part], is_direct: bool) {
        self.parts.store(parts.as_ptr().cast_mut(), Ordering::Relaxed);
        self.len.store(parts.len(), Ordering::Relaxed);
        self.direct_flushes.store(if is_direct { CALLS_A_ROUND } else { 0 }, Ordering::Relaxed);
        // SYNC POINT window-record: releases the rest of the record.
        self.handle.store(handle.0, Ordering::Release);
    }

    /// Stands for no window any more; a later one may get it.
    pub fn close(&'static self) {
        self.handle.store(0, Ordering::Relaxed);
        self.is_open.store(false, Ordering::Relaxed);
        self.is_passive.store(false, Ordering::Relaxed);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    /// Makes it that of the window that was used last.
    pub fn note_used(&'static self) {
        LAST.store(std::ptr::from_ref(self).cast_mut(), Ordering::Relaxed);
    }

    /// A part, if there is a process with this rank.
    #[inline(always)]
    pub fn part(&self, rank: c_int) -> Option<&Part> {
        if rank as isize as usize >= self.len.load(Ordering::Relaxed) {
            return None;
        }
        let parts = self.parts.load(Ordering::Relaxed);
        // SAFETY: the window has as many parts, which live as long as it, so that the table has an address.
        unsafe {
            std::hint::assert_unchecked(!parts.is_null());
            Some(&*parts.add(rank as usize))
        }
    }

    /// Whether this flush of a target only orders stores. Each `CALLS_A_ROUND`th does more: a program that
    /// waits by gets and flushes must serve the messages of others.
    #[inline(always)]
    pub fn is_flushed_by_fence(&self, rank: c_int) -> bool {
        let left = self.direct_flushes.load(Ordering::Relaxed);
        let is_direct = left != 0
            && self.is_passive.load(Ordering::Relaxed)
            && self.part(rank).is_some_and(|part| self.gives_access(part));
        if is_direct {
            self.direct_flushes.store(left - 1, Ordering::Relaxed);
        }
        is_direct
    }

    /// Counts a call of a window whose operations are complete at return: whether a round of progress is due.
    pub fn is_round_due(&self) -> bool {
        let left = self.direct_flushes.load(Ordering::Relaxed);
        self.direct_flushes.store(left.checked_sub(1).unwrap_or(CALLS_A_ROUND), Ordering::Relaxed);
        left == 0
    }

    /// Whether operations on a part may be started.
    #[inline(always)]
    pub fn gives_access(&self, part: &Part) -> bool {
        // SYNC POINT window-post: acquires the memory of the target, if another thread has awaited it.
        self.is_open.load(Ordering::Relaxed) | part.is_open.load(Ordering::Acquire)
    }
}

/// The record of a window, if it is the one that was used last.
#[inline(always)]
pub fn last(handle: MPI_Win) -> Option<&'static Record> {
    // SAFETY: the pointer is that of a record, and records are never freed.
    let record = unsafe { &*LAST.load(Ordering::Relaxed) };
    // SYNC POINT window-record: acquires the rest of the record.
    (record.handle.load(Ordering::Acquire) == handle.0).then_some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_found_by_the_handle_of_its_window_only() {
        let record = take();
        record.open(MPI_Win(0x5009), &[], true);
        record.note_used();
        assert!(last(MPI_Win(0x5009)).is_some_and(|found| std::ptr::eq(found, record)));
        assert!(last(MPI_Win(0x6009)).is_none() && last(MPI_WIN_NULL).is_none());
        assert!(record.part(0).is_none() && record.part(-1).is_none());
        record.close();
        assert!(last(MPI_Win(0x5009)).is_none(), "the window was freed");
        assert!(std::ptr::eq(take(), record), "the record is used again");
    }

    #[test]
    fn a_round_is_due_after_a_number_of_calls() {
        let record = Record::new();
        record.open(MPI_Win(0x7009), &[], true);
        let due = (0..3 * (CALLS_A_ROUND + 1)).filter(|_| record.is_round_due()).count();
        assert_eq!(due, 3);
    }
}
