//! Cross-memory attach (CMA): long messages of another process of this node are *read* from its memory by
//! one system call and one copy. Without it they come in *pieces* through the FIFO, which both PEs copy at
//! the same time. Machines differ in which of the two is faster, by a factor of three either way, and so does
//! one machine: two PEs may share a core or not. So by default the first long messages of each size class try
//! both, and later ones again from time to time. Before that, the first reads are timed without the sender's
//! help (`cooperative.rs`), which pays where a read takes long.
//!
//! Invariant: only messages that come when no other one is arriving from their sender are timed in pieces.

use super::process;
use super::request::RequestId;
use std::time::{Duration, Instant};

/// The length from which on the sender may help.
const HELPED_BYTES_MIN: usize = 24 << 10;
/// Messages of a size class that try each of the two; the best of them counts.
const TRIALS: u32 = 5;
/// The first trials in pieces go on until they have had this many bytes. They touch the pages of the FIFO for
/// the first time, which takes longer than the copies; its data area has less than half as many bytes.
const FIRST_BYTES: usize = 640 << 10;
/// Messages of a size class before both are tried again: at first, and at most. The number doubles as long as
/// trials find the same.
const PAUSE: [u32; 2] = [128, 1024];
/// A message in pieces that takes this multiple of the time of a read has waited for its sender.
const LATE_PIECES: f64 = 4.0;
/// The weight of a late message, where one in time takes back 1, and the weight from which on messages are
/// read: several late ones in a row come from a sender that computes, a single one from one that was
/// interrupted.
const LATE_COUNT: u32 = 8;
const LATE_COUNT_MAX: u32 = 3 * LATE_COUNT;
/// The lengths from which on messages are in the second and the third class: two buffers of them fit into a
/// core's second cache, into the cache that cores share, and into neither.
const CLASSES: [usize; 2] = [512 << 10, 2 << 20];
const SIZES: usize = CLASSES.len() + 1;
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
/// The same in exchanges, where the pieces of the other message take this PE time as well.
const EXCHANGED_AT_MOST: f64 = 0.4;

/// A read of 32 KiB that takes longer is slower than two copies through a FIFO, which both PEs make at the
/// same time.
const SLOW_READ: Duration = Duration::from_nanos(2500);

/// Whether the system reads slowly from other processes, if at all: a read of this PE's own memory is timed.
pub(super) fn are_reads_slow(bytes: usize) -> bool {
    let mut memory = vec![1_u8; 2 * bytes];
    let (source, target) = memory.split_at_mut(bytes);
    let read = || {
        let (start, address) = (Instant::now(), source.as_ptr() as u64);
        // SAFETY: the target has the bytes.
        let is_read = unsafe { process::read(std::process::id(), address, target.as_mut_ptr(), bytes) };
        is_read.then(|| start.elapsed())
    };
    std::iter::repeat_with(read).take(TRIALS as usize).flatten().min().is_none_or(|least| least > SLOW_READ)
}

/// Decides for each long message whether this PE reads it.
#[derive(Debug)]
pub(super) struct Cma {
    /// Whether the settings demand it, or forbid it.
    forced: Option<bool>,
    /// The size classes, first of messages one way, then of those in exchanges.
    classes: [Class; 2 * SIZES],
    /// Whether the message that is being received is one of an exchange.
    in_exchange: bool,
    /// Reads of [`HELPED_BYTES_MIN`] and more without the sender's help.
    alone: Trials,
    /// When senders are asked for help again, if one was late.
    helps_again: Option<Instant>,
    /// A message that comes in pieces and is timed.
    timed: Option<Timed>,
}

/// A message that comes in pieces and is timed.
#[derive(Clone, Copy, Debug)]
struct Timed {
    receive: RequestId,
    bytes: usize,
    in_exchange: bool,
    /// When it was asked for.
    start: Instant,
}

/// A size class: its trials and their result.
#[derive(Clone, Copy, Debug)]
struct Class {
    reads: Trials,
    pieces: Trials,
    /// The result of the last trials.
    prefers_pieces: bool,
    /// Messages before the next trials.
    until_trials: u32,
    /// The same after those.
    pause: u32,
    /// Bytes that the trials in pieces must still have, so that they touch the whole FIFO.
    bytes_min: usize,
    /// The nanoseconds of a byte in the last trials of reads.
    read_ns: f64,
    /// Counts the messages in pieces that came late.
    late: u32,
}

/// How often one of the two was tried, with how many bytes, and the least nanoseconds that a byte took.
#[derive(Clone, Copy, Debug)]
struct Trials {
    n: u32,
    bytes: usize,
    best: f64,
}

impl Trials {
    const NONE: Trials = Trials { n: 0, bytes: 0, best: f64::INFINITY };

    fn add(&mut self, bytes: usize, start: Instant) {
        self.n += 1;
        self.bytes += bytes;
        self.best = self.best.min(ns_per_byte(bytes, start));
    }

    fn are_over(self) -> bool {
        self.n >= TRIALS
    }
}

fn ns_per_byte(bytes: usize, start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / bytes.max(1) as f64
}

impl Class {
    const NEW: Class = Class {
        reads: Trials::NONE,
        pieces: Trials::NONE,
        prefers_pieces: false,
        until_trials: 0,
        pause: PAUSE[0],
        bytes_min: FIRST_BYTES,
        read_ns: f64::INFINITY,
        late: 0,
    };

    /// Whether the next message is read. `can_try`: it can be a trial.
    fn reads(&mut self, can_try: bool) -> bool {
        if self.until_trials > 0 {
            self.until_trials -= 1;
            if self.until_trials == 0 {
                (self.reads, self.pieces, self.late) = (Trials::NONE, Trials::NONE, 0);
            }
            return !self.prefers_pieces;
        }
        if can_try { !self.reads.are_over() } else { !self.prefers_pieces }
    }

    /// Whether a message that is read is a trial.
    fn tries_reads(&self) -> bool {
        self.until_trials == 0 && !self.reads.are_over()
    }

    /// Whether a message in pieces that was asked for at `start` has waited for its sender.
    fn is_late(&self, bytes: usize, start: Instant) -> bool {
        let read_ns = if self.reads.are_over() { self.reads.best } else { self.read_ns };
        // To touch pages for the first time takes longer than to copy, but less than `LATE`.
        let touches_pages = self.until_trials == 0 && self.pieces.bytes < self.bytes_min;
        ns_per_byte(bytes, start) > LATE_PIECES * read_ns && (!touches_pages || start.elapsed() > LATE)
    }

    /// Counts a message in pieces.
    fn count(&mut self, is_late: bool) {
        self.late = if is_late { self.late + LATE_COUNT } else { self.late.saturating_sub(1) };
        if self.late >= LATE_COUNT_MAX {
            self.decide(false);
        }
    }

    /// A message has come in pieces. They are preferred if they take less than this part of the time of a
    /// read.
    fn note_pieces(&mut self, bytes: usize, start: Instant, at_most: f64) {
        self.count(self.is_late(bytes, start));
        if self.until_trials > 0 || bytes > TRIAL_BYTES_MAX {
            return;
        }
        self.pieces.add(bytes, start);
        if self.reads.are_over() && self.pieces.are_over() && self.pieces.bytes >= self.bytes_min {
            self.decide(self.pieces.best < self.reads.best * at_most);
        }
    }

    /// Takes a decision, which holds until the next trials.
    fn decide(&mut self, prefers_pieces: bool) {
        if prefers_pieces != self.prefers_pieces {
            self.pause = PAUSE[0];
        }
        self.prefers_pieces = prefers_pieces;
        self.until_trials = self.pause;
        self.pause = (2 * self.pause).min(PAUSE[1]);
        if self.reads.are_over() {
            self.read_ns = self.reads.best;
        }
        (self.bytes_min, self.late) = (self.bytes_min.saturating_sub(self.pieces.bytes), 0);
    }
}

impl Cma {
    pub(super) fn new(forced: Option<bool>) -> Cma {
        Cma {
            forced,
            classes: [Class::NEW; 2 * SIZES],
            in_exchange: false,
            alone: Trials::NONE,
            helps_again: None,
            timed: None,
        }
    }

    fn class(&mut self, bytes: usize) -> &mut Class {
        let in_exchange = self.in_exchange;
        self.class_of(bytes, in_exchange)
    }

    fn class_of(&mut self, bytes: usize, in_exchange: bool) -> &mut Class {
        let size = CLASSES.partition_point(|&first| first <= bytes);
        &mut self.classes[if in_exchange { SIZES + size } else { size }]
    }

    /// Sets whether the message that is about to be received is one of an exchange: this PE has announced a
    /// long message itself. Both PEs then copy two messages at the same time, and the other way may be the
    /// faster one.
    pub(super) fn set_in_exchange(&mut self, in_exchange: bool) {
        self.in_exchange = in_exchange;
    }

    /// Whether to read a message of this length.
    pub(super) fn reads(&mut self, bytes: usize, is_alone: bool) -> bool {
        self.look_at_timed();
        let can_try = is_alone && bytes <= TRIAL_BYTES_MAX && self.timed.is_none();
        self.forced.unwrap_or_else(|| self.class(bytes).reads(can_try))
    }

    /// Counts the message that is timed, if it is late already: its sender is not waited for.
    fn look_at_timed(&mut self) {
        let Some(Timed { bytes, in_exchange, start, .. }) = self.timed else { return };
        let class = self.class_of(bytes, in_exchange);
        if start.elapsed() > LATE && class.is_late(bytes, start) {
            class.count(true);
            self.timed = None;
        }
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

    /// The trials that a read of this length counts for, if it is one.
    fn trials(&mut self, bytes: usize) -> Option<&mut Trials> {
        if bytes >= HELPED_BYTES_MIN && !self.alone.are_over() {
            return Some(&mut self.alone);
        }
        let is_forced = self.forced.is_some();
        let class = self.class(bytes);
        (!is_forced && class.tries_reads()).then_some(&mut class.reads)
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
        if self.forced.is_none() && is_alone && self.timed.is_none() {
            let in_exchange = self.in_exchange;
            self.timed = Some(Timed { receive: id, bytes, in_exchange, start: Instant::now() });
        }
    }

    /// All pieces of a message have come.
    #[inline]
    pub(super) fn note_arrived(&mut self, id: RequestId) {
        if let Some(Timed { receive, bytes, in_exchange, start }) = self.timed
            && receive == id
        {
            self.timed = None;
            let at_most = if in_exchange { EXCHANGED_AT_MOST } else { PIECES_AT_MOST };
            self.class_of(bytes, in_exchange).note_pieces(bytes, start, at_most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const TRIED: Trials = Trials { n: TRIALS, bytes: FIRST_BYTES, best: 0.05 };

    /// The state of a PE whose trials of short messages took these nanoseconds a byte.
    fn tried(reads: f64, pieces: f64) -> Cma {
        let mut cma = Cma::new(None);
        let class = &mut cma.classes[0];
        class.reads = Trials { best: reads, ..TRIED };
        class.pieces = Trials { n: TRIALS - 1, best: pieces, ..TRIED };
        // A last one, which takes long.
        class.note_pieces(1, Instant::now(), PIECES_AT_MOST);
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
        cma.set_in_exchange(true);
        assert!(cma.reads(65536, true), "and so have exchanges");
        cma.note_read(65536, Some(Instant::now()));
        cma.note_asked(RequestId::from_code(1), 65536, true);
        cma.set_in_exchange(false);
        cma.note_arrived(RequestId::from_code(1));
        assert!(cma.classes[SIZES].pieces.n == 1 && !cma.reads(65536, true));
    }

    #[test]
    fn very_long_messages_are_no_trials() {
        let mut cma = Cma::new(None);
        cma.classes[2].reads = TRIED;
        assert!(!cma.reads(TRIAL_BYTES_MAX, true) && cma.reads(TRIAL_BYTES_MAX + 1, true));
        cma.classes[2].prefers_pieces = true;
        assert!(!cma.reads(1 << 30, true), "what shorter ones have found holds");
        cma.classes[2].reads = Trials::NONE;
        for read_ns in [f64::MAX / 8.0, 0.0, 0.0, 0.0] {
            assert!(cma.classes[2].until_trials == 0 && !cma.reads(1 << 30, true));
            cma.classes[2] = Class { read_ns, bytes_min: 0, ..cma.classes[2] };
            cma.note_asked(RequestId::from_code(1), 1 << 30, true);
            cma.note_arrived(RequestId::from_code(1));
            assert_eq!(cma.classes[2].pieces.n, 0);
        }
        assert!(cma.reads(1 << 30, true), "their senders were late");
    }

    /// Ends the trials of short messages under way, in which reads take these nanoseconds a byte and pieces
    /// those of the clock.
    fn try_again(cma: &mut Cma, reads: f64) {
        cma.classes[0].reads = Trials { best: reads, ..TRIED };
        for n in 0..TRIALS {
            cma.note_asked(RequestId::from_code(n.into()), 65536, true);
            cma.note_arrived(RequestId::from_code(n.into()));
        }
    }

    #[test]
    fn both_are_tried_again_after_pauses_that_grow_while_nothing_changes() {
        let mut cma = tried(0.05, 0.12);
        let pause = |cma: &mut Cma, is_read: bool| {
            let mut n = 0;
            while cma.classes[0].until_trials > 0 {
                assert_eq!(cma.reads(65536, true), is_read, "message {n}");
                n += 1;
            }
            assert!(cma.classes[0].tries_reads() && cma.reads(65536, true), "trials begin with reads");
            n
        };
        assert_eq!(pause(&mut cma, true), PAUSE[0]);
        try_again(&mut cma, 0.0);
        assert_eq!(pause(&mut cma, true), 2 * PAUSE[0]);
        // Now two PEs share a core.
        try_again(&mut cma, f64::MAX);
        assert_eq!(pause(&mut cma, false), PAUSE[0]);
        for _ in 0..10 {
            try_again(&mut cma, f64::MAX);
            cma.classes[0].until_trials = 1;
            pause(&mut cma, false);
        }
        try_again(&mut cma, f64::MAX);
        assert_eq!(pause(&mut cma, false), PAUSE[1]);
    }

    /// A sender that computes does not send pieces meanwhile.
    #[test]
    fn messages_are_read_if_their_sender_is_late() {
        let mut cma = tried(f64::MAX / 8.0, 0.02);
        let mut note = |is_late: bool| {
            let best = if is_late { 0.0 } else { f64::MAX / 8.0 };
            cma.classes[0].reads.best = best;
            cma.note_asked(RequestId::from_code(1), 65536, true);
            cma.note_arrived(RequestId::from_code(1));
            (cma.reads(65536, true), cma.classes[0].until_trials)
        };
        let mut expected = PAUSE[0];
        // One that is late once is interrupted, one that is late again and again computes.
        for is_late in [false, true, true].into_iter().chain([false; LATE_COUNT as usize]).chain([true]) {
            expected -= 1;
            assert_eq!(note(is_late), (false, expected));
        }
        assert_eq!(note(true), (true, PAUSE[0] - 1));
    }

    /// Trials end early if a sender computes, and messages that cannot be trials follow the last decision.
    #[test]
    fn trials_do_not_hold_up_other_messages() {
        let mut cma = Cma::new(None);
        let reads = Trials { best: 0.0, ..TRIED };
        cma.classes[0] = Class { reads, prefers_pieces: true, bytes_min: 0, ..Class::NEW };
        assert!(!cma.reads(65536, true) && !cma.reads(65536, false));
        for n in 0..LATE_COUNT_MAX / LATE_COUNT {
            assert_eq!(cma.classes[0].until_trials, 0, "{n}");
            cma.note_asked(RequestId::from_code(1), 65536, true);
            assert!(!cma.reads(65536, true), "as the last decision");
            cma.note_arrived(RequestId::from_code(1));
        }
        assert_eq!(cma.classes[0].until_trials, PAUSE[0]);
        assert!(cma.reads(65536, true));
        let mut cma = Cma::new(None);
        cma.classes[0].reads = TRIED;
        assert!(!cma.reads(65536, true));
        cma.note_asked(RequestId::from_code(1), 65536, true);
        assert!(cma.reads(65536, true), "one message at a time is timed");
    }

    /// A sender that computes while its message is timed does not hold up those of others.
    #[test]
    fn a_message_that_is_late_already_is_not_waited_for() {
        let mut cma = tried(0.05, 0.01);
        let long_ago = Instant::now().checked_sub(2 * LATE).expect("the clock has run for that long");
        for n in 1..=LATE_COUNT_MAX / LATE_COUNT {
            assert!(!cma.reads(65536, true), "{n}");
            let receive = RequestId::from_code(1);
            cma.timed = Some(Timed { receive, bytes: 4096, in_exchange: false, start: long_ago });
        }
        assert!(cma.reads(65536, true) && cma.timed.is_none());
    }

    /// Pieces of senders that cannot be read decide nothing.
    #[test]
    fn pieces_alone_decide_nothing() {
        let mut class = Class::NEW;
        for _ in 0..100 {
            class.note_pieces(65536, Instant::now(), PIECES_AT_MOST);
        }
        assert!(class.until_trials == 0 && !class.prefers_pieces && class.reads(true));
    }

    #[test]
    fn first_trials_in_pieces_touch_the_whole_fifo() {
        // They take longer than reads meanwhile, which does not count as late.
        let mut class = Class { reads: Trials { best: 0.0, ..TRIED }, ..Class::NEW };
        let bytes = 24 << 10;
        let needed = FIRST_BYTES.div_ceil(bytes);
        for n in 0..needed {
            assert!(!class.reads(true) && class.until_trials == 0, "{n}");
            class.note_pieces(bytes, Instant::now(), PIECES_AT_MOST);
        }
        assert_eq!(class.until_trials, PAUSE[0]);
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
        cma.alone = Trials { best: 1.0, ..TRIED };
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
        for n in 0..FIRST_BYTES / 65536 {
            assert!(!cma.reads(65536, true), "{n}");
            cma.note_asked(RequestId::from_code(n as u64), 65536, true);
            cma.note_asked(RequestId::from_code(99), 65536, true);
            cma.note_arrived(RequestId::from_code(99));
            cma.note_arrived(RequestId::from_code(n as u64));
        }
        let class = cma.classes[0];
        assert_eq!((class.reads.n, class.pieces.n as usize), (TRIALS, FIRST_BYTES / 65536));
        assert!(class.until_trials > 0 && class.pieces.best < Duration::from_secs(60).as_nanos() as f64);
        for forced in [true, false] {
            assert_eq!(Cma::new(Some(forced)).reads(1 << 30, true), forced);
        }
    }
}
