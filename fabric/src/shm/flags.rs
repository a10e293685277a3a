//! Two forms of a barrier in shared memory, and stamps that publish data.
//!
//! * [`Arrival`]: every PE has a word that counts its arrivals, and reads the words of all PEs. It takes one
//!   transfer of a cache line from the latest PE to the others. It is for PEs that all run at once.
//! * [`Meeting`]: one counter and one generation word. The last PE to arrive releases all others. It is for
//!   more PEs than cores, where the number of times that a PE must run matters more than the number of
//!   transfers.
//!
//! Invariant of both: a PE is never more than one round ahead of another, so counts need no reset and no
//! second copy. Loom models of both are in `models.rs`.

use crate::sync::{AtomicU32, AtomicU64, CacheLine, Ordering, fence};

/// A PE's count of arrivals, alone on its cache line. All zero bytes are the start.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Arrival {
    round: CacheLine<AtomicU64>,
}

impl Arrival {
    /// Stores that this PE has arrived in `round`, after all that it did before: everything it wrote is
    /// visible to a PE that sees the arrival, and its own later loads (of the sleepers' announcements) are
    /// ordered behind it.
    #[inline]
    pub fn arrive(&self, round: u64) {
        // SYNC POINT arrival: releases what this PE did before.
        self.round.store(round, Ordering::Release);
        // SYNC POINT doorbell: orders the arrival before this PE's look at the sleepers.
        fence(Ordering::SeqCst);
    }

    /// Whether this PE has arrived in `round`.
    #[inline]
    pub fn has_arrived(&self, round: u64) -> bool {
        // SYNC POINT arrival: acquires what the PE did before it arrived.
        self.round.load(Ordering::Acquire) >= round
    }
}

/// A number that one PE raises for others to see. All zero bytes are the start.
///
/// Two of them guard a staging slot, by which a PE publishes data to others repeatedly. The owner raises the
/// stamp of the slot after it has written the data. Each reader raises a stamp of its own when it has read
/// them. The owner waits for these stamps before it writes the next data.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Stamp(AtomicU64);

impl Stamp {
    /// Raises the stamp to `number`. A PE that sees it sees all that this PE wrote before, and the earlier
    /// reads of this PE are complete.
    #[inline(always)]
    pub fn raise(&self, number: u64) {
        // SYNC POINT stamp: releases what the owner has written and read before.
        self.0.store(number, Ordering::Release);
    }

    /// Whether the owner has reached `number`.
    #[inline(always)]
    pub fn has_reached(&self, number: u64) -> bool {
        self.number() >= number
    }

    /// The number that the owner has reached.
    #[inline(always)]
    pub fn number(&self) -> u64 {
        // SYNC POINT stamp: acquires what the owner had written and read before.
        self.0.load(Ordering::Acquire)
    }
}

/// A counter and a generation, each on a cache line of its own. All zero bytes are the start.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Meeting {
    arrived: CacheLine<AtomicU32>,
    generation: CacheLine<AtomicU64>,
}

impl Meeting {
    /// Counts one more arrival of `n_pes` in `round` (1, 2, ...). Returns whether it was the last one. It has
    /// released all PEs, and its caller should wake the sleepers.
    #[inline]
    pub fn arrive(&self, n_pes: u32, round: u64) -> bool {
        // SYNC POINT meeting-arrive: releases what this PE did before to the next one to arrive.
        let before = self.arrived.fetch_add(1, Ordering::SeqCst);
        if before.wrapping_add(1) < n_pes {
            return false;
        }
        // SYNC POINT meeting-arrive: by the chain of these exchanges the last PE acquires what all PEs did.
        self.arrived.store(0, Ordering::Relaxed);
        // SYNC POINT meeting-leave: releases all of that, and the counter's reset, to the PEs that leave.
        self.generation.store(round, Ordering::Release);
        // SYNC POINT doorbell: orders the change before this PE's look at the sleepers.
        fence(Ordering::SeqCst);
        true
    }

    /// Whether all PEs have arrived in `round`.
    #[inline]
    pub fn is_over(&self, round: u64) -> bool {
        // SYNC POINT meeting-leave: acquires what all PEs did before they arrived.
        self.generation.load(Ordering::Acquire) >= round
    }
}
