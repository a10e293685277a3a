//! The contents that the targets must have at the end, by the documentation of the operations.
//!
//! Invariant: every element of every target is checked; an element that the operation does not name must not
//! have been written.

use super::clock::begin;
use super::defect::{Defect, Fault};
use super::machine::{Machine, term};
use super::memory::UNSET;
use super::terms::{Run, Term, WordMap};
use crate::algorithm::Fold;
use crate::schedule::Rank;
use crate::shape::{Blocks, Operation, Shape};

/// The expected contents of an element of a target.
#[derive(Clone, Copy)]
enum Expected {
    /// Unchanged.
    Untouched,
    /// An element of a source.
    Leaf(Rank, usize),
    /// A combination of the sources of a run of ranks.
    Fold(Run),
}

/// Checks all targets after a run.
pub(super) fn check(machine: &Machine<'_>, shapes: &[Shape], fold: Fold) -> Result<(), Defect> {
    check_barrier(machine, &shapes[0])?;
    let mut seen = WordMap::default();
    let mut expected = Vec::new();
    for (rank, shape) in shapes.iter().enumerate() {
        expected.clear();
        expected.resize(shape.target_bytes() / machine.units.element, Expected::Untouched);
        expect(shapes, rank, &mut expected)?;
        for (element, &expected) in expected.iter().enumerate() {
            check_element(machine, fold, (rank, element), expected, &mut seen)?;
        }
    }
    if shapes[0].operation == Operation::AllReduce { check_equal(machine, shapes) } else { Ok(()) }
}

fn check_barrier(machine: &Machine<'_>, shape: &Shape) -> Result<(), Defect> {
    if shape.operation != Operation::Barrier {
        return Ok(());
    }
    for rank in 0..shape.n {
        if let Some(other) = (0..shape.n).find(|&other| !machine.clock(rank).knows(other, begin(0))) {
            let what = format!("leaves the barrier although rank {other} may not have come");
            return Err(Defect::new(Fault::Barrier, rank, None, what));
        }
    }
    Ok(())
}

/// Fills in the expected contents of the target of a rank.
fn expect(shapes: &[Shape], rank: Rank, target: &mut [Expected]) -> Result<(), Defect> {
    let shape = &shapes[rank];
    let (n, count, root) = (shape.n, shape.count, shape.root);
    let all = |element| Expected::Fold(Run::new(0, n - 1, element));
    match shape.operation {
        Operation::Barrier => {}
        Operation::Broadcast => fill(target, |k| Expected::Leaf(root, k)),
        Operation::Scatter => {
            let start = counts_of(shape)[..rank].iter().sum::<usize>();
            fill(target, |k| Expected::Leaf(root, start + k));
        }
        Operation::Gather | Operation::AllGather => expect_gathered(shape, target),
        Operation::AllToAll => return expect_exchanged(shapes, rank, target),
        Operation::Reduce | Operation::AllReduce => fill(target, all),
        Operation::ReduceScatter => fill(target, |k| all(rank * count + k)),
        Operation::InclusiveScan => {
            fill(target, |element| Expected::Fold(Run::new(0, rank, element)));
        }
        Operation::ExclusiveScan if rank == 0 => {}
        Operation::ExclusiveScan => {
            fill(target, |element| Expected::Fold(Run::new(0, rank - 1, element)));
        }
    }
    Ok(())
}

fn fill(target: &mut [Expected], expected: impl Fn(usize) -> Expected) {
    for (element, place) in target.iter_mut().enumerate() {
        *place = expected(element);
    }
}

/// Elements of the block of each rank.
fn counts_of(shape: &Shape) -> Vec<usize> {
    match &shape.blocks {
        Blocks::Counts(counts) => counts.clone(),
        _ => vec![shape.count; shape.n],
    }
}

fn expect_gathered(shape: &Shape, target: &mut [Expected]) {
    let counts = counts_of(shape);
    let sources = counts.iter().enumerate().flat_map(|(rank, &count)| (0..count).map(move |k| (rank, k)));
    for (place, (rank, element)) in target.iter_mut().zip(sources) {
        *place = Expected::Leaf(rank, element);
    }
}

fn expect_exchanged(shapes: &[Shape], rank: Rank, target: &mut [Expected]) -> Result<(), Defect> {
    let shape = &shapes[rank];
    for other in 0..shape.n {
        let block = |peer: usize| (peer * shape.count, shape.count);
        let (source, source_stride, into, into_stride) = match (&shape.blocks, &shapes[other].blocks) {
            (Blocks::Exchanged { target, .. }, Blocks::Exchanged { source, .. }) => {
                (source[rank], 1, target[other], 1)
            }
            (Blocks::Strided { source, target }, _) => (block(rank), *source, block(other), *target),
            _ => (block(rank), 1, block(other), 1),
        };
        if source.1 != into.1 {
            let what = format!("expects {} elements of rank {other}, which gives {}", into.1, source.1);
            return Err(Defect::new(Fault::Shapes, rank, None, what));
        }
        for k in 0..into.1 {
            target[(into.0 + k) * into_stride] = Expected::Leaf(other, (source.0 + k) * source_stride);
        }
    }
    Ok(())
}

fn check_element(
    machine: &Machine<'_>,
    fold: Fold,
    (rank, element): (Rank, usize),
    expected: Expected,
    seen: &mut WordMap<Term, Run>,
) -> Result<(), Defect> {
    let pieces = machine.units.pieces();
    let target = machine.target(rank);
    let defect = |fault, text: String| {
        Err(Defect::new(fault, rank, None, format!("element {element} of the target {text}")))
    };
    if let Expected::Untouched = expected {
        return match target.is_untouched(element * pieces..(element + 1) * pieces) {
            true => Ok(()),
            false => defect(Fault::Touched, "is written, but must stay as it is".to_owned()),
        };
    }
    let values = &target.values[element * pieces..(element + 1) * pieces];
    let Some(term) = term(values) else {
        let text =
            if values.contains(&UNSET) { "has not been written" } else { "is put together of several" };
        return defect(Fault::Result, text.to_owned());
    };
    let terms = &machine.terms;
    let run = match expected {
        Expected::Fold(run) => run,
        Expected::Leaf(rank, element) => Run::new(rank, rank, element),
        Expected::Untouched => return Ok(()),
    };
    let in_order = terms.run(term) == Some(run);
    let holds = match fold {
        Fold::Ranks => in_order && terms.is_comb(term),
        Fold::Any => in_order || seen.get(&term) == Some(&run),
        Fold::Tree | Fold::None => in_order,
    };
    if holds {
        return Ok(());
    }
    let operands = terms.operands(term, 2 * machine.ranks() + 2);
    let is_right = is_all_of(run, &operands);
    if is_right && fold == Fold::Any {
        seen.insert(term, run);
        return Ok(());
    }
    let text = format!("is of {}, which is not {run} {}", say(&operands), say_order(fold));
    defect(if is_right { Fault::FoldOrder } else { Fault::Result }, text)
}

/// Whether these are the elements of all ranks of the run, each once, in any order.
fn is_all_of(run: Run, operands: &[(Rank, usize)]) -> bool {
    let mut sorted = operands.to_vec();
    sorted.sort_unstable();
    sorted.into_iter().eq(run.operands())
}

fn say_order(fold: Fold) -> &'static str {
    match fold {
        Fold::None => "as it is",
        Fold::Ranks => "combined as ((x0 op x1) op x2) op ...",
        Fold::Tree => "combined in the order of ranks",
        Fold::Any => "each once",
    }
}

/// The text of operands for a message, limited to a few.
pub(super) fn say(operands: &[(Rank, usize)]) -> String {
    const SHOWN: usize = 12;
    let mut text: Vec<String> =
        operands.iter().take(SHOWN).map(|(rank, element)| format!("{rank}[{element}]")).collect();
    if operands.len() > SHOWN {
        text.push("...".to_owned());
    }
    text.join(" ")
}

fn check_equal(machine: &Machine<'_>, shapes: &[Shape]) -> Result<(), Defect> {
    let first = &machine.target(0).values;
    for rank in 1..shapes.len() {
        let values = &machine.target(rank).values;
        if let Some(unit) = (0..first.len()).find(|&unit| first[unit] != values[unit]) {
            let element = unit / machine.units.pieces();
            let what = format!("element {element} of the target is combined in another way than at rank 0");
            return Err(Defect::new(Fault::Unequal, rank, None, what));
        }
    }
    Ok(())
}
