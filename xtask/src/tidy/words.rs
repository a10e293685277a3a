//! Phrases of comments and guides that a reader from outside stumbles over: see `docs/style.md`.
//!
//! Invariant: a comment is made of sentences with a subject and a verb, in the field's terms.

use super::Finding;
use super::source::Source;

/// A phrase, in small letters, and what to write instead.
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
/// Where the rule holds. It is to hold everywhere.
const PLACES: [&str; 7] =
    ["pelago/src/", "schedule/src/", "fabric/src/", "shmem/src/", "apps/src/", "boot/src/", "derive/src/"];

/// The phrases in the comments of a file.
pub fn check(source: &Source) -> Vec<Finding> {
    if !PLACES.iter().any(|place| source.path.starts_with(place)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for comment in source.tokens.iter().filter(|token| token.is_comment()) {
        for (index, line) in comment.text.lines().enumerate() {
            if let Some((phrase, instead)) = found(line) {
                let message = format!("`{phrase}`: {instead}");
                findings.push(source.finding(comment.line + index, "words", message));
            }
        }
    }
    findings
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
    fn places_that_are_not_done_pass() {
        assert_eq!(lines("elsewhere/src/a.rs", "// so many\n"), [0; 0]);
    }
}
