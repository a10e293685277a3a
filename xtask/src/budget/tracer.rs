//! Tracer: counts the instructions of functions by executing them one at a time under ptrace.
//!
//! # The protocol of a probe program
//! 1. It prepares its probes, then prints one line `probe NAME ADDRESS` for each of them on standard output,
//!    and flushes it: the name in the budget, and the run-time address of the function's first instruction in
//!    hexadecimal, with or without `0x`. Other lines are ignored. All its output up to here must fit into a
//!    pipe (64 KiB).
//! 2. Then, on the main thread and in the order of the lines, it does the following for each probe: call the
//!    function once (warm-up), execute `int3`, call the function once through a pointer that is opaque to the
//!    optimiser, execute `int3`.
//! 3. It exits with status 0, before a deadline in seconds of real time.
//!
//! The tracer lets the program run to the first `int3` of a probe, steps to the printed address, and counts
//! from there up to and including the instruction that brings the stack pointer above its value at entry,
//! which is the `ret` of the function or of its tail call. Instructions of callees count. A string
//! instruction with a repeat prefix counts as one, although it is stepped once per iteration. Addresses are
//! those of the running process, so that address randomisation does not matter. `examples/counted.rs` is an
//! example.
//!
//! # A probe program that is one PE of a job
//! The tracer starts the launcher, but does not trace it. One PE writes the lines, with the line `process
//! PID` before them, to a temporary file and renames it to the name in `BUDGET_FILE`. Then it waits until it
//! is traced (`TracerPid` in `/proc/self/status`), and continues with step 2.
//!
//! Invariant: a count is returned only if every step of the protocol was observed; otherwise the error names
//! the event that was awaited. The probe program never outlives the tracer.

use std::cell::Cell;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::Count;

/// More steps than this are treated as an infinite loop.
const STEPS_LIMIT: u64 = 1_000_000;

const INT3: u8 = 0xcc;

/// Runs a probe program and counts the instructions of each of its probes, in the program's order.
///
/// Fails if the program cannot be started or traced, violates the protocol, is killed, exits with another
/// status than 0, or takes longer than `deadline_seconds`; the message names the probe.
pub fn count(program: Command, deadline_seconds: u32) -> Result<Vec<Count>> {
    let mut tracee = Tracee::start(program, deadline_seconds)?;
    tracee.run_to_int3().context("waiting for the opening int3 of the first probe")?;
    let probes = parse_probes(&tracee.output()?)?;
    count_probes(&tracee, probes)
}

/// Starts a job whose launcher is `launcher`, and counts the probes of the PE that writes them to the file
/// `probes`, which must not exist before. Fails as [`count`] does.
pub fn count_in_job(mut launcher: Command, probes: &Path, deadline_seconds: u32) -> Result<Vec<Count>> {
    launcher.env("BUDGET_FILE", probes).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = launcher.spawn().context("cannot start the launcher of the job")?;
    let deadline = Instant::now() + Duration::from_secs(deadline_seconds.into());
    let text = match wait_for_file(&mut child, probes, deadline) {
        Ok(text) => text,
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
    };
    let pid = text.lines().find_map(|line| line.strip_prefix("process ")?.parse().ok());
    let tracee = Tracee::attach(child, pid.context("the job's PE names no process")?, deadline)?;
    tracee.run_to_int3().context("waiting for the opening int3 of the first probe")?;
    count_probes(&tracee, parse_probes(&text)?)
}

/// Waits for the file to which a PE writes its probes.
fn wait_for_file(launcher: &mut Child, path: &Path, deadline: Instant) -> Result<String> {
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) => return Ok(text),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error)?,
            Err(_) => {}
        }
        if let Some(status) = launcher.try_wait()? {
            bail!("the job ended with {status} before a PE of it had probes");
        }
        ensure!(Instant::now() < deadline, "no PE of the job had probes before the deadline");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Counts the probes of a program that has just executed the first `int3`, until the program ends.
fn count_probes(tracee: &Tracee, probes: Vec<(String, u64)>) -> Result<Vec<Count>> {
    let mut counts = Vec::new();
    for (index, (probe, entry)) in probes.into_iter().enumerate() {
        if index > 0 {
            tracee.run_to_int3().with_context(|| format!("waiting for the opening int3 of `{probe}`"))?;
        }
        let instructions = tracee.count_call(entry).with_context(|| format!("counting `{probe}`"))?;
        tracee.run_to_int3().with_context(|| format!("waiting for the closing int3 of `{probe}`"))?;
        counts.push(Count { probe, instructions });
    }
    tracee.run_to_exit().context("waiting for the end of the probe program")?;
    Ok(counts)
}

/// The names and addresses in the output of a probe program.
fn parse_probes(output: &str) -> Result<Vec<(String, u64)>> {
    let lines = output.lines().filter_map(|line| Some((line, line.strip_prefix("probe ")?)));
    let probes: Vec<_> = lines
        .map(|(line, rest)| {
            let (name, address) = rest.split_once(' ').unwrap_or((rest, ""));
            let address = u64::from_str_radix(address.trim_start_matches("0x"), 16);
            Ok((
                name.to_string(),
                address.with_context(|| format!("expected `probe NAME HEX`, got `{line}`"))?,
            ))
        })
        .collect::<Result<_>>()?;
    ensure!(!probes.is_empty(), "the probe program executed int3 before it printed a probe");
    Ok(probes)
}

/// A probe program, which is stopped while no method runs, and killed when dropped.
struct Tracee {
    /// The program, or the launcher of its job.
    child: Child,
    pid: libc::pid_t,
    /// The deadline of a program that has no alarm.
    deadline: Option<Instant>,
    has_ended: Cell<bool>,
}

impl Tracee {
    /// Starts the program and stops it at its first instruction.
    fn start(mut program: Command, deadline_seconds: u32) -> Result<Tracee> {
        // SAFETY: between fork and exec the closure makes three system calls that POSIX allows there, and
        // builds an error from errno, which allocates nothing.
        unsafe { program.pre_exec(move || ask_to_be_traced(deadline_seconds)) };
        let child =
            program.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context(
                "cannot start the probe program under ptrace (a sandbox may have to allow ptrace)",
            )?;
        let pid = child.id() as libc::pid_t;
        let tracee = Tracee { child, pid, deadline: None, has_ended: Cell::new(false) };
        match tracee.wait()? {
            Stop::Signal(libc::SIGTRAP) => {}
            other => bail!("the probe program {other:?} before its first instruction"),
        }
        tracee.request(libc::PTRACE_SETOPTIONS, 0, libc::PTRACE_O_EXITKILL as usize)?;
        Ok(tracee)
    }

    /// Attaches to the first thread of a process of the launcher's job, and stops it.
    fn attach(launcher: Child, pid: libc::pid_t, deadline: Instant) -> Result<Tracee> {
        let (deadline, has_ended) = (Some(deadline), Cell::new(false));
        let tracee = Tracee { child: launcher, pid, deadline, has_ended };
        tracee
            .request(libc::PTRACE_SEIZE, 0, libc::PTRACE_O_EXITKILL as usize)
            .context("cannot trace a PE of the job (a sandbox may have to allow ptrace)")?;
        tracee.request(libc::PTRACE_INTERRUPT, 0, 0)?;
        match tracee.wait()? {
            Stop::Signal(_) => Ok(tracee),
            other => bail!("the probe program {other:?} before it was traced"),
        }
    }

    /// The output of the program so far.
    fn output(&mut self) -> Result<String> {
        let pipe = self.child.stdout.as_mut().context("the output is not piped")?;
        // SAFETY: the descriptor is open as long as `pipe` is borrowed; F_SETFL touches no memory.
        let outcome = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        ensure!(outcome == 0, "cannot unblock the output: {}", io::Error::last_os_error());
        let mut output = Vec::new();
        match pipe.read_to_end(&mut output) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error)?,
            _ => Ok(String::from_utf8_lossy(&output).into_owned()),
        }
    }

    /// Lets the program run until it has executed an `int3`.
    fn run_to_int3(&self) -> Result<()> {
        match self.run()? {
            Stop::Signal(_) => Ok(()),
            Stop::Exited(status) => bail!("the probe program exited with status {status}"),
            Stop::Killed(signal) => bail!("the probe program was killed by signal {signal}"),
        }
    }

    /// Lets the program run until it exits; fails if its status is not 0.
    fn run_to_exit(&self) -> Result<()> {
        match self.run()? {
            Stop::Exited(0) => Ok(()),
            other => bail!("the probe program {other:?}, expected exit status 0"),
        }
    }

    /// Lets the program run to its next `int3` or its end; other signals are delivered to it.
    fn run(&self) -> Result<Stop> {
        let mut signal = 0;
        loop {
            self.request(libc::PTRACE_CONT, 0, signal as usize)?;
            match self.wait()? {
                Stop::Signal(libc::SIGTRAP) if self.byte(self.registers()?.rip - 1)? == INT3 => {
                    return Ok(Stop::Signal(libc::SIGTRAP));
                }
                Stop::Signal(other) => signal = other,
                end => return Ok(end),
            }
        }
    }

    /// Steps to `entry`, then counts the instructions up to the return of that function.
    fn count_call(&self, entry: u64) -> Result<u64> {
        let mut steps = 0;
        let mut now = self.registers()?;
        while now.rip != entry {
            let is_closing = self.byte(now.rip)? == INT3;
            ensure!(!is_closing, "the closing int3 came before the function at {entry:#x}: was it inlined?");
            ensure!(steps < STEPS_LIMIT, "{entry:#x} was not reached in {STEPS_LIMIT} steps");
            now = self.step()?;
            steps += 1;
        }
        let stack_at_entry = now.rsp;
        let mut instructions = 0;
        for _ in 0..STEPS_LIMIT {
            let next = self.step()?;
            if next.rip != now.rip || !self.is_repeated_string(now.rip)? {
                instructions += 1;
            }
            if next.rsp > stack_at_entry {
                return Ok(instructions);
            }
            now = next;
        }
        bail!("the function at {entry:#x} did not return in {STEPS_LIMIT} steps")
    }

    /// Executes one instruction, or one iteration of a repeated one; returns the registers after it.
    fn step(&self) -> Result<libc::user_regs_struct> {
        self.request(libc::PTRACE_SINGLESTEP, 0, 0)?;
        match self.wait()? {
            Stop::Signal(libc::SIGTRAP) => self.registers(),
            other => bail!("the probe program {other:?} in the middle of a count"),
        }
    }

    /// Whether the instruction at `address` is a string instruction with a repeat prefix (and perhaps a REX
    /// prefix).
    fn is_repeated_string(&self, address: u64) -> Result<bool> {
        let (first, second, third) = (self.byte(address)?, self.byte(address + 1)?, self.byte(address + 2)?);
        let operation = if (0x40..=0x4f).contains(&second) { third } else { second };
        let is_string = matches!(operation, 0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf);
        Ok(matches!(first, 0xf2 | 0xf3) && is_string)
    }

    fn byte(&self, address: u64) -> Result<u8> {
        // The call returns the word itself, which may be -1: only errno indicates an error. SAFETY:
        // __errno_location points to the errno of this thread, which lives as long as the thread.
        unsafe { *libc::__errno_location() = 0 };
        // SAFETY: reading a word of the stopped child touches no memory of this process.
        let word = unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, self.pid, address as usize, 0) };
        let error = io::Error::last_os_error();
        ensure!(error.raw_os_error() == Some(0), "cannot read the program at {address:#x}: {error}");
        Ok(word as u8)
    }

    fn registers(&self) -> Result<libc::user_regs_struct> {
        // SAFETY: all fields are integers, for which zero is a value.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        self.request(libc::PTRACE_GETREGS, 0, (&raw mut registers) as usize)?;
        Ok(registers)
    }

    fn request(&self, request: libc::c_uint, address: usize, data: usize) -> Result<()> {
        // SAFETY: this process traces the child, which is stopped; of the requests made here only
        // PTRACE_GETREGS writes to this process, and its caller passes a whole user_regs_struct that it owns.
        let outcome = unsafe { libc::ptrace(request, self.pid, address, data) };
        ensure!(outcome == 0, "ptrace request {request} failed: {}", io::Error::last_os_error());
        Ok(())
    }

    /// Waits for the next stop or the end of the program, which the alarm bounds.
    fn wait(&self) -> Result<Stop> {
        let mut status = 0;
        let flags = if self.deadline.is_some() { libc::WNOHANG } else { 0 };
        loop {
            // SAFETY: `status` is a local integer that lives until the call returns.
            match unsafe { libc::waitpid(self.pid, &raw mut status, flags) } {
                0 if self.deadline.is_some_and(|deadline| Instant::now() > deadline) => {
                    bail!("the probe program reached its deadline")
                }
                0 => thread::yield_now(),
                pid if pid > 0 => break,
                _ => {
                    let error = io::Error::last_os_error();
                    let is_interrupted = error.kind() == io::ErrorKind::Interrupted;
                    ensure!(is_interrupted, "cannot wait for the probe program: {error}");
                }
            }
        }
        self.has_ended.set(libc::WIFEXITED(status) || libc::WIFSIGNALED(status));
        if libc::WIFEXITED(status) {
            return Ok(Stop::Exited(libc::WEXITSTATUS(status)));
        }
        if libc::WIFSIGNALED(status) {
            return Ok(Stop::Killed(libc::WTERMSIG(status)));
        }
        match libc::WSTOPSIG(status) {
            libc::SIGALRM => Err(anyhow!("the probe program reached its deadline")),
            signal => Ok(Stop::Signal(signal)),
        }
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        // Failures are ignored: a program that has ended already is the desired state. If a PE is killed, its
        // job ends too.
        if !self.has_ended.get() {
            // SAFETY: the process is traced and was not reaped, so its id has not been reused.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
        }
        let _ = self.child.wait();
    }
}

/// The reason why the program stopped.
#[derive(Debug)]
enum Stop {
    Signal(i32),
    Exited(i32),
    Killed(i32),
}

/// In the child: requests tracing, and an alarm at the deadline; both persist through exec.
fn ask_to_be_traced(deadline_seconds: u32) -> io::Result<()> {
    // SAFETY: the request takes no pointers and concerns the calling process alone.
    if unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: resetting a signal to its default action and setting a timer touch no memory.
    unsafe {
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(deadline_seconds);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::LazyLock;

    use super::*;
    use crate::budget::build;

    /// Counts the probes of the example `counted`, which violates the protocol as `behaviour` says.
    fn counted(behaviour: &[&str], deadline_seconds: u32) -> Result<Vec<Count>> {
        static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
            build(&["--package=xtask", "--example=counted"]).unwrap().program("counted").unwrap()
        });
        let mut program = Command::new(&*PROGRAM);
        program.args(behaviour);
        count(program, deadline_seconds)
    }

    fn error(behaviour: &str) -> String {
        format!("{:#}", counted(&[behaviour], 60).unwrap_err())
    }

    #[test]
    fn counts_are_exact() {
        let counts: Vec<_> =
            counted(&[], 60).unwrap().into_iter().map(|count| (count.probe, count.instructions)).collect();
        let expected = [
            ("return_only", 1),
            ("four", 4),
            ("pushes", 3),
            ("calls_four", 6),
            ("jumps_to_four", 5),
            ("loops_ten_times", 22),
            ("loops_on_itself", 7),
            ("fills_64_bytes", 4),
            ("system_call", 3),
        ];
        assert_eq!(counts, expected.map(|(name, instructions)| (name.to_string(), instructions)));
    }

    #[test]
    fn a_function_that_is_not_called_is_an_error() {
        assert!(error("uncalled").contains("counting `return_only`: the closing int3 came before"));
    }

    #[test]
    fn a_program_that_ends_early_or_dies_is_an_error() {
        assert!(
            error("ends").contains("closing int3 of `return_only`: the probe program exited with status 0")
        );
        assert!(error("aborts").contains("the probe program was killed by signal 6"));
        assert!(error("fails").contains("Exited(3), expected exit status 0"));
    }

    #[test]
    fn a_program_that_waits_for_ever_is_an_error() {
        let message = format!("{:#}", counted(&["waits"], 1).unwrap_err());
        assert!(message.contains("opening int3 of the first probe: the probe program reached its deadline"));
    }

    #[test]
    fn int3_without_probes_is_an_error() {
        assert!(error("silent").contains("before it printed a probe"));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        assert!(
            format!("{:#}", count(Command::new("/nowhere/probe"), 60).unwrap_err()).contains("cannot start")
        );
    }

    #[test]
    fn probe_lines_are_told_from_others() {
        let probes = parse_probes("hello\nprobe a 0x10\nprobe b ff\nprobes c 1\n").unwrap();
        assert_eq!(probes, [("a".to_string(), 16), ("b".to_string(), 255)]);
        assert!(parse_probes("hello\n").is_err());
        assert!(format!("{:#}", parse_probes("probe a\n").unwrap_err()).contains("got `probe a`"));
        assert!(parse_probes("probe a xyz\n").is_err());
    }
}
