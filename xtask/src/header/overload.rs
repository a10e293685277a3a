//! Generic names in C++: overloaded inline functions, one for each distinct type and form; and overloads of
//! the functions on complex numbers, which take `std::complex`.
//!
//! Invariant: no overload has the same arguments as a C function of the same name; the C function is used
//! instead.

use std::fmt::Write;

use super::chooser::{Generic, belongs, by_handle};
use super::prototype::{Chapter, Function, Home};

/// The overloads of one header file.
pub fn text(generics: &[Generic<'_>], chapters: &[Chapter], home: Home) -> String {
    let functions: Vec<_> = chapters.iter().flat_map(|chapter| &chapter.functions).collect();
    let mut text = String::new();
    for function in functions.iter().filter(|function| function.home == home && is_complex(function)) {
        write_for_std(&mut text, function, "");
    }
    for Generic { name, choices, .. } in generics.iter().filter(|generic| belongs(&generic.name, home)) {
        let targets = choices.iter().flat_map(|(_, form)| [Some(form.plain), form.context]);
        for target in targets.flatten() {
            let is_there = |other: &&Function| other.name == *name && types(other) == types(target);
            if !functions.iter().any(is_there) {
                write(&mut text, name, target);
                if is_complex(target) {
                    write(&mut text, name, &with_std(target));
                }
            }
        }
    }
    for (name, _, target) in by_handle(chapters).filter(|(name, ..)| belongs(name, home)) {
        write(&mut text, name, target);
    }
    text
}

/// The overloads of the profiling interface: those for `std::complex`.
pub fn of_profiling(chapters: &[Chapter]) -> String {
    let mut text = String::new();
    let functions = chapters.iter().flat_map(|chapter| &chapter.functions);
    for function in functions.filter(|function| function.home == Home::Standard && is_complex(function)) {
        write_for_std(&mut text, function, "p");
    }
    text
}

fn types(function: &Function) -> Vec<&str> {
    function.arguments.iter().map(|argument| argument.c_type.as_str()).collect()
}

/// The complex types of C, as the functions name them, and those of C++.
const COMPLEX: [(&str, &str); 2] =
    [("pelago_complexd_t", "std::complex<double>"), ("pelago_complexf_t", "std::complex<float>")];

fn is_complex(function: &Function) -> bool {
    types(function).iter().any(|c_type| COMPLEX.iter().any(|(c, _)| c_type.contains(c)))
}

/// The same function for `std::complex`.
fn with_std(function: &Function) -> Function {
    let mut function = function.clone();
    for argument in &mut function.arguments {
        for (c, std) in COMPLEX {
            argument.c_type = argument.c_type.replace(c, std);
        }
    }
    function
}

/// An overload of the same name that takes `std::complex`.
fn write_for_std(text: &mut String, function: &Function, prefix: &str) {
    let value = |(c_type, name): (&str, &str)| match COMPLEX.iter().any(|(c, _)| c_type.contains(c)) {
        true => format!("reinterpret_cast<{c_type}>({name})"),
        false => name.to_owned(),
    };
    let names = function.arguments.iter().map(|argument| argument.name.as_str());
    let values: Vec<_> = types(function).into_iter().zip(names).map(value).collect();
    let prototype = with_std(function).prototype(prefix);
    let call = format!("{prefix}{}({})", function.name, values.join(", "));
    let _ = writeln!(text, "inline {prototype} {{ return {call}; }}");
}

fn write(text: &mut String, name: &str, target: &Function) {
    let overload = Function { name: name.to_owned(), ..target.clone() };
    let values: Vec<_> = target.arguments.iter().map(|argument| argument.name.as_str()).collect();
    let give = if target.result == "void" { "" } else { "return " };
    let _ = writeln!(
        text,
        "inline {} {{ {give}{}({}); }}",
        overload.prototype(""),
        target.name,
        values.join(", ")
    );
}
