//! Jobs that succeed: the results, counts and output of the built-in applications, with PEs as processes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::process::{run, run_with};

/// The known data of a class of the benchmark: points of the grid, iterations, work in 10^9 operations.
struct Class {
    name: &'static str,
    points: u64,
    iterations: u64,
    gigaflop: f64,
}

const S: Class = Class { name: "S", points: 64 * 64 * 64, iterations: 6, gigaflop: 0.1772 };
const W: Class = Class { name: "W", points: 128 * 128 * 32, iterations: 6, gigaflop: 0.3727 };
#[cfg(feature = "full")]
const A: Class = Class { name: "A", points: 256 * 256 * 128, iterations: 6, gigaflop: 7.1364 };
#[cfg(feature = "full")]
const B: Class = Class { name: "B", points: 512 * 256 * 256, iterations: 20, gigaflop: 92.054 };

/// All variants of ft, in their order.
pub const VARIANTS: [&str; 3] = ["exchange", "slabs", "pencils"];
const DEFAULT_VARIANT: &str = "slabs";

/// Runs the class with the variant `exchange` on `pes` PEs and checks its JSON output.
fn assert_ft(class: &Class, pes: u64) {
    let options = ["--class", class.name, "--variant", "exchange", "--json"];
    let ended = run(&[&["run", "-n", &pes.to_string(), "ft"], &options[..]].concat());
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "class {} on {pes}", class.name);
    assert_ft_json_of(&ended.stdout, class.name, pes, "exchange");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    let number = |field: &str| result[field].as_f64().unwrap();
    let (seconds, gigaflop) = (number("seconds"), number("seconds") * number("mops") * 1e-3);
    assert!((gigaflop / class.gigaflop - 1.0).abs() < 1e-3, "the work is {gigaflop}: {result}");
    let phases = result["phases"].as_object().unwrap();
    let names: BTreeSet<_> = phases.keys().map(String::as_str).collect();
    let expected =
        ["barrier", "communication_start", "communication_wait", "in_memory_transfer", "local_fft", "other"];
    assert_eq!(names, BTreeSet::from(expected));
    let spent = |kind: &str| phases.values().map(|phase| phase[kind].as_f64().unwrap()).sum::<f64>();
    assert!(phases.values().all(|phase| phase["mean"].as_f64() >= Some(0.0)), "{result}");
    assert!(0.0 < spent("mean") && spent("mean") <= seconds * 1.000001, "{result}");
    assert!(seconds <= spent("max") * 1.000001, "{result}");
    let messages = pes * (1 + class.iterations);
    assert_eq!(result["messages"], messages, "one message a PE and transform: {result}");
    assert_eq!(result["bytes"], messages * (16 * class.points / (pes * pes)), "{result}");
}

/// Checks that `text` is one line, the result of a verified run of the class on `pes` PEs, by the default
/// variant.
pub fn assert_ft_json(text: &str, class: &str, pes: u64) {
    assert_ft_json_of(text, class, pes, DEFAULT_VARIANT);
}

/// As [`assert_ft_json`], for a variant.
pub fn assert_ft_json_of(text: &str, class: &str, pes: u64, variant: &str) {
    assert_eq!(text.lines().count(), 1, "not one line: {text:?}");
    let result: Value = serde_json::from_str(text).unwrap();
    let expected: [(&str, Value); 5] = [
        ("app", "ft".into()),
        ("class", class.into()),
        ("variant", variant.into()),
        ("pes", pes.into()),
        ("verified", true.into()),
    ];
    for (field, value) in expected {
        assert_eq!(result[field], value, "{field} of {text}");
    }
    assert!(result["mops"].as_f64() > Some(0.0) && result["seconds"].as_f64() > Some(0.0), "{text}");
}

/// Checks that each of `pes` PEs, and no other PE, has printed its line once.
pub fn assert_hello(text: &str, pes: usize) {
    let mut found: Vec<_> = text.lines().map(|line| line.split(" on node ").next().unwrap()).collect();
    let mut expected: Vec<_> = (0..pes).map(|pe| format!("Hello from PE {pe} of {pes}")).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn class_s_is_verified() {
    [1, 2, 4, 8].into_iter().for_each(|pes| assert_ft(&S, pes));
}

#[test]
fn class_w_is_verified() {
    [1, 2, 4, 8].into_iter().for_each(|pes| assert_ft(&W, pes));
}

#[cfg(feature = "full")]
#[test]
fn class_a_is_verified() {
    [1, 2, 4, 8].into_iter().for_each(|pes| assert_ft(&A, pes));
}

#[cfg(feature = "full")]
#[test]
fn class_b_is_verified() {
    assert_ft(&B, 2);
}

#[test]
fn ft_is_verified_with_every_barrier_and_counted() {
    for barrier in ["flags", "counter", "dissemination"] {
        let variables = [("PELAGO_BARRIER", barrier), ("PELAGO_COUNTERS", "on")];
        let ended = run_with(&["run", "-n", "4", "ft", "--json"], &variables);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{barrier}");
        assert_ft_json(&ended.stdout, "S", 4);
    }
}

#[test]
fn the_page_for_people_has_checksums_phases_and_verdict() {
    let ended = run(&["run", "-n", "2", "ft"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let page = &ended.stdout;
    assert!(page.starts_with("NAS FT class S: grid 64 x 64 x 64, 6 iterations"), "{page}");
    assert!(page.ends_with("\nVerification: VERIFIED\n"), "{page}");
    // The first and the last checksum of class S, as published by NASA.
    for checksum in ["554.608700496", "484.536333197", "554.268341190", "493.259724494"] {
        assert!(page.contains(checksum), "{checksum} is not in {page}");
    }
    for phase in ["local FFT", "communication start", "communication wait", "barrier", "messages", "Mop/s"] {
        assert!(page.contains(phase), "{phase} is not in {page}");
    }
}

#[test]
fn all_variants_are_compared() {
    let ended = run(&["run", "-n", "2", "ft", "--variant", "all"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let (_, table) = ended.stdout.rsplit_once("\n\n").unwrap();
    let rows: Vec<_> = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!((rows.len(), rows[0][0]), (1 + VARIANTS.len(), "variant"), "{table}");
    for (row, variant) in rows[1..].iter().zip(VARIANTS) {
        assert_eq!((row.first(), row.last()), (Some(&variant), Some(&"VERIFIED")), "{table}");
    }
    let lines = run(&["run", "-n", "2", "ft", "--variant", "all", "--json"]).stdout;
    assert_eq!(lines.lines().count(), VARIANTS.len(), "{lines}");
    lines.lines().zip(VARIANTS).for_each(|(line, variant)| assert_ft_json_of(line, "S", 2, variant));
}

#[test]
fn every_variant_is_verified() {
    for (class, pes, variant) in ["S", "W"]
        .into_iter()
        .flat_map(|class| [1, 2, 4, 8].map(|pes| (class, pes)))
        .flat_map(|(class, pes)| VARIANTS.map(|variant| (class, pes, variant)))
    {
        let ended =
            run(&["run", "-n", &pes.to_string(), "ft", "--class", class, "--variant", variant, "--json"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{variant}, class {class} on {pes}");
        assert_ft_json_of(&ended.stdout, class, pes, variant);
    }
}

#[test]
fn one_transform_is_timed_and_verified() {
    let ended = run(&[
        "run",
        "-n",
        "2",
        "ft",
        "--transform",
        "64x32x16",
        "--variant",
        "all",
        "--repeat",
        "2",
        "--json",
    ]);
    assert_eq!((ended.status, ended.stderr.as_str(), ended.stdout.lines().count()), (0, "", VARIANTS.len()));
    for (line, variant) in ended.stdout.lines().zip(VARIANTS) {
        let result: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&result["variant"], &result["verified"]), (&variant.into(), &true.into()), "{line}");
        assert_eq!(result["seconds"].as_array().map(Vec::len), Some(2), "{line}");
    }
}

#[test]
fn every_variant_is_verified_on_a_process_grid_and_over_every_transport() {
    let runs = |pes: &str, options: &[&str], variants: &[&str]| {
        let ended = run(&[&["run", "-n", pes, "ft", "--json"], options].concat());
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{options:?}");
        assert_eq!(ended.stdout.lines().count(), variants.len(), "{}", ended.stdout);
        for (line, variant) in ended.stdout.lines().zip(variants) {
            assert_ft_json_of(line, "S", pes.parse().unwrap(), variant);
            let share = serde_json::from_str::<Value>(line).unwrap()["overlap"]["share"].as_f64();
            assert!((0.0..=1.0).contains(&share.unwrap()), "{line}");
        }
    };
    let all = [["packed-slabs"; 3], ["slabs"; 3]].concat();
    for (pes, grid) in [("1", "1x1"), ("2", "2x1"), ("4", "2x2"), ("4", "auto"), ("8", "4x2")] {
        runs(pes, &["--grid", grid, "--variant", "all", "--transport", "all"], &all);
    }
    runs("2", &["--variant", "packed-slabs"], &["packed-slabs"]);
    runs("4", &["--variant", "all", "--transport", "collectives"], &VARIANTS);
}

#[test]
fn wrong_process_grids_are_refused_once_with_a_remedy() {
    for (options, part) in [
        (&["--grid", "2x2"][..], "ft: the process grid 2x2 has 4 PEs, but the job has 3; run 4 PEs"),
        (&["--grid", "3x1"], "does not divide the grid 64 x 64 x 64: TY must divide x and y"),
        (&["--grid", "auto"], "no process grid of 3 PEs divides the grid 64 x 64 x 64; possible numbers"),
        (
            &["--grid", "auto", "--variant", "pencils"],
            "leave --grid out, or take --variant packed-slabs or slabs",
        ),
        (&["--grid", "2"], "a process grid is TYxTZ, two numbers of PEs from 1 to 65536 as 2x4, or auto"),
        (&["--transport", "sockets"], "the transports are one-sided, two-sided, collectives, all"),
    ] {
        let ended = run(&[&["run", "-n", "3", "ft"], options].concat());
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{options:?}");
        assert_eq!(ended.stderr.matches(part).count(), 1, "{options:?}: {}", ended.stderr);
    }
}

#[test]
fn hello_prints_a_line_from_every_pe() {
    for pes in [1, 5] {
        let ended = run(&["run", "-n", &pes.to_string(), "hello"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
        assert_hello(&ended.stdout, pes);
    }
    assert_hello(&run(&["app", "hello"]).stdout, 1);
    let tagged = run(&["run", "-n", "3", "--bind", "--tag-output", "hello"]).stdout;
    for pe in 0..3 {
        let start = format!("[{pe}] Hello from PE {pe} of 3 ");
        assert!(tagged.lines().any(|line| line.starts_with(&start)), "no {start:?} in {tagged}");
    }
}

#[test]
fn ring_counts_its_hops() {
    for (pes, rounds, hops) in [(1, 1, 1), (2, 50, 100), (5, 7, 35)] {
        let (pes, rounds) = (pes.to_string(), rounds.to_string());
        let ended = run(&["run", "-n", &pes, "ring", "--rounds", &rounds]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
        let start = format!("ring: {rounds} rounds of {pes} PEs, {hops} hops, ");
        assert!(ended.stdout.starts_with(&start) && ended.stdout.lines().count() == 1, "{}", ended.stdout);
    }
}

#[test]
fn sixty_four_pes_start_meet_and_end() {
    let ended = run(&["run", "-n", "64", "ring", "--rounds", "2"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.starts_with("ring: 2 rounds of 64 PEs, 128 hops, "), "{}", ended.stdout);
    assert_hello(&run(&["run", "-n", "64", "hello"]).stdout, 64);
    assert_ft(&S, 64);
}

#[test]
fn a_program_runs_with_its_own_options() {
    let ended =
        run(&["run", "-n", "2", "--env", "COLOUR=deep red", "sh", "-c", "echo $COLOUR $1", "-", "-n"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "deep red -n\ndeep red -n\n"));
}
