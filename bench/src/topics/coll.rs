//! `bench coll`: repeated collective operations of all PEs; and `cargo xtask compare coll`: the same compared
//! with the OpenSHMEM and the MPI of Open MPI, and with MPICH, from Debian. Their programs measure in the
//! same way (c/coll_measure.h), take the same arguments, and check their results.
//!
//! Invariants: every decision depends only on values that all PEs have, so that all PEs decide alike;
//! different numbers of PEs have separate tables and charts; sides alternate operation by operation.
//!
//! A block is a number of rounds; a round has one operation per PE, one after the other. All PEs enter a
//! barrier, then each measures its own time; the time of the block is that of the slowest PE. In a round each
//! PE is the root once, so that no PE runs ahead of the others.

mod sums;

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use clap::{Args, ValueEnum};
use pelago_report::figure;

pub use self::sums::all_reduce_pairs;
use crate::base::buffers::transfer_bytes;
use crate::base::effort::EffortOptions;
use crate::base::gate::{self, Bound::TimeAtMost, Source::Perf};
use crate::base::job;
use crate::base::peers::{self, Printed, Side};
use crate::base::prelude::*;
use crate::base::rounds::{self, Files, Gate, Row, cores, gates_table, placement};
use crate::base::stats::Summary;
use crate::base::workspace::output_of;

pub const TOPIC: Topic = Topic {
    title: "Collective operations",
    jobs: |most| doublings(2, most).map(|pes| Job { pes, suite: "coll" }).collect(),
    tables: |records| by_pes(records).map(|(pes, records)| table(pes, &records)).collect(),
    figures,
};

pub const EXAMPLES: &str = "\
Examples:
  pelago bench coll                      two PEs, or as many as there are cores
  pelago bench coll -n 8                 2, 4 and 8 PEs
  pelago bench coll --html c.html        the curves as well";

#[rustfmt::skip]
pub static GATES: &[gate::Gate] = &[
    gate::Gate { name: "all-reduce-8k",
                 what: "sum of 1024 doubles to a loop over both sources and a barrier, time",
                 bound: TimeAtMost(1.5), source: Perf(2, &["all-reduce", "--bytes", "8192"]) },
];

/// The operations that move data, with the names of their curves.
const MOVING: [(Operation, &str); 5] = [
    (Operation::Broadcast, "broadcast"),
    (Operation::Scatter, "scatter"),
    (Operation::Gather, "gather"),
    (Operation::AllGather, "all_gather"),
    (Operation::AllToAll, "all_to_all"),
];
/// The operations that combine data.
const COMBINING: [(Operation, &str); 5] = [
    (Operation::Reduce, "reduce"),
    (Operation::AllReduce, "all_reduce"),
    (Operation::ReduceScatter, "reduce_scatter"),
    (Operation::InclusiveScan, "inclusive_scan"),
    (Operation::ExclusiveScan, "exclusive_scan"),
];

/// The records of one number of PEs.
fn by_pes(records: &[Record]) -> impl Iterator<Item = (usize, Vec<Record>)> {
    let of_pes = |pes| records.iter().filter(move |record| record.label.pes == pes).cloned().collect();
    values(records, |label| Some(label.pes)).into_iter().map(move |pes| (pes, of_pes(pes)))
}

/// A row for each operation, a column for each size.
fn table(pes: usize, records: &[Record]) -> Table {
    let barrier = find(records, |label| label.operation == Operation::Barrier);
    let barrier = barrier.map(|record| format!("; barrier: {}", figure(record.summary.median)));
    let title =
        format!("{pes} PEs, ns an operation (doubles, their sum), medians{}", barrier.unwrap_or_default());
    let sizes = values(records, |label| (label.bytes > 0).then_some(label.bytes));
    let names: String = sizes.iter().map(|&bytes| format!("|{}", size(bytes))).collect();
    let mut table = Table::new(title, 1, &format!("block{names}"));
    for (operation, name) in MOVING.into_iter().chain(COMBINING) {
        let cell = |bytes| find(records, |label| (label.operation, label.bytes) == (operation, bytes));
        let cells: Vec<_> = sizes.iter().map(|&bytes| cell(bytes)).collect();
        if cells.iter().any(Option::is_some) {
            table.row((name, cells));
        }
    }
    table
}

fn figures(records: &[Record]) -> Vec<Figure> {
    let of_pes = |(pes, records): (usize, Vec<Record>)| {
        [curves(pes, &records, "moving data", MOVING), curves(pes, &records, "combining data", COMBINING)]
    };
    by_pes(records).flat_map(of_pes).collect()
}

fn curves(pes: usize, records: &[Record], what: &str, operations: [(Operation, &str); 5]) -> Figure {
    let solid = [BLUE, ORANGE, GREEN, PURPLE].map(|colour| (colour, Line::Solid));
    let styles = solid.into_iter().chain([(BLUE, Line::Dashed)]);
    let lines = operations.into_iter().zip(styles).map(|((operation, name), (colour, line))| {
        Across::Bytes.series(name, colour, line, of(records, Bench::Collective, operation))
    });
    Figure::new(
        format!("{pes} PEs {what}"),
        [Across::Bytes.axis("size of a block"), TIME],
        "Time of an operation, every PE being the root in turn. Medians of blocks, each as long as its \
         slowest PE.",
        lines,
    )
}

/// All operations, with their names.
const OPERATIONS: [(Operation, &str); 11] = [
    (Operation::Barrier, "barrier"),
    (Operation::Broadcast, "broadcast"),
    (Operation::Scatter, "scatter"),
    (Operation::Gather, "gather"),
    (Operation::AllGather, "all-gather"),
    (Operation::AllToAll, "all-to-all"),
    (Operation::Reduce, "reduce"),
    (Operation::AllReduce, "all-reduce"),
    (Operation::ReduceScatter, "reduce-scatter"),
    (Operation::InclusiveScan, "inclusive-scan"),
    (Operation::ExclusiveScan, "exclusive-scan"),
];
/// The block sizes in bytes, as far as the heap has room.
const SIZES: [usize; 9] = [8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// The maximum block size of quick tests.
const QUICK_BYTES_MAX: usize = 4 << 10;

/// The measurements, and their duration.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Operations (default: all)
    #[arg(long, value_delimiter = ',', value_parser = operation)]
    operations: Vec<Operation>,
    /// Block sizes in bytes, multiples of 8: the contribution of a PE, or the data for each PE
    #[arg(long, value_delimiter = ',', value_parser = transfer_bytes)]
    sizes: Vec<usize>,
    /// Root of consecutive operations
    #[arg(long, value_enum, default_value_t = Root::Turn)]
    root: Root,
    /// After an operation that only moves data, measure plain copies of the same blocks as well
    #[arg(long)]
    copies: bool,
    #[command(flatten)]
    effort: EffortOptions,
}

/// The choice of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Root {
    /// Every PE in turn, so that no PE runs ahead of the others: a latency
    Turn,
    /// PE 0, which may run ahead: a rate
    Fixed,
}

/// Operations, sizes, effort.
#[derive(Clone, Debug)]
pub struct Plan {
    operations: Vec<Operation>,
    bytes: Vec<usize>,
    root: Root,
    has_copies: bool,
    effort: Effort,
}

impl Plan {
    /// The plan of the options; only small blocks if it `is_quick`.
    pub fn of(world: &World, options: &Options, effort: Effort, is_quick: bool) -> Plan {
        // Source and target, each with a block for every PE, take at most half of the heap.
        let has_room = |bytes: &usize| bytes * world.n_pes() <= world.heap_largest_free_bytes() / 4;
        let all_operations = || OPERATIONS.iter().map(|(operation, _)| *operation).collect();
        let bytes_max = if is_quick { QUICK_BYTES_MAX } else { usize::MAX };
        let all_sizes = || SIZES.into_iter().filter(has_room).filter(|bytes| *bytes <= bytes_max).collect();
        Plan {
            operations: or_all(&options.operations, all_operations),
            bytes: or_all(&options.sizes, all_sizes),
            root: options.root,
            has_copies: options.copies,
            effort: options.effort.effort(effort),
        }
    }

    /// The sizes of an operation; a barrier has none.
    fn trials(&self, operation: Operation) -> Vec<(Operation, usize)> {
        let bytes = if operation == Operation::Barrier { &[0] } else { self.bytes.as_slice() };
        bytes.iter().map(|bytes| (operation, *bytes)).collect()
    }
}

fn or_all<T: Clone>(asked: &[T], all: impl Fn() -> Vec<T>) -> Vec<T> {
    if asked.is_empty() { all() } else { asked.to_vec() }
}

fn operation(name: &str) -> Result<Operation, String> {
    let found = OPERATIONS.iter().find(|(_, known)| *known == name).map(|(operation, _)| *operation);
    let names = || OPERATIONS.map(|(_, known)| known).join(", ");
    found.ok_or_else(|| format!("there are: {}", names()))
}

/// Collective: measures each operation and size; the records go to the sink on PE 0.
///
/// # Errors
/// Errors of the sink, a wrong result, and if the symmetric heap has no room for the blocks.
pub fn all(world: &World, plan: &Plan, sink: Sink<'_>) -> Result<()> {
    let bytes_max = largest(&plan.bytes);
    let collectives = Collectives::new(world, bytes_max / size_of::<f64>(), plan.root)?;
    let trials: Vec<_> =
        plan.operations.iter().copied().flat_map(|operation| plan.trials(operation)).collect();
    // If the sink fails on PE 0, the other PEs must not wait for it.
    let mut outcome = Ok(());
    for (index, (operation, bytes)) in trials.iter().copied().enumerate() {
        let words = bytes / size_of::<f64>();
        let bench = if plan.root == Root::Turn { Bench::Collective } else { Bench::CollectiveFixedRoot };
        let operate = |root| collectives.operate(operation, words, root);
        let mut taken = vec![(bench, collectives.samples_ns((operation, words), plan.effort, operate)?)];
        if plan.has_copies && collectives.can_copy(operation) {
            let copy = |root| {
                collectives.copy(operation, words, root);
                Ok(())
            };
            let samples_ns = collectives.samples_ns((operation, words), plan.effort, copy)?;
            taken.push((Bench::CollectiveCopies, samples_ns));
        }
        if world.my_pe() == 0 {
            let record = |(bench, samples_ns): &(Bench, Vec<f64>)| {
                let label = Label::new(world.n_pes(), *bench, operation, bytes);
                Record::of(label, Unit::Nanoseconds, samples_ns)
            };
            let records: Vec<_> = taken.iter().map(record).collect();
            let progress = Progress { trials_done: index + 1, trials: trials.len(), records: &records };
            outcome = outcome.and_then(|()| sink(progress));
        }
    }
    outcome
}

/// The team of all PEs, and memory for its operations.
struct Collectives<'w> {
    world: &'w World,
    team: Team<'w>,
    source: Symmetric<'w, f64>,
    target: Symmetric<'w, f64>,
    seconds: Symmetric<'w, f64>,
    most_seconds: Symmetric<'w, f64>,
    root: Root,
}

/// Memory starts at a page boundary, like that of the other libraries' programs.
const PAGE_BYTES: usize = 4096;

impl<'w> Collectives<'w> {
    /// Collective: allocates memory for blocks of up to `words_max` words.
    fn new(world: &'w World, words_max: usize, root: Root) -> pelago::Result<Self> {
        let blocks = || world.alloc_aligned(words_max * world.n_pes(), PAGE_BYTES);
        Ok(Collectives {
            world,
            team: world.team(),
            source: blocks()?,
            target: blocks()?,
            seconds: world.alloc_zeroed(1)?,
            most_seconds: world.alloc_zeroed(1)?,
            root,
        })
    }

    /// The times of an operation, `act` with a root, in nanoseconds by block; the same at all PEs. The result
    /// is checked before, with each PE as the root.
    fn samples_ns(
        &self,
        (operation, words): (Operation, usize),
        effort: Effort,
        act: impl Fn(usize) -> pelago::Result<()>,
    ) -> Result<Vec<f64>> {
        for root in 0..self.team.n_pes() {
            self.check((operation, words), root, &act)?;
        }
        let shorter = |rounds| {
            let one = self.block(rounds, &act)?;
            Ok::<_, pelago::Error>(one.min(self.block(rounds, &act)?))
        };
        let rounds = effort.calibrate(shorter)?;
        let time = shorter(rounds)?.max(Duration::from_nanos(1));
        let fitting = (effort.budget.as_secs_f64() / time.as_secs_f64()) as usize;
        let blocks = fitting.clamp(effort.blocks_min, effort.blocks_max);
        let operations = rounds as f64 * self.team.n_pes() as f64;
        let sample = |_| Ok(self.block(rounds, &act)?.as_secs_f64() * 1e9 / operations);
        (0..blocks).map(sample).collect()
    }

    /// The time of the slowest PE for `rounds` rounds.
    fn block(&self, rounds: u64, act: impl Fn(usize) -> pelago::Result<()>) -> pelago::Result<Duration> {
        self.world.barrier();
        let start = self.world.wtime();
        for _ in 0..rounds {
            for pe in 0..self.team.n_pes() {
                act(if self.root == Root::Turn { pe } else { 0 })?;
            }
        }
        self.slowest(self.world.wtime() - start)
    }

    fn slowest(&self, time: Duration) -> pelago::Result<Duration> {
        self.seconds.local().set(0, time.as_secs_f64());
        self.team.all_reduce(ReduceOp::Max, &self.most_seconds, &self.seconds)?;
        Ok(Duration::from_secs_f64(self.most_seconds.local().get(0)))
    }

    #[inline]
    fn operate(&self, operation: Operation, words: usize, root: usize) -> pelago::Result<()> {
        let (team, n) = (&self.team, self.team.n_pes());
        let source = |blocks: usize| self.source.span(0..blocks * words);
        let target = |blocks: usize| self.target.span(0..blocks * words);
        let sum = ReduceOp::Sum;
        match operation {
            Operation::Barrier => {
                team.barrier();
                Ok(())
            }
            Operation::Broadcast => team.broadcast(root, target(1), source(1)),
            Operation::Scatter => team.scatter(root, target(1), source(n)),
            Operation::Gather => team.gather(root, target(n), source(1)),
            Operation::AllGather => team.all_gather(target(n), source(1)),
            Operation::AllToAll => team.all_to_all(target(n), source(n)),
            Operation::Reduce => team.reduce(sum, root, target(1), source(1)),
            Operation::AllReduce => team.all_reduce(sum, target(1), source(1)),
            Operation::ReduceScatter => team.reduce_scatter(sum, target(1), source(n)),
            Operation::InclusiveScan => team.inclusive_scan(sum, target(1), source(1)),
            Operation::ExclusiveScan => team.exclusive_scan(sum, target(1), source(1)),
            _ => unreachable!("{operation:?} is not a collective operation"),
        }
    }

    /// Whether an operation only moves data, and all PEs map each other.
    fn can_copy(&self, operation: Operation) -> bool {
        use Operation::*;
        let is_mapped = |pe| self.source.ptr(pe).is_some();
        matches!(operation, Broadcast | Scatter | Gather | AllGather | AllToAll)
            && (0..self.team.n_pes()).all(is_mapped)
    }

    /// Copies the data of the operation to this PE's target, by the C library's memcpy; if only the root has
    /// a target, only the root copies.
    fn copy(&self, operation: Operation, words: usize, root: usize) {
        let (me, n) = (self.team.my_rank(), self.team.n_pes());
        let block = |from, source, target| self.copy_block(words, from, source, target);
        let all = || (0..n).map(|i| (me + i) % n);
        match operation {
            Operation::Broadcast => block(root, 0, 0),
            Operation::Scatter => block(root, me, 0),
            Operation::Gather if me != root => (),
            Operation::AllToAll => all().for_each(|pe| block(pe, me, pe)),
            _ => all().for_each(|pe| block(pe, 0, pe)),
        }
    }

    /// Copies a block of a PE's source to one of this PE's target.
    fn copy_block(&self, words: usize, from: usize, source: usize, target: usize) {
        let place = |array: &Symmetric<'_, f64>, pe, block: usize| {
            assert!((block + 1) * words <= array.len(), "the arrays have room for a block of each PE");
            let start = array.ptr(pe).expect("the PEs of a node map each other");
            start.wrapping_add(block * words)
        };
        let (source, target) =
            (place(&self.source, from, source), place(&self.target, self.world.my_pe(), target));
        // SAFETY: both blocks lie in their arrays, as just checked; no PE writes the sources meanwhile, and
        // only this PE writes its target.
        unsafe { libc::memcpy(target.cast(), source.cast(), words * size_of::<f64>()) };
    }

    /// Executes the operation once and checks every element of the result.
    fn check(
        &self,
        (operation, words): (Operation, usize),
        root: usize,
        act: impl Fn(usize) -> pelago::Result<()>,
    ) -> Result<()> {
        let (me, n) = (self.team.my_rank(), self.team.n_pes());
        for block in 0..n {
            let values: Vec<_> = (0..words).map(|index| value(me, block, index)).collect();
            self.source.local().write(block * words, &values);
            self.target.local().write(block * words, &vec![UNTOUCHED; words]);
        }
        self.world.barrier();
        act(root)?;
        self.world.barrier();
        for block in 0..n {
            let mut found = vec![0.0; words];
            self.target.local().read(block * words, &mut found);
            for (index, found) in found.into_iter().enumerate() {
                let expected = expected(operation, (me, n), root, block, index);
                ensure!(
                    found == expected,
                    "PE {me}: {operation:?} of {words} words, root {root}: element {index} of block {block} \
                     is {found} instead of {expected}"
                );
            }
        }
        // No PE writes again before all PEs have checked.
        self.world.barrier();
        Ok(())
    }
}

/// The initial value of targets.
const UNTOUCHED: f64 = -1.0;

/// Element `index` of the block that one PE has for another. Sums of these are exact.
fn value(from: usize, to: usize, index: usize) -> f64 {
    (from * 65536 + to * 1024 + index % 1021) as f64
}

/// The expected value of an element of a block of a PE's target.
fn expected(operation: Operation, (me, n): (usize, usize), root: usize, block: usize, index: usize) -> f64 {
    use Operation::*;
    let sum = |to, pes: std::ops::Range<usize>| pes.map(|from| value(from, to, index)).sum::<f64>();
    let is_root = me == root;
    match operation {
        Gather if is_root => value(block, 0, index),
        AllGather => value(block, 0, index),
        AllToAll => value(block, me, index),
        _ if block > 0 => UNTOUCHED,
        Broadcast => value(root, 0, index),
        Scatter => value(root, me, index),
        Reduce if is_root => sum(0, 0..n),
        AllReduce => sum(0, 0..n),
        ReduceScatter => sum(me, 0..n),
        InclusiveScan => sum(0, 0..me + 1),
        ExclusiveScan if me > 0 => sum(0, 0..me),
        _ => UNTOUCHED,
    }
}

/// The operations that are compared, as `perf coll` and the C programs name them.
const COMPARED: &str = "barrier,broadcast,scatter,gather,all-gather,all-to-all,reduce,all-reduce";
/// Bytes of a block.
const COMPARED_SIZES: &str = "8,64,512,4096,16384,65536,262144,1048576,4194304";

/// The options of the comparison.
#[derive(Args)]
pub struct Compare {
    /// Number of rounds; in each, every library runs every operation
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Numbers of PEs; PEs are bound if each has a core
    #[arg(long, value_delimiter = ',', default_value = "2,4")]
    pes: Vec<usize>,
    /// Operations
    #[arg(long, value_delimiter = ',', default_value = COMPARED)]
    operations: Vec<String>,
    /// Block sizes in bytes, multiples of 8: the contribution of a PE, or the data for each PE
    #[arg(long, value_delimiter = ',', default_value = COMPARED_SIZES)]
    sizes: Vec<usize>,
    /// Root of consecutive operations
    #[arg(long, value_enum, default_value_t = Root::Turn)]
    root: Root,
    /// The libraries to compare with
    #[arg(long, value_enum, value_delimiter = ',', default_value = "open-mpi,mpich,oshmem")]
    against: Vec<Side>,
    #[command(flatten)]
    files: Files,
}

impl Compare {
    /// Builds the programs, runs all rounds, prints the comparison, and fails if a gate fails.
    pub fn run(&self) -> Result<()> {
        ensure!(self.sizes.iter().all(|bytes| *bytes > 0 && bytes % 8 == 0), "sizes are multiples of 8");
        ensure!(self.pes.iter().all(|pes| *pes >= 2), "a comparison needs 2 PEs or more");
        let source = |side| if side == Side::Oshmem { "coll_oshmem.c" } else { "coll_mpi.c" };
        let theirs = self.against.iter().map(|&side| Ok((side, peers::compile_by(side, source(side), &[])?)));
        let theirs: Vec<_> = theirs.collect::<Result<_>>()?;
        let (pelago, cores) = (peers::pelago()?, cores()?);
        let sides: Vec<_> = [Side::Pelago].into_iter().chain(self.against.iter().copied()).collect();
        let (mut rows, mut tables) = (Vec::new(), Vec::new());
        for &pes in &self.pes {
            let is_crowded = pes > cores;
            let run = |side, operation: &str| {
                let mut command = match theirs.iter().find(|(other, _)| *other == side) {
                    None => peers::run_of(&pelago, pes, is_crowded, &["app:perf", "coll", "--copies"]),
                    Some((_, program)) => peers::launcher(side, pes, is_crowded, program)?,
                };
                let printed = Printed::of(command.args(self.words(operation, is_crowded)))?;
                let is_other = printed.iter().any(|printed| printed.operation != operation);
                ensure!(!is_other, "{}: another operation: {printed:?}", side.name());
                Ok(printed)
            };
            let figure_ns = |printed: &Printed| printed.figure_ns(pes, cores);
            let job = format!("{pes} PEs, ");
            let collected = rounds::measure(&job, self.rounds, &sides, &self.operations, figure_ns, run)?;
            let of_these = collected.rows(pes);
            let one_way_ns = (!is_crowded).then(|| self.one_way_ns(&pelago, pes)).transpose()?;
            tables.push(rounds::table(&heading(pes, cores, self.root, one_way_ns), &of_these));
            rows.extend(of_these);
        }
        let gates = gates(&rows, cores);
        tables.push(gates_table(&gates));
        rounds::finish("Collective operations", &rows, &gates, &tables, &self.files)
    }

    /// The arguments of all programs.
    fn words(&self, operation: &str, is_crowded: bool) -> Vec<String> {
        let sizes: Vec<_> = self.sizes.iter().map(usize::to_string).collect();
        let root = if self.root == Root::Fixed { "fixed" } else { "turn" };
        let words = ["--operations", operation, "--sizes", &sizes.join(","), "--root", root];
        words.iter().chain(&peers::effort(is_crowded)).map(|&word| word.to_owned()).collect()
    }

    /// Half a round trip of a flag of 8 bytes between PEs 0 and 1, the median over all rounds.
    fn one_way_ns(&self, pelago: &Path, pes: usize) -> Result<f64> {
        let rounds = self.rounds.to_string();
        let words = ["app:perf", "pairs", "--count", &rounds, "barrier-one-way"];
        let text = output_of(&mut peers::run_of(pelago, pes, false, &words))?;
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let pairs: Vec<_> = job::parse::<Pair>(&lines)?.iter().map(|pair| pair.yardstick_ns).collect();
        Ok(Summary::of(&pairs).median)
    }
}

/// The description of the measurement.
fn heading(pes: usize, cores: usize, root: Root, one_way_ns: Option<f64>) -> String {
    let (placement, block) = placement(pes, cores);
    let root = match root {
        Root::Turn => "Every PE is the root in turn",
        Root::Fixed => "PE 0 is always the root, and may run ahead",
    };
    let one_way = one_way_ns.map(|ns| format!(" One way of 8 bytes: {} us.", figure(ns / 1e3)));
    format!(
        "{placement}. {root}.\n\
         Microseconds an operation: the {block} of many short blocks, the median over the rounds;\n\
         in brackets the median of the ratios (ours to theirs). Size: bytes of a block. Copies: what an\n\
         operation must write at a PE, copied from where it lies, by all PEs at once.{}\n",
        one_way.unwrap_or_default()
    )
}

/// The maximum size of a small operation, in bytes.
const SMALL_BYTES: usize = 8;
/// The minimum size of a large operation, in bytes.
const LARGE_BYTES: usize = 64 << 10;
/// The operations that have gates.
const GATED: [&str; 4] = ["barrier", "broadcast", "all-to-all", "all-reduce"];

/// The gates of the rows. If each PE has a core: small operations compared with each library, large ones with
/// the best library. If PEs share cores: both compared with the best library.
pub fn gates(rows: &[Row], cores: usize) -> Vec<Gate> {
    let mut gates = Vec::new();
    for row in rows.iter().filter(|row| GATED.contains(&row.operation.as_str())) {
        let (is_small, is_large) = (row.bytes <= SMALL_BYTES, row.bytes >= LARGE_BYTES);
        let mut gate = |than: &str, ratio: Option<f64>, bound| {
            let name = format!("{} PEs, {}, {than}", row.pes, row.name());
            gates.extend(ratio.map(|ratio| Gate { name, ratio, bound }));
        };
        if row.pes > cores && (is_small || is_large) {
            gate("best", row.ratio_to_best, 1.1);
        } else if row.pes <= cores && is_large {
            gate("best", row.ratio_to_best, 0.9);
        } else if row.pes <= cores && is_small {
            for (side, figures) in row.sides.iter().filter(|(side, _)| side.is_other()) {
                gate(side.name(), figures.ratio, if *side == Side::OpenMpi { 0.7 } else { 0.5 });
            }
        }
    }
    gates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::record::tests::record;
    use crate::base::rounds::tests::{args, examples};
    use crate::base::suite::tests::{EFFORT, count, reported};
    use crate::base::topic::tests::{assert_nothing_shown, assert_row, shown};

    #[test]
    fn operations_are_rows_and_sizes_columns() {
        let mut records = Vec::new();
        for (pes, ns) in [(2, 100.0), (4, 2000.0)] {
            let mut add = |operation, bytes: usize, ns| {
                let label = Label::new(pes, Bench::Collective, operation, bytes);
                records.push(record(label, Unit::Nanoseconds, ns));
            };
            add(Operation::Barrier, 0, ns);
            for bytes in [8, 65_536] {
                add(Operation::Broadcast, bytes, ns * bytes as f64);
                add(Operation::ExclusiveScan, bytes, ns * 2.0);
            }
        }
        let (tables, page) = shown(&TOPIC, &records, 4);
        assert_row(&tables, &["block", "8 B", "64 KiB"]);
        assert_row(&tables, &["broadcast", "800", "6553600"]);
        assert_row(&tables, &["exclusive_scan", "4000", "4000"]);
        assert!(tables.contains("2 PEs, ns") && tables.contains("barrier: 2000"), "{tables}");
        assert!(page.contains("4 PEs moving data") && page.contains("broadcast, 8 B: 16000"));
        assert_nothing_shown(&TOPIC);
    }

    fn plan(root: Root) -> Plan {
        let operations = OPERATIONS.map(|(operation, _)| operation).to_vec();
        Plan { operations, bytes: vec![8, 4096], root, has_copies: true, effort: EFFORT }
    }

    #[test]
    fn every_operation_and_size_is_checked_and_reported() {
        for (pes, root, bench) in
            [(2, Root::Turn, Bench::Collective), (3, Root::Fixed, Bench::CollectiveFixedRoot)]
        {
            let (records, progress) = reported(pes, |world, sink| all(world, &plan(root), sink));
            assert_eq!((records.len(), progress), (21 + 2 * MOVING.len(), (21, 21)));
            let copies = |label: &Label| label.bench == Bench::CollectiveCopies;
            for (operation, _) in MOVING {
                let of_this = count(&records, |label| copies(label) && label.operation == operation);
                assert_eq!(of_this, 2, "copies of {operation:?}");
            }
            for (operation, name) in OPERATIONS {
                let of_this = count(&records, |label| (label.bench, label.operation) == (bench, operation));
                assert_eq!(of_this, if operation == Operation::Barrier { 1 } else { 2 }, "{name}");
            }
        }
    }

    #[test]
    fn a_wrong_result_is_found() {
        let right_by_chance = spmd(3, |world| {
            let collectives = Collectives::new(world, 4, Root::Turn).unwrap();
            // A sum in place of the result of every operation.
            let found = OPERATIONS.map(|(operation, _)| {
                let sum = |root| collectives.operate(Operation::AllReduce, 4, root);
                collectives.check((Operation::AllReduce, 4), 0, sum).unwrap();
                let mut block = [0.0; 4];
                collectives.target.local().read(0, &mut block);
                (0..4).any(|index| block[index] != expected(operation, (world.my_pe(), 3), 1, 0, index))
            });
            let right = OPERATIONS.iter().zip(found).filter(|(_, found)| !found);
            right.map(|((_, name), _)| *name).collect::<Vec<_>>()
        });
        // The sum of block 0 is also the result of reduce-scatter at PE 0, of reduce at the root (PE 1), and
        // of the inclusive scan at the last PE.
        let expected = [
            vec!["all-reduce", "reduce-scatter"],
            vec!["reduce", "all-reduce"],
            vec!["all-reduce", "inclusive-scan"],
        ];
        assert_eq!(right_by_chance.unwrap(), expected);
    }

    #[test]
    fn names_are_those_of_the_records() {
        for (known, name) in OPERATIONS {
            assert_eq!(operation(name), Ok(known));
            assert_eq!(serde_json::to_string(&known).unwrap(), format!("{name:?}"));
        }
        assert!(operation("put").unwrap_err().contains("barrier, broadcast"));
    }

    #[test]
    fn gates_follow_size_and_crowding() {
        let gates = gates(&examples(), 2);
        let found: Vec<_> =
            gates.iter().map(|gate| (gate.name.as_str(), gate.bound, gate.is_kept())).collect();
        assert_eq!(
            found,
            [
                ("2 PEs, barrier, Open MPI", 0.7, true),
                ("2 PEs, barrier, OSHMEM", 0.5, true),
                ("2 PEs, all-reduce 8 B, Open MPI", 0.7, true),
                ("2 PEs, all-reduce 8 B, OSHMEM", 0.5, true),
                ("2 PEs, all-reduce 64 KiB, best", 0.9, true),
                ("4 PEs, barrier, best", 1.1, true),
                ("4 PEs, all-reduce 8 B, best", 1.1, true),
                ("4 PEs, all-reduce 64 KiB, best", 1.1, true),
            ]
        );
        assert!(!Gate { name: String::new(), ratio: 0.91, bound: 0.9 }.is_kept());
    }

    #[test]
    fn arguments_name_everything() {
        let compare: Compare = args("coll --sizes 8,4096 --root fixed");
        let words =
            "--operations reduce --sizes 8,4096 --root fixed --block-us 200 --blocks 101 --budget-ms 30";
        assert_eq!(compare.words("reduce", false).join(" "), words);
    }

    #[test]
    fn headings_tell_how_and_what() {
        let crowded = heading(4, 2, Root::Fixed, None);
        assert!(crowded.contains("not bound") && crowded.contains("middle") && crowded.contains("run ahead"));
        let bound = heading(2, 2, Root::Turn, Some(56.0));
        assert!(bound.contains("bound to cores") && bound.contains("shortest") && bound.contains("0.056 us"));
    }
}
