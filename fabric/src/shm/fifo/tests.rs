//! Tests of FIFOs.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

const DATA_BYTES: usize = 1024;

/// Memory of a FIFO.
#[repr(C, align(64))]
struct Memory<const BYTES: usize = DATA_BYTES> {
    shared: Shared,
    data: [u8; BYTES],
}

fn memory<const BYTES: usize>() -> Box<Memory<BYTES>> {
    // SAFETY: all zero bytes are valid for atomics and bytes.
    unsafe { Box::new(std::mem::zeroed()) }
}

fn fifo<const BYTES: usize>(memory: &mut Memory<BYTES>) -> Fifo<'_> {
    let data = memory.data.as_mut_ptr();
    // SAFETY: the area is used by this FIFO only.
    unsafe { Fifo::new(&memory.shared, data, BYTES) }
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
        let mut memory = memory::<DATA_BYTES>();
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
        let mut memory = memory::<DATA_BYTES>();
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
    let mut memory = memory::<DATA_BYTES>();
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
        let mut memory = memory::<DATA_BYTES>();
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
            assert!(freed >= 1 && freed <= 2 * PARTS as usize, "{bytes} bytes: {freed} of {sent} messages");
        }
    }
}

#[test]
fn a_long_payload_is_read_while_it_is_written() {
    const BYTES: usize = 3 * CHUNK_BYTES + 100;
    let mut memory = memory::<{ 8 * CHUNK_BYTES }>();
    let fifo = fifo(&mut memory);
    let (mut producer, mut consumer) = (fifo.producer(), fifo.consumer());
    let payload: Vec<u8> = (0..BYTES).map(|i| (i / 7) as u8).collect();
    let replies = AtomicU64::new(1);
    producer.replies = Some(&replies);
    let words = [5, 6];
    let mut target = Vec::new();
    let mut follow = |consumer: &mut Consumer<'_>, words| {
        let mut copied = 0;
        let outcome = consumer.follow(words, 3, |data, range| {
            target.resize(range.end, 0);
            copied += range.len();
            // SAFETY: the target has the range, and the FIFO its data.
            unsafe { copy::transfer(target[range.clone()].as_mut_ptr(), data, range.len()) };
        });
        (outcome, copied)
    };
    let is_sent = producer.send_in_chunks(words, BYTES, |into, range| {
        let begins = range.start > 0;
        let (stamp, expected) = consumer.next_stamp();
        assert_eq!(is_begun(stamp, expected), begins);
        assert!(!consumer.has_message(), "the message has not come");
        assert!(matches!(consumer.oldest(), Ok(None)));
        // It is followed for the first time when two chunks are written, and the sender does not go on.
        if range.start != CHUNK_BYTES {
            assert_eq!(follow(&mut consumer, [5, 7]), (None, 0), "other words");
            assert_eq!(follow(&mut consumer, words), (None, range.start));
        }
        // SAFETY: the place has room for the range.
        unsafe { copy::transfer(into, payload[range.clone()].as_ptr(), range.len()) };
    });
    let (stamp, expected) = consumer.next_stamp();
    assert!(is_sent && consumer.has_message() && !is_begun(stamp, expected));
    assert_eq!(follow(&mut consumer, words), (None, 0), "it is not being written any more");
    let (seen, whole) =
        consumer.oldest().unwrap().map(|(words, payload)| (words, bytes_of(&payload))).unwrap();
    assert!(seen == words && whole == payload && target == payload[..3 * CHUNK_BYTES]);
}

#[test]
fn no_length_of_a_payload_that_is_being_written_leads_out_of_the_fifo() {
    let mut memory = memory::<DATA_BYTES>();
    let fifo = fifo(&mut memory);
    let mut consumer = fifo.consumer();
    let [stamp, written] = [0, WRITTEN_WORD].map(|i| &fifo.cell(0)[i]);
    written.store(u64::MAX, Ordering::Relaxed);
    for bytes in [0, 1, INLINE_BYTES, DATA_BYTES / 2 + 1, u32::MAX as usize] {
        stamp.store(Fifo::stamp(0, bytes) ^ BEGUN, Ordering::Relaxed);
        assert_eq!(consumer.follow([0; 2], 3, |_, _| panic!("{bytes} bytes are read")), None);
    }
    let mut read = 0;
    stamp.store(Fifo::stamp(0, 100) ^ BEGUN, Ordering::Relaxed);
    let outcome = consumer.follow([0; 2], 3, |_, range| read += range.len());
    assert_eq!((outcome, read), (None, 100), "a message has come when its stamp says so");
}

#[test]
fn a_thread_follows_another_one() {
    let mut memory = memory::<{ 16 * CHUNK_BYTES }>();
    let fifo = fifo(&mut memory);
    let (mut producer, mut consumer) = (fifo.producer(), fifo.consumer());
    let replies = AtomicU64::new(0);
    producer.replies = Some(&replies);
    let length = |i: u64| CHUNK_BYTES + (i as usize * 1237) % (5 * CHUNK_BYTES);
    let byte = |i: u64, place: usize| (i as usize * 31 + place / 5) as u8;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..2000 {
                let payload: Vec<u8> = (0..length(i)).map(|place| byte(i, place)).collect();
                replies.fetch_add(1, Ordering::Relaxed);
                while !send(&mut producer, [i, 0], &[], &payload) {
                    std::thread::yield_now();
                }
            }
        });
        for i in 0..2000 {
            let mut target = Vec::new();
            while !consumer.has_message() {
                target.clear();
                let followed = consumer.follow([i, 0], 1000, |data, range| {
                    target.resize(range.end, 0);
                    // SAFETY: the target has the range, and the FIFO its data.
                    unsafe { copy::transfer(target[range.clone()].as_mut_ptr(), data, range.len()) };
                });
                if followed.is_some() {
                    break;
                }
                target.clear();
            }
            let (words, payload) = consumer.oldest().unwrap().expect("it has come");
            let payload = bytes_of(&payload);
            assert!(target.is_empty() || target == payload, "message {i} was followed to its end");
            let is_right = payload.iter().enumerate().all(|(place, &seen)| seen == byte(i, place));
            assert!(words[0] == i && payload.len() == length(i) && is_right, "message {i}");
            consumer.release(payload.len());
        }
    });
}

#[test]
fn two_threads_see_every_message_in_order() {
    let mut memory = memory::<DATA_BYTES>();
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

/// The report in the shared state of a FIFO.
fn report(fifo: &Fifo<'_>) -> u64 {
    fifo.shared.report.load(Ordering::Relaxed)
}

#[test]
fn both_ends_time_long_payloads_until_the_trials_are_over() {
    let mut memory = memory::<8192>();
    let fifo = fifo(&mut memory);
    let (mut producer, mut consumer) = (fifo.producer(), fifo.consumer());
    let payload = [7; 2048];
    let mut reports = Vec::new();
    for i in 0..20 {
        assert!(send(&mut producer, [i, 0], &[1], &payload));
        // A message that is looked at first, and taken later.
        assert!(consumer.oldest().unwrap().is_some());
        assert_eq!(consumer.receive(|_, payload| bytes_of(payload)[8..] == [7; 2048]), Ok(true));
        reports.push(report(&fifo) >> 32);
    }
    let expected = |i: u64| if copy::CAN_STREAM { (i + 1).min(8) } else { 0 };
    assert_eq!(reports, (0..20).map(expected).collect::<Vec<_>>());
}

#[test]
fn short_payloads_that_filled_a_cell_are_not_taken_for_timed_ones() {
    let mut memory = memory::<8192>();
    let fifo = fifo(&mut memory);
    let (mut producer, mut consumer) = (fifo.producer(), fifo.consumer());
    for i in 0..3 * CELLS as u64 {
        let is_sent = match i / CELLS as u64 {
            0 => send(&mut producer, [i, 0], &[], &[0xFF; INLINE_BYTES]),
            1 => send(&mut producer, [i, 0], &[], &[0xFF; 100]),
            // SAFETY: the place has room for the payload.
            _ => producer.send_in_chunks([i, 0], 100, |into, _| unsafe { into.write_bytes(1, 100) }),
        };
        assert!(is_sent && consumer.receive(|_, _| true) == Ok(true), "{i}");
    }
    assert_eq!(report(&fifo), 0);
}
