//! `pelago paper`: every claim is covered, the output in its three forms, and invalid arguments.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use super::process::{Ended, run};

/// The papers by name, with their numbers and the numbers of their claims.
const PAPERS: [(&str, &str, usize); 5] = [
    ("gasnet-bgp", "000", 17),
    ("sync-memory", "001", 4),
    ("bandwidth", "002", 8),
    ("mpt", "003", 6),
    ("sfi", "004", 6),
];

/// The objects of these figures, for a short time.
fn objects(args: &[&str]) -> Vec<Value> {
    let ended = succeeded(&[&["paper"], args, &["--quick", "--json", "-n", "2"]].concat());
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn succeeded(args: &[&str]) -> Ended {
    let ended = run(args);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{args:?}");
    ended
}

#[test]
fn papers_are_listed_with_their_names() {
    for args in [&["paper"][..], &["paper", "list"], &["paper", "--quick"]] {
        let list = succeeded(args).stdout;
        let has = |(name, number, _): (&str, &str, usize)| {
            list.lines().any(|line| line.trim_start().starts_with(name) && line.contains(number))
        };
        assert!(PAPERS.into_iter().all(has), "{list}");
    }
}

/// Rows are those of the list of claims: 0.1 to 0.17, 1.1 to 1.4 and so on.
#[test]
fn every_claim_has_one_row_with_figures_or_a_reason() {
    for (name, number, claims) in PAPERS {
        for of in [name, number] {
            let list = succeeded(&["paper", of, "--list"]).stdout;
            let lines: Vec<_> = list.lines().skip(2).filter(|line| !line.trim().is_empty()).collect();
            let rows = lines.iter().filter(|line| !line.starts_with("   "));
            let mut found: Vec<_> = rows.filter_map(|line| line.split_whitespace().next()).collect();
            let paper: usize = number.parse().unwrap();
            let expected: Vec<_> = (1..=claims).map(|claim| format!("{paper}.{claim}")).collect();
            // A claim with figures and a missing part has a line for each.
            found.dedup();
            assert_eq!(found, expected, "{list}");
            let hows = [
                "measured",
                "simulated",
                "modelled",
                "counted",
                "computed",
                "needs-model",
                "not-reproducible",
            ];
            assert!(lines.iter().all(|line| hows.iter().any(|how| line.contains(how))), "{list}");
            let listed = objects(&[of, "--list"]);
            assert_eq!(listed.len(), lines.len(), "{listed:?}");
            for (object, line) in listed.iter().zip(&lines) {
                let how = object["how"].as_str().unwrap();
                let figure = object.get("figure").map_or("", |figure| figure.as_str().unwrap());
                assert!(line.contains(&format!("{figure} ")) && line.contains(how), "{object} {line}");
                assert!(object.get("verdict").is_none(), "{object}");
            }
        }
    }
    let all = succeeded(&["paper", "all", "--list"]).stdout;
    assert_eq!(succeeded(&["paper", "--list"]).stdout, all);
    assert!(PAPERS.iter().all(|(name, ..)| all.contains(&format!("{name} ("))), "{all}");
}

#[test]
fn a_counted_paper_is_printed_as_objects_with_all_fields() {
    let objects = objects(&["sfi"]);
    assert_eq!(objects.len(), 6);
    for object in &objects {
        assert_eq!((&object["paper"], &object["number"]), (&"sfi".into(), &"004".into()), "{object}");
        let texts = ["row", "statement", "condition", "how", "because"];
        assert!(
            texts.iter().all(|field| object[field].as_str().is_some_and(|text| !text.is_empty())),
            "{object}"
        );
        if object["row"] == "4.4" {
            assert!(object["how"] == "not-reproducible" && object["verdict"].is_null(), "{object}");
            continue;
        }
        assert!(["figure", "title", "where"].iter().all(|field| object[field].is_string()), "{object}");
        let verdict = object["verdict"].as_str().unwrap();
        assert!(["holds", "in-part", "does-not-hold"].contains(&verdict), "{object}");
        let values = object["values"].as_array().unwrap();
        assert!(!values.is_empty(), "{object}");
        for value in values {
            assert!(["what", "here", "paper"].iter().all(|field| value[field].is_string()), "{object}");
        }
    }
    let figure_5 = objects.iter().find(|object| object["figure"] == "5").unwrap();
    let line = &figure_5["charts"][0]["lines"][0];
    assert_eq!(line["points"].as_array().unwrap().len(), 5, "{figure_5}");
    assert!(line["points"][0][1].as_f64().is_some_and(|ns| (ns - 442.2).abs() < 0.1), "{figure_5}");
}

#[test]
fn simulated_figures_are_the_same_on_every_run() {
    for figure in ["rendezvous", "events", "thresholds"] {
        let [first, second] = [(); 2].map(|()| objects(&["mpt", figure]));
        assert_eq!(first, second);
        assert!(first.iter().all(|object| object["figure"] == figure), "{first:?}");
    }
    let latency = objects(&["bandwidth", "latency"]);
    let hows: Vec<_> = latency.iter().map(|object| object["how"].as_str().unwrap()).collect();
    assert_eq!(hows, ["simulated", "measured"]);
    assert_eq!(latency[0]["verdict"], "holds", "{}", latency[0]);
}

#[test]
fn text_and_page_have_the_same_values_and_verdicts() {
    let file = std::env::temp_dir().join(format!("paper-{}.html", std::process::id()));
    let words = ["paper", "gasnet-bgp", "message-sizes", "grids", "order", "--html", file.to_str().unwrap()];
    let text = succeeded(&words).stdout;
    let page = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    for part in ["a message of packed slabs", "128 KiB", "64x32", "32x64", "21 of 21"] {
        assert!(page.contains(part) && text.contains(part), "{part}: {text}\n{page}");
    }
    assert!(text.contains("gasnet-bgp 0.7, message-sizes, counted: "), "{text}");
    assert!(text.contains("\n  holds: ") && text.contains("Verdicts: 2 holds, 1 holds in part, 0"), "{text}");
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("class=\"badge holds\""), "{page}");
    let own = page.replace("href=\"data:", "");
    for outside in ["http", "src=", "href", "url(", "<script", "<link"] {
        assert!(!own.contains(outside), "the page refers to something else by {outside}");
    }
}

#[test]
fn charts_of_a_figure_are_on_the_page() {
    let file = std::env::temp_dir().join(format!("paper-chart-{}.html", std::process::id()));
    let words = ["paper", "004", "5", "table-1", "--html", file.to_str().unwrap(), "--json"];
    let objects = succeeded(&words).stdout;
    let page = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert_eq!((page.matches("<svg").count(), objects.lines().count()), (1, 2), "{page}");
}

#[test]
fn what_is_missing_is_named_with_its_reason() {
    let ended = succeeded(&["paper", "sfi"]);
    assert!(ended.stdout.contains("  missing: cannot be repeated: these are profiles"), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("; missing parts: 1\n"), "{}", ended.stdout);
}

#[test]
fn figures_of_one_name_are_of_one_claim() {
    for (name, ..) in PAPERS {
        let list = succeeded(&["paper", name, "--list"]).stdout;
        let mut rows = BTreeMap::<&str, Vec<&str>>::new();
        let mut row = "";
        for line in list.lines().skip(2).filter(|line| !line.trim().is_empty()) {
            let mut words = line.split_whitespace();
            if !line.starts_with("   ") {
                row = words.next().unwrap();
            }
            let figure = words.next().unwrap();
            rows.entry(figure).or_default().push(row);
        }
        rows.retain(|figure, _| !["needs-model", "not-reproducible"].contains(figure));
        for (figure, mut rows) in rows {
            rows.dedup();
            assert_eq!(rows.len(), 1, "{name} {figure}");
        }
    }
}

#[test]
fn wrong_names_and_numbers_are_refused() {
    let cases: [(&[&str], &str); 13] = [
        (&["gasnet"], "did you mean gasnet-bgp?"),
        (&["005"], "there is no paper \"005\""),
        (&[""], "there is no paper \"\""),
        (&["mpt", "barier"], "mpt has no figure \"barier\""),
        (&["mpt", "2", "17"], "mpt has no figure \"17\""),
        (&["sfi", "latency"], "`pelago paper sfi --list` shows all"),
        (&["all", "no-such-figure"], "did you mean"),
        (&["sfi", "-n", "1"], "a number of PEs of 2 or more"),
        (&["sfi", "-n", "-3"], "a number of PEs of 2 or more"),
        (&["sfi", "5", "--html", "/no/such/folder/page"], "/no/such/folder/page"),
        (&["list", "latency"], "which paper? `pelago paper all`"),
        (&["--json"], "which paper? `pelago paper all`"),
        (&["sfi", "--htlm", "x"], "'--html'"),
    ];
    for (args, part) in cases {
        let ended = run(&[&["paper"], args].concat());
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{args:?} does not say {part:?}: {}", ended.stderr);
    }
}

#[test]
fn help_teaches_by_examples() {
    let help = succeeded(&["paper", "--help"]).stdout;
    for part in ["pelago paper mpt --list", "pelago paper all --html papers.html", "--quick", "need a model"]
    {
        assert!(help.replace('\n', " ").contains(part), "`{part}` is not in {help}");
    }
}
