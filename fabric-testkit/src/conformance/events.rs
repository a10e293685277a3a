//! Rules of tokens, of contexts and of `rest`.

use super::group::{Group, pattern};
use super::{Harness, KEY};
use pelago_fabric::{
    Amo, Atomic, AtomicKind, AtomicOp, Completion, Completions, Event, Get, Inject, Provider, Put, Remote,
    Status, Token,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::pin::Pin;
use std::time::{Duration, Instant};

/// Repeats a call until it does not return `Again`; returns the status.
fn accept<P: Provider>(group: &Group<P>, mut call: impl FnMut() -> Status) -> Status {
    let mut status = Status::Again;
    group.accepted(|| {
        status = call();
        status
    });
    status
}

/// `Event::Sent` and `Event::Done` return the token of each tracked operation, each event once for the
/// operations that request it.
pub fn each_token_comes_back_as_promised<H: Harness>() {
    let group = H::open(2);
    let endpoint = &group.endpoints[0];
    let (source, mut target) = (pattern(50_000, 1), vec![0u64; 64]);
    let place: *mut u8 = target.as_mut_ptr().cast();
    let limit = endpoint.limits().inject_bytes;
    let add = Atomic { kind: AtomicKind::U32, op: AtomicOp::Add, operand: 1, compare: 0 };
    let remote = Remote { key: KEY, offset_bytes: 128 };
    let put = |bytes, completion| Put { pe: 1, target: remote, source: source.as_ptr(), bytes, completion };
    // The expected events of each operation of PE 0: whether Sent, whether Done.
    let mut expected = Vec::new();
    for round in 0..12 {
        for bytes in [0, 8, limit.min(40_000), limit.saturating_add(1).min(50_000), 50_000] {
            let put = put(bytes, Completion::Tracked(expected.len() as Token));
            // SAFETY: the source outlives the wait below; the range lies in the region.
            let status = accept(&group, || unsafe { endpoint.put(put) });
            let pending = status == Status::Pending;
            expected.push((pending && bytes > limit, pending));
        }
        let completion = Completion::Tracked(expected.len() as Token);
        let get = Get { pe: 1, source: remote, target: place, bytes: 8 * round, completion };
        // SAFETY: the target outlives the wait below; the range lies in the region.
        let status = accept(&group, || unsafe { endpoint.get(get) });
        expected.push((false, status == Status::Pending));
        for fetched in [place, std::ptr::null_mut()] {
            if endpoint.executes(AtomicKind::U32) {
                let completion = Completion::Tracked(expected.len() as Token);
                let amo = Amo { pe: 1, word: remote, atomic: add, fetched, completion };
                // SAFETY: the place outlives the wait below; the word lies in the region and is aligned.
                let status = accept(&group, || unsafe { endpoint.atomic(amo) });
                expected.push((false, status == Status::Pending));
            }
        }
        // SAFETY: the source outlives the wait below; the range lies in the region.
        group.accepted(|| unsafe { endpoint.put(put(50_000, Completion::Counted)) });
    }
    let all = (expected.len() + 12) as u64;
    let count = || endpoint.completions().puts + endpoint.completions().gets;
    group.until(|| count() == all, "all operations to complete");
    (0..100).for_each(|_| assert!(group.progress_all().is_empty()));
    let told = group.told.take();
    for (token, (sent, done)) in expected.into_iter().enumerate() {
        let of = told.iter().filter(|told| told.1 == token as Token).map(|told| (told.0, told.2));
        let expected = [sent.then_some((0, true)), done.then_some((0, false))];
        let expected: Vec<_> = expected.into_iter().flatten().collect();
        assert_eq!(of.collect::<Vec<_>>(), expected, "events of operation {token}");
    }
}

/// The source of a put may change after `Event::Sent`.
pub fn what_is_sent_may_change<H: Harness>() {
    let group = H::open(2);
    let endpoint = &group.endpoints[0];
    for round in 0..8usize {
        let original = pattern(40_000, round as u8);
        let mut source = original.clone();
        let remote = Remote { key: KEY, offset_bytes: round * 40_000 };
        let (start, before) = (source.as_ptr(), endpoint.completions().puts);
        // SAFETY: the source outlives the waits below, and changes only after `Event::Sent`.
        let status = accept(&group, || unsafe {
            endpoint.put(Put {
                pe: 1,
                source: start,
                bytes: 40_000,
                target: remote,
                completion: Completion::Tracked(3),
            })
        });
        let free = || status == Status::Done || group.told.borrow().iter().any(|told| told.1 == 3);
        group.until(free, "the put to be sent");
        group.told.take();
        source.fill(0xEE);
        group.until(|| endpoint.completions().puts == before + 1, "the put to complete");
        let at = round * 40_000;
        assert!(group.region(1)[at..at + 40_000] == original, "round {round}");
        group.progress_all();
        group.told.take();
    }
}

/// The `Inject` of an endpoint, settled; `None` if the provider does not inject.
pub(super) fn injecting<H: Harness>(
    endpoint: &H::Endpoint,
) -> Option<Pin<Box<<H::Endpoint as Provider>::Inject>>> {
    let inject = endpoint.inject(KEY);
    assert_eq!(inject.is_some(), H::INJECTS, "whether the provider injects, and Harness::INJECTS");
    let mut inject = Box::pin(inject?);
    inject.as_mut().settle();
    Some(inject)
}

/// A put through `Inject` arrives, and counts as a put.
pub fn an_injected_put_is_a_put<H: Harness>() {
    let group = H::open(3);
    let endpoint = &group.endpoints[0];
    let Some(mut inject) = injecting::<H>(endpoint) else { return };
    // SAFETY: `inject` is not moved out of its box.
    let inject = unsafe { inject.as_mut().get_unchecked_mut() };
    let mut expected = [1, 2].map(|pe| group.region(pe));
    for round in 0..100 {
        let lengths = [1, 2, 4, 8, inject.put_bytes()];
        let (pe, bytes, before) = (1 + round % 2, lengths[round % 5], endpoint.completions().puts);
        let (offset, value) = (8 * (7 * round % 64), 0x0102_0304_0506_0708_u64 * (1 + round as u64 % 30));
        let mut source = pattern(bytes, round as u8);
        if round % 5 < 4 {
            source.copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
        let mut start = || {
            // SAFETY: it is settled, and the endpoint open; the place lies in the region.
            let is_started = unsafe {
                match round % 5 {
                    0 => inject.put_word(pe, offset, value as u8),
                    1 => inject.put_word(pe, offset, value as u16),
                    2 => inject.put_word(pe, offset, value as u32),
                    3 => inject.put_word(pe, offset, value),
                    _ => inject.put(pe, offset, source.as_ptr(), bytes),
                }
            };
            if is_started { Status::Pending } else { Status::Again }
        };
        assert_eq!(accept(&group, &mut start), Status::Pending);
        expected[pe - 1][offset..offset + bytes].copy_from_slice(&source);
        source.fill(0xEE);
        group.until(|| endpoint.completions().puts == before + 1, "an injected put to complete");
        assert!([1, 2].map(|pe| group.region(pe)) == expected, "round {round}");
        if H::REMEMBERS_PUTS && round % 5 < 4 {
            let (to, at, last) = inject.refused(bytes);
            assert_eq!((to, at, &last[..bytes]), (pe, offset, &value.to_le_bytes()[..bytes]), "it is known");
        }
    }
    group.stays_quiet();
    assert!(group.told.take().is_empty(), "it has no token");
}

/// A get through `Inject` returns the data at the target, and counts as a get.
pub fn an_injected_get_is_a_get<H: Harness>() {
    let group = H::open(3);
    let endpoint = &group.endpoints[0];
    let Some(mut inject) = injecting::<H>(endpoint) else { return };
    // SAFETY: `inject` is not moved out of its box.
    let inject = unsafe { inject.as_mut().get_unchecked_mut() };
    if inject.get_bytes() < 4096 {
        return;
    }
    let [mut back, mut vain] = [[0; 4096]; 2];
    for round in 0..100 {
        let (pe, bytes, before) = (1 + round % 2, [1, 8, 24, 4096][round % 4], endpoint.completions().gets);
        let (offset_bytes, into) = (8 * (7 * round % 64), back.as_mut_ptr());
        if round % 3 == 0 {
            // Another get that counts.
            let source = Remote { key: KEY, offset_bytes };
            let (target, completion) = (vain.as_mut_ptr(), Completion::Counted);
            // SAFETY: its target outlives the wait below; the range lies in the region.
            group.accepted(|| unsafe { endpoint.get(Get { pe, source, target, bytes, completion }) });
            group.until(|| endpoint.completions().gets == before + 1, "a get to complete");
        }
        let gets = before + 1 + u64::from(round % 3 == 0);
        let mut start = || {
            // SAFETY: it is settled, and the endpoint open; the place lies in the region, and the target
            // outlives the wait below.
            let is_started = unsafe { inject.get(pe, offset_bytes, into, bytes) };
            if is_started { Status::Pending } else { Status::Again }
        };
        assert_eq!(accept(&group, &mut start), Status::Pending);
        // SAFETY: the group keeps the endpoint open.
        group.until(|| unsafe { inject.gets() } == gets, "an injected get to complete");
        assert_eq!(endpoint.completions().gets, gets);
        assert!(back[..bytes] == group.region(pe)[offset_bytes..offset_bytes + bytes], "round {round}");
    }
    group.stays_quiet();
    assert!(group.told.take().is_empty(), "it has no token");
}

/// If a provider keeps messages behind puts, the data of earlier puts are visible when a message arrives.
pub fn messages_stay_behind_puts<H: Harness>() {
    const BYTES: usize = 300_000;
    let group = H::open(2);
    let endpoint = &group.endpoints[0];
    if !endpoint.keeps_messages_behind_puts() {
        return;
    }
    for round in 0..30 {
        let (bytes, at) = ([8, 5000, BYTES][round % 3], 8 * round);
        let source = pattern(bytes, round as u8);
        let (remote, start) = (Remote { key: KEY, offset_bytes: at }, source.as_ptr());
        let before = endpoint.completions().puts;
        // SAFETY: the source outlives the wait below; the range lies in the region.
        group.accepted(|| unsafe {
            endpoint.put(Put { pe: 1, source: start, bytes, target: remote, completion: Completion::Counted })
        });
        group.accepted(|| endpoint.send(1, round as u64, b"behind"));
        let mut arrived = (0..group.rounds).map(|_| group.progress_all());
        let arrived = arrived.find(|arrived| !arrived.is_empty()).expect("the message arrives");
        assert_eq!(arrived, [(1, 0, round as u64, b"behind".to_vec())]);
        assert!(group.region(1)[at..at + bytes] == source, "round {round}");
        group.until(|| endpoint.completions().puts == before + 1, "the put to complete");
    }
}

/// The wait descriptor of an endpoint that may sleep becomes readable when a message arrives.
pub fn the_bell_rings<H: Harness>() {
    let group = H::open(2);
    let Some(bell) = group.endpoints[1].wait_descriptor() else {
        assert_ne!(H::Endpoint::NAME, "ofi", "libgroup has something to sleep on");
        return;
    };
    for round in 0..10 {
        let mut may_sleep = || {
            group.endpoints[1].progress(&mut |_| panic!("nothing was sent there")).unwrap();
            group.endpoints[1].may_sleep()
        };
        group.until(&mut may_sleep, "the endpoint to have nothing to do");
        let send = || group.endpoints[0].send(1, round, b"wake up");
        assert_ne!(accept(&group, send), Status::Again);
        let since = Instant::now();
        let rings = || {
            let mut fds = [PollFd::new(&bell, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 })).unwrap() == 1
        };
        while !rings() {
            assert!(since.elapsed() < Duration::from_secs(60), "round {round}: the bell does not ring");
            group.endpoints[0].progress(&mut |_| panic!("nothing was sent back")).unwrap();
        }
        let mut arrived = (0..group.rounds).map(|_| group.progress_all());
        let arrived = arrived.find(|arrived| !arrived.is_empty()).expect("the message arrives");
        assert_eq!(arrived, [(1, 0, round, b"wake up".to_vec())]);
    }
}

/// Operations of a context complete at the context, and messages arrive at the endpoint.
pub fn contexts_complete_apart<H: Harness>() {
    let group = H::open(2);
    let (endpoint, context) = (&group.endpoints[0], group.endpoints[0].context().unwrap());
    let source = pattern(1000, 5);
    let mut told = Vec::new();
    let mut look = |context: &H::Endpoint| {
        context.progress(&mut |event: Event<'_>| told.extend(token_of(&event))).unwrap();
    };
    let call_target = || {
        if H::TARGET_MUST_CALL {
            group.endpoints[1].progress(&mut |_| panic!("nothing was sent there")).unwrap();
        }
    };
    group.accepted(|| group.endpoints[1].send(0, 77, b"to the first"));
    let mut pending = Vec::new();
    for i in 0..6 {
        let remote = Remote { key: KEY, offset_bytes: 2000 * i };
        let token = i as Token;
        let mut status = Status::Again;
        for _ in 0..group.rounds {
            // SAFETY: the source outlives the waits below; the range lies in the region.
            status = unsafe {
                context.put(Put {
                    pe: 1,
                    source: source.as_ptr(),
                    bytes: 1000,
                    target: remote,
                    completion: Completion::Tracked(token),
                })
            };
            if status != Status::Again {
                break;
            }
            look(&context);
            call_target();
        }
        assert!(status != Status::Again, "a context accepts nothing");
        pending.extend((status == Status::Pending).then_some(token));
    }
    assert_eq!(endpoint.completions(), Completions::default(), "what a context starts is not the endpoint's");
    for _ in 0..group.rounds {
        look(&context);
        call_target();
        if context.completions().puts == 6 {
            break;
        }
    }
    assert_eq!(context.completions(), Completions { puts: 6, gets: 0 });
    (0..100).for_each(|_| look(&context));
    told.sort_unstable();
    assert_eq!(told, pending);
    let mut arrived = (0..group.rounds).map(|_| group.progress_all());
    let arrived = arrived.find(|arrived| !arrived.is_empty()).expect("the message arrives");
    group.stays_quiet();
    assert_eq!(arrived, [(0, 1, 77, b"to the first".to_vec())]);
    group.put(0, 1, &source, 50_000);
    assert_eq!(endpoint.completions(), Completions { puts: 1, gets: 0 });
    assert_eq!(context.completions(), Completions { puts: 6, gets: 0 });
    assert!(group.told.borrow().is_empty(), "tokens come back to where they were given");
    for i in 0..6 {
        assert!(group.region(1)[2000 * i..2000 * i + 1000] == source, "put {i}");
    }
}

/// The events of a context come if it is drained behind the progress of its endpoint.
pub fn a_context_is_drained_behind_its_endpoint<H: Harness>() {
    let group = H::open(2);
    let (endpoint, context) = (&group.endpoints[0], group.endpoints[0].context().unwrap());
    let (source, mut target) = (pattern(1000, 9), vec![0; 1000]);
    let mut told = Vec::new();
    let mut look = || {
        endpoint.progress(&mut |_| panic!("nothing was started or sent there")).unwrap();
        let mut handle = |event: Event<'_>| told.extend(token_of(&event));
        context.drain(&mut handle).unwrap();
        if H::TARGET_MUST_CALL {
            group.endpoints[1].progress(&mut |_| panic!("nothing was sent there")).unwrap();
        }
        told.clone()
    };
    let mut pending = Vec::new();
    for token in 0..6 {
        let remote = Remote { key: KEY, offset_bytes: 0 };
        let completion = Completion::Tracked(token);
        let put = Put { pe: 1, source: source.as_ptr(), bytes: 1000, target: remote, completion };
        let get = Get { pe: 1, source: remote, target: target.as_mut_ptr(), bytes: 1000, completion };
        let mut start = || {
            look();
            // SAFETY: source and target outlive the waits below; the range lies in the region.
            unsafe { if token < 3 { context.put(put) } else { context.get(get) } }
        };
        let accepted = (0..group.rounds).map(|_| start()).find(|&status| status != Status::Again);
        let status = accepted.expect("a context accepts operations");
        pending.extend((status == Status::Pending).then_some(token));
        let complete =
            Completions { puts: u64::from(token + 1).min(3), gets: u64::from(token + 1).max(3) - 3 };
        let is_complete = |told: &[Token]| told == pending && context.completions() == complete;
        assert!((0..group.rounds).any(|_| is_complete(&look())), "operation {token} of the context");
    }
    assert!(target == source, "the gets follow the puts");
}

fn token_of(event: &Event<'_>) -> Option<Token> {
    match event {
        Event::Message { .. } => panic!("a message arrived at a context"),
        Event::Sent(_) => None,
        Event::Done(token) => Some(*token),
    }
}

/// `rest` returns within its time limit, and the endpoint continues to work.
pub fn a_rest_returns<H: Harness>() {
    let group = H::open(2);
    for endpoint in &group.endpoints {
        endpoint.rest(Duration::ZERO);
        endpoint.rest(Duration::from_millis(1));
    }
    group.put(0, 1, b"awake", 10);
    assert_eq!(group.get(1, 0, 5, 0), [0; 5]);
}
