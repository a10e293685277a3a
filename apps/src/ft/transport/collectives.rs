//! All-to-all operations: the pieces of a step are packed into the outbox, and one non-blocking all-to-all of
//! the team carries them into the inboxes. Invariant: a part of the outbox is not changed before the
//! all-to-all that reads it is over; every operation is awaited before `carry` returns. Source: Nishtala et
//! al., "Scaling Communication-Intensive Applications on BlueGene/P Using One-Sided Communication and
//! Overlap", algorithm 1.

use std::ops::Range;

use num_complex::Complex64;
use pelago::prelude::*;
use pelago::{Request, Result, Team};

use super::{Carrier, Lane, Send};
use crate::ft::layout::Layout;
use crate::ft::phases::Phase;
use crate::ft::transposition::{Among, Message, Pieces};

/// The transport of one PE.
pub(super) struct Collectives<'w> {
    all: Team<'w>,
    /// This PE's row and column of the process grid.
    row_and_column: Option<(Team<'w>, Team<'w>)>,
    outbox: Symmetric<'w, Complex64>,
}

impl<'w> Collectives<'w> {
    /// Collective: for transpositions into `inbox` and arrays like it.
    ///
    /// # Errors
    /// If there is no memory for teams and outbox.
    pub(super) fn new(layout: &Layout, inbox: &Symmetric<'w, Complex64>) -> Result<Self> {
        let world = inbox.world();
        let all = world.team();
        let row_and_column = layout.grid.map(|grid| all.split_2d(grid.ty)).transpose()?;
        Ok(Collectives { all, row_and_column, outbox: world.alloc(layout.len())? })
    }

    /// Starts the all-to-all of a step.
    fn start<'a>(&'a self, lane: &Lane<'a, 'w>, step: usize) -> Result<Request<'a>> {
        let (round, team) = (lane.transposition, self.team(lane.transposition.team.among).nonblocking());
        let pieces: Vec<_> =
            (0..round.team.count).map(|rank| (round.place(step, rank), round.piece_len())).collect();
        if round.pieces == Pieces::Pencils {
            return team.all_to_all_varying(lane.inbox, &self.outbox, &pieces, &pieces);
        }
        let all = round.place(step, 0)..round.place(step + 1, 0);
        team.all_to_all(lane.inbox.span(all.clone()), self.outbox.span(all))
    }

    fn team(&self, among: Among) -> &Team<'w> {
        match (among, &self.row_and_column) {
            (Among::Row, Some((row, _))) => row,
            (Among::Column, Some((_, column))) => column,
            _ => &self.all,
        }
    }
}

impl Carrier for Collectives<'_> {
    fn carry<'s>(
        &self,
        lane: &Lane<'_, '_>,
        _: Range<usize>,
        produce: &mut dyn FnMut(&mut Send<'_, 's>) -> Result<()>,
    ) -> Result<()> {
        let (round, world, outbox) = (lane.transposition, self.outbox.world(), self.outbox.local());
        let mut requests = Vec::new();
        produce(&mut |Message { step, rank, pe, .. }, piece| {
            outbox.write(round.place(step, rank), piece);
            lane.count(pe, piece);
            lane.clock.lap(Phase::InMemoryTransfer);
            // Earlier operations move only while this PE makes progress.
            world.progress();
            if rank == round.team.me {
                requests.push(self.start(lane, step)?);
            }
            lane.clock.lap(Phase::CommunicationStart);
            Ok(())
        })?;
        requests.into_iter().for_each(Request::wait);
        Ok(())
    }

    fn is_immediate(&self) -> bool {
        false
    }

    fn frees_staging(&self) -> bool {
        true
    }
}
