//! Launcher: starts the PEs of a job on this machine, serves PMI-1 to them, and ends the job when one of them
//! dies.
//!
//! Invariant: when [`launch`] returns, no PE of the job is left alive (but for one that the kernel itself
//! cannot kill, which the report then names). One thread does everything: the kernel ties the death signal of
//! a child to the thread that made it, so the thread that starts the PEs is the one that stays.

mod check;
mod child;
mod input;
mod inquiry;
mod output;
mod pes;
mod poller;
mod report;
mod signals;
mod supervise;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::env::{SettingError, Settings};

pub use check::resolve;
pub use report::{Captured, Cause, Failure, JobReport};

/// What to start, and how.
#[derive(Clone, Debug)]
pub struct JobSpec {
    /// The number of PEs. There are as many processes, or fewer if each has several
    /// (`PELAGO_PES_PER_PROCESS`).
    pub n: usize,
    /// The program: a path, or a bare name that is looked up in `PATH`.
    pub program: PathBuf,
    /// Its arguments, the same for every PE.
    pub args: Vec<OsString>,
    /// Variables to set in every process, beside those of this one.
    pub env: Vec<(OsString, OsString)>,
    /// Keeps PE i on the i-th processor of the affinity mask of this process, starting over when they run
    /// out; a process with several PEs is given theirs, which they share out themselves.
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
            env,
            bind: false,
            tag_output: false,
            timeout: None,
            capture: false,
        }
    }
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
    /// A setting for the PEs is not valid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The system refused to start a PE; those before it have been ended.
    #[error("PE {pe} of {n} could not be started ({}): {}", program.display(), start_reason(reason))]
    Start {
        /// The PE, the lowest one of its process.
        pe: usize,
        /// The number of PEs asked for.
        n: usize,
        /// The program.
        program: PathBuf,
        /// What the system said.
        reason: std::io::Error,
    },
    /// The system refused something that the launcher needs.
    #[error("{what}: {reason}")]
    System {
        /// What was refused.
        what: &'static str,
        /// What the system said.
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
    let program = resolve(&spec.program)?;
    let settings = Settings::from_os_pairs(std::env::vars_os().chain(spec.env.iter().cloned()))?;
    let each = settings.pes_per_process;
    check::limits(spec, each)?;
    let signals = signals::Signals::block().map_err(LaunchError::system("blocking signals"))?;
    supervise::Supervisor::start(spec, &settings, &program, signals)?.run()
}
