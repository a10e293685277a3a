//! The pending events: a radix heap. Invariant: the earliest event comes first, and of events of one time the
//! one that was added first, so that a run has one order of events; no event is added before the time of the
//! last one that was taken.
//!
//! Source: Ahuja, Mehlhorn, Orlin, Tarjan 1990. Events lie in buckets by the highest bit in which their time
//! differs from the present one. Events of one time are always in one bucket and keep their order there.

use crate::time::Time;

/// The buckets: that of the present time, and one for each bit.
const BUCKETS: usize = Time::BITS as usize + 1;

/// Events by time.
#[derive(Debug)]
pub struct Queue<E> {
    buckets: [Bucket<E>; BUCKETS],
    /// The buckets that have events, a bit each.
    used: u128,
    /// The time of the event that was taken last.
    now: Time,
    /// The events of the present time that were taken.
    taken: usize,
}

#[derive(Debug)]
struct Bucket<E> {
    first: Time,
    events: Vec<(Time, E)>,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        let buckets = std::array::from_fn(|_| Bucket { first: Time::MAX, events: Vec::new() });
        Queue { buckets, used: 0, now: 0, taken: 0 }
    }
}

impl<E: Copy> Queue<E> {
    /// Adds an event.
    #[inline]
    pub fn push(&mut self, at: Time, event: E) {
        debug_assert!(at >= self.now, "an event of the past");
        let number = (Time::BITS - (at ^ self.now).leading_zeros()) as usize;
        let bucket = &mut self.buckets[number];
        bucket.first = bucket.first.min(at);
        bucket.events.push((at, event));
        self.used |= 1 << number;
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        if self.used & 1 == 0 && !self.go_on() {
            return None;
        }
        let present = &mut self.buckets[0];
        let next = present.events[self.taken];
        self.taken += 1;
        if self.taken == present.events.len() {
            present.events.clear();
            present.first = Time::MAX;
            (self.taken, self.used) = (0, self.used & !1);
        }
        Some(next)
    }

    /// Goes on to the time of the next event, and distributes its bucket anew; false if there is none.
    fn go_on(&mut self) -> bool {
        if self.used == 0 {
            return false;
        }
        let number = self.used.trailing_zeros() as usize;
        let mut events = std::mem::take(&mut self.buckets[number].events);
        self.now = std::mem::replace(&mut self.buckets[number].first, Time::MAX);
        self.used &= !(1 << number);
        for (at, event) in events.drain(..) {
            self.push(at, event);
        }
        // The memory stays with the bucket.
        self.buckets[number].events = events;
        true
    }

    /// Whether no event is pending at `time` or before.
    #[inline]
    pub fn is_quiet_until(&self, time: Time) -> bool {
        self.used == 0 || self.buckets[self.used.trailing_zeros() as usize].first > time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    #[test]
    fn events_of_one_time_keep_their_order() {
        let mut queue = Queue::default();
        for (at, event) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b')] {
            queue.push(at, event);
        }
        assert!(queue.is_quiet_until(2) && !queue.is_quiet_until(3));
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [(3, 'a'), (3, 'b'), (5, 'c'), (5, 'd')]);
    }

    /// Beside a heap of times and numbers: events are added and taken in turns, many at one time.
    #[test]
    fn the_order_is_that_of_times_and_then_of_numbers() {
        let (mut queue, mut heap, mut now, mut seed) = (Queue::default(), BinaryHeap::new(), 0, 7_u64);
        for number in 0..100_000_u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let distance = (seed >> 40) >> (seed >> 33 & 31);
            queue.push(now + distance, number);
            heap.push(Reverse((now + distance, number)));
            for _ in 0..(seed >> 20 & 3).min(2) * (number % 2) {
                let expected = heap.pop().map(|Reverse(entry)| entry);
                assert!(expected.is_none_or(|(at, _)| at == 0 || queue.is_quiet_until(at - 1)));
                assert!(expected.is_none_or(|(at, _)| !queue.is_quiet_until(at)));
                assert_eq!(queue.pop(), expected);
                now = expected.map_or(now, |(at, _)| at);
            }
        }
        assert!(heap.len() > 1000, "the queue was nearly empty all the time");
        while let Some(Reverse(expected)) = heap.pop() {
            assert_eq!(queue.pop(), Some(expected));
        }
        assert_eq!((queue.pop(), queue.is_quiet_until(u64::MAX)), (None, true));
    }
}
