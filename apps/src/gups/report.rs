//! The report of a run: lines for people, one JSON object for programs. Invariant: both forms are written
//! from the same `Report`.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::method::Method;
use super::problem::Problem;
use super::update::LOOK_AHEAD;
use crate::choice::Named;
use crate::report::verdict;

/// One word of this number may be wrong, as HPC Challenge rules.
const WORDS_AN_ERROR: u64 = 100;

/// A run, as PE 0 reports it.
#[derive(Serialize)]
pub(super) struct Report {
    app: &'static str,
    method: &'static str,
    /// Updates in a second, in thousand millions.
    gups: f64,
    /// Words that are wrong.
    errors: u64,
    updates: u64,
    pes: usize,
    table_words: u64,
    seconds: f64,
    /// Whether few enough words are wrong.
    pub(super) verified: bool,
    #[serde(skip)]
    problem: Problem,
}

impl Report {
    pub(super) fn new(problem: Problem, method: Method, time: Duration, errors: u64) -> Self {
        let (updates, table_words) = (problem.stream.len(), problem.table.len());
        let seconds = time.as_secs_f64();
        Report {
            app: "gups",
            method: method.name(),
            gups: updates as f64 / seconds / 1e9,
            errors,
            updates,
            pes: problem.pes,
            table_words,
            seconds,
            verified: errors <= table_words / WORDS_AN_ERROR,
            problem,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { problem, method, errors, table_words, .. } = self;
        writeln!(f, "GUPS by {method}: {problem}; number of PEs {}\n", self.pes)?;
        if *method == Method::Messages.name() {
            writeln!(f, "{:<20}  {LOOK_AHEAD} updates of a PE, at most", "stored")?;
        }
        writeln!(f, "{:<20}  {:.6} s", "time", self.seconds)?;
        writeln!(f, "{:<20}  {:.6} GUPS", "rate", self.gups)?;
        let allowed = table_words / WORDS_AN_ERROR;
        writeln!(f, "{:<20}  {errors} of {table_words} words; {allowed} are allowed", "errors")?;
        writeln!(f, "Verification: {}", verdict(self.verified))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(method: Method, errors: u64) -> Report {
        let problem = Problem::new(10, Some(1_000_000), 3);
        Report::new(problem, method, Duration::from_millis(500), errors)
    }

    #[test]
    fn the_page_names_problem_rate_and_verdict() {
        let page = report(Method::Messages, 0).to_string();
        for part in [
            "GUPS by messages: a table of 1024 words (8 KiB), 1000000 updates; number of PEs 3",
            "stored                1024 updates of a PE",
            "time                  0.500000 s",
            "rate                  0.002000 GUPS",
            "errors                0 of 1024 words; 10 are allowed",
        ] {
            assert!(page.contains(part), "`{part}` is not in:\n{page}");
        }
        assert!(page.ends_with("\nVerification: VERIFIED\n"), "{page}");
    }

    #[test]
    fn one_word_in_a_hundred_may_be_wrong() {
        for (errors, verified) in [(0, true), (10, true), (11, false), (1024, false)] {
            assert_eq!(report(Method::PutGet, errors).verified, verified, "{errors} errors");
        }
        let page = report(Method::PutGet, 11).to_string();
        assert!(page.ends_with("\nVerification: NOT VERIFIED\n") && !page.contains("stored"), "{page}");
    }

    #[test]
    fn json_is_one_object_with_all_fields() {
        let line = serde_json::to_string(&report(Method::Atomics, 11)).unwrap();
        assert!(!line.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        for (field, expected) in [("errors", 11), ("updates", 1_000_000), ("pes", 3), ("table_words", 1024)] {
            assert_eq!(value[field], expected, "{field} of {line}");
        }
        assert_eq!((&value["gups"], &value["seconds"]), (&0.002.into(), &0.5.into()));
        assert_eq!((&value["method"], &value["verified"]), (&"atomics".into(), &false.into()));
    }
}
