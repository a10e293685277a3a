//! Incoming connections that fail at the end of their handshake.

use super::super::domain::{Domain, Tag};
use super::super::socket::KEEPALIVE;
use super::*;
use crate::sync::Ordering;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;
use std::net::TcpListener;
use std::os::fd::OwnedFd;

/// A connection to a process that has come as far as the challenge, and the proof that is due. The process
/// alone makes progress.
fn challenged(job: &Job, call: Call) -> (TcpStream, [u8; PROOF_BYTES]) {
    let mut stream = TcpStream::connect(job.address(call.to as usize)).unwrap();
    let (nonce, earlier) = (handshake::nonce().unwrap(), Earlier::default());
    stream.write_all(&handshake::hello((call, false, earlier, nonce))).unwrap();
    stream.set_nonblocking(true).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    let (mut challenge, mut count) = ([0; CHALLENGE_BYTES], 0);
    while count < CHALLENGE_BYTES {
        assert!(Instant::now() < until, "waited in vain for the challenge");
        job.endpoints[call.to as usize].progress(&mut |_| ()).unwrap();
        count += stream.read(&mut challenge[count..]).unwrap_or(0);
    }
    let (_, theirs, _) = handshake::read_challenge(&challenge);
    let terms = Terms { secret: job.secret, call, earlier, encrypts: [false; 2], nonces: [nonce, theirs] };
    (stream, terms.proof(Side::Connects))
}

#[test]
fn an_incoming_connection_that_fails_leaves_the_own_attempt() {
    let job = Job::open(2);
    let domain = &job.endpoints[1].domain;
    let n_connecting = || domain.n_connecting.load(Ordering::Relaxed);
    job.start_put(1, 0, 7);
    let (mut stream, proof) = challenged(&job, Call { from: 0, to: 1 });
    let socket = domain.incoming.lock()[0].socket.as_raw_fd();
    // The poller does not take it for the connection to a peer.
    domain.poller.remove(socket).unwrap();
    stream.write_all(&proof).unwrap();
    domain.advance_incoming(socket.unsigned_abs());
    assert!(domain.incoming.lock().is_empty() && n_connecting() == 1);
    job.until("a put", || job.endpoints[1].completions().puts == 1);
    assert_eq!(n_connecting(), 0);
}

/// The other process gives its attempt up after the same time.
#[test]
fn a_proof_that_comes_late_is_refused() {
    let job = Job::open(2);
    let domain = &job.endpoints[0].domain;
    let (mut stream, proof) = challenged(&job, Call { from: 1, to: 0 });
    domain.incoming.lock()[0].deadline = Instant::now();
    stream.write_all(&proof).unwrap();
    assert_eq!(job.answer::<1>(&mut stream), None);
    assert_eq!(domain.peer(1).connections.load(Ordering::Relaxed), 0);
    job.put(1, 0, 7);
}

/// More members than connections that are kept at a time, all with their hello.
#[test]
fn a_crowd_of_members_is_answered() {
    crate::tcp::descriptors::make_room(2000);
    let job = Job::open(2);
    let call = Call { from: 1, to: 0 };
    let member = |_| {
        let mut stream = TcpStream::connect(job.address(0)).unwrap();
        let nonce = handshake::nonce().unwrap();
        stream.write_all(&handshake::hello((call, false, Earlier::default(), nonce))).unwrap();
        stream
    };
    let mut crowd: Vec<_> = (0..300).map(member).collect();
    for (i, stream) in crowd.iter_mut().enumerate() {
        assert!(job.answer::<CHALLENGE_BYTES>(stream).is_some(), "member {i} got no challenge");
    }
}

/// The process with the lower number cannot reach the other one, which reaches it.
#[test]
fn the_only_way_is_taken_by_the_lower_process_as_well() {
    let secret = Secret::draw().unwrap();
    let choice =
        TcpChoice { is_local: true, insists_on_goodbye: true, datagrams: true, ..TcpChoice::default() };
    let open = |process| Tcp::open(process, 1, 2, &choice, secret).unwrap();
    let endpoints: Vec<Tcp> = (0..2).flat_map(open).collect();
    let cards: Vec<_> = endpoints.iter().map(|endpoint| endpoint.address().unwrap()).collect();
    let job = Job::with_cards(endpoints, secret, |me, pe| match (me, pe) {
        (0, 1) => b"127.0.0.1:1".to_vec(),
        _ => cards[pe].clone(),
    });
    job.start_put(0, 1, 7);
    job.start_put(1, 0, 8);
    job.until("both puts", || job.endpoints.iter().all(|endpoint| endpoint.completions().puts == 1));
}

/// Whether the poller of a domain reports this tag.
fn is_reported(domain: &Domain, tag: Tag) -> bool {
    domain.poller.ready(&mut [0; 32]).contains(&tag.code())
}

/// A child that the program has forked holds copies of the descriptors.
#[test]
fn the_poller_forgets_an_incoming_connection_of_which_a_child_has_a_copy() {
    let job = Job::open(2);
    let domain = &job.endpoints[0].domain;
    for is_late in [false, true] {
        let mut stream = TcpStream::connect(job.address(0)).unwrap();
        job.until("the connection", || domain.n_incoming.load(Ordering::Relaxed) == 1);
        let copy = {
            let mut incoming = domain.incoming.lock();
            incoming[0].deadline -= if is_late { Duration::from_secs(60) } else { Duration::ZERO };
            incoming[0].socket.try_clone().unwrap()
        };
        let tag = Tag::Incoming(domain.incoming.lock()[0].socket.as_raw_fd().unsigned_abs());
        if !is_late {
            stream.write_all(&[7; 100]).unwrap();
        }
        job.until("the end of the connection", || domain.n_incoming.load(Ordering::Relaxed) == 0);
        drop(stream);
        until_readable(&copy);
        assert!(!is_reported(domain, tag), "is it late: {is_late}");
    }
}

#[test]
fn the_poller_forgets_an_attempt_of_which_a_child_has_a_copy() {
    let secret = Secret::draw().unwrap();
    let choice =
        TcpChoice { is_local: true, insists_on_goodbye: true, datagrams: true, ..TcpChoice::default() };
    let endpoints = Tcp::open(0, 1, 2, &choice, secret).unwrap();
    let stranger = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let card = stranger.local_addr().unwrap().to_string().into_bytes();
    let job = Job::with_cards(endpoints, secret, |_, _| card.clone());
    let (domain, value) = (&job.endpoints[0].domain, 7_u64);
    let put = Put {
        pe: 1,
        target: Remote { key: KEY, offset_bytes: 8 },
        source: (&raw const value).cast(),
        bytes: 8,
        completion: Completion::Counted,
    };
    // SAFETY: the value is copied, and nothing comes to the target.
    assert_eq!(unsafe { job.endpoints[0].put(put) }, Status::Pending);
    let copy = match &*domain.peer(1).link() {
        Link::Connecting(attempt) => attempt.socket.try_clone().unwrap(),
        _ => panic!("it connects at once"),
    };
    drop(stranger.accept().unwrap());
    drop(stranger);
    job.until("a pause", || matches!(&*domain.peer(1).link(), Link::Waiting(..)));
    until_readable(&copy);
    assert!(!is_reported(domain, Tag::Peer(1)));
}

/// Waits until a descriptor is readable, within a bound.
fn until_readable(descriptor: &OwnedFd) {
    let bound = Timespec { tv_sec: 20, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&bound)).unwrap(), 1);
}

#[test]
fn both_ends_keep_an_idle_connection_alive() {
    let job = Job::open(2);
    job.put(0, 1, 7);
    for pe in [0, 1] {
        let link = job.endpoints[pe].domain.peer(1 - pe).link();
        let Link::Up(socket) = &*link else { panic!("the connection is up") };
        assert!(sockopt::socket_keepalive(&**socket).unwrap() && sockopt::tcp_nodelay(&**socket).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&**socket).unwrap(), KEEPALIVE);
    }
}
