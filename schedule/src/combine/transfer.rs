//! Transfers of operands to the rank that combines them.
//!
//! An operand that fits in a mailbox is sent into it. A larger one needs a buffer at the receiver: its
//! target, if both ends know that it is free; otherwise scratch memory that the receiver announces, if
//! possible long before the data are ready. Mailboxes without a limit are messages: then a large operand
//! also goes to a target that is free, and need not be copied there.
//!
//! Invariant: a buffer is announced again only after its previous contents have been combined. Both ends
//! decide by the number of bytes and by whether the target is free, so they agree.

use crate::schedule::{Builder, Place, Rank, Remote, Slot};

/// Up to this many bytes a copy costs less than what it spares: that a rank waits until its target has been
/// read, or that a receive is posted before the message comes.
pub const COPIED_BYTES: usize = 4 << 10;

/// Up to this many bytes each sum of an operation may have a place of its own, so that no rank waits until
/// the one before has been read. With mailboxes without a limit, large operations would take many times the
/// memory of their operands.
const SPREAD_BYTES: usize = 128 << 10;

/// Whether the sums of an operation on blocks of `bytes` bytes have places of their own.
pub fn has_room_for_sums(b: &Builder, bytes: usize) -> bool {
    bytes <= b.mailbox_bytes().min(SPREAD_BYTES)
}

/// Whether an operand goes to a mailbox.
fn takes_mailbox(b: &Builder, bytes: usize, into_target: bool) -> bool {
    bytes <= b.mailbox_bytes() && !(into_target && bytes > COPIED_BYTES)
}

/// The slots of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// The slot of the receiver which signals that the data have arrived.
    pub data: Slot,
    /// The slot of the sender in which the receiver announces a buffer.
    pub room: Slot,
}

/// A transfer that a rank expects.
#[derive(Clone, Copy, Debug)]
pub struct Incoming {
    /// The rank that sends.
    pub of: Rank,
    /// The slots.
    pub wire: Wire,
    /// Whether an operand that is large, or exceeds a mailbox, goes to the start of the target. Only for the
    /// first transfer.
    pub into_target: bool,
}

/// Number of buffers of an [`Inbox`]: one is filled while the other is combined.
const ROOMS: usize = 2;

/// Transfers of one size that a rank expects one after the other.
#[derive(Debug)]
pub struct Inbox {
    bytes: usize,
    expected: Vec<Incoming>,
    /// How many of the first transfers need no announcement: 0 or 1.
    unannounced: usize,
    rooms: Vec<Place>,
    announced: usize,
    received: usize,
}

impl Inbox {
    /// Expects these transfers of `bytes` bytes, in this order, and announces buffers for the first ones.
    pub fn open(b: &mut Builder, bytes: usize, expected: Vec<Incoming>) -> Inbox {
        let unannounced = usize::from(expected.first().is_some_and(|first| first.into_target));
        debug_assert!(expected.iter().skip(1).all(|later| !later.into_target));
        let rooms = match bytes > b.mailbox_bytes() {
            true => (expected.len() - unannounced).min(ROOMS),
            false => 0,
        };
        let rooms = (0..rooms).map(|_| b.scratch(bytes)).collect();
        let mut inbox = Inbox { bytes, expected, unannounced, rooms, announced: unannounced, received: 0 };
        inbox.release(b);
        inbox
    }

    /// Waits for the next transfer. Returns the place of its data.
    pub fn receive(&mut self, b: &mut Builder) -> Place {
        let Incoming { of, wire, into_target } = self.expected[self.received];
        b.wait(of, wire.data);
        let place = if takes_mailbox(b, self.bytes, into_target) {
            Place::mailbox(wire.data)
        } else if into_target {
            Place::target(0)
        } else {
            self.room(self.received)
        };
        self.received += 1;
        place
    }

    /// All operands that were received so far have been combined: their buffers are free for others.
    pub fn release(&mut self, b: &mut Builder) {
        let free = self.received.max(self.unannounced) + self.rooms.len();
        while !self.rooms.is_empty() && self.announced < free.min(self.expected.len()) {
            let Incoming { of, wire, .. } = self.expected[self.announced];
            b.announce(of, wire.room, self.room(self.announced));
            self.announced += 1;
        }
    }

    fn room(&self, number: usize) -> Place {
        self.rooms[(number - self.unannounced) % self.rooms.len()]
    }
}

/// Sends an operand to a rank that has an [`Inbox`] for it.
pub fn give(b: &mut Builder, to: Rank, from: Place, bytes: usize, wire: Wire, into_target: bool) {
    if takes_mailbox(b, bytes, into_target) {
        b.send(to, from, bytes, wire.data);
    } else if into_target {
        b.put_signal(to, from, Remote::Target(0), bytes, wire.data);
    } else {
        b.wait(to, wire.room);
        deliver(b, to, from, bytes, Remote::Announced { slot: wire.room, offset: 0 }, wire.data);
    }
}

/// Sends an operand to a rank that receives it with [`take`]. An operand that does not fit in a mailbox goes
/// into `room`, whose announcement has been waited for.
pub fn deliver(b: &mut Builder, to: Rank, from: Place, bytes: usize, room: Remote, slot: Slot) {
    if bytes <= b.mailbox_bytes() {
        b.send(to, from, bytes, slot);
    } else {
        b.put_signal(to, from, room, bytes, slot);
    }
}

/// Waits for an operand that another rank delivers. Returns its place.
pub fn take(b: &mut Builder, of: Rank, bytes: usize, room: Place, slot: Slot) -> Place {
    b.wait(of, slot);
    if bytes <= b.mailbox_bytes() { Place::mailbox(slot) } else { room }
}
