//! Supervision: the one loop that serves PMI, passes output on, notices deaths and ends the job. What is
//! numbered here are processes; the PEs that they have are named where somebody is told.
//!
//! Invariant: the first failure is the one that is reported; whatever dies after it dies because of the end
//! it brought. The job ends in three steps, each with a limit: SIGTERM, then SIGKILL, then the launcher gives
//! up.
//!
//! ```text
//! running --first failure, abort, signal, time-out--> asked (SIGTERM) --grace or second signal--> killed
//! (SIGKILL)
//! ```

use std::io::IsTerminal;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::Signal;

use super::child::{Child, End, Starter};
use super::input::Input;
use super::inquiry::{Inquiry, Known};
use super::output::{Outlets, Reading, Stream};
use super::pes::Pes;
use super::poller::{Poller, Source};
use super::report::{Captured, Cause, Failure, JobReport};
use super::signals::{ASKING, Signals};
use super::{JobSpec, LaunchError};
use crate::env::Settings;
use crate::locality::cpus;
use crate::pmi::REPORT;
use crate::pmi::server::{Event, Server, Stage};
use crate::pmi::wire::Message;
use crate::writer::Outlet;

/// How long a process has to end by itself after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);
/// How long the kernel has to end a process after SIGKILL.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// How far the end of a job has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The job runs.
    No,
    /// SIGTERM was sent; SIGKILL follows at this time.
    Asked(Instant),
    /// SIGKILL was sent; the launcher gives up at this time.
    Killed(Instant),
}

/// A job under way.
pub(super) struct Supervisor<'a> {
    spec: &'a JobSpec,
    pes_per_process: usize,
    children: Vec<Child>,
    server: Server,
    poller: Poller,
    input: Option<Input>,
    outlets: Outlets,
    started: Instant,
    join_limit: Duration,
    first_join: Option<Instant>,
    joined_count: usize,
    /// How long processes may wait in the launcher's barrier before what each does is said.
    stall_report: Option<Duration>,
    /// The barrier in which some wait, and when that is to be said, if it is still to be.
    meeting: Option<(u64, Option<Instant>)>,
    inquiry: Option<Inquiry>,
    ending: Ending,
    /// The user has sent a signal to a job that was ending already.
    is_hurried: bool,
    status: i32,
    failures: Vec<Failure>,
    output: Vec<Captured>,
    // Last, so that the signals stay blocked while the children above are ended.
    signals: Signals,
}

impl<'a> Supervisor<'a> {
    /// Starts all processes. If one cannot be started, those before it are ended again.
    pub(super) fn start(
        spec: &'a JobSpec,
        settings: &Settings,
        program: &Path,
        signals: Signals,
    ) -> Result<Self, LaunchError> {
        let pes_per_process = settings.pes_per_process;
        let watch = LaunchError::system("watching the job (epoll)");
        let poller = Poller::new().and_then(|poller| {
            poller.add(Source::Signal, &signals)?;
            Ok(poller)
        });
        let poller = poller.map_err(watch)?;
        let tagged = spec.tag_output && !spec.capture;
        let outlets = Outlets::start(tagged, &poller).map_err(LaunchError::system("starting the output"))?;
        let processes = spec.n / pes_per_process;
        let mut job = Self {
            spec,
            pes_per_process,
            children: Vec::with_capacity(processes),
            server: Server::new(processes),
            poller,
            input: None,
            outlets,
            started: Instant::now(),
            join_limit: settings.init_timeout,
            first_join: None,
            joined_count: 0,
            stall_report: settings.stall_report,
            meeting: None,
            inquiry: None,
            ending: Ending::No,
            is_hurried: false,
            status: 0,
            failures: Vec::new(),
            output: vec![Captured::default(); processes],
            signals,
        };
        let cpus = if spec.bind { cpus() } else { Vec::new() };
        let mask = job.signals.mask_before();
        let starter = Starter { spec, pes_per_process, program, mask, cpus };
        for process in 0..processes {
            let failed = |reason| {
                let pe = Pes::of_process(process, pes_per_process).first();
                let program = program.to_owned();
                LaunchError::Start { pe, n: spec.n, program, reason }
            };
            let input = job.standard_input(process);
            let child = input.and_then(|input| starter.start(process, input)).map_err(failed)?;
            job.watch(process, &child).map_err(LaunchError::system("watching a process (epoll)"))?;
            job.children.push(child);
        }
        Ok(job)
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
        }
        self.drain(found)?;
        Ok(self.report())
    }

    /// Takes note of a barrier in which processes begin to wait.
    fn note_meeting(&mut self) {
        let number = self.server.meeting();
        if number != self.meeting.map(|(number, _)| number) {
            let at = self.stall_report.and_then(|limit| Instant::now().checked_add(limit));
            self.meeting = number.map(|number| (number, at));
        }
    }

    /// Asks all processes what their PEs do, unless that is under way.
    fn inquire(&mut self, reason: String) {
        if self.inquiry.is_some() || self.ending != Ending::No {
            return;
        }
        self.inquiry = Some(Inquiry::new(reason, self.children.len()));
        let line = Message::new(REPORT).line();
        for child in &mut self.children {
            let Some(socket) = child.socket.as_ref().filter(|_| child.hears && !child.is_asked) else {
                continue;
            };
            let sent = send(socket, line.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            child.is_asked = sent == Ok(line.len());
        }
        self.finish_inquiry();
    }

    /// Takes what a process tells of its PEs.
    fn told(&mut self, process: usize, text: String) {
        self.children[process].is_asked = false;
        if let Some(inquiry) = &mut self.inquiry {
            inquiry.tell(process, text);
            self.finish_inquiry();
        }
    }

    /// Says what the PEs do, if all processes have answered that were asked, or it is time.
    fn finish_inquiry(&mut self) {
        let Some(inquiry) = &self.inquiry else { return };
        let is_asked = |process: &usize| self.children[*process].is_asked;
        let mut asked = (0..self.children.len()).filter(is_asked);
        if asked.next().is_some() && Instant::now() < inquiry.deadline() {
            return;
        }
        let known = (0..self.children.len()).map(|process| Known {
            pes: self.pes(process),
            pid: self.children[process].pid(),
            is_running: self.children[process].is_running(),
            stage: self.server.stage(process),
        });
        // Written at once, so that the words of a PE do not come between.
        let text = inquiry.text(known);
        self.outlets.say(&text, &self.poller);
        self.inquiry = None;
    }

    /// Passes on what the processes have left in their pipes, and waits until all is written. After a job
    /// that went well it waits for as long as the reader likes, within the time that the job was given; after
    /// any other, and after a signal, as long as the reader takes something.
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
                // A failure leaves nothing to write either, and may have come since the last bell.
                self.look_at_outlets();
                return Ok(());
            }
            let limit = if self.ending == Ending::No {
                self.timeout_at()
            } else {
                Some(self.outlets.patience_ends_at())
            };
            let limit = limit.map(|at| at.saturating_duration_since(Instant::now()));
            if self.is_hurried || (self.ending != Ending::No && limit.is_some_and(|limit| limit.is_zero())) {
                self.outlets.give_up();
                let failure = Failure::output_given_up();
                self.status = self.status.max(failure.status());
                self.failures.push(failure);
                return Ok(());
            }
            self.poller
                .wait(limit, &mut found)
                .map_err(LaunchError::system("waiting for the output (epoll)"))?;
            found.drain(..).for_each(|source| self.handle(source));
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
        if process != 0 {
            return Ok(Stdio::null());
        }
        if !std::io::stdin().is_terminal() {
            return Ok(Stdio::inherit());
        }
        let (input, reader) = Input::open(&self.poller)?;
        self.input = Some(input);
        Ok(reader.into())
    }

    fn watch(&self, process: usize, child: &Child) -> rustix::io::Result<()> {
        self.poller.add(Source::Exit(process), child)?;
        if let Some(socket) = &child.socket {
            self.poller.add(Source::Pmi(process), socket)?;
        }
        if let (Some(stdout), Some(stderr)) = (&child.stdout, &child.stderr) {
            self.poller.add(Source::Stdout(process), stdout)?;
            self.poller.add(Source::Stderr(process), stderr)?;
        }
        Ok(())
    }

    fn handle(&mut self, source: Source) {
        match source {
            Source::Signal => {
                while let Some(signal) = self.signals.take() {
                    match signal {
                        ASKING => self.inquire("SIGUSR2 asks".to_owned()),
                        _ => self.interrupt(signal),
                    }
                }
            }
            Source::Outlet => self.look_at_outlets(),
            Source::Pmi(process) => self.serve(process),
            Source::Stdout(process) | Source::Stderr(process) => self.pass_output(process, source),
            Source::Exit(process) => self.exit(process),
            Source::Terminal | Source::Room => {
                let step = if source == Source::Room { Input::write } else { Input::read };
                if self.input.as_mut().is_some_and(|input| !step(input, &self.poller)) {
                    self.input = None;
                }
            }
        }
    }

    /// A first signal ends the job; a second one does not wait for the grace of the PEs.
    fn interrupt(&mut self, signal: i32) {
        self.is_hurried = self.ending != Ending::No;
        match self.ending {
            Ending::No => self.fail(Failure::interrupted(signal)),
            Ending::Asked(_) => self.kill(),
            Ending::Killed(_) => {}
        }
    }

    /// Goes on reading what had to wait for a writer; ends the job if one has failed.
    fn look_at_outlets(&mut self) {
        if let Some((outlet, error)) = self.outlets.hear() {
            self.fail(Failure::output(outlet, &error));
        }
        for process in 0..self.children.len() {
            for source in [Source::Stdout(process), Source::Stderr(process)] {
                self.pass_output(process, source);
            }
        }
    }

    /// Passes on what a process has written. While the writer has no room, the pipe is not watched.
    fn pass_output(&mut self, process: usize, source: Source) {
        let child = &mut self.children[process];
        let stream = if source == Source::Stdout(process) { &mut child.stdout } else { &mut child.stderr };
        let Some(stream) = stream else { return };
        let reading = stream.read(self.outlets.of(stream.target()));
        let pauses = reading == Reading::Full;
        if pauses && !stream.is_paused {
            self.poller.remove(&*stream);
        }
        // A stream that cannot be watched again is closed.
        let resumes = stream.is_paused && reading == Reading::Open;
        let lost = resumes && self.poller.add(source, &*stream).is_err();
        stream.is_paused = pauses;
        if lost || reading == Reading::Ended {
            self.close_output(process, source);
        }
    }

    fn close_output(&mut self, process: usize, source: Source) {
        let (child, kept) = (&mut self.children[process], &mut self.output[process]);
        let (stream, kept) = match source {
            Source::Stdout(_) => (child.stdout.take(), &mut kept.stdout),
            _ => (child.stderr.take(), &mut kept.stderr),
        };
        if let Some(stream) = stream {
            self.poller.remove(&stream);
            let writer = self.outlets.of(stream.target());
            *kept = String::from_utf8_lossy(&stream.finish(writer)).into_owned();
        }
    }

    /// Answers what a process has sent.
    fn serve(&mut self, process: usize) {
        let mut bytes = [0_u8; 4096];
        loop {
            let child = &mut self.children[process];
            let Some(socket) = &child.socket else { return };
            match recv(socket, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((0, _)) => break,
                Ok((count, _)) => {
                    let fits = child.lines.push(&bytes[..count]);
                    while let Some(line) = self.children[process].lines.pop() {
                        self.serve_line(process, &line);
                    }
                    if !fits {
                        self.fail_process(process, Cause::Protocol, None);
                        break;
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        if let Some(socket) = self.children[process].socket.take() {
            self.poller.remove(&socket);
        }
    }

    fn serve_line(&mut self, process: usize, line: &str) {
        let mut answers = Vec::new();
        match self.server.handle(process, line, &mut answers) {
            Event::Served => {}
            Event::Joined => self.join(),
            Event::Hears => self.children[process].hears = true,
            Event::Waits(text) => self.told(process, text),
            Event::Note(text) => self.children[process].note = Some(text),
            Event::Abort { status: 0, .. } => self.end(),
            Event::Abort { status, pe, message } => {
                let pes = self.pes(process);
                let asks = pe.and_then(|pe| pes.one(pe)).unwrap_or(pes);
                self.fail_pes(&asks, process, Cause::Abort(status), message);
            }
            Event::Broken => self.fail_process(process, Cause::Protocol, None),
        }
        for (to, answer) in answers {
            let Some(socket) = &self.children[to].socket else { continue };
            let line = answer.line();
            match send(socket, line.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) if count == line.len() => {}
                // It has died, and its end is about to be noticed.
                Err(Errno::PIPE | Errno::CONNRESET) => {}
                // Its socket is full: it asks and does not read the answers.
                _ => self.fail_process(to, Cause::Protocol, None),
            }
        }
    }

    fn join(&mut self) {
        self.first_join.get_or_insert_with(Instant::now);
        self.joined_count += 1;
        let stranger = |process: &usize| {
            !self.children[*process].is_running() && self.server.stage(*process) == Stage::Outside
        };
        // While processes are still being started, those to come count as running.
        if let Some(process) = (0..self.children.len()).find(stranger) {
            self.fail_process(process, Cause::NotJoined, None);
        }
    }

    fn exit(&mut self, process: usize) {
        // Its last words first: they may have come after the events of this round were collected.
        self.serve(process);
        let Some(end) = self.children[process].reap() else { return };
        self.poller.remove(&self.children[process]);
        if end == End::Signal(libc::SIGPIPE)
            && let Some(outlet) = outlet_without_reader()
        {
            return self.fail(Failure::output_closed(outlet));
        }
        let stage = self.server.stage(process);
        // Other PEs still wait for it, so its status is the reason of the failure.
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
        self.fail_process(process, cause, note);
    }

    fn fail_process(&mut self, process: usize, cause: Cause, note: Option<String>) {
        self.fail_pes(&self.pes(process), process, cause, note);
    }

    /// Fails because of some of the PEs of a process.
    fn fail_pes(&mut self, pes: &Pes, process: usize, cause: Cause, note: Option<String>) {
        let pid = self.children[process].pid();
        self.fail(Failure::of(pes, pid, cause, note));
    }

    /// Records the first failure, and ends the job.
    fn fail(&mut self, failure: Failure) {
        if self.ending == Ending::No {
            self.status = failure.status();
            self.failures.push(failure);
            self.end();
        }
    }

    fn end(&mut self) {
        if self.ending == Ending::No {
            self.ending = Ending::Asked(Instant::now() + GRACE);
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

    /// When something is due even if nothing happens.
    fn deadline(&self) -> Option<Instant> {
        match self.ending {
            Ending::Asked(at) | Ending::Killed(at) => Some(at),
            Ending::No => {
                let inquiry = self.inquiry.as_ref().map(Inquiry::deadline);
                let meeting = self.meeting.and_then(|(_, at)| at);
                [self.timeout_at(), self.join_at(), inquiry, meeting].into_iter().flatten().min()
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
        let now = Instant::now();
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.inquiry.as_ref().map(Inquiry::deadline)) {
            self.finish_inquiry();
        }
        if let Some((_, at)) = self.meeting.as_mut().filter(|(_, at)| due(*at)) {
            *at = None;
            let limit = self.stall_report.unwrap_or_default().as_secs_f64();
            self.inquire(format!("processes have waited for {limit} s in the launcher's barrier"));
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
            Ending::Asked(at) if at <= now => self.kill(),
            Ending::Killed(at) if at <= now => {
                for process in 0..self.children.len() {
                    if self.children[process].is_running() {
                        let pid = self.children[process].pid();
                        let failure = Failure::of(&self.pes(process), pid, Cause::Unkillable, None);
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

/// A stream of the launcher, which is that of the PEs too, whose reader has gone.
fn outlet_without_reader() -> Option<Outlet> {
    [Outlet::Stdout, Outlet::Stderr].into_iter().find(|outlet| outlet.has_lost_its_reader())
}
