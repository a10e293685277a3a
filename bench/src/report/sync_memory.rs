//! `bench sync-memory`: what collectives cost under each way to use synchronisation memory again. Invariant:
//! what is counted from schedules and what the runtime has told stand in tables of their own, each of which
//! says which it is.

mod count;
mod graph;
mod measure;
mod strategy;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use pelago::coll::sync_memory::ARRAYS;
use pelago_boot::{out, outln};
use serde::Serialize;

use self::count::{Count, WORD_BYTES};
use self::measure::Measured;
use self::strategy::{OPERATIONS, Parameters, STRATEGIES};
use super::page::{self, BLUE, Figure, GREEN, ORANGE, PURPLE};
use super::table::{Table, figure};
use super::text;
use crate::plot::{Axis, Chart, Line, Point, Scale, Series};

/// Columns of a table, at most: numbers of PEs.
const COLUMNS_MAX: usize = 6;
const COLOURS: [&str; 5] = [BLUE, GREEN, ORANGE, PURPLE, "#1b1f23"];

/// What is counted and how it is shown.
#[derive(Args)]
pub struct Options {
    /// The most PEs that are counted; the powers of two up to it
    #[arg(short, value_name = "N", default_value_t = 4096, value_parser = countable,
        allow_negative_numbers = true)]
    n: usize,
    /// Arrays of a PE, for the strategies that have arrays
    #[arg(long, value_name = "A", default_value_t = ARRAYS, value_parser = positive)]
    arrays: usize,
    /// Collectives between two barriers
    #[arg(long, value_name = "C", default_value_t = 8, value_parser = positive)]
    collectives: usize,
    /// Print one JSON object a line instead of tables
    #[arg(long)]
    json: bool,
    /// Write a page of curves and connectivity graphs to this file as well
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Time and memory grow with the square.
const PES_MAX: usize = 8192;

fn countable(text: &str) -> Result<usize, String> {
    let number = super::two_or_more(text)?;
    let is_possible = number <= PES_MAX;
    is_possible.then_some(number).ok_or_else(|| format!("at most {PES_MAX} PEs can be counted"))
}

fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|number| (1..=1 << 20).contains(number));
    number.ok_or_else(|| "this is not a number from 1 to 1048576".to_owned())
}

/// Everything that is shown.
struct Results {
    parameters: Parameters,
    counted: Vec<Count>,
    measured: Vec<Measured>,
    graphs: Vec<graph::Graph>,
}

/// A line for programs.
#[derive(Serialize)]
#[serde(tag = "source", rename_all = "kebab-case")]
enum Record<'a> {
    /// From schedules.
    Counted {
        bench: &'static str,
        arrays: usize,
        collectives: usize,
        bytes_max: u64,
        bytes_total: u64,
        #[serde(flatten)]
        count: &'a Count,
    },
    /// From a run on threads.
    Measured {
        bench: &'static str,
        collectives_between_barriers: usize,
        collectives: usize,
        #[serde(flatten)]
        measured: &'a Measured,
    },
    /// A connectivity graph, from schedules.
    Graph {
        bench: &'static str,
        #[serde(flatten)]
        size: graph::Size,
    },
}

const BENCH: &str = "sync-memory";

impl Options {
    /// Counts, measures and shows.
    ///
    /// # Errors
    /// If a PE fails, or the page cannot be written.
    pub fn execute(&self) -> anyhow::Result<()> {
        // Before it is counted, not after.
        let page = self
            .html
            .as_ref()
            .map(|path| File::create(path).with_context(|| format!("creating the page {}", path.display())));
        let page = page.transpose()?;
        let results = self.results()?;
        if self.json {
            for record in results.records() {
                outln!("{}", serde_json::to_string(&record)?)?;
            }
        } else {
            out!("{}\n{}", results.heading(), text::joined(&results.tables()))?;
        }
        if let Some(mut page) = page {
            page.write_all(results.html().as_bytes()).context("writing the page of curves")?;
        }
        Ok(())
    }

    fn results(&self) -> anyhow::Result<Results> {
        let parameters = Parameters { arrays: self.arrays, collectives: self.collectives };
        let powers = (1..usize::BITS).map(|power| 1 << power).take_while(|pes| *pes <= self.n);
        let (mut counted, mut measured) = (Vec::new(), Vec::new());
        for pes in powers {
            if pes <= measure::PES_MAX {
                measured.extend(measure::measure(pes, self.collectives)?);
            }
            counted.extend(count::count(pes, parameters)?);
        }
        Ok(Results { parameters, counted, measured, graphs: graph::graphs() })
    }
}

impl Results {
    fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let Parameters { arrays, collectives } = self.parameters;
        let counted = self.counted.iter().map(move |count| Record::Counted {
            bench: BENCH,
            arrays,
            collectives,
            bytes_max: WORD_BYTES * count.words_max,
            bytes_total: WORD_BYTES * count.words_total,
            count,
        });
        let measured = self.measured.iter().map(move |measured| Record::Measured {
            bench: BENCH,
            collectives_between_barriers: collectives,
            collectives: measure::COLLECTIVES,
            measured,
        });
        let graphs = self.graphs.iter().map(|graph| Record::Graph { bench: BENCH, size: graph.size() });
        counted.chain(measured).chain(graphs)
    }

    fn heading(&self) -> String {
        let Parameters { arrays, collectives } = self.parameters;
        format!(
            "pelago {}: synchronisation memory of collectives; a = {arrays} arrays, c = {collectives} \
             collectives between barriers\n\
             Counted: from the schedules of small blocks, nothing runs. Measured: told by the runtime, which \
             has {ARRAYS} arrays\n\
             Words are those in use; a team reserves slots for every pair of PEs, or all that a schedule \
             may have\n",
            env!("CARGO_PKG_VERSION")
        )
    }

    /// The numbers of PEs that tables show.
    fn columns(&self) -> Vec<usize> {
        let mut pes: Vec<_> = self.counted.iter().map(|count| count.pes).collect();
        pes.dedup();
        let step = pes.len().div_ceil(COLUMNS_MAX).max(1);
        let mut shown: Vec<_> = pes.into_iter().rev().step_by(step).collect();
        shown.reverse();
        shown
    }

    fn of(&self, strategy: &str, pes: usize) -> Option<&Count> {
        self.counted.iter().find(|count| (count.strategy, count.pes) == (strategy, pes))
    }

    fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.communication()];
        tables.push(
            self.memory("bytes of a PE, at most", |count, _| (WORD_BYTES * count.words_max).to_string()),
        );
        tables.push(
            self.memory("KiB of all PEs", |count, _| {
                figure((WORD_BYTES * count.words_total) as f64 / 1024.0)
            }),
        );
        tables.push(self.memory("words of all PEs for one of the paper's order", |count, strategy| {
            figure(count.to_bound(strategy, self.parameters))
        }));
        tables.push(self.memory("PEs that signal a PE, at most, over all roots", |count, _| {
            count.in_neighbours_max.to_string()
        }));
        tables.push(self.measured_table());
        tables.push(self.graph_table());
        tables
    }

    fn communication(&self) -> Table {
        let columns = self.columns();
        let names: Vec<_> = columns.iter().map(|pes| format!("{pes} PEs")).collect();
        let title = "Counted: messages that one PE sends for a collective at most, releases and \
                     acknowledgements included; in brackets rounds, of the worst root";
        let words = ["operation", "strategy", "algorithm", "paper: O()"];
        let mut table = Table::new(title, 4, words.into_iter().chain(names.iter().map(String::as_str)));
        for (index, operation) in OPERATIONS.iter().enumerate() {
            for (strategy, algorithm) in STRATEGIES
                .iter()
                .map(|strategy| (strategy, strategy.algorithms().nth(index).map_or("", |found| found.name)))
            {
                let words = [operation.name(), strategy.name, algorithm, strategy.communication];
                let cells = columns.iter().map(|&pes| {
                    let cost = self.of(strategy.name, pes).map(|count| &count.operations[index]);
                    cost.map_or(String::new(), |cost| {
                        format!("{} ({})", short(cost.messages_max), cost.rounds)
                    })
                });
                table.row(words.map(str::to_owned).into_iter().chain(cells));
            }
        }
        table
    }

    fn memory(&self, what: &str, cell: impl Fn(&Count, &strategy::Strategy) -> String) -> Table {
        let columns = self.columns();
        let names: Vec<_> = columns.iter().map(|pes| format!("{pes} PEs")).collect();
        let title = format!("Counted: synchronisation words, {what}");
        let title = if what.starts_with("PEs") { format!("Counted: {what}") } else { title };
        let words = ["strategy", "paper: O()"];
        let mut table = Table::new(&title, 2, words.into_iter().chain(names.iter().map(String::as_str)));
        for strategy in &STRATEGIES {
            let words = [strategy.name, strategy.memory].map(str::to_owned).into_iter();
            let counts = columns.iter().map(|&pes| self.of(strategy.name, pes));
            let cells = counts.map(|count| count.map_or(String::new(), |count| cell(count, strategy)));
            table.row(words.chain(cells));
        }
        table
    }

    fn measured_table(&self) -> Table {
        let Parameters { collectives, .. } = self.parameters;
        let title = format!(
            "Measured: {} broadcasts and all-reduces in turn, roots moving, a barrier each {collectives}; of \
             all PEs (of one at most)",
            measure::COLLECTIVES
        );
        let names = ["strategy", "PEs", "signals", "releases, acknowledgements", "slots used"];
        let mut table = Table::new(&title, 1, names);
        for strategy in &STRATEGIES {
            for measured in self.measured.iter().filter(|measured| measured.strategy == strategy.name) {
                let both = |all: u64, one: u64| format!("{all} ({one})");
                table.row([
                    measured.strategy.to_owned(),
                    measured.pes.to_string(),
                    both(measured.signals, measured.signals_max),
                    both(measured.chores, measured.chores_max),
                    both(measured.slots, measured.slots_max),
                ]);
            }
        }
        table
    }

    fn graph_table(&self) -> Table {
        let title = format!("Counted: recursive doubling in teams of {} PEs", graph::PES);
        let mut table = Table::new(&title, 1, ["teams", "number", "edges", "neighbours of a PE, at most"]);
        for graph in &self.graphs {
            let size = graph.size();
            let numbers = [size.teams, size.edges, size.neighbours_max as usize];
            table.row([size.graph.to_owned()].into_iter().chain(numbers.map(|number| number.to_string())));
        }
        table
    }

    fn chart(&self, title: &str, label: &'static str, value: impl Fn(&Count) -> f64) -> Chart {
        let series = STRATEGIES.iter().zip(COLOURS).enumerate().map(|(index, (strategy, colour))| {
            let of_strategy = self.counted.iter().filter(|count| count.strategy == strategy.name);
            let points = of_strategy.map(|count| {
                let note = format!("{}, {} PEs: {}", strategy.name, count.pes, short(value(count)));
                Point { x: count.pes as f64, y: value(count), note }
            });
            let line = if index % 2 == 1 { Line::Dashed } else { Line::Solid };
            Series { name: strategy.name.to_owned(), colour, line, points: points.collect() }
        });
        Chart {
            title: title.to_owned(),
            x: Axis { label: "PEs", scale: Scale::Doublings },
            y: Axis { label, scale: Scale::Decades },
            series: series.collect(),
        }
    }

    fn html(&self) -> String {
        let figures = [
            Figure {
                chart: self.chart("Synchronisation memory of a PE", "bytes", |count| {
                    (WORD_BYTES * count.words_max) as f64
                }),
                caption: "Counted from the schedules of barrier, broadcast and all-reduce, over all roots; \
                          of the PE that needs most. Words in use alone, without mailboxes. The trees of \
                          pairwise-structure count PEs from their root on in powers of two, so a PE meets \
                          about 2 log n others, where the source allows for all of them.",
            },
            Figure {
                chart: self.chart("Messages of all PEs for an all-reduce", "messages", |count| {
                    count.operations[2].messages_total
                }),
                caption: "Counted; releases and acknowledgements included.",
            },
        ];
        let caption = "Counted from schedules: an edge joins two PEs that signal each other in an all-reduce \
                       by recursive doubling, in some team of that stride; the teams of a stride begin at \
                       every PE below it. Each edge takes slots at both ends.";
        let drawing = page::figure_of(&graph::svg(&self.graphs), caption);
        let tables = text::joined(&self.tables());
        page::html_with("Synchronisation memory", &self.heading(), &tables, &figures, &drawing)
    }
}

/// A number with two decimals at most.
fn short(value: f64) -> String {
    format!("{}", (value * 100.0).round() / 100.0)
}
