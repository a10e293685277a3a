//! The replies of a launcher: lines of fields, with tabs between.

use std::io;

/// The question for the state of the job.
pub(crate) const STATE: &str = "state";
/// The question for what each PE does.
pub(crate) const PES: &str = "pes";

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// Some PEs have not joined the job yet.
    Forming,
    /// All PEs have joined.
    Running,
    /// The launcher is ending the job.
    Ending,
    /// The job has just ended.
    Ended,
    /// The launcher runs and does not answer: it is stopped, or in a debugger.
    Silent,
    /// The launcher has died.
    LauncherDied,
}

impl JobState {
    const ALL: [Self; 6] =
        [Self::Forming, Self::Running, Self::Ending, Self::Ended, Self::Silent, Self::LauncherDied];

    /// The state as a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forming => "forming",
            Self::Running => "running",
            Self::Ending => "ending",
            Self::Ended => "ended",
            Self::Silent => "launcher silent",
            Self::LauncherDied => "launcher died",
        }
    }

    /// The line of a reply.
    pub(crate) fn line(self) -> String {
        format!("state\t{}\n", self.name())
    }

    pub(super) fn of_line(line: &str) -> Option<Self> {
        let name = line.strip_prefix("state\t")?;
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The state of a job whose launcher has given no answer.
    pub(super) fn without_answer(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::LauncherDied,
            // The files are removed at the end of a job, and connections break then.
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                Self::Ended
            }
            _ => Self::Silent,
        }
    }
}

/// The activity of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeState {
    /// It waits for others, in the runtime.
    Waiting,
    /// It computes, or waits outside of the runtime.
    Running,
    /// It has not joined the job.
    Outside,
    /// A signal has stopped it.
    Stopped,
    /// A debugger is attached to it.
    Traced,
    /// It has left the job, or ended.
    Ended,
    /// Its host has not replied.
    Unknown,
}

impl PeState {
    const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Running,
        Self::Outside,
        Self::Stopped,
        Self::Traced,
        Self::Ended,
        Self::Unknown,
    ];

    /// The state as a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Outside => "starting",
            Self::Stopped => "stopped",
            Self::Traced => "debugged",
            Self::Ended => "ended",
            Self::Unknown => "unknown",
        }
    }
}

/// A PE of a running job.
#[derive(Clone, Debug, PartialEq)]
pub struct PeRow {
    /// Its number.
    pub pe: usize,
    /// The process id of its process, on its host.
    pub pid: u32,
    /// Its host; `None`: the machine of the launcher.
    pub host: Option<String>,
    /// Its activity.
    pub state: PeState,
    /// For how long it has waited, in seconds, if it waits and its process has told.
    pub seconds: Option<f64>,
    /// The same as text: the event that it waits for.
    pub doing: String,
}

impl PeRow {
    /// The line of a reply.
    pub(crate) fn line(&self) -> String {
        let Self { pe, pid, host, state, seconds, doing } = self;
        let seconds = seconds.map_or_else(String::new, |seconds| format!("{seconds:.3}"));
        let (host, state) = (host.as_deref().unwrap_or(""), state.name());
        let doing: String = doing.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("pe\t{pe}\t{pid}\t{host}\t{state}\t{seconds}\t{doing}\n")
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut fields = line.strip_prefix("pe\t")?.splitn(6, '\t');
        let mut next = || fields.next();
        let (pe, pid) = (next()?.parse().ok()?, next()?.parse().ok()?);
        let host = Some(next()?).filter(|host| !host.is_empty()).map(str::to_owned);
        let name = next()?;
        let state = PeState::ALL.into_iter().find(|state| state.name() == name)?;
        let seconds = match next()? {
            "" => None,
            text => Some(text.parse().ok()?),
        };
        Some(Self { pe, pid, host, state, seconds, doing: next()?.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_read() {
        let row = PeRow {
            pe: 3,
            pid: 77,
            host: Some("b".to_owned()),
            state: PeState::Waiting,
            seconds: Some(1.25),
            doing: "waits for PE 1".to_owned(),
        };
        assert_eq!(PeRow::parse(row.line().trim_end()), Some(row.clone()));
        for state in PeState::ALL {
            let row = PeRow { state, host: None, seconds: None, ..row.clone() };
            assert_eq!(PeRow::parse(row.line().trim_end()), Some(row));
        }
        for state in JobState::ALL {
            assert_eq!(JobState::of_line(state.line().trim_end()), Some(state));
        }
        for line in ["", "pe", "pe\t1\t2\t\tasleep\t\tx", "pe\tx\t2\t\twaiting\t\tx", "pe\t1\t2\t\twaiting"] {
            assert_eq!(PeRow::parse(line), None, "{line}");
        }
    }
}
