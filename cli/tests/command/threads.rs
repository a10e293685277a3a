//! Jobs whose PEs are threads of several processes.

use std::collections::BTreeMap;

use rustix::process::{Signal, kill_process};

use super::jobs::{VARIANTS, assert_ft_json_of, assert_hello};
use super::process::{Started, pelago, run, run_with};

/// The number of times that each word follows `marker` in a text.
fn counts<'a>(text: &'a str, marker: &str) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let (_, word) = line.rsplit_once(marker).unwrap_or_else(|| panic!("no {marker:?} in {text}"));
        *counts.entry(word).or_default() += 1;
    }
    counts
}

#[test]
fn every_pe_says_hello() {
    for (n, each, processes) in [(6, "3", 2), (4, "4", 1), (3, "1", 3)] {
        let ended = run(&["run", "-n", &n.to_string(), "--pes-per-process", each, "hello"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
        assert_hello(&ended.stdout, n);
        let pids = counts(&ended.stdout, ", pid ");
        assert!(pids.len() == processes && pids.values().all(|&pes| pes == n / processes), "{pids:?}");
    }
    let alone = run_with(&["app", "hello"], &[("PELAGO_PES_PER_PROCESS", "3")]);
    assert_hello(&alone.stdout, 3);
}

#[test]
fn a_line_has_the_pes_of_its_process_before_it() {
    let words = ["run", "-n", "4", "--pes-per-process", "2", "--bind", "--tag-output", "hello"];
    let text = run(&words).stdout;
    for (pe, process) in [(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")] {
        let start = format!("[{process}] Hello from PE {pe} of 4 ");
        assert!(text.lines().any(|line| line.starts_with(&start)), "no {start:?} in {text}");
    }
}

#[test]
fn every_variant_of_ft_is_verified() {
    for (n, each, route) in [(4, "2", "auto"), (8, "4", "auto"), (4, "2", "net")] {
        let pes = n.to_string();
        let words = ["run", "-n", &pes, "--pes-per-process", each, "ft", "--variant", "all", "--json"];
        let ended = run_with(&words, &[("PELAGO_ROUTE", route)]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{n}, {each}, {route}");
        assert_eq!(ended.stdout.lines().count(), VARIANTS.len(), "{}", ended.stdout);
        let rows = ended.stdout.lines().zip(VARIANTS);
        rows.for_each(|(line, variant)| assert_ft_json_of(line, "S", n, variant));
    }
}

#[test]
fn a_killed_process_is_named_by_its_pes() {
    for (victim, pes) in [(0, "0-1"), (1, "2-3")] {
        let words = ["run", "-n", "4", "--pes-per-process", "2", "ft", "--class", "B"];
        let job = Started::new(pelago(&words));
        let pid = job.pes_at_work(2)[victim];
        kill_process(pid, Signal::KILL).unwrap();
        let ended = job.end();
        let pid = pid.as_raw_nonzero();
        let message = format!("pelago run: PEs {pes} (pid {pid}) were killed by signal 9 (SIGKILL): ");
        assert!(ended.stderr.starts_with(&message), "{}", ended.stderr);
        assert_eq!((ended.status, ended.stderr.lines().count(), &*ended.stdout), (128 + 9, 1, ""));
    }
}

/// An error that all PEs detect is printed once, and determines the status of the job.
#[test]
fn what_no_pe_can_do_is_said_once() {
    let ended = run(&["run", "-n", "6", "--pes-per-process", "3", "ft"]);
    assert_eq!((ended.status, ended.stderr.matches("among 6 PEs").count()), (2, 1), "{}", ended.stderr);
    let help = run(&["run", "-n", "4", "--pes-per-process", "2", "ft", "--help"]);
    assert_eq!((help.status, help.stdout.matches("Usage:").count()), (0, 1), "{}", help.stdout);
}

#[test]
fn info_says_which_pes_a_process_has() {
    let this = env!("CARGO_BIN_EXE_pelago");
    let text = run(&["run", "-n", "4", "--pes-per-process", "2", "--tag-output", this, "info"]).stdout;
    for pes in ["0-1", "2-3"] {
        let line = format!("[{pes}] launcher  PMI-1: this process is PEs {pes} of 4");
        assert!(text.lines().any(|found| found == line), "no {line:?} in {text}");
    }
    let text = run_with(&["info"], &[("PELAGO_PES_PER_PROCESS", "3")]).stdout;
    assert!(text.contains("a program started from here is a job of 3 PEs\n"), "{text}");
}
