//! The two-sided messages of a scope: sends and receives that are complete when it ends.

use crate::world::World;
use pelago_core::base::error::ErrorKind;
use pelago_core::msg::request::{RequestId, Status};
use std::cell::RefCell;

/// The sends and receives of a scope.
pub(crate) type Messages = RefCell<Vec<Entry>>;

/// A send or a receive of a scope.
#[derive(Clone, Copy)]
pub(crate) enum Entry {
    /// Under way; with the length of a receive's slice.
    Open(RequestId, usize),
    Done(Status),
    /// A message that was longer than the slice, if nobody has asked for the outcome yet.
    TooLong(Status, usize),
}

/// Whether sends or receives are under way, as far as is known.
pub(crate) fn are_open(messages: &Messages) -> bool {
    messages.borrow().iter().any(|entry| matches!(entry, Entry::Open(..)))
}

/// Completes the sends and receives of a scope.
///
/// # Panics
/// If a message was longer than its slice, and nobody has asked for the outcome of the receive.
#[track_caller]
pub(crate) fn complete(world: &World, messages: &Messages) {
    let (entries, mut too_long) = (messages.take(), None);
    for entry in &entries {
        if let &Entry::TooLong(status, room) = entry {
            too_long = Some((status, room));
        }
    }
    let open = || {
        entries
            .iter()
            .filter_map(|entry| if let &Entry::Open(id, room) = entry { Some((id, room)) } else { None })
    };
    let mut rooms = open().map(|(_, room)| room);
    world.core().wait_for_messages(open().map(|(id, _)| id), |_, status| {
        let room = rooms.next().expect("each of them has a room");
        if status.bytes > room {
            too_long = Some((status, room));
        }
    });
    if let Some((Status { source: source_pe, tag, bytes, .. }, room)) = too_long {
        let me = world.my_pe();
        panic!("{}", crate::Error::from(ErrorKind::MessageTruncated { me, source_pe, tag, bytes, room }));
    }
}
