//! The program's variables by name, from the symbol table of its file.
//!
//! Invariant: the list is sorted by address, and the largest of several variables at one address is the last.
//! For a file without symbols it is empty.

use super::objects::Object;
use super::program_file;
use object::{Object as _, ObjectSymbol as _, SymbolKind};

/// A variable.
pub(super) struct Variable {
    start: usize,
    bytes: usize,
    name: String,
}

/// The variables of the program.
pub(super) fn of(program: &Object) -> Vec<Variable> {
    let mut variables = program_file::with(program, |file, _| {
        let data = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.size() > 0);
        let variable = data.map(|symbol| Variable {
            start: program.base.wrapping_add(symbol.address() as usize),
            bytes: symbol.size() as usize,
            name: symbol.name().unwrap_or("?").to_owned(),
        });
        variable.collect::<Vec<_>>()
    })
    .unwrap_or_default();
    variables.sort_by_key(|variable| (variable.start, variable.bytes));
    variables
}

/// Describes the mistake if `bytes` bytes at an address begin in a variable that ends before they do.
pub(super) fn problem(variables: &[Variable], address: usize, bytes: usize) -> Option<String> {
    let behind = variables.partition_point(|variable| variable.start <= address);
    let Variable { start, bytes: size, name } = variables[..behind].last()?;
    let rest = (start + size).checked_sub(address).filter(|&rest| rest > 0)?;
    let words =
        || format!("but only {rest} follow there in the variable {name} of {size} bytes at {start:#x}");
    (bytes > rest).then(words)
}
