//! The updates, by each method. Invariant: by atomics and by messages every update is made exactly once; by
//! puts and gets an update is lost if another PE updates the same word at the same time.

use std::time::Duration;

use pelago::am::Handlers;
use pelago::prelude::*;
use pelago::{Local, Result};

use super::method::Method;
use super::problem::Problem;
use crate::rate::timed;

/// The maximum number of updates that a PE may look ahead and store, by the rules of HPC Challenge.
pub(super) const LOOK_AHEAD: usize = 1024;

/// Collective: makes all updates. Returns the time that it took, from the start of the first PE to the end of
/// the last. `progress` gets the number of updates that this PE has made.
pub(super) fn run(
    world: &World,
    table: &Symmetric<'_, u64>,
    (problem, method): (&Problem, Method),
    progress: &mut dyn FnMut(u64),
) -> Result<Duration> {
    let share = problem.stream.range(world.my_pe());
    match method {
        Method::PutGet => timed(world, || {
            problem.each_update(share, progress, |update| {
                let (pe, index) = problem.place(update);
                table.p(pe, index, table.g(pe, index)? ^ update)
            })
        }),
        Method::Atomics => timed(world, || {
            problem.each_update(share, progress, |update| {
                let (pe, index) = problem.place(update);
                table.xor(pe, index, update)
            })
        }),
        Method::Messages => by_messages(world, table, problem, progress),
    }
}

/// Updates of this PE's own part are made immediately. The others are collected for each owner, whose handler
/// makes all updates of a message.
///
/// This function and the handler change words by a load and a store, without an atomic operation. Neither
/// interrupts the other between load and store: only the owner runs them, and it executes messages on the
/// same thread that makes its updates, within calls that send; this run starts no progress thread. With a
/// progress thread updates could be lost, which the verification counts; it would still not be a data race,
/// as loads and stores of [`Local`] are atomic.
fn by_messages(
    world: &World,
    table: &Symmetric<'_, u64>,
    problem: &Problem,
    progress: &mut dyn FnMut(u64),
) -> Result<Duration> {
    let (me, own) = (world.my_pe(), table.local());
    let first = problem.table.range(me).start;
    let mut handlers = Handlers::new();
    let batch = handlers.add_batch("gups: update", |_, updates: &[u64]| {
        for &update in updates {
            xor(&own, problem.word(update).wrapping_sub(first) as usize, update);
        }
    });
    world.team().serve(handlers, |am| {
        let mut others = am.aggregator_of(batch, records(am.n_pes() - 1))?;
        timed(world, || {
            problem.each_update(problem.stream.range(me), progress, |update| {
                let (pe, index) = problem.place(update);
                if pe == me {
                    xor(&own, index, update);
                    return Ok(());
                }
                others.push(pe, update)
            })?;
            assert!(others.waiting() <= LOOK_AHEAD, "PE {me} stores {} updates", others.waiting());
            others.flush()?;
            am.barrier()
        })
    })?
}

/// The number of updates that may wait for each of `others` other PEs: in total at most [`LOOK_AHEAD`]. If
/// there are more PEs than that, each update is sent immediately.
fn records(others: usize) -> usize {
    let records = (LOOK_AHEAD / others.max(1)).max(1);
    assert!(records == 1 || records * others <= LOOK_AHEAD, "{records} updates for each of {others} PEs");
    records
}

#[inline(always)]
fn xor(part: &Local<'_, u64>, index: usize, update: u64) {
    part.set(index, part.get(index) ^ update);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_keeps_to_the_rules() {
        for others in [1, 2, 3, 7, 63, 1000, 1024, 1025, 4095] {
            // The last record for a PE is sent together with the records that wait.
            assert!((records(others) - 1) * others <= LOOK_AHEAD, "{others} other PEs");
        }
        assert_eq!([records(0), records(1), records(3), records(4095)], [1024, 1024, 341, 1]);
    }
}
