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
}

/// Completes the sends and receives of a scope.
///
/// # Panics
/// If a message was longer than its slice, and nobody has asked for the outcome of the receive.
#[track_caller]
pub(crate) fn complete(world: &World, messages: &Messages) {
    for entry in messages.take() {
        let Entry::Open(id, room) = entry else { continue };
        let Status { source: source_pe, tag, bytes, .. } = world.core().wait_for_message(id);
        if bytes > room {
            let me = world.my_pe();
            panic!("{}", crate::Error::from(ErrorKind::MessageTruncated { me, source_pe, tag, bytes, room }));
        }
    }
}
