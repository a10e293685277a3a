//! The receiver of a connection: it cuts the received bytes into frames.
//!
//! Short data are read from a buffer. The rest of long data, beyond what the buffer already has, is received
//! into the target, without a copy. While long data come one after another, little more than a header is
//! received into the buffer, so that little has to be copied. Invariant: each frame is returned once, when it
//! is complete. Nothing is written to a target before it was checked.

use super::datagram::{DatagramReceiver, Look, ROOM_BYTES};
use super::frame::{HEADER_BYTES, Header, Kind};
use super::local_pe::CachedRegion;
use super::socket::{self, Moved};
use super::stream::{self, Opener};
use crate::copy;
use crate::lazy::Reserved;
use std::io;
use std::os::fd::RawFd;

/// The length of the buffer.
pub(super) const BUFFER_BYTES: usize = 128 << 10;
/// Data that lack at least this number of bytes are received into the target.
const DIRECT_BYTES: usize = 4 << 10;
/// While long data arrive, the buffer receives at most this number of bytes behind them: room for the next
/// header, its operands, and short data.
const BYTES_BESIDE_LONG: usize = 1 << 10;
/// The longest data that the buffer has room for.
const BUFFERED_BYTES: usize = BUFFER_BYTES - HEADER_BYTES;

/// Data that are received into the target.
struct Direct {
    header: Header,
    operands: Operands,
    next: *mut u8,
    missing: usize,
}

/// The operands of a frame's atomic. Those that the frame does not have are left from an earlier frame.
pub(super) type Operands = [u64; 3];

/// A frame that was received.
pub(super) struct Frame {
    pub(super) header: Header,
    pub(super) operands: Operands,
    /// Where its data lie, if not in the target.
    pub(super) data: *const u8,
}

impl Frame {
    /// A place into which frames are read.
    pub(super) fn none() -> Frame {
        Frame { header: Header::control(Kind::Ack, 0), operands: [0; 3], data: std::ptr::dangling() }
    }
}

/// The receiver of a connection.
#[derive(Default)]
pub(super) struct Receiver {
    /// Allocated when something is received for the first time. It begins with a page, as what the kernel
    /// has received often does: see [`copy::is_slow_distance`].
    buffer: Reserved<u8>,
    start: usize,
    end: usize,
    direct: Option<Direct>,
    /// Whether the last frame was put back, as an inbox had no room for it.
    waits_for_inbox: bool,
    /// Whether frames with long data have come, and since then neither short ones that fill the room beside
    /// them nor a part of a message.
    is_after_long: bool,
    /// Whether the last receive has filled its room.
    was_filled: bool,
    /// All bytes of frames that were received, over all connections to the peer and in datagrams. While the
    /// buffer has bytes, they may begin with frames that were received before in datagrams.
    pub(super) received_bytes: u64,
    /// Bytes that the connection brings next, and that were received before in datagrams.
    repeated_bytes: usize,
    /// Receives datagrams, if there is a socket for them.
    pub(super) datagrams: Option<Box<DatagramReceiver>>,
    /// Takes data that are dropped.
    dropped: Vec<u8>,
    /// Decrypts what is received, if the connection is encrypted.
    pub(super) opener: Option<Box<Opener>>,
    /// Whether the peer has said goodbye.
    pub(super) has_left: bool,
    /// The last count of acknowledgements that was taken from a frame.
    pub(super) acks: u32,
    /// The region of the last put.
    pub(super) last_region: CachedRegion,
}

// SAFETY: a target is registered memory, or is kept by the starter of a get, and may be written by any
// thread.
unsafe impl Send for Receiver {}

/// The state of the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It is complete. Its data lie in the buffer until more is received.
    Complete,
    /// It is complete. Its data are in the target.
    InTarget,
    /// Its data are to be received into the target, which [`Receiver::set_target`] sets.
    WantsTarget,
    /// It is not complete.
    Incomplete,
    /// It concerns the receiver alone, and was taken.
    Skipped,
}

/// The outcome of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// The room is filled. The connection may have more.
    Full,
    /// Everything that the connection had.
    All,
    Nothing,
    /// The peer has closed the connection.
    End,
}

impl Receiver {
    /// Receives from the connection, or a datagram.
    #[inline]
    pub(super) fn receive(&mut self, socket: RawFd, look: Look) -> io::Result<Received> {
        let Some(datagrams) = &mut self.datagrams else { return self.receive_stream(socket) };
        let (datagrams_first, both) = datagrams.plan(look);
        if datagrams_first {
            let received = self.receive_datagram(look);
            if received != Received::Nothing || !both {
                return Ok(received);
            }
        }
        let received = self.receive_stream(socket)?;
        match (received, &mut self.datagrams) {
            (Received::Nothing, _) if both && !datagrams_first => Ok(self.receive_datagram(look)),
            (Received::All, _) if look == Look::Everywhere => Ok(Received::Full),
            (Received::Full | Received::All, Some(datagrams)) => {
                datagrams.note_found(false);
                Ok(received)
            }
            _ => Ok(received),
        }
    }

    /// Whether the next byte that is received is the first one of a frame. Then `received_bytes` is its
    /// position.
    #[inline]
    fn is_between_frames(&self) -> bool {
        self.start == self.end && self.direct.is_none()
    }

    /// Receives the frames of the next datagram into the buffer.
    #[inline]
    fn receive_datagram(&mut self, look: Look) -> Received {
        let is_between_frames = self.is_between_frames();
        let Some(datagrams) = &mut self.datagrams else { return Received::Nothing };
        if !is_between_frames {
            datagrams.take_aside(self.received_bytes);
            return Received::Nothing;
        }
        if self.buffer.is_empty() {
            self.buffer = Reserved::new(BUFFER_BYTES);
        }
        let bytes = datagrams.take(self.received_bytes, &mut self.buffer[..ROOM_BYTES]);
        if bytes == 0 {
            datagrams.note_nothing();
            return Received::Nothing;
        }
        (self.start, self.end) = (0, bytes);
        self.received_bytes += bytes as u64;
        datagrams.note_frames(self.received_bytes);
        // A look for more would delay the answer to a single one.
        let may_have_more = datagrams.note_found(true) || look == Look::Everywhere;
        if may_have_more { Received::Full } else { Received::All }
    }

    /// Receives from the connection.
    #[inline]
    fn receive_stream(&mut self, socket: RawFd) -> io::Result<Received> {
        if self.buffer.is_empty() {
            self.buffer = Reserved::new(BUFFER_BYTES);
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start > 0 && self.end == BUFFER_BYTES {
            self.move_to_front();
        }
        let is_short = self.is_after_long && self.end + BYTES_BESIDE_LONG <= BUFFER_BYTES;
        let room_end = if is_short { self.end + BYTES_BESIDE_LONG } else { BUFFER_BYTES };
        let room = &mut self.buffer[self.end..room_end];
        let room = socket::part(room.as_mut_ptr(), room.len());
        let (wanted, moved) = match &self.direct {
            // SAFETY: the part is the free end of the own buffer, which no other thread uses.
            None => (room.iov_len, unsafe { stream::receive(socket, &mut self.opener, &mut [room]) }?),
            Some(direct) => {
                let mut parts = [socket::part(direct.next, direct.missing), room];
                // SAFETY: the target was promised in `set_target`; the rest is the free end of the buffer.
                (room.iov_len + direct.missing, unsafe {
                    stream::receive(socket, &mut self.opener, &mut parts)
                }?)
            }
        };
        let Moved::Bytes(mut bytes) = moved else {
            return Ok(if moved == Moved::End { Received::End } else { Received::Nothing });
        };
        self.received_bytes += bytes as u64;
        self.was_filled = bytes == wanted;
        let received = if self.was_filled { Received::Full } else { Received::All };
        if let Some(direct) = &mut self.direct {
            let placed = bytes.min(direct.missing);
            // SAFETY: no more bytes are placed than are missing.
            direct.next = unsafe { direct.next.add(placed) };
            direct.missing -= placed;
            bytes -= placed;
        }
        self.end += bytes;
        if self.repeated_bytes > 0 {
            self.drop_repeated(bytes);
        }
        Ok(received)
    }

    /// Drops the repeated bytes of those that were received last, which are the only ones of the buffer.
    #[cold]
    fn drop_repeated(&mut self, bytes: usize) {
        let dropped = self.repeated_bytes.min(bytes);
        self.repeated_bytes -= dropped;
        self.received_bytes -= dropped as u64;
        self.buffer.copy_within(self.end - bytes + dropped..self.end, self.end - bytes);
        self.end -= dropped;
    }

    /// Takes a frame that says which bytes of datagrams follow it. An error describes one that no member
    /// sends.
    #[cold]
    fn take_repeat(&mut self, header: &Header) -> Result<Next, String> {
        let (first, end) = (header.word, header.offset);
        self.start += HEADER_BYTES;
        self.received_bytes -= HEADER_BYTES as u64;
        let buffered = self.end - self.start;
        let position = self.received_bytes - buffered as u64;
        let Some(datagrams) = self.datagrams.as_mut().filter(|_| first <= position) else {
            return Err(format!("the bytes {first} to {end} again, behind the byte {position}"));
        };
        datagrams.drop_before(end);
        // Datagrams of the next run may have overtaken this frame.
        let repeated = position.min(end).saturating_sub(first) as usize;
        let dropped = repeated.min(buffered);
        self.start += dropped;
        self.received_bytes -= dropped as u64;
        self.repeated_bytes = repeated - dropped;
        Ok(Next::Skipped)
    }

    /// Lets the peer know, with the next datagram, what was received over the connection.
    #[inline]
    pub(super) fn note_received(&self) {
        if let Some(datagrams) = &self.datagrams
            && self.is_between_frames()
        {
            datagrams.note_received(self.received_bytes);
        }
    }

    /// The connection was reset: nothing is received in datagrams any more, so that the peer may send what
    /// is missing over another connection.
    pub(super) fn end_datagrams(&mut self) {
        if self.datagrams.take().is_none() {
            return;
        }
        self.repeated_bytes = 0;
        let rest = &self.buffer[self.start..self.end];
        let is_repeat = rest.first().is_some_and(|&kind| kind == Kind::Repeat as u8);
        if is_repeat && rest.len() < HEADER_BYTES && self.direct.is_none() {
            self.received_bytes -= rest.len() as u64;
            self.start = self.end;
        }
    }

    /// Reads the next frame, as far as it has come. An error describes bytes that are no frame.
    #[inline(always)]
    pub(super) fn next(&mut self, frame: &mut Frame) -> Result<Next, String> {
        if let Some(direct) = &self.direct {
            if direct.missing > 0 {
                return Ok(Next::Incomplete);
            }
            (frame.header, frame.operands) = (direct.header, direct.operands);
            self.direct = None;
            self.dropped = Vec::new();
            return Ok(Next::InTarget);
        }
        let bytes = &self.buffer[self.start..self.end];
        let Some((first, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(Next::Incomplete);
        };
        let header = &mut frame.header;
        header.read(first)?;
        if header.kind == Kind::Repeat {
            let header = *header;
            return self.take_repeat(&header);
        }
        let (before_bytes, data_bytes) = (header.before_data_bytes(), header.data_bytes());
        let rest_bytes = before_bytes + data_bytes;
        if rest.len() >= rest_bytes {
            read_operands(&mut frame.operands, &rest[..before_bytes]);
            frame.data = rest[before_bytes..].as_ptr();
            self.waits_for_inbox = false;
            let is_long = data_bytes >= DIRECT_BYTES && has_target(header.kind);
            self.is_after_long = is_long || (self.is_after_long && !self.was_filled);
            self.start += HEADER_BYTES + rest_bytes;
            return Ok(Next::Complete);
        }
        let is_long = rest_bytes - rest.len() >= DIRECT_BYTES || rest_bytes > BUFFERED_BYTES;
        self.is_after_long = has_target(header.kind) && (self.is_after_long || is_long);
        let has_operands = rest.len() >= before_bytes;
        match header.kind {
            kind if has_target(kind) && is_long && has_operands => Ok(Next::WantsTarget),
            kind if has_target(kind) && is_long => self.wait_for(HEADER_BYTES + before_bytes),
            _ if rest_bytes > BUFFERED_BYTES => Err(format!("a frame with {data_bytes} bytes of data")),
            _ => self.wait_for(HEADER_BYTES + rest_bytes),
        }
    }

    /// The next frame needs this number of bytes in the buffer: makes room for them.
    fn wait_for(&mut self, bytes: usize) -> Result<Next, String> {
        if self.start + bytes > BUFFER_BYTES {
            self.move_to_front();
        }
        Ok(Next::Incomplete)
    }

    /// Makes room at the end of the buffer.
    #[cold]
    fn move_to_front(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
    }

    /// Whether frames that have come must be taken before the connection can end: a `Repeat` may be among
    /// them, which counts for nothing once there are no datagrams.
    pub(super) fn holds_frames_back(&self) -> bool {
        self.is_full() || self.waits_for_inbox && self.datagrams.is_some()
    }

    /// Whether the buffer has no room before a frame is taken from it.
    pub(super) fn is_full(&self) -> bool {
        self.start == 0 && self.end == BUFFER_BYTES && self.direct.is_none()
    }

    /// Whether there is work that the poller does not announce: a frame that waits for an inbox, or bytes
    /// that were received and not decrypted or not handed out.
    #[inline]
    pub(super) fn has_hidden_work(&self) -> bool {
        self.waits_for_inbox
            || self.opener.as_ref().is_some_and(|opener| opener.has_bytes())
            || self.datagrams.as_ref().is_some_and(|datagrams| datagrams.has(self.received_bytes))
    }

    /// Whether the buffer has bytes.
    pub(super) fn has_bytes(&self) -> bool {
        self.start < self.end
    }

    /// Puts the last frame back into the buffer.
    pub(super) fn put_back(&mut self, header: &Header) {
        self.waits_for_inbox = true;
        self.start -= HEADER_BYTES + header.before_data_bytes() + header.data_bytes();
    }

    /// The frame whose data are received into the target.
    pub(super) fn direct(&self) -> Option<Header> {
        self.direct.as_ref().map(|direct| direct.header)
    }

    /// Drops the rest of the data that are received into the target, which is not written any more.
    pub(super) fn drop_direct(&mut self) {
        if let Some(direct) = &mut self.direct {
            self.dropped = vec![0; direct.missing];
            direct.next = self.dropped.as_mut_ptr();
        }
    }

    /// Sets the target of a frame that [wants](Next::WantsTarget) one. If it is null, the data are dropped.
    ///
    /// # Safety
    /// The target is valid for writes of all data, until they are received,
    /// [dropped](Receiver::drop_direct), or the connection ends.
    pub(super) unsafe fn set_target(&mut self, header: Header, mut target: *mut u8) {
        if target.is_null() {
            self.dropped = vec![0; header.data_bytes()];
            target = self.dropped.as_mut_ptr();
        }
        let rest = &self.buffer[self.start + HEADER_BYTES..self.end];
        let (first, received) = rest.split_at(header.before_data_bytes());
        let mut operands = [0; 3];
        read_operands(&mut operands, first);
        let (bytes, missing) = (received.len(), header.data_bytes() - received.len());
        // SAFETY: the caller has promised the target, which is longer than the received part.
        let next = unsafe {
            copy::transfer(target, received.as_ptr(), bytes);
            target.add(bytes)
        };
        self.start = self.end;
        self.direct = Some(Direct { header, operands, next, missing });
    }
}

/// Whether the data of such a frame have a target, into which they can be received.
fn has_target(kind: Kind) -> bool {
    kind.is_put() || kind == Kind::Reply
}

/// Reads the operands of a frame, which are followed by padding.
#[inline(always)]
fn read_operands(operands: &mut Operands, bytes: &[u8]) {
    let (words, _) = bytes.as_chunks();
    for (operand, word) in operands.iter_mut().zip(words) {
        *operand = u64::from_ne_bytes(*word);
    }
}

#[cfg(test)]
mod tests;
