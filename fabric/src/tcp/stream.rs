//! The two halves of a connection, plain or encrypted.
//!
//! An encrypted connection carries records:
//!
//! ```text
//! | length of the rest 2 | encrypted bytes | tag 16 |
//! ```
//! A record has at most 16 KiB. The records of a direction are numbered from 0, and the number goes into the
//! encryption without being sent: a record that was altered, repeated, or put in another place does not
//! decrypt. Frames and records are independent of each other.
//!
//! Invariants: a number is used for one record. A byte counts as sent when the system has the whole of its
//! record, so the sender has no other bytes to watch than those of the send queue. A byte is handed out after
//! the tag of its record was checked. Tests: `every_byte_arrives_once_and_in_order`,
//! `an_altered_record_yields_nothing`.

use super::cipher::{Cipher, TAG_BYTES};
use super::socket::{self, Moved};
use crate::copy;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Bytes of the length in front of a record.
const LENGTH_BYTES: usize = 2;
/// The longest record, with its length.
const RECORD_BYTES: usize = 16 << 10;
/// The most bytes of frames in a record.
const PLAIN_BYTES: usize = RECORD_BYTES - LENGTH_BYTES - TAG_BYTES;
/// The buffer of a half: some records.
const BUFFER_BYTES: usize = 4 * RECORD_BYTES;

/// Encrypts what is sent.
pub(super) struct Sealer {
    cipher: Arc<Cipher>,
    /// The number of the next record.
    number: u64,
    /// Takes the bytes of a record before they are encrypted.
    plain: Box<[u8]>,
    /// Records, and how many of their bytes are sent.
    records: Vec<u8>,
    sent: usize,
    /// Bytes at the start of the send queue whose records were made, and are not reported as sent.
    sealed_bytes: usize,
}

/// Decrypts what is received.
pub(super) struct Opener {
    cipher: Arc<Cipher>,
    /// The number of the next record.
    number: u64,
    /// Received bytes: whole records, and the first part of one.
    received: Box<[u8]>,
    start: usize,
    end: usize,
    /// Bytes of a record that were checked and not handed out.
    plain: Box<[u8]>,
    plain_start: usize,
    plain_end: usize,
}

/// Sends the parts, or their first bytes. If a call has not sent all bytes, the next call begins with the
/// bytes that are left.
///
/// # Safety
/// The parts are valid for reads, and not all empty.
#[inline(always)]
pub(super) unsafe fn send(
    socket: RawFd,
    sealer: &mut Option<Box<Sealer>>,
    parts: &[libc::iovec],
) -> io::Result<Moved> {
    // SAFETY: the caller's promises are the same.
    unsafe {
        match sealer {
            None => socket::send(socket, parts),
            Some(sealer) => sealer.send(socket, parts),
        }
    }
}

/// Receives into the parts, in their order.
///
/// # Safety
/// The parts are valid for writes, and not all empty.
#[inline(always)]
pub(super) unsafe fn receive(
    socket: RawFd,
    opener: &mut Option<Box<Opener>>,
    parts: &mut [libc::iovec],
) -> io::Result<Moved> {
    // SAFETY: the caller's promises are the same.
    unsafe {
        match opener {
            None => socket::receive(socket, parts),
            Some(opener) => opener.receive(socket, parts),
        }
    }
}

fn buffer(bytes: usize) -> Box<[u8]> {
    vec![0; bytes].into_boxed_slice()
}

impl Sealer {
    pub(super) fn new(cipher: Arc<Cipher>) -> Sealer {
        let records = Vec::with_capacity(BUFFER_BYTES);
        Sealer { cipher, number: 0, plain: buffer(PLAIN_BYTES), records, sent: 0, sealed_bytes: 0 }
    }

    /// Sends the records that were made, or makes records of the parts and sends these.
    ///
    /// # Safety
    /// As [`send`].
    #[cold]
    unsafe fn send(&mut self, socket: RawFd, parts: &[libc::iovec]) -> io::Result<Moved> {
        if self.sealed_bytes == 0 {
            // SAFETY: the caller's promises are the same.
            unsafe { self.seal(parts) }?;
        }
        while self.sent < self.records.len() {
            let rest = &self.records[self.sent..];
            // SAFETY: the part lies in the own buffer.
            match unsafe { socket::send(socket, &[socket::part(rest.as_ptr(), rest.len())]) }? {
                Moved::Bytes(bytes) => self.sent += bytes,
                nothing => return Ok(nothing),
            }
        }
        let offered: usize = parts.iter().map(|part| part.iov_len).sum();
        let reported = self.sealed_bytes.min(offered);
        self.sealed_bytes -= reported;
        Ok(Moved::Bytes(reported))
    }

    /// Makes records of the first bytes of the parts, as many as the buffer holds.
    ///
    /// # Safety
    /// As [`send`].
    unsafe fn seal(&mut self, parts: &[libc::iovec]) -> io::Result<()> {
        self.records.clear();
        self.sent = 0;
        let (mut part, mut taken) = (0, 0);
        while self.records.len() + RECORD_BYTES <= BUFFER_BYTES {
            let mut bytes = 0;
            while bytes < PLAIN_BYTES && part < parts.len() {
                let piece = (parts[part].iov_len - taken).min(PLAIN_BYTES - bytes);
                // SAFETY: the piece lies in a part that the caller has promised, and fits into `plain`.
                unsafe {
                    let start = parts[part].iov_base.cast::<u8>().add(taken);
                    copy::copy(self.plain.as_mut_ptr().add(bytes), start, piece);
                }
                (bytes, taken) = (bytes + piece, taken + piece);
                if taken == parts[part].iov_len {
                    (part, taken) = (part + 1, 0);
                }
            }
            if bytes == 0 {
                break;
            }
            self.add_record(bytes)?;
            self.sealed_bytes += bytes;
        }
        Ok(())
    }

    /// Makes a record of the first bytes of `plain`.
    fn add_record(&mut self, bytes: usize) -> io::Result<()> {
        let (start, rest) = (self.records.len(), bytes + TAG_BYTES);
        self.records.extend((rest as u16).to_be_bytes());
        self.records.resize(start + LENGTH_BYTES + rest, 0);
        let to = &mut self.records[start + LENGTH_BYTES..];
        let written = self.cipher.encrypt(self.number, &self.plain[..bytes], to)?;
        debug_assert_eq!(written, rest);
        // At a record a nanosecond, 64 bits last for 500 years.
        self.number += 1;
        Ok(())
    }
}

/// Parts that are filled from their start.
struct Room<'a> {
    parts: &'a mut [libc::iovec],
    filled: usize,
}

impl Room<'_> {
    fn is_full(&self) -> bool {
        self.parts.iter().all(|part| part.iov_len == 0)
    }

    /// Copies the first bytes into the parts. Returns how many.
    ///
    /// # Safety
    /// The rest of the parts is valid for writes.
    unsafe fn fill(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        for part in &mut *self.parts {
            let piece = part.iov_len.min(bytes.len() - taken);
            let place = part.iov_base.cast::<u8>();
            // SAFETY: the piece fits into the part, which the caller has promised, and into the bytes.
            unsafe {
                copy::copy(place, bytes.as_ptr().add(taken), piece);
                part.iov_base = place.add(piece).cast();
            }
            part.iov_len -= piece;
            taken += piece;
        }
        self.filled += taken;
        taken
    }
}

impl Opener {
    pub(super) fn new(cipher: Arc<Cipher>) -> Opener {
        Opener {
            cipher,
            number: 0,
            received: buffer(BUFFER_BYTES),
            start: 0,
            end: 0,
            plain: buffer(PLAIN_BYTES),
            plain_start: 0,
            plain_end: 0,
        }
    }

    /// Whether there are bytes to be handed out, or a record to be decrypted. The poller does not announce
    /// them.
    pub(super) fn has_bytes(&self) -> bool {
        self.plain_start < self.plain_end || matches!(self.record(), Ok(Some(_)) | Err(_))
    }

    /// Receives until the parts are full or the connection has no more.
    ///
    /// # Safety
    /// As [`receive`].
    #[cold]
    unsafe fn receive(&mut self, socket: RawFd, parts: &mut [libc::iovec]) -> io::Result<Moved> {
        let mut room = Room { parts, filled: 0 };
        let mut may_have_more = true;
        loop {
            // SAFETY: the caller's promises are the same.
            match unsafe { self.hand_out(&mut room) } {
                Ok(()) => {}
                // The bytes before the broken record are good. The next call finds the record again.
                Err(_) if room.filled > 0 => break,
                Err(error) => return Err(error),
            }
            if room.is_full() || !may_have_more {
                break;
            }
            if self.start > 0 {
                self.received.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            let free = &mut self.received[self.end..];
            let wanted = free.len();
            debug_assert!(wanted > RECORD_BYTES, "the buffer has less than a record");
            // SAFETY: the part is the free end of the own buffer.
            let moved = unsafe { socket::receive(socket, &mut [socket::part(free.as_mut_ptr(), wanted)]) };
            match moved {
                Ok(Moved::Bytes(bytes)) => {
                    self.end += bytes;
                    may_have_more = bytes == wanted;
                }
                // The bytes before the end, or an error, are good.
                _ if room.filled > 0 => break,
                other => return other,
            }
        }
        Ok(if room.filled > 0 { Moved::Bytes(room.filled) } else { Moved::Nothing })
    }

    /// Hands out decrypted bytes until the room is full or there is no whole record.
    ///
    /// # Safety
    /// The room is valid for writes.
    unsafe fn hand_out(&mut self, room: &mut Room<'_>) -> io::Result<()> {
        loop {
            // SAFETY: the caller's promises are the same.
            self.plain_start += unsafe { room.fill(&self.plain[self.plain_start..self.plain_end]) };
            if self.plain_start < self.plain_end || room.is_full() || !self.open_record()? {
                return Ok(());
            }
        }
    }

    /// The place of the next record's encrypted bytes and tag, if all of them have arrived.
    fn record(&self) -> io::Result<Option<std::ops::Range<usize>>> {
        let bytes = &self.received[self.start..self.end];
        let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*length));
        if !(TAG_BYTES..=RECORD_BYTES - LENGTH_BYTES).contains(&length) {
            return Err(io::Error::other(format!(
                "a record of {length} bytes: the bytes were altered on the way"
            )));
        }
        let start = self.start + LENGTH_BYTES;
        Ok((rest.len() >= length).then(|| start..start + length))
    }

    /// Decrypts the next record. Returns whether there was one.
    fn open_record(&mut self) -> io::Result<bool> {
        let Some(record) = self.record()? else { return Ok(false) };
        let end = record.end;
        let opened = self.cipher.decrypt(self.number, &self.received[record], &mut self.plain);
        let bytes = opened.ok_or_else(|| {
            io::Error::other("a record that does not decrypt: the bytes were altered on the way")
        })?;
        // The number of the record is used once, and the record is taken from the buffer.
        self.number += 1;
        (self.start, self.plain_start, self.plain_end) = (end, 0, bytes);
        Ok(true)
    }
}

#[cfg(all(test, feature = "encrypt"))]
mod tests;
