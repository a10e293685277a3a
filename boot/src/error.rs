//! Errors of joining a job and of talking to its launcher.

use thiserror::Error;

use crate::env::SettingError;
use crate::pmi::client::PmiError;
use crate::pmix::client::PmixError;

/// Why a process could not join its job or exchange data in it.
#[derive(Debug, Error)]
pub enum BootError {
    /// The process has joined a job before.
    #[error(
        "this process has joined its job already, and a process can join once only; keep the first world"
    )]
    Twice,
    /// A setting in the environment is not valid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The launcher speaks another protocol.
    #[error("this process was started {how}, which Pelago does not speak; {remedy}")]
    Launcher {
        /// How the process was started, and how that was seen.
        how: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
    /// A variable that the launcher sets does not hold what it should.
    #[error(
        "{variable}={value:?} in the environment is not {expected}; start this program by mpiexec.hydra, \
         mpirun, srun --mpi=pmi2 or pelago run, or unset PMI_FD and PMIX_NAMESPACE to run one PE alone"
    )]
    Environment {
        /// The variable.
        variable: &'static str,
        /// Its value, or what stands for it if it is not set.
        value: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// A key that cannot travel.
    #[error("PE {pe} cannot use the key {key:?}: a key has 1 to {max_chars} letters, digits, '-' or '_'")]
    Key {
        /// The PE.
        pe: usize,
        /// The key.
        key: String,
        /// The longest key, in characters.
        max_chars: usize,
    },
    /// An exchange with a launcher that speaks PMI-1 failed.
    #[error("PE {pe}, {operation}: {reason}")]
    Exchange {
        /// The PE.
        pe: usize,
        /// What it was doing.
        operation: String,
        /// What went wrong.
        reason: PmiError,
    },
    /// An exchange with a launcher that speaks PMIx failed.
    #[error("PE {pe}, {operation}: {reason}")]
    Pmix {
        /// The PE.
        pe: usize,
        /// What it was doing.
        operation: String,
        /// What went wrong.
        reason: PmixError,
    },
}
