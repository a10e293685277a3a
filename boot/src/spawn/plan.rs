//! Plan of a job: which process runs which program on which host. It is made before any process starts.
//!
//! Invariant: each program has consecutive processes, in the order of the programs, and each host has
//! consecutive processes, in the order of the hosts; a host is filled before the next one gets a process.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::frame::{Start, StartProgram, StartTool};
use super::process::Ready;
use super::tool::{ReadyTool, Tool};
use super::{HostSlots, InputTo, JobSpec, LaunchError, check};
use crate::env::Settings;

/// Variables that describe a host, a session on it, or a step of Slurm with its part of a Slingshot network,
/// and so are not sent to other hosts. A final `*` matches any suffix.
const STAYING: [&str; 9] = [
    "HOSTNAME",
    "SSH_*",
    "SLURM*",
    "SRUN_*",
    "SLINGSHOT_*",
    "PMI_*",
    "PMIX_*",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_*",
];

/// The plan of a job.
pub(super) struct Plan {
    pub(super) settings: Settings,
    programs: Vec<Planned>,
    /// The program of each process.
    pub(super) program_of: Vec<usize>,
    /// The hosts that have processes, with those processes; empty if all run on this machine.
    pub(super) hosts: Vec<(String, Range<usize>)>,
    pub(super) input: InputTo,
    tool: Option<Tool>,
    /// Variables of this process that the processes do not get.
    without: Vec<OsString>,
}

/// A program with its arguments and variables.
struct Planned {
    program: PathBuf,
    /// The executable file on this machine.
    file: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
}

impl Plan {
    /// Makes the plan.
    ///
    /// # Errors
    /// If a program cannot be run, if a number or a setting is invalid, or if there are too few slots.
    pub(super) fn new(spec: &JobSpec, settings: Settings) -> Result<Self, LaunchError> {
        let each = settings.pes_per_process;
        check::limits(spec, each)?;
        let first = (spec.n, &spec.program, &spec.args, &[][..]);
        let others = spec.then.iter().map(|it| (it.n, &it.program, &it.args, &it.env[..]));
        let (mut programs, mut program_of) = (Vec::new(), Vec::new());
        for (n, program, args, own) in std::iter::once(first).chain(others) {
            let env: Vec<_> = spec.env.iter().chain(own).cloned().collect();
            let all = Settings::from_os_pairs(std::env::vars_os().chain(env.iter().cloned()))?;
            if all.pes_per_process != each {
                return Err(LaunchError::PesDiffer { first: each, other: all.pes_per_process });
            }
            let is_here = spec.machines.is_none();
            let file = if is_here { resolve_with(&env, program)? } else { PathBuf::new() };
            program_of.resize(program_of.len() + n / each, programs.len());
            programs.push(Planned { program: program.clone(), file, args: args.clone(), env });
        }
        let hosts = match &spec.machines {
            None => Vec::new(),
            Some(machines) => fill(&machines.hosts, program_of.len(), each)?,
        };
        let (input, tool, without) = (spec.input, spec.tool.clone(), spec.without.clone());
        let plan = Self { settings, programs, program_of, hosts, input, tool, without };
        plan.check_streams_and_tool(spec)?;
        Ok(plan)
    }

    /// Refuses PEs that do not exist, and tools and folders that are not there.
    fn check_streams_and_tool(&self, spec: &JobSpec) -> Result<(), LaunchError> {
        let n = self.n_pes();
        let only = self.tool.as_ref().and_then(|tool| tool.only);
        let reader = if let InputTo::Pe(pe) = self.input { Some(pe) } else { None };
        for (pe, what) in [(only, "a debugger"), (reader, "standard input")] {
            if let Some(pe) = pe.filter(|pe| *pe >= n) {
                return Err(LaunchError::NoSuchPe { pe, n, what });
            }
        }
        if self.tool.as_ref().is_some_and(|tool| tool.has_terminal) && spec.machines.is_some() {
            return Err(LaunchError::TerminalElsewhere);
        }
        if spec.machines.is_none() {
            self.ready_tool()?;
        }
        let folder =
            self.tool.as_ref().filter(|_| spec.machines.is_none()).and_then(|tool| tool.folder.as_ref());
        for folder in [&spec.output_folder, &folder.cloned()].into_iter().flatten() {
            let failed = |reason| LaunchError::OutputFolder { folder: folder.clone(), reason };
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        Ok(())
    }

    /// The tool of processes of this machine.
    pub(super) fn ready_tool(&self) -> Result<Option<ReadyTool>, LaunchError> {
        let Some(Tool { words, only, has_terminal, .. }) = &self.tool else { return Ok(None) };
        let (name, args) =
            words.split_first().map_or((Path::new(""), &[][..]), |(name, args)| (name.as_ref(), args));
        let found = check::resolve(name);
        let file = found.map_err(|_| LaunchError::NoTool { tool: name.display().to_string() })?;
        let only = only.map(|pe| pe / self.settings.pes_per_process);
        Ok(Some(ReadyTool { file, args: args.to_vec(), only, has_terminal: *has_terminal }))
    }

    /// The process that a tool gives the terminal to.
    pub(super) fn has_terminal(&self, process: usize) -> bool {
        let tool = self.tool.as_ref().filter(|tool| tool.has_terminal);
        tool.and_then(|tool| tool.only).is_some_and(|pe| pe / self.settings.pes_per_process == process)
    }

    /// The name of the tool.
    pub(super) fn tool_name(&self) -> Option<String> {
        self.tool.as_ref().map(Tool::name)
    }

    /// The number of PEs of the job.
    pub(super) fn n_pes(&self) -> usize {
        self.program_of.len() * self.settings.pes_per_process
    }

    /// The programs with their arguments, as lines for a list.
    pub(super) fn command_lines(&self) -> Vec<String> {
        let line = |it: &Planned| {
            let words =
                std::iter::once(it.program.as_os_str()).chain(it.args.iter().map(OsString::as_os_str));
            words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
        };
        self.programs.iter().map(line).collect()
    }

    /// The program of a process, as the user gave it.
    pub(super) fn program(&self, process: usize) -> &Path {
        &self.programs[self.program_of[process]].program
    }

    /// The programs for a start on this machine.
    pub(super) fn ready(&self) -> Vec<Ready> {
        let ready = |it: &Planned| Ready {
            file: it.file.clone(),
            name: it.program.clone().into(),
            args: it.args.clone(),
            env: it.env.clone(),
        };
        self.programs.iter().map(ready).collect()
    }

    /// The number of processes of each node, where each host counts as a node.
    pub(super) fn processes_of_nodes(&self) -> Vec<usize> {
        match &self.hosts[..] {
            [] => vec![self.program_of.len()],
            hosts => hosts.iter().map(|(_, processes)| processes.len()).collect(),
        }
    }

    /// The start frame for the agent of a host.
    pub(super) fn start(&self, host: usize, binds: bool) -> Start {
        let processes = self.hosts[host].1.clone();
        let own = std::env::current_exe().ok();
        let program = |it: &Planned| StartProgram {
            program: if own.as_ref() == Some(&it.program) { PathBuf::new() } else { it.program.clone() },
            args: it.args.clone(),
            env: it.env.clone(),
        };
        let readers =
            processes.clone().filter(|process| self.input.has(*process, self.settings.pes_per_process));
        let readers = readers.map(|process| process as u32).collect();
        let tool = self.tool.as_ref().map(|tool| StartTool {
            words: tool.words.clone(),
            only: tool.only.map_or(0, |pe| (pe / self.settings.pes_per_process) as u32 + 1),
            folder: tool.folder.clone().unwrap_or_default(),
        });
        let silence = self.settings.peer_timeout.map_or(0, |limit| limit.as_millis().max(1));
        Start {
            size: self.program_of.len() as u32,
            first: processes.start as u32,
            program_of: self.program_of[processes].iter().map(|program| *program as u32).collect(),
            pes_per_process: self.settings.pes_per_process as u32,
            binds,
            silence_millis: u64::try_from(silence).unwrap_or(u64::MAX),
            directory: std::env::current_dir().unwrap_or_default(),
            env: std::env::vars_os()
                .filter(|(name, _)| travels(name) && !self.without.contains(name))
                .collect(),
            programs: self.programs.iter().map(program).collect(),
            readers,
            tool: tool.unwrap_or_default(),
        }
    }
}

/// The executable file of a program whose processes get these variables: `PATH` may be among them.
fn resolve_with(env: &[(OsString, OsString)], program: &Path) -> Result<PathBuf, LaunchError> {
    match env.iter().rev().find(|(name, _)| name == "PATH") {
        Some((_, folders)) => check::resolve_in(program, folders),
        None => check::resolve(program),
    }
}

/// Whether a variable is sent to other hosts.
fn travels(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let is_it = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *pattern,
    };
    !STAYING.iter().any(is_it)
}

/// Fills hosts with processes, one host after the other.
fn fill(
    hosts: &[HostSlots],
    processes: usize,
    each: usize,
) -> Result<Vec<(String, Range<usize>)>, LaunchError> {
    let (mut filled, mut next) = (Vec::new(), 0);
    for host in hosts {
        if !host.slots.is_multiple_of(each) {
            let (host, slots) = (host.name.clone(), host.slots);
            return Err(LaunchError::UnevenHost { host, slots, each });
        }
        let end = processes.min(next + host.slots / each);
        if next < end {
            filled.push((host.name.clone(), next..end));
        }
        next = end;
    }
    if next < processes {
        let slots = hosts.iter().map(|host| host.slots).sum();
        let hosts: Vec<_> = hosts.iter().map(|host| format!("{}:{}", host.name, host.slots)).collect();
        return Err(LaunchError::TooFewSlots { n: processes * each, slots, hosts: hosts.join(",") });
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(hosts: &[(&str, usize)], processes: usize, each: usize) -> Result<String, String> {
        let host = |&(name, slots): &(&str, usize)| HostSlots { name: name.to_owned(), slots };
        let hosts: Vec<_> = hosts.iter().map(host).collect();
        let filled = fill(&hosts, processes, each).map_err(|error| error.to_string())?;
        let text = |(name, range): (String, Range<usize>)| format!("{name} {}-{}", range.start, range.end);
        Ok(filled.into_iter().map(text).collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn hosts_are_filled_in_their_order() {
        let hosts = [("b", 2), ("a", 3)];
        assert_eq!(filled(&hosts, 5, 1).unwrap(), "b 0-2, a 2-5");
        assert_eq!(filled(&hosts, 3, 1).unwrap(), "b 0-2, a 2-3");
        assert_eq!(filled(&hosts, 2, 1).unwrap(), "b 0-2", "a host that gets nothing is not called");
        assert_eq!(filled(&[("a", 4), ("b", 8)], 3, 4).unwrap(), "a 0-1, b 1-3");
    }

    #[test]
    fn hosts_that_do_not_suffice() {
        let text = filled(&[("a", 1), ("b", 2)], 4, 1).unwrap_err();
        assert!(text.contains("4 PEs do not fit into the 3 slots of the hosts (a:1,b:2)"), "{text}");
        let text = filled(&[("a", 2), ("b", 3)], 2, 2).unwrap_err();
        assert!(text.contains("the 3 slots of host b are no multiple of the 2 PEs"), "{text}");
    }

    #[test]
    fn variables_of_hosts_and_sessions_stay() {
        for name in [
            "HOSTNAME",
            "SSH_TTY",
            "SLURMD_NODENAME",
            "SLURM_PROCID",
            "SLINGSHOT_VNIS",
            "PMI_RANK",
            "XDG_RUNTIME_DIR",
        ] {
            assert!(!travels(OsStr::new(name)), "{name}");
        }
        for name in ["HOSTNAMES", "PATH", "PELAGO_HEAP_SIZE", "XDG_DATA_DIRS", "_", "LD_LIBRARY_PATH"] {
            assert!(travels(OsStr::new(name)), "{name}");
        }
    }
}
