//! PMI-1: the process management interface by which a launcher and its processes exchange text.
//!
//! A process holds one end of a socket (`PMI_FD`), sends one line and reads one line: `cmd=put key=a
//! value=b`, `cmd=put_result rc=0`. [`wire`] is the format of a line, [`client`] the side of the process,
//! [`server`] the side of the launcher. [`value`] encodes bytes of any length as PMI values, and [`mapping`]
//! tells which process is on which node. Source: the PMI-1.1 interface of MPICH, as MPICH's hydra and Slurm's
//! pmi2 plugin speak it.

pub(crate) mod client;
#[cfg(test)]
mod fuzz;
pub(crate) mod mapping;
pub(crate) mod server;
pub(crate) mod value;
pub(crate) mod wire;

/// With this field of its response to `init`, our server announces that it understands `note` and the message
/// of `abort`. It is part of the protocol and not an environment variable, because variables also reach the
/// processes of a launcher that runs inside another launcher.
pub(crate) const OURS: &str = "pelago";

/// With this field of `finalize` and `rest`, a process reports that other PEs wait in vain for something that
/// it has not done.
pub(crate) const MISSED: &str = "missed";

/// With this field of the same response, our server announces that it asks what PEs wait for, if the process
/// has sent `hears`.
pub(crate) const REPORTS: &str = "reports";
/// The command of that question, which the server may send at any time; the process replies with `waits`.
pub(crate) const REPORT: &str = "report";

/// With this field of `waits`, a process reports how many milliseconds each of its PEs has waited: numbers
/// with commas between, nothing for a PE that does not wait.
pub(crate) const WAITED: &str = "waited";

/// The key under which a launcher publishes the node of each process.
pub(crate) const MAPPING_KEY: &str = "PMI_process_mapping";
