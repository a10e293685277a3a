//! Questions about the job while it runs: by a signal, by other commands (`pelago ps`), and by the launcher
//! itself if the job does not form.

use std::time::Instant;

use super::super::child::Sent;
use super::super::door::{Door, Question};
use super::super::inquiry::{Asker, Inquiry, Known};
use super::super::report::Cause;
use super::{Ending, Supervisor};
use crate::jobs::{JobState, Part, PeRow};
use crate::pmi::REPORT;
use crate::pmi::server::{Stage, Waits};
use crate::pmi::wire::Message;

impl Supervisor<'_> {
    /// Records a barrier in which processes begin to wait.
    pub(super) fn note_meeting(&mut self) {
        let number = self.server.meeting();
        if number != self.meeting.map(|(number, _)| number) {
            let at = self.stall_report.and_then(|limit| Instant::now().checked_add(limit));
            self.meeting = number.map(|number| (number, at));
        }
        if number.is_some() {
            self.end_vain_meeting();
        }
    }

    /// Ends the job if a process has left it and ended, as others then wait for it for ever.
    fn end_vain_meeting(&mut self) {
        let has_left = |process: &usize| {
            let stage = self.server.stage(*process);
            !self.children[*process].is_running() && matches!(stage, Stage::Resting | Stage::Finalized)
        };
        match (0..self.children.len()).find(has_left) {
            // Its own failure is recorded.
            Some(_) if !self.failures.is_empty() => self.end(),
            Some(process) => self.fail_process(process, Cause::NotJoined, None),
            None => {}
        }
    }

    /// Asks all processes what their PEs do; if an inquiry is in progress, its result will do.
    pub(super) fn inquire(&mut self, asker: Asker) {
        if let (Asker::Report(_), true) = (&asker, self.ending != Ending::No) {
            return;
        }
        if let Some(inquiry) = &mut self.inquiry {
            return inquiry.join(asker);
        }
        self.inquiry = Some(Inquiry::new(asker, self.children.len()));
        let line = Message::new(REPORT).line();
        for child in &mut self.children {
            child.look();
            if child.hears && !child.is_asked {
                child.is_asked = child.send(&line) == Sent::Yes;
            }
        }
        self.finish_inquiry();
    }

    /// Records what a process reports about its PEs.
    pub(super) fn record_waits(&mut self, process: usize, waits: Waits) {
        self.children[process].is_asked = false;
        if let Some(inquiry) = &mut self.inquiry {
            inquiry.record(process, waits);
            self.finish_inquiry();
        }
    }

    /// Tells the askers what the PEs do, when all processes that were asked have replied or the time limit is
    /// over.
    pub(super) fn finish_inquiry(&mut self) {
        let Some(inquiry) = &self.inquiry else { return };
        let is_due = |child: &&super::Child| child.is_running() && (child.is_asked || child.is_unseen());
        if self.children.iter().any(|child| is_due(&child)) && Instant::now() < inquiry.deadline() {
            return;
        }
        let known = (0..self.children.len()).map(|process| Known {
            pes: self.pes(process),
            pid: self.children[process].pid(),
            host: self.host_of(process).map(str::to_owned),
            state: self.children[process].state(),
            stage: self.server.stage(process),
        });
        let known: Vec<_> = known.collect();
        let Some(inquiry) = self.inquiry.take() else { return };
        let (mut rows, state) = (None, self.state());
        for asker in &inquiry.askers {
            match asker {
                // Written in one piece, so that output of a PE does not interrupt it.
                Asker::Report(reason) => self.outlets.print(&inquiry.text(reason, &known), &self.poller),
                Asker::Client(client) => {
                    let rows = rows.get_or_insert_with(|| inquiry.rows(&known));
                    let text: String = rows.iter().map(PeRow::line).collect();
                    if let Some(door) = &mut self.door {
                        door.reply(*client, state.line() + &text, &self.poller);
                    }
                }
            }
        }
    }

    /// Records the job for other commands, and listens to them. A job that cannot be recorded runs all the
    /// same.
    pub(super) fn open_door(&mut self) {
        let tool = self.plan.tool_name();
        let part = Part {
            programs: self.plan.command_lines(),
            tool: tool.as_deref(),
            n_pes: self.plan.n_pes(),
            pes_per_process: self.pes_per_process,
            hosts: self.hosts.iter().map(|host| &*host.name).collect(),
            pids: self
                .children
                .iter()
                .map(|child| child.pid().unsigned_abs())
                .filter(|pid| *pid > 0)
                .collect(),
        };
        let door = Door::open(self.plan.settings.jobs_folder.as_deref(), &part.text(), &self.poller);
        if let Err(error) = &door {
            log::warn!(target: "launcher", "`pelago ps` will not list this job: {error}");
        }
        self.door = door.ok();
    }

    /// Admits a command that wants to ask something.
    pub(super) fn admit_client(&mut self) {
        if let Some(door) = &mut self.door {
            door.admit(&self.poller);
        }
    }

    /// Reads the question of a command.
    pub(super) fn hear_client(&mut self, client: usize) {
        let Some(door) = &mut self.door else { return };
        match door.hear(client, &self.poller) {
            None => {}
            Some(Question::State) => {
                let state = self.state();
                if let Some(door) = &mut self.door {
                    door.reply(client, state.line(), &self.poller);
                }
            }
            Some(Question::Pes) => self.inquire(Asker::Client(client)),
        }
    }

    fn state(&self) -> JobState {
        match self.ending {
            Ending::No if self.joined_count < self.children.len() => JobState::Forming,
            Ending::No => JobState::Running,
            Ending::Due(_) | Ending::Asked(_) | Ending::Killed(_) => JobState::Ending,
        }
    }
}
