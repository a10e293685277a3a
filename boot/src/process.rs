//! Processes of this machine, as the system shows them in `/proc`.

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
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return ProcessState::Gone };
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    state_of(&stat, &status)
}

/// Parses the state from `/proc/PID/stat` and `/proc/PID/status`. The name of the program stands before it in
/// parentheses, and may itself contain parentheses.
fn state_of(stat: &str, status: &str) -> ProcessState {
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
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

    #[test]
    fn states_are_read_behind_the_name_of_the_program() {
        let status = "Name:\ta\nState:\tS (sleeping)\nTracerPid:\t0\n";
        let traced = "TracerPid:\t77\n";
        assert_eq!(state_of("12 (a) S 1 2 3", status), ProcessState::Running);
        assert_eq!(state_of("12 (a) T) (b) R 1 2 3", status), ProcessState::Running);
        assert_eq!(state_of("12 (a) T 1 2 3", status), ProcessState::Stopped);
        assert_eq!(state_of("12 (a) t 1 2 3", traced), ProcessState::Traced);
        assert_eq!(state_of("12 (a) S 1 2 3", traced), ProcessState::Traced);
        assert_eq!(state_of("12 (a) Z 1 2 3", status), ProcessState::Gone);
        assert_eq!(state_of("", ""), ProcessState::Gone);
    }

    #[test]
    fn this_process_runs() {
        assert_eq!(process_state(std::process::id()), ProcessState::Running);
    }
}
