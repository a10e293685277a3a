//! Marks of unfinished work: macros that stand for missing code or debug output, words in comments that
//! postpone work, and ignored tests.
//!
//! Invariant: code in the tree is finished; open work is recorded elsewhere.

use super::Finding;
use super::source::Source;

const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];
/// Concatenated, so that a plain search for the words does not find this file.
const WORDS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// The marks in a file.
pub fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for pair in source.code.windows(2) {
        if pair[1].is("!") && MACROS.iter().any(|name| pair[0].is(name)) {
            findings.push(source.finding(
                pair[0].line,
                "unfinished",
                format!("`{}!`: finish it", pair[0].text),
            ));
        }
    }
    for three in source.code.windows(3) {
        if three[0].is("#") && three[1].is("[") && three[2].is("ignore") {
            let message = "an ignored test: run it, give it a feature of the full tier, or remove it";
            findings.push(source.finding(three[0].line, "unfinished", message));
        }
    }
    for comment in source.tokens.iter().filter(|token| token.is_comment()) {
        for (index, line) in comment.text.lines().enumerate() {
            let mut words = line.split(|char: char| !char.is_alphanumeric() && char != '_');
            if let Some(word) = words.find(|word| WORDS.contains(word)) {
                let message = format!("`{word}`: do it now, or write it down elsewhere");
                findings.push(source.finding(comment.line + index, "unfinished", message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&Source::new("a.rs", text)).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn macros_for_missing_code_are_found() {
        for name in MACROS {
            assert_eq!(lines(&format!("fn f() {{\n    {name}!(\"later\")\n}}")), [2], "{name}");
        }
        assert_eq!(lines("fn dbg() -> bool { !todo }"), [0; 0]);
    }

    #[test]
    fn ignored_tests_are_found_with_and_without_a_reason() {
        assert_eq!(lines("# [ignore]\nfn f() {}"), [1]);
        assert_eq!(lines("#[test]\n# [ignore = \"slow\"]\nfn f() {}"), [2]);
        assert_eq!(lines("# [cfg(ignore)] fn f() {}"), [0; 0]);
    }

    #[test]
    fn words_that_put_work_off_are_found_in_comments_of_any_kind() {
        for word in WORDS {
            assert_eq!(lines(&format!("// {word}: later")), [1], "{word}");
            assert_eq!(lines(&format!("/// {word}(name)")), [1], "{word}");
            assert_eq!(lines(&format!("/*\n{word} */")), [2], "{word}");
        }
    }

    #[test]
    fn longer_words_and_strings_pass() {
        let [put_off, mend, crosses] = WORDS;
        assert_eq!(lines(&format!("// {put_off}S, {mend}_NOW, pelago-{crosses}{crosses}")), [0; 0]);
        assert_eq!(lines(&format!("const A: &str = \"{mend}\";")), [0; 0]);
    }
}
