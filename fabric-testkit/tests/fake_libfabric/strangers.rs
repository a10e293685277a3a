//! Endpoints that belong to no job, or to another one: they cannot access the memory of a job, and the job
//! discards their messages, although the provider itself serves every endpoint. Members whose puts make no
//! sense end the job.

use crate::side::{Context, Options, Side, There, Told, descriptor};
use libc::c_void;
use pelago_fabric::ofi::sys::*;
use pelago_fabric::ofi::{Choice, Ofi};
use pelago_fabric::{
    Atomic, AtomicKind, AtomicOp, Completion, Event, FabricError, Key, Provider, Put, Remote, Secret, Signal,
    Status,
};
use pelago_fabric_testkit::fake_libfabric;
use std::ptr::{NonNull, null_mut};

const KEY: Key = 0;
/// The providers with keys that the caller chooses. The other providers choose keys themselves, which are
/// hard to guess too.
const CHOOSERS: [&str; 2] = ["plain", "like-cxi"];
const PROVIDERS: [&str; 3] = ["plain", "like-verbs", "like-cxi"];
/// The providers over which puts signal.
const SIGNALLERS: [&str; 2] = ["like-verbs", "like-cxi"];
/// The number of rounds of progress after which all possible events have occurred.
const ROUNDS: usize = 1000;

/// A job of two PEs; its members may access the memory of PE 0.
fn job(provider: &str, memory: &mut [u64]) -> [Ofi; 2] {
    job_of(provider, memory, 1)
}

/// The same, where PE 1 gives itself another number.
fn job_of(provider: &str, memory: &mut [u64], number: usize) -> [Ofi; 2] {
    let secret = Secret::draw().unwrap();
    let (library, providers) = (Some(fake_libfabric::install().path().to_owned()), vec![provider.to_owned()]);
    let choice = Choice { library, providers, ..Choice::default() };
    let mut job = [0, number].map(|me| Ofi::open(me, 2, &choice, secret).unwrap());
    let addresses = job.each_ref().map(|endpoint| endpoint.address().unwrap());
    job.iter_mut().for_each(|endpoint| endpoint.connect(&mut |pe| Ok(addresses[pe].clone())).unwrap());
    let start = NonNull::new(memory.as_mut_ptr().cast()).unwrap();
    job[0].register(KEY, start, size_of_val(memory)).unwrap();
    job
}

/// Makes progress until all possible events have occurred; returns the messages that PE 0 has received.
fn heard(job: &[Ofi; 2]) -> Vec<(usize, u64, Vec<u8>)> {
    let mut heard = Vec::new();
    for _ in 0..ROUNDS {
        job[0]
            .progress(&mut |event| {
                if let Event::Message { from, header, payload } = event {
                    heard.push((from, header, payload.to_vec()));
                }
            })
            .unwrap();
        job[1].progress(&mut |_| ()).unwrap();
    }
    heard
}

/// Checks that the members can still communicate.
fn assert_members_talk(job: &[Ofi; 2]) {
    assert_eq!(job[1].send(0, 5, b"a member's"), Status::Done);
    assert_eq!(heard(job), [(1, 5, b"a member's".to_vec())]);
}

/// A bare endpoint.
struct Stranger {
    side: Side,
    target: u64,
    memory: Box<[u8]>,
    descriptor: *mut c_void,
}

impl Stranger {
    fn to(target: &Ofi, provider: &str) -> Stranger {
        let side = Side::open(provider, Options::default());
        let target = side.insert(&target.address().unwrap()).unwrap();
        let memory = vec![0xEE; 2 << 20].into_boxed_slice();
        let region = side.register(&memory, FI_READ | FI_WRITE | FI_SEND, 1);
        let descriptor = descriptor(region);
        Stranger { side, target, memory, descriptor }
    }

    /// Waits for the end of an operation while the job makes progress.
    fn told(&self, job: &[Ofi; 2]) -> Told {
        for _ in 0..ROUNDS {
            job[0].progress(&mut |event| panic!("{event:?}")).unwrap();
            match self.side.poll() {
                Told::Nothing => {}
                told => return told,
            }
        }
        panic!("waited in vain for the end of an operation");
    }

    /// Passes descriptors even if the provider does not require them.
    fn assert_refused(&self, job: &[Ofi; 2], key: u64) {
        let mut context = Context::default();
        let there = There { address: 0, key };
        let word = &self.memory[..8];
        let code = self.side.write(word, self.descriptor, self.target, there, context.place(), FI_COMPLETION);
        let told = self.told(job);
        assert!(code == 0 && matches!(told, Told::Failed { .. }), "a write with key {key:#x}: {told:?}");
        let mut word = [0xEE; 8];
        let code = self.side.read(&mut word, null_mut(), self.target, there, context.place());
        let told = self.told(job);
        assert!(code == 0 && matches!(told, Told::Failed { .. }), "a read with key {key:#x}: {told:?}");
        assert_eq!(word, [0xEE; 8], "key {key:#x}");
    }

    /// Sends a message, and waits until it has left.
    fn send(&self, job: &[Ofi; 2], bytes: usize) {
        let mut context = Context::default();
        let source = &self.memory[..bytes];
        let (to, place) = (self.target, context.place());
        assert_eq!(self.side.send(source, self.descriptor, to, place, FI_COMPLETION), 0);
        assert_ne!(self.told(job), Told::Nothing);
    }
}

/// The keys that an attacker would guess first: the numbers of the regions, small numbers, powers of two and
/// their neighbours.
fn guesses() -> impl Iterator<Item = u64> {
    let powers = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, (1 << bit) + 1]);
    (0..1000).chain(powers).chain([u64::MAX, u64::MAX - 1])
}

#[test]
fn no_guessed_key_reaches_memory() {
    for provider in CHOOSERS {
        let mut memory = vec![7_u64; 64];
        let job = job(provider, &mut memory);
        let stranger = Stranger::to(&job[0], provider);
        for key in guesses() {
            stranger.assert_refused(&job, key);
        }
        assert!(memory.iter().all(|&word| word == 7), "{provider}: {memory:?}");
        assert_members_talk(&job);
    }
}

#[test]
fn the_members_of_another_job_reach_nothing() {
    for provider in CHOOSERS {
        let (mut memory, mut other_memory) = (vec![7_u64; 64], vec![0_u64; 64]);
        let job = job(provider, &mut memory);
        let mut other = self::job(provider, &mut other_memory);
        // PE 1 of the other job has obtained the address of PE 0 of this job.
        let addresses = [job[0].address().unwrap(), other[1].address().unwrap()];
        other[1].connect(&mut |pe| Ok(addresses[pe].clone())).unwrap();
        let (value, target) = (9_u64, Remote { key: KEY, offset_bytes: 0 });
        // SAFETY: a source of 8 bytes is injected; the test checks that the target range, which is not in a
        // region, is refused.
        let started = unsafe {
            other[1].put(Put {
                pe: 0,
                source: (&raw const value).cast(),
                bytes: 8,
                target,
                completion: Completion::Counted,
            })
        };
        assert_eq!(started, Status::Pending);
        let failed = (0..ROUNDS).find_map(|_| {
            let failed = other[1].progress(&mut |_| ()).err();
            job[0].progress(&mut |_| ()).unwrap();
            failed
        });
        assert!(failed.is_some(), "{provider}: waited in vain for the error of a put with a wrong key");
        assert_eq!(other[1].send(0, 5, b"a stranger's"), Status::Done);
        if SIGNALLERS.contains(&provider) {
            put_signal(&other[1], target, target, AtomicKind::U64);
        }
        (0..ROUNDS).for_each(|_| drop(other[1].progress(&mut |_| ())));
        assert!(heard(&job).is_empty());
        assert!(memory.iter().all(|&word| word == 7), "{provider}: {memory:?}");
        assert_members_talk(&job);
    }
}

/// Starts a put of 16 bytes to PE 0 with a signal. PE 0 executes it, without a check by the sender.
fn put_signal(from: &Ofi, target: Remote, word: Remote, kind: AtomicKind) {
    let source = [9_u64; 2];
    let atomic = Atomic { kind, op: AtomicOp::Set, operand: 9, compare: 0 };
    let (start, completion) = (source.as_ptr().cast(), Completion::Unreported);
    let put = Put { pe: 0, target, source: start, bytes: size_of_val(&source), completion };
    // SAFETY: the source of so short a put is read during the call; PE 0 checks the places.
    assert_eq!(unsafe { from.put_signal(put, Signal { word, atomic }) }, Status::Pending);
}

fn at(offset_bytes: usize) -> Remote {
    Remote { key: KEY, offset_bytes }
}

/// The error that PE 0 reports.
fn error(job: &[Ofi; 2]) -> String {
    let error = (0..ROUNDS).find_map(|_| {
        job[1].progress(&mut |_| ()).unwrap();
        job[0].progress(&mut |event| panic!("{event:?}")).err()
    });
    let error = error.expect("a put that no member sends is an error");
    assert!(matches!(error, FabricError::Foreign { pe: 0, .. }), "{error}");
    error.to_string()
}

/// The provider does not check these puts, as they are messages, so the target does.
#[test]
fn a_put_with_a_signal_reaches_nothing_outside_a_region() {
    const BYTES: usize = 64 * 8;
    let (inside, word) = (at(BYTES - 16), at(0));
    let other_key = |remote| Remote { key: KEY + 1, ..remote };
    let cases = [
        (at(BYTES - 15), word, AtomicKind::U64, "16 bytes at offset 497 of key 0"),
        (at(BYTES), word, AtomicKind::U64, "16 bytes at offset 512 of key 0"),
        (at(usize::MAX - 7), word, AtomicKind::U64, "16 bytes at offset 18446744073709551608 of key 0"),
        (other_key(inside), word, AtomicKind::U64, "16 bytes at offset 496 of key 1"),
        (inside, at(BYTES - 4), AtomicKind::U64, "8 bytes at offset 508 of key 0"),
        (inside, at(BYTES), AtomicKind::U8, "1 bytes at offset 512 of key 0"),
        (inside, at(usize::MAX), AtomicKind::U32, "4 bytes at offset 18446744073709551615 of key 0"),
        (inside, other_key(word), AtomicKind::U64, "8 bytes at offset 0 of key 1"),
        (inside, at(4), AtomicKind::U64, "a signal at offset 4, which is not aligned"),
        (inside, at(1), AtomicKind::I16, "a signal at offset 1, which is not aligned"),
    ];
    for provider in SIGNALLERS {
        for (target, word, kind, words) in cases {
            let mut memory = vec![7_u64; 64];
            let job = job(provider, &mut memory);
            put_signal(&job[1], target, word, kind);
            let error = error(&job);
            assert!(error.contains(words) && error.contains("from PE 1"), "{provider}: {error}");
            assert!(memory.iter().all(|&word| word == 7), "{provider}, {words}: {memory:?}");
        }
        let mut memory = vec![7_u64; 64];
        let job = job(provider, &mut memory);
        put_signal(&job[1], inside, word, AtomicKind::U64);
        assert!(heard(&job).is_empty());
        assert!([0, 62, 63].map(|i| memory[i]) == [9; 3] && memory[1..62].iter().all(|&word| word == 7));
    }
}

/// `ofi_rxm` lets peers read memory that may be sent.
#[test]
fn memory_of_a_program_is_registered_for_puts_and_gets_alone() {
    let (mut memory, own) = (vec![0_u64; 64], vec![7_u8; 64 << 10]);
    let job = job("like-verbs", &mut memory);
    let (source, bytes, completion) = (own.as_ptr(), own.len(), Completion::Counted);
    // SAFETY: the source is there until the job is dropped.
    let status = unsafe { job[1].put(Put { pe: 0, target: at(0), source, bytes, completion }) };
    assert_eq!(status, Status::Pending);
    assert_eq!(fake_libfabric::access_to(&own[1 << 10]), FI_READ | FI_WRITE);
}

#[test]
fn a_put_of_a_pe_that_does_not_exist_is_an_error() {
    for provider in SIGNALLERS {
        let mut memory = vec![7_u64; 64];
        let job = job_of(provider, &mut memory, 2);
        put_signal(&job[1], at(8), at(0), AtomicKind::U64);
        assert!(error(&job).contains("from PE 2: there is no such PE"));
        assert!(memory.iter().all(|&word| word == 7), "{provider}: {memory:?}");
    }
}

/// Messages of all lengths, including longer ones than any member sends, and more messages than there are
/// receive buffers. Providers differ in their handling of a buffer that is too short for a message.
#[test]
fn messages_of_strangers_are_dropped() {
    for provider in PROVIDERS {
        let mut memory = vec![7_u64; 64];
        let job = job(provider, &mut memory);
        let stranger = Stranger::to(&job[0], provider);
        for bytes in (0..70).chain((0..20).map(|i| (1 << 20) + i)) {
            stranger.send(&job, bytes);
            assert!(heard(&job).is_empty(), "{provider}: a message of {bytes} bytes was heard");
        }
        assert_members_talk(&job);
    }
}
