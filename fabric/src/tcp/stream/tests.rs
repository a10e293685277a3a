//! Records: cut, altered, repeated, left out, and in odd lengths.

use super::*;
use crate::secret::Secret;
use crate::tcp::cipher::Exchange;
use crate::tcp::handshake::{Call, Earlier, Side, Terms};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const ALTERED: &str = "the bytes were altered on the way";
/// The pattern of memory that must not be written.
const GUARD: u8 = 0xA5;

/// The keys of both sides of a connection.
pub(crate) fn ciphers() -> [Arc<Cipher>; 2] {
    let (call, nonces) = (Call { from: 0, to: 1 }, [[1; 16], [2; 16]]);
    let (secret, earlier) = (Secret::draw().unwrap(), Earlier::default());
    let terms = Terms { secret, call, earlier, encrypts: [true; 2], nonces };
    let begin = |side| Exchange::begin(&terms, side).unwrap();
    let (mut one, mut other) = (begin(Side::Connects), begin(Side::Accepts));
    other.read(&one.write().unwrap()).unwrap();
    one.read(&other.write().unwrap()).unwrap();
    [one, other].map(|exchange| Arc::new(exchange.finish().unwrap()))
}

/// A connection: what one half sends, and what the other half receives.
struct Connection {
    sealer: Option<Box<Sealer>>,
    opener: Option<Box<Opener>>,
    near: UnixStream,
    far: UnixStream,
}

impl Connection {
    fn open() -> Connection {
        let [one, other] = ciphers();
        let (near, far) = UnixStream::pair().unwrap();
        let (sealer, opener) = (Sealer::new(one), Opener::new(other));
        Connection { sealer: Some(Box::new(sealer)), opener: Some(Box::new(opener)), near, far }
    }

    fn send(&mut self, parts: &[&[u8]]) -> Moved {
        let parts: Vec<_> = parts.iter().map(|part| socket::part(part.as_ptr(), part.len())).collect();
        // SAFETY: the parts are slices that the caller has lent.
        unsafe { send(self.near.as_raw_fd(), &mut self.sealer, &parts) }.unwrap()
    }

    fn receive(&mut self, room: &mut [u8]) -> io::Result<Moved> {
        let mut parts = [socket::part(room.as_mut_ptr(), room.len())];
        // SAFETY: the part is a slice that the caller has lent.
        unsafe { receive(self.far.as_raw_fd(), &mut self.opener, &mut parts) }
    }

    /// The record of a few bytes.
    fn record(&mut self, bytes: &[u8]) -> Vec<u8> {
        assert_eq!(self.send(&[bytes, &[]]), Moved::Bytes(bytes.len()));
        let mut record = vec![0; bytes.len() + LENGTH_BYTES + TAG_BYTES];
        self.far.read_exact(&mut record).unwrap();
        record
    }

    /// Sends raw bytes and receives them. Returns the bytes that were handed out, and the error if some were
    /// not.
    fn receive_raw(&mut self, bytes: &[u8]) -> (Vec<u8>, Option<String>) {
        self.near.write_all(bytes).unwrap();
        let mut room = vec![GUARD; 4 * RECORD_BYTES];
        match self.receive(&mut room) {
            Ok(Moved::Bytes(bytes)) => (room[..bytes].to_vec(), None),
            Ok(_) => (Vec::new(), None),
            Err(error) => {
                assert!(room.iter().all(|&byte| byte == GUARD), "{error}");
                (Vec::new(), Some(error.to_string()))
            }
        }
    }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i % 251) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(feature = "full") { 2000 } else { 50 }))]

    /// The socket takes less than is offered, in other parts each time, and the room is smaller than what has
    /// arrived.
    #[test]
    fn every_byte_arrives_once_and_in_order(
        bytes in 1..600_000_usize,
        splits in proptest::collection::vec(0..100_000_usize, 1..8),
        rooms in proptest::collection::vec(1..100_000_usize, 1..8),
    ) {
        let mut connection = Connection::open();
        rustix::net::sockopt::set_socket_send_buffer_size(&connection.near, 1).unwrap();
        let (data, mut sent, mut come) = (pattern(bytes), 0, Vec::new());
        let (mut splits, mut rooms) = (splits.iter().cycle(), rooms.iter().cycle());
        let mut was_refused = false;
        let until = Instant::now() + Duration::from_secs(20);
        while come.len() < bytes {
            prop_assert!(Instant::now() < until, "waited in vain for byte {} of {bytes}", come.len());
            if sent < bytes {
                let (first, rest) = data[sent..].split_at((bytes - sent).min(*splits.next().unwrap()));
                let rest = rest.chunks(1 + splits.next().unwrap()).take(7);
                match connection.send(&std::iter::once(first).chain(rest).collect::<Vec<_>>()) {
                    Moved::Bytes(count) => sent += count,
                    moved => was_refused |= moved == Moved::Nothing,
                }
            }
            let mut room = vec![0; *rooms.next().unwrap()];
            let wanted = room.len();
            let moved = connection.receive(&mut room).unwrap();
            let count = if let Moved::Bytes(count) = moved { count } else { 0 };
            come.extend_from_slice(&room[..count]);
            let is_left = connection.opener.as_ref().unwrap().has_bytes();
            prop_assert!(count == wanted || !is_left, "what has come is handed out while there is room");
        }
        prop_assert!(come == data && (was_refused || bytes < 100_000));
        prop_assert!(!connection.opener.unwrap().has_bytes());
    }

    /// Any bytes are refused, or the receiver waits for more.
    #[test]
    fn fuzz_records(bytes in proptest::collection::vec(any::<u8>(), 0..300), length in 0..0x4100_u16) {
        let mut connection = Connection::open();
        let bytes = [&length.to_be_bytes()[..], &bytes].concat();
        let (come, error) = connection.receive_raw(&bytes);
        prop_assert!(come.is_empty());
        let is_whole = usize::from(length) <= bytes.len() - LENGTH_BYTES;
        let is_possible = (TAG_BYTES..=RECORD_BYTES - LENGTH_BYTES).contains(&usize::from(length));
        prop_assert_eq!(error.is_some(), is_whole || !is_possible);
    }
}

#[test]
fn a_record_may_come_in_pieces() {
    let mut connection = Connection::open();
    for (round, cut) in (0..LENGTH_BYTES + TAG_BYTES + 40).enumerate() {
        let data = [round as u8; 40];
        let record = connection.record(&data);
        assert_eq!(connection.receive_raw(&record[..cut]), (Vec::new(), None), "cut at {cut}");
        assert!(!connection.opener.as_ref().unwrap().has_bytes());
        assert_eq!(connection.receive_raw(&record[cut..]), (data.to_vec(), None), "cut at {cut}");
    }
}

#[test]
fn what_was_not_handed_out_is_told_of() {
    let mut connection = Connection::open();
    let records = [connection.record(&[1; 40]), connection.record(&[2; 40])].concat();
    connection.near.write_all(&records).unwrap();
    let mut room = [0; 30];
    assert_eq!(connection.receive(&mut room).unwrap(), Moved::Bytes(30));
    assert!(connection.opener.as_ref().unwrap().has_bytes(), "10 bytes and a record");
    assert_eq!(connection.receive(&mut room[..10]).unwrap(), Moved::Bytes(10));
    assert!(connection.opener.as_ref().unwrap().has_bytes(), "a record");
    assert_eq!(connection.receive_raw(&[]), (vec![2; 40], None));
    assert!(!connection.opener.as_ref().unwrap().has_bytes());
}

#[test]
fn what_was_not_handed_out_is_handed_out_before_the_error_of_the_connection() {
    let mut connection = Connection::open();
    let record = connection.record(&[1; 40]);
    connection.near.write_all(&record).unwrap();
    let mut room = [0; 30];
    assert_eq!(connection.receive(&mut room).unwrap(), Moved::Bytes(30));
    // The system resets a connection that is closed with bytes that were not read.
    connection.far.write_all(&[0]).unwrap();
    connection.near = UnixStream::pair().unwrap().0;
    assert_eq!(connection.receive(&mut room).unwrap(), Moved::Bytes(10));
    assert_eq!(connection.receive(&mut room).unwrap(), Moved::End);
}

#[test]
fn records_may_be_empty_and_of_the_greatest_length_and_no_longer() {
    let mut connection = Connection::open();
    let [one, other] = ciphers();
    connection.opener = Some(Box::new(Opener::new(other)));
    let record = |number, bytes: &[u8]| {
        let mut record = vec![0; LENGTH_BYTES + bytes.len() + TAG_BYTES];
        one.encrypt(number, bytes, &mut record[LENGTH_BYTES..]).unwrap();
        record[..LENGTH_BYTES].copy_from_slice(&((bytes.len() + TAG_BYTES) as u16).to_be_bytes());
        record
    };
    assert_eq!(connection.receive_raw(&record(0, &[])), (Vec::new(), None));
    let longest = pattern(PLAIN_BYTES);
    assert_eq!(record(1, &longest).len(), RECORD_BYTES);
    assert_eq!(connection.receive_raw(&record(1, &longest)), (longest, None));
    assert_eq!(
        connection.receive_raw(&[record(2, &[]), record(3, b"word")].concat()),
        (b"word".to_vec(), None)
    );
    let (come, error) = connection.receive_raw(&record(4, &pattern(PLAIN_BYTES + 1)));
    assert!(come.is_empty() && error.unwrap().contains("a record of 16383 bytes"));
    let (_, error) = connection.receive_raw(&[]);
    assert!(error.unwrap().contains(ALTERED), "the error stays");
    for length in 0..TAG_BYTES as u16 {
        let mut connection = Connection::open();
        let (come, error) = connection.receive_raw(&[&length.to_be_bytes()[..], &[0; 30]].concat());
        assert!(come.is_empty() && error.unwrap().contains(ALTERED), "{length}");
    }
}

#[test]
fn an_altered_record_yields_nothing() {
    let record_bytes = LENGTH_BYTES + TAG_BYTES + 40;
    for place in 0..record_bytes {
        for bit in 0..8 {
            let mut connection = Connection::open();
            let mut record = connection.record(&[7; 40]);
            record[place] ^= 1 << bit;
            // A record whose length grew takes the bytes behind it as its rest.
            record.resize(RECORD_BYTES + record_bytes, 0);
            let (come, error) = connection.receive_raw(&record);
            assert!(come.is_empty() && error.is_some_and(|e| e.contains(ALTERED)), "byte {place}, bit {bit}");
        }
    }
}

#[test]
fn records_come_once_all_and_in_order() {
    let attacks: [(&str, &[usize], usize); 5] = [
        ("repeated", &[0, 0, 1, 2], 1),
        ("left out", &[0, 2], 1),
        ("exchanged", &[1, 0, 2], 0),
        ("repeated later", &[0, 1, 0], 2),
        ("untouched", &[0, 1, 2], 3),
    ];
    for (what, order, n_good) in attacks {
        let mut connection = Connection::open();
        let records = [0, 1, 2].map(|i| connection.record(&[i; 40]));
        for (place, &i) in order.iter().enumerate() {
            let (come, error) = connection.receive_raw(&records[i]);
            let is_good = place < n_good;
            assert_eq!(come, if is_good { vec![i as u8; 40] } else { Vec::new() }, "{what}, {place}");
            assert_eq!(error.is_some(), !is_good, "{what}, {place}");
        }
    }
    // Nor does a side accept a record that it has sent itself.
    let mut connection = Connection::open();
    let [one, _] = ciphers();
    (connection.sealer, connection.opener) =
        (Some(Box::new(Sealer::new(one.clone()))), Some(Box::new(Opener::new(one))));
    let record = connection.record(&[1; 40]);
    assert!(connection.receive_raw(&record).1.is_some());
}
