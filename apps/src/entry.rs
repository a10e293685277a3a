//! The start of an application: reading its arguments. Invariant: PE 0 reports an error that all PEs have in
//! common (arguments, PE count, memory) once, before any PE leaves, and all PEs leave with the same exit
//! code.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::Parser;
use pelago::prelude::*;
use pelago_boot::{print, tell};

/// The exit code of a run that could not start as it was asked.
pub const USAGE_EXIT_CODE: u8 = 2;

/// Parses `args` (without the program's name) and runs `body`. Help and usage errors come from PE 0 alone.
///
/// # Errors
/// Those of `body`, and if help cannot be written.
pub fn start<A: Parser>(
    world: &World,
    args: &[String],
    body: impl FnOnce(&World, A) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let command_name = A::command().get_name().to_owned();
    match A::try_parse_from(std::iter::once(&command_name).chain(args)) {
        Ok(parsed) => body(world, parsed),
        Err(error) => {
            if world.my_pe() == 0 {
                print_help(&error)?;
            }
            world.barrier();
            Ok(ExitCode::from(if error.use_stderr() { USAGE_EXIT_CODE } else { 0 }))
        }
    }
}

/// Prints help and versions on standard output; and errors about the arguments of a command line on standard
/// error.
///
/// # Errors
/// If help or a version cannot be written.
pub fn print_help(error: &clap::Error) -> io::Result<()> {
    let (text, is_error) = (error.render(), error.use_stderr());
    let is_terminal = if is_error { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
    let text = if is_terminal { text.ansi().to_string() } else { text.to_string() };
    if is_error {
        tell(&text);
        return Ok(());
    }
    print(&text)
}

/// A number above 0, for an argument.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    // Times that follow from it must have a place in a `Duration`.
    let number = text.parse::<f64>().ok().filter(|number| (1e-6..=1e12).contains(number));
    number.ok_or_else(|| "this is not a number from 1e-6 to 1e12".to_owned())
}

/// Collective: says on PE 0 why `app` cannot run as asked, and gives every PE the exit code to leave with. To
/// be called where all PEs came to the same conclusion.
pub fn refuse(world: &World, app: &str, reason: &dyn Display) -> ExitCode {
    if world.my_pe() == 0 {
        eprintln!("{app}: {reason}");
    }
    world.barrier();
    ExitCode::from(USAGE_EXIT_CODE)
}

/// The candidate that is most similar to `word`, without regard to letter case; `None` only without
/// candidates.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .min_by_key(|candidate| strsim::damerau_levenshtein(&word, &candidate.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_ignores_case_and_small_slips() {
        assert_eq!(nearest("FTT", ["hello", "ring", "ft"]), Some("ft"));
        assert_eq!(nearest("exchagne", ["all", "exchange"]), Some("exchange"));
        assert_eq!(nearest("x", []), None);
    }
}
