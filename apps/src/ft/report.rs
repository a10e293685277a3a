//! The report of a run: a page for people, one JSON object for programs, a table that compares variants.
//! Invariant: both forms are written from the same `Report`.

use std::collections::BTreeMap;
use std::fmt;

use num_complex::Complex64;
use pelago_report::Bytes;
use serde::Serialize;

use super::checksum;
use super::classes::{Class, Problem};
use super::layout::Layout;
use super::overlap::Overlap;
use super::phases::Phase;
use super::plan::Tally;
use super::solver::{Outcome, PhaseSeconds, Run};
use crate::choice::Named;
use crate::report::verdict;

/// One variant's run, as PE 0 reports it.
#[derive(Serialize)]
pub(super) struct Report {
    app: &'static str,
    class: &'static str,
    variant: &'static str,
    transport: &'static str,
    process_grid: Option<String>,
    pes: usize,
    verified: bool,
    mops: f64,
    seconds: f64,
    phases: BTreeMap<String, PhaseSeconds>,
    messages: u64,
    bytes: u64,
    overlap: Overlap,
    #[serde(skip)]
    solved: Class,
    #[serde(skip)]
    layout: Layout,
    #[serde(skip)]
    outcome: Outcome,
}

impl Report {
    pub(super) fn new(solved: Class, run: Run, layout: Layout, outcome: Outcome, overlap: Overlap) -> Self {
        let phases = Phase::ALL.into_iter().zip(outcome.phases.iter().copied());
        let tally = Tally::sum(&outcome.sent);
        Report {
            app: "ft",
            class: solved.name,
            variant: run.variant.name(),
            transport: run.transport.name(),
            process_grid: layout.grid.map(|grid| grid.to_string()),
            pes: layout.pes,
            verified: checksum::verified(&outcome.checksums, solved.reference),
            mops: solved.problem.mops(outcome.seconds),
            seconds: outcome.seconds,
            phases: phases.map(|(phase, spent)| (key(phase), spent)).collect(),
            messages: tally.messages,
            bytes: tally.bytes,
            overlap,
            solved,
            layout,
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

    fn write_communication(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { messages, bytes } = Tally::sum(&self.outcome.sent);
        writeln!(f, "\n{:<20}  {messages} from each PE, {} in all", "messages", Bytes(bytes))?;
        writeln!(f, "{:<20}  {}", "transport", self.transport)?;
        let Overlap { share, efficiency, exposed_seconds, alone_seconds } = self.overlap;
        let [share, efficiency] = [share, efficiency].map(|part| 100.0 * part);
        writeln!(
            f,
            "{:<20}  {share:.1} % of the communication is hidden; by the formula {efficiency:.1} % can be",
            "overlap"
        )?;
        writeln!(f, "{:<20}  {exposed_seconds:.6} s exposed, {alone_seconds:.6} s alone", "communication")
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
        let Report { solved, outcome, class, variant, pes, .. } = self;
        let Problem { iterations, .. } = solved.problem;
        write!(f, "NAS FT class {class}: grid {}, {iterations} iterations; ", solved.problem)?;
        write!(f, "variant {variant}; number of PEs {pes}, ")?;
        let [_, _, planes] = self.layout.spatial();
        match self.layout.grid {
            None => writeln!(f, "z-planes of each {}", planes.len())?,
            Some(grid) => writeln!(f, "process grid {grid}")?,
        }
        self.write_checksums(f)?;
        self.write_phases(f)?;
        self.write_communication(f)?;
        writeln!(f, "{:<20}  {:.6} s on the slowest PE", "time", outcome.seconds)?;
        writeln!(f, "{:<20}  {:.1} Mop/s by NASA's formula", "rate", self.mops)?;
        writeln!(f, "Verification: {}", verdict(self.verified))
    }
}

/// The runs side by side; the speedup is that over the first, the phases are those of the PE that spent most
/// in each, and `hidden` is the overlap share.
pub(super) struct Comparison<'a>(pub(super) &'a [Report]);

impl fmt::Display for Comparison<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<12}  {:>9}  {:>8}  {:>7}", "variant", "seconds", "Mop/s", "speedup")?;
        write!(f, "  {:<11}  {:>10}  {:>10}  {:>10}", "transport", "local FFT", "comm start", "comm wait")?;
        write!(f, "  {:>10}  {:>10}  {:>6}  {:>9}", "in memory", "barrier", "hidden", "messages")?;
        writeln!(f, "  {:>10}  verification", "bytes each")?;
        for report in self.0 {
            let (tally, seconds) = (Tally::sum(&report.outcome.sent), report.seconds);
            let speedup = self.0[0].seconds / seconds;
            write!(f, "{:<12}  {seconds:>9.6}  {:>8.1}", report.variant, report.mops)?;
            write!(f, "  {speedup:>7.2}  {:<11}", report.transport)?;
            for phase in &Phase::ALL[..Phase::Other as usize] {
                write!(f, "  {:>10.6}", report.outcome.phases[*phase as usize].max)?;
            }
            let message_bytes = tally.bytes / tally.messages.max(1);
            write!(f, "  {:>4.0} %  {:>9}", 100.0 * report.overlap.share, tally.messages)?;
            writeln!(f, "  {message_bytes:>10}  {}", verdict(report.verified))?;
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
    use super::super::grid::Grid;
    use super::super::transport::Transport;
    use super::super::variant::Variant;
    use super::*;

    /// A run of class S on 2 PEs whose checksums are the references times `factor`.
    fn report(factor: f64) -> Report {
        report_of(factor, Layout::new(Class::from_name("S").unwrap().problem, 2, 0).unwrap())
    }

    fn report_of(factor: f64, layout: Layout) -> Report {
        let class = Class::from_name("S").unwrap();
        let outcome = Outcome {
            seconds: 0.5,
            phases: vec![PhaseSeconds { max: 0.25, mean: 0.125 }; Phase::ALL.len()],
            checksums: class.reference.iter().map(|&(re, im)| Complex64::new(re, im) * factor).collect(),
            sent: vec![Tally { messages: 7, bytes: 7 << 20 }; 2],
        };
        let run = Run { variant: Variant::Exchange, transport: Transport::OneSided, simulated_gflops: 1.0 };
        Report::new(class, run, layout, outcome, Overlap::new(0.5, 2.0, 0.96875, false))
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
    fn the_page_names_transport_overlap_and_process_grid() {
        let layout =
            Layout::on_grid(Class::from_name("S").unwrap().problem, Grid { ty: 2, tz: 4 }, 0).unwrap();
        let page = report_of(1.0, layout).to_string();
        for part in [
            "number of PEs 8, process grid 2x4\n",
            "transport             one-sided\n",
            "overlap               75.0 % of the communication is hidden; by the formula 96.9 % can be\n",
            "communication         0.500000 s exposed, 2.000000 s alone\n",
        ] {
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
        assert_eq!(
            (&value["transport"], &value["process_grid"]),
            (&"one-sided".into(), &serde_json::Value::Null)
        );
        let overlap = &value["overlap"];
        assert_eq!((&overlap["share"], &overlap["efficiency"]), (&0.75.into(), &0.96875.into()));
        assert_eq!((&overlap["exposed_seconds"], &overlap["alone_seconds"]), (&0.5.into(), &2.0.into()));
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
