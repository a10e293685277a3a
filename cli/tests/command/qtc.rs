//! `qtc` with PEs as processes: the clusters for any number of PEs, the output, and invalid arguments.

use serde_json::{Value, json};

use super::process::{run, run_with};

/// The JSON output of a successful `qtc` on `pes` PEs.
fn qtc(command: &[&str], points: &str) -> Value {
    let ended = run(&[command, &["qtc", "--points", points, "--json"]].concat());
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{command:?}, {points} points");
    assert_eq!(ended.stdout.lines().count(), 1, "not one line: {}", ended.stdout);
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn every_number_of_pes_finds_the_same_clusters() {
    for pes in ["1", "2", "3", "4", "8"] {
        let result = qtc(&["run", "-n", pes], "2048");
        assert_eq!((&result["app"], &result["verified"]), (&json!("qtc"), &json!(true)), "{result}");
        assert_eq!(result["pes"].to_string(), pes);
        assert_eq!(result["hash"], "00e30aef7dd797d2", "{result}");
        assert_eq!((&result["clusters"], &result["left"]), (&json!(283), &json!(59)), "{result}");
        assert!(result["seconds"].as_f64() > Some(0.0), "{result}");
    }
}

#[test]
fn the_group_of_pes_shrinks_with_the_points() {
    let shrinks = &qtc(&["run", "-n", "4"], "2048")["shrinks"];
    let expected = [(23, 1536, 3), (71, 1021, 2), (146, 511, 1)]
        .map(|(iteration, points, pes)| json!({ "iteration": iteration, "points": points, "pes": pes }));
    assert_eq!(*shrinks, json!(expected));
}

#[test]
fn the_memory_that_the_group_synchronised_on_is_told() {
    let direct = &qtc(&["run", "-n", "2"], "2048")["sync_memory"];
    assert_eq!(
        (&direct["scheduled"], &direct["slots"], &direct["teams"]),
        (&json!(false), &json!(0), &json!(1))
    );
    let variables = [("PELAGO_COLL_FORM", "schedule")];
    let ended = run_with(&["run", "-n", "4", "qtc", "--points", "2048", "--json"], &variables);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    let memory = &result["sync_memory"];
    // 22 rounds of four PEs, 48 of three, 75 of two: a barrier and two reductions each. Three PEs need 4
    // signals for each: one PE sends to another, these two exchange, one sends back.
    assert_eq!(memory["signals"], 22 * 3 * 8 + 48 * 3 * 4 + 75 * 3 * 2, "{memory}");
    assert_eq!((&memory["scheduled"], &memory["teams"]), (&json!(true), &json!(3)));
    assert_eq!((&memory["traditional"], &memory["traditional_max"]), (&json!(16), &json!(5)));
    assert_eq!((&memory["pairwise"], &memory["chores"]), (&json!(true), &json!(0)), "{memory}");
}

/// The group of 8 PEs loses one member after the other: pairs need less than an array for each group, in
/// words and in bytes.
#[test]
fn from_8_pes_on_pairs_need_less_memory_than_traditional_arrays() {
    for strategy in ["pairwise-doubling", "pairwise-structure", "pairwise-edges"] {
        let variables = [("PELAGO_COLL_FORM", "schedule"), ("PELAGO_SYNC_MEMORY", strategy)];
        let ended = run_with(&["run", "-n", "8", "qtc", "--json"], &variables);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{strategy}");
        let result: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((&result["verified"], &result["hash"]), (&json!(true), &json!("48d8120d57a4a301")));
        let memory = &result["sync_memory"];
        let of = |field: &str| memory[field].as_u64().unwrap_or_else(|| panic!("no {field} in {memory}"));
        assert_eq!((of("teams"), of("traditional"), of("traditional_max")), (7, 94, 17));
        // Three neighbours with two slots each.
        assert!(of("slots_max") <= 6 && of("words_max") < 17, "{strategy}: {memory}");
        assert!(of("bytes_max") < of("traditional_bytes_max"), "{strategy}: {memory}");
        // The bytes of pairs are those of data as well.
        assert!(of("words") < of("traditional") && 8 * of("words") < of("traditional_bytes"), "{memory}");
    }
}

#[test]
fn simulated_networks_change_no_cluster() {
    for options in [&["--bandwidth", "1G"][..], &["--chaos", "1"], &["--chaos", "2"]] {
        let result = qtc(&[&["sim", "-n", "3"], options].concat(), "1024");
        assert_eq!((&result["verified"], &result["clusters"]), (&json!(true), &json!(190)), "{options:?}");
    }
}

#[test]
fn the_page_for_people_has_clusters_group_and_verdict() {
    let ended = run(&["run", "-n", "3", "qtc", "--points", "1024"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let page = &ended.stdout;
    assert!(page.starts_with("QTC: 1024 points at threshold 1; number of PEs 3\n"), "{page}");
    for part in ["190, the largest of 31 points", "c1746dd7bde2541e", "            51          508     1\n"] {
        assert!(page.contains(part), "`{part}` is not in {page}");
    }
    assert!(page.ends_with("\nVerification: VERIFIED\n"), "{page}");
}

#[test]
fn help_teaches_by_examples() {
    let ended = run(&["run", "-n", "2", "qtc", "--help"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert_eq!(ended.stdout.matches("Usage:").count(), 1, "by one PE: {}", ended.stdout);
    assert!(ended.stdout.contains("  pelago run -n 4 qtc"), "{}", ended.stdout);
}

#[test]
fn wrong_points_and_thresholds_are_refused_once() {
    for (args, part) in [
        (["--points", "0"], "below 30 it divides by 0"),
        (["--points", "59"], "ask for 60 or more"),
        (["--threshold", "0"], "a distance above 0"),
        (["--threshold", "-1"], "a distance above 0"),
        (["--threshold", "NaN"], "a distance above 0"),
        (["--points", "4000000000"], "4000000000 points at threshold 1 need about "),
        (["--point", "100"], "'--points'"),
    ] {
        let ended = run(&[&["run", "-n", "2", "qtc"], &args[..]].concat());
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.matches(part).count(), 1, "{args:?}: {}", ended.stderr);
    }
}
