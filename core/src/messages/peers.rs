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
use pelago_fabric::shm::Segment;
use pelago_fabric::shm::ring::Ring;
use std::sync::Arc;

/// All peers, and the rings in which this PE receives from those that are mapped.
pub struct Peers {
    peers: Box<[Peer]>,
    pub polls: Polls,
    /// This PE's rings of requests and of replies, if any PE maps its memory.
    rings: Option<[Ring<'static>; 2]>,
    /// Bytes of the longest payload of a medium message, to whatever peer.
    pub medium_max: usize,
    /// Where the rings lie.
    _segment: Arc<Segment>,
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
    /// Bytes of the peers of a job of `n_pes` PEs.
    pub const fn table_bytes(n_pes: usize) -> usize {
        n_pes * size_of::<Peer>()
    }

    pub fn new(world: &Messaging) -> Peers {
        let (memory, me) = (&world.memory, world.my_pe());
        let segment = Arc::clone(memory.segment());
        let n_mapped = (0..world.n_pes()).filter(|&pe| memory.is_mapped(pe)).count();
        let peer = |pe| {
            let slot = memory.slot(pe).filter(|_| memory.is_mapped(pe));
            let route = match slot {
                // SAFETY: the segment is kept beside the peers.
                Some(slot) => Route::PeerRing(unsafe { PeerRing::new(&segment, slot, n_mapped) }),
                None => Route::Far(Far::new()),
            };
            Peer { pe, route }
        };
        let peers: Box<[Peer]> = (0..world.n_pes()).map(peer).collect();
        let own = peers[me].peer_ring();
        let rings = own.map(PeerRing::rings);
        // SAFETY: the rings lie in the segment, which is kept beside the polls.
        let polls = unsafe { Polls::new(rings.as_ref(), world.net.is_some()) };
        let by_ring = own.map(PeerRing::message_bytes);
        let over_net = world.net.as_ref().map(|net| net.message_bytes());
        let message_bytes = by_ring.into_iter().chain(over_net).min().unwrap_or(0);
        let medium_max = message_bytes.saturating_sub(OVERHEAD_BYTES);
        Peers { peers, polls, rings, medium_max, _segment: segment }
    }

    /// A PE of the job.
    #[inline(always)]
    pub fn of(&self, pe: Pe) -> &Peer {
        &self.peers[pe]
    }

    /// Whether a PE that a ring names as a sender can write to that ring: any PE may have written the name
    /// there.
    #[inline]
    pub fn is_sender_of_ring(&self, pe: Pe) -> bool {
        self.peers.get(pe).is_some_and(Peer::is_mapped)
    }

    /// The ring of this PE for requests (kind 0) or replies (kind 1), if there is one.
    #[inline]
    pub fn ring(&self, kind: usize) -> Option<&Ring<'static>> {
        self.rings.as_ref().map(|rings| &rings[kind])
    }
}

impl Peer {
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
        self.am.peers(self).of(pe).try_request(self, header, words, payload)
    }
}
