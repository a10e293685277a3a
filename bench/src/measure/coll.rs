//! Collective operations of all PEs, again and again. Invariant: every decision is taken from figures that
//! all PEs have, so that all decide alike. `cargo xtask compare coll` runs this beside other libraries, whose
//! programs measure in the same way and take the same arguments.
//!
//! A block is a number of rounds, a round as many operations as there are PEs, one after the other. All PEs
//! meet in a barrier, then each takes its own time; the time of the block is that of the slowest PE. In a
//! round each PE is the root once, so that none runs ahead of the others.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use pelago::prelude::*;

use super::effort::Effort;
use super::pairs::transfer_bytes;
use super::record::{Bench, Label, Operation, Record, Unit};
use super::suite::{Progress, Sink};

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
/// Bytes of a block, as far as the heap has room.
const SIZES: [usize; 9] = [8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// The same, to see that everything works.
const QUICK_BYTES_MAX: usize = 4 << 10;
/// At least so many blocks of a long operation.
const BLOCKS_MIN: usize = 5;

/// What to measure, and how long.
#[derive(Clone, Debug, Args)]
pub(super) struct Options {
    /// Operations; all unless given
    #[arg(long, value_delimiter = ',', value_parser = operation)]
    operations: Vec<Operation>,
    /// Bytes of a block, multiples of 8: what a PE contributes, or sends to each one
    #[arg(long, value_delimiter = ',', value_parser = transfer_bytes)]
    sizes: Vec<usize>,
    /// Who is the root of operation after operation
    #[arg(long, value_enum, default_value_t = Root::Turn)]
    root: Root,
    /// After an operation that only moves data, measure plain copies of the same blocks as well
    #[arg(long)]
    copies: bool,
    /// About the time of a block, in microseconds
    #[arg(long)]
    block_us: Option<u64>,
    /// Most blocks of a measurement
    #[arg(long)]
    blocks: Option<usize>,
    /// Time for the blocks of a measurement, in milliseconds
    #[arg(long)]
    budget_ms: Option<u64>,
}

/// Who is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Root {
    /// Every PE in turn, so that none runs ahead of the others: a latency
    Turn,
    /// PE 0, which may run ahead: a rate
    Fixed,
}

/// Operations, sizes, effort.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    operations: Vec<Operation>,
    bytes: Vec<usize>,
    root: Root,
    has_copies: bool,
    effort: Effort,
}

impl Plan {
    /// What the options ask for; small blocks only if it is to be quick.
    pub(super) fn of(world: &World, options: &Options, effort: Effort, is_quick: bool) -> Plan {
        // Source and target, each with a block for every PE, take half of the heap at most.
        let has_room = |bytes: &usize| bytes * world.n_pes() <= world.heap_largest_free_bytes() / 4;
        let all_operations = || OPERATIONS.iter().map(|(operation, _)| *operation).collect();
        let bytes_max = if is_quick { QUICK_BYTES_MAX } else { usize::MAX };
        let all_sizes = || SIZES.into_iter().filter(has_room).filter(|bytes| *bytes <= bytes_max).collect();
        Plan {
            operations: or_all(&options.operations, all_operations),
            bytes: or_all(&options.sizes, all_sizes),
            root: options.root,
            has_copies: options.copies,
            effort: Effort {
                block: options.block_us.map_or(effort.block, Duration::from_micros),
                blocks_min: effort.blocks_min.min(BLOCKS_MIN),
                blocks_max: options.blocks.unwrap_or(effort.blocks_max).max(BLOCKS_MIN),
                budget: options.budget_ms.map_or(effort.budget, Duration::from_millis),
            },
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

/// Collective: a record for each operation and size, on PE 0.
///
/// # Errors
/// Those of the sink, a result that is wrong, and if the symmetric heap has no room for the blocks.
pub(super) fn all(world: &World, plan: &Plan, sink: Sink<'_>) -> Result<()> {
    let bytes_max = plan.bytes.iter().copied().max().unwrap_or(0);
    let collectives = Collectives::new(world, bytes_max / size_of::<f64>(), plan.root)?;
    let trials: Vec<_> =
        plan.operations.iter().copied().flat_map(|operation| plan.trials(operation)).collect();
    // A sink that fails on PE 0 must not leave the others behind.
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

/// Memory starts at a page, as that of the other libraries' programs does.
const PAGE_BYTES: usize = 4096;

impl<'w> Collectives<'w> {
    /// Collective: memory for blocks of up to so many words.
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

    /// Nanoseconds an operation that `act` does with a root, block by block; the same at all PEs. The result
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

    /// The time that the slowest PE takes for so many rounds.
    fn block(&self, rounds: u64, act: impl Fn(usize) -> pelago::Result<()>) -> pelago::Result<Duration> {
        self.world.barrier();
        let start = Instant::now();
        for _ in 0..rounds {
            for pe in 0..self.team.n_pes() {
                act(if self.root == Root::Turn { pe } else { 0 })?;
            }
        }
        self.slowest(start.elapsed())
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

    /// Whether an operation only moves data, which every PE can reach.
    fn can_copy(&self, operation: Operation) -> bool {
        use Operation::*;
        let is_mapped = |pe| self.source.ptr(pe).is_some();
        matches!(operation, Broadcast | Scatter | Gather | AllGather | AllToAll)
            && (0..self.team.n_pes()).all(is_mapped)
    }

    /// Copies to this PE's target what the operation must write there, by the C library's memcpy, with the
    /// root's part of the work where only the root has a target.
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
        // SAFETY: both blocks lie in their arrays, as just checked; nobody writes the sources meanwhile, and
        // only this PE its target.
        unsafe { libc::memcpy(target.cast(), source.cast(), words * size_of::<f64>()) };
    }

    /// Does the operation once and looks at every element of the result.
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
        // Nobody writes again before all have looked.
        self.world.barrier();
        Ok(())
    }
}

/// What a target holds before.
const UNTOUCHED: f64 = -1.0;

/// Element `index` of the block that one PE has for another. Sums of these are exact.
fn value(from: usize, to: usize, index: usize) -> f64 {
    (from * 65536 + to * 1024 + index % 1021) as f64
}

/// What an element of a block of a PE's target must be.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::suite::tests::{EFFORT, count, reported};

    const MOVING: [Operation; 5] = [
        Operation::Broadcast,
        Operation::Scatter,
        Operation::Gather,
        Operation::AllGather,
        Operation::AllToAll,
    ];

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
            for operation in MOVING {
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
            // A sum in the place of every operation's own result.
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
        // The sum of block 0 is also what PE 0 gets from reduce-scatter, the root, PE 1, from reduce, and the
        // last PE from the inclusive scan.
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
}
