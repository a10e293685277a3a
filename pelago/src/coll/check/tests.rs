//! Every kind of defect in a small schedule, and the schedule beside it that is right.

use super::*;
use crate::coll::schedule::{Builder, Place, Remote};
use crate::coll::shape::Operation;

/// Checks the schedules that `write` writes for an operation on one element of 8 bytes a block.
fn run_with(
    operation: Operation,
    n: usize,
    fold: Fold,
    options: &CheckOptions,
    write: impl Fn(Rank, &mut Builder),
) -> Result<Report, Defect> {
    let schedules: Vec<Schedule> = (0..n)
        .map(|rank| {
            let mut builder = Builder::new(options.mailbox_bytes);
            write(rank, &mut builder);
            builder.finish()
        })
        .collect();
    check_schedules(&schedules, fold, &|rank| Shape::new(operation, rank, n, 1, 8), options)
}

fn run(operation: Operation, n: usize, write: impl Fn(Rank, &mut Builder)) -> Result<Report, Defect> {
    run_with(operation, n, Fold::Ranks, &CheckOptions::default(), write)
}

/// A defect of that kind at that rank.
fn fails(checked: Result<Report, Defect>, fault: Fault, rank: Rank) {
    let defect = checked.expect_err("a defect must be found");
    assert_eq!((defect.fault, defect.rank), (fault, rank), "{defect}");
}

#[track_caller]
fn passes(checked: Result<Report, Defect>) -> Report {
    checked.unwrap_or_else(|defect| panic!("{defect}"))
}

const HERE: Place = Place::source(0);
const RESULT: Place = Place::target(0);

/// A broadcast from rank 0 to rank 1.
fn pair_broadcast(rank: Rank, b: &mut Builder) {
    if rank == 0 {
        b.put_signal(1, HERE, Remote::Target(0), 8, 0);
        b.copy(HERE, RESULT, 8);
    } else {
        b.wait(0, 0);
    }
}

#[test]
fn a_broadcast_passes_and_is_counted() {
    let report = passes(run(Operation::Broadcast, 2, pair_broadcast));
    assert_eq!((report.messages, report.bytes, report.rounds), (1, 8, 1));
    assert_eq!((report.slots_max, report.slots_total, report.in_neighbours_total), (1, 1, 1));
}

#[test]
fn a_target_that_nobody_waits_for_is_found() {
    let checked = run(Operation::Broadcast, 2, |rank, b| {
        if rank == 0 {
            b.put(1, HERE, Remote::Target(0), 8);
            b.copy(HERE, RESULT, 8);
        }
    });
    fails(checked, Fault::OpenAtEnd, 0);
    passes(run(Operation::Broadcast, 2, |rank, b| {
        if rank == 0 {
            b.put(1, HERE, Remote::Target(0), 8);
            b.complete();
            b.signal(1, 0);
            b.copy(HERE, RESULT, 8);
        } else {
            b.wait(0, 0);
        }
    }));
    fails(
        run(Operation::Broadcast, 2, |rank, b| {
            if rank == 0 {
                b.put(1, HERE, Remote::Target(0), 8);
                b.signal(1, 0);
                b.copy(HERE, RESULT, 8);
            } else {
                b.wait(0, 0);
            }
        }),
        Fault::OpenAtEnd,
        0,
    );
}
