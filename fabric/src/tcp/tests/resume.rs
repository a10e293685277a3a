//! Connections that are reset.

use super::super::peer::History;
use super::*;
use crate::sync::Ordering;

/// The socket of PE `from` to PE `to`.
fn socket(job: &Job, from: usize, to: usize) -> Option<i32> {
    job.endpoints[from].domain.peer(to).socket()
}

/// Resets the connection of PE `from` to PE `to`, like a firewall that has forgotten it. Bytes that PE `from`
/// has not received are lost.
fn reset(job: &Job, from: usize, to: usize) {
    reset_socket(socket(job, from, to).expect("there is a connection"));
}

pub(super) fn reset_socket(socket: i32) {
    let nowhere = libc::sockaddr { sa_family: libc::AF_UNSPEC as u16, sa_data: [0; 14] };
    // SAFETY: the socket is open, and the address is one.
    let result = unsafe { libc::connect(socket, &raw const nowhere, size_of_val(&nowhere) as u32) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Lets acknowledgements arrive that are under way.
fn settle(job: &Job) {
    let mut rounds = 0;
    job.until("rounds", || {
        rounds += 1;
        rounds > 50
    });
}

fn put(job: &Job, from: usize, to: usize, source: &[u64]) -> Status {
    let target = Remote { key: KEY, offset_bytes: 0 };
    let (start, bytes) = (source.as_ptr().cast(), size_of_val(source));
    // SAFETY: the caller keeps the source until the put is complete, and the target is the region.
    unsafe {
        job.endpoints[from].put(Put { pe: to, target, source: start, bytes, completion: Completion::Counted })
    }
}

#[test]
fn a_job_goes_on_after_a_reset_that_has_lost_nothing() {
    let job = Job::open(3);
    for round in 0..5 {
        let (from, to) = [(0, 1), (1, 0), (2, 0), (0, 2), (1, 2)][round];
        job.put(from, to, round as u64);
        job.put(to, from, round as u64 + 100);
        settle(&job);
        // Which of the two processes notices it first differs.
        let before = socket(&job, from, to);
        if round % 2 == 0 {
            reset(&job, from, to);
        } else {
            reset(&job, to, from);
        }
        job.put(from, to, round as u64 + 200);
        job.put(to, from, round as u64 + 300);
        assert_ne!(socket(&job, from, to), before, "the connection is another one");
    }
    let links = |pe: &Tcp| pe.domain.links.load(Ordering::Relaxed);
    assert_eq!(job.endpoints.iter().map(links).collect::<Vec<_>>(), [2; 3]);
    assert!(job.are_guards_untouched());
}

#[test]
fn what_waits_for_the_connection_arrives_after_a_reset() {
    let job = Job::open(2);
    job.put(0, 1, 1);
    settle(&job);
    // PE 1 has executed a put and not acknowledged it, and PE 0 starts others and the connection is reset in
    // the middle of them. All bytes that it has sent have arrived.
    let words: Vec<u64> = (0..REGION_BYTES as u64 / 8).collect();
    assert_eq!(put(&job, 0, 1, &words[..100]), Status::Pending);
    let has_arrived = || job.memory[1][REGION_BYTES / 8 + 99] == 99;
    let until = Instant::now() + Duration::from_secs(20);
    while !has_arrived() {
        assert!(Instant::now() < until, "waited in vain for the put");
        job.endpoints[1].domain.receive(job.endpoints[1].domain.peer(0), &mut Sink::to_inboxes());
    }
    reset(&job, 1, 0);
    job.until("the acknowledgement", || job.endpoints[0].completions().puts == 2);
    settle(&job);
    reset(&job, 1, 0);
    assert_eq!(put(&job, 0, 1, &words), Status::Pending);
    job.until("both puts", || job.endpoints[0].completions().puts == 3);
    assert_eq!(job.memory[1][REGION_BYTES / 8..][..words.len()], words);
    assert!(job.are_guards_untouched());
}

/// PE 1 has had no connection in the round in which the acknowledgement was due.
#[test]
fn an_acknowledgement_that_has_waited_for_the_connection_is_sent_at_once() {
    let job = Job::open(2);
    job.put(0, 1, 1);
    settle(&job);
    assert_eq!(put(&job, 0, 1, &[7; 50]), Status::Pending);
    let domain = &job.endpoints[1].domain;
    let (peer, until) = (domain.peer(0), Instant::now() + Duration::from_secs(20));
    while peer.owed_acks() == 0 {
        assert!(Instant::now() < until, "waited in vain for the put");
        domain.receive(peer, &mut Sink::to_inboxes());
    }
    reset(&job, 1, 0);
    job.until("the end of the connection", || socket(&job, 1, 0).is_none());
    job.until("another connection", || socket(&job, 1, 0).is_some());
    (0..2).for_each(|_| _ = domain.poll(&mut Sink::to_inboxes()));
    assert_eq!(peer.owed_acks(), 0);
}

/// It was about to use the connection when another thread gave it up, as only the peer had found it reset.
#[test]
fn a_thread_that_comes_late_leaves_a_connection_alone_that_was_given_up() {
    let job = Job::open(2);
    job.put(0, 1, 1);
    settle(&job);
    let before = socket(&job, 0, 1).unwrap();
    let give_up = |from: usize, to: usize| {
        let (domain, socket) = (&job.endpoints[from].domain, socket(&job, from, to).unwrap());
        domain.resume(domain.peer(to), socket, "the test says so".to_owned());
    };
    let domain = &job.endpoints[0].domain;
    let receive = || domain.receive_from(domain.peer(1), (before, Look::Everywhere), &mut Sink::to_inboxes());
    give_up(0, 1);
    assert!(receive() == 0 && domain.fault.get().is_none());
    give_up(1, 0);
    job.put(0, 1, 2);
    assert_ne!(socket(&job, 0, 1), Some(before));
    assert!(receive() == 0 && domain.fault.get().is_none());
    job.put(1, 0, 3);
}

/// The system reports the error of a connection once. The thread that polls then sees the end of the
/// connection.
#[test]
fn a_send_may_be_the_first_to_notice_a_reset() {
    let job = Job::open(2);
    for is_told in [false, true] {
        let before = [0, 1].map(|pe| job.endpoints[pe].completions().puts);
        job.put(0, 1, 1);
        settle(&job);
        // It has arrived and is not received.
        assert_eq!(put(&job, 0, 1, &[7; 50]), Status::Pending);
        reset(&job, 0, 1);
        if is_told {
            let socket = socket(&job, 1, 0).unwrap();
            // SAFETY: the system reads one byte, of an array that lives until it returns.
            let sent = unsafe { libc::send(socket, [0_u8].as_ptr().cast(), 1, libc::MSG_NOSIGNAL) };
            assert_eq!(sent, -1);
        } else {
            assert_eq!(put(&job, 1, 0, &[8; 50]), Status::Pending);
        }
        let expected = [before[0] + 2, before[1] + u64::from(!is_told)];
        job.until("the puts", || [0, 1].map(|pe| job.endpoints[pe].completions().puts) == expected);
        assert_eq!(job.memory[1][REGION_BYTES / 8..][..50], [7; 50]);
    }
    assert_eq!(job.memory[0][REGION_BYTES / 8..][..50], [8; 50]);
}

/// PE 2 has filled the inbox of PE 1, the buffer of the connection and a part of the socket. PE 0 finds the
/// reset before PE 1 takes its messages, and nothing is lost.
#[test]
fn a_reset_with_a_full_inbox_loses_nothing() {
    const PAYLOAD: [u8; 1000] = [7; 1000];
    let job = Job::with_several(4, 2);
    let (pes, domain) = (&job.endpoints, &job.endpoints[0].domain);
    let until = Instant::now() + Duration::from_secs(20);
    let in_time = |what: &str| assert!(Instant::now() < until, "waited in vain for {what}");
    let poll_all_but_pe_1 = || {
        for pe in [0, 2] {
            pes[pe].progress(&mut |_| ()).unwrap();
        }
    };
    let mut sent = 0_u64;
    while !domain.peer(1).receiver().is_full() {
        in_time("a full buffer");
        if pes[2].send(1, sent, &PAYLOAD) == Status::Done {
            sent += 1;
        }
        poll_all_but_pe_1();
    }
    let socket = |from: usize, to: usize| pes[from].domain.peer(to).socket();
    let before = socket(2, 0).unwrap();
    // All of it has left the socket of PE 2, which a reset would drop.
    let unsent = || {
        let mut bytes = 0;
        // SAFETY: the system writes one number to a variable that lives until it returns.
        assert_eq!(unsafe { libc::ioctl(before, libc::TIOCOUTQ, &raw mut bytes) }, 0);
        bytes + libc::c_int::from(pes[2].domain.peer(0).send_queue().has_unsent())
    };
    while unsent() > 0 {
        in_time("the messages to leave");
        poll_all_but_pe_1();
    }
    reset_socket(before);
    let (value, puts) = (5_u64, pes[0].completions().puts);
    let (target, source) = (Remote { key: KEY, offset_bytes: 8 }, (&raw const value).cast());
    let put = Put { pe: 2, target, source, bytes: 8, completion: Completion::Counted };
    // SAFETY: the value lives until the put is complete, and its place lies in the region.
    assert_eq!(unsafe { pes[0].put(put) }, Status::Pending);
    (0..100).for_each(|_| poll_all_but_pe_1());
    assert!(domain.peer(1).receiver().is_full(), "PE 1 has not looked yet");
    let mut arrived = 0;
    while arrived < sent || pes[0].completions().puts == puts {
        in_time("the messages and the put");
        poll_all_but_pe_1();
        let take = &mut |event: Event<'_>| {
            if let Event::Message { header, payload, .. } = event {
                assert_eq!((header, payload), (arrived, &PAYLOAD[..]));
                arrived += 1;
            }
        };
        pes[1].progress(take).unwrap();
    }
    assert_ne!(socket(2, 0), Some(before), "it is another connection");
    assert!(job.memory[2][REGION_BYTES / 8 + 1] == value && job.are_guards_untouched());
}

#[test]
fn a_reset_that_has_lost_bytes_ends_the_job() {
    let job = Job::open(2);
    job.put(0, 1, 1);
    job.put(1, 0, 1);
    settle(&job);
    assert_eq!(put(&job, 0, 1, &[7; 50]), Status::Pending);
    reset(&job, 1, 0);
    let text = job.fault();
    assert!(text.contains("reset, and ") && text.contains("are lost"), "{text}");
}

#[test]
fn a_process_that_is_gone_after_a_reset_is_lost() {
    let job = Job::open(2);
    job.put(0, 1, 1);
    settle(&job);
    let until = Instant::now() + Duration::from_secs(20);
    let listeners = &job.endpoints[1].domain.listeners;
    listeners.iter().for_each(|listener| super::super::socket::shut_down(listener.as_raw_fd()));
    reset(&job, 1, 0);
    let text = loop {
        if let Err(error) = job.endpoints[0].progress(&mut |_| ()) {
            break error.to_string();
        }
        assert!(Instant::now() < until, "waited in vain for an error");
    };
    assert!(until - Instant::now() > Duration::from_secs(17), "the system refuses it at once");
    assert!(
        text.contains("PE 1") && text.contains("connecting again: ") && text.contains("refused"),
        "{text}"
    );
}

/// Another attempt at an address may be answered: a peer may close one because it connects itself.
#[test]
fn a_peer_is_refused_everywhere_if_each_address_refuses_in_turn() {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let (addresses, reason, reset) = (vec![address; 2], String::new(), Some("reset".to_owned()));
    let (since, has_proved, lacks_descriptors) = (Instant::now(), false, false);
    let history =
        History { since, count: 7, addresses, reason, reset, refusals: 0, has_proved, lacks_descriptors };
    let is_hopeless = |refusals| History { refusals, ..history.clone() }.is_hopeless();
    assert_eq!([0, 1, 2, 3].map(is_hopeless), [false, false, true, true]);
}

/// A stranger knows no proof, and a recorded hello does not help it.
#[test]
fn a_stranger_cannot_resume_a_connection() {
    let job = Job::open(2);
    job.put(0, 1, 1);
    job.put(1, 0, 1);
    let before = socket(&job, 0, 1);
    let mut stream = TcpStream::connect(job.address(0)).unwrap();
    let (call, nonce) = (Call { from: 1, to: 0 }, handshake::nonce().unwrap());
    stream
        .write_all(&handshake::hello((call, false, Earlier { connections: 1, received: 48 }, nonce)))
        .unwrap();
    assert!(job.answer::<CHALLENGE_BYTES>(&mut stream).is_some());
    stream.write_all(&[0x5A; PROOF_BYTES]).unwrap();
    assert_eq!(job.answer::<1>(&mut stream), None);
    job.put(1, 0, 2);
    assert_eq!(socket(&job, 0, 1), before);
}
