//! Business cards: each process publishes one with the addresses of its PEs through the launcher, before the
//! processes can reach each other.
//!
//! Invariant: a card is read by the same build that wrote it; any other data are refused.

use super::wire::{Reader, Writer};
use pelago_boot::{MemorySize, Settings, address_space_bytes, memory_total_bytes};

/// The business card of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusinessCard {
    /// The name of its node.
    pub node: String,
    /// The machine and network namespace that it is on; empty if that is not known. Processes of one machine
    /// may be on several nodes, simulated ones for instance.
    pub machine: String,
    /// The PID namespace of `pid`; empty if it is not known.
    pub pid_space: String,
    /// Its process number in that namespace.
    pub pid: u32,
    /// The secret of the job, in the card of process 0; empty in all others.
    pub secret: Vec<u8>,
    /// The number of its PEs.
    pub pes: usize,
    /// The address at which it offers the node's memory; empty if it does not offer it.
    pub memory: Vec<u8>,
    /// The fabrics that it has opened, the preferred one first.
    pub fabrics: Vec<Offer>,
    /// The memory sizes that it was set to use for every PE.
    pub wishes: Wishes,
}

/// A fabric that a process has opened, or has tried to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// The fabric and its mode: see [`Provider::terms`](pelago_fabric::Provider::terms).
    pub terms: String,
    /// The addresses of the PEs of the process; empty if it is not open.
    pub addresses: Vec<Vec<u8>>,
    /// Why it is not open.
    pub obstacle: String,
}

impl Offer {
    pub fn is_open(&self) -> bool {
        !self.addresses.is_empty()
    }
}

/// Stands for a heap's size: the PE's share of the node's memory.
pub const SHARE: u64 = u64::MAX;

/// Marks the size of a heap as how much larger than the default it is.
pub const BEYOND_DEFAULT: u64 = 1 << 62;

/// The sizes that a process was set to use, and the memory of its node, in bytes; 0 where a size was not set
/// or is not known. A heap whose size was not set has [`BEYOND_DEFAULT`] in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    pub heap: u64,
    pub pool: u64,
    pub ring: u64,
    pub node_memory: u64,
}

impl Wishes {
    pub fn of(settings: &Settings) -> Wishes {
        let bytes = |bytes: Option<usize>| bytes.unwrap_or(0) as u64;
        let wish = |size| match size {
            MemorySize::Auto => (0, false),
            MemorySize::Share => (SHARE, false),
            MemorySize::Bytes(bytes) => ((bytes as u64).min(BEYOND_DEFAULT - 1), true),
        };
        let (heap, is_given) = match settings.heap {
            MemorySize::Auto => {
                (BEYOND_DEFAULT | (settings.heap_extra as u64).min(BEYOND_DEFAULT - 1), false)
            }
            size => wish(size),
        };
        let (pool, _) = wish(settings.pool);
        let is_given = is_given && pool != SHARE;
        Wishes {
            heap,
            pool,
            ring: settings.ring_bytes as u64,
            node_memory: bytes(if is_given { None } else { node_memory_bytes() }),
        }
    }
}

/// The memory of this node that heaps may share. Every process maps all heaps and pools, so heaps and pools
/// may each take half of the memory that a process may map.
fn node_memory_bytes() -> Option<usize> {
    let bounds = [memory_total_bytes(), address_space_bytes().map(|bytes| bytes / 2)];
    bounds.into_iter().flatten().min()
}

impl BusinessCard {
    /// The card as bytes: the numbers, including the number of fabrics, then each of the other fields after
    /// its length, and for each fabric the number of its addresses and its fields.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Writer::default();
        let BusinessCard { node, machine, pid_space, secret, memory, fabrics, .. } = self;
        let Wishes { heap, pool, ring, node_memory } = self.wishes;
        for word in [heap, pool, ring, node_memory, self.pid.into(), self.pes as u64, fabrics.len() as u64] {
            bytes.word(word);
        }
        let [node, machine, pid_space] = [node, machine, pid_space].map(|text| text.as_bytes());
        for field in [node, machine, pid_space, secret, memory] {
            bytes.field(field);
        }
        for Offer { terms, addresses, obstacle } in fabrics {
            bytes.word(addresses.len() as u64);
            bytes.field(terms.as_bytes());
            bytes.field(obstacle.as_bytes());
            addresses.iter().for_each(|address| bytes.field(address));
        }
        bytes.0
    }

    /// Reads a card; `None` if the bytes are not a valid card.
    pub fn from_bytes(bytes: &[u8]) -> Option<BusinessCard> {
        let mut bytes = Reader(bytes);
        let [heap, pool, ring, node_memory] = [bytes.word()?, bytes.word()?, bytes.word()?, bytes.word()?];
        let [pid, pes, fabrics] = [bytes.word()?, bytes.word()?, bytes.word()?];
        let mut card = BusinessCard {
            wishes: Wishes { heap, pool, ring, node_memory },
            pid: u32::try_from(pid).ok()?,
            pes: usize::try_from(pes).ok()?,
            node: bytes.text()?,
            machine: bytes.text()?,
            pid_space: bytes.text()?,
            secret: bytes.field()?,
            memory: bytes.field()?,
            fabrics: Vec::new(),
        };
        for _ in 0..fabrics {
            let addresses = bytes.word()?;
            if addresses != 0 && addresses != pes {
                return None;
            }
            let (terms, obstacle) = (bytes.text()?, bytes.text()?);
            let addresses = (0..addresses).map(|_| bytes.field()).collect::<Option<_>>()?;
            card.fabrics.push(Offer { terms, addresses, obstacle });
        }
        bytes.end(card)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing;

    fn offer(terms: &str, addresses: Vec<Vec<u8>>) -> Offer {
        Offer { terms: terms.to_owned(), addresses, obstacle: String::new() }
    }

    #[test]
    fn fuzz_cards() {
        let small = BusinessCard { node: "n".to_owned(), pes: 1, ..BusinessCard::default() };
        let full = BusinessCard {
            machine: "5".to_owned(),
            pid_space: "6".to_owned(),
            pid: 77,
            secret: vec![7; 16],
            memory: vec![1; 40],
            fabrics: vec![
                offer("tcp;ofi_rxm", vec![vec![4; 30], vec![5; 3]]),
                Offer { obstacle: "no libfabric".to_owned(), ..Offer::default() },
            ],
            pes: 2,
            ..small.clone()
        };
        fuzzing::fuzz(&[small.to_bytes(), full.to_bytes()], |input| {
            if let Some(card) = BusinessCard::from_bytes(input) {
                let is_right = |offer: &Offer| !offer.is_open() || offer.addresses.len() == card.pes;
                assert!(card.fabrics.iter().all(is_right));
                assert_eq!(BusinessCard::from_bytes(&card.to_bytes()), Some(card));
            }
        });
    }

    #[test]
    fn cards_are_read_as_they_were_written() {
        let card = |addresses: Vec<Vec<u8>>| BusinessCard {
            node: "left".to_owned(),
            machine: "1-2".to_owned(),
            pid_space: "1-3".to_owned(),
            pid: 1 << 22,
            secret: vec![9; 16],
            pes: 2,
            memory: vec![1, 2, 3],
            fabrics: vec![
                Offer { obstacle: "no libfabric".to_owned(), ..Offer::default() },
                offer("tcp", addresses),
            ],
            wishes: Wishes { heap: 1 << 40, pool: 0, ring: 65536, node_memory: 7 },
        };
        for card in [card(Vec::new()), card(vec![vec![4; 30], vec![5]])] {
            let bytes = card.to_bytes();
            assert_eq!(BusinessCard::from_bytes(&bytes).as_ref(), Some(&card));
            (0..bytes.len()).for_each(|length| assert_eq!(BusinessCard::from_bytes(&bytes[..length]), None));
            assert_eq!(BusinessCard::from_bytes(&[&bytes[..], &[0]].concat()), None);
        }
        for addresses in [vec![vec![4]], vec![vec![4]; 3]] {
            let read = BusinessCard::from_bytes(&card(addresses).to_bytes());
            assert_eq!(read, None, "two PEs have two addresses, or none");
        }
    }
}
