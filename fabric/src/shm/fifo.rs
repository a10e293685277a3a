//! A FIFO of messages from one PE to another: one producer and one consumer.
//!
//! A message takes one 64-byte cell: a stamp, two words of the user, and a short payload. A longer payload
//! lies in the data area beside the cells. Neither end reads what the other writes while there is room, but
//! for trials (`streaming.rs`): the
//! consumer looks at the stamp of the next cell, and the producer keeps a copy of how far the consumer has
//! come. A payload of more than [`CHUNK_BYTES`] is written in chunks if the consumer probably waits for it.
//! The consumer then copies each chunk while the next one is written.
//!
//! Invariant: the cell of position `p` belongs to the consumer from when its stamp names `p + 1` until the
//! consumer has come to `p + 1`, and to the producer otherwise. While its stamp says that the message is
//! being written, the consumer may read the chunks that are written. Both ends compute the place of a
//! payload from the lengths of all payloads so far. Peers can write anything here, so the consumer checks
//! each length.
//! States: README.md beside this file. Source: B. Goglin, S. Moreaud, KNEM, and the fast boxes of Open MPI's
//! BTL for shared memory, for the idea of a queue for each pair of processes.

#[cfg(not(loom))]
mod streaming;

use super::ring::Cell;
#[cfg(not(loom))]
use crate::copy;
#[cfg(not(loom))]
use crate::sync::fence;
use crate::sync::{AtomicU64, CacheLine, Ordering, prefetch_for_write, spin_once};
use std::fmt;
use std::ops::Range;
#[cfg(not(loom))]
use std::time::Instant;
#[cfg(not(loom))]
use streaming::{Stores, Streaming};

/// Cells of a FIFO.
pub const CELLS: usize = if cfg!(loom) { 2 } else { 64 };
/// Parts of the cells, and of the data area: see [`Consumer::has_freed_part`].
const PARTS: u64 = 4;
/// Bytes of a chunk of a long payload.
pub const CHUNK_BYTES: usize = if cfg!(loom) { 64 } else { 4 << 10 };
/// The word of a cell that says how much of a long payload is written.
const WRITTEN_WORD: usize = FIRST_PAYLOAD_WORD;
/// The word of a cell that is not 0 if the consumer is to report in which time it has read a long payload.
#[cfg(not(loom))]
const TIMED_WORD: usize = FIRST_PAYLOAD_WORD + 1;
/// The bit of a stamp that differs while its message is being written.
const BEGUN: u64 = 1 << 63;
/// How far in front of its tail a producer asks for the ownership of a cell.
const CELLS_AHEAD: u64 = 4;
/// Words of a cell that hold a payload.
const PAYLOAD_WORDS: usize = 5;
const FIRST_PAYLOAD_WORD: usize = 3;
/// Bytes of the longest payload that a cell holds.
pub const INLINE_BYTES: usize = 8 * PAYLOAD_WORDS;

/// How far the consumer has come: cells that it has received, and bytes of the data area that it has freed,
/// both since the start.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Consumed {
    cells: AtomicU64,
    bytes: AtomicU64,
}

/// The shared state of a FIFO, in front of its data area.
#[derive(Debug)]
#[cfg_attr(loom, derive(Default))]
#[repr(C)]
pub struct Shared {
    consumed: CacheLine<Consumed>,
    /// The consumer's report of the last message that was timed: its position plus 1, and nanoseconds.
    report: CacheLine<AtomicU64>,
    cells: [Cell; CELLS],
}

/// A view of a FIFO in memory that both ends share.
#[derive(Clone, Copy)]
pub struct Fifo<'m> {
    shared: &'m Shared,
    /// The data area.
    data: *mut u8,
    data_bytes: usize,
}

/// The two words that travel beside a payload.
pub type Words = [u64; 2];

/// The end of a FIFO that sends.
pub struct Producer<'m> {
    fifo: Fifo<'m>,
    /// Messages that were sent so far.
    tail: u64,
    /// Bytes of the data area that they have taken, with the gaps at its end.
    data_tail: u64,
    /// How far the consumer had come when the producer looked last.
    known: [u64; 2],
    /// Counts what comes from the consumer's PE, and its value at the last message of several chunks.
    pub(super) replies: Option<&'m AtomicU64>,
    replies_seen: u64,
    #[cfg(not(loom))]
    streaming: Streaming,
}

/// The end of a FIFO that receives.
pub struct Consumer<'m> {
    fifo: Fifo<'m>,
    head: u64,
    data_head: u64,
    /// Whether the last message has freed a part of the data area.
    has_freed_data: bool,
    /// When this end began to read the oldest message, if it is timed.
    #[cfg(not(loom))]
    reading: Option<Instant>,
}

// SAFETY: the parts of the data area belong to one end at a time, which the stamps of honest peers order; all
// else is atomic.
unsafe impl Send for Fifo<'_> {}
// SAFETY: as for `Send`: parts that belong to one end at a time, and atomics.
unsafe impl Sync for Fifo<'_> {}

/// A length that no producer can have written. The FIFO cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorruptFifo {
    /// The message's position, counted from 0.
    pub position: u64,
    /// Bytes of payload that it claims to have.
    pub bytes: usize,
    /// Bytes of the longest payload.
    pub max_bytes: usize,
}

impl fmt::Display for CorruptFifo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CorruptFifo { position, bytes, max_bytes } = self;
        write!(f, "message {position} claims {bytes} bytes, where a message has at most {max_bytes}")
    }
}

/// The payload of a message that is being received.
pub struct Payload<'a> {
    /// Start of the payload, in its cell or in the data area.
    #[cfg(not(loom))]
    data: *const u8,
    /// The payload's words: the model has no data area, and its atomics are not bytes.
    #[cfg(loom)]
    words: [u64; PAYLOAD_WORDS],
    bytes: usize,
    area: std::marker::PhantomData<&'a u8>,
}

impl<'a> Payload<'a> {
    /// The payload of a message that came by another way.
    #[cfg(not(loom))]
    pub fn of(bytes: &'a [u8]) -> Payload<'a> {
        Payload { data: bytes.as_ptr(), bytes: bytes.len(), area: std::marker::PhantomData }
    }

    /// Its length in bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Where it lies.
    #[cfg(not(loom))]
    pub fn start(&self) -> *const u8 {
        self.data
    }

    /// Copies `bytes` bytes of it, from `skipped` on.
    ///
    /// # Safety
    /// `target` is valid for writes of that many bytes, and the payload has `skipped + bytes`.
    #[inline(always)]
    pub unsafe fn copy_to(&self, target: *mut u8, skipped: usize, bytes: usize) {
        debug_assert!(skipped + bytes <= self.bytes, "the payload has {} bytes", self.bytes);
        #[cfg(not(loom))]
        // SAFETY: the caller guarantees the target and the range, which belongs to this end until the message
        // is released.
        unsafe {
            let source = self.data.add(skipped);
            let are_aligned = (source as usize | target as usize).is_multiple_of(8);
            match bytes {
                8 if are_aligned => copy::store(target.cast::<u64>(), copy::load(source.cast::<u64>())),
                _ => copy::transfer(target, source, bytes),
            }
        }
        #[cfg(loom)]
        // SAFETY: the caller guarantees the target and the range; the words are this end's own.
        unsafe {
            target.copy_from_nonoverlapping(self.words.as_ptr().cast::<u8>().add(skipped), bytes);
        }
    }

    /// The payload as words, as many as it has and at most `N`; the others are 0.
    #[inline]
    pub fn words<const N: usize>(&self) -> [u64; N] {
        let mut words = [0; N];
        // SAFETY: the words have room for as many bytes, and the payload has them.
        unsafe { self.copy_to(words.as_mut_ptr().cast(), 0, self.bytes.min(8 * N)) };
        words
    }
}

/// Where a payload of `bytes` bytes lies if `taken` bytes of the area were taken before, and the bytes that
/// are taken afterwards. A payload does not wrap round the end of the area.
#[inline]
fn place(taken: u64, bytes: usize, data_bytes: usize) -> (usize, u64) {
    let (size, offset) = (bytes.next_multiple_of(64), (taken as usize) & (data_bytes - 1));
    match offset + size <= data_bytes {
        true => (offset, taken + size as u64),
        false => (0, taken + (data_bytes - offset) as u64 + size as u64),
    }
}

/// Whether the message with this stamp is being written; `expected` is the value of the stamp's upper half
/// once the message has come.
#[inline(always)]
pub fn is_begun(stamp: &AtomicU64, expected: u32) -> bool {
    (stamp.load(Ordering::Relaxed) >> 32) as u32 == expected ^ (BEGUN >> 32) as u32
}

impl<'m> Fifo<'m> {
    /// Bytes of a FIFO with a data area of this size.
    pub const fn bytes(data_bytes: usize) -> usize {
        size_of::<Shared>() + data_bytes
    }

    /// The FIFO whose shared state is given, and whose data area of `data_bytes` bytes follows it. All zero
    /// bytes are an empty FIFO.
    ///
    /// # Safety
    /// The area lies behind the state, in memory that only the two ends of this FIFO access.
    ///
    /// # Panics
    /// If the size of the area is not a power of two, or less than 256.
    pub unsafe fn new(shared: &'m Shared, data: *mut u8, data_bytes: usize) -> Fifo<'m> {
        assert!(data_bytes.is_power_of_two() && data_bytes >= 256, "a data area of {data_bytes} bytes");
        Fifo { shared, data, data_bytes }
    }

    /// Bytes of the longest payload: half of the area, so that it fits at any distance from the area's end.
    pub fn message_bytes(&self) -> usize {
        self.data_bytes / 2
    }

    #[inline(always)]
    fn cell(&self, position: u64) -> &'m [AtomicU64; 8] {
        &self.shared.cells[position as usize & (CELLS - 1)].words
    }

    /// The stamp of the message at this position, with this length.
    #[inline(always)]
    fn stamp(position: u64, bytes: usize) -> u64 {
        (position.wrapping_add(1) << 32) | bytes as u64
    }

    /// The end that sends. A FIFO has one, which nothing was sent through before.
    pub fn producer(self) -> Producer<'m> {
        Producer {
            fifo: self,
            tail: 0,
            data_tail: 0,
            known: [0; 2],
            replies: None,
            replies_seen: 0,
            #[cfg(not(loom))]
            streaming: Streaming::NEW,
        }
    }

    /// The end that receives. A FIFO has one, which has received nothing before.
    pub fn consumer(self) -> Consumer<'m> {
        Consumer {
            fifo: self,
            head: 0,
            data_head: 0,
            has_freed_data: false,
            #[cfg(not(loom))]
            reading: None,
        }
    }
}

/// Writes the words and the stamp of the message in this cell.
#[inline(always)]
fn publish(cell: &[AtomicU64; 8], words: Words, stamp: u64) {
    cell[1].store(words[0], Ordering::Relaxed);
    cell[2].store(words[1], Ordering::Relaxed);
    // SYNC POINT fifo-message: releases words and payload to the consumer.
    cell[0].store(stamp, Ordering::Release);
}

impl<'m> Producer<'m> {
    /// Bytes of the longest payload.
    pub fn message_bytes(&self) -> usize {
        self.fifo.message_bytes()
    }

    /// Whether there is a cell for a message.
    #[inline(always)]
    fn has_cell(&mut self) -> bool {
        self.tail.wrapping_sub(self.known[0]) < CELLS as u64 || {
            self.look();
            self.tail.wrapping_sub(self.known[0]) < CELLS as u64
        }
    }

    #[cold]
    fn look(&mut self) {
        let consumed = &self.fifo.shared.consumed;
        // SYNC POINT fifo-room: acquires the consumer's reads of the cells and payloads that it has freed.
        self.known = [consumed.cells.load(Ordering::Acquire), consumed.bytes.load(Ordering::Acquire)];
    }

    /// Sends a message whose payload is `head` and, behind it, `bytes` bytes from `tail`. `false` if there is
    /// no room for it now.
    ///
    /// # Panics
    /// If the payload is longer than [`Producer::message_bytes`].
    ///
    /// # Safety
    /// `tail` is valid for reads of `bytes` bytes.
    #[inline(always)]
    pub unsafe fn send(&mut self, words: Words, head: &[u64], tail: *const u8, bytes: usize) -> bool {
        if !self.has_cell() {
            return false;
        }
        let total = 8 * head.len() + bytes;
        let cell = self.fifo.cell(self.tail);
        prefetch_for_write(self.fifo.cell(self.tail.wrapping_add(CELLS_AHEAD)));
        if head.is_empty() && bytes == 8 {
            // SAFETY: the caller guarantees the source.
            let word = unsafe { tail.cast::<u64>().read_unaligned() };
            cell[FIRST_PAYLOAD_WORD].store(word, Ordering::Relaxed);
        } else if total > INLINE_BYTES {
            // SAFETY: the caller guarantees the source.
            let is_written = unsafe { self.write_data(words, head, tail, bytes) };
            if !is_written {
                return false;
            }
        } else {
            let mut payload = [0_u64; PAYLOAD_WORDS];
            payload[..head.len()].copy_from_slice(head);
            // SAFETY: the caller guarantees the source; head and tail fit in the words.
            unsafe {
                payload.as_mut_ptr().add(head.len()).cast::<u8>().copy_from_nonoverlapping(tail, bytes);
            }
            for (place, word) in cell[FIRST_PAYLOAD_WORD..].iter().zip(payload) {
                place.store(word, Ordering::Relaxed);
            }
        }
        publish(cell, words, Fifo::stamp(self.tail, total));
        self.tail = self.tail.wrapping_add(1);
        true
    }

    /// Names the FIFO from the consumer's PE to this one.
    pub fn set_reverse(&mut self, reverse: Fifo<'m>) {
        self.replies = Some(&reverse.shared.consumed.cells);
    }

    /// Whether the consumer probably waits for this message of several chunks: something has come from it
    /// since the last one. Only then the payload can be followed: to tell the consumer how much is written
    /// takes time while it looks at the cell.
    #[inline]
    fn is_awaited(&mut self) -> bool {
        let replies = self.replies.map_or(0, |replies| replies.load(Ordering::Relaxed));
        std::mem::replace(&mut self.replies_seen, replies) != replies
    }

    /// Writes a payload to the data area, for a message with these words; `false` if there is no room for it
    /// now.
    ///
    /// # Safety
    /// As [`send`](Producer::send).
    #[inline(never)]
    unsafe fn write_data(&mut self, words: Words, head: &[u64], tail: *const u8, bytes: usize) -> bool {
        let head_bytes = 8 * head.len();
        let Some(into) = self.take_place(head_bytes + bytes) else { return false };
        #[cfg(not(loom))]
        let (stores, start) = self.stores(bytes);
        #[cfg(not(loom))]
        let write = |into: *mut u8, range: Range<usize>| {
            let heads = if range.start == 0 { head_bytes } else { 0 };
            // SAFETY: the place has room for the range, the first of which has the head. The caller
            // guarantees the source.
            unsafe {
                copy::transfer(into, head.as_ptr().cast(), heads);
                let source = tail.add(range.start + heads - head_bytes);
                stores.copy(into.add(heads), source, range.len() - heads);
            }
        };
        #[cfg(loom)]
        let write = |_, _| _ = tail;
        match head_bytes + bytes {
            short @ ..=CHUNK_BYTES => write(into, 0..short),
            long => self.write_in_chunks(words, (into, long), write),
        }
        #[cfg(not(loom))]
        if let Some(start) = start {
            // Ordinary stores are in memory only now.
            fence(Ordering::SeqCst);
            self.streaming.note_written(start.elapsed());
        }
        true
    }

    /// How the payload of the next message is written, with `bytes` bytes from one place, and the time if it
    /// is timed.
    #[cfg(not(loom))]
    #[inline]
    fn stores(&mut self, bytes: usize) -> (Stores, Option<Instant>) {
        let (stores, is_timed) = self.streaming.next((self.tail, bytes), &self.fifo.shared.report);
        self.fifo.cell(self.tail)[TIMED_WORD].store(is_timed.into(), Ordering::Relaxed);
        (stores, is_timed.then(Instant::now))
    }

    /// Sends a message with a payload of `bytes` bytes, more than fit in a cell. `write` writes it: it gets
    /// the ranges of the payload in their order, and the place of each. `false` if there is no room for the
    /// message now.
    ///
    /// # Panics
    /// If the payload is longer than [`Producer::message_bytes`].
    #[inline(always)]
    pub fn send_in_chunks(
        &mut self,
        words: Words,
        bytes: usize,
        mut write: impl FnMut(*mut u8, Range<usize>),
    ) -> bool {
        let Some(into) = self.take_place(bytes) else { return false };
        #[cfg(not(loom))]
        self.fifo.cell(self.tail)[TIMED_WORD].store(0, Ordering::Relaxed);
        self.write_in_chunks(words, (into, bytes), &mut write);
        publish(self.fifo.cell(self.tail), words, Fifo::stamp(self.tail, bytes));
        self.tail = self.tail.wrapping_add(1);
        true
    }

    /// Writes a payload of several chunks: all at once, or so that a consumer that waits for it is told how
    /// far it is written.
    #[inline]
    fn write_in_chunks(
        &mut self,
        words: Words,
        (into, bytes): (*mut u8, usize),
        mut write: impl FnMut(*mut u8, Range<usize>),
    ) {
        if !self.is_awaited() {
            return write(into, 0..bytes);
        }
        let written_word = &self.fifo.cell(self.tail)[WRITTEN_WORD];
        for written in (0..bytes).step_by(CHUNK_BYTES) {
            write(into.wrapping_add(written), written..bytes.min(written + CHUNK_BYTES));
            let written = written + CHUNK_BYTES;
            if written < bytes {
                // SYNC POINT fifo-chunk: releases the chunk to a consumer that follows.
                written_word.store(written as u64, Ordering::Release);
                if written == CHUNK_BYTES {
                    publish(self.fifo.cell(self.tail), words, Fifo::stamp(self.tail, bytes) ^ BEGUN);
                }
            }
        }
    }

    /// Takes a place in the data area for a payload, if there is a cell for its message.
    #[inline]
    fn take_place(&mut self, bytes: usize) -> Option<*mut u8> {
        let fifo = self.fifo;
        assert!(bytes <= fifo.message_bytes(), "a message of {bytes} bytes");
        if !self.has_cell() {
            return None;
        }
        let (offset, end) = place(self.data_tail, bytes, fifo.data_bytes);
        if end - self.known[1] > fifo.data_bytes as u64 {
            self.look();
            if end - self.known[1] > fifo.data_bytes as u64 {
                return None;
            }
        }
        self.data_tail = end;
        // `place` returns a range inside the area, and the consumer has freed it.
        Some(fifo.data.wrapping_add(offset))
    }
}

impl<'m> Consumer<'m> {
    /// The stamp of the next message, and the value of its upper half once that message has come.
    #[inline(always)]
    pub fn next_stamp(&self) -> (&'m AtomicU64, u32) {
        (&self.fifo.cell(self.head)[0], self.head.wrapping_add(1) as u32)
    }

    /// Whether there is a message.
    #[inline(always)]
    pub fn has_message(&self) -> bool {
        let (stamp, expected) = self.next_stamp();
        (stamp.load(Ordering::Relaxed) >> 32) as u32 == expected
    }

    /// Whether the message that was taken last has freed a part of the cells or of the data area: then a
    /// sender that sleeps because it had no room is to be woken. It misses no room: if the FIFO is full, more
    /// than a part is taken before it is empty.
    #[inline(always)]
    pub fn has_freed_part(&mut self) -> bool {
        std::mem::take(&mut self.has_freed_data)
            || self.head.is_multiple_of(CELLS as u64 / PARTS.min(CELLS as u64))
    }

    /// Receives the oldest message, if there is one: `take` gets its words and payload, and says whether it
    /// has taken the message. If it has not, the message stays the oldest one. The result says whether a
    /// message was taken.
    ///
    /// # Errors
    /// If the message is corrupt; it then stays.
    #[inline(always)]
    pub fn receive(&mut self, take: impl FnOnce(Words, &Payload<'_>) -> bool) -> Result<bool, CorruptFifo> {
        let Some((words, payload)) = self.oldest()? else { return Ok(false) };
        let (bytes, is_taken) = (payload.len(), take(words, &payload));
        if is_taken {
            self.release(bytes);
        }
        Ok(is_taken)
    }

    /// The words and the payload of the oldest message, if there is one.
    ///
    /// # Errors
    /// If the message is corrupt.
    #[inline(always)]
    pub fn oldest(&mut self) -> Result<Option<(Words, Payload<'_>)>, CorruptFifo> {
        let (cell, head) = (self.fifo.cell(self.head), self.head);
        // SYNC POINT fifo-message: acquires what the producer wrote before the stamp.
        let stamp = cell[0].load(Ordering::Acquire);
        if (stamp >> 32) as u32 != head.wrapping_add(1) as u32 {
            return Ok(None);
        }
        let (bytes, max_bytes) = (stamp as u32 as usize, self.fifo.message_bytes());
        if bytes > max_bytes {
            return Err(CorruptFifo { position: head, bytes, max_bytes });
        }
        let payload_words = &cell[FIRST_PAYLOAD_WORD..];
        let data = match bytes {
            0..=INLINE_BYTES => payload_words.as_ptr().cast(),
            _ => {
                self.start_reading();
                self.long_payload(bytes)
            }
        };
        #[cfg(loom)]
        let _: *const u8 = data;
        let payload = Payload {
            #[cfg(not(loom))]
            data,
            #[cfg(loom)]
            words: std::array::from_fn(|i| payload_words[i].load(Ordering::Relaxed)),
            bytes,
            area: std::marker::PhantomData,
        };
        let words = [cell[1].load(Ordering::Relaxed), cell[2].load(Ordering::Relaxed)];
        Ok(Some((words, payload)))
    }

    /// Takes note of the time, if this long message is timed.
    #[inline(always)]
    fn start_reading(&mut self) {
        #[cfg(not(loom))]
        if self.fifo.cell(self.head)[TIMED_WORD].load(Ordering::Relaxed) != 0 {
            self.reading = Some(Instant::now());
        }
    }

    /// Where the payload of the oldest message lies, if it has this length and does not fit in a cell.
    #[inline(always)]
    fn long_payload(&self, bytes: usize) -> *const u8 {
        // `place` returns a range inside the area.
        let (offset, _) = place(self.data_head, bytes, self.fifo.data_bytes);
        self.fifo.data.wrapping_add(offset)
    }

    /// Follows the sender of the oldest message, which has begun to write a payload for these words: `read`
    /// gets the ranges of the payload in their order, and the place of each, as they are written. The length
    /// of the payload, once it has all of it; `None` if no such message has begun, or the sender does not go
    /// on within `looks` looks. The message stays the oldest one, and what was read can be read again.
    pub fn follow(
        &mut self,
        words: Words,
        looks: u32,
        mut read: impl FnMut(*const u8, Range<usize>),
    ) -> Option<usize> {
        let cell = self.fifo.cell(self.head);
        // SYNC POINT fifo-message: acquires the words and the first chunk.
        let begun = cell[0].load(Ordering::Acquire);
        let bytes = begun as u32 as usize;
        let complete = Fifo::stamp(self.head, bytes);
        let is_expected = begun ^ BEGUN == complete
            && (INLINE_BYTES + 1..=self.fifo.message_bytes()).contains(&bytes)
            && [1, 2].map(|i| cell[i].load(Ordering::Relaxed)) == words;
        if !is_expected {
            return None;
        }
        self.start_reading();
        let data = self.long_payload(bytes);
        let (mut done, mut left) = (0, looks);
        while done < bytes {
            // SYNC POINT fifo-chunk, fifo-message: acquires the chunks that are written.
            let written = match cell[0].load(Ordering::Acquire) == complete {
                true => bytes,
                false => bytes.min(cell[WRITTEN_WORD].load(Ordering::Acquire) as usize),
            };
            if written > done {
                read(data.wrapping_add(done), done..written);
                (done, left) = (written, looks);
            } else {
                left = left.checked_sub(1)?;
                spin_once();
            }
        }
        // The message counts as come only when its stamp says so.
        self.has_message().then_some(bytes)
    }

    /// Frees the cell and the place of the oldest message, whose payload has this length.
    #[inline(always)]
    pub fn release(&mut self, bytes: usize) {
        let head = self.head;
        self.head = head.wrapping_add(1);
        let consumed = &self.fifo.shared.consumed;
        if bytes > INLINE_BYTES {
            #[cfg(not(loom))]
            if let Some(start) = self.reading.take() {
                streaming::report(&self.fifo.shared.report, head, start);
            }
            let (_, data_head) = place(self.data_head, bytes, self.fifo.data_bytes);
            let part = |bytes: u64| bytes / (self.fifo.data_bytes as u64 / PARTS);
            self.has_freed_data = part(data_head) != part(self.data_head);
            self.data_head = data_head;
            // SYNC POINT fifo-room: releases the reads of the payload to the producer.
            consumed.bytes.store(data_head, Ordering::Release);
        }
        // SYNC POINT fifo-room: releases the reads of the cell to the producer.
        consumed.cells.store(self.head, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
