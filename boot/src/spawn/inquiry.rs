//! An inquiry: what each PE does, asked for by a signal to the launcher or because the job does not form.
//!
//! Invariant: it ends within [`ANSWER_LIMIT`], whatever the processes do. A process that waits in the runtime
//! answers; of the others the launcher tells what the system shows of them. A process is not asked again as
//! long as a question to it is open, so that questions do not pile up in its socket.

use std::time::{Duration, Instant};

use super::pes::Pes;
use super::report::Name;
use crate::pmi::server::Stage;
use crate::process::ProcessState;

/// How long processes may take for their answers.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// One that is under way.
pub(super) struct Inquiry {
    reason: String,
    deadline: Instant,
    /// The answers, by process.
    told: Vec<Option<String>>,
}

/// The launcher's knowledge of a process that has not answered.
pub(super) struct Known {
    pub(super) pes: Pes,
    pub(super) pid: i32,
    /// The host that it is on, if that is not this machine.
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

    pub(super) fn tell(&mut self, process: usize, text: String) {
        self.told[process] = Some(text);
    }

    /// All of it in lines for the user.
    pub(super) fn text(&self, known: impl Iterator<Item = Known>) -> String {
        let mut text = format!("pelago run: {}. What each PE does:\n", self.reason);
        for (told, known) in self.told.iter().zip(known) {
            // A process that waits for the launcher leaves the words to it.
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
            (None, _) => format!("{name} {has} not been heard of, as the agent of the host has not answered"),
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
