//! The exchange of agreement records by a schedule, for members that do not all map each other.
//!
//! Invariant: its signals have a kind of their own, and its data arrive where no other operation puts any.
//! So the data found there when the signals have come were sent by the same exchange of the other members.

use super::block;
use super::engine::Operands;
use super::hierarchy::Hierarchy;
use super::schedule::{MAILBOX_BYTES, Rank};
use super::shape::{Operation, Shape};
use super::sync_memory::{ALL_SIGNAL_MAX, Plan};
use super::table::find;
use crate::base::awaited::Awaited;
use crate::coll::symmetric_region::Bases;
use crate::coll::team::TeamCore;
use crate::coll::teams::Teams;
use crate::job::callback;
use crate::wait::stall;
use pelago_fabric::copy;
use pelago_fabric::sync::{AtomicU64, Ordering};
use std::sync::Arc;

/// Looks for signals between two looks whether a member makes a call in two levels.
const LOOKS_PER_KIND_CHECK: u32 = 64;

impl TeamCore {
    /// A member that has begun an agreement before the last of `calls` calls in two levels of this PE, if it
    /// is seen to: it has begun fewer calls, and an agreement that this PE has not begun.
    pub fn agrees_before(&self, world: &Teams, calls: u64) -> Option<Rank> {
        let own = self.own_start(&world.memory);
        let ranks = {
            let engine = self.engine();
            if engine.has_arrays() {
                return None;
            }
            engine.block_ranks
        };
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
        (exchange, said): (u64, String),
        value: &[u8],
        values: &mut [u8],
    ) {
        callback::forbid(self, "exchange");
        let (n, ranks) = (team.len(), team.engine().block_ranks);
        team.agrees(&self.memory, exchange);
        let said_bytes = value.len() + 8;
        assert!(said_bytes <= block::SAID_BYTES, "the area of an exchange has room for it");
        let shape = Shape::new(Operation::AllGather, team.my_rank(), n, said_bytes, 1);
        let algorithm = find(Operation::AllGather, if n <= ALL_SIGNAL_MAX { "linear" } else { "bruck" });
        let algorithm = algorithm.expect("these are in the table");
        let met = said.clone();
        let plan = Plan::new(algorithm.schedule(&shape, MAILBOX_BYTES)).of_agreement(said);
        let plan = Arc::new(plan);
        let offset = block::exchange_offset(ranks, exchange);
        let target = team.own_start(&self.memory).wrapping_add(offset);
        let target_bases = Bases::of((0..n).map(|rank| team.base(rank) + offset).collect());
        let source = team.own_start(&self.memory).wrapping_add(block::own_notice_offset(ranks, exchange));
        let calls = team.levels().map_or(0, Hierarchy::calls).to_ne_bytes();
        // SAFETY: the block has room for an agreement record there, and a word, which the exchange but one
        // before has left.
        unsafe {
            copy::copy(source, calls.as_ptr(), calls.len());
            copy::copy(source.add(calls.len()), value.as_ptr(), value.len());
        }
        let (source_bytes, target_bytes) = (said_bytes, n * said_bytes);
        let operands = Operands { source, source_bytes, target, target_bytes, target_bases, combiner: None };
        // SAFETY: the block has room for a value of each member at this offset, and for the own one.
        let started = unsafe { self.start_collective(team, "exchange", &plan, operands, [None, None]) };
        let progress = started.expect("these algorithms take no memory");
        let awaited = Awaited::Collective { operation: "exchange", pe: None };
        let needed = stall::Needed::begin();
        let mut looks = 0u32;
        self.wait(awaited, || {
            needed.note(progress.awaits());
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_PER_KIND_CHECK)
                && let Some(rank) = team.finds_call(self)
            {
                team.fail_met(self, &met, rank);
            }
            progress.is_done()
        });
        drop(needed);
        for (rank, value) in values.chunks_exact_mut(value.len()).enumerate() {
            // SAFETY: the values of all members have arrived there, each behind a word.
            unsafe { copy::copy(value.as_mut_ptr(), target.add(rank * said_bytes + 8), value.len()) };
        }
    }
}
