//! Stores that write a long payload of a FIFO: ordinary ones, or streaming ones ([`copy::stream`]).
//!
//! The lines of the data area lie in the cache of the consumer, which has read them before. An ordinary store
//! first fetches its line from there. Between two threads of a core this takes little time, between cores
//! that do not share a cache (of two sockets, or of two groups of cores) several times as long as the way
//! through memory, which streaming stores take. So each size class tries both, and tries again from time to
//! time, because processes move to other processors. The producer notes in the cell when it began, and the
//! consumer reports how long the message took.
//!
//! Invariant: a message is timed only if the FIFO was empty before it, so that the time is its own.

use crate::copy;
use crate::sync::{AtomicU64, Ordering};

/// Shorter payloads are never streamed: ordinary stores wait in the store buffer while their lines come.
const STREAM_BYTES_MIN: usize = super::LONG_BYTES;
/// Size classes: from [`STREAM_BYTES_MIN`] on, each twice as long as the one before. The last has no end.
const CLASSES: usize = 6;
/// Payloads of a size class that try each of the two; the best of them counts. The first ones may touch pages
/// for the first time, which takes longer.
const TRIALS: u16 = 4;
/// Payloads of a size class before it tries again: at first, and at most. The number doubles as long as the
/// trials find the same.
const PAUSE: [u16; 2] = [64, 1024];
/// Streaming takes less than this part of the time of ordinary stores, where it is preferred: the consumer
/// then finds nothing in its cache.
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
    /// The message that is timed: its position, its length in bytes, and its stores.
    timed: Option<(u64, usize, Stores)>,
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

    /// How the payload of the message at this position, of this length, is written, and the time to note in
    /// its cell: 0 if it is not a trial. It can be one if the consumer waits for it, as `is_awaited` and
    /// then `is_empty`, which takes longer, say. `report` is the consumer's last one.
    #[inline]
    pub(super) fn next(
        &mut self,
        (position, bytes): (u64, usize),
        report: &AtomicU64,
        is_awaited: bool,
        is_empty: impl FnOnce() -> bool,
    ) -> (Stores, u64) {
        if !copy::CAN_STREAM || bytes < STREAM_BYTES_MIN {
            return (Stores::Ordinary, 0);
        }
        let class = self.class(bytes);
        match class.skips() || !is_awaited || !is_empty() {
            true => (class.stores, 0),
            false => self.try_next((position, bytes), report),
        }
    }

    #[cold]
    fn try_next(&mut self, (position, bytes): (u64, usize), report: &AtomicU64) -> (Stores, u64) {
        if let Some((timed, bytes, stores)) = self.timed.take()
            && let Some(ns) = reported(report, timed)
        {
            self.class(bytes).note(stores, ns as f32 / bytes as f32);
        }
        let class = self.class(bytes);
        if class.until_trials > 0 {
            return (class.stores, 0);
        }
        let stores = class.tried();
        self.timed = Some((position, bytes, stores));
        (stores, now_ns())
    }
}

/// The nanoseconds that the message at this position took, if this report is about it.
fn reported(report: &AtomicU64, position: u64) -> Option<u32> {
    let report = report.load(Ordering::Relaxed);
    ((report >> 32) as u32 == position.wrapping_add(1) as u32).then_some(report as u32)
}

/// Reports that the message at this position, which was begun at this time, has been received.
#[cold]
#[inline(never)]
pub(super) fn report(report: &AtomicU64, position: u64, begun_ns: u64) {
    // A time before the start is one of another clock.
    let ns = now_ns().checked_sub(begun_ns).and_then(|ns| u32::try_from(ns).ok()).unwrap_or(u32::MAX);
    report.store(position.wrapping_add(1) << 32 | u64::from(ns), Ordering::Relaxed);
}

/// Nanoseconds of the clock that all processes of a node share; not 0.
fn now_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is valid for writes. The clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64).max(1)
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

    #[test]
    fn only_awaited_messages_of_an_empty_fifo_are_timed() {
        let (mut streaming, place) = (Streaming::NEW, AtomicU64::new(0));
        let untimed = (Stores::Ordinary, 0);
        assert_eq!(streaming.next((0, 8192), &place, false, || panic!("nobody waits")), untimed);
        assert_eq!(streaming.next((1, 8192), &place, true, || false), untimed);
        let (_, begun) = streaming.next((2, 8192), &place, true, || true);
        assert_eq!(begun > 0, copy::CAN_STREAM);
        // The pieces behind it do not lose its report.
        report(&place, 2, begun);
        assert_eq!(streaming.next((3, 8192), &place, false, || true), untimed);
        streaming.next((4, 8192), &place, true, || true);
        assert_eq!(streaming.class(8192).trials, [u16::from(copy::CAN_STREAM), 0]);
    }

    #[test]
    fn size_classes_have_trials_of_their_own_and_reports_count_for_theirs() {
        if !copy::CAN_STREAM {
            return;
        }
        let (mut streaming, place) = (Streaming::NEW, AtomicU64::new(0));
        assert_eq!(
            streaming.next((0, STREAM_BYTES_MIN - 1), &place, true, || panic!("short")),
            (Stores::Ordinary, 0)
        );
        let (stores, begun) = streaming.next((7, 4096), &place, true, || true);
        assert!(stores == Stores::Ordinary && begun > 0);
        report(&place, 7, begun);
        assert_eq!(reported(&place, 8), None, "a report of another message");
        let (stores, begun) = streaming.next((8, 32 << 10), &place, true, || true);
        assert!(stores == Stores::Ordinary && begun > 0, "the first of its class");
        let trials = |streaming: &Streaming| streaming.classes.map(|class| class.trials);
        assert_eq!(trials(&streaming), [[0, 0], [0, 0], [1, 0], [0, 0], [0, 0], [0, 0]]);
        // It is not reported in time.
        let (stores, _) = streaming.next((9, 1 << 20), &place, true, || true);
        assert_eq!((stores, streaming.classes[5].trials), (Stores::Ordinary, [0, 0]));
        report(&place, 9, u64::MAX);
        let (stores, _) = streaming.next((10, 1 << 20), &place, true, || true);
        assert_eq!(stores, Stores::Streaming, "the second one of its class");
        assert!(streaming.classes[5].least_ns[0] > 1000.0, "a time of another clock is no time");
    }
}
