//! Supervision: the one loop that serves PMI, passes output on, notices deaths and ends the job.
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
use super::poller::{Poller, Source};
use super::report::{Captured, Cause, Failure, JobReport};
use super::signals::Signals;
use super::{JobSpec, LaunchError};
use crate::locality::cpus;
use crate::pmi::server::{Event, Server, Stage};

/// How long a PE has to end by itself after SIGTERM.
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
    children: Vec<Child>,
    server: Server,
    poller: Poller,
    input: Option<Input>,
    started: Instant,
    join_limit: Duration,
    first_join: Option<Instant>,
    joined_count: usize,
    ending: Ending,
    status: i32,
    failures: Vec<Failure>,
    output: Vec<Captured>,
    // Last, so that the signals stay blocked while the children above are ended.
    signals: Signals,
}

impl<'a> Supervisor<'a> {
    /// Starts all PEs. If one cannot be started, those before it are ended again.
    pub(super) fn start(
        spec: &'a JobSpec,
        program: &Path,
        join_limit: Duration,
        signals: Signals,
    ) -> Result<Self, LaunchError> {
        let watch = LaunchError::system("watching the job (epoll)");
        let poller = Poller::new().and_then(|poller| {
            poller.add(Source::Signal, &signals)?;
            Ok(poller)
        });
        let mut job = Self {
            spec,
            children: Vec::with_capacity(spec.n),
            server: Server::new(spec.n),
            poller: poller.map_err(watch)?,
            input: None,
            started: Instant::now(),
            join_limit,
            first_join: None,
            joined_count: 0,
            ending: Ending::No,
            status: 0,
            failures: Vec::new(),
            output: vec![Captured::default(); spec.n],
            signals,
        };
        let cpus = if spec.bind { cpus() } else { Vec::new() };
        let starter = Starter { spec, program, mask: job.signals.mask_before(), cpus };
        for pe in 0..spec.n {
            let failed = |reason| LaunchError::Start { pe, n: spec.n, program: program.to_owned(), reason };
            let input = job.standard_input(pe).map_err(failed)?;
            let child = starter.start(pe, input).map_err(failed)?;
            job.watch(pe, &child).map_err(LaunchError::system("watching a PE (epoll)"))?;
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
            self.check_deadlines();
        }
        Ok(self.report())
    }

    fn standard_input(&mut self, pe: usize) -> std::io::Result<Stdio> {
        if pe != 0 {
            return Ok(Stdio::null());
        }
        if !std::io::stdin().is_terminal() {
            return Ok(Stdio::inherit());
        }
        let (input, reader) = Input::open(&self.poller)?;
        self.input = Some(input);
        Ok(reader.into())
    }

    fn watch(&self, pe: usize, child: &Child) -> rustix::io::Result<()> {
        self.poller.add(Source::Exit(pe), child)?;
        if let Some(socket) = &child.socket {
            self.poller.add(Source::Pmi(pe), socket)?;
        }
        if let (Some(stdout), Some(stderr)) = (&child.stdout, &child.stderr) {
            self.poller.add(Source::Stdout(pe), stdout)?;
            self.poller.add(Source::Stderr(pe), stderr)?;
        }
        Ok(())
    }

    fn handle(&mut self, source: Source) {
        match source {
            Source::Signal => {
                while let Some(signal) = self.signals.take() {
                    self.interrupt(signal);
                }
            }
            Source::Pmi(pe) => self.serve(pe),
            Source::Stdout(pe) | Source::Stderr(pe) => self.pass_output(pe, source),
            Source::Exit(pe) => self.exit(pe),
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
        match self.ending {
            Ending::No => self.fail(Failure::interrupted(signal)),
            Ending::Asked(_) => self.kill(),
            Ending::Killed(_) => {}
        }
    }

    fn pass_output(&mut self, pe: usize, source: Source) {
        let child = &mut self.children[pe];
        let stream = if source == Source::Stdout(pe) { &mut child.stdout } else { &mut child.stderr };
        if stream.as_mut().is_some_and(|stream| !stream.read()) {
            self.close_output(pe, source);
        }
    }

    fn close_output(&mut self, pe: usize, source: Source) {
        let (child, kept) = (&mut self.children[pe], &mut self.output[pe]);
        let (stream, kept) = match source {
            Source::Stdout(_) => (child.stdout.take(), &mut kept.stdout),
            _ => (child.stderr.take(), &mut kept.stderr),
        };
        if let Some(stream) = stream {
            self.poller.remove(&stream);
            *kept = String::from_utf8_lossy(&stream.finish()).into_owned();
        }
    }

    /// Answers what a PE has sent.
    fn serve(&mut self, pe: usize) {
        let mut bytes = [0_u8; 4096];
        loop {
            let child = &mut self.children[pe];
            let Some(socket) = &child.socket else { return };
            match recv(socket, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((0, _)) => break,
                Ok((count, _)) => {
                    let fits = child.lines.push(&bytes[..count]);
                    while let Some(line) = self.children[pe].lines.pop() {
                        self.serve_line(pe, &line);
                    }
                    if !fits {
                        self.fail_pe(pe, Cause::Protocol, None);
                        break;
                    }
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        if let Some(socket) = self.children[pe].socket.take() {
            self.poller.remove(&socket);
        }
    }

    fn serve_line(&mut self, pe: usize, line: &str) {
        let mut answers = Vec::new();
        match self.server.handle(pe, line, &mut answers) {
            Event::Served => {}
            Event::Joined => self.join(),
            Event::Note(text) => self.children[pe].note = Some(text),
            Event::Abort { status: 0, .. } => self.end(),
            Event::Abort { status, message } => self.fail_pe(pe, Cause::Abort(status), message),
            Event::Broken => self.fail_pe(pe, Cause::Protocol, None),
        }
        for (to, answer) in answers {
            let Some(socket) = &self.children[to].socket else { continue };
            let line = answer.line();
            match send(socket, line.as_bytes(), SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) if count == line.len() => {}
                // It has died, and its end is about to be noticed.
                Err(Errno::PIPE | Errno::CONNRESET) => {}
                // Its socket is full: it asks and does not read the answers.
                _ => self.fail_pe(to, Cause::Protocol, None),
            }
        }
    }

    fn join(&mut self) {
        self.first_join.get_or_insert_with(Instant::now);
        self.joined_count += 1;
        let stranger =
            |pe: &usize| !self.children[*pe].is_running() && self.server.stage(*pe) == Stage::Outside;
        // While PEs are still being started, those to come count as running.
        if let Some(pe) = (0..self.children.len()).find(stranger) {
            self.fail_pe(pe, Cause::NotJoined, None);
        }
    }

    fn exit(&mut self, pe: usize) {
        // Its last words first: they may have come after the events of this round were collected.
        self.serve(pe);
        let Some(end) = self.children[pe].reap() else { return };
        self.poller.remove(&self.children[pe]);
        let stage = self.server.stage(pe);
        let cause = match end {
            End::Signal(signal) => Cause::Signal(signal),
            End::Exit(status) if status != 0 && matches!(stage, Stage::Finalized | Stage::Resting) => {
                Cause::ExitAfterLeaving(status)
            }
            End::Exit(status) if status != 0 => Cause::Exit(status),
            End::Exit(_) if matches!(stage, Stage::Inside | Stage::InBarrier) => Cause::NotFinalized,
            End::Exit(_) if stage == Stage::Outside && self.first_join.is_some() => Cause::NotJoined,
            End::Exit(_) => return,
        };
        let note = self.children[pe].note.take();
        self.fail_pe(pe, cause, note);
    }

    fn fail_pe(&mut self, pe: usize, cause: Cause, note: Option<String>) {
        let pid = self.children[pe].pid();
        self.fail(Failure::of_pe(pe, pid, cause, note));
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
            Ending::No => [self.timeout_at(), self.join_at()].into_iter().flatten().min(),
        }
    }

    fn timeout_at(&self) -> Option<Instant> {
        self.started.checked_add(self.spec.timeout?)
    }

    fn join_at(&self) -> Option<Instant> {
        let waiting = self.joined_count < self.spec.n;
        self.first_join.filter(|_| waiting)?.checked_add(self.join_limit)
    }

    fn check_deadlines(&mut self) {
        let now = Instant::now();
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        match self.ending {
            Ending::No if due(self.join_at()) => {
                let missing = (0..self.spec.n).filter(|pe| self.server.stage(*pe) == Stage::Outside);
                let missing = missing.collect();
                self.fail(Failure::missing(missing, self.join_limit));
            }
            Ending::No if due(self.timeout_at()) => {
                self.fail(Failure::timeout(self.spec.timeout.unwrap_or_default()));
            }
            Ending::Asked(at) if at <= now => self.kill(),
            Ending::Killed(at) if at <= now => {
                for pe in 0..self.children.len() {
                    if self.children[pe].is_running() {
                        let failure = Failure::of_pe(pe, self.children[pe].pid(), Cause::Unkillable, None);
                        self.status = self.status.max(failure.status());
                        self.failures.push(failure);
                        self.children[pe].abandon();
                    }
                }
            }
            _ => {}
        }
    }

    fn report(mut self) -> JobReport {
        for pe in 0..self.children.len() {
            self.close_output(pe, Source::Stdout(pe));
            self.close_output(pe, Source::Stderr(pe));
        }
        let output = if self.spec.capture { std::mem::take(&mut self.output) } else { Vec::new() };
        JobReport { status: self.status, failures: std::mem::take(&mut self.failures), output }
    }
}
