//! Two-sided messages: sends and receives that are matched by context, source and tag.
//!
//! Protocols, by length. A *very short* message lies in the cell of a FIFO; a *short* one in the FIFO's data
//! area, from which the receiver copies it (both are eager); a *long* one is announced, and the receiver
//! reads it from the sender's memory where the system permits it, while a sender that waits copies a part of
//! it, and else asks for it in pieces. Over a network short messages are eager and long ones come in pieces.
//! Unsolicited messages that no receive has asked for are kept, up to a bound for each sender; after that the
//! FIFO stays full, or the sender has no more credit, so that its sends wait. A receive that waits and has no
//! message yet takes more.
//!
//! Invariant: a message from one PE to another never overtakes an earlier one that the same receive matches.
//! Source: H. Pritchard et al., "Message Passing Toolkit for the Cray XT3" for the protocols; MPI 4.1,
//! chapter 3, for the rules of matching.

mod arrive;
mod cma;
mod cooperative;
pub mod envelope;
pub mod hooks;
pub mod matching;
mod network;
pub mod operation;
mod outgoing;
pub mod packing;
mod peers;
pub mod process;
pub mod queue;
pub mod request;
pub mod state;
pub mod wire;

use self::state::MsgState;
use crate::messages::messaging::Messaging;
use hooks::ProgressHooks;
use std::ops::Deref;

/// A PE's active messages and all below, and its two-sided messages. The layer below comes first, so that
/// both have one address.
#[repr(C)]
pub struct TwoSided {
    pub messaging: Messaging,
    pub msg: MsgState,
    pub hooks: ProgressHooks,
}

impl Deref for TwoSided {
    type Target = Messaging;

    #[inline(always)]
    fn deref(&self) -> &Messaging {
        &self.messaging
    }
}
