//! Active messages: a message runs a handler at its target. Requests carry up to 16 arguments of 32 bits
//! (short), bytes as well (medium), or data that were put to an array of the target before (long); a handler
//! may answer its request once. On them stand records that are gathered into batches ([`Aggregator`]) and
//! remote procedures ([`Procedure`]), which are requests and answers with types.
//!
//! Invariant: every message is executed exactly once, on a thread of its target that waits in the runtime,
//! sends or polls. Messages to a peer whose memory is mapped go through two rings of `PELAGO_RING_SIZE`
//! bytes, one for requests and one for answers, those to any other over the network, so that all messages of
//! one PE to another take one route and keep their order. No PE stores more for another than was agreed on: a
//! sender has a window for each peer, a share of its ring or 64 requests over the network ([`Room`]). A
//! sender that waits for room executes what has arrived meanwhile, and a handler that waits for room for an
//! answer executes answers; as their handlers send nothing, somebody always can go on.
//!
//! Source: D. Bonachea and P. Hargrove, GASNet Specification, and the AM interface of GASNet-EX; the two
//! rings after T. von Eicken et al., Active Messages: a Mechanism for Integrated Communication and
//! Computation.

mod aggregator;
mod answer;
mod batch;
mod datum;
mod endpoint;
mod far;
mod lock;
mod long;
mod message;
pub(crate) mod message_state;
mod peer_ring;
mod peers;
mod poll;
mod polls;
mod prepared;
mod procedure;
pub(crate) mod replies;
mod table;
mod window;
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
