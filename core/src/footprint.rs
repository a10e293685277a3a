//! The memory of a PE, and the messages with which a job starts, for any number of PEs: from the sizes of the
//! structures themselves.
//!
//! Invariant: each part is computed by a function beside its structure, which the structure uses or a test
//! compares with it. Heap and pool are left out: their sizes are settings.

use crate::coll::block::{self, pairs::PairBlock};
use crate::coll::split;
use crate::coll::team::BlockKind;
use crate::job::exchange::{self, Readings};
use crate::job::summary::Digest;
use crate::memory::route::Routes;
use crate::memory::segment::Memory;
use crate::messages::peers::Peers;
use crate::msg::state::MsgState;
use pelago_boot::SyncMemoryKind;
use pelago_fabric::shm::Layout;
use pelago_fabric::sync::AtomicU8;
use pelago_fabric::tcp::Tcp;
use pelago_schedule::nodes::Groups;

/// The contents of a team's block in a job of several nodes, if the settings do not say otherwise.
const BLOCK: BlockKind = (SyncMemoryKind::PairwiseEdges, true);
/// Bytes of a page, the unit in which reserved memory comes.
const PAGE_BYTES: usize = 4096;

/// A job, as far as its size matters.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The number of PEs.
    pub n_pes: usize,
    /// The PEs of a node.
    pub pes_per_node: usize,
    /// The PEs of a process.
    pub pes_per_process: usize,
    /// Each of a PE's two rings for active messages, in bytes.
    pub ring_bytes: usize,
}

/// When memory is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// From the start on.
    Always,
    /// From the first message of the kind on.
    OnFirstUse,
    /// For each team, the first of which is that of all PEs.
    EachTeam,
    /// While a team is made, and in other calls that let the members tell each other something.
    WhileMade,
    /// Until the job has started.
    AtStart,
    /// Address space: pages come when they are first written.
    Reserved,
}

/// The growth of memory with the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// With the number of PEs.
    Linear,
    /// With the square root of this number.
    SquareRoot,
    /// With its logarithm.
    Logarithmic,
    /// With the PEs of a node alone.
    OfNode,
    /// Not at all.
    Constant,
}

/// A part of the memory of a PE.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The contents.
    pub name: &'static str,
    /// When it is in use.
    pub held: Held,
    /// Its growth.
    pub growth: Growth,
    /// Bytes of one PE; what a process holds once is divided among its PEs.
    pub bytes: u64,
}

/// Messages with which a job starts.
#[derive(Clone, Copy, Debug)]
pub struct StartMessages {
    /// The contents.
    pub name: &'static str,
    /// Of one process, to the launcher or to other processes: of the process with the most of them.
    pub of_process: u64,
    /// Of all processes.
    pub of_all: u64,
    /// The growth of the first.
    pub growth: Growth,
}

impl Scale {
    fn processes(&self) -> usize {
        self.n_pes.div_ceil(self.pes_per_process)
    }

    /// Rounds of a dissemination among all PEs.
    fn rounds(&self) -> usize {
        self.n_pes.next_power_of_two().trailing_zeros() as usize
    }

    /// Other PEs that a PE is taken to be in contact with, each in another process: a partner in each
    /// direction of each round of a dissemination among all PEs, which barriers and agreements need anyway.
    pub fn partners(&self) -> usize {
        2 * self.rounds()
    }

    /// The parts of the memory of a PE in a job of several nodes over TCP.
    pub fn parts(&self) -> Vec<Part> {
        use Growth::{Constant, Linear, Logarithmic, OfNode};
        use Held::{Always, AtStart, EachTeam, OnFirstUse, Reserved, WhileMade};
        let Scale { n_pes: n, pes_per_node, pes_per_process, ring_bytes } = *self;
        let of_process = |bytes: usize| bytes / pes_per_process;
        let segment = Layout::new(pes_per_node, 1, ring_bytes);
        // A partner takes a page each for the words and for the mailboxes of the pair, and one of each table
        // of peers.
        let partners = self.partners();
        let partner_pages = partners * 2;
        // Whole pages, and one where the PEs of the node begin within a page.
        let node_tables = Memory::reserved_bytes(pes_per_node).next_multiple_of(PAGE_BYTES) + 2 * PAGE_BYTES;
        let tcp_peer = Tcp::contact_bytes();
        let [two_sided, of_node] = MsgState::peer_bytes();
        let part = |name, held, growth, bytes: usize| Part { name, held, growth, bytes: bytes as u64 };
        vec![
            part("addresses and slots of the node's PEs", Always, OfNode, node_tables),
            part("addresses and slots of all PEs", Reserved, Linear, Memory::reserved_bytes(n)),
            part("nodes of all PEs", Always, Linear, Routes::table_bytes(n)),
            part("departures of all PEs", Reserved, Linear, n * size_of::<AtomicU8>()),
            part("TCP peers in contact", Always, Logarithmic, of_process(partners * (tcp_peer + PAGE_BYTES))),
            part("table of TCP peers", Reserved, Linear, of_process(Tcp::reserved_bytes(self.processes()))),
            part("pages of pairs in a dissemination", Always, Logarithmic, partner_pages * PAGE_BYTES),
            part(
                "cards of all processes, summed up",
                AtStart,
                Linear,
                of_process(Digest::held_bytes(self.processes(), pes_per_process)),
            ),
            part(
                "active messages: peers in contact",
                OnFirstUse,
                Logarithmic,
                partners * (Peers::peer_bytes() + PAGE_BYTES),
            ),
            part("active messages: PEs of the node", OnFirstUse, OfNode, pes_per_node * Peers::peer_bytes()),
            part("table of active messages", Reserved, Linear, Peers::reserved_bytes(n)),
            part(
                "two-sided messages: peers in contact",
                OnFirstUse,
                Logarithmic,
                partners * (two_sided + PAGE_BYTES),
            ),
            part("two-sided messages: PEs of the node", OnFirstUse, OfNode, pes_per_node * of_node),
            part("tables of two-sided messages", Reserved, Linear, MsgState::reserved_bytes(n)),
            part("block of a team", EachTeam, Logarithmic, block::bytes(BLOCK, n)),
            part("lists of the members of a team", WhileMade, Linear, split::list_bytes(n)),
            part("nodes of a team", EachTeam, Constant, Groups::bytes()),
            part("slots of pairs", Reserved, Linear, PairBlock::bytes(n)),
            part("block, rings and FIFOs in the node's memory", Reserved, OfNode, segment.own_bytes()),
        ]
    }

    /// The messages of the processes while a job of several nodes starts.
    pub fn start_messages(&self) -> Vec<StartMessages> {
        use Growth::{Constant, Logarithmic, SquareRoot};
        let processes = self.processes();
        let message = |name, growth, (of_process, of_all): (usize, usize)| StartMessages {
            name,
            of_process: of_process as u64,
            of_all: of_all as u64,
            growth,
        };
        let of_each = |of_process: usize| (of_process, of_process * processes);
        // The cards before and after the processes have opened a fabric.
        let exchanges = 2;
        let Readings { barriers, most, all } = exchange::readings(processes);
        let rounds = self.pes_per_process * self.rounds();
        vec![
            message(
                "cards published, and barriers of the launcher",
                Constant,
                of_each(exchanges * (1 + barriers)),
            ),
            message("cards, and sums of them, read", SquareRoot, (exchanges * most, exchanges * all)),
            message("card of the process that has made the node's memory", Constant, of_each(1)),
            message("cards of partners", Logarithmic, of_each(2 * rounds)),
            message("message barrier", Logarithmic, of_each(rounds)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(n_pes: usize) -> Scale {
        Scale { n_pes, pes_per_node: 128, pes_per_process: 1, ring_bytes: 64 << 10 }
    }

    #[test]
    fn parts_grow_as_they_say() {
        let (small, large) = (scale(1 << 14).parts(), scale(1 << 20).parts());
        for (small, large) in small.iter().zip(&large) {
            let factor = large.bytes as f64 / small.bytes as f64;
            let expected = match small.growth {
                Growth::Linear => 63.0..65.0,
                Growth::SquareRoot => 7.9..8.1,
                Growth::Logarithmic => 1.42..1.44,
                Growth::OfNode | Growth::Constant => 1.0..1.01,
            };
            // A block has parts of a fixed size beside the buffers that grow with the logarithm.
            let is_block = small.name == "block of a team" && (1.05..1.43).contains(&factor);
            assert!(expected.contains(&factor) || is_block, "{}: {factor}", small.name);
        }
    }

    #[test]
    fn no_process_reads_all_cards() {
        let rows = |scale: Scale| {
            let messages = scale.start_messages();
            messages.iter().map(|row| (row.of_process, row.of_all)).collect::<Vec<_>>()
        };
        // 1024 processes are 32 groups of 33 at most: the 32 of process 0, and 31 sums of others.
        let large = rows(scale(1024));
        assert_eq!(large[0], (8, 8 * 1024));
        assert_eq!(large[1], (2 * (33 + 31), 2 * (2 * 1024 + 31)));
        assert_eq!(large[2..], [(1, 1024), (20, 20 * 1024), (10, 10 * 1024)]);
        let hybrid = Scale { pes_per_process: 10, ..scale(10_240) };
        assert_eq!(rows(hybrid)[1], large[1]);
        assert_eq!(rows(scale(1 << 20))[1].0, 2 * (1025 + 1023));
    }
}
