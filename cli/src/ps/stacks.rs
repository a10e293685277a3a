//! Call stacks of the PEs of a job on this machine, by gdb.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use pelago_boot::{JobRecord, PeRow, PeState, resolve};
use serde_json::{Value, json};

/// The path of gdb.
pub fn gdb() -> anyhow::Result<PathBuf> {
    let found = resolve(Path::new("gdb"));
    found.ok().context("gdb is not in PATH; install it, such as by `apt install gdb`, `dnf install gdb`")
}

/// The text of the stacks of these PEs.
pub fn of_rows(record: &JobRecord, rows: &[PeRow]) -> anyhow::Result<String> {
    let (gdb, mut outcome) = (gdb()?, Outcome::default());
    let mut text = String::new();
    for group in rows.chunk_by(|a, b| (a.pid, &a.host) == (b.pid, &b.host)) {
        let pes = name(group);
        match obstacle(&group[0]) {
            Some(why) => text += &format!("\n{pes}: {why}\n"),
            None => {
                let pid = program_of(record, group[0].pid);
                text += &format!("\n{pes} (pid {pid}):\n{}", outcome.text(stack(&gdb, pid)));
            }
        }
    }
    outcome.check()?;
    Ok(text)
}

/// The text of the stacks of the processes that a launcher has left behind.
pub fn of_left(record: &JobRecord) -> anyhow::Result<String> {
    let (gdb, mut outcome) = (gdb()?, Outcome::default());
    let text = record.left().into_iter().map(|left| {
        let pid = program_of(record, left.pid);
        format!("\nprocess {} (pid {pid}):\n{}", left.process, outcome.text(stack(&gdb, pid)))
    });
    let text = text.collect();
    outcome.check()?;
    Ok(text)
}

/// The stacks of these PEs: an object of the lowest PE of each process, the process id, and the text, or null
/// and the reason why there is none.
pub fn json(record: &JobRecord, rows: &[PeRow]) -> anyhow::Result<Value> {
    let (gdb, mut outcome) = (gdb()?, Outcome::default());
    let groups = rows.chunk_by(|a, b| (a.pid, &a.host) == (b.pid, &b.host));
    let stacks = groups.filter(|group| obstacle(&group[0]).is_none()).map(|group| {
        let (pe, pid) = (group[0].pe, program_of(record, group[0].pid));
        let found = stack(&gdb, pid);
        match found.is_ok() {
            true => json!({ "pe": pe, "pid": pid, "stack": outcome.text(found) }),
            false => json!({ "pe": pe, "pid": pid, "stack": null, "error": outcome.text(found).trim() }),
        }
    });
    let stacks = stacks.collect();
    outcome.check()?;
    Ok(stacks)
}

/// Whether the stacks of some process were found, and otherwise the first reason. A process that gdb cannot
/// attach to, for instance because it ends, does not take away the stacks of the others.
#[derive(Default)]
struct Outcome {
    has_some: bool,
    failure: Option<anyhow::Error>,
}

impl Outcome {
    /// The stacks of a process, or the reason why there are none.
    fn text(&mut self, found: anyhow::Result<String>) -> String {
        match found {
            Ok(text) => {
                self.has_some = true;
                text
            }
            Err(error) => {
                let text = format!("{error:#}\n");
                self.failure.get_or_insert(error);
                text
            }
        }
    }

    /// Fails if there are stacks of no process.
    fn check(self) -> anyhow::Result<()> {
        self.failure.filter(|_| !self.has_some).map_or(Ok(()), Err)
    }
}

/// Why no debugger can be attached to the process of a PE, if so.
pub fn obstacle(row: &PeRow) -> Option<String> {
    let pid = row.pid;
    match (&row.host, row.state) {
        (Some(host), _) => {
            Some(format!("on host {host}; there: `gdb -p {pid}`, such as `ssh -t {host} gdb -p {pid}`"))
        }
        (None, PeState::Ended) => Some("has ended".to_owned()),
        (None, PeState::Traced) => Some("is in a debugger already".to_owned()),
        (None, _) => None,
    }
}

/// The process of the program: perf starts it as its child.
pub fn program_of(record: &JobRecord, pid: u32) -> u32 {
    let children = || fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok();
    match record.tool.as_deref() {
        Some("perf") => children().and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(pid),
        _ => pid,
    }
}

fn name(group: &[PeRow]) -> String {
    match group {
        [one] => format!("PE {}", one.pe),
        _ => format!("PEs {}-{}", group[0].pe, group[group.len() - 1].pe),
    }
}

/// The stacks of all threads of a process.
fn stack(gdb: &Path, pid: u32) -> anyhow::Result<String> {
    let mut command = Command::new(gdb);
    command.args(["-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-p", &pid.to_string()]);
    command.args(["-ex", "thread apply all backtrace"]);
    let output = command.stdin(Stdio::null()).output().with_context(|| gdb.display().to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match text.find("\nThread ") {
        Some(at) => Ok(text[at + 1..].to_owned()),
        None => {
            bail!("gdb cannot attach to process {pid}: {}", why_not(&String::from_utf8_lossy(&output.stderr)))
        }
    }
}

/// Why gdb has failed, with a remedy.
fn why_not(errors: &str) -> String {
    let folder = super::jobs_folder();
    let line = errors.lines().find(|line| line.contains("ptrace")).or_else(|| errors.lines().next_back());
    let line = line.unwrap_or("it says nothing").trim();
    match errors.contains("not permitted") {
        true => format!(
            "{line} Where /proc/sys/kernel/yama/ptrace_scope is not 0, only root may attach to processes \
             (`sudo PELAGO_JOBS_FOLDER={folder} pelago ps --stacks`), or `sysctl \
             kernel.yama.ptrace_scope=0` permits it; a container needs the capability SYS_PTRACE"
        ),
        false => line.to_owned(),
    }
}
