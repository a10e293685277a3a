//! Where the PEs of a node meet: two forms of a barrier in shared memory, and stamps to show data by.
//!
//! * [`Arrival`]: every PE has a word of its own that counts its arrivals, and looks at everybody's. One
//!   transfer of a cache line from the latest PE to the others; for PEs that all run at once.
//! * [`Meeting`]: one counter and one generation word. The last to arrive lets all go; for more PEs than
//!   cores, where the number of times that a PE must run counts more than the number of transfers.
//!
//! Invariant of both: a PE never is more than one round ahead of another, so counts need no reset and no
//! second copy. Loom models of both are in `models.rs`.

use crate::sync::{AtomicU32, AtomicU64, CacheLine, Ordering, fence};

/// A PE's count of arrivals, alone on its cache line. All zero bytes are the start.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Arrival {
    round: CacheLine<AtomicU64>,
}

impl Arrival {
    /// Says that this PE has arrived in `round`, and orders all it did before it: everything it wrote is
    /// visible to whoever sees the arrival, and its own later loads (of the sleepers' announcements) come
    /// after.
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
/// Two of them make a *board*, over which a PE shows data to others again and again: the owner raises the
/// board's stamp after it has written the data, and each reader a stamp of its own when it is done with
/// them, for which the owner waits before it writes the next.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Stamp(AtomicU64);

impl Stamp {
    /// Says that this PE has come to `number`: what it wrote before is there for who sees it, and what it
    /// read before it has read.
    #[inline(always)]
    pub fn raise(&self, number: u64) {
        // SYNC POINT stamp: releases what the owner has written and read before.
        self.0.store(number, Ordering::Release);
    }

    /// Whether the owner has come to `number`.
    #[inline(always)]
    pub fn has_reached(&self, number: u64) -> bool {
        self.number() >= number
    }

    /// How far the owner has come.
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
    /// Says that one more of `n_pes` has arrived in `round` (1, 2, ...). Returns whether it was the last,
    /// which has let everybody go and should wake the sleepers.
    #[inline]
    pub fn arrive(&self, n_pes: u32, round: u64) -> bool {
        // SYNC POINT meeting-arrive: releases what this PE did before to the next one to arrive.
        let before = self.arrived.fetch_add(1, Ordering::SeqCst);
        if before.wrapping_add(1) < n_pes {
            return false;
        }
        // SYNC POINT meeting-arrive: the chain of those exchanges has let the last acquire what all did.
        self.arrived.store(0, Ordering::Relaxed);
        // SYNC POINT meeting-leave: releases all of that, and the counter's reset, to those who leave.
        self.generation.store(round, Ordering::Release);
        // SYNC POINT doorbell: orders the change before this PE's look at the sleepers.
        fence(Ordering::SeqCst);
        true
    }

    /// Whether everybody has arrived in `round`.
    #[inline]
    pub fn is_over(&self, round: u64) -> bool {
        // SYNC POINT meeting-leave: acquires what all did before they arrived.
        self.generation.load(Ordering::Acquire) >= round
    }
}
