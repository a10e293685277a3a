//! The memory that scheduled collectives synchronise on: the slot of a member that a signal goes to, and the
//! time at which the slot may be used again. Source: Welch and Venkata, On Synchronisation and Memory Reuse
//! in OpenSHMEM, which describes the three strategies.
//!
//! * *Arrays*: each operation has an array of slots for itself, one of [`ARRAYS`] that are used in turn. An
//!   array is free again after an additional synchronisation of all members on which no member blocks (a
//!   dissemination, started when the operation is over at this member), or, in the other strategy, at the
//!   next barrier of the team; if the arrays run out before that, the members perform a barrier themselves.
//! * *Pairwise*: each ordered pair of members has [`PAIR_SLOTS`] slots at the receiver, used in turn. Every
//!   signal carries the number of signals of the other direction that its sender has consumed, which frees
//!   their slots; a receiver that sends no signal for a long time acknowledges with a word of its own. The
//!   algorithms determine which pairs exist, so the three pairwise strategies differ in the algorithms that
//!   are chosen.
//!
//! Invariant: a signal is written to a slot only after the slot's former contents were consumed, and no word
//! is ever reset: each use has a stamp of its own, for which the receiver waits. All members give the same
//! numbers to operations and to the signals of each pair, as they start operations in the same order and know
//! the schedules.

use crate::schedule::{Buffer, Place, Rank, Schedule, Slot, Step, slots_max};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// The rule by which a slot may be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Arrays of slots that are free again after an additional synchronisation, on which no member blocks.
    Additional,
    /// Arrays of slots that the next barrier frees.
    Barrier,
    /// Slots of each ordered pair, free again when the receiver has acknowledged them.
    Pairs,
}

/// Number of arrays of a member of a team.
pub const ARRAYS: usize = 8;
/// Number of slots of an ordered pair at the receiver.
pub const PAIR_SLOTS: usize = 8;
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

/// Slots in a member's block, for a team of `n`.
#[inline]
pub fn slots(reuse: Reuse, n: usize) -> usize {
    match reuse {
        Reuse::Additional | Reuse::Barrier => ARRAYS * array_slots(n),
        Reuse::Pairs => n * PAIR_SLOTS,
    }
}

/// The lowest bit of a word: the signal announces a place. A signal without the bit is never taken for an
/// announcement, even if members call different operations.
pub const ANNOUNCES: u64 = 1;
/// The next bit: the signal belongs to an agreement. A signal without the bit is never taken for a signal of
/// an agreement, nor the other way round, so that no user's operation is taken for an agreement.
const AGREES: u64 = 2;
/// Number of bits of a word below the stamp, or below the number of consumed signals.
const FLAG_BITS: u32 = 2;

/// The destination of a signal, and the word that is written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The slot's index in the receiver's block.
    pub index: usize,
    /// The word that is written there.
    pub word: u64,
}

/// A schedule with the data that synchronisation needs.
#[derive(Debug)]
pub struct Plan {
    /// The schedule.
    pub schedule: Schedule,
    /// The description of this PE's call, if the operation is an agreement.
    pub agreement: Option<String>,
    /// For each step that signals or waits: the number of the signal in its pair.
    ordinals: Vec<u32>,
    /// The number of signals to each rank.
    sent: HashMap<Rank, u32>,
    /// The number of signals from each rank.
    awaited: HashMap<Rank, u32>,
    /// For each mailbox: the step that waits for it, and the rank that it waits for.
    pub mailboxes: HashMap<Slot, (usize, Rank)>,
    /// After each step, and after the completion of all steps: the waits whose slots are consumed, by their
    /// steps.
    pub consumed_after: Vec<Vec<u32>>,
}

impl Plan {
    /// Analyses a schedule.
    pub fn new(schedule: Schedule) -> Plan {
        let (mut sent, mut awaited) = (HashMap::new(), HashMap::new());
        let steps = schedule.steps.len();
        let (mut ordinals, mut last_use) = (vec![0; steps], HashMap::<Slot, usize>::new());
        let next = |counts: &mut HashMap<Rank, u32>, rank: Rank| {
            let count = counts.entry(rank).or_insert(0);
            *count += 1;
            *count - 1
        };
        for (at, step) in schedule.steps.iter().enumerate() {
            ordinals[at] = match *step {
                Step::Put { to, signal: Some(_), .. } | Step::Signal { to, .. } => next(&mut sent, to),
                Step::Wait { of, .. } => next(&mut awaited, of),
                _ => 0,
            };
            for place in places(step).into_iter().flatten() {
                if let Buffer::Mailbox(slot) = place.buffer {
                    last_use.insert(slot, at);
                }
            }
            // A put may read its source until it is complete.
            if let Step::Put { from: Place { buffer: Buffer::Mailbox(slot), .. }, .. } = *step {
                last_use.insert(slot, steps);
            }
        }
        let mut consumed_after = vec![Vec::new(); steps + 1];
        let mut mailboxes = HashMap::new();
        for (at, step) in schedule.steps.iter().enumerate() {
            if let Step::Wait { of, slot } = *step {
                mailboxes.insert(slot, (at, of));
                let last = last_use.get(&slot).copied().unwrap_or(at).max(at);
                consumed_after[last].push(at as u32);
            }
        }
        Plan { schedule, agreement: None, ordinals, sent, awaited, mailboxes, consumed_after }
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

/// The slots that an operation may use once it is admitted.
#[derive(Debug)]
pub enum Lease {
    /// An array of slots.
    Array {
        /// Its number.
        array: usize,
        /// The stamp of this use of it.
        stamp: u64,
    },
    /// Slots of pairs.
    Pairs {
        /// For each rank, the number of the first signal to it.
        sent: HashMap<Rank, u64>,
        /// For each rank, the number of the first signal from it.
        awaited: HashMap<Rank, u64>,
    },
}

/// An action of this PE for the memory itself, independent of any operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chore {
    /// Write a mark to a slot of a member.
    Mark {
        /// The member.
        to: Rank,
        /// The slot and the word.
        mark: Mark,
    },
    /// Write this word to the place where a member expects acknowledgements from this PE.
    Acknowledge {
        /// The member.
        to: Rank,
        /// The number of its signals that are consumed.
        word: u64,
    },
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
}

/// A member's state of the memory of a team.
#[derive(Debug)]
pub enum SyncMemory {
    /// By arrays of slots.
    Arrays(Arrays),
    /// By slots of pairs.
    Pairs(Pairs),
}

/// The strategies with arrays.
#[derive(Debug)]
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
#[derive(Debug)]
struct Release {
    array: usize,
    stamp: u64,
    round: usize,
    is_sent: bool,
    frees_all: bool,
}

/// The strategies with pairs.
#[derive(Debug)]
pub struct Pairs {
    me: Rank,
    pairs: HashMap<Rank, Pair>,
    /// Pairs with signals that this PE must acknowledge.
    owed: BTreeSet<Rank>,
    counts: SyncCounts,
}

/// The signals between this PE and another member.
#[derive(Debug, Default)]
struct Pair {
    /// Number of signals to it that have a number.
    sent: u64,
    /// Number of signals to it that it has acknowledged as consumed.
    acknowledged: u64,
    /// Number of signals from it that have a number.
    awaited: u64,
    /// Number of signals from it that are consumed here, without a gap.
    consumed: u64,
    /// The numbers of those that are consumed beyond a gap.
    beyond: BTreeSet<u64>,
    /// The number of consumed signals that it was told.
    told: u64,
}

impl Pair {
    /// Reads the lower half of a word: the number of consumed signals, modulo 2^30.
    fn hear(&mut self, word: u64) {
        let ahead =
            (word as u32 >> FLAG_BITS).wrapping_sub(self.acknowledged as u32) & (u32::MAX >> FLAG_BITS);
        if ahead <= PAIR_SLOTS as u32 {
            self.acknowledged += u64::from(ahead);
        }
    }
}

impl SyncMemory {
    /// The memory of rank `me` of a team of `n`, unused.
    pub fn new(reuse: Reuse, n: usize, me: Rank) -> SyncMemory {
        match reuse {
            Reuse::Additional | Reuse::Barrier => SyncMemory::Arrays(Arrays {
                n,
                me,
                slots: array_slots(n),
                first_of_agreements: slots_max(n),
                is_additional: reuse == Reuse::Additional,
                admitted: 0,
                left: ARRAYS,
                open: 0,
                is_free: [true; ARRAYS],
                releases: Vec::new(),
                used: BTreeSet::new(),
                counts: SyncCounts::default(),
            }),
            Reuse::Pairs => SyncMemory::Pairs(Pairs {
                me,
                pairs: HashMap::new(),
                owed: BTreeSet::new(),
                counts: SyncCounts::default(),
            }),
        }
    }

    /// Admits the next operation of the team, if there is memory for it. Must be called in the order of
    /// operations.
    #[inline]
    pub fn admit(&mut self, plan: &Plan) -> Option<Lease> {
        match self {
            SyncMemory::Arrays(arrays) => arrays.admit(),
            SyncMemory::Pairs(pairs) => Some(pairs.admit(plan)),
        }
    }

    /// The destination of the signal of step `at`, or `None` if the slot is not free yet.
    #[inline]
    pub fn mark(&mut self, plan: &Plan, lease: &Lease, at: usize, to: Rank, slot: Slot) -> Option<Mark> {
        match (self, lease) {
            (SyncMemory::Arrays(arrays), &Lease::Array { array, stamp }) => {
                arrays.counts.signals += 1;
                Some(arrays.mark(plan, array, stamp, slot))
            }
            (SyncMemory::Pairs(pairs), Lease::Pairs { sent, .. }) => {
                let number = sent[&to] + u64::from(plan.ordinals[at]);
                let mark = pairs.mark(to, number)?;
                Some(Mark { word: mark.word | plan.kind(), ..mark })
            }
            _ => unreachable!("a lease is of the memory that gave it"),
        }
    }

    /// The slot in which the signal that step `at` waits for arrives, and the word that shows its arrival,
    /// without the bits that do not belong to the stamp: the lowest bit, and in a word of a pair the number
    /// of consumed signals.
    #[inline]
    pub fn expected(&self, plan: &Plan, lease: &Lease, at: usize, of: Rank, slot: Slot) -> Mark {
        match (self, lease) {
            (SyncMemory::Arrays(arrays), &Lease::Array { array, stamp }) => {
                arrays.mark(plan, array, stamp, slot)
            }
            (SyncMemory::Pairs(_), Lease::Pairs { awaited, .. }) => {
                expected_of_pair(plan, of, awaited[&of] + u64::from(plan.ordinals[at]))
            }
            _ => unreachable!("a lease is of the memory that gave it"),
        }
    }

    /// Whether a slot's word is the expected one; reads the acknowledgement that the word carries.
    #[inline]
    pub fn has_come(&mut self, expected: Mark, found: u64, of: Rank) -> bool {
        match self {
            SyncMemory::Arrays(arrays) => {
                let has_come = found & !ANNOUNCES == expected.word;
                if has_come {
                    arrays.used.insert(expected.index);
                }
                has_come
            }
            SyncMemory::Pairs(pairs) => {
                let has_come = (found ^ expected.word) & (STAMP_OF_PAIR | AGREES) == 0;
                if has_come {
                    pairs.pair(of).hear(found);
                }
                has_come
            }
        }
    }

    /// Whether a slot's word is for the expected use of the slot, but of the other kind.
    #[inline]
    pub fn is_of_other_kind(&self, expected: Mark, found: u64) -> bool {
        let differs = match self {
            SyncMemory::Arrays(_) => (found ^ expected.word) & !ANNOUNCES,
            SyncMemory::Pairs(_) => (found ^ expected.word) & (STAMP_OF_PAIR | AGREES),
        };
        differs == AGREES
    }

    /// The slots in which any signal of an operation may arrive, with the rank that it comes from if only one
    /// rank signals there: all slots of its array, or the slots of the pairs from which it expects signals.
    pub fn all_expected(&self, plan: &Plan, lease: &Lease) -> Vec<(Option<Rank>, Mark)> {
        match (self, lease) {
            (SyncMemory::Arrays(arrays), &Lease::Array { array, stamp }) => {
                let word = stamp << FLAG_BITS | plan.kind();
                let slots = array * arrays.slots..(array + 1) * arrays.slots - RELEASE_SLOTS;
                slots.map(|index| (None, Mark { index, word })).collect()
            }
            (SyncMemory::Pairs(_), Lease::Pairs { awaited, .. }) => {
                awaited.iter().map(|(&of, &first)| (Some(of), expected_of_pair(plan, of, first))).collect()
            }
            _ => unreachable!("a lease is of the memory that gave it"),
        }
    }

    /// The members, of `n`, whose next signal belongs to an agreement and has arrived. `word_at` reads the
    /// word of a slot of this PE.
    pub fn agreeing(&self, n: usize, word_at: &dyn Fn(usize) -> u64) -> Vec<Rank> {
        let SyncMemory::Pairs(pairs) = self else { return Vec::new() };
        let agrees = |&rank: &Rank| {
            let number = pairs.pairs.get(&rank).map_or(0, |pair| pair.awaited);
            let word = word_at(rank * PAIR_SLOTS + (number % PAIR_SLOTS as u64) as usize);
            word & (STAMP_OF_PAIR | AGREES) == stamp_of(number) | AGREES
        };
        (0..n).filter(|&rank| rank != pairs.me).filter(agrees).collect()
    }

    /// The signal for step `at` is not needed any more.
    #[inline]
    pub fn consumed(&mut self, plan: &Plan, lease: &Lease, at: usize) {
        if let (SyncMemory::Pairs(pairs), Lease::Pairs { awaited, .. }) = (self, lease)
            && let Step::Wait { of, .. } = plan.schedule.steps[at]
        {
            pairs.consumed(of, awaited[&of] + u64::from(plan.ordinals[at]));
        }
    }

    /// An operation is over at this member.
    #[inline]
    pub fn end(&mut self, lease: &Lease) {
        if let (SyncMemory::Arrays(arrays), &Lease::Array { array, stamp }) = (self, lease) {
            arrays.end(array, stamp);
        }
    }

    /// All members have passed a barrier of the team, before which no member had an operation in progress on
    /// it. The barrier itself has used the last `own_arrays` arrays.
    #[inline]
    pub fn barrier_passed(&mut self, own_arrays: usize) {
        if let SyncMemory::Arrays(arrays) = self
            && !arrays.is_additional
        {
            arrays.left = ARRAYS - own_arrays;
        }
    }

    /// Reads the word of another member that tells how many of this PE's signals it has consumed.
    #[inline]
    pub fn hear(&mut self, rank: Rank, word: u64) {
        if let SyncMemory::Pairs(pairs) = self {
            let pair = pairs.pair(rank);
            pair.acknowledged = pair.acknowledged.max(word);
        }
    }

    /// Reads the acknowledgement in a signal of another member that this PE does not expect yet: the word in
    /// its slot, if it is not an old one.
    #[inline]
    pub fn hear_early(&mut self, rank: Rank, index: usize, word: u64) {
        if let SyncMemory::Pairs(pairs) = self {
            let pair = pairs.pair(rank);
            let slots = PAIR_SLOTS as u64;
            let number = pair.consumed + (index as u64 + slots - pair.consumed % slots) % slots;
            if word >> 32 == stamp_of(number) >> 32 {
                pair.hear(word);
            }
        }
    }

    /// The slots of this PE for signals of another member.
    #[inline]
    pub fn pair_slots(rank: Rank) -> Range<usize> {
        rank * PAIR_SLOTS..(rank + 1) * PAIR_SLOTS
    }

    /// The members from which this PE may wait for acknowledgements.
    #[inline]
    pub fn waits_for_acknowledgement(&self) -> Vec<Rank> {
        match self {
            SyncMemory::Arrays(_) => Vec::new(),
            SyncMemory::Pairs(pairs) => {
                let is_full = |pair: &Pair| pair.sent >= pair.acknowledged + PAIR_SLOTS as u64;
                pairs.pairs.iter().filter(|(_, pair)| is_full(pair)).map(|(&rank, _)| rank).collect()
            }
        }
    }

    /// The actions that are due for the memory now. `word_at` reads the word of a slot of this PE.
    #[inline]
    pub fn chores(&mut self, word_at: &dyn Fn(usize) -> u64) -> Vec<Chore> {
        match self {
            SyncMemory::Arrays(arrays) => arrays.chores(word_at),
            SyncMemory::Pairs(pairs) => pairs.chores(),
        }
    }

    /// Whether no action for the memory is left on this PE, as far as is known now.
    #[inline]
    pub fn is_at_rest(&self) -> bool {
        match self {
            SyncMemory::Arrays(arrays) => arrays.releases.is_empty(),
            SyncMemory::Pairs(pairs) => pairs.owed.is_empty(),
        }
    }

    /// The memory of the first `n` members, when no operation is in progress.
    pub fn shrunk(&self, n: usize) -> SyncMemory {
        match self {
            SyncMemory::Arrays(arrays) => {
                SyncMemory::Arrays(Arrays { n, releases: Vec::new(), used: arrays.used.clone(), ..*arrays })
            }
            SyncMemory::Pairs(pairs) => {
                let kept = pairs.pairs.iter().filter(|&(&rank, _)| rank < n);
                let copy = |pair: &Pair| Pair { beyond: pair.beyond.clone(), ..*pair };
                SyncMemory::Pairs(Pairs {
                    me: pairs.me,
                    pairs: kept.map(|(&rank, pair)| (rank, copy(pair))).collect(),
                    owed: pairs.owed.iter().copied().filter(|&rank| rank < n).collect(),
                    counts: pairs.counts,
                })
            }
        }
    }

    /// The statistics of the use of the memory.
    #[inline]
    pub fn counts(&self) -> SyncCounts {
        match self {
            SyncMemory::Arrays(arrays) => SyncCounts { slots: arrays.used.len() as u64, ..arrays.counts },
            SyncMemory::Pairs(pairs) => {
                let slots = pairs.pairs.values().map(|pair| pair.consumed.min(PAIR_SLOTS as u64)).sum();
                SyncCounts { slots, ..pairs.counts }
            }
        }
    }
}

impl Arrays {
    fn mark(&self, plan: &Plan, array: usize, stamp: u64, slot: Slot) -> Mark {
        let first = if plan.agreement.is_some() { self.first_of_agreements } else { 0 };
        Mark { index: array * self.slots + first + slot, word: stamp << FLAG_BITS | plan.kind() }
    }

    fn admit(&mut self) -> Option<Lease> {
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
        Some(Lease::Array { array, stamp: self.admitted })
    }

    fn end(&mut self, array: usize, stamp: u64) {
        self.open -= 1;
        if self.is_additional {
            self.releases.push(Release { array, stamp, round: 0, is_sent: false, frees_all: false });
        }
    }

    fn chores(&mut self, word_at: &dyn Fn(usize) -> u64) -> Vec<Chore> {
        let (mut chores, mut over) = (Vec::new(), Vec::new());
        for release in &mut self.releases {
            while 1 << release.round < self.n {
                let first = release.array * self.slots + self.slots - RELEASE_SLOTS;
                let index = first + release.round;
                if !std::mem::replace(&mut release.is_sent, true) {
                    let to = (self.me + (1 << release.round)) % self.n;
                    chores.push(Chore::Mark { to, mark: Mark { index, word: release.stamp } });
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
}

impl Pairs {
    #[inline]
    fn pair(&mut self, rank: Rank) -> &mut Pair {
        self.pairs.entry(rank).or_default()
    }

    fn admit(&mut self, plan: &Plan) -> Lease {
        let mut take = |rank: Rank, count: u32, of: fn(&mut Pair) -> &mut u64| {
            let number = of(self.pair(rank));
            *number += u64::from(count);
            (rank, *number - u64::from(count))
        };
        let sent = plan.sent.iter().map(|(&to, &count)| take(to, count, |pair| &mut pair.sent)).collect();
        let mut take = |rank: Rank, count: u32| take(rank, count, |pair| &mut pair.awaited);
        let awaited = plan.awaited.iter().map(|(&of, &count)| take(of, count)).collect();
        Lease::Pairs { sent, awaited }
    }

    fn mark(&mut self, to: Rank, number: u64) -> Option<Mark> {
        let me = self.me;
        let pair = self.pair(to);
        if number >= pair.acknowledged + PAIR_SLOTS as u64 {
            return None;
        }
        pair.told = pair.consumed;
        let word = stamp_of(number) | u64::from((pair.consumed as u32) << FLAG_BITS);
        self.counts.signals += 1;
        Some(Mark { index: me * PAIR_SLOTS + (number % PAIR_SLOTS as u64) as usize, word })
    }

    fn consumed(&mut self, of: Rank, number: u64) {
        let pair = self.pair(of);
        pair.beyond.insert(number);
        while pair.beyond.remove(&pair.consumed) {
            pair.consumed += 1;
        }
        if pair.is_owed() {
            self.owed.insert(of);
        }
    }

    fn chores(&mut self) -> Vec<Chore> {
        let owed = std::mem::take(&mut self.owed);
        let mut chores = Vec::new();
        for to in owed {
            let pair = self.pair(to);
            if pair.is_owed() {
                pair.told = pair.consumed;
                chores.push(Chore::Acknowledge { to, word: pair.consumed });
            }
        }
        self.counts.chores += chores.len() as u64;
        chores
    }
}

impl Pair {
    /// Whether the other member may soon have no slots left, and no signal has acknowledged the consumed
    /// ones.
    #[inline]
    fn is_owed(&self) -> bool {
        self.consumed - self.told >= PAIR_SLOTS as u64 / 2
    }
}

/// The bits of the word of a pair that are its stamp.
const STAMP_OF_PAIR: u64 = !0 << 32;

/// The slot in which signal `number` of a member arrives, and its word without the number of consumed
/// signals.
#[inline]
fn expected_of_pair(plan: &Plan, of: Rank, number: u64) -> Mark {
    let index = of * PAIR_SLOTS + (number % PAIR_SLOTS as u64) as usize;
    Mark { index, word: stamp_of(number) | plan.kind() }
}

/// The upper half of the word of signal `number`.
#[inline]
fn stamp_of(number: u64) -> u64 {
    u64::from((number + 1) as u32) << 32
}
