//! What a run tells: a table for people, one JSON object for programs. Invariant: both forms are written from
//! the same `Report`.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::problem::Problem;
use super::way::Way;
use crate::rate::Rate;

/// What came of one way: how long it took, and how many words were wrong.
pub(super) type Outcome = (Way, Duration, u64);

/// A run, as PE 0 reports it.
pub(super) struct Report {
    pub(super) app: &'static str,
    pub(super) problem: Problem,
    pub(super) outcomes: Vec<Outcome>,
}

impl Report {
    /// Whether no word was wrong.
    pub(super) fn verified(&self) -> bool {
        self.wrong() == 0
    }

    fn wrong(&self) -> u64 {
        self.outcomes.iter().map(|(_, _, wrong)| wrong).sum()
    }

    fn rates(&self) -> impl Iterator<Item = Rate> {
        self.outcomes.iter().map(|&(way, time, _)| Rate::new(way.name(), self.problem.indices(), time))
    }

    /// One line of JSON.
    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(&Record {
            app: self.app,
            pes: self.problem.pes,
            table_words_each: self.problem.size.table,
            indices_each: self.problem.size.indices,
            verified: self.verified(),
            wrong: self.wrong(),
            ways: self.rates().collect(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}\n", self.app, self.problem)?;
        Rate::head(f, "way")?;
        self.rates().try_for_each(|rate| writeln!(f, "{rate}"))?;
        writeln!(f, "\n{} words are wrong", self.wrong())?;
        writeln!(f, "Verification: {}", if self.verified() { "VERIFIED" } else { "NOT VERIFIED" })
    }
}

#[derive(Serialize)]
struct Record {
    app: &'static str,
    pes: usize,
    table_words_each: u32,
    indices_each: u32,
    verified: bool,
    wrong: u64,
    ways: Vec<Rate>,
}

#[cfg(test)]
mod tests {
    use super::super::problem::Size;
    use super::*;

    fn report(wrong: u64) -> Report {
        let problem = Problem { size: Size { table: 10, indices: 500 }, pes: 4 };
        let outcomes = Way::ALL.map(|way| (way, Duration::from_millis(1), wrong)).to_vec();
        Report { app: "histogram", problem, outcomes }
    }

    #[test]
    fn the_page_has_a_line_for_each_way_and_a_verdict() {
        let page = report(0).to_string();
        assert!(page.starts_with("histogram: 10 words (80 B) and 500 indices on each PE; number of PEs 4\n"));
        for way in Way::ALL {
            let line = page.lines().find(|line| line.starts_with(way.name())).unwrap_or_default();
            assert!(line.ends_with("     2.000"), "{way:?}: {page}");
        }
        assert!(page.ends_with("\n0 words are wrong\nVerification: VERIFIED\n"), "{page}");
        let page = report(1).to_string();
        assert!(page.ends_with("\n3 words are wrong\nVerification: NOT VERIFIED\n"), "{page}");
    }

    #[test]
    fn json_is_one_object_with_all_fields() {
        let line = report(2).to_json().unwrap();
        assert!(!line.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        for (field, expected) in [("pes", 4), ("table_words_each", 10), ("indices_each", 500), ("wrong", 6)] {
            assert_eq!(value[field], expected, "{field} of {line}");
        }
        assert_eq!((&value["app"], &value["verified"]), (&"histogram".into(), &false.into()));
        let last = &value["ways"][2];
        assert_eq!((&last["name"], &last["operations"]), (&"messages".into(), &2000.into()));
    }
}
