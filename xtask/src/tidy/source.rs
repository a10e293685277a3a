//! A source file, read once and lexed once for all rules.
//!
//! Invariant: `code` is `tokens` without the comments, in the same order.

use super::Finding;
use super::lexer::{self, Token};

/// A Rust file of the tree.
pub struct Source<'a> {
    /// The path relative to the root, with `/` between its parts.
    pub path: String,
    pub text: &'a str,
    pub tokens: Vec<Token<'a>>,
    pub code: Vec<Token<'a>>,
}

impl<'a> Source<'a> {
    /// Lexes `text`, the contents of `path`.
    pub fn new(path: &str, text: &'a str) -> Source<'a> {
        let tokens = lexer::tokens(text);
        let code = tokens.iter().filter(|token| !token.is_comment()).copied().collect();
        Source { path: path.to_string(), text, tokens, code }
    }

    /// A finding in this file.
    pub fn finding(&self, line: usize, rule: &'static str, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, rule, message: message.into() }
    }
}
