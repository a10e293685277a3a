//! The queue of the PEs that hold a lock or wait for it.
//!
//! A word on the lock's home PE names the last PE of the queue. A word on each PE, its node, has the next PE
//! in the queue and a bit that is set when it is this PE's turn. A waiting PE reads only its own node. Every
//! change of a word is an atomic operation, so the lock works over every provider. Source: Mellor-Crummey and
//! Scott, Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors (1991), the list-based
//! queueing lock.
//!
//! ```text
//! acquire    last: swap in me               release    node names the next PE: set its TURN
//!   was 0:   the lock is mine                 or else  last: from me to 0, free; or, if no longer me,
//!   was p:   node of p: set next = me                  wait until node names the next, set its TURN
//!            wait until my node has TURN      then     clear my node
//! ```
//!
//! Invariant: a PE is in the queue at most once. The PE ensures that by itself, because the words do not show
//! it: the PE behind it writes its number into the node only later. The node of a PE that is not in the queue
//! is 0. While a PE is in the queue, the bits of the next PE and the bit of the turn in its node are each set
//! once, by one PE. All words are 0 when the lock is free.

use crate::Pe;
use crate::array::view::View;
use pelago_core::base::error::Result;

/// Words of a lock on each PE: the last PE of the queue (used at the home PE), and the node.
pub(crate) const LOCK_WORDS: usize = 2;
/// The bit of a node that is set when it is this PE's turn. The other bits are the next PE's number plus 1,
/// or 0.
const TURN: u32 = 1 << 31;

/// The queue in the elements `last` and `last + 1` of every PE. The word of its last PE is at PE `home`.
#[derive(Clone, Copy)]
pub(crate) struct Queue<'a> {
    pub words: &'a View<'a, u32>,
    pub last: usize,
    pub home: Pe,
}

impl Queue<'_> {
    /// Waits until this PE, which is not in the queue, holds the lock.
    #[track_caller]
    pub fn acquire(&self) -> Result<()> {
        let before = self.words.swap(self.home, self.last, self.me())?;
        if let Some(last) = pe_of(before) {
            self.words.or(last, self.node(), self.me())?;
            self.words.local().wait_until(self.node(), |node| node & TURN != 0);
        }
        Ok(())
    }

    /// Takes the lock if the queue is empty, and returns whether this PE holds it now.
    pub fn try_acquire(&self) -> Result<bool> {
        Ok(self.words.compare_swap(self.home, self.last, 0, self.me())? == 0)
    }

    /// Passes the lock, which this PE holds, to the next PE, or frees it.
    #[track_caller]
    pub fn release(&self) -> Result<()> {
        let mut node = self.words.local().get(self.node());
        if pe_of(node & !TURN).is_none() {
            if self.words.compare_swap(self.home, self.last, self.me(), 0)? == self.me() {
                return self.leave(node);
            }
            // Another PE is behind this one and will write its number into the node.
            node = self.words.local().wait_until(self.node(), |node| node & !TURN != 0);
        }
        if let Some(next) = pe_of(node & !TURN) {
            // A fetching atomic, so that the turn has been delivered at return, even if this PE makes no call
            // afterwards.
            self.words.fetch_or(next, self.node(), TURN)?;
        }
        self.leave(node)
    }

    /// Clears the own node, which no other PE writes to any more.
    fn leave(&self, node: u32) -> Result<()> {
        if node != 0 {
            // A fetching atomic, so that it is complete before this PE enters the queue again.
            self.words.swap(self.words.region().my_rank(), self.node(), 0)?;
        }
        Ok(())
    }

    fn node(&self) -> usize {
        self.last + 1
    }

    /// This PE as it is encoded in the words.
    fn me(&self) -> u32 {
        self.words.region().my_rank() as u32 + 1
    }
}

/// The PE that a word names.
fn pe_of(word: u32) -> Option<Pe> {
    word.checked_sub(1).map(|pe| pe as Pe)
}
