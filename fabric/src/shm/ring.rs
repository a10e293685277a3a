//! The inbox of a PE: a bounded ring of 64-byte cells with many producers and one consumer.
//!
//! Invariant: a cell between `head` and `tail` belongs to the producer that claimed it until its stamp equals
//! its position plus one, then to the consumer; all other cells are free and their stamps are 0. Peers can
//! write anything to a ring, so the consumer trusts no number in it: a message or a skip that would leave the
//! ring is [`Corrupt`]. States and proof sketch: README.md beside this file. Source: D. Vyukov's bounded
//! queue, extended by messages of several cells, which are claimed at once. A sender may fill its cells in
//! place, and may find that it needs fewer than it has claimed.

#[cfg(not(loom))]
use crate::copy;
use crate::sync::{AtomicU64, CacheLine, Ordering};
use crate::types::Pe;
use std::fmt;

/// Bytes in a cell of the ring.
pub const CELL_BYTES: usize = 64;
const WORDS: usize = CELL_BYTES / 8;
/// Words of a message's first cell that are not payload: stamp, sender and length, header.
const HEAD_WORDS: usize = 3;
/// Half words of payload that fit in a cell.
pub const HALVES: usize = 2 * (WORDS - HEAD_WORDS);
/// Bytes of payload that fit in a message's first cell.
const CELL_PAYLOAD_BYTES: usize = (WORDS - HEAD_WORDS) * 8;
/// Payload length that marks cells skipped at the end of the ring.
const PADDING: u32 = u32::MAX;

/// One cell: word 0 of a message's first cell is its stamp; word 0 of all cells is 0 when free.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Cell {
    pub(super) words: [AtomicU64; WORDS],
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

/// The content of a cell that no sender can have written. The ring cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt {
    /// The cell's position, counted in cells since the start.
    pub position: u64,
    /// The sender that the cell names; `None` if the cell is to be skipped, as such a cell names none.
    pub from: Option<Pe>,
    /// Bytes of payload that the cell claims to have; 0 if it is to be skipped.
    pub length_bytes: usize,
    /// Cells that the cell claims for itself and those behind it.
    pub cells: u64,
    /// Cells from this one to the end of the ring.
    pub cells_left: u64,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Corrupt { position, from, length_bytes, cells, cells_left } = self;
        write!(f, "the cell at position {position} ")?;
        match from {
            Some(from) => {
                write!(f, "claims a message of {length_bytes} bytes from PE {from}, {cells} cells")?
            }
            None => write!(f, "tells the receiver to skip {cells} cells")?,
        }
        write!(f, ", where the ring has {cells_left} left")
    }
}

/// A view of a ring in memory that all its users share.
#[derive(Clone, Copy)]
pub struct Ring<'m> {
    positions: &'m Positions,
    cells: &'m [Cell],
}

/// A buffer for the payload of one message that is received from a ring, aligned to words.
#[derive(Debug, Default)]
pub struct Payload {
    words: Vec<u64>,
    bytes: usize,
}

impl Payload {
    /// The payload that was received last.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `self.bytes` bytes of the words were written, as `fill` guarantees.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.bytes) }
    }

    /// The same as words, the last of which may have bytes that mean nothing.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words[..self.bytes.div_ceil(8)]
    }

    /// Makes room for `bytes` bytes, which the caller then writes there.
    fn room(&mut self, bytes: usize) -> *mut u64 {
        let words = bytes.div_ceil(8);
        if self.words.len() < words {
            self.words.resize(words.next_power_of_two(), 0);
        }
        self.bytes = bytes;
        self.words.as_mut_ptr()
    }
}

/// Cells that a sender has claimed and not yet filled: all messages behind them wait.
#[derive(Debug)]
pub struct Claim {
    start: u64,
    cells: u64,
}

/// A cell that a sender has claimed for a short message: all messages behind it wait.
#[derive(Debug)]
#[must_use = "the ring stands still until the cell is sent"]
pub struct ClaimedCell(u64);

impl Claim {
    /// Its position, counted in cells since the start.
    pub fn start(&self) -> u64 {
        self.start
    }
}

impl<'m> Ring<'m> {
    /// A view of a ring. All zero bytes are an empty ring.
    ///
    /// # Panics
    /// If the number of cells is not a power of two.
    pub fn new(positions: &'m Positions, cells: &'m [Cell]) -> Ring<'m> {
        assert!(cells.len().is_power_of_two(), "a ring has a power of two of cells, not {}", cells.len());
        Ring { positions, cells }
    }

    /// The largest payload that one message can carry, in bytes: half of the ring, so that a message fits at
    /// any distance from the ring's end.
    pub fn message_bytes(&self) -> usize {
        (self.cells.len() / 2) * CELL_BYTES - HEAD_WORDS * 8
    }

    /// The number of cells.
    pub fn capacity(&self) -> u64 {
        self.cells.len() as u64
    }

    /// The number of cells that were received since the start.
    #[inline]
    pub fn received(&self) -> u64 {
        self.positions.head.load(Ordering::Relaxed)
    }

    /// Whether there is no message for the owner of the inbox to receive.
    #[inline]
    pub fn is_empty(&self) -> bool {
        let (stamp, expected) = self.next_stamp();
        stamp.load(Ordering::Relaxed) != expected
    }

    /// The word of the next message's stamp, and its value once the message has arrived. Before that the word
    /// is 0.
    #[inline]
    pub fn next_stamp(&self) -> (&'m AtomicU64, u64) {
        let head = self.positions.head.load(Ordering::Relaxed);
        (&self.cell(head).words[0], head.wrapping_add(1))
    }

    /// Sends a message. Returns `false` if there is no room for it now.
    ///
    /// # Panics
    /// If the payload is longer than [`Ring::message_bytes`].
    pub fn send(&self, from: Pe, header: u64, payload: &[u8]) -> bool {
        self.send_words(from, header, &[], payload).is_some()
    }

    /// Claims the cell of a message of at most [`HALVES`] half words, to be sent by
    /// [`send_halves`](Ring::send_halves) at once; `None` if there is no room now.
    #[inline(always)]
    pub fn claim_cell(&self) -> Option<ClaimedCell> {
        self.reserve_one().map(ClaimedCell)
    }

    /// Sends a message of at most [`HALVES`] half words in a claimed cell. Returns its position, counted in
    /// cells since the start.
    #[inline(always)]
    pub fn send_halves(&self, cell: ClaimedCell, from: Pe, header: u64, halves: &[u32]) -> u64 {
        debug_assert!(halves.len() <= HALVES, "{} half words do not fit in a cell", halves.len());
        let ClaimedCell(position) = cell;
        let first = self.cell(position);
        let pairs = halves.len() / 2;
        for (i, word) in first.words[HEAD_WORDS..].iter().enumerate().take(pairs) {
            // SAFETY: the slice has two halves from this index on; any two halves are a valid word.
            let pair = unsafe { halves.as_ptr().add(2 * i).cast::<u64>().read_unaligned() };
            word.store(pair, Ordering::Relaxed);
        }
        if let (true, Some(&last)) = (halves.len() % 2 == 1, halves.last()) {
            // SAFETY: any two halves are a valid word.
            let pair = unsafe { std::mem::transmute::<[u32; 2], u64>([last, 0]) };
            first.words[HEAD_WORDS + pairs].store(pair, Ordering::Relaxed);
        }
        first.words[1].store(pack(from, 8 * halves.len().div_ceil(2) as u32), Ordering::Relaxed);
        first.words[2].store(header, Ordering::Relaxed);
        // SYNC POINT ring-message: releases sender, length, header and payload to the consumer.
        first.words[0].store(position.wrapping_add(1), Ordering::Release);
        position
    }

    /// Sends a message whose payload is these words and, behind them, these bytes. Returns its position,
    /// counted in cells since the start, or `None` if there is no room for it now.
    ///
    /// # Panics
    /// If both together are longer than [`Ring::message_bytes`].
    #[inline]
    pub fn send_words(&self, from: Pe, header: u64, words: &[u64], payload: &[u8]) -> Option<u64> {
        let bytes = size_of_val(words) + payload.len();
        let claim = self.claim(bytes)?;
        let first = self.cell(claim.start);
        match words.len() <= WORDS - HEAD_WORDS {
            true => {
                for (place, &word) in first.words[HEAD_WORDS..].iter().zip(words) {
                    place.store(word, Ordering::Relaxed);
                }
            }
            false => {
                for (i, &word) in words.iter().enumerate() {
                    self.word(claim.start, i).store(word, Ordering::Relaxed);
                }
            }
        }
        if !payload.is_empty() {
            self.write(claim.start, words.len(), payload);
        }
        self.publish(&claim, from, header, bytes);
        Some(claim.start)
    }

    /// Claims room for a message of at most `bytes` bytes, to be filled in place; `None` if there is no room
    /// now. The owner of the inbox receives no later message before this one is sent or given up.
    ///
    /// # Panics
    /// If `bytes` exceeds [`Ring::message_bytes`].
    #[inline]
    pub fn claim(&self, bytes: usize) -> Option<Claim> {
        let cells = cells_for(bytes);
        if bytes > self.message_bytes() {
            too_long(bytes);
        }
        let (position, skipped) = self.reserve(cells)?;
        if skipped > 0 {
            self.skip(position, skipped);
        }
        Some(Claim { start: position.wrapping_add(skipped), cells })
    }

    /// The place of byte `skipped` of the payload of a claimed message. The rest follows without a gap.
    #[cfg(not(loom))]
    pub fn place(&self, claim: &Claim, skipped: usize) -> *mut u8 {
        let first: *const AtomicU64 = self.word(claim.start, 0);
        first.cast::<u8>().wrapping_add(skipped).cast_mut()
    }

    /// Sends a claimed message of `bytes` bytes, which were written to their [`place`](Ring::place). The
    /// given words are the beginning of the payload.
    #[inline]
    pub fn send_claimed(&self, claim: Claim, from: Pe, header: u64, words: &[u64], bytes: usize) {
        for (i, &word) in words.iter().enumerate() {
            self.word(claim.start, i).store(word, Ordering::Relaxed);
        }
        let used = cells_for(bytes);
        debug_assert!(used <= claim.cells, "{bytes} bytes are more than was claimed");
        if used < claim.cells {
            self.skip(claim.start.wrapping_add(used), claim.cells - used);
        }
        self.publish(&claim, from, header, bytes);
    }

    /// Gives up claimed cells.
    pub fn give_up(&self, claim: Claim) {
        self.skip(claim.start, claim.cells);
    }

    /// Hands a filled message to the consumer.
    #[inline(always)]
    fn publish(&self, claim: &Claim, from: Pe, header: u64, bytes: usize) {
        let first = self.cell(claim.start);
        first.words[1].store(pack(from, bytes as u32), Ordering::Relaxed);
        first.words[2].store(header, Ordering::Relaxed);
        // SYNC POINT ring-message: releases sender, length, header and payload to the consumer.
        first.words[0].store(claim.start.wrapping_add(1), Ordering::Release);
    }

    /// Marks claimed cells as padding.
    #[cold]
    fn skip(&self, position: u64, cells: u64) {
        let first = self.cell(position);
        first.words[1].store(pack(0, PADDING), Ordering::Relaxed);
        first.words[2].store(cells, Ordering::Relaxed);
        // SYNC POINT ring-message: releases the padding's length to the consumer.
        first.words[0].store(position.wrapping_add(1), Ordering::Release);
    }

    /// Takes the oldest message, if there is one. Its payload is copied to `buffer` and its cells are freed.
    /// Then `read` gets its envelope and payload. Only the owner of the inbox calls this, one thread at a
    /// time.
    ///
    /// # Errors
    /// If the oldest cell is corrupt. It then stays in the ring.
    #[inline]
    pub fn receive<R>(
        &self,
        buffer: &mut Payload,
        read: impl FnOnce(Envelope, &mut Payload) -> R,
    ) -> Result<Option<R>, Corrupt> {
        loop {
            let head = self.positions.head.load(Ordering::Relaxed);
            let first = self.cell(head);
            // SYNC POINT ring-message: acquires what the producer wrote before the stamp.
            if first.words[0].load(Ordering::Acquire) != head.wrapping_add(1) {
                return Ok(None);
            }
            let (from, length) = unpack(first.words[1].load(Ordering::Relaxed));
            let word = first.words[2].load(Ordering::Relaxed);
            if length as usize <= CELL_PAYLOAD_BYTES {
                self.read_cell(first, length as usize, buffer);
                self.release(head, 1);
            } else if length == PADDING {
                self.release(head, self.checked(head, None, word, 0)?);
                continue;
            } else {
                let bytes = length as usize;
                let cells = self.checked(head, Some(from), cells_for(bytes), bytes)?;
                self.read_cells(head, bytes, buffer);
                self.release(head, cells);
            }
            return Ok(Some(read(Envelope { from, header: word }, buffer)));
        }
    }

    /// The cells that the cell at `head` claims, if there are that many from there to the ring's end.
    fn checked(&self, head: u64, from: Option<Pe>, cells: u64, length_bytes: usize) -> Result<u64, Corrupt> {
        let capacity = self.capacity();
        let cells_left = capacity - (head & (capacity - 1));
        if cells == 0 || cells > cells_left {
            return Err(Corrupt { position: head, from, length_bytes, cells, cells_left });
        }
        Ok(cells)
    }

    /// Reserves one cell. It may be any cell.
    #[inline(always)]
    fn reserve_one(&self) -> Option<u64> {
        let capacity = self.cells.len() as u64;
        let mut tail = self.positions.tail.load(Ordering::Relaxed);
        loop {
            // SYNC POINT ring-room: acquires the consumer's reads and clears of the cells before `head`.
            let head = self.positions.head.load(Ordering::Acquire);
            // The comparison is signed because a stale tail can lie behind head. The exchange below then
            // fails.
            if tail.wrapping_sub(head) as i64 >= capacity as i64 {
                return None;
            }
            let order = Ordering::Relaxed;
            match self.positions.tail.compare_exchange_weak(tail, tail.wrapping_add(1), order, order) {
                Ok(_) => return Some(tail),
                Err(now) => tail = now,
            }
        }
    }

    /// Reserves `cells` consecutive cells without wrapping. Returns the position of the first, and the number
    /// of cells at the ring's end that are skipped before them.
    #[inline]
    fn reserve(&self, cells: u64) -> Option<(u64, u64)> {
        let capacity = self.cells.len() as u64;
        let mut tail = self.positions.tail.load(Ordering::Relaxed);
        loop {
            // SYNC POINT ring-room: acquires the consumer's reads and clears of the cells before `head`.
            let head = self.positions.head.load(Ordering::Acquire);
            let to_end = capacity - (tail & (capacity - 1));
            let skipped = if to_end < cells { to_end } else { 0 };
            let end = tail.wrapping_add(skipped + cells);
            // A stale tail can lie behind head; the exchange below then fails and brings a fresh one.
            if end.saturating_sub(head) > capacity {
                return None;
            }
            let order = Ordering::Relaxed;
            let claimed = self.positions.tail.compare_exchange_weak(tail, end, order, order);
            match claimed {
                Ok(_) => return Some((tail, skipped)),
                Err(now) => tail = now,
            }
        }
    }

    /// Frees `count` cells. Their first words are cleared, because payload words left there could look like
    /// the stamp of a later round.
    fn release(&self, head: u64, count: u64) {
        for i in 0..count {
            self.cell(head.wrapping_add(i)).words[0].store(0, Ordering::Relaxed);
        }
        // SYNC POINT ring-room: releases the reads and clears above to the next producer of these cells.
        self.positions.head.store(head.wrapping_add(count), Ordering::Release);
    }

    #[inline(always)]
    fn cell(&self, position: u64) -> &'m Cell {
        // SAFETY: the number of cells is a power of two, which `new` checks, so the masked value is an index.
        unsafe { self.cells.get_unchecked(position as usize & (self.cells.len() - 1)) }
    }

    /// Word `i` of the payload of the message at `start`. A message does not wrap, so they follow each other
    /// without a gap.
    #[inline(always)]
    fn word(&self, start: u64, i: usize) -> &'m AtomicU64 {
        let i = HEAD_WORDS + i;
        &self.cell(start.wrapping_add((i / WORDS) as u64)).words[i % WORDS]
    }

    /// Writes the payload from word `skipped` on.
    #[cfg(not(loom))]
    fn write(&self, start: u64, skipped: usize, payload: &[u8]) {
        let target: *const AtomicU64 = self.word(start, skipped);
        // SAFETY: the message's cells are claimed, so they lie in the ring and no other thread accesses them.
        // The words of atomics may be written through shared references.
        unsafe { copy::copy(target.cast::<u8>().cast_mut(), payload.as_ptr(), payload.len()) };
    }

    #[cfg(loom)]
    fn write(&self, start: u64, skipped: usize, payload: &[u8]) {
        for (i, chunk) in payload.chunks(8).enumerate() {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            self.word(start, skipped + i).store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
    }

    /// Copies out a payload that lies in one cell.
    #[inline(always)]
    fn read_cell(&self, cell: &Cell, bytes: usize, buffer: &mut Payload) {
        let target = buffer.room(bytes);
        for (i, word) in cell.words[HEAD_WORDS..].iter().enumerate().take(bytes.div_ceil(8)) {
            // SAFETY: `room` has made the buffer large enough for all words of the payload.
            unsafe { target.add(i).write(word.load(Ordering::Relaxed)) };
        }
    }

    /// Copies out a payload that lies in several cells, none of them behind the end of the ring.
    #[cfg(not(loom))]
    fn read_cells(&self, start: u64, bytes: usize, buffer: &mut Payload) {
        let source: *const AtomicU64 = self.word(start, 0);
        // SAFETY: `checked` has compared the range with the ring. Peers may write to it at any time, which
        // this copy permits. The buffer has room for the bytes.
        unsafe { copy::copy(buffer.room(bytes).cast(), source.cast(), bytes) };
    }

    #[cfg(loom)]
    fn read_cells(&self, start: u64, bytes: usize, buffer: &mut Payload) {
        let target = buffer.room(bytes);
        for i in 0..bytes.div_ceil(8) {
            // SAFETY: `room` has made the buffer large enough for all words of the payload.
            unsafe { target.add(i).write(self.word(start, i).load(Ordering::Relaxed)) };
        }
    }
}

#[cold]
#[inline(never)]
fn too_long(bytes: usize) -> ! {
    panic!("a message of {bytes} bytes is longer than half of the ring")
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
    use proptest::prelude::*;

    /// Cells of other memory on both sides of the ring, which must not be accessed.
    const GUARD: usize = 4;
    const RING: usize = 16;
    const CANARY: u64 = 0xA5A5_A5A5_A5A5_A5A5;

    fn guarded() -> Vec<Cell> {
        let guard = || Cell { words: std::array::from_fn(|_| AtomicU64::new(CANARY)) };
        let cell = |i: usize| if (GUARD..GUARD + RING).contains(&i) { Cell::default() } else { guard() };
        (0..RING + 2 * GUARD).map(cell).collect()
    }

    fn is_untouched(cells: &[Cell]) -> bool {
        let guards = cells[..GUARD].iter().chain(&cells[GUARD + RING..]);
        guards.flat_map(|cell| &cell.words).all(|word| word.load(Ordering::Relaxed) == CANARY)
    }

    fn word() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            0..64u64,
            (0..64u64).prop_map(|length| (7 << 32) | (length * 16)),
            Just(u64::MAX)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// A peer writes arbitrary values to the cells and to both positions, the stamp of the next cell
        /// included: every message lies in the ring, and a message that does not fit there is an error.
        #[test]
        fn a_corrupt_ring_is_refused(
            head in prop_oneof![0..64u64, any::<u64>()],
            tail in prop_oneof![0..64u64, any::<u64>()],
            garbage in prop::collection::vec((0..RING, 0..WORDS, word()), 0..40),
            stamped in prop::collection::vec((word(), word()), RING),
        ) {
            let cells = guarded();
            let (positions, ring_cells) = (Positions::default(), &cells[GUARD..GUARD + RING]);
            positions.head.store(head, Ordering::Relaxed);
            positions.tail.store(tail, Ordering::Relaxed);
            for (cell, word, value) in garbage {
                ring_cells[cell].words[word].store(value, Ordering::Relaxed);
            }
            for (i, &(second, third)) in stamped.iter().enumerate() {
                let position = head.wrapping_add(i as u64);
                let words = &ring_cells[position as usize % RING].words;
                let stamp = position.wrapping_add(1);
                [stamp, second, third].iter().zip(words).for_each(|(v, w)| w.store(*v, Ordering::Relaxed));
            }
            let (ring, mut buffer) = (Ring::new(&positions, ring_cells), Payload::default());
            for _ in 0..RING {
                let received = ring.receive(&mut buffer, |_, payload| payload.bytes().to_vec());
                match received {
                    Ok(Some(payload)) => {
                        prop_assert!(payload.chunks(8).all(|word| word != CANARY.to_ne_bytes()));
                    }
                    Ok(None) => break,
                    Err(corrupt) => {
                        prop_assert!(corrupt.length_bytes > 40 || corrupt.length_bytes == 0);
                        break;
                    }
                }
                let _ = ring.send(3, 4, &[5; 100]);
            }
            prop_assert!(is_untouched(&cells));
        }
    }

    #[test]
    fn a_corrupt_cell_says_where_it_is_and_whose() {
        let (cells, positions): ([Cell; 16], Positions) = Default::default();
        let (ring, mut buffer) = (Ring::new(&positions, &cells), Payload::default());
        let mut outcome = |second, third| {
            let words = &cells[0].words;
            words
                .iter()
                .zip([1, second, third])
                .for_each(|(word, value)| word.store(value, Ordering::Relaxed));
            ring.receive(&mut buffer, |_, _| ()).unwrap_err()
        };
        let long = outcome(pack(3, 16 * 64), 0);
        assert_eq!((long.position, long.from, long.length_bytes), (0, Some(3), 1024));
        for cells in [0, 17, u64::MAX] {
            let skip = outcome(pack(3, PADDING), cells);
            assert_eq!((skip.position, skip.from, skip.length_bytes), (0, None, 0), "{cells} cells");
        }
        assert_eq!(ring.received(), 0, "nothing is taken from a ring that makes no sense");
    }

    /// A payload word lies in the place of the stamp of a later round: its remains must not look like a
    /// stamp.
    #[test]
    fn payload_never_looks_like_a_stamp() {
        let cells: [Cell; 8] = Default::default();
        let positions = Positions::default();
        let ring = Ring::new(&positions, &cells);
        let mut buffer = Payload::default();
        let mut take = || ring.receive(&mut buffer, |envelope, _| envelope.header).unwrap();
        // Two cells: payload word 5 is word 0 of cell 1, whose next stamp belongs to position 1 + 8.
        let forged = [0, 0, 0, 0, 0, 1 + 8 + 1u64].map(u64::to_ne_bytes).concat();
        assert!(ring.send(3, 100, &forged));
        assert_eq!(take(), Some(100));
        for header in 2..=8 {
            assert!(ring.send(3, header, &[]));
            assert_eq!(take(), Some(header));
        }
        assert_eq!(take(), None, "the head is at position 9, where no message was sent");
    }

    /// Polls check the word of the next stamp for a value other than 0, so it must be 0 before, whatever the
    /// cells held earlier.
    #[test]
    fn the_next_stamp_is_0_until_it_comes() {
        let cells: [Cell; 16] = Default::default();
        let positions = Positions::default();
        let ring = Ring::new(&positions, &cells);
        let mut buffer = Payload::default();
        let mut drain = || while ring.receive(&mut buffer, |_, _| ()).unwrap().is_some() {};
        let stamp = || ring.next_stamp().0.load(Ordering::Relaxed);
        for bytes in (0..400).chain((0..400).rev()).step_by(7) {
            assert!(ring.send(3, u64::MAX, &vec![255; bytes]));
            assert_ne!(stamp(), 0);
            drain();
            assert_eq!(stamp(), 0, "after a message of {bytes} bytes");
            let claim = ring.claim(bytes).unwrap();
            // SAFETY: the claimed cells have room for `bytes` bytes, and no other thread accesses them.
            unsafe { ring.place(&claim, 0).write_bytes(255, bytes) };
            drain();
            assert_eq!(stamp(), 0, "{bytes} bytes are written, but not sent");
            match bytes % 2 {
                0 => ring.send_claimed(claim, 3, 4, &[], bytes / 3),
                _ => ring.give_up(claim),
            }
            assert_ne!(stamp(), 0);
            drain();
            assert_eq!(stamp(), 0, "after a claim of {bytes} bytes");
        }
    }
}
