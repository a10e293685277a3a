//! The record of a job: lines of a key and its values, with tabs between.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::age;
use crate::process::stat_fields;

/// The first line of a record.
const HEAD: &str = "pelago-job\t1";

/// The data that a launcher has recorded about its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// The name of the job on this machine.
    pub id: String,
    /// The process id of the launcher.
    pub launcher: u32,
    /// When the job was started.
    pub started: SystemTime,
    /// The programs with their arguments, as the user gave them.
    pub programs: Vec<String>,
    /// The tool that each process runs under (gdb, valgrind or perf), if there is one.
    pub tool: Option<String>,
    /// The number of PEs.
    pub n_pes: usize,
    /// The number of PEs of each process.
    pub pes_per_process: usize,
    /// The hosts with PEs; empty if all are on this machine.
    pub hosts: Vec<String>,
    /// The processes that the launcher has started on this machine: id, and start time in ticks since boot.
    pub(super) processes: Vec<(u32, u64)>,
    pub(super) path: PathBuf,
}

/// A process of a job whose launcher has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftProcess {
    /// The number of the process in the job.
    pub process: usize,
    /// Its process id.
    pub pid: u32,
}

/// The parts of a record that the launcher knows.
pub(crate) struct Part<'a> {
    pub(crate) programs: Vec<String>,
    pub(crate) tool: Option<&'a str>,
    pub(crate) n_pes: usize,
    pub(crate) pes_per_process: usize,
    pub(crate) hosts: Vec<&'a str>,
    pub(crate) pids: Vec<u32>,
}

impl Part<'_> {
    /// The text of the record, written now by this process.
    pub(crate) fn text(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let mut text = format!("{HEAD}\nlauncher\t{}\nstarted\t{now}\n", std::process::id());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "pes\t{}\t{}", self.n_pes, self.pes_per_process);
        self.tool.iter().for_each(|tool| text += &format!("tool\t{tool}\n"));
        self.programs.iter().for_each(|program| text += &format!("program\t{}\n", plain(program)));
        self.hosts.iter().for_each(|host| text += &format!("host\t{}\n", plain(host)));
        for pid in &self.pids {
            let _ = writeln!(text, "process\t{pid}\t{}", ticks_of(*pid).unwrap_or(0));
        }
        text
    }
}

impl JobRecord {
    /// The record in this text; `None` if it is none of this version.
    pub(super) fn parse(path: &Path, text: &str) -> Option<Self> {
        let mut lines = text.lines();
        (lines.next()? == HEAD).then_some(())?;
        let id = path.file_stem()?.to_str()?.to_owned();
        let mut record = Self {
            id,
            launcher: 0,
            started: UNIX_EPOCH,
            programs: Vec::new(),
            tool: None,
            n_pes: 0,
            pes_per_process: 1,
            hosts: Vec::new(),
            processes: Vec::new(),
            path: path.to_owned(),
        };
        for line in lines {
            let (key, value) = line.split_once('\t')?;
            let pair = || value.split_once('\t');
            match key {
                "launcher" => record.launcher = value.parse().ok()?,
                "started" => record.started = UNIX_EPOCH + Duration::from_millis(value.parse().ok()?),
                "pes" => {
                    let (n, each) = pair()?;
                    (record.n_pes, record.pes_per_process) = (n.parse().ok()?, each.parse().ok()?);
                }
                "tool" => record.tool = Some(value.to_owned()),
                "program" => record.programs.push(value.to_owned()),
                "host" => record.hosts.push(value.to_owned()),
                "process" => {
                    let (pid, ticks) = pair()?;
                    record.processes.push((pid.parse().ok()?, ticks.parse().ok()?));
                }
                // Of a later version.
                _ => {}
            }
        }
        (record.n_pes > 0 && record.pes_per_process > 0).then_some(record)
    }

    /// The time since the start of the job.
    pub fn age(&self) -> Duration {
        age(self.started)
    }

    /// The processes of the job on this machine that still run. For a job whose launcher has died; of other
    /// hosts nothing is known then.
    pub fn left(&self) -> Vec<LeftProcess> {
        let runs = |(process, (pid, ticks)): (usize, &(u32, u64))| {
            (ticks_of(*pid) == Some(*ticks)).then_some(LeftProcess { process, pid: *pid })
        };
        self.processes.iter().enumerate().filter_map(runs).collect()
    }
}

/// When a process was started, in clock ticks since the start of the machine; `None` if there is none, or if
/// it has ended and not been waited for. No two processes of the same id have the same time.
pub(crate) fn ticks_of(pid: u32) -> Option<u64> {
    let fields = stat_fields(pid)?;
    let has_ended = matches!(fields.first()?.as_str(), "Z" | "X" | "x");
    // The 22nd field of the line, of which the first two are gone.
    fields.get(19)?.parse().ok().filter(|_| !has_ended)
}

/// Text without characters that would end a field.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing;

    fn part() -> Part<'static> {
        let (programs, hosts) = (vec!["./mine a\tb\nc".to_owned(), "ft".to_owned()], vec!["a", "b"]);
        let pids = vec![std::process::id(), u32::MAX];
        Part { programs, tool: Some("gdb"), n_pes: 4, pes_per_process: 2, hosts, pids }
    }

    #[test]
    fn what_is_written_is_read() {
        let record = JobRecord::parse(Path::new("/x/77.job"), &part().text()).unwrap();
        assert_eq!((record.id.as_str(), record.launcher), ("77", std::process::id()));
        assert_eq!((record.n_pes, record.pes_per_process), (4, 2));
        assert_eq!(record.programs, ["./mine a b c", "ft"]);
        assert_eq!((record.tool.as_deref(), &record.hosts[..]), (Some("gdb"), &["a".into(), "b".into()][..]));
        let own = LeftProcess { process: 0, pid: std::process::id() };
        assert_eq!(record.left(), [own], "there is no process of the second number");
    }

    #[test]
    fn fuzz_records() {
        let text = part().text();
        fuzzing::fuzz(&[text.as_str(), "pelago-job\t1\npes\t1\t1\n"], |input| {
            let text = String::from_utf8_lossy(input);
            if let Some(record) = JobRecord::parse(Path::new("1.job"), &text) {
                assert!(record.n_pes > 0);
            }
        });
    }
}
