//! Datagrams that are lost, doubled, late or early; strangers' datagrams.

use super::super::frame::{HEADER_BYTES, Header, Kind};
use super::super::receiver::{Frame, Next, Received, Receiver};
use super::super::send_queue::{Data, SendQueue, Source};
use super::*;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::Arc;

/// The most bytes of frames in a datagram of these tests.
const BYTES_MAX: usize = 600;
const TOKEN: u64 = 0x1234_5678_9ABC_DEF0;

/// Both ends of one direction, and a network between them that holds what is under way.
struct Network {
    queue: SendQueue,
    receiver: Receiver,
    reports: [Arc<Reports>; 2],
    /// Sockets of the sender, of the network on either side, and of the receiver.
    streams: [UnixStream; 4],
    datagrams: [UnixDatagram; 4],
    /// Bytes of the connection, and datagrams, under way.
    stream: Vec<u8>,
    held: Vec<Vec<u8>>,
    pushed: u32,
    taken: u32,
    /// Those of the taken frames that are acknowledged.
    executed: u32,
    /// Datagrams that the sender has sent.
    n_sent: usize,
}

/// An action of the sender, the network or the receiver.
#[derive(Clone, Debug)]
enum Step {
    Push {
        bytes: usize,
        is_counted: bool,
        is_sent: bool,
    },
    /// This part of the stream arrives.
    Stream(u8),
    /// A datagram arrives, which stays under way as well if it is doubled.
    Arrives {
        place: prop::sample::Index,
        is_doubled: bool,
    },
    Lost(prop::sample::Index),
    Receive,
    Report,
    Tick,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (prop_oneof![9 => 0..200_usize, 1 => 0..9000_usize], any::<bool>(), prop::bool::weighted(0.8))
            .prop_map(|(bytes, is_counted, is_sent)| Step::Push { bytes, is_counted, is_sent }),
        4 => any::<u8>().prop_map(Step::Stream),
        6 => (any::<prop::sample::Index>(), prop::bool::weighted(0.2))
            .prop_map(|(place, is_doubled)| Step::Arrives { place, is_doubled }),
        1 => any::<prop::sample::Index>().prop_map(Step::Lost),
        6 => Just(Step::Receive),
        4 => Just(Step::Report),
        1 => Just(Step::Tick),
    ]
}

/// The data of a frame.
fn data(number: u32, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i as u32).wrapping_mul(31).wrapping_add(number * 7) as u8).collect()
}

impl Network {
    fn new() -> Network {
        let ((a, b), (c, d)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let ((e, f), (g, h)) = (UnixDatagram::pair().unwrap(), UnixDatagram::pair().unwrap());
        let (streams, datagrams) = ([a, b, c, d], [e, f, g, h]);
        streams.iter().for_each(|stream| stream.set_nonblocking(true).unwrap());
        // Long data do not fit at once.
        rustix::net::sockopt::set_socket_send_buffer_size(&streams[0], 4096).unwrap();
        datagrams.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        let reports = [(); 2].map(|()| Arc::new(Reports::default()));
        reports[0].arrive.store(true, Ordering::Relaxed);
        let ticker = Arc::new(Ticker::open().unwrap());
        let mut sender = DatagramSender::new(
            (datagrams[0].as_raw_fd(), None),
            TOKEN,
            Arc::clone(&reports[0]),
            Arc::clone(&ticker),
        );
        sender.set_bytes_max(BYTES_MAX);
        let mut queue = SendQueue::default();
        queue.socket = Some(streams[0].as_raw_fd());
        queue.datagrams = Some(Box::new(sender));
        let receives =
            DatagramReceiver::new(datagrams[3].as_raw_fd(), TOKEN, Arc::clone(&reports[1]), ticker);
        let mut receiver = Receiver::default();
        receiver.datagrams = Some(Box::new(receives));
        let (stream, held, pushed, taken, executed, n_sent) = (Vec::new(), Vec::new(), 0, 0, 0, 0);
        Network {
            queue,
            receiver,
            reports,
            streams,
            datagrams,
            stream,
            held,
            pushed,
            taken,
            executed,
            n_sent,
        }
    }

    /// Pushes a put, or, if it is not counted, a reply.
    fn push(&mut self, bytes: usize, is_counted: bool, is_sent: bool) {
        let kind = if is_counted { Kind::Put } else { Kind::Reply };
        let data = data(self.pushed, bytes);
        let header = Header { bytes: bytes as u32, word: self.pushed.into(), ..Header::control(kind, 0) };
        self.pushed += 1;
        if is_counted {
            self.queue.count(None, None);
        }
        // SAFETY: the data are copied before this returns.
        unsafe {
            self.queue.push(header, &[], Data { start: data.as_ptr(), bytes }, Source::Copied).unwrap();
        }
        if is_sent {
            self.queue.flush().unwrap();
        }
        self.collect();
    }

    /// Takes what the sender has sent into the network.
    fn collect(&mut self) {
        let mut room = [0; 1 << 16];
        while let Ok(bytes) = self.streams[1].read(&mut room) {
            self.stream.extend_from_slice(&room[..bytes]);
        }
        while let Ok(bytes) = self.datagrams[1].recv(&mut room) {
            self.held.push(room[..bytes].to_vec());
            self.n_sent += 1;
        }
    }

    fn deliver_stream(&mut self, most: usize) {
        let part = most.min(self.stream.len());
        let sent = self.streams[2].write(&self.stream[..part]).unwrap_or(0);
        self.stream.drain(..sent);
    }

    fn deliver(&mut self, place: usize, is_doubled: bool) {
        let datagram = self.held[place].clone();
        // A full socket loses it.
        let _ = self.datagrams[2].send(&datagram);
        if !is_doubled {
            self.held.remove(place);
        }
    }

    /// Receives, and takes the frames.
    fn receive(&mut self) {
        let socket = self.streams[3].as_raw_fd();
        let mut frame = Frame::none();
        loop {
            let received = self.receiver.receive(socket, Look::Everywhere).unwrap();
            loop {
                match self.receiver.next(&mut frame).unwrap() {
                    Next::Incomplete => break,
                    Next::Skipped => {}
                    Next::Complete | Next::InTarget => {
                        assert_eq!(frame.header.word, u64::from(self.taken), "the frames are in order");
                        self.taken += 1;
                        self.executed += u32::from(frame.header.kind == Kind::Put);
                    }
                    Next::WantsTarget => {
                        // SAFETY: without a target, the data are dropped.
                        unsafe { self.receiver.set_target(frame.header, std::ptr::null_mut()) };
                    }
                }
                let bytes = frame.header.data_bytes();
                if bytes < 4096 && self.taken > 0 && frame.header.word == u64::from(self.taken - 1) {
                    // SAFETY: the data lie in the buffer until more is received.
                    let come = unsafe { std::slice::from_raw_parts(frame.data, bytes) };
                    assert!(come == data(self.taken - 1, bytes), "the data of frame {}", self.taken - 1);
                }
            }
            if received == Received::Nothing {
                break;
            }
        }
        self.receiver.note_received();
    }

    /// The peer's report arrives at the sender.
    fn report(&mut self) {
        self.reports[0].take(self.reports[1].received.load(Ordering::Relaxed));
        // Frames are acknowledged as well.
        assert!(self.queue.acknowledge(self.executed));
    }

    fn tick(&mut self) {
        if self.queue.tick() {
            self.queue.flush().unwrap();
        }
        self.collect();
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Push { bytes, is_counted, is_sent } => self.push(*bytes, *is_counted, *is_sent),
            Step::Stream(part) => self.deliver_stream(usize::from(*part) * 16),
            Step::Arrives { .. } | Step::Lost(_) if self.held.is_empty() => {}
            Step::Arrives { place, is_doubled } => {
                self.deliver(place.index(self.held.len()), *is_doubled);
            }
            Step::Lost(place) => _ = self.held.remove(place.index(self.held.len())),
            Step::Receive => self.receive(),
            Step::Report => self.report(),
            Step::Tick => self.tick(),
        }
    }

    /// Everything under way arrives, and is acknowledged.
    fn settle(&mut self) {
        self.deliver_stream(usize::MAX);
        while !self.held.is_empty() {
            self.deliver(0, false);
        }
        self.receive();
        self.report();
    }

    /// All datagrams under way are lost. The connection brings everything in the end.
    fn finish(&mut self) {
        self.held.clear();
        for _ in 0..1000 {
            self.queue.flush().unwrap();
            self.tick();
            self.held.clear();
            self.deliver_stream(usize::MAX);
            self.receive();
            self.report();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(feature = "full") { 4000 } else { 300 }))]

    /// Whatever the network does with datagrams, each frame arrives once, and in order.
    #[test]
    fn frames_arrive_once_and_in_order(steps in prop::collection::vec(step(), 1..300)) {
        let mut network = Network::new();
        for step in &steps {
            network.run(step);
        }
        network.finish();
        prop_assert_eq!(network.taken, network.pushed);
    }

    /// A datagram without the token does nothing. One with it that no member sends does no harm.
    #[test]
    fn a_datagram_of_a_stranger_is_ignored(
        bytes in prop::collection::vec(any::<u8>(), 0..100), position: u64, received: u64,
    ) {
        let mut network = Network::new();
        network.held.push(bytes.clone());
        network.deliver(0, false);
        network.receive();
        let trailer = Trailer { token: TOKEN ^ 1, position: 0, received };
        network.held.push([&bytes[..], &trailer.to_bytes()].concat());
        network.deliver(0, false);
        network.receive();
        prop_assert_eq!((network.taken, network.receiver.received_bytes), (0, 0));
        prop_assert_eq!(network.reports[1].received.load(Ordering::Relaxed), 0);
        // It would be far away.
        let trailer = Trailer { token: TOKEN, position: position | 1 << 40, received };
        network.held.push([&bytes[..], &trailer.to_bytes()].concat());
        network.deliver(0, false);
        network.receive();
        network.push(8, true, true);
        network.finish();
        prop_assert_eq!(network.taken, 1);
    }
}

/// Short frames that follow each other and are acknowledged travel in datagrams, long ones do not.
#[test]
fn short_frames_travel_in_datagrams() {
    let mut network = Network::new();
    for _ in 0..20 {
        network.push(8, true, true);
        network.settle();
    }
    assert!((15..20).contains(&network.n_sent), "{} of 20 frames", network.n_sent);
    let before = network.n_sent;
    for _ in 0..20 {
        network.push(BYTES_MAX, true, true);
        network.settle();
        network.push(8, true, true);
        network.settle();
    }
    assert_eq!(network.n_sent, before, "not among long ones");
    assert_eq!(network.taken, 60);
}

/// Frames of some bytes too many are no loss: the connection carries them.
#[test]
fn a_run_that_is_not_acknowledged_has_a_bound() {
    let mut network = Network::new();
    for _ in 0..5 {
        network.push(8, true, true);
        network.settle();
    }
    for _ in 0..1000 {
        network.push(8, true, true);
    }
    assert!(network.n_sent <= RUN_DATAGRAMS_MAX as usize + 5, "{} datagrams", network.n_sent);
    assert!(network.queue.allocated_bytes() < 4 * RUN_BYTES_MAX + 64 * 1024);
    network.finish();
    assert_eq!(network.taken, 1005);
}

/// The connection is slow: datagrams of the next run arrive before it has repeated the bytes of the last one.
#[test]
fn datagrams_may_overtake_a_repeat_of_the_bytes_before_them() {
    let mut network = Network::new();
    for _ in 0..6 {
        network.push(8, true, true);
        network.settle();
    }
    let position = network.receiver.received_bytes;
    network.push(8, true, true);
    network.deliver(0, false);
    network.receive();
    assert_eq!(network.taken, 7, "a datagram brings it");
    let frame = HEADER_BYTES as u64 + 8;
    let header = Header { word: position - frame, offset: position, ..Header::control(Kind::Repeat, 0) };
    network.stream = [&header.to_bytes()[..], &[0xEE; HEADER_BYTES + 8]].concat();
    network.deliver_stream(HEADER_BYTES + 5);
    network.receive();
    network.deliver_stream(usize::MAX);
    network.receive();
    assert_eq!(network.receiver.received_bytes, position + frame, "repeated bytes do not count");
    for bytes in [3000, 8, 8] {
        network.push(bytes, true, true);
        network.settle();
    }
    network.finish();
    assert_eq!(network.taken, network.pushed);
}

/// A process whose own frames are late still reports what it has received.
#[test]
fn a_tick_reports_also_when_a_run_is_late() {
    let mut network = Network::new();
    for _ in 0..6 {
        network.push(8, true, true);
        network.settle();
    }
    network.push(8, true, true);
    for _ in 0..3 {
        network.held.clear();
        network.reports[0].is_owed.store(true, Ordering::Relaxed);
        network.tick();
        assert!(network.held.iter().any(|datagram| datagram.len() == TRAILER_BYTES), "a report");
    }
    assert!(!network.queue.has_open_run(), "it is sent over the connection");
}

/// The path may carry less than the own network: the two ends of the connection know.
#[test]
fn datagrams_are_as_short_as_the_segments_of_the_connection() {
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    sockets[0].connect(sockets[1].local_addr().unwrap()).unwrap();
    let bytes_max = |segment_bytes| {
        let ticker = Arc::new(Ticker::open().unwrap());
        let socket = (sockets[0].as_raw_fd(), segment_bytes);
        DatagramSender::new(socket, TOKEN, Arc::default(), ticker).bytes_max()
    };
    assert_eq!(bytes_max(None), FRAMES_BYTES_MAX);
    assert_eq!(bytes_max(Some(65_483)), FRAMES_BYTES_MAX);
    assert_eq!(bytes_max(Some(1448)), 1448 - TRAILER_BYTES);
    assert_eq!(bytes_max(Some(10)), 0);
}

#[test]
fn a_repeat_that_no_member_sends_is_an_error() {
    let mut network = Network::new();
    for (first, end) in [(1, 1), (1, 5), (u64::MAX, 0)] {
        let header = Header { word: first, offset: end, ..Header::control(Kind::Repeat, 0) };
        let datagrams = network.receiver.datagrams.take();
        network.receiver = Receiver::default();
        network.receiver.datagrams = datagrams;
        network.stream = header.to_bytes().to_vec();
        network.deliver_stream(HEADER_BYTES);
        network.receiver.receive(network.streams[3].as_raw_fd(), Look::Everywhere).unwrap();
        let error = network.receiver.next(&mut Frame::none()).unwrap_err();
        assert!(error.contains("again"), "{error}");
    }
}

/// The connection may take a part of a long frame. The rest of it is no whole frame, however short it is.
#[test]
fn the_rest_of_a_frame_follows_its_start() {
    for bytes in (2000..12_000).step_by(50) {
        let mut network = Network::new();
        for _ in 0..5 {
            network.push(8, true, true);
            network.settle();
        }
        let data = data(network.pushed, bytes);
        let header =
            Header { bytes: bytes as u32, word: network.pushed.into(), ..Header::control(Kind::Reply, 0) };
        network.pushed += 1;
        // SAFETY: the data are copied before this returns.
        unsafe {
            let data = Data { start: data.as_ptr(), bytes };
            network.queue.push(header, &[], data, Source::Copied).unwrap();
        }
        (0..10).for_each(|_| _ = network.queue.flush().unwrap());
        network.collect();
        network.finish();
        assert_eq!(network.taken, network.pushed, "a frame of {bytes} bytes");
    }
}
