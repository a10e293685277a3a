//! The choice of collective algorithms from a user's perspective: measured, written to a file, shown, used,
//! refused.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::process::{run, run_with};
use super::several_hosts::NEARBY;

const FILE: &str = "PELAGO_COLL_TUNING";

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    folder
}

/// The choices for 2 PEs, by operation and bytes, with these variables.
fn chosen(variables: &[(&str, &str)]) -> Vec<Value> {
    let ended = run_with(&["info", "--collectives", "-n", "2", "--json"], variables);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    report["chosen"].as_array().unwrap().clone()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn what_is_measured_is_what_jobs_use() {
    let folder = folder("tune");
    let path = folder.join("best.toml");
    let output = path.to_str().unwrap();
    let args = ["tune", "-n", "2,3", "--quick", "--bytes", "8,4096", "--output", output];
    let ended = run(&args);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.contains("runner-up / winner") && ended.stdout.contains(output), "{}", ended.stdout);
    assert_eq!(names(&folder), ["best.toml"], "nothing else is left");
    let text = fs::read_to_string(&path).unwrap();
    let variables = [(FILE, output), ("PELAGO_COLL_FORM", "schedule")];
    for choice in chosen(&variables) {
        let operation = choice["operation"].as_str().unwrap();
        assert_eq!(choice["by"], "tuning file", "{choice}");
        let rules = text.split("\n\n").filter(|rule| rule.starts_with(&format!("[[{operation}]]")));
        let algorithm = format!("algorithm = {}", choice["algorithm"]);
        assert!(rules.clone().any(|rule| rule.contains(&algorithm)), "{choice}: {text}");
    }
    for pes in ["2", "3"] {
        let ended = run_with(&["run", "-n", pes, "app:perf", "coll", "--quick"], &variables);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{pes} PEs");
        assert!(ended.stdout.lines().count() > 20, "{}", ended.stdout);
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_set_goes_before_the_file() {
    let folder = folder("tune-order");
    let path = folder.join("mine.toml");
    fs::write(&path, "[[broadcast]]\nbytes = 1024\nalgorithm = 'k_nomial'\nradix = 8\n").unwrap();
    let file = (FILE, path.to_str().unwrap());
    let broadcast = |variables: &[_], bytes: usize| {
        let is_it = |choice: &&Value| choice["operation"] == "broadcast" && choice["bytes"] == bytes;
        let all = chosen(variables);
        let choice = all.iter().find(is_it).unwrap();
        [&choice["algorithm"], &choice["by"], &choice["radix"]].map(ToString::to_string).join(" ")
    };
    let forced = ("PELAGO_COLL", "broadcast=linear");
    assert_eq!(broadcast(&[file], 8), "\"k_nomial\" \"tuning file\" 8");
    assert_eq!(broadcast(&[file], 65536), "\"binomial\" \"thresholds\" 4");
    assert_eq!(broadcast(&[file, forced], 8), "\"linear\" \"PELAGO_COLL\" 4");
    let text = run_with(&["info", "--collectives", "-n", "2"], &[file]).stdout;
    assert!(text.contains("k_nomial, radix 8 (tuning file)") && text.contains("direct forms"), "{text}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn files_that_are_wrong_are_refused_with_path_and_line() {
    let folder = folder("tune-bad");
    let path = folder.join("bad.toml");
    let bad = path.to_str().unwrap();
    for (text, part) in [
        ("\n[[broadcast]]\nalgorithm = 'ring'\n", "line 3: \"ring\" is no algorithm of broadcast: there are"),
        ("[[broadcst]]\n", "line 1: \"broadcst\" is no operation: there are barrier"),
        ("[[barrier]]\nalgorithm = 'tree'\npes = 0", "line 3: pes accepts a number from 1"),
        ("[[barrier\n", "line 1: this is not TOML"),
    ] {
        fs::write(&path, text).unwrap();
        let says = format!("{FILE}={bad:?} is not valid: {part}");
        let env = format!("{FILE}={bad}");
        let cases: [(&[&str], _, _); 4] = [
            (&["run", "-n", "2", "hello"], Some((FILE, bad)), 2),
            (&["run", "-n", "2", "--env", &env, "hello"], None, 2),
            (&["info", "--collectives"], Some((FILE, bad)), 2),
            (&["app", "hello"], Some((FILE, bad)), 1),
        ];
        for (args, variable, status) in cases {
            let ended = run_with(args, variable.as_slice());
            assert_eq!((ended.status, ended.stdout.as_str()), (status, ""), "{args:?}: {}", ended.stderr);
            assert!(ended.stderr.contains(&says) && ended.stderr.lines().count() == 1, "{}", ended.stderr);
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_tune_refuses_leaves_nothing() {
    let folder = folder("tune-refused");
    let output = folder.join("best.toml");
    let output = output.to_str().unwrap();
    let cases: [(&[&str], &str); 10] = [
        (&["tune", "-n", "1", "--output", output], "a number of PEs from 2 to 4096"),
        (&["tune", "--operations", "bcast", "--output", output], "there are: barrier, broadcast"),
        (&["tune", "--bytes", "7", "--output", output], "a multiple of 8"),
        (&["tune", "-n", "2", "--quick", "--output", "/no/such/folder/best.toml"], "/no/such/folder/best"),
        (&["tune", "-n", "9999999", "--quick", "--output", output], "from 2 to 4096"),
        (&["info", "-n", "4"], "--collectives"),
        (
            &["tune", "explain", "all-reduce", "-n", "4", "--nodes", "3"],
            "3 nodes cannot have equal parts of 4",
        ),
        (&["tune", "measure", "--hosts", "a", "--output", output], "name two hosts"),
        (&["tune", "measure", "--quick", "--output", "/no/such/folder/m.toml"], "/no/such/folder/m"),
        (&["tune", "measure", "--launch-agent", "x", "--output", output], "name some by --hosts"),
    ];
    for (args, part) in cases {
        let ended = run(args);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{args:?} does not say {part:?}: {}", ended.stderr);
    }
    assert_eq!(names(&folder), [""; 0]);
    fs::remove_dir_all(&folder).unwrap();
}

/// Over TCP between two PEs of this machine, and between two hosts that are this machine as well.
#[test]
fn a_machine_is_measured_and_its_file_simulates() {
    let folder = folder("tune-measure");
    let path = folder.join("mine.toml");
    let output = path.to_str().unwrap();
    let here = ["tune", "measure", "--fabric", "tcp", "--quick", "--pes-per-node", "4", "--output", output];
    let ended = run(&here);
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    for part in ["one way", "barrier of two PEs", "in a node", "Deviation of the fit: between nodes median "]
    {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("name = \"mine\"\n") && text.contains("pes_per_node = 4\n"), "{text}");
    let model = ["model", "run", "--machine", output, "--op", "all-reduce", "--pes", "64", "--json"];
    let ended = run(&model);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let seconds = serde_json::from_str::<Value>(&ended.stdout).unwrap()["seconds"].as_f64().unwrap();
    assert!(seconds > 0.0 && seconds < 1.0, "{seconds}");
    fs::remove_file(&path).unwrap();
    let hosts = ["--hosts", "a,b", "--launch-agent", NEARBY, "--fabric", "tcp", "--quick", "--json"];
    let ended = run(&[&["tune", "measure", "--output", output][..], &hosts].concat());
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    let lines: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for within in [false, true] {
        let of = |line: &&Value| line["within_node"] == within && line["fitted"] == true;
        assert!(lines.iter().filter(of).count() > 10, "{}", ended.stdout);
    }
    assert!(lines.iter().all(|line| line["measured_ns"].as_f64() > Some(0.0)), "{}", ended.stdout);
    assert_eq!(names(&folder), ["mine.toml"], "nothing else is left");
    fs::remove_dir_all(&folder).unwrap();
}

fn lines(args: &[&str]) -> Vec<Value> {
    let ended = run(args);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{args:?}");
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The choice and the first guess, beside simulations of all candidates, on two machines.
#[test]
fn simulated_choices_are_nearly_always_the_best() {
    let operations = "barrier,broadcast,all-gather,all-to-all,all-reduce";
    for (machine, pes) in [("tcp-veth", "8,32"), ("hdr-fat-tree", "8,128")] {
        let words = ["tune", "simulate", "--machine", machine, "-n", pes, "--operations", operations];
        let sizes = if machine == "tcp-veth" { "8,4K,128K,1M" } else { "8,128K" };
        let lines =
            lines(&[&words[..], &["--bytes", sizes, "--limit", "0.05", "--check", "--json"]].concat());
        let (shares, cells) = lines.split_last().unwrap();
        assert_eq!(shares["cells"], cells.len());
        let share = |name: &str| shares[name].as_f64().unwrap();
        println!("{machine}: {shares}");
        assert!(share("chosen_within_10_percent") >= 0.9, "{machine}: {shares}");
        assert!(share("first_guess_within_10_percent") >= 0.7, "{machine}: {shares}");
        assert!(cells.iter().all(|cell| cell["best_seconds"].as_f64() > Some(0.0)), "{cells:?}");
    }
}

/// Cells of which nothing was simulated are not right.
#[test]
fn a_limit_that_permits_nothing_checks_nothing() {
    let words = ["tune", "simulate", "--machine", "hdr-fat-tree", "-n", "64", "--operations", "barrier"];
    let lines = lines(&[&words[..], &["--limit", "0", "--check", "--json"]].concat());
    let shares = lines.last().unwrap();
    assert_eq!((&shares["cells"], &shares["not_checked"]), (&0.into(), &1.into()), "{shares}");
    assert_eq!(shares["chosen_within_10_percent"], 0.0, "{shares}");
}

/// All members must choose alike, or they would wait for each other.
#[test]
fn members_with_other_choices_are_told_so() {
    let line = "[ $PMI_RANK = 0 ] && export PELAGO_COLL=broadcast=linear; exec \"$@\"";
    let words = ["run", "-n", "2", "sh", "-c", line, "-", env!("CARGO_BIN_EXE_pelago"), "app", "ring"];
    let ended = run(&words);
    assert_ne!(ended.status, 0, "{}", ended.stdout);
    assert!(ended.stderr.contains("PELAGO_COLL_TUNING"), "{}", ended.stderr);
}

/// An operation that is named twice has its rules once.
#[test]
fn a_repeated_operation_leaves_a_file_that_is_valid() {
    let folder = folder("tune-repeated");
    let path = folder.join("best.toml");
    let output = path.to_str().unwrap();
    let words = ["tune", "simulate", "--machine", "tcp-veth", "-n", "8,16", "--bytes", "8,4K"];
    let ended = run(&[&words[..], &["--operations", "all-reduce,all_reduce", "--output", output]].concat());
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert!(!chosen(&[(FILE, output)]).is_empty());
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_simulated_file_is_what_jobs_use() {
    let folder = folder("tune-simulate");
    let path = folder.join("big.toml");
    let output = path.to_str().unwrap();
    let words = ["tune", "simulate", "--machine", "tcp-veth", "-n", "2,4", "--bytes", "8,1024,64K,1M"];
    let ended = run(&[&words[..], &["--output", output]].concat());
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    assert!(
        ended.stdout.contains("without file / chosen") && ended.stdout.contains(output),
        "{}",
        ended.stdout
    );
    assert_eq!(names(&folder), ["big.toml"], "nothing else is left");
    for choice in chosen(&[(FILE, output), ("PELAGO_COLL_FORM", "schedule")]) {
        assert_eq!(choice["by"], "tuning file", "{choice}");
    }
    let again = folder.join("again.toml");
    run(&[&words[..], &["--output", again.to_str().unwrap(), "--json"]].concat());
    assert_eq!(fs::read_to_string(&path).unwrap(), fs::read_to_string(&again).unwrap());
    fs::remove_dir_all(&folder).unwrap();
}

/// The explanation of an operation, with these variables.
fn explained(words: &[&str], variables: &[(&str, &str)]) -> Value {
    let ended = run_with(&[&["tune", "explain"], words, &["--json"]].concat(), variables);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{words:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn a_choice_is_explained_by_what_has_made_it() {
    let folder = folder("tune-explain");
    let path = folder.join("mine.toml");
    fs::write(&path, "# mine\n\n[[all_gather]]\npes = 8\nalgorithm = 'recursive_doubling'\n").unwrap();
    let file = (FILE, path.to_str().unwrap());
    let words = ["all-gather", "--bytes", "1K", "-n", "8"];
    let by_file = explained(&words, &[file]);
    assert_eq!((&by_file["by"], &by_file["line"]), (&"tuning file".into(), &3.into()), "{by_file}");
    assert_eq!((&by_file["chosen"], &by_file["file"]), (&"recursive_doubling".into(), &file.1.into()));
    let forced = explained(&words, &[file, ("PELAGO_COLL", "all_gather=ring")]);
    assert_eq!((&forced["by"], &forced["chosen"]), (&"PELAGO_COLL".into(), &"ring".into()));
    assert_eq!(forced["line"], Value::Null);
    // Six PEs are no power of two: the rule is passed over.
    let six = explained(&["all-gather", "--bytes", "1K", "-n", "6"], &[file]);
    let why = six["why"].as_str().unwrap();
    assert!(why.contains("small (up to 4096 B)") && why.contains("line 3 of"), "{why}");
    assert!(why.contains("recursive_doubling, which cannot do it: "), "{why}");
    let rows = six["candidates"].as_array().unwrap();
    assert!(rows.len() > 4 && rows[0]["chosen"] == true && rows[0]["name"] == six["chosen"], "{six}");
    let impossible = rows.iter().find(|row| row["name"] == "recursive_doubling").unwrap();
    assert!(impossible["impossible"].is_string() && impossible["estimated_seconds"].is_null(), "{six}");
    let in_order = explained(&["all-reduce", "-n", "8"], &[("PELAGO_DETERMINISTIC", "on")]);
    let rows = in_order["candidates"].as_array().unwrap();
    let said = rows.iter().filter_map(|row| row["impossible"].as_str());
    assert!(said.clone().any(|reason| reason.contains("PELAGO_DETERMINISTIC")), "{in_order}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn times_of_an_explanation_are_those_of_the_machine() {
    let words = ["broadcast", "--bytes", "64K", "-n", "16", "--nodes", "4", "--machine", "hdr-fat-tree"];
    let found = explained(&[&words[..], &["--simulate"]].concat(), &[]);
    assert_eq!((&found["nodes"], &found["by"]), (&4.into(), &"thresholds".into()), "{found}");
    assert!(found["form"].as_str().unwrap().contains("two levels"), "{found}");
    for row in found["candidates"].as_array().unwrap().iter().filter(|row| row["impossible"].is_null()) {
        let [guess, time] = ["estimated_seconds", "simulated_seconds"].map(|key| row[key].as_f64().unwrap());
        assert!((guess / time - 1.0).abs() < 0.4, "{row}");
    }
    let text = run(&[&["tune", "explain"][..], &words].concat()).stdout;
    assert!(text.starts_with("broadcast of 64 KiB among 16 PEs on 4 nodes: hierarchical\n"), "{text}");
    let one = run(&["tune", "explain", "barrier", "-n", "4"]).stdout;
    assert!(one.starts_with("barrier among 4 PEs on one node: ") && one.contains("direct forms"), "{one}");
    for (args, part) in [
        (&["tune", "explain", "bcast", "-n", "4"][..], "did you mean"),
        (&["tune", "explain", "barrier", "-n", "4", "--simulate"], "--machine"),
        (&["tune", "explain", "barrier", "-n", "4", "--machine", "no.toml"], "no.toml"),
        (&["tune", "simulate", "--machine", "tcp-veth", "-n", "1"], "2..=1048576"),
        (&["tune", "simulate", "--machine", "tcp-veth", "-n", "4", "--check", "--output", "x"], "--check"),
        (&["tune", "simulate", "--machine", "no.toml", "-n", "4", "--check"], "no.toml"),
    ] {
        let ended = run(args);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{args:?} does not say {part:?}: {}", ended.stderr);
    }
}
