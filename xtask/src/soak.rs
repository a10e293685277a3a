//! `cargo xtask test --soak`: a campaign of jobs whose PEs or launcher are killed at random times, or whose
//! PEs are stopped for a while; with `--netns`, of jobs on two hosts that lose PEs, their launcher, or the
//! network between them. Each job must end in time, report the right reason, and leave nothing behind.
//!
//! Invariant: a job and its fault depend only on the seed of the campaign and the number of the job; the time
//! of the fault depends on the machine as well. `--seed S --only N` repeats a job.

mod job;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};

use crate::hosts::{self, Host};
use crate::install::Install;
use crate::workspace::{cargo, metadata, output_of};
use job::{Job, signal};

/// The limit for the end of a job after a process was killed.
const LIMIT: Duration = Duration::from_secs(10);
/// The limit for the end of a job without a fault, or which survives its fault.
const LIMIT_UNDISTURBED: Duration = Duration::from_secs(60);
/// The limit for the end of a job after the network was cut: the peers of a silent host give it up after
/// [`PEER_TIMEOUT`], and pending connections time out within 5 s.
const LIMIT_CUT: Duration = Duration::from_secs(30);
/// `PELAGO_PEER_TIMEOUT` of jobs on two hosts, in seconds.
const PEER_TIMEOUT: &str = "3";
/// How long the network stays cut, if it is restored.
const MENDED_AFTER: Duration = Duration::from_millis(300);
/// Within this time after the start, a launcher may not handle signals yet, or may not have been started in
/// its namespace; it then prints no reason.
const BEGINNING: Duration = Duration::from_millis(20);
/// The run time of a job, in seconds.
const SECONDS: &str = "0.6";
/// `PELAGO_STALL_REPORT`, in seconds.
const STALL_REPORT: &str = "1";
/// The last line of a successful job.
const RIGHT: &str = "all rounds are right";

/// The placement of the PEs of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    OneNode,
    /// Each PE on a separate node, over TCP.
    FarApart,
    /// Two PEs on each of two nodes.
    TwoNodes,
    /// Two PEs on each of two hosts.
    TwoHosts,
}

/// The fault that is injected into a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    PeDies { pe: usize, by: i32 },
    LauncherDies { by: i32 },
    PeStopsForAWhile { pe: usize },
    PeStaysStopped { pe: usize },
    CableIsCut,
    CableIsCutForAWhile,
}

/// One job of the campaign.
#[derive(Clone, Copy, Debug)]
struct Case {
    place: Place,
    in_c: bool,
    n_pes: usize,
    fault: Fault,
    after: Duration,
}

/// Pseudo-random numbers: splitmix64 (Steele, Lea, Flood 2014).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % limit.max(1) as u64) as usize
    }

    fn pick<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(things.len())]
    }
}

impl Case {
    fn of(seed: u64, number: u64, has_hosts: bool) -> Case {
        let mut dice = Dice(seed.wrapping_mul(1 << 32).wrapping_add(number));
        let place = dice.pick(&[Place::OneNode, Place::FarApart, Place::TwoNodes]);
        let place = if has_hosts { Place::TwoHosts } else { place };
        let n_pes = if place == Place::OneNode { 2 + dice.below(3) } else { 4 };
        let n_pes = if place == Place::FarApart { 2 } else { n_pes };
        let pe = dice.below(n_pes);
        let deadly = [libc::SIGKILL, libc::SIGSEGV, libc::SIGABRT, libc::SIGBUS, libc::SIGTERM];
        let fault = match dice.below(8) {
            0..4 => Fault::PeDies { pe, by: dice.pick(&deadly) },
            4..6 => Fault::LauncherDies { by: dice.pick(&[libc::SIGKILL, libc::SIGTERM, libc::SIGINT]) },
            6 if has_hosts => Fault::CableIsCutForAWhile,
            7 if has_hosts => Fault::CableIsCut,
            6 => Fault::PeStopsForAWhile { pe },
            _ => Fault::PeStaysStopped { pe },
        };
        let after = Duration::from_micros(dice.below(700_000) as u64);
        Case { place, in_c: dice.below(2) == 0, n_pes, fault, after }
    }

    fn command(&self, programs: &Programs) -> Command {
        let program = if self.in_c { &programs.in_c } else { &programs.in_rust };
        let mut command = match &programs.hosts {
            None => Command::new(&programs.launcher),
            Some(hosts) => {
                let mut command = hosts::on_first(hosts);
                command.arg(&programs.launcher);
                command
            }
        };
        command.arg("run");
        match &programs.hosts {
            None => command.args(["-n", &self.n_pes.to_string()]),
            Some(hosts) => command.args(hosts::launch_words(hosts, self.n_pes / 2)),
        };
        command.arg(program).arg(SECONDS);
        command.env("PELAGO_STALL_REPORT", STALL_REPORT);
        match self.place {
            Place::OneNode => {}
            Place::FarApart | Place::TwoNodes => _ = command.env("PELAGO_SIM_NODES", "2"),
            Place::TwoHosts => _ = command.env("PELAGO_PEER_TIMEOUT", PEER_TIMEOUT),
        }
        command
    }
}

/// The programs that the jobs run.
struct Programs {
    launcher: PathBuf,
    in_rust: PathBuf,
    in_c: PathBuf,
    folder: PathBuf,
    /// The hosts of the jobs; `None`: this machine.
    hosts: Option<[Host; 2]>,
}

impl Programs {
    fn build(netns: Option<&[String; 2]>) -> Result<Programs> {
        let hosts = netns.map(hosts::pair).transpose()?;
        let target = metadata()?.target_directory;
        let folder = target.join("soak");
        let prefix = folder.join("prefix");
        Install::dist(&prefix).run()?;
        let mut build = cargo(&["build", "--release", "-p", "pelago", "--example", "rounds"]);
        ensure!(build.status()?.success(), "cannot build pelago/examples/rounds.rs");
        let (source, in_c) = (folder.join("rounds.c"), folder.join("rounds"));
        std::fs::write(&source, include_str!("soak/rounds.c"))?;
        let mut compiler = Command::new(prefix.join("bin/oshcc"));
        let status = compiler.args(["-O2", "-o"]).arg(&in_c).arg(&source).status();
        ensure!(status.context("cannot run the installed oshcc")?.success(), "cannot compile rounds.c");
        let in_rust = target.join("release/examples/rounds");
        Ok(Programs { launcher: prefix.join("bin/pelago"), in_rust, in_c, folder, hosts })
    }

    /// Cuts the network between the hosts, or restores it.
    fn set_cable(&self, state: &str) -> Result<()> {
        let host = &self.hosts.as_ref().context("there is no cable")?[0];
        let mut command = Command::new("ip");
        output_of(command.args(["-n", &host.namespace, "link", "set", &host.device, state])).map(drop)
    }
}

/// Runs the jobs of a campaign, or one of them.
pub fn run(count: u64, seed: u64, only: Option<u64>, netns: Option<&[String; 2]>) -> Result<()> {
    let programs = Programs::build(netns)?;
    let numbers = only.map_or(0..count, |number| number..number + 1);
    println!("campaign of seed {seed}: {} jobs", numbers.end - numbers.start);
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} jobs, {elapsed}, {msg}")?;
    let bar = ProgressBar::new(numbers.end - numbers.start).with_style(style);
    let (mut tally, mut failures) = (Tally::default(), 0);
    for number in numbers {
        let case = Case::of(seed, number, programs.hosts.is_some());
        match play(&case, &programs, number) {
            Ok(outcome) => tally.add(case.fault, outcome),
            Err(error) => {
                failures += 1;
                bar.suspend(|| eprintln!("job {number} ({case:?}): {error:#}"));
            }
        }
        bar.inc(1);
        bar.set_message(format!("{failures} failed"));
    }
    bar.finish();
    println!("{tally}");
    ensure!(failures == 0, "{failures} jobs failed; one is repeated by --seed {seed} --only NUMBER");
    Ok(())
}

/// How a job ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// As expected after its fault, in this time.
    AsItMust(Duration),
    /// The job ended before the fault.
    OverBefore,
}

/// The number of jobs of each kind, and their times to end.
#[derive(Default)]
struct Tally {
    rows: std::collections::BTreeMap<&'static str, (u64, u64, Duration)>,
}

impl Tally {
    fn add(&mut self, fault: Fault, outcome: Outcome) {
        let kind = match fault {
            Fault::PeDies { .. } => "a PE dies",
            Fault::LauncherDies { .. } => "the launcher dies",
            Fault::PeStopsForAWhile { .. } => "a PE stops for a while",
            Fault::PeStaysStopped { .. } => "a PE stays stopped",
            Fault::CableIsCut => "the cable is cut",
            Fault::CableIsCutForAWhile => "the cable is cut a while",
        };
        let (count, before, longest) = self.rows.entry(kind).or_default();
        match outcome {
            Outcome::AsItMust(took) => (*count, *longest) = (*count + 1, took.max(*longest)),
            Outcome::OverBefore => *before += 1,
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{:<24} {:>6} {:>12} {:>12}", "what happened", "jobs", "over before", "longest end")?;
        for (kind, (count, before, longest)) in &self.rows {
            writeln!(f, "{kind:<24} {count:>6} {before:>12} {:>10.2} s", longest.as_secs_f64())?;
        }
        Ok(())
    }
}

fn play(case: &Case, programs: &Programs, number: u64) -> Result<Outcome> {
    let mark = format!("{}-{number}", std::process::id());
    let mut job = Job::start(case.command(programs), mark, programs.folder.join("output"))?;
    let outcome = disturb(case, &mut job, programs).with_context(|| format!("it said: {}", job.output()));
    let left = job.processes();
    job.clean_up()?;
    let outcome = outcome?;
    ensure!(left.is_empty(), "processes {left:?} were left");
    let names = std::fs::read_dir("/dev/shm").into_iter().flatten();
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let memory: Vec<_> = names.filter(|name| name.contains("pelago")).collect();
    ensure!(memory.is_empty(), "memory was left in /dev/shm: {memory:?}");
    Ok(outcome)
}

fn disturb(case: &Case, job: &mut Job, programs: &Programs) -> Result<Outcome> {
    thread::sleep(case.after);
    match case.fault {
        Fault::PeDies { pe, by } => {
            let Some(pid) = job.pe(pe, LIMIT)? else { return over_before(job) };
            signal(pid, by);
            let (status, took) = end(job, LIMIT)?;
            let place = match &programs.hosts {
                None => String::new(),
                Some(hosts) => format!(" on host {}", hosts[pe / (case.n_pes / 2)].address),
            };
            let reason = format!("PE {pe}{place} (pid {pid}) was killed by signal {by} ");
            after_death(job, status, &reason, took)
        }
        Fault::LauncherDies { by } => {
            signal(job.launcher(), by);
            let (status, took) = end(job, LIMIT)?;
            if status.success() {
                return over_before(job);
            }
            if case.after < BEGINNING && status.signal() == Some(by) && job.output().is_empty() {
                return Ok(Outcome::OverBefore);
            }
            let said = if by == libc::SIGKILL { "" } else { "to the launcher" };
            after_death(job, status, said, took)
        }
        Fault::PeStopsForAWhile { pe } => {
            let Some(pid) = job.pe(pe, LIMIT)? else { return over_before(job) };
            signal(pid, libc::SIGSTOP);
            thread::sleep(Duration::from_millis(300));
            signal(pid, libc::SIGCONT);
            right(job)
        }
        Fault::PeStaysStopped { pe } => {
            let Some(pid) = job.pe(pe, LIMIT)? else { return over_before(job) };
            signal(pid, libc::SIGSTOP);
            let named = format!("PE {pe} is stopped by a signal");
            let deadline = Instant::now() + LIMIT;
            while !job.output().contains(&named) {
                if job.output().contains(RIGHT) {
                    signal(pid, libc::SIGCONT);
                    return right(job);
                }
                ensure!(Instant::now() < deadline, "nobody has said that {named}");
                thread::sleep(Duration::from_millis(20));
            }
            signal(pid, libc::SIGCONT);
            right(job)
        }
        Fault::CableIsCut => {
            programs.set_cable("down")?;
            let ended = end(job, LIMIT_CUT);
            programs.set_cable("up")?;
            let (status, took) = ended?;
            after_death(job, status, "PE", took)
        }
        Fault::CableIsCutForAWhile => {
            programs.set_cable("down")?;
            thread::sleep(MENDED_AFTER);
            programs.set_cable("up")?;
            right(job)
        }
    }
}

/// Waits for the end of a job; returns its status and the time it took.
fn end(job: &mut Job, limit: Duration) -> Result<(ExitStatus, Duration)> {
    let start = Instant::now();
    match job.end(limit)? {
        Some(status) => Ok((status, start.elapsed())),
        None => bail!("after {limit:?} these processes are left: {:?}", job.processes()),
    }
}

/// Checks the end of a job that was killed, or whose signal came too late.
fn after_death(job: &Job, status: ExitStatus, reason: &str, took: Duration) -> Result<Outcome> {
    let output = job.output();
    if status.success() && output.contains(RIGHT) {
        return Ok(Outcome::OverBefore);
    }
    ensure!(!status.success(), "it ended with status 0, though it was killed");
    ensure!(output.contains(reason), "it does not say {reason:?}");
    Ok(Outcome::AsItMust(took))
}

fn right(job: &mut Job) -> Result<Outcome> {
    let (status, took) = end(job, LIMIT_UNDISTURBED)?;
    ensure!(status.success() && job.output().contains(RIGHT), "it ended with {status}");
    Ok(Outcome::AsItMust(took))
}

/// Checks that the job succeeded before the fault.
fn over_before(job: &mut Job) -> Result<Outcome> {
    let (status, _) = end(job, LIMIT_UNDISTURBED)?;
    ensure!(status.success() && job.output().contains(RIGHT), "it ended with {status}");
    Ok(Outcome::OverBefore)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::mem::discriminant;

    #[test]
    fn a_campaign_has_every_kind_of_job_and_is_the_same_each_time() {
        let cases = |has_hosts: bool| (0..500).map(move |number| Case::of(7, number, has_hosts));
        for place in [Place::OneNode, Place::FarApart, Place::TwoNodes, Place::TwoHosts] {
            for in_c in [false, true] {
                let all = cases(place == Place::TwoHosts);
                let of_kind = all.filter(|case| case.place == place && case.in_c == in_c);
                let kinds: HashSet<_> = of_kind.map(|case| discriminant(&case.fault)).collect();
                assert_eq!(kinds.len(), 4, "{place:?}, in C: {in_c}");
            }
        }
        assert!(
            cases(false).zip(cases(false)).all(|(one, other)| format!("{one:?}") == format!("{other:?}"))
        );
    }
}
