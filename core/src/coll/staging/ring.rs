//! The ring buffer for the messages of broadcasts: which units a message gets, and when they are free again.
//!
//! All members count alike, as all take part in all broadcasts and meetings.

use pelago_fabric::sync::{AtomicU64, Ordering};

/// The largest number of nodes for which the last roots are recorded.
const ROOT_NODES_MAX: usize = 64;

/// The ring buffer: unit u lies at the place u modulo the size.
pub struct BroadcastRing {
    /// The number of units.
    size: u64,
    /// Units that messages were given, since the start.
    given: AtomicU64,
    /// All receivers have read the units below this number.
    read: AtomicU64,
    /// For each node, the units that were given before the last message of a root there. Empty if there are
    /// more than [`ROOT_NODES_MAX`] nodes.
    before_roots: Box<[AtomicU64]>,
}

impl BroadcastRing {
    /// A ring of `size` units of a team on this many nodes.
    pub fn new(size: u64, nodes: usize) -> BroadcastRing {
        let noted = if nodes <= ROOT_NODES_MAX { nodes } else { 0 };
        let before_roots = (0..noted).map(|_| AtomicU64::new(0)).collect();
        BroadcastRing { size, given: AtomicU64::new(0), read: AtomicU64::new(0), before_roots }
    }

    /// The same for a smaller team that continues with the blocks of a larger one, whose ring is `before`.
    pub fn going_on(self, before: &BroadcastRing) -> BroadcastRing {
        let go_on = |from: &AtomicU64| AtomicU64::new(from.load(Ordering::Relaxed));
        BroadcastRing { given: go_on(&before.given), read: go_on(&before.read), ..self }
    }

    /// Gives units to the message of a root on node `root`. Returns the place of the first one; `None` if all
    /// members must meet before, as the units may not be free.
    pub fn give(&self, root: usize, units: u64) -> Option<u64> {
        let (given, first) = (self.given.load(Ordering::Relaxed), self.first(units));
        debug_assert!(units <= self.size, "{units} units of {}", self.size);
        // Units below this number must have been read. Units that are skipped at the end have no message.
        let needed = (first + units).saturating_sub(self.size).min(given);
        if needed > self.read.load(Ordering::Relaxed) {
            // A root has read all messages before its own, and every member has received its message.
            let read = self.before_roots.iter().map(|before| before.load(Ordering::Relaxed)).min();
            if needed > read.unwrap_or(0) {
                return None;
            }
            self.read.store(read.unwrap_or(0), Ordering::Relaxed);
        }
        self.given.store(first + units, Ordering::Relaxed);
        if let Some(before) = self.before_roots.get(root) {
            before.store(first, Ordering::Relaxed);
        }
        Some(first % self.size)
    }

    /// The first unit of the next message: none goes beyond the end of the ring.
    fn first(&self, units: u64) -> u64 {
        let given = self.given.load(Ordering::Relaxed);
        let left = self.size - given % self.size;
        if units <= left { given } else { given + left }
    }

    /// The places where the next message may begin.
    pub fn next_places(&self) -> [u64; 2] {
        [self.given.load(Ordering::Relaxed) % self.size, 0]
    }

    /// All members have come to an operation that this one has passed: they have read all messages.
    pub fn have_met(&self) {
        self.read.store(self.given.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The messages of a model, in the order of their broadcasts.
    struct Message {
        root: usize,
        places: std::ops::Range<u64>,
    }

    proptest! {
        /// A message was surely read if all have met since, or if each node has had a root since.
        #[test]
        fn units_are_given_again_only_after_they_were_read(
            size in 8..40_u64, nodes in 1..5_usize,
            messages in proptest::collection::vec((0..5_usize, 1..9_u64, prop::bool::weighted(0.1)), 1..200),
        ) {
            let (ring, mut unread) = (BroadcastRing::new(size, nodes), Vec::<Message>::new());
            for (root, units, meets) in messages {
                let root = root % nodes;
                if meets {
                    ring.have_met();
                    unread.clear();
                }
                let place = ring.give(root, units).unwrap_or_else(|| {
                    ring.have_met();
                    unread.clear();
                    ring.give(root, units).expect("all units are free after a meeting")
                });
                let places = place..place + units;
                prop_assert!(places.end <= size, "{places:?} of {size}");
                for (i, old) in unread.iter().enumerate() {
                    let is_free = old.places.end <= places.start || places.end <= old.places.start;
                    let has_root = |node| unread[i + 1..].iter().any(|later| later.root == node);
                    let is_read = (0..nodes).all(has_root);
                    prop_assert!(is_free || is_read, "{places:?} while {:?} may be unread", old.places);
                }
                unread.push(Message { root, places });
            }
        }

        #[test]
        fn a_message_begins_at_one_of_two_places(
            size in 8..40_u64, messages in proptest::collection::vec(1..9_u64, 1..100),
        ) {
            let ring = BroadcastRing::new(size, 2);
            for units in messages {
                let places = ring.next_places();
                let place = ring.give(0, units).or_else(|| {
                    ring.have_met();
                    ring.give(0, units)
                });
                prop_assert!(places.contains(&place.unwrap()));
            }
        }
    }

    #[test]
    fn short_messages_of_one_root_meet_once_in_an_area() {
        let (ring, mut meetings) = (BroadcastRing::new(16, 2), 0);
        for _ in 0..160 {
            if ring.give(1, 1).is_none() {
                ring.have_met();
                meetings += 1;
                assert!(ring.give(1, 1).is_some());
            }
        }
        assert_eq!(meetings, 9);
        let by_turns = BroadcastRing::new(16, 2);
        assert!((0..160).all(|i| by_turns.give(i % 2, 1).is_some()), "roots on both nodes need no meeting");
    }
}
