//! The addresses of the peers, and the keys and addresses of their registered memory.
//!
//! Invariant: if the provider uses the chosen keys and offsets, nothing is looked up, because all members of
//! a job choose the same keys. Otherwise every peer has sent the keys and addresses of its regions before any
//! PE accesses them.

use super::prepared::Spot;
use super::sys::{fi_addr_t, fi_rma_iov};
use crate::types::{Key, Pe, Remote};

/// Words that are exchanged for a region: its key here, the provider's key, and the address of its first
/// byte.
const WORDS: usize = 3;

/// The peers of an endpoint.
#[derive(Clone, Default)]
pub(super) struct Peers {
    /// Their addresses in the address vector.
    pub(super) addresses: Box<[fi_addr_t]>,
    /// Exclusive-or of a region's number and its key on the wire, where the application chooses keys.
    mask: u64,
    /// The exchanged keys and addresses of each peer's regions; empty if they are not exchanged.
    told: Box<[Vec<[u64; WORDS]>]>,
}

impl Peers {
    pub(super) fn new(addresses: Vec<fi_addr_t>, mask: u64) -> Peers {
        Peers { addresses: addresses.into(), mask, told: Box::default() }
    }

    /// The same peers, with their exchanged keys and addresses.
    pub(super) fn with(&self, told: Vec<Vec<[u64; WORDS]>>) -> Peers {
        Peers { addresses: self.addresses.clone(), mask: self.mask, told: told.into() }
    }

    /// The address and the key of the memory under a key, at each of them.
    pub(super) fn spots(&self, key: Key) -> Box<[Spot]> {
        let spot = |(pe, &address)| {
            let [key, start] = self.reach(pe, Remote { key, offset_bytes: 0 });
            Spot { address, key, start }
        };
        self.addresses.iter().enumerate().map(spot).collect()
    }

    /// A range in a peer's memory, as libfabric takes it.
    #[inline]
    pub(super) fn range(&self, pe: Pe, remote: Remote, bytes: usize) -> fi_rma_iov {
        let [key, addr] = self.reach(pe, remote);
        fi_rma_iov { addr, len: bytes, key }
    }

    /// Key and address of a place in a peer's memory.
    #[inline]
    pub(super) fn reach(&self, pe: Pe, remote: Remote) -> [u64; 2] {
        let offset = remote.offset_bytes as u64;
        match self.told.get(pe) {
            None => [remote.key ^ self.mask, offset],
            Some(regions) => {
                let region = regions.iter().find(|[key, ..]| *key == remote.key);
                let [_, key, start] = region.expect("the peers have exchanged the keys of their regions");
                [*key, start + offset]
            }
        }
    }
}

/// Writes the keys of regions, with the provider's keys and addresses, for the exchange.
pub(super) fn pack(regions: impl Iterator<Item = (Key, [u64; 2])>) -> Vec<u8> {
    regions.flat_map(|(key, [theirs, start])| [key, theirs, start]).flat_map(u64::to_le_bytes).collect()
}

/// Reads exchanged keys and addresses; `None` if the bytes are not in this format.
pub(super) fn unpack(bytes: &[u8]) -> Option<Vec<[u64; WORDS]>> {
    let (regions, []) = bytes.as_chunks::<{ 8 * WORDS }>() else { return None };
    let word = |region: &[u8; 8 * WORDS], i: usize| {
        u64::from_le_bytes(region[8 * i..8 * i + 8].try_into().expect("these are 8 bytes"))
    };
    (!regions.is_empty()).then(|| regions.iter().map(|r| [word(r, 0), word(r, 1), word(r, 2)]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_where_one_reaches() {
        let peers = Peers::new(vec![5, 6], 0xF00);
        let remote = Remote { key: 7, offset_bytes: 100 };
        assert_eq!(peers.reach(1, remote), [0xF07, 100], "nothing was told");
        let told = [[(0, [90, 1000]), (7, [91, 2000])], [(0, [92, 3000]), (7, [93, 4000])]];
        let told: Vec<_> = told.into_iter().map(|of| unpack(&pack(of.into_iter())).unwrap()).collect();
        let peers = peers.with(told);
        assert_eq!((peers.reach(0, remote), peers.reach(1, remote)), ([91, 2100], [93, 4100]));
        assert_eq!(peers.range(1, Remote { key: 0, offset_bytes: 1 }, 8).len, 8);
        assert!(unpack(&[]).is_none() && unpack(&[1; 23]).is_none() && unpack(&[1; 25]).is_none());
    }
}
