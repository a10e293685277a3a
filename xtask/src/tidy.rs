//! `cargo xtask tidy`: the style rules of `docs/style.md` that the compiler and clippy do not check.
//!
//! Invariant: a rule is a pure function from sources to findings, so that its tests need no files; only this
//! file reads the tree and prints. A finding names the path, the line, the rule and the remedy.

mod arrow;
mod atomics;
mod comment;
mod folder;
mod length;
pub mod lexer;
mod licence;
mod manifest;
mod mark;
mod module_cycle;
mod name;
mod ratchet;
mod safety;
mod source;
mod stderr;
mod sync_point;
mod words;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace;
use source::Source;

/// The exceptions to the limits of length, relative to the root.
const RATCHET_PATH: &str = "xtask/tidy-ratchet.txt";

/// One violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The path relative to the root, with `/` between its parts.
    pub path: String,
    /// The number of the line, from 1.
    pub line: usize,
    pub rule: &'static str,
    pub message: String,
}

/// Checks the whole tree, prints every finding, and fails if there is one.
pub fn run() -> Result<()> {
    let root = workspace::root();
    let paths = tree(root)?;
    let texts = paths
        .iter()
        .filter(|path| path.ends_with(".rs"))
        .map(|path| Ok((path, read(&root.join(path))?)))
        .collect::<Result<Vec<_>>>()?;
    let sources: Vec<_> = texts.iter().map(|(path, text)| Source::new(path, text)).collect();
    let ratchet = read(&root.join(RATCHET_PATH))?;

    let mut findings = check(&paths, &sources, &ratchet);
    for path in paths.iter().filter(|path| path.ends_with(".md")) {
        findings.extend(words::check_guide(path, &read(&root.join(path))?));
    }
    let packages = workspace::metadata()?.packages;
    findings.extend(arrow::check(root, &packages));
    findings.extend(manifest::check(root, &packages));
    findings.extend(licence::check(&workspace::locked_packages()?));
    findings.sort();
    for Finding { path, line, rule, message } in &findings {
        println!("{path}:{line}: [{rule}] {message}");
    }
    if findings.is_empty() {
        println!("tidy: {} Rust files, no findings", sources.len());
        return Ok(());
    }
    bail!("findings of tidy, listed above: {}", findings.len())
}

/// The findings of all rules that examine files.
fn check(paths: &[String], sources: &[Source], ratchet: &str) -> Vec<Finding> {
    let mut findings = name::check(paths);
    findings.extend(folder::check(paths));
    for source in sources {
        findings.extend(atomics::check(source));
        findings.extend(comment::check(source));
        findings.extend(length::columns(source));
        findings.extend(mark::check(source));
        findings.extend(safety::check(source));
        findings.extend(stderr::check(source));
        findings.extend(words::check(source));
    }
    findings.extend(module_cycle::check(sources));
    findings.extend(sync_point::check(sources));
    let excesses: Vec<_> = sources.iter().flat_map(length::excesses).collect();
    findings.extend(ratchet::check(RATCHET_PATH, ratchet, &excesses));
    findings
}

/// Every file below `root`, except hidden files and build outputs, relative to it and sorted.
fn tree(root: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let here = root.join(&folder);
        for entry in here.read_dir().with_context(|| format!("cannot list {}", here.display()))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            if !entry.file_type()?.is_dir() {
                paths.push(path.to_string_lossy().into_owned());
            } else if !entry.path().join("CACHEDIR.TAG").exists() {
                folders.push(path);
            }
        }
    }
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_on_files_is_called() {
        let wide = format!("//! A.\n// SYNC POINT one-ended\n// {}\n", "x".repeat(120));
        let bare = concat!("//! B.\nuns", "afe impl Send for B {}\n");
        let put_off = concat!("//! C.\n// FIX", "ME\n");
        let imports = "use std::sync::atomic::AtomicU8;\n// f(1);\nfn f() { eprintln!(); }\n";
        let sources = [
            Source::new("pelago/src/a.rs", &wide),
            Source::new("pelago/src/b.rs", bare),
            Source::new("pelago/src/c.rs", put_off),
            Source::new("pelago/src/d.rs", imports),
            Source::new(
                "core/src/base/e.rs",
                "//! This comment has the refused phrase `so many`.\nuse crate::f::F;\n",
            ),
            Source::new("core/src/f.rs", "//! F.\nuse crate::base::E;\n"),
        ];
        let paths: Vec<_> = (0..26).map(|i| format!("boot/src/a{i}_old.rs")).collect();
        let mut rules: Vec<_> =
            check(&paths, &sources, "nonsense").into_iter().map(|finding| finding.rule).collect();
        rules.sort();
        rules.dedup();
        assert_eq!(
            rules,
            [
                "atomics",
                "columns",
                "commented-code",
                "file-header",
                "file-name",
                "folder",
                "layer",
                "module-cycle",
                "ratchet",
                "safety",
                "stderr",
                "sync-point",
                "unfinished",
                "words"
            ]
        );
    }

    #[test]
    fn the_tree_leaves_out_hidden_files_and_build_folders() {
        let root = std::env::temp_dir().join(format!("pelago-tidy-{}", std::process::id()));
        for folder in ["src", "target/debug", ".git"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in ["src/lib.rs", "target/CACHEDIR.TAG", "target/debug/gen.rs", ".git/x.rs", "README.md"] {
            std::fs::write(root.join(file), "").unwrap();
        }
        let found = tree(&root);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found.unwrap(), ["README.md", "src/lib.rs"]);
    }
}
