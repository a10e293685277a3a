//! Supervision: the loop that serves PMI, forwards output, notices the end of processes and ends the job.
//! Numbers in this file are those of processes; messages for the user name their PEs.
//!
//! Invariant: only the first failure that ends the job is reported, because later ones are its consequences.
//! A status other than 0 of a process that has left the job is recorded, and does not end the job. The job
//! ends in three steps, each with a limit: SIGTERM, then SIGKILL, then the launcher gives up.
//!
//! ```text
//! running --first failure, abort, signal, time-out--> asked (SIGTERM) --grace or second signal--> killed
//! (SIGKILL)
//! running --abort without a message--> due --notice--> asked
//! ```

mod hosts;
mod questions;

use std::io::IsTerminal;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::process::Signal;

use super::child::{Child, Sent};
use super::door::Door;
use super::host::Host;
use super::input::Input;
use super::inquiry::{Asker, Inquiry};
use super::output::{Outlets, Reading, Stream, Target};
use super::pes::Pes;
use super::plan::Plan;
use super::poller::{Poller, Source};
use super::process::{End, Output, Starter};
use super::report::{Captured, Cause, Failure, JobReport, Name};
use super::signals::{ASKING, FORWARDED, STOPPING, Signals, take_terminal};
use super::{InputTo, JobSpec, LaunchError};
use crate::locality::cpus_by_core;
use crate::pmi::server::{Event, Server, Stage};
use crate::writer::Outlet;

/// How long processes have before SIGTERM when a PE has ended the job without a message: perhaps all PEs are
/// about to do so, and have output to write first.
const NOTICE: Duration = Duration::from_millis(100);
/// How long a process has to end by itself after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);
/// The same for a process that runs under a tool, which may have much to write.
const GRACE_OF_TOOLS: Duration = Duration::from_secs(10);
/// How long the kernel has to end a process after SIGKILL.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// The progress of the end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The job runs.
    No,
    /// A PE has ended the job; SIGTERM follows at this time.
    Due(Instant),
    /// SIGTERM was sent; SIGKILL follows at this time.
    Asked(Instant),
    /// SIGKILL was sent; the launcher gives up at this time.
    Killed(Instant),
}

/// A running job.
pub(super) struct Supervisor<'a> {
    spec: &'a JobSpec,
    plan: Plan,
    pes_per_process: usize,
    children: Vec<Child>,
    /// The hosts that processes run on, if not on this machine.
    hosts: Vec<Host>,
    server: Server,
    poller: Poller,
    input: Option<Input>,
    outlets: Outlets,
    started: Instant,
    join_limit: Duration,
    first_join: Option<Instant>,
    joined_count: usize,
    /// How long processes may wait in the launcher's barrier before a stall report is printed.
    stall_report: Option<Duration>,
    /// The barrier in which some processes wait, and the time of its stall report, if that is still due.
    meeting: Option<(u64, Option<Instant>)>,
    inquiry: Option<Inquiry>,
    /// Where other commands ask about the job; `None` if the folder of the jobs cannot be used.
    door: Option<Door>,
    ending: Ending,
    /// The user has sent a further signal while the job was ending.
    is_hurried: bool,
    status: i32,
    failures: Vec<Failure>,
    output: Vec<Captured>,
    // The last field, so that the signals stay blocked while the children above are killed.
    signals: Signals,
}

impl<'a> Supervisor<'a> {
    /// Starts all processes on this machine, or the agents of all hosts. If one process cannot be started,
    /// those before it are killed.
    pub(super) fn start(spec: &'a JobSpec, plan: Plan, signals: Signals) -> Result<Self, LaunchError> {
        let pes_per_process = plan.settings.pes_per_process;
        let watch = LaunchError::system("watching the job (epoll)");
        let poller = Poller::new().and_then(|poller| {
            poller.add(Source::Signal, &signals)?;
            Ok(poller)
        });
        let poller = poller.map_err(watch)?;
        // All output of other hosts passes through the launcher.
        let is_passed = spec.tag_output || spec.machines.is_some();
        let passes = is_passed && !spec.capture && spec.output_folder.is_none();
        let outlets = Outlets::start(passes, &poller).map_err(LaunchError::system("starting the output"))?;
        let processes = plan.program_of.len();
        let mut job = Self {
            spec,
            pes_per_process,
            children: Vec::with_capacity(processes),
            hosts: Vec::new(),
            server: Server::new(plan.program_of.clone(), &plan.processes_of_nodes()),
            poller,
            input: None,
            outlets,
            started: Instant::now(),
            join_limit: plan.settings.init_timeout,
            first_join: None,
            joined_count: 0,
            stall_report: plan.settings.stall_report,
            meeting: None,
            inquiry: None,
            door: None,
            ending: Ending::No,
            is_hurried: false,
            status: 0,
            failures: Vec::new(),
            output: vec![Captured::default(); processes],
            plan,
            signals,
        };
        match &spec.machines {
            Some(machines) => job.call_hosts(machines)?,
            None => job.start_here()?,
        }
        job.open_door();
        Ok(job)
    }

    /// Starts all processes on this machine.
    fn start_here(&mut self) -> Result<(), LaunchError> {
        let processes = self.plan.program_of.len();
        let starter = Starter {
            programs: self.plan.ready(),
            size: processes,
            here: 0..processes,
            pes_per_process: self.pes_per_process,
            without: self.spec.without.clone(),
            output: match &self.spec.output_folder {
                _ if self.spec.capture => Output::Pipes,
                Some(folder) => Output::Folder(folder.clone()),
                None if self.spec.tag_output => Output::Pipes,
                None => Output::Inherited,
            },
            tool: self.plan.ready_tool()?,
            mask: self.signals.mask_before(),
            cpus: if self.spec.bind { cpus_by_core() } else { Vec::new() },
        };
        for process in 0..processes {
            let (pes, n, program) =
                (self.pes(process), self.plan.n_pes(), self.plan.program(process).to_owned());
            let failed = |reason| LaunchError::Start { pe: pes.first(), n, program, reason };
            let started = self.standard_input(process).and_then(|input| {
                let (started, pipes) = starter.start(process, self.plan.program_of[process], input)?;
                let streams = match pipes {
                    None => (None, None),
                    Some((out, err)) => {
                        let [to_out, to_err] = self.targets();
                        let (out, err) =
                            (Stream::of_pipe(out, to_out, &pes)?, Stream::of_pipe(err, to_err, &pes)?);
                        (Some(out), Some(err))
                    }
                };
                Ok(Child::here(started, streams))
            });
            let mut child = started.map_err(failed)?;
            self.watch(process, &mut child).map_err(LaunchError::system("watching a process (epoll)"))?;
            self.children.push(child);
        }
        self.input = self.input.take().and_then(|mut input| input.start(&self.poller).then_some(input));
        Ok(())
    }

    /// The destinations of the two streams of a process, if they pass through the launcher.
    fn targets(&self) -> [Target; 2] {
        match self.spec.capture {
            true => [Target::Report; 2],
            false => [Target::Outlet(Outlet::Stdout), Target::Outlet(Outlet::Stderr)],
        }
    }

    /// Runs the job to its end.
    pub(super) fn run(mut self) -> Result<JobReport, LaunchError> {
        let mut found = Vec::new();
        while self.children.iter().any(Child::is_running) {
            let limit = self.deadline().map(|at| at.saturating_duration_since(Instant::now()));
            self.poller
                .wait(limit, &mut found)
                .map_err(LaunchError::system("waiting for the job (epoll)"))?;
            for source in found.drain(..) {
                self.handle(source);
            }
            self.note_meeting();
            self.check_deadlines();
            self.flush_hosts();
        }
        self.drain(found)?;
        self.dismiss_hosts();
        Ok(self.report())
    }

    /// Forwards the data that the processes have left in their pipes, and waits until all is written. After a
    /// successful job it waits for the reader without a limit of its own, within the time-out of the job;
    /// after a failed job, and after a signal, it waits only while the reader makes progress.
    fn drain(&mut self, mut found: Vec<Source>) -> Result<(), LaunchError> {
        self.children.iter_mut().flat_map(Child::streams).for_each(Stream::limit_to_present);
        self.outlets.begin_patience();
        loop {
            let mut left = false;
            for process in 0..self.children.len() {
                for source in [Source::Stdout(process), Source::Stderr(process)] {
                    self.pass_output(process, source);
                }
                left |= self.children[process].streams().next().is_some();
            }
            if !left && self.outlets.are_done() {
                // After a failure nothing is left to write either, and it may have occurred since the last
                // wake-up.
                self.look_at_outlets();
                return Ok(());
            }
            let limit = if self.ending == Ending::No {
                self.timeout_at()
            } else {
                Some(self.outlets.patience_ends_at())
            };
            let left = |at: Instant| at.saturating_duration_since(Instant::now());
            let limit = limit.map(left);
            if self.is_hurried || (self.ending != Ending::No && limit.is_some_and(|limit| limit.is_zero())) {
                self.outlets.give_up();
                let failure = Failure::output_given_up();
                self.status = self.status.max(failure.status());
                self.failures.push(failure);
                return Ok(());
            }
            self.flush_hosts();
            let limit = [limit, self.hosts_at().map(left)].into_iter().flatten().min();
            self.poller
                .wait(limit, &mut found)
                .map_err(LaunchError::system("waiting for the output (epoll)"))?;
            found.drain(..).for_each(|source| self.handle(source));
            self.check_hosts();
            if self.ending == Ending::No && self.timeout_at().is_some_and(|at| at <= Instant::now()) {
                self.fail(Failure::timeout(self.spec.timeout.unwrap_or_default()));
                self.outlets.begin_patience();
            }
        }
    }

    /// The PEs of a process.
    fn pes(&self, process: usize) -> Pes {
        Pes::of_process(process, self.pes_per_process)
    }

    fn standard_input(&mut self, process: usize) -> std::io::Result<Stdio> {
        let (to, is_terminal) = (self.plan.input, std::io::stdin().is_terminal());
        if !to.has(process, self.pes_per_process) {
            return Ok(Stdio::null());
        }
        // The launcher reads for several processes, and from a terminal that no process has.
        if (to != InputTo::All && !is_terminal) || self.plan.has_terminal(process) {
            return Ok(Stdio::inherit());
        }
        Ok(self.input.get_or_insert_with(Input::new).add_pipe(process)?.into())
    }

    fn watch(&self, process: usize, child: &mut Child) -> rustix::io::Result<()> {
        if let Some(started) = child.process() {
            self.poller.add(Source::Exit(process), &*started)?;
        }
        if let Some(socket) = child.socket() {
            self.poller.add(Source::Pmi(process), socket)?;
        }
        let sources = [(Source::Stdout(process), &child.stdout), (Source::Stderr(process), &child.stderr)];
        for (source, stream) in sources {
            if let Some(pipe) = stream.as_ref().and_then(Stream::pipe) {
                self.poller.add(source, pipe)?;
            }
        }
        Ok(())
    }

    fn handle(&mut self, source: Source) {
        match source {
            Source::Signal => {
                while let Some(signal) = self.signals.take() {
                    match signal {
                        ASKING => self.inquire(Asker::Report("SIGUSR2 asks".to_owned())),
                        STOPPING => self.stop(),
                        FORWARDED => self.signal_all(Signal::USR1),
                        _ => self.interrupt(signal),
                    }
                }
            }
            Source::Outlet => self.look_at_outlets(),
            Source::Door => self.admit_client(),
            Source::Client(client) => self.hear_client(client),
            Source::Pmi(process) => self.serve(process),
            Source::Stdout(process) | Source::Stderr(process) => self.pass_output(process, source),
            Source::Exit(process) => self.exit(process),
            Source::Host(host) => self.read_host(host),
            // The queued frames are sent at the end of each round.
            Source::HostRoom(_) => {}
            Source::ShellErrors(host) => self.read_shell_errors(host),
            Source::ShellExit(host) => self.end_of_shell(host),
            Source::Input => self.step_input(|input, poller| input.read(poller)),
            Source::Room(process) => self.step_input(|input, poller| input.write(process, poller)),
        }
    }

    /// Passes input on, if there is some left.
    fn step_input(&mut self, step: impl FnOnce(&mut Input, &Poller) -> bool) {
        if self.input.as_mut().is_some_and(|input| !step(input, &self.poller)) {
            self.input = None;
        }
    }

    /// A first signal ends the job; a second one skips the grace period of the PEs.
    fn interrupt(&mut self, signal: i32) {
        self.is_hurried = self.ending != Ending::No;
        match self.ending {
            Ending::No => self.fail(Failure::interrupted(signal)),
            Ending::Due(_) => self.end(),
            Ending::Asked(_) => self.kill(),
            Ending::Killed(_) => {}
        }
    }

    /// Resumes streams that were paused because a writer was full; ends the job if a writer has failed.
    fn look_at_outlets(&mut self) {
        if let Some((outlet, error)) = self.outlets.clear_events() {
            self.fail(Failure::output(outlet, &error));
        }
        for process in 0..self.children.len() {
            for source in [Source::Stdout(process), Source::Stderr(process)] {
                self.pass_output(process, source);
            }
        }
    }

    /// Forwards what a process has written. While the writer has no room, the pipe is not watched.
    fn pass_output(&mut self, process: usize, source: Source) {
        let child = &mut self.children[process];
        let stream = if source == Source::Stdout(process) { &mut child.stdout } else { &mut child.stderr };
        let Some(stream) = stream else { return };
        let reading = stream.read(self.outlets.of(stream.target()));
        let failure = stream.take_failure();
        let pauses = reading == Reading::Full;
        let pipe = stream.pipe();
        if let Some(pipe) = pipe.filter(|_| pauses && !stream.is_paused) {
            self.poller.remove(pipe);
        }
        // If the stream cannot be watched again, it is closed.
        let resumes = stream.is_paused && reading == Reading::Open;
        let lost = pipe.is_some_and(|pipe| resumes && self.poller.add(source, pipe).is_err());
        stream.is_paused = pauses;
        if lost || reading == Reading::Ended || failure.is_some() {
            self.close_output(process, source);
        }
        if let Some((path, error)) = failure {
            self.fail(Failure::output_file(&path, &error));
        }
    }

    fn close_output(&mut self, process: usize, source: Source) {
        let (child, kept) = (&mut self.children[process], &mut self.output[process]);
        let (stream, kept) = match source {
            Source::Stdout(_) => (child.stdout.take(), &mut kept.stdout),
            _ => (child.stderr.take(), &mut kept.stderr),
        };
        if let Some(stream) = stream {
            stream.pipe().iter().for_each(|pipe| self.poller.remove(pipe));
            let writer = self.outlets.of(stream.target());
            *kept = String::from_utf8_lossy(&stream.finish(writer)).into_owned();
        }
    }

    /// Handles the PMI requests of a process of this machine.
    fn serve(&mut self, process: usize) {
        let mut bytes = [0_u8; 4096];
        loop {
            let Some(socket) = self.children[process].socket() else { return };
            match recv(socket, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((0, _)) => break,
                Ok((count, _)) => {
                    if !self.serve_bytes(process, &bytes[..count]) {
                        break;
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        if let Some(socket) = self.children[process].process().and_then(|process| process.socket.take()) {
            self.poller.remove(&socket);
        }
    }

    /// Handles these bytes of a process; false if they are not PMI-1.
    fn serve_bytes(&mut self, process: usize, bytes: &[u8]) -> bool {
        let fits = self.children[process].lines.push(bytes);
        while let Some(line) = self.children[process].lines.pop() {
            self.serve_line(process, &line);
        }
        if !fits {
            self.fail_process(process, Cause::Protocol, None);
        }
        fits
    }

    fn serve_line(&mut self, process: usize, line: &str) {
        let mut answers = Vec::new();
        match self.server.handle(process, line, &mut answers) {
            Event::Served => {}
            Event::Joined => self.join(),
            Event::Hears => self.children[process].hears = true,
            Event::Waits(waits) => self.record_waits(process, waits),
            Event::Note(text) => self.children[process].note = Some(text),
            Event::Abort { status, pe, message } => self.abort(process, status, pe, message),
            Event::JoinedTwice => self.fail_process(process, Cause::JoinedTwice, None),
            Event::Broken => self.fail_process(process, Cause::Protocol, None),
        }
        for (to, answer) in answers {
            // If the process is gone, the loop is about to notice its end.
            if self.children[to].send(&answer.line()) == Sent::Full {
                self.fail_process(to, Cause::Protocol, None);
            }
        }
    }

    /// Ends the job, as a PE of this process has asked: soon, if it has no message.
    fn abort(&mut self, process: usize, status: i32, pe: Option<usize>, message: Option<String>) {
        if self.ending != Ending::No {
            return;
        }
        let is_quiet = message.is_none();
        if status != 0 {
            let pes = self.pes(process);
            let asks = pe.and_then(|pe| pes.one(pe)).unwrap_or(pes);
            let failure = self.failure(&asks, process, Cause::Abort(status), message);
            self.note(failure);
        }
        if is_quiet {
            self.ending = Ending::Due(Instant::now() + NOTICE);
            self.give_up_calls();
        } else {
            self.end();
        }
    }

    fn join(&mut self) {
        self.first_join.get_or_insert_with(Instant::now);
        self.joined_count += 1;
        let stranger = |process: &usize| {
            !self.children[*process].is_running() && self.server.stage(*process) == Stage::Outside
        };
        // While processes are being started, those that are not started yet count as running.
        if let Some(process) = (0..self.children.len()).find(stranger) {
            self.fail_process(process, Cause::NotJoined, None);
        }
    }

    fn exit(&mut self, process: usize) {
        // Its last messages come first: they may have arrived after the events of this round were collected.
        self.serve(process);
        let Some(started) = self.children[process].process() else { return };
        let Some(end) = started.reap() else { return };
        self.poller.remove(&*started);
        if self.plan.has_terminal(process) {
            take_terminal();
        }
        self.ended(process, end);
    }

    /// Decides whether the end of a process is a failure.
    fn ended(&mut self, process: usize, end: End) {
        if end == End::Signal(libc::SIGPIPE)
            && let Some(outlet) = outlet_without_reader()
        {
            return self.fail(Failure::output_closed(outlet));
        }
        let stage = self.server.stage(process);
        // Other PEs still wait for the process, so its status is the cause of the failure.
        let is_missed = self.server.is_missed(process);
        let cause = match end {
            End::Signal(signal) => Cause::Signal(signal),
            End::Exit(status)
                if status != 0 && !is_missed && matches!(stage, Stage::Finalized | Stage::Resting) =>
            {
                Cause::ExitAfterLeaving(status)
            }
            End::Exit(status) if status != 0 => Cause::Exit(status),
            End::Exit(_) if matches!(stage, Stage::Inside | Stage::InBarrier) => Cause::NotFinalized,
            End::Exit(_) if stage == Stage::Outside && self.first_join.is_some() => Cause::NotJoined,
            End::Exit(_) => return,
        };
        let note = self.children[process].note.take();
        match cause {
            Cause::ExitAfterLeaving(_) => self.record(process, cause, note),
            _ => self.fail_process(process, cause, note),
        }
    }

    /// Records a failure that concerns no other process: those may still work, and end by themselves.
    fn record(&mut self, process: usize, cause: Cause, note: Option<String>) {
        if self.ending == Ending::No && self.failures.is_empty() {
            let failure = self.failure(&self.pes(process), process, cause, note);
            self.note(failure);
        }
    }

    fn fail_process(&mut self, process: usize, cause: Cause, note: Option<String>) {
        let failure = self.failure(&self.pes(process), process, cause, note);
        self.fail(failure);
    }

    fn failure(&self, pes: &Pes, process: usize, cause: Cause, note: Option<String>) -> Failure {
        let name = Name { pes, host: self.host_of(process) };
        Failure::of(&name, self.children[process].pid(), cause, note)
    }

    /// The host of a process, unless it is this machine.
    fn host_of(&self, process: usize) -> Option<&str> {
        self.children[process].host().map(|host| &*self.hosts[host].name)
    }

    /// Records the first failure that ends the job, and ends it.
    fn fail(&mut self, failure: Failure) {
        if self.ending == Ending::No {
            self.note(failure);
            self.end();
        }
    }

    /// Records a failure. The status is that of the first one.
    fn note(&mut self, failure: Failure) {
        if self.status == 0 {
            self.status = failure.status();
        }
        self.failures.push(failure);
    }

    fn end(&mut self) {
        if matches!(self.ending, Ending::No | Ending::Due(_)) {
            let grace = if self.spec.tool.is_some() { GRACE_OF_TOOLS } else { GRACE };
            self.ending = Ending::Asked(Instant::now() + grace);
            self.give_up_calls();
            self.signal_all(Signal::TERM);
        }
    }

    fn kill(&mut self) {
        self.ending = Ending::Killed(Instant::now() + KILL_LIMIT);
        self.signal_all(Signal::KILL);
    }

    fn signal_all(&self, signal: Signal) {
        self.children.iter().for_each(|child| child.signal(signal));
    }

    /// The time of the next action that is due without an event.
    fn deadline(&self) -> Option<Instant> {
        let inquiry = self.inquiry.as_ref().map(Inquiry::deadline);
        match self.ending {
            Ending::Due(at) | Ending::Asked(at) | Ending::Killed(at) => {
                [Some(at), self.hosts_at(), inquiry].into_iter().flatten().min()
            }
            Ending::No => {
                let meeting = self.meeting.and_then(|(_, at)| at);
                let own = [self.timeout_at(), self.join_at(), inquiry, meeting, self.hosts_at()];
                own.into_iter().flatten().min()
            }
        }
    }

    fn timeout_at(&self) -> Option<Instant> {
        self.started.checked_add(self.spec.timeout?)
    }

    fn join_at(&self) -> Option<Instant> {
        let waiting = self.joined_count < self.children.len();
        self.first_join.filter(|_| waiting)?.checked_add(self.join_limit)
    }

    fn check_deadlines(&mut self) {
        self.check_hosts();
        let now = Instant::now();
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.inquiry.as_ref().map(Inquiry::deadline)) {
            self.finish_inquiry();
        }
        if let Some((_, at)) = self.meeting.as_mut().filter(|(_, at)| due(*at)) {
            *at = None;
            let limit = self.stall_report.unwrap_or_default().as_secs_f64();
            let reason = format!("processes have waited for {limit} s in the launcher's barrier");
            self.inquire(Asker::Report(reason));
        }
        match self.ending {
            Ending::No if due(self.join_at()) => {
                let is_missing = |process: &usize| self.server.stage(*process) == Stage::Outside;
                let missing = (0..self.children.len()).filter(is_missing);
                let missing = missing.flat_map(|process| self.pes(process).all()).collect();
                self.fail(Failure::missing(missing, self.join_limit));
            }
            Ending::No if due(self.timeout_at()) => {
                self.fail(Failure::timeout(self.spec.timeout.unwrap_or_default()));
            }
            Ending::Due(at) if at <= now => self.end(),
            Ending::Asked(at) if at <= now => self.kill(),
            Ending::Killed(at) if at <= now => {
                for process in 0..self.children.len() {
                    if self.children[process].is_running() {
                        let failure = self.failure(&self.pes(process), process, Cause::Unkillable, None);
                        self.status = self.status.max(failure.status());
                        self.failures.push(failure);
                        self.children[process].abandon();
                    }
                }
            }
            _ => {}
        }
    }

    fn report(mut self) -> JobReport {
        let output = if self.spec.capture { std::mem::take(&mut self.output) } else { Vec::new() };
        JobReport { status: self.status, failures: std::mem::take(&mut self.failures), output }
    }
}

/// A stream of the launcher, which the PEs share, whose reader is gone.
fn outlet_without_reader() -> Option<Outlet> {
    [Outlet::Stdout, Outlet::Stderr].into_iter().find(|outlet| outlet.has_lost_its_reader())
}
