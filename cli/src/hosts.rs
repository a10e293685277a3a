//! The hosts of `pelago run`: from its options, or from the allocation of Slurm that surrounds it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use pelago_boot::{
    HostSlots, Machines, RemoteShell, hosts_of_file, hosts_of_list, hosts_of_slurm, resolve, tasks_of_slurm,
};

/// The setting that names the remote shell.
const LAUNCH_AGENT: &str = "PELAGO_LAUNCH_AGENT";

/// The hosts and the remote shell.
#[derive(Args)]
pub struct Hosts {
    /// Hosts, each with its number of PEs (default 1): a:2,b:2. They are filled in this order, to the last
    /// slot without -n
    #[arg(long, value_name = "LIST", conflicts_with = "hostfile")]
    hosts: Option<String>,
    /// A file with one host per line: `a`, `a:2` or `a slots=2`; # begins a comment
    #[arg(long, value_name = "FILE")]
    hostfile: Option<PathBuf>,
    /// The remote shell in place of ssh, with its options: its further arguments are the host and a command
    /// to run there (PELAGO_LAUNCH_AGENT). Not Open MPI's option of this name, which is --agent-path here
    #[arg(long, value_name = "COMMAND", allow_hyphen_values = true)]
    launch_agent: Option<String>,
    /// Path of pelago on the hosts; default: the path of this command
    #[arg(long, value_name = "PATH")]
    agent_path: Option<OsString>,
}

impl Hosts {
    /// The hosts of the job; `None`: this machine.
    pub fn machines(&self) -> anyhow::Result<Option<Machines>> {
        let variable = |name: &str| std::env::var(name).ok();
        let (hosts, is_slurm) = match (&self.hosts, &self.hostfile) {
            (Some(list), _) => (Some(hosts_of_list(list)?), false),
            (_, Some(file)) => (Some(hosts_of_file(file)?), false),
            (None, None) => (hosts_of_slurm(variable)?, true),
        };
        let Some(hosts) = hosts else {
            if self.agent_path.is_some() || self.launch_agent.is_some() {
                bail!("--launch-agent and --agent-path are about hosts; name some by --hosts or --hostfile");
            }
            return Ok(None);
        };
        let given = self.launch_agent.clone().or_else(|| variable(LAUNCH_AGENT));
        let shell = remote_shell(given.as_deref(), is_slurm)?;
        let path = match &self.agent_path {
            Some(path) => path.clone(),
            None => std::env::current_exe().context("finding the path of this command")?.into(),
        };
        Ok(Some(Machines { hosts, shell, agent: vec![path, "agent".into()] }))
    }
}

/// The remote shell: the given command, or the default.
fn remote_shell(given: Option<&str>, is_slurm: bool) -> anyhow::Result<RemoteShell> {
    Ok(match given.map(str::trim) {
        Some("") => bail!("the command of --launch-agent is empty; it is one such as \"ssh -p 2222\""),
        Some("ssh") => RemoteShell::Ssh,
        Some("srun") => RemoteShell::Slurm,
        Some(command) => RemoteShell::Command(command.split_whitespace().map(OsString::from).collect()),
        None if is_slurm && resolve(Path::new("srun")).is_ok() => RemoteShell::Slurm,
        None => RemoteShell::Ssh,
    })
}

/// The number of tasks in an allocation of Slurm that has this host alone.
pub fn tasks_of_this_host() -> Option<usize> {
    tasks_of_slurm(|name| std::env::var(name).ok())
}

/// The number of slots of the hosts.
pub fn slots(machines: &Machines) -> usize {
    machines.hosts.iter().map(|HostSlots { slots, .. }| slots).sum()
}

/// Gives each host the least multiple of its slots with which `n` PEs find a slot.
pub fn oversubscribe(machines: &mut Machines, n: usize) {
    let multiple = n.div_ceil(slots(machines).max(1)).max(1);
    for host in &mut machines.hosts {
        host.slots *= multiple;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_shells() {
        let command = |words: &[&str]| RemoteShell::Command(words.iter().map(OsString::from).collect());
        assert_eq!(remote_shell(None, false).unwrap(), RemoteShell::Ssh);
        assert_eq!(remote_shell(Some("ssh"), true).unwrap(), RemoteShell::Ssh);
        assert_eq!(remote_shell(Some("srun"), false).unwrap(), RemoteShell::Slurm);
        assert_eq!(remote_shell(Some(" ssh  -p 22 "), true).unwrap(), command(&["ssh", "-p", "22"]));
        assert!(remote_shell(Some(" "), false).is_err());
    }
}
