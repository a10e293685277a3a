//! Strangers, members that misbehave, and connections that are opened in unusual ways.

use super::datagram::Look;
use super::frame::{HEADER_BYTES, Header, Kind};
use super::handshake::{self, CHALLENGE_BYTES, Call, Earlier, PROOF_BYTES, Side, Terms, WELCOME_BYTES};
use super::peer::{Link, Stage};
use super::progress::Sink;
use super::receiver::{Received, Receiver};
use super::send_queue::SendQueue;
use super::{Tcp, TcpChoice};
use crate::amo::{Atomic, AtomicKind, AtomicOp};
use crate::contract::Provider;
use crate::operation::{Amo, Completion, Get, Put, Signal};
use crate::secret::Secret;
use crate::types::{Completions, Event, FabricError, Key, Remote, Status};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

mod accept;
mod contacts;
mod datagrams;
mod descriptors;
#[cfg(feature = "encrypt")]
mod encrypted;
mod gathering;
mod memory;
#[cfg(feature = "encrypt")]
mod relay;
mod resume;
mod watch;

const KEY: Key = 3;
const REGION_BYTES: usize = 1 << 16;
/// The pattern of memory that must not be written.
const GUARD: u64 = 0xA5A5_A5A5_A5A5_A5A5;

/// The endpoints of PEs, and their memory: a region between two guards.
struct Job {
    endpoints: Vec<Tcp>,
    memory: Vec<Vec<u64>>,
    secret: Secret,
}

impl Job {
    fn open(n: usize) -> Job {
        Job::with_several(n, 1)
    }

    /// `n` PEs, `each` of them a process.
    fn with_several(n: usize, each: usize) -> Job {
        let secret = Secret::draw().unwrap();
        let choice =
            TcpChoice { is_local: true, insists_on_goodbye: true, datagrams: true, ..TcpChoice::default() };
        let open = |process| Tcp::open(process, each, n, &choice, secret).unwrap();
        let endpoints: Vec<Tcp> = (0..n / each).flat_map(open).collect();
        let cards: Vec<_> = endpoints.iter().map(|endpoint| endpoint.address().unwrap()).collect();
        Job::of(endpoints, &cards, secret)
    }

    /// A job of these endpoints, which connect by these business cards.
    fn of(endpoints: Vec<Tcp>, cards: &[Vec<u8>], secret: Secret) -> Job {
        Job::with_cards(endpoints, secret, |_, pe| cards[pe].clone())
    }

    /// A job of these endpoints. The first of two PEs connects to the second by the business card of `card`.
    fn with_cards(mut endpoints: Vec<Tcp>, secret: Secret, card: impl Fn(usize, usize) -> Vec<u8>) -> Job {
        let n = endpoints.len();
        let mut memory: Vec<Vec<u64>> = (0..n).map(|_| vec![GUARD; 3 * REGION_BYTES / 8]).collect();
        for (me, (endpoint, memory)) in endpoints.iter_mut().zip(&mut memory).enumerate() {
            let start = NonNull::new(memory[REGION_BYTES / 8..].as_mut_ptr().cast()).unwrap();
            endpoint.connect(&mut |pe| Ok(card(me, pe))).unwrap();
            endpoint.register(KEY, start, REGION_BYTES).unwrap();
        }
        Job { endpoints, memory, secret }
    }

    /// The address at which a process listens.
    fn address(&self, process: usize) -> SocketAddr {
        self.endpoints[process].domain.card().0[0]
    }

    /// Lets all make progress until it is done, within a bound.
    fn until(&self, what: &str, mut is_done: impl FnMut() -> bool) {
        let until = Instant::now() + Duration::from_secs(20);
        while !is_done() {
            assert!(Instant::now() < until, "waited in vain for {what}");
            self.endpoints.iter().for_each(|endpoint| {
                endpoint.progress(&mut |_| ()).unwrap();
            });
        }
    }

    /// The error of PE 0 after a member has broken the protocol.
    fn fault(&self) -> String {
        self.fault_of(0)
    }

    /// The error of a PE, which comes within a bound.
    fn fault_of(&self, pe: usize) -> String {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            for (i, endpoint) in self.endpoints.iter().enumerate() {
                match endpoint.progress(&mut |_| ()) {
                    Err(error) if i == pe => return error.to_string(),
                    _ => {}
                }
            }
            assert!(Instant::now() < until, "waited in vain for an error of PE {pe}");
        }
    }

    fn start_put(&self, from: usize, to: usize, value: u64) {
        let target = Remote { key: KEY, offset_bytes: 8 };
        let (start, completion) = ((&raw const value).cast(), Completion::Counted);
        let put = Put { pe: to, target, source: start, bytes: 8, completion };
        // SAFETY: the value is copied, and its place lies in the region.
        assert_eq!(unsafe { self.endpoints[from].put(put) }, Status::Pending);
    }

    fn put(&self, from: usize, to: usize, value: u64) {
        let before = self.endpoints[from].completions().puts;
        self.start_put(from, to, value);
        self.until("a put", || self.endpoints[from].completions().puts == before + 1);
        assert_eq!(self.memory[to][REGION_BYTES / 8 + 1], value);
    }

    /// Lets PE 0 make progress until it has no connection. Its only error may be that a peer is lost, and
    /// memory outside of the regions does not change.
    fn survives(&self) -> Result<(), TestCaseError> {
        let until = Instant::now() + Duration::from_secs(20);
        while self.endpoints[0].domain.links.load(crate::sync::Ordering::Relaxed) > 0 {
            let outcome = self.endpoints[0].progress(&mut |_| ());
            let is_known = matches!(
                outcome,
                Ok(_) | Err(FabricError::Unreachable { .. } | FabricError::PeerLost { .. })
            );
            prop_assert!(is_known, "{outcome:?}");
            prop_assert!(Instant::now() < until, "waited in vain for the end of the connection");
        }
        prop_assert!(self.are_guards_untouched());
        Ok(())
    }

    fn is_untouched(&self) -> bool {
        self.memory.iter().flatten().all(|&word| word == GUARD)
    }

    fn are_guards_untouched(&self) -> bool {
        let is_whole = |memory: &Vec<u64>| {
            let (before, rest) = memory.split_at(REGION_BYTES / 8);
            before.iter().chain(&rest[REGION_BYTES / 8..]).all(|&word| word == GUARD)
        };
        self.memory.iter().all(is_whole)
    }

    /// A connection to process 0 that has proved that it is process 1.
    fn member(&self) -> TcpStream {
        let mut stream = TcpStream::connect(self.address(0)).unwrap();
        let (call, nonce) = (Call { from: 1, to: 0 }, handshake::nonce().unwrap());
        stream.write_all(&handshake::hello((call, false, Earlier::default(), nonce))).unwrap();
        let challenge = self.answer::<CHALLENGE_BYTES>(&mut stream).unwrap();
        let (_, theirs, proof) = handshake::read_challenge(&challenge);
        let nonces = [nonce, theirs];
        let terms =
            Terms { secret: self.secret, call, earlier: Earlier::default(), encrypts: [false; 2], nonces };
        assert!(terms.is_proved(Side::Accepts, proof));
        stream.write_all(&terms.proof(Side::Connects)).unwrap();
        let welcome = self.answer::<WELCOME_BYTES>(&mut stream).unwrap();
        assert_eq!(handshake::read_welcome(&welcome), Some((0, &[][..])));
        let first = self.answer::<HEADER_BYTES>(&mut stream).unwrap();
        assert_eq!(Header::from_bytes(&first).unwrap().kind, Kind::Datagrams);
        stream
    }

    /// The reply of process 0; `None` if it closes the connection.
    fn answer<const N: usize>(&self, stream: &mut TcpStream) -> Option<[u8; N]> {
        stream.set_nonblocking(true).unwrap();
        let (mut come, mut count, mut is_over) = ([0; N], 0, false);
        self.until("an answer", || {
            match stream.read(&mut come[count..]) {
                Ok(0) => is_over = true,
                Ok(bytes) => count += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => is_over = true,
            }
            is_over || count == N
        });
        stream.set_nonblocking(false).unwrap();
        (count == N).then_some(come)
    }
}

/// The reply of a stranger to a challenge.
type Answer = fn(&[u8]) -> Vec<u8>;

fn header(kind: Kind, bytes: u32) -> Header {
    Header { bytes, word: KEY, ..Header::control(kind, 0) }
}

#[test]
fn strangers_reach_nothing_and_members_are_not_disturbed() {
    let job = Job::open(2);
    let connect = || TcpStream::connect(job.address(0)).unwrap();
    let _silent: Vec<TcpStream> = (0..300).map(|_| connect()).collect();
    let (call, nonce) = (Call { from: 1, to: 0 }, handshake::nonce().unwrap());
    let others = [
        (Call { from: 1, to: 1 }, "to another process"),
        (Call { from: 0, to: 0 }, "from the process itself"),
        (Call { from: 2, to: 0 }, "from a process that the job does not have"),
        (Call { from: u32::MAX, to: 0 }, "from nowhere"),
    ];
    for (call, what) in others {
        let mut stream = connect();
        stream.write_all(&handshake::hello((call, false, Earlier::default(), nonce))).unwrap();
        assert_eq!(job.answer::<1>(&mut stream), None, "a hello {what}");
    }
    let mut stream = connect();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n").unwrap();
    assert_eq!(job.answer::<1>(&mut stream), None, "another protocol");
    // A correct hello, and wrong proofs.
    let frame = [&header(Kind::Put, 8).to_bytes()[..], &7_u64.to_ne_bytes()].concat();
    let proofs: [Answer; 3] = [
        |_| vec![0; PROOF_BYTES],
        |challenge| handshake::read_challenge(challenge).2.to_vec(),
        |challenge| challenge[..PROOF_BYTES].to_vec(),
    ];
    for proof in proofs {
        let mut stream = connect();
        stream.write_all(&handshake::hello((call, false, Earlier::default(), nonce))).unwrap();
        let challenge = job.answer::<CHALLENGE_BYTES>(&mut stream).unwrap();
        stream.write_all(&[proof(&challenge), frame.clone()].concat()).unwrap();
        assert_eq!(job.answer::<1>(&mut stream), None, "a wrong proof");
    }
    assert!(job.is_untouched());
    job.put(1, 0, 5);
    job.put(0, 1, 6);
}

#[test]
fn a_recorded_proof_is_of_no_use() {
    let job = Job::open(2);
    let (call, nonce) = (Call { from: 1, to: 0 }, handshake::nonce().unwrap());
    let mut proofs = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(job.address(0)).unwrap();
        stream.write_all(&handshake::hello((call, false, Earlier::default(), nonce))).unwrap();
        let challenge = job.answer::<CHALLENGE_BYTES>(&mut stream).unwrap();
        let (_, theirs, _) = handshake::read_challenge(&challenge);
        let nonces = [nonce, theirs];
        let terms =
            Terms { secret: job.secret, call, earlier: Earlier::default(), encrypts: [false; 2], nonces };
        proofs.push(terms.proof(Side::Connects));
        // The second one comes with the proof of the first.
        if proofs.len() == 2 {
            stream.write_all(&proofs[0]).unwrap();
            assert_eq!(job.answer::<1>(&mut stream), None);
        }
    }
    assert_ne!(proofs[0], proofs[1]);
}

#[test]
fn both_sides_may_connect_at_once() {
    for _ in 0..50 {
        let job = Job::open(3);
        let value = 9_u64;
        for (from, to) in [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)] {
            let target = Remote { key: KEY, offset_bytes: 8 * from };
            let (source, completion) = ((&raw const value).cast(), Completion::Counted);
            let put = Put { pe: to, target, source, bytes: 8, completion };
            // SAFETY: the value is copied, and its place lies in the region.
            assert_eq!(unsafe { job.endpoints[from].put(put) }, Status::Pending);
        }
        job.until("all puts", || job.endpoints.iter().all(|endpoint| endpoint.completions().puts == 2));
        let links = |endpoint: &Tcp| endpoint.domain.links.load(crate::sync::Ordering::Relaxed);
        assert!(job.endpoints.iter().all(|endpoint| links(endpoint) == 2), "one connection to each");
    }
}

#[test]
fn a_member_that_misbehaves_is_told_of_and_writes_nowhere() {
    let cut = |kind, bytes, offset| Header { offset, ..header(kind, bytes) };
    let far = REGION_BYTES as u64;
    let cases: [(&str, Header, usize, &str); 9] = [
        ("a put behind the region", cut(Kind::Put, 8, far), 8, "not registered"),
        ("a put over its end", cut(Kind::Put, 16, far - 8), 16, "not registered"),
        ("a put at the end of all memory", cut(Kind::Put, 8, u64::MAX - 3), 8, "not registered"),
        ("a large put over the end", cut(Kind::Put, 1 << 30, 0), 8, "not registered"),
        ("another key", Header { word: KEY + 1, ..header(Kind::Put, 8) }, 8, "not registered"),
        ("another PE", Header { to: 1, ..header(Kind::Put, 8) }, 8, "not registered"),
        ("an answer to nothing", header(Kind::Reply, 8), 8, "an answer to nothing"),
        ("a count of what was not started", Header { acks: 1, ..header(Kind::Ack, 0) }, 0, "a count of 1"),
        ("a get of too much", cut(Kind::Get, 1 << 20, 0), 0, "not registered"),
    ];
    for (what, header, data, says) in cases {
        let job = Job::open(2);
        let mut member = job.member();
        member.write_all(&[&header.to_bytes()[..], &vec![1; data]].concat()).unwrap();
        let text = job.fault();
        assert!(text.contains(says) && text.contains("PE 1"), "{what}: {text}");
        assert!(job.is_untouched(), "{what}");
    }
    let job = Job::open(2);
    job.member().write_all(&[0xFF; HEADER_BYTES]).unwrap();
    assert!(job.fault().contains("a frame of kind 255"));
}

#[test]
fn who_says_goodbye_is_not_lost_and_who_does_not_is() {
    let job = Job::open(2);
    let mut member = job.member();
    member.write_all(&header(Kind::Bye, 0).to_bytes()).unwrap();
    drop(member);
    let domain = &job.endpoints[0].domain;
    job.until("the end", || domain.links.load(crate::sync::Ordering::Relaxed) == 0);
    // It need not have taken the last messages. A put is awaited.
    let job = Job::open(2);
    let mut member = job.member();
    assert_eq!(job.endpoints[0].send(1, 0, b"too late"), Status::Done);
    member.write_all(&header(Kind::Bye, 0).to_bytes()).unwrap();
    drop(member);
    let domain = &job.endpoints[0].domain;
    job.until("the end", || domain.links.load(crate::sync::Ordering::Relaxed) == 0);
    let job = Job::open(2);
    let mut member = job.member();
    job.start_put(0, 1, 7);
    member.write_all(&header(Kind::Bye, 0).to_bytes()).unwrap();
    drop(member);
    let text = job.fault();
    assert!(text.contains("PE 1"), "{text}");
    let job = Job::open(2);
    drop(job.member());
    let text = job.fault();
    assert!(text.contains("lost its connection to PE 1"), "{text}");
    // It is reported once.
    job.endpoints[0].progress(&mut |_| ()).unwrap();
}

/// A member that leaves with messages that it has not taken resets the connection.
#[test]
fn the_end_of_a_process_does_not_wait_for_a_peer_that_has_left() {
    for has_seen_the_end in [false, true] {
        let job = Job::open(2);
        let mut member = job.member();
        assert_eq!(job.endpoints[0].send(1, 0, b"too late"), Status::Done);
        job.endpoints[0].progress(&mut |_| ()).unwrap();
        member.write_all(&header(Kind::Bye, 0).to_bytes()).unwrap();
        drop(member);
        let domain = &job.endpoints[0].domain;
        if has_seen_the_end {
            job.until("the end", || domain.links.load(crate::sync::Ordering::Relaxed) == 0);
        }
        // This panics if the goodbye is not over in time.
        drop(job);
    }
}

#[test]
fn an_answer_of_another_length_is_found() {
    let job = Job::open(2);
    let mut member = job.member();
    let mut target = [GUARD; 4];
    let get = Get {
        pe: 1,
        source: Remote { key: KEY, offset_bytes: 0 },
        target: target.as_mut_ptr().cast(),
        bytes: 16,
        completion: Completion::Counted,
    };
    // SAFETY: the target lives until the end of the test.
    assert_eq!(unsafe { job.endpoints[0].get(get) }, Status::Pending);
    member.write_all(&[&header(Kind::Reply, 24).to_bytes()[..], &[1; 24]].concat()).unwrap();
    let text = job.fault();
    assert!(text.contains("24 bytes in answer to a get of 16"), "{text}");
    assert_eq!(target, [GUARD; 4]);
}

/// A get of the whole target from the start of PE `pe`'s region.
fn get(pe: usize, target: &mut [u64]) -> Get {
    let (bytes, completion) = (size_of_val(target), Completion::Counted);
    Get {
        pe,
        source: Remote { key: KEY, offset_bytes: 0 },
        target: target.as_mut_ptr().cast(),
        bytes,
        completion,
    }
}

#[test]
fn an_endpoint_that_is_closed_leaves_its_buffers_alone() {
    let mut job = Job::with_several(4, 2);
    job.put(0, 2, 1);
    let (mut source, mut target) = (vec![7_u64; REGION_BYTES / 8], vec![GUARD; REGION_BYTES / 8]);
    let mut small = [GUARD; 1];
    let place = Remote { key: KEY, offset_bytes: 0 };
    let (start, completion) = (source.as_ptr().cast(), Completion::Counted);
    let put = || Put { pe: 2, target: place, source: start, bytes: REGION_BYTES, completion };
    // SAFETY: the buffers are kept until the endpoint is closed, and the places lie in the region.
    unsafe {
        let pes = &job.endpoints;
        assert_eq!(pes[0].get(get(2, &mut small)), Status::Pending);
        assert_eq!(pes[0].get(get(2, &mut target)), Status::Pending);
        // More than the connection takes.
        let _ = (0..400).take_while(|_| pes[0].put(put()) == Status::Pending).count();
    }
    let has_unsent = |pe: &Tcp| pe.domain.peer(1).send_queue().has_unsent();
    assert!(has_unsent(&job.endpoints[0]), "the connection has taken all");
    drop(job.endpoints.remove(0));
    source.fill(GUARD);
    // PE 1 of the same process goes on.
    let mut last = [GUARD; 1];
    // SAFETY: the target lives until the end of the test.
    job.until("room", || unsafe { job.endpoints[0].get(get(3, &mut last)) } == Status::Pending);
    job.until("a get of the other PE", || job.endpoints[0].completions().gets == 1);
    assert!(!has_unsent(&job.endpoints[0]));
    assert!(target.iter().chain(&small).all(|&word| word == GUARD), "no get arrives any more");
    let (_, region) = job.memory[2].split_at(REGION_BYTES / 8);
    assert!(region[..REGION_BYTES / 8].iter().all(|&word| word == 7), "the puts have kept their data");
}

#[test]
fn a_get_that_is_half_received_is_dropped_with_its_endpoint() {
    let mut job = Job::with_several(4, 2);
    let mut member = job.member();
    let mut target = vec![GUARD; REGION_BYTES / 8];
    // SAFETY: the target is kept until the endpoint is closed.
    assert_eq!(unsafe { job.endpoints[0].get(get(2, &mut target)) }, Status::Pending);
    let half = vec![1; REGION_BYTES / 2];
    member.write_all(&[&header(Kind::Reply, REGION_BYTES as u32).to_bytes()[..], &half].concat()).unwrap();
    let is_direct = |job: &Job| job.endpoints[0].domain.peer(1).receiver().direct().is_some();
    job.until("the first half", || is_direct(&job));
    drop(job.endpoints.remove(0));
    target.fill(GUARD);
    let mut last = [GUARD; 1];
    // SAFETY: the target lives until the end of the test.
    assert_eq!(unsafe { job.endpoints[0].get(get(2, &mut last)) }, Status::Pending);
    let answer = [&header(Kind::Reply, 8).to_bytes()[..], &9_u64.to_ne_bytes()].concat();
    member.write_all(&[half, answer].concat()).unwrap();
    job.until("a get of the other PE", || job.endpoints[0].completions().gets == 1);
    assert_eq!(last, [9]);
    assert!(target.iter().all(|&word| word == GUARD));
}

#[test]
fn what_comes_for_a_closed_pe_disturbs_nobody() {
    let mut job = Job::with_several(4, 2);
    job.put(2, 0, 1);
    drop(job.endpoints.remove(0));
    let pe_2 = &job.endpoints[1];
    let source = vec![7_u64; REGION_BYTES / 8];
    let (target, completion) = (Remote { key: KEY, offset_bytes: 0 }, Completion::Counted);
    let put = |bytes| Put { pe: 0, target, source: source.as_ptr().cast(), bytes, completion };
    let add = Atomic { kind: AtomicKind::U64, op: AtomicOp::Add, operand: 1, compare: 0 };
    let amo = |fetched| Amo { pe: 0, word: target, atomic: add, fetched, completion };
    let (mut gotten, mut fetched) = ([GUARD; 4], GUARD);
    // SAFETY: source and targets live until all operations are complete; the places lie in the former region.
    unsafe {
        for bytes in [8, REGION_BYTES] {
            assert_eq!(pe_2.put(put(bytes)), Status::Pending);
            assert_eq!(pe_2.put_signal(put(bytes), Signal { word: target, atomic: add }), Status::Pending);
        }
        assert_eq!(pe_2.atomic(amo(std::ptr::null_mut())), Status::Pending);
        assert_eq!(pe_2.get(get(0, &mut gotten)), Status::Pending);
        assert_eq!(pe_2.atomic(amo((&raw mut fetched).cast())), Status::Pending);
    }
    assert_eq!(pe_2.send(0, 5, b"too late"), Status::Done);
    job.until("all to be complete", || pe_2.completions() == Completions { puts: 6, gets: 2 });
    assert_eq!((gotten, fetched), ([0; 4], 0));
    assert!(job.memory[0][REGION_BYTES / 8] == GUARD, "nothing was written");
    // PE 1, of the same process, goes on.
    // SAFETY: the source lives until the put is complete, and the region of PE 1 has its place.
    assert_eq!(unsafe { pe_2.put(Put { pe: 1, ..put(8) }) }, Status::Pending);
    job.until("a put to another PE", || pe_2.completions().puts == 7);
    assert_eq!(job.memory[1][REGION_BYTES / 8], 7);
}

#[test]
fn a_signalled_put_that_is_half_received_is_dropped_with_its_target() {
    let mut job = Job::with_several(4, 2);
    let mut member = job.member();
    let half = vec![1; REGION_BYTES / 2];
    let code = Atomic { kind: AtomicKind::U64, op: AtomicOp::Add, operand: 1, compare: 0 }.code();
    let header_of_put = Header { code, ..header(Kind::PutSignal, REGION_BYTES as u32) };
    let operands: Vec<u8> = [KEY, 0, 1].into_iter().flat_map(u64::to_ne_bytes).collect();
    member.write_all(&[&header_of_put.to_bytes()[..], &operands, &half].concat()).unwrap();
    let is_direct = |job: &Job| job.endpoints[0].domain.peer(1).receiver().direct().is_some();
    job.until("the first half", || is_direct(&job));
    drop(job.endpoints.remove(0));
    job.memory[0].fill(GUARD);
    let mut last = [GUARD; 1];
    // SAFETY: the target lives until the end of the test.
    assert_eq!(unsafe { job.endpoints[0].get(get(2, &mut last)) }, Status::Pending);
    let answer = [&header(Kind::Reply, 8).to_bytes()[..], &9_u64.to_ne_bytes()].concat();
    member.write_all(&[half, answer].concat()).unwrap();
    job.until("a get of the other PE", || job.endpoints[0].completions().gets == 1);
    assert!(last == [9] && job.memory[0].iter().all(|&word| word == GUARD));
}

/// Some are padded in their frames, and some are not. Those of 520 words come whole, and of those of 8000
/// words a part is received into the target.
#[test]
fn long_puts_arrive_from_and_to_every_place() {
    let job = Job::open(2);
    let source: Vec<u64> = (0..8192_u64).map(|word| word * 3).collect();
    let places = (0..16).flat_map(|from| [0, 1, 3, 5, 7, 8, 64].map(|to| (from, to)));
    for ((from, to), words) in places.flat_map(|places| [520, 8000].map(|words| (places, words))) {
        let target = Remote { key: KEY, offset_bytes: 8 * to };
        let (start, completion) = (source[from..].as_ptr().cast(), Completion::Counted);
        let put = Put { pe: 1, target, source: start, bytes: 8 * words, completion };
        let before = job.endpoints[0].completions().puts;
        // SAFETY: the source stays, and the target lies in the region.
        assert_eq!(unsafe { job.endpoints[0].put(put) }, Status::Pending);
        job.until("a put", || job.endpoints[0].completions().puts == before + 1);
        assert_eq!(job.memory[1][REGION_BYTES / 8 + to..][..words], source[from..][..words]);
        assert!(job.are_guards_untouched());
    }
}

#[test]
fn another_job_is_refused_by_both() {
    let (job, other) = (Job::open(2), Job::open(2));
    let mut stream = TcpStream::connect(job.address(0)).unwrap();
    let (call, nonce) = (Call { from: 1, to: 0 }, handshake::nonce().unwrap());
    stream.write_all(&handshake::hello((call, false, Earlier::default(), nonce))).unwrap();
    let challenge = job.answer::<CHALLENGE_BYTES>(&mut stream).unwrap();
    let (_, theirs, proof) = handshake::read_challenge(&challenge);
    let terms = Terms {
        secret: other.secret,
        call,
        earlier: Earlier::default(),
        encrypts: [false; 2],
        nonces: [nonce, theirs],
    };
    assert!(!terms.is_proved(Side::Accepts, proof), "the side that connects finds it");
    stream.write_all(&terms.proof(Side::Connects)).unwrap();
    assert_eq!(job.answer::<1>(&mut stream), None, "and so does the side that accepts");
}

#[test]
fn messages_that_waited_for_an_inbox_are_delivered_although_nothing_more_arrives() {
    let job = Job::with_several(6, 2);
    let pes = &job.endpoints;
    let domain = &pes[0].domain;
    // PE 2 sends to PE 1, which does not look, until its inbox is full.
    let mut sent = 0_u64;
    let waits = || domain.peer(1).receiver().has_bytes();
    let poll_all_but_pe_1 = || {
        for pe in [0, 2, 4] {
            pes[pe].progress(&mut |_| ()).unwrap();
        }
    };
    let until = Instant::now() + Duration::from_secs(20);
    while !waits() {
        assert!(Instant::now() < until, "waited in vain for a full inbox");
        if pes[2].send(1, sent, &[7; 1000]) == Status::Done {
            sent += 1;
        }
        poll_all_but_pe_1();
    }
    // All of it has left the connection. Then another process is the last one that has sent.
    let is_sent = || !pes[2].domain.peer(0).send_queue().has_unsent();
    while !is_sent() {
        assert!(Instant::now() < until, "waited in vain for the messages to leave");
        poll_all_but_pe_1();
    }
    let (value, before) = (5_u64, pes[4].completions().puts);
    let (target, source) = (Remote { key: KEY, offset_bytes: 8 }, (&raw const value).cast());
    let put = Put { pe: 0, target, source, bytes: 8, completion: Completion::Counted };
    // SAFETY: the value lives until the put is complete, and its place lies in the region.
    assert_eq!(unsafe { pes[4].put(put) }, Status::Pending);
    while pes[4].completions().puts == before {
        assert!(Instant::now() < until, "waited in vain for a put");
        poll_all_but_pe_1();
    }
    assert!(waits() && domain.last_active.load(crate::sync::Ordering::Relaxed) == 2);
    assert!(!pes[0].may_sleep(), "there is work that no descriptor announces");
    let mut arrived = 0;
    while arrived < sent {
        assert!(Instant::now() < until, "waited in vain for message {arrived} of {sent}");
        pes[1]
            .progress(&mut |event| {
                if let Event::Message { header, payload, .. } = event {
                    assert_eq!((header, payload), (arrived, &[7; 1000][..]));
                    arrived += 1;
                }
            })
            .unwrap();
    }
    assert!(pes[0].may_sleep() || domain.n_hidden.load(crate::sync::Ordering::Relaxed) == 0);
}

/// The peer may use the connection once it has the proof: an attempt that ended before would lose it.
#[test]
fn a_process_that_has_proved_itself_waits_for_a_slow_peer() {
    let job = Job::open(2);
    job.start_put(0, 1, 7);
    let peer = job.endpoints[0].domain.peer(1);
    let mut time_left = None;
    job.until("the proof", || {
        if let Link::Connecting(attempt) = &*peer.link()
            && let Stage::Proved(..) = attempt.stage
        {
            time_left = Some(attempt.deadline - Instant::now());
        }
        time_left.is_some()
    });
    assert!(time_left > Some(Duration::from_secs(20)), "{time_left:?}");
}

#[cfg(not(feature = "encrypt"))]
#[test]
fn a_build_that_cannot_encrypt_says_so() {
    let choice = TcpChoice { is_local: true, encrypts: true, ..TcpChoice::default() };
    let text = Tcp::open(0, 1, 2, &choice, Secret::draw().unwrap()).err().unwrap().to_string();
    assert!(text.contains("cannot encrypt") && text.contains("the feature `encrypt`"), "{text}");
}

/// Frames of a faulty member: kind, numbers, and data. Most frames have the data that their headers announce;
/// some have more or fewer.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![0..64_u64, (REGION_BYTES as u64 - 64)..(REGION_BYTES as u64 + 64), any::<u64>()];
    let bytes = prop_oneof![16 => 0..200_u32, 2 => 4000..9000_u32, 1 => any::<u32>()];
    let acks = prop_oneof![9 => Just(0_u32), 1 => 0..2_u32];
    let word = prop_oneof![3 => Just(KEY), 1 => any::<u64>()];
    let kind = prop_oneof![8 => 1..=10_u8, 1 => any::<u8>()];
    let header = (kind, 0..2_u16, 0..0xC00_u16, bytes, acks, word, number);
    let missing = prop_oneof![4 => Just(0_usize), 1 => 0..300_usize];
    let frame = (header, missing).prop_map(|((kind, to, code, bytes, acks, word, offset), missing)| {
        let header = Header { to, code, bytes, word, offset, ..Header::control(Kind::Put, acks) };
        let mut frame = header.to_bytes();
        frame[0] = kind;
        let beside = Header::from_bytes(&frame)
            .map_or(0, |header| header.before_data_bytes() + header.data_bytes().min(9000));
        let mut frame = frame.to_vec();
        frame.resize(HEADER_BYTES + beside.abs_diff(missing), 0x5A);
        frame
    });
    proptest::collection::vec(frame, 1..8).prop_map(|frames| frames.concat())
}

/// Executes the frames that a receiver cuts these bytes into, up to the first bytes that are not a frame.
fn execute_all(job: &Job, bytes: &[u8]) -> usize {
    let (domain, mut frames) = (&job.endpoints[0].domain, 0);
    let (peer, mut receiver) = (domain.peer(1), Receiver::default());
    let (mut theirs, ours) = UnixStream::pair().unwrap();
    theirs.write_all(bytes).unwrap();
    theirs.shutdown(std::net::Shutdown::Write).unwrap();
    // No process reads the replies.
    peer.send_queue().socket = Some(ours.as_raw_fd());
    while let Received::All | Received::Full = receiver.receive(ours.as_raw_fd(), Look::Everywhere).unwrap() {
        let sink = &mut Sink::to_inboxes();
        if domain.execute_frames(peer, &mut receiver, sink, &mut frames).is_err() || receiver.is_full() {
            break;
        }
    }
    *peer.send_queue() = SendQueue::default();
    job.endpoints[0].progress(&mut |_| ()).unwrap();
    frames
}

/// The number of inputs of a fuzzing test: `full` in the full tier, and a hundredth of that in the quick one.
/// `PELAGO_FUZZ_INPUTS` (`cargo xtask test --deep`) asks for a number instead. A test that opens a job for
/// each input makes a hundredth of that.
fn inputs(full: u32, opens_job: bool) -> ProptestConfig {
    let asked = std::env::var("PELAGO_FUZZ_INPUTS").ok().map(|text| text.parse::<u32>().expect("a number"));
    let asked = asked.map(|inputs| if opens_job { inputs.div_ceil(100) } else { inputs });
    let cases = asked.unwrap_or(if cfg!(feature = "full") { full } else { full / 100 });
    ProptestConfig { source_file: Some(file!()), ..ProptestConfig::with_cases(cases) }
}

/// Without handshakes, so that there can be many.
#[test]
fn fuzz_received_frames() {
    let (job, frames) = (Job::open(2), Cell::new(0_u64));
    let run = TestRunner::new(inputs(200_000, false)).run(&self::frames(), |bytes| {
        frames.set(frames.get() + execute_all(&job, &bytes) as u64);
        prop_assert!(job.are_guards_untouched());
        Ok(())
    });
    run.unwrap();
    println!("{} frames were executed", frames.get());
    assert!(frames.get() > 0);
}

proptest! {
    #![proptest_config(inputs(20_000, true))]

    #[test]
    fn fuzz_frames(bytes in frames()) {
        let job = Job::open(2);
        let mut member = job.member();
        member.write_all(&bytes).unwrap();
        member.shutdown(std::net::Shutdown::Write).unwrap();
        job.survives()?;
    }
}
