//! Slots for panels that are sent by collective operations, and when they are free again. Invariant: a slot
//! gets a panel only when all members of the teams that use it have released the panel that it had.

use std::collections::VecDeque;

use pelago::prelude::*;
use pelago::{Request, Result};

/// The number of slots: for the panel in use, for the panel under way, and for one that slower members still
/// use.
pub(crate) const SLOTS: usize = 3;

/// The announcements of a PE that it no longer needs the panels of earlier steps.
#[derive(Default)]
pub(crate) struct Releases<'t>(VecDeque<Vec<Request<'t>>>);

impl<'t> Releases<'t> {
    /// Collective in each of the teams: releases the panels of a step.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub(crate) fn release<'w: 't>(&mut self, teams: [&'t Team<'w>; 2]) -> Result<()> {
        let shared = teams.into_iter().filter(|team| team.n_pes() > 1);
        self.0.push_back(shared.map(|team| team.nonblocking().sync()).collect::<Result<_>>()?);
        Ok(())
    }

    /// Waits until the slot of a step is free; the steps come in order.
    pub(crate) fn wait_for_slot(&mut self, step: usize) {
        if step >= SLOTS {
            self.wait_for_oldest();
        }
    }

    /// Waits until all members have released all panels that this PE has released.
    pub(crate) fn wait_for_all(&mut self) {
        while !self.0.is_empty() {
            self.wait_for_oldest();
        }
    }

    fn wait_for_oldest(&mut self) {
        self.0.pop_front().into_iter().flatten().for_each(Request::wait);
    }
}
