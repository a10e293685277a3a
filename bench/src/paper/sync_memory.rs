//! Welch and Venkata on the reuse of synchronisation memory: the complexity of the strategies, and QTC.
//! Invariant: words and messages are those of schedules and of the runtime; no clock is read.

use anyhow::{Context, Result};
use pelago_report::chart::{Axis, Scale};
use serde_json::Value as Json;

use super::claim::{Claim, Evidence, Experiment, How, Paper, value, verdict};
use super::lab::{Between, Lab};
use super::shapes::{Across, chart, dashed, grows_as, solid};
use crate::topics::sync_memory::{Counted, counts};

const WORDS: Axis = Axis { label: "words of 8 bytes", scale: Scale::Decades };
const MESSAGES: Axis = Axis { label: "messages of a PE for a collective, at most", scale: Scale::FromZero };

/// The paper.
pub static PAPER: Paper = Paper {
    id: "sync-memory",
    number: "001",
    authors: "Welch, Venkata (slides)",
    title: "On Synchronisation and Memory Reuse in OpenSHMEM",
    about: "Messages and memory of three strategies by which collectives reuse their synchronisation memory",
    claims: &[
        Claim {
            row: "1.1",
            statement: "Strategy 1, additional synchronisation: communication O(3 log n) at worst, memory \
                        O(n log n)",
            condition: "n PEs; orders, no values",
            experiments: &[Experiment {
                figure: "strategy-1",
                title: "Messages and words of additional synchronisation",
                how: How::Counted,
                run: |lab| strategies(lab, &[("additional", 3.0, Memory::Log)]),
            }],
            rest: None,
        },
        Claim {
            row: "1.2",
            statement: "Strategy 2, unlock on a user's barrier: communication O(2 log n) at worst, memory \
                        O(c n log n)",
            condition: "n PEs, c collectives between barriers; orders, no values",
            experiments: &[Experiment {
                figure: "strategy-2",
                title: "Messages and words where barriers free the arrays",
                how: How::Counted,
                run: |lab| strategies(lab, &[("barrier", 2.0, Memory::Log)]),
            }],
            rest: None,
        },
        Claim {
            row: "1.3",
            statement: "Strategy 3, pairwise: recursive doubling O(log n) and O(n log n); tree of fixed \
                        structure O(log n) and O(n^2); tree of fixed edges O(2 log n) and O(3)",
            condition: "n PEs; orders of communication and memory, no values",
            experiments: &[Experiment {
                figure: "strategy-3",
                title: "Messages and words of pairwise synchronisation",
                how: How::Counted,
                run: |lab| {
                    let doubling = ("pairwise-doubling", 2.0, Memory::Log);
                    let structure = ("pairwise-structure", 2.0, Memory::All);
                    strategies(lab, &[doubling, structure, ("pairwise-edges", 2.0, Memory::Constant)])
                },
            }],
            rest: None,
        },
        Claim {
            row: "1.4",
            statement: "QTC needs log n pairwise words a PE, where arrays of each team need n log n",
            condition: "SHOC's QTC, whose group of PEs shrinks with its points; values not in the text",
            experiments: &[Experiment {
                figure: "qtc",
                title: "Words that QTC synchronises on, by the number of PEs",
                how: How::Counted,
                run: qtc,
            }],
            rest: None,
        },
    ],
};

/// The order of the memory of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// log n: n log n of all PEs.
    Log,
    /// n: n^2 of all PEs.
    All,
    /// Constant.
    Constant,
}

impl Memory {
    fn order(self, n: f64) -> f64 {
        match self {
            Memory::Log => n.log2(),
            Memory::All => n,
            Memory::Constant => 1.0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Memory::Log => "log n",
            Memory::All => "n",
            Memory::Constant => "constant",
        }
    }
}

/// The counts of strategies, each with the factor of log n in its communication and the order of its memory.
fn strategies(lab: &Lab, strategies: &[(&'static str, f64, Memory)]) -> Result<Evidence> {
    let most = if lab.is_quick { 256 } else { 1024 };
    let counts = counts(most)?;
    let (mut conditions, mut values, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    let (mut messages, mut words) = (Vec::new(), Vec::new());
    for &(name, factor, memory) in strategies {
        let found: Vec<&Counted> = counts.iter().filter(|count| count.strategy == name).collect();
        let sent: Vec<_> = found.iter().map(|count| (count.pes as f64, count.messages_max)).collect();
        let used: Vec<_> = found.iter().map(|count| (count.pes as f64, count.words_max as f64)).collect();
        let (pes, last) = *sent.last().context("nothing was counted")?;
        let per_log = last / pes.log2();
        let is_memory = grows_as(&used, |n| memory.order(n));
        conditions.extend([per_log <= factor, is_memory]);
        values.push(value(
            format!("{name}: messages of a PE for a collective, {pes} PEs, in log n"),
            format!("{per_log:.2}"),
            format!("at most {factor}"),
        ));
        let all = used.last().map_or(0.0, |(_, words)| *words);
        values.push(value(
            format!("{name}: words of a PE, {pes} PEs"),
            format!("{all}"),
            format!("order {}", memory.name()),
        ));
        reasons.push(format!(
            "{name}: {per_log:.2} log n messages, words {} as {}",
            if is_memory { "grow" } else { "do not grow" },
            memory.name()
        ));
        messages.push(solid(name, sent));
        words.push(solid(name, used));
    }
    Ok(Evidence {
        place: format!(
            "schedules of barrier, broadcast and all-reduce on 2 to {most} PEs, the worst of them"
        ),
        charts: vec![
            chart("Messages of a PE for a collective", Across::Pes, MESSAGES, messages),
            chart("Synchronisation words of a PE", Across::Pes, WORDS, words),
        ],
        values,
        verdict: verdict(&conditions, reasons.join("; ")),
    })
}

/// A number of QTC's report on its synchronisation memory.
fn number(line: &Json, field: &str) -> Result<f64> {
    let found = line["sync_memory"][field].as_f64();
    found.with_context(|| format!("QTC reports no {field}: {line}"))
}

fn qtc(lab: &Lab) -> Result<Evidence> {
    let numbers: &[usize] = if lab.is_quick { &[2, 4, 8] } else { &[2, 4, 8, 16] };
    let mut pairwise = Vec::new();
    let mut arrays = Vec::new();
    let mut values = Vec::new();
    for &pes in numbers {
        // 512 points a PE, so that all of them take part at first.
        let points = (512 * pes).to_string();
        let lines = lab.app(Between::Schedules, pes, &["qtc", "--points", &points])?;
        let line = lines.first().context("QTC printed nothing")?;
        let [slots, words] = [number(line, "slots_max")?, number(line, "traditional_max")?];
        let [slots_all, words_all] = [number(line, "slots")?, number(line, "traditional")?];
        values.push(value(
            format!("{pes} PEs: words of one PE at most (of all PEs)"),
            format!("pairwise {slots} ({slots_all}), arrays of each team {words} ({words_all})"),
            "",
        ));
        pairwise.push((pes as f64, slots));
        arrays.push((pes as f64, words));
    }
    let is_log = grows_as(&pairwise, f64::log2);
    let slower = |curve: &[(f64, f64)]| match curve {
        [.., before, last] => last.1 / before.1,
        _ => f64::NAN,
    };
    let (own, others) = (slower(&pairwise), slower(&arrays));
    let is_below = pairwise.last().zip(arrays.last()).is_some_and(|(own, others)| own.1 < others.1);
    let curves = vec![solid("pairwise", pairwise), dashed("an array for each team", arrays)];
    Ok(Evidence {
        place: format!("{numbers:?} PEs with 512 points each, collectives by schedule; by QTC's own report"),
        charts: vec![chart("Words of one PE at most", Across::Pes, WORDS, curves)],
        values,
        verdict: verdict(
            &[is_log, own < others, is_below],
            format!(
                "with twice the PEs pairwise memory grows by {own:.2}, arrays by {others:.2}; pairwise \
                 memory {} as log n and is {} than arrays at the most PEs, because a pair has several \
                 slots",
                if is_log { "grows" } else { "does not grow" },
                if is_below { "smaller" } else { "larger" }
            ),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::claim::Outcome;
    use super::*;

    #[test]
    fn strategies_are_counted_and_judged() {
        let lab = Lab::new(2, true);
        let seen =
            strategies(&lab, &[("additional", 3.0, Memory::Log), ("pairwise-edges", 2.0, Memory::Constant)]);
        let seen = seen.unwrap();
        assert_eq!((seen.charts.len(), seen.charts[0].series.len(), seen.values.len()), (2, 2, 4));
        assert_eq!(seen.charts[0].series[0].points.len(), 8);
        assert_eq!(seen.verdict.verdict, Outcome::Holds, "{}", seen.verdict.because);
        let wrong = strategies(&lab, &[("additional", 0.1, Memory::All)]).unwrap();
        assert_eq!(wrong.verdict.verdict, Outcome::DoesNotHold);
    }
}
