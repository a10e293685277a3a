//! The waits of a schedule: the arrival of signals, and of what comes with them.
//!
//! Invariant: a signal of a user's operation is never taken for one of an agreement, nor the other way
//! round.

use super::{Held, Lease, Request, TeamEngine};
use crate::coll::announced::Announced;
use crate::coll::block;
use crate::coll::schedule::{Rank, Slot};
use crate::coll::sync_memory::{ANNOUNCES, ArrayLease, Arrays, Arrived, Data};
use crate::coll::teams::Teams;
use pelago_fabric::sync::{AtomicU64, Ordering};

impl Request {
    /// Whether a signal has come; takes the place that it announces.
    pub fn has_come(&mut self, world: &Teams, held: &mut Held<'_>, of: Rank, slot: Slot) -> bool {
        match self.lease.as_mut().expect("it is admitted") {
            &mut Lease::Array(lease) => self.has_come_in_array(world, held.engine, lease, of, slot),
            Lease::Pairs(lease) => {
                let taken = held.pairs.take((&self.plan, lease), self.at, self.team.pe(of), held.own);
                let Ok(taken) = taken else { self.fail_other_kind(world, Some(of)) };
                let Some(Arrived { announces, bytes: sent, data, .. }) = taken else { return false };
                match &data {
                    Data::Mailbox(bytes) if announces => self.announced.push(announced(slot, &bytes.0)),
                    _ => (),
                }
                if let Some(&bytes) = self.plan.mailboxes.get(&slot) {
                    if bytes > sent {
                        self.fail_short(world, of, (bytes, sent));
                    }
                    self.mailboxes.reserve_exact(self.plan.mailboxes.len() - self.mailboxes.len());
                    self.mailboxes.push((slot, data));
                } else {
                    held.pairs.give(data);
                }
                true
            }
        }
    }

    fn has_come_in_array(
        &mut self,
        world: &Teams,
        engine: &mut TeamEngine,
        lease: ArrayLease,
        of: Rank,
        slot: Slot,
    ) -> bool {
        let ranks = engine.block_ranks;
        let arrays = engine.arrays.as_mut().expect("an array was admitted");
        let expected = arrays.mark(&self.plan, lease, slot);
        let own = self.team.own_start(&world.memory);
        // SAFETY: the words of the own block lie at these offsets and are accessed as atomics only.
        let word = |offset: usize| unsafe { &*own.add(offset).cast::<AtomicU64>() };
        // SYNC POINT mark: acquires the earlier stores and loads of the signalling PE.
        let found = word(block::word_offset(ranks, expected.index)).load(Ordering::Acquire);
        if !arrays.has_come(expected, found) {
            if Arrays::is_of_other_kind(expected, found) {
                self.fail_other_kind(world, Some(of));
            }
            return false;
        }
        if found & ANNOUNCES != 0 {
            let places = block::announced_offsets(ranks, expected.index);
            let [offset, bytes] = places.map(|offset| word(offset).load(Ordering::Relaxed) as usize);
            self.announced.push(Announced { slot, offset, bytes });
        }
        true
    }

    /// Looks through all that has come for this operation in its array, if it is of the other kind: a member
    /// that makes another call signals perhaps elsewhere than this one looks.
    #[cold]
    #[inline(never)]
    pub fn check_kinds(&self, world: &Teams, engine: &TeamEngine) {
        let (Some(Lease::Array(lease)), Some(arrays)) = (&self.lease, &engine.arrays) else { return };
        let own = self.team.own_start(&world.memory);
        for expected in arrays.all_expected(&self.plan, *lease) {
            let offset = block::word_offset(engine.block_ranks, expected.index);
            // SAFETY: the words of the own block lie at these offsets and are accessed as atomics only.
            let found = unsafe { &*own.add(offset).cast::<AtomicU64>() }.load(Ordering::Relaxed);
            if Arrays::is_of_other_kind(expected, found) {
                self.fail_other_kind(world, None);
            }
        }
    }

    /// Reports that a member has sent fewer bytes than this PE reads: it makes another call than this PE.
    #[cold]
    #[track_caller]
    fn fail_short(&self, world: &Teams, rank: Rank, (bytes, sent): (usize, usize)) -> ! {
        let (me, pe, operation) = (world.my_pe(), self.team.pe(rank), self.operation);
        let remedy = "All members must give the same sizes; PELAGO_CHECK=on tells who does not";
        let text =
            format!("{operation} of a team expects {bytes} bytes of PE {pe}, which has sent {sent} at most");
        world.fail(&format!("PE {me}: {text}. {remedy}"))
    }
}

/// The place that a signal of a pair has announced.
fn announced(slot: Slot, bytes: &[u8]) -> Announced {
    let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[at + i])) as usize;
    Announced { slot, offset: word(0), bytes: word(8) }
}
