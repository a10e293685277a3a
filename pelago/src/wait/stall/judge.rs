//! The judgement: whether PEs can still go on, by two looks at the records of all.
//!
//! Invariant: a PE *stands still* if both looks find the same: every thread of its process waits, in the same
//! waits as before; each has looked for what it waits for, in full, after the first look; nothing has arrived
//! or moved; and nothing that the PE has started is under way. Such a PE does something only after another
//! one has. So if all PEs of the job stand still, none goes on, ever.
//!
//! With checks on some PEs suffice. A wait in the barrier of all PEs, or in the comparison of a team's calls
//! that checks put before each, ends only when a certain other PE comes to the same call, or is released from
//! it. If all waits of some PEs are such ones, each for another PE among them, and all of them stand still,
//! then they wait for each other for ever, whatever the rest of the job does: their calls do not match.

use super::record::{Need, Snapshot};
use crate::Pe;
use crate::base::label::ranges;
use pelago_boot::ProcessState;

/// The knowledge of a PE after a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Its record; `None` if it could not be read.
    pub(crate) record: Option<Snapshot>,
    /// The state of its process, if this machine has it.
    pub(crate) process: Option<ProcessState>,
}

/// The PEs of the job, at about one time.
pub(crate) type Look = Vec<Seen>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No PE can go on.
    AllStandStill,
    /// These PEs are in collective calls that do not match.
    Mismatch(Vec<Pe>),
    /// Some PEs do something else than to wait.
    Open,
    /// The looks do not tell.
    Unclear,
}

/// The verdict of two looks. `finds_mismatches` if checks are on.
pub(crate) fn verdict(before: &Look, now: &Look, finds_mismatches: bool) -> Verdict {
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

/// Whether a PE does nothing but wait, as far as one look tells.
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
    // A round counts the begins of looks. The first one may have begun before the first look at all PEs, the
    // second one has not, and the third one shows that the second has ended.
    let has_looked = second.rounds >= first.rounds + 3;
    let is_settled = first.is_settled && second.is_settled;
    waits(before) && waits(now) && is_same && has_looked && is_settled
}

/// The PEs that wait for each other alone: the greatest set of those that stand still, and of which each wait
/// needs another PE of the set.
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

/// The state of each of these PEs in words. PEs that do the same share a line.
pub(crate) fn lines(look: &Look, pes: impl Iterator<Item = Pe>) -> Vec<String> {
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

/// The words for a PE, or for several that do the same.
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

    /// The look after `before`, when each PE has looked twice for what it waits for.
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

    /// PE 1 has a thread that another PE may release, and a wait of several is over when one is.
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
