//! The examples in Rust: each runs as its first lines say, and prints what they say.
//!
//! Invariant: an example has at most 80 lines, and its head has a command (`Run:`) and the output
//! (`Prints:`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use super::{output, prepare, root, scratch};
use crate::process::Started;

/// The folder of the built examples. `cargo test` builds them before the tests run; a test program that is
/// started alone builds what is missing or older than its sources.
pub fn built() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let profile = Path::new(env!("CARGO_BIN_EXE_pelago")).parent().unwrap();
        let folder = profile.join("examples");
        if !names().iter().all(|name| is_fresh(&folder.join(name))) {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--quiet", "--package", "pelago", "--examples"]).current_dir(root());
            cargo.env("CARGO_TARGET_DIR", profile.parent().unwrap());
            if profile.ends_with("release") {
                cargo.arg("--release");
            }
            assert!(cargo.status().unwrap().success(), "cargo builds no examples");
        }
        folder
    })
}

/// Whether a program is newer than all its sources, which cargo lists beside it.
fn is_fresh(program: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let Some(built) = changed(program) else { return false };
    let Ok(list) = fs::read_to_string(program.with_extension("d")) else { return false };
    let Some((_, sources)) = list.split_once(": ") else { return false };
    sources
        .split_whitespace()
        .all(|source| changed(Path::new(source)).is_some_and(|time: SystemTime| time <= built))
}

/// The names of the examples that explain something to users; `rounds` is for campaigns.
fn names() -> Vec<String> {
    let entries = fs::read_dir(root().join("pelago/examples")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned())).collect();
    names.retain(|name| name != "rounds");
    names.sort();
    names
}

/// The program of an example without the comment at its head.
pub fn body(source: &str) -> String {
    match source.strip_prefix("/*") {
        Some(rest) => rest.split_once("*/\n").unwrap().1.to_owned(),
        None => {
            let lines = source.lines().skip_while(|line| line.starts_with("//!") || line.is_empty());
            lines.map(|line| format!("{line}\n")).collect()
        }
    }
}

/// The command and the output that the head of an example names.
fn head(source: &str) -> (String, Vec<String>) {
    let lines = || source.lines().map_while(|line| line.strip_prefix("//!"));
    let command = lines().find_map(|line| line.trim().strip_prefix("Run:")).expect("a line `Run:`");
    let output = lines().skip_while(|line| line.trim() != "Prints:").skip(1);
    let output = output.map(|line| line.strip_prefix("   ").unwrap_or(line).to_owned());
    (command.trim().to_owned(), output.collect())
}

#[test]
fn examples_print_what_they_say() {
    let folder = scratch("examples");
    fs::create_dir_all(folder.join("target/release")).unwrap();
    std::os::unix::fs::symlink(built(), folder.join("target/release/examples")).unwrap();
    assert!(names().len() >= 10);
    for name in names() {
        let source = fs::read_to_string(root().join(format!("pelago/examples/{name}.rs"))).unwrap();
        assert!(source.lines().count() <= 80, "{name} has more than 80 lines");
        let (line, shown) = head(&source);
        assert!(line.ends_with(&format!("examples/{name}")), "{name}: {line}");
        // On one node, and on two with a network between them.
        for nodes in ["1", "2"] {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("exec 2>&1\n{line}")]).current_dir(&folder);
            prepare(&mut command);
            command.env("PELAGO_SIM_NODES", nodes);
            let ended = Started::new(command).end();
            assert_eq!(ended.status, 0, "{name} on {nodes} nodes: {}", ended.stdout);
            let printed: Vec<_> = ended.stdout.lines().collect();
            let shown: Vec<_> = shown.iter().map(String::as_str).collect();
            assert!(output::agrees(&shown, &printed), "{name} on {nodes} nodes prints\n{}", ended.stdout);
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}
