//! Endpoints that belong to no job, or to another one: they cannot access the memory of a job, and the job
//! discards their messages, although the provider itself serves every endpoint.

use crate::side::{Context, Options, Side, There, Told, descriptor};
use libc::c_void;
use pelago_fabric::ofi::sys::*;
use pelago_fabric::ofi::{Choice, Ofi};
use pelago_fabric::{Completion, Event, Key, Provider, Put, Remote, Secret, Status};
use pelago_fabric_testkit::fake_libfabric;
use std::ptr::{NonNull, null_mut};

const KEY: Key = 0;
/// The providers with keys that the caller chooses. The other providers choose keys themselves, which are
/// hard to guess too.
const CHOOSERS: [&str; 2] = ["plain", "like-cxi"];
const PROVIDERS: [&str; 3] = ["plain", "like-verbs", "like-cxi"];
/// The number of rounds of progress after which all possible events have occurred.
const ROUNDS: usize = 1000;

/// A job of two PEs; its members may access the memory of PE 0.
fn job(provider: &str, memory: &mut [u64]) -> [Ofi; 2] {
    let secret = Secret::draw().unwrap();
    let (library, providers) = (Some(fake_libfabric::install().path().to_owned()), vec![provider.to_owned()]);
    let choice = Choice { library, providers, ..Choice::default() };
    let mut job = [0, 1].map(|me| Ofi::open(me, 2, &choice, secret).unwrap());
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
        (0..ROUNDS).for_each(|_| drop(other[1].progress(&mut |_| ())));
        assert!(heard(&job).is_empty());
        assert!(memory.iter().all(|&word| word == 7), "{provider}: {memory:?}");
        assert_members_talk(&job);
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
