//! A job of the application `perf`. Invariant: its lines are returned through an anonymous file in memory, so
//! that no file is left behind, and standard error is for progress and error messages.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;

use anyhow::{Context, bail};
use pelago_boot::{Cause, Failure, JobReport, JobSpec, Machines, launch};
use rustix::fs::{MemfdFlags, memfd_create};
use serde::de::DeserializeOwned;

/// A signal to this command while its job ran, which ends the command.
#[derive(Debug)]
pub struct Interrupted {
    /// The signal.
    pub signal: i32,
    text: String,
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl std::error::Error for Interrupted {}

/// Converts the failure of a job to the error of this command.
fn error_of(failure: &Failure) -> anyhow::Error {
    match failure.cause {
        Cause::Interrupted(signal) => Interrupted { signal, text: failure.text.clone() }.into(),
        _ => anyhow::anyhow!("{}", failure.text),
    }
}

/// Runs `perf` with these arguments on `pes` PEs, with these variables set in each; returns its JSON lines.
///
/// # Errors
/// If the job cannot be started or fails.
pub fn perf(
    pes: usize,
    bind: bool,
    variables: &[(&str, &str)],
    args: &[&str],
) -> anyhow::Result<Vec<String>> {
    let file = memfd_create("pelago-bench", MemfdFlags::CLOEXEC).context("making room for measurements")?;
    let mut file = File::from(file);
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    run(pes, bind, variables, "perf", &[args, &["--output", &path]].concat())?;
    let mut text = String::new();
    file.read_to_string(&mut text).context("reading the measurements")?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// The same on hosts, as many PEs as they have slots; PE 0 of the job writes to the launcher.
///
/// # Errors
/// If the job cannot be started or fails.
pub fn perf_on(
    machines: &Machines,
    bind: bool,
    variables: &[(&str, &str)],
    args: &[&str],
) -> anyhow::Result<Vec<String>> {
    let pes = machines.hosts.iter().map(|host| host.slots).sum();
    let mut spec = spec(pes, bind, variables, "perf", args)?;
    (spec.machines, spec.capture) = (Some(machines.clone()), true);
    let report = launch(&spec)?;
    succeeded(&report, "perf", pes)?;
    let text = report.output.into_iter().next().unwrap_or_default().stdout;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Starts a built-in application on `pes` PEs, with these variables set in each, and waits for its end.
///
/// # Errors
/// If the job cannot be started or fails.
pub fn run(
    pes: usize,
    bind: bool,
    variables: &[(&str, &str)],
    app: &str,
    args: &[&str],
) -> anyhow::Result<()> {
    succeeded(&launch(&spec(pes, bind, variables, app, args)?)?, app, pes)
}

fn spec(
    pes: usize,
    bind: bool,
    variables: &[(&str, &str)],
    app: &str,
    args: &[&str],
) -> anyhow::Result<JobSpec> {
    let this = std::env::current_exe().context("finding the path of this command")?;
    let args = ["app", app].iter().chain(args).map(Into::into).collect();
    // The benchmarks measure PEs that are processes.
    let variables = variables.iter().chain(&[("PELAGO_PES_PER_PROCESS", "1")]);
    let env = variables.map(|(name, value)| (name.into(), value.into())).collect();
    Ok(JobSpec { args, env, bind, ..JobSpec::new(pes, this) })
}

fn succeeded(report: &JobReport, app: &str, pes: usize) -> anyhow::Result<()> {
    match (report.failures.first(), report.status) {
        (Some(failure), _) => Err(error_of(failure).context(format!("{app} on {pes} PEs"))),
        (None, 0) => Ok(()),
        (None, status) => bail!("{app} on {pes} PEs: exit status {status}"),
    }
}

/// Reads lines of JSON.
///
/// # Errors
/// If a line is not valid.
pub fn parse<T: DeserializeOwned>(lines: &[String]) -> anyhow::Result<Vec<T>> {
    let read = |line: &String| serde_json::from_str(line).with_context(|| format!("reading {line:?}"));
    lines.iter().map(read).collect()
}
