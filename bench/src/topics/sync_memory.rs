//! `bench sync-memory`: the cost of collectives under each strategy for the reuse of synchronisation memory.
//! Invariant: counts from schedules and counts of the runtime are in separate tables, whose titles name the
//! source.

mod count;
mod graph;
mod measure;
mod strategy;

use clap::Args;
use pelago::coll::sync_memory::ARRAYS;
use pelago_boot::outln;
use pelago_report::chart::{Axis, Line, Point, Scale, Series};
use pelago_report::page::{BLUE, Figure, GREEN, ORANGE, PURPLE};
use pelago_report::{Table, figure, page};
use serde::Serialize;

use self::count::{Count, WORD_BYTES};
use self::measure::Measured;
use self::strategy::{OPERATIONS, Parameters, STRATEGIES};
use crate::base::topic::{Output, Shown, two_or_more};

/// The maximum number of columns of a table; each is a number of PEs.
const COLUMNS_MAX: usize = 6;
const COLOURS: [&str; 5] = [BLUE, GREEN, ORANGE, PURPLE, "#1b1f23"];

/// The options of the counts and the output.
#[derive(Args)]
pub struct Options {
    /// Maximum number of PEs; the powers of two up to it are counted
    #[arg(short, value_name = "N", default_value_t = 4096, value_parser = countable,
        allow_negative_numbers = true)]
    n: usize,
    /// Number of arrays of a PE, for the strategies with arrays
    #[arg(long, value_name = "A", default_value_t = ARRAYS, value_parser = positive)]
    arrays: usize,
    /// Number of collectives between two barriers
    #[arg(long, value_name = "C", default_value_t = 8, value_parser = positive)]
    collectives: usize,
    #[command(flatten)]
    output: Output,
}

pub const EXAMPLES: &str = "\
Examples:
  pelago bench sync-memory                      counted for 2 to 4096 PEs, measured up to 8
  pelago bench sync-memory --html m.html        curves, and graphs of who synchronises with whom
  pelago bench sync-memory --collectives 100    what strategies cost if barriers are rare";

/// The maximum number of PEs: time and memory grow with its square.
const PES_MAX: usize = 8192;

fn countable(text: &str) -> Result<usize, String> {
    let number = two_or_more(text)?;
    let is_possible = number <= PES_MAX;
    is_possible.then_some(number).ok_or_else(|| format!("at most {PES_MAX} PEs can be counted"))
}

fn positive(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|number| (1..=1 << 20).contains(number));
    number.ok_or_else(|| "this is not a number from 1 to 1048576".to_owned())
}

/// All results.
struct Results {
    parameters: Parameters,
    counted: Vec<Count>,
    measured: Vec<Measured>,
    graphs: Vec<graph::Graph>,
}

/// A line of the JSON output.
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
    /// Counts, measures and prints.
    ///
    /// # Errors
    /// If a PE fails, or the page cannot be written.
    pub fn execute(&self) -> anyhow::Result<()> {
        self.output.show(|| {
            let results = self.results()?;
            if self.output.json {
                for record in results.records() {
                    outln!("{}", serde_json::to_string(&record)?)?;
                }
            }
            Ok(results.shown())
        })
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
             Words are those in use; a PE reserves slots for every other PE, once for all teams, and a team \
             with arrays all that a schedule may have\n",
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
        let [largest, total, order, neighbours] = [
            "synchronisation words, bytes of a PE, at most",
            "synchronisation words, KiB of all PEs",
            "synchronisation words, words of all PEs for one of the paper's order",
            "PEs that signal a PE, at most, over all roots",
        ];
        vec![
            self.communication(),
            self.memory(largest, |count, _| (WORD_BYTES * count.words_max).to_string()),
            self.memory(total, |count, _| figure((WORD_BYTES * count.words_total) as f64 / 1024.0)),
            self.memory(order, |count, strategy| figure(count.to_bound(strategy, self.parameters))),
            self.memory(neighbours, |count, _| count.in_neighbours_max.to_string()),
            self.measured_table(),
            self.graph_table(),
        ]
    }

    /// The names of the columns of a table: `words`, followed by the numbers of PEs.
    fn names(&self, words: &str) -> String {
        self.columns().iter().fold(words.to_owned(), |names, pes| format!("{names}|{pes} PEs"))
    }

    fn communication(&self) -> Table {
        let title = "Counted: messages that one PE sends for a collective at most, releases and \
                     acknowledgements included; in brackets rounds, of the worst root";
        let mut table = Table::new(title, 4, &self.names("operation|strategy|algorithm|paper: O()"));
        for (index, operation) in OPERATIONS.iter().enumerate() {
            for strategy in &STRATEGIES {
                let algorithm = strategy.algorithms().nth(index).map_or("", |found| found.name);
                let cell = |&pes: &usize| {
                    let cost = self.of(strategy.name, pes).map(|count| &count.operations[index]);
                    cost.map_or(String::new(), |cost| {
                        format!("{} ({})", short(cost.messages_max), cost.rounds)
                    })
                };
                let costs: Vec<_> = self.columns().iter().map(cell).collect();
                table.row(([operation.name(), strategy.name, algorithm, strategy.communication], costs));
            }
        }
        table
    }

    fn memory(&self, what: &str, cell: impl Fn(&Count, &strategy::Strategy) -> String) -> Table {
        let mut table = Table::new(format!("Counted: {what}"), 2, &self.names("strategy|paper: O()"));
        for strategy in &STRATEGIES {
            let count = |&pes: &usize| self.of(strategy.name, pes);
            let cell = |pes| count(pes).map_or(String::new(), |count| cell(count, strategy));
            table.row((strategy.name, strategy.memory, self.columns().iter().map(cell).collect::<Vec<_>>()));
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
        let names = "strategy|PEs|signals|releases, acknowledgements|slots used";
        let mut table = Table::new(title, 1, names);
        for strategy in &STRATEGIES {
            for measured in self.measured.iter().filter(|measured| measured.strategy == strategy.name) {
                let Measured { signals, signals_max, chores, chores_max, slots, slots_max, .. } = measured;
                let pairs = [(signals, signals_max), (chores, chores_max), (slots, slots_max)];
                let counts = pairs.map(|(all, one)| format!("{all} ({one})"));
                table.row((measured.strategy, measured.pes, counts));
            }
        }
        table
    }

    fn graph_table(&self) -> Table {
        let title = format!("Counted: recursive doubling in teams of {} PEs", graph::PES);
        let mut table = Table::new(title, 1, "teams|number|edges|neighbours of a PE, at most");
        for graph in &self.graphs {
            let size = graph.size();
            table.row((size.graph, size.teams, size.edges, size.neighbours_max as usize));
        }
        table
    }

    fn figure(
        &self,
        title: &str,
        label: &'static str,
        caption: &'static str,
        value: impl Fn(&Count) -> f64,
    ) -> Figure {
        let series = STRATEGIES.iter().zip(COLOURS).enumerate().map(|(index, (strategy, colour))| {
            let of_strategy = self.counted.iter().filter(|count| count.strategy == strategy.name);
            let points = of_strategy.map(|count| {
                let note = format!("{}, {} PEs: {}", strategy.name, count.pes, short(value(count)));
                Point { x: count.pes as f64, y: value(count), note }
            });
            let line = if index % 2 == 1 { Line::Dashed } else { Line::Solid };
            Some(Series { name: strategy.name.to_owned(), colour, line, points: points.collect() })
        });
        let axes = [Axis { label: "PEs", scale: Scale::Doublings }, Axis { label, scale: Scale::Decades }];
        Figure::new(title, axes, caption, series)
    }

    fn shown(&self) -> Shown {
        let caption = "Counted from the schedules of barrier, broadcast and all-reduce, over all roots; of \
                       the PE that needs most. Words in use alone, without mailboxes. A balanced tree at \
                       each root, that of pairwise-structure, lets a PE meet half of all others by \
                       broadcasts, and all of them if there are reductions to roots as well.";
        let memory = self.figure("Synchronisation memory of a PE", "bytes", caption, |count| {
            (WORD_BYTES * count.words_max) as f64
        });
        let caption = "Counted; releases and acknowledgements included.";
        let messages = self.figure("Messages of all PEs for an all-reduce", "messages", caption, |count| {
            count.operations[2].messages_total
        });
        let caption = "Counted from schedules: an edge joins two PEs that signal each other in an all-reduce \
                       by recursive doubling, in some team of that stride; the teams of a stride begin at \
                       every PE below it. Each edge takes slots at both ends.";
        Shown {
            title: "Synchronisation memory",
            heading: self.heading(),
            tables: self.tables(),
            figures: vec![memory, messages],
            further: page::figure_of(&graph::svg(&self.graphs), caption),
        }
    }
}

/// A number with two decimals at most.
fn short(value: f64) -> String {
    format!("{}", (value * 100.0).round() / 100.0)
}

/// The counts of one strategy on one number of PEs.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Its name.
    pub strategy: &'static str,
    /// The number of PEs.
    pub pes: usize,
    /// The maximum number of messages that a PE sends for a collective, of all operations.
    pub messages_max: f64,
    /// The maximum number of synchronisation words of a PE.
    pub words_max: u64,
}

/// The counts of all strategies for 2, 4, 8 PEs and so on up to `most`, as the command counts by default.
///
/// # Errors
/// If a schedule has a defect.
pub fn counts(most: usize) -> anyhow::Result<Vec<Counted>> {
    let parameters = Parameters { arrays: ARRAYS, collectives: 8 };
    let mut counted = Vec::new();
    for pes in (1..usize::BITS).map(|power| 1 << power).take_while(|pes| *pes <= most) {
        let of_strategy = |count: Count| {
            let messages = count.operations.iter().map(|operation| operation.messages_max);
            let messages_max = messages.fold(0.0, f64::max);
            let Count { strategy, words_max, .. } = count;
            Counted { strategy, pes, messages_max, words_max }
        };
        counted.extend(count::count(pes, parameters)?.into_iter().map(of_strategy));
    }
    Ok(counted)
}
