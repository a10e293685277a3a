//! The applications of irregular access: `gups`, `hash-table`, `histogram`, `index-gather`.

use pelago::sim::SimParams;
use pelago::testing::{JobReport, expect_success};
use pelago::{Spmd, World, processes, try_processes};

use super::{NET, USAGE, check_refused, end, objects};

/// Checks what `gups --method all --json` has printed.
fn check_gups(report: &JobReport, words: u64, updates: u64) {
    let objects = objects(report);
    let names: Vec<_> = objects.iter().map(|object| object["method"].as_str().unwrap_or_default()).collect();
    assert_eq!(names, ["put-get", "atomics", "messages"]);
    for object in &objects {
        let [found_words, found_updates, pes] =
            ["table_words", "updates", "pes"].map(|field| object[field].as_u64());
        assert_eq!((found_words, found_updates), (Some(words), Some(updates)), "{object}");
        assert_eq!(pes, Some(report.output.len() as u64), "{object}");
        let (errors, gups) = (object["errors"].as_u64(), object["gups"].as_f64());
        let allowed = if object["method"] == "put-get" { words / 100 } else { 0 };
        assert!(errors <= Some(allowed) && gups > Some(0.0), "{object}");
        assert_eq!(object["verified"], true, "{object}");
    }
}

#[test]
fn gups_is_verified_on_one_two_and_four_processes() {
    let line = "gups --method all --table-log2 16 --json";
    let reports = [
        try_processes!(1, [], |world| end(world, line, 0)),
        try_processes!(2, [], |world| end(world, line, 0)),
        try_processes!(4, [], |world| end(world, line, 0)),
    ];
    reports.iter().for_each(|report| check_gups(report, 1 << 16, 4 << 16));
}

#[test]
fn gups_is_verified_where_the_table_does_not_divide_evenly() {
    let line = "gups --method all --table-log2 16 --updates 100001 --json";
    let reports = [
        try_processes!(3, [], |world| end(world, line, 0)),
        try_processes!(8, [], |world| end(world, line, 0)),
    ];
    reports.iter().for_each(|report| check_gups(report, 1 << 16, 100_001));
}

#[test]
fn gups_is_verified_over_the_net() {
    let line = "gups --method all --table-log2 16 --updates 20000 --json";
    let reports = [
        try_processes!(2, NET, |world| end(world, line, 0)),
        try_processes!(3, NET, |world| end(world, line, 0)),
    ];
    reports.iter().for_each(|report| check_gups(report, 1 << 16, 20_000));
}

#[test]
fn the_hash_table_is_verified_as_processes() {
    let line = "hash-table --keys 30000 --json";
    let reports = [
        try_processes!(2, [], |world| end(world, line, 0)),
        try_processes!(3, [], |world| end(world, line, 0)),
    ];
    processes!(2, |world| end(world, "hash-table --keys 1", 0));
    for report in reports {
        let [object] = &objects(&report)[..] else { panic!("not one object") };
        let counts = ["answers", "wrong", "left"].map(|field| object[field].as_u64());
        assert_eq!(counts, [Some(90_000), Some(0), Some(15_000)], "{object}");
    }
}

#[test]
fn the_hash_table_is_verified_over_the_net() {
    let report = try_processes!(3, NET, |world| end(world, "hash-table --keys 3000 --json", 0));
    assert_eq!(objects(&report)[0]["verified"], true);
}

#[test]
fn histogram_and_index_gather_are_verified_as_processes() {
    let both = |world: &World| {
        end(world, "histogram --table 1000 --indices 20000 --json", 0);
        end(world, "index-gather --table 1000 --indices 20000 --json", 0);
    };
    let reports = [try_processes!(2, [], both), { try_processes!(4, [], both) }];
    reports.iter().for_each(|report| check_both(report, 20_000));
}

#[test]
fn histogram_and_index_gather_are_verified_over_the_net() {
    let both = |world: &World| {
        end(world, "histogram --table 1000 --indices 3000 --json", 0);
        end(world, "index-gather --table 1000 --indices 3000 --json", 0);
    };
    check_both(&try_processes!(3, NET, both), 3000);
}

/// Checks what `histogram` and `index-gather` have printed.
fn check_both(report: &JobReport, indices: u64) {
    let objects = objects(report);
    let names: Vec<_> = objects.iter().map(|object| object["app"].as_str().unwrap_or_default()).collect();
    assert_eq!(names, ["histogram", "index-gather"]);
    for object in &objects {
        assert_eq!((&object["verified"], &object["wrong"]), (&true.into(), &0.into()), "{object}");
        let ways = object["ways"].as_array().map_or(&[][..], Vec::as_slice);
        let all = report.output.len() as u64 * indices;
        assert!(ways.len() == 3 && ways.iter().all(|way| way["operations"] == all), "{object}");
    }
}

#[test]
fn all_are_verified_on_simulated_networks() {
    for (pes, seed) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
        let job = Spmd::new(pes).sim(SimParams::chaos(seed)).run(|world| {
            end(world, "gups --method all --table-log2 12 --updates 1000", 0);
            end(world, "hash-table --keys 200", 0);
            end(world, "histogram --table 50 --indices 200", 0);
            end(world, "index-gather --table 50 --indices 200", 0);
        });
        job.unwrap_or_else(|error| panic!("{pes} PEs on the simulated network of seed {seed}: {error}"));
    }
}

#[test]
fn updates_that_are_lost_are_no_success() {
    // One word, which all PEs have in their hands most of the time.
    let job = Spmd::new(3).sim(SimParams::chaos(1)).run(|world| {
        end(world, "gups --method put-get --table-log2 0 --updates 300", 1);
        end(world, "gups --method all --table-log2 0 --updates 300", 1);
        end(world, "gups --method atomics --table-log2 0 --updates 300", 0);
    });
    job.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn tables_too_large_say_what_to_set() {
    const SMALL: [(&str, &str); 1] = [("PELAGO_HEAP_SIZE", "4m")];
    let gups = try_processes!(2, SMALL, |world| end(world, "gups --table-log2 20", USAGE));
    let histogram = try_processes!(2, SMALL, |world| end(world, "histogram --table 600000", USAGE));
    let enough = [("PELAGO_HEAP_SIZE", "6m")];
    expect_success(&try_processes!(2, enough, |world| end(world, "gups --table-log2 20 --updates 9", 0)));
    check_refused(&gups, "gups: a table of 2^20 words needs 4 MiB of", &["set PELAGO_HEAP_SIZE=6m"]);
    check_refused(&histogram, "histogram: a table of 600000 words", &["set PELAGO_HEAP_SIZE=6m"]);
}

#[test]
fn tables_too_large_for_the_machine_say_what_to_make_smaller() {
    let gups = try_processes!(2, [], |world| end(world, "gups --table-log2 50", USAGE));
    let keys = try_processes!(2, [], |world| end(world, "hash-table --keys 1000000000000", USAGE));
    check_refused(&gups, "gups: a table of 2^50 words", &["take a smaller --table-log2"]);
    check_refused(&keys, "hash-table: a table of 1000000000000 keys", &["take a smaller --keys"]);
}

#[test]
fn arguments_that_make_no_sense_are_refused_once() {
    let reports = [
        try_processes!(2, [], |world| end(world, "gups --method put", USAGE)),
        try_processes!(2, [], |world| end(world, "gups --updates 0", USAGE)),
        try_processes!(2, [], |world| end(world, "hash-table --keys 0", USAGE)),
        try_processes!(2, [], |world| end(world, "index-gather --indices 0", USAGE)),
    ];
    let parts = [
        ["--method", "the methods are put-get, atomics, messages, all"],
        ["--updates", "1..=1000000000000000000"],
        ["--keys", "1..=1000000000000"],
        ["--indices", "1..=4294967295"],
    ];
    for (report, parts) in reports.iter().zip(&parts) {
        check_refused(report, "error: ", parts);
    }
}

#[test]
fn help_teaches_by_examples() {
    let reports = [
        try_processes!(2, [], |world| end(world, "gups --help", 0)),
        try_processes!(2, [], |world| end(world, "hash-table --help", 0)),
        try_processes!(2, [], |world| end(world, "histogram --help", 0)),
        try_processes!(2, [], |world| end(world, "index-gather --help", 0)),
    ];
    for (report, name) in reports.iter().zip(["gups", "hash-table", "histogram", "index-gather"]) {
        expect_success(report);
        let said = report.output.iter().map(|output| output.stdout.as_str()).collect::<String>();
        assert!(said.contains(&format!("  pelago run -n 2 {name} ")), "{said}");
        assert_eq!(said.matches("Usage:").count(), 1, "by one PE: {said}");
    }
}
