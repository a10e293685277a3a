//! Lexer: splits Rust source into tokens, including comments, as far as the rules of tidy need it.
//!
//! Invariant: text inside a string, a character literal or a comment never becomes code, and code never
//! becomes one of them: raw strings, byte and C strings, escapes, nested block comments and lifetimes are
//! told apart as the Rust reference defines them. Numbers are not split into their parts, and every
//! punctuation character is a token of its own.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or a keyword; a raw identifier keeps its `r#`.
    Ident,
    /// `'name`, a lifetime or a loop label.
    Lifetime,
    /// A string, character or number.
    Literal,
    /// One character of punctuation.
    Punct,
    /// A comment that is not documentation, of a line or a block.
    Comment,
    /// A documentation comment, outer or inner.
    Doc,
}

/// One token, with the line that it starts on (the first line is 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    pub line: usize,
}

impl Token<'_> {
    /// Whether the token is this identifier, keyword or punctuation character.
    pub fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Ident | Kind::Punct) && self.text == text
    }

    /// Whether the token is a comment of either kind.
    pub fn is_comment(&self) -> bool {
        matches!(self.kind, Kind::Comment | Kind::Doc)
    }
}

/// Splits `source` into tokens. If a string or comment is not closed, the last token extends to the end.
pub fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { rest: source, line: 1 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next_token() {
        tokens.push(token);
    }
    tokens
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn next_token(&mut self) -> Option<Token<'a>> {
        let blank_bytes = self.rest.len() - self.rest.trim_start().len();
        self.take(blank_bytes);
        let first = self.rest.chars().next()?;
        let (kind, length_bytes) = self.measure(first);
        let line = self.line;
        Some(Token { kind, text: self.take(length_bytes), line })
    }

    /// The kind and the length of the token at the start of the rest, which begins with `first`.
    fn measure(&self, first: char) -> (Kind, usize) {
        let rest = self.rest;
        if rest.starts_with("//") {
            return (comment_kind(rest), rest.find('\n').unwrap_or(rest.len()));
        }
        if rest.starts_with("/*") {
            return (comment_kind(rest), block_comment_bytes(rest));
        }
        if let Some(length_bytes) = string_bytes(rest) {
            return (Kind::Literal, length_bytes);
        }
        match first {
            '\'' => quote(rest),
            _ if first.is_ascii_digit() => (Kind::Literal, number_bytes(rest)),
            _ if is_word(first) => (Kind::Ident, ident_bytes(rest)),
            _ => (Kind::Punct, first.len_utf8()),
        }
    }

    fn take(&mut self, length_bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length_bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }
}

/// Documentation begins with exactly three characters (`///`, `//!`, `/**`, `/*!`) and is not empty `/**/`.
fn comment_kind(rest: &str) -> Kind {
    let outer = |opening: &str, longer: &str| rest.starts_with(opening) && !rest.starts_with(longer);
    let doc = rest.starts_with("//!")
        || rest.starts_with("/*!")
        || outer("///", "////")
        || (outer("/**", "/***") && !rest.starts_with("/**/"));
    if doc { Kind::Doc } else { Kind::Comment }
}

fn block_comment_bytes(rest: &str) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length of a string of any kind, or of a byte character, if the rest starts with one.
fn string_bytes(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        rest.strip_prefix(prefix).is_some_and(|after| {
            after.starts_with('"')
                || (prefix.ends_with('r') && after.trim_start_matches('#').starts_with('"'))
        })
    });
    match prefix {
        Some(raw) if raw.ends_with('r') => Some(raw.len() + raw_string_bytes(&rest[raw.len()..])),
        Some(plain) => Some(plain.len() + escaped_bytes(&rest[plain.len()..], '"')),
        None if rest.starts_with("b'") => Some(1 + escaped_bytes(&rest[1..], '\'')),
        None => None,
    }
}

/// The length of `#"..."#` with any number of hashes.
fn raw_string_bytes(rest: &str) -> usize {
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let closing = format!("\"{}", "#".repeat(hashes));
    let body_at = hashes + 1;
    rest[body_at..].find(&closing).map_or(rest.len(), |at| body_at + at + closing.len())
}

/// The length of a literal between two `delimiter`s in which a backslash escapes the next character.
fn escaped_bytes(rest: &str, delimiter: char) -> usize {
    let mut escaped = false;
    for (at, char) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if char == '\\' {
            escaped = true;
        } else if char == delimiter {
            return at + 1;
        }
    }
    rest.len()
}

/// A character literal or a lifetime: `'x'` closes after one character, `'\...'` is an escape.
fn quote(rest: &str) -> (Kind, usize) {
    let mut chars = rest.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) => (Kind::Literal, escaped_bytes(rest, '\'')),
        (Some(char), Some('\'')) => (Kind::Literal, 2 + char.len_utf8()),
        _ => (Kind::Lifetime, 1 + word_bytes(&rest[1..])),
    }
}

/// A number with its suffix; a point belongs to it only if a digit follows, so that `0..n` is a range.
fn number_bytes(rest: &str) -> usize {
    let whole_bytes = word_bytes(rest);
    match rest[whole_bytes..].strip_prefix('.') {
        Some(after) if after.starts_with(|char: char| char.is_ascii_digit()) => {
            whole_bytes + 1 + word_bytes(after)
        }
        _ => whole_bytes,
    }
}

fn ident_bytes(rest: &str) -> usize {
    match rest.strip_prefix("r#") {
        Some(raw) if raw.starts_with(is_word) => 2 + word_bytes(raw),
        _ => word_bytes(rest),
    }
}

fn word_bytes(rest: &str) -> usize {
    rest.find(|char| !is_word(char)).unwrap_or(rest.len())
}

fn is_word(char: char) -> bool {
    char == '_' || char.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str) -> Vec<(Kind, &str)> {
        tokens(source).iter().map(|token| (token.kind, token.text)).collect()
    }

    #[test]
    fn code_is_split_into_words_and_punctuation() {
        use Kind::{Ident, Punct};
        assert_eq!(
            of("a::b_1(r#fn)"),
            [
                (Ident, "a"),
                (Punct, ":"),
                (Punct, ":"),
                (Ident, "b_1"),
                (Punct, "("),
                (Ident, "r#fn"),
                (Punct, ")")
            ]
        );
    }

    #[test]
    fn strings_of_every_kind_are_one_literal() {
        for literal in [
            r#""a // b""#,
            r#""say \"hi\"""#,
            r#""ends in \\""#,
            r#"b"bytes""#,
            r#"c"c string""#,
            r##"r"raw \""##,
            r###"r#"a " b"#"###,
            r####"br##"a "# b"##"####,
            "\"two\nlines\"",
        ] {
            assert_eq!(of(literal), [(Kind::Literal, literal)], "{literal}");
        }
    }

    #[test]
    fn character_literals_are_not_lifetimes() {
        for literal in ["'x'", r"'\''", r"'\\'", r"'\u{1F600}'", "'\"'", "'é'", "b'x'", r"b'\''"] {
            assert_eq!(of(literal), [(Kind::Literal, literal)], "{literal}");
        }
        assert_eq!(of("'a"), [(Kind::Lifetime, "'a")]);
        assert_eq!(of("&'static str")[1], (Kind::Lifetime, "'static"));
        assert_eq!(of("f::<'a>('b')")[4], (Kind::Lifetime, "'a"));
    }

    #[test]
    fn a_quote_character_does_not_open_a_string() {
        assert_eq!(of("'\"' x \"y\"")[1], (Kind::Ident, "x"));
    }

    #[test]
    fn comments_nest_and_are_told_from_documentation() {
        assert_eq!(of("/* a /* b */ c */ x")[0], (Kind::Comment, "/* a /* b */ c */"));
        let kinds = |source| tokens(source).iter().map(|token| token.kind).collect::<Vec<_>>();
        for doc in ["/// a", "//! a", "/** a */", "/*! a */"] {
            assert_eq!(kinds(doc), [Kind::Doc], "{doc}");
        }
        for comment in ["// a", "//// a", "/* a */", "/**/", "/*** a */"] {
            assert_eq!(kinds(comment), [Kind::Comment], "{comment}");
        }
    }

    #[test]
    fn a_string_in_a_comment_and_a_comment_in_a_string_stay_what_they_are() {
        assert_eq!(of("// \"open\nx").last(), Some(&(Kind::Ident, "x")));
        assert_eq!(of("\"/*\" x").last(), Some(&(Kind::Ident, "x")));
    }

    #[test]
    fn numbers_keep_their_fraction_and_leave_ranges_alone() {
        assert_eq!(of("1.5f64"), [(Kind::Literal, "1.5f64")]);
        assert_eq!(of("0xff_u8"), [(Kind::Literal, "0xff_u8")]);
        assert_eq!(of("0..9").len(), 4);
        assert_eq!(of("1.max(2)")[1], (Kind::Punct, "."));
    }

    #[test]
    fn lines_are_counted_through_strings_and_comments() {
        let lines: Vec<_> = tokens("a\n\"x\ny\" b\n/* 1\n2 */ c").iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn unfinished_source_ends_without_panic() {
        for source in ["\"open", "/* open", "r#\"open", "'", "b'", "'\\", "é\""] {
            assert!(!tokens(source).is_empty(), "{source}");
        }
    }
}
