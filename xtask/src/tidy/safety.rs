//! Safety comments: every `unsafe` block, `unsafe impl` and `unsafe extern` block says which promise it
//! relies on and who made it.
//!
//! Invariant: the comment stands between the start of the statement, found as the nearest `;`, `{` or
//! `}`, and its `unsafe`, or right above the line of the `unsafe`. Clippy demands that there is one where
//! it sees the code; this rule also reads the bodies of macros, and demands that the comment says something.

use super::Finding;
use super::lexer::{Kind, Token};
use super::source::Source;

/// A promise and its author cannot be named in fewer words.
const WORDS: usize = 5;

/// The `unsafe`s of a file that nothing, or next to nothing, justifies.
pub fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, token) in source.tokens.iter().enumerate() {
        if !token.is("unsafe") || !needs_reason(&source.tokens[at + 1..]) {
            continue;
        }
        let message = match reason(&source.tokens, at) {
            None => "no `SAFETY:` comment above: name the promise and who made it".to_string(),
            Some(text) if text.split_whitespace().count() < WORDS => {
                format!("`SAFETY: {text}` says too little: name the promise and who made it")
            }
            Some(_) => continue,
        };
        findings.push(source.finding(token.line, "safety", message));
    }
    findings
}

/// Whether the `unsafe` before `rest` makes use of a promise, rather than asking its caller for one.
fn needs_reason(rest: &[Token]) -> bool {
    let mut code = rest.iter().filter(|token| !token.is_comment());
    let Some(next) = code.next() else { return false };
    let mut extern_block = || {
        let after_abi = code.find(|token| token.kind != Kind::Literal);
        after_abi.is_some_and(|token| token.is("{"))
    };
    next.is("{") || next.is("impl") || (next.is("extern") && extern_block())
}

/// What the safety comment of the `unsafe` at `at` says, its lines joined.
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

    /// An unsafe block and implementation, put together here so that this file has none of its own.
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
        assert!(messages(&format!("// SAFETY:\n{IMPL}"))[0].contains("too little"));
        assert!(messages(&format!("// SAFETY: it is fine.\n{IMPL}"))[0].contains("too little"));
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
