//! The peers of a PE. Each is made at the first message to it or from it.

use super::state::{EagerBytes, Limits, Out, Peer, UNSOLICITED, are_of_one_process};
use crate::Pe;
use crate::coll::teams::Teams;
use pelago_fabric::lazy::LazyTable;
use pelago_fabric::shm::Segment;
use std::ops::{Index, IndexMut};

/// All peers, this PE included, by their numbers.
pub(super) struct Peers {
    table: LazyTable<Peer>,
    maker: Maker,
}

/// All that a new peer depends on.
struct Maker {
    me: Pe,
    segment: &'static Segment,
    /// The mapped PEs, ascending, and their slots in the node's memory.
    mapped: Box<[(Pe, usize)]>,
    limits: Limits,
    eager_bytes: EagerBytes,
    /// Bytes of the longest message over the network; 0 without one.
    net_message_bytes: usize,
    is_recording: bool,
}

impl Peers {
    /// The peers of a PE; `mapped` has those that it maps, ascending, and their slots.
    pub(super) fn new(
        world: &Teams,
        segment: &'static Segment,
        mapped: Box<[(Pe, usize)]>,
        (limits, eager_bytes): (Limits, EagerBytes),
    ) -> Peers {
        let maker = Maker {
            me: world.my_pe(),
            segment,
            mapped,
            limits,
            eager_bytes,
            net_message_bytes: world.net.as_ref().map_or(0, |net| net.message_bytes()),
            is_recording: world.tally.is_recording(),
        };
        Peers { table: LazyTable::new(world.n_pes()), maker }
    }

    /// The number of PEs of the job.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// The number of peers that were made.
    pub(super) fn made(&self) -> usize {
        self.table.made()
    }
}

impl Index<Pe> for Peers {
    type Output = Peer;

    #[inline(always)]
    fn index(&self, pe: Pe) -> &Peer {
        self.table.get_or_make(pe, |pe| self.maker.peer(pe))
    }
}

impl IndexMut<Pe> for Peers {
    #[inline(always)]
    fn index_mut(&mut self, pe: Pe) -> &mut Peer {
        let Peers { table, maker } = self;
        table.get_or_make_mut(pe, |pe| maker.peer(pe))
    }
}

impl Maker {
    fn slot(&self, pe: Pe) -> Option<usize> {
        let at = self.mapped.binary_search_by_key(&pe, |&(mapped, _)| mapped).ok()?;
        Some(self.mapped[at].1)
    }

    #[cold]
    fn peer(&self, pe: Pe) -> Peer {
        // A message to this PE itself takes no way at all.
        let slots = self.slot(pe).zip(self.slot(self.me)).filter(|_| pe != self.me);
        let out = slots.map(|(to, own)| Out::new(self.segment, to, own));
        // The words that travel with a payload.
        const HEADS_BYTES: usize = 16;
        let (most, eager_bytes) = match &out {
            Some(out) => {
                let is_own = slots.is_some_and(|(to, own)| are_of_one_process(self.segment, [to, own]));
                let eager_bytes = if is_own { self.eager_bytes.process } else { self.eager_bytes.node };
                (out.fifos[UNSOLICITED].message_bytes() - HEADS_BYTES, eager_bytes)
            }
            None => (self.net_message_bytes.saturating_sub(HEADS_BYTES), self.eager_bytes.net),
        };
        let eager_bytes = if pe == self.me { usize::MAX } else { eager_bytes.min(most) };
        let fast_below = if self.is_recording { 0 } else { eager_bytes.saturating_add(1) };
        Peer::new(out, (eager_bytes, fast_below), self.limits)
    }
}
