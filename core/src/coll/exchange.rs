//! The exchange of agreement records by a schedule, for members that do not all map each other.
//!
//! Invariant: its signals have a kind of their own, and its data arrive where no other operation puts any.
//! So the data found there when the signals have come were sent by the same exchange of the other members.
//!
//! The memory for an exchange does not grow with the team. In a team with more members than an area has room
//! for, the records come in parts, an area full at a time: by a bitwise or of areas in which the records of
//! all other members are zero. Each part is an exchange of its own, so that the areas are used in turn, and
//! the number of parts is odd, so that the area of the next exchange is the other one.

use super::agreement_record::AgreementRecord;
use super::block::{self, SAID_BYTES};
use super::engine::Operands;
use super::hierarchy::Hierarchy;
use super::reduction::{Combiner, ReduceOp};
use super::schedule::{MAILBOX_BYTES, Rank};
use super::shape::{Operation, Shape};
use super::sync_memory::{ALL_SIGNAL_MAX, Plan};
use super::table::find;
use crate::base::awaited::Awaited;
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;
use crate::job::callback;
use crate::wait::stall;
use pelago_fabric::copy;
use pelago_fabric::sync::{AtomicU64, Ordering};
use std::ops::Range;
use std::sync::Arc;

/// Looks for signals between two looks whether a member makes a call in two levels.
const LOOKS_PER_KIND_CHECK: u32 = 64;

/// The words of a member in an exchange.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Said {
    /// How many calls it has begun in two levels.
    calls: u64,
    record: AgreementRecord,
}

const _: () = assert!(size_of::<Said>() == SAID_BYTES);

/// An exchange under way: the number and the call of this PE.
struct Exchange<'a> {
    world: &'a Teams,
    team: &'a Arc<TeamCore>,
    number: u64,
    said: &'a str,
    /// Members that an area has room for.
    ranks: usize,
}

impl TeamCore {
    /// A member that has begun an agreement before the last of `calls` calls in two levels of this PE, if it
    /// is seen to: it has begun fewer calls, and an agreement that this PE has not begun. In a team that
    /// exchanges its records in parts none is seen.
    pub fn agrees_before(&self, world: &Teams, calls: u64) -> Option<Rank> {
        let own = self.own_start(&world.memory);
        let ranks = {
            let engine = self.engine();
            if engine.has_arrays() {
                return None;
            }
            block::area_ranks(engine.block_ranks, false)
        };
        if self.len() > ranks {
            return None;
        }
        // SAFETY: the words of the own block lie at these offsets and are accessed as atomics only.
        let word = |offset: usize| unsafe { &*own.add(offset).cast::<AtomicU64>() };
        let next = self.agreed_last.load(Ordering::Relaxed) + 1;
        let area = block::exchange_offset(ranks, next);
        let begun = |rank: &Rank| word(area + rank * SAID_BYTES).load(Ordering::Relaxed);
        let (tag, slots) = (self.tag(self.me), world.pair_block.own(&world.memory, world.my_pe()));
        let mut pairs = world.pairs();
        let mut agrees = |rank: &Rank| pairs.agrees_next(self.pe(*rank), tag, &slots);
        (0..self.len()).find(|rank| *rank != self.me && agrees(rank) && begun(rank) < calls)
    }
}

impl Teams {
    /// An all-gather of the runtime itself: `each` gets the records of all members, in the order of the
    /// ranks, of which this PE gives `own`. It is a schedule of puts, and its signals have a kind of their
    /// own, so that no user's collective can be taken for it. `said` is the call of this PE.
    #[track_caller]
    pub fn exchange_by_schedule(
        &self,
        team: &Arc<TeamCore>,
        (number, said): (u64, &str),
        own: &AgreementRecord,
        each: &mut dyn FnMut(Rank, &AgreementRecord),
    ) {
        callback::forbid(self, "exchange");
        let ranks = {
            let engine = team.engine();
            block::area_ranks(engine.block_ranks, engine.has_arrays())
        };
        team.agrees(&self.memory, number);
        let calls = team.levels().map_or(0, Hierarchy::calls);
        let own = Said { calls, record: *own };
        let exchange = Exchange { world: self, team, number, said, ranks };
        if team.len() <= ranks {
            return exchange.at_once(&own, each);
        }
        let parts = team.len().div_ceil(ranks) | 1;
        for part in 0..parts {
            exchange.part(part, &own, each);
        }
    }
}

impl Exchange<'_> {
    /// Brings the records of all members to all.
    #[track_caller]
    fn at_once(&self, own: &Said, each: &mut dyn FnMut(Rank, &AgreementRecord)) {
        let n = self.team.len();
        let shape = Shape::new(Operation::AllGather, self.team.my_rank(), n, SAID_BYTES, 1);
        let name = if n <= ALL_SIGNAL_MAX { "linear" } else { "bruck" };
        let source = self.team.own_start(&self.world.memory);
        let source = source.wrapping_add(block::own_notice_offset(self.ranks, self.number));
        // SAFETY: the block has room for it there, which the exchange but one before has left.
        unsafe { copy::copy(source, (&raw const *own).cast(), SAID_BYTES) };
        let target = self.run(&shape, name, self.number, (source, n * SAID_BYTES), None);
        take(target, 0..n, each);
    }

    /// Brings the records of as many members to all as an area has room for.
    #[track_caller]
    fn part(&self, part: usize, own: &Said, each: &mut dyn FnMut(Rank, &AgreementRecord)) {
        let (n, me) = (self.team.len(), self.team.my_rank());
        let first = (part * self.ranks).min(n);
        let of_part = first..(first + self.ranks).min(n);
        let mut source = vec![Said::default(); self.ranks];
        if of_part.contains(&me) {
            source[me - first] = *own;
        }
        let bytes = self.ranks * SAID_BYTES;
        let shape = Shape::new(Operation::AllReduce, me, n, bytes / size_of::<u64>(), size_of::<u64>());
        let or = Combiner::of::<u64>(ReduceOp::Or);
        let number = self.number + part as u64;
        let target = self.run(&shape, "recursive_doubling", number, (source.as_mut_ptr().cast(), bytes), or);
        take(target, of_part, each);
    }

    /// Runs a schedule whose target, of `bytes` bytes, is an area of the block, and returns that.
    #[track_caller]
    fn run(
        &self,
        shape: &Shape,
        algorithm: &str,
        number: u64,
        (source, target_bytes): (*mut u8, usize),
        combiner: Option<Combiner>,
    ) -> *const u8 {
        let Exchange { world, team, said, ranks, .. } = *self;
        let algorithm = find(shape.operation, algorithm).expect("these are in the table");
        let plan =
            Arc::new(Plan::new(algorithm.schedule(shape, MAILBOX_BYTES)).of_agreement(said.to_owned()));
        let offset = block::exchange_offset(ranks, number);
        let target = team.own_start(&world.memory).wrapping_add(offset);
        let target_bases = team.bases.clone().plus(offset);
        let source_bytes = shape.block_bytes();
        let operands = Operands { source, source_bytes, target, target_bytes, target_bases, combiner };
        // SAFETY: the area has room for the target, and the source is valid until the operation is over.
        let started = unsafe { world.start_collective(team, "exchange", &plan, operands, [None, None]) };
        let progress = started.expect("without memory for the operation the job ends");
        let awaited = Awaited::Collective { operation: "exchange", pe: None };
        let needed = stall::Needed::begin();
        let mut looks = 0u32;
        let ready = || {
            needed.note(progress.awaits());
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_PER_KIND_CHECK)
                && let Some(rank) = team.finds_call(world)
            {
                team.fail_met(world, said, rank);
            }
            progress.is_done()
        };
        world.wait_for_members(awaited, ready, || progress.awaits());
        target
    }
}

/// Gives the records of these members, which have arrived one after the other, to `each`.
fn take(target: *const u8, ranks: Range<Rank>, each: &mut dyn FnMut(Rank, &AgreementRecord)) {
    for (place, rank) in ranks.enumerate() {
        let mut theirs = Said::default();
        // SAFETY: the words of as many members have arrived there; the local ones have room for a member's.
        unsafe { copy::copy((&raw mut theirs).cast(), target.add(place * SAID_BYTES), SAID_BYTES) };
        each(rank, &theirs.record);
    }
}
