//! The pending steps of the network.
//!
//! Invariant: in virtual time the earliest step is taken, and of steps with equal times the one that was
//! added first; in chaos any step may be taken, each with the same probability.

use super::random::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Steps with their times, in picoseconds.
pub(super) struct Pending<S> {
    in_order: BinaryHeap<Reverse<Timed<S>>>,
    /// Used instead of the heap in chaos.
    pool: Vec<(u64, S)>,
    chaos: bool,
    count: u64,
}

struct Timed<S> {
    time: u64,
    number: u64,
    step: S,
}

impl<S> Pending<S> {
    pub(super) fn new(chaos: bool) -> Pending<S> {
        Pending { in_order: BinaryHeap::new(), pool: Vec::new(), chaos, count: 0 }
    }

    pub(super) fn push(&mut self, time: u64, step: S) {
        if self.chaos {
            return self.pool.push((time, step));
        }
        self.count += 1;
        self.in_order.push(Reverse(Timed { time, number: self.count, step }));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.pool.is_empty()
    }

    /// The time of the earliest step. It is not used in chaos.
    pub(super) fn earliest(&self) -> Option<u64> {
        self.in_order.peek().map(|timed| timed.0.time)
    }

    pub(super) fn pop(&mut self, random: &mut Random) -> Option<(u64, S)> {
        if self.chaos {
            let count = self.pool.len();
            return (count > 0).then(|| self.pool.swap_remove(random.below(count)));
        }
        self.in_order.pop().map(|Reverse(timed)| (timed.time, timed.step))
    }
}

impl<S> PartialEq for Timed<S> {
    fn eq(&self, other: &Timed<S>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<S> Eq for Timed<S> {}

impl<S> PartialOrd for Timed<S> {
    fn partial_cmp(&self, other: &Timed<S>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<S> Ord for Timed<S> {
    fn cmp(&self, other: &Timed<S>) -> std::cmp::Ordering {
        (self.time, self.number).cmp(&(other.time, other.number))
    }
}
