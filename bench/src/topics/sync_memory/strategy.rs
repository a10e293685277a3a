//! The strategies for the reuse of the synchronisation memory of collectives. Invariant: the algorithms are
//! those that the runtime chooses for a small block under the strategy, if all collectives are scheduled.
//! Source of strategies and bounds: Welch and Venkata, "On Synchronisation and Memory Reuse in OpenSHMEM".

use pelago::coll::shape::Operation;
use pelago::coll::table::{Algorithm, find};

/// The operations that are counted.
pub const OPERATIONS: [Operation; 3] = [Operation::Barrier, Operation::Broadcast, Operation::AllReduce];

/// The event that frees a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// An additional synchronisation of all members after each operation.
    Additional,
    /// The next barrier.
    Barrier,
    /// A signal of the other PE of a pair.
    Pairs,
}

/// A strategy, with its costs from the paper.
pub struct Strategy {
    /// Its name in the setting `PELAGO_SYNC_MEMORY`.
    pub name: &'static str,
    /// The event that frees a slot.
    pub reuse: Reuse,
    /// The algorithms of [`OPERATIONS`].
    algorithms: [&'static str; 3],
    /// The paper's order of messages.
    pub communication: &'static str,
    /// The paper's order of memory.
    pub memory: &'static str,
    /// The paper's order as a number of words of all PEs, for the parameters and (number of PEs, its rounded
    /// log2).
    pub bound: fn(Parameters, [f64; 2]) -> f64,
}

/// All strategies, in the order of the paper.
pub const STRATEGIES: [Strategy; 5] = [
    Strategy {
        name: "additional",
        reuse: Reuse::Additional,
        algorithms: ["dissemination", "binomial", "recursive_doubling"],
        communication: "3 log n",
        memory: "n log n",
        bound: |_, [n, log]| n * log,
    },
    Strategy {
        name: "barrier",
        reuse: Reuse::Barrier,
        algorithms: ["dissemination", "binomial", "recursive_doubling"],
        communication: "2 log n",
        memory: "c n log n",
        bound: |parameters, [n, log]| parameters.collectives as f64 * n * log,
    },
    Strategy {
        name: "pairwise-doubling",
        reuse: Reuse::Pairs,
        algorithms: ["hypercube", "doubling", "hypercube"],
        communication: "log n",
        memory: "n log n",
        bound: |_, [n, log]| n * log,
    },
    Strategy {
        name: "pairwise-structure",
        reuse: Reuse::Pairs,
        algorithms: ["fixed_tree", "balanced_tree", "fixed_tree"],
        communication: "log n",
        memory: "n^2",
        bound: |_, [n, _]| n * n,
    },
    Strategy {
        name: "pairwise-edges",
        reuse: Reuse::Pairs,
        algorithms: ["fixed_tree", "fixed_tree", "fixed_tree"],
        communication: "2 log n",
        memory: "3 a PE",
        bound: |_, [n, _]| 3.0 * n,
    },
];

impl Strategy {
    /// The operations with their algorithms.
    pub fn algorithms(&self) -> impl Iterator<Item = &'static Algorithm> {
        let found = |(operation, name)| find(operation, name).expect("the table has this algorithm");
        OPERATIONS.into_iter().zip(self.algorithms).map(found)
    }
}

/// The parameters of the cost of arrays.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    /// The number of arrays of a PE, a.
    pub arrays: usize,
    /// The number of collectives between two barriers, c.
    pub collectives: usize,
}

impl Parameters {
    /// The number of additional synchronisations between two barriers because the arrays run out: one array
    /// is reserved for the previous barrier, each collective and the barrier use one, and a synchronisation
    /// frees all.
    pub fn releases(self) -> usize {
        (self.collectives + 2).saturating_sub(self.arrays).div_ceil(self.arrays)
    }

    /// The number of arrays that are used if the next barrier frees them.
    pub fn arrays_to_barrier(self) -> usize {
        self.arrays.min(self.collectives + 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_run_out_when_barriers_are_rare() {
        let releases = |arrays, collectives| Parameters { arrays, collectives }.releases();
        assert_eq!([6, 7, 14, 15].map(|collectives| releases(8, collectives)), [0, 1, 1, 2]);
        assert_eq!(Parameters { arrays: 8, collectives: 3 }.arrays_to_barrier(), 5);
        assert_eq!(Parameters { arrays: 8, collectives: 30 }.arrays_to_barrier(), 8);
    }
}
