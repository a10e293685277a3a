//! Datagrams between the processes of a job.

use super::super::datagram::{DatagramSender, PEERS_MAX};
use super::resume::reset_socket;
use super::*;

/// Calls a function with the sender of datagrams of PE `from` to PE `to`.
fn with_sender<R>(job: &Job, from: usize, to: usize, call: impl FnOnce(&mut DatagramSender) -> R) -> R {
    let mut queue = job.endpoints[from].domain.peer(to).send_queue();
    call(queue.datagrams.as_mut().expect("the peer has told of its socket"))
}

/// Puts back and forth until both PEs send datagrams.
fn warm_up(job: &Job, one: usize, other: usize) {
    let n_sent = |from, to| with_sender(job, from, to, |sender| sender.n_sent);
    for value in 0..1000 {
        job.put(one, other, value);
        job.put(other, one, value);
        if n_sent(one, other) > 0 && n_sent(other, one) > 0 {
            return;
        }
    }
    panic!("no datagrams after 1000 puts each way");
}

#[test]
fn short_puts_travel_in_datagrams() {
    let job = Job::open(2);
    warm_up(&job, 0, 1);
    let before = with_sender(&job, 0, 1, |sender| sender.n_sent);
    for value in 0..100 {
        job.put(0, 1, value);
        job.put(1, 0, value);
    }
    let sent = with_sender(&job, 0, 1, |sender| sender.n_sent) - before;
    assert!((100..=250).contains(&sent), "{sent} datagrams for 100 puts and as many acknowledgements");
    assert!(job.are_guards_untouched());
}

#[test]
fn what_the_network_loses_is_sent_over_the_connection() {
    let job = Job::open(2);
    warm_up(&job, 0, 1);
    with_sender(&job, 0, 1, |sender| sender.loses = true);
    for value in 0..20 {
        job.put(0, 1, value + 1000);
    }
    with_sender(&job, 0, 1, |sender| sender.loses = false);
    with_sender(&job, 1, 0, |sender| sender.loses = true);
    for value in 0..20 {
        job.put(0, 1, value + 2000);
        job.put(1, 0, value);
    }
    assert!(job.are_guards_untouched());
}

/// A network that carries no datagrams any more costs some pauses, not one for each frame.
#[test]
fn datagrams_that_never_arrive_are_given_up() {
    let job = Job::open(2);
    warm_up(&job, 0, 1);
    with_sender(&job, 0, 1, |sender| sender.loses = true);
    let mut value = 0;
    job.until("the end of datagrams", || {
        value += 1;
        job.put(0, 1, value);
        with_sender(&job, 0, 1, |sender| sender.is_closed())
    });
    let before = with_sender(&job, 0, 1, |sender| sender.n_sent);
    (0..50).for_each(|value| job.put(0, 1, value));
    assert_eq!(with_sender(&job, 0, 1, |sender| sender.n_sent), before);
}

#[test]
fn what_was_lost_in_datagrams_arrives_after_a_reset() {
    for from in [0, 1] {
        let job = Job::open(2);
        warm_up(&job, 0, 1);
        with_sender(&job, from, 1 - from, |sender| sender.loses = true);
        let before = job.endpoints[from].completions().puts;
        job.start_put(from, 1 - from, 7);
        job.start_put(from, 1 - from, 8);
        reset_socket(job.endpoints[0].domain.peer(1).socket().expect("there is a connection"));
        job.until("the puts", || job.endpoints[from].completions().puts == before + 2);
        assert_eq!(job.memory[1 - from][REGION_BYTES / 8 + 1], 8);
        // Both go on over the connection alone.
        job.put(0, 1, 9);
        job.put(1, 0, 10);
        assert!(with_sender(&job, 0, 1, |sender| sender.is_closed()));
        assert!(job.are_guards_untouched());
    }
}

/// A message waits for its inbox. Behind it the connection brings again what has come in a datagram, and
/// then it is reset.
#[test]
fn a_reset_behind_a_message_that_waits_loses_nothing() {
    let job = Job::with_several(4, 2);
    let (pes, domain) = (&job.endpoints, &job.endpoints[0].domain);
    let to_process_0 = || pes[2].domain.peer(0).send_queue();
    job.until("datagrams", || {
        job.put(2, 0, 5);
        job.put(0, 2, 6);
        to_process_0().datagrams.as_ref().is_some_and(|sender| sender.n_sent > 0)
    });
    let mut in_inbox = 0;
    while domain.local_pes[1].push_message(0, 0, &[]) {
        in_inbox += 1;
    }
    let until = Instant::now() + Duration::from_secs(20);
    let poll_until = |what: &str, is_done: &mut dyn FnMut() -> bool| {
        while !is_done() {
            assert!(Instant::now() < until, "waited in vain for {what}");
            for pe in [0, 2] {
                pes[pe].progress(&mut |_| ()).unwrap();
            }
        }
    };
    assert_eq!(pes[2].send(1, 1, b"waits"), Status::Done);
    poll_until("a message that waits", &mut || domain.peer(1).receiver().has_hidden_work());
    assert_eq!(pes[2].send(1, 2, b"is repeated"), Status::Done);
    assert!(to_process_0().has_open_run(), "it is in a datagram");
    let words = vec![9_u64; 4000];
    let (target, source) = (Remote { key: KEY, offset_bytes: 0 }, words.as_ptr().cast());
    let put = Put { pe: 0, target, source, bytes: 32_000, completion: Completion::Counted };
    let puts = pes[2].completions().puts;
    // SAFETY: the words live until the put is complete, and its place lies in the region.
    assert_eq!(unsafe { pes[2].put(put) }, Status::Pending);
    let socket = pes[2].domain.peer(0).socket().unwrap();
    let unsent = || {
        let mut bytes = 0;
        // SAFETY: the system writes one number to a variable that lives until it returns.
        assert_eq!(unsafe { libc::ioctl(socket, libc::TIOCOUTQ, &raw mut bytes) }, 0);
        bytes + libc::c_int::from(to_process_0().has_unsent())
    };
    poll_until("the bytes to leave", &mut || unsent() == 0);
    reset_socket(socket);
    let mut rounds = 0..100;
    poll_until("rounds", &mut || rounds.next().is_none());
    let mut headers = Vec::new();
    job.until("the messages and the put", || {
        let take = &mut |event: Event<'_>| {
            if let Event::Message { header, .. } = event {
                headers.push(header);
            }
        };
        pes[1].progress(take).unwrap();
        headers.len() == in_inbox + 2 && pes[2].completions().puts == puts + 1
    });
    assert_eq!(headers[in_inbox..], [1, 2]);
    assert_eq!(job.memory[0][REGION_BYTES / 8..][..4000], words);
}

/// Each socket takes a port from all programs of the machine.
#[test]
fn only_the_first_peers_have_sockets_for_datagrams() {
    let job = Job::open(PEERS_MAX + 3);
    for peer in 1..job.endpoints.len() {
        job.put(0, peer, peer as u64);
        job.put(peer, 0, peer as u64);
    }
    let has_socket = |peer: &usize| job.endpoints[0].domain.peer(*peer).datagrams.get().is_some();
    assert!((1..=PEERS_MAX).all(|peer| has_socket(&peer)));
    assert!(!(PEERS_MAX + 1..job.endpoints.len()).any(|peer| has_socket(&peer)));
}

/// A process that leaves sends what was lost before.
#[test]
fn a_process_that_leaves_loses_nothing() {
    let mut job = Job::open(2);
    warm_up(&job, 0, 1);
    with_sender(&job, 0, 1, |sender| sender.loses = true);
    job.start_put(0, 1, 77);
    drop(job.endpoints.remove(0));
    job.until("the last put", || job.memory[1][REGION_BYTES / 8 + 1] == 77);
}

/// A firewall lets the named ports through.
#[test]
fn datagrams_have_the_named_ports() {
    let secret = Secret::draw().unwrap();
    let first = 23_000 + (std::process::id() % 1000) as u16;
    let choice = TcpChoice {
        is_local: true,
        insists_on_goodbye: true,
        datagrams: true,
        ports: Some(first..=first + 500),
        ..TcpChoice::default()
    };
    let open = |process| Tcp::open(process, 1, 3, &choice, secret).unwrap();
    let endpoints: Vec<Tcp> = (0..3).flat_map(open).collect();
    let cards: Vec<_> = endpoints.iter().map(|endpoint| endpoint.address().unwrap()).collect();
    let job = Job::of(endpoints, &cards, secret);
    for (one, other) in [(0, 1), (2, 0), (1, 2)] {
        warm_up(&job, one, other);
    }
    for (process, peer) in [(0, 1), (1, 0), (0, 2), (2, 1)] {
        let socket = job.endpoints[process].domain.peer(peer).datagrams.get().unwrap().as_raw();
        // SAFETY: the socket is open as long as the job.
        let socket = unsafe { std::os::fd::BorrowedFd::borrow_raw(socket) };
        let bound: SocketAddr = rustix::net::getsockname(socket).unwrap().try_into().unwrap();
        assert_eq!(bound.port(), job.address(process).port());
    }
}
