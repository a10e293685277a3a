//! The inbox of a PE: a bounded ring of 64-byte cells with many producers and one consumer.
//!
//! Invariant: a cell between `head` and `tail` belongs to the producer that claimed it until its stamp equals
//! its position plus one, then to the consumer; all other cells are free and their stamps are not ahead of
//! their position. States and proof sketch: README.md beside this file. After D. Vyukov's bounded queue,
//! extended by messages of several cells, which are claimed at once.

use crate::sync::{AtomicU64, CacheLine, Ordering};
use crate::types::Pe;

/// Bytes in a cell of the ring.
pub const CELL_BYTES: usize = 64;
const WORDS: usize = CELL_BYTES / 8;
/// Words of a message's first cell that are not payload: stamp, sender and length, header.
const HEAD_WORDS: usize = 3;
/// Payload length that marks cells skipped at the end of the ring.
const PADDING: u32 = u32::MAX;

/// One cell: word 0 of a message's first cell is its stamp; word 0 of all cells is 0 or a past stamp when
/// free.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Cell {
    words: [AtomicU64; WORDS],
}

/// The two positions, counted in cells since the start and never wrapped, each on a cache line of its own.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Positions {
    tail: CacheLine<AtomicU64>,
    head: CacheLine<AtomicU64>,
}

/// A message as the consumer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The PE that sent it.
    pub from: Pe,
    /// 64 bits that travel beside the payload.
    pub header: u64,
}

/// A view of a ring in memory that all its users share.
#[derive(Clone, Copy)]
pub struct Ring<'m> {
    positions: &'m Positions,
    cells: &'m [Cell],
}

impl<'m> Ring<'m> {
    /// Looks at a ring. All zero bytes are an empty one.
    ///
    /// # Panics
    /// If the number of cells is not a power of two.
    pub fn new(positions: &'m Positions, cells: &'m [Cell]) -> Ring<'m> {
        assert!(cells.len().is_power_of_two(), "a ring has a power of two of cells, not {}", cells.len());
        Ring { positions, cells }
    }

    /// The largest payload that one message can carry, in bytes: half of the ring, so that a message fits
    /// wherever the ring's end happens to be.
    pub fn message_bytes(&self) -> usize {
        (self.cells.len() / 2) * CELL_BYTES - HEAD_WORDS * 8
    }

    /// Sends a message, or says `false` if there is no room for it now.
    ///
    /// # Panics
    /// If the payload is longer than [`Ring::message_bytes`].
    pub fn send(&self, from: Pe, header: u64, payload: &[u8]) -> bool {
        assert!(payload.len() <= self.message_bytes(), "a message of {} bytes is too long", payload.len());
        let cells = cells_for(payload.len());
        let Some((position, skipped)) = self.claim(cells) else { return false };
        if skipped > 0 {
            let first = self.cell(position);
            first.words[1].store(pack(from, PADDING), Ordering::Relaxed);
            first.words[2].store(skipped, Ordering::Relaxed);
            // SYNC POINT ring-message: releases the padding's length to the consumer.
            first.words[0].store(position + 1, Ordering::Release);
        }
        let start = position + skipped;
        self.write_payload(start, payload);
        let first = self.cell(start);
        first.words[1].store(pack(from, payload.len() as u32), Ordering::Relaxed);
        first.words[2].store(header, Ordering::Relaxed);
        // SYNC POINT ring-message: releases sender, length, header and payload to the consumer.
        first.words[0].store(start + 1, Ordering::Release);
        true
    }

    /// Takes the oldest message, if there is one: `read` gets its envelope and its payload, which is copied
    /// out into `buffer` first, and the cells are free again before `read` runs. Only the owner of the inbox
    /// calls this, one thread at a time.
    pub fn receive<R>(&self, buffer: &mut Vec<u8>, read: impl FnOnce(Envelope, &[u8]) -> R) -> Option<R> {
        loop {
            let head = self.positions.head.load(Ordering::Relaxed);
            let first = self.cell(head);
            // SYNC POINT ring-message: acquires what the producer wrote before the stamp.
            if first.words[0].load(Ordering::Acquire) != head + 1 {
                return None;
            }
            let (from, length) = unpack(first.words[1].load(Ordering::Relaxed));
            let word = first.words[2].load(Ordering::Relaxed);
            if length == PADDING {
                self.release(head, word);
                continue;
            }
            let payload_bytes = length as usize;
            self.read_payload(head, payload_bytes, buffer);
            self.release(head, cells_for(payload_bytes));
            return Some(read(Envelope { from, header: word }, buffer));
        }
    }

    /// Reserves `cells` consecutive cells without wrapping: position of the first, and how many cells at the
    /// ring's end are skipped before them.
    fn claim(&self, cells: u64) -> Option<(u64, u64)> {
        let capacity = self.cells.len() as u64;
        let mut tail = self.positions.tail.load(Ordering::Relaxed);
        loop {
            // SYNC POINT ring-room: acquires the consumer's reads and clears of the cells before `head`.
            let head = self.positions.head.load(Ordering::Acquire);
            let to_end = capacity - tail % capacity;
            let skipped = if to_end < cells { to_end } else { 0 };
            // A stale tail can lie behind head; the exchange below then fails and brings a fresh one.
            if (tail + skipped + cells).saturating_sub(head) > capacity {
                return None;
            }
            let claimed = self.positions.tail.compare_exchange_weak(
                tail,
                tail + skipped + cells,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match claimed {
                Ok(_) => return Some((tail, skipped)),
                Err(now) => tail = now,
            }
        }
    }

    /// Gives `count` cells back. Their first words are cleared, as payload words left there could look like
    /// the stamp of a later round.
    fn release(&self, head: u64, count: u64) {
        for i in 0..count {
            self.cell(head + i).words[0].store(0, Ordering::Relaxed);
        }
        // SYNC POINT ring-room: releases the reads and clears above to the next producer of these cells.
        self.positions.head.store(head + count, Ordering::Release);
    }

    fn cell(&self, position: u64) -> &'m Cell {
        &self.cells[position as usize & (self.cells.len() - 1)]
    }

    /// The words that hold the payload of a message at `start`, in order.
    fn payload_words(&self, start: u64, bytes: usize) -> impl Iterator<Item = &'m AtomicU64> {
        let this = *self;
        (HEAD_WORDS..HEAD_WORDS + bytes.div_ceil(8))
            .map(move |i| &this.cell(start + (i / WORDS) as u64).words[i % WORDS])
    }

    fn write_payload(&self, start: u64, payload: &[u8]) {
        for (word, chunk) in self.payload_words(start, payload.len()).zip(payload.chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
    }

    fn read_payload(&self, start: u64, bytes: usize, buffer: &mut Vec<u8>) {
        buffer.clear();
        for word in self.payload_words(start, bytes) {
            buffer.extend_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
        }
        buffer.truncate(bytes);
    }
}

/// Cells that a message with this payload takes.
fn cells_for(payload_bytes: usize) -> u64 {
    (HEAD_WORDS + payload_bytes.div_ceil(8)).div_ceil(WORDS) as u64
}

fn pack(from: Pe, length: u32) -> u64 {
    (from as u64) << 32 | u64::from(length)
}

fn unpack(word: u64) -> (Pe, u32) {
    ((word >> 32) as Pe, word as u32)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A payload word lies where the stamp of a later round will: what is left there must not look like one.
    #[test]
    fn payload_never_looks_like_a_stamp() {
        let cells: [Cell; 8] = Default::default();
        let positions = Positions::default();
        let ring = Ring::new(&positions, &cells);
        let mut buffer = Vec::new();
        let mut take = || ring.receive(&mut buffer, |envelope, _| envelope.header);
        // Two cells: payload word 5 is word 0 of cell 1, whose next stamp belongs to position 1 + 8.
        let forged = [0, 0, 0, 0, 0, 1 + 8 + 1u64].map(u64::to_ne_bytes).concat();
        assert!(ring.send(3, 100, &forged));
        assert_eq!(take(), Some(100));
        for header in 2..=8 {
            assert!(ring.send(3, header, &[]));
            assert_eq!(take(), Some(header));
        }
        assert_eq!(take(), None, "the head is at position 9, where nobody has sent anything");
    }
}
