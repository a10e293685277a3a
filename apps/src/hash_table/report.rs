//! The report of a run: a table for people, one JSON object for programs. Invariant: both forms are written
//! from the same `Report`.

use std::fmt;

use serde::Serialize;

use super::workload::{Outcome, Phase};
use crate::rate::Rate;
use crate::report::verdict;

/// A run, as PE 0 reports it.
#[derive(Serialize)]
pub(super) struct Report {
    app: &'static str,
    pes: usize,
    keys: u64,
    /// Whether all lookups have found what they must.
    pub(super) verified: bool,
    answers: u64,
    wrong: u64,
    left: u64,
    phases: Vec<Rate>,
}

impl Report {
    pub(super) fn new(pes: usize, keys: u64, outcome: &Outcome) -> Self {
        let Outcome { ref times, answers, wrong, left } = *outcome;
        let rate = |&(phase, time): &(Phase, _)| Rate::new(phase.name(), phase.operations(keys), time);
        let (verified, phases) = (outcome.is_right(keys), times.iter().map(rate).collect());
        Report { app: "hash-table", pes, keys, verified, answers, wrong, left, phases }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { pes, keys, answers, wrong, left, .. } = self;
        writeln!(f, "Hash table: {keys} keys; number of PEs {pes}\n")?;
        Rate::head(f, "phase")?;
        self.phases.iter().try_for_each(|rate| writeln!(f, "{rate}"))?;
        writeln!(f, "\n{answers} answers, of which {wrong} are wrong; {left} keys left")?;
        writeln!(f, "Verification: {}", verdict(self.verified))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn report(wrong: u64) -> Report {
        let times = Phase::ALL.map(|phase| (phase, Duration::from_millis(10))).to_vec();
        Report::new(3, 1001, &Outcome { times, answers: 3003, wrong, left: 501 })
    }

    #[test]
    fn the_page_has_a_line_for_each_phase_and_a_verdict() {
        let page = report(0).to_string();
        for part in
            ["Hash table: 1001 keys; number of PEs 3", "3003 answers, of which 0 are wrong; 501 keys left"]
        {
            assert!(page.contains(part), "`{part}` is not in:\n{page}");
        }
        for (phase, operations) in [("insert", "1001"), ("find absent", "1001"), ("remove", "500")] {
            let line = page.lines().find(|line| line.starts_with(phase)).unwrap_or_default();
            assert!(line.contains(operations), "{phase}:\n{page}");
        }
        assert!(page.ends_with("\nVerification: VERIFIED\n"), "{page}");
        assert!(report(1).to_string().ends_with("\nVerification: NOT VERIFIED\n"));
    }

    #[test]
    fn json_is_one_object_with_all_fields() {
        let line = serde_json::to_string(&report(2)).unwrap();
        assert!(!line.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        for (field, expected) in [("pes", 3), ("keys", 1001), ("answers", 3003), ("wrong", 2), ("left", 501)]
        {
            assert_eq!(value[field], expected, "{field} of {line}");
        }
        assert_eq!((&value["app"], &value["verified"]), (&"hash-table".into(), &false.into()));
        let first = &value["phases"][0];
        assert_eq!((&first["name"], &first["operations"]), (&"insert".into(), &1001.into()));
        assert_eq!((&first["seconds"], value["phases"].as_array().map(Vec::len)), (&0.01.into(), Some(6)));
    }
}
