//! A job of the application `perf`. Invariant: its lines come back through memory of this process, so that
//! nothing is left behind, and standard error stays the user's: progress and complaints.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;

use anyhow::{Context, bail};
use pelago_boot::{JobReport, JobSpec, launch};
use rustix::fs::{MemfdFlags, memfd_create};
use serde::de::DeserializeOwned;

use crate::interrupt::error_of;

/// Starts `perf` with these arguments on `pes` PEs; the lines that it writes.
///
/// # Errors
/// If the job cannot be started or fails.
pub fn perf(pes: usize, bind: bool, args: &[&str]) -> anyhow::Result<Vec<String>> {
    perf_with(pes, bind, &[], args)
}

/// As [`perf`], with these variables set in every PE.
///
/// # Errors
/// If the job cannot be started or fails.
pub fn perf_with(
    pes: usize,
    bind: bool,
    variables: &[(&str, &str)],
    args: &[&str],
) -> anyhow::Result<Vec<String>> {
    let file = memfd_create("pelago-bench", MemfdFlags::CLOEXEC).context("making room for measurements")?;
    let mut file = File::from(file);
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    run_with(pes, bind, variables, "perf", &[args, &["--output", &path]].concat())?;
    let mut text = String::new();
    file.read_to_string(&mut text).context("reading the measurements")?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Starts a built-in application on `pes` PEs, and waits for its end.
///
/// # Errors
/// If the job cannot be started or fails.
pub fn run(pes: usize, bind: bool, app: &str, args: &[&str]) -> anyhow::Result<()> {
    run_with(pes, bind, &[], app, args)
}

fn run_with(
    pes: usize,
    bind: bool,
    variables: &[(&str, &str)],
    app: &str,
    args: &[&str],
) -> anyhow::Result<()> {
    let this = std::env::current_exe().context("finding the path of this command")?;
    let args = ["app", app].iter().chain(args).map(Into::into).collect();
    // What is measured are PEs that are processes.
    let variables = variables.iter().chain(&[("PELAGO_PES_PER_PROCESS", "1")]);
    let env = variables.map(|(name, value)| (name.into(), value.into())).collect();
    let spec = JobSpec { args, env, bind, ..JobSpec::new(pes, this) };
    let JobReport { status, failures, .. } = launch(&spec)?;
    match failures.first() {
        Some(failure) => Err(error_of(failure).context(format!("{app} on {pes} PEs"))),
        None if status != 0 => bail!("{app} on {pes} PEs: exit status {status}"),
        None => Ok(()),
    }
}

/// Reads lines of JSON.
///
/// # Errors
/// If a line is something else.
pub fn parse<T: DeserializeOwned>(lines: &[String]) -> anyhow::Result<Vec<T>> {
    let read = |line: &String| serde_json::from_str(line).with_context(|| format!("reading {line:?}"));
    lines.iter().map(read).collect()
}
