//! `pelago coll`: lists, draws and checks the algorithms of collective operations.

use super::process::run;
use serde_json::Value;

#[test]
fn algorithms_are_listed_with_what_they_cost() {
    let text = run(&["coll", "list", "broadcast", "-n", "8"]).stdout;
    let row = text.lines().find(|line| line.contains(" binomial ")).unwrap();
    let cells: Vec<_> = row.split_whitespace().take(6).collect();
    assert_eq!(cells, ["broadcast", "binomial", "-", "7", "56", "3"], "{text}");
    let ended = run(&["coll", "list", "-n", "6", "--json"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let rows: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let find = |operation: &str, algorithm: &str| {
        let is_it = |row: &&Value| row["operation"] == operation && row["algorithm"] == algorithm;
        rows.iter().find(is_it).unwrap_or_else(|| panic!("no {operation}/{algorithm} in {}", ended.stdout))
    };
    assert_eq!(find("barrier", "dissemination")["rounds"], 3);
    assert_eq!(find("all_reduce", "linear")["fold"], "ranks");
    let refused = find("all_gather", "recursive_doubling");
    assert!(refused["restriction"].as_str().is_some_and(|why| why.contains("power of two")), "{refused}");
    assert_eq!(refused["messages"], Value::Null);
}

#[test]
fn schedules_are_drawn() {
    let ended = run(&["coll", "show", "broadcast", "--algorithm", "binomial", "-n", "8", "--root", "2"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert!(
        ended.stdout.starts_with("broadcast / binomial: 8 PEs, root 2, blocks of 1 KiB\n"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("\nmessages 7, bytes 7 KiB, rounds 3; "), "{}", ended.stdout);
    let widest =
        ended.stdout.lines().filter(|line| line.contains('│')).map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|widest| widest <= 80), "{}", ended.stdout);
    let file = std::env::temp_dir().join(format!("pelago-coll-{}.svg", std::process::id()));
    let ended = run(&["coll", "show", "reduce", "--svg", file.to_str().unwrap()]);
    let picture = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
}

#[test]
fn algorithms_are_checked() {
    let ended = run(&["coll", "check", "scatter", "-n", "1..=9", "--all-roots"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(lines.len() >= 2 && lines.iter().all(|line| line.contains("right in ")), "{}", ended.stdout);
    let ended = run(&["coll", "check", "barrier", "--algorithm", "tree", "-n", "100"]);
    assert_eq!(ended.stdout, "barrier/tree  right in 2 cases\n");
}

#[test]
fn what_is_not_there_is_refused() {
    for (words, part) in [
        (&["show", "brodcast"][..], "'broadcast'"),
        (&["show", "broadcast", "--algorithm", "binomal"], "did you mean binomial?"),
        (&["show", "broadcast", "-n", "4", "--root", "4"], "the PEs are 0 to 3"),
        (&["show", "barrier", "--root", "1"], "barrier has no root"),
        (&["show", "all_gather", "-n", "6", "--algorithm", "recursive_doubling"], "must be a power of two"),
        (&["check", "-n", "0"], "a team has 1 to 4096 PEs"),
        (&["check", "-n", "4..=3"], "did you mean 3..=4?"),
        (&["check", "--algorithm", "ring"], "<OPERATION>"),
        (&["list", "--bytes", "1kb"], "a size is a number of bytes"),
    ] {
        let ended = run(&[&["coll"], words].concat());
        assert!(ended.status == 2 && ended.stderr.contains(part), "{words:?}: {}", ended.stderr);
    }
}
