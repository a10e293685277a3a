//! Sync points: a comment `SYNC POINT name` is at both ends of every release/acquire pair.
//!
//! Invariant: a name occurs at least twice in the tree, so that the reader of one end finds the other by
//! searching. Between back-quotes, as above, the words only mention a sync point.

use std::collections::BTreeMap;

use super::Finding;
use super::source::Source;

const MARK: &str = "SYNC POINT";

/// Finds sync points that have no name or no other end.
pub fn check(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut ends = BTreeMap::<&str, Vec<(&Source, usize)>>::new();
    for source in sources {
        for (line, name) in marks(source) {
            if name.is_empty() {
                findings.push(source.finding(line, "sync-point", "a sync point without a name"));
            } else {
                ends.entry(name).or_default().push((source, line));
            }
        }
    }
    for (name, places) in ends {
        if let [(source, line)] = places[..] {
            let message = format!("`{name}` has one end: mark the other end, or correct the name");
            findings.push(source.finding(line, "sync-point", message));
        }
    }
    findings
}

/// The line and the name of every sync point in the comments of a file.
fn marks<'a>(source: &Source<'a>) -> Vec<(usize, &'a str)> {
    let mut marks = Vec::new();
    for comment in source.tokens.iter().filter(|token| token.is_comment()) {
        for (at, _) in comment.text.match_indices(MARK) {
            let (before, after) = (&comment.text[..at], &comment.text[at + MARK.len()..]);
            if !before.ends_with('`') {
                marks.push((comment.line + before.matches('\n').count(), name(after)));
            }
        }
    }
    marks
}

/// The name after the words `SYNC POINT`: letters, digits, `_` and `-`, with points inside.
fn name(after: &str) -> &str {
    let Some(word) = after.strip_prefix(' ') else { return "" };
    let in_name = |char: char| char.is_alphanumeric() || "_-.".contains(char);
    word[..word.find(|char| !in_name(char)).unwrap_or(word.len())].trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(texts: &[&str]) -> Vec<String> {
        let sources: Vec<_> = texts.iter().map(|text| Source::new("a.rs", text)).collect();
        check(&sources).into_iter().map(|finding| format!("{}: {}", finding.line, finding.message)).collect()
    }

    #[test]
    fn both_ends_in_one_file_or_in_two_pass() {
        let ends = ["// SYNC POINT ring-head: release", "fn f() {}\n// SYNC POINT ring-head."];
        assert_eq!(messages(&ends), [""; 0]);
        assert_eq!(messages(&[&ends.join("\n")]), [""; 0]);
    }

    #[test]
    fn a_lonely_end_is_found_with_its_line() {
        let found = messages(&["fn f() {}\n/* a\nSYNC POINT flag */", "// SYNC POINT flags"]);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("3: `flag` has one end"), "{found:?}");
    }

    #[test]
    fn a_nameless_one_is_found() {
        assert_eq!(messages(&["// SYNC POINT"]), ["1: a sync point without a name"]);
        assert_eq!(messages(&["// SYNC POINT: a"]), ["1: a sync point without a name"]);
    }

    #[test]
    fn mentions_and_strings_do_not_count() {
        assert_eq!(messages(&["// a `SYNC POINT name`\nconst A: &str = \"SYNC POINT b\";"]), [""; 0]);
    }
}
