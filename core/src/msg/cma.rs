//! Cross-memory attach (CMA): long messages of another process of this node are *read* from its memory by
//! one system call and one copy. Without it they come in *pieces* through the FIFO, which both PEs copy at
//! the same time. Machines differ in which of the two is faster, by a factor of three either way, so that by
//! default the first long messages of each size class try both. Before that, the first reads are timed
//! without the sender's help (`cooperative.rs`), which pays where a read takes long.
//!
//! Invariant: only messages that come when no other one is arriving from their sender are timed in pieces.

use super::request::RequestId;
use std::time::{Duration, Instant};

/// The length from which on the sender may help.
const HELPED_BYTES_MIN: usize = 24 << 10;
/// Messages of a size class that try each of the two; the best of them counts, because the first ones find
/// pages that were never touched.
const TRIALS: u32 = 5;
/// The lengths from which on messages are in the second and the third class: two buffers of them fit into a
/// core's second cache, into the cache that cores share, and into neither.
const CLASSES: [usize; 2] = [512 << 10, 2 << 20];
/// Longer messages do not try pieces: a program that exchanges few, but very long messages would spend its
/// time on trials.
const TRIAL_BYTES_MAX: usize = 4 << 20;
/// A sender helps if the read would take more nanoseconds. Help costs a message, and more system calls; and
/// what the sender has written lies in the wrong core's cache.
const HELPED_NS_MIN: f64 = 6000.0;
/// A sender that was later than this with its last part, and later than a read of the whole message takes,
/// has lost its core to another process for a time slice, or its receiver has.
const LATE: Duration = Duration::from_micros(600);
/// The time without help after that, as a multiple of the delay.
const PAUSE_AFTER_LATE_HELP: u32 = 50;
/// Pieces must take less than this part of the time of a read: during a read the sender need not call
/// anything.
const PIECES_AT_MOST: f64 = 0.85;

/// Decides for each long message whether this PE reads it.
#[derive(Debug)]
pub(super) struct Cma {
    /// Whether the settings demand it, or forbid it.
    forced: Option<bool>,
    classes: [Class; 3],
    /// Reads of [`HELPED_BYTES_MIN`] and more without the sender's help.
    alone: Trials,
    /// When senders are asked for help again, if one was late.
    helps_again: Option<Instant>,
    /// A message that comes in pieces and is timed: its receive, its length, and when it was asked for.
    timed: Option<(RequestId, usize, Instant)>,
}

/// The trials of a size class.
#[derive(Clone, Copy, Debug)]
struct Class {
    reads: Trials,
    pieces: Trials,
}

/// How often one of the two was tried, and the least nanoseconds that a byte took.
#[derive(Clone, Copy, Debug)]
struct Trials {
    n: u32,
    best: f64,
}

impl Trials {
    const NONE: Trials = Trials { n: 0, best: f64::INFINITY };

    fn add(&mut self, bytes: usize, start: Instant) {
        self.n += 1;
        self.best = self.best.min(start.elapsed().as_nanos() as f64 / bytes.max(1) as f64);
    }

    fn are_over(self) -> bool {
        self.n >= TRIALS
    }
}

impl Class {
    /// Whether messages are read. `can_try`: a message can be timed in pieces.
    fn reads(&self, can_try: bool) -> bool {
        match (self.reads.are_over(), self.pieces.are_over()) {
            (false, _) => true,
            (true, false) => !can_try,
            (true, true) => self.pieces.best >= self.reads.best * PIECES_AT_MOST,
        }
    }
}

impl Cma {
    pub(super) fn new(forced: Option<bool>) -> Cma {
        let class = Class { reads: Trials::NONE, pieces: Trials::NONE };
        Cma { forced, classes: [class; 3], alone: Trials::NONE, helps_again: None, timed: None }
    }

    fn class(&mut self, bytes: usize) -> &mut Class {
        &mut self.classes[CLASSES.partition_point(|&first| first <= bytes)]
    }

    /// Whether to read a message of this length.
    pub(super) fn reads(&mut self, bytes: usize, is_alone: bool) -> bool {
        let forced = self.forced;
        forced.unwrap_or_else(|| self.class(bytes).reads(is_alone && bytes <= TRIAL_BYTES_MAX))
    }

    /// Whether the sender is to help reading a message.
    pub(super) fn wants_help(&self, bytes: usize) -> bool {
        bytes >= HELPED_BYTES_MIN
            && self.alone.are_over()
            && self.alone.best * bytes as f64 > HELPED_NS_MIN
            && self.helps_again.is_none_or(|again| Instant::now() >= again)
    }

    /// Takes note of how long this PE has waited for the sender's last part of a message.
    pub(super) fn note_wait_for_help(&mut self, bytes: usize, waited: Duration) {
        let read = Duration::from_nanos((self.alone.best * bytes as f64) as u64);
        if waited > LATE.max(read) {
            self.helps_again = Some(Instant::now() + PAUSE_AFTER_LATE_HELP * waited);
        }
    }

    /// The trials that a read of this length counts for, unless they are over.
    fn trials(&mut self, bytes: usize) -> Option<&mut Trials> {
        let is_alone = bytes >= HELPED_BYTES_MIN && !self.alone.are_over();
        match (is_alone, self.forced) {
            (true, _) => Some(&mut self.alone),
            (false, None) => Some(&mut self.class(bytes).reads),
            (false, Some(_)) => None,
        }
        .filter(|trials| !trials.are_over())
    }

    /// A message is about to be read: the time, if the read is a trial.
    pub(super) fn start_read(&mut self, bytes: usize) -> Option<Instant> {
        self.trials(bytes).map(|_| Instant::now())
    }

    /// A message was read.
    pub(super) fn note_read(&mut self, bytes: usize, start: Option<Instant>) {
        if let Some((start, trials)) = start.zip(self.trials(bytes)) {
            trials.add(bytes, start);
        }
    }

    /// A message is asked for in pieces.
    pub(super) fn note_asked(&mut self, id: RequestId, bytes: usize, is_alone: bool) {
        let can_try = is_alone && bytes <= TRIAL_BYTES_MAX;
        if self.forced.is_none() && can_try && self.timed.is_none() && !self.class(bytes).pieces.are_over() {
            self.timed = Some((id, bytes, Instant::now()));
        }
    }

    /// All pieces of a message have come.
    #[inline]
    pub(super) fn note_arrived(&mut self, id: RequestId) {
        if let Some((timed, bytes, start)) = self.timed
            && timed == id
        {
            self.timed = None;
            self.class(bytes).pieces.add(bytes, start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The state of a PE whose trials of short messages took these nanoseconds a byte.
    fn tried(reads: f64, pieces: f64) -> Cma {
        let mut cma = Cma::new(None);
        let trials = |best| Trials { n: TRIALS, best };
        cma.classes[0] = Class { reads: trials(reads), pieces: trials(pieces) };
        cma
    }

    #[test]
    fn the_faster_way_is_taken_and_reading_where_both_are_alike() {
        assert!(tried(0.05, 0.12).reads(65536, true), "reading is faster");
        assert!(!tried(0.07, 0.02).reads(65536, true), "pieces are faster");
        assert!(tried(0.05, 0.048).reads(65536, true), "both are alike");
        assert!(Cma::new(None).reads(65536, true), "the first messages are read");
        let mut cma = tried(0.07, 0.02);
        assert!(
            CLASSES.iter().all(|&bytes| cma.reads(bytes, true)),
            "other classes have trials of their own"
        );
    }

    #[test]
    fn very_long_messages_are_no_trials() {
        let mut cma = Cma::new(None);
        cma.classes[2].reads = Trials { n: TRIALS, best: 0.05 };
        assert!(!cma.reads(TRIAL_BYTES_MAX, true) && cma.reads(TRIAL_BYTES_MAX + 1, true));
        cma.note_asked(RequestId::from_code(1), TRIAL_BYTES_MAX + 1, true);
        assert!(cma.timed.is_none());
        cma.classes[2].pieces = Trials { n: TRIALS, best: 0.02 };
        assert!(!cma.reads(1 << 30, true), "what shorter ones have found holds");
    }

    #[test]
    fn a_sender_helps_where_a_read_takes_long() {
        for forced in [None, Some(true)] {
            let mut cma = Cma::new(forced);
            for _ in 0..TRIALS {
                assert!(!cma.wants_help(1 << 30), "the first reads are timed without help");
                let start = cma.start_read(1 << 20);
                cma.note_read(1 << 20, start);
            }
            cma.alone.best = 0.1;
            let wants_help = [(HELPED_BYTES_MIN, false), (59_000, false), (61_000, true), (1 << 30, true)];
            assert!(wants_help.iter().all(|&(bytes, wants)| cma.wants_help(bytes) == wants));
            cma.alone.best = 1.0;
            assert!(cma.wants_help(HELPED_BYTES_MIN) && !cma.wants_help(HELPED_BYTES_MIN - 1));
        }
    }

    /// A sender that is late once is not asked for a while: its core, or the receiver's, has other work.
    #[test]
    fn a_sender_that_was_late_does_not_help_for_a_while() {
        let mut cma = Cma::new(Some(true));
        cma.alone = Trials { n: TRIALS, best: 1.0 };
        let hour = Duration::from_secs(3600);
        cma.note_wait_for_help(1 << 20, LATE);
        cma.note_wait_for_help(1 << 20, Duration::from_nanos(1 << 20));
        assert!(cma.wants_help(1 << 20), "not later than a read of the message takes");
        cma.note_wait_for_help(1 << 20, hour);
        assert!(!cma.wants_help(1 << 20));
        cma.helps_again = Some(Instant::now());
        assert!(cma.wants_help(1 << 20), "the pause is over");
    }

    #[test]
    fn both_ways_are_tried_and_settings_go_before() {
        let mut cma = Cma::new(None);
        for _ in 0..2 * TRIALS {
            assert!(cma.reads(65536, true));
            let start = cma.start_read(65536);
            cma.note_read(65536, start);
        }
        assert!(cma.alone.are_over() && cma.start_read(65536).is_none());
        assert!(cma.reads(65536, false), "beside others a message in pieces would be timed wrongly");
        for n in 0..TRIALS {
            assert!(!cma.reads(65536, true), "{n}");
            cma.note_asked(RequestId::from_code(n.into()), 65536, true);
            cma.note_asked(RequestId::from_code(99), 65536, true);
            cma.note_arrived(RequestId::from_code(99));
            cma.note_arrived(RequestId::from_code(n.into()));
        }
        assert_eq!((cma.classes[0].reads.n, cma.classes[0].pieces.n), (TRIALS, TRIALS));
        assert!(cma.classes[0].pieces.best < Duration::from_secs(60).as_nanos() as f64);
        for forced in [true, false] {
            assert_eq!(Cma::new(Some(forced)).reads(1 << 30, true), forced);
        }
    }
}
