//! What a run tells: lines for people, one JSON object for programs. Invariant: both forms are written from
//! the same `Report`.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::method::Method;
use super::problem::Problem;
use super::update::LOOK_AHEAD;
use crate::choice::Named;

/// Of so many words one may be wrong, as HPC Challenge rules.
const WORDS_AN_ERROR: u64 = 100;

/// A run, as PE 0 reports it.
pub(super) struct Report {
    pub(super) problem: Problem,
    pub(super) method: Method,
    pub(super) time: Duration,
    /// Words that are wrong.
    pub(super) errors: u64,
}

impl Report {
    /// Whether few enough words are wrong.
    pub(super) fn verified(&self) -> bool {
        self.errors <= self.allowed()
    }

    fn allowed(&self) -> u64 {
        self.problem.table.len() / WORDS_AN_ERROR
    }

    /// Updates in a second, in thousand millions.
    fn gups(&self) -> f64 {
        self.problem.stream.len() as f64 / self.time.as_secs_f64() / 1e9
    }

    /// One line of JSON.
    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(&Record {
            app: "gups",
            method: self.method.name(),
            gups: self.gups(),
            errors: self.errors,
            updates: self.problem.stream.len(),
            pes: self.problem.pes,
            table_words: self.problem.table.len(),
            seconds: self.time.as_secs_f64(),
            verified: self.verified(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { problem, method, time, errors } = self;
        writeln!(f, "GUPS by {}: {problem}; number of PEs {}\n", method.name(), problem.pes)?;
        if *method == Method::Messages {
            writeln!(f, "{:<20}  {LOOK_AHEAD} updates of a PE, at most", "stored")?;
        }
        writeln!(f, "{:<20}  {:.6} s", "time", time.as_secs_f64())?;
        writeln!(f, "{:<20}  {:.6} GUPS", "rate", self.gups())?;
        let (words, allowed) = (problem.table.len(), self.allowed());
        writeln!(f, "{:<20}  {errors} of {words} words; {allowed} are allowed", "errors")?;
        writeln!(f, "Verification: {}", if self.verified() { "VERIFIED" } else { "NOT VERIFIED" })
    }
}

#[derive(Serialize)]
struct Record {
    app: &'static str,
    method: &'static str,
    gups: f64,
    errors: u64,
    updates: u64,
    pes: usize,
    table_words: u64,
    seconds: f64,
    verified: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(method: Method, errors: u64) -> Report {
        let problem = Problem::new(10, Some(1_000_000), 3);
        Report { problem, method, time: Duration::from_millis(500), errors }
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
            assert_eq!(report(Method::PutGet, errors).verified(), verified, "{errors} errors");
        }
        let page = report(Method::PutGet, 11).to_string();
        assert!(page.ends_with("\nVerification: NOT VERIFIED\n") && !page.contains("stored"), "{page}");
    }

    #[test]
    fn json_is_one_object_with_all_fields() {
        let line = report(Method::Atomics, 11).to_json().unwrap();
        assert!(!line.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        for (field, expected) in [("errors", 11), ("updates", 1_000_000), ("pes", 3), ("table_words", 1024)] {
            assert_eq!(value[field], expected, "{field} of {line}");
        }
        assert_eq!((&value["gups"], &value["seconds"]), (&0.002.into(), &0.5.into()));
        assert_eq!((&value["method"], &value["verified"]), (&"atomics".into(), &false.into()));
    }
}
