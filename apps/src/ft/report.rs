//! The report of a run: a page for people, one JSON object for programs, a table that compares variants.
//! Invariant: both forms are written from the same `Report`.

use std::collections::BTreeMap;
use std::fmt;

use num_complex::Complex64;
use serde::Serialize;

use super::checksum;
use super::classes::Class;
use super::phases::Phase;
use super::solver::{Outcome, PhaseSeconds};
use super::variant::Variant;
use crate::bytes::Bytes;
use crate::choice::Named;
use crate::report::verdict;

/// One variant's run, as PE 0 reports it.
#[derive(Serialize)]
pub(super) struct Report {
    app: &'static str,
    class: &'static str,
    variant: &'static str,
    pes: usize,
    verified: bool,
    mops: f64,
    seconds: f64,
    phases: BTreeMap<String, PhaseSeconds>,
    messages: u64,
    bytes: u64,
    #[serde(skip)]
    solved: Class,
    #[serde(skip)]
    outcome: Outcome,
}

impl Report {
    pub(super) fn new(solved: Class, variant: Variant, pes: usize, outcome: Outcome) -> Self {
        let phases = Phase::ALL.into_iter().zip(outcome.phases.iter().copied());
        Report {
            app: "ft",
            class: solved.name,
            variant: variant.name(),
            pes,
            verified: checksum::verified(&outcome.checksums, solved.reference),
            mops: solved.problem.mops(outcome.seconds),
            seconds: outcome.seconds,
            phases: phases.map(|(phase, spent)| (key(phase), spent)).collect(),
            messages: outcome.tally.messages,
            bytes: outcome.tally.bytes,
            solved,
            outcome,
        }
    }

    /// Whether every checksum agrees with NASA's.
    pub(super) fn verified(&self) -> bool {
        self.verified
    }

    fn phases(&self) -> impl Iterator<Item = (Phase, PhaseSeconds)> {
        Phase::ALL.into_iter().zip(self.outcome.phases.iter().copied())
    }

    fn write_checksums(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{:>9}  {:>20}  {:>20}  {:>9}",
            "iteration", "checksum, real", "imaginary", "deviation"
        )?;
        for (index, (sum, reference)) in self.outcome.checksums.iter().zip(self.solved.reference).enumerate()
        {
            let Complex64 { re, im } = sum;
            let deviation = checksum::deviation(*sum, *reference);
            writeln!(f, "{:>9}  {re:>20.12}  {im:>20.12}  {deviation:>9.1e}", index + 1)?;
        }
        Ok(())
    }

    fn write_phases(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{:<20}  {:>12}  {:>12}  {:>6}", "time by phase", "max, s", "mean, s", "share")?;
        let total: f64 = self.phases().map(|(_, spent)| spent.mean).sum();
        for (phase, PhaseSeconds { max, mean }) in self.phases() {
            let percent = 100.0 * mean / total;
            writeln!(f, "{:<20}  {max:>12.6}  {mean:>12.6}  {percent:>4.1} %", phase.label())?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { solved, outcome, .. } = self;
        writeln!(
            f,
            "NAS FT class {}: grid {}, {} iterations; variant {}; number of PEs {}, z-planes of each {}",
            self.class,
            solved.problem,
            solved.problem.iterations,
            self.variant,
            self.pes,
            solved.problem.nz / self.pes,
        )?;
        self.write_checksums(f)?;
        self.write_phases(f)?;
        let transferred = Bytes(outcome.tally.bytes);
        writeln!(f, "\n{:<20}  {} from each PE, {transferred} in all", "messages", outcome.tally.messages)?;
        writeln!(f, "{:<20}  {:.6} s on the slowest PE", "time", outcome.seconds)?;
        writeln!(f, "{:<20}  {:.1} Mop/s by NASA's formula", "rate", self.mops)?;
        writeln!(f, "Verification: {}", verdict(self.verified))
    }
}

/// The variants' runs side by side; the speedup is that over the first, and the phases are those of the PE
/// that spent most in each.
pub(super) struct Comparison<'a>(pub(super) &'a [Report]);

impl fmt::Display for Comparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<10}  {:>10}  {:>10}  {:>7}", "variant", "seconds", "Mop/s", "speedup")?;
        write!(f, "  {:>10}  {:>10}  {:>10}", "local FFT", "comm start", "comm wait")?;
        write!(f, "  {:>10}  {:>10}  {:>9}", "in memory", "barrier", "messages")?;
        writeln!(f, "  {:>15}  verification", "bytes a message")?;
        for report in self.0 {
            let (tally, seconds) = (report.outcome.tally, report.seconds);
            let speedup = self.0[0].seconds / seconds;
            write!(f, "{:<10}  {seconds:>10.6}", report.variant)?;
            write!(f, "  {:>10.1}  {speedup:>7.2}", report.mops)?;
            for phase in &Phase::ALL[..Phase::Other as usize] {
                write!(f, "  {:>10.6}", report.outcome.phases[*phase as usize].max)?;
            }
            let message_bytes = tally.bytes / tally.messages.max(1);
            writeln!(f, "  {:>9}  {message_bytes:>15}  {}", tally.messages, verdict(report.verified))?;
        }
        Ok(())
    }
}

/// The phase as a key of the JSON report.
fn key(phase: Phase) -> String {
    phase.label().to_lowercase().replace([' ', '-'], "_")
}

#[cfg(test)]
mod tests {
    use super::super::exchange::Tally;
    use super::*;

    /// A run of class S on 2 PEs whose checksums are the references times `factor`.
    fn report(factor: f64) -> Report {
        let class = Class::from_name("S").unwrap();
        let outcome = Outcome {
            seconds: 0.5,
            phases: vec![PhaseSeconds { max: 0.25, mean: 0.125 }; Phase::ALL.len()],
            checksums: class.reference.iter().map(|&(re, im)| Complex64::new(re, im) * factor).collect(),
            tally: Tally { messages: 14, bytes: 14 << 20 },
        };
        Report::new(class, Variant::Exchange, 2, outcome)
    }

    #[test]
    fn the_page_names_problem_phases_checksums_and_verdict() {
        let page = report(1.0).to_string();
        let parts = [
            "class S: grid 64 x 64 x 64, 6 iterations; variant exchange",
            "number of PEs 2, z-planes of each 32",
        ];
        let phases = Phase::ALL.map(Phase::label);
        let rest = ["554.608700496400", "0.0e0", "14 from each PE, 14 MiB in all", "Verification: VERIFIED"];
        for part in parts.into_iter().chain(phases).chain(rest) {
            assert!(page.contains(part), "`{part}` is not in:\n{page}");
        }
    }

    #[test]
    fn wrong_checksums_are_not_verified() {
        for factor in [1.0 + 1e-11, f64::NAN] {
            let wrong = report(factor);
            assert!(!wrong.verified() && wrong.to_string().contains("Verification: NOT VERIFIED"));
        }
    }

    #[test]
    fn json_is_one_object_with_all_fields() {
        let line = serde_json::to_string(&report(1.0)).unwrap();
        assert!(!line.contains('\n'));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["app"], "ft");
        assert_eq!(value["class"], "S");
        assert_eq!(value["variant"], "exchange");
        assert_eq!(value["pes"], 2);
        assert_eq!(value["verified"], true);
        assert_eq!(value["seconds"], 0.5);
        assert!(value["mops"].as_f64().unwrap() > 300.0);
        assert_eq!((&value["messages"], &value["bytes"]), (&14.into(), &(14 << 20).into()));
        let phases = value["phases"].as_object().unwrap();
        assert_eq!(phases.len(), Phase::ALL.len());
        assert_eq!(phases["in_memory_transfer"]["max"], 0.25);
        assert_eq!(phases["local_fft"]["mean"], 0.125);
    }

    #[test]
    fn the_comparison_has_a_line_a_variant_and_the_speedup_over_the_first() {
        let mut reports = [report(1.0), report(2.0)];
        reports[1].seconds = 0.25;
        let table = Comparison(&reports).to_string();
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(
            lines[1].ends_with("1048576  VERIFIED") && lines[2].ends_with("1048576  NOT VERIFIED"),
            "{table}"
        );
        let speedups = [1, 2].map(|line| lines[line].split_whitespace().nth(3));
        assert_eq!(speedups, [Some("1.00"), Some("2.00")], "{table}");
        assert!(lines.iter().all(|line| line.len() <= 160), "{table}");
    }
}
