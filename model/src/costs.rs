//! The costs of a machine for estimates (`pelago_schedule::estimate`), which know no topology.
//!
//! Invariant: hops and links are those of some routes, evenly spaced, so they are the same in every run.

use crate::engine::Error;
use crate::machine::Machine;
use crate::time::{NANOSECOND, Time, per_byte};
use pelago_schedule::estimate::Costs;

/// The nodes to which routes are looked at.
const ROUTES: usize = 64;

fn nanoseconds(time: Time) -> f64 {
    time as f64 / NANOSECOND as f64
}

/// The nanoseconds of a byte.
fn byte(bytes_per_second: f64) -> f64 {
    per_byte(bytes_per_second) / NANOSECOND as f64
}

impl Machine {
    /// The costs of messages in a job of `pes` PEs, without contention for links.
    ///
    /// # Errors
    /// If the machine is too small for the job.
    pub fn costs(&self, pes: usize) -> Result<Costs, Error> {
        let topology = self.topology(pes).map_err(Error::TooSmall)?;
        let nodes = self.nodes(pes);
        let links = topology.links();
        let (mut hops, mut routes, mut slowest) = (0, 0, 0.0_f64);
        for to in (1..nodes).step_by(nodes.div_ceil(ROUTES)) {
            topology.route(0, to, |link| {
                hops += 1;
                slowest = slowest.max(links[link as usize]);
            });
            routes += 1;
        }
        let hop = nanoseconds(self.network.hop_latency);
        let (network, node, protocol) = (&self.network, &self.node, &self.protocol);
        Ok(Costs {
            latency: nanoseconds(network.latency) + hop * f64::from(hops) / f64::from(routes.max(1)),
            send_overhead: nanoseconds(network.send_overhead),
            send_rest: nanoseconds(network.send_rest),
            receive_overhead: match protocol.has_hardware_puts {
                true => 0.0,
                false => nanoseconds(network.receive_overhead),
            },
            wait_overhead: nanoseconds(network.wait_overhead),
            gap: nanoseconds(network.gap),
            byte: byte(network.bytes_per_second),
            link_byte: byte(network.bytes_per_second).max(slowest / NANOSECOND as f64),
            cards_per_node: self.cards_per_node,
            processor_moves_data: protocol.processor_moves_data,
            signals_follow: protocol.signals_follow,
            node_latency: nanoseconds(node.latency),
            node_overhead: nanoseconds(node.overhead),
            node_byte: byte(node.bytes_per_second),
            memory_byte: byte(node.memory_bytes_per_second),
            copy_byte: byte(self.compute.copy_bytes_per_second),
            reduce_byte: byte(self.compute.reduce_bytes_per_second),
            ranks_per_core: 1,
            switch: 0.0,
            poll: 0.0,
        })
    }
}
