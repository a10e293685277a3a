//! Two-sided messages between PEs 0 and 1: `bench messages`, and `cargo xtask compare messages` with MPI.
//!
//! Invariant: all sides use private buffers that were written before, and a window is complete at both ends
//! before the next: the receiver answers it. Ratios are of the same round.

use std::path::PathBuf;

use clap::Args;
use pelago::message::Any;

use crate::base::peers::{self, Printed, Side};
use crate::base::prelude::*;
use crate::base::rounds::{self, Files, Gate, Row, cores, gates_table, placement};

pub const TOPIC: Topic = Topic {
    title: "Two-sided messages",
    jobs: |pes| vec![Job { pes, suite: "messages" }],
    tables: |records| vec![table(records)],
    figures: |records| vec![curve(records)],
};

pub const EXAMPLES: &str = "\
Examples:
  pelago bench messages                   half a round trip and windows, between PEs 0 and 1
  pelago bench messages --fabric tcp      the same over TCP
  pelago bench messages --html m.html     the curves as well";

/// The sizes of a message, in bytes.
pub const BYTES: [usize; 8] = [0, 8, 64, 1 << 10, 8 << 10, 64 << 10, 1 << 20, 4 << 20];

/// Messages of a window.
fn window(bytes: usize) -> usize {
    if bytes < 64 << 10 { 64 } else { 16 }
}

fn table(records: &[Record]) -> Table {
    let title = "Messages between PEs 0 and 1: half a round trip, and windows of 64 or, from 64 KiB on, 16";
    let names = "size|one way, ns: min|median|max|window, M/s: min|median|max";
    let mut table = Table::new(title, 1, names);
    let one = |bench, bytes| {
        let found = records.iter().find(|record| (record.label.bench, record.label.bytes) == (bench, bytes));
        found.map(|record| record.summary)
    };
    let is_ours = |label: &Label| matches!(label.bench, Bench::TwoSided | Bench::TwoSidedWindow);
    for bytes in values(records, |label| is_ours(label).then_some(label.bytes)) {
        table.row((size(bytes), one(Bench::TwoSided, bytes), one(Bench::TwoSidedWindow, bytes)));
    }
    table
}

fn curve(records: &[Record]) -> Figure {
    let line = of(records, Bench::TwoSided, Operation::OneWay).filter(|record| record.label.bytes > 0);
    Figure::new(
        "One-way time of a message",
        [Across::Bytes.axis("size of a message"), TIME],
        "Half a round trip of send and receive between PEs 0 and 1. Medians.",
        [Across::Bytes.series("send and receive", BLUE, Line::Solid, line)],
    )
}

/// Collective, for two PEs or more.
///
/// # Errors
/// Errors of the sink.
pub fn all(world: &World, bytes: &[usize], effort: Effort, sink: Sink<'_>) -> Result<()> {
    let mut suite = Suite::new(world, effort);
    for &bytes in bytes {
        let label = suite.label(Bench::TwoSided, Operation::OneWay, bytes);
        suite.add([(label, round_trips(world, bytes))]);
    }
    for &bytes in bytes.iter().filter(|&&bytes| bytes > 0) {
        let label = suite.label(Bench::TwoSidedWindow, Operation::Send, bytes).with_window(window(bytes));
        suite.add([(label, windows(world, bytes))]);
    }
    suite.run(sink)
}

fn round_trips<'a>(world: &'a World, bytes: usize) -> Part<'a> {
    let (team, me) = (world.team(), world.my_pe());
    let (source, mut target) = (vec![1_u8; bytes], vec![1_u8; bytes]);
    Box::new(move |count| {
        for _ in 0..count {
            match me {
                0 => {
                    team.send(1, 0, &source)?;
                    team.receive(1, 0, &mut target)?;
                }
                1 => {
                    team.receive(0, 0, &mut target)?;
                    team.send(0, 0, &source)?;
                }
                _ => break,
            }
        }
        Ok(())
    })
}

fn windows<'a>(world: &'a World, bytes: usize) -> Part<'a> {
    let (team, me, messages) = (world.team(), world.my_pe(), window(bytes));
    let (source, mut targets) = (vec![1_u8; bytes], vec![1_u8; if me == 1 { bytes * messages } else { 1 }]);
    Box::new(move |count| {
        for _ in 0..count {
            match me {
                0 => {
                    world.scope(|scope| {
                        (0..messages).try_for_each(|_| scope.send(&team, 1, 0, &source).map(drop))
                    })?;
                    team.receive(1, Any, &mut targets[..1])?;
                }
                1 => {
                    world.scope(|scope| {
                        let mut places = targets.chunks_exact_mut(bytes);
                        places.try_for_each(|place| scope.receive(&team, 0, 0, place).map(drop))
                    })?;
                    team.send(0, 1, &source[..1])?;
                }
                _ => break,
            }
        }
        Ok(())
    })
}

/// The options of the comparison.
#[derive(Args)]
pub struct Compare {
    /// Number of rounds; in each, every library runs every row
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The libraries to compare with: open-mpi, mpich
    #[arg(long, value_enum, value_delimiter = ',', default_value = "open-mpi,mpich")]
    against: Vec<Side>,
    #[command(flatten)]
    files: Files,
}

impl Compare {
    /// Builds the programs, runs all rounds, prints the comparison, and fails if a gate fails.
    pub fn run(&self) -> Result<()> {
        let pelago = peers::pelago()?;
        let program = |side: &Side| Ok((*side, peers::compile_by(*side, "messages_mpi.c", &[])?));
        let programs = self.against.iter().map(program).collect::<Result<Vec<(Side, PathBuf)>>>()?;
        let (pes, cores) = (2, cores()?);
        let is_crowded = pes > cores;
        let sides: Vec<Side> = [Side::Pelago].into_iter().chain(self.against.iter().copied()).collect();
        let run = |side, _: &str| match programs.iter().find(|(other, _)| *other == side) {
            None => Printed::of(&mut peers::run_of(
                &pelago,
                pes,
                is_crowded,
                &["app:perf", "--silent", "messages"],
            )),
            Some((_, program)) => Printed::of(&mut peers::launcher(side, pes, is_crowded, program)?),
        };
        let figure_ns = |printed: &Printed| printed.figure_ns(pes, cores);
        let collected = rounds::measure("", self.rounds, &sides, &["all rows"], figure_ns, run)?;
        let rows = collected.rows(pes);
        let gates: Vec<Gate> = rows.iter().filter_map(gate).collect();
        let (placement, block) = placement(pes, cores);
        let heading = format!(
            "{placement}.\n\
             Microseconds: one-way, half a round trip; send, one message of a window of 64 (from 64 KiB on\n\
             16).\n\
             The {block} of many short blocks, the median over the rounds; in brackets the median of the\n\
             ratios (ours to theirs).\n"
        );
        let tables = [rounds::table(&heading, &rows), gates_table(&gates)];
        rounds::finish("Two-sided messages", &rows, &gates, &tables, &self.files)
    }
}

/// The bound of a row, to the better of the others.
fn gate(row: &Row) -> Option<Gate> {
    let bound = match (row.operation.as_str(), row.bytes) {
        ("one-way", 8) => 0.6,
        ("send", 8) => 1.0 / 1.5,
        ("one-way" | "send", 65_536..) => 1.0,
        _ => return None,
    };
    Some(Gate { name: format!("{}, the better library", row.name()), ratio: row.ratio_to_best?, bound })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::record::tests::record;
    use crate::base::rounds::{Cell, Collected};
    use crate::base::suite::tests::{EFFORT, reported};
    use crate::base::topic::tests::{assert_nothing_shown, assert_row, shown};

    #[test]
    fn both_figures_of_a_size_are_in_a_row() {
        let records = [
            record(Label::new(2, Bench::TwoSided, Operation::OneWay, 8), Unit::Nanoseconds, 80.0),
            record(Label::new(2, Bench::TwoSidedWindow, Operation::Send, 8), Unit::MillionsPerSecond, 40.0),
        ];
        let (tables, page) = shown(&TOPIC, &records, 1);
        assert_row(&tables, &["8 B", "40.0", "80.0", "800", "20.0", "40.0", "400"]);
        assert!(page.contains("send and receive, 8 B"), "{page}");
        assert_nothing_shown(&TOPIC);
    }

    #[test]
    fn every_size_is_reported() {
        let (records, progress) = reported(3, |world, sink| all(world, &[0, 8, 65_536], EFFORT, sink));
        let found: Vec<_> = records.iter().map(|r| (r.label.bench, r.label.bytes, r.label.window)).collect();
        let trip = |bytes| (Bench::TwoSided, bytes, None);
        let window = |bytes, messages| (Bench::TwoSidedWindow, bytes, Some(messages));
        assert_eq!(found, [trip(0), trip(8), trip(65_536), window(8, 64), window(65_536, 16)]);
        assert_eq!(progress, (5, 5));
    }

    #[test]
    fn bounds_are_to_the_better_library() {
        let mut collected = Collected::default();
        for (operation, bytes) in [("one-way", 8), ("one-way", 64), ("send", 8), ("send", 1 << 20)] {
            for (side, ns) in [(Side::Pelago, 50.0), (Side::OpenMpi, 100.0), (Side::Mpich, 200.0)] {
                collected.add(Cell { operation: operation.to_owned(), bytes }, side, 0, ns, ns);
            }
        }
        let gates: Vec<_> =
            collected.rows(2).iter().filter_map(gate).map(|gate| (gate.ratio, gate.bound)).collect();
        assert_eq!(gates, [(0.5, 0.6), (0.5, 1.0 / 1.5), (0.5, 1.0)]);
    }
}
