//! An inquiry: what each PE does, asked for by a signal to the launcher or because the job does not form.
//!
//! Invariant: it ends within [`ANSWER_LIMIT`], whatever the processes do. A process that waits in the runtime
//! answers; of the others the launcher tells what the system shows of them. A process is not asked again as
//! long as a question to it is open, so that questions do not pile up in its socket.

use std::time::{Duration, Instant};

use super::pes::Pes;
use crate::pmi::server::Stage;
use crate::process::{ProcessState, process_state};

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
    pub(super) is_running: bool,
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
        let (pes, pid) = (&self.pes, self.pid);
        let (is, has) = (pes.verb("is", "are"), pes.verb("has", "have"));
        let state = match u32::try_from(pid) {
            Ok(pid) if self.is_running => process_state(pid),
            _ => ProcessState::Gone,
        };
        match (state, self.stage) {
            (ProcessState::Stopped, _) => {
                format!("{pes} {is} stopped by a signal (`kill -CONT {pid}` lets it go on)")
            }
            (ProcessState::Traced, _) => format!("{pes} {is} in a debugger (pid {pid})"),
            (ProcessState::Gone, _) => format!("{pes} {has} ended"),
            (_, Stage::Outside) => format!("{pes} {has} not joined the job (pid {pid})"),
            (_, Stage::Finalized) => format!("{pes} {has} left the job"),
            (_, Stage::InBarrier) => {
                format!("{pes} {} for the other processes, as the job forms", pes.verb("waits", "wait"))
            }
            _ => {
                let (computes, waits) = (pes.verb("computes", "compute"), pes.verb("waits", "wait"));
                format!("{pes} {computes}, or {waits} outside of the runtime (pid {pid})")
            }
        }
    }
}
