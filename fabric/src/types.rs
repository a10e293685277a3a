//! The types that all providers share: PEs, remote addresses, the three outcomes of the data plane, limits,
//! counters and errors.

use thiserror::Error;

/// The number of a processing element: 0 up to the number of PEs of the job.
pub type Pe = usize;

/// Key of a registered memory region. The application chooses it, the same at every PE.
pub type Key = u64;

/// An address in another PE's memory: a registered region and an offset into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Key under which the owner registered the region.
    pub key: Key,
    /// Distance from the start of the region, in bytes.
    pub offset_bytes: usize,
}

/// The outcome of a data-plane call. There is no fourth outcome: `progress` returns fatal errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Status {
    /// Complete at the target; the local buffer is free again. There is no event.
    Done,
    /// Accepted. It is complete once the matching counter of [`Completions`] has counted it and, if it has a
    /// token, [`Event::Done`] with the token was delivered. Until then the local buffer belongs to the
    /// provider.
    Pending,
    /// Not accepted, because resources are short: nothing has happened. Make progress and call again.
    Again,
}

/// The numbers of operations of an endpoint that have completed since it was opened (libfabric: completion
/// counters).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// Puts and atomics that fetch nothing and that are complete at their target, including those that
    /// returned [`Status::Done`].
    pub puts: u64,
    /// Gets and fetching atomics whose data have arrived, including those that returned [`Status::Done`].
    pub gets: u64,
}

/// Identifies an operation, or a group of them, for the caller that started it. The provider returns it and
/// does not interpret it.
pub type Token = u32;

/// An event that `progress` passes to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A message has arrived.
    Message {
        /// The sender.
        from: Pe,
        /// Its 64 bits.
        header: u64,
        /// The payload, which is valid until the handler returns.
        payload: &'a [u8],
    },
    /// The source of a put is reusable: the put is locally complete. It is delivered once for each put that
    /// has a token, returned [`Status::Pending`] and is longer than [`Limits::inject_bytes`], before its
    /// `Done`.
    Sent(Token),
    /// An operation that has a token and returned [`Status::Pending`] is complete. It is delivered once.
    Done(Token),
}

/// The limits of a provider, fixed when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest put whose source is reusable at return (libfabric: inject size), in bytes.
    pub inject_bytes: usize,
    /// Largest payload of one message, in bytes.
    pub message_bytes: usize,
    /// Largest put or get, in bytes.
    pub transfer_bytes: usize,
}

/// The possible causes of a corrupt ring, as a remedy.
pub const CORRUPT_REMEDY: &str = "A PE of this node has written to memory that is not its own: look for \
                                  stray pointers in the program";

/// A fatal error of a provider: it names the PE, the operation and the remedy.
#[derive(Debug, Error)]
pub enum FabricError {
    /// A system call failed.
    #[error("PE {pe}: {operation} failed: {reason}. {remedy}")]
    System {
        /// The PE that made the call.
        pe: Pe,
        /// The operation that was attempted.
        operation: String,
        /// The system's reason.
        reason: String,
        /// The remedy for the user.
        remedy: &'static str,
    },
    /// Peers on the node did not attach within the time limit.
    #[error("PE {pe}: waited {seconds} s for PEs {missing:?} to attach to the node's memory. {remedy}")]
    Missing {
        /// The PE that waited.
        pe: Pe,
        /// The time that it waited, in seconds.
        seconds: u64,
        /// The PEs that did not attach.
        missing: Vec<Pe>,
        /// The remedy for the user.
        remedy: &'static str,
    },
    /// The data of a peer are not what this version expects.
    #[error("PE {pe}: {what}. Are all PEs of the job the same build?")]
    Foreign {
        /// The PE that has detected it.
        pe: Pe,
        /// The description of the mismatch.
        what: String,
    },
    /// A ring of messages has contents that no PE of this version sends.
    #[error("PE {pe}: the message ring of PE {pe} is corrupt: {what}. {CORRUPT_REMEDY}")]
    CorruptRing {
        /// The owner of the ring, which has detected it.
        pe: Pe,
        /// The content found there, and the sender if it is known.
        what: String,
    },
    /// A transfer has failed.
    #[error(
        "PE {pe}: {operation} failed, to or from PE {peer}: {reason}. Has that PE ended, or its host? Is its \
         network reached from here? (PELAGO_TCP_INTERFACE, over libfabric PELAGO_OFI_INTERFACE)"
    )]
    Unreachable {
        /// The PE that has detected it.
        pe: Pe,
        /// The PE at the other end.
        peer: Pe,
        /// The operation that was under way.
        operation: &'static str,
        /// The fabric's reason.
        reason: String,
    },
    /// The fabric has given up a transfer, and does not report its peer.
    #[error("PE {pe}: a transfer over the fabric to another PE failed: {reason}")]
    TransferLost {
        /// The PE that has detected it.
        pe: Pe,
        /// The fabric's reason.
        reason: String,
    },
    /// A peer was lost.
    #[error("PE {pe}: lost its connection to PE {peer} during {operation}")]
    PeerLost {
        /// The PE that has detected it.
        pe: Pe,
        /// The PE that was lost.
        peer: Pe,
        /// The operation that was under way.
        operation: &'static str,
    },
}

/// Result of a control-plane call of a provider.
pub type FabricResult<T> = Result<T, FabricError>;
