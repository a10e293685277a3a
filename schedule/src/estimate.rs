//! How long an algorithm takes on a network of average speed, roughly: enough to tell which algorithms are
//! worth a trial. `pelago model` is exact on machines that it knows; this is quick, and knows none.
//!
//! Invariant: the estimate follows from the shape and the algorithm alone, and is the same at all members.
//! Schedules have no deadlock, so each walk of all ranks moves one of them.

use crate::candidates::Candidate;
use crate::schedule::{MAILBOX_BYTES, Rank, Schedule, Slot, Step};
use crate::shape::Shape;
use std::collections::HashMap;

/// The most ranks that schedules are written and walked for.
pub const RANKS_MAX: usize = 32;

/// Nanoseconds: of a step that starts a message, or that takes one from its slot.
const STEP_NS: f64 = 300.0;
/// Of a message on its way, between nodes and within one.
const FAR_NS: f64 = 15_000.0;
const NEAR_NS: f64 = 500.0;
/// Of a byte: between nodes, within one, and of a byte that is combined.
const FAR_BYTE_NS: f64 = 0.6;
const NEAR_BYTE_NS: f64 = 0.1;
const COMBINE_BYTE_NS: f64 = 0.15;

/// The time that an operation takes all ranks by a candidate, in nanoseconds. The rank of the shape does not
/// matter. `None` for more ranks than [`RANKS_MAX`].
pub fn estimate_ns(candidate: &Candidate, shape: &Shape) -> Option<u64> {
    if shape.n > RANKS_MAX {
        return None;
    }
    let of = |rank| candidate.schedule(&Shape { rank, ..shape.clone() }, MAILBOX_BYTES);
    let schedules: Vec<_> = (0..shape.n).map(of).collect();
    let groups = shape.groups();
    // Where all ranks are on one node, their messages still go through a provider, as if each had its own.
    let port = |rank| if shape.nodes.is_empty() { rank } else { groups.leader(groups.group(rank)) };
    Some(Walk::new((0..shape.n).map(port).collect()).walk(&schedules))
}

/// The ranks on their way through their schedules.
struct Walk {
    /// The rank that stands for the way of each rank's node to the network and back.
    port: Vec<Rank>,
    /// The time and the next step of each rank.
    clocks: Vec<f64>,
    at: Vec<usize>,
    /// When each rank's transfers are complete.
    complete: Vec<f64>,
    /// When each port's way out is free, and the way in.
    out: Vec<f64>,
    into: Vec<f64>,
    /// When each signal arrives, by rank and slot.
    arrivals: HashMap<(Rank, Slot), f64>,
}

impl Walk {
    fn new(port: Vec<Rank>) -> Walk {
        let (at, zero) = (vec![0; port.len()], vec![0.0; port.len()]);
        let [clocks, complete, out, into] = [zero.clone(), zero.clone(), zero.clone(), zero];
        Walk { port, clocks, at, complete, out, into, arrivals: HashMap::new() }
    }

    fn is_far(&self, a: Rank, b: Rank) -> bool {
        self.port[a] != self.port[b]
    }

    fn walk(mut self, schedules: &[Schedule]) -> u64 {
        loop {
            let mut has_moved = false;
            for (rank, schedule) in schedules.iter().enumerate() {
                while let Some(step) = schedule.steps.get(self.at[rank])
                    && self.step(rank, step)
                {
                    self.at[rank] += 1;
                    has_moved = true;
                }
            }
            if !has_moved {
                break;
            }
        }
        let ends = self.clocks.iter().chain(&self.complete);
        ends.fold(0.0_f64, |last, end| last.max(*end)) as u64
    }

    /// When `bytes` bytes that leave one rank now are at another one.
    fn arrival(&mut self, from: Rank, to: Rank, bytes: usize) -> f64 {
        let (now, bytes) = (self.clocks[from], bytes as f64);
        if !self.is_far(from, to) {
            self.clocks[from] += bytes * NEAR_BYTE_NS;
            return self.clocks[from] + NEAR_NS;
        }
        let (from, to) = (self.port[from], self.port[to]);
        let (time, leaves) = (bytes * FAR_BYTE_NS, now.max(self.out[from]));
        self.out[from] = leaves + time;
        self.into[to] = (leaves + FAR_NS).max(self.into[to]) + time;
        self.into[to]
    }

    /// Takes a step, unless the signal that it waits for is not sent yet.
    fn step(&mut self, rank: Rank, step: &Step) -> bool {
        match *step {
            Step::Put { to, bytes, signal, .. } => {
                self.clocks[rank] += STEP_NS;
                let arrival = self.arrival(rank, to, bytes);
                match signal {
                    Some(slot) => drop(self.arrivals.insert((to, slot), arrival)),
                    None => self.complete[rank] = self.complete[rank].max(arrival),
                }
            }
            Step::Get { of, bytes, .. } => {
                self.clocks[rank] += STEP_NS;
                let asks = if self.is_far(rank, of) { FAR_NS } else { 0.0 };
                let now = self.clocks[of].max(self.clocks[rank] + asks);
                let theirs = std::mem::replace(&mut self.clocks[of], now);
                let arrival = self.arrival(of, rank, bytes);
                self.clocks[of] = theirs;
                self.complete[rank] = self.complete[rank].max(arrival);
            }
            Step::Signal { to, slot, .. } => {
                self.clocks[rank] += STEP_NS;
                let arrival = self.arrival(rank, to, 0);
                self.arrivals.insert((to, slot), arrival);
            }
            Step::Wait { slot, .. } => match self.arrivals.get(&(rank, slot)) {
                Some(arrival) => self.clocks[rank] = self.clocks[rank].max(*arrival) + STEP_NS,
                None => return false,
            },
            Step::Complete => self.clocks[rank] = self.clocks[rank].max(self.complete[rank]),
            Step::Copy { bytes, .. } => self.clocks[rank] += bytes as f64 * NEAR_BYTE_NS,
            Step::CopyStrided { block, count, .. } => {
                self.clocks[rank] += (block * count) as f64 * NEAR_BYTE_NS;
            }
            Step::Reduce { bytes, .. } => self.clocks[rank] += bytes as f64 * COMBINE_BYTE_NS,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Operation;

    fn ns(operation: Operation, name: &str, n: usize, bytes: usize) -> u64 {
        let candidate = Candidate::all(operation).find(|one| one.algorithm.name == name).unwrap();
        estimate_ns(&candidate, &Shape::new(operation, 0, n, bytes / 8, 8)).unwrap()
    }

    #[test]
    fn every_schedule_is_walked_to_its_end() {
        for operation in Operation::ALL {
            for (n, count) in (1..10).flat_map(|n| [1, 1000, 1 << 16].map(|count| (n, count))) {
                let shape = Shape::new(operation, 0, n, count, 8);
                for candidate in Candidate::all(operation).filter(|one| one.can_do(&shape)) {
                    let found = estimate_ns(&candidate, &shape).unwrap();
                    let least = if n == 1 { 0 } else { FAR_NS as u64 };
                    assert!(found >= least, "{candidate} of {operation} among {n}: {found} ns");
                }
            }
        }
        let many = Shape::new(Operation::Barrier, 0, RANKS_MAX + 1, 0, 1);
        assert_eq!(estimate_ns(&Candidate::all(Operation::Barrier).next().unwrap(), &many), None);
    }

    #[test]
    fn the_known_orders_are_found() {
        use Operation::{AllGather, AllReduce, AllToAll, Broadcast};
        let faster = |operation, one, other, n, bytes| {
            let (one_ns, other_ns) = (ns(operation, one, n, bytes), ns(operation, other, n, bytes));
            assert!(one_ns < other_ns, "{operation} of {bytes} B: {one} {one_ns}, {other} {other_ns}");
        };
        faster(Broadcast, "binomial", "chain", 16, 8);
        faster(Broadcast, "chain", "binomial", 16, 4 << 20);
        faster(Broadcast, "linear", "chain", 4, 8);
        faster(AllReduce, "recursive_doubling", "ring", 16, 8);
        faster(AllReduce, "ring", "recursive_doubling", 16, 4 << 20);
        faster(AllGather, "bruck", "ring", 16, 8);
        faster(AllToAll, "pairwise", "bruck", 16, 1 << 20);
    }

    #[test]
    fn messages_within_a_node_are_cheap() {
        let candidate = Candidate::all(Operation::AllReduce).find(|one| one.algorithm.name == "hierarchical");
        let on = |nodes: &[u32]| Shape {
            nodes: nodes.iter().copied().collect(),
            ..Shape::new(Operation::AllReduce, 0, 4, 1, 8)
        };
        let of = |nodes: &[u32]| estimate_ns(&candidate.unwrap(), &on(nodes)).unwrap();
        assert!(of(&[0, 0, 1, 1]) < of(&[0, 1, 2, 3]));
    }
}
