//! Cycles between the modules of a crate, and the order of the layers of `core` and `shmem`.
//!
//! Invariant: a module is a file or a folder directly below `src`. Module A uses module B if code of A
//! outside tests names a path that begins with `crate::B`. If each of two modules uses the other, directly or
//! through others, neither can be understood alone.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::lexer::Token;
use super::source::Source;

/// Crates with layers, and these from the ground up, as ARCHITECTURE.md has them. A layer uses those before
/// it; what is in no layer stands above all of them.
const LAYERS: [(&str, &[&str]); 2] = [
    (
        "core",
        &[
            "base",
            "memory",
            "endpoint",
            "job",
            "progress",
            "wait",
            "rma",
            "coll",
            "region",
            "messages",
            "msg",
            "message_coll",
            "wakers",
            "runtime",
            "footprint",
            "join",
            "process",
        ],
    ),
    ("shmem", &["base", "handles", "symmetric", "library"]),
];

/// Uses of one module by another, with the file and the line of the first use.
type Uses = BTreeMap<(String, String), (String, usize)>;

/// The cycles of all crates.
pub fn check(sources: &[Source]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources {
        if let Some((name, _)) = source.path.split_once("/src/") {
            crates.entry(name).or_default().push(source);
        }
    }
    crates.iter().flat_map(|(name, files)| check_crate(name, files)).collect()
}

fn check_crate(name: &str, files: &[&Source]) -> Vec<Finding> {
    let modules: BTreeSet<&str> = files.iter().filter_map(|file| module_of(&file.path)).collect();
    let mut uses = Uses::new();
    for file in files {
        let Some(own) = module_of(&file.path) else { continue };
        for (used, line) in used_modules(&file.code) {
            if used != own && modules.contains(used) {
                let at = (file.path.clone(), line);
                uses.entry((own.to_owned(), used.to_owned())).or_insert(at);
            }
        }
    }
    let mut findings = cycles(&uses);
    for (_, layers) in LAYERS.iter().filter(|(layered, _)| *layered == name) {
        findings.extend(upward(layers, &uses));
    }
    findings
}

/// The module of a file: the first part of its path below `src`; none for the root of a crate and for tests.
fn module_of(path: &str) -> Option<&str> {
    let (_, inside) = path.split_once("/src/")?;
    let module = inside.split('/').next()?.trim_end_matches(".rs");
    let is_test = inside.contains("/tests/") || inside.ends_with("tests.rs");
    (!is_test && !["lib", "main"].contains(&module)).then_some(module)
}

/// The first segments of all paths below `crate`, with their lines, except in test modules.
fn used_modules<'a>(code: &[Token<'a>]) -> Vec<(&'a str, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        if let Some(end) = end_of_test_module(&code[at..]) {
            at += end;
            continue;
        }
        let is_path = code[at].is("crate") && code[at + 1..].iter().take(2).all(|token| token.is(":"));
        if is_path && let Some(first) = code.get(at + 3) {
            match first.is("{") {
                true => found.extend(heads(&code[at + 4..])),
                false => found.push((first.text, first.line)),
            }
        }
        at += 1;
    }
    found
}

/// The first segments of the paths in a group whose brace is open.
fn heads<'a>(code: &[Token<'a>]) -> Vec<(&'a str, usize)> {
    let (mut depth, mut is_head, mut found) = (0, true, Vec::new());
    for token in code {
        match token.text {
            "{" => depth += 1,
            "}" if depth == 0 => break,
            "}" => depth -= 1,
            "," if depth == 0 => is_head = true,
            _ => {
                if depth == 0 && std::mem::take(&mut is_head) {
                    found.push((token.text, token.line));
                }
            }
        }
    }
    found
}

/// The number of tokens of a module that is compiled for tests only, if one begins here.
pub fn end_of_test_module(code: &[Token]) -> Option<usize> {
    let begins = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
    let is_one = code.len() > begins.len() && code.iter().zip(begins).all(|(token, text)| token.is(text));
    if !is_one || !code.get(begins.len() + 1)?.is("{") {
        return None;
    }
    let mut depth = 0;
    for (index, token) in code.iter().enumerate().skip(begins.len() + 1) {
        match token.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index + 1);
        }
    }
    None
}

/// A finding for each set of modules that use each other.
fn cycles(uses: &Uses) -> Vec<Finding> {
    let modules: BTreeSet<&str> = uses.keys().flat_map(|(from, to)| [from.as_str(), to.as_str()]).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        modules.iter().map(|&module| (module, reachable(module, uses))).collect();
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for &module in &modules {
        let is_mutual =
            |other: &&&str| reached[module].contains(**other) && reached[**other].contains(module);
        let cycle: Vec<&str> = modules.iter().filter(is_mutual).copied().collect();
        if cycle.len() < 2 || !seen.insert(cycle.clone()) {
            continue;
        }
        let inside =
            |(from, to): &(String, String)| cycle.contains(&from.as_str()) && cycle.contains(&to.as_str());
        let (_, (path, line)) = uses.iter().find(|(edge, _)| inside(edge)).expect("a cycle has edges");
        let message =
            format!("modules use each other: {}; let one of them not know the others", cycle.join(", "));
        findings.push(Finding { path: path.clone(), line: *line, rule: "module-cycle", message });
    }
    findings
}

fn reachable<'a>(from: &'a str, uses: &'a Uses) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for (_, to) in uses.keys().filter(|(from, _)| from == module) {
            if reached.insert(to.as_str()) {
                open.push(to);
            }
        }
    }
    reached
}

/// A finding for each use of a layer by one that stands below it.
fn upward(layers: &[&str], uses: &Uses) -> Vec<Finding> {
    let layer = |module: &str| layers.iter().position(|layer| *layer == module);
    let is_upward = |(from, to): &(String, String)| match (layer(from), layer(to)) {
        (Some(from), Some(to)) => to > from,
        (Some(_), None) => true,
        (None, _) => false,
    };
    let upward = uses.iter().filter(|(edge, _)| is_upward(edge));
    upward
        .map(|((from, to), (path, line))| {
            let message = format!("layer `{from}` uses `{to}`, which stands above it; see ARCHITECTURE.md");
            Finding { path: path.clone(), line: *line, rule: "layer", message }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<(String, &'static str)> {
        let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
        check(&sources).into_iter().map(|finding| (finding.path, finding.rule)).collect()
    }

    #[test]
    fn modules_that_use_each_other_are_found() {
        let files = [
            ("a/src/x.rs", "use crate::y::Y;"),
            ("a/src/y/mod.rs", "use crate::{Pe, z::{Z, ZZ}};"),
            ("a/src/z.rs", "fn f() -> crate::x::X {}"),
            ("a/src/w.rs", "use crate::x;"),
        ];
        assert_eq!(found(&files), [("a/src/x.rs".to_owned(), "module-cycle")]);
        assert_eq!(found(&files[..2]), []);
    }

    #[test]
    fn tests_comments_and_the_root_do_not_count() {
        let files = [
            ("a/src/x.rs", "use crate::y::Y;"),
            (
                "a/src/y.rs",
                "// crate::x\n#[cfg(test)]\nmod tests { use crate::x::X; fn f() { crate::x::f(); } }",
            ),
            ("a/src/lib.rs", "use crate::y; use crate::x;"),
            ("a/src/y/tests.rs", "use crate::x::X;"),
        ];
        assert_eq!(found(&files), []);
    }

    #[test]
    fn a_layer_that_uses_one_above_it_is_found() {
        let files = [
            ("core/src/wait/mod.rs", "use crate::base::Pe;"),
            ("core/src/base/mod.rs", ""),
            ("core/src/job/mod.rs", "use crate::wait::Engine;"),
            ("core/src/coll/mod.rs", "use crate::world::World;"),
            ("core/src/world.rs", ""),
            ("pelago/src/world.rs", "use crate::job::Job;"),
            ("shmem/src/handles.rs", "use crate::{base, library};"),
            ("shmem/src/library.rs", "use crate::base::Call;"),
            ("shmem/src/base.rs", ""),
            ("apps/src/job.rs", "use crate::wait::Wait;"),
            ("apps/src/wait.rs", ""),
        ];
        let expected = ["core/src/coll/mod.rs", "core/src/job/mod.rs", "shmem/src/handles.rs"];
        assert_eq!(found(&files), expected.map(|path| (path.to_owned(), "layer")));
    }
}
