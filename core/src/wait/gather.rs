//! The collection of the records of all PEs: the PE that does it, and its consequences.
//!
//! Invariant: the lowest PE that has waited long enough collects the records; the others find that it waits
//! and leave the collection to it. Records of PEs of this node are read directly, and those of other nodes by
//! gets, one at a time. So a collection over the network takes several steps, and no step waits.

use super::engine::Engine;
use super::long::Long;
use super::stall::judge::{self, Look, Seen, Verdict};
use super::stall::looker::{Looker, Question};
use super::stall::record::{RECORD_WORDS, Snapshot, cut};
use crate::Pe;
use crate::endpoint::RemoteAddress;
use crate::memory::segment::Memory;
use pelago_boot::{ProcessState, print_stderr, process_state};
use pelago_fabric::sync::Ordering;
use std::ops::Range;
use std::time::{Duration, Instant};

/// The time within which a get from a PE of another node must complete; after that the PE counts as not
/// responding.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// The number of inconclusive collections before the waits of all PEs are reported nevertheless.
const UNCLEAR_LOOKS_MAX: u32 = 10;
/// The number of inconclusive collections that are compared with the same earlier one.
const LOOKS_PER_COMPARISON: u32 = 4;
/// The number of bytes of a reason that a launcher keeps.
const REASON_BYTES_MAX: usize = 900;

/// The outcome of reading a record.
enum Reading {
    Done(Option<Snapshot>),
    UnderWay,
}

impl Engine {
    /// Continues the collection of all records, as far as possible without a wait. Returns whether a record
    /// is on its way.
    #[track_caller]
    pub(super) fn look_at_all(&self, long: &Long<'_>, now: Instant) -> bool {
        let Some(mut looker) = self.stall.looker() else { return false };
        let looker = &mut *looker;
        self.take_late_answer(looker);
        if looker.seen.is_empty() && (now < looker.next_at || !long.is_due(now)) {
            return false;
        }
        let interval = self.stall.interval(now - long.since());
        while looker.seen.len() < self.n_pes() {
            let pe = looker.seen.len();
            let record = match self.read_record(looker, pe, (long, now)) {
                Reading::Done(record) => record,
                Reading::UnderWay => return true,
            };
            if pe < self.my_pe() && is_looked_after(looker, pe, record.as_ref()) {
                looker.previous = None;
                looker.rest(now + interval);
                return false;
            }
            looker.seen.push(Seen { record, process: None });
        }
        for pe in 0..self.n_pes() {
            looker.seen[pe].process = self.process_of(pe);
        }
        let look = std::mem::take(&mut looker.seen);
        looker.rest(now + interval);
        let verdict = match &looker.previous {
            None => Verdict::Unclear,
            Some(before) => judge::verdict(before, &look, self.stall.is_checked()),
        };
        looker.unclear = if verdict == Verdict::Unclear { looker.unclear + 1 } else { 0 };
        self.decide(&verdict, &look, looker, now - long.since());
        // A collection that came too early is compared with the next but one.
        if verdict != Verdict::Unclear || looker.unclear % LOOKS_PER_COMPARISON == 1 {
            looker.previous = Some(look);
        }
        false
    }

    /// Takes note of the answer to a question that no collection waits for any more.
    fn take_late_answer(&self, looker: &mut Looker) {
        let next = looker.seen.len();
        let is_late = |question: &mut Question| question.pe != next && question.counter.is_done();
        if let Some(question) = looker.question.take_if(is_late) {
            self.completions.release(question.counter);
            self.stall.is_asking(false);
        }
    }

    /// Starts or continues to read the record of a PE.
    fn read_record(&self, looker: &mut Looker, pe: Pe, (long, now): (&Long<'_>, Instant)) -> Reading {
        if self.memory.block(pe).is_some() {
            return Reading::Done(Snapshot::read(self.memory.record(pe)));
        }
        if let Some(question) = looker.question.take() {
            let is_silent = now - question.since > ANSWER_LIMIT;
            if !question.counter.is_done() {
                looker.question = Some(question);
                // While the get is outstanding, no other get can use its target.
                return if is_silent { Reading::Done(None) } else { Reading::UnderWay };
            }
            self.completions.release(question.counter);
            self.stall.is_asking(false);
            if question.pe == pe {
                return Reading::Done(Snapshot::read(self.stall.answer()));
            }
        }
        // While the job forms or ends, no PE accesses the memory of another.
        let Some(net) = self.net.as_ref().filter(|_| long.works()) else { return Reading::Done(None) };
        let target = RemoteAddress { operation: "stall", pe, offset_bytes: Memory::RECORD_OFFSET_BYTES };
        let (counter, into) = (self.completions.open(), self.stall.answer().as_ptr().cast_mut().cast());
        // SAFETY: the record lies at the start of every heap. The target of the get lives as long as the
        // world, whose endpoints are shut first.
        let is_asked = unsafe { net.try_get(target, into, RECORD_WORDS, &counter) };
        match is_asked {
            true => {
                self.stall.is_asking(true);
                looker.question = Some(Question { pe, counter, since: now });
            }
            false => self.completions.release(counter),
        }
        Reading::UnderWay
    }

    /// The state of the process of a PE, if it runs on this machine and its number is known here.
    fn process_of(&self, pe: Pe) -> Option<ProcessState> {
        self.pid_of(pe).map(process_state)
    }

    /// Ends the job, reports the waits of all PEs, or does nothing.
    #[track_caller]
    fn decide(&self, verdict: &Verdict, look: &Look, looker: &mut Looker, waited: Duration) {
        let me = self.my_pe();
        let is_late = self.stall.limit().is_some_and(|limit| waited >= limit);
        match verdict {
            Verdict::Mismatch(pes) => {
                let what = judge::lines(look, pes.iter().copied()).join("; ");
                self.fail(&brief(format!(
                    "PE {me}: collective calls do not match, so that these PEs wait for each other: {what}. \
                     All members of a team make the same calls, and PEs that are in several teams make those \
                     in an order that agrees"
                )));
            }
            Verdict::AllStandStill if is_late => {
                let what = judge::lines(look, 0..self.n_pes()).join("; ");
                self.fail(&brief(format!(
                    "PE {me}: no PE can go on, as all threads of all PEs wait and nothing is under way: \
                     {what}. This was found after {:.1} s (PELAGO_STALL_REPORT)",
                    waited.as_secs_f64()
                )));
            }
            Verdict::Unclear if looker.unclear < UNCLEAR_LOOKS_MAX => {}
            _ if !is_late => {}
            _ => {
                let is_stopped = |pe: &Pe| look[*pe].process == Some(ProcessState::Stopped);
                let stopped: Vec<Pe> = (0..self.n_pes()).filter(is_stopped).collect();
                let is_news = stopped.iter().any(|pe| !looker.stopped.contains(pe));
                let has_said = |seen: &Seen| seen.record.as_ref().is_some_and(|record| record.has_said);
                let was_said = self.stall.has_said.swap(true, Ordering::Relaxed) || look.iter().any(has_said);
                if is_news || !was_said {
                    self.say_waits(look, waited);
                }
                looker.stopped = stopped;
            }
        }
    }

    /// Describes the state of some PEs of this node, one line for each.
    pub fn waits_of(&self, pes: Range<Pe>) -> String {
        let seen = |pe: Pe| {
            let is_here = pes.contains(&pe) && self.memory.block(pe).is_some();
            Seen { record: is_here.then(|| Snapshot::read(self.memory.record(pe))).flatten(), process: None }
        };
        judge::lines(&(0..pes.end).map(seen).collect(), pes.clone()).join("\n")
    }

    /// For how long each of these PEs of this process has waited; `None` for those that do not wait.
    pub fn waited_of(&self, pes: Range<Pe>) -> Vec<Option<Duration>> {
        let record = |pe| self.memory.block(pe).and_then(|_| Snapshot::read(self.memory.record(pe)));
        pes.map(|pe| record(pe).filter(|record| record.waits > 0).map(|record| record.waited)).collect()
    }

    fn say_waits(&self, look: &Look, waited: Duration) {
        let lines: String =
            judge::lines(look, 0..self.n_pes()).iter().map(|line| format!("  {line}\n")).collect();
        print_stderr(&format!(
            "PE {} has waited for {:.1} s (PELAGO_STALL_REPORT). What each PE does:\n{lines}",
            self.my_pe(),
            waited.as_secs_f64()
        ));
    }
}

/// Whether a lower PE collects the records for this one: it has waited long enough, and still polls its
/// condition.
fn is_looked_after(looker: &mut Looker, pe: Pe, record: Option<&Snapshot>) -> bool {
    let Some(record) = record.filter(|record| record.is_due) else { return false };
    looker.lower.insert(pe, record.rounds) != Some(record.rounds)
}

/// A reason that is short enough for the launcher.
fn brief(reason: String) -> String {
    match reason.len() <= REASON_BYTES_MAX {
        true => reason,
        false => format!("{} ...", cut(&reason, REASON_BYTES_MAX)),
    }
}
