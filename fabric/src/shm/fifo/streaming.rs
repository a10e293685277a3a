//! Stores that write a long payload of a FIFO: ordinary ones, or streaming ones ([`copy::stream`]).
//!
//! The lines of the data area lie in the cache of the consumer, which has read them before. An ordinary store
//! first fetches its line from there. This is fast between two threads of a core. Between cores that share no
//! cache (of two sockets, or of two groups of cores) it takes several times as long as a write to memory,
//! which is what a streaming store does. So each size class tries both, and tries again from time to time,
//! because processes move to other processors.
//!
//! Invariant: the time of a payload is the sum of two times: that of the producer to write it, and that of
//! the consumer to read it. Neither contains a wait for the other end, unless the consumer follows.

use crate::copy;
use crate::sync::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Shorter payloads are never streamed: ordinary stores wait in the store buffer while their lines come.
const STREAM_BYTES_MIN: usize = 1 << 10;
/// Size classes: from [`STREAM_BYTES_MIN`] on, each twice as long as the one before. The last has no end.
const CLASSES: usize = 6;
/// Payloads of a size class that try each of the two; the best of them counts. The first ones may touch pages
/// for the first time, which takes longer.
const TRIALS: u16 = 4;
/// Payloads of a size class before it tries again: at first, and at most. The number doubles as long as the
/// trials find the same.
const PAUSE: [u16; 2] = [64, 1024];
/// Streaming takes less than this part of the time of ordinary stores, where it is preferred: a smaller gain
/// may be noise.
const STREAMING_AT_MOST: f32 = 0.9;

/// How a payload is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stores {
    Ordinary,
    Streaming,
}

impl Stores {
    /// Copies a run of bytes.
    ///
    /// # Safety
    /// As [`copy::copy`].
    #[inline]
    pub(super) unsafe fn copy(self, target: *mut u8, source: *const u8, bytes: usize) {
        // SAFETY: the caller guarantees both ends.
        unsafe {
            match self {
                Stores::Ordinary => copy::transfer(target, source, bytes),
                Stores::Streaming => copy::stream(target, source, bytes),
            }
        }
    }
}

/// The state of a producer.
pub(super) struct Streaming {
    classes: [Class; CLASSES],
    timed: Option<Timed>,
}

/// A message that is timed, which the consumer has not reported yet.
struct Timed {
    position: u64,
    bytes: usize,
    stores: Stores,
    /// The time in which it was written.
    write_ns: u32,
}

/// A size class.
#[derive(Clone, Copy)]
struct Class {
    /// The stores of payloads that are no trials.
    stores: Stores,
    /// Payloads before the next trials.
    until_trials: u16,
    /// The same after those.
    pause: u16,
    /// Trials of both kinds of stores, and the least nanoseconds that a byte took in them.
    trials: [u16; 2],
    least_ns: [f32; 2],
}

impl Class {
    const NEW: Class = Class {
        stores: Stores::Ordinary,
        until_trials: 0,
        pause: PAUSE[0],
        trials: [0; 2],
        least_ns: [f32::INFINITY; 2],
    };

    /// Whether the next payload is not a trial.
    fn skips(&mut self) -> bool {
        let skips = self.until_trials > 0;
        self.until_trials -= u16::from(skips);
        skips
    }

    /// The stores of the next trial.
    fn tried(&self) -> Stores {
        if self.trials[0] <= self.trials[1] { Stores::Ordinary } else { Stores::Streaming }
    }

    /// Takes note of a trial, in which a byte took `ns` nanoseconds.
    fn note(&mut self, stores: Stores, ns: f32) {
        let i = stores as usize;
        self.trials[i] += 1;
        self.least_ns[i] = self.least_ns[i].min(ns);
        if self.trials.iter().any(|&n| n < TRIALS) {
            return;
        }
        let [ordinary, streaming] = self.least_ns;
        let best =
            if streaming < STREAMING_AT_MOST * ordinary { Stores::Streaming } else { Stores::Ordinary };
        if best != self.stores {
            (self.stores, self.pause) = (best, PAUSE[0]);
        }
        *self = Class {
            stores: self.stores,
            until_trials: self.pause,
            pause: (2 * self.pause).min(PAUSE[1]),
            ..Class::NEW
        };
    }
}

impl Streaming {
    pub(super) const NEW: Streaming = Streaming { classes: [Class::NEW; CLASSES], timed: None };

    fn class(&mut self, bytes: usize) -> &mut Class {
        let number = (bytes / STREAM_BYTES_MIN).ilog2() as usize;
        &mut self.classes[number.min(CLASSES - 1)]
    }

    /// How the payload of the message at this position, of this length, is written, and whether it is timed.
    /// `report` is the consumer's last one.
    #[inline]
    pub(super) fn next(&mut self, (position, bytes): (u64, usize), report: &AtomicU64) -> (Stores, bool) {
        if !copy::CAN_STREAM || bytes < STREAM_BYTES_MIN {
            return (Stores::Ordinary, false);
        }
        let class = self.class(bytes);
        if class.skips() { (class.stores, false) } else { self.try_next((position, bytes), report) }
    }

    #[cold]
    fn try_next(&mut self, (position, bytes): (u64, usize), report: &AtomicU64) -> (Stores, bool) {
        if let Some(Timed { position, bytes, stores, write_ns }) = self.timed {
            let Some(read_ns) = reported(report, position) else { return (self.class(bytes).stores, false) };
            self.timed = None;
            self.class(bytes).note(stores, (f64::from(write_ns) + f64::from(read_ns)) as f32 / bytes as f32);
        }
        let class = self.class(bytes);
        if class.until_trials > 0 {
            return (class.stores, false);
        }
        let stores = class.tried();
        self.timed = Some(Timed { position, bytes, stores, write_ns: u32::MAX });
        (stores, true)
    }

    /// The message that is timed was written in this time.
    #[cold]
    pub(super) fn note_written(&mut self, time: Duration) {
        if let Some(timed) = &mut self.timed {
            timed.write_ns = nanoseconds(time);
        }
    }
}

fn nanoseconds(time: Duration) -> u32 {
    time.as_nanos().try_into().unwrap_or(u32::MAX)
}

/// The nanoseconds in which the consumer has read the message at this position, if this report is about it.
fn reported(report: &AtomicU64, position: u64) -> Option<u32> {
    let report = report.load(Ordering::Relaxed);
    ((report >> 32) as u32 == position.wrapping_add(1) as u32).then_some(report as u32)
}

/// Reports that the message at this position was read from this time on until now.
#[cold]
#[inline(never)]
pub(super) fn report(report: &AtomicU64, position: u64, start: Instant) {
    let ns = nanoseconds(start.elapsed());
    report.store(position.wrapping_add(1) << 32 | u64::from(ns), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the trials of a class, in which a byte takes these nanoseconds by ordinary and by streaming
    /// stores.
    fn try_all(class: &mut Class, ordinary: f32, streaming: f32) {
        for n in 0..2 * TRIALS {
            assert!(!class.skips());
            let stores = class.tried();
            let ns = if stores == Stores::Ordinary { ordinary } else { streaming };
            // One that was interrupted.
            class.note(stores, if n == 3 { 100.0 } else { ns });
        }
    }

    /// Payloads until the next trials.
    fn pause(class: &mut Class) -> u16 {
        (0..).take_while(|_| class.skips()).count() as u16
    }

    #[test]
    fn the_faster_stores_are_taken_and_ordinary_ones_where_both_are_alike() {
        for (ordinary, streaming, best) in
            [(0.4, 0.1, Stores::Streaming), (0.05, 0.1, Stores::Ordinary), (0.1, 0.095, Stores::Ordinary)]
        {
            let mut class = Class::NEW;
            try_all(&mut class, ordinary, streaming);
            assert_eq!(class.stores, best, "{ordinary} and {streaming}");
        }
    }

    #[test]
    fn pauses_grow_while_trials_find_the_same() {
        let mut class = Class::NEW;
        let mut expected = PAUSE[0];
        for _ in 0..8 {
            try_all(&mut class, 0.05, 0.1);
            assert_eq!(pause(&mut class), expected);
            expected = (2 * expected).min(PAUSE[1]);
        }
        try_all(&mut class, 0.4, 0.1);
        assert_eq!(pause(&mut class), PAUSE[0], "what is new may change again soon");
        try_all(&mut class, 0.4, 0.1);
        assert_eq!((pause(&mut class), class.stores), (2 * PAUSE[0], Stores::Streaming));
    }

    fn report_time(place: &AtomicU64, position: u64, ns: u64) {
        place.store((position + 1) << 32 | ns.min(u64::from(u32::MAX)), Ordering::Relaxed);
    }

    /// A message that is written and read in these nanoseconds: its stores, and whether it was timed.
    fn send(
        streaming: &mut Streaming,
        place: &AtomicU64,
        (position, bytes): (u64, usize),
        ns: [u64; 2],
    ) -> (Stores, bool) {
        let (stores, is_timed) = streaming.next((position, bytes), place);
        if is_timed {
            streaming.note_written(Duration::from_nanos(ns[0]));
            report_time(place, position, ns[1]);
        }
        (stores, is_timed)
    }

    #[test]
    fn times_of_both_ends_count_for_the_size_class() {
        if !copy::CAN_STREAM {
            return;
        }
        let (mut streaming, place) = (Streaming::NEW, AtomicU64::new(0));
        assert_eq!(streaming.next((0, STREAM_BYTES_MIN - 1), &place), (Stores::Ordinary, false));
        assert_eq!(send(&mut streaming, &place, (7, 4096), [4096, 8192]), (Stores::Ordinary, true));
        assert_eq!(send(&mut streaming, &place, (8, 32 << 10), [1, 1]), (Stores::Ordinary, true));
        assert_eq!((streaming.classes[2].trials, streaming.classes[2].least_ns[0]), ([1, 0], 3.0));
        assert_eq!(send(&mut streaming, &place, (9, 4096), [1, u64::MAX]), (Stores::Streaming, true));
        assert_eq!(send(&mut streaming, &place, (10, 1 << 30), [1, 1]), (Stores::Streaming, true));
        assert_eq!((streaming.classes[2].trials, streaming.classes[5].trials), ([1, 1], [1, 0]));
        assert!(streaming.classes[2].least_ns[1] > 1e5, "the longest time");
    }

    #[test]
    fn a_message_without_a_report_holds_up_the_trials_alone() {
        if !copy::CAN_STREAM {
            return;
        }
        let (mut streaming, place) = (Streaming::NEW, AtomicU64::new(0));
        assert!(streaming.next((0, 8192), &place).1);
        for position in 1..100 {
            assert_eq!(streaming.next((position, 8192), &place), (Stores::Ordinary, false));
        }
        report_time(&place, 1, 0);
        assert_eq!(streaming.next((100, 8192), &place), (Stores::Ordinary, false), "another message");
        report_time(&place, 0, 0);
        assert_eq!(streaming.next((101, 8192), &place), (Stores::Streaming, true));
    }

    #[test]
    fn reports_name_their_message_and_its_time() {
        let place = AtomicU64::new(0);
        report(&place, 7, Instant::now() - Duration::from_millis(3));
        assert!(reported(&place, 7).is_some_and(|ns| ns >= 3_000_000));
        assert_eq!([reported(&place, 6), reported(&place, 8)], [None; 2]);
    }
}
