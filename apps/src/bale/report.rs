//! The report of a run: a table for people, one JSON object for programs. Invariant: both forms are written
//! from the same `Report`.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::problem::Problem;
use super::way::Way;
use crate::rate::Rate;
use crate::report::verdict;

/// The outcome of one way: how long it took, and how many words were wrong.
pub(super) type Outcome = (Way, Duration, u64);

/// A run, as PE 0 reports it.
#[derive(Serialize)]
pub(super) struct Report {
    app: &'static str,
    pes: usize,
    table_words_each: u32,
    indices_each: u32,
    /// Whether no word was wrong.
    pub(super) verified: bool,
    wrong: u64,
    ways: Vec<Rate>,
    #[serde(skip)]
    problem: Problem,
}

impl Report {
    pub(super) fn new(app: &'static str, problem: Problem, outcomes: &[Outcome]) -> Self {
        let wrong = outcomes.iter().map(|(_, _, wrong)| wrong).sum();
        let rate = |&(way, time, _): &Outcome| Rate::new(way.name(), problem.indices(), time);
        Report {
            app,
            pes: problem.pes,
            table_words_each: problem.size.table,
            indices_each: problem.size.indices,
            verified: wrong == 0,
            wrong,
            ways: outcomes.iter().map(rate).collect(),
            problem,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}\n", self.app, self.problem)?;
        Rate::head(f, "way")?;
        self.ways.iter().try_for_each(|rate| writeln!(f, "{rate}"))?;
        writeln!(f, "\n{} words are wrong", self.wrong)?;
        writeln!(f, "Verification: {}", verdict(self.verified))
    }
}

#[cfg(test)]
mod tests {
    use super::super::problem::Size;
    use super::*;

    fn report(wrong: u64) -> Report {
        let problem = Problem { size: Size { table: 10, indices: 500 }, pes: 4 };
        let outcomes = Way::ALL.map(|way| (way, Duration::from_millis(1), wrong)).to_vec();
        Report::new("histogram", problem, &outcomes)
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
        let line = serde_json::to_string(&report(2)).unwrap();
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
