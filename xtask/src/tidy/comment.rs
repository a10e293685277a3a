//! Comments: every file begins with documentation, and no comment is commented-out code.
//!
//! Invariant: documentation may show code; any other comment line that ends in `;` or `{` is treated as code.
//! Prose has to avoid such line ends.

use super::Finding;
use super::lexer::Kind;
use super::source::Source;

/// Finds missing documentation at the start of a file, and lines of commented-out code.
pub fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !source.text.starts_with("//!") {
        let message = "the first line opens with `//!` and says what the file is";
        findings.push(source.finding(1, "file-header", message));
    }
    for comment in source.tokens.iter().filter(|token| token.kind == Kind::Comment) {
        for (index, line) in comment.text.lines().enumerate() {
            if line.trim_end().trim_end_matches("*/").trim_end().ends_with([';', '{']) {
                let message = "reads as commented-out code: remove it, or end the line otherwise";
                findings.push(source.finding(comment.line + index, "commented-code", message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&'static str, usize)> {
        check(&Source::new("a.rs", text)).into_iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    #[test]
    fn a_file_opens_with_inner_documentation() {
        assert_eq!(found("//! What it is.\n"), []);
        for text in ["", "\n//! Late.", "// What it is.", "/// What it is.", "use a;"] {
            assert_eq!(found(text), [("file-header", 1)], "{text}");
        }
    }

    #[test]
    fn statements_and_blocks_in_comments_are_found() {
        let text = "//! A.\nfn f() {}\n// let a = 1;\n// if b {\n/* g();\nh(); */\nlet a = 1; // old();\n";
        assert_eq!(found(text), [3, 4, 5, 6, 7].map(|line| ("commented-code", line)));
    }

    #[test]
    fn prose_documentation_and_strings_pass() {
        let text = "//! A.\n//! let a = 1;\n/// let b = 2;\n// What; and why.\nconst C: &str = \"// d;\";\n";
        assert_eq!(found(text), []);
    }
}
