//! Active messages: a message runs a handler at its target. Requests carry up to 16 arguments of 32 bits
//! (short), bytes as well (medium), or data that were put to an array of the target before (long); a handler
//! may answer its request once. On them stand records that are gathered into batches ([`Aggregator`]) and
//! remote procedures ([`Procedure`]), which are requests and answers with types.
//!
//! Invariant: every message is executed exactly once, on a thread of its target that waits in the runtime,
//! sends or polls. No PE stores more for another than was agreed on: a PE's messages lie in two rings of
//! `PELAGO_RING_SIZE` bytes, one for requests and one for answers, and over the net a PE has at most
//! 64 requests under way to each other ([`Room`]). Who waits for room executes what has arrived meanwhile,
//! and who waits for room for an answer executes answers; as their handlers send nothing, somebody always
//! can go on.
//!
//! Source: D. Bonachea and P. Hargrove, GASNet Specification, and the AM interface of GASNet-EX; the two
//! rings after T. von Eicken et al., Active Messages: a Mechanism for Integrated Communication and
//! Computation.

mod aggregator;
mod answer;
mod batch;
mod datum;
mod endpoint;
pub(crate) mod executor;
pub(crate) mod hub;
mod lane;
mod lock;
mod long;
mod message;
mod net;
mod poll;
mod prepared;
mod procedure;
pub(crate) mod replies;
mod table;
mod wire;

pub use aggregator::Aggregator;
pub use batch::Batch;
pub use datum::Datum;
#[cfg(feature = "serde")]
pub use datum::Serde;
pub use endpoint::Am;
pub use lock::{HandlerGuard, HandlerLock};
pub use message::Message;
pub use prepared::Prepared;
pub use procedure::{Procedure, Reply};
pub use table::Handlers;

use pelago_boot::Settings;
use pelago_fabric::shm::Layout;

/// The most arguments that a message carries.
pub const ARGS_MAX: usize = 16;

/// What active messages take of memory, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of a PE's rings of requests and of answers, together.
    pub rings_bytes: usize,
    /// Bytes of the longest payload of a medium message between PEs that map each other.
    pub medium_bytes: usize,
    /// Requests that a PE may have under way over the net to each other PE.
    pub net_window: u64,
}

impl Room {
    /// With these settings.
    pub fn new(settings: &Settings) -> Room {
        let ring_bytes = Layout::new(1, 1, settings.ring_bytes).ring_bytes;
        let medium_bytes = lane::message_bytes(ring_bytes) - wire::OVERHEAD_BYTES;
        Room { rings_bytes: 2 * ring_bytes, medium_bytes, net_window: hub::WINDOW }
    }
}

/// The number of a handler: its place among those of its endpoint, the same at every member. See
/// [`Handlers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handler(pub u16);
