//! A job of a soak test: starts it, finds its processes, waits for its end, and checks that it leaves nothing
//! behind.
//!
//! Invariant: every process of a job has an environment variable whose value is unique to the job.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The variable that marks the processes of a job.
const MARKER: &str = "SOAK_JOB_OF_PELAGO";
/// The interval of polling a process.
const PAUSE: Duration = Duration::from_millis(2);

/// A running job.
pub struct Job {
    launcher: Child,
    mark: String,
    output: PathBuf,
}

impl Job {
    /// Starts a job; its output goes to a file.
    pub fn start(mut command: Command, mark: String, output: PathBuf) -> Result<Job> {
        let file = fs::File::create(&output).with_context(|| format!("cannot write {}", output.display()))?;
        command.env(MARKER, &mark).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let launcher = command.spawn().context("cannot start the launcher")?;
        Ok(Job { launcher, mark, output })
    }

    /// The process id of the launcher.
    pub fn launcher(&self) -> i32 {
        self.launcher.id().cast_signed()
    }

    /// Waits for the process of a PE and returns its id; `None` if the job ends before, or after the limit.
    pub fn pe(&mut self, pe: usize, limit: Duration) -> Result<Option<i32>> {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline && self.launcher.try_wait()?.is_none() {
            if let Some(pid) = self.pes().get(&pe) {
                return Ok(Some(*pid));
            }
            thread::sleep(PAUSE);
        }
        Ok(None)
    }

    /// Waits for the end of the launcher, and then of all other processes. `None` after the limit.
    pub fn end(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        let deadline = Instant::now() + limit;
        let mut status = None;
        while Instant::now() < deadline {
            status = status.or(self.launcher.try_wait()?);
            if status.is_some() && self.processes().is_empty() {
                return Ok(status);
            }
            thread::sleep(PAUSE);
        }
        Ok(None)
    }

    /// Kills the processes that are left.
    pub fn clean_up(&mut self) -> Result<()> {
        for _ in 0..1000 {
            let left = self.processes();
            let has_ended = self.launcher.try_wait()?.is_some();
            if left.is_empty() && has_ended {
                return Ok(());
            }
            left.into_iter().for_each(|pid| signal(pid, libc::SIGKILL));
            thread::sleep(PAUSE);
        }
        bail!("processes of the job {} cannot be killed", self.mark)
    }

    /// The output of the launcher and the PEs.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.output).unwrap_or_default()).into_owned()
    }

    /// All processes of the job that have not ended.
    pub fn processes(&self) -> Vec<i32> {
        let entries = fs::read_dir("/proc").into_iter().flatten();
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        pids.filter(|pid| variable(*pid, MARKER).is_some_and(|mark| mark == self.mark)).collect()
    }

    fn pes(&self) -> BTreeMap<usize, i32> {
        let rank = |pid| variable(pid, "PMI_RANK")?.parse().ok();
        self.processes().into_iter().filter_map(|pid| Some((rank(pid)?, pid))).collect()
    }
}

/// Sends a signal; it is not an error if the process has ended.
pub fn signal(pid: i32, signal: i32) {
    // SAFETY: kill has no precondition; the process belongs to the campaign, or is gone.
    unsafe { libc::kill(pid, signal) };
}

/// The value of an environment variable of a process; `None` also if the process has ended.
fn variable(pid: i32, name: &str) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
}
