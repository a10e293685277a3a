//! The pages for users, README and guide, and the examples: every command of a page is run and prints what
//! the page shows, with times masked, and every program on a page is one of the examples.
//!
//! Invariant: a page has blocks of three kinds, and no other: `rust`, which is a test of the documentation;
//! a program of which the line above names the file; and `console`, commands after `$` with their output.
//! Commands that build something (`console,full`) run in the full tier; in the quick tier the examples, which
//! `cargo test` has built, take the place of what they build.

mod blocks;
mod examples;
#[cfg(feature = "full")]
mod literally;
mod output;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::blocks::{Block, Kind, blocks};
use super::process::{Started, run};

/// The pages of the guide, in their order, and the page before all others.
fn pages() -> Vec<PathBuf> {
    let guide = root().join("pelago/guide");
    let summary = fs::read_to_string(guide.join("SUMMARY.md")).unwrap();
    let links = summary.split("](").skip(1).map(|rest| guide.join(rest.split(')').next().unwrap()));
    let pages: Vec<_> = [root().join("README.md")].into_iter().chain(links).collect();
    assert!(pages.len() > 10, "{pages:?}");
    pages
}

/// The folder of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The blocks of a page.
fn blocks_of(page: &Path) -> Vec<Block> {
    let text = fs::read_to_string(page).unwrap();
    blocks(&text).unwrap_or_else(|wrong| panic!("{}: {wrong}", page.display()))
}

/// A folder of this process, empty. It is outside of the workspace, or a crate in it would become a member.
fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("pelago-pages-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The environment of the commands: this `pelago` before all others, hosts that are this machine, and none of
/// a user's settings that change what is printed.
fn prepare(command: &mut Command) {
    let bin = Path::new(env!("CARGO_BIN_EXE_pelago")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let agent = root().join("cli/tests/command/nearby.sh");
    command.env("PATH", path).env("PELAGO_LAUNCH_AGENT", agent).env("RUST_BACKTRACE", "0");
    command.env_remove("COLUMNS").env("LC_ALL", "C");
}

#[test]
fn every_command_prints_what_its_page_shows() {
    let tour = scratch("quick");
    fs::create_dir(tour.join("target")).unwrap();
    symlink(examples::built(), tour.join("target/release")).unwrap();
    let mut count = 0;
    for page in pages() {
        for block in blocks_of(&page).iter().filter(|block| block.kind == Kind::Console && !block.is_full) {
            for call in block.calls() {
                // The command itself is under test, not how cargo builds it.
                let line = call.line.replace("cargo run --release -- ", "pelago ");
                let mut command = Command::new("sh");
                command.args(["-c", &format!("exec 2>&1\n{line}")]).current_dir(&tour);
                prepare(&mut command);
                // `pelago ps` shows the jobs of the page alone.
                command.env("PELAGO_JOBS_FOLDER", tour.join("jobs"));
                let ended = Started::new(command).end();
                block.compare(&page, &call, ended.status, &ended.stdout);
                count += 1;
            }
        }
    }
    assert!(count >= 20, "only {count} commands were found");
    fs::remove_dir_all(&tour).unwrap();
}

/// A command in a sentence is not run, but its words are accepted: with `--help` behind them it prints help.
#[test]
fn commands_in_sentences_are_accepted() {
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for code in text.split('`').filter_map(|code| code.strip_prefix("pelago ")) {
            let words: Vec<_> = code.split_whitespace().collect();
            // A program that `run` starts would get the option.
            if words.first().is_none_or(|&word| word == "run") || code.contains('\n') {
                continue;
            }
            let ended = run(&[&words[..], &["--help"]].concat());
            assert_eq!(ended.status, 0, "{}: `pelago {code}`: {}", page.display(), ended.stderr);
            count += 1;
        }
    }
    assert!(count >= 10, "only {count} commands were found");
}

#[test]
fn programs_on_pages_are_the_examples() {
    let folders = ["pelago/examples", "shmem/examples", "mpi/examples"].map(|folder| root().join(folder));
    let mut count = 0;
    for page in pages() {
        for block in blocks_of(&page) {
            let Some(file) = &block.file else { continue };
            let name = Path::new(file).file_name().unwrap();
            let sources = folders.iter().filter_map(|folder| fs::read_to_string(folder.join(name)).ok());
            let bodies: Vec<_> = sources.map(|source| examples::body(&source)).collect();
            // A program that no example has is built and run in the full tier.
            let is_one = bodies.is_empty() || bodies.contains(&block.text);
            assert!(is_one, "{}: {file} is not the example of this name", page.display());
            count += usize::from(!bodies.is_empty());
        }
    }
    assert!(count >= 8, "only {count} programs were found");
}

#[test]
fn the_index_of_the_book_has_a_link_for_every_name() {
    let guide = root().join("pelago/guide");
    let (page, links) =
        ["api.md", "api.links"].map(|file| fs::read_to_string(guide.join(file)).unwrap()).into();
    let names: Vec<_> = page.split("[`").skip(1).map(|rest| rest.split("`]").next().unwrap()).collect();
    assert!(names.len() > 80, "{names:?}");
    for name in names {
        let search = name.trim_end_matches('!');
        let link = format!("\n[`{name}`]: https://docs.rs/pelago/latest/pelago/?search={search}\n");
        assert!(links.contains(&link), "api.links has no line{link}");
    }
}

#[test]
fn the_readme_is_short() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= 150, "README.md has {lines} lines; what it does not need is for the guide");
}
