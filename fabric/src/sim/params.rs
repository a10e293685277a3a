//! The parameters of a simulation.
//!
//! Invariant: two simulations with equal parameters and equal programs run identically.

use super::random::Random;
use crate::types::Pe;
use std::time::Duration;

/// The properties of the simulated network. Times are virtual, with a resolution of 1 ps inside and 1 ns
/// outside.
#[derive(Clone, Debug, PartialEq)]
pub struct SimParams {
    /// The start of the pseudorandom sequence.
    pub seed: u64,
    /// Whether the sequence, instead of virtual time, decides which PE runs and what arrives.
    pub chaos: bool,
    /// The time from the moment a byte leaves the sender's network card to its arrival at the receiver's.
    pub latency: Duration,
    /// Time of the processor for a put, a get, an atomic or a message sent, and for each message received.
    pub overhead: Duration,
    /// Time of the network card for each message, without that for its bytes, at both ends.
    pub gap: Duration,
    /// Bytes that a network card moves in a second, at both ends; may be infinite.
    pub bandwidth_bytes_per_second: f64,
    /// The node of each PE, by any numbers. PEs of one node share its network card, and reach each other
    /// (and a PE itself) without it. If empty, each PE has a network card of its own, and reaches itself over
    /// it as well.
    pub nodes: Vec<u32>,
    /// Whether PEs of one node map each other's memory, as in a job of several nodes; else all of them reach
    /// each other over this network. Accesses through mapped memory take no virtual time.
    pub maps_nodes: bool,
    /// As `latency`, between PEs of one node.
    pub local_latency: Duration,
    /// Bytes that a PE moves in a second to the PEs of its node, one message after another; may be infinite.
    pub local_bandwidth_bytes_per_second: f64,
    /// Time of the processor for a call of `progress`, or a call that returns `Again`; at least 1 ns.
    pub poll: Duration,
    /// Largest put whose source is reusable at return, in bytes.
    pub inject_bytes: usize,
    /// Largest payload of a message, in bytes.
    pub message_bytes: usize,
    /// Largest put or get, in bytes.
    pub transfer_bytes: usize,
    /// The number of operations of an endpoint, and separately of messages from a PE to another, that may be
    /// under way before calls return `Again`; at least 1.
    pub credits: usize,
    /// Probability that a call returns `Again` without a reason.
    pub again: f32,
    /// Whether the network executes atomics.
    pub executes_atomics: bool,
    /// A PE that is lost during the run.
    pub lose: Option<Loss>,
    /// In chaos: the probability that a call which starts an operation lets others run first.
    pub hand_over: f32,
    /// In chaos: the probability that a PE goes on at a point where others could run; below 1.
    pub stay: f32,
    /// In chaos: the probability that the next step is one of the network, when PEs can run too; between
    /// 0 and 1, both excluded.
    pub delivery: f32,
    /// The number of times that all PEs check in vain, with nothing under way, before this counts as a
    /// deadlock.
    pub hopeless_rounds: usize,
}

/// The loss of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The PE that is lost.
    pub pe: Pe,
    /// The number of operations and messages that all PEs together have started when it happens.
    pub after_operations: u64,
}

impl Default for SimParams {
    /// Model mode: 1 us of latency, 100 ns of overhead, 10 ns of gap, 10 GB/s; 100 ns and 20 GB/s inside a
    /// node, if nodes are given.
    fn default() -> SimParams {
        SimParams {
            seed: 0,
            chaos: false,
            latency: Duration::from_micros(1),
            overhead: Duration::from_nanos(100),
            gap: Duration::from_nanos(10),
            bandwidth_bytes_per_second: 10e9,
            nodes: Vec::new(),
            maps_nodes: false,
            local_latency: Duration::from_nanos(100),
            local_bandwidth_bytes_per_second: 20e9,
            poll: Duration::from_nanos(20),
            inject_bytes: 64,
            message_bytes: 4096,
            transfer_bytes: usize::MAX,
            credits: 64,
            again: 0.0,
            executes_atomics: true,
            lose: None,
            hand_over: 0.0,
            stay: 0.0,
            delivery: 0.5,
            hopeless_rounds: 10_000,
        }
    }
}

impl SimParams {
    /// Chaos mode. All other parameters are derived from the seed.
    pub fn chaos(seed: u64) -> SimParams {
        let mut random = Random::new(seed ^ 0xC4A0_5000_0000_0000);
        SimParams {
            seed,
            chaos: true,
            inject_bytes: random.pick(&[8, 16, 64, 192]),
            message_bytes: random.pick(&[256, 1024, 4096]),
            credits: random.pick(&[1, 2, 3, 8, 64]),
            again: random.pick(&[0.0, 0.1, 0.3, 0.5]),
            executes_atomics: random.chance(0.5),
            hand_over: random.pick(&[0.0, 0.06, 0.25]),
            stay: random.pick(&[0.0, 0.5, 0.875]),
            delivery: random.pick(&[0.125, 0.5, 0.875]),
            ..SimParams::default()
        }
    }

    /// The same network for `n_pes` PEs on `nodes` nodes: the first ones on the first node. The numbers of
    /// PEs on two nodes differ by at most one.
    ///
    /// # Panics
    /// If there are no nodes.
    pub fn on_nodes(self, n_pes: usize, nodes: usize) -> SimParams {
        assert!(nodes > 0, "{n_pes} PEs on 0 nodes: a job needs a node");
        let node = |pe: usize| (pe * nodes.min(n_pes) / n_pes) as u32;
        SimParams { nodes: (0..n_pes).map(node).collect(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pes_are_distributed_in_blocks() {
        let nodes = |n_pes, nodes| SimParams::default().on_nodes(n_pes, nodes).nodes;
        assert_eq!(nodes(6, 2), [0, 0, 0, 1, 1, 1]);
        assert_eq!(nodes(7, 3), [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(nodes(3, 3), [0, 1, 2]);
        assert_eq!(nodes(2, 5), [0, 1]);
        assert_eq!(nodes(4, 1), [0; 4]);
        for (n_pes, count) in (1..40).flat_map(|n_pes| (1..=n_pes).map(move |count| (n_pes, count))) {
            let nodes = nodes(n_pes, count);
            let sizes: Vec<_> =
                (0..count).map(|i| nodes.iter().filter(|&&n| n as usize == i).count()).collect();
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            assert!(nodes.is_sorted() && *least > 0 && most - least <= 1, "{n_pes} on {count}: {sizes:?}");
        }
    }
}
