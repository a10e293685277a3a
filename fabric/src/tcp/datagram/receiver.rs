//! The receiver of datagrams from a process.

use super::socket;
use super::ticker::Ticker;
use super::{ARRIVE, FRAMES_BYTES_MAX, RUN_DATAGRAMS_MAX, Reports, TRAILER_BYTES, Trailer};
use crate::sync::Ordering;
use std::os::fd::RawFd;
use std::sync::Arc;

/// The most bytes that a datagram may have here: more than any that is sent.
pub(in super::super) const ROOM_BYTES: usize = FRAMES_BYTES_MAX + TRAILER_BYTES + 1;
/// A call reads at most this number of datagrams. If none of them has the next frames, it returns nothing.
const OTHERS_MAX: usize = 8;
/// While one way has brought the last frames, the other is looked at once in this number of looks.
const LOOKS_PER_OTHER: u8 = 8;

/// Where a look for frames is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Look {
    /// At the connection.
    Connection,
    /// At the socket for datagrams.
    Datagrams,
    /// Where the last frames have come from, and now and then at the other place.
    Likely,
    /// At both, until they have nothing.
    Everywhere,
}

/// The receiver of datagrams from a process. It belongs to the receiver of the connection.
pub(in super::super) struct DatagramReceiver {
    socket: RawFd,
    /// The token that the peer was told.
    token: u64,
    reports: Arc<Reports>,
    ticker: Arc<Ticker>,
    /// Datagrams that have come early, and their positions.
    early: Vec<(u64, Vec<u8>)>,
    /// Datagrams of earlier positions are dropped.
    first: u64,
    /// Whether the last frames have come in a datagram.
    is_likely: bool,
    /// Looks since the other place was looked at.
    looks: u8,
    /// Whether the last look has found a datagram at once.
    is_busy: bool,
}

impl DatagramReceiver {
    pub(super) fn new(
        socket: RawFd,
        token: u64,
        reports: Arc<Reports>,
        ticker: Arc<Ticker>,
    ) -> DatagramReceiver {
        let (early, first, is_likely, looks, is_busy) = (Vec::new(), 0, false, 0, false);
        DatagramReceiver { socket, token, reports, ticker, early, first, is_likely, looks, is_busy }
    }

    /// Whether the socket is looked at first, and whether the other place is looked at if nothing is found.
    #[inline]
    pub(in super::super) fn plan(&mut self, look: Look) -> (bool, bool) {
        match look {
            Look::Connection => (false, false),
            Look::Datagrams => (true, false),
            Look::Everywhere => (self.is_likely, true),
            Look::Likely => {
                self.looks = (self.looks + 1) % LOOKS_PER_OTHER;
                (self.is_likely, self.looks == 0)
            }
        }
    }

    /// Notes where frames were found. Returns whether there may be more at once.
    #[inline]
    pub(in super::super) fn note_found(&mut self, in_datagram: bool) -> bool {
        self.is_likely = in_datagram;
        std::mem::replace(&mut self.is_busy, in_datagram)
    }

    /// Notes that the socket has nothing.
    #[inline]
    pub(in super::super) fn note_nothing(&mut self) {
        self.is_busy = false;
    }

    /// Puts the frames at this position at the start of `room`, if they have come: their length, or 0.
    #[inline]
    pub(in super::super) fn take(&mut self, position: u64, room: &mut [u8]) -> usize {
        if !self.early.is_empty() {
            let bytes = self.take_early(position, room);
            if bytes > 0 {
                return bytes;
            }
        }
        for _ in 0..OTHERS_MAX {
            let Some(bytes) = socket::receive(self.socket, room) else { return 0 };
            let Some((frames, at)) = self.read(room.get(..bytes).unwrap_or_default()) else { continue };
            if at == position {
                return frames;
            }
            self.keep(position, at, &room[..frames]);
        }
        0
    }

    /// Reads a datagram. Returns the length and the position of its frames, if it has any to be executed.
    #[inline]
    fn read(&self, datagram: &[u8]) -> Option<(usize, u64)> {
        let (frames, trailer) = Trailer::split(datagram)?;
        if trailer.token != self.token {
            return None;
        }
        self.reports.take(trailer.received);
        let received = self.reports.received.load(Ordering::Relaxed);
        let is_first = received & ARRIVE == 0;
        if is_first {
            self.reports.received.store(received | ARRIVE, Ordering::Relaxed);
        }
        if is_first {
            self.owe();
        }
        (!frames.is_empty() && trailer.position >= self.first).then_some((frames.len(), trailer.position))
    }

    /// Lets a tick report to the peer, unless a datagram does so before. If a tick that goes on meanwhile
    /// misses it, the peer repeats its frames, which costs time alone, or the next frames let a tick come.
    #[inline]
    fn owe(&self) {
        if !self.reports.is_owed.load(Ordering::Relaxed) {
            self.reports.is_owed.store(true, Ordering::Relaxed);
        }
        self.ticker.arm();
    }

    /// Keeps the frames of a datagram, if they are not received and come early.
    #[cold]
    fn keep(&mut self, position: u64, at: u64, frames: &[u8]) {
        let is_new = at > position && self.early.iter().all(|&(other, _)| other != at);
        if is_new && self.early.len() < RUN_DATAGRAMS_MAX as usize {
            self.early.push((at, frames.to_vec()));
        }
    }

    #[cold]
    fn take_early(&mut self, position: u64, room: &mut [u8]) -> usize {
        self.early.retain(|&(at, _)| at >= position);
        let Some(place) = self.early.iter().position(|&(at, _)| at == position) else { return 0 };
        let (_, frames) = self.early.swap_remove(place);
        room[..frames.len()].copy_from_slice(&frames);
        frames.len()
    }

    /// Takes the datagrams that have come while frames of other positions are in progress: not more than
    /// those of a run at once, as strangers may send any number.
    #[cold]
    pub(in super::super) fn take_aside(&mut self, position: u64) {
        let mut room = [0; ROOM_BYTES];
        for _ in self.early.len()..RUN_DATAGRAMS_MAX as usize {
            let Some(bytes) = socket::receive(self.socket, &mut room) else { return };
            if let Some((frames, at)) = self.read(room.get(..bytes).unwrap_or_default()) {
                // The frame in progress may be the last one before this position.
                self.keep(position.saturating_sub(1), at, &room[..frames]);
            }
        }
    }

    /// Whether the frames at this position have come.
    #[inline]
    pub(in super::super) fn has(&self, position: u64) -> bool {
        !self.early.is_empty() && self.early.iter().any(|&(at, _)| at == position)
    }

    /// The bytes up to this position are received, the last of them in a datagram.
    #[inline]
    pub(in super::super) fn note_frames(&self, position: u64) {
        self.note_received(position);
        self.owe();
    }

    /// The bytes up to this position are received.
    #[inline]
    pub(in super::super) fn note_received(&self, position: u64) {
        let arrive = self.reports.received.load(Ordering::Relaxed) & ARRIVE;
        self.reports.received.store(position | arrive, Ordering::Relaxed);
    }

    /// The connection brings the bytes up to this position: datagrams of them are dropped.
    #[cold]
    pub(in super::super) fn drop_before(&mut self, position: u64) {
        self.first = position;
        self.early.retain(|&(at, _)| at >= position);
    }
}
