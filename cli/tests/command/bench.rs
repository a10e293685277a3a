//! The benchmarks as a user starts them, for a short time only, because the tests check the form of the
//! output and not the measurements.

use std::fs;

use serde_json::Value;

use super::process::{run, run_with};

const TOPICS: [&str; 11] =
    ["rma", "atomics", "signals", "semaphore", "am", "ping", "rate", "links", "vis", "threads", "coll"];

#[test]
fn every_topic_measures_two_pes_and_shows_tables_and_a_page() {
    let file = std::env::temp_dir().join(format!("bench-{}.html", std::process::id()));
    for topic in TOPICS {
        let page = file.to_str().unwrap();
        let ended = run(&["bench", topic, "-n", "2", "--quick", "--html", page]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{topic}");
        assert!(ended.stdout.starts_with("pelago ") && ended.stdout.contains("median"), "{}", ended.stdout);
        let page = fs::read_to_string(&file).unwrap();
        assert!(page.ends_with("</html>\n") && page.contains("<svg"), "{topic}: {page}");
    }
    fs::remove_file(&file).unwrap();
}

#[test]
fn every_topic_writes_a_record_a_line_on_more_pes_than_two() {
    for topic in TOPICS {
        let ended = run(&["bench", topic, "-n", "5", "--quick", "--json"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{topic}");
        assert!(ended.stdout.lines().count() >= 9, "{topic}: {}", ended.stdout);
        for line in ended.stdout.lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            let [min, median, max] = ["min", "median", "max"].map(|field| record[field].as_f64().unwrap());
            assert!(0.0 < min && min <= median && median <= max, "{line}");
            assert!(record["pes"].as_u64().is_some_and(|pes| (2..=5).contains(&pes)), "{line}");
            assert!(record["unit"].is_string() && record["bench"].is_string(), "{line}");
        }
    }
}

#[test]
fn messages_are_measured_over_the_net_too() {
    let ended = run_with(&["bench", "am", "-n", "2", "--quick", "--json"], &[("PELAGO_ROUTE", "net")]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let records: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let has = |bench: &str, operation: &str| {
        records.iter().any(|record| record["bench"] == bench && record["operation"] == operation)
    };
    for bench in ["message-round-trip", "message-flood", "message-flood-answered"] {
        let kinds = ["message-short", "message-medium", "message-long"];
        assert!(kinds.iter().all(|kind| has(bench, kind)), "{bench}: {records:?}");
    }
    assert!(has("message-poll", "poll") && !has("message-flood", "put-memcpy"), "{records:?}");
}

#[test]
fn every_topic_can_be_measured_over_a_fabric_which_the_heading_names() {
    for topic in TOPICS.into_iter().filter(|topic| *topic != "threads") {
        let ended = run(&["bench", topic, "-n", "2", "--quick", "--fabric", "shm"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{topic}");
        let heading = ended.stdout.lines().nth(2);
        assert_eq!(heading, Some("No PE maps another one's memory: all goes over shm"), "{topic}");
    }
    let over_tcp = run(&["bench", "rma", "-n", "2", "--quick", "--fabric", "tcp"]).stdout;
    assert!(over_tcp.contains(" over tcp"), "{over_tcp}");
    let mapped = run(&["bench", "rma", "-n", "2", "--quick"]).stdout;
    assert!(!mapped.contains("No PE maps"), "{mapped}");
}

#[cfg(feature = "full")]
#[test]
fn libfabric_is_named_with_its_provider_and_domain() {
    for topic in ["rma", "atomics", "rate"] {
        let ended = run(&["bench", topic, "-n", "2", "--quick", "--fabric", "ofi"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{topic}");
        let heading = ended.stdout.lines().nth(2).unwrap_or_default();
        assert!(heading.contains(" over ofi (tcp;ofi_rxm on "), "{topic}: {}", ended.stdout);
    }
}

#[test]
fn one_pe_computes_while_the_others_wait() {
    for pes in ["1", "16"] {
        let ended = run(&["run", "-n", pes, "app:perf", "compute", "--milliseconds", "1"]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{pes} PEs");
        let done: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert!(done["pieces"].as_u64() > Some(0) && done["cpu_ns"].as_f64() > Some(0.0), "{done}");
    }
}

#[test]
fn every_topic_teaches_by_examples() {
    for topic in TOPICS {
        let help = run(&["bench", topic, "--help"]).stdout;
        assert!(help.contains(&format!("\n  pelago bench {topic} ")) && help.contains("--html"), "{help}");
    }
}

#[test]
fn benchmarks_that_cannot_be_run() {
    let cases: [(&[&str], &str); 6] = [
        (&["bench", "atomic"], "'atomics'"),
        (&["bench", "atomics", "-n", "1"], "a number of PEs of 2 or more"),
        (&["bench", "threads", "--bind"], "unexpected argument '--bind'"),
        (&["bench", "rate", "--bind", "--no-bind"], "cannot be used with"),
        (&["bench", "signals", "--quick", "--html", "/no/such/folder/page"], "/no/such/folder/page"),
        (&["bench", "--gate", "compute-sped"], "did you mean compute-speed?"),
    ];
    for (args, part) in cases {
        let ended = run(args);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{args:?} does not say {part:?}: {}", ended.stderr);
    }
}
