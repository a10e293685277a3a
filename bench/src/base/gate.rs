//! Gates: bounds for the runtime, each on the ratio to a yardstick in the same run. Invariant: a gate is one
//! row of its topic's table of gates; it passes if the median of its pairs' ratios is within the bound.

use std::fmt;
use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::{bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use pelago_apps::nearest;
use pelago_boot::{out, outln};
use pelago_report::Table;
use serde::Serialize;

use super::job;
use super::record::Pair;
use super::stats::Summary;

/// The number of pairs of a gate.
const PAIRS: usize = 11;

/// A bound and its measurement.
pub struct Gate {
    pub name: &'static str,
    /// The description of the comparison.
    pub what: &'static str,
    pub bound: Bound,
    pub source: Source,
}

/// The ratio and its bound.
#[derive(Clone, Copy)]
pub enum Bound {
    /// The minimum ratio of our rate to the yardstick's.
    RateAtLeast(f64),
    /// The maximum ratio of our time to the yardstick's.
    TimeAtMost(f64),
}
use Bound::{RateAtLeast, TimeAtMost};

/// The source of the pairs.
#[derive(Clone, Copy)]
pub enum Source {
    /// The application `perf` on this number of PEs, bound if each gets a core: a comparison and its
    /// arguments.
    Perf(usize, &'static [&'static str]),
    /// A function that measures this number of pairs.
    Measured(fn(usize) -> anyhow::Result<Vec<Pair>>),
}

/// Measures the gates of these names, or all gates if there are no names, and prints the verdicts. The exit
/// status is 1 if a gate fails.
///
/// # Errors
/// If a name is not that of a gate, if there are fewer than two cores, or if a job fails.
pub fn judge(gates: &[&'static Gate], names: &[String], json: bool) -> anyhow::Result<ExitCode> {
    let gates = choose(gates, names)?;
    ensure!(
        pelago_boot::cores() >= 2,
        "gates hold for PEs with a core each, and this command may use one core only; give it 2"
    );
    let bar = progress_bar(gates.len())?;
    let mut verdicts = Vec::new();
    for gate in gates {
        bar.set_message(gate.name);
        let verdict = Verdict::new(gate, gate.source.pairs()?);
        bar.inc(1);
        if json {
            outln!("{}", serde_json::to_string(&verdict)?)?;
        }
        verdicts.push(verdict);
    }
    bar.finish_and_clear();
    if !json {
        out!("{}", table(&verdicts))?;
    }
    let passed = verdicts.iter().all(|verdict| verdict.pass);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The gates of these names, or all gates if there are no names.
///
/// # Errors
/// If a name is not that of a gate.
pub fn choose(gates: &[&'static Gate], names: &[String]) -> anyhow::Result<Vec<&'static Gate>> {
    if names.is_empty() {
        return Ok(gates.to_vec());
    }
    let find = |name: &String| match gates.iter().find(|gate| gate.name == *name) {
        Some(gate) => Ok(*gate),
        None => {
            let all = || gates.iter().map(|gate| gate.name);
            let nearest = nearest(name, all()).unwrap_or_default();
            let list = all().collect::<Vec<_>>().join(", ");
            bail!("there is no gate {name:?}; did you mean {nearest}? (there are {list})")
        }
    };
    names.iter().map(find).collect()
}

fn progress_bar(gates: usize) -> anyhow::Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let style = ProgressStyle::with_template("gates [{bar:40}] {pos}/{len} {msg}")?;
    Ok(ProgressBar::new(gates as u64).with_style(style))
}

impl Source {
    fn pairs(self) -> anyhow::Result<Vec<Pair>> {
        match self {
            Source::Perf(pes, comparison) => {
                let count = PAIRS.to_string();
                let args = [&["pairs", "--count", &count], comparison].concat();
                job::parse(&job::perf(pes, pes <= pelago_boot::cores(), &[], &args)?)
            }
            Source::Measured(measure) => measure(PAIRS),
        }
    }
}

impl Bound {
    fn ratio(self, pair: &Pair) -> f64 {
        match self {
            RateAtLeast(_) => pair.yardstick_ns / pair.ours_ns,
            TimeAtMost(_) => pair.ours_ns / pair.yardstick_ns,
        }
    }

    fn is_kept_by(self, ratio: f64) -> bool {
        match self {
            RateAtLeast(least) => ratio >= least,
            TimeAtMost(most) => ratio <= most,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateAtLeast(least) => write!(f, ">= {least:.2}"),
            TimeAtMost(most) => write!(f, "<= {most:.2}"),
        }
    }
}

/// A gate and its result.
#[derive(Serialize)]
struct Verdict {
    gate: &'static str,
    what: &'static str,
    bound: String,
    pass: bool,
    ratio: Summary,
    pairs: Vec<Pair>,
}

impl Verdict {
    fn new(gate: &Gate, pairs: Vec<Pair>) -> Self {
        let Gate { name, what, bound, .. } = *gate;
        let ratios: Vec<_> = pairs.iter().map(|pair| bound.ratio(pair)).collect();
        let ratio = Summary::of(&ratios);
        let pass = bound.is_kept_by(ratio.median);
        Verdict { gate: name, what, bound: bound.to_string(), pass, ratio, pairs }
    }

    /// The medians of both sides, in microseconds.
    fn medians_us(&self) -> [f64; 2] {
        let median = |side: fn(&Pair) -> f64| {
            let samples: Vec<_> = self.pairs.iter().map(side).collect();
            Summary::of(&samples).median / 1e3
        };
        [median(|pair| pair.ours_ns), median(|pair| pair.yardstick_ns)]
    }
}

fn table(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new(
        format!("Gates: {PAIRS} pairs each; the median ratio decides"),
        3,
        "gate|of|verdict|ours, us|yardstick, us|ratio: min|median|max|bound",
    );
    for verdict in verdicts {
        let Summary { min, median, max, .. } = verdict.ratio;
        let [min, median, max] = [min, median, max].map(|ratio| format!("{ratio:.3}"));
        let outcome = if verdict.pass { "pass" } else { "FAIL" };
        let ratios = [min, median, max, verdict.bound.clone()];
        table.row(([verdict.gate, verdict.what, outcome], verdict.medians_us(), ratios));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(bound: Bound) -> Gate {
        Gate { name: "a", what: "b", bound, source: Source::Perf(2, &[]) }
    }

    fn pairs(times_ns: &[(f64, f64)]) -> Vec<Pair> {
        times_ns.iter().map(|&(ours_ns, yardstick_ns)| Pair { ours_ns, yardstick_ns }).collect()
    }

    #[test]
    fn the_median_ratio_decides() {
        let slow = [(200.0, 100.0), (100.0, 100.0), (110.0, 100.0)];
        let verdict = Verdict::new(&gate(TimeAtMost(1.1)), pairs(&slow));
        assert!(verdict.pass && verdict.ratio.median == 1.1 && verdict.ratio.max == 2.0);
        assert!(!Verdict::new(&gate(TimeAtMost(1.09)), pairs(&slow)).pass);
        let verdict = Verdict::new(&gate(RateAtLeast(0.91)), pairs(&slow));
        assert!(!verdict.pass && verdict.ratio.min == 0.5 && verdict.ratio.max == 1.0);
        assert!(Verdict::new(&gate(RateAtLeast(0.90)), pairs(&slow)).pass);
    }

    #[test]
    fn the_table_names_bound_and_verdict() {
        let verdict = Verdict::new(&gate(TimeAtMost(2.5)), pairs(&[(3000.0, 1000.0)]));
        let text = table(&[verdict]).to_string();
        let line = text.lines().last().unwrap();
        let cells: Vec<_> = line.split_whitespace().collect();
        assert_eq!(cells, ["a", "b", "FAIL", "3.00", "1.00", "3.000", "3.000", "3.000", "<=", "2.50"]);
    }
}
