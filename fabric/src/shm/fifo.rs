//! A FIFO of messages from one PE to another: one producer and one consumer.
//!
//! A message takes one 64-byte cell: a stamp, two words of the user, and a short payload. A longer payload
//! lies in the data area beside the cells. Neither end reads what the other writes while there is room: the
//! consumer looks at the stamp of the next cell, and the producer keeps a copy of how far the consumer has
//! come.
//!
//! Invariant: the cell of position `p` belongs to the consumer from when its stamp names `p + 1` until the
//! consumer has come to `p + 1`, and to the producer otherwise. Both ends compute the place of a payload from
//! the lengths of all payloads so far. Peers can write anything here, so the consumer checks each length.
//! States: README.md beside this file. Source: B. Goglin, S. Moreaud, KNEM, and the fast boxes of Open MPI's
//! BTL for shared memory, for the idea of a queue for each pair of processes.

use super::ring::Cell;
#[cfg(not(loom))]
use crate::copy;
use crate::sync::{AtomicU64, CacheLine, Ordering, prefetch_for_write};
use std::fmt;

/// Cells of a FIFO.
pub const CELLS: usize = if cfg!(loom) { 2 } else { 64 };
/// Parts of the cells, and of the data area: see [`Consumer::has_freed_part`].
const PARTS: u64 = 4;
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
}

/// The end of a FIFO that receives.
pub struct Consumer<'m> {
    fifo: Fifo<'m>,
    head: u64,
    data_head: u64,
    /// Whether the last message has freed a part of the data area.
    has_freed_data: bool,
}

// SAFETY: the data area is accessed by opaque copies only, and its parts belong to one end at a time; all
// else is atomic.
unsafe impl Send for Fifo<'_> {}
// SAFETY: as for `Send`: opaque copies of parts that belong to one end, and atomics.
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
        Producer { fifo: self, tail: 0, data_tail: 0, known: [0; 2] }
    }

    /// The end that receives. A FIFO has one, which has received nothing before.
    pub fn consumer(self) -> Consumer<'m> {
        Consumer { fifo: self, head: 0, data_head: 0, has_freed_data: false }
    }
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
            let is_written = unsafe { self.write_data(head, tail, bytes) };
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
        cell[1].store(words[0], Ordering::Relaxed);
        cell[2].store(words[1], Ordering::Relaxed);
        // SYNC POINT fifo-message: releases words and payload to the consumer.
        cell[0].store(Fifo::stamp(self.tail, total), Ordering::Release);
        self.tail = self.tail.wrapping_add(1);
        true
    }

    /// Writes a payload to the data area; `false` if there is no room for it now.
    ///
    /// # Safety
    /// As [`send`](Producer::send).
    #[inline(never)]
    unsafe fn write_data(&mut self, head: &[u64], tail: *const u8, bytes: usize) -> bool {
        let (total, fifo) = (8 * head.len() + bytes, self.fifo);
        assert!(total <= fifo.message_bytes(), "a message of {total} bytes");
        let (offset, end) = place(self.data_tail, total, fifo.data_bytes);
        if end - self.known[1] > fifo.data_bytes as u64 {
            self.look();
            if end - self.known[1] > fifo.data_bytes as u64 {
                return false;
            }
        }
        self.data_tail = end;
        #[cfg(not(loom))]
        // SAFETY: the place lies in the data area, and belongs to this end: the consumer has freed it. The
        // caller guarantees the source.
        unsafe {
            let into = fifo.data.add(offset);
            copy::transfer(into, head.as_ptr().cast(), 8 * head.len());
            copy::transfer(into.add(8 * head.len()), tail, bytes);
        }
        #[cfg(loom)]
        let _ = (offset, tail);
        true
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
    pub fn oldest(&self) -> Result<Option<(Words, Payload<'_>)>, CorruptFifo> {
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
            // `place` returns a range inside the area.
            _ => {
                let (offset, _) = place(self.data_head, bytes, self.fifo.data_bytes);
                self.fifo.data.wrapping_add(offset).cast_const()
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

    /// Frees the cell and the place of the oldest message, whose payload has this length.
    #[inline(always)]
    pub fn release(&mut self, bytes: usize) {
        self.head = self.head.wrapping_add(1);
        let consumed = &self.fifo.shared.consumed;
        if bytes > INLINE_BYTES {
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    const DATA_BYTES: usize = 1024;

    /// Memory of a FIFO.
    #[repr(C, align(64))]
    struct Memory {
        shared: Shared,
        data: [u8; DATA_BYTES],
    }

    fn memory() -> Box<Memory> {
        // SAFETY: all zero bytes are valid for atomics and bytes.
        unsafe { Box::new(std::mem::zeroed()) }
    }

    fn fifo(memory: &mut Memory) -> Fifo<'_> {
        let data = memory.data.as_mut_ptr();
        // SAFETY: the area is used by this FIFO only.
        unsafe { Fifo::new(&memory.shared, data, DATA_BYTES) }
    }

    fn send(producer: &mut Producer<'_>, words: Words, head: &[u64], tail: &[u8]) -> bool {
        // SAFETY: the slice is valid for reads.
        unsafe { producer.send(words, head, tail.as_ptr(), tail.len()) }
    }

    fn bytes_of(payload: &Payload<'_>) -> Vec<u8> {
        let mut bytes = vec![0; payload.len()];
        // SAFETY: the vector has as many bytes as the payload.
        unsafe { payload.copy_to(bytes.as_mut_ptr(), 0, bytes.len()) };
        bytes
    }

    fn steps() -> impl Strategy<Value = Vec<(bool, usize, usize, u8)>> {
        prop::collection::vec((any::<bool>(), 0..=2_usize, 0..=200_usize, any::<u8>()), 0..400)
    }

    proptest! {
        /// Messages of all lengths arrive in order, with their words and payloads, as those of a queue; a
        /// message that is not taken stays.
        #[test]
        fn it_is_a_queue(steps in steps()) {
            let mut memory = memory();
            let fifo = fifo(&mut memory);
            let (mut producer, mut consumer) = (fifo.producer(), fifo.consumer());
            let mut model: VecDeque<(Words, Vec<u8>)> = VecDeque::new();
            for (number, (sends, heads, length, byte)) in steps.into_iter().enumerate() {
                if sends {
                    let words = [number as u64, u64::from(byte)];
                    let head: Vec<u64> = (1..=heads as u64).map(|i| i << 40 | i).collect();
                    let tail: Vec<u8> = (0..length).map(|i| (i as u8).wrapping_add(byte)).collect();
                    let is_sent = send(&mut producer, words, &head, &tail);
                    prop_assert!(is_sent || !model.is_empty(), "an empty FIFO has room");
                    if is_sent {
                        let all = head.iter().flat_map(|word| word.to_le_bytes()).chain(tail).collect();
                        model.push_back((words, all));
                    }
                } else {
                    let takes = byte.is_multiple_of(2);
                    let mut seen = None;
                    let taken = consumer.receive(|words, payload| {
                        seen = Some((words, bytes_of(payload)));
                        takes
                    });
                    prop_assert_eq!(&seen, &model.front().cloned());
                    prop_assert_eq!(taken, Ok(takes && seen.is_some()));
                    if takes {
                        model.pop_front();
                    }
                }
                prop_assert_eq!(consumer.has_message(), !model.is_empty());
            }
        }

        #[test]
        fn no_length_leads_out_of_the_fifo(length in any::<u32>()) {
            let mut memory = memory();
            let fifo = fifo(&mut memory);
            let mut consumer = fifo.consumer();
            fifo.cell(0)[0].store(1 << 32 | u64::from(length), Ordering::Relaxed);
            let outcome = consumer.receive(|_, payload| bytes_of(payload).len() == length as usize);
            match length as usize <= DATA_BYTES / 2 {
                true => prop_assert_eq!(outcome, Ok(true)),
                false => {
                    let (bytes, max_bytes) = (length as usize, DATA_BYTES / 2);
                    let corrupt = CorruptFifo { position: 0, bytes, max_bytes };
                    prop_assert_eq!(outcome, Err(corrupt));
                    prop_assert!(corrupt.to_string().contains(&length.to_string()));
                }
            }
        }
    }

    #[test]
    fn a_full_fifo_refuses_and_loses_nothing() {
        let mut memory = memory();
        let fifo = fifo(&mut memory);
        let (mut producer, mut consumer) = (fifo.producer(), fifo.consumer());
        for round in 0..3_u64 {
            let sent = (0..).take_while(|&i| send(&mut producer, [round, i], &[], &[])).count();
            assert_eq!(sent, CELLS);
            for i in 0..CELLS as u64 {
                let mut words = [0; 2];
                let outcome = consumer.receive(|seen, _| {
                    words = seen;
                    true
                });
                assert_eq!((outcome, words), (Ok(true), [round, i]));
            }
        }
        let sent = (0..).take_while(|_| send(&mut producer, [0, 0], &[], &[7; 300])).count();
        assert_eq!(sent, 3, "payloads of 320 bytes in 1024");
    }

    /// A producer that waits for room is told of it while the consumer empties a full FIFO.
    #[test]
    fn parts_are_freed_while_a_full_fifo_is_emptied() {
        for bytes in [0, 8, 41, 64, 100, 250, 512] {
            let mut memory = memory();
            let fifo = fifo(&mut memory);
            let (mut producer, mut consumer) = (fifo.producer(), fifo.consumer());
            let payload = vec![1; bytes];
            for round in 0..20 {
                let mut sent = 0;
                while send(&mut producer, [round, sent], &[], &payload) {
                    sent += 1;
                }
                let freed = (0..sent).filter(|_| {
                    assert_eq!(consumer.receive(|_, _| true), Ok(true));
                    consumer.has_freed_part()
                });
                let freed = freed.count();
                assert!(
                    freed >= 1 && freed <= 2 * PARTS as usize,
                    "{bytes} bytes: {freed} of {sent} messages"
                );
            }
        }
    }

    #[test]
    fn two_threads_see_every_message_in_order() {
        let mut memory = memory();
        let fifo = fifo(&mut memory);
        let (mut producer, mut consumer) = (fifo.producer(), fifo.consumer());
        let payload: Vec<u8> = (0..=255).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..20_000_u64 {
                    while !send(&mut producer, [i, 0], &[i], &payload[..(i % 256) as usize]) {
                        std::thread::yield_now();
                    }
                }
            });
            for i in 0..20_000_u64 {
                let take = |words: Words, message: &Payload<'_>| {
                    assert_eq!((words[0], message.words::<1>()[0]), (i, i));
                    assert_eq!(bytes_of(message)[8..], payload[..(i % 256) as usize]);
                    true
                };
                while !consumer.receive(take).expect("no cell is corrupt") {
                    std::thread::yield_now();
                }
            }
        });
    }
}
