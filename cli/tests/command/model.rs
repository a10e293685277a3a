//! `pelago model`: collective operations on modelled machines.

use super::process::run;
use serde_json::Value;

fn json(words: &[&str]) -> Vec<Value> {
    let ended = run(words);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{words:?}");
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const BARRIER: [&str; 8] =
    ["model", "run", "--machine", "bluegene-p", "--op", "barrier", "--algorithm", "dissemination"];

#[test]
fn machines_are_listed_and_shown() {
    let names: Vec<_> =
        json(&["model", "machines", "--json"]).iter().map(|row| row["name"].clone()).collect();
    assert_eq!(names, ["bluegene-p", "hdr-fat-tree", "slingshot-dragonfly", "tcp-veth"]);
    let text = run(&["model", "machines"]).stdout;
    assert!(text.lines().any(|line| line.starts_with("bluegene-p           IBM")), "{text}");
    let file = run(&["model", "show", "hdr-fat-tree"]).stdout;
    let path = std::env::temp_dir().join(format!("pelago-model-{}.toml", std::process::id()));
    std::fs::write(&path, file.replace("name = \"hdr-fat-tree\"", "name = \"mine\"")).unwrap();
    let words = ["model", "run", "--machine", path.to_str().unwrap(), "--op", "barrier", "--pes", "64"];
    let text = run(&words).stdout;
    std::fs::remove_file(&path).unwrap();
    assert!(text.contains(" on mine: 64 PEs, 1 nodes\n"), "{text}");
}

/// Seven rounds between nodes: PEs 64 apart are 16 nodes apart.
#[test]
fn a_run_has_one_result() {
    let words = [&BARRIER[..], &["--pes", "128", "--json"]].concat();
    let found = json(&words);
    assert_eq!(found, json(&words));
    let record = &found[0];
    assert_eq!((&record["messages"], &record["nodes"]), (&(128 * 7).into(), &32.into()), "{record}");
    let seconds = record["seconds"].as_f64().unwrap();
    assert!((11e-6..16.5e-6).contains(&seconds), "{record}");
    let text = run(&words[..words.len() - 1]).stdout;
    assert!(text.starts_with("barrier by dissemination on bluegene-p: 128 PEs, 32 nodes\n"), "{text}");
}

#[test]
fn the_fastest_algorithm_is_marked() {
    let words = ["model", "compare", "--machine", "bluegene-p", "--op", "all-gather", "--pes", "12"];
    let cells = json(&[&words[..], &["--sizes", "8,64K", "--json"]].concat());
    for bytes in [8, 64 << 10] {
        let row: Vec<_> = cells.iter().filter(|cell| cell["bytes"] == bytes).collect();
        let times: Vec<_> = row.iter().filter_map(|cell| cell["seconds"].as_f64()).collect();
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let best: Vec<_> = row.iter().filter(|cell| cell["best"] == true).collect();
        assert!(times.len() > 3 && !best.is_empty(), "{row:?}");
        assert!(best.iter().all(|cell| cell["seconds"].as_f64() == Some(least)), "{row:?}");
    }
    let text = run(&[&words[..], &["--sizes", "8"]].concat()).stdout;
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.contains(" *") && text.contains("\n- recursive_doubling: "), "{text}");
}

#[test]
fn mistakes_are_refused() {
    let run_with = |words: &[&str]| run(&[&["model", "run"][..], words].concat());
    let machine = ["--machine", "bluegene-p"];
    for (words, part) in [
        (&["--op", "barier", "--pes", "4"][..], "did you mean barrier?"),
        (&["--op", "barrier", "--pes", "0"], "1..=16777216"),
        (&["--op", "barrier", "--pes", "4", "--algorithm", "tre"], "did you mean tree?"),
        (&["--op", "all-to-all", "--pes", "100000", "--algorithm", "linear"], "--limit 50"),
        (&["--op", "broadcast", "--pes", "4", "--bytes", "1kb"], "with K, M or G"),
        (&["--op", "barrier", "--pes", "4", "--contention", "some"], "fluid"),
        (&["--op", "barrier", "--pes", "4", "--machine", "no-file.toml"], "no-file.toml"),
    ] {
        let has_machine = words.contains(&"--machine");
        let words = if has_machine { words.to_vec() } else { [&machine[..], words].concat() };
        let ended = run_with(&words);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{words:?}");
        assert!(ended.stderr.contains(part), "{words:?}: {}", ended.stderr);
    }
    let small = ["--machine", "slingshot-dragonfly", "--op", "barrier", "--pes", "9999999"];
    assert!(run_with(&small).stderr.contains("take at most 4194304 PEs"), "too few nodes");
}
