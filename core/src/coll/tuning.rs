//! The tuning file of a job: where it is, and that it can be read. Its format:
//! [`pelago_schedule::tuning`].
//!
//! Invariant: every PE reads the file for itself, when it joins the job. All must find the same rules, which
//! they compare when they have joined.

use pelago_boot::SettingError;

pub use pelago_schedule::tuning::{Defect, Rule, Rules};

/// The setting that names the file.
pub const VARIABLE: &str = "PELAGO_COLL_TUNING";

/// A larger file is not a tuning file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The rules of the file at `path`; none if no path is set.
///
/// # Errors
/// If the file cannot be read, or its text is no tuning file: the path, the line, and what is accepted.
pub fn load(path: Option<&str>) -> Result<Rules, SettingError> {
    let Some(path) = path else { return Ok(Rules::default()) };
    let refuse = |reason| SettingError::File { variable: VARIABLE, path: path.to_owned(), reason };
    let text = read(path).map_err(refuse)?;
    Rules::parse(&text).map_err(|Defect { line, reason }| refuse(format!("line {line}: {reason}")))
}

/// The text of a file that is no larger than a tuning file can be.
fn read(path: &str) -> Result<String, String> {
    let advice = "give the path of a file that `pelago tune` has written, the same on all nodes";
    let failed = |error: std::io::Error| format!("the file cannot be read: {error}; {advice}");
    let found = std::fs::metadata(path).map_err(failed)?;
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return Err(format!("this is not a file of at most {FILE_BYTES_MAX} bytes; {advice}"));
    }
    std::fs::read_to_string(path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        for path in ["/no/such/file.toml", "/", "/dev/null"] {
            let text = load(Some(path)).unwrap_err().to_string();
            let begins = text.starts_with(&format!("PELAGO_COLL_TUNING={path:?} is not valid: "));
            assert!(begins && text.contains("pelago tune"), "{text}");
        }
        assert_eq!(load(None).unwrap().count(), 0);
    }
}
