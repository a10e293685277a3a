//! Safety comments: the comment of every `unsafe` block, `unsafe impl` and `unsafe extern` block names the
//! promise that it relies on and the party that made it.
//!
//! Invariant: the comment is between the start of the statement, which is found as the nearest `;`, `{` or
//! `}`, and its `unsafe`, or directly above the line of the `unsafe`. Clippy requires such a comment in
//! expanded code; this rule also reads the bodies of macros, and requires a minimum length.

use super::Finding;
use super::lexer::{Kind, Token};
use super::source::Source;

/// The minimum number of words that name a promise and its author.
const WORDS: usize = 5;

/// Finds each `unsafe` of a file whose comment is missing or too short.
pub fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, token) in source.tokens.iter().enumerate() {
        if !token.is("unsafe") || !needs_reason(&source.tokens[at + 1..]) {
            continue;
        }
        let message = match reason(&source.tokens, at) {
            None => "no `SAFETY:` comment above: name the promise and the party that made it".to_string(),
            Some(text) if text.split_whitespace().count() < WORDS => {
                format!("`SAFETY: {text}` is too short: name the promise and the party that made it")
            }
            Some(_) => continue,
        };
        findings.push(source.finding(token.line, "safety", message));
    }
    findings
}

/// Whether the `unsafe` before `rest` relies on a promise, rather than requiring one from its caller.
fn needs_reason(rest: &[Token]) -> bool {
    let mut code = rest.iter().filter(|token| !token.is_comment());
    let Some(next) = code.next() else { return false };
    let mut extern_block = || {
        let after_abi = code.find(|token| token.kind != Kind::Literal);
        after_abi.is_some_and(|token| token.is("{"))
    };
    next.is("{") || next.is("impl") || (next.is("extern") && extern_block())
}

/// The text of the safety comment of the `unsafe` at `at`, with its lines joined.
fn reason(tokens: &[Token], at: usize) -> Option<String> {
    let before = &tokens[..at];
    let statement = before.iter().rposition(|token| [";", "{", "}"].iter().any(|end| token.is(end)));
    let line = before.iter().rposition(|token| token.line < tokens[at].line).map_or(0, |last| last + 1);
    let above = before[..line].iter().rposition(|token| !token.is_comment());
    let start = statement.min(above).map_or(0, |last| last + 1);
    let comments: Vec<_> = before[start..].iter().filter(|token| token.kind == Kind::Comment).collect();
    let opening = comments.iter().rposition(|comment| comment.text.contains("SAFETY:"))?;
    let text: Vec<_> =
        comments[opening..].iter().map(|comment| comment.text.trim_matches(['/', '*'])).collect();
    let text = text.join(" ");
    let (_, reason) = text.split_once("SAFETY:")?;
    Some(reason.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An unsafe block and implementation, concatenated so that this rule does not find them here.
    const BLOCK: &str = concat!("unsafe", " { read(p) }");
    const IMPL: &str = concat!("unsafe", " impl Send for S {}");
    const GOOD: &str = "// SAFETY: the caller promises that `p` is valid";

    fn messages(text: &str) -> Vec<String> {
        check(&Source::new("a.rs", text)).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_reason_above_is_accepted() {
        assert_eq!(messages(&format!("fn f() {{\n{GOOD}\n{BLOCK} }}")), [""; 0]);
        assert_eq!(messages(&format!("fn f() {{\n{GOOD}\nlet x = 1 + {BLOCK}; }}")), [""; 0]);
        assert_eq!(messages(&format!("fn f() {{\n{GOOD}\nmatch x {{ _ => {BLOCK} }} }}")), [""; 0]);
        assert_eq!(messages(&format!("{GOOD}\n#[cfg(a)]\n{IMPL}")), [""; 0]);
        assert_eq!(messages(&format!("/* SAFETY: the caller promises it is valid */ {IMPL}")), [""; 0]);
    }

    #[test]
    fn a_missing_reason_is_found_for_blocks_impls_and_extern_blocks() {
        let externs = concat!("unsafe", " extern \"C\" { fn f(); }");
        for text in [format!("fn f() {{ {BLOCK} }}"), IMPL.to_string(), externs.to_string()] {
            assert!(messages(&text)[0].starts_with("no `SAFETY:`"), "{text}");
        }
    }

    #[test]
    fn a_reason_of_a_few_words_is_found() {
        assert!(messages(&format!("// SAFETY:\n{IMPL}"))[0].contains("too short"));
        assert!(messages(&format!("// SAFETY: it is fine.\n{IMPL}"))[0].contains("too short"));
    }

    #[test]
    fn a_reason_over_several_lines_counts_as_one() {
        let text = format!("// SAFETY: the caller\n// promises that\n// it is valid\n{IMPL}");
        assert_eq!(messages(&text), [""; 0]);
    }

    #[test]
    fn the_reason_of_the_statement_before_does_not_count() {
        assert_eq!(messages(&format!("fn f() {{\n{GOOD}\n{BLOCK};\n{BLOCK} }}")).len(), 1);
        assert_eq!(messages(&format!("{GOOD}\n{IMPL}\n{IMPL}")).len(), 1);
    }

    #[test]
    fn unsafe_functions_traits_types_and_attributes_ask_for_none() {
        for text in [
            "unsafe fn f() {}",
            "unsafe trait T {}",
            "unsafe extern \"C\" fn f() {}",
            "type F = unsafe fn();",
            "#[unsafe(naked)] fn f() {}",
        ] {
            assert_eq!(messages(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn documentation_and_strings_are_no_reason_and_no_code() {
        assert_eq!(messages(&format!("/// SAFETY: the caller promises it is valid\n{IMPL}")).len(), 1);
        assert_eq!(messages(&format!("const A: &str = \"{BLOCK}\";")), [""; 0]);
    }

    #[test]
    fn the_body_of_a_macro_is_read_too() {
        assert_eq!(messages(&format!("macro_rules! m {{ () => {{ {BLOCK} }} }}")).len(), 1);
    }
}
