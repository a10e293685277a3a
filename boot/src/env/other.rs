//! Environment variables that are no settings of Pelago, but are read: those of the OpenSHMEM standard, of
//! launchers, of the system and of the compiler wrappers.
//!
//! Invariant: a library, the command or a script of an installation reads a variable without the prefix of
//! Pelago's settings only if it has a row here. Tests compare the rows with the reads of `detect.rs`, of
//! `hosts/slurm.rs` and of the OpenSHMEM library.

use SetBy::{Launcher, ShmemUser, Slurm, System, ToolUser};

/// The party that sets a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SetBy {
    /// The user, for OpenSHMEM programs.
    ShmemUser,
    /// The user, for `pelago run` and compilers.
    ToolUser,
    /// The process that starts the processes of a job.
    Launcher,
    /// Slurm, in an allocation.
    Slurm,
    /// The system, the shell, or module files.
    System,
}

impl SetBy {
    /// The title of this part of the list.
    pub fn title(self) -> &'static str {
        match self {
            ShmemUser => "OpenSHMEM programs",
            ToolUser => "Commands",
            Launcher => "Set by launchers",
            Slurm => "Set by Slurm",
            System => "Set by the system, shells and module files",
        }
    }
}

/// A variable that is not a setting of Pelago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherVariable {
    /// The environment variable.
    pub name: &'static str,
    /// The party that sets it; also the part of the list that has this row.
    pub set_by: SetBy,
    /// The description of valid values.
    pub accepts: &'static str,
    /// The effect.
    pub help: &'static str,
}

const fn row(set_by: SetBy, name: &'static str, accepts: &'static str, help: &'static str) -> OtherVariable {
    OtherVariable { name, set_by, accepts, help }
}

const A_NUMBER: &str = "a number";
const A_FOLDER: &str = "the path of a folder";
const A_COMMAND: &str = "a command with its options";

static OTHERS: &[OtherVariable] = &[
    row(
        ShmemUser,
        "SHMEM_SYMMETRIC_SIZE",
        "bytes such as 4096, 64m or 1.5g",
        "size of the symmetric heap of each PE; goes before PELAGO_HEAP_SIZE",
    ),
    row(ShmemUser, "SHMEM_DEBUG", "any value", "as PELAGO_LOG=debug, unless PELAGO_LOG is set"),
    row(ShmemUser, "SHMEM_INFO", "any value", "PE 0 prints the variables of OpenSHMEM at the start"),
    row(ShmemUser, "SHMEM_VERSION", "any value", "PE 0 prints the version of the library at the start"),
    row(
        ShmemUser,
        "SMA_SYMMETRIC_SIZE",
        "as SHMEM_SYMMETRIC_SIZE",
        "the deprecated names of these four begin with SMA_; they count if the present name is not set",
    ),
    row(ShmemUser, "SMA_DEBUG", "any value", "as SHMEM_DEBUG"),
    row(ShmemUser, "SMA_INFO", "any value", "as SHMEM_INFO"),
    row(ShmemUser, "SMA_VERSION", "any value", "as SHMEM_VERSION"),
    row(
        ToolUser,
        "MPIEXEC_TIMEOUT",
        "seconds above 0",
        "time limit of a job of `pelago run`, `mpiexec` and `oshrun` without the option --timeout",
    ),
    row(ToolUser, "OSHCC_CC", A_COMMAND, "the compiler that oshcc runs; else CC, else gcc"),
    row(ToolUser, "OSHCXX_CXX", A_COMMAND, "the compiler that oshc++ runs; else CXX, else g++"),
    row(ToolUser, "MPICC_CC", A_COMMAND, "the compiler that mpicc runs; else CC, else gcc"),
    row(ToolUser, "MPICXX_CXX", A_COMMAND, "the compiler that mpicxx runs; else CXX, else g++"),
    row(ToolUser, "CC", A_COMMAND, "see OSHCC_CC and MPICC_CC"),
    row(ToolUser, "CXX", A_COMMAND, "see OSHCXX_CXX and MPICXX_CXX"),
    row(
        Launcher,
        "PMI_FD",
        "the number of an open socket",
        "this process belongs to a job of a launcher with PMI-1 (`pelago run`, hydra, srun --mpi=pmi2)",
    ),
    row(Launcher, "PMI_RANK", A_NUMBER, "number of this process, with PMI_FD"),
    row(
        Launcher,
        "PMI_SIZE",
        A_NUMBER,
        "number of processes of the job, with PMI_FD; maxprocs of MPI_INFO_ENV",
    ),
    row(Launcher, "PMI_PORT", "an address", "PMI at a port is refused, with a message"),
    row(Launcher, "PMI_APPNUM", A_NUMBER, "MPI_APPNUM: number of the program among those of the command"),
    row(
        Launcher,
        "PMIX_NAMESPACE",
        "the name of a job",
        "this process belongs to a job of a launcher with PMIx (mpirun, srun --mpi=pmix)",
    ),
    row(Launcher, "PMIX_RANK", A_NUMBER, "number of this process, with PMIX_NAMESPACE"),
    row(Launcher, "PALS_RANKID", A_NUMBER, "without PMI_FD and PMIX_NAMESPACE one of several is refused"),
    row(Launcher, "ALPS_APP_PE", A_NUMBER, "without PMI_FD and PMIX_NAMESPACE one of several is refused"),
    row(Launcher, "OMPI_APP_CTX_NUM", A_NUMBER, "as PMI_APPNUM, under Open MPI's mpirun"),
    row(Launcher, "OMPI_COMM_WORLD_SIZE", A_NUMBER, "maxprocs of MPI_INFO_ENV, under Open MPI's mpirun"),
    row(
        Slurm,
        "SLURM_JOB_NODELIST",
        "hosts, with ranges in brackets",
        "hosts of `pelago run` without --hosts and --hostfile",
    ),
    row(
        Slurm,
        "SLURM_TASKS_PER_NODE",
        "numbers, such as 2(x3),1",
        "slots of these hosts: how many PEs `pelago run` starts there",
    ),
    row(
        Slurm,
        "SLURMD_NODENAME",
        "the name of a host",
        "part of the name of the node; `pelago run` needs no agent in an allocation of this host alone",
    ),
    row(
        Slurm,
        "SLURM_PROCID",
        A_NUMBER,
        "a task of srun: without PMI_FD and PMIX_NAMESPACE it is refused if its step has several tasks",
    ),
    row(Slurm, "SLURM_STEP_NUM_TASKS", A_NUMBER, "number of tasks of the step, with SLURM_PROCID"),
    row(Slurm, "SLURM_NTASKS", A_NUMBER, "maxprocs of MPI_INFO_ENV, if neither PMI nor Open MPI has set it"),
    row(
        System,
        "PATH",
        "folders with colons between",
        "where `pelago run` looks for programs without a slash",
    ),
    row(
        System,
        "TMPDIR",
        A_FOLDER,
        "where `pelago run --stats` keeps the files of PEs of one machine; else /tmp",
    ),
    row(System, "XDG_CACHE_HOME", A_FOLDER, "see PELAGO_COLL_ONLINE_FOLDER"),
    row(System, "HOME", A_FOLDER, "see PELAGO_COLL_ONLINE_FOLDER"),
    row(System, "LD_PRELOAD", "paths", "whether the OpenSHMEM library was loaded at the program's start"),
    row(System, "RUST_BACKTRACE", "1 or full", "the stack of a PE that ends with a panic is printed"),
    row(
        System,
        "FI_OFI_RXM_MSG_RX_SIZE",
        A_NUMBER,
        "receive buffers of a connection of libfabric's ofi_rxm; Pelago sets 256 if neither it nor \
         FI_OFI_RXM_USE_SRX is set",
    ),
    row(System, "FI_OFI_RXM_USE_SRX", "1 or 0", "see FI_OFI_RXM_MSG_RX_SIZE"),
    row(
        System,
        "RDMAV_FORK_SAFE",
        "1",
        "whether fork is safe over verbs; Pelago sets 1 under kernels before 5.13 if it is not set",
    ),
    row(
        System,
        "FI_EFA_FORK_SAFE",
        "1 or 0",
        "whether fork is safe over efa; Pelago sets 1 under kernels before 5.13 if it is not set",
    ),
    row(
        System,
        "PELAGO_ROOT",
        "any value",
        "not read: for module files, as are PELAGO_HOME, PELAGO_DIR, PELAGO_PREFIX and PELAGO_VERSION",
    ),
];

/// The variables that are no settings of Pelago, by the party that sets them.
pub fn other_variables() -> &'static [OtherVariable] {
    OTHERS
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::detect::detect;
    use crate::env::{OF_MODULES, PREFIX};
    use crate::hosts::hosts_of_slurm;

    #[test]
    fn rows_are_complete_and_stand_by_the_party_that_sets_them() {
        assert!(OTHERS.is_sorted_by_key(|row| row.set_by));
        for (i, row) in OTHERS.iter().enumerate() {
            assert!(!row.accepts.is_empty() && !row.help.is_empty(), "{row:?}");
            assert!(OTHERS[..i].iter().all(|before| before.name != row.name), "{} is there twice", row.name);
            assert!(!row.name.starts_with(PREFIX) || OF_MODULES.contains(&row.name), "{row:?}");
        }
        let modules = OTHERS.iter().find(|row| row.name == OF_MODULES[0]).unwrap();
        assert!(OF_MODULES[1..].iter().all(|name| modules.help.contains(name)), "{modules:?}");
    }

    #[test]
    fn variables_of_launchers_that_are_read_have_a_row() {
        let read = RefCell::new(Vec::new());
        let values = |given: &'static [(&str, &str)]| {
            let read = &read;
            move |name: &str| {
                read.borrow_mut().push(name.to_owned());
                given.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            }
        };
        let launchers: [&'static [(&str, &str)]; 4] = [
            &[("PMI_FD", "7"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")],
            &[("PMIX_NAMESPACE", "x"), ("PMIX_RANK", "0")],
            &[("SLURM_PROCID", "0")],
            &[],
        ];
        for given in launchers {
            detect(values(given), |_| true).unwrap();
        }
        let allocation: &'static [_] = &[("SLURM_JOB_NODELIST", "a,b"), ("SLURM_TASKS_PER_NODE", "1(x2)")];
        hosts_of_slurm(values(allocation)).unwrap();
        let read = read.into_inner();
        assert!(read.len() > 10, "{read:?}");
        for name in read {
            assert!(OTHERS.iter().any(|row| row.name == name), "{name} has no row");
        }
    }
}
