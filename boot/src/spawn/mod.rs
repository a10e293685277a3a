//! Launcher: starts the PEs of a job, on this machine or by agents on others, serves PMI-1 to them, and ends
//! the job when one of them dies.
//!
//! Invariant: when [`launch`] returns, no PE of the job is left alive (but for one that the kernel itself
//! cannot kill, or whose host is lost, which the report then names). One thread does everything: the kernel
//! ties the death signal of a child to the thread that made it, so the thread that starts the PEs is the one
//! that stays. An agent is a multiplexer: it starts processes and carries bytes, statuses and signals; what
//! they mean the launcher alone knows (decision 0038).

mod agent;
mod check;
mod child;
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

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::env::{SettingError, Settings};
use crate::hosts::HostSlots;

pub use agent::{AgentError, agent};
pub use check::resolve;
pub use report::{Captured, Cause, Failure, JobReport};

/// What to start, and how.
#[derive(Clone, Debug)]
pub struct JobSpec {
    /// The number of PEs of the program. There are as many processes, or fewer if each has several
    /// (`PELAGO_PES_PER_PROCESS`).
    pub n: usize,
    /// The program: a path, or a bare name that is looked up in `PATH`.
    pub program: PathBuf,
    /// Its arguments, the same for every PE.
    pub args: Vec<OsString>,
    /// Further programs of the same job, whose PEs have the numbers that follow.
    pub then: Vec<Program>,
    /// The hosts to start it on; without them it is started on this machine.
    pub machines: Option<Machines>,
    /// Variables to set in every process, beside those of this one.
    pub env: Vec<(OsString, OsString)>,
    /// Keeps PE i of a host on the i-th processor of the affinity mask that this process, or the agent of the
    /// host, has, starting over when they run out; a process with several PEs is given theirs, which they
    /// share out themselves.
    pub bind: bool,
    /// Puts `[PE] `, or `[first PE-last PE] `, before every line that a process writes, and passes on whole
    /// lines only.
    pub tag_output: bool,
    /// Ends the job after this time.
    pub timeout: Option<Duration>,
    /// Keeps what the PEs write for the report, instead of passing it on; goes before `tag_output`.
    pub capture: bool,
}

impl JobSpec {
    /// A job of `n` PEs of `program`, with everything else as in a plain start.
    pub fn new(n: usize, program: impl Into<PathBuf>) -> Self {
        let (args, env) = (Vec::new(), Vec::new());
        Self {
            n,
            program: program.into(),
            args,
            then: Vec::new(),
            machines: None,
            env,
            bind: false,
            tag_output: false,
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
    /// As [`JobSpec::program`].
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables to set in its processes, beside those of [`JobSpec::env`].
    pub env: Vec<(OsString, OsString)>,
}

/// Where a job of several hosts is started, and how.
#[derive(Clone, Debug)]
pub struct Machines {
    /// The hosts, in the order in which they are filled with PEs.
    pub hosts: Vec<HostSlots>,
    /// How they are reached.
    pub shell: RemoteShell,
    /// The command that runs [`agent`] on a host. A program that is the executable of this process is there
    /// the executable of the agent.
    pub agent: Vec<OsString>,
}

/// The command that starts the agent of a host: its standard input and output are all that connects agent
/// and launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteShell {
    /// `ssh`; none for this machine itself.
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
    /// More PEs than one machine takes.
    #[error("{n} PEs are too many for this machine: {why}")]
    TooManyPes {
        /// The number asked for.
        n: usize,
        /// Which limit stands in the way, and what to do.
        why: String,
    },
    /// Processes would have different numbers of PEs.
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
    /// There is no such program.
    #[error("{} was not found{}", program.display(), if *searched { " in PATH" } else { "" })]
    NotFound {
        /// The program as it was asked for.
        program: PathBuf,
        /// Whether it is a bare name, looked up in `PATH`.
        searched: bool,
    },
    /// The program is something that cannot be run.
    #[error("{} cannot be run: {why}", program.display())]
    NotRunnable {
        /// The program.
        program: PathBuf,
        /// What it is instead.
        why: &'static str,
    },
    /// Programs of a job ask for different numbers of PEs in a process.
    #[error(
        "processes of the first program have {first} PEs each and those of another one {other}; give all the \
         same (PELAGO_PES_PER_PROCESS)"
    )]
    PesDiffer {
        /// The number of the first program.
        first: usize,
        /// That of another one.
        other: usize,
    },
    /// The hosts have fewer slots than the job has PEs.
    #[error(
        "{n} PEs do not fit into the {slots} slots of the hosts ({hosts}); give these more, or start fewer"
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
    /// A setting for the PEs is not valid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The system refused to start a PE; those before it have been ended.
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
    /// The system refused something that the launcher needs.
    #[error("{what}: {reason}")]
    System {
        /// What was refused.
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

/// Why a program that is there and executable was not started.
fn start_reason(reason: &std::io::Error) -> String {
    match reason.kind() {
        std::io::ErrorKind::NotFound => {
            "the interpreter that it names (#! in its first line, or its dynamic loader) was not found"
                .to_owned()
        }
        _ => reason.to_string(),
    }
}

/// Starts the job, watches over it and returns when all its PEs have ended.
///
/// The processes find the job by PMI-1 (`PMI_FD`, `PMI_RANK`, `PMI_SIZE`), and by `PELAGO_PES_PER_PROCESS`
/// how many PEs they have. The first one that dies ends the job: by
/// a signal, with a status other than 0, or without having left the job it had joined. So does a PE that
/// never joins although others have, Ctrl-C, and the time-out. PE 0 reads standard input, the others find it
/// empty. Nothing is printed here, as the report has the words, but for what each PE does, to standard error:
/// when SIGUSR2 asks for it, and once if processes wait for others to join for long (`PELAGO_STALL_REPORT`).
///
/// # Errors
/// Whatever keeps the job from being started; nothing runs then.
pub fn launch(spec: &JobSpec) -> Result<JobReport, LaunchError> {
    let settings = Settings::from_os_pairs(std::env::vars_os().chain(spec.env.iter().cloned()));
    let plan = plan::Plan::new(spec, settings?)?;
    // Of a job of hosts, a launcher that is stopped tells the agents.
    let signals = signals::Signals::block(spec.machines.is_some());
    let signals = signals.map_err(LaunchError::system("blocking signals"))?;
    supervise::Supervisor::start(spec, plan, signals)?.run()
}
