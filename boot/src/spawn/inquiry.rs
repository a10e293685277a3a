//! Inquiry: asks each PE what it does, because of a signal to the launcher or because the job does not form.
//! The result is a stall report.
//!
//! Invariant: it ends within [`ANSWER_LIMIT`], whatever the processes do. A process that waits in the runtime
//! replies; for the others the launcher reports their state in `/proc`. A process is not asked again while a
//! question is outstanding, so that questions do not accumulate in its socket.

use std::time::{Duration, Instant};

use super::pes::Pes;
use super::report::Name;
use crate::pmi::server::Stage;
use crate::process::ProcessState;

/// How long processes may take to reply.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// An inquiry in progress.
pub(super) struct Inquiry {
    reason: String,
    deadline: Instant,
    /// The replies, by process.
    told: Vec<Option<String>>,
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
    pub(super) fn new(reason: String, processes: usize) -> Self {
        Self { reason, deadline: Instant::now() + ANSWER_LIMIT, told: vec![None; processes] }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(super) fn record(&mut self, process: usize, text: String) {
        self.told[process] = Some(text);
    }

    /// The stall report, as lines for the user.
    pub(super) fn text(&self, known: impl Iterator<Item = Known>) -> String {
        let mut text = format!("pelago run: {}. What each PE does:\n", self.reason);
        for (told, known) in self.told.iter().zip(known) {
            // A process that waits for the launcher replies with an empty text, and the launcher describes
            // it.
            let lines = told.clone().filter(|text| !text.is_empty()).unwrap_or_else(|| known.line());
            lines.lines().for_each(|line| text += &format!("  {line}\n"));
        }
        text
    }
}

impl Known {
    fn line(&self) -> String {
        let (name, pid) = (Name { pes: &self.pes, host: self.host.as_deref() }, self.pid);
        let (is, has) = (self.pes.verb("is", "are"), self.pes.verb("has", "have"));
        match (self.state, self.stage) {
            (None, _) => {
                format!("{name} {has} not been heard of, because the agent of the host has not replied")
            }
            (Some(ProcessState::Stopped), _) => {
                format!("{name} {is} stopped by a signal (`kill -CONT {pid}` lets it go on)")
            }
            (Some(ProcessState::Traced), _) => format!("{name} {is} in a debugger (pid {pid})"),
            (Some(ProcessState::Gone), _) => format!("{name} {has} ended"),
            (_, Stage::Outside) => format!("{name} {has} not joined the job (pid {pid})"),
            (_, Stage::Finalized) => format!("{name} {has} left the job"),
            (_, Stage::InBarrier) => {
                let waits = self.pes.verb("waits", "wait");
                format!("{name} {waits} for the other processes, as the job forms")
            }
            _ => {
                let (computes, waits) =
                    (self.pes.verb("computes", "compute"), self.pes.verb("waits", "wait"));
                format!("{name} {computes}, or {waits} outside of the runtime (pid {pid})")
            }
        }
    }
}
