//! Messages: each piece is sent to its PE, which has posted the receives of these pieces before. Invariant: a
//! piece is not changed before its message has left, and has come into the inbox when `carry` returns; the
//! scope guarantees both. Source: Bell, Bonachea, Nishtala, Yelick, "Optimizing Bandwidth Limited Problems
//! Using One-Sided Communication and Overlap", section 5.

use std::ops::Range;

use num_complex::Complex64;
use pelago::prelude::*;
use pelago::{Result, Team};

use super::{Carrier, Lane, Send};
use crate::ft::phases::Phase;

/// The transport of one PE.
pub(super) struct TwoSided<'w> {
    /// All PEs, so that a rank is the number of a PE.
    all: Team<'w>,
}

impl<'w> TwoSided<'w> {
    /// For transpositions into `inbox` and arrays like it.
    pub(super) fn new(inbox: &Symmetric<'w, Complex64>) -> Self {
        TwoSided { all: inbox.world().team() }
    }
}

impl Carrier for TwoSided<'_> {
    fn carry<'s>(
        &self,
        lane: &Lane<'_, '_>,
        steps: Range<usize>,
        produce: &mut dyn FnMut(&mut Send<'_, 's>) -> Result<()>,
    ) -> Result<()> {
        let (round, world) = (lane.transposition, self.all.world());
        world.scope(|scope| -> Result<()> {
            for step in steps {
                for rank in round.team.in_turn().filter(|&rank| rank != round.team.me) {
                    let place = round.place(step, rank);
                    let piece = lane.inbox.span(place..place + round.piece_len());
                    scope.receive_span(&self.all, round.team.pe(rank), step as u32, piece)?;
                }
            }
            lane.clock.lap(Phase::CommunicationStart);
            produce(&mut |message, piece| {
                lane.count(message.pe, piece);
                if message.rank == round.team.me {
                    lane.inbox.local().write(message.place, piece);
                    lane.clock.lap(Phase::InMemoryTransfer);
                } else {
                    scope.send(&self.all, message.pe, message.step as u32, piece)?;
                    // Earlier messages move only while this PE makes progress.
                    world.progress();
                    lane.clock.lap(Phase::CommunicationStart);
                }
                Ok(())
            })
        })
    }

    fn is_immediate(&self) -> bool {
        false
    }

    fn frees_staging(&self) -> bool {
        false
    }
}
