//! Active messages below their endpoints: the rings and windows to each peer, the messages that have arrived,
//! and the threads that execute them. The interface is `pelago::am`.

mod answer;
pub mod endpoint;
mod far;
mod message;
pub mod message_state;
pub mod messaging;
pub mod peer_ring;
pub mod peers;
mod poll;
pub mod polls;
pub mod replies;
pub mod table;
pub mod window;
pub mod wire;

pub use message::Message;
pub use table::Handlers;

use pelago_boot::Settings;
use pelago_fabric::shm::Layout;

/// The most arguments that a message carries.
pub const ARGS_MAX: usize = 16;

/// The most memory that active messages take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of a PE's rings of requests and of replies, together.
    pub rings_bytes: usize,
    /// Bytes of the longest payload of a medium message where all PEs map each other; over a network it may
    /// take less, and then no message of the job has more.
    pub medium_bytes: usize,
    /// Requests that a PE may have under way over the network to each other PE.
    pub net_window: u64,
}

impl Room {
    /// With these settings.
    pub fn new(settings: &Settings) -> Room {
        let ring_bytes = Layout::new(1, 1, settings.ring_bytes).ring_bytes;
        let medium_bytes = peer_ring::message_bytes(ring_bytes) - wire::OVERHEAD_BYTES;
        Room { rings_bytes: 2 * ring_bytes, medium_bytes, net_window: far::WINDOW }
    }
}

/// The number of a handler: its place among those of its endpoint, the same at every member. See
/// [`Handlers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handler(pub u16);
