//! PMI-1: the process management interface by which a launcher and its processes exchange text.
//!
//! A process holds one end of a socket (`PMI_FD`), sends one line and reads one line: `cmd=put key=a
//! value=b`, `cmd=put_result rc=0`. [`wire`] is the form of a line, [`client`] the side of the process,
//! [`server`] the side of a launcher, [`value`] how bytes of any length become values that the wire can
//! carry, [`mapping`] the launcher's account of which process is on which node. Source: the PMI-1.1 interface
//! of MPICH, as MPICH's hydra and Slurm's pmi2 plugin speak it.

pub(crate) mod client;
#[cfg(test)]
mod fuzz;
pub(crate) mod mapping;
pub(crate) mod server;
pub(crate) mod value;
pub(crate) mod wire;

/// The field by which our server tells, in its answer to `init`, that it understands `note` and the message
/// of `abort`. Carried on the wire rather than in the environment, which leaks through a launcher inside a
/// launcher.
pub(crate) const OURS: &str = "pelago";

/// The field of `finalize` and `rest` by which a process says that others wait in vain for what it has not
/// done.
pub(crate) const MISSED: &str = "missed";

/// The field by which our server tells, in the same answer, that it asks what PEs wait for if the process
/// says that it `hears`.
pub(crate) const REPORTS: &str = "reports";
/// The command of that question, which comes at any time; `waits` is its answer.
pub(crate) const REPORT: &str = "report";

/// The key under which a launcher publishes the node of each process.
pub(crate) const MAPPING_KEY: &str = "PMI_process_mapping";
