//! Meetings of PEs that do the same at the same time, and whose shares come to PE 0, which leads. Invariant:
//! all members of a meeting, and PE 0, take part in all meetings of the same account, in the same order.

use std::cell::Cell;
use std::time::Duration;

use pelago::prelude::*;

use super::crowd::{Crowd, HOST, Share};

/// What a member reports: operations, and start and length of the count in nanoseconds.
const REPORT_WORDS: usize = 3;

/// The account of the meetings of so many members.
pub(super) struct Meetings<'w> {
    members: usize,
    crowd: Crowd<'w>,
    reports: Symmetric<'w, u64>,
    held: Cell<u64>,
}

impl<'w> Meetings<'w> {
    /// Collective.
    ///
    /// # Errors
    /// If the symmetric heap has no room for a few words.
    pub(super) fn new(world: &'w World, members: usize) -> pelago::Result<Self> {
        let reports = world.alloc_zeroed(members * REPORT_WORDS)?;
        Ok(Meetings { members, crowd: Crowd::new(world)?, reports, held: Cell::new(0) })
    }

    /// Takes part in the next meeting as this member: see [`Crowd::work`].
    ///
    /// # Errors
    /// Those of `batch`.
    pub(super) fn work(
        &self,
        member: usize,
        window: Duration,
        batch: impl FnMut(u64) -> pelago::Result<()>,
    ) -> pelago::Result<()> {
        self.crowd.work(self.members_so_far(), window, batch, |share: Share| {
            let report = [share.operations, share.start_ns, share.elapsed_ns];
            self.reports.put(HOST, member * REPORT_WORDS, &report)
        })
    }

    /// PE 0 waits, and serves the others, until all members of the next meeting are done.
    pub(super) fn attend(&self) {
        self.crowd.await_all(self.members_so_far());
    }

    /// On PE 0, what the members have done in the last meeting.
    pub(super) fn shares(&self) -> Vec<Share> {
        let share =
            |report: &[u64]| Share { operations: report[0], start_ns: report[1], elapsed_ns: report[2] };
        self.reports.local().to_vec().chunks_exact(REPORT_WORDS).map(share).collect()
    }

    /// Members of all meetings, the next one included.
    fn members_so_far(&self) -> u64 {
        self.held.set(self.held.get() + 1);
        self.held.get() * self.members as u64
    }
}
