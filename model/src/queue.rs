//! The pending events. Invariant: the earliest event comes first, and of events of one time the one that was
//! added first, so that a run has one order of events.

use crate::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events by time.
#[derive(Debug)]
pub struct Queue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    added: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Time,
    number: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Queue { heap: BinaryHeap::new(), added: 0 }
    }
}

impl<E> Queue<E> {
    /// Adds an event.
    #[inline]
    pub fn push(&mut self, at: Time, event: E) {
        self.heap.push(Reverse(Entry { at, number: self.added, event }));
        self.added += 1;
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }

    /// Whether no event is pending at `time` or before.
    #[inline]
    pub fn is_quiet_until(&self, time: Time) -> bool {
        self.heap.peek().is_none_or(|Reverse(entry)| entry.at > time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
