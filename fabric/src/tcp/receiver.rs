//! The receiver of a connection: it cuts the received bytes into frames.
//!
//! Short data are read from a buffer. The rest of long data, beyond what the buffer already has, is received
//! into the target, without a copy. Invariant: each frame is returned once, when it is complete. Nothing is
//! written to a target before it was checked.

use super::frame::{HEADER_BYTES, Header, Kind};
use super::socket::{self, Moved};
use crate::copy;
use std::io;
use std::os::fd::RawFd;

/// The length of the buffer.
const BUFFER_BYTES: usize = 64 << 10;
/// Data that lack at least this number of bytes are received into the target.
const DIRECT_BYTES: usize = 4 << 10;
/// The longest data that the buffer has room for.
const BUFFERED_BYTES: usize = BUFFER_BYTES - HEADER_BYTES;

/// Data that are received into the target.
struct Direct {
    header: Header,
    next: *mut u8,
    missing: usize,
}

/// The receiver of a connection.
#[derive(Default)]
pub(super) struct Receiver {
    /// Allocated when something is received for the first time.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    direct: Option<Direct>,
    /// Whether the peer has said goodbye.
    pub(super) has_left: bool,
}

// SAFETY: a target is registered memory, or is kept by the starter of a get, and may be written by any
// thread.
unsafe impl Send for Receiver {}

/// The next frame.
pub(super) enum Next {
    /// It is complete. Its data lie at the pointer until more is received.
    Frame(Header, *const u8),
    /// It is complete. Its data are in the target.
    InTarget(Header),
    /// Its data are to be received into the target, which [`Receiver::set_target`] sets.
    WantsTarget(Header),
    /// It is not complete.
    Incomplete,
}

/// The outcome of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// As much as there was room for: the connection may have more.
    Full,
    /// All that the connection had.
    All,
    Nothing,
    /// The peer has closed the connection.
    End,
}

impl Receiver {
    /// Receives from the connection.
    #[inline]
    pub(super) fn receive(&mut self, socket: RawFd) -> io::Result<Received> {
        if self.buffer.is_empty() {
            self.buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        }
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start > 0 && self.end == BUFFER_BYTES {
            self.move_to_front();
        }
        let room = &mut self.buffer[self.end..];
        let room = socket::part(room.as_mut_ptr(), room.len());
        let (wanted, moved) = match &self.direct {
            // SAFETY: the part is the free end of the own buffer, which nobody else uses.
            None => (room.iov_len, unsafe { socket::receive(socket, &mut [room]) }?),
            Some(direct) => {
                let mut parts = [socket::part(direct.next, direct.missing), room];
                // SAFETY: the target was promised in `set_target`; the rest is the free end of the buffer.
                (room.iov_len + direct.missing, unsafe { socket::receive(socket, &mut parts) }?)
            }
        };
        let Moved::Bytes(mut bytes) = moved else {
            return Ok(if moved == Moved::End { Received::End } else { Received::Nothing });
        };
        let received = if bytes == wanted { Received::Full } else { Received::All };
        if let Some(direct) = &mut self.direct {
            let placed = bytes.min(direct.missing);
            // SAFETY: no more bytes are placed than are missing.
            direct.next = unsafe { direct.next.add(placed) };
            direct.missing -= placed;
            bytes -= placed;
        }
        self.end += bytes;
        Ok(received)
    }

    /// The next frame. An error describes bytes that are no frame.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Next, String> {
        if let Some(direct) = &self.direct {
            if direct.missing > 0 {
                return Ok(Next::Incomplete);
            }
            let header = direct.header;
            self.direct = None;
            return Ok(Next::InTarget(header));
        }
        let bytes = &self.buffer[self.start..self.end];
        let Some((first, data)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(Next::Incomplete);
        };
        let header = Header::from_bytes(first)?;
        let data_bytes = header.data_bytes();
        if data.len() >= data_bytes {
            let data = data.as_ptr();
            self.start += HEADER_BYTES + data_bytes;
            return Ok(Next::Frame(header, data));
        }
        let missing = data_bytes - data.len();
        let is_long = missing >= DIRECT_BYTES || data_bytes > BUFFERED_BYTES;
        match header.kind {
            Kind::Put | Kind::Reply if is_long => Ok(Next::WantsTarget(header)),
            _ if data_bytes > BUFFERED_BYTES => Err(format!("a frame with {data_bytes} bytes of data")),
            _ => {
                if self.start + HEADER_BYTES + data_bytes > BUFFER_BYTES {
                    self.move_to_front();
                }
                Ok(Next::Incomplete)
            }
        }
    }

    /// Makes room at the end of the buffer.
    #[cold]
    fn move_to_front(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
    }

    /// Whether the buffer has no room before a frame is taken from it.
    pub(super) fn is_full(&self) -> bool {
        self.start == 0 && self.end == BUFFER_BYTES && self.direct.is_none()
    }

    /// Whether the buffer has bytes.
    pub(super) fn has_bytes(&self) -> bool {
        self.start < self.end
    }

    /// Puts the last frame back into the buffer.
    pub(super) fn put_back(&mut self, header: &Header) {
        self.start -= HEADER_BYTES + header.data_bytes();
    }

    /// Sets the target of the frame of [`Next::WantsTarget`].
    ///
    /// # Safety
    /// The target is valid for writes of all data, until they are received or the connection ends.
    pub(super) unsafe fn set_target(&mut self, header: Header, target: *mut u8) {
        let received = &self.buffer[self.start + HEADER_BYTES..self.end];
        let (bytes, missing) = (received.len(), header.data_bytes() - received.len());
        // SAFETY: the caller has promised the target, which is longer than the received part.
        let next = unsafe {
            copy::transfer(target, received.as_ptr(), bytes);
            target.add(bytes)
        };
        self.start = self.end;
        self.direct = Some(Direct { header, next, missing });
    }
}
