//! Active messages: a message runs a handler at its target. Requests carry up to 16 arguments of 32 bits
//! (short), bytes as well (medium), or data that were put to an array of the target before (long); a handler
//! may answer its request once. Two interfaces are built on them: records that are gathered into batches
//! ([`Aggregator`]), and remote procedures ([`Procedure`]), which are requests and replies with types.
//!
//! Invariant: every message is executed exactly once, on a thread of its target that waits in the runtime,
//! sends or polls. Messages to a peer whose memory is mapped go through two rings of `PELAGO_RING_SIZE`
//! bytes, one for requests and one for replies. Messages to any other peer go over the network. So all
//! messages of one PE to another take one route and keep their order. No PE stores more for another than
//! their window: a sender has a window for each peer, a share of its ring or 64 requests over the network
//! ([`Room`]). A sender that waits for room executes the messages that have arrived meanwhile, and a handler
//! that waits for room for a reply executes replies; as the handlers of replies send nothing, some PE can
//! always go on.
//!
//! Source: D. Bonachea and P. Hargrove, GASNet Specification, and the AM interface of GASNet-EX; the two
//! rings after T. von Eicken et al., Active Messages: a Mechanism for Integrated Communication and
//! Computation.

mod aggregator;
mod batch;
mod endpoint;
mod lock;
mod long;
mod message;
mod prepared;
mod procedure;
#[cfg(feature = "serde")]
mod serde;

pub use aggregator::Aggregator;
pub use batch::Batch;
pub use endpoint::Am;
pub use lock::{HandlerGuard, HandlerLock};
pub use message::{Handlers, Message};
pub use prepared::Prepared;
pub use procedure::{Procedure, Reply};

#[cfg(feature = "serde")]
pub use self::serde::Serde;
pub use pelago_core::base::datum::Datum;
pub use pelago_core::messages::{ARGS_MAX, Handler, Room};
