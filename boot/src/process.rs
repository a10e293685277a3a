//! Processes of this machine, as the system shows them in `/proc`.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::fs;

/// The state of a process, as far as it matters to processes that wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It runs, or waits in a system call.
    Running,
    /// A signal has stopped it (SIGSTOP, SIGTSTP, SIGTTIN or SIGTTOU).
    Stopped,
    /// A debugger, or another tracer, is attached to it.
    Traced,
    /// It has ended, or the system does not show it.
    Gone,
}

impl ProcessState {
    const ALL: [Self; 4] = [Self::Running, Self::Stopped, Self::Traced, Self::Gone];

    /// The number of the state in frames between an agent and its launcher.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    /// The state of this number.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// The state of a process.
pub fn process_state(pid: u32) -> ProcessState {
    let Some(fields) = stat_fields(pid) else { return ProcessState::Gone };
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    state_of(&fields, &String::from_utf8_lossy(&status))
}

/// The parent of a process, if the system shows it.
pub fn parent_of(pid: u32) -> Option<u32> {
    stat_fields(pid)?.get(1)?.parse().ok()
}

/// Whether a process has ended, even if its parent has not collected its status. A process that the system
/// does not show has not.
pub fn has_process_ended(pid: u32) -> bool {
    let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    if test_kill_process(id) == Err(Errno::SRCH) {
        return true;
    }
    let state = stat_fields(pid).and_then(|fields| fields.into_iter().next());
    let is_dead = state.is_some_and(|state| state == "Z" || state == "X");
    // A process whose first thread has ended looks the same, but has other threads.
    is_dead && fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count) <= 1
}

/// The fields of `/proc/PID/stat` behind the name of the program: state, parent, group and others.
pub(crate) fn stat_fields(pid: u32) -> Option<Vec<String>> {
    fields_of(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The name stands in parentheses, and may have any bytes in it, also parentheses.
fn fields_of(stat: &[u8]) -> Option<Vec<String>> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    Some(String::from_utf8_lossy(&stat[end + 1..]).split_ascii_whitespace().map(str::to_owned).collect())
}

/// The state in the fields of `/proc/PID/stat` and the text of `/proc/PID/status`.
fn state_of(fields: &[String], status: &str) -> ProcessState {
    let state = fields.first().and_then(|field| field.chars().next());
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    match state {
        None | Some('Z' | 'X' | 'x') => ProcessState::Gone,
        Some('T') => ProcessState::Stopped,
        Some('t') => ProcessState::Traced,
        Some(_) if tracer.is_some_and(|pid| pid.trim() != "0") => ProcessState::Traced,
        Some(_) => ProcessState::Running,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(stat: &[u8], status: &str) -> ProcessState {
        state_of(&fields_of(stat).unwrap_or_default(), status)
    }

    #[test]
    fn parents_are_found() {
        assert_eq!(parent_of(std::process::id()), Some(std::os::unix::process::parent_id()));
        assert_eq!(parent_of(u32::MAX), None);
    }

    #[test]
    fn ended_processes_are_told_from_others() {
        assert!(!has_process_ended(std::process::id()) && !has_process_ended(0));
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "read line"]).stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let pid = child.id();
        assert!(!has_process_ended(pid));
        drop(child.stdin.take());
        let id = rustix::process::WaitId::Pid(Pid::from_child(&child));
        // It has ended, and its status is kept.
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(id, options).unwrap();
        assert!(has_process_ended(pid));
        child.wait().unwrap();
        assert!(has_process_ended(pid));
    }

    #[test]
    fn states_are_read_behind_the_name_of_the_program() {
        let status = "Name:\ta\nState:\tS (sleeping)\nTracerPid:\t0\n";
        let traced = "TracerPid:\t77\n";
        assert_eq!(state(b"12 (a) S 1 2 3", status), ProcessState::Running);
        assert_eq!(state(b"12 (a) T) (b) R 1 2 3", status), ProcessState::Running);
        assert_eq!(state(b"12 (a) T 1 2 3", status), ProcessState::Stopped);
        assert_eq!(state(b"12 (a) t 1 2 3", traced), ProcessState::Traced);
        assert_eq!(state(b"12 (a) S 1 2 3", traced), ProcessState::Traced);
        assert_eq!(state(b"12 (a) Z 1 2 3", status), ProcessState::Gone);
        assert_eq!(state(b"12 (\xe9) T 1 2 3", status), ProcessState::Stopped);
        assert_eq!(state(b"", ""), ProcessState::Gone);
    }

    #[test]
    fn this_process_runs() {
        assert_eq!(process_state(std::process::id()), ProcessState::Running);
    }
}
