//! Detection of the launcher that started this process, from its environment alone.
//!
//! Order: `PMI_FD` is PMI-1, `PMIX_NAMESPACE` is PMIx; `PMI_PORT`, Slurm, PALS and ALPS without either are
//! refused with a remedy; else the process is alone. PMI-1 comes first because the variables of Slurm and
//! Open MPI are inherited by all processes below them, such as those of a job of `pelago run`. Where both are
//! set, a `PMI_FD` that is no open socket was inherited too, from a launcher around that of PMIx.

use std::os::fd::{BorrowedFd, RawFd};

use rustix::net::sockopt::socket_type;

use crate::error::BootError;

/// How this process becomes part of a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No launcher: a job of one PE.
    Alone,
    /// A PMI-1 server at this descriptor.
    Pmi { descriptor: RawFd, rank: usize, size: usize },
    /// A PMIx server, which libpmix finds through the environment; the size comes from the server.
    Pmix { rank: usize },
}

/// The launcher, as the environment describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LauncherSeen {
    /// The protocol that it speaks.
    pub protocol: &'static str,
    /// The number of this process in its job.
    pub rank: usize,
    /// The number of processes in the job; `None` if only the launcher knows.
    pub size: Option<usize>,
}

/// The launcher that has started this process, or `None` if there is none. Does not join the job.
///
/// # Errors
/// If the launcher speaks another protocol (the error says what to do), or if variables are not valid.
pub fn launcher_seen() -> Result<Option<LauncherSeen>, BootError> {
    Ok(match detect(from_environment, is_socket)? {
        Found::Alone => None,
        Found::Pmi { rank, size, .. } => Some(LauncherSeen { protocol: "PMI-1", rank, size: Some(size) }),
        Found::Pmix { rank } => Some(LauncherSeen { protocol: "PMIx", rank, size: None }),
    })
}

/// A variable of this process.
pub(crate) fn from_environment(variable: &str) -> Option<String> {
    std::env::var_os(variable).map(|value| value.to_string_lossy().into_owned())
}

/// Whether a number is that of an open socket of this process.
pub(crate) fn is_socket(descriptor: RawFd) -> bool {
    // SAFETY: the descriptor is not -1, and is only passed to a call that fails if it is not open.
    descriptor >= 0 && socket_type(unsafe { BorrowedFd::borrow_raw(descriptor) }).is_ok()
}

/// Detects the launcher from the variables that `lookup` returns; `is_socket` tells the descriptors that are
/// open sockets.
pub(crate) fn detect(
    lookup: impl Fn(&str) -> Option<String>,
    is_socket: impl Fn(RawFd) -> bool,
) -> Result<Found, BootError> {
    let number = |variable, expected, fits: fn(usize) -> bool| {
        let value = lookup(variable).unwrap_or_default();
        let parsed = value.parse().ok().filter(|number| fits(*number) && *number <= i32::MAX as usize);
        parsed.ok_or(BootError::Environment { variable, value, expected })
    };
    let has_pmix = lookup("PMIX_NAMESPACE").is_some();
    let is_open = |fd: &str| fd.parse().is_ok_and(|fd: RawFd| fd > 2 && is_socket(fd));
    if lookup("PMI_FD").is_some_and(|fd| !has_pmix || is_open(&fd)) {
        let descriptor = number("PMI_FD", "the number of an open socket", |fd| fd > 2)?;
        let size = number("PMI_SIZE", "a number of PEs", |size| size > 0)?;
        let rank = number("PMI_RANK", "the number of a PE", |_| true)?;
        if rank >= size {
            let value = rank.to_string();
            return Err(BootError::Environment { variable: "PMI_RANK", value, expected: "below PMI_SIZE" });
        }
        return Ok(Found::Pmi { descriptor: descriptor as RawFd, rank, size });
    }
    if has_pmix {
        return Ok(Found::Pmix { rank: number("PMIX_RANK", "the number of a PE", |_| true)? });
    }
    if lookup("PMI_PORT").is_some() {
        return Err(BootError::Launcher {
            how: "by a launcher that serves PMI at a port (PMI_PORT is set, and PMI_FD is not)",
            remedy: "leave out its option -pmi-port",
        });
    }
    // A batch script has the number of tasks of the whole job, but is one process.
    let is_alone_in_step = lookup("SLURM_STEP_NUM_TASKS").is_none_or(|tasks| tasks == "1");
    if lookup("SLURM_PROCID").is_some() && !is_alone_in_step {
        return Err(BootError::Launcher {
            how: "by Slurm without a process manager (neither PMI_FD nor PMIX_NAMESPACE is set)",
            remedy: "add --mpi=pmi2 or --mpi=pmix to srun",
        });
    }
    // ALPS gives no size: there a number above 0 shows that there are others.
    let is_alone = |rank: &str| lookup("PMI_SIZE").map_or(rank == "0", |size| size == "1");
    for (variable, how) in [
        ("PALS_RANKID", "by PALS without PMI-1 and PMIx (PALS_RANKID is set)"),
        ("ALPS_APP_PE", "by ALPS without PMI-1 and PMIx (ALPS_APP_PE is set)"),
    ] {
        if lookup(variable).is_some_and(|rank| !is_alone(&rank)) {
            return Err(BootError::Launcher { how, remedy: "ask it for PMIx, or use pelago run --hosts" });
        }
    }
    Ok(Found::Alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn under(variables: &[(&str, &str)]) -> Result<Found, BootError> {
        let value = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        detect(|name| value(name).map(str::to_owned), |descriptor| descriptor == 7)
    }

    #[test]
    fn cray_launchers_without_a_protocol_are_refused() {
        let pals = [("PALS_RANKID", "1"), ("PMI_RANK", "1"), ("PMI_SIZE", "4")];
        for variables in [&pals[..], &[("PALS_RANKID", "0"), ("PMI_SIZE", "4")], &[("ALPS_APP_PE", "1")]] {
            let text = under(variables).unwrap_err().to_string();
            assert!(text.contains("pelago run --hosts"), "{text}");
        }
        for alone in [&[("PALS_RANKID", "0"), ("PMI_SIZE", "1")][..], &[("ALPS_APP_PE", "0")]] {
            assert_eq!(under(alone).unwrap(), Found::Alone);
        }
        let served = [("PALS_RANKID", "1"), ("PMI_FD", "7"), ("PMI_RANK", "1"), ("PMI_SIZE", "4")];
        assert_eq!(under(&served).unwrap(), Found::Pmi { descriptor: 7, rank: 1, size: 4 });
    }

    #[test]
    fn without_a_launcher_a_process_is_alone() {
        assert_eq!(under(&[]).unwrap(), Found::Alone);
        assert_eq!(under(&[("PMI_RANK", "1"), ("PMI_SIZE", "4")]).unwrap(), Found::Alone);
        let step = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1"), ("SLURM_STEP_NUM_TASKS", "1")];
        assert_eq!(under(&step).unwrap(), Found::Alone);
        let batch_script = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")];
        assert_eq!(under(&batch_script).unwrap(), Found::Alone);
        assert_eq!(under(&[("SLURM_PROCID", "0")]).unwrap(), Found::Alone);
    }

    #[test]
    fn pmi_wins_over_all_others() {
        let pmi = [("PMI_FD", "7"), ("PMI_RANK", "1"), ("PMI_SIZE", "4")];
        let found = Found::Pmi { descriptor: 7, rank: 1, size: 4 };
        assert_eq!(under(&pmi).unwrap(), found);
        let mixed =
            [&pmi[..], &[("PMIX_NAMESPACE", "x"), ("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "4")]]
                .concat();
        assert_eq!(under(&mixed).unwrap(), found);
    }

    #[test]
    fn pmix_wins_over_slurm_alone() {
        let pmix = [("PMIX_NAMESPACE", "x"), ("PMIX_RANK", "3")];
        assert_eq!(under(&pmix).unwrap(), Found::Pmix { rank: 3 });
        let mixed = [&pmix[..], &[("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "4")]].concat();
        assert_eq!(under(&mixed).unwrap(), Found::Pmix { rank: 3 });
        assert_eq!(under(&[("PMIX_RANK", "3")]).unwrap(), Found::Alone);
    }

    #[test]
    fn pmix_wins_over_a_pmi_fd_that_is_not_open() {
        for descriptor in ["8", "x", "1"] {
            let pmi = [("PMI_FD", descriptor), ("PMI_RANK", "1"), ("PMI_SIZE", "4")];
            let mixed = [&pmi[..], &[("PMIX_NAMESPACE", "x"), ("PMIX_RANK", "3")]].concat();
            assert_eq!(under(&mixed).unwrap(), Found::Pmix { rank: 3 }, "{descriptor}");
        }
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(is_socket(std::os::fd::AsRawFd::as_raw_fd(&ours)) && !is_socket(-1) && !is_socket(i32::MAX));
    }

    #[test]
    fn pmi_at_a_port_is_refused_with_a_remedy() {
        let port = ("PMI_PORT", "localhost:4711");
        let text = under(&[port, ("PMI_ID", "0")]).unwrap_err().to_string();
        assert!(text.contains("PMI_PORT") && text.contains("-pmi-port"), "{text}");
        let found = under(&[port, ("PMIX_NAMESPACE", "x"), ("PMIX_RANK", "3")]);
        assert_eq!(found.unwrap(), Found::Pmix { rank: 3 });
        let found = under(&[port, ("PMI_FD", "7"), ("PMI_RANK", "1"), ("PMI_SIZE", "4")]);
        assert_eq!(found.unwrap(), Found::Pmi { descriptor: 7, rank: 1, size: 4 });
    }

    #[test]
    fn slurm_without_a_protocol_is_refused_with_a_remedy() {
        let step = [("SLURM_PROCID", "3"), ("SLURM_NTASKS", "4"), ("SLURM_STEP_NUM_TASKS", "4")];
        let slurm = under(&step).unwrap_err().to_string();
        assert!(slurm.contains("--mpi=pmi2"), "{slurm}");
    }

    #[test]
    fn a_broken_environment_is_refused_with_the_variable() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[("PMI_FD", "x"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")], "PMI_FD=\"x\""),
            (&[("PMI_FD", "-1"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")], "PMI_FD=\"-1\""),
            (&[("PMI_FD", "2"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")], "PMI_FD=\"2\""),
            (&[("PMI_FD", "4294967299"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")], "PMI_FD="),
            (&[("PMI_FD", "7"), ("PMI_SIZE", "1")], "PMI_RANK=\"\""),
            (&[("PMI_FD", "7"), ("PMI_RANK", "0")], "PMI_SIZE=\"\""),
            (&[("PMI_FD", "7"), ("PMI_RANK", "0"), ("PMI_SIZE", "0")], "PMI_SIZE=\"0\""),
            (&[("PMI_FD", "7"), ("PMI_RANK", "4"), ("PMI_SIZE", "4")], "PMI_RANK=\"4\""),
            (&[("PMIX_NAMESPACE", "x")], "PMIX_RANK=\"\""),
            (&[("PMIX_NAMESPACE", "x"), ("PMIX_RANK", "-1")], "PMIX_RANK=\"-1\""),
        ];
        for (variables, part) in cases {
            let text = under(variables).unwrap_err().to_string();
            assert!(text.contains(part), "{text} does not say {part}");
        }
    }
}
