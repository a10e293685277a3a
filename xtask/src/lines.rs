//! `cargo xtask lines`: the lines of code of each crate and of each of its folders, without comments, blank
//! lines and tests.
//!
//! Invariant: a line counts if a token other than a comment begins on it, and if its code is compiled without
//! tests and documentation tests: items with `cfg(test)` or `cfg(doctest)` do not count, nor do the files of
//! modules that are declared with them. Only Rust files below `src` count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::tidy::lexer::{self, Token};
use crate::workspace;

/// One line of the result.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct Row {
    package: String,
    /// The path relative to the root of the workspace, including the folders below it; `None` for the whole
    /// crate.
    folder: Option<String>,
    files: usize,
    lines: usize,
}

/// The counts of a folder and of the folders below it.
#[derive(Clone, Copy, Default)]
struct Sum {
    files: usize,
    lines: usize,
}

/// Prints the counts of all members of the workspace: a table, or with `json` one array of objects
/// `{package, folder, files, lines}`.
pub fn run(json: bool) -> Result<()> {
    let mut rows = Vec::new();
    for package in workspace::metadata()?.packages {
        let root = package.manifest_path.parent().context("a manifest lies in a folder")?;
        rows.extend(count(&package.name, root)?);
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        print!("{}", table(&rows));
    }
    Ok(())
}

/// The rows of a package: the whole package, and each folder of its sources.
fn count(package: &str, root: &Path) -> Result<Vec<Row>> {
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let texts = sources(&root.join("src"))?;
    let units: Vec<(&PathBuf, Unit)> = texts.iter().map(|(path, text)| (path, unit(text))).collect();
    let modules = units.iter().flat_map(|(path, unit)| test_modules(path, &unit.test_modules));
    let tests: BTreeSet<PathBuf> = modules.collect();
    let is_test = |path: &Path| path.ancestors().any(|path| tests.contains(path));
    let (mut all, mut folders) = (Sum::default(), BTreeMap::<String, Sum>::new());
    for (path, unit) in &units {
        if is_test(path) || is_test(&path.with_extension("")) {
            continue;
        }
        let relative = path.strip_prefix(root).unwrap_or(path);
        for folder in relative.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            add(folders.entry(format!("{name}/{}", folder.display())).or_default(), unit.lines);
        }
        add(&mut all, unit.lines);
    }
    let row =
        |folder, sum: Sum| Row { package: package.to_string(), folder, files: sum.files, lines: sum.lines };
    let folders = folders.into_iter().map(|(folder, sum)| row(Some(folder), sum));
    Ok(std::iter::once(row(None, all)).chain(folders).collect())
}

fn add(sum: &mut Sum, lines: usize) {
    sum.files += 1;
    sum.lines += lines;
}

/// The Rust files below a folder, with their texts, sorted.
fn sources(folder: &Path) -> Result<BTreeMap<PathBuf, String>> {
    let (mut texts, mut folders) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path);
                texts.insert(path.clone(), text.with_context(|| format!("cannot read {}", path.display()))?);
            }
        }
    }
    Ok(texts)
}

/// The paths of the modules of a file: `name` denotes `name.rs` and the folder `name`.
fn test_modules(path: &Path, names: &[String]) -> Vec<PathBuf> {
    let is_root = ["mod.rs", "lib.rs", "main.rs"].iter().any(|name| path.ends_with(name));
    let folder = if is_root { path.parent().unwrap_or(path).to_path_buf() } else { path.with_extension("") };
    names.iter().map(|name| folder.join(name)).collect()
}

/// The counts of a file.
#[derive(Debug, PartialEq, Eq)]
struct Unit {
    lines: usize,
    /// Modules that are declared for tests only.
    test_modules: Vec<String>,
}

/// Counts the lines of a file.
fn unit(text: &str) -> Unit {
    let code: Vec<Token> = lexer::tokens(text).into_iter().filter(|token| !token.is_comment()).collect();
    let (mut lines, mut test_modules, mut at) = (BTreeSet::new(), Vec::new(), 0);
    while at < code.len() {
        let behind = attribute(&code, at);
        if behind == at || is_compiled(&code[at..behind]) {
            let behind = behind.max(at + 1);
            lines.extend(code[at..behind].iter().flat_map(spanned));
            at = behind;
            continue;
        }
        if code[at + 1].is("!") {
            // The attribute disables the whole file, or the rest of a module: tests are in separate modules.
            break;
        }
        let end = item(&code, behind);
        test_modules.extend(module(&code[behind..end]));
        at = end;
    }
    Unit { lines: lines.len(), test_modules }
}

/// The lines of a token.
fn spanned(token: &Token) -> std::ops::RangeInclusive<usize> {
    token.line..=token.line + token.text.matches('\n').count()
}

/// The end of the attribute that begins at `at`; `at`, if none begins there.
fn attribute(code: &[Token], at: usize) -> usize {
    let open = if code.get(at + 1).is_some_and(|token| token.is("!")) { at + 2 } else { at + 1 };
    let begins = code[at].is("#") && code.get(open).is_some_and(|token| token.is("["));
    if begins { closing(code, open) } else { at }
}

/// The position after the token that closes the bracket at `open`.
fn closing(code: &[Token], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in code.iter().enumerate().skip(open) {
        if ["(", "[", "{"].iter().any(|bracket| token.is(bracket)) {
            depth += 1;
        } else if [")", "]", "}"].iter().any(|bracket| token.is(bracket)) {
            depth -= 1;
            if depth == 0 {
                return at + 1;
            }
        }
    }
    code.len()
}

/// Whether the item of an attribute is compiled without tests.
fn is_compiled(attribute: &[Token]) -> bool {
    let open = attribute.iter().position(|token| token.is("[")).unwrap_or(0);
    match attribute.get(open + 1) {
        Some(name) if name.is("test") => false,
        Some(name) if name.is("cfg") => holds(&attribute[open + 3..attribute.len() - 2]),
        _ => true,
    }
}

/// Whether a condition may hold without tests; all other predicates are assumed to be possible.
fn holds(condition: &[Token]) -> bool {
    let Some(first) = condition.first() else { return true };
    let inside = || parts(&condition[2..condition.len() - 1]);
    match first.text {
        "test" | "doctest" => false,
        "all" => inside().into_iter().all(holds),
        "any" => inside().into_iter().any(holds),
        // Any other predicate, or the negation of one, may hold.
        _ => true,
    }
}

/// Splits a list at its commas.
fn parts<'a, 'b>(list: &'b [Token<'a>]) -> Vec<&'b [Token<'a>]> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while at < list.len() {
        if list[at].is("(") {
            at = closing(list, at);
            continue;
        }
        if list[at].is(",") {
            parts.push(&list[start..at]);
            start = at + 1;
        }
        at += 1;
    }
    if start < list.len() {
        parts.push(&list[start..]);
    }
    parts
}

/// The position after the item, field or statement that begins at `at`, including its attributes.
fn item(code: &[Token], mut at: usize) -> usize {
    while at < code.len() && attribute(code, at) > at {
        at = attribute(code, at);
    }
    while at < code.len() {
        if code[at].is(";") || code[at].is("}") {
            return at + usize::from(code[at].is(";"));
        }
        if code[at].is("{") {
            let end = closing(code, at);
            return end + usize::from(code.get(end).is_some_and(|token| token.is(";")));
        }
        at = if code[at].is("(") || code[at].is("[") { closing(code, at) } else { at + 1 };
    }
    at
}

/// The name of the module that an item declares, if its code is in another file.
fn module(item: &[Token]) -> Option<String> {
    let at = item.iter().position(|token| token.is("mod"))?;
    let is_elsewhere = item.get(at + 2).is_some_and(|token| token.is(";"));
    is_elsewhere.then(|| item[at + 1].text.to_string())
}

fn table(rows: &[Row]) -> String {
    let name = |row: &Row| row.folder.as_ref().map_or(row.package.clone(), |folder| format!("  {folder}"));
    let width = rows.iter().map(|row| name(row).len()).max().unwrap_or(0);
    let mut table = format!("{:<width$}  files   lines\n", "crate, folder");
    for row in rows {
        table += &format!("{:<width$}  {:>5}  {:>6}\n", name(row), row.files, row.lines);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> usize {
        unit(text).lines
    }

    #[test]
    fn comments_and_blank_lines_are_no_code() {
        assert_eq!(lines("//! A.\n\n/// B.\nfn f() {\n    // c\n    g(); // d\n\n}\n/* e\nf */\n"), 3);
        assert_eq!(lines("const TEXT: &str = \"// a\n\nb\";\n"), 3, "a string is code on all its lines");
    }

    #[test]
    fn tests_are_no_code() {
        assert_eq!(lines("fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() { h(); }\n}\nfn i() {}\n"), 2);
        assert_eq!(lines("#[cfg(test)]\n#[derive(Debug)]\nstruct A {\n    b: u8,\n}\nfn i() {}\n"), 1);
        assert_eq!(lines("#[cfg(test)]\nuse a::{b, c};\nuse d::e;\n"), 1);
        assert_eq!(lines("#[cfg(all(test, not(loom)))]\nmod tests {}\nuse d::e;\n"), 1);
        assert_eq!(lines("#[cfg(doctest)]\nmod readme {}\nuse d::e;\n"), 1);
        assert_eq!(lines("#![cfg(test)]\nfn f() {}\n"), 0);
    }

    #[test]
    fn code_under_other_conditions_counts() {
        for attribute in ["#[cfg(not(test))]", "#[cfg(not(loom))]", "#[cfg(any(test, unix))]", "#[inline]"] {
            assert_eq!(lines(&format!("{attribute}\nfn f() {{}}\n")), 2, "{attribute}");
        }
        assert_eq!(lines("#[cfg(all(not(loom), test))]\nfn f() {}\n"), 0);
    }

    #[test]
    fn modules_of_tests_are_named() {
        let found = unit("#[cfg(test)]\nmod tests;\n#[cfg(test)]\npub(crate) mod walk;\nmod b;\n");
        let names = ["tests".to_string(), "walk".to_string()];
        assert_eq!(found, Unit { lines: 1, test_modules: names.to_vec() });
        let path = |names: &[String], of: &str| test_modules(Path::new(of), names);
        assert_eq!(path(&names[..1], "src/a/mod.rs"), [PathBuf::from("src/a/tests")]);
        assert_eq!(path(&names[..1], "src/a.rs"), [PathBuf::from("src/a/tests")]);
        assert_eq!(path(&names[..1], "src/lib.rs"), [PathBuf::from("src/tests")]);
    }

    #[test]
    fn a_crate_is_the_sum_of_its_files() {
        let root = std::env::temp_dir().join(format!("pelago-lines-{}", std::process::id()));
        std::fs::create_dir_all(root.join("src/deep/tests")).unwrap();
        let files = [
            ("src/lib.rs", "mod deep;\nfn f() {}\n"),
            ("src/deep/mod.rs", "#[cfg(test)]\nmod tests;\nfn g() {}\n"),
            ("src/deep/tests.rs", "fn h() {}\n"),
            ("src/deep/tests/more.rs", "fn i() {}\n"),
        ];
        files.iter().for_each(|(path, text)| std::fs::write(root.join(path), text).unwrap());
        let rows = count("some", &root);
        std::fs::remove_dir_all(&root).unwrap();
        let rows = rows.unwrap();
        let seen: Vec<_> = rows.iter().map(|row| (row.files, row.lines)).collect();
        assert_eq!(seen, [(2, 3), (2, 3), (1, 1)], "the crate, its src, and the folder in that");
        assert!(rows[2].folder.as_ref().unwrap().ends_with("/src/deep"));
        assert!(table(&rows).starts_with("crate, folder"));
    }
}
