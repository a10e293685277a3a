//! Blocking operations of a group over a team: small ones over its staging slots, and larger ones over its
//! large staging slots, if the members map each other; else small ones in two levels, over the staging
//! buffers of the nodes' leaders as well.
//!
//! A group has no memory in the pool until it first makes such a call; then its members exchange where their
//! blocks lie. When a group is dropped, other members may still look at the block, so that it is not freed:
//! the team is kept, and a later group of the same members uses it again.
//!
//! Invariant: the members decide alike whether an operation is a direct one, from its size and from whether
//! they have a team. They use a kept team again only if all of them propose the same one.

use super::exchange::{Exchange, Receive, Send};
use super::group::MessageGroup;
use super::operation::{Memory, Outcome, SizeMismatch};
use super::plan::{MessageCall, Plan};
use super::running::MessageCollectives;
use crate::base::locked::locked;
use crate::coll::block::{self, DIRECT_BYTES, PAGE_BYTES, STAGING_SLOT_BYTES};
use crate::coll::call::{Call, words_of};
use crate::coll::candidates::Candidate;
use crate::coll::direct::staged::{self, LargeSlots, PIECE_BYTES, Staged};
use crate::coll::direct::{Direct, Places};
use crate::coll::hierarchy::Hierarchy;
use crate::coll::schedule::Rank;
use crate::coll::shape::{Blocks, Operation, Tuning};
use crate::coll::staging::HAND_BYTES;
use crate::coll::symmetric_region::Bases;
use crate::coll::table::find;
use crate::coll::team::Team;
use crate::coll::team::TeamCore;
use crate::job::callback;
use crate::msg::TwoSided;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Bytes of the largest block that two members, or an all-to-all, copy twice: each is read once only. These
/// thresholds were measured on 16 cores of an Intel Xeon, with 2 to 16 PEs.
const COPIED_TWICE_BYTES: usize = 8 << 10;
/// Blocks of these lengths in bytes are gathered by messages. Scatters take messages from the first of these
/// lengths on.
const SENT_EAGERLY: Range<usize> = (4 << 10) + 1..32 << 10;
/// The name of the exchanges of words, for messages.
const FIRST_CALL: &str = "the first call";
/// Members of larger groups exchange words over log2 n others.
const SEND_TO_ALL: usize = 16;
const WORD_BYTES: usize = size_of::<u64>();
/// In an exchange: there is no room for a block, or no team to use again.
const NONE: u64 = u64::MAX;

/// Teams whose groups were dropped.
pub(super) type KeptTeams = Mutex<Vec<KeptTeam>>;

/// The team of a group, the number that all its members know it by, and where it goes when the group is
/// dropped.
pub(super) struct KeptTeam {
    id: u64,
    team: Team,
    /// Its large staging slots, once an operation needed them.
    large: OnceLock<Option<LargeSlots>>,
    home: Weak<KeptTeams>,
}

impl MessageGroup {
    /// The team of the group, if its members have room for it. Opens it, if this is the first call: all
    /// members make it.
    #[inline]
    fn direct_team(&self, world: &TwoSided, all: &MessageCollectives) -> Option<&Team> {
        let opened = self.team.get_or_init(|| self.open(world, all));
        opened.as_ref().map(|kept| &kept.team)
    }

    #[cold]
    fn open(&self, world: &TwoSided, all: &MessageCollectives) -> Option<KeptTeam> {
        let is_mapped = self.members.iter().all(|pe| world.memory.is_mapped(pe));
        let kind = world.team.memory;
        let is_possible = is_mapped || Hierarchy::is_possible(kind.0);
        if self.len() == 1 || !is_possible || !world.collectives.prefers_direct() {
            return None;
        }
        let bytes = if is_mapped { DIRECT_BYTES } else { block::bytes(kind, self.len()) };
        let candidate = self.candidate(&all.kept_teams);
        let id = candidate.as_ref().map_or(NONE, |kept| kept.id);
        let ids = self.exchange(world, all, id);
        if id != NONE && ids.iter().all(|&other| other == id) {
            return candidate;
        }
        locked(&all.kept_teams).extend(candidate);
        let offsets = self.blocks(world, all, bytes)?;
        let told = self.members.iter().zip(offsets);
        let bases: Bases = world.checked_blocks(told, bytes);
        let pes: Vec<_> = self.members.iter().collect();
        let team = TeamCore::founded(world, &pes, bases);
        let (large, home) = (OnceLock::new(), Arc::downgrade(&all.kept_teams));
        Some(KeptTeam { id: self.context.0, team, large, home })
    }

    /// The team of the group and its large staging slots, if its members have room for them. Opens them, if
    /// this is the first operation that needs them: all members make it.
    fn staged_team(&self, world: &TwoSided, all: &MessageCollectives) -> Option<(&Team, &LargeSlots)> {
        self.direct_team(world, all).filter(|team| team.is_mapped())?;
        let KeptTeam { team, large, .. } = self.team.get()?.as_ref()?;
        let open = || {
            let offsets = self.blocks(world, all, staged::SLOTS_BYTES)?;
            let told = self.members.iter().zip(offsets);
            let bases: Bases = world.checked_blocks(told, staged::SLOTS_BYTES);
            Some(LargeSlots::new(world, team, &bases))
        };
        Some((team, large.get_or_init(open).as_ref()?))
    }

    /// A block of the pool of each member, all zero: where they lie. `None` if a member has no room.
    fn blocks(&self, world: &TwoSided, all: &MessageCollectives, bytes: usize) -> Option<Vec<u64>> {
        let offset = world.pool_alloc(bytes);
        let offsets = self.exchange(world, all, offset.map_or(NONE, |offset| offset as u64));
        if offsets.contains(&NONE) {
            if let Some(offset) = offset {
                world.pool_free(offset, bytes);
            }
            return None;
        }
        Some(offsets)
    }

    /// A kept team of the same members: the one with the lowest number.
    fn candidate(&self, kept: &KeptTeams) -> Option<KeptTeam> {
        let mut kept = locked(kept);
        let same = |team: &Team| team.members == self.members && team.me == self.me;
        let fitting = kept.iter().enumerate().filter(|(_, kept)| same(&kept.team));
        let (at, _) = fitting.min_by_key(|(_, kept)| kept.id)?;
        Some(kept.swap_remove(at))
    }

    /// One word of each member, by messages: few members send theirs to all others, which is quicker; of many
    /// each one sends to few.
    fn exchange(&self, world: &TwoSided, all: &MessageCollectives, word: u64) -> Vec<u64> {
        let mut words = vec![0u64; self.len()];
        let (from, into) = ((&raw const word).cast::<u8>(), words.as_mut_ptr().cast::<u8>());
        let outcome = match self.len() > SEND_TO_ALL {
            // SAFETY: the word and the words live until the operation is over.
            true => unsafe { self.disseminate(world, all, from, into) },
            // SAFETY: the word and the words live until this operation is over as well.
            false => unsafe { self.send_to_all(world, all, from, into) },
        };
        if outcome.is_err() {
            world.fail(&format!(
                "PE {}: the members of a communicator have called different collective operations, or one \
                 with different sizes. PELAGO_CHECK=on tells which",
                world.my_pe()
            ));
        }
        words
    }
}

impl MessageGroup {
    /// Sends a word to all other members and receives theirs.
    ///
    /// # Safety
    /// The word at `from` is valid for reads and room for a word of each member at `into` for writes.
    unsafe fn send_to_all(
        &self,
        world: &TwoSided,
        all: &MessageCollectives,
        from: *const u8,
        into: *mut u8,
    ) -> Outcome {
        let (slot, bytes) = (0, WORD_BYTES);
        let others = || (0..self.len()).filter(|&rank| rank != self.me);
        let place = |rank: Rank| into.wrapping_add(rank * bytes);
        let exchange = Exchange {
            receives: others().map(|from| Receive { from, slot, into: place(from), bytes }).collect(),
            sends: others().map(|to| Send { to, slot, from, bytes }).collect(),
            copies: [(from, place(self.me), bytes)].into_iter().collect(),
            may_be_shorter: false,
            shorter: None,
        };
        // SAFETY: the caller promises what this function requires.
        unsafe { all.run_exchange(world, self, FIRST_CALL, &exchange) }
    }

    /// The same by an all-gather in which each member meets log2 n others. It is never done over a team.
    ///
    /// # Safety
    /// As [`send_to_all`](MessageGroup::send_to_all).
    unsafe fn disseminate(
        &self,
        world: &TwoSided,
        all: &MessageCollectives,
        from: *const u8,
        into: *mut u8,
    ) -> Outcome {
        callback::forbid(world, FIRST_CALL);
        let call = MessageCall::of_bytes(Operation::AllGather, 0, WORD_BYTES);
        let algorithm = find(Operation::AllGather, "bruck").expect("an algorithm of the table");
        let plan = Plan::by(self, &call, Candidate { algorithm, tuning: Tuning::default() });
        let plan = Arc::new(plan.expect("messages can do it"));
        let memory = Memory { source: from, target: into, combiner: None };
        // SAFETY: the caller promises what this function requires.
        unsafe { all.run_plan(world, (self, &call), plan, &memory) }
    }
}

impl Drop for MessageGroup {
    fn drop(&mut self) {
        if let Some(Some(kept)) = self.team.take()
            && let Some(home) = kept.home.upgrade()
        {
            locked(&home).push(kept);
        }
    }
}

/// The bytes that a member shows in an operation; `None` if it has no direct form.
fn shown_bytes(call: &MessageCall, n: usize) -> Option<usize> {
    if call.counts.is_some() {
        return None;
    }
    let bytes = call.count * call.element_bytes;
    match call.operation {
        Operation::Scatter | Operation::AllToAll | Operation::ReduceScatter => bytes.checked_mul(n),
        _ => Some(bytes),
    }
}

/// Whether an operation may be done over the team of the group, if its members have one: a small one, or one
/// by pairs of nodes, through hand-over areas.
#[inline]
pub(super) fn is_small(call: &MessageCall, group: &MessageGroup) -> bool {
    let is_by_pairs =
        || matches!(call.operation, Operation::AllGather | Operation::AllToAll) && !group.nodes.is_empty();
    let is_small = |bytes| bytes <= PAGE_BYTES || bytes <= HAND_BYTES && is_by_pairs();
    shown_bytes(call, group.len()).is_some_and(is_small)
}

/// Whether members that do not all map each other do an operation by messages although it is small. A member
/// that only sends waits for nobody then. In two levels all leaders wait for each other.
fn goes_one_way(call: &MessageCall, group: &MessageGroup) -> bool {
    match call.operation {
        Operation::Broadcast => true,
        Operation::Reduce | Operation::Gather | Operation::InclusiveScan | Operation::ExclusiveScan => {
            !group.nodes.are_shared()
        }
        _ => false,
    }
}

/// Whether an operation may be done in two levels, if the members do not all map each other.
pub(super) fn has_levels(call: &MessageCall, group: &MessageGroup) -> bool {
    is_small(call, group) && !goes_one_way(call, group)
}

/// Whether an operation that is not small is done over large staging slots, if the members map each other
/// and have them.
pub(super) fn is_staged(call: &MessageCall, group: &MessageGroup) -> bool {
    if call.count == 0 || call.element_bytes == 0 || call.counts.is_some() || !group.nodes.is_empty() {
        return false;
    }
    let (bytes, n) = (call.count.saturating_mul(call.element_bytes), group.len());
    // Two members copy larger blocks once, by a message. Where one of them is the root, a message is as fast
    // for shorter ones as well.
    let are_more = n > 2;
    let pays = are_more || bytes <= COPIED_TWICE_BYTES;
    match call.operation {
        Operation::Broadcast => are_more,
        Operation::AllGather => pays,
        // Eager messages are as fast for the root, as long as all fit into its FIFOs.
        Operation::Gather => are_more && bytes <= PIECE_BYTES && !SENT_EAGERLY.contains(&bytes),
        Operation::Scatter => are_more && bytes < SENT_EAGERLY.start && bytes * n <= PIECE_BYTES,
        Operation::AllToAll => bytes <= COPIED_TWICE_BYTES && staged::share(n, 1) > 0,
        // In place, the data change from call to call: two members that read each other's data and write
        // their own move each line between the cores more often.
        Operation::AllReduce => (pays || call.in_place) && staged::share(1, call.element_bytes) > 0,
        Operation::Reduce => are_more && staged::share(1, call.element_bytes) > 0,
        Operation::ReduceScatter => pays && staged::share(n, call.element_bytes) > 0,
        Operation::Barrier | Operation::InclusiveScan | Operation::ExclusiveScan => false,
    }
}

/// Does an operation over large staging slots, if it has such a form: its outcome.
///
/// # Safety
/// As [`MessageCollectives::run_call`].
#[track_caller]
unsafe fn try_staged(
    world: &TwoSided,
    all: &MessageCollectives,
    group: &MessageGroup,
    call: &MessageCall,
    memory: &Memory,
) -> Option<Outcome> {
    let forced = &world.collectives.preferences().forced;
    if !is_staged(call, group) || forced.contains_key(&call.operation) {
        return None;
    }
    let (team, slots) = group.staged_team(world, all)?;
    let _span = call.record(world, "staged");
    let bytes = call.count * call.element_bytes;
    let staged = Staged::new((world, team), slots, call.operation.name(), bytes);
    let (source, target) = (memory.source, memory.target);
    let combiner = || memory.combiner.as_ref().expect("an operation that combines has a combiner");
    // SAFETY: the caller guarantees source and target.
    unsafe {
        match call.operation {
            Operation::Broadcast => staged.broadcast(call.root, source, target),
            Operation::Scatter => staged.scatter(call.root, source, target),
            Operation::Gather => staged.gather(call.root, source, target),
            Operation::AllGather => staged.all_gather(source, target),
            Operation::AllToAll => staged.all_to_all(source, target),
            Operation::Reduce => staged.reduce(combiner(), Some(call.root), source, target),
            Operation::AllReduce => staged.reduce(combiner(), None, source, target),
            Operation::ReduceScatter => staged.reduce_scatter(combiner(), source, target),
            Operation::Barrier | Operation::InclusiveScan | Operation::ExclusiveScan => return None,
        }
    }
    Some(staged.other_size().map_or(Ok(()), |other| {
        Err(SizeMismatch { pe: team.pe(other.rank), expected: bytes, found: other.bytes })
    }))
}

/// Does an operation over the team of the group, if it has a form for that: its outcome.
///
/// # Safety
/// As [`MessageCollectives::run_call`].
#[inline]
#[track_caller]
pub(super) unsafe fn try_direct(
    world: &TwoSided,
    all: &MessageCollectives,
    group: &MessageGroup,
    call: &MessageCall,
    memory: &Memory,
) -> Option<Outcome> {
    let is_small = is_small(call, group);
    if world.collectives.are_checked()
        && (is_small || call.counts.is_none() && group.nodes.is_empty())
        && let Some(team) = group.direct_team(world, all)
    {
        // Before the form is chosen, which depends on the size.
        check(world, team, call, memory);
    }
    // SAFETY: the caller promises what these functions require.
    unsafe {
        match is_small {
            true => try_small(world, all, group, call, memory).then_some(Ok(())),
            false => try_staged(world, all, group, call, memory),
        }
    }
}

/// Does a small operation over the team of the group, if it has one; whether it was done.
///
/// # Safety
/// As [`MessageCollectives::run_call`].
#[inline]
#[track_caller]
unsafe fn try_small(
    world: &TwoSided,
    all: &MessageCollectives,
    group: &MessageGroup,
    call: &MessageCall,
    memory: &Memory,
) -> bool {
    if !group.nodes.is_empty() && goes_one_way(call, group) {
        // Members of several nodes do not all map each other: no team is needed.
        return false;
    }
    let Some(team) = group.direct_team(world, all) else { return false };
    if !team.is_mapped() {
        // SAFETY: the caller guarantees source and target.
        return unsafe { try_levels(world, (group, team), call, memory) };
    }
    let _span = call.record(world, "direct");
    let direct = Direct { world, team, operation: call.operation.name() };
    let (bytes, own) = (call.count * call.element_bytes, team.my_rank());
    // Small operations look at the places of this member only.
    let mine = |rank: Rank, place: *mut u8| {
        debug_assert_eq!(rank, own, "a small operation looks at another member's memory");
        place
    };
    let source: &Places<'_> = &|rank| mine(rank, memory.source.cast_mut());
    let target: &Places<'_> = &|rank| mine(rank, memory.target);
    let combiner = || memory.combiner.as_ref().expect("an operation that combines has a combiner");
    // SAFETY: the caller guarantees source and target.
    unsafe {
        match call.operation {
            Operation::Barrier => direct.sync(),
            Operation::Broadcast => direct.broadcast(call.root, source, target, bytes),
            Operation::Scatter => direct.scatter(call.root, source, target, bytes),
            Operation::Gather => direct.gather(call.root, source, target, bytes),
            Operation::AllGather => direct.all_gather(source, target, bytes),
            Operation::AllToAll => direct.all_to_all(source, target, bytes),
            Operation::Reduce => direct.reduce(combiner(), Some(call.root), source, target, bytes),
            Operation::AllReduce if bytes <= STAGING_SLOT_BYTES => {
                direct.all_reduce_small(combiner(), memory.source, memory.target, bytes);
            }
            Operation::AllReduce => direct.reduce(combiner(), None, source, target, bytes),
            Operation::ReduceScatter => direct.reduce_scatter(combiner(), source, target, bytes),
            Operation::InclusiveScan => direct.scan(combiner(), true, source, target, bytes),
            Operation::ExclusiveScan => direct.scan(combiner(), false, source, target, bytes),
        }
    }
    true
}

/// The same for members that do not all map each other.
///
/// # Safety
/// As [`MessageCollectives::run_call`].
#[track_caller]
unsafe fn try_levels(
    world: &TwoSided,
    (group, team): (&MessageGroup, &Team),
    call: &MessageCall,
    memory: &Memory,
) -> bool {
    if goes_one_way(call, group) {
        return false;
    }
    let call = Call {
        operation: call.operation,
        root: call.root,
        count: call.count,
        element_bytes: call.element_bytes,
        blocks: Blocks::Equal,
        operands: None,
        combiner: memory.combiner.clone(),
    };
    // SAFETY: the caller guarantees source and target.
    unsafe { team.perform_small_in_levels(world, &call, (memory.source, memory.target)) }
}

/// Compares the call with those of the other members (`PELAGO_CHECK`).
#[cold]
#[track_caller]
fn check(world: &TwoSided, team: &Team, call: &MessageCall, memory: &Memory) {
    let size = (call.count, call.element_bytes);
    let words = words_of(call.operation, memory.combiner.as_ref(), call.root, size, call.in_place);
    if let Err(error) = team.check_call(world, words) {
        world.fail(&error.to_string());
    }
}
