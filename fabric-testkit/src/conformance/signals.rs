//! Rules of puts with a signal, and of unreported puts.

use super::events::injecting;
use super::group::{Group, pattern};
use super::{Harness, KEY};
use pelago_fabric::sync::{AtomicU64, Ordering};
use pelago_fabric::{
    Atomic, AtomicKind, AtomicOp, Completion, Inject, Provider, Put, Remote, Signal, Status,
};

/// The offset of the signal word.
const WORD: usize = 2 << 20;

fn at(offset_bytes: usize) -> Remote {
    Remote { key: KEY, offset_bytes }
}

fn signal(op: AtomicOp, operand: u64) -> Signal {
    Signal { word: at(WORD), atomic: Atomic { kind: AtomicKind::U64, op, operand, compare: 0 } }
}

/// The word of PE 1.
fn word<P>(group: &Group<P>) -> u64 {
    // SAFETY: the word is in the region and aligned, and all accesses to it are atomic.
    unsafe { &*group.regions[1].as_ptr().add(WORD).cast::<AtomicU64>() }.load(Ordering::Acquire)
}

/// The length of the longest put of an endpoint that may signal.
fn limit<H: Harness>(endpoint: &H::Endpoint) -> Option<usize> {
    let limit = endpoint.signal_bytes();
    assert_eq!(limit.is_some(), H::SIGNALS, "whether the provider signals, and Harness::SIGNALS");
    limit
}

/// A PE that sees the signal sees the data, for all lengths and all kinds of completion.
pub fn a_signal_comes_after_its_data<H: Harness>() {
    let group = H::open(2);
    let endpoint = &group.endpoints[0];
    let Some(limit) = limit::<H>(endpoint) else { return };
    let short = endpoint.limits().inject_bytes.min(limit);
    let mut expected = 0;
    let all = [0, 1, 8, 1000, 4096, 4097, short - 1, short, short + 1, 70_000, 1 << 20];
    for (round, bytes) in all.into_iter().filter(|&bytes| bytes <= limit).enumerate() {
        let unreported =
            [Completion::Unreported, Completion::Gathered].map(|one| (bytes <= short).then_some(one));
        let told = [Completion::Counted, Completion::Tracked(7)];
        for (i, completion) in told.into_iter().chain(unreported.into_iter().flatten()).enumerate() {
            let source = pattern(bytes, (3 * round + i) as u8);
            let (start, place, before) = (source.as_ptr(), 1 + 8 * round, endpoint.completions());
            let put = Put { pe: 1, target: at(place), source: start, bytes, completion };
            // SAFETY: the source outlives the waits below; range and word lie in the region.
            group.accepted(|| unsafe { endpoint.put_signal(put, signal(AtomicOp::Add, 3)) });
            expected += 3;
            group.until(|| word(&group) == expected, "a signal");
            assert!(group.region(1)[place..place + bytes] == source, "{bytes} bytes, {completion:?}");
            let puts = before.puts + u64::from(completion.is_reported());
            group.until(|| endpoint.completions().puts == puts, "a signalled put to complete");
            group.stays_quiet();
            assert_eq!((endpoint.completions().puts, endpoint.completions().gets), (puts, before.gets));
        }
    }
}

/// A put with a signal through `Inject` is one: it counts as a put, and its source is free at once.
pub fn an_injected_put_signals<H: Harness>() {
    let group = H::open(2);
    let endpoint = &group.endpoints[0];
    let Some(mut inject) = injecting::<H>(endpoint) else { return };
    // SAFETY: `inject` is not moved out of its box.
    let inject = unsafe { inject.as_mut().get_unchecked_mut() };
    let limit = inject.signal_bytes();
    let all = [1, 8, 1000, 4096, 4097, limit];
    for (round, bytes) in all.into_iter().filter(|&bytes| 0 < bytes && bytes <= limit).enumerate() {
        let mut source = pattern(bytes, round as u8);
        let (expected, place, start) = (source.clone(), 1 + 8 * round, source.as_ptr());
        let (value, before) = (7 + round as u64, endpoint.completions());
        let signal = (WORD, signal(AtomicOp::Set, value).atomic);
        group.accepted(|| {
            // SAFETY: it is settled, and the endpoint open; range and word lie in the region.
            let is_started = unsafe { inject.put_signal(1, (place, start, bytes), signal) };
            if is_started { Status::Pending } else { Status::Again }
        });
        source.fill(0xEE);
        group.until(|| word(&group) == value, "a signal");
        assert!(group.region(1)[place..place + bytes] == expected, "{bytes} bytes");
        group.until(|| endpoint.completions().puts == before.puts + 1, "an injected put to complete");
        group.stays_quiet();
        assert_eq!(
            (endpoint.completions().puts, endpoint.completions().gets),
            (before.puts + 1, before.gets)
        );
    }
    assert!(group.told.take().is_empty(), "it has no token");
}

/// Signals to one PE arrive in the order in which they were started, including those of empty puts.
pub fn signals_come_in_order<H: Harness>() {
    let group = H::open(2);
    let endpoint = &group.endpoints[0];
    let Some(limit) = limit::<H>(endpoint) else { return };
    let long = limit.min(300_000);
    let source = pattern(long, 1);
    let mut seen = 0;
    let mut look = || {
        let now = word(&group);
        assert!(now >= seen, "{now} after {seen}");
        seen = now;
        now
    };
    for number in 1..=200 {
        let (bytes, completion) = match number % 5 {
            0 => (long, Completion::Counted),
            1 => (0, Completion::Unreported),
            2 => (8, Completion::Unreported),
            3 => (8, Completion::Gathered),
            _ => (100, Completion::Counted),
        };
        let put = Put { pe: 1, target: at(0), source: source.as_ptr(), bytes, completion };
        // SAFETY: the source outlives the waits below; range and word lie in the region.
        group.accepted(|| unsafe { endpoint.put_signal(put, signal(AtomicOp::Set, number)) });
        look();
    }
    group.until(|| look() == 200, "the last signal");
    group.until(|| endpoint.completions().puts == 80, "the counted puts to complete");
}

/// A flush counts as a put, and is complete when the unreported and gathered puts before it are.
pub fn a_flush_tells_of_unreported_puts<H: Harness>() {
    let group = H::open(2);
    let endpoint = &group.endpoints[0];
    assert_eq!(endpoint.flush(), 0, "nothing was started");
    if limit::<H>(endpoint).is_none() {
        return;
    }
    for round in 1..=50_u64 {
        let source = pattern(1000, round as u8);
        let completion = if round % 2 == 0 { Completion::Unreported } else { Completion::Gathered };
        let put = |place| Put { pe: 1, target: at(place), source: source.as_ptr(), bytes: 1000, completion };
        for place in [0, 1000, 2000] {
            // SAFETY: such a put is short, so the source need only live until the call returns; the range
            // lies in the region.
            group.accepted(|| unsafe { endpoint.put(put(place)) });
        }
        let before = endpoint.completions().puts;
        // Between PEs of one process such puts are complete already.
        let started = endpoint.flush();
        assert!(started <= 1, "one process");
        group.until(|| endpoint.completions().puts == before + started, "a flush");
        assert!(group.region(1)[2000..3000] == source, "round {round}");
        assert_eq!(endpoint.flush(), 0, "all is known");
    }
}

/// Unreported and gathered puts arrive, and are not counted.
pub fn an_unreported_put_arrives<H: Harness>() {
    let group = H::open(2);
    let endpoint = &group.endpoints[0];
    let Some(limit) = limit::<H>(endpoint) else { return };
    let before = endpoint.completions();
    let both = [Completion::Unreported, Completion::Gathered];
    let sizes = [0, 1, 8, 100, 5000.min(limit)];
    for (round, bytes) in sizes.into_iter().chain(sizes).enumerate() {
        let (completion, expected) = (both[round / sizes.len()], pattern(bytes, 9 + round as u8));
        let mut source = expected.clone();
        let put = Put { pe: 1, target: at(bytes), source: source.as_ptr(), bytes, completion };
        // SAFETY: such a put is short, so the source need only live until the call returns; the range lies in
        // the region.
        group.accepted(|| unsafe { endpoint.put(put) });
        source.fill(0);
        group.until(|| group.region(1)[bytes..2 * bytes] == expected, "the data");
    }
    group.stays_quiet();
    assert_eq!(endpoint.completions(), before);
}
