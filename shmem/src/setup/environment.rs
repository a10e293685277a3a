//! Environment variables (OpenSHMEM 1.6, chapter 8). The names with `SMA_` are deprecated; where both are
//! set, the name with `SHMEM_` is used.

use crate::base::abi::{VENDOR, VERSION};
use std::env;
use std::io::Write;

/// The settings from the environment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Environment {
    /// `SHMEM_SYMMETRIC_SIZE`: bytes of the symmetric heap of each PE.
    pub(crate) symmetric_size: Option<u64>,
    wants_version: bool,
    wants_info: bool,
    /// `SHMEM_DEBUG`: the messages of the start.
    pub(crate) wants_messages: bool,
}

impl Environment {
    /// Reads the settings.
    pub(crate) fn read() -> Result<Environment, String> {
        // Other libraries have the second name. An empty value is what a script leaves whose own variable
        // is not set.
        let size = ["SYMMETRIC_SIZE", "SYMMETRIC_HEAP_SIZE"]
            .iter()
            .find_map(|name| variable(name, |text| !text.is_empty()));
        let bytes = |(name, text): &(String, String)| {
            size_bytes(text).ok_or_else(|| {
                format!(
                    "{name} is \"{text}\": give bytes such as 4096, 20m or 1.5g (k, m, g, t for 2^10 to 2^40)"
                )
            })
        };
        Ok(Environment {
            symmetric_size: size.as_ref().map(bytes).transpose()?,
            wants_version: is_set("VERSION"),
            wants_info: is_set("INFO"),
            wants_messages: is_set("DEBUG") && env::var_os("PELAGO_LOG").is_none(),
        })
    }

    /// Prints the version and the help, if the environment requests them.
    pub(crate) fn announce(&self) {
        let mut text = String::new();
        if self.wants_version {
            let (name, number) = (VENDOR.to_string_lossy(), env!("CARGO_PKG_VERSION"));
            text += &format!("{name} {number}: OpenSHMEM {}.{}\n", VERSION.0, VERSION.1);
        }
        if self.wants_info {
            text += HELP;
        }
        // A program whose output nobody reads runs all the same.
        let _ = std::io::stdout().write_all(text.as_bytes());
    }
}

const HELP: &str = "\
SHMEM_VERSION         print the library's version at start-up (any value)
SHMEM_INFO            print this (any value)
SHMEM_SYMMETRIC_SIZE  bytes of the symmetric heap of each PE, such as 64m or 1.5g
SHMEM_DEBUG           print how the job starts (any value); PELAGO_CHECK=on checks arguments
PELAGO_...            settings of the runtime: see pelago help settings
";

/// A variable under its present or its deprecated name, if it has a value that counts.
fn variable(name: &str, counts: impl Fn(&str) -> bool) -> Option<(String, String)> {
    ["SHMEM_", "SMA_"].iter().find_map(|prefix| {
        let full = format!("{prefix}{name}");
        let value = env::var_os(&full)?.to_string_lossy().into_owned();
        counts(&value).then_some((full, value))
    })
}

/// Whether a variable is set, to any value.
fn is_set(name: &str) -> bool {
    variable(name, |_| true).is_some()
}

/// Where a number ends at the beginning of a text: digits, possibly with a fraction and an exponent.
fn end_of_number(text: &str) -> usize {
    let digits = |from: usize, also: &str| {
        let is_part = |c: char| c.is_ascii_digit() || also.contains(c);
        text[from..].find(|c| !is_part(c)).map_or(text.len(), |n| from + n)
    };
    let end = digits(0, ".");
    let exponent = text[end..].strip_prefix(['e', 'E']).map(|rest| rest.trim_start_matches(['+', '-']));
    match exponent {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => digits(text.len() - rest.len(), ""),
        _ => end,
    }
}

/// Parses a size: a number, possibly with a fraction or an exponent, and a letter for its unit; "characters
/// after the first suffix are ignored", and fractions of a byte are rounded up; "non-negative" allows 0.
fn size_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, suffix) = text.split_at(end_of_number(text));
    let shift = match suffix.trim_start().chars().next().map(|c| c.to_ascii_lowercase()) {
        None => 0,
        Some('k') => 10,
        Some('m') => 20,
        Some('g') => 30,
        Some('t') => 40,
        Some(_) => return None,
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_shl(shift).filter(|bytes| bytes >> shift == whole);
    }
    let bytes =
        (number.parse::<f64>().ok()? * f64::from(1u32 << (shift / 2)) * f64::from(1u32 << (shift / 2)))
            .ceil();
    (bytes.is_finite() && bytes >= 0.0 && bytes < 2f64.powi(63)).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pelago_boot::{SetBy, other_variables};

    /// Users find the same variables in the help of the library and in the list of the command.
    #[test]
    fn the_help_has_the_variables_of_the_list() {
        let rows = other_variables().iter().filter(|row| row.set_by == SetBy::ShmemUser);
        let (old, mut present): (Vec<_>, Vec<_>) =
            rows.map(|row| row.name).partition(|name| name.starts_with("SMA_"));
        let mut printed: Vec<_> = HELP.lines().filter_map(|line| line.split_whitespace().next()).collect();
        printed.retain(|name| name.starts_with("SHMEM_"));
        printed.sort_unstable();
        present.sort_unstable();
        assert_eq!(printed, present);
        assert_eq!(old.len(), present.len());
        assert!(old.iter().all(|name| present.contains(&&*name.replace("SMA_", "SHMEM_"))), "{old:?}");
    }
}
