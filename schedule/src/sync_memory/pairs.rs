//! Slots of ordered pairs of PEs, which all teams that contain both share.
//!
//! A sender takes the lowest slot that it knows to be free, so that PEs that signal each other in turn use
//! two slots of a pair, and a sender that runs ahead uses all of them. The word of a slot:
//!
//! ```text
//! | tag of the team: 31 | number: 19 | units: 4 | acknowledged: 4 | order: 3 | turn: 1 | flags: 2 |
//! ```
//! *Tag* and *number* say which signal it is. The tag is the place of the team's block in the receiver's
//! pool, so no two teams of the receiver that are alive have the same. The number counts the signals of the
//! pair in the team. *Order* counts the signals of the pair in all teams, in which the receiver takes them,
//! and *turn* changes with each use of the slot: both tell a new word from an old one. *Units* of 16 bytes
//! lie in the slot's mailbox; if there are none, the datum beside the word has come with the signal.
//! *Acknowledged* is the number of signals of the other direction that the sender has taken.
//!
//! A receiver takes a signal out of its slot when an operation of its own waits for a signal of that PE,
//! even if it is for another operation, perhaps of a team that this PE does not know yet: then it is kept
//! in private memory until it is asked for. So no team waits for slots that another team's signals occupy,
//! in whatever order PEs start the operations of different teams. A signal that no operation waits for
//! stays in its slot, so a sender can be ahead of a receiver that waits for nothing of it by [`PAIR_SLOTS`]
//! signals only.
//!
//! Invariant: a slot that is occupied was reserved and is not acknowledged. The signals of a pair are taken
//! in the order in which they were sealed, each once; acknowledgements are heard in the order in which they
//! were written, so a part of their number is enough.

use super::{AGREES, ANNOUNCES, PAIR_SLOT_BYTES, PAIR_SLOTS, Plan, SyncCounts};
use crate::schedule::MAILBOX_BYTES;

/// Bytes of a unit of the length of data in a mailbox.
const UNIT_BYTES: usize = 16;
/// Bytes of the datum beside a word.
const DATUM_BYTES: usize = PAIR_SLOT_BYTES - 8;
const WORD_BYTES: u64 = 8;

const TURN_SHIFT: u32 = 2;
const ORDER_SHIFT: u32 = 3;
const ACKNOWLEDGED_SHIFT: u32 = 6;
const UNITS_SHIFT: u32 = 10;
const NUMBER_SHIFT: u32 = 14;
const TAG_SHIFT: u32 = 33;
const ORDERS: u64 = 1 << (ACKNOWLEDGED_SHIFT - ORDER_SHIFT);
const ACKNOWLEDGED_MASK: u64 = (1 << (UNITS_SHIFT - ACKNOWLEDGED_SHIFT)) - 1;
const UNITS_MASK: u64 = (1 << (NUMBER_SHIFT - UNITS_SHIFT)) - 1;
const NUMBER_BITS: u32 = TAG_SHIFT - NUMBER_SHIFT;
const TAG_MASK: u64 = (1 << (u64::BITS - TAG_SHIFT)) - 1;
const _: () = assert!(PAIR_SLOTS as u64 <= ORDERS && PAIR_SLOTS as u64 * 2 <= ACKNOWLEDGED_MASK + 1);
const _: () = assert!(MAILBOX_BYTES.div_ceil(UNIT_BYTES) as u64 <= UNITS_MASK);

/// Data that have come with a signal, in a mailbox of their own.
#[derive(Clone, Debug)]
#[repr(align(16))]
pub struct MailboxBytes(pub [u8; MAILBOX_BYTES]);

/// This PE's own slots, as other PEs write them. A slot of a pair has the index `peer * PAIR_SLOTS + slot`.
pub trait ReceivedSlots {
    /// The word of a slot; acquires what was written before it.
    fn word(&self, index: usize) -> u64;
    /// The word in which `peer` acknowledges this PE's signals; acquires that it is done with their slots.
    fn acknowledgement(&self, peer: usize) -> u64;
    /// The datum beside a word that was read.
    fn datum(&self, index: usize) -> u64;
    /// The first bytes of the mailbox of a slot whose word was read.
    fn mailbox(&self, index: usize, into: &mut [u8]);
}

/// The numbers of the signals of an operation with one partner.
#[derive(Clone, Copy, Debug, Default)]
struct First {
    /// The number of the first signal to it.
    sent: u64,
    /// The number of the first signal from it.
    awaited: u64,
    /// The number of signals from it that the operation has got.
    got: u32,
}

/// The numbers of an operation's signals, by partner.
#[derive(Debug)]
pub struct PairLease {
    firsts: Vec<First>,
    /// The tag of the team at this PE.
    tag: u64,
}

/// A slot that is reserved for a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairMark {
    /// The slot's index at the receiver.
    pub index: usize,
    peer: usize,
    /// The word, without the part that is known when it is written.
    word: u64,
}

impl PairMark {
    /// The same, for a signal that announces a place.
    #[must_use]
    pub fn announcing(self) -> PairMark {
        PairMark { word: self.word | ANNOUNCES, ..self }
    }
}

/// A signal that was taken out of its slot.
#[derive(Debug)]
pub struct Arrived {
    number: u64,
    /// The most bytes of data that can have come with it.
    pub bytes: usize,
    agrees: bool,
    /// Whether the data are a place that is announced.
    pub announces: bool,
    /// The data that have come with it.
    pub data: Data,
}

/// The data that have come with a signal.
#[derive(Debug)]
pub enum Data {
    /// At most eight bytes.
    Datum(u64),
    /// More.
    Mailbox(Box<MailboxBytes>),
}

/// The signals of a team between this PE and another one.
#[derive(Debug)]
struct Flow {
    /// The tag of the team at this PE.
    tag: u64,
    /// Number of signals to the other PE that have a number.
    sent: u64,
    /// Number of signals from it that have a number.
    awaited: u64,
    /// The largest number of a signal from it so far.
    latest: u64,
    /// Signals from it that no operation has asked for yet.
    arrived: Vec<Arrived>,
}

/// The slots of both directions between this PE and another one.
#[derive(Debug, Default)]
struct Peer {
    /// Number of signals to it that were written, or are being written.
    sealed: u64,
    /// Number of these that it has taken.
    acknowledged: u64,
    /// The first signal from it whose acknowledgement is news.
    news_from: u64,
    /// The word by which it has acknowledged signals, as it was at the last look.
    heard: u64,
    /// The slots at it that are reserved or not acknowledged, as bits.
    occupied: u8,
    /// The turn of each slot at it, as bits.
    turns: u8,
    /// The slots of the signals that are not acknowledged, by their order.
    slot_of: [u8; PAIR_SLOTS],
    /// Number of signals from it that were taken.
    taken: u64,
    /// Number of these that it was told.
    told: u64,
    is_owed: bool,
    /// The turn of each slot of this PE when it was taken last, as bits.
    seen: u8,
    /// The slots of this PE that were ever used, and those whose mailboxes were, as bits.
    used: u8,
    used_mailboxes: u8,
    flows: Vec<Flow>,
}

/// The state of a PE's slots, for all other PEs and all teams.
#[derive(Debug)]
pub struct PairMemory {
    me: usize,
    /// Slots of a pair that are used; fewer than there are in tests only.
    slots: usize,
    peers: Vec<Option<Box<Peer>>>,
    /// Those that this PE has exchanged signals with.
    known: Vec<usize>,
    /// Those whose signals this PE must acknowledge.
    owed: Vec<usize>,
    /// Mailboxes that are not in use.
    spare: Vec<Data>,
    counts: SyncCounts,
}

impl PairMemory {
    /// The slots of PE `me`.
    pub fn new(me: usize) -> PairMemory {
        let (peers, known, owed, spare) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let counts = SyncCounts { is_of_pairs: true, ..SyncCounts::default() };
        PairMemory { me, slots: PAIR_SLOTS, peers, known, owed, spare, counts }
    }

    /// The same with fewer slots of each pair.
    #[cfg(test)]
    pub fn with_slots(me: usize, slots: usize) -> PairMemory {
        PairMemory { slots, ..PairMemory::new(me) }
    }

    /// The units of a signal with this many bytes of data.
    #[inline]
    fn units(bytes: usize) -> u64 {
        if bytes <= DATUM_BYTES { 0 } else { bytes.div_ceil(UNIT_BYTES) as u64 }
    }

    /// Whether data of that length come in the mailbox of their slot, and not beside its word.
    #[inline]
    pub fn takes_mailbox(bytes: usize) -> bool {
        Self::units(bytes) > 0
    }

    /// Numbers the signals of the next operation of a team. Must be called in the order of the team's
    /// operations. `tag` is the team's at this PE, and `pe` returns the PE of a rank.
    pub fn admit(&mut self, plan: &Plan, tag: u64, pe: impl Fn(usize) -> usize) -> PairLease {
        let tag = tag & TAG_MASK;
        let mut number = |partner: &super::Partner| {
            let flow = self.peer(pe(partner.rank)).flow(tag);
            let first = First { sent: flow.sent, awaited: flow.awaited, got: 0 };
            flow.sent += u64::from(partner.sent);
            flow.awaited += u64::from(partner.awaited);
            first
        };
        PairLease { firsts: plan.partners.iter().map(&mut number).collect(), tag }
    }

    /// Reserves a slot for the signal of step `at` to `peer`, at which the team has the tag `tag`, with
    /// `bytes` bytes of data; `None` if none is known to be free.
    #[inline]
    pub fn reserve<S: ReceivedSlots>(
        &mut self,
        (plan, lease): (&Plan, &PairLease),
        at: usize,
        (peer, tag): (usize, u64),
        bytes: usize,
        own: &S,
    ) -> Option<PairMark> {
        let (me, slots) = (self.me, self.slots);
        let (partner, ordinal) = plan.links[at];
        let number = lease.firsts[partner as usize].sent + u64::from(ordinal);
        let state = self.peer(peer);
        if state.free_slot(slots).is_none() {
            state.hear_all(peer, own);
        }
        let slot = state.free_slot(slots)?;
        state.occupied |= 1 << slot;
        self.counts.signals += 1;
        let word = (tag & TAG_MASK) << TAG_SHIFT
            | (number & ((1 << NUMBER_BITS) - 1)) << NUMBER_SHIFT
            | Self::units(bytes) << UNITS_SHIFT
            | plan.kind();
        Some(PairMark { index: me * PAIR_SLOTS + slot, peer, word })
    }

    /// The word of a signal. It is written next, and nothing else is to be done before.
    #[inline]
    pub fn seal(&mut self, mark: PairMark) -> u64 {
        let slot = mark.index % PAIR_SLOTS;
        let peer = self.peer(mark.peer);
        peer.turns ^= 1 << slot;
        peer.slot_of[(peer.sealed % ORDERS) as usize] = slot as u8;
        let word = mark.word
            | u64::from(peer.turns >> slot & 1) << TURN_SHIFT
            | (peer.sealed % ORDERS) << ORDER_SHIFT
            | (peer.taken & ACKNOWLEDGED_MASK) << ACKNOWLEDGED_SHIFT;
        peer.sealed += 1;
        peer.told = peer.taken;
        word
    }

    /// Takes the signal that step `at` of an operation waits for, from `peer`, if it has come. `Err` if a
    /// signal of the other kind has come in its place.
    #[inline]
    pub fn take<S: ReceivedSlots>(
        &mut self,
        (plan, lease): (&Plan, &mut PairLease),
        at: usize,
        peer: usize,
        own: &S,
    ) -> Result<Option<Arrived>, OtherKind> {
        let (partner, ordinal) = plan.links[at];
        let first = &mut lease.firsts[partner as usize];
        let number = first.awaited + u64::from(ordinal);
        loop {
            let flow = self.peer(peer).flow(lease.tag);
            if let Some(place) = flow.arrived.iter().position(|arrived| arrived.number == number) {
                let arrived = flow.arrived.swap_remove(place);
                if arrived.agrees != plan.agreement.is_some() {
                    return Err(OtherKind);
                }
                first.got += 1;
                return Ok(Some(arrived));
            }
            if !self.take_next(peer, own) {
                return Ok(None);
            }
        }
    }

    /// Takes signals from each PE of which the operation still awaits one, until it has come or no other
    /// has. So the PE can send what the operation awaits behind signals that occupy all slots. Must be
    /// called whenever the operation cannot go on. PEs that have free slots are left out, unless
    /// `takes_all`. Returns a PE from which a signal of the other kind has come in the place of one of the
    /// operation.
    pub fn take_ahead<S: ReceivedSlots>(
        &mut self,
        (plan, lease): (&Plan, &PairLease),
        takes_all: bool,
        pe: impl Fn(usize) -> usize,
        own: &S,
    ) -> Option<usize> {
        let slots = self.slots;
        for (partner, first) in plan.partners.iter().zip(&lease.firsts) {
            if first.got == partner.awaited {
                continue;
            }
            let peer = pe(partner.rank);
            if !takes_all && !self.peer(peer).may_be_full(peer, slots, own) {
                continue;
            }
            let range = first.awaited + u64::from(first.got)..first.awaited + u64::from(partner.awaited);
            let is_all = |flow: &Flow| {
                let arrived = flow.arrived.iter().filter(|arrived| range.contains(&arrived.number));
                arrived.count() as u64 == range.end - range.start
            };
            while !is_all(self.peer(peer).flow(lease.tag)) && self.take_next(peer, own) {}
            let mut arrived = self.peer(peer).flow(lease.tag).arrived.iter();
            let is_other = |arrived: &Arrived| arrived.agrees != plan.agreement.is_some();
            if arrived.any(|arrived| range.contains(&arrived.number) && is_other(arrived)) {
                return Some(peer);
            }
        }
        None
    }

    /// Whether the next signal of `peer` in the team with this tag belongs to an agreement and has come.
    /// Takes no signal.
    pub fn agrees_next<S: ReceivedSlots>(&mut self, peer: usize, tag: u64, own: &S) -> bool {
        let tag = tag & TAG_MASK;
        let state = self.peer(peer);
        let (taken, seen) = (state.taken, state.seen);
        let flow = state.flow(tag);
        let next = flow.awaited;
        if flow.arrived.iter().any(|arrived| arrived.number == next && arrived.agrees) {
            return true;
        }
        let latest = flow.latest;
        (0..PAIR_SLOTS).any(|slot| {
            let word = own.word(peer * PAIR_SLOTS + slot);
            let is_it = word >> TAG_SHIFT == tag && number_of(word, latest) == next && word & AGREES != 0;
            is_it && order_of_new(word, slot, seen, taken).is_some()
        })
    }

    /// Takes the next signal of `peer`, if it has come.
    fn take_next<S: ReceivedSlots>(&mut self, peer: usize, own: &S) -> bool {
        let slots = self.slots;
        let state = self.peer(peer);
        let is_next = |slot: &usize| {
            let word = own.word(peer * PAIR_SLOTS + slot);
            order_of_new(word, *slot, state.seen, state.taken) == Some(state.taken)
        };
        let Some(slot) = (0..slots).find(is_next) else { return false };
        let index = peer * PAIR_SLOTS + slot;
        let word = own.word(index);
        let units = (word >> UNITS_SHIFT & UNITS_MASK) as usize;
        let data = match units {
            0 => Data::Datum(own.datum(index)),
            _ => {
                let mut bytes = match self.spare.pop() {
                    Some(Data::Mailbox(bytes)) => bytes,
                    _ => Box::new(MailboxBytes([0; MAILBOX_BYTES])),
                };
                own.mailbox(index, &mut bytes.0[..units * UNIT_BYTES]);
                Data::Mailbox(bytes)
            }
        };
        let state = self.peer(peer);
        state.hear(state.taken, word);
        state.seen ^= 1 << slot;
        state.taken += 1;
        state.used |= 1 << slot;
        state.used_mailboxes |= u8::from(units > 0) << slot;
        let flow = state.flow(word >> TAG_SHIFT);
        let number = number_of(word, flow.latest);
        flow.latest = flow.latest.max(number);
        let (agrees, announces) = (word & AGREES != 0, word & ANNOUNCES != 0);
        let bytes = if units == 0 { DATUM_BYTES } else { units * UNIT_BYTES };
        flow.arrived.push(Arrived { number, agrees, announces, bytes, data });
        if state.owes(slots) && !std::mem::replace(&mut state.is_owed, true) {
            self.owed.push(peer);
        }
        true
    }

    /// The acknowledgements that are due now: PEs, and the words that tell them. Those to other PEs than
    /// `may_tell` allows stay due: a word must not overtake the one before it.
    pub fn chores(&mut self, may_tell: impl Fn(usize) -> bool) -> Vec<(usize, u64)> {
        let (owed, slots) = (std::mem::take(&mut self.owed), self.slots);
        let mut chores = Vec::new();
        for to in owed {
            if !may_tell(to) {
                self.owed.push(to);
                continue;
            }
            let peer = self.peer(to);
            peer.is_owed = false;
            if peer.owes(slots) {
                peer.told = peer.taken;
                chores.push((to, peer.sealed << 32 | u64::from(peer.taken as u32)));
            }
        }
        self.counts.chores += chores.len() as u64;
        chores
    }

    /// The number of PEs to which an acknowledgement is due.
    #[inline]
    pub fn due(&self) -> usize {
        self.owed.len()
    }

    /// Takes a mailbox back whose data are not needed any more.
    pub fn give(&mut self, data: Data) {
        if matches!(data, Data::Mailbox(_)) {
            self.spare.push(data);
        }
    }

    /// The team with this tag is over at all its members.
    pub fn forget(&mut self, tag: u64) {
        let tag = tag & TAG_MASK;
        for peer in self.peers.iter_mut().flatten() {
            peer.flows.retain(|flow| flow.tag != tag);
        }
    }

    /// The use of the slots of this PE.
    pub fn counts<S: ReceivedSlots>(&self, own: &S) -> SyncCounts {
        let mut counts = self.counts;
        for &pe in &self.known {
            let Some(peer) = &self.peers[pe] else { continue };
            let (slots, mailboxes) = (u64::from(peer.used.count_ones()), peer.used_mailboxes.count_ones());
            let acknowledgements = u64::from(own.acknowledgement(pe) != 0);
            counts.slots += slots;
            counts.words += slots + acknowledgements;
            counts.bytes += slots * PAIR_SLOT_BYTES as u64
                + acknowledgements * WORD_BYTES
                + u64::from(mailboxes) * MAILBOX_BYTES as u64;
        }
        counts
    }

    #[inline]
    fn peer(&mut self, peer: usize) -> &mut Peer {
        if self.peers.get(peer).is_none_or(Option::is_none) {
            self.meet(peer);
        }
        self.peers[peer].as_mut().expect("it was met")
    }

    #[cold]
    fn meet(&mut self, peer: usize) {
        if self.peers.len() <= peer {
            self.peers.resize_with(peer + 1, || None);
        }
        self.peers[peer] = Some(Box::default());
        self.known.push(peer);
    }
}

/// A signal of an agreement has come where an operation's was expected, or the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherKind;

impl Peer {
    #[inline]
    fn flow(&mut self, tag: u64) -> &mut Flow {
        let place = self.flows.iter().position(|flow| flow.tag == tag);
        let place = place.unwrap_or_else(|| {
            self.flows.push(Flow { tag, sent: 0, awaited: 0, latest: 0, arrived: Vec::new() });
            self.flows.len() - 1
        });
        &mut self.flows[place]
    }

    /// The lowest of the first `slots` slots that is not occupied.
    #[inline]
    fn free_slot(&self, slots: usize) -> Option<usize> {
        let slot = self.occupied.trailing_ones() as usize;
        (slot < slots).then_some(slot)
    }

    /// Whether the other PE may have no free slot at this one. As it takes the lowest free one, the highest
    /// is then occupied: by a signal that was not taken, or by one that was taken and not acknowledged.
    #[inline]
    fn may_be_full<S: ReceivedSlots>(&self, peer: usize, slots: usize, own: &S) -> bool {
        let highest = slots - 1;
        let word = own.word(peer * PAIR_SLOTS + highest);
        self.taken > self.told || order_of_new(word, highest, self.seen, self.taken).is_some()
    }

    /// Whether the other PE may soon have no slots left, and no signal has acknowledged those that were
    /// taken.
    #[inline]
    fn owes(&self, slots: usize) -> bool {
        self.taken - self.told >= (slots as u64).div_ceil(2)
    }

    /// Reads the acknowledgement in the word of signal `order` from the other PE.
    #[inline]
    fn hear(&mut self, order: u64, word: u64) {
        if order >= self.news_from {
            let acknowledged = word >> ACKNOWLEDGED_SHIFT & ACKNOWLEDGED_MASK;
            let more = acknowledged.wrapping_sub(self.acknowledged) & ACKNOWLEDGED_MASK;
            self.free(more);
            self.news_from = order + 1;
        }
    }

    /// Reads what the other PE has acknowledged: by its word, and by signals that this PE does not take yet.
    fn hear_all<S: ReceivedSlots>(&mut self, peer: usize, own: &S) {
        let word = own.acknowledgement(peer);
        // Signals may have acknowledged more than the word, by any number. Only a word that has changed is
        // news, and of that no more than what is open.
        let has_changed = std::mem::replace(&mut self.heard, word) != word;
        let more = u64::from((word as u32).wrapping_sub(self.acknowledged as u32));
        if has_changed && more > 0 && more <= self.sealed - self.acknowledged {
            self.free(more);
            let sealed = ((word >> 32) as u32).wrapping_sub(self.news_from as u32);
            self.news_from += (sealed as i32).max(0) as u64;
        }
        for slot in 0..PAIR_SLOTS {
            let word = own.word(peer * PAIR_SLOTS + slot);
            if let Some(order) = order_of_new(word, slot, self.seen, self.taken) {
                self.hear(order, word);
            }
        }
    }

    /// Frees the slots of the next `more` signals, unless there are not that many: a peer has written
    /// something else.
    #[inline]
    fn free(&mut self, more: u64) {
        if more > self.sealed - self.acknowledged {
            return;
        }
        for order in self.acknowledged..self.acknowledged + more {
            self.occupied &= !(1 << self.slot_of[(order % ORDERS) as usize]);
        }
        self.acknowledged += more;
    }
}

/// The order of the signal in a slot, if it was not taken yet.
#[inline]
fn order_of_new(word: u64, slot: usize, seen: u8, taken: u64) -> Option<u64> {
    let is_new = word >> TURN_SHIFT & 1 != u64::from(seen >> slot & 1);
    let ahead = (word >> ORDER_SHIFT).wrapping_sub(taken) % ORDERS;
    is_new.then_some(taken + ahead)
}

/// The number of a signal, of which the word has a part, in a team whose latest signal has the number
/// `latest`.
#[inline]
fn number_of(word: u64, latest: u64) -> u64 {
    let difference = (word >> NUMBER_SHIFT).wrapping_sub(latest) << (u64::BITS - NUMBER_BITS);
    latest.wrapping_add_signed(difference as i64 >> (u64::BITS - NUMBER_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots in which nothing came, and a word of acknowledgements.
    struct Quiet(u64);

    impl ReceivedSlots for Quiet {
        fn word(&self, _: usize) -> u64 {
            0
        }

        fn acknowledgement(&self, _: usize) -> u64 {
            self.0
        }

        fn datum(&self, _: usize) -> u64 {
            0
        }

        fn mailbox(&self, _: usize, _: &mut [u8]) {}
    }

    /// Signals acknowledge each other, so that the word is as it was at first when their number is large.
    #[test]
    fn an_old_word_is_no_news_after_any_number_of_signals() {
        for count in [5, 1 << 31, (1 << 31) + 100, (1 << 32) - 2, (1 << 32) - 1, 1 << 32, (1 << 40) + 7] {
            let mut peer = Peer { sealed: count + 2, acknowledged: count, news_from: 9, ..Peer::default() };
            peer.hear_all(0, &Quiet(0));
            assert_eq!((peer.acknowledged, peer.news_from), (count, 9), "{count} signals");
            // The word acknowledges both that are open.
            peer.hear_all(0, &Quiet(u64::from((count + 2) as u32) | 12 << 32));
            assert_eq!((peer.acknowledged, peer.news_from), (count + 2, 12), "{count} signals");
        }
    }
}
