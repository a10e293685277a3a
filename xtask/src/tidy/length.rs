//! Limits of length: columns of a line, lines of a function, lines of a file.
//!
//! Invariant: a function is measured from its `fn` to the brace that closes its body, so that neither
//! documentation nor attributes count against it. A function or file that exceeds a limit may be listed in
//! the ratchet; a line that is too wide may not.

use super::Finding;
use super::lexer::Token;
use super::source::Source;

const COLUMNS: usize = 110;
const FUNCTION_LINES: usize = 70;
const FILE_LINES: usize = 800;

/// A function or file that is longer than its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excess {
    /// The rule and the item, as in the ratchet: `PATH` or `PATH:FUNCTION`.
    pub rule: &'static str,
    pub item: String,
    pub line: usize,
    pub lines: usize,
    pub limit: usize,
}

/// The lines that are too wide, in characters.
pub fn columns(source: &Source) -> Vec<Finding> {
    let wide = source.text.lines().enumerate().filter_map(|(index, line)| {
        let count = line.chars().count();
        (count > COLUMNS).then_some((index + 1, count))
    });
    wide.map(|(line, count)| {
        source.finding(line, "columns", format!("{count} columns, {COLUMNS} allowed: break the line"))
    })
    .collect()
}

/// The file, if it is too long, and its functions that are too long.
pub fn excesses(source: &Source) -> Vec<Excess> {
    let lines = source.text.lines().count();
    let file = Excess { rule: "file-lines", item: source.path.clone(), line: 1, lines, limit: FILE_LINES };
    let functions = functions(&source.code).into_iter().map(|function| Excess {
        rule: "function-lines",
        item: format!("{}:{}", source.path, function.name),
        line: function.line,
        lines: function.lines,
        limit: FUNCTION_LINES,
    });
    std::iter::once(file).chain(functions).filter(|excess| excess.lines > excess.limit).collect()
}

struct Function<'a> {
    name: &'a str,
    line: usize,
    lines: usize,
}

/// Every function that has a body, including nested functions and those in macros.
fn functions<'a>(code: &[Token<'a>]) -> Vec<Function<'a>> {
    let mut functions = Vec::new();
    for (at, token) in code.iter().enumerate() {
        if !token.is("fn") {
            continue;
        }
        let name_at = if code.get(at + 1).is_some_and(|next| next.is("$")) { at + 2 } else { at + 1 };
        let Some(name) = code.get(name_at).filter(|next| !next.is("(")) else { continue };
        if let Some(last_line) = body_end(code, name_at) {
            functions.push(Function { name: name.text, line: token.line, lines: last_line - token.line + 1 });
        }
    }
    functions
}

/// The line on which the body of the function named at `name_at` ends; `None` for a declaration.
fn body_end(code: &[Token], name_at: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut in_body = false;
    for (at, token) in code.iter().enumerate().skip(name_at + 1) {
        if depth == 0 && token.is(";") {
            return None;
        }
        if token.is("(") || token.is("[") || token.is("{") {
            in_body |= depth == 0 && token.is("{") && !code[at - 1].is("<");
            depth += 1;
        } else if token.is(")") || token.is("]") || token.is("}") {
            depth = depth.checked_sub(1)?;
            if depth == 0 && in_body {
                return Some(token.line);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excesses_of(text: &str) -> Vec<(&'static str, String, usize, usize)> {
        let excesses = excesses(&Source::new("a.rs", text));
        excesses.into_iter().map(|excess| (excess.rule, excess.item, excess.line, excess.lines)).collect()
    }

    /// A function with this head and `lines` lines in all.
    fn function(head: &str, lines: usize) -> String {
        format!("{head} {{\n{}}}\n", "    work();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_at_the_limit_passes_and_one_line_more_fails() {
        assert_eq!(excesses_of(&function("fn a()", 70)), []);
        let expected = [("function-lines", "a.rs:a".to_string(), 1, 71)];
        assert_eq!(excesses_of(&function("fn a()", 71)), expected);
    }

    #[test]
    fn documentation_and_attributes_do_not_count() {
        assert_eq!(excesses_of(&function("/// One.\n/// Two.\n#[inline]\nfn a()", 70)), []);
    }

    #[test]
    fn signatures_with_brackets_and_where_clauses_are_read_through() {
        let heads = [
            "fn a<const N: usize>(x: [u8; { N + 1 }])",
            "fn a() -> Fixed<{ 1 + 1 }>",
            "fn a<T>()\nwhere\n    T: Copy,\n",
            "pub(crate) unsafe extern \"C\" fn a()",
        ];
        for head in heads {
            assert_eq!(excesses_of(&function(head, 72)).len(), 1, "{head}");
        }
    }

    #[test]
    fn braces_in_strings_and_comments_do_not_end_a_function() {
        let body = "fn a() { let x = \"}\"; /* } */ // }\n";
        assert_eq!(excesses_of(&format!("{body}{}}}\n", "    work();\n".repeat(80))).len(), 1);
    }

    #[test]
    fn declarations_and_function_pointers_are_no_functions() {
        let rest = "    work();\n".repeat(100);
        let source = format!("trait T {{ fn a(&self);\n}}\nstruct S {{ f: fn(u8) }}\nmod m {{\n{rest}}}\n");
        assert_eq!(excesses_of(&source), []);
    }

    #[test]
    fn a_method_in_an_impl_and_a_function_of_a_macro_are_measured() {
        let method = function("impl S {\n    fn deep(&self)", 75);
        assert_eq!(excesses_of(&format!("{method}}}\n"))[0].1, "a.rs:deep");
        let written = function("macro_rules! m { ($name:ident) => {\nfn $name()", 75);
        assert_eq!(excesses_of(&format!("{written}}} }}\n"))[0].1, "a.rs:name");
    }

    #[test]
    fn a_long_file_is_found() {
        assert_eq!(excesses_of(&"const A: u8 = 1;\n".repeat(800)), []);
        assert_eq!(excesses_of(&"const A: u8 = 1;\n".repeat(801))[0].0, "file-lines");
    }

    #[test]
    fn columns_are_characters() {
        let columns_of = |text: &str| columns(&Source::new("a.rs", text)).len();
        assert_eq!(columns_of(&"é".repeat(110)), 0);
        assert_eq!(columns_of(&"e".repeat(111)), 1);
    }
}
