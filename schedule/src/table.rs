//! The table of algorithms: every schedule that there is, in the tables of the operations.
//!
//! The tests that walk this table check every algorithm for all sizes of teams. `docs/adding.md` describes
//! how to add an algorithm.

use crate::shape::Operation;
use crate::{
    all_gather, all_reduce, all_to_all, barrier, broadcast, gather, reduce, reduce_scatter, scan, scatter,
};

pub use crate::algorithm::{Algorithm, Fold, Graph};

/// All algorithms, in the order of the operations.
pub fn algorithms() -> impl Iterator<Item = &'static Algorithm> {
    [
        barrier::TABLE,
        broadcast::TABLE,
        scatter::TABLE,
        gather::TABLE,
        all_gather::TABLE,
        all_to_all::TABLE,
        reduce::TABLE,
        all_reduce::TABLE,
        reduce_scatter::TABLE,
        scan::TABLE,
    ]
    .into_iter()
    .flatten()
}

/// The algorithm with this name.
pub fn find(operation: Operation, name: &str) -> Option<&'static Algorithm> {
    algorithms().find(|algorithm| algorithm.operation == operation && algorithm.name == name)
}
