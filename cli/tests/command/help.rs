//! The help of the command, its report about the machine, and its list of settings.

use pelago_boot::{other_variables, user_settings};
use serde_json::Value;

use super::process::{run, run_with};

fn json(args: &[&str]) -> Value {
    let ended = run(args);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{args:?}");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn help_teaches_by_examples() {
    let listed = run(&["--help"]).stdout;
    let (_, commands) = listed.split_once("Commands:\n").unwrap();
    let commands = commands.split("\n\n").next().unwrap().lines();
    // Lines that continue a text are indented further.
    let commands = commands.filter(|line| !line.starts_with("   "));
    let names = commands.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let mut helps = vec![vec!["--help"]];
    helps.extend(names.map(|name| vec![name, "--help"]));
    helps.extend(["ft", "hello", "ring"].map(|app| vec!["run", "-n", "2", app, "--help"]));
    assert!(helps.len() >= 7, "run, app and info have their help: {listed}");
    for args in helps {
        let ended = run(&args);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""), "{args:?}");
        let examples = ended.stdout.split_once("Example").map(|(_, examples)| examples);
        assert!(examples.is_some_and(|text| text.contains("  pelago ")), "{args:?}: {}", ended.stdout);
        assert_eq!(ended.stdout.matches("Usage:").count(), 1, "{args:?} by one PE: {}", ended.stdout);
    }
}

#[test]
fn manual_pages_have_the_options_and_examples_of_the_help() {
    let folder = std::env::temp_dir().join(format!("pelago-man-{}", std::process::id()));
    let ended = run(&["man", folder.to_str().unwrap()]);
    assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let page = std::fs::read_to_string(&path).unwrap().replace("\\-", "-").replace("\\&", "");
        assert!(page.contains(&format!(".SH NAME\n{name} - ")), "{name}: {page}");
        // The synopsis and the examples have options as well.
        let described = page.split_once(".SH OPTIONS").map_or("", |(_, rest)| rest);
        let described = described.split(".SH ").next().unwrap();
        let words: Vec<_> = name.split('-').skip(1).collect();
        // The only name with a hyphen of its own.
        let words = if name.ends_with("sync-memory") { vec!["bench", "sync-memory"] } else { words };
        let help = run(&[&words[..], &["--help"]].concat()).stdout;
        let lines = || help.lines().map(str::trim);
        for option in lines()
            .filter_map(|line| line.split([' ', ',', '[']).next())
            .filter(|word| word.starts_with("--"))
        {
            assert!(described.contains(option), "{name} does not describe {option}");
        }
        let examples = lines().skip_while(|line| *line != "Examples:").skip(1);
        let programs = examples.filter_map(|line| line.strip_prefix("pelago ")?.split("  ").next());
        for example in programs {
            assert!(page.contains(&format!("pelago {example}")), "{name} has no example `pelago {example}`");
            count += 1;
        }
    }
    assert!(count > 20, "only {count} examples");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn completions_have_every_command() {
    let help = run(&["--help"]).stdout;
    let commands = help.split_once("Commands:\n").unwrap().1.split("\n\n").next().unwrap();
    let names = commands.lines().filter(|line| !line.starts_with("   "));
    let names: Vec<_> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"run") && names.contains(&"completions"), "{names:?}");
    for shell in ["bash", "zsh", "fish"] {
        let ended = run(&["completions", shell]);
        assert_eq!((ended.status, ended.stderr.as_str()), (0, ""));
        for name in &names {
            assert!(ended.stdout.contains(name), "{shell} does not complete {name}");
        }
        // An option of `run`.
        assert!(ended.stdout.contains("tag-output"), "{shell} completes no options");
    }
    assert_eq!(run(&["completions", "tcl"]).status, 2);
}

#[test]
fn bash_completes_a_command() {
    let folder = std::env::temp_dir().join(format!("pelago-completions-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("pelago");
    std::fs::write(&file, run(&["completions", "bash"]).stdout).unwrap();
    let script =
        "source $0; COMP_WORDS=(pelago inf); COMP_CWORD=1; _pelago pelago inf pelago; echo ${COMPREPLY[@]}";
    let bash = std::process::Command::new("bash").args(["-c", script]).arg(&file).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&bash.stdout), "info\n", "{bash:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn applications_are_listed() {
    let list = run(&["app"]).stdout;
    let names: Vec<_> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(["ft", "hello", "ring"].iter().all(|name| names.contains(name)), "{list}");
}

#[test]
fn info_tells_of_the_machine() {
    let info = json(&["info", "--json"]);
    assert_eq!(info["version"], env!("CARGO_PKG_VERSION"));
    assert!(info["cores"].as_u64().is_some_and(|cores| cores > 0), "{info}");
    let provider = &info["providers"][0];
    assert_eq!((&provider["name"], &provider["usable"]), (&"shm".into(), &true.into()), "{info}");
    let text = run(&["info"]).stdout;
    assert!(text.contains(info["node"].as_str().unwrap()) && text.contains("a job of one PE"), "{text}");
    let text = run(&["run", "-n", "3", "--tag-output", env!("CARGO_BIN_EXE_pelago"), "info"]).stdout;
    for pe in 0..3 {
        let line = format!("[{pe}] launcher  PMI-1: this process is PE {pe} of 3");
        assert!(text.lines().any(|found| found == line), "no {line:?} in {text}");
    }
}

#[test]
fn info_computes_the_memory_of_jobs_of_any_size() {
    let of = |pes: &str| json(&["info", "--scale", pes, "--ppn", "128", "--json"]);
    let (small, large) = (of("1000"), of("1000000"));
    let bytes = |report: &Value, key: &str| report[key].as_u64().unwrap();
    for report in [&small, &large] {
        let sum = |held: &[&str]| -> u64 {
            let parts = report["memory"].as_array().unwrap().iter();
            let of_kind = parts.filter(|part| held.contains(&part["held"].as_str().unwrap()));
            of_kind.map(|part| part["bytes"].as_u64().unwrap()).sum()
        };
        assert_eq!(bytes(report, "least_bytes"), sum(&["always", "each team"]), "{report}");
        assert_eq!(bytes(report, "starting_bytes"), sum(&["always", "at the start"]), "{report}");
        assert_eq!(report["goal_bytes"], 64 << 20);
    }
    assert!(bytes(&small, "most_bytes") < bytes(&large, "most_bytes"));
    // The goal of the project, kept by the structures: not a time, and the same on every machine.
    assert!(
        bytes(&large, "most_bytes") <= 64 << 20 && bytes(&large, "starting_bytes") <= 64 << 20,
        "{large}"
    );
    assert_eq!((bytes(&large, "pes"), bytes(&large, "pes_per_node")), (1_000_000, 128));
    let text = run(&["info", "--scale", "1000000", "--ppn", "128"]).stdout;
    for part in large["memory"].as_array().unwrap() {
        assert!(text.contains(part["part"].as_str().unwrap()), "no {part} in {text}");
    }
    for row in large["start_messages"].as_array().unwrap() {
        assert!(text.contains(row["of"].as_str().unwrap()), "no {row} in {text}");
    }
}

/// This test passes on machines with libfabric and on those without.
#[test]
fn info_says_of_every_fabric_whether_it_serves_and_why_not() {
    let fabrics = json(&["info", "--fabrics", "--json"]);
    let text = run(&["info", "--fabrics"]).stdout;
    assert_eq!(fabrics["libfabric"].is_null(), fabrics["obstacle"].is_string(), "{fabrics}");
    assert_eq!(text.starts_with("libfabric  none: "), fabrics["libfabric"].is_null(), "{text}");
    for (i, offer) in fabrics["offers"].as_array().unwrap().iter().enumerate() {
        let standing = offer["standing"].as_str().unwrap();
        let is_used = fabrics["uses_libfabric"] == true;
        let first = if is_used { "chosen" } else { "first" };
        assert!([first, "usable", "ruled out", "unusable"].contains(&standing), "{offer}");
        assert!(standing != first || i == 0, "the choice comes first: {fabrics}");
        let has_reason = !offer["remarks"].as_array().unwrap().is_empty();
        assert!(has_reason || standing == "chosen" || standing == "usable", "{offer}");
        assert!(text.contains(offer["provider"].as_str().unwrap()), "{text}");
    }
    let nowhere = [("PELAGO_OFI_LIBRARY", "/nowhere/libfabric.so.1")];
    let ended = run_with(&["info", "--fabrics"], &nowhere);
    let says = ["libfabric  none: ", "/nowhere/libfabric.so.1", "PELAGO_OFI_LIBRARY"];
    assert!(ended.status == 0 && says.iter().all(|part| ended.stdout.contains(part)), "{}", ended.stdout);
}

#[test]
fn info_lists_every_setting() {
    let text = run(&["info", "--settings"]).stdout;
    assert_eq!(run(&["help", "settings"]).stdout, text, "what the OpenSHMEM library tells its users to try");
    let rows = json(&["info", "--settings", "--json"]);
    let settings = user_settings().into_iter().map(|row| (row.name, row.default, row.accepts, row.help));
    let others = other_variables().iter().map(|row| (row.name, "", row.accepts, row.help));
    let mut count = 0;
    for ((name, default, accepts, help), found) in settings.chain(others).zip(rows.as_array().unwrap()) {
        assert_eq!((&found["name"], &found["default"]), (&name.into(), &default.into()));
        assert_eq!(found["is_setting"], user_settings().iter().any(|row| row.name == name), "{name}");
        assert!(text.lines().any(|line| line.starts_with(name) && line.ends_with(help)), "{text}");
        assert!(text.contains(accepts), "{text}");
        count += 1;
    }
    assert!(count == rows.as_array().unwrap().len() && count >= 60, "{rows}");
}
