//! The memory that a run needs, compared with the memory that is available. This is checked before the run
//! allocates, so that a run with too large a table ends with a message and does not exhaust the machine.
//! Invariant: all PEs decide by the same numbers, those of the node that has least for each PE.

use pelago::prelude::*;
use pelago::{Result, node};
use pelago_report::Bytes;
use thiserror::Error;

use crate::collect::collect;

/// Symmetric heap for small arrays beside the large ones, including their alignment.
const SMALL_ARRAYS_BYTES: u64 = 64 << 10;
const MIB: u64 = 1 << 20;

/// The memory that a run needs on each PE.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    /// The name of the run.
    pub(crate) what: String,
    /// Bytes of the symmetric heap.
    pub(crate) heap_bytes: u64,
    /// Bytes outside of the symmetric heap.
    pub(crate) private_bytes: u64,
}

impl Need {
    /// Whether a node has this memory for its PEs.
    pub(crate) fn is_on_node(&self, supply: &Supply) -> bool {
        self.total_bytes(supply.node_pes) <= supply.node_bytes
    }

    fn total_bytes(&self, pes: usize) -> u64 {
        self.heap_bytes.saturating_add(self.private_bytes).saturating_mul(pes as u64)
    }
}

/// The available memory, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Supply {
    /// The largest free block in the symmetric heap of each PE.
    pub(crate) heap_free_bytes: u64,
    /// The memory available to the processes of the node that has least for each of its PEs; the maximum of
    /// the type if it is unknown.
    pub(crate) node_bytes: u64,
    /// The PEs of that node.
    pub(crate) node_pes: usize,
}

impl Supply {
    /// Collective: the supply on the node that has least for each of its PEs, and the least heap.
    pub(crate) fn find(world: &World) -> Result<Self> {
        let node_bytes = node::memory_available_bytes().map_or(u64::MAX, |bytes| bytes as u64);
        // The PEs of simulated nodes are threads of this machine.
        let node_pes = match world.is_simulated() {
            true => world.n_pes(),
            false => world.team().split_node()?.n_pes(),
        };
        let all = collect(world, &[world.heap_largest_free_bytes() as u64, node_bytes, node_pes as u64])?;
        let heap_free_bytes = all.iter().map(|words| words[0]).min().expect("a job has PEs");
        let least = all.iter().min_by_key(|words| words[1] / words[2]).expect("a job has PEs");
        Ok(Supply { heap_free_bytes, node_bytes: least[1], node_pes: least[2] as usize })
    }
}

/// The run does not fit.
#[derive(Debug, Error)]
#[error(
    "{what} needs {heap} of each PE's symmetric heap, of which {heap_free} are free, and {private} beside \
     it, times {pes} PEs of a node is {total}; the node has {node} available; {remedy}"
)]
pub(crate) struct TooLarge {
    what: String,
    pes: usize,
    heap: Bytes,
    private: Bytes,
    total: Bytes,
    node: Bytes,
    heap_free: Bytes,
    remedy: String,
}

/// Collective: whether the run fits; all PEs pass the same need and get the same result. `smaller` returns
/// the advice for the case that the node has not enough memory.
pub(crate) fn check(
    world: &World,
    need: Need,
    smaller: impl FnOnce(&Supply) -> String,
) -> Result<Result<(), TooLarge>> {
    Ok(judge(need, &Supply::find(world)?, smaller))
}

pub(crate) fn judge(
    need: Need,
    supply: &Supply,
    smaller: impl FnOnce(&Supply) -> String,
) -> Result<(), TooLarge> {
    let pes = supply.node_pes;
    let heap_bytes = need.heap_bytes.saturating_add(SMALL_ARRAYS_BYTES);
    let is_on_node = need.is_on_node(supply);
    if is_on_node && heap_bytes <= supply.heap_free_bytes {
        return Ok(());
    }
    Err(TooLarge {
        pes,
        heap: Bytes(need.heap_bytes),
        private: Bytes(need.private_bytes),
        total: Bytes(need.total_bytes(pes)),
        node: Bytes(supply.node_bytes),
        heap_free: Bytes(supply.heap_free_bytes),
        remedy: match is_on_node {
            true => format!("set PELAGO_HEAP_SIZE={}m", heap_bytes.div_ceil(MIB) + 1),
            false => smaller(supply),
        },
        what: need.what,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn need(heap_bytes: u64, private_bytes: u64) -> Need {
        Need { what: "the table".to_owned(), heap_bytes, private_bytes }
    }

    /// Of PEs on one node, with a free block of the heap and with memory.
    fn judge_of(
        need: Need,
        node_pes: usize,
        [heap_free_bytes, node_bytes]: [u64; 2],
    ) -> Result<(), TooLarge> {
        let supply = Supply { heap_free_bytes, node_bytes, node_pes };
        judge(need, &supply, |_| "take a smaller table".to_owned())
    }

    #[test]
    fn what_fits_is_let_through() {
        judge_of(need(GIB, 2 * GIB), 2, [2 * GIB, 6 * GIB]).unwrap();
        judge_of(need(0, 0), 1, [MIB, 0]).unwrap();
    }

    #[test]
    fn a_heap_too_small_names_the_setting_that_is_enough() {
        let message = judge_of(need(3 * GIB, MIB), 2, [GIB, 16 * GIB]).unwrap_err().to_string();
        for part in [
            "the table needs 3 GiB of each PE's symmetric heap, of which 1 GiB are free",
            "1 MiB beside it, times 2 PEs of a node is 6.0 GiB",
            "; set PELAGO_HEAP_SIZE=3074m",
        ] {
            assert!(message.contains(part), "`{part}` is not in: {message}");
        }
    }

    #[test]
    fn a_node_too_small_names_what_to_make_smaller() {
        let supply = [64 * GIB, 16 * GIB];
        for (heap_bytes, private_bytes) in [(12 * GIB, 0), (0, 12 * GIB), (u64::MAX, u64::MAX)] {
            let message = judge_of(need(heap_bytes, private_bytes), 2, supply).unwrap_err().to_string();
            assert!(message.ends_with("16 GiB available; take a smaller table"), "{message}");
        }
    }

    #[test]
    fn all_pes_come_to_the_same_answer() {
        let answers = pelago::Spmd::new(2).heap_bytes(16 << 20).run(|world| {
            [MIB, 32 * MIB].map(|bytes| {
                check(world, need(bytes, 0), |_| String::new()).unwrap().map_err(|error| error.remedy)
            })
        });
        let [first, second] = answers.unwrap().try_into().unwrap();
        assert_eq!(first, [Ok(()), Err("set PELAGO_HEAP_SIZE=34m".to_owned())]);
        assert_eq!(first, second);
    }
}
