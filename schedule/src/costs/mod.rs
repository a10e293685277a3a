//! The costs of the algorithms, counted in schedules that are proved: the figures that their files name.

mod all_gather;
mod all_to_all;
mod barrier;
mod broadcast;
mod combine;
mod gather;
mod scatter;

use crate::check::{CheckOptions, Report, check};
use crate::schedule::Rank;
use crate::shape::{Operation, Shape};
use crate::table::{Algorithm, find};

/// The algorithm with this name.
pub fn algorithm(operation: Operation, name: &str) -> &'static Algorithm {
    find(operation, name).unwrap_or_else(|| panic!("there is no {operation} by {name}"))
}

/// Proves an algorithm with few and with unlimited signals in flight, with mailboxes of the usual size and
/// with tiny ones. Returns the report for mailboxes of the usual size.
pub fn prove(algorithm: &Algorithm, shape: impl Fn(Rank) -> Shape) -> Report {
    let first = shape(0);
    if let Some(why) = (algorithm.restriction)(&first) {
        panic!("{} by {} refuses {first:?}: {why}", algorithm.operation, algorithm.name);
    }
    let run = |mailbox_bytes, credits| {
        let report = check(algorithm, &shape, &CheckOptions { mailbox_bytes, credits });
        report.unwrap_or_else(|defect| {
            panic!("{} by {} of {first:?}: {defect}", algorithm.operation, algorithm.name)
        })
    };
    let usual = CheckOptions::default().mailbox_bytes;
    run(16, None);
    run(16, Some(4));
    run(usual, None);
    run(usual, Some(4))
}

/// Proves the algorithm with this name for blocks of `count` elements of 8 bytes.
pub fn prove_plain(operation: Operation, name: &str, (n, root): (usize, Rank), count: usize) -> Report {
    prove(algorithm(operation, name), |rank| Shape { root, ..Shape::new(operation, rank, n, count, 8) })
}

/// The number of rounds in which the number of ranks that take part can double until it is `n`.
pub fn log2_ceil(n: usize) -> usize {
    n.next_power_of_two().ilog2() as usize
}

/// Sizes of teams, small and larger: powers of two, other even numbers, and odd numbers.
pub const TEAMS: [usize; 11] = [1, 2, 3, 4, 6, 7, 8, 13, 32, 45, 257];
