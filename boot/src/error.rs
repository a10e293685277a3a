//! Errors of joining a job and of exchanges with its launcher.

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
        /// How the process was started, and the variables that show it.
        how: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
    /// A variable that the launcher sets does not have a valid value.
    #[error(
        "{variable}={value:?} in the environment is not {expected}; start this program by mpiexec.hydra, \
         mpirun, srun --mpi=pmi2 or pelago run, or unset PMI_FD and PMIX_NAMESPACE to run one PE alone"
    )]
    Environment {
        /// The variable.
        variable: &'static str,
        /// Its value, or a placeholder if it is not set.
        value: String,
        /// The description of a valid value.
        expected: &'static str,
    },
    /// The key is not valid.
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
        /// The operation that failed.
        operation: String,
        /// The reason.
        reason: PmiError,
    },
    /// An exchange with a launcher that speaks PMIx failed.
    #[error("PE {pe}, {operation}: {reason}")]
    Pmix {
        /// The PE.
        pe: usize,
        /// The operation that failed.
        operation: String,
        /// The reason.
        reason: PmixError,
    },
}
