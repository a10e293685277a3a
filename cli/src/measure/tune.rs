//! `pelago tune`: finds the best algorithms of collective operations on this machine, and writes them to a
//! tuning file. Invariant: all candidates of an operation are measured as schedules, by the same application
//! with the same arguments, in alternating jobs; the file is complete or does not exist.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use pelago::coll::candidates::Candidate;
use pelago::coll::select::Preferences;
use pelago::coll::shape::{Operation, Shape};
use pelago::coll::tuning::{self, Rule};
use pelago::{Combiner, ReduceOp};
use pelago_bench::{Record, parse, perf_job};
use pelago_boot::outln;
use pelago_report::{Bytes, Table, figure};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::size::bytes;
use crate::whole_file::WholeFile;

/// The options of `pelago tune` without a subcommand.
#[derive(Args)]
pub struct Here {
    /// Numbers of PEs, with commas; default: powers of two from 2 to the number of cores, at least 2,4
    #[arg(short, value_name = "N", value_delimiter = ',', value_parser = number_of_pes)]
    n: Vec<usize>,
    /// Operations, with commas, such as broadcast,all_reduce; default: all
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = operation)]
    operations: Vec<Operation>,
    /// Block sizes, with commas, multiples of 8: the contribution of a PE, or the data for each PE
    #[arg(long, value_delimiter = ',', value_parser = block_bytes, default_value = DEFAULT_BYTES)]
    bytes: Vec<usize>,
    /// Path of the file to write
    #[arg(long, value_name = "FILE", default_value = "pelago-tuning.toml")]
    output: PathBuf,
    /// Measure for a short time only, as a test: the choices are not reliable
    #[arg(long)]
    quick: bool,
}

const DEFAULT_BYTES: &str = "8,512,4096,32768,262144,1048576";
/// The number of rounds; each measures every candidate once.
const ROUNDS: usize = 3;
/// The choice without a file is kept unless another one is faster by more than this factor, because times are
/// noisy.
const TIE: f64 = 1.05;
/// The maximum number of PEs of a job on a machine.
const PES_MAX: usize = 4096;
/// The time for the blocks of a measurement, and the maximum number of blocks.
const EFFORT: [&str; 4] = ["--budget-ms", "20", "--blocks", "101"];

/// The times of a candidate in nanoseconds, by bytes of a block.
type Times = Vec<(usize, f64)>;

/// The best candidate for a size.
struct Verdict<'c> {
    pes: usize,
    bytes: usize,
    winner: (&'c Candidate, f64),
    runner_up: Option<(&'c Candidate, f64)>,
    /// The time of the choice without a file, in nanoseconds.
    built_in_ns: Option<f64>,
}

impl Here {
    /// Measures, prints a table, writes the file.
    pub fn execute(self) -> anyhow::Result<ExitCode> {
        // The file is created before the measurements, which take minutes.
        let file = WholeFile::create(&self.output)?;
        let (table, text) = self.measure()?;
        file.finish(&text)?;
        let path = self.output.display();
        outln!("{table}\nWritten to {path}. To use it, set {}={path}", tuning::VARIABLE)?;
        Ok(ExitCode::SUCCESS)
    }

    /// The table for the user, and the text of the file.
    fn measure(&self) -> anyhow::Result<(Table, String)> {
        let mut table = Table::new(
            "Medians as schedules, ns an operation (doubles, their sum)",
            5,
            "operation|PEs|block|winner|runner-up|ns|ns|runner-up / winner|without file / winner",
        );
        let mut text = format!(
            "# Written by pelago tune {} on a machine with {} cores.\n\nnodes = \"one\"\n",
            env!("CARGO_PKG_VERSION"),
            pelago_boot::cores()
        );
        let (counts, rounds) = (sorted(&self.pes()), if self.quick { 1 } else { ROUNDS });
        let bar = progress_bar(self, &counts, rounds)?;
        for operation in self.operations() {
            for &pes in &counts {
                let candidates = candidates(operation, pes, &self.sizes(operation));
                let times = self.times(&candidates, pes, rounds, &bar)?;
                let verdicts = verdicts(pes, &candidates, &times);
                verdicts.iter().for_each(|verdict| table.row(verdict.cells()));
                rules(&verdicts).iter().for_each(|rule| text += &rule.text());
            }
        }
        bar.finish_and_clear();
        Ok((table, text))
    }

    fn pes(&self) -> Vec<usize> {
        let most = pelago_boot::cores().max(4);
        let doublings = (1..usize::BITS).map(|power| 1 << power).take_while(|pes| *pes <= most);
        if self.n.is_empty() { doublings.collect() } else { self.n.clone() }
    }

    fn operations(&self) -> Vec<Operation> {
        if self.operations.is_empty() { Operation::ALL.to_vec() } else { sorted(&self.operations) }
    }

    /// The sizes of an operation; a barrier has none.
    fn sizes(&self, operation: Operation) -> Vec<usize> {
        if operation == Operation::Barrier { vec![0] } else { sorted(&self.bytes) }
    }

    /// The times of the candidates: the best of several rounds, each of which measures all candidates.
    fn times(
        &self,
        candidates: &[Candidate],
        pes: usize,
        rounds: usize,
        bar: &ProgressBar,
    ) -> anyhow::Result<Vec<Times>> {
        let mut best: Vec<Times> = vec![Vec::new(); candidates.len()];
        for _ in 0..rounds {
            for (candidate, best) in candidates.iter().zip(&mut best) {
                bar.set_message(format!("{pes} PEs, {}", candidate.algorithm.operation));
                let times = self.job(candidate, pes)?;
                if best.is_empty() {
                    best.clone_from(&times);
                }
                for ((_, best), (_, time)) in best.iter_mut().zip(times) {
                    *best = best.min(time);
                }
                bar.inc(1);
            }
        }
        Ok(best)
    }

    /// Runs a job that measures one candidate.
    fn job(&self, candidate: &Candidate, pes: usize) -> anyhow::Result<Times> {
        let operation = candidate.algorithm.operation;
        let rule = Rule {
            pes_max: usize::MAX,
            bytes_max: usize::MAX,
            algorithm: candidate.algorithm,
            tuning: candidate.tuning,
        };
        let file = memfd_create("pelago-tune", MemfdFlags::CLOEXEC).context("making room for a rule")?;
        let mut file = File::from(file);
        file.write_all(rule.text().as_bytes()).context("writing a rule")?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let env = [
            ("PELAGO_COLL_FORM", "schedule".to_owned()),
            ("PELAGO_COLL", format!("{operation}={}", candidate.algorithm.name)),
            (tuning::VARIABLE, path),
            ("PELAGO_DETERMINISTIC", "off".to_owned()),
            ("PELAGO_CHECK", "off".to_owned()),
        ];
        let sizes: Vec<_> = self.sizes(operation).iter().map(ToString::to_string).collect();
        let (name, sizes) = (operation.name().replace('_', "-"), sizes.join(","));
        let mut args = vec!["coll", "--silent", "--operations", &name];
        args.extend(if operation == Operation::Barrier { vec![] } else { vec!["--sizes", &sizes] });
        args.extend(if self.quick { vec!["--quick"] } else { EFFORT.to_vec() });
        let env = env.each_ref().map(|(name, value)| (*name, value.as_str()));
        let lines = perf_job(pes, pes <= pelago_boot::cores(), &env, &args)
            .with_context(|| format!("measuring {candidate}"))?;
        let time = |record: Record| (record.label.bytes, record.summary.median);
        Ok(parse::<Record>(&lines)?.into_iter().map(time).collect())
    }
}

/// The candidates that support an operation among `pes` PEs, with all these sizes.
fn candidates(operation: Operation, pes: usize, sizes: &[usize]) -> Vec<Candidate> {
    let shapes: Vec<_> = sizes.iter().map(|bytes| shape(operation, pes, *bytes)).collect();
    // The default represents all candidates with the same schedule.
    Candidate::different(&shapes, is_usual)
}

/// Whether it is the choice without a file.
fn is_usual(candidate: &Candidate, shape: &Shape) -> bool {
    let sum = Combiner::of::<f64>(ReduceOp::Sum).filter(|_| shape.operation.combines());
    let usual = Preferences::default().choose(shape, sum.as_ref().map(Combiner::laws));
    usual.is_some_and(|usual| Candidate::from(usual) == *candidate)
}

fn shape(operation: Operation, pes: usize, bytes: usize) -> Shape {
    let words = bytes / size_of::<f64>();
    Shape::new(operation, 0, pes, words, size_of::<f64>())
}

/// The best candidate for each size.
fn verdicts<'c>(pes: usize, candidates: &'c [Candidate], times: &[Times]) -> Vec<Verdict<'c>> {
    let sizes = times.first().into_iter().flatten().map(|(bytes, _)| *bytes).enumerate();
    let verdict = |(index, bytes): (usize, usize)| {
        let shape = shape(candidates[0].algorithm.operation, pes, bytes);
        let mut all: Vec<_> =
            candidates.iter().zip(times).map(|(candidate, times)| (candidate, times[index].1)).collect();
        // The default, if it was measured, comes first among candidates with the same time.
        all.sort_by_key(|(candidate, _)| !is_usual(candidate, &shape));
        let mut order: Vec<(&Candidate, f64)> = Vec::new();
        for (candidate, ns) in all {
            match order.iter_mut().find(|(other, _)| candidate.does_as(other, &shape)) {
                Some((_, best)) => *best = best.min(ns),
                None => order.push((candidate, ns)),
            }
        }
        order.sort_by(|a, b| a.1.total_cmp(&b.1));
        let usual = order.iter().position(|(candidate, _)| is_usual(candidate, &shape));
        let built_in_ns = usual.map(|usual| order[usual].1);
        if let Some(usual) = usual.filter(|usual| order[*usual].1 <= order[0].1 * TIE) {
            order[..=usual].rotate_right(1);
        }
        Verdict { pes, bytes, winner: order[0], runner_up: order.get(1).copied(), built_in_ns }
    };
    sizes.map(verdict).collect()
}

/// The rules for one operation and one number of PEs.
fn rules(verdicts: &[Verdict<'_>]) -> Vec<Rule> {
    let best: Vec<_> = verdicts
        .iter()
        .map(|verdict| (verdict.bytes, verdict.winner.0.algorithm, verdict.winner.0.tuning))
        .collect();
    verdicts.first().map_or_else(Vec::new, |first| Rule::by_bytes(first.pes, &best))
}

impl Verdict<'_> {
    fn cells(&self) -> Vec<String> {
        let (winner, ns) = self.winner;
        let ratio = |other: Option<f64>| other.map(|other| format!("{:.3}", other / ns)).unwrap_or_default();
        let block = if self.bytes == 0 { String::new() } else { Bytes(self.bytes as u64).to_string() };
        let other_ns = self.runner_up.map(|(_, ns)| ns);
        vec![
            winner.algorithm.operation.to_string(),
            self.pes.to_string(),
            block,
            winner.to_string(),
            self.runner_up.map(|(candidate, _)| candidate.to_string()).unwrap_or_default(),
            figure(ns),
            other_ns.map(figure).unwrap_or_default(),
            ratio(other_ns),
            ratio(self.built_in_ns),
        ]
    }
}

fn progress_bar(tune: &Here, counts: &[usize], rounds: usize) -> anyhow::Result<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return Ok(ProgressBar::hidden());
    }
    let candidates = |operation| {
        let count = |pes: &usize| candidates(operation, *pes, &tune.sizes(operation)).len();
        counts.iter().map(count).sum::<usize>()
    };
    let jobs: usize = tune.operations().into_iter().map(candidates).sum();
    let style = ProgressStyle::with_template("tuning [{bar:40}] {pos}/{len}, {eta} left, {msg}")?;
    Ok(ProgressBar::new((jobs * rounds) as u64).with_style(style))
}

fn sorted<T: Copy + Ord>(values: &[T]) -> Vec<T> {
    let mut values = values.to_vec();
    values.sort_unstable();
    values.dedup();
    values
}

fn number_of_pes(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|number| (2..=PES_MAX).contains(number));
    number.ok_or_else(|| format!("this is not a number of PEs from 2 to {PES_MAX}"))
}

fn block_bytes(text: &str) -> Result<usize, String> {
    let bytes = bytes(text)?;
    let fits = bytes > 0 && bytes.is_multiple_of(8);
    fits.then_some(bytes).ok_or_else(|| "a block must be a multiple of 8 bytes".to_owned())
}

fn operation(name: &str) -> Result<Operation, String> {
    let found = Operation::from_name(&name.replace('-', "_"));
    found.ok_or_else(|| format!("there are: {}", Operation::ALL.map(Operation::name).join(", ")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pelago::coll::table::algorithms;
    use pelago::coll::tuning::Rules;

    use super::*;

    #[test]
    fn every_algorithm_is_a_candidate_where_it_can_be() {
        for operation in Operation::ALL {
            let all = algorithms().filter(|algorithm| algorithm.operation == operation).count();
            // With a power of two, a hypercube has the schedule of recursive doubling.
            let found = [8, 6].map(|pes| candidates(operation, pes, &[8, 1 << 20]));
            let found: BTreeSet<_> = found.iter().flatten().map(|found| found.algorithm.name).collect();
            assert!(found.len() + 1 >= all, "{operation}: {found:?} of {all}");
            let names = candidates(operation, 5, &[8]).into_iter().map(|found| found.algorithm.name);
            let names: Vec<_> = names.collect();
            assert!(!names.is_empty() && !names.contains(&"neighbour_exchange"), "{operation}: {names:?}");
        }
        let names: Vec<_> =
            candidates(Operation::Broadcast, 9, &[64 << 10]).iter().map(ToString::to_string).collect();
        for name in ["chain", "chain, pieces of 8 KiB", "k_nomial, radix 8", "k_nomial"] {
            assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
        }
    }

    /// The verdicts for broadcast among 4 PEs, from the times of its candidates by name.
    fn judged<T>(ns: impl Fn(&str, usize) -> f64, look: impl Fn(&[Verdict<'_>]) -> T) -> T {
        let sizes = [8, 4096, 65536];
        let candidates = candidates(Operation::Broadcast, 4, &sizes);
        let times = candidates.iter().map(|candidate| candidate.to_string());
        let times: Vec<Times> =
            times.map(|name| sizes.map(|bytes| (bytes, ns(&name, bytes))).to_vec()).collect();
        look(&verdicts(4, &candidates, &times))
    }

    #[test]
    fn the_fastest_wins_and_equal_winners_are_one_rule() {
        let ns = |name: &str, bytes| match (name, bytes) {
            ("linear", 8 | 4096) => 50.0,
            ("chain, pieces of 8 KiB", 65536) => 60.0,
            ("binomial", _) => 100.0,
            _ => 200.0,
        };
        let (rules, cells) = judged(ns, |verdicts| (rules(verdicts), verdicts[0].cells()));
        let found: Vec<_> = rules.iter().map(|rule| (rule.algorithm.name, rule.bytes_max)).collect();
        assert_eq!(found, [("linear", 16384), ("chain", usize::MAX)]);
        assert_eq!((rules[1].tuning.segment_bytes, rules[1].pes_max), (8 << 10, 4));
        let expected = ["broadcast", "4", "8 B", "linear", "binomial", "50.0", "100", "2.000", "2.000"];
        assert_eq!(cells, expected);
        let text: String = rules.iter().map(Rule::text).collect();
        assert_eq!(Rules::parse(&text).unwrap().count(), 2);
    }

    #[test]
    fn what_is_usual_wins_unless_something_is_clearly_faster() {
        let winners = |linear_ns: f64| {
            let ns = move |name: &str, _| match name {
                "linear" => linear_ns,
                "binomial" => 100.0,
                _ => 200.0,
            };
            judged(ns, |verdicts| verdicts[0].winner.0.to_string())
        };
        assert_eq!((winners(96.0), winners(90.0)), ("binomial".to_owned(), "linear".to_owned()));
    }

    #[test]
    fn arguments_that_make_no_sense() {
        for text in ["1", "0", "-2", "two", "", "4097"] {
            assert!(number_of_pes(text).is_err(), "{text}");
        }
        for text in ["0", "7", "64.5k", "-8", ""] {
            assert!(block_bytes(text).is_err(), "{text}");
        }
        assert!(operation("bcast").unwrap_err().contains("broadcast"));
        assert_eq!(operation("all-reduce"), operation("all_reduce"));
    }
}
