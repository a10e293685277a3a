//! Frames that wait for others, and acknowledgements that wait for a frame.

use super::super::domain::OwedAcks;
use super::super::send_queue::{AT_ONCE, LOOK_INTERVAL, SendQueue, WAITING_BYTES};
use super::*;
use crate::sync::Ordering;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

#[test]
fn messages_are_gathered_while_more_follow() {
    let job = Job::open(2);
    job.put(0, 1, 1);
    let pe = &job.endpoints[0];
    let waits = || pe.domain.peer(1).send_queue().has_unsent();
    let send = || assert_eq!(pe.send(1, 0, &[7; 100]), Status::Done);
    let poll = || {
        pe.progress(&mut |_| ()).unwrap();
    };
    for number in 1..=AT_ONCE {
        send();
        assert!(!waits(), "message {number} waits for nothing");
    }
    for _ in 0..5 {
        send();
        poll();
        assert!(waits(), "it waits for others, as the PE goes on sending");
    }
    poll();
    assert!(!waits(), "a PE that sends nothing more has sent all");
    send();
    assert!(waits() && pe.may_sleep() && !waits(), "a PE that is about to sleep sends all");
    let rounds = (1..100).find(|_| {
        send();
        poll();
        !waits()
    });
    assert_eq!(rounds, Some(16), "messages do not wait for ever");
}

#[test]
fn gathered_puts_wait_for_others_until_the_next_progress() {
    let job = Job::open(2);
    job.put(0, 1, 1);
    let pe = &job.endpoints[0];
    let waits = || pe.domain.peer(1).send_queue().has_unsent();
    let (target, value) = (Remote { key: KEY, offset_bytes: 8 }, 7_u64);
    let start = |completion| {
        let put = Put { pe: 1, target, source: (&raw const value).cast(), bytes: 8, completion };
        // SAFETY: the value is copied, and its place lies in the region.
        assert_eq!(unsafe { pe.put(put) }, Status::Pending);
    };
    for number in 1..=AT_ONCE {
        start(Completion::Gathered);
        assert!(!waits(), "put {number} waits for nothing");
    }
    start(Completion::Gathered);
    assert!(waits(), "the receiver has not taken the earlier ones");
    start(Completion::Unreported);
    assert!(!waits(), "a put that the receiver waits for takes them along");
    start(Completion::Gathered);
    pe.progress(&mut |_| ()).unwrap();
    assert!(!waits(), "progress sends them");
}

/// Large data.
const LONG_BYTES: usize = WAITING_BYTES + 4096;

/// Starts a put of large data, with a signal or without one.
fn start_long(pe: &Tcp, data: &[u8], kind: Kind) {
    let (target, completion) = (Remote { key: KEY, offset_bytes: 8 }, Completion::Counted);
    let put = Put { pe: 1, target, source: data.as_ptr(), bytes: data.len(), completion };
    let word = Remote { key: KEY, offset_bytes: 0 };
    let atomic = Atomic { kind: AtomicKind::U64, op: AtomicOp::Add, operand: 1, compare: 0 };
    // SAFETY: the data outlive the job, and both places lie in the region.
    let status = unsafe {
        match kind {
            Kind::PutSignal => pe.put_signal(put, Signal { word, atomic }),
            _ => pe.put(put),
        }
    };
    assert_eq!(status, Status::Pending);
}

#[test]
fn long_puts_of_a_series_wait_for_each_other_until_the_next_progress() {
    let data = vec![7_u8; LONG_BYTES];
    let job = Job::open(2);
    job.put(0, 1, 1);
    let pe = &job.endpoints[0];
    let waits = || pe.domain.peer(1).send_queue().has_unsent();
    // This thread may have lost its processor while a put has waited.
    let start = |kind| {
        pe.domain.peer(1).send_queue().forget_series();
        start_long(pe, &data, kind);
    };
    for number in 1..=AT_ONCE {
        start(Kind::Put);
        assert!(!waits(), "put {number} waits for nothing");
    }
    start(Kind::Put);
    assert!(waits(), "the next one waits for others");
    start(Kind::PutSignal);
    assert!(!waits(), "a put with a signal takes it along");
    start(Kind::Put);
    pe.progress(&mut |_| ()).unwrap();
    assert!(!waits(), "progress sends it");
    start(Kind::Put);
    assert_eq!(pe.send(1, 0, &[7; 100]), Status::Done);
    assert!(waits() && pe.may_sleep() && !waits(), "a PE that is about to sleep sends all");
    job.until("all of them", || pe.completions().puts == u64::from(AT_ONCE) + 5);
    assert_eq!(job.memory[1][REGION_BYTES / 8..][..2], [GUARD + 1, 0x0707_0707_0707_0707]);
}

#[test]
fn operations_that_were_acknowledged_unseen_let_no_other_wait() {
    let job = Job::open(2);
    job.put(0, 1, 1);
    let (origin, target) = (&job.endpoints[0], &job.endpoints[1]);
    let waits = || origin.domain.peer(1).send_queue().has_unsent();
    let long = vec![7_u8; LONG_BYTES];
    for number in 0..20 * u64::from(AT_ONCE) {
        if number >= 10 * u64::from(AT_ONCE) {
            start_long(origin, &long, Kind::PutSignal);
        }
        assert_eq!(origin.send(1, number, &[7; 100]), Status::Done);
        assert!(
            !waits(),
            "message {number}: the origin computes between its messages, and makes no progress"
        );
        let (until, mut has_come) = (Instant::now() + Duration::from_secs(20), false);
        while !has_come {
            assert!(Instant::now() < until, "waited in vain for message {number}");
            target.progress(&mut |event| has_come |= matches!(event, Event::Message { .. })).unwrap();
        }
        // The acknowledgement leaves in a round that finds nothing.
        target.progress(&mut |_| ()).unwrap();
        let computes = Instant::now();
        while computes.elapsed() < LOOK_INTERVAL {
            std::hint::spin_loop();
        }
    }
}

#[test]
fn frames_that_follow_each_other_closely_are_gathered() {
    let (mut queue, now) = (SendQueue::default(), Instant::now());
    assert!(queue.may_look_for_acks(now));
    assert!(!queue.may_look_for_acks(now + LOOK_INTERVAL / 2));
    assert!(queue.may_look_for_acks(now + LOOK_INTERVAL), "the PE has computed meanwhile");
    assert!(!queue.may_look_for_acks(now + LOOK_INTERVAL));
}

#[test]
fn acknowledgements_of_a_few_messages_wait_for_a_frame_that_carries_them() {
    let job = Job::open(2);
    job.put(0, 1, 1);
    let (origin, target) = (&job.endpoints[0], &job.endpoints[1]);
    let sender = target.domain.peer(0);
    let poll = || target.progress(&mut |_| ()).unwrap();
    let rounds_until_acknowledged = || {
        (1..100).find(|_| {
            poll();
            sender.owed_acks() == 0
        })
    };
    // No round without a frame follows the one that finds the last frame.
    let receive = |count| {
        let until = Instant::now() + Duration::from_secs(20);
        while sender.owed_acks() != count {
            assert!(Instant::now() < until, "waited in vain for {count} operations");
            // No acknowledgement is sent in a round with a frame.
            target.domain.rounds.store(0, Ordering::Relaxed);
            poll();
        }
    };
    (0..OwedAcks::IDLE_MAX).for_each(|_| {
        poll();
    });
    let send = || assert_eq!(origin.send(1, 0, &[7; 100]), Status::Done);
    send();
    receive(1);
    assert_eq!(rounds_until_acknowledged(), Some(OwedAcks::IDLE_MAX));
    (0..OwedAcks::MESSAGES_MAX).for_each(|_| send());
    receive(OwedAcks::MESSAGES_MAX);
    assert_eq!(rounds_until_acknowledged(), Some(1), "the sender gathers the next messages");
    job.start_put(0, 1, 7);
    receive(1);
    assert_eq!(rounds_until_acknowledged(), Some(1), "a quiet may wait for that of a put");
    send();
    receive(1);
    assert_eq!(target.send(0, 0, &[7; 100]), Status::Done);
    assert_eq!(sender.owed_acks(), 0, "a frame in the other direction carries it");
    let broadcast = || start_broadcast(origin, 1);
    broadcast();
    receive(1);
    assert_eq!(rounds_until_acknowledged(), Some(OwedAcks::IDLE_MAX), "nobody waits for a broadcast");
    (0..OwedAcks::MESSAGES_MAX).for_each(|_| broadcast());
    receive(OwedAcks::MESSAGES_MAX);
    assert_eq!(rounds_until_acknowledged(), Some(1), "the root gathers the next ones");
}

/// Starts a put with a signal as the root of a broadcast does.
fn start_broadcast(origin: &Tcp, pe: usize) {
    let value = 7_u64;
    let [target, word] = [8, 16].map(|offset_bytes| Remote { key: KEY, offset_bytes });
    let (source, completion) = ((&raw const value).cast(), Completion::Gathered);
    let put = Put { pe, target, source, bytes: 8, completion };
    let atomic = Atomic { kind: AtomicKind::U64, op: AtomicOp::Add, operand: 1, compare: 0 };
    // SAFETY: the value is copied, and both places lie in the region.
    assert_eq!(unsafe { origin.put_signal(put, Signal { word, atomic }) }, Status::Pending);
}

#[test]
fn the_wait_descriptor_tells_of_the_doorbell_and_of_arrivals() {
    for each in [1, 2] {
        let job = Job::with_several(2 * each, each);
        job.put(0, each, 1);
        let pe = &job.endpoints[each];
        let descriptor = pe.wait_descriptor().unwrap();
        let tells = || {
            let mut fds = [PollFd::new(&descriptor, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec::default())).unwrap() > 0
        };
        job.until("a descriptor that tells of nothing", || !tells());
        pe.domain.local_pes[0].ring();
        assert!(tells(), "the doorbell rings, {each} PEs in the process");
        pe.progress(&mut |_| ()).unwrap();
        assert!(!tells(), "progress resets it");
        start_broadcast(&job.endpoints[0], each);
        let until = Instant::now() + Duration::from_secs(20);
        while !tells() {
            assert!(Instant::now() < until, "waited in vain for the descriptor to tell of a put");
        }
        job.until("a descriptor that tells of nothing", || !tells());
        assert_eq!(job.memory[each][REGION_BYTES / 8 + 1], 7);
    }
}

#[test]
fn a_put_is_acknowledged_while_frames_of_another_peer_arrive_in_every_round() {
    let job = Job::open(3);
    job.put(1, 0, 1);
    job.put(2, 0, 1);
    let domain = &job.endpoints[0].domain;
    let others = || [1, 2].map(|pe| job.endpoints[pe].progress(&mut |_| ()).unwrap());
    job.start_put(1, 0, 7);
    let before = job.endpoints[1].completions().puts;
    for round in 0.. {
        job.start_put(2, 0, round);
        others();
        assert!(domain.poll(&mut Sink::to_inboxes()) > 0, "a put has come in round {round}");
        if job.endpoints[1].completions().puts > before {
            break;
        }
        assert!(round < 100, "the put of PE 1 is not acknowledged");
    }
}
