//! Generic names in C11: macros that select a function by the type of an argument.
//!
//! Invariant: a macro has one association for each distinct type of C, as `_Generic` requires; of several
//! names for the same type (`long`, `int64_t`, `ptrdiff_t`) only the first in the table is used. Source:
//! OpenSHMEM 1.6, chapter 9 (the C11 forms) and C11, 6.5.1.1.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};

use super::BY_HANDLE;
use super::prototype::{Chapter, Function, Home};

/// A generic name and the functions that it selects from.
pub struct Generic<'a> {
    pub name: String,
    /// The index of the argument that points to elements, in the form without a context.
    pub index: usize,
    pub has_context_form: bool,
    pub choices: Vec<(&'static str, Form<'a>)>,
}

/// The functions of one type.
pub struct Form<'a> {
    pub plain: &'a Function,
    pub context: Option<&'a Function>,
}

/// The generic names of the table.
pub fn generics(chapters: &[Chapter]) -> Result<Vec<Generic<'_>>> {
    let mut generics: Vec<Generic<'_>> = Vec::new();
    let functions: Vec<_> = chapters.iter().flat_map(|chapter| &chapter.functions).collect();
    for (position, &function) in functions.iter().enumerate() {
        let Some(choice) = function.choice.as_ref().filter(|choice| !choice.is_with_context) else {
            continue;
        };
        // The form with a context follows the form without.
        let context = functions.get(position + 1).copied().filter(|_| choice.has_context_form);
        let index = function.arguments.iter().position(|argument| argument.is_to_elements);
        let index = index.with_context(|| format!("{}: no argument points to elements", function.name))?;
        if !generics.iter().any(|generic| generic.name == choice.generic) {
            let (name, has_context_form) = (choice.generic.clone(), choice.has_context_form);
            generics.push(Generic { name, index, has_context_form, choices: Vec::new() });
        }
        let generic = generics.iter_mut().find(|generic| generic.name == choice.generic);
        let generic = generic.with_context(|| format!("{}: no generic name", function.name))?;
        ensure!(
            generic.index == index && generic.has_context_form == choice.has_context_form,
            "{}: its families differ in their arguments",
            choice.generic
        );
        let c_type = distinct(choice.c_type);
        if generic.choices.iter().all(|(other, _)| *other != c_type) {
            generic.choices.push((c_type, Form { plain: function, context }));
        }
    }
    for generic in &generics {
        ensure!(
            generic.index < 2,
            "{}: no macro chooses by its argument {}",
            generic.name,
            generic.index + 1
        );
    }
    Ok(generics)
}

/// The functions that a generic name selects by a handle, if the table has both.
pub fn by_handle(chapters: &[Chapter]) -> impl Iterator<Item = (&'static str, &'static str, &Function)> {
    let find = |name: &str| {
        chapters.iter().flat_map(|chapter| &chapter.functions).find(|function| function.name == name)
    };
    BY_HANDLE.into_iter().filter_map(move |(name, handle, target)| Some((name, handle, find(target)?)))
}

/// Whether a generic name belongs in this header file.
pub fn belongs(name: &str, home: Home) -> bool {
    name.starts_with("shmemx_") == (home == Home::Extension)
}

/// The macros of one header file.
pub fn text(generics: &[Generic<'_>], chapters: &[Chapter], home: Home) -> String {
    let mut text = String::new();
    for generic in generics.iter().filter(|generic| belongs(&generic.name, home)) {
        let plain = by_element(generic, |form| Some(form.plain));
        let choice = if generic.has_context_form {
            let context = by_element(generic, |form| form.context);
            format!("{BY_FIRST} \\\n  shmem_ctx_t: {context}, \\\n  default: {plain})")
        } else {
            plain
        };
        let _ = writeln!(text, "#define {}(...) {choice}(__VA_ARGS__)", generic.name);
    }
    for (name, handle, target) in by_handle(chapters).filter(|(name, ..)| belongs(name, home)) {
        let choice = format!("{BY_FIRST} \\\n    {handle}: {}, default: {name})", target.name);
        let _ = writeln!(text, "#define {name}(...) {choice}(__VA_ARGS__)");
    }
    text
}

/// The start of a selection by the type of the first argument.
const BY_FIRST: &str = "_Generic(PELAGO_FIRST(__VA_ARGS__, 0, 0),";

/// The selection of a function by the type of the elements.
fn by_element<'a>(generic: &Generic<'a>, choose: impl Fn(&Form<'a>) -> Option<&'a Function>) -> String {
    let pointer = match (generic.has_context_form, generic.index) {
        (true, _) => "PELAGO_AFTER_CONTEXT",
        (false, 0) => "PELAGO_FIRST",
        (false, _) => "PELAGO_SECOND",
    };
    let mut text = format!("_Generic(*({pointer}(__VA_ARGS__, 0, 0))");
    for (c_type, form) in &generic.choices {
        if let Some(function) = choose(form) {
            let _ = write!(text, ", \\\n    {c_type}: {}", function.name);
        }
    }
    text + ")"
}

/// The basic C type that a typedef stands for, on systems whose `long` has 64 bits.
fn distinct(c_type: &'static str) -> &'static str {
    match c_type {
        "int8_t" => "signed char",
        "int16_t" => "short",
        "int32_t" => "int",
        "int64_t" | "ptrdiff_t" => "long",
        "uint8_t" => "unsigned char",
        "uint16_t" => "unsigned short",
        "uint32_t" => "unsigned int",
        "uint64_t" | "size_t" => "unsigned long",
        other => other,
    }
}
