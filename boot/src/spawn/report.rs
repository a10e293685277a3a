//! Report: how a job ended, as a message and an exit status.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::pes::{Pes, ranges};
use crate::writer::Outlet;

/// Why a job ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A PE exited with this status, not 0, without leaving the job.
    Exit(i32),
    /// A PE exited with this status, not 0, after it had left the job: the communication did not fail, and
    /// only the program knows the meaning of the status.
    ExitAfterLeaving(i32),
    /// A PE was killed by this signal.
    Signal(i32),
    /// A PE that had joined exited with status 0 without leaving the job.
    NotFinalized,
    /// A PE exited with status 0 without joining a job that another PE had joined.
    NotJoined,
    /// These PEs did not join within `PELAGO_INIT_TIMEOUT` of the first PE that did.
    Missing(Vec<usize>),
    /// A PE could not be started by the agent of its host.
    NotStarted,
    /// This host cannot be reached, or the connection to its agent was lost.
    Host(String),
    /// A PE aborted the job with this status, not 0.
    Abort(i32),
    /// A PE sent something on PMI_FD that is not PMI-1.
    Protocol,
    /// A second program of a process, such as a script, joins the job that the first one has joined.
    JoinedTwice,
    /// The job exceeded its time-out.
    Timeout,
    /// The launcher received this signal.
    Interrupted(i32),
    /// A PE did not end although it was killed.
    Unkillable,
    /// The launcher could not write the output of the PEs to its own output.
    Output,
    /// The reader of the launcher's output has closed its end.
    OutputClosed,
    /// The reader of the launcher's output stopped reading, so the remaining output was discarded.
    OutputGivenUp,
}

/// The PEs of a process, and their host, unless it is this machine.
pub(super) struct Name<'a> {
    pub(super) pes: &'a Pes,
    pub(super) host: Option<&'a str>,
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host {
            Some(host) => write!(f, "{} on host {host}", self.pes),
            None => self.pes.fmt(f),
        }
    }
}

/// One failure, with its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The PE that failed, if there is one; for a process with several PEs the lowest, unless the process has
    /// named one.
    pub pe: Option<usize>,
    /// The cause.
    pub cause: Cause,
    /// The note of its process: why it panicked, or why it aborted.
    pub note: Option<String>,
    /// The failure as one line for the user.
    pub text: String,
}

/// The captured output of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Its standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// Its standard error, likewise.
    pub stderr: String,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobReport {
    /// The exit status for the launcher: 0 if the job succeeded, else that of the PE, or 128 + the signal.
    pub status: i32,
    /// The failures that ended the job early; empty if it succeeded.
    pub failures: Vec<Failure>,
    /// The output of each process; empty unless it was captured.
    pub output: Vec<Captured>,
}

impl Failure {
    /// Composes the message.
    pub(super) fn of(name: &Name<'_>, pid: i32, cause: Cause, note: Option<String>) -> Self {
        let pes = name.pes;
        let (it, was, has) = (pes.verb("it", "they"), pes.verb("was", "were"), pes.verb("has", "have"));
        let mut text = match &cause {
            Cause::Exit(status) => format!("{name} exited with status {status}"),
            Cause::ExitAfterLeaving(status) => {
                format!("{name} exited with status {status} after {it} had left the job")
            }
            Cause::Signal(signal) => {
                let (what, hint) = (signal_name(*signal), limit_of(*signal));
                format!("{name} (pid {pid}) {was} killed by signal {signal} ({what}){hint}")
            }
            Cause::NotFinalized => {
                format!(
                    "{name} exited with status 0 before {it} had left the job, which others may still be in"
                )
            }
            Cause::NotJoined => {
                format!("{name} exited with status 0 without joining the job that other PEs have joined")
            }
            Cause::Abort(status) => format!("{name} aborted the job with status {status}"),
            Cause::Protocol => {
                format!("{name} (pid {pid}) {} not speak PMI-1 on PMI_FD", pes.verb("does", "do"))
            }
            Cause::JoinedTwice => format!(
                "{name} (pid {pid}): a second program of this process joins the job; start each program by \
                 its own pelago run or mpiexec"
            ),
            Cause::Unkillable => {
                format!("{name} (pid {pid}) {has} not ended although {it} {was} killed; see ps")
            }
            Cause::NotStarted => format!("{name} could not be started"),
            Cause::Missing(_)
            | Cause::Host(_)
            | Cause::Timeout
            | Cause::Interrupted(_)
            | Cause::Output
            | Cause::OutputClosed
            | Cause::OutputGivenUp => name.to_string(),
        };
        if let Some(note) = &note {
            text += ": ";
            text += &note.lines().map(str::trim).collect::<Vec<_>>().join(", ");
        }
        Self { pe: Some(pes.first()), cause, note, text }
    }

    /// A failure of PEs that have not joined.
    pub(super) fn missing(pes: Vec<usize>, limit: Duration) -> Self {
        let plural = if pes.len() == 1 { "PE" } else { "PEs" };
        let list = ranges(&pes);
        let text = format!(
            "{plural} {list} did not join within {} s of the first; \
             see what holds them up, or raise PELAGO_INIT_TIMEOUT",
            limit.as_secs_f64()
        );
        Self { pe: None, cause: Cause::Missing(pes), note: None, text }
    }

    /// A failure of a host that cannot be reached, or is lost.
    pub(super) fn host(host: &str, why: &str) -> Self {
        let text = format!("host {host}: {why}");
        Self { pe: None, cause: Cause::Host(host.to_owned()), note: None, text }
    }

    /// The failure that the job exceeded its time-out.
    pub(super) fn timeout(limit: Duration) -> Self {
        let text = format!("the job was ended after {} s, the time it was given", limit.as_secs_f64());
        Self { pe: None, cause: Cause::Timeout, note: None, text }
    }

    /// The failure that the launcher received a signal.
    pub(super) fn interrupted(signal: i32) -> Self {
        let text = format!("the job was ended by signal {signal} ({}) to the launcher", signal_name(signal));
        Self { pe: None, cause: Cause::Interrupted(signal), note: None, text }
    }

    /// The failure that the launcher's own output cannot be written.
    pub(super) fn output(outlet: Outlet, error: &std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::output_closed(outlet);
        }
        let text = format!("the output of the PEs cannot be written to {}: {error}", outlet.name());
        Self { pe: None, cause: Cause::Output, note: None, text }
    }

    /// The failure that a file for the output of a process cannot be written.
    pub(super) fn output_file(path: &Path, error: &std::io::Error) -> Self {
        let text = format!("the output of the PEs cannot be written to {}: {error}", path.display());
        Self { pe: None, cause: Cause::Output, note: None, text }
    }

    /// The failure that the reader of the launcher's output has closed its end.
    pub(super) fn output_closed(outlet: Outlet) -> Self {
        let text = format!("the reader of {} has gone", outlet.name());
        Self { pe: None, cause: Cause::OutputClosed, note: None, text }
    }

    /// The failure that the reader of the launcher's output stopped reading.
    pub(super) fn output_given_up() -> Self {
        let text = "the last output of the PEs is lost, because its reader did not take it".to_owned();
        Self { pe: None, cause: Cause::OutputGivenUp, note: None, text }
    }

    /// The exit status for the launcher, never 0.
    pub(super) fn status(&self) -> i32 {
        match &self.cause {
            Cause::Exit(status) | Cause::ExitAfterLeaving(status) | Cause::Abort(status) => {
                // The system truncates a status to eight bits; a failure must not become a success.
                if status & 0xff == 0 { 1 } else { status & 0xff }
            }
            Cause::Signal(signal) | Cause::Interrupted(signal) => 128 + signal,
            Cause::Timeout => 124,
            Cause::NotFinalized
            | Cause::NotJoined
            | Cause::Missing(_)
            | Cause::Host(_)
            | Cause::NotStarted
            | Cause::Protocol
            | Cause::JoinedTwice
            | Cause::Unkillable
            | Cause::Output
            | Cause::OutputGivenUp => 1,
            Cause::OutputClosed => 128 + libc::SIGPIPE,
        }
    }
}

fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let name = usize::try_from(signal - 1).ok().and_then(|index| NAMES.get(index));
    name.map_or_else(|| "a real-time signal".to_owned(), |name| format!("SIG{name}"))
}

/// The limit or lack of a resource behind a signal, with a remedy, for the report; empty for other signals.
fn limit_of(signal: i32) -> &'static str {
    match signal {
        // The launcher reports nothing about a process that it has killed itself.
        libc::SIGKILL => {
            ": perhaps the system ended it for lack of memory (see dmesg); lower PELAGO_HEAP_SIZE and \
             PELAGO_POOL_SIZE, or start fewer PEs"
        }
        libc::SIGXFSZ => {
            ": a file, or the memory of the job, would have grown beyond RLIMIT_FSIZE; raise ulimit -f"
        }
        libc::SIGBUS => {
            ": perhaps the system had no page left for the shared memory of the job; make room, or lower \
             PELAGO_HEAP_SIZE and PELAGO_POOL_SIZE"
        }
        libc::SIGXCPU => ": it used more processor time than RLIMIT_CPU allows; raise ulimit -t",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_each_cause() {
        let of = |process, each, cause, note: Option<&str>| {
            let (pes, note) = (Pes::of_process(process, each), note.map(str::to_owned));
            Failure::of(&Name { pes: &pes, host: None }, 77, cause, note).text
        };
        let text = |cause, note: Option<&str>| of(3, 1, cause, note);
        let killed = of(1, 4, Cause::Signal(9), None);
        assert!(killed.starts_with("PEs 4-7 (pid 77) were killed by signal 9 (SIGKILL): "), "{killed}");
        assert!(killed.contains("lack of memory") && killed.contains("PELAGO_HEAP_SIZE"), "{killed}");
        let left = of(0, 2, Cause::NotFinalized, None);
        assert!(left.starts_with("PEs 0-1 exited with status 0 before they had left"), "{left}");
        assert_eq!(text(Cause::Signal(15), None), "PE 3 (pid 77) was killed by signal 15 (SIGTERM)");
        let grown = text(Cause::Signal(libc::SIGXFSZ), None);
        assert!(grown.starts_with("PE 3 (pid 77) was killed by signal 25 (SIGXFSZ): "), "{grown}");
        assert!(grown.contains("RLIMIT_FSIZE") && grown.ends_with("ulimit -f"), "{grown}");
        assert!(text(Cause::Signal(libc::SIGXCPU), None).contains("RLIMIT_CPU"));
        assert_eq!(text(Cause::Exit(101), Some("panicked: no")), "PE 3 exited with status 101: panicked: no");
        assert_eq!(text(Cause::Abort(2), Some("no")), "PE 3 aborted the job with status 2: no");
        assert!(text(Cause::Exit(101), Some("one\n  two\nthree")).ends_with("status 101: one, two, three"));
        let missing = Failure::missing(vec![0, 1, 2, 5], Duration::from_millis(500));
        assert!(missing.text.starts_with("PEs 0-2, 5 did not join within 0.5 s"), "{}", missing.text);
        assert_eq!(missing.status(), 1);
    }

    #[test]
    fn a_failure_is_never_a_success() {
        let pes = Pes::of_process(0, 1);
        let status = |cause| Failure::of(&Name { pes: &pes, host: None }, 1, cause, None).status();
        assert_eq!(status(Cause::Exit(101)), 101);
        assert_eq!(status(Cause::ExitAfterLeaving(2)), 2);
        assert_eq!(status(Cause::Abort(256)), 1);
        assert_eq!(status(Cause::Abort(-1)), 255);
        assert_eq!(status(Cause::Signal(9)), 137);
        assert_eq!(Failure::interrupted(2).status(), 130);
        assert_eq!(Failure::interrupted(15).status(), 143);
        assert_eq!(Failure::timeout(Duration::from_secs(1)).status(), 124);
    }

    #[test]
    fn names_of_signals() {
        for (signal, name) in
            [(1, "SIGHUP"), (6, "SIGABRT"), (9, "SIGKILL"), (11, "SIGSEGV"), (15, "SIGTERM")]
        {
            assert_eq!(signal_name(signal), name);
        }
        assert_eq!(signal_name(31), "SIGSYS");
        assert_eq!(signal_name(40), "a real-time signal");
        assert_eq!(signal_name(0), "a real-time signal");
    }
}
