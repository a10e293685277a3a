//! Barriers: the world's, and a yardstick that only yields. Invariant of the yardstick: the counter holds the
//! number of arrivals of all rounds; who completes a round publishes its number.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use pelago::Result;
use pelago::prelude::*;
use pelago::sync::{AtomicU64, Ordering};

use super::ensemble::Part;

/// A PE that yields for so long in one barrier says so and ends.
const LIMIT: Duration = Duration::from_secs(60);
/// Yields between two looks at the clock.
const YIELDS_PER_LOOK: u32 = 1 << 16;

/// The world's barrier.
pub(super) fn barriers<'a>(world: &'a World) -> Part<'a> {
    Box::new(move |count| {
        (0..count).for_each(|_| world.barrier());
        Ok(())
    })
}

/// A central counter, at which all but the last to arrive yield their core until the round is over.
pub(super) struct YieldBarrier<'w> {
    words: Symmetric<'w, u64>,
    round: Cell<u64>,
}

impl<'w> YieldBarrier<'w> {
    /// Collective.
    ///
    /// # Errors
    /// If the symmetric heap has no room for a few words.
    pub(super) fn new(world: &'w World) -> Result<Self> {
        Ok(YieldBarrier { words: world.alloc_zeroed(Self::WORDS)?, round: Cell::new(0) })
    }

    /// The two words stand on cache lines of their own.
    const WORDS: usize = 16;

    /// This barrier again and again.
    pub(super) fn barriers<'a>(&'a self) -> Part<'a> {
        Box::new(move |count| {
            (0..count).for_each(|_| self.meet());
            Ok(())
        })
    }

    fn meet(&self) {
        let n_pes = self.words.world().n_pes() as u64;
        let (arrivals, over) = (self.word(0), self.word(Self::WORDS / 2));
        let round = self.round.get() + 1;
        self.round.set(round);
        // SYNC POINT yield-barrier: releases what this PE did, and acquires what those before it did.
        if arrivals.fetch_add(1, Ordering::AcqRel) + 1 == n_pes * round {
            // SYNC POINT yield-barrier: releases what all did.
            over.store(round, Ordering::Release);
            return;
        }
        let mut yields = 0u32;
        let mut start = None;
        // SYNC POINT yield-barrier: acquires what all did.
        while over.load(Ordering::Acquire) < round {
            thread::yield_now();
            yields = yields.wrapping_add(1);
            if yields.is_multiple_of(YIELDS_PER_LOOK) {
                let since = start.get_or_insert_with(Instant::now);
                let me = self.words.world().my_pe();
                assert!(since.elapsed() < LIMIT, "PE {me} has waited {LIMIT:?} in yield barrier {round}");
            }
        }
    }

    /// A word of PE 0's part.
    fn word(&self, index: usize) -> &AtomicU64 {
        let start = self.words.ptr(0).expect("the PEs of a node map each other");
        assert!(index < self.words.len(), "the barrier's words are allocated");
        // SAFETY: the word lies in the array, which lives as long as `self`; all PEs reach it as an atomic
        // only.
        unsafe { AtomicU64::from_ptr(start.add(index)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before each barrier a PE raises its word at all others; after it all must be raised.
    #[test]
    fn nobody_leaves_before_all_have_come() {
        let seen = spmd(4, |world| {
            let (me, n) = (world.my_pe(), world.n_pes());
            let arrived = world.alloc_zeroed::<u64>(n).unwrap();
            let barrier = YieldBarrier::new(world).unwrap();
            let mut part = barrier.barriers();
            for round in 1..=50 {
                (0..n).for_each(|pe| arrived.p(pe, me, round).unwrap());
                part(1).unwrap();
                if arrived.local().to_vec().iter().any(|value| *value < round) {
                    return round;
                }
            }
            0
        });
        assert_eq!(seen.unwrap(), [0; 4]);
    }
}
