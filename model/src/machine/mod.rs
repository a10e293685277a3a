//! Machines: the times of their parts, and how their nodes are linked.
//!
//! Invariant: a machine that was read is complete and within the bounds that its reader states.
//! Source of the parameters: LogGP, Alexandrov, Ionescu, Schauser, Scheiman 1995.

mod built_in;
mod read;
mod reader;

pub use built_in::{BUILT_IN, BuiltIn};
pub use reader::Defect;

use crate::time::Time;
use crate::topology::{Dragonfly, FatTree, Topology, Torus};

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// A description in one line.
    pub about: String,
    /// The PEs of a node.
    pub pes_per_node: usize,
    /// The network cards of a node; its PEs use them in turn.
    pub cards_per_node: usize,
    /// The network between nodes.
    pub network: Link,
    /// The memory of a node, over which its PEs reach each other.
    pub node: Node,
    /// Copies and reductions.
    pub compute: Compute,
    /// How messages are sent.
    pub protocol: Protocol,
    /// How the nodes are linked.
    pub links: Links,
    /// How messages share links.
    pub contention: Contention,
}

/// The times of a message between nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// From the sender's card to the receiver's, without the hops.
    pub latency: Time,
    /// For each link on the route.
    pub hop_latency: Time,
    /// Of the processor, or of the card with [`Protocol::card_has_overhead`], for a put, a get or a signal.
    pub send_overhead: Time,
    /// Of the processor, from the time at which a message has left until its call returns.
    pub send_rest: Time,
    /// Of the processor, for a request that the network does not execute by itself.
    pub receive_overhead: Time,
    /// Of the processor, for a wait that has ended.
    pub wait_overhead: Time,
    /// Of the card at both ends, for each message.
    pub gap: Time,
    /// The bandwidth of a card, in each direction.
    pub bytes_per_second: f64,
}

/// The times inside a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// From the end of the copy until the other PE sees it.
    pub latency: Time,
    /// Of the processor, for each transfer.
    pub overhead: Time,
    /// The rate at which a PE copies to another.
    pub bytes_per_second: f64,
    /// The rate at which all PEs of the node copy together.
    pub memory_bytes_per_second: f64,
}

/// Work in a PE's own memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compute {
    /// The rate of copies.
    pub copy_bytes_per_second: f64,
    /// The rate of reductions, in bytes of the result.
    pub reduce_bytes_per_second: f64,
}

/// How messages are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protocol {
    /// The longest two-sided message that is sent at once; a longer one is announced first.
    pub eager_bytes: u64,
    /// The time of the processor to send a two-sided message.
    pub message_send_overhead: Time,
    /// The time of the processor to receive one.
    pub message_receive_overhead: Time,
    /// The time of the processor, at each side, for the handshake of an announced message, besides the
    /// overheads.
    pub handshake_overhead: Time,
    /// Whether two-sided messages make progress while their ranks compute.
    pub progresses_alone: bool,
    /// Whether the network executes puts and gets at their target without its processor.
    pub has_hardware_puts: bool,
    /// Whether the signal of a put is a message of its own, which the processor sends when the data are
    /// acknowledged; else it comes with the data.
    pub signals_follow: bool,
    /// Whether the processor moves data between nodes to and from the card: then the sender is busy until its
    /// message has left, and a target that executes puts by its processor is busy for their bytes.
    pub processor_moves_data: bool,
    /// Whether the card, not the processor, spends the overhead of a send.
    pub card_has_overhead: bool,
    /// The messages of a PE that may be under way before a call that starts another waits; at least 1. This
    /// is the only back-pressure: links and cards have room for all of them.
    pub outstanding: u32,
    /// The bytes of a packet, for [`Contention::Packets`].
    pub packet_bytes: u64,
}

/// How the nodes are linked. A torus may take its shape from the number of nodes in use.
#[derive(Clone, Debug, PartialEq)]
pub enum Links {
    /// All nodes at one switch.
    Switch,
    /// A torus of powers of two that fits the job.
    FittingTorus {
        /// The number of dimensions.
        dimensions: usize,
        /// Smaller partitions than this are meshes.
        wraps_from_nodes: usize,
        /// The bandwidth of a link in one direction.
        link_bytes_per_second: f64,
    },
    /// A torus of this shape.
    Torus(Torus),
    /// A fat tree.
    FatTree(FatTree),
    /// A dragonfly.
    Dragonfly(Dragonfly),
}

/// How messages share links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contention {
    /// Links have room for everything; only cards limit.
    None,
    /// A link carries whole messages one after another, in the order in which they were sent.
    Queue,
    /// Messages share links at rates that are fair (max-min).
    Fluid,
    /// A link carries packets one after another, in the order in which they reach it.
    Packets,
}

impl Contention {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Contention); 4] = [
        ("none", Contention::None),
        ("queue", Contention::Queue),
        ("fluid", Contention::Fluid),
        ("packets", Contention::Packets),
    ];
}

impl Machine {
    /// The nodes of a job of `pes` PEs.
    pub fn nodes(&self, pes: usize) -> usize {
        pes.div_ceil(self.pes_per_node)
    }

    /// The topology for a job of `pes` PEs.
    ///
    /// # Errors
    /// If the machine has fewer nodes than the job needs.
    pub fn topology(&self, pes: usize) -> Result<Topology, String> {
        let nodes = self.nodes(pes);
        let topology = match &self.links {
            Links::Switch => Topology::Switch,
            Links::FittingTorus { dimensions, wraps_from_nodes, link_bytes_per_second } => {
                Topology::Torus(Torus {
                    shape: Torus::fitting(nodes, *dimensions),
                    wraps: nodes >= *wraps_from_nodes,
                    link_bytes_per_second: *link_bytes_per_second,
                })
            }
            Links::Torus(torus) => Topology::Torus(torus.clone()),
            Links::FatTree(tree) => Topology::FatTree(tree.clone()),
            Links::Dragonfly(fly) => Topology::Dragonfly(fly.clone()),
        };
        if topology.nodes() < nodes {
            return Err(format!(
                "{pes} PEs need {nodes} nodes of {} PEs, and the machine {} has {}: take at most {} PEs, or \
                 raise the sizes in its [topology]",
                self.pes_per_node,
                self.name,
                topology.nodes(),
                topology.nodes() * self.pes_per_node
            ));
        }
        Ok(topology)
    }

    /// A machine with one PE and one card a node at one switch, without overhead of waits, and with work in
    /// memory that takes no time: plain LogGP. Times in picoseconds, the bandwidth in bytes per second.
    pub fn log_gp(latency: Time, overhead: Time, gap: Time, bytes_per_second: f64) -> Machine {
        Machine {
            name: "LogGP".to_owned(),
            about: "plain LogGP".to_owned(),
            pes_per_node: 1,
            cards_per_node: 1,
            network: Link {
                latency,
                hop_latency: 0,
                send_overhead: overhead,
                send_rest: 0,
                receive_overhead: overhead,
                wait_overhead: 0,
                gap,
                bytes_per_second,
            },
            node: Node {
                latency: 0,
                overhead: 0,
                bytes_per_second: f64::INFINITY,
                memory_bytes_per_second: f64::INFINITY,
            },
            compute: Compute { copy_bytes_per_second: f64::INFINITY, reduce_bytes_per_second: f64::INFINITY },
            protocol: Protocol {
                eager_bytes: 8 << 10,
                message_send_overhead: overhead,
                message_receive_overhead: overhead,
                handshake_overhead: 0,
                progresses_alone: true,
                has_hardware_puts: true,
                signals_follow: false,
                processor_moves_data: false,
                card_has_overhead: false,
                outstanding: u32::MAX,
                packet_bytes: 2048,
            },
            links: Links::Switch,
            contention: Contention::None,
        }
    }
}
