//! The words that every provider shares: PEs, remote addresses, the three outcomes of the data plane, limits,
//! counters and errors.

use std::os::fd::OwnedFd;
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

/// What became of a data-plane call. There is no fourth outcome: fatal errors surface in `progress`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Status {
    /// Complete at the target; the local buffer is free again. No event comes.
    Done,
    /// Accepted. It is complete once the matching counter of [`Completions`] has counted it, and
    /// [`Event::Done`] with its token has come if it was given one; until then the local buffer belongs to
    /// the provider.
    Pending,
    /// Not accepted for want of resources: nothing has happened. Make progress and call again.
    Again,
}

/// What rings when there may be something to do at an endpoint.
#[derive(Debug)]
pub struct Bell {
    /// Readable when it rings.
    pub descriptor: OwnedFd,
    /// Whether what is urgent, puts and gets of other PEs, waits for somebody to answer it.
    pub is_urgent: bool,
}

/// How many operations of this endpoint have completed since it was opened (libfabric: completion counters).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// Puts and atomics that fetch nothing, complete at their target, also those that answered
    /// [`Status::Done`].
    pub puts: u64,
    /// Gets and fetching atomics whose data have arrived, also those that answered [`Status::Done`].
    pub gets: u64,
}

/// Names an operation, or a group of them, to whoever started it. The provider hands it back and does not
/// look at it.
pub type Token = u32;

/// What `progress` hands to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A message has arrived.
    Message {
        /// The sender.
        from: Pe,
        /// Its 64 bits.
        header: u64,
        /// What follows them; gone when the handler returns.
        payload: &'a [u8],
    },
    /// The source of a put is reusable: the put is locally complete. Comes once for each put that was given a
    /// token, answered [`Status::Pending`] and is longer than [`Limits::inject_bytes`]; before its `Done`.
    Sent(Token),
    /// An operation that was given a token and answered [`Status::Pending`] is complete. Comes once.
    Done(Token),
}

/// What a provider can do, fixed when it is opened.
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

/// A fatal error of a provider: it names the PE, the operation and what to do.
#[derive(Debug, Error)]
pub enum FabricError {
    /// A system call failed.
    #[error("PE {pe}: {operation} failed: {reason}. {remedy}")]
    System {
        /// The PE that made the call.
        pe: Pe,
        /// What was attempted.
        operation: String,
        /// The system's reason.
        reason: String,
        /// What the user can do.
        remedy: &'static str,
    },
    /// Peers on the node did not come within the time limit.
    #[error("PE {pe}: waited {seconds} s for PEs {missing:?} to attach to the node's memory. {remedy}")]
    Missing {
        /// The PE that waited.
        pe: Pe,
        /// How long it waited, in seconds.
        seconds: u64,
        /// The PEs that did not come.
        missing: Vec<Pe>,
        /// What the user can do.
        remedy: &'static str,
    },
    /// What a peer handed over is not what this version expects.
    #[error("PE {pe}: {what}. Are all PEs of the job the same build?")]
    Foreign {
        /// The PE that noticed.
        pe: Pe,
        /// What does not fit.
        what: String,
    },
    /// A ring of messages has contents that no PE of this version sends.
    #[error("PE {pe}: the message ring of PE {pe} is corrupt: {what}. {CORRUPT_REMEDY}")]
    CorruptRing {
        /// The PE whose ring it is, which has noticed.
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
        /// The PE that noticed.
        pe: Pe,
        /// The PE at the other end.
        peer: Pe,
        /// What was going on.
        operation: &'static str,
        /// The reason that the fabric gives.
        reason: String,
    },
    /// The fabric has given up a transfer, and does not say to which peer.
    #[error("PE {pe}: a transfer over the fabric to another PE failed: {reason}")]
    TransferLost {
        /// The PE that noticed.
        pe: Pe,
        /// The reason that the fabric gives.
        reason: String,
    },
    /// A peer was lost.
    #[error("PE {pe}: lost its connection to PE {peer} during {operation}")]
    PeerLost {
        /// The PE that noticed.
        pe: Pe,
        /// The PE that is gone.
        peer: Pe,
        /// What was going on.
        operation: &'static str,
    },
}

/// Result of a control-plane call of a provider.
pub type FabricResult<T> = Result<T, FabricError>;
