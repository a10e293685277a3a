//! The peers of a PE, this one included: how a message gets to each of them.
//!
//! Invariant: all messages to a peer take the same route, its rings if its memory is mapped here, and the
//! network otherwise. Both routes keep the order of the requests that one PE sends to another, and the order
//! of the replies.

use super::far::Far;
use super::messaging::Messaging;
use super::peer_ring::PeerRing;
use super::polls::Polls;
use super::wire::OVERHEAD_BYTES;
use crate::Pe;
use pelago_fabric::lazy::LazyTable;
use pelago_fabric::shm::Segment;
use pelago_fabric::shm::ring::Ring;
use std::sync::Arc;

/// All peers, and the rings in which this PE receives from those that are mapped.
pub struct Peers {
    /// By PE. A peer is made when there is a message for it, or from it.
    peers: LazyTable<Peer>,
    /// PEs whose memory is mapped, this one included.
    n_mapped: usize,
    pub polls: Polls,
    /// This PE's rings of requests and of replies, if any PE maps its memory.
    rings: Option<[Ring<'static>; 2]>,
    /// Bytes of the longest payload of a medium message, to whatever peer.
    pub medium_max: usize,
    /// Where the rings lie.
    segment: Arc<Segment>,
}

/// One of them.
pub struct Peer {
    pe: Pe,
    route: Route,
}

enum Route {
    /// Through rings in shared memory.
    PeerRing(PeerRing),
    /// Over the network.
    Far(Far),
}

impl Peers {
    /// Bytes that the table of peers reserves in a job of `n_pes` PEs, from the first message on.
    pub const fn reserved_bytes(n_pes: usize) -> usize {
        LazyTable::<Peer>::reserved_bytes(n_pes)
    }

    /// Bytes of a peer, from the first message to it or from it on.
    pub const fn peer_bytes() -> usize {
        LazyTable::<Peer>::entry_bytes()
    }

    /// The number of peers that were made.
    pub fn made(&self) -> usize {
        self.peers.made()
    }

    pub fn new(world: &Messaging) -> Peers {
        let (memory, me) = (&world.memory, world.my_pe());
        let segment = Arc::clone(memory.segment());
        let n_mapped = (0..world.n_pes()).filter(|&pe| memory.is_mapped(pe)).count();
        let own = Peer::new(world, &segment, n_mapped, me);
        let rings = own.peer_ring().map(PeerRing::rings);
        // SAFETY: the rings lie in the segment, which is kept beside the polls.
        let polls = unsafe { Polls::new(rings.as_ref(), world.net.is_some()) };
        let by_ring = own.peer_ring().map(PeerRing::message_bytes);
        let over_net = world.net.as_ref().map(|net| net.message_bytes());
        let message_bytes = by_ring.into_iter().chain(over_net).min().unwrap_or(0);
        let medium_max = message_bytes.saturating_sub(OVERHEAD_BYTES);
        let peers = LazyTable::new(world.n_pes());
        Peers { peers, n_mapped, polls, rings, medium_max, segment }
    }

    /// A PE of the job.
    #[inline(always)]
    pub fn of(&self, world: &Messaging, pe: Pe) -> &Peer {
        self.peers.get_or_make(pe, |pe| Peer::new(world, &self.segment, self.n_mapped, pe))
    }

    /// Whether a PE that a ring names as a sender can write to that ring: any PE may have written the name
    /// there.
    #[inline]
    pub fn is_sender_of_ring(&self, world: &Messaging, pe: Pe) -> bool {
        pe < self.peers.len() && self.of(world, pe).is_mapped()
    }

    /// The ring of this PE for requests (kind 0) or replies (kind 1), if there is one.
    #[inline]
    pub fn ring(&self, kind: usize) -> Option<&Ring<'static>> {
        self.rings.as_ref().map(|rings| &rings[kind])
    }
}

impl Peer {
    /// The peer with number `pe` of a PE that maps `n_mapped` PEs in this segment, which outlives the peer.
    fn new(world: &Messaging, segment: &Segment, n_mapped: usize, pe: Pe) -> Peer {
        let memory = &world.memory;
        let route = match memory.slot(pe).filter(|_| memory.is_mapped(pe)) {
            // SAFETY: the segment is kept beside the peers.
            Some(slot) => Route::PeerRing(unsafe { PeerRing::new(segment, slot, n_mapped) }),
            None => Route::Far(Far::new()),
        };
        Peer { pe, route }
    }

    pub fn pe(&self) -> Pe {
        self.pe
    }

    /// Whether messages to it go through its rings.
    #[inline]
    pub fn is_mapped(&self) -> bool {
        self.peer_ring().is_some()
    }

    /// The peer ring to it, if it is mapped.
    #[inline(always)]
    pub fn peer_ring(&self) -> Option<&PeerRing> {
        match &self.route {
            Route::PeerRing(peer_ring) => Some(peer_ring),
            Route::Far(_) => None,
        }
    }

    /// Its state, if it is reached over the network.
    pub fn far(&self) -> Option<&Far> {
        match &self.route {
            Route::PeerRing(_) => None,
            Route::Far(far) => Some(far),
        }
    }

    /// Sends a request; `false` if there is no room for it now.
    #[inline]
    pub fn try_request(&self, world: &Messaging, header: u64, words: &[u64], payload: &[u8]) -> bool {
        match &self.route {
            Route::PeerRing(peer_ring) => peer_ring.try_request(world.my_pe(), header, words, payload),
            Route::Far(far) => far.try_request(world, self.pe, header, words, payload),
        }
    }

    /// Sends a reply; `false` if there is no room for it now.
    pub fn try_answer(&self, world: &Messaging, header: u64, words: &[u64], payload: &[u8]) -> bool {
        match &self.route {
            Route::PeerRing(peer_ring) => peer_ring.try_answer(world.my_pe(), header, words, payload),
            Route::Far(_) => {
                world.answer_over_net(self.pe, header, words, payload);
                true
            }
        }
    }
}

impl Messaging {
    /// Sends a request for a handler of a PE; `false` if there is no room for it now.
    pub fn try_active(&self, pe: Pe, header: u64, words: &[u64], payload: &[u8]) -> bool {
        self.am.peers(self).of(self, pe).try_request(self, header, words, payload)
    }
}
