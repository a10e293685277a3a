//! The PEs of a process that copy from the private memory of one of them, as receivers of its long messages.
//!
//! Invariant: once a PE is closed, no copy from its private memory is under way, and none begins. So a PE
//! that has failed may free its buffers while it unwinds. A loom model is in `models.rs`.

use crate::sync::{AtomicU32, Ordering, spin_or_yield};

/// Nobody may begin to copy.
const CLOSED: u32 = 1 << 31;

/// The number of the PEs that copy from one PE's private memory now. All zero bytes are the start.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Readers(AtomicU32);

/// A copy from the private memory of a PE, until it is dropped.
#[derive(Debug)]
#[must_use = "the copy is over when this is dropped"]
pub struct Reading<'a>(&'a Readers);

impl Readers {
    /// Begins a copy; `None` if the PE is closed.
    pub fn begin(&self) -> Option<Reading<'_>> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let reading = Reading(self);
        (before & CLOSED == 0).then_some(reading)
    }

    /// Lets no copy begin any more, and waits for those that are under way.
    pub fn close(&self) {
        let mut turns = 0;
        self.0.fetch_or(CLOSED, Ordering::Relaxed);
        // SYNC POINT readers: acquires that the copies are over.
        while self.0.load(Ordering::Acquire) != CLOSED {
            spin_or_yield(&mut turns);
        }
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        // SYNC POINT readers: releases the reads to the PE that closes.
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}
