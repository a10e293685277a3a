//! The exchange of agreement records between members that map each other.
//!
//! Invariant: it has a number of the direct operations, and a word that says that the member's operation of
//! this number is an agreement. So a member that makes another call in its place is found.

use super::Direct;
use crate::coll::agreement_record::{AGREEMENT_WORDS, AgreementRecord};
use crate::coll::block::{PAGE_BYTES, STAGING_PAGES};
use crate::coll::schedule::Rank;
use crate::job::callback;
use pelago_fabric::copy;
use pelago_fabric::sync::Ordering;

impl Direct<'_> {
    /// Exchanges agreement records: `each` gets those of all members, in the order of the ranks. The rank of
    /// a member that makes another call, if one does: the exchange has not taken place.
    #[track_caller]
    pub fn agree(
        &self,
        own: &AgreementRecord,
        each: &mut dyn FnMut(Rank, &AgreementRecord),
    ) -> Result<(), Rank> {
        const _: () = assert!(size_of::<AgreementRecord>() <= PAGE_BYTES);
        callback::forbid(self.world, self.operation);
        let (team, bytes) = (self.team, size_of::<AgreementRecord>());
        let number = team.sequence.load(Ordering::Relaxed) + 1;
        // All members have read the page of this number: they have begun a later operation.
        self.make_room(number, STAGING_PAGES);
        team.agreed(team.my_rank(), number).raise(number);
        self.begin();
        self.wake();
        self.await_agreement(number)?;
        // SAFETY: the record has this many bytes.
        unsafe { self.show(number, own.as_ptr().cast(), bytes) };
        for rank in 0..team.len() {
            let mut theirs: AgreementRecord = [0; AGREEMENT_WORDS];
            // SAFETY: the member shows a record, and the local one has room for it.
            unsafe { copy::transfer(theirs.as_mut_ptr().cast(), self.look(rank, number, bytes), bytes) };
            each(rank, &theirs);
        }
        team.begun_by_all.store(number, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until all members have begun this agreement, or one has made another call in its place.
    #[track_caller]
    fn await_agreement(&self, number: u64) -> Result<(), Rank> {
        let elsewhere = || (0..self.team.len()).find(|&rank| self.is_elsewhere(rank, number));
        for rank in 0..self.team.len() {
            let begun = self.team.begun(rank);
            if !begun.has_reached(number) {
                let ready = || begun.has_reached(number) || elsewhere().is_some();
                // Counted: a member that makes another call wakes this one too.
                self.world.wait_with(self.awaits(rank), Some(self.team.begun_waiters(rank)), ready);
            }
        }
        elsewhere().map_or(Ok(()), Err)
    }

    /// Whether a member makes another call where this one makes the agreement of that number.
    fn is_elsewhere(&self, rank: Rank, number: u64) -> bool {
        let team = self.team;
        // Read first: a member that began the agreement before it started a schedule is seen to have begun.
        let started = team.started(rank).number();
        match team.begun(rank).has_reached(number) {
            // No later agreement has taken the word before all have begun a later operation.
            true => team.agreed(rank, number).number() != number,
            false => started > team.started(team.my_rank()).number(),
        }
    }
}
