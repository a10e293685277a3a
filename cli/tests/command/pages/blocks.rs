//! The blocks of code of a page.
//!
//! Invariant: a block that is none of the known kinds is an error, so no block is left untested by mistake.

use std::path::Path;

use super::output;

/// The treatment of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A test of the documentation.
    Rust,
    /// Commands with their output.
    Console,
    /// A file in another language.
    File,
}

/// A block of code.
#[derive(Debug)]
pub struct Block {
    pub kind: Kind,
    /// Whether it is for the full tier.
    pub is_full: bool,
    /// Whether its commands fail.
    pub fails: bool,
    /// The file that the line above names, as in "`src/bin/ring.rs`:".
    pub file: Option<String>,
    /// The lines of the block.
    pub text: String,
}

/// A command and the lines that it prints.
#[derive(Debug, PartialEq)]
pub struct Call {
    pub line: String,
    pub output: Vec<String>,
}

/// The blocks of a page, or what is wrong with one.
pub fn blocks(page: &str) -> Result<Vec<Block>, String> {
    let (mut found, mut above) = (Vec::new(), "");
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else {
            above = if line.trim().is_empty() { above } else { line };
            continue;
        };
        let block: Vec<_> = lines.by_ref().take_while(|line| line.trim_start() != "```").collect();
        let text = block.iter().map(|line| format!("{line}\n")).collect();
        let words: Vec<_> = info.split(',').collect();
        let file = above.strip_prefix('`').and_then(|rest| rest.strip_suffix("`:"));
        let kind = match (words[0], file) {
            ("rust", _) => Kind::Rust,
            ("console", None) => Kind::Console,
            ("c" | "toml" | "cmake" | "lua", Some(_)) => Kind::File,
            _ => return Err(format!("the block `{info}` is not tested: no program of a file, no command")),
        };
        if let Some(word) = words[1..].iter().find(|word| !["full", "fails"].contains(word)) {
            return Err(format!("a block is marked `{word}`"));
        }
        let (is_full, fails) = (words.contains(&"full"), words.contains(&"fails"));
        found.push(Block { kind, is_full, fails, file: file.map(str::to_owned), text });
        above = "";
    }
    Ok(found)
}

impl Block {
    /// The commands of the block: lines after `$`, which go on where they end in a backslash.
    pub fn calls(&self) -> Vec<Call> {
        let mut calls: Vec<Call> = Vec::new();
        let mut goes_on = false;
        for line in self.text.lines() {
            if let Some(line) = line.strip_prefix("$ ") {
                calls.push(Call { line: line.to_owned(), output: Vec::new() });
            } else {
                let call = calls.last_mut().expect("a block begins with a command");
                match goes_on {
                    true => call.line.push_str(&format!("\n{line}")),
                    false => call.output.push(line.to_owned()),
                }
                goes_on &= line.ends_with('\\');
                continue;
            }
            goes_on = line.ends_with('\\');
        }
        calls
    }

    /// Compares the end of a command with what the page shows.
    #[track_caller]
    pub fn compare(&self, page: &Path, call: &Call, status: i32, printed: &str) {
        let (page, line) = (page.display(), &call.line);
        assert_eq!(status != 0, self.fails, "{page}: `{line}` has ended with status {status}: {printed}");
        let printed: Vec<_> = printed.lines().collect();
        let shown: Vec<_> = call.output.iter().map(String::as_str).collect();
        assert!(
            output::agrees(&shown, &printed),
            "{page}: `{line}` prints\n{}\nand the page shows\n{}",
            printed.join("\n"),
            shown.join("\n")
        );
    }
}

#[test]
fn blocks_have_kinds_files_and_commands() {
    let page = "Text.\n\n`src/a.rs`:\n\n```rust\nfn main() {}\n```\n\n\
                ```console,full,fails\n$ one \\\n  two\nout\n$ three\n```\n";
    let found = blocks(page).unwrap();
    let kinds: Vec<_> = found.iter().map(|block| (block.kind, block.is_full, block.fails)).collect();
    assert_eq!(kinds, [(Kind::Rust, false, false), (Kind::Console, true, true)]);
    assert_eq!(found[0].file.as_deref(), Some("src/a.rs"));
    assert_eq!((&*found[0].text, &found[1].file), ("fn main() {}\n", &None));
    let call = |line: &str, output: &[&str]| Call {
        line: line.to_owned(),
        output: output.iter().map(|&line| line.to_owned()).collect(),
    };
    assert_eq!(found[1].calls(), [call("one \\\n  two", &["out"]), call("three", &[])]);
}

#[test]
fn a_block_that_nothing_tests_is_an_error() {
    for info in ["", "text", "sh", "c", "console,ignored", "rust,ignore", "rust,no_run"] {
        assert!(blocks(&format!("A line.\n\n```{info}\nx\n```\n")).is_err(), "{info}");
    }
}
