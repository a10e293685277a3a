//! Agreement: a collective call that all PEs must make with the same arguments, and that reports an error if
//! they do not.
//!
//! Each PE publishes an agreement record of its call and passes a barrier. On one node it then compares all
//! agreement records with its own. On several nodes the barrier combines the votes of all PEs ([`Vote`]), and
//! agreement records are read only to find the PE that makes another call. Two agreement records are used in
//! turn: no PE publishes its record of the next agreement but one before all PEs have passed the barrier of
//! the next, and so have read this one.
//!
//! The agreement record, or the vote, also carries which arrays the PE has dropped. An array's memory is
//! reclaimed at the next agreement after the last PE has dropped it: dropping is local, needs no order, and
//! never waits (docs/decisions/0004).

use crate::Pe;
use crate::base::call::{ArraySet, CALL_WORDS, Call, waiting_for};
use crate::base::error::{ErrorKind, Result};
use crate::base::locked::try_locked;
use crate::base::vote::{VOTE_WORDS, Vote};
use crate::coll::teams::Teams;
use crate::endpoint::RemoteAddress;
use crate::memory::route::Route;
use crate::memory::segment::Memory;
use pelago_fabric::shm::segment::AGREEMENT_WORDS;
use pelago_fabric::sync::{AtomicU64, Ordering};
use std::sync::MutexGuard;

const _: () = assert!(VOTE_WORDS < AGREEMENT_WORDS);

/// A thread's right to make collective calls.
pub struct Collective<'w> {
    world: &'w Teams,
    /// Number of the last agreement: none is ever used again, whatever other threads do at barriers.
    last: MutexGuard<'w, u64>,
}

impl Collective<'_> {
    /// Passes a barrier and makes sure that every PE makes this call; then reclaims the arrays that every PE
    /// has dropped.
    #[track_caller]
    pub fn agree(&mut self, call: Call) -> Result<()> {
        self.world.agree_on(call, &mut self.last)
    }
}

impl Teams {
    /// The right to make a collective call, for one thread of this PE at a time: until it is dropped.
    ///
    /// # Panics
    /// If another thread of this PE has it. The job cannot go on then, as the other PEs wait for calls in one
    /// order.
    #[track_caller]
    pub fn collective(&self) -> Collective<'_> {
        let last = try_locked(&self.agreed).unwrap_or_else(|| {
            self.fail(&format!(
                "PE {}: two threads make collective calls at the same time; let one do so, or take turns",
                self.my_pe()
            ))
        });
        Collective { world: self, last }
    }

    /// As [`Collective::agree`], for calls that are nothing but the agreement.
    #[track_caller]
    pub fn agree(&self, call: Call) -> Result<()> {
        self.collective().agree(call)
    }

    #[track_caller]
    fn agree_on(&self, call: Call, last: &mut u64) -> Result<()> {
        // Read the list of dropped arrays first, then quiet: operations that a thread starts on a context
        // before it drops an array are complete before the array's memory is reclaimed.
        let dropped = self.region.arrays().dropped();
        self.quiet_all();
        let sequence = self.barrier.next_round();
        if sequence <= *last {
            let me = self.my_pe();
            self.fail(&format!("PE {me}: threads make barriers and other collective calls at the same time"));
        }
        *last = sequence;
        publish(self.agreement_record_here(self.my_pe(), sequence), sequence, call, &dropped);
        let outcome = {
            let _waited = waiting_for(call, sequence);
            let outcome = self.barrier_voting(|| call.vote(sequence, &dropped));
            outcome.filter(Vote::is_unanimous)
        };
        let mut dropped_by_all = dropped;
        match outcome {
            Some(vote) => dropped_by_all.copy_from_slice(vote.dropped()),
            None => {
                for pe in 0..self.n_pes() {
                    let record = self.agreement_record_of(pe, sequence, &dropped);
                    self.compare(pe, &record, sequence, call)?;
                    for (all, theirs) in dropped_by_all.iter_mut().zip(&record[CALL_WORDS..]) {
                        *all &= theirs;
                    }
                }
            }
        }
        let mut heap = self.region.heap();
        for offset_bytes in self.region.arrays().reclaim(&dropped_by_all) {
            heap.free(offset_bytes);
        }
        Ok(())
    }

    /// The vote of a PE that is mapped here, which has come to the barrier of this agreement, or of another
    /// call.
    pub fn vote_of(&self, pe: Pe, sequence: u64) -> Vote {
        let record = self.agreement_record_here(pe, sequence);
        // SYNC POINT agreement record: acquires all stores of the PE before it published; see `publish`.
        if record[0].load(Ordering::Acquire) != sequence {
            return Vote::VOID;
        }
        let words: [u64; AGREEMENT_WORDS] = std::array::from_fn(|i| record[i].load(Ordering::Relaxed));
        let (call, dropped) = words[1..].split_at(CALL_WORDS - 1);
        let whole = "a record has words for a call and a set";
        Vote::of(sequence, call.try_into().expect(whole), dropped.try_into().expect(whole))
    }

    /// Lets the PEs of this node, which this one leads, know the outcome of an agreement. They see it when
    /// this PE releases them from the barrier.
    pub fn publish_outcome(&self, sequence: u64, outcome: &Vote) {
        let words = self.memory.outcome(self.my_pe());
        let values = std::iter::once(&sequence).chain(&outcome.0);
        words.iter().zip(values).for_each(|(word, value)| word.store(*value, Ordering::Relaxed));
    }

    /// The outcome of an agreement that the leader of this node has published before it released this PE.
    pub fn outcome_of(&self, leader: Pe, sequence: u64) -> Vote {
        let [number, words @ ..] = self.memory.outcome(leader);
        match number.load(Ordering::Relaxed) == sequence {
            true => Vote(std::array::from_fn(|i| words[i].load(Ordering::Relaxed))),
            false => Vote::VOID,
        }
    }

    /// Where a PE publishes that is mapped here: where all others read it.
    fn agreement_record_here(&self, pe: Pe, sequence: u64) -> &[AtomicU64; AGREEMENT_WORDS] {
        match self.routes.are_all_mapped() {
            true => self.memory.agreement_record(pe, sequence),
            false => self.memory.net_agreement_record(pe, sequence),
        }
    }

    /// The record that `pe` has published. If the PE is mapped, only those words of its set of dropped arrays
    /// are read in which this PE has some.
    fn agreement_record_of(&self, pe: Pe, sequence: u64, dropped: &ArraySet) -> [u64; AGREEMENT_WORDS] {
        let mut words = [0u64; AGREEMENT_WORDS];
        match self.routes.to(pe) {
            Route::Mapped => {
                let record = self.agreement_record_here(pe, sequence);
                // SYNC POINT agreement record: acquires all stores of the PE before it published; see
                // `publish`.
                words[0] = record[0].load(Ordering::Acquire);
                let is_needed = |i: usize| i < CALL_WORDS || dropped[i - CALL_WORDS] != 0;
                for i in (1..AGREEMENT_WORDS).filter(|&i| is_needed(i)) {
                    words[i] = record[i].load(Ordering::Relaxed);
                }
            }
            Route::Net => {
                let offset_bytes = Memory::agreement_record_offset_bytes(sequence);
                let source = RemoteAddress { operation: "agree", pe, offset_bytes };
                let (into, bytes) = (words.as_mut_ptr().cast(), size_of_val(&words));
                // SAFETY: the agreement records lie at the start of every heap; without a counter the data
                // are there when the call returns.
                unsafe { self.net_endpoint().get(self, source, into, bytes, None) };
            }
        }
        words
    }

    #[track_caller]
    fn compare(&self, pe: Pe, record: &[u64; AGREEMENT_WORDS], sequence: u64, call: Call) -> Result<()> {
        let &[number, code, a, b, ..] = record;
        if number == sequence && [code, a, b] == call.words() {
            return Ok(());
        }
        let theirs = match Call::from_words([code, a, b]) {
            Some(theirs) if number == sequence => theirs.to_string(),
            _ => "something else (barrier?)".to_owned(),
        };
        let me = self.my_pe();
        Err(ErrorKind::Disagreement { me, sequence, pe, mine: call.to_string(), theirs }.into())
    }
}

/// Writes an agreement record, its number last: a PE that reads the number sees the rest of the record, and
/// everything that this PE did before on any thread. So an agreement does not depend on which thread of this
/// PE arrives at the barrier.
#[track_caller]
fn publish(record: &[AtomicU64; AGREEMENT_WORDS], sequence: u64, call: Call, dropped: &ArraySet) {
    let [code, a, b] = call.words();
    for (word, value) in record.iter().skip(1).zip([code, a, b].iter().chain(dropped)) {
        if word.load(Ordering::Relaxed) != *value {
            word.store(*value, Ordering::Relaxed);
        }
    }
    // SYNC POINT agreement record: releases the words above, and all earlier stores of this PE.
    record[0].store(sequence, Ordering::Release);
}
