//! The declarations of the installed headers, read from their text.
//!
//! Invariant: a prototype is one line that ends in `);`, a generic name one macro with `...`: so the headers
//! are written.

use std::fs;

use super::installed;

/// A function that a header declares.
#[derive(Clone, Debug)]
pub struct Prototype {
    pub result: String,
    pub name: String,
    /// The text between the parentheses.
    pub arguments: String,
}

/// A generic name and the functions that its macro chooses from.
#[derive(Clone, Debug)]
pub struct Generic {
    pub name: String,
    pub targets: Vec<String>,
}

impl Prototype {
    /// The types of its arguments.
    pub fn types(&self) -> Vec<String> {
        let types = self.arguments.split(", ").filter(|argument| *argument != "void");
        types.map(|argument| argument.trim_end_matches(is_of_a_name).trim_end().to_owned()).collect()
    }
}

/// The functions that a header file declares.
pub fn prototypes(file: &str) -> Vec<Prototype> {
    let text = fs::read_to_string(installed().join("include").join(file)).unwrap();
    text.lines().filter_map(prototype).collect()
}

fn prototype(line: &str) -> Option<Prototype> {
    let line = line.strip_prefix("PELAGO_NORETURN ").unwrap_or(line);
    let (head, arguments) = line.strip_suffix(");")?.split_once('(')?;
    let result = head.trim_end_matches(is_of_a_name);
    let name = &head[result.len()..];
    let is_word = |first: char| first.is_ascii_alphabetic();
    (!name.is_empty() && head.starts_with(is_word) && !result.is_empty()).then(|| Prototype {
        result: result.trim_end().to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    })
}

fn is_of_a_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// The generic names of a header file. Extensions that those of the standard stand for too are left out.
pub fn generics(file: &str) -> Vec<Generic> {
    let text = fs::read_to_string(installed().join("include").join(file)).unwrap();
    let text = text.replace("\\\n", " ");
    let prefix = format!("{}_", file.trim_end_matches(".h"));
    text.lines()
        .filter_map(|line| {
            let (name, body) = line.strip_prefix("#define ")?.split_once("(...) ")?;
            let words = body.split([' ', ',', '(', ')']).filter(|word| word.starts_with(&prefix));
            let targets = words.filter(|word| !word.ends_with(':')).map(str::to_owned).collect();
            name.starts_with(&prefix).then(|| Generic { name: name.to_owned(), targets })
        })
        .collect()
}
