//! Phrases of comments and guides that a new reader does not understand: see `docs/style.md`.
//!
//! Invariant: a comment is made of sentences with a subject and a verb, in the field's terms.

use super::Finding;
use super::source::Source;

/// A phrase, in small letters, and the remedy.
const PHRASES: [(&str, &str); 9] = [
    ("so many", "give the number a name, or write `this number of`"),
    ("that one,", "repeat the noun"),
    ("that one.", "repeat the noun"),
    ("as there", "write `because there`"),
    ("in words", "write `with an error message`"),
    ("vouch", "write `guarantees`"),
    ("whoever", "name the PE, the thread or the caller"),
    ("answers the", "write `returns the` or `replies with the`"),
    ("answers a", "write `returns a` or `replies with a`"),
];
/// Nouns that a sentence may not begin with.
const BEGINNINGS: [&str; 2] = ["Who ", "What "];

/// Finds the phrases in the comments of a Rust file.
pub fn check(source: &Source) -> Vec<Finding> {
    let comments = source.tokens.iter().filter(|token| token.is_comment());
    comments.flat_map(|comment| check_lines(&source.path, comment.line, comment.text)).collect()
}

/// Finds the phrases in a Markdown file, except in its blocks of code.
pub fn check_guide(path: &str, text: &str) -> Vec<Finding> {
    let mut is_code = false;
    let mut prose = String::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        prose.push_str(if is_code || is_fence { "" } else { line });
        prose.push('\n');
    }
    check_lines(path, 1, &prose)
}

/// Finds the phrases in the lines of a text, the first of which has the number `first_line`.
fn check_lines(path: &str, first_line: usize, text: &str) -> Vec<Finding> {
    let finding = |(index, line)| {
        let (phrase, instead) = found(line)?;
        let message = format!("`{phrase}`: {instead}");
        Some(Finding { path: path.to_string(), line: first_line + index, rule: "words", message })
    };
    text.lines().enumerate().filter_map(finding).collect()
}
fn found(line: &str) -> Option<(&'static str, &'static str)> {
    let small = line.to_lowercase();
    let is_word = |phrase: &str| {
        small.match_indices(phrase).any(|(at, _)| !small[..at].ends_with(|c: char| c.is_alphanumeric()))
    };
    if let Some(found) = PHRASES.iter().find(|(phrase, _)| is_word(phrase)) {
        return Some(*found);
    }
    let text = line.trim_start_matches(['/', '!', ' ']);
    let begins = |word: &&&str| text.starts_with(**word) || line.contains(&format!(". {word}"));
    let is_question = line.trim_end().ends_with('?');
    let beginning = BEGINNINGS.iter().find(begins).filter(|_| !is_question)?;
    Some((beginning, "begin with the noun: the PE, the thread, the message"))
}
#[cfg(test)]
mod tests {
    use super::*;
    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Source::new(path, text)).into_iter().map(|finding| finding.line).collect()
    }
    #[test]
    fn phrases_and_beginnings_are_found_in_comments_alone() {
        let text = "//! Bytes of so many elements.\n/// Who waits sleeps.\n\
                    // It is done. What follows is not.\n\
                    const A: &str = \"so many\";\n// What follows?\n// The caller somany.\n";
        assert_eq!(lines("pelago/src/base/a.rs", text), [1, 2, 3]);
        for (phrase, _) in PHRASES {
            assert_eq!(lines("schedule/src/a.rs", &format!("// {phrase} \n")), [1], "{phrase}");
        }
    }
    #[test]
    fn phrases_are_found_in_guides_but_not_in_their_code() {
        let text = "# A guide\n\n1. Whoever waits.\n```text\nso many\n```\nWhat follows is prose.\n";
        let lines: Vec<_> = check_guide("guide.md", text).iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [3, 7]);
    }
}
