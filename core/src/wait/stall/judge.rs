//! The verdict: whether PEs can still make progress, from two collections of the records of all PEs.
//!
//! Invariant: a PE *stands still* if both collections find the same: every thread of its process waits, in
//! the same waits as before; each thread has completely checked its condition after the first collection; no
//! message has arrived and no operation has made progress; and no operation of the PE is outstanding. Such a
//! PE acts only after another PE has acted. So if all PEs of the job stand still, they are deadlocked.
//!
//! With checks on some PEs suffice. A wait in the barrier of all PEs, or in the comparison of a team's calls
//! that checks put before each, ends only when a particular other PE enters the same call, or is released
//! from it. If all waits of some PEs are of this kind, each for another PE among them, and all of them stand
//! still, then they wait for each other for ever, regardless of the rest of the job: their calls do not
//! match.

use super::record::{Need, Snapshot};
use crate::Pe;
use crate::base::label::ranges;
use pelago_boot::ProcessState;

/// The state of a PE in one collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its record; `None` if it could not be read.
    pub record: Option<Snapshot>,
    /// The state of its process, if it runs on this machine.
    pub process: Option<ProcessState>,
}

/// The states of all PEs of the job, collected at about the same time.
pub type Look = Vec<Seen>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No PE can make progress.
    AllStandStill,
    /// These PEs are in collective calls that do not match.
    Mismatch(Vec<Pe>),
    /// Some PEs do not wait.
    Open,
    /// The collections are inconclusive.
    Unclear,
}

/// The verdict from two collections. `finds_mismatches` if checks are on.
pub fn verdict(before: &Look, now: &Look, finds_mismatches: bool) -> Verdict {
    let still: Vec<bool> = before.iter().zip(now).map(|(before, now)| stands_still(before, now)).collect();
    if finds_mismatches {
        let stuck = mismatch(now, still.clone());
        if !stuck.is_empty() {
            return Verdict::Mismatch(stuck);
        }
    }
    let works = |seen: &Seen| seen.record.as_ref().is_some_and(|record| record.works);
    match still.iter().all(|&is_still| is_still) && now.iter().any(works) {
        true => Verdict::AllStandStill,
        false if now.iter().all(waits) => Verdict::Unclear,
        false => Verdict::Open,
    }
}

/// Whether a PE only waits, as far as one collection shows.
fn waits(seen: &Seen) -> bool {
    let runs = matches!(seen.process, None | Some(ProcessState::Running));
    runs && seen.record.as_ref().is_some_and(|record| record.waits > 0 && record.is_idle)
}

fn stands_still(before: &Seen, now: &Seen) -> bool {
    let (Some(first), Some(second)) = (&before.record, &now.record) else { return false };
    let is_same = first.epoch == second.epoch
        && first.activity == second.activity
        && first.waits == second.waits
        && first.needs == second.needs;
    // A round counts the starts of checks. The first check may have begun before the first collection, the
    // second has not, and the third shows that the second has ended.
    let has_looked = second.rounds >= first.rounds + 3;
    let is_settled = first.is_settled && second.is_settled;
    waits(before) && waits(now) && is_same && has_looked && is_settled
}

/// The PEs that wait only for each other: the largest set of PEs that stand still and whose waits each need
/// another PE of the set.
fn mismatch(now: &Look, mut still: Vec<bool>) -> Vec<Pe> {
    let record = |pe: Pe| now[pe].record.as_ref();
    loop {
        let needs_other = |pe: Pe, need: Need| match need {
            Need::Of(other) => other != pe && still.get(other) == Some(&true),
            Need::All { round } => (0..now.len()).any(|other| {
                other != pe && still[other] && record(other).is_some_and(|theirs| theirs.barriers < round)
            }),
            Need::Unknown => false,
        };
        let stays = |pe: Pe| {
            record(pe).is_some_and(|record| {
                !record.needs.is_empty() && record.needs.iter().all(|&need| needs_other(pe, need))
            })
        };
        let leaves: Vec<Pe> = (0..now.len()).filter(|&pe| still[pe] && !stays(pe)).collect();
        if leaves.is_empty() {
            return (0..now.len()).filter(|&pe| still[pe]).collect();
        }
        leaves.into_iter().for_each(|pe| still[pe] = false);
    }
}

/// Describes the state of each of these PEs. PEs in the same state share a line.
pub fn lines(look: &Look, pes: impl Iterator<Item = Pe>) -> Vec<String> {
    let mut groups: Vec<(String, Vec<Pe>)> = Vec::new();
    for pe in pes {
        let text = doing(&look[pe], false);
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, pes)) => pes.push(pe),
            None => groups.push((text, vec![pe])),
        }
    }
    let line = |(text, pes): (String, Vec<Pe>)| match pes[..] {
        [pe] => format!("PE {pe} {text}"),
        _ => format!("PEs {} {}", ranges(&pes), doing(&look[pes[0]], true)),
    };
    groups.into_iter().map(line).collect()
}

/// The description of a PE, or of several in the same state.
fn doing(seen: &Seen, are_several: bool) -> String {
    let form = |one: &'static str, several: &'static str| if are_several { several } else { one };
    let (is, wait) = (form("is", "are"), form("waits", "wait"));
    let record = seen.record.as_ref().filter(|record| record.waits > 0);
    let waits = record.map(|record| match record.text.is_empty() {
        true => wait.to_owned(),
        false => format!("{wait} for {}", record.text),
    });
    let and_waits = waits.as_ref().map_or_else(String::new, |waits| format!(", and {waits}"));
    match (seen.process, waits) {
        (Some(ProcessState::Stopped), _) => format!("{is} stopped by a signal{and_waits}"),
        (Some(ProcessState::Traced), _) => format!("{is} in a debugger{and_waits}"),
        (Some(ProcessState::Gone), _) => format!("{is} gone"),
        (_, Some(waits)) if record.is_some_and(|record| record.is_idle) => waits,
        (_, Some(waits)) => format!("{waits}, while another thread of the process computes"),
        (_, None) if seen.record.is_none() => format!("{} not answered", form("has", "have")),
        (_, None) => format!("{}, or {wait} outside of the runtime", form("computes", "compute")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(needs: &[Need]) -> Snapshot {
        Snapshot {
            is_idle: true,
            is_settled: true,
            works: true,
            waits: needs.len() as u64,
            needs: needs.to_vec(),
            rounds: 5,
            text: "something".to_owned(),
            ..Snapshot::default()
        }
    }

    fn seen(record: Snapshot) -> Seen {
        Seen { record: Some(record), process: Some(ProcessState::Running) }
    }

    /// The collection after `before`, when each PE has checked its condition twice.
    fn later(before: &Look) -> Look {
        let mut now = before.clone();
        now.iter_mut().filter_map(|seen| seen.record.as_mut()).for_each(|record| record.rounds += 3);
        now
    }

    fn judged(records: impl IntoIterator<Item = Snapshot>, finds_mismatches: bool) -> Verdict {
        let look: Look = records.into_iter().map(seen).collect();
        verdict(&look, &later(&look), finds_mismatches)
    }

    #[test]
    fn a_job_stands_still_if_all_pes_wait_and_nothing_changes() {
        let all = || vec![waiting(&[Need::Unknown]), waiting(&[Need::Of(0)])];
        assert_eq!(judged(all(), false), Verdict::AllStandStill);
        let seen_then = |change: fn(&mut Seen)| {
            let before: Look = all().into_iter().map(seen).collect();
            let mut now = later(&before);
            change(&mut now[1]);
            verdict(&before, &now, true)
        };
        assert_eq!(seen_then(|now| now.record = None), Verdict::Open);
        assert_eq!(seen_then(|now| now.process = Some(ProcessState::Stopped)), Verdict::Open);
        assert_eq!(seen_then(|now| now.process = Some(ProcessState::Traced)), Verdict::Open);
        type Change = (fn(&mut Snapshot), Verdict);
        let changes: [Change; 6] = [
            (|record| record.rounds -= 1, Verdict::Unclear),
            (|record| record.epoch += 1, Verdict::Unclear),
            (|record| record.activity += 1, Verdict::Unclear),
            (|record| record.is_settled = false, Verdict::Unclear),
            (|record| record.is_idle = false, Verdict::Open),
            (|record| record.waits = 0, Verdict::Open),
        ];
        for (change, expected) in changes {
            let before: Look = all().into_iter().map(seen).collect();
            let mut now = later(&before);
            now[1].record.as_mut().map(change).unwrap();
            assert_eq!(verdict(&before, &now, true), expected);
        }
    }

    #[test]
    fn a_job_that_only_begins_or_ends_does_not_stand_still() {
        let ends = Snapshot { works: false, ..waiting(&[Need::Unknown]) };
        assert_eq!(judged([ends.clone(), ends.clone()], true), Verdict::Unclear);
        assert_eq!(judged([ends, waiting(&[Need::Unknown])], true), Verdict::AllStandStill);
    }

    /// PE 0 computes and keeps the others waiting, but not for ever.
    #[test]
    fn only_a_circle_is_a_mismatch() {
        let computes = Snapshot::default;
        let circle = || [waiting(&[Need::Of(2)]), waiting(&[Need::Of(1)])];
        let [one, two] = circle();
        assert_eq!(judged([computes(), one, two], true), Verdict::Mismatch(vec![1, 2]));
        let [one, two] = circle();
        assert_eq!(judged([computes(), one, two], false), Verdict::Open);
        let chain = [computes(), waiting(&[Need::Of(0)]), waiting(&[Need::Of(1)])];
        assert_eq!(judged(chain, true), Verdict::Open);
        let other = [computes(), waiting(&[Need::Of(2)]), waiting(&[Need::Unknown])];
        assert_eq!(judged(other, true), Verdict::Open);
    }

    /// PE 1 has a thread that another PE may release, and a wait for one of several ends when one of them
    /// does.
    #[test]
    fn each_thread_of_a_pe_counts() {
        let computes = Snapshot::default;
        let two = waiting(&[Need::Of(2), Need::Of(0)]);
        assert_eq!(judged([computes(), two, waiting(&[Need::Of(1)])], true), Verdict::Open);
        let both = waiting(&[Need::Of(2), Need::Of(2)]);
        assert_eq!(judged([computes(), both, waiting(&[Need::Of(1)])], true), Verdict::Mismatch(vec![1, 2]));
    }

    #[test]
    fn a_barrier_of_all_lacks_those_that_have_not_come() {
        let in_barrier = |barriers| Snapshot { barriers, ..waiting(&[Need::All { round: 3 }]) };
        let elsewhere = Snapshot { barriers: 2, ..waiting(&[Need::Of(0)]) };
        assert_eq!(judged([in_barrier(3), elsewhere.clone()], true), Verdict::Mismatch(vec![0, 1]));
        let come = Snapshot { barriers: 3, ..elsewhere };
        assert_eq!(judged([in_barrier(3), Snapshot::default(), come], true), Verdict::Open);
    }

    #[test]
    fn pes_that_do_the_same_share_a_line() {
        let mut look: Look = (0..6).map(|_| seen(waiting(&[Need::Unknown]))).collect();
        look[4] = seen(Snapshot::default());
        look[5].process = Some(ProcessState::Stopped);
        look[5].record = Some(Snapshot::default());
        let said = lines(&look, 0..6);
        assert_eq!(said[0], "PEs 0-3 wait for something");
        assert_eq!(said[1], "PE 4 computes, or waits outside of the runtime");
        assert_eq!(said[2], "PE 5 is stopped by a signal");
        assert_eq!(ranges(&[0, 1, 2, 5]), "0-2, 5");
    }
}
