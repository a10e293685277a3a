//! `pelago bench sync-memory`: the counts, the measurements and the output.

use std::fs;

use serde_json::Value;

use super::process::run;

const STRATEGIES: [&str; 5] =
    ["additional", "barrier", "pairwise-doubling", "pairwise-structure", "pairwise-edges"];

/// The lines of `bench sync-memory --json` of one source.
fn lines(options: &[&str], source: &str) -> Vec<Value> {
    let ended = run(&[&["bench", "sync-memory", "--json"], options].concat());
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{options:?}");
    let all: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(all.iter().all(|line| line["bench"] == "sync-memory"), "{}", ended.stdout);
    all.into_iter().filter(|line| line["source"] == source).collect()
}

#[test]
fn every_strategy_is_counted_and_measured() {
    for (source, pes) in [("counted", &[2, 4, 8, 16][..]), ("measured", &[2, 4, 8])] {
        let lines = lines(&["-n", "16"], source);
        let found = lines.iter().map(|line| (line["pes"].as_u64(), line["strategy"].as_str()));
        let expected = pes.iter().flat_map(|pes| STRATEGIES.map(|name| (Some(*pes), Some(name))));
        assert!(found.eq(expected), "{source}: {lines:?}");
    }
    let graphs = lines(&["-n", "2"], "graph");
    let edges: Vec<_> = graphs.iter().map(|graph| graph["edges"].as_u64().unwrap()).collect();
    assert_eq!(edges[..3], [64, 48, 32], "{graphs:?}");
}

#[test]
fn measured_slots_are_within_what_is_counted() {
    let (counted, measured) = (lines(&["-n", "8"], "counted"), lines(&["-n", "8"], "measured"));
    for (counted, measured) in counted.iter().zip(&measured) {
        let words = counted["words_max"].as_u64().unwrap();
        let slots = measured["slots_max"].as_u64().unwrap();
        assert!(0 < slots && slots <= words, "{measured} beside {counted}");
        assert_eq!(counted["bytes_max"].as_u64(), Some(8 * words));
    }
}

#[test]
fn rare_barriers_cost_messages_where_they_free_arrays() {
    let messages = |collectives: &str| {
        let counted = lines(&["-n", "4", "--collectives", collectives], "counted");
        [1, 2].map(|strategy| counted[5 + strategy]["operations"][2]["messages_max"].as_f64().unwrap())
    };
    assert_eq!(messages("6"), [2.0, 2.0]);
    assert_eq!(messages("7"), [2.25, 2.0]);
}

#[test]
fn tables_and_page_show_what_there_is() {
    let file = std::env::temp_dir().join(format!("sync-memory-{}.html", std::process::id()));
    let ended = run(&["bench", "sync-memory", "-n", "16", "--html", file.to_str().unwrap()]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let page = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert!(STRATEGIES.iter().all(|name| ended.stdout.contains(name) && page.contains(name)), "{page}");
    assert!(ended.stdout.contains("in brackets rounds, of the worst root"), "{}", ended.stdout);
    assert!(ended.stdout.contains("\nCounted: ") && ended.stdout.contains("\nMeasured: "));
    assert_eq!(page.matches("<svg").count(), 3);
    let own = page.replace("href=\"data:", "");
    for outside in ["http", "src=", "href", "url(", "<script", "<link"] {
        assert!(!own.contains(outside), "the page refers to something else by {outside}");
    }
}

#[test]
fn wrong_numbers_are_refused() {
    for (args, part) in [
        (["-n", "1"], "a number of PEs of 2 or more"),
        (["-n", "8193"], "at most 8192 PEs"),
        (["--arrays", "0"], "a number from 1 to"),
        (["--collectives", "many"], "a number from 1 to"),
        (["--html", "/no/such/folder/page"], "/no/such/folder/page"),
    ] {
        let ended = run(&[&["bench", "sync-memory"], &args[..]].concat());
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{args:?} does not say {part:?}: {}", ended.stderr);
    }
}
