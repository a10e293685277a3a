//! The exchange of agreement records by a schedule, for members that do not all map each other.
//!
//! Invariant: its signals have a kind of their own, and its data arrive where no other operation puts any.
//! So the data found there when the signals have come were sent by the same exchange of the other members.
//!
//! The memory for an exchange does not grow with the team. In a team with more members than an area has room
//! for, the records come in parts, an area full at a time: by a bitwise or of areas in which the records of
//! all other members are zero. Each part is an exchange of its own, so that the areas are used in turn, and
//! the number of parts is odd, so that the area of the next exchange is the other one.

use super::block;
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
use std::sync::Arc;

/// Looks for signals between two looks whether a member makes a call in two levels.
const LOOKS_PER_KIND_CHECK: u32 = 64;

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
        let begun = |rank: &Rank| word(area + rank * block::SAID_BYTES).load(Ordering::Relaxed);
        let (tag, slots) = (self.tag(self.me), world.pair_block.own(&world.memory, world.my_pe()));
        let mut pairs = world.pairs();
        let mut agrees = |rank: &Rank| pairs.agrees_next(self.pe(*rank), tag, &slots);
        (0..self.len()).find(|rank| *rank != self.me && agrees(rank) && begun(rank) < calls)
    }
}

impl Teams {
    /// An all-gather of the runtime itself: returns the values of all members by rank, of which this PE
    /// gives `value`. It is a schedule of puts, and its signals have a kind of their own, so that no user's
    /// collective can be taken for it. `said` is the call of this PE.
    #[track_caller]
    pub fn exchange_by_schedule(
        &self,
        team: &Arc<TeamCore>,
        (number, said): (u64, &str),
        value: &[u8],
        values: &mut [u8],
    ) {
        callback::forbid(self, "exchange");
        let ranks = {
            let engine = team.engine();
            block::area_ranks(engine.block_ranks, engine.has_arrays())
        };
        team.agrees(&self.memory, number);
        let calls = team.levels().map_or(0, Hierarchy::calls);
        let own = [&calls.to_ne_bytes(), value].concat();
        assert!(own.len() <= block::SAID_BYTES, "the area of an exchange has room for it");
        let exchange = Exchange { world: self, team, number, said, ranks };
        if team.len() <= ranks {
            return exchange.at_once(&own, values);
        }
        let parts = team.len().div_ceil(ranks) | 1;
        for part in 0..parts {
            exchange.part(part, &own, values);
        }
    }
}

impl Exchange<'_> {
    /// Brings the values of all members to all, each behind a word.
    #[track_caller]
    fn at_once(&self, own: &[u8], values: &mut [u8]) {
        let n = self.team.len();
        let shape = Shape::new(Operation::AllGather, self.team.my_rank(), n, own.len(), 1);
        let name = if n <= ALL_SIGNAL_MAX { "linear" } else { "bruck" };
        let source = self.team.own_start(&self.world.memory);
        let source = source.wrapping_add(block::own_notice_offset(self.ranks, self.number));
        // SAFETY: the block has room for an agreement record there, and a word, which the exchange but one
        // before has left.
        unsafe { copy::copy(source, own.as_ptr(), own.len()) };
        let target = self.run(&shape, name, self.number, (source, n * own.len()), None);
        self.take(target, own.len(), values);
    }

    /// Brings the values of as many members to all as an area has room for.
    #[track_caller]
    fn part(&self, part: usize, own: &[u8], values: &mut [u8]) {
        let (n, me) = (self.team.len(), self.team.my_rank());
        let first = part * self.ranks;
        let words = self.ranks * own.len() / size_of::<u64>();
        // Words, so that they are aligned for the operation that combines them.
        let mut source = vec![0_u64; words];
        if let Some(place) = me.checked_sub(first).filter(|&place| place < self.ranks) {
            // SAFETY: the place lies in the source, which has room for `ranks` values.
            unsafe {
                copy::copy(source.as_mut_ptr().cast::<u8>().add(place * own.len()), own.as_ptr(), own.len())
            };
        }
        let shape = Shape::new(Operation::AllReduce, me, n, words, size_of::<u64>());
        let or = Combiner::of::<u64>(ReduceOp::Or);
        let number = self.number + part as u64;
        let place = (source.as_mut_ptr().cast(), words * size_of::<u64>());
        let target = self.run(&shape, "recursive_doubling", number, place, or);
        let value_bytes = own.len() - size_of::<u64>();
        let of_part = values.chunks_mut(self.ranks * value_bytes).nth(part);
        self.take(target, own.len(), of_part.unwrap_or_default());
    }

    /// Copies values that have arrived, each behind a word.
    fn take(&self, target: *const u8, said_bytes: usize, values: &mut [u8]) {
        let value_bytes = said_bytes - size_of::<u64>();
        for (place, value) in values.chunks_exact_mut(value_bytes).enumerate() {
            // SAFETY: the values have arrived there, and there is room for no more.
            unsafe { copy::copy(value.as_mut_ptr(), target.add(place * said_bytes + 8), value_bytes) };
        }
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
        world.wait(awaited, || {
            needed.note(progress.awaits());
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_PER_KIND_CHECK)
                && let Some(rank) = team.finds_call(world)
            {
                team.fail_met(world, said, rank);
            }
            progress.is_done()
        });
        target
    }
}
