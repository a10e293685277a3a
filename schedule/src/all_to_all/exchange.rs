//! The exchange of blocks with other ranks, one rank in each round, for every layout of the blocks.
//!
//! A block that can go straight into the other rank's target is one message. Otherwise, a block that fits in
//! a mailbox goes there, and for a larger block the receiver announces to the sender where it goes. Elements
//! that are not contiguous are packed before they are sent and unpacked after they have arrived.
//!
//! Invariant: both ends use the same path for a block, as both know its length and the layout. An empty block
//! of [`Blocks::Exchanged`] causes no step at either end.

use crate::schedule::{Builder, Place, Rank, Remote};
use crate::shape::{Blocks, Shape};

/// The exchange of blocks with other ranks.
pub(super) struct Exchange<'a> {
    shape: &'a Shape,
    /// Number of rounds that may be in flight at the same time.
    rooms: usize,
    /// The pack buffers, one for each round in flight, if blocks are packed.
    pack: Option<Place>,
    /// The buffers for blocks that are unpacked after they arrive, one for each round in flight, if there are
    /// such blocks.
    spread: Option<Place>,
}

/// The path of a block to another rank.
enum Way {
    /// There is nothing to send.
    None,
    /// Into the target, at its place among blocks of one size.
    Target,
    /// Into the mailbox.
    Mailbox,
    /// Into the buffer that the receiver announces.
    Announced,
}

impl<'a> Exchange<'a> {
    /// An exchange in which `rooms` rounds may be in flight at the same time.
    pub fn new(shape: &'a Shape, b: &mut Builder, rooms: usize) -> Exchange<'a> {
        let (mut pack, mut spread) = (None, None);
        if let Blocks::Strided { source, target } = shape.blocks {
            let block = shape.block_bytes();
            pack = (source != 1).then(|| b.scratch(rooms * block));
            spread = (target != 1 && block > b.mailbox_bytes()).then(|| b.scratch(rooms * block));
        }
        Exchange { shape, rooms, pack, spread }
    }

    /// Copies the block that this rank keeps for itself.
    pub fn keep(&self, b: &mut Builder) {
        let (me, shape) = (self.shape.rank, self.shape);
        let (from, bytes) = self.source(me);
        match shape.blocks {
            Blocks::Strided { source, target } => self.strided(b, (from, source), (self.target(me), target)),
            _ => b.copy(from, self.target(me), bytes),
        }
    }

    /// Announces to the sender of a round where its block goes, if the sender needs an announcement.
    pub fn expect(&self, b: &mut Builder, of: Rank, round: usize) {
        if let Way::Announced = self.way(self.bytes_from(of), b) {
            let place = self.spread.map_or(self.target(of), |spread| self.room(spread, round));
            b.announce(of, self.announcement(round), place);
        }
    }

    /// Sends the block of a round. A pack buffer that was used before must be free, see
    /// [`packs`](Exchange::packs).
    pub fn send(&self, b: &mut Builder, to: Rank, round: usize) {
        let (mut from, bytes) = self.source(to);
        if let (Blocks::Strided { source, .. }, Some(pack)) = (&self.shape.blocks, self.pack) {
            let room = self.room(pack, round);
            self.strided(b, (from, *source), (room, 1));
            from = room;
        }
        match self.way(bytes, b) {
            Way::None => {}
            Way::Target => {
                let into = Remote::Target(self.shape.rank * self.shape.block_bytes());
                b.put_signal(to, from, into, bytes, round);
            }
            Way::Mailbox => b.send(to, from, bytes, round),
            Way::Announced => {
                let slot = self.announcement(round);
                b.wait(to, slot);
                b.put_signal(to, from, Remote::Announced { slot, offset: 0 }, bytes, round);
            }
        }
    }

    /// Waits for the block of a round and moves it to its place.
    pub fn receive(&self, b: &mut Builder, of: Rank, round: usize) {
        let (bytes, into) = (self.bytes_from(of), self.target(of));
        let way = self.way(bytes, b);
        if !matches!(way, Way::None) {
            b.wait(of, round);
        }
        let from = match (way, self.spread) {
            (Way::Mailbox, _) => Place::mailbox(round),
            (Way::Announced, Some(spread)) => self.room(spread, round),
            _ => return,
        };
        match self.shape.blocks {
            Blocks::Strided { target, .. } => self.strided(b, (from, 1), (into, target)),
            _ => b.copy(from, into, bytes),
        }
    }

    /// Whether blocks are packed before they are sent, so that a pack buffer is free only when its put is
    /// complete.
    pub fn packs(&self) -> bool {
        self.pack.is_some()
    }

    fn way(&self, bytes: usize, b: &Builder) -> Way {
        match self.shape.blocks {
            Blocks::Exchanged { .. } if bytes == 0 => Way::None,
            Blocks::Exchanged { .. } | Blocks::Strided { target: 2.., .. } => {
                match bytes <= b.mailbox_bytes() {
                    true => Way::Mailbox,
                    false => Way::Announced,
                }
            }
            _ => Way::Target,
        }
    }

    /// The sender's slot for the announcement of a round; the slots of the blocks are the numbers of the
    /// rounds.
    fn announcement(&self, round: usize) -> usize {
        self.shape.n + round
    }

    fn room(&self, rooms: Place, round: usize) -> Place {
        rooms.plus(round % self.rooms * self.shape.block_bytes())
    }

    /// The place of the block for a rank, and its size in bytes.
    fn source(&self, to: Rank) -> (Place, usize) {
        let (size, block) = (self.shape.element_bytes, self.shape.block_bytes());
        match &self.shape.blocks {
            Blocks::Exchanged { source, .. } => (Place::source(source[to].0 * size), source[to].1 * size),
            Blocks::Strided { source, .. } => (Place::source(to * block * source), block),
            _ => (Place::source(to * block), block),
        }
    }

    /// The final place of the block of a rank.
    fn target(&self, of: Rank) -> Place {
        let block = self.shape.block_bytes();
        match &self.shape.blocks {
            Blocks::Exchanged { target, .. } => Place::target(target[of].0 * self.shape.element_bytes),
            Blocks::Strided { target, .. } => Place::target(of * block * target),
            _ => Place::target(of * block),
        }
    }

    fn bytes_from(&self, of: Rank) -> usize {
        match &self.shape.blocks {
            Blocks::Exchanged { target, .. } => target[of].1 * self.shape.element_bytes,
            _ => self.shape.block_bytes(),
        }
    }

    /// Copies a block between two places, each with its stride in elements.
    fn strided(&self, b: &mut Builder, (from, every): (Place, usize), (into, apart): (Place, usize)) {
        let size = self.shape.element_bytes;
        match (every, apart) {
            (1, 1) => b.copy(from, into, self.shape.block_bytes()),
            _ => b.copy_strided((from, every * size), (into, apart * size), size, self.shape.count),
        }
    }
}
