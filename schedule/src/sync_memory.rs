//! The memory that scheduled collectives synchronise on: the slot of a member that a signal goes to, and the
//! time at which the slot may be used again. Source: Welch and Venkata, On Synchronisation and Memory Reuse
//! in OpenSHMEM, which describes the three strategies.
//!
//! * [`Arrays`]: each operation of a team has an array of slots for itself, one of [`ARRAYS`] that are used
//!   in turn. An array is free again after an additional synchronisation of all members on which no member
//!   blocks (a dissemination, started when the operation is over at this member), or, in the other
//!   strategy, at the next barrier of the team; if the arrays run out before that, the members perform a
//!   barrier themselves.
//! * [`PairMemory`]: each ordered pair of PEs has [`PAIR_SLOTS`] slots at the receiver, for the signals of
//!   all teams that contain both. Every signal carries the number of signals of the other direction that
//!   its sender has taken, which frees their slots; a receiver that sends no signal for a long time
//!   acknowledges with a word of its own. The algorithms determine which pairs exist, so the three pairwise
//!   strategies differ in the algorithms that are chosen.
//!
//! Invariant: a signal is written to a slot only after the slot's former contents were taken, and no word is
//! ever reset. All members give the same numbers to operations and to the signals of each pair in a team, as
//! they start the operations of a team in the same order and know the schedules.

mod arrays;
#[cfg(test)]
mod model;
mod pairs;

pub use arrays::{ArrayLease, Arrays};
pub use pairs::{Arrived, Data, MailboxBytes, OtherKind, PairLease, PairMark, PairMemory, ReceivedSlots};

use crate::schedule::{Buffer, Place, Rank, Schedule, Slot, Step, slots_max};
use std::collections::HashMap;

/// The rule by which a slot may be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Arrays of slots that are free again after an additional synchronisation, on which no member blocks.
    Additional,
    /// Arrays of slots that the next barrier frees.
    Barrier,
    /// Slots of each ordered pair of PEs, free again when the receiver has acknowledged them.
    Pairs,
}

/// Number of arrays of a member of a team.
pub const ARRAYS: usize = 8;
/// Number of slots of an ordered pair at the receiver.
pub const PAIR_SLOTS: usize = 8;
/// Bytes of a slot of a pair: its word, and a datum that comes with the signal.
pub const PAIR_SLOT_BYTES: usize = 16;
/// Number of slots of an array for the synchronisation that frees it: rounds of a dissemination.
const RELEASE_SLOTS: usize = 40;

/// The largest team in which each member signals to each other member in an agreement; in larger teams an
/// agreement is a dissemination.
pub const ALL_SIGNAL_MAX: usize = 8;

/// Number of slots of an array for signals of agreements. If members make different calls, an agreement can
/// meet a user's operation; with slots of their own neither overwrites the other's signals, and the two can
/// be told apart.
const fn agreement_slots(n: usize) -> usize {
    // Two for each round of a dissemination.
    if n <= ALL_SIGNAL_MAX { ALL_SIGNAL_MAX } else { 2 * (1 + (n - 1).ilog2() as usize) }
}

const fn array_slots(n: usize) -> usize {
    slots_max(n) + agreement_slots(n) + RELEASE_SLOTS
}

/// Slots in the block of a member of a team of `n`. Slots of pairs belong to no team.
#[inline]
pub fn team_slots(reuse: Reuse, n: usize) -> usize {
    match reuse {
        Reuse::Additional | Reuse::Barrier => ARRAYS * array_slots(n),
        Reuse::Pairs => 0,
    }
}

/// The lowest bit of a word: the signal announces a place. A signal without the bit is never taken for an
/// announcement, even if members call different operations.
pub const ANNOUNCES: u64 = 1;
/// The next bit: the signal belongs to an agreement. A signal without the bit is never taken for a signal of
/// an agreement, nor the other way round, so that no user's operation is taken for an agreement.
const AGREES: u64 = 2;
/// Number of bits of a word of an array below the stamp.
const FLAG_BITS: u32 = 2;

/// The destination of a signal, and the word that is written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The slot's index in the receiver's block.
    pub index: usize,
    /// The word that is written there.
    pub word: u64,
}

/// The signals of a schedule between this rank and another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partner {
    /// The other rank.
    pub rank: Rank,
    /// The number of signals to it.
    pub sent: u32,
    /// The number of signals from it.
    pub awaited: u32,
}

/// A schedule with the data that synchronisation needs.
#[derive(Debug)]
pub struct Plan {
    /// The schedule.
    pub schedule: Schedule,
    /// The name of the algorithm that has written it, if it is known.
    pub algorithm: &'static str,
    /// The description of this PE's call, if the operation is an agreement.
    pub agreement: Option<String>,
    /// The ranks that it signals, or whose signals it awaits.
    pub partners: Vec<Partner>,
    /// For each step that signals or waits: the partner, and the number of the signal in its pair.
    links: Vec<(u32, u32)>,
    /// For each mailbox that a step reads: the number of bytes that are read of it.
    pub mailboxes: HashMap<Slot, usize>,
}

impl Plan {
    /// The plan of a schedule that the algorithm with this name has written.
    pub fn by(self, algorithm: &'static str) -> Plan {
        Plan { algorithm, ..self }
    }

    /// Analyses a schedule.
    pub fn new(schedule: Schedule) -> Plan {
        let mut partners = Vec::<Partner>::new();
        let mut numbers = HashMap::<Rank, u32>::new();
        let mut links = vec![(0, 0); schedule.steps.len()];
        for (at, step) in schedule.steps.iter().enumerate() {
            let rank = match *step {
                Step::Put { to, signal: Some(_), .. } | Step::Signal { to, .. } => to,
                Step::Wait { of, .. } => of,
                _ => continue,
            };
            let number = *numbers.entry(rank).or_insert_with(|| {
                partners.push(Partner { rank, sent: 0, awaited: 0 });
                partners.len() as u32 - 1
            });
            let partner = &mut partners[number as usize];
            let is_wait = matches!(step, Step::Wait { .. });
            let count = if is_wait { &mut partner.awaited } else { &mut partner.sent };
            links[at] = (number, *count);
            *count += 1;
        }
        let mut mailboxes = HashMap::<Slot, usize>::new();
        for step in &schedule.steps {
            for place in places(step).into_iter().flatten() {
                let Some(slot) = mailbox(place) else { continue };
                let end = mailboxes.entry(slot).or_default();
                *end = (*end).max(place.offset + bytes_of(step));
            }
        }
        Plan { schedule, algorithm: "", agreement: None, partners, links, mailboxes }
    }

    /// The same plan for an agreement, in which `said` describes this PE's call.
    pub fn of_agreement(self, said: String) -> Plan {
        Plan { agreement: Some(said), ..self }
    }

    /// The bit of its signals that distinguishes agreements from other operations.
    #[inline]
    fn kind(&self) -> u64 {
        if self.agreement.is_some() { AGREES } else { 0 }
    }
}

/// The places in this rank's memory that a step refers to.
fn places(step: &Step) -> [Option<Place>; 3] {
    match *step {
        Step::Put { from, .. } => [Some(from), None, None],
        Step::Get { into, .. } => [Some(into), None, None],
        Step::Copy { from, into, .. } | Step::CopyStrided { from, into, .. } => {
            [Some(from), Some(into), None]
        }
        Step::Reduce { left, right, into, .. } => [Some(left), Some(right), Some(into)],
        _ => [None; 3],
    }
}

/// The bytes that a step takes from a place, from its first to its last.
fn bytes_of(step: &Step) -> usize {
    match *step {
        Step::Put { bytes, .. } | Step::Copy { bytes, .. } | Step::Reduce { bytes, .. } => bytes,
        Step::CopyStrided { from_stride, block, count, .. } if count > 0 => (count - 1) * from_stride + block,
        _ => 0,
    }
}

fn mailbox(place: Place) -> Option<Slot> {
    match place.buffer {
        Buffer::Mailbox(slot) => Some(slot),
        _ => None,
    }
}

/// Statistics of the use of the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncCounts {
    /// Signals of operations.
    pub signals: u64,
    /// Messages for the memory itself: releases and acknowledgements.
    pub chores: u64,
    /// Slots of this PE that were ever signalled.
    pub slots: u64,
    /// Words of this PE that were ever synchronised on: those of the slots, and acknowledgements.
    pub words: u64,
    /// Bytes of this PE in use: those words, and the memory for data that came with signals.
    pub bytes: u64,
    /// Whether the memory belongs to pairs of PEs: then these are the counts of this PE in all its teams.
    pub is_of_pairs: bool,
}
