//! Launcher: starts the PEs of a job, on this machine or by agents on others, serves PMI-1 to them, and ends
//! the job when one of them dies.
//!
//! Invariant: when [`launch`] returns, no PE of the job is alive, except for one that the kernel cannot kill,
//! or whose host is lost; the report names it. One thread does everything: the kernel ties the parent-death
//! signal of a child to the thread that forked it, so the thread that starts the PEs has to stay. An agent is
//! a multiplexer: it starts processes and forwards bytes, statuses and signals; only the launcher interprets
//! them (decision 0038).

mod agent;
mod check;
mod child;
mod door;
mod frame;
mod host;
mod input;
mod inquiry;
mod output;
mod pes;
mod plan;
mod poller;
mod process;
mod report;
mod signals;
mod supervise;
mod tool;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::env::{SettingError, Settings};
use crate::hosts::HostSlots;

pub use agent::{AgentError, agent};
pub use check::{raise_open_files, resolve};
pub use report::{Captured, Cause, Failure, JobReport};
pub use signals::HeldSignals;
pub use tool::{InputTo, PES_OF_TOOL, Tool};

/// The description of a job: the programs to start, and how.
#[derive(Clone, Debug)]
pub struct JobSpec {
    /// The number of PEs of the program. The number of processes is the same, or smaller if each process has
    /// several PEs (`PELAGO_PES_PER_PROCESS`).
    pub n: usize,
    /// The program: a path, or a bare name that is looked up in `PATH`.
    pub program: PathBuf,
    /// Its arguments, the same for every PE.
    pub args: Vec<OsString>,
    /// Further programs of the same job, whose PEs have the numbers that follow.
    pub then: Vec<Program>,
    /// The hosts to start the job on; `None`: this machine.
    pub machines: Option<Machines>,
    /// Variables to set in every process, besides those of this process.
    pub env: Vec<(OsString, OsString)>,
    /// Variables of this process that the processes do not get from it.
    pub without: Vec<OsString>,
    /// Binds each PE of a host to a processor of the affinity mask of this process, or of the agent of the
    /// host, in the order of `cpus_by_core`, starting over when there are more PEs than processors. A
    /// process with several PEs is bound to the processors of all its PEs, and distributes them itself.
    pub bind: bool,
    /// Puts `[PE] `, or `[first PE-last PE] `, before every line that a process writes, and forwards whole
    /// lines only.
    pub tag_output: bool,
    /// Writes the output of each process to `rank.N.out` and `rank.N.err` in this folder, which is created if
    /// there is none, where N are its PEs (`3`, or `4-7`). It takes precedence over `tag_output`.
    pub output_folder: Option<PathBuf>,
    /// The processes that read standard input.
    pub input: InputTo,
    /// A program that processes run under.
    pub tool: Option<Tool>,
    /// Ends the job after this time.
    pub timeout: Option<Duration>,
    /// Captures the output of the PEs for the report, instead of forwarding it; takes precedence over
    /// `tag_output`.
    pub capture: bool,
}

impl JobSpec {
    /// A job of `n` PEs of `program`, with defaults for everything else.
    pub fn new(n: usize, program: impl Into<PathBuf>) -> Self {
        let (args, env) = (Vec::new(), Vec::new());
        Self {
            n,
            program: program.into(),
            args,
            then: Vec::new(),
            machines: None,
            env,
            without: Vec::new(),
            bind: false,
            tag_output: false,
            output_folder: None,
            input: InputTo::default(),
            tool: None,
            timeout: None,
            capture: false,
        }
    }
}

/// A further program of a job.
#[derive(Clone, Debug)]
pub struct Program {
    /// The number of its PEs.
    pub n: usize,
    /// The program, as in [`JobSpec::program`].
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables to set in its processes, besides those of [`JobSpec::env`].
    pub env: Vec<(OsString, OsString)>,
}

/// Where a job of several hosts is started, and how.
#[derive(Clone, Debug)]
pub struct Machines {
    /// The hosts, in the order in which they are filled with PEs.
    pub hosts: Vec<HostSlots>,
    /// The remote shell by which they are reached.
    pub shell: RemoteShell,
    /// The command that runs [`agent`] on a host. If a program of the job is the executable of this process,
    /// the host runs the executable of the agent in its place.
    pub agent: Vec<OsString>,
}

/// The command that starts the agent of a host. Its standard input and output are the only connection between
/// agent and launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteShell {
    /// `ssh`; this machine itself needs no remote shell.
    Ssh,
    /// `srun`, in an allocation of Slurm.
    Slurm,
    /// These words, followed by the host and the command.
    Command(Vec<OsString>),
}

/// Why a job was not started.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// A job has at least one PE.
    #[error("a job of 0 PEs cannot be started; ask for 1 or more")]
    NoPes,
    /// More PEs than one machine supports.
    #[error("{} too many for this machine: {why}", pes_are(*n))]
    TooManyPes {
        /// The number asked for.
        n: usize,
        /// The limit that is exceeded, and what to do.
        why: String,
    },
    /// The processes would have different numbers of PEs.
    #[error(
        "{n} PEs cannot be shared out to processes of {each} PEs each; ask for a multiple of {each}, or for \
         another number a process (--pes-per-process, PELAGO_PES_PER_PROCESS)"
    )]
    Uneven {
        /// The number of PEs asked for.
        n: usize,
        /// The number of PEs of each process.
        each: usize,
    },
    /// The program does not exist.
    #[error("{} was not found{}", program.display(), if *searched { " in PATH" } else { "" })]
    NotFound {
        /// The program, as the user gave it.
        program: PathBuf,
        /// Whether it is a bare name, looked up in `PATH`.
        searched: bool,
    },
    /// The program exists, but cannot be run.
    #[error("{} cannot be run: {why}", program.display())]
    NotRunnable {
        /// The program.
        program: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// The programs of a job ask for different numbers of PEs per process.
    #[error(
        "processes of the first program have {first} PEs each and those of another one {other}; give all the \
         same (PELAGO_PES_PER_PROCESS)"
    )]
    PesDiffer {
        /// The number of PEs per process of the first program.
        first: usize,
        /// The number of PEs per process of another program.
        other: usize,
    },
    /// The hosts have fewer slots than the job has PEs.
    #[error(
        "{n} PEs do not fit into the {slots} slots of the hosts ({hosts}); give these more, start fewer, or \
         use --oversubscribe"
    )]
    TooFewSlots {
        /// The number of PEs asked for.
        n: usize,
        /// The slots of all hosts.
        slots: usize,
        /// The hosts with their slots.
        hosts: String,
    },
    /// A host would have to run a part of a process.
    #[error(
        "the {slots} slots of host {host} are no multiple of the {each} PEs of each process; give it such a \
         multiple"
    )]
    UnevenHost {
        /// The host.
        host: String,
        /// Its slots.
        slots: usize,
        /// The number of PEs of each process.
        each: usize,
    },
    /// The remote shell of a host cannot be started.
    #[error(
        "host {host}: `{shell}` cannot be started: {reason}; install it, or name another command by \
         --launch-agent (PELAGO_LAUNCH_AGENT)"
    )]
    Shell {
        /// The host.
        host: String,
        /// The command.
        shell: String,
        /// The error of the system.
        reason: std::io::Error,
    },
    /// A tool that processes are to run under is not there.
    #[error("{tool} is not in PATH; install it, such as by `apt install {tool}` or `dnf install {tool}`")]
    NoTool {
        /// The tool.
        tool: String,
    },
    /// An option names a PE that the job does not have.
    #[error("there is no PE {pe} among the {n} PEs of the job, for {what}")]
    NoSuchPe {
        /// The PE.
        pe: usize,
        /// The number of PEs of the job.
        n: usize,
        /// The option that names the PE.
        what: &'static str,
    },
    /// A tool cannot have a terminal on another host.
    #[error(
        "a debugger with a terminal runs on this machine only; start the job without --hosts, or without \
         --gdb: `pelago ps --pes` then names host and process of each PE, for `ssh -t HOST gdb -p PID`"
    )]
    TerminalElsewhere,
    /// The folder for the output cannot be used.
    #[error("the folder {} for the output: {reason}; name another one by --output-dir", folder.display())]
    OutputFolder {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        reason: std::io::Error,
    },
    /// A setting for the PEs is not valid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The system refused to start a PE; the PEs before it have been killed.
    #[error("PE {pe} of {n} could not be started ({}): {}", program.display(), start_reason(reason))]
    Start {
        /// The PE, the lowest one of its process.
        pe: usize,
        /// The number of PEs of the job.
        n: usize,
        /// The program.
        program: PathBuf,
        /// The error of the system.
        reason: std::io::Error,
    },
    /// The system refused a resource that the launcher needs.
    #[error("{what}: {reason}")]
    System {
        /// The operation that was refused.
        what: &'static str,
        /// The error of the system.
        reason: std::io::Error,
    },
}

impl LaunchError {
    fn system<E: Into<std::io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |reason| Self::System { what, reason: reason.into() }
    }
}

/// Why a program was not started although it exists and is executable.
fn start_reason(reason: &std::io::Error) -> String {
    match reason.kind() {
        std::io::ErrorKind::NotFound => {
            "the interpreter that it names (#! in its first line, or its dynamic loader) was not found"
                .to_owned()
        }
        // EAGAIN of a fork.
        std::io::ErrorKind::WouldBlock => {
            "no further process is allowed; start fewer, or raise the limit of the user (ulimit -u) or of \
             the container (pids.max)"
                .to_owned()
        }
        _ => reason.to_string(),
    }
}

/// The subject of a sentence about `n` PEs, with its verb.
fn pes_are(n: usize) -> String {
    if n == 1 { "1 PE is".to_owned() } else { format!("{n} PEs are") }
}

/// Starts the job, supervises it and returns when all its PEs have ended.
///
/// The processes join the job by PMI-1 (`PMI_FD`, `PMI_RANK`, `PMI_SIZE`); `PELAGO_PES_PER_PROCESS` tells
/// them how many PEs they have. The job ends early when a PE is killed by a signal, exits with a status other
/// than 0, or exits without leaving the job that it had joined. A PE that never joins although others have,
/// Ctrl-C and the time-out also end the job. PE 0 reads standard input; for the others it is empty. This
/// function prints only stall reports, to standard error: when SIGUSR2 asks for one, and once if processes
/// wait for longer than `PELAGO_STALL_REPORT` for others to join. All other messages are in the report.
///
/// # Errors
/// If the job cannot be started; no process is left then.
pub fn launch(spec: &JobSpec) -> Result<JobReport, LaunchError> {
    launch_within(spec, None)
}

impl HeldSignals {
    /// As [`launch`], while the signals that end this process are held back for what follows the job.
    ///
    /// # Errors
    /// As [`launch`].
    pub fn launch(&self, spec: &JobSpec) -> Result<JobReport, LaunchError> {
        launch_within(spec, Some(self))
    }
}

fn launch_within(spec: &JobSpec, held: Option<&HeldSignals>) -> Result<JobReport, LaunchError> {
    let settings = Settings::from_os_pairs(std::env::vars_os().chain(spec.env.iter().cloned()));
    let plan = plan::Plan::new(spec, settings?)?;
    crate::logging::start_log(&plan.settings.log, format!("pelago run, pid {}", std::process::id()));
    log::info!(target: "launcher", "starting {} PEs: {}", plan.n_pes(), plan.command_lines().join(" : "));
    for (host, processes) in &plan.hosts {
        log::info!(target: "launcher", "host {host} gets the processes {processes:?}");
    }
    // In a job on several hosts, a launcher that is stopped notifies the agents.
    let signals = signals::Signals::block(spec.machines.is_some(), held);
    let signals = signals.map_err(LaunchError::system("blocking signals"))?;
    supervise::Supervisor::start(spec, plan, signals)?.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_fork_names_the_limits_of_processes() {
        let text = start_reason(&std::io::Error::from_raw_os_error(libc::EAGAIN));
        assert!(text.contains("ulimit -u") && text.contains("pids.max"), "{text}");
        let text = start_reason(&std::io::Error::from_raw_os_error(libc::ENOMEM));
        assert!(text.starts_with("Cannot allocate memory"), "{text}");
    }

    #[test]
    fn one_pe_is_too_many() {
        let text = |n| LaunchError::TooManyPes { n, why: "no".to_owned() }.to_string();
        assert_eq!(text(1), "1 PE is too many for this machine: no");
        assert_eq!(text(2), "2 PEs are too many for this machine: no");
    }
}
