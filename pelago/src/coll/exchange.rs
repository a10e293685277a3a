//! The exchange of notices by a schedule, for members that do not all map each other.
//!
//! Invariant: its signals have a kind of their own, and its data arrive where no other operation puts any. So
//! what is found there when the signals have come was sent by the same exchange of the other members.

use super::block;
use super::engine::Operands;
use super::shape::{Operation, Shape};
use super::sync_memory::{ALL_SIGNAL_MAX, Plan};
use super::table::find;
use crate::realm::Bases;
use crate::restricted;
use crate::stall;
use crate::team::TeamCore;
use crate::wait::Awaited;
use crate::world::World;
use pelago_fabric::copy;
use std::sync::Arc;

impl World {
    /// An all-gather of the runtime itself: returns the values of all members by rank, of which this PE gives
    /// `value`. It is a schedule of puts, and its signals have a kind of their own, so that no user's
    /// collective can be taken for it. `said` is the call of this PE.
    #[track_caller]
    pub(crate) fn exchange_by_schedule(
        &self,
        team: &Arc<TeamCore>,
        (exchange, said): (u64, String),
        value: &[u8],
        values: &mut [u8],
    ) {
        restricted::forbid(self, "exchange");
        let (n, ranks) = (team.len(), team.engine().block_ranks);
        let shape = Shape::new(Operation::AllGather, team.my_rank(), n, value.len(), 1);
        let algorithm = find(Operation::AllGather, if n <= ALL_SIGNAL_MAX { "linear" } else { "bruck" });
        let algorithm = algorithm.expect("these are in the table");
        let plan = Plan::new(algorithm.schedule(&shape, block::MAILBOX_BYTES)).of_agreement(said);
        let plan = Arc::new(plan);
        let offset = block::exchange_offset(ranks, exchange);
        let target = team.own_start(&self.memory).wrapping_add(offset);
        let target_bases = Bases::of((0..n).map(|rank| team.base(rank) + offset).collect());
        let source = team.own_start(&self.memory).wrapping_add(block::own_notice_offset(ranks, exchange));
        // SAFETY: the block has room for a notice there, which the exchange but one before has left.
        unsafe { copy::copy(source, value.as_ptr(), value.len()) };
        let (source_bytes, target_bytes) = (value.len(), values.len());
        let operands = Operands { source, source_bytes, target, target_bytes, target_bases, combiner: None };
        // SAFETY: the block has room for a value of each member at this offset, and for the own one.
        let started = unsafe { self.start_collective(team, "exchange", &plan, operands, [None, None]) };
        let progress = started.expect("these algorithms take no memory");
        let awaited = Awaited::Collective { operation: "exchange", pe: None };
        let needed = stall::Needed::begin();
        self.wait(awaited, || {
            needed.note(progress.awaits());
            progress.is_done()
        });
        drop(needed);
        // SAFETY: the values of all members have arrived there.
        unsafe { copy::copy(values.as_mut_ptr(), target, values.len()) };
    }
}
