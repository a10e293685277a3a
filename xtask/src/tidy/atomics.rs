//! Atomics: only the fabric's `sync` module imports them, so that loom can replace them.
//!
//! Invariant: no path in the tree, in full or in a group of `use`, reaches the `atomic` module of std, core
//! or loom, except in the files of `ALLOWED`.

use super::Finding;
use super::lexer::{Kind, Token};
use super::source::Source;

/// Where atomics may be imported: the start of a path, and the reason.
const ALLOWED: [(&str, &str); 1] = [("fabric/src/sync.rs", "the one import, std's or loom's")];

/// Finds imports and uses of atomics in a file that may not have them.
pub fn check(source: &Source) -> Vec<Finding> {
    if ALLOWED.iter().any(|(path, _)| source.path.starts_with(path)) {
        return Vec::new();
    }
    let mut lines: Vec<_> = source
        .code
        .iter()
        .enumerate()
        .filter(|(at, token)| token.kind == Kind::Ident && reaches_atomics(&source.code, *at))
        .map(|(_, token)| token.line)
        .collect();
    lines.dedup();
    let message = "take atomics from the fabric's `sync` module, so that loom can replace them";
    lines.into_iter().map(|line| source.finding(line, "atomics", message)).collect()
}

/// Whether a path that starts at token `at` leads into the `atomic` module.
fn reaches_atomics(code: &[Token], at: usize) -> bool {
    let starts = ["std", "core", "loom"].iter().any(|name| code[at].is(name));
    starts && leads_to(&code[at + 1..], &["sync", "atomic"])
}

/// Whether `::` and the rest of the path follow, possibly inside a group of `use`.
fn leads_to(code: &[Token], path: &[&str]) -> bool {
    let [step, rest_of_path @ ..] = path else { return true };
    let [first, second, after @ ..] = code else { return false };
    if !first.is(":") || !second.is(":") {
        return false;
    }
    let branches: Vec<_> =
        if after.first().is_some_and(|token| token.is("{")) { group_branches(after) } else { vec![after] };
    branches.iter().any(|branch| {
        branch.first().is_some_and(|token| token.is(step)) && leads_to(&branch[1..], rest_of_path)
    })
}

/// The code from the start of each branch of the group at the start of `code`.
fn group_branches<'a, 'b>(code: &'b [Token<'a>]) -> Vec<&'b [Token<'a>]> {
    let mut branches = Vec::new();
    let mut depth = 0usize;
    for (at, token) in code.iter().enumerate() {
        match token.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && (token.is("{") || token.is(",")) {
            branches.push(&code[at + 1..]);
        }
    }
    branches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Source::new(path, text)).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn imports_and_paths_are_found_however_they_are_written() {
        for text in [
            "use std::sync::atomic::AtomicU64;",
            "use core::sync::atomic::{AtomicU64, Ordering};",
            "use loom::sync::atomic::AtomicU64;",
            "use ::std::sync::atomic;",
            "use std::sync::{Arc, atomic::AtomicU64};",
            "use std::{mem::{self, size_of}, sync::{Mutex, atomic}};",
            "use std::{sync::atomic};",
            "fn f() { std::sync::atomic::fence(o); }",
        ] {
            assert_eq!(lines("pelago/src/a.rs", text), [1], "{text}");
        }
    }

    #[test]
    fn the_line_is_that_of_the_path() {
        assert_eq!(lines("pelago/src/a.rs", "//! A.\n\nuse std::\n    sync::atomic::AtomicU8;"), [3]);
    }

    #[test]
    fn other_imports_comments_and_strings_pass() {
        for text in [
            "use std::sync::{Arc, Mutex};",
            "use pelago_fabric::sync::AtomicU64;",
            "use std::{sync::Arc, collections::atomic};",
            "// use std::sync::atomic::AtomicU64",
            "const A: &str = \"std::sync::atomic\";",
        ] {
            assert_eq!(lines("pelago/src/a.rs", text), [0; 0], "{text}");
        }
    }

    #[test]
    fn only_the_listed_places_may() {
        let import = "use std::sync::atomic::AtomicU64;";
        assert_eq!(lines("fabric/src/sync.rs", import), [0; 0]);
        assert_eq!(lines("fabric/src/shm/ring.rs", import), [1]);
        assert_eq!(lines("boot/src/job.rs", import), [1]);
    }
}
