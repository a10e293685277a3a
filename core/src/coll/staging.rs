//! Staging buffers: how the leaders of a team's nodes exchange small messages, each by one put.
//!
//! A message is a run of words of 8 bytes. The first word holds the number of agreements that the sender has
//! begun, and the length of the data; its upper half holds the number of the operation. Where puts signal,
//! the data follow as they are, and the first word is the signal. Other networks may deliver the words of a
//! put in any order: there the lower half of each further word has 4 bytes of data, and the upper half the
//! number, so a word shows by itself whether it has come. Source: the protocol LL of NCCL (Hu et al. 2025,
//! Demystifying NCCL).
//!
//! ```text
//! | exchanges: (handing, round 0, round 1, ...) x 2 |    each buffer 520 words
//! | ring buffer of broadcasts |    1040 units of 8 words
//! | hand-over areas: source, target |    16 KiB each
//! ```
//! The hand-over areas are for operations on private memory, in which a leader reads the sources of the
//! members of its node and writes their targets.
//!
//! Invariant: a buffer is written only when its receiver has read its earlier contents. Exchanges use two
//! sets of buffers by turns: a leader that has passed exchange e knows that all have begun it, and so have
//! passed e - 1. An exchange by pairs has a buffer for each other leader in place of one for each round. A
//! broadcast tells nothing of its receivers, so the messages of broadcasts follow each other in a ring
//! buffer. All members meet before a unit is used again, unless they have met since it was used before, or
//! each node has had a root since: a root has completed all broadcasts before its own, and all members know
//! of it by its data. A receiver clears the first word of each unit that it has read, as a later message may
//! have its first word there.

pub mod ring;

use super::block::PAGE_BYTES;
use super::hierarchy::Hierarchy;
use super::schedule::Rank;
use crate::base::awaited::Awaited;
use crate::base::signal_op::SignalOp;
use crate::base::vote::{VOTE_BYTES, Vote};
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;
use crate::endpoint::RemoteAddress;
use crate::job::callback;
use pelago_fabric::sync::{AtomicU64, Ordering};
use pelago_fabric::{Completion, copy};
use pelago_schedule::combine::doubling::Pairing;
use pelago_schedule::nodes::Groups;
use pelago_schedule::tree::k_nomial;
use std::mem::MaybeUninit;

/// The most data in a message, in bytes: where puts signal and no PE shares its node, and where not.
pub const STAGED_BYTES: usize = 4096;
pub const PACKED_BYTES: usize = 1024;
/// Size of a hand-over area, where a member shows its source to the leader of its node, or the leader leaves
/// what is for the member.
pub const HAND_BYTES: usize = 16 << 10;
/// Hand-over areas of a member: of its source and of its target.
const HAND_OVERS: usize = 2;
/// Bytes of data of a word.
const DATA_BYTES: usize = 4;
/// Looks for a message between two looks whether a member agrees meanwhile.
const LOOKS_PER_KIND_CHECK: u32 = 64;
/// Words of a message that is packed.
const WORDS: usize = 1 + PACKED_BYTES / DATA_BYTES;
const BUFFER_BYTES: usize = (size_of::<u64>() + STAGED_BYTES).next_multiple_of(64);
const _: () = assert!(WORDS * size_of::<u64>() <= BUFFER_BYTES);
/// Sets of buffers for exchanges, used by turns.
pub const TURNS: usize = 2;
/// The unit of messages of broadcasts.
const UNIT_BYTES: usize = 64;
/// Units of the ring buffer of broadcasts: messages of 8 bytes between two meetings of all members. In builds
/// for tests there is room for two messages of the most data.
pub const BROADCAST_UNITS: u64 = if cfg!(debug_assertions) { 2 } else { 16 } * UNITS_MAX;
const UNITS_MAX: u64 = (BUFFER_BYTES / UNIT_BYTES) as u64;
const _: () = assert!(BUFFER_BYTES.is_multiple_of(UNIT_BYTES));

/// Buffers of one set for a team of `n`: one for the data that are handed to a power of two of leaders, and
/// one for each round.
const fn buffers(n: usize) -> usize {
    1 + n.next_power_of_two().trailing_zeros() as usize
}

/// The place of a buffer for exchanges, from the first one.
fn buffer_place(index: usize) -> usize {
    index * BUFFER_BYTES
}

/// Where the ring buffer of broadcasts lies.
const fn broadcasts_offset(n: usize) -> usize {
    TURNS * buffers(n) * BUFFER_BYTES
}

/// Size of the staging buffers and hand-over areas of a member of a team of `n`.
pub const fn bytes(n: usize) -> usize {
    hand_over_offset(n, HAND_OVERS)
}

/// Where a hand-over area of a member of a team of `n` lies, from the first staging buffer.
pub const fn hand_over_offset(n: usize, area: usize) -> usize {
    broadcasts_offset(n) + BROADCAST_UNITS as usize * UNIT_BYTES + area * HAND_BYTES
}

const _: () = assert!(VOTE_BYTES <= PACKED_BYTES && PACKED_BYTES <= PAGE_BYTES);

/// The most data that a message can have here, in bytes.
pub fn staged_bytes(world: &Teams) -> usize {
    if world.net_endpoint().signals(STAGED_BYTES) { STAGED_BYTES } else { PACKED_BYTES }
}

/// Space for the data of a message, and for what is computed from messages.
#[repr(align(64))]
pub struct PageSpace(MaybeUninit<[u8; STAGED_BYTES]>);

/// The first bytes of the space, as many as are used: most messages are short. A page that had its space in
/// itself would be copied when it is moved, all of it.
pub struct Page<'a> {
    space: &'a mut PageSpace,
    used: usize,
}

impl PageSpace {
    /// Space of which no byte is used.
    pub const UNUSED: PageSpace = PageSpace(MaybeUninit::uninit());

    /// A page of `used` bytes, all zero.
    #[inline]
    pub fn zeroed(&mut self, used: usize) -> Page<'_> {
        assert!(used <= STAGED_BYTES, "{used} bytes in a page");
        // SAFETY: the space has these bytes.
        unsafe { self.0.as_mut_ptr().cast::<u8>().write_bytes(0, used) };
        Page { space: self, used }
    }
}

impl Page<'_> {
    /// The start of the bytes that are used.
    pub fn start(&mut self) -> *mut u8 {
        self.space.0.as_mut_ptr().cast()
    }

    fn bytes(&mut self, count: usize) -> &mut [u8] {
        assert!(count <= self.used, "{count} bytes of a page of which {} are used", self.used);
        // SAFETY: these bytes were set when the page was made.
        unsafe { std::slice::from_raw_parts_mut(self.start(), count) }
    }

    /// Takes the bytes of another page that are zero here.
    pub fn join(&mut self, other: &mut Page<'_>) {
        let count = self.used.min(other.used);
        self.bytes(count).iter_mut().zip(other.bytes(count)).for_each(|(own, other)| *own |= *other);
    }
}

/// The exchange of messages between the leaders of a team's nodes.
pub struct Staging<'a> {
    pub world: &'a Teams,
    pub team: &'a TeamCore,
    pub levels: &'a Hierarchy,
    pub operation: &'static str,
}

impl Staging<'_> {
    /// The place of a unit of the ring buffer of broadcasts, from the first buffer.
    fn unit(&self, unit: u64) -> usize {
        broadcasts_offset(self.levels.block_ranks) + unit as usize * UNIT_BYTES
    }

    /// Writes a message to a place of another member that waits for it, as this leader then waits for a
    /// message of that member.
    #[track_caller]
    fn send(&self, to: Rank, place: usize, number: u64, data: &[u8]) {
        self.send_as(Completion::Unreported, (to, place), number, data);
    }

    /// As [`send`](Staging::send). The completion is `Gathered` if this leader waits for nothing then.
    #[track_caller]
    fn send_as(&self, completion: Completion, (to, place): (Rank, usize), number: u64, data: &[u8]) {
        let offset_bytes = self.team.base(to) + self.levels.staging_offset + place;
        let target = RemoteAddress { operation: self.operation, pe: self.team.pe(to), offset_bytes };
        let stamp = stamp(number);
        let first = stamp
            | self.team.agreed_last.load(Ordering::Relaxed) & AGREEMENTS
            | (data.len() as u64) << LENGTH_SHIFT;
        let net = self.world.net_endpoint();
        if net.signals(data.len()) {
            let place = RemoteAddress { offset_bytes: offset_bytes + size_of::<u64>(), ..target };
            let (put, signal) = ((place, data.as_ptr(), data.len()), (target, SignalOp::Set(first).atomic()));
            // SYNC POINT staged: all earlier operations of this PE are visible when the receiver sees the
            // first word.
            // SAFETY: the place lies in the member's block, and has room for the word and the data.
            return unsafe { net.put_message_signal(self.world, put, signal, completion) };
        }
        let mut words = [0u64; WORDS];
        let count = packed_words(data.len());
        words[..count].fill(stamp);
        words[0] = first;
        for (word, piece) in words[1..].iter_mut().zip(data.chunks(DATA_BYTES)) {
            let mut bytes = [0; DATA_BYTES];
            bytes[..piece.len()].copy_from_slice(piece);
            *word |= u64::from(u32::from_ne_bytes(bytes));
        }
        let bytes = count * size_of::<u64>();
        // SYNC POINT staged: all earlier operations of this PE are visible when the receiver sees the words.
        // SAFETY: the place lies in the member's block; without a counter the source is free at return.
        unsafe { net.put_message(self.world, target, words.as_ptr().cast(), bytes) };
    }

    /// Waits for a message at a place of this PE, with as many bytes as `data` has. A barrier, which has
    /// none, may meet votes.
    #[track_caller]
    fn receive(&self, from: Rank, place: usize, number: u64, data: &mut [u8]) {
        let length = self.wait_for(from, place, number);
        if data.is_empty() {
            return;
        }
        self.check_length(from, length, data.len());
        if self.world.net_endpoint().signals(length) {
            // SAFETY: the data lie behind the first word, which was set after them. No PE writes there before
            // this leader sends its next message, or passes these data on within its node.
            return unsafe { copy::copy(data.as_mut_ptr(), self.data(place), length) };
        }
        let (stamp, mut come) = (stamp(number), 1);
        self.wait_until(from, || {
            for piece in data.chunks_mut(DATA_BYTES).skip(come - 1) {
                let word = self.word(place, come).load(Ordering::Acquire);
                if word & STAMP != stamp {
                    return false;
                }
                piece.copy_from_slice(&(word as u32).to_ne_bytes()[..piece.len()]);
                come += 1;
            }
            true
        });
    }

    /// Waits for the first word of a message at a place of this PE. Returns the length of the message's data.
    #[track_caller]
    fn wait_for(&self, from: Rank, place: usize, number: u64) -> usize {
        let (stamp, mut word) = (stamp(number), 0);
        self.wait_until(from, || {
            word = self.word(place, 0).load(Ordering::Acquire);
            word & STAMP == stamp
        });
        length(word)
    }

    /// Waits for something that another leader does.
    #[track_caller]
    fn wait_until(&self, from: Rank, mut ready: impl FnMut() -> bool) {
        if ready() {
            return;
        }
        callback::forbid(self.world, self.operation);
        let awaited = Awaited::member(self.operation, Some(self.team.pe(from)));
        let mut looks = 0u32;
        self.world.wait(awaited, || {
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_PER_KIND_CHECK) {
                self.check_kind();
            }
            ready()
        });
    }

    /// Ends the job if a message has another length than this leader expects: the members have called an
    /// operation with different sizes, or different operations.
    #[inline]
    fn check_length(&self, from: Rank, length: usize, expected: usize) {
        if length != expected {
            self.team.fail_sizes(self.world, self.operation, (expected, from, length));
        }
    }

    /// Where the data of a message lie whose words are not packed: behind its first word.
    fn data(&self, place: usize) -> *const u8 {
        self.levels.own_start.0.wrapping_add(self.levels.staging_offset + place + size_of::<u64>())
    }

    /// A word at a place of this PE, which is loaded at the SYNC POINT staged: that acquires the earlier
    /// operations of the sender.
    fn word(&self, place: usize, index: usize) -> &AtomicU64 {
        let own = self.levels.own_start.0;
        let offset = self.levels.staging_offset + place + index * size_of::<u64>();
        // SAFETY: the place has this word, aligned, and it is accessed as an atomic only.
        unsafe { &*own.add(offset).cast::<AtomicU64>() }
    }

    /// Ends the job if a member makes an agreement that it has begun before this call.
    #[cold]
    #[inline(never)]
    fn check_kind(&self) {
        let rank = self.team.agrees_before(self.world, self.levels.calls());
        if rank.is_some() {
            self.team.fail_met(self.world, self.operation, rank);
        }
    }

    /// Combines the data of all leaders, as many bytes as `own` has, in `own` at all of them. `fold`
    /// combines the first page with the second one and stores the result in the first one; the flag tells
    /// whether the second one stands on the left. The leaders of lower nodes stand on the left. All have
    /// begun when this returns.
    #[track_caller]
    pub fn exchange(&self, own: &mut Page<'_>, mut fold: impl FnMut(&mut Page<'_>, &mut Page<'_>, bool)) {
        let (number, bytes) = (self.levels.next_exchange(), own.used);
        let mut space = PageSpace::UNUSED;
        let mut other = space.zeroed(bytes);
        for &LeaderStep { step, rank, place } in self.steps(number) {
            match step {
                Step::Send => self.send(rank, place, number, own.bytes(bytes)),
                Step::Replace => self.receive(rank, place, number, own.bytes(bytes)),
                Step::Combine { is_left } => {
                    self.receive(rank, place, number, other.bytes(bytes));
                    fold(own, &mut other, is_left);
                }
                Step::Flush => self.world.progress(),
            }
        }
    }

    /// Whether there is a buffer for a message from each other leader.
    pub fn has_pairs(levels: &Hierarchy) -> bool {
        levels.groups.len() <= buffers(levels.block_ranks) + 1
    }

    /// Sends a message of at most `most` bytes to each other leader and receives one from it. `pack` writes
    /// the one to a group and returns its length, `between` runs while they are under way, and `unpack` takes
    /// the one from a group, whose length `bytes_from` knows, from the address that it is given. All have
    /// begun when this returns.
    #[track_caller]
    pub fn exchange_pairs(
        &self,
        most: usize,
        mut pack: impl FnMut(usize, &mut Page<'_>) -> usize,
        between: impl FnOnce(),
        bytes_from: impl Fn(usize) -> usize,
        mut unpack: impl FnMut(usize, *const u8),
    ) {
        let (groups, me, number) = (&self.levels.groups, self.levels.own, self.levels.next_exchange());
        let set = (number as usize % TURNS) * buffers(self.levels.block_ranks);
        let (n, mut space) = (groups.len(), PageSpace::UNUSED);
        let mut page = space.zeroed(most);
        for step in 1..n {
            let to = (me + step) % n;
            let bytes = pack(to, &mut page);
            self.send(groups.leader(to), buffer_place(set + step - 1), number, page.bytes(bytes));
        }
        between();
        for step in 1..n {
            let from = (me + n - step) % n;
            let (leader, place, bytes) =
                (groups.leader(from), buffer_place(set + step - 1), bytes_from(from));
            if self.world.net_endpoint().signals(bytes) {
                // The data stay where they are until this leader sends its next message.
                let length = self.wait_for(leader, place, number);
                self.check_length(leader, length, bytes);
                unpack(from, self.data(place));
            } else {
                self.receive(leader, place, number, page.bytes(bytes));
                unpack(from, page.start());
            }
        }
    }

    /// Joins the votes of all leaders at all of them. Leaders that exchange nothing at this place have none.
    #[track_caller]
    pub fn join_votes(&self, vote: &mut Vote) {
        let number = self.levels.next_exchange();
        for &LeaderStep { step, rank, place } in self.steps(number) {
            match step {
                Step::Send if vote.is_unanimous() => self.send(rank, place, number, &vote.to_bytes()),
                Step::Send => self.send(rank, place, number, &[]),
                Step::Replace => *vote = self.receive_vote(rank, place, number),
                Step::Combine { .. } => vote.join(&self.receive_vote(rank, place, number)),
                Step::Flush => self.world.progress(),
            }
        }
    }

    /// Waits for a vote, or the message of a leader that has none.
    #[track_caller]
    fn receive_vote(&self, from: Rank, place: usize, number: u64) -> Vote {
        if self.wait_for(from, place, number) == 0 {
            return Vote::VOID;
        }
        let mut bytes = [0; VOTE_BYTES];
        self.receive(from, place, number, &mut bytes);
        Vote::from_bytes(&bytes)
    }

    /// The steps of this leader in an exchange.
    fn steps(&self, number: u64) -> &[LeaderStep] {
        &self.levels.steps[number as usize % TURNS]
    }

    /// The units of the message of a broadcast of this many bytes.
    pub fn units(&self, bytes: usize) -> u64 {
        let is_whole = self.world.net_endpoint().signals(bytes);
        let words = if is_whole { 1 + bytes.div_ceil(size_of::<u64>()) } else { packed_words(bytes) };
        (words * size_of::<u64>()).div_ceil(UNIT_BYTES) as u64
    }

    /// Brings the data of `root`, as many bytes as the page has, to the leaders of all nodes but its own, at
    /// units that are free, of which this is the first.
    #[track_caller]
    pub fn broadcast(&self, root: Rank, unit: u64, page: &mut Page<'_>) {
        let bytes = page.used;
        let (groups, me) = (&self.levels.groups, self.levels.own);
        let (number, place) = (self.levels.broadcasts(), self.unit(unit));
        let (n, home) = (groups.len(), groups.group(root));
        let rank = |relative: usize| match (relative + home) % n {
            group if group == home => root,
            group => groups.leader(group),
        };
        let links = k_nomial((me + n - home) % n, n, 2);
        if let Some(parent) = links.parent {
            self.receive(rank(parent), place, number, page.bytes(bytes));
            for unit in 0..self.units(bytes) as usize {
                self.word(place + unit * UNIT_BYTES, 0).store(0, Ordering::Relaxed);
            }
        }
        for &child in &links.children {
            self.send_as(Completion::Gathered, (rank(child), place), number, page.bytes(bytes));
        }
        if !links.children.is_empty() && !self.world.net_endpoint().signals(bytes) {
            // Puts that are not sent at once are on their way then.
            self.world.progress();
        }
    }
}

impl TeamCore {
    /// A member that makes a call in two levels where this PE makes the agreement that it has begun last, if
    /// one is seen to; `None` within if it is not known which.
    pub fn finds_call(&self, world: &Teams) -> Option<Option<Rank>> {
        let levels = self.hierarchy(world)?;
        let (node, mine) = (&levels.node, self.agreed_last.load(Ordering::Relaxed));
        let (begun, me) = (node.sequence.load(Ordering::Relaxed), node.my_rank());
        for place in (0..node.len()).filter(|&place| place != me && node.is_mapped()) {
            // Read first: the member counts the agreement before it begins any later operation.
            let is_ahead = node.begun(place).number() > begun;
            if is_ahead && node.agreements(place).number() < mine {
                return Some(Some(levels.groups.ranks(levels.own).at(place)));
            }
        }
        let staging = Staging { world, team: self, levels, operation: "exchange" };
        let is_early = |place: usize, number: u64| {
            let word = staging.word(place, 0).load(Ordering::Acquire);
            word & STAMP == stamp(number) && word & AGREEMENTS < mine & AGREEMENTS
        };
        let (exchange, broadcast) = (levels.exchanges() + 1, levels.broadcasts() + 1);
        let sets = buffers(levels.block_ranks);
        let first = exchange as usize % TURNS * sets;
        let found = (first..first + sets).any(|buffer| is_early(buffer_place(buffer), exchange))
            || levels.ring.next_places().iter().any(|&unit| is_early(staging.unit(unit), broadcast));
        found.then_some(None)
    }
}

/// A step of an exchange.
#[derive(Clone, Copy)]
pub enum Step {
    /// This leader sends its data.
    Send,
    /// It receives data in place of its own.
    Replace,
    /// It receives data and combines them with its own, on their left side or on their right side.
    Combine { is_left: bool },
    /// It makes a round of progress: the last message is on its way, and no other is expected.
    Flush,
}

/// A step with another leader.
#[derive(Clone, Copy)]
pub struct LeaderStep {
    step: Step,
    rank: Rank,
    /// The place of the buffer, at the receiver.
    place: usize,
}

/// The steps of the leader of group `me` in an exchange over the set of buffers of this turn.
pub fn steps(groups: &Groups, me: usize, turn: usize, block_ranks: usize) -> Box<[LeaderStep]> {
    let (pairing, set) = (Pairing::of(groups.len()), turn * buffers(block_ranks));
    let mut steps = Vec::new();
    let mut add = |all: &[Step], group: usize, buffer: usize| {
        let (rank, place) = (groups.leader(group), buffer_place(buffer));
        steps.extend(all.iter().map(|&step| LeaderStep { step, rank, place }));
    };
    let Some(mine) = pairing.number(me) else {
        add(&[Step::Send, Step::Replace], me - 1, set);
        return steps.into();
    };
    if pairing.is_doubled(mine) {
        add(&[Step::Combine { is_left: false }], me + 1, set);
    }
    for round in 0..pairing.rounds {
        let partner = mine ^ (1 << round);
        let combine = Step::Combine { is_left: partner < mine };
        add(&[Step::Send, combine], pairing.rank(partner), set + 1 + round);
    }
    if pairing.is_doubled(mine) {
        add(&[Step::Send, Step::Flush], me + 1, set);
    }
    steps.into()
}

/// The bits of a word that are its stamp.
const STAMP: u64 = !0 << 32;
/// In the first word: the length of the data, and the number of agreements, of which the lower bits are
/// enough.
const LENGTH_SHIFT: u32 = 19;
const AGREEMENTS: u64 = (1 << LENGTH_SHIFT) - 1;
const _: () = assert!((STAGED_BYTES as u64) << LENGTH_SHIFT & STAMP == 0);

/// The length of the data of a message with this first word.
fn length(word: u64) -> usize {
    ((word & !STAMP) >> LENGTH_SHIFT) as usize
}

/// Words of a message of this many bytes whose words show by themselves whether they have come.
fn packed_words(bytes: usize) -> usize {
    1 + bytes.div_ceil(DATA_BYTES)
}

/// The upper half of the words of a message of that number. It is never zero, as words are that were cleared.
/// It arrives last where a word arrives in pieces from its lower end on.
fn stamp(number: u64) -> u64 {
    (number % u64::from(u32::MAX) + 1) << 32
}
