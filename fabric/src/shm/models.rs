//! Loom models of the ring, the FIFO, the two barriers and the doorbell: every interleaving that the memory
//! model allows. Run with `RUSTFLAGS="--cfg loom" cargo test -p pelago-fabric --release --lib loom_`.

use super::cooperative::{Helped, SharedCopy};
use super::doorbell::{Cause, Doorbell, Sleepers};
use super::fifo::{self, CHUNK_BYTES, Fifo, Shared};
use super::flags::{Arrival, Meeting, Stamp};
use super::readers::Readers;
use super::ring::{Cell, Payload, Positions, Ring};
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence_after_update, spin_once};
use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::thread;

/// Explores with a bound on preemptions. That finds nearly all errors in a fraction of the time.
fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

struct Inbox {
    positions: Positions,
    cells: Vec<Cell>,
}

impl Inbox {
    fn new(cells: usize) -> Arc<Inbox> {
        Arc::new(Inbox {
            positions: Positions::default(),
            cells: (0..cells).map(|_| Cell::default()).collect(),
        })
    }

    fn ring(&self) -> Ring<'_> {
        Ring::new(&self.positions, &self.cells)
    }

    fn receive_one(&self) -> (usize, u64, Vec<u8>) {
        let mut buffer = Payload::default();
        loop {
            let got =
                self.ring().receive(&mut buffer, |e, payload| (e.from, e.header, payload.bytes().to_vec()));
            if let Some(message) = got.unwrap() {
                return message;
            }
            spin_once();
        }
    }
}

#[test]
fn loom_ring_keeps_messages_of_two_senders_whole() {
    explore(3, || {
        let inbox = Inbox::new(4);
        let sender = |from: usize| {
            let inbox = Arc::clone(&inbox);
            thread::spawn(move || assert!(inbox.ring().send(from, 10 + from as u64, &[from as u8; 9])))
        };
        let senders = [sender(1), sender(2)];
        let mut seen = [inbox.receive_one(), inbox.receive_one()];
        seen.sort();
        assert_eq!(seen, [(1, 11, vec![1; 9]), (2, 12, vec![2; 9])]);
        senders.into_iter().for_each(|s| s.join().unwrap());
    });
}

#[test]
fn loom_ring_is_reused_in_order_with_padding() {
    explore(3, || {
        let inbox = Inbox::new(4);
        // Cell 0, cells 1 and 2, and after cell 3, which is skipped at the ring's end, 0 and 1, and 2.
        let payloads: [&[u8]; 4] = [&[1], &[2; 60], &[3; 60], &[4]];
        let theirs = Arc::clone(&inbox);
        let sender = thread::spawn(move || {
            for (i, payload) in payloads.iter().enumerate() {
                while !theirs.ring().send(0, i as u64, payload) {
                    spin_once();
                }
            }
        });
        for (i, payload) in payloads.iter().enumerate() {
            assert_eq!(inbox.receive_one(), (0, i as u64, payload.to_vec()));
        }
        sender.join().unwrap();
    });
}

/// A sender that claims more than it fills, or gives up its claim: the messages around it arrive whole.
#[test]
fn loom_ring_takes_claims_that_are_not_filled() {
    explore(3, || {
        let inbox = Inbox::new(4);
        let theirs = Arc::clone(&inbox);
        let sender = thread::spawn(move || {
            let claim = || loop {
                match theirs.ring().claim(60) {
                    Some(claim) => return claim,
                    None => spin_once(),
                }
            };
            let claimed = claim();
            theirs.ring().send_claimed(claimed, 0, 1, &[7], 8);
            let claimed = claim();
            theirs.ring().give_up(claimed);
            while !theirs.ring().send(0, 2, &[5]) {
                spin_once();
            }
        });
        assert_eq!(inbox.receive_one(), (0, 1, 7u64.to_ne_bytes().to_vec()));
        assert_eq!(inbox.receive_one(), (0, 2, vec![5]));
        sender.join().unwrap();
    });
}

#[test]
fn loom_arrivals_publish_what_came_before_in_every_round() {
    explore(3, || {
        let shared =
            Arc::new(([Arrival::default(), Arrival::default()], [AtomicU64::new(0), AtomicU64::new(0)]));
        let pe = |me: usize| {
            let shared = Arc::clone(&shared);
            move || {
                let (arrivals, data) = &*shared;
                for round in 1..=2 {
                    data[me].store(round, Ordering::Relaxed);
                    arrivals[me].arrive(round);
                    while !arrivals[1 - me].has_arrived(round) {
                        spin_once();
                    }
                    assert!(data[1 - me].load(Ordering::Relaxed) >= round, "PE {me} in round {round}");
                }
            }
        };
        let other = thread::spawn(pe(1));
        pe(0)();
        other.join().unwrap();
    });
}

/// A staging slot that is used repeatedly: its reader sees the data of each turn, never those of the next.
#[test]
fn loom_a_staging_slot_shows_each_turn_to_its_reader() {
    #[derive(Default)]
    struct StagingSlot {
        stamp: Stamp,
        data: [AtomicU64; 2],
        reader: Stamp,
    }
    explore(3, || {
        let slot = Arc::new(StagingSlot::default());
        let theirs = Arc::clone(&slot);
        let owner = thread::spawn(move || {
            for turn in 1..=3 {
                // The reader has begun this turn, so it has finished the previous one.
                while turn > 1 && !theirs.reader.has_reached(turn) {
                    spin_once();
                }
                theirs.data.iter().for_each(|word| word.store(turn, Ordering::Relaxed));
                theirs.stamp.raise(turn);
            }
        });
        for turn in 1..=3 {
            slot.reader.raise(turn);
            while !slot.stamp.has_reached(turn) {
                spin_once();
            }
            let seen = slot.data.each_ref().map(|word| word.load(Ordering::Relaxed));
            assert_eq!(seen, [turn; 2]);
        }
        owner.join().unwrap();
    });
}

#[test]
fn loom_meeting_of_three_publishes_what_came_before() {
    explore(3, || {
        let shared = Arc::new((Meeting::default(), [(); 3].map(|()| AtomicU64::new(0))));
        let pe = |me: usize| {
            let shared = Arc::clone(&shared);
            move || {
                let (meeting, data) = &*shared;
                data[me].store(1, Ordering::Relaxed);
                // One check instead of a wait: loom explores the cases in which it succeeds.
                if meeting.arrive(3, 1) || meeting.is_over(1) {
                    assert!(data.iter().all(|word| word.load(Ordering::Relaxed) == 1), "PE {me}");
                }
            }
        };
        let others = [thread::spawn(pe(1)), thread::spawn(pe(2))];
        pe(0)();
        others.into_iter().for_each(|o| o.join().unwrap());
        assert!(shared.0.is_over(1) && !shared.0.is_over(2));
    });
}

#[test]
fn loom_meeting_of_two_is_reused() {
    explore(3, || {
        let shared = Arc::new((Meeting::default(), AtomicU64::new(0)));
        let pe = |shared: Arc<(Meeting, AtomicU64)>| {
            move || {
                for round in 1..=2 {
                    shared.1.fetch_add(1, Ordering::Relaxed);
                    if !shared.0.arrive(2, round) {
                        while !shared.0.is_over(round) {
                            spin_once();
                        }
                    }
                    assert!(shared.1.load(Ordering::Relaxed) >= 2 * round);
                }
            }
        };
        let other = thread::spawn(pe(Arc::clone(&shared)));
        pe(shared)();
        other.join().unwrap();
    });
}

/// A barrier rings: first the arrival, then a look at the sleepers, then the doorbell.
#[test]
fn loom_a_sleeper_hears_of_an_arrival() {
    explore(3, || {
        let shared = Arc::new((Doorbell::default(), Sleepers::default(), Arrival::default()));
        let ringer = Arc::clone(&shared);
        let ringing = thread::spawn(move || {
            let (doorbell, sleepers, arrival) = &*ringer;
            arrival.arrive(1);
            if sleepers.any() {
                doorbell.ring(Cause::Meeting);
            }
        });
        let (doorbell, sleepers, arrival) = &*shared;
        let announced = doorbell.announce(sleepers, None, Cause::Meeting);
        if !arrival.has_arrived(1) {
            // This sleeps without a bound: after a missed ring it would never end, which loom reports.
            while !doorbell.has_rung(announced) {
                spin_once();
            }
        }
        doorbell.withdraw(sleepers, None, announced);
        ringing.join().unwrap();
        assert!(!sleepers.any());
    });
}

/// An atomic rings: first the change, then a look at the threads that wait for this word, then the doorbell.
#[test]
fn loom_a_sleeper_hears_of_an_atomic() {
    explore(3, || {
        let shared =
            Arc::new((Doorbell::default(), Sleepers::default(), [AtomicU32::new(0), AtomicU32::new(0)]));
        let changer = Arc::clone(&shared);
        let changing = thread::spawn(move || {
            let (doorbell, _, [word, waiters]) = &*changer;
            word.fetch_add(1, Ordering::AcqRel);
            fence_after_update();
            if waiters.load(Ordering::Relaxed) != 0 {
                doorbell.ring(Cause::Data);
            }
        });
        let (doorbell, sleepers, [word, waiters]) = &*shared;
        let announced = doorbell.announce(sleepers, Some(waiters), Cause::Data);
        if word.load(Ordering::Acquire) == 0 {
            while !doorbell.has_rung(announced) {
                spin_once();
            }
        }
        doorbell.withdraw(sleepers, Some(waiters), announced);
        changing.join().unwrap();
        assert!(!sleepers.any() && waiters.load(Ordering::Relaxed) == 0);
    });
}

#[test]
fn loom_fifo_keeps_order_and_reuses_cells() {
    explore(3, || {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let producer = thread::spawn(move || {
            // SAFETY: no payload is longer than a cell, so that the data area is not accessed.
            let fifo = unsafe { Fifo::new(&theirs, std::ptr::dangling_mut(), 256) };
            let mut producer = fifo.producer();
            for i in 0..4_u64 {
                // SAFETY: nothing is read from the empty tail.
                while !unsafe { producer.send([i, i + 10], &[i + 20], std::ptr::dangling(), 0) } {
                    spin_once();
                }
            }
        });
        // SAFETY: no payload is longer than a cell, so that the data area is not accessed.
        let fifo = unsafe { Fifo::new(&shared, std::ptr::dangling_mut(), 256) };
        let mut consumer = fifo.consumer();
        for i in 0..4_u64 {
            let take = |words: [u64; 2], payload: &fifo::Payload<'_>| {
                assert_eq!((words, payload.words::<1>()), ([i, i + 10], [i + 20]));
                true
            };
            while !consumer.receive(take).unwrap() {
                spin_once();
            }
        }
        producer.join().unwrap();
    });
}

#[test]
fn loom_a_receiver_follows_a_message_that_is_being_written() {
    const CHUNKS: usize = 3;
    explore(3, || {
        let shared = Arc::new((Shared::default(), [const { () }; CHUNKS].map(|()| AtomicU32::new(0))));
        let theirs = Arc::clone(&shared);
        let producer = thread::spawn(move || {
            // SAFETY: the data area is not accessed: the model's data stand for it.
            let fifo = unsafe { Fifo::new(&theirs.0, std::ptr::dangling_mut(), 512) };
            let mut producer = fifo.producer();
            let replies = AtomicU64::new(1);
            producer.replies = Some(&replies);
            let is_sent = producer.send_in_chunks([1, 2], CHUNKS * CHUNK_BYTES, |_, range| {
                theirs.1[range.start / CHUNK_BYTES].store(range.end as u32, Ordering::Relaxed);
            });
            assert!(is_sent);
        });
        // SAFETY: the data area is not accessed: the model's data stand for it.
        let fifo = unsafe { Fifo::new(&shared.0, std::ptr::dangling_mut(), 512) };
        let mut consumer = fifo.consumer();
        let (mut done, mut followed) = (0, None);
        while !consumer.has_message() && followed.is_none() {
            done = 0;
            followed = consumer.follow([1, 2], 2, |_, range| {
                assert_eq!(range.start, done, "chunks come in their order");
                done = range.end;
                for end in (range.start..range.end).step_by(CHUNK_BYTES).map(|start| start + CHUNK_BYTES) {
                    let data = shared.1[end / CHUNK_BYTES - 1].load(Ordering::Relaxed);
                    assert_eq!(data as usize, end, "a chunk that counts as written is written");
                }
            });
            spin_once();
        }
        assert!(followed.is_none() || followed == Some(done) && done == CHUNKS * CHUNK_BYTES);
        producer.join().unwrap();
    });
}

/// Units of the model's copies. Nothing but the protocol orders the accesses to their data.
const UNITS: u32 = 3;

struct Copied {
    copy: SharedCopy,
    /// The round in which each unit was copied.
    data: [AtomicU32; UNITS as usize],
    /// The message that starts a round.
    begun: AtomicU32,
}

impl Copied {
    fn put(&self, round: u32, unit: u32) {
        let before = self.data[unit as usize].swap(round, Ordering::Relaxed);
        assert_eq!(before, round - 1, "unit {unit} is copied once in each round");
    }

    /// The helper's part of a round, in which it can write, or not.
    fn help(&self, round: u32, is_refused: bool) {
        while let Some(part) = self.copy.claim_back(round, 1) {
            if is_refused {
                return self.copy.note_written(round, part.end, true);
            }
            part.clone().for_each(|unit| self.put(round, unit));
            self.copy.note_written(round, part.start, false);
        }
    }

    /// The receiver's part.
    fn receive(&self, round: u32) {
        self.copy.begin(round, UNITS);
        self.begun.store(round, Ordering::Release);
        while let Some(part) = self.copy.claim_front(round, 1) {
            part.for_each(|unit| self.put(round, unit));
        }
        loop {
            match self.copy.helped(round, UNITS) {
                Helped::Writing => spin_once(),
                Helped::Written => break,
                Helped::Refused(part) => {
                    part.for_each(|unit| self.put(round, unit));
                    break;
                }
            }
        }
        for unit in &self.data {
            assert_eq!(unit.load(Ordering::Relaxed), round, "the round is over");
        }
    }
}

#[test]
fn loom_shared_copy_copies_each_unit_once() {
    for refused in [0, 1] {
        explore(3, move || {
            let copied = Arc::new(Copied {
                copy: SharedCopy::default(),
                data: std::array::from_fn(|_| AtomicU32::new(0)),
                begun: AtomicU32::new(0),
            });
            let theirs = Arc::clone(&copied);
            let helper = thread::spawn(move || {
                for round in 1..=2 {
                    // The helper may come too late, but never too early.
                    if theirs.begun.load(Ordering::Acquire) >= round {
                        theirs.help(round, round == refused);
                    }
                }
            });
            (1..=2).for_each(|round| copied.receive(round));
            helper.join().unwrap();
        });
    }
}

/// The private memory of a PE, and those that copy from it.
#[derive(Default)]
struct Lent {
    readers: Readers,
    data: UnsafeCell<u32>,
}

// SAFETY: loom checks that no read of the data is concurrent to a write.
unsafe impl Sync for Lent {}

#[test]
fn loom_readers_are_over_before_memory_is_freed() {
    explore(3, || {
        let lent = Arc::new(Lent::default());
        let reader = |lent: &Arc<Lent>| {
            let lent = Arc::clone(lent);
            thread::spawn(move || {
                if let Some(_reading) = lent.readers.begin() {
                    // SAFETY: the pointer is valid for reads in the call.
                    assert_eq!(lent.data.with(|data| unsafe { *data }), 0, "the memory is still lent");
                }
            })
        };
        let readers = [reader(&lent), reader(&lent)];
        lent.readers.close();
        // SAFETY: the pointer is valid for writes in the call.
        lent.data.with_mut(|data| unsafe { *data = 1 });
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert!(lent.readers.begin().is_none(), "nobody reads any more");
    });
}
