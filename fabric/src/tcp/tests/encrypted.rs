//! Encrypted connections, and the attacks of a relay between two processes.

use super::super::business_card::BusinessCard;
use super::super::cipher::{Cipher, Exchange, MESSAGE_BYTES, TAG_BYTES};
use super::super::peer::{Attempt, Link};
use super::relay::{Change, From, Relay};
use super::*;
use std::sync::Arc;

/// A job of two processes, with a relay between PE 0, which connects, and PE 1.
struct Relayed {
    job: Job,
    relay: Relay,
}

impl Relayed {
    fn open(encrypts: bool, change: Change) -> Relayed {
        let secret = Secret::draw().unwrap();
        let endpoints = open_with(secret, [encrypts; 2]);
        let relay = Relay::open(endpoints[1].domain.card().0[0], encrypts, change);
        let cards = [endpoints[0].address().unwrap(), BusinessCard(vec![relay.address]).to_bytes()];
        Relayed { job: Job::of(endpoints, &cards, secret), relay }
    }

    /// Starts an atomic of PE 0 that adds 1 to a word of PE 1.
    fn start_add(&self) {
        let add = Atomic { kind: AtomicKind::U64, op: AtomicOp::Add, operand: 1, compare: 0 };
        let word = Remote { key: KEY, offset_bytes: 8 };
        let (fetched, completion) = (std::ptr::null_mut(), Completion::Counted);
        let amo = Amo { pe: 1, word, atomic: add, fetched, completion };
        // SAFETY: the word lies in the region, aligned, and nothing is fetched.
        let status = unsafe { self.job.endpoints[0].atomic(amo) };
        assert_eq!(status, Status::Pending);
    }

    fn add(&self) {
        let endpoint = &self.job.endpoints[0];
        let before = endpoint.completions().puts;
        self.start_add();
        self.job.until("an atomic", || endpoint.completions().puts == before + 1);
    }

    /// How often the word of PE 1 was added to.
    fn count(&self) -> u64 {
        self.job.memory[1][REGION_BYTES / 8 + 1].wrapping_sub(GUARD)
    }
}

/// Two processes, one of them PE 0, that encrypt or not.
fn open_with(secret: Secret, encrypts: [bool; 2]) -> Vec<Tcp> {
    let open = |(process, encrypts)| {
        let choice = TcpChoice { is_local: true, insists_on_goodbye: true, encrypts, ..TcpChoice::default() };
        Tcp::open(process, 1, 2, &choice, secret).unwrap()
    };
    encrypts.into_iter().enumerate().flat_map(open).collect()
}

fn nothing() -> Change {
    Box::new(|_, _, message| message)
}

/// A change of the records that PE 0 sends; the first one is number 0.
fn to_records(mut change: impl FnMut(usize, Vec<u8>) -> Vec<u8> + Send + 'static) -> Change {
    Box::new(move |from, number, message| match number {
        2.. if from == From::Caller => change(number - 2, message),
        _ => message,
    })
}

#[test]
fn a_relay_reads_what_is_in_clear_and_nothing_else() {
    for encrypts in [false, true] {
        let Relayed { mut job, relay } = Relayed::open(encrypts, nothing());
        let words: Vec<u64> =
            (0..REGION_BYTES as u64 / 8).map(|i| (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        let short = [0x0123_4567_89AB_CDEF_u64, 0xFEDC_BA98_7654_3210];
        let endpoint = &job.endpoints[0];
        let target = Remote { key: KEY, offset_bytes: 0 };
        for (i, source) in [&words[..], &short].into_iter().enumerate() {
            let (start, bytes) = (source.as_ptr().cast(), size_of_val(source));
            let put = Put { pe: 1, target, source: start, bytes, completion: Completion::Counted };
            // SAFETY: the source lives until the put is complete, and the target is the region.
            assert_eq!(unsafe { endpoint.put(put) }, Status::Pending);
            job.until("a put", || endpoint.completions().puts == i as u64 + 1);
        }
        let mut gotten = vec![0; words.len()];
        // SAFETY: the target lives until the get is complete.
        assert_eq!(unsafe { endpoint.get(get(1, &mut gotten)) }, Status::Pending);
        job.until("a get", || endpoint.completions().gets == 1);
        assert!(gotten[..2] == short && gotten[2..] == words[2..], "encrypted: {encrypts}");
        let bytes_of = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>();
        // The start of the long put, its end, the short one, the key of the region.
        for (what, words) in [
            ("the first words", &words[..2]),
            ("the last words", &words[words.len() - 2..]),
            ("the short put", &short),
            ("the key and the offset", &[KEY, 0]),
        ] {
            assert_eq!(relay.has_seen(&bytes_of(words)), !encrypts, "{what}, encrypted: {encrypts}");
        }
        assert!(!relay.has_seen(&job.secret.to_bytes()));
        // Both leave without an error.
        job.endpoints.clear();
        assert!(job.are_guards_untouched());
    }
}

#[test]
fn what_a_relay_does_to_records_ends_in_an_error_that_names_the_peer() {
    fn altered(place: fn(usize) -> usize) -> Change {
        to_records(move |number, mut record| {
            if number == 1 {
                let place = place(record.len());
                record[place] ^= 0x20;
            }
            record
        })
    }
    let exchanged = || {
        let mut kept = Vec::new();
        to_records(move |number, record| match number {
            1 => {
                kept = record;
                Vec::new()
            }
            2 => [record, std::mem::take(&mut kept)].concat(),
            _ => record,
        })
    };
    let recorded = || {
        let mut first = Vec::new();
        to_records(move |number, record| {
            if number == 0 {
                first.clone_from(&record);
            }
            if number == 1 { first.clone() } else { record }
        })
    };
    let attacks: [(&str, Change, u64); 8] = [
        ("altered in its frame's kind", altered(|_| 2), 1),
        ("altered in its last byte", altered(|bytes| bytes - 1), 1),
        ("altered in its tag", altered(|bytes| bytes - TAG_BYTES), 1),
        ("made longer", altered(|_| 1), 1),
        ("repeated", to_records(|number, record| record.repeat(1 + usize::from(number == 1))), 2),
        ("dropped", to_records(|number, record| if number == 1 { Vec::new() } else { record }), 1),
        ("exchanged with the next one", exchanged(), 1),
        ("replaced by the first one", recorded(), 1),
    ];
    for (what, change, count) in attacks {
        let relayed = Relayed::open(true, change);
        relayed.add();
        assert_eq!(relayed.count(), 1, "{what}");
        // The second record is attacked. The later records reveal that it was dropped.
        relayed.start_add();
        let job = &relayed.job;
        for _ in 0..50 {
            relayed.start_add();
        }
        let text = job.fault_of(1);
        assert!(text.contains("to or from PE 0"), "{what}: {text}");
        assert!(text.contains("the bytes were altered on the way"), "{what}: {text}");
        let text = job.fault_of(0);
        assert!(text.contains("PE 1"), "{what}: {text}");
        assert_eq!(relayed.count(), count, "{what}");
        assert!(job.are_guards_untouched(), "{what}");
    }
}

#[test]
fn a_long_put_stops_before_the_altered_record() {
    let is_altered = |number: usize| number == 3;
    let mut lengths = Vec::new();
    let (tell, told) = std::sync::mpsc::channel();
    let relayed = Relayed::open(
        true,
        to_records(move |number, mut record| {
            lengths.push(record.len() - 2 - TAG_BYTES);
            if is_altered(number) {
                let before: usize = lengths[..number].iter().sum();
                tell.send(before).unwrap();
                *record.last_mut().unwrap() ^= 1;
            }
            record
        }),
    );
    let source = vec![7_u8; REGION_BYTES];
    let (target, completion) = (Remote { key: KEY, offset_bytes: 0 }, Completion::Counted);
    let put = Put { pe: 1, target, source: source.as_ptr(), bytes: REGION_BYTES, completion };
    // SAFETY: the source outlives the endpoints, and the target is the region.
    assert_eq!(unsafe { relayed.job.endpoints[0].put(put) }, Status::Pending);
    let text = relayed.job.fault_of(1);
    assert!(text.contains("PE 0") && text.contains("does not decrypt"), "{text}");
    // The records before the altered one carry the header and some of the data.
    let good = told.recv_timeout(Duration::from_secs(20)).expect("a record was altered") - HEADER_BYTES;
    let memory = &relayed.job.memory[1][REGION_BYTES / 8..2 * REGION_BYTES / 8];
    let bytes: Vec<u8> = memory.iter().flat_map(|word| word.to_ne_bytes()).collect();
    assert!(good > 0 && good < REGION_BYTES && bytes[..good].iter().all(|&byte| matches!(byte, 7 | 0xA5)));
    assert!(bytes[good..].iter().all(|&byte| byte == 0xA5), "behind {good} bytes");
    drop(relayed);
}

/// Runs attempts to connect until two have failed, and the time of all attempts is over.
fn give_up(job: &Job) -> String {
    let peer = job.endpoints[0].domain.peer(1);
    job.until("two attempts that fail", || match &*peer.link() {
        Link::Waiting(_, history) | Link::Connecting(Attempt { history, .. }) => history.count > 2,
        _ => false,
    });
    job.until("the end of the attempts", || match &mut *peer.link() {
        Link::Waiting(_, history) => {
            history.since -= Duration::from_secs(60);
            true
        }
        _ => false,
    });
    job.fault_of(0)
}

#[test]
fn a_relay_cannot_switch_encryption_off_nor_change_the_exchange_of_keys() {
    // The relay changes the flag in the hello, in the challenge, or in both.
    let flip = |hello: bool, challenge: bool| -> Change {
        Box::new(move |from, number, mut message| {
            match (from, number) {
                (From::Caller, 0) if hello => message[16] ^= 1,
                (From::Called, 0) if challenge => message[0] ^= 1,
                _ => {}
            }
            message
        })
    };
    let exchange = |place: usize| -> Change {
        Box::new(move |from, number, mut message| {
            if (from, number) == (From::Caller, 1) {
                message[PROOF_BYTES + place] ^= 1;
            }
            message
        })
    };
    let not_proved = "has not proved that it belongs to this job";
    for (what, change, says) in [
        ("both flags", flip(true, true), not_proved),
        ("the flag of the hello", flip(true, false), not_proved),
        ("the flag of the challenge", flip(false, true), not_proved),
        ("the public key", exchange(3), "closed the connection"),
        ("its tag", exchange(MESSAGE_BYTES - 1), "closed the connection"),
    ] {
        let relayed = Relayed::open(true, change);
        relayed.start_add();
        let text = give_up(&relayed.job);
        assert!(text.contains("PE 1") && text.contains(says), "{what}: {text}");
        assert_eq!(relayed.count(), 0, "{what}");
        assert!(relayed.job.is_untouched(), "{what}");
    }
    // The reply to the key exchange is the last message: its sender loses the connection.
    let change: Change = Box::new(|from, number, mut message| {
        if (from, number) == (From::Called, 1) {
            message[1] ^= 1;
        }
        message
    });
    let relayed = Relayed::open(true, change);
    relayed.start_add();
    let text = relayed.job.fault_of(1);
    assert!(text.contains("PE 0"), "{text}");
    assert!(relayed.job.is_untouched());
}

#[test]
fn processes_whose_settings_differ_say_so() {
    for encrypts in [[true, false], [false, true]] {
        let secret = Secret::draw().unwrap();
        let endpoints = open_with(secret, encrypts);
        let cards: Vec<_> = endpoints.iter().map(|endpoint| endpoint.address().unwrap()).collect();
        let terms: Vec<_> = endpoints.iter().map(Provider::terms).collect();
        assert_ne!(terms[0], terms[1], "the cards differ as well");
        let job = Job::of(endpoints, &cards, secret);
        let (value, target) = (1_u64, Remote { key: KEY, offset_bytes: 8 });
        let (source, completion) = ((&raw const value).cast(), Completion::Counted);
        // SAFETY: the value is copied, and its place lies in the region.
        let put = unsafe { job.endpoints[0].put(Put { pe: 1, target, source, bytes: 8, completion }) };
        assert_eq!(put, Status::Pending);
        for (pe, peer) in [(0, "PE 1"), (1, "PE 0")] {
            let text = job.fault_of(pe);
            assert!(text.contains("PELAGO_TCP_ENCRYPT is") && text.contains(peer), "{text}");
        }
        assert!(job.is_untouched());
    }
}

/// A member of an encrypted job.
struct Member {
    stream: TcpStream,
    cipher: Arc<Cipher>,
    number: u64,
}

impl Member {
    /// A connection to process 0 that has proved that it is process 1.
    fn of(job: &Job) -> Member {
        let mut stream = TcpStream::connect(job.address(0)).unwrap();
        let (call, nonce) = (Call { from: 1, to: 0 }, handshake::nonce().unwrap());
        stream.write_all(&handshake::hello((call, true, Earlier::default(), nonce))).unwrap();
        let challenge = job.answer::<CHALLENGE_BYTES>(&mut stream).unwrap();
        let (theirs, other, _) = handshake::read_challenge(&challenge);
        let (encrypts, nonces) = ([true, theirs], [nonce, other]);
        let terms = Terms { secret: job.secret, call, earlier: Earlier::default(), encrypts, nonces };
        let mut exchange = Exchange::begin(&terms, Side::Connects).unwrap();
        let message = exchange.write().unwrap();
        stream.write_all(&[&terms.proof(Side::Connects)[..], &message].concat()).unwrap();
        let welcome = job.answer::<{ WELCOME_BYTES + MESSAGE_BYTES }>(&mut stream).unwrap();
        exchange.read(&welcome[WELCOME_BYTES..]).unwrap();
        Member { stream, cipher: Arc::new(exchange.finish().unwrap()), number: 0 }
    }

    fn record(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut record = vec![0; 2 + bytes.len() + TAG_BYTES];
        record[..2].copy_from_slice(&((bytes.len() + TAG_BYTES) as u16).to_be_bytes());
        self.cipher.encrypt(self.number, bytes, &mut record[2..]).unwrap();
        self.number += 1;
        record
    }
}

#[test]
fn bytes_that_are_decrypted_and_not_executed_keep_the_process_awake() {
    const BYTES: usize = 5 << 10;
    const PUTS: usize = 10;
    let secret = Secret::draw().unwrap();
    let endpoints = open_with(secret, [true; 2]);
    let cards: Vec<_> = endpoints.iter().map(|endpoint| endpoint.address().unwrap()).collect();
    let job = Job::of(endpoints, &cards, secret);
    let mut member = Member::of(&job);
    let (pe_0, domain) = (&job.endpoints[0], &job.endpoints[0].domain);
    let executed = || domain.peer(1).acks_to_send() as usize;
    let mut put = |i: usize| {
        let header = Header { offset: (i * BYTES) as u64, ..header(Kind::Put, BYTES as u32) };
        member.record(&[&header.to_bytes()[..], &[i as u8 + 1; BYTES]].concat())
    };
    let (first, rest) = (put(0), (1..=PUTS).flat_map(&mut put).collect::<Vec<_>>());
    member.stream.write_all(&first).unwrap();
    job.until("the first put", || executed() == 1);
    // After a long put little more than the next one is taken at a time. The connection has all of them.
    member.stream.write_all(&rest).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while executed() == 1 {
        assert!(Instant::now() < until, "waited in vain for a put");
        pe_0.progress(&mut |_| ()).unwrap();
    }
    assert!(executed() < 1 + PUTS, "all were executed in one round");
    assert_eq!(domain.n_hidden.load(crate::sync::Ordering::Relaxed), 1);
    assert!(!pe_0.may_sleep(), "there is work that no descriptor announces");
    job.until("all puts", || executed() == 1 + PUTS);
    job.until("rest", || pe_0.may_sleep());
    let memory = &job.memory[0][REGION_BYTES / 8..];
    let value = |i: usize| u64::from_ne_bytes([i as u8 + 1; 8]);
    assert!((0..=PUTS).all(|i| memory[i * BYTES / 8..(i + 1) * BYTES / 8].iter().all(|&w| w == value(i))));
}

/// An answer may come late, as if the connection were not encrypted.
#[test]
fn a_peer_that_has_left_is_not_lost_when_something_is_sent_to_it() {
    let secret = Secret::draw().unwrap();
    let endpoints = open_with(secret, [true; 2]);
    let cards: Vec<_> = endpoints.iter().map(|endpoint| endpoint.address().unwrap()).collect();
    let job = Job::of(endpoints, &cards, secret);
    let mut member = Member::of(&job);
    let goodbye = member.record(&header(Kind::Bye, 0).to_bytes());
    member.stream.write_all(&goodbye).unwrap();
    drop(member);
    let (pe_0, domain) = (&job.endpoints[0], &job.endpoints[0].domain);
    job.until("the end of the connection", || domain.links.load(crate::sync::Ordering::Relaxed) == 0);
    for _ in 0..3 {
        let _ = pe_0.send(1, 0, b"too late");
        pe_0.progress(&mut |_| ()).unwrap();
    }
}

proptest! {
    #![proptest_config(inputs(10_000, true))]

    /// Frames of a faulty member, cut into records at any places, with or without a changed bit.
    #[test]
    fn fuzz_encrypted_frames(
        bytes in frames(),
        cuts in proptest::collection::vec(0..100_usize, 1..6),
        change in proptest::option::of((any::<prop::sample::Index>(), 0..8_u8)),
    ) {
        let secret = Secret::draw().unwrap();
        let endpoints = open_with(secret, [true; 2]);
        let cards: Vec<_> = endpoints.iter().map(|endpoint| endpoint.address().unwrap()).collect();
        let job = Job::of(endpoints, &cards, secret);
        let mut member = Member::of(&job);
        let (mut rest, mut wire) = (&bytes[..], Vec::new());
        for cut in cuts.into_iter().chain([usize::MAX]) {
            let (first, others) = rest.split_at(cut.min(rest.len()));
            wire.extend(member.record(first));
            rest = others;
        }
        if let Some((place, bit)) = change {
            let place = place.index(wire.len());
            wire[place] ^= 1 << bit;
        }
        member.stream.write_all(&wire).unwrap();
        member.stream.shutdown(std::net::Shutdown::Write).unwrap();
        job.survives()?;
    }
}
