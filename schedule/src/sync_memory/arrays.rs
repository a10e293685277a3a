//! Arrays of slots of one team, one for each operation, which are used in turn. An array is free again after
//! an additional synchronisation, or after a barrier.
//!
//! Invariant: all members use the same array for an operation, as they count the operations of the team
//! alike. An array is used again only when no member needs what is in it.

use super::{AGREES, ANNOUNCES, ARRAYS, FLAG_BITS, Mark, Plan, RELEASE_SLOTS, SyncCounts, array_slots};
use crate::schedule::{Rank, Slot, slots_max};
use std::collections::BTreeSet;

/// Bytes of a slot of an array: a word, and a mailbox.
const SLOT_BYTES: usize = 16 + crate::schedule::MAILBOX_BYTES;

/// A member's state of the arrays of a team.
#[derive(Clone, Debug)]
pub struct Arrays {
    n: usize,
    me: Rank,
    /// Number of slots of one array.
    slots: usize,
    /// The first slot of an array that is for agreements.
    first_of_agreements: usize,
    /// Whether the additional synchronisation frees the arrays; otherwise a barrier does.
    is_additional: bool,
    /// Number of operations admitted.
    admitted: u64,
    /// Number of operations that may still be admitted before a barrier.
    left: usize,
    /// Number of operations that are admitted and not over.
    open: usize,
    /// Whether each array is free.
    is_free: [bool; ARRAYS],
    releases: Vec<Release>,
    used: BTreeSet<usize>,
    counts: SyncCounts,
}

/// A dissemination of all members that frees an array, or all of them.
#[derive(Clone, Debug)]
struct Release {
    array: usize,
    stamp: u64,
    round: usize,
    is_sent: bool,
    frees_all: bool,
}

/// The array that an operation may use once it is admitted.
#[derive(Clone, Copy, Debug)]
pub struct ArrayLease {
    /// Its number.
    array: usize,
    /// The stamp of this use of it.
    stamp: u64,
}

impl Arrays {
    /// The arrays of a team of `n`, at rank `me`. `is_additional` is true if an additional synchronisation
    /// frees them, and false if barriers do.
    pub fn new(is_additional: bool, n: usize, me: Rank) -> Arrays {
        Arrays {
            n,
            me,
            slots: array_slots(n),
            first_of_agreements: slots_max(n),
            is_additional,
            admitted: 0,
            left: ARRAYS,
            open: 0,
            is_free: [true; ARRAYS],
            releases: Vec::new(),
            used: BTreeSet::new(),
            counts: SyncCounts::default(),
        }
    }

    /// The arrays of the first `n` members, when no operation is in progress.
    pub fn shrunk(&self, n: usize) -> Arrays {
        Arrays { n, releases: Vec::new(), ..self.clone() }
    }

    /// Admits the next operation of the team, if an array is free. Must be called in the order of
    /// operations.
    #[inline]
    pub fn admit(&mut self) -> Option<ArrayLease> {
        let array = (self.admitted % ARRAYS as u64) as usize;
        let is_room = if self.is_additional { self.is_free[array] } else { self.left > 0 };
        if !is_room {
            if !self.is_additional && self.open == 0 && self.releases.is_empty() {
                let stamp = self.admitted;
                self.releases.push(Release { array, stamp, round: 0, is_sent: false, frees_all: true });
            }
            return None;
        }
        self.is_free[array] = false;
        self.left = self.left.saturating_sub(1);
        self.open += 1;
        self.admitted += 1;
        Some(ArrayLease { array, stamp: self.admitted })
    }

    /// The place of the signal for a slot, without the bit that announces a place: where it goes at the
    /// receiver, and where the receiver expects it.
    #[inline]
    pub fn mark(&self, plan: &Plan, lease: ArrayLease, slot: Slot) -> Mark {
        let first = if plan.agreement.is_some() { self.first_of_agreements } else { 0 };
        let index = lease.array * self.slots + first + slot;
        Mark { index, word: lease.stamp << FLAG_BITS | plan.kind() }
    }

    /// Counts a signal that is sent.
    #[inline]
    pub fn signals(&mut self) {
        self.counts.signals += 1;
    }

    /// Whether a slot's word is the expected one.
    #[inline]
    pub fn has_come(&mut self, expected: Mark, found: u64) -> bool {
        let has_come = found & !ANNOUNCES == expected.word;
        if has_come {
            self.used.insert(expected.index);
        }
        has_come
    }

    /// Whether a slot's word is for the expected use of the slot, but of the other kind.
    #[inline]
    pub fn is_of_other_kind(expected: Mark, found: u64) -> bool {
        (found ^ expected.word) & !ANNOUNCES == AGREES
    }

    /// The slots in which any signal of an operation may arrive: all of its array.
    pub fn all_expected(&self, plan: &Plan, lease: ArrayLease) -> impl Iterator<Item = Mark> {
        let word = lease.stamp << FLAG_BITS | plan.kind();
        let slots = lease.array * self.slots..(lease.array + 1) * self.slots - RELEASE_SLOTS;
        slots.map(move |index| Mark { index, word })
    }

    /// An operation is over at this member.
    #[inline]
    pub fn end(&mut self, ArrayLease { array, stamp }: ArrayLease) {
        self.open -= 1;
        if self.is_additional {
            self.releases.push(Release { array, stamp, round: 0, is_sent: false, frees_all: false });
        }
    }

    /// All members have passed a barrier of the team, before which no member had an operation in progress on
    /// it. The barrier itself has used the last `own_arrays` arrays.
    #[inline]
    pub fn barrier_passed(&mut self, own_arrays: usize) {
        if !self.is_additional {
            self.left = ARRAYS - own_arrays;
        }
    }

    /// The marks that are due for the arrays now, with the members that they go to. `word_at` reads the word
    /// of a slot of this PE.
    pub fn chores(&mut self, word_at: &dyn Fn(usize) -> u64) -> Vec<(Rank, Mark)> {
        let (mut chores, mut over) = (Vec::new(), Vec::new());
        for release in &mut self.releases {
            while 1 << release.round < self.n {
                let first = release.array * self.slots + self.slots - RELEASE_SLOTS;
                let index = first + release.round;
                if !std::mem::replace(&mut release.is_sent, true) {
                    let to = (self.me + (1 << release.round)) % self.n;
                    chores.push((to, Mark { index, word: release.stamp }));
                }
                self.used.insert(index);
                // A later release of the same array cannot begin at another member before this release has
                // begun here, but its word may already have replaced the word of this release.
                if word_at(index) < release.stamp {
                    break;
                }
                release.round += 1;
                release.is_sent = false;
            }
            if 1 << release.round >= self.n {
                over.push((release.array, release.frees_all));
            }
        }
        self.releases.retain(|release| 1 << release.round < self.n);
        for (array, frees_all) in over {
            match frees_all {
                true => self.left = ARRAYS,
                false => self.is_free[array] = true,
            }
        }
        self.counts.chores += chores.len() as u64;
        chores
    }

    /// Whether no action for the arrays is left on this PE, as far as is known now.
    #[inline]
    pub fn is_at_rest(&self) -> bool {
        self.releases.is_empty()
    }

    /// The use of the arrays.
    pub fn counts(&self) -> SyncCounts {
        let slots = self.used.len() as u64;
        SyncCounts { slots, words: slots, bytes: slots * SLOT_BYTES as u64, ..self.counts }
    }
}
