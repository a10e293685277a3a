//! The record of a PE: the waits of its threads, encoded in the runtime's part of its heap, where the PEs of
//! its node read it and those of other nodes get it.
//!
//! Invariant: one thread of the PE writes at a time, and only in long waits. The first and the last word have
//! a sequence number, which is odd during a write: a reader that finds both equal and even has read one
//! consistent version. A network that splits transfers can mix two versions nevertheless. Such a record
//! differs in the next collection, and no decision depends on one collection only.
//!
//! ```text
//! | number | flags | waits | epoch | rounds | activity | barriers | waited, ms | bytes of text | said |
//! | what each wait needs: 4 times 2 words | text: 840 bytes | number |
//! ```

use crate::Pe;
use pelago_fabric::sync::{AtomicU64, Ordering, fence};
use std::time::Duration;

pub use crate::memory::segment::RECORD_WORDS;

const NUMBER: usize = 0;
const FLAGS: usize = 1;
const WAITS: usize = 2;
const EPOCH: usize = 3;
const ROUNDS: usize = 4;
const ACTIVITY: usize = 5;
const BARRIERS: usize = 6;
const WAITED: usize = 7;
const TEXT_BYTES: usize = 8;
const SAID: usize = 9;
const NEEDS: usize = 10;
/// The maximum number of waits whose needs are recorded; a mismatch that involves a PE with more waits is not
/// detected.
pub const NEEDS_MAX: usize = 4;
const TEXT: usize = NEEDS + 2 * NEEDS_MAX;
const NUMBER_AGAIN: usize = RECORD_WORDS - 1;
/// The size of the text, in bytes.
const TEXT_BYTES_MAX: usize = 8 * (NUMBER_AGAIN - TEXT);

/// All threads of its process wait.
const IDLE: u64 = 1;
/// No operation that it has started is outstanding.
const SETTLED: u64 = 2;
/// It has waited long enough to collect the records of the others.
const DUE: u64 = 4;
/// At least one wait is not for the start or the end of the job.
const WORKS: u64 = 8;

/// The need of a wait: the event without which it cannot end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The arrival of all PEs at this barrier of all PEs.
    All { round: u64 },
    /// This PE enters a collective call, or is released from it.
    Of(Pe),
    /// Another event.
    Unknown,
}

/// The contents of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub is_idle: bool,
    pub is_settled: bool,
    pub is_due: bool,
    pub works: bool,
    /// Threads that wait.
    pub waits: u64,
    /// Changes when a thread of its process begins or ends a long wait.
    pub epoch: u64,
    /// The number of times that all its waiting threads have checked their conditions.
    pub rounds: u64,
    /// Changes when a message arrives or an operation makes progress.
    pub activity: u64,
    /// The number of barriers of all PEs that it has entered.
    pub barriers: u64,
    pub waited: Duration,
    /// Whether it has reported the waits of all PEs.
    pub has_said: bool,
    /// One need for each thread that waits; empty if there are too many.
    pub needs: Vec<Need>,
    pub text: String,
}

impl Snapshot {
    /// Writes the snapshot as the record of this PE. The caller ensures that no other thread writes at the
    /// same time.
    pub fn write(&self, record: &[AtomicU64; RECORD_WORDS]) {
        let number = record[NUMBER].load(Ordering::Relaxed);
        let store = |place: usize, value: u64| record[place].store(value, Ordering::Relaxed);
        store(NUMBER, number + 1);
        // SYNC POINT record: orders the odd number before the words that follow.
        fence(Ordering::Release);
        let flag = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        let flags = flag(self.is_idle, IDLE) | flag(self.is_settled, SETTLED);
        store(FLAGS, flags | flag(self.is_due, DUE) | flag(self.works, WORKS));
        store(WAITS, self.waits);
        store(EPOCH, self.epoch);
        store(ROUNDS, self.rounds);
        store(ACTIVITY, self.activity);
        store(BARRIERS, self.barriers);
        store(WAITED, self.waited.as_millis() as u64);
        store(SAID, self.has_said.into());
        for place in 0..NEEDS_MAX {
            let (kind, value) = match self.needs.get(place) {
                Some(&Need::All { round }) => (1, round),
                Some(&Need::Of(pe)) => (2, pe as u64),
                Some(Need::Unknown) | None => (0, 0),
            };
            store(NEEDS + 2 * place, kind);
            store(NEEDS + 2 * place + 1, value);
        }
        let text = cut(&self.text, TEXT_BYTES_MAX);
        store(TEXT_BYTES, text.len() as u64);
        for (place, bytes) in text.as_bytes().chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            store(TEXT + place, u64::from_ne_bytes(word));
        }
        store(NUMBER_AGAIN, number + 2);
        // SYNC POINT record: releases the new version.
        record[NUMBER].store(number + 2, Ordering::Release);
    }

    /// Reads a record; `None` if it is being written.
    pub fn read(record: &[AtomicU64; RECORD_WORDS]) -> Option<Snapshot> {
        // SYNC POINT record: acquires the version.
        let number = record[NUMBER].load(Ordering::Acquire);
        let mut words = [0; RECORD_WORDS];
        for (word, there) in words.iter_mut().zip(record).skip(1) {
            *word = there.load(Ordering::Relaxed);
        }
        // SYNC POINT record: orders the words that were read before the second read of the number.
        fence(Ordering::Acquire);
        words[NUMBER] = record[NUMBER].load(Ordering::Relaxed);
        (words[NUMBER] == number).then(|| Snapshot::of(&words)).flatten()
    }

    /// The contents of these words; `None` if they are from two versions.
    fn of(words: &[u64; RECORD_WORDS]) -> Option<Snapshot> {
        if !words[NUMBER].is_multiple_of(2) || words[NUMBER] != words[NUMBER_AGAIN] {
            return None;
        }
        let waits = words[WAITS];
        let need = |place: usize| match (words[NEEDS + 2 * place], words[NEEDS + 2 * place + 1]) {
            (1, round) => Need::All { round },
            (2, pe) => Need::Of(pe as Pe),
            _ => Need::Unknown,
        };
        let needs =
            if waits as usize <= NEEDS_MAX { (0..waits as usize).map(need).collect() } else { Vec::new() };
        let bytes: Vec<u8> = words[TEXT..NUMBER_AGAIN].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let length = (words[TEXT_BYTES] as usize).min(TEXT_BYTES_MAX);
        let has = |bit| words[FLAGS] & bit != 0;
        Some(Snapshot {
            is_idle: has(IDLE),
            is_settled: has(SETTLED),
            is_due: has(DUE),
            works: has(WORKS),
            waits,
            epoch: words[EPOCH],
            rounds: words[ROUNDS],
            activity: words[ACTIVITY],
            barriers: words[BARRIERS],
            waited: Duration::from_millis(words[WAITED]),
            has_said: words[SAID] != 0,
            needs,
            text: String::from_utf8_lossy(&bytes[..length]).into_owned(),
        })
    }
}

/// The start of a text, at most `bytes` bytes long.
pub fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> [AtomicU64; RECORD_WORDS] {
        std::array::from_fn(|_| AtomicU64::new(0))
    }

    #[test]
    fn a_fresh_record_says_that_nobody_waits() {
        assert_eq!(Snapshot::read(&record()), Some(Snapshot::default()));
    }

    #[test]
    fn what_is_written_is_read() {
        let record = record();
        let snapshot = Snapshot {
            is_idle: true,
            is_settled: true,
            is_due: false,
            works: true,
            waits: 3,
            epoch: 4,
            rounds: 5,
            activity: 6,
            barriers: 7,
            waited: Duration::from_millis(8),
            has_said: true,
            needs: vec![Need::All { round: 9 }, Need::Of(10), Need::Unknown],
            text: "PE 1 in all_reduce, è".to_owned(),
        };
        snapshot.write(&record);
        assert_eq!(Snapshot::read(&record), Some(snapshot));
        let many =
            Snapshot {
                waits: 5, needs: vec![Need::Of(1); 5], text: "é".repeat(1000), ..Snapshot::default()
            };
        many.write(&record);
        let read = Snapshot::read(&record).unwrap();
        assert_eq!((read.needs.len(), read.text.len()), (0, TEXT_BYTES_MAX / 2 * 2));
    }

    #[test]
    fn a_writing_that_goes_on_is_not_read() {
        let record = record();
        Snapshot::default().write(&record);
        record[NUMBER].fetch_add(1, Ordering::Relaxed);
        assert_eq!(Snapshot::read(&record), None);
        record[NUMBER].fetch_add(1, Ordering::Relaxed);
        assert_eq!(Snapshot::read(&record), None, "the last word is of another writing");
    }
}
