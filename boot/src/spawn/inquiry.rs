//! Inquiry: asks each PE what it does, because of a signal to the launcher, because another command wants to
//! know, or because the job does not form. The result is a stall report, or rows for that command.
//!
//! Invariant: it ends within [`ANSWER_LIMIT`], whatever the processes do. A process that waits in the runtime
//! replies; for the others the launcher reports their state in `/proc`. A process is not asked again while a
//! question is outstanding, so that questions do not accumulate in its socket.

use std::time::{Duration, Instant};

use super::pes::{Pes, numbers_of};
use super::report::Name;
use crate::jobs::{PeRow, PeState};
use crate::pmi::server::{Stage, Waits};
use crate::process::ProcessState;

/// How long processes may take to reply.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// The receiver of the result of an inquiry.
pub(super) enum Asker {
    /// Standard error, with this reason.
    Report(String),
    /// The command with this number at the door.
    Client(usize),
}

/// An inquiry in progress.
pub(super) struct Inquiry {
    pub(super) askers: Vec<Asker>,
    deadline: Instant,
    /// The replies, by process.
    told: Vec<Option<Waits>>,
}

/// The launcher's knowledge of a process that has not replied.
pub(super) struct Known {
    pub(super) pes: Pes,
    pub(super) pid: i32,
    /// The host of the process, unless it is this machine.
    pub(super) host: Option<String>,
    /// The state that the system shows; `None` if its host has not reported it.
    pub(super) state: Option<ProcessState>,
    pub(super) stage: Stage,
}

impl Inquiry {
    /// Begins an inquiry among this number of processes.
    pub(super) fn new(asker: Asker, processes: usize) -> Self {
        Self { askers: vec![asker], deadline: Instant::now() + ANSWER_LIMIT, told: vec![None; processes] }
    }

    /// Adds somebody who gets the result; there is one report.
    pub(super) fn join(&mut self, asker: Asker) {
        let is_report = |asker: &Asker| matches!(asker, Asker::Report(_));
        if !is_report(&asker) || !self.askers.iter().any(is_report) {
            self.askers.push(asker);
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn record(&mut self, process: usize, waits: Waits) {
        self.told[process] = Some(waits);
    }

    /// The stall report, as lines for the user.
    pub(super) fn text(&self, reason: &str, known: &[Known]) -> String {
        let mut text = format!("pelago run: {reason}. What each PE does:\n");
        for (told, known) in self.replies(known) {
            let lines = told.map_or_else(|| known.line(), |waits| waits.text.clone());
            lines.lines().for_each(|line| text += &format!("  {line}\n"));
        }
        text
    }

    /// A row for each PE.
    pub(super) fn rows(&self, known: &[Known]) -> Vec<PeRow> {
        self.replies(known).flat_map(|(told, known)| known.rows(told)).collect()
    }

    /// The processes, each with its reply. A process that waits for the launcher replies with an empty text,
    /// and the launcher describes it.
    fn replies<'a>(&'a self, known: &'a [Known]) -> impl Iterator<Item = (Option<&'a Waits>, &'a Known)> {
        let told = self.told.iter().map(|told| told.as_ref().filter(|waits| !waits.text.is_empty()));
        told.zip(known)
    }
}

impl Known {
    /// The activity of the PEs of the process, after their names.
    fn line(&self) -> String {
        let name = Name { pes: &self.pes, host: self.host.as_deref() };
        format!("{name} {}", self.doing(&self.pes).1)
    }

    /// The activity of these PEs of the process.
    fn doing(&self, pes: &Pes) -> (PeState, String) {
        let (pid, is, has, waits) =
            (self.pid, pes.verb("is", "are"), pes.verb("has", "have"), pes.verb("waits", "wait"));
        match (self.state, self.stage) {
            (None, _) => (
                PeState::Unknown,
                format!("{has} not been heard of, because the agent of the host has not replied"),
            ),
            (Some(ProcessState::Stopped), _) => {
                (PeState::Stopped, format!("{is} stopped by a signal (`kill -CONT {pid}` lets it go on)"))
            }
            (Some(ProcessState::Traced), _) => (PeState::Traced, format!("{is} in a debugger (pid {pid})")),
            (Some(ProcessState::Gone), _) => (PeState::Ended, format!("{has} ended")),
            (_, Stage::Outside) => (PeState::Outside, format!("{has} not joined the job (pid {pid})")),
            (_, Stage::Finalized) => (PeState::Ended, format!("{has} left the job")),
            (_, Stage::InBarrier) => {
                (PeState::Waiting, format!("{waits} for the other processes, as the job forms"))
            }
            _ => {
                let computes = pes.verb("computes", "compute");
                (PeState::Running, format!("{computes}, or {waits} outside of the runtime (pid {pid})"))
            }
        }
    }

    /// A row for each PE of the process, which may have replied.
    fn rows(&self, told: Option<&Waits>) -> Vec<PeRow> {
        let row = |(index, pe): (usize, usize)| {
            let pes = self.pes.one(pe).unwrap_or_else(|| self.pes.clone());
            let told_of = |waits: &'_ Waits| waits.text.lines().find_map(|line| said_of(line, pe));
            let (state, doing) = told.and_then(told_of).unwrap_or_else(|| self.doing(&pes));
            let waited = told.and_then(|waits| *waits.waited.get(index)?);
            PeRow {
                pe,
                pid: self.pid.unsigned_abs(),
                host: self.host.clone(),
                state,
                seconds: waited.filter(|_| state == PeState::Waiting).map(|waited| waited.as_secs_f64()),
                doing,
            }
        };
        self.pes.clone().all().enumerate().map(row).collect()
    }
}

/// The part of a line of a reply (`PE 3 waits for ...`, `PEs 0-1, 3 wait for ...`) that is about a PE.
fn said_of(line: &str, pe: usize) -> Option<(PeState, String)> {
    let line = line.strip_prefix("PE")?;
    let line = line.strip_prefix('s').unwrap_or(line).trim_start();
    let at = line.find(|c: char| c.is_ascii_alphabetic())?;
    let (numbers, doing) = line.split_at(at);
    numbers_of(numbers).any(|range| range.contains(&pe)).then_some(())?;
    let doing = match doing.strip_prefix("wait ") {
        Some(rest) => format!("waits {rest}"),
        None => doing.to_owned(),
    };
    let state = if doing.starts_with("waits") { PeState::Waiting } else { PeState::Running };
    Some((state, doing))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(state: ProcessState, stage: Stage) -> Known {
        let pes = Pes::of_process(1, 3);
        Known { pes, pid: 77, host: Some("b".to_owned()), state: Some(state), stage }
    }

    #[test]
    fn a_reply_for_several_pes_becomes_a_row_for_each() {
        let mut inquiry = Inquiry::new(Asker::Client(0), 1);
        let text = "PEs 3, 5 wait for all PEs in barrier 4\nPE 4 computes, or waits outside of the runtime";
        let waited = vec![Some(Duration::from_millis(1500)), None, Some(Duration::from_secs(2))];
        inquiry.record(0, Waits { text: text.to_owned(), waited });
        let rows = inquiry.rows(&[known(ProcessState::Running, Stage::Inside)]);
        let row = |pe, state, seconds, doing: &str| PeRow {
            pe,
            pid: 77,
            host: Some("b".to_owned()),
            state,
            seconds,
            doing: doing.to_owned(),
        };
        let barrier = "waits for all PEs in barrier 4";
        assert_eq!(
            rows,
            [
                row(3, PeState::Waiting, Some(1.5), barrier),
                row(4, PeState::Running, None, "computes, or waits outside of the runtime"),
                row(5, PeState::Waiting, Some(2.0), barrier)
            ]
        );
        let report = inquiry.text("it asks", &[known(ProcessState::Running, Stage::Inside)]);
        assert!(
            report.starts_with("pelago run: it asks. What each PE does:\n  PEs 3, 5 wait for"),
            "{report}"
        );
    }

    #[test]
    fn a_process_that_does_not_reply_is_described_by_the_launcher() {
        let inquiry = Inquiry::new(Asker::Client(0), 1);
        for (state, stage, expected, part) in [
            (
                ProcessState::Stopped,
                Stage::Inside,
                PeState::Stopped,
                "is stopped by a signal (`kill -CONT 77`",
            ),
            (ProcessState::Traced, Stage::Inside, PeState::Traced, "is in a debugger"),
            (ProcessState::Running, Stage::Outside, PeState::Outside, "has not joined"),
            (ProcessState::Running, Stage::InBarrier, PeState::Waiting, "waits for the other processes"),
            (ProcessState::Running, Stage::Inside, PeState::Running, "computes"),
            (ProcessState::Gone, Stage::Inside, PeState::Ended, "has ended"),
        ] {
            let rows = inquiry.rows(&[known(state, stage)]);
            assert_eq!(rows.iter().map(|row| row.pe).collect::<Vec<_>>(), [3, 4, 5]);
            assert!(rows.iter().all(|row| row.state == expected && row.doing.starts_with(part)), "{rows:?}");
        }
    }
}
