//! The memory of a PE, and the messages with which a job starts, for any number of PEs: from the sizes of the
//! structures themselves.
//!
//! Invariant: each part is computed by a function beside its structure, which the structure uses or a test
//! compares with it. Heap and pool are left out: their sizes are settings.

use crate::coll::block::{self, pairs::PairBlock};
use crate::job::business_card::{BusinessCard, Offer};
use crate::memory::route::Routes;
use crate::memory::segment::Memory;
use crate::messages::peers::Peers;
use crate::msg::state::MsgState;
use pelago_boot::SyncMemoryKind;
use pelago_fabric::shm::Layout;
use pelago_fabric::sync::AtomicBool;
use pelago_fabric::tcp::Tcp;
use pelago_schedule::nodes::Groups;

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
    /// With the logarithm of this number.
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
    /// Of one process, to the launcher or to other processes.
    pub of_process: u64,
    /// Their growth.
    pub growth: Growth,
}

impl Scale {
    fn processes(&self) -> usize {
        self.n_pes.div_ceil(self.pes_per_process)
    }

    fn nodes(&self) -> usize {
        self.n_pes.div_ceil(self.pes_per_node)
    }

    /// Rounds of a dissemination among all PEs.
    fn rounds(&self) -> usize {
        self.n_pes.next_power_of_two().trailing_zeros() as usize
    }

    /// The parts of the memory of a PE in a job of several nodes over TCP.
    pub fn parts(&self) -> Vec<Part> {
        use Growth::{Linear, Logarithmic, OfNode};
        use Held::{Always, AtStart, EachTeam, OnFirstUse, Reserved};
        let Scale { n_pes: n, pes_per_node, pes_per_process, ring_bytes } = *self;
        let of_process = |bytes: usize| bytes / pes_per_process;
        let segment = Layout::new(pes_per_node, 1, ring_bytes);
        // A partner in each direction of each round. It takes a page each for the words and for the mailboxes
        // of the pair, and one of the table of TCP peers.
        let partners = 2 * self.rounds();
        let partner_pages = partners * 2;
        let tcp_peer = Tcp::contact_bytes();
        let part = |name, held, growth, bytes: usize| Part { name, held, growth, bytes: bytes as u64 };
        vec![
            part("addresses and slots of all PEs", Always, Linear, Memory::table_bytes(n)),
            part("nodes of all PEs", Always, Linear, Routes::table_bytes(n)),
            part("departures of all PEs", Always, Linear, n * size_of::<AtomicBool>()),
            part("TCP peers in contact", Always, Logarithmic, of_process(partners * (tcp_peer + PAGE_BYTES))),
            part("table of TCP peers", Reserved, Linear, of_process(Tcp::reserved_bytes(self.processes()))),
            part("pages of pairs in a dissemination", Always, Logarithmic, partner_pages * PAGE_BYTES),
            part(
                "business cards",
                AtStart,
                Linear,
                of_process(self.processes() * card(pes_per_process).held_bytes()),
            ),
            part("peers of active messages", OnFirstUse, Linear, Peers::table_bytes(n)),
            part("peers of two-sided messages", OnFirstUse, Linear, MsgState::table_bytes(n)),
            part("block of a team", EachTeam, Linear, block::bytes((SyncMemoryKind::PairwiseEdges, true), n)),
            part("nodes of a team", EachTeam, Linear, Groups::bytes(n, self.nodes())),
            part("slots of pairs", Reserved, Linear, PairBlock::bytes(n)),
            part("block, rings and FIFOs in the node's memory", Reserved, OfNode, segment.own_bytes()),
        ]
    }

    /// The messages of a process while a job of several nodes starts.
    pub fn start_messages(&self) -> Vec<StartMessages> {
        let message =
            |name, of_process: usize, growth| StartMessages { name, of_process: of_process as u64, growth };
        let exchanges = 2;
        vec![
            message(
                "business cards published, and barriers of the launcher",
                2 * exchanges,
                Growth::Constant,
            ),
            message("business cards read", exchanges * self.processes(), Growth::Linear),
            message("message barrier", self.pes_per_process * self.rounds(), Growth::Logarithmic),
        ]
    }
}

/// A card with strings of usual lengths.
fn card(pes: usize) -> BusinessCard {
    BusinessCard {
        node: "n".repeat(16),
        machine: "m".repeat(48),
        pid_space: "p".repeat(10),
        memory: vec![0; 40],
        pes,
        fabrics: vec![Offer {
            terms: "tcp".to_owned(),
            addresses: vec![vec![0; 24]; pes],
            obstacle: String::new(),
        }],
        ..BusinessCard::default()
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
                Growth::Logarithmic => 1.42..1.44,
                Growth::OfNode | Growth::Constant => 1.0..1.01,
            };
            // The staging buffers of a team's block grow with the logarithm alone.
            let is_block = small.name == "block of a team" && factor > 40.0;
            assert!(expected.contains(&factor) || is_block, "{}: {factor}", small.name);
        }
    }

    #[test]
    fn starts_read_all_cards() {
        let messages = scale(1000).start_messages();
        assert_eq!(messages.iter().map(|row| row.of_process).collect::<Vec<_>>(), [4, 2000, 10]);
        let hybrid = Scale { pes_per_process: 10, ..scale(1000) };
        assert_eq!(hybrid.start_messages()[1].of_process, 200);
    }

    #[test]
    fn a_card_has_its_addresses() {
        let bytes = |pes| card(pes).held_bytes();
        assert_eq!(bytes(9) - bytes(1), 8 * (size_of::<Vec<u8>>() + 24));
    }
}
