//! The hosts of a job in the supervising loop. Messages of their agents become the same events as those of
//! processes of this machine, so that the rest of the loop does not distinguish the two.
//!
//! Invariant: no process starts before all agents have sent their greeting. A host is lost if its agent sends
//! an invalid frame, if its connection ends, or if it is silent for longer than `PELAGO_PEER_TIMEOUT`. The
//! processes of a lost host are lost as well.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};

use super::super::child::{Child, Remote};
use super::super::frame::{Frame, Garbage, Which};
use super::super::host::{Host, STATUS_LIMIT, Standing};
use super::super::input::Input;
use super::super::output::Stream;
use super::super::poller::Source;
use super::super::process::End;
use super::super::report::{Cause, Failure};
use super::super::tool::output_file;
use super::super::{LaunchError, Machines};
use super::{Ending, Supervisor};
use crate::process::ProcessState;

/// The number of reads from one host before the other hosts are read.
const READS: usize = 16;
/// The number of liveness requests to a host within its time limit.
const QUESTIONS: u32 = 4;
/// Slurm prints this if it cannot bind and is told not to bind; the message is suppressed.
const IGNORED_WARNING: &str = "cluster configuration lacks support for cpu binding";
/// How long a launcher that is about to be stopped tries to notify the agents.
const STOP_LIMIT: Duration = Duration::from_millis(500);

impl Supervisor<'_> {
    /// Starts the agents of all hosts, and records the processes that each of them is to start.
    pub(super) fn call_hosts(&mut self, machines: &Machines) -> Result<(), LaunchError> {
        let mask = self.signals.mask_before();
        for (number, (name, processes)) in self.plan.hosts.clone().into_iter().enumerate() {
            let host = Host::call(number, &name, machines, processes.clone(), &self.poller, mask)?;
            for process in processes {
                let pes = self.pes(process);
                let is_tagged = self.spec.tag_output && self.spec.output_folder.is_none();
                let tagged = is_tagged.then_some(&pes);
                let [to_out, to_err] = self.targets();
                let mut stdout = Stream::of_agent(&host.queue, process, Which::Stdout, to_out, tagged);
                let mut stderr = Stream::of_agent(&host.queue, process, Which::Stderr, to_err, tagged);
                if let Some(folder) = self.spec.output_folder.as_ref().filter(|_| !self.spec.capture) {
                    let failed = |reason| LaunchError::OutputFolder { folder: folder.clone(), reason };
                    stdout = stdout.into_file(output_file(folder, &pes, "out")).map_err(failed)?;
                    stderr = stderr.into_file(output_file(folder, &pes, "err")).map_err(failed)?;
                }
                let (queue, pid, state) = (host.queue.clone(), 0, None);
                let remote =
                    Remote { queue, process, host: number, pid, is_running: true, speaks: true, state };
                self.children.push(Child::there(remote, (Some(stdout), Some(stderr))));
            }
            self.hosts.push(host);
        }
        Ok(())
    }

    /// Reads what the agent of a host has sent.
    pub(super) fn read_host(&mut self, host: usize) {
        let mut bytes = [0_u8; 16 << 10];
        for _ in 0..READS {
            match self.hosts[host].read(&mut bytes, &self.poller) {
                Ok(0) => break,
                Ok(count) => self.hosts[host].frames.push(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => break,
            }
            self.unpack(host);
            if self.hosts[host].standing == Standing::Over {
                return;
            }
        }
        self.check_host(host);
    }

    /// Handles the complete frames that have arrived from a host.
    fn unpack(&mut self, host: usize) {
        if self.hosts[host].standing == Standing::Called && !self.greet(host) {
            return;
        }
        while self.hosts[host].standing != Standing::Over {
            let taken = match self.hosts[host].frames.pop() {
                Ok(None) => return,
                Ok(Some(frame)) => self.take(host, frame),
                Err(Garbage) => Err(Garbage),
            };
            if taken == Err(Garbage) {
                self.lose(
                    host,
                    "what came from it is not what an agent of Pelago sends; see what writes there",
                );
            }
        }
    }

    /// Whether the agent of a host has sent its greeting. When all agents have, they are told which processes
    /// to start.
    fn greet(&mut self, host: usize) -> bool {
        match self.hosts[host].frames.greeted() {
            Ok(false) => return false,
            Ok(true) => self.hosts[host].standing = Standing::Greeted,
            Err(words) => {
                let own = env!("CARGO_PKG_VERSION");
                let why = format!(
                    "{words:?} came in the place of the agent of Pelago {own}; install the same version on \
                     all hosts, and let shells that start there print nothing"
                );
                self.lose(host, &why);
                return false;
            }
        }
        let words = std::mem::take(&mut self.hosts[host].words);
        self.pass_complaint(host, &words);
        if self.hosts.iter().all(|host| host.standing == Standing::Greeted) && self.ending == Ending::No {
            for number in 0..self.hosts.len() {
                let start = self.plan.start(number, self.spec.bind);
                self.hosts[number].queue.send(&Frame::Start(Box::new(start)));
                self.hosts[number].standing = Standing::Running;
            }
            self.connect_input();
        }
        true
    }

    /// Connects standard input to the agents of the processes that read it.
    fn connect_input(&mut self) {
        let mut input = Input::new();
        for (host, process) in
            self.hosts.iter().flat_map(|host| host.processes.clone().map(move |process| (host, process)))
        {
            if self.plan.input.has(process, self.pes_per_process) {
                input.add_agent(process, &host.queue);
            }
        }
        self.input = input.start(&self.poller).then_some(input);
    }

    /// Handles a frame of a host.
    fn take(&mut self, host: usize, frame: Frame) -> Result<(), Garbage> {
        match frame {
            Frame::Alive => {}
            Frame::Started(process, pid) if pid > 0 => {
                let remote = self.remote(host, process)?;
                if remote.pid != 0 {
                    return Err(Garbage);
                }
                remote.pid = pid;
            }
            Frame::Refused(process, why) => {
                self.remote(host, process)?;
                self.fail_process(process, Cause::NotStarted, Some(why));
                // The processes that the agent has started end with it.
                self.hosts[host].break_off(&self.poller);
                self.abandon(host);
            }
            Frame::Pmi(process, bytes) => {
                let remote = self.started(host, process)?;
                if !remote.speaks {
                    return Err(Garbage);
                }
                remote.speaks = !bytes.is_empty();
                if !self.serve_bytes(process, &bytes) {
                    self.started(host, process)?.speaks = false;
                }
            }
            Frame::Deaf(process) => {
                self.started(host, process)?;
                self.fail_process(process, Cause::Protocol, None);
            }
            Frame::Stdout(process, bytes) => {
                self.output_arrives(host, process, Source::Stdout(process), &bytes)?
            }
            Frame::Stderr(process, bytes) => {
                self.output_arrives(host, process, Source::Stderr(process), &bytes)?
            }
            Frame::Taken(process, Which::Stdin, count) => {
                self.started(host, process)?;
                self.step_input(|input, poller| input.make_room(process, count as usize, poller));
            }
            Frame::InputClosed(process) => {
                self.started(host, process)?;
                self.step_input(|input, poller| input.leave(process, poller));
            }
            Frame::Exited(process, status) => self.end_of(host, process, End::Exit(status))?,
            Frame::Killed(process, signal) => self.end_of(host, process, End::Signal(signal))?,
            Frame::State(process, state) => {
                self.started(host, process)?.state = Some(ProcessState::of_number(state).ok_or(Garbage)?);
                self.finish_inquiry();
            }
            _ => return Err(Garbage),
        }
        Ok(())
    }

    /// A process of this host.
    fn remote(&mut self, host: usize, process: usize) -> Result<&mut Remote, Garbage> {
        let child = self.children.get_mut(process).ok_or(Garbage)?;
        child.remote().filter(|remote| remote.host == host).ok_or(Garbage)
    }

    /// A process that this host has started.
    fn started(&mut self, host: usize, process: usize) -> Result<&mut Remote, Garbage> {
        let remote = self.remote(host, process)?;
        if remote.pid == 0 { Err(Garbage) } else { Ok(remote) }
    }

    fn output_arrives(
        &mut self,
        host: usize,
        process: usize,
        source: Source,
        bytes: &[u8],
    ) -> Result<(), Garbage> {
        self.started(host, process)?;
        let child = &mut self.children[process];
        let stream = if source == Source::Stdout(process) { &mut child.stdout } else { &mut child.stderr };
        // A stream whose reader has failed may be closed here while the agent still sends.
        if stream.as_mut().is_some_and(|stream| !stream.arrive(bytes)) {
            return Err(Garbage);
        }
        // While output comes, its end is waited for.
        self.outlets.begin_patience();
        self.pass_output(process, source);
        Ok(())
    }

    fn end_of(&mut self, host: usize, process: usize, end: End) -> Result<(), Garbage> {
        let remote = self.started(host, process)?;
        if !remote.is_running {
            return Err(Garbage);
        }
        remote.is_running = false;
        self.ended(process, end);
        Ok(())
    }

    /// Reads the standard error of the remote shell of a host, or of its agent.
    pub(super) fn read_shell_errors(&mut self, host: usize) {
        let words = self.hosts[host].read_errors(&self.poller);
        if self.hosts[host].standing == Standing::Called {
            self.hosts[host].keep(&words);
        } else {
            self.pass_complaint(host, &words);
        }
    }

    fn pass_complaint(&mut self, host: usize, words: &[u8]) {
        let (text, name) = (String::from_utf8_lossy(words), &self.hosts[host].name);
        let lines = text.lines().filter(|line| !line.ends_with(IGNORED_WARNING));
        let lines: String = lines.map(|line| format!("{name}: {line}\n")).collect();
        if !lines.is_empty() {
            self.outlets.print(&lines, &self.poller);
        }
    }

    pub(super) fn end_of_shell(&mut self, host: usize) {
        self.hosts[host].reap(&self.poller);
        self.read_shell_errors(host);
        self.read_host(host);
    }

    /// Checks whether the connection to a host has ended and the exit status of its remote shell is known.
    fn check_host(&mut self, host: usize) {
        if self.hosts[host].standing == Standing::Over || !self.hosts[host].is_at_end() {
            return;
        }
        self.read_shell_errors(host);
        let (why, processes) = (self.hosts[host].loss(), self.hosts[host].processes.clone());
        let is_needed = self.children[processes]
            .iter_mut()
            .any(|child| child.is_running() || child.stdout.is_some() || child.stderr.is_some());
        if is_needed {
            self.lose(host, &why);
        } else {
            self.hosts[host].dismiss(&self.poller);
        }
    }

    /// Marks a host as lost, and ends the job for this reason.
    fn lose(&mut self, host: usize, why: &str) {
        self.hosts[host].break_off(&self.poller);
        let failure = Failure::host(&self.hosts[host].name, why);
        self.abandon(host);
        self.fail(failure);
    }

    /// Gives up the processes of a host that is lost.
    fn abandon(&mut self, host: usize) {
        for process in self.hosts[host].processes.clone() {
            for source in [Source::Stdout(process), Source::Stderr(process)] {
                // Output that has arrived is forwarded.
                self.pass_output(process, source);
                self.close_output(process, source);
            }
            self.children[process].abandon();
        }
    }

    /// Closes the connections to hosts that have not been told to start anything.
    pub(super) fn give_up_calls(&mut self) {
        for host in 0..self.hosts.len() {
            if matches!(self.hosts[host].standing, Standing::Called | Standing::Greeted) {
                self.hosts[host].break_off(&self.poller);
                self.abandon(host);
            }
        }
    }

    /// Sends the queued frames of all hosts, as far as the pipes have room.
    pub(super) fn flush_hosts(&mut self) {
        self.hosts.iter_mut().for_each(|host| host.flush(&self.poller));
    }

    /// The time of the next action for a host that is due without an event.
    pub(super) fn hosts_at(&self) -> Option<Instant> {
        let at = |host: &Host| match (host.standing, host.ended_at) {
            (Standing::Over, _) => None,
            (_, Some(ended_at)) => Some(ended_at + STATUS_LIMIT),
            (Standing::Called, None) => self.started.checked_add(self.join_limit),
            (_, None) => {
                let limit = self.plan.settings.peer_timeout?;
                Some((host.asked_at + limit / QUESTIONS).min(host.heard_at + limit))
            }
        };
        self.hosts.iter().filter_map(at).min()
    }

    /// Sends liveness requests to hosts, and gives up those that are silent for too long.
    pub(super) fn check_hosts(&mut self) {
        let now = Instant::now();
        for host in 0..self.hosts.len() {
            self.check_host(host);
            let (standing, heard_at) = (self.hosts[host].standing, self.hosts[host].heard_at);
            let limit = self.plan.settings.peer_timeout;
            match (standing, limit) {
                (Standing::Called, _) if now.duration_since(self.started) >= self.join_limit => {
                    self.read_shell_errors(host);
                    let (limit, said) = (self.join_limit.as_secs_f64(), self.hosts[host].last_words());
                    let why = format!(
                        "no agent of Pelago was there within {limit} s{said}; see whether the host is up, or \
                         raise PELAGO_INIT_TIMEOUT"
                    );
                    self.lose(host, &why);
                }
                (Standing::Greeted | Standing::Running, Some(limit)) => {
                    if now.duration_since(heard_at) >= limit {
                        let why = format!(
                            "it has been silent for {} s (PELAGO_PEER_TIMEOUT). The host is down, stopped or \
                             overloaded: check it, or raise the time",
                            limit.as_secs_f64()
                        );
                        self.lose(host, &why);
                    } else if now.duration_since(self.hosts[host].asked_at) >= limit / QUESTIONS {
                        self.hosts[host].asked_at = now;
                        self.hosts[host].queue.send(&Frame::Alive);
                    }
                }
                _ => {}
            }
        }
    }

    /// Stops the launcher, as the terminal asks, after notifying the agents so that they do not take its
    /// silence for its end.
    pub(super) fn stop(&mut self) {
        let running = |host: &&mut Host| host.standing == Standing::Running;
        self.hosts.iter_mut().filter(running).for_each(|host| host.queue.send(&Frame::Pause));
        let deadline = Instant::now() + STOP_LIMIT;
        self.flush_hosts();
        while Instant::now() < deadline && self.hosts.iter_mut().any(|host| host.queue.pending_bytes() > 0) {
            std::thread::yield_now();
            self.flush_hosts();
        }
        // The call returns when the launcher is continued.
        let _ = kill_process(getpid(), Signal::STOP);
        let now = Instant::now();
        for host in &mut self.hosts {
            host.heard_at = now;
            host.asked_at = now;
            if host.standing == Standing::Running {
                host.queue.send(&Frame::Alive);
            }
        }
    }

    /// Dismisses the agents of a job that has ended, and waits for the end of the remote shells.
    pub(super) fn dismiss_hosts(&mut self) {
        self.hosts.iter_mut().for_each(|host| host.dismiss(&self.poller));
        let since = Instant::now();
        self.hosts.iter_mut().for_each(|host| host.wait_for_end(since));
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::frame::SendQueue;
    use super::super::super::inquiry::Asker;
    use super::super::super::plan::Plan;
    use super::super::super::signals::Signals;
    use super::super::super::{JobSpec, RemoteShell};
    use super::*;
    use crate::env::Settings;
    use crate::fuzzing;
    use crate::hosts::hosts_of_list;

    #[test]
    fn the_words_of_a_remote_shell_without_an_agent_are_quoted() {
        let words = ["sh", "-c", "echo password: >&2; exec sleep 1000"];
        let shell = RemoteShell::Command(words.map(Into::into).to_vec());
        let machines = Machines { hosts: hosts_of_list("0").unwrap(), shell, agent: Vec::new() };
        let spec = JobSpec { machines: Some(machines), capture: true, ..JobSpec::new(1, "/bin/true") };
        let plan = Plan::new(&spec, Settings::default()).unwrap();
        let mut job = Supervisor::start(&spec, plan, Signals::block(true, None).unwrap()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while job.hosts[0].last_words().is_empty() {
            assert!(Instant::now() < deadline, "waited 60 s for the words of the remote shell");
            job.poller.wait(Some(Duration::from_secs(1)), &mut Vec::new()).unwrap();
            job.read_shell_errors(0);
        }
        job.join_limit = Duration::ZERO;
        job.check_hosts();
        let text = "host 0: no agent of Pelago was there within 0 s: password:; see whether the host is up";
        assert!(job.failures[0].text.starts_with(text), "{:?}", job.failures);
    }

    /// The frames that an agent of two processes may send, from the greeting on.
    fn conversations() -> Vec<Vec<u8>> {
        let of = |frames: &[Frame]| {
            let queue = SendQueue::default();
            queue.greet();
            [Frame::Started(0, 70), Frame::Started(1, 71)]
                .iter()
                .chain(frames)
                .for_each(|frame| queue.send(frame));
            queue.bytes()
        };
        let init = b"cmd=init pmi_version=1 pmi_subversion=1\ncmd=hears\ncmd=barrier_in\n";
        vec![
            of(&[Frame::Stdout(0, b"half".to_vec()), Frame::Stdout(0, Vec::new()), Frame::Exited(0, 3)]),
            of(&[Frame::Pmi(1, init.to_vec()), Frame::Pmi(1, Vec::new()), Frame::Killed(1, 9), Frame::Alive]),
            of(&[Frame::Stderr(1, vec![b'x'; 200]), Frame::State(1, 1), Frame::Deaf(0)]),
            of(&[Frame::Taken(0, Which::Stdin, 9), Frame::InputClosed(0), Frame::Exited(1, 0)]),
            of(&[Frame::Refused(1, "no".to_owned())]),
            of(&[Frame::Pmi(0, b"cmd=abort exitcode=7 pe=9\n".to_vec()), Frame::Pause, Frame::Finish(1)]),
        ]
    }

    #[test]
    fn fuzz_what_agents_send() {
        let shell = RemoteShell::Command(["sleep", "1000"].map(Into::into).to_vec());
        let machines = Machines { hosts: hosts_of_list("0:2,1:2").unwrap(), shell, agent: Vec::new() };
        let spec = JobSpec { machines: Some(machines), capture: true, ..JobSpec::new(4, "/bin/true") };
        let (mut lost, mut asked) = (0, 0);
        fuzzing::fuzz_with(100, &conversations(), |input| {
            let plan = Plan::new(&spec, Settings::default()).unwrap();
            let mut job = Supervisor::start(&spec, plan, Signals::block(true, None).unwrap()).unwrap();
            let (head, tail) = input.split_at(input.len() / 3);
            for piece in [head, tail] {
                job.hosts[0].frames.push(piece);
                job.unpack(0);
                job.inquire(Asker::Report("the test asks".to_owned()));
                job.check_deadlines();
            }
            lost += usize::from(job.hosts[0].standing == Standing::Over);
            asked += usize::from(job.inquiry.is_some());
            assert_eq!(job.hosts[1].processes, 2..4);
            let _ = job.report();
        });
        assert!(lost > 0 && asked > 0, "{lost} hosts were lost, {asked} answers are due");
    }
}
