//! Datagrams: the quick way of short frames.
//!
//! The system takes a third less time to carry some bytes in a datagram (UDP) than over a connection. So each
//! pair of processes has a pair of UDP sockets beside its connection, and frames that fit into one datagram
//! travel in one. The connection makes the datagrams reliable: what has not arrived is sent again over it.
//!
//! ```text
//! | frames | token 8 | position 8 | received 8 |
//! ```
//! The bytes of all frames to a process are numbered: connection and datagrams carry parts of one sequence.
//! `position` is the number of the first byte of the frames, `received` the number up to which the sender of
//! the datagram has received the bytes of the other direction. Its highest bit says that datagrams of that
//! direction arrive. `token` is a random number that the receiver has told the sender over the connection,
//! after the proofs: a datagram without it is ignored. A datagram may have no frames.
//!
//! ```text
//!            frames fit, and all before are acknowledged
//!        +--------------------------------------------------+
//!        |                                                  v
//! over the connection                              run of datagrams
//!        ^                                                  |
//!        +--------------------------------------------------+
//!            frames do not fit, the run is long, or it was not acknowledged in time:
//!            a frame `Repeat`, the bytes of the run that are not acknowledged, then the other frames
//! ```
//! Invariants:
//! * The sender keeps the bytes of a run until they are acknowledged. Within a run, nothing is sent over the
//!   connection. So a `Repeat` says which bytes follow it, and where the run has ended.
//! * The receiver takes the bytes of the sequence in their order. It keeps a datagram that comes early, drops
//!   one that comes late, and drops what a `Repeat` brings a second time. After a `Repeat` it takes no
//!   datagrams of that run, as the connection brings them.
//! * Nothing depends on datagrams: a network that does not carry them, or loses some, costs time alone.
//!   Frames of peers beyond the first [`PEERS_MAX`] travel over the connections.
//!
//! After a reset of the connection a pair of processes uses no datagrams (`resume.rs`), nor does an encrypted
//! connection. [`ticker`] says when datagrams are acknowledged and when they are given up.
//!
//! | file | holds |
//! |---|---|
//! | `open` | how the two sockets find each other |
//! | `sender`, `receiver` | the two directions |
//! | `socket` | system calls |
//! | `ticker` | acknowledgements, and what is not acknowledged in time |

mod open;
mod receiver;
mod sender;
mod socket;
#[cfg(test)]
mod tests;
mod ticker;

pub(super) use open::DatagramSocket;
pub(super) use receiver::{DatagramReceiver, Look, ROOM_BYTES};
pub(super) use sender::DatagramSender;
pub(super) use ticker::Ticker;

use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// Bytes behind the frames of a datagram.
pub(super) const TRAILER_BYTES: usize = 24;
/// The most bytes of frames in a datagram, where the network carries as many in one packet.
pub(super) const FRAMES_BYTES_MAX: usize = (4 << 10) + 256;
/// The most bytes and datagrams of a run that are not acknowledged: the socket of the receiver has room for
/// them.
pub(super) const RUN_BYTES_MAX: usize = 16 << 10;
pub(super) const RUN_DATAGRAMS_MAX: u32 = 32;

/// The most peers for which a process opens sockets for datagrams: those that it has to do with first. Each
/// socket takes a port of the machine's address from all programs, of which there are 28,232 by default.
pub(super) const PEERS_MAX: usize = 32;

/// The bit of `received` that says that datagrams arrive.
const ARRIVE: u64 = 1 << 63;

/// The end of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Trailer {
    token: u64,
    position: u64,
    received: u64,
}

impl Trailer {
    #[inline]
    fn to_bytes(self) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        bytes[..8].copy_from_slice(&self.token.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.position.to_ne_bytes());
        bytes[16..].copy_from_slice(&self.received.to_ne_bytes());
        bytes
    }

    /// Splits a datagram into its frames and its end; `None` if it is too short.
    #[inline]
    fn split(datagram: &[u8]) -> Option<(&[u8], Trailer)> {
        let (frames, bytes) = datagram.split_last_chunk::<TRAILER_BYTES>()?;
        let (words, _) = bytes.as_chunks();
        let [token, position, received] = [words[0], words[1], words[2]].map(u64::from_ne_bytes);
        Some((frames, Trailer { token, position, received }))
    }
}

/// The state that the two directions share: the receiver of datagrams writes it, their sender reads it.
#[derive(Default)]
pub(super) struct Reports {
    /// The field `received` of datagrams to the peer.
    received: AtomicU64,
    /// Whether the peer waits for a datagram that has it.
    is_owed: AtomicBool,
    /// The position up to which the peer has received.
    acknowledged: AtomicU64,
    /// Whether the peer has said that datagrams arrive there.
    arrive: AtomicBool,
}

impl Reports {
    /// Takes the report of a datagram. Datagrams may overtake each other.
    #[inline]
    fn take(&self, received: u64) {
        // Nothing is read by means of these numbers, so Relaxed is enough.
        self.acknowledged.fetch_max(received & !ARRIVE, Ordering::Relaxed);
        if received & ARRIVE != 0 && !self.arrive.load(Ordering::Relaxed) {
            self.arrive.store(true, Ordering::Relaxed);
        }
    }
}
