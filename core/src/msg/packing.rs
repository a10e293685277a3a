//! Data that do not lie in one piece: they are packed into the FIFO, and unpacked from where they arrive.
//!
//! Invariant: a send whose data are packed is announced, and its data leave in pieces: no other PE reads
//! them. So it moves only while its sender makes progress.

use super::process;
use super::request::Request;
use super::state::{Exchange, Out, SOLICITED};
use super::wire::Kind;
use pelago_fabric::copy;
use pelago_fabric::shm::fifo::{INLINE_BYTES, Payload};
use std::ops::Range;

/// Bytes that are read from another process before they are unpacked.
const READ_BYTES: usize = 32 << 10;

/// Where the data of a message lie, if not in one piece.
pub trait Packing: Send {
    /// Copies a range of the data, counted as if they lay one after the other, to `into`.
    ///
    /// # Safety
    /// `into` is valid for writes of the range's length, and the data for reads.
    unsafe fn pack(&self, range: Range<usize>, into: *mut u8);

    /// The reverse.
    ///
    /// # Safety
    /// `from` is valid for reads of the range's length, and the data's places for writes.
    unsafe fn unpack(&self, range: Range<usize>, from: *const u8);
}

impl Request {
    /// Stores bytes of a message, from its byte `first` on.
    ///
    /// # Safety
    /// `from` is valid for reads. This is a receive whose room has those bytes.
    #[inline]
    pub(super) unsafe fn store(&self, first: usize, from: *const u8, bytes: usize) {
        // SAFETY: the caller guarantees `from`; the caller of the receive keeps its room valid.
        unsafe {
            match &self.packing {
                None => copy::transfer(self.buffer.add(first), from, bytes),
                Some(packing) => packing.unpack(first..first + bytes, from),
            }
        }
    }

    /// Stores bytes of a payload, from its byte `skipped` on, as the bytes of the message from `first` on.
    ///
    /// # Safety
    /// This is a receive whose room has those bytes, and the payload has them.
    #[inline]
    pub(super) unsafe fn store_payload(
        &self,
        first: usize,
        payload: &Payload<'_>,
        skipped: usize,
        bytes: usize,
    ) {
        // SAFETY: the caller guarantees the payload; the caller of the receive keeps its room valid.
        unsafe {
            match &self.packing {
                None => payload.copy_to(self.buffer.add(first), skipped, bytes),
                Some(packing) => packing.unpack(first..first + bytes, payload.start().add(skipped)),
            }
        }
    }
}

impl Out {
    /// Sends the next `bytes` bytes of a long message; `false` if there is no room now.
    ///
    /// # Safety
    /// The data of the send are valid for reads.
    pub(super) unsafe fn send_piece(&mut self, send: &Request, bytes: usize) -> bool {
        let (words, first, fifo) =
            ([Kind::Data.with(send.partner), 0], send.moved, &mut self.fifos[SOLICITED]);
        // SAFETY: the caller guarantees the data; the FIFO and the array have room for them.
        unsafe {
            match &send.packing {
                None => fifo.send(words, &[], send.buffer.add(first), bytes),
                Some(packing) if bytes <= INLINE_BYTES => {
                    let mut short = [0; INLINE_BYTES];
                    packing.pack(first..first + bytes, short.as_mut_ptr());
                    fifo.send(words, &[], short.as_ptr(), bytes)
                }
                Some(packing) => fifo.send_in_chunks(words, bytes, |into, range| {
                    packing.pack(first + range.start..first + range.end, into);
                }),
            }
        }
    }
}

impl Exchange {
    /// Reads the data of a send from the memory of its process, and unpacks them. Returns whether all could
    /// be read.
    ///
    /// # Safety
    /// The places of the data are valid for writes.
    pub(super) unsafe fn read_and_unpack(
        &mut self,
        (pid, address): (u32, u64),
        packing: &dyn Packing,
        bytes: usize,
    ) -> bool {
        let mut room = std::mem::take(&mut self.scratch);
        room.resize(READ_BYTES.min(bytes).max(room.len()), 0);
        let is_read = (0..bytes).step_by(READ_BYTES).all(|first| {
            let length = READ_BYTES.min(bytes - first);
            // SAFETY: the room has that length; the caller guarantees the places of the data.
            unsafe {
                let is_read =
                    process::read(pid, address.wrapping_add(first as u64), room.as_mut_ptr(), length);
                if is_read {
                    packing.unpack(first..first + length, room.as_ptr());
                }
                is_read
            }
        });
        self.scratch = room;
        is_read
    }
}
