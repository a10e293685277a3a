//! Runs the schedules of all ranks of a team without processes, and proves their results, or reports the
//! first defect.
//!
//! Contents are symbols: every element of every source is a symbol, and a reduction makes an expression of
//! two. At the end every target must hold what the documentation of its
//! [`Operation`](crate::shape::Operation) promises. Accesses are ordered only by the guarantees of
//! [`schedule`](crate::schedule); two that are not ordered race, whatever order they were run in. As no rank
//! chooses what it waits for, a deadlock does not depend on the order of the run either: one run represents
//! all.
//!
//! Invariant: no defect means that the result is right in every order of events that the contract allows.

pub mod cases;
mod clock;
mod defect;
mod machine;
mod memory;
mod options;
mod outcome;
mod pairing;
mod places;
mod terms;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod walk;

pub use defect::{Defect, Fault};
pub use options::CheckOptions;

use crate::algorithm::{Algorithm, Fold};
use crate::schedule::{Rank, Schedule};
use crate::shape::Shape;
use machine::Machine;

/// The totals and maxima of correct schedules, over all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Ranks of the team.
    pub ranks: usize,
    /// Puts, gets, and signals without data.
    pub messages: usize,
    /// The maximum of this number over the ranks.
    pub messages_max: usize,
    /// Bytes of the puts and gets.
    pub bytes: usize,
    /// The maximum of this number over the ranks.
    pub bytes_max: usize,
    /// The most waits of one rank.
    pub waits_max: usize,
    /// The longest chain of messages of which each needs the one before. A get is one message.
    pub rounds: usize,
    /// Bytes that a rank copies in its own memory, the maximum over the ranks.
    pub copied_bytes_max: usize,
    /// Bytes that a rank combines, the maximum over the ranks.
    pub reduced_bytes_max: usize,
    /// The largest scratch memory of a rank, in bytes.
    pub scratch_bytes_max: usize,
    /// The most slots that are signalled at one rank.
    pub slots_max: usize,
    /// The slots that are signalled, over all ranks.
    pub slots_total: usize,
    /// The highest number of a slot that is signalled, plus one.
    pub slots_end: usize,
    /// The most ranks that signal one rank.
    pub in_neighbours_max: usize,
    /// Ranks that signal a rank, over all ranks.
    pub in_neighbours_total: usize,
}

/// Checks an algorithm: `shapes` gives the shape of each rank.
///
/// # Errors
/// The first defect that is found.
pub fn check(
    algorithm: &Algorithm,
    shapes: &dyn Fn(Rank) -> Shape,
    options: &CheckOptions,
) -> Result<Report, Defect> {
    let n = shapes(0).n;
    let shapes: Vec<Shape> = (0..n).map(shapes).collect();
    let schedules: Vec<Schedule> =
        shapes.iter().map(|shape| algorithm.schedule(shape, options.mailbox_bytes)).collect();
    check_all(&schedules, algorithm.fold, &shapes, options)
}

/// Checks schedules that combine elements in the order `fold`.
///
/// # Errors
/// The first defect that is found.
pub fn check_schedules(
    schedules: &[Schedule],
    fold: Fold,
    shapes: &dyn Fn(Rank) -> Shape,
    options: &CheckOptions,
) -> Result<Report, Defect> {
    let shapes: Vec<Shape> = (0..schedules.len()).map(shapes).collect();
    check_all(schedules, fold, &shapes, options)
}

fn check_all(
    schedules: &[Schedule],
    fold: Fold,
    shapes: &[Shape],
    options: &CheckOptions,
) -> Result<Report, Defect> {
    check_shapes(shapes)?;
    let pairs = pairing::pair(schedules)?;
    let mut report = count(schedules, &pairs);
    let mut machine = Machine::new(schedules, shapes, &pairs, options);
    report.rounds = machine.run()?;
    machine.check_ends()?;
    outcome::check(&machine, shapes, fold)?;
    Ok(report)
}

/// Checks the data on which all ranks must agree.
fn check_shapes(shapes: &[Shape]) -> Result<(), Defect> {
    let first = &shapes[0];
    let common = |shape: &Shape| {
        let Shape { operation, n, root, count, element_bytes, in_place, tuning, .. } = *shape;
        (operation, n, root, count, element_bytes, in_place, tuning)
    };
    for (rank, shape) in shapes.iter().enumerate() {
        let agrees = common(shape) == common(first) && shape.nodes == first.nodes;
        if !agrees || shape.rank != rank || shape.n != shapes.len() {
            let what = format!("its shape is not that of rank {rank} of {}: {shape:?}", shapes.len());
            return Err(Defect::new(Fault::Shapes, rank, None, what));
        }
    }
    Ok(())
}

fn count(schedules: &[Schedule], pairs: &pairing::Pairs) -> Report {
    let mut report = Report { ranks: schedules.len(), ..Report::default() };
    for (schedule, slots) in schedules.iter().zip(pairs) {
        let counts = schedule.counts();
        report.messages += counts.messages;
        report.messages_max = report.messages_max.max(counts.messages);
        report.bytes += counts.bytes;
        report.bytes_max = report.bytes_max.max(counts.bytes);
        report.waits_max = report.waits_max.max(counts.waits);
        report.scratch_bytes_max = report.scratch_bytes_max.max(schedule.scratch_bytes);
        let (copied, reduced) = machine::local_bytes(schedule);
        report.copied_bytes_max = report.copied_bytes_max.max(copied);
        report.reduced_bytes_max = report.reduced_bytes_max.max(reduced);
        let mut senders: Vec<u32> =
            slots.iter().map(|pair| pair.from).filter(|&from| from != u32::MAX).collect();
        report.slots_max = report.slots_max.max(senders.len());
        report.slots_total += senders.len();
        report.slots_end = report.slots_end.max(slots.len());
        senders.sort_unstable();
        senders.dedup();
        report.in_neighbours_max = report.in_neighbours_max.max(senders.len());
        report.in_neighbours_total += senders.len();
    }
    report
}
