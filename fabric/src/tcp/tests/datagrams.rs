//! Datagrams between the processes of a job.

use super::super::datagram::DatagramSender;
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
