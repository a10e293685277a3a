//! Detection: what started this process, seen from its environment alone.
//!
//! Order: `PMI_FD` is PMI-1; PMIx and Slurm without PMI are refused with a remedy; else the process is alone.
//! PMI comes first because Slurm and Open MPI leave their variables in the environment of whatever runs
//! below.

use std::os::fd::RawFd;

use crate::error::BootError;

/// How this process becomes part of a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No launcher: a job of one PE.
    Alone,
    /// A PMI-1 server listens at this descriptor.
    Pmi { descriptor: RawFd, rank: usize, size: usize },
}

/// The rank of this process and the size of its job, as its launcher says, or `None` if there is no launcher.
/// Looks, and does not join.
///
/// # Errors
/// A launcher that speaks another protocol (the error says what to do), and variables that make no sense.
pub fn launcher_seen() -> Result<Option<(usize, usize)>, BootError> {
    Ok(match detect(from_environment)? {
        Found::Alone => None,
        Found::Pmi { rank, size, .. } => Some((rank, size)),
    })
}

/// A variable of this process.
pub(crate) fn from_environment(variable: &str) -> Option<String> {
    std::env::var_os(variable).map(|value| value.to_string_lossy().into_owned())
}

/// Looks at the environment through `lookup`.
pub(crate) fn detect(lookup: impl Fn(&str) -> Option<String>) -> Result<Found, BootError> {
    if lookup("PMI_FD").is_some() {
        let number = |variable, expected, fits: fn(usize) -> bool| {
            let value = lookup(variable).unwrap_or_default();
            let parsed = value.parse().ok().filter(|number| fits(*number) && *number <= i32::MAX as usize);
            parsed.ok_or(BootError::Environment { variable, value, expected })
        };
        let descriptor = number("PMI_FD", "the number of an open socket", |fd| fd > 2)?;
        let size = number("PMI_SIZE", "a number of PEs", |size| size > 0)?;
        let rank = number("PMI_RANK", "the number of a PE", |_| true)?;
        if rank >= size {
            let value = rank.to_string();
            return Err(BootError::Environment { variable: "PMI_RANK", value, expected: "below PMI_SIZE" });
        }
        return Ok(Found::Pmi { descriptor: descriptor as RawFd, rank, size });
    }
    if lookup("PMIX_NAMESPACE").is_some() {
        return Err(BootError::Launcher {
            how: "by a launcher that speaks PMIx (PMIX_NAMESPACE is set)",
            remedy: "start it by mpiexec.hydra, srun --mpi=pmi2 or pelago run",
        });
    }
    let alone_in_step = lookup("SLURM_NTASKS").is_none_or(|tasks| tasks == "1");
    if lookup("SLURM_PROCID").is_some() && !alone_in_step {
        return Err(BootError::Launcher {
            how: "by Slurm without a process manager (SLURM_PROCID is set, PMI_FD is not)",
            remedy: "add --mpi=pmi2 to srun",
        });
    }
    Ok(Found::Alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn under(variables: &[(&str, &str)]) -> Result<Found, BootError> {
        detect(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn without_a_launcher_a_process_is_alone() {
        assert_eq!(under(&[]).unwrap(), Found::Alone);
        assert_eq!(under(&[("PMI_RANK", "1"), ("PMI_SIZE", "4")]).unwrap(), Found::Alone);
        assert_eq!(under(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")]).unwrap(), Found::Alone);
        assert_eq!(under(&[("SLURM_PROCID", "0")]).unwrap(), Found::Alone);
    }

    #[test]
    fn pmi_wins_over_all_others() {
        let pmi = [("PMI_FD", "7"), ("PMI_RANK", "1"), ("PMI_SIZE", "4")];
        let found = Found::Pmi { descriptor: 7, rank: 1, size: 4 };
        assert_eq!(under(&pmi).unwrap(), found);
        let mixed =
            [&pmi[..], &[("PMIX_NAMESPACE", "x"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]].concat();
        assert_eq!(under(&mixed).unwrap(), found);
    }

    #[test]
    fn protocols_that_are_not_spoken_are_refused_with_a_remedy() {
        let pmix = under(&[("PMIX_NAMESPACE", "x"), ("PMIX_RANK", "0")]).unwrap_err().to_string();
        assert!(pmix.contains("PMIX_NAMESPACE") && pmix.contains("mpiexec.hydra"), "{pmix}");
        let slurm = under(&[("SLURM_PROCID", "3"), ("SLURM_NTASKS", "4")]).unwrap_err().to_string();
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
        ];
        for (variables, part) in cases {
            let text = under(variables).unwrap_err().to_string();
            assert!(text.contains(part), "{text} does not say {part}");
        }
    }
}
