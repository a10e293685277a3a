//! The sender of datagrams to a process.

use super::socket;
use super::ticker::Ticker;
use super::{FRAMES_BYTES_MAX, RUN_BYTES_MAX, RUN_DATAGRAMS_MAX, Reports, TRAILER_BYTES, Trailer};
use crate::sync::Ordering;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of short batches in a row after which they travel in datagrams, and its maximum. It is doubled
/// when the connection has to repeat a run, because long data follow or the run is long. After as many short
/// batches in a row as the maximum, it is the first number again.
const SHORT_MIN: u8 = 3;
const SHORT_MAX: u8 = 48;
/// Ticks within which a run must be acknowledged in part.
const TICKS_MAX: u8 = 2;
/// The pause after a run was given up, which each further one doubles, and the number of them in a row after
/// which no datagrams are sent any more.
const PAUSE: Duration = Duration::from_millis(10);
const GIVEN_UP_MAX: u32 = 7;

/// The sender of datagrams to a process. It belongs to the send queue.
pub(in super::super) struct DatagramSender {
    socket: RawFd,
    /// Bytes of the longest segment of the connection, if they are known.
    segment_bytes: Option<usize>,
    /// The peer's token.
    token: u64,
    /// The most bytes of frames in a datagram.
    bytes_max: usize,
    reports: Arc<Reports>,
    ticker: Arc<Ticker>,
    /// The last bytes of the run, from the first one that was not acknowledged on, and its position.
    run: Vec<u8>,
    start: u64,
    /// Datagrams since the run was empty.
    count: u32,
    /// Whether the run goes on. Otherwise the connection carries its bytes.
    is_open: bool,
    /// Short batches of frames in a row, up to [`SHORT_MAX`], and how many of them are needed.
    short: u8,
    short_min: u8,
    /// Ticks since the run was acknowledged in part.
    ticks: u8,
    /// Runs in a row that were given up, and the end of the pause after the last one.
    given_up: u32,
    pauses_until: Option<Instant>,
    is_closed: bool,
    /// Datagrams that were sent, and whether the network loses them from now on.
    #[cfg(test)]
    pub(in super::super) n_sent: usize,
    #[cfg(test)]
    pub(in super::super) loses: bool,
}

impl DatagramSender {
    /// A sender over a connected socket, with the token of the peer. The connection has segments of this
    /// number of bytes.
    pub(super) fn new(
        (socket, segment_bytes): (RawFd, Option<usize>),
        token: u64,
        reports: Arc<Reports>,
        ticker: Arc<Ticker>,
    ) -> DatagramSender {
        let (run, start, pauses_until, is_closed) = (Vec::new(), 0, None, false);
        let (count, is_open, ticks, given_up, bytes_max) = (0, false, 0, 0, 0);
        let (short, short_min) = (0, SHORT_MIN);
        let mut sender = DatagramSender {
            socket,
            segment_bytes,
            token,
            bytes_max,
            reports,
            ticker,
            run,
            start,
            count,
            is_open,
            short,
            short_min,
            ticks,
            given_up,
            pauses_until,
            is_closed,
            #[cfg(test)]
            n_sent: 0,
            #[cfg(test)]
            loses: false,
        };
        sender.measure();
        sender
    }

    /// Sets the length of datagrams by what the network carries in one packet, on all of the path.
    #[cold]
    fn measure(&mut self) {
        let bytes = socket::packet_bytes(self.socket).unwrap_or(0);
        let bytes = self.segment_bytes.map_or(bytes, |segment| segment.min(bytes));
        self.bytes_max = bytes.saturating_sub(TRAILER_BYTES).min(FRAMES_BYTES_MAX);
    }

    /// Sends whole frames, whose first byte has this position, if they may travel in a datagram now. The
    /// first frames of a run may if all before are received, as far as `is_settled` says.
    #[inline]
    pub(in super::super) fn send(&mut self, frames: &mut Vec<u8>, position: u64, is_settled: bool) -> bool {
        if frames.len() > self.bytes_max || !self.reports.arrive.load(Ordering::Relaxed) {
            self.note_long();
            return false;
        }
        if self.short < SHORT_MAX {
            self.short += 1;
            if self.short <= self.short_min {
                return false;
            }
        } else {
            self.short_min = SHORT_MIN;
        }
        self.take_report();
        let may_travel = if self.has_open_run() {
            self.run.len() + frames.len() <= RUN_BYTES_MAX && self.count < RUN_DATAGRAMS_MAX
        } else {
            is_settled || self.reports.acknowledged.load(Ordering::Relaxed) >= position
        };
        if !may_travel || self.pauses() {
            return false;
        }
        self.transmit(frames, position)
    }

    /// The connection carries data that fit into no datagram.
    #[inline]
    pub(in super::super) fn note_long(&mut self) {
        self.short = 0;
    }

    /// Sends a datagram, and adds its frames to the run.
    #[inline]
    fn transmit(&mut self, frames: &mut Vec<u8>, position: u64) -> bool {
        let bytes = frames.len();
        frames.extend_from_slice(&self.trailer(position).to_bytes());
        let sent = self.hand_over(frames);
        frames.truncate(bytes);
        if let Err(error) = sent {
            self.failed(error);
            return false;
        }
        if !self.is_open {
            self.run.clear();
            (self.is_open, self.ticks) = (true, 0);
        }
        if self.run.is_empty() {
            (self.start, self.count) = (position, 0);
        }
        self.run.extend_from_slice(frames);
        self.count += 1;
        // SYNC POINT tick: the queue is locked, so a look of the tick sees this run, or has come before it.
        self.ticker.arm();
        true
    }

    #[cfg(not(test))]
    #[inline]
    fn hand_over(&mut self, datagram: &[u8]) -> Result<(), i32> {
        socket::send(self.socket, datagram)
    }

    #[cfg(test)]
    fn hand_over(&mut self, datagram: &[u8]) -> Result<(), i32> {
        self.n_sent += 1;
        if self.loses { Ok(()) } else { socket::send(self.socket, datagram) }
    }

    #[inline]
    fn trailer(&self, position: u64) -> Trailer {
        let received = self.reports.received.load(Ordering::Relaxed);
        if self.reports.is_owed.load(Ordering::Relaxed) {
            self.reports.is_owed.store(false, Ordering::Relaxed);
        }
        Trailer { token: self.token, position, received }
    }

    /// Sends a datagram without frames: it reports what was received.
    #[cold]
    pub(in super::super) fn report(&mut self, position: u64) {
        // One that is lost costs time alone.
        let _ = socket::send(self.socket, &self.trailer(position).to_bytes());
    }

    /// Whether the peer waits for a report.
    pub(in super::super) fn owes_report(&self) -> bool {
        self.reports.is_owed.load(Ordering::Relaxed)
    }

    #[cold]
    fn failed(&mut self, errno: i32) {
        match errno {
            // The socket has no room now.
            libc::EAGAIN | libc::ENOBUFS | libc::EINTR => {}
            libc::EMSGSIZE => self.measure(),
            // Nobody receives there, or a firewall refuses it.
            _ => self.is_closed = true,
        }
    }

    /// Removes what the peer has received from the run.
    #[inline]
    fn take_report(&mut self) {
        if self.run.is_empty() {
            return;
        }
        let acknowledged = self.reports.acknowledged.load(Ordering::Relaxed);
        if acknowledged >= self.start + self.run.len() as u64 {
            self.run.clear();
            self.ticks = 0;
            if self.is_open && self.given_up > 0 {
                self.given_up = 0;
            }
        } else if acknowledged > self.start {
            self.shorten(acknowledged);
        }
    }

    #[cold]
    fn shorten(&mut self, acknowledged: u64) {
        self.run.drain(..(acknowledged - self.start) as usize);
        (self.start, self.ticks) = (acknowledged, 0);
        // The datagrams that are left are not counted each.
        self.count = self.count.div_ceil(2);
    }

    /// Whether no datagrams may be sent now.
    #[inline]
    fn pauses(&mut self) -> bool {
        self.is_closed || self.pauses_until.is_some() && self.still_pauses()
    }

    #[cold]
    fn still_pauses(&mut self) -> bool {
        let pauses = self.pauses_until.is_some_and(|until| Instant::now() < until);
        if !pauses {
            self.pauses_until = None;
        }
        pauses
    }

    /// Ends the run: the first position and the bytes that are to be sent over the connection, if there are
    /// any. The run keeps them until they are acknowledged.
    pub(in super::super) fn end_run(&mut self) -> Option<(u64, &[u8])> {
        if !self.is_open {
            return None;
        }
        self.take_report();
        self.is_open = false;
        if self.run.is_empty() {
            return None;
        }
        (self.short, self.short_min) = (0, SHORT_MAX.min(2 * self.short_min));
        Some((self.start, &self.run))
    }

    /// A tick. Returns whether the run was not acknowledged in time.
    pub(in super::super) fn tick(&mut self) -> bool {
        self.take_report();
        if !self.has_open_run() {
            return false;
        }
        self.ticks += 1;
        if self.ticks <= TICKS_MAX {
            return false;
        }
        self.given_up += 1;
        self.is_closed |= self.given_up >= GIVEN_UP_MAX;
        self.pauses_until = Some(Instant::now() + PAUSE * 2_u32.pow(self.given_up.min(GIVEN_UP_MAX)));
        true
    }

    /// Whether something is not acknowledged that the connection does not carry.
    #[inline]
    pub(in super::super) fn has_open_run(&self) -> bool {
        self.is_open && !self.run.is_empty()
    }

    /// Sends no more datagrams. The bytes of the run are kept.
    pub(in super::super) fn close(&mut self) {
        (self.is_closed, self.is_open) = (true, false);
    }

    /// The bytes of the run that a peer lacks which has received this number of bytes, `None` if the run does
    /// not have all of them. `sent` is the number of bytes that were sent to it, in both ways.
    pub(in super::super) fn missing(&self, received: u64, sent: u64) -> Option<&[u8]> {
        let skipped = usize::try_from(received.checked_sub(self.start)?).ok()?;
        let is_last = self.start + self.run.len() as u64 == sent;
        self.run.get(skipped..).filter(|rest| is_last && !rest.is_empty())
    }

    #[cfg(test)]
    pub(in super::super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    #[cfg(test)]
    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    #[cfg(test)]
    pub(super) fn set_bytes_max(&mut self, bytes: usize) {
        self.bytes_max = bytes;
    }

    /// Memory of the run, in bytes.
    #[cfg(test)]
    pub(in super::super) fn allocated_bytes(&self) -> usize {
        self.run.capacity()
    }
}
