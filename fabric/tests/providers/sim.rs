//! Features of the simulated network alone: reproducible runs, virtual time by formula, named deadlocks,
//! losses.
//!
//! Each PE is a thread; memory consists of atomics, so that tests may read it while other PEs run.

use pelago_fabric::sim::{Loss, Sim, SimParams};
use pelago_fabric::sync::{AtomicU64, Ordering};
use pelago_fabric::{
    Amo, Atomic, AtomicKind, AtomicOp, Completion, Event, FabricError, Get, Pe, Provider, Put, Remote,
    Status, Token,
};
use std::cell::RefCell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::time::Duration;

const WORDS: usize = 1 << 17;
const SEEDS: u64 = if cfg!(feature = "full") { 1000 } else { 20 };
const FAREWELL: u64 = 99;
const BOUND: Duration = Duration::from_millis(1);

/// A PE of a test: its endpoint and everybody's memory.
struct Member<'a> {
    me: Pe,
    net: Sim,
    memory: &'a [Vec<AtomicU64>],
    /// Headers of the messages that arrived and nobody has waited for yet.
    inbox: RefCell<Vec<u64>>,
}

impl Member<'_> {
    fn word(&self, index: usize) -> u64 {
        self.memory[self.me][index].load(Ordering::Relaxed)
    }

    /// Makes progress; messages go to the inbox.
    fn look(&self) -> usize {
        let mut handle = |event: Event<'_>| {
            if let Event::Message { header, .. } = event {
                self.inbox.borrow_mut().push(header);
            }
        };
        self.net.progress(&mut handle).unwrap()
    }

    fn put(&self, pe: Pe, index: usize, source: &[u64], token: Option<Token>) {
        let target = Remote { key: 0, offset_bytes: index * 8 };
        let (start, bytes) = (source.as_ptr().cast(), source.len() * 8);
        // SAFETY: the callers keep their sources until completion; the range lies in the region.
        while unsafe { self.net.put(Put { pe, source: start, bytes, target, completion: token.into() }) }
            == Status::Again
        {
            self.look();
        }
    }

    fn send(&self, pe: Pe, header: u64) {
        while self.net.send(pe, header, &[]) == Status::Again {
            self.look();
        }
    }

    /// Makes progress and rests until `done` says so.
    fn until(&self, mut done: impl FnMut() -> bool) {
        while !done() {
            if self.look() == 0 && !done() {
                self.net.rest(BOUND);
            }
        }
    }

    fn complete(&self, puts: u64, gets: u64) {
        self.until(|| self.net.completions().puts >= puts && self.net.completions().gets >= gets);
    }

    /// Waits for a message with that header.
    fn receive(&self, header: u64) {
        let position = || self.inbox.borrow().iter().position(|&there| there == header);
        self.until(|| position().is_some());
        let position = position().unwrap();
        self.inbox.borrow_mut().remove(position);
    }

    fn now(&self) -> Duration {
        self.net.virtual_time().unwrap()
    }
}

/// Runs `body` on the PEs of a simulation; the words of those that panicked.
fn run(n_pes: usize, params: &SimParams, body: impl Fn(Member<'_>) + Sync) -> Vec<String> {
    let memory: Vec<Vec<AtomicU64>> =
        (0..n_pes).map(|_| (0..WORDS).map(|_| AtomicU64::new(0)).collect()).collect();
    let words = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (me, mut net) in Sim::threads(n_pes, params.clone()).into_iter().enumerate() {
            let (memory, body, words) = (&memory[..], &body, &words);
            scope.spawn(move || {
                let start = NonNull::new(memory[me].as_ptr().cast_mut().cast()).unwrap();
                net.register(0, start, WORDS * 8).unwrap();
                net.connect(&mut |_| unreachable!("no address is needed")).unwrap();
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(member(me, net, memory)))) {
                    let text = panic.downcast::<String>().map_or_else(|_| "a panic".into(), |text| *text);
                    words.lock().unwrap().push(text);
                }
            });
        }
    });
    words.into_inner().unwrap()
}

fn member(me: Pe, net: Sim, memory: &[Vec<AtomicU64>]) -> Member<'_> {
    Member { me, net, memory, inbox: RefCell::default() }
}

fn check(n_pes: usize, params: &SimParams, body: impl Fn(Member<'_>) + Sync) {
    let words = run(n_pes, params, body);
    assert!(words.is_empty(), "with {params:?}: {words:?}");
}

fn ns(nanoseconds: u64) -> Duration {
    Duration::from_nanos(nanoseconds)
}

/// Times that divide evenly: a byte takes 1 ns.
fn model() -> SimParams {
    SimParams {
        latency: ns(1000),
        overhead: ns(100),
        gap: ns(10),
        poll: ns(20),
        bandwidth_bytes_per_second: 1e9,
        credits: 1000,
        ..SimParams::default()
    }
}

/// A small program with all kinds of traffic; answers who saw what, in order.
fn trace(params: &SimParams) -> Vec<(Pe, String)> {
    let seen = Mutex::new(Vec::new());
    check(3, params, |member| {
        let (me, n) = (member.me, member.memory.len());
        let note = |what: String| seen.lock().unwrap().push((me, what));
        let data: Vec<u64> = (0..100).map(|i| (me * 1000 + i) as u64).collect();
        for round in 0..4 {
            member.put((me + 1) % n, 100 * me, &data, Some(round));
            member.put((me + 1) % n, 90_000, &[u64::from(round) * 10 + me as u64], None);
            member.send((me + 2) % n, u64::from(round));
        }
        while member.inbox.borrow().len() < 4 || member.net.completions().puts < 8 {
            let mut handle = |event: Event<'_>| {
                note(format!("{event:?}"));
                if let Event::Message { header, .. } = event {
                    member.inbox.borrow_mut().push(header);
                }
            };
            member.net.progress(&mut handle).unwrap();
            note(format!("{:?} {} {:?}", member.net.completions(), member.word(90_000), member.now()));
            member.net.rest(BOUND);
        }
        farewell(&member);
    });
    seen.into_inner().unwrap()
}

/// Nobody leaves before all have come here: two rounds of messages over PE 0.
fn farewell(member: &Member<'_>) {
    let n = member.memory.len();
    if member.me == 0 {
        (1..n).for_each(|_| member.receive(FAREWELL));
        (1..n).for_each(|pe| member.send(pe, FAREWELL));
        member.until(|| (1..n).all(|pe| member.memory[pe][WORDS - 1].load(Ordering::Relaxed) == 1));
    } else {
        member.send(0, FAREWELL);
        member.receive(FAREWELL);
        member.memory[member.me][WORDS - 1].store(1, Ordering::Relaxed);
    }
}

#[test]
fn a_seed_decides_the_run() {
    let mut different = HashSet::new();
    for seed in 0..SEEDS {
        let params = SimParams::chaos(seed);
        let first = trace(&params);
        assert!(first == trace(&params), "seed {seed} gave two runs");
        different.insert(first);
    }
    assert!(different.len() as u64 > SEEDS * 9 / 10, "{SEEDS} seeds gave only {} runs", different.len());
    assert!(trace(&model()) == trace(&model()), "virtual time gave two runs");
}

#[test]
fn two_puts_to_one_word_arrive_in_either_order() {
    let outcomes = Mutex::new(HashSet::new());
    for seed in 0..60 {
        check(2, &SimParams::chaos(seed), |member| {
            if member.me == 0 {
                member.put(1, 5, &[1], None);
                member.put(1, 5, &[2], None);
                member.complete(2, 0);
                outcomes.lock().unwrap().insert(member.memory[1][5].load(Ordering::Relaxed));
                member.send(1, 0);
            } else {
                member.receive(0);
                member.send(0, 0);
            }
            if member.me == 0 {
                member.receive(0);
            }
        });
    }
    assert_eq!(outcomes.into_inner().unwrap(), HashSet::from([1, 2]));
}

#[test]
fn a_long_put_may_arrive_in_pieces_but_words_stay_whole() {
    let halves = Mutex::new(0);
    for seed in 0..60 {
        let old_or_new = |word: u64| word == 0 || word == u64::MAX;
        check(2, &SimParams::chaos(seed), |member| {
            if member.me == 0 {
                let source = [u64::MAX; 64];
                member.put(1, 3, &source, None);
                member.complete(1, 0);
                member.receive(0);
            } else {
                let words = || (3..67).map(|i| member.word(i)).collect::<Vec<_>>();
                member.until(|| {
                    let (now, whole) = (words(), words().iter().all(|&word| word == u64::MAX));
                    assert!(now.iter().all(|&word| old_or_new(word)), "a torn word");
                    *halves.lock().unwrap() += usize::from(!whole && now.contains(&u64::MAX));
                    whole
                });
                member.send(0, 0);
            }
        });
    }
    assert!(halves.into_inner().unwrap() > 0, "no put was ever seen half way");
}

#[test]
fn a_put_takes_the_time_of_the_formula() {
    check(2, &model(), |member| {
        if member.me == 1 {
            member.receive(0);
            return;
        }
        for bytes in [8u64, 64, 8192] {
            let (start, before) = (member.now(), member.net.completions().puts);
            let source = vec![7; bytes as usize / 8];
            member.put(1, 0, &source, None);
            assert_eq!(member.now() - start, ns(100), "a put costs its overhead");
            member.complete(before + 1, 0);
            let expected = 100 + (10 + bytes) + 1000 + 1000 + 20;
            assert_eq!(member.now() - start, ns(expected), "a put of {bytes} bytes");
        }
        member.send(1, 0);
    });
}

#[test]
fn a_get_and_an_atomic_take_the_time_of_the_formula() {
    check(2, &model(), |member| {
        if member.me == 1 {
            member.receive(0);
            return;
        }
        let mut target = [1u64; 100];
        let start = member.now();
        let remote = Remote { key: 0, offset_bytes: 0 };
        // SAFETY: the target outlives the wait for completion; the source lies in the region.
        let status = unsafe {
            member.net.get(Get {
                pe: 1,
                target: target.as_mut_ptr().cast(),
                bytes: 800,
                source: remote,
                completion: Completion::Counted,
            })
        };
        assert_eq!(status, Status::Pending);
        member.complete(0, 1);
        assert_eq!(member.now() - start, ns(100 + (1000 + 10) + (1000 + 10 + 800) + 20));
        assert_eq!(target, [0; 100]);

        let start = member.now();
        let add = Atomic { kind: AtomicKind::U32, op: AtomicOp::Add, operand: 3, compare: 0 };
        // SAFETY: the place for the old value outlives the wait; the word lies in the region.
        let status = unsafe {
            member.net.atomic(Amo {
                pe: 1,
                word: remote,
                atomic: add,
                fetched: target.as_mut_ptr().cast(),
                completion: Completion::Counted,
            })
        };
        assert_eq!(status, Status::Pending);
        member.complete(0, 2);
        assert_eq!(member.now() - start, ns(100 + (1000 + 14) + (1000 + 14) + 20));
        assert_eq!(member.memory[1][0].load(Ordering::Relaxed), 3);
        member.send(1, 0);
    });
}

#[test]
fn a_stream_of_puts_is_bound_by_the_card_or_by_the_processor() {
    for (words, per_put) in [(125u64, 10 + 1000), (1, 100)] {
        check(2, &model(), |member| {
            if member.me == 1 {
                member.receive(0);
                return;
            }
            let source = vec![7; words as usize];
            let start = member.now();
            (0..50).for_each(|_| member.put(1, 0, &source, None));
            member.complete(50, 0);
            let occupancy = 10 + 8 * words;
            let last = if per_put == 100 { 50 * 100 + occupancy } else { 100 + 50 * occupancy };
            assert_eq!(member.now() - start, ns(last + 2000 + 20), "50 puts of {words} words");
            member.send(1, 0);
        });
    }
}

#[test]
fn two_senders_share_the_receivers_card() {
    let ends = Mutex::new(Vec::new());
    check(3, &model(), |member| {
        if member.me == 2 {
            member.receive(0);
            member.receive(0);
            return;
        }
        let source = vec![7; 1000];
        member.put(2, 0, &source, None);
        member.complete(1, 0);
        ends.lock().unwrap().push(member.now());
        member.send(2, 0);
    });
    let alone = 100 + 1000 + 8010 + 1000 + 20;
    assert_eq!(ends.into_inner().unwrap(), [ns(alone), ns(alone + 8010)]);
}

#[test]
fn a_sender_has_one_card_for_all_receivers() {
    check(3, &model(), |member| {
        if member.me > 0 {
            member.receive(0);
            return;
        }
        let source = vec![7; 1000];
        (1..3).for_each(|pe| member.put(pe, 0, &source, None));
        member.complete(2, 0);
        assert_eq!(member.now(), ns(100 + 2 * 8010 + 2000 + 20));
        (1..3).for_each(|pe| member.send(pe, 0));
    });
}

/// PEs 0, 1 and 3 on one node, PE 2 on another; inside a node a byte takes half a nanosecond.
fn two_nodes() -> SimParams {
    SimParams {
        nodes: vec![7, 7, 2, 7],
        local_latency: ns(50),
        local_bandwidth_bytes_per_second: 2e9,
        ..model()
    }
}

#[test]
fn inside_a_node_a_put_takes_the_local_times() {
    check(4, &two_nodes(), |member| {
        if member.me != 0 {
            member.receive(0);
            return;
        }
        let near = |bytes: u64| 100 + bytes / 2 + 2 * 50 + 20;
        let far = |bytes: u64| 100 + (10 + bytes) + 2 * 1000 + 20;
        for (to, expected) in [(0, near(8000)), (1, near(8000)), (2, far(8000)), (3, near(8000))] {
            let (start, before) = (member.now(), member.net.completions().puts);
            let source = vec![7; 1000];
            member.put(to, 0, &source, None);
            member.complete(before + 1, 0);
            assert_eq!(member.now() - start, ns(expected), "a put to PE {to}");
        }
        let mut target = [1u64; 100];
        for (of, expected) in [(1, 100 + 400 + 2 * 50 + 20), (2, 100 + 2 * (1000 + 10) + 800 + 20)] {
            let (start, before) = (member.now(), member.net.completions().gets);
            let remote = Remote { key: 0, offset_bytes: 0 };
            // SAFETY: the target outlives the wait for completion; the source lies in the region.
            let status = unsafe {
                member.net.get(Get {
                    pe: of,
                    target: target.as_mut_ptr().cast(),
                    bytes: 800,
                    source: remote,
                    completion: Completion::Counted,
                })
            };
            assert_eq!(status, Status::Pending);
            member.complete(0, before + 1);
            assert_eq!(member.now() - start, ns(expected), "a get from PE {of}");
        }
        (1..4).for_each(|pe| member.send(pe, 0));
    });
}

#[test]
fn pes_of_a_node_share_its_card_in_order_of_time() {
    let ends = Mutex::new(vec![Vec::new(); 5]);
    let params = SimParams { nodes: vec![7, 7, 2, 7, 4], ..two_nodes() };
    check(5, &params, |member| {
        let me = member.me;
        if me == 2 || me == 4 {
            return member.receive(0);
        }
        // PE 0 starts both its puts in one turn, at 100 and 200, PE 1 its put at 150: that goes between them.
        if me == 1 {
            member.net.compute(ns(50));
        }
        let (to, times) = [(2, 2), (4, 1), (2, 0), (1, 1)][me];
        let source = vec![7; 1000];
        (0..times).for_each(|_| member.put(to, 0, &source, None));
        for put in 1..=times {
            member.complete(put, 0);
            ends.lock().unwrap()[me].push(member.now());
        }
        if me < 2 {
            member.send(to, 0);
        }
    });
    let put = |number: u64| ns(100 + number * 8010 + 2000 + 20);
    let ends = ends.into_inner().unwrap();
    assert_eq!(ends[0], [put(1), put(3)]);
    assert_eq!(ends[1], [put(2)]);
    assert_eq!(ends[3], [ns(100 + 4000 + 100 + 20)], "a local put waits for no card");
}

#[test]
fn pes_of_a_node_share_its_card_for_what_arrives() {
    let ends = Mutex::new(Vec::new());
    let params = SimParams { nodes: vec![0, 1, 2, 2], ..two_nodes() };
    check(4, &params, |member| {
        if member.me >= 2 {
            member.receive(0);
            return;
        }
        let source = vec![7; 1000];
        member.put(member.me + 2, 0, &source, None);
        member.complete(1, 0);
        ends.lock().unwrap().push(member.now());
        member.send(member.me + 2, 0);
    });
    let alone = 100 + 1000 + 8010 + 1000 + 20;
    assert_eq!(ends.into_inner().unwrap(), [ns(alone), ns(alone + 8010)]);
}

#[test]
fn a_pe_moves_one_local_message_after_another() {
    check(4, &two_nodes(), |member| {
        if member.me != 0 {
            return member.receive(0);
        }
        let source = vec![7; 1000];
        [1, 3, 1].into_iter().for_each(|pe| member.put(pe, 0, &source, None));
        member.complete(3, 0);
        assert_eq!(member.now(), ns(100 + 3 * 4000 + 2 * 50 + 20));
        (1..4).for_each(|pe| member.send(pe, 0));
    });
}

#[test]
fn runs_on_nodes_repeat() {
    let nodes = vec![3, 0, 3];
    let model = SimParams { nodes: nodes.clone(), ..model() };
    assert!(trace(&model) == trace(&model), "virtual time gave two runs");
    let alone = SimParams { nodes: Vec::new(), ..model.clone() };
    assert!(trace(&model) != trace(&alone), "nodes change nothing");
    for seed in 0..SEEDS {
        let params = SimParams { nodes: nodes.clone(), ..SimParams::chaos(seed) };
        assert!(trace(&params) == trace(&params), "seed {seed} gave two runs");
    }
}

#[test]
#[should_panic(expected = "the nodes of 2 PEs are given for a simulation of 3")]
fn nodes_are_given_for_all_pes_or_none() {
    Sim::open(3, SimParams { nodes: vec![0, 0], ..model() });
}

#[test]
fn computing_and_sending_overlap() {
    check(2, &model(), |member| {
        let source = vec![7; 10_000];
        member.put(1 - member.me, 0, &source, None);
        member.net.compute(Duration::from_millis(1));
        member.complete(1, 0);
        assert_eq!(member.now(), ns(100 + 1_000_000 + 20), "80 us of transfer hide behind the computation");
        member.send(1 - member.me, 0);
        member.receive(0);
    });
}

#[test]
fn a_rest_ends_when_a_put_arrives() {
    check(2, &model(), |member| {
        if member.me == 0 {
            member.net.compute(Duration::from_secs(1));
            member.put(1, 9, &[4], None);
            member.complete(1, 0);
            member.receive(0);
        } else {
            member.until(|| member.word(9) == 4);
            let expected = Duration::from_secs(1) + ns(100 + 1000 + 18);
            assert!(member.now() >= expected && member.now() <= expected + ns(20), "{:?}", member.now());
            member.send(0, 0);
        }
    });
}

#[test]
fn what_arrives_between_the_look_and_the_rest_is_not_slept_over() {
    check(2, &model(), |member| {
        if member.me == 0 {
            member.put(1, 9, &[4], None);
            member.net.compute(Duration::from_secs(1));
            member.complete(1, 0);
            member.receive(0);
        } else {
            while member.word(9) == 0 {
                member.look();
            }
            member.net.rest(BOUND);
            assert!(member.now() < ns(2000), "rested until {:?}", member.now());
            member.send(0, 0);
        }
    });
}

#[test]
fn a_deadlock_is_named() {
    for params in [SimParams { hopeless_rounds: 100, ..model() }, SimParams::chaos(3)] {
        let words = run(3, &params, |member| {
            if member.me < 2 {
                member.receive(0);
            }
        });
        assert_eq!(words.len(), 2, "{words:?}");
        assert!(words[0].contains("deadlock in the simulation of seed"), "{words:?}");
        assert!(words.iter().any(|w| w.contains("PEs [0, 1] wait, PEs [2] are gone")), "{words:?}");
    }
}

#[test]
fn polling_in_vain_is_a_deadlock_too() {
    let words = run(2, &SimParams { hopeless_rounds: 100, ..model() }, |member| {
        while member.net.progress(&mut |_| ()).unwrap() == 0 {}
    });
    assert_eq!(words.len(), 2, "{words:?}");
}

#[test]
fn what_others_wait_for_outside_of_the_network_is_seen() {
    let flag = AtomicU64::new(0);
    for params in [model(), SimParams::chaos(1), SimParams::chaos(2)] {
        flag.store(0, Ordering::Relaxed);
        check(2, &params, |member| {
            if member.me == 0 {
                member.until(|| flag.load(Ordering::Relaxed) == 1);
                flag.store(2, Ordering::Relaxed);
            } else {
                (0..10).for_each(|_| drop(member.net.progress(&mut |_| ())));
                flag.store(1, Ordering::Relaxed);
                while flag.load(Ordering::Relaxed) != 2 {
                    member.net.progress(&mut |_| ()).unwrap();
                }
            }
        });
    }
}

#[test]
fn a_lost_peer_surfaces_once_at_each_endpoint() {
    let lose = Some(Loss { pe: 2, after_operations: 7 });
    for params in [SimParams { lose, ..model() }, SimParams { lose, credits: 3, ..SimParams::chaos(11) }] {
        check(3, &params, |member| {
            let context = member.net.context().unwrap();
            if member.me == 2 {
                let words = catch_unwind(AssertUnwindSafe(|| member.receive(0))).unwrap_err();
                assert!(words.downcast::<String>().unwrap().contains("PE 2 is lost"));
                return;
            }
            let mut errors = [0, 0];
            let look = |errors: &mut [i32; 2]| {
                for (net, errors) in [&member.net, &context].into_iter().zip(errors) {
                    if let Err(error) = net.progress(&mut |_| ()) {
                        *errors += 1;
                        let me = member.me;
                        assert!(matches!(error, FabricError::PeerLost { pe, peer: 2, .. } if pe == me));
                    }
                }
            };
            let target = Remote { key: 0, offset_bytes: 0 };
            for _ in 0..100 {
                // SAFETY: a word is injected, and lies in the region.
                while unsafe {
                    member.net.put(Put {
                        pe: 2,
                        source: [1u64].as_ptr().cast(),
                        bytes: 8,
                        target,
                        completion: Completion::Counted,
                    })
                } == Status::Again
                {
                    look(&mut errors);
                }
            }
            (0..100).for_each(|_| look(&mut errors));
            assert_eq!(errors, [1, 1]);
            assert!(member.net.completions().puts < 7);
        });
    }
}

#[test]
fn a_put_to_a_pe_that_has_left_is_an_error() {
    check(2, &model(), |member| {
        if member.me == 0 {
            member.net.compute(Duration::from_secs(1));
            member.net.progress(&mut |_| ()).unwrap();
            member.put(1, 0, &[1], None);
            let error = (0..1000).find_map(|_| member.net.progress(&mut |_| ()).err());
            assert!(matches!(error, Some(FabricError::PeerLost { pe: 0, peer: 1, operation: "a put" })));
            assert_eq!(member.memory[1][0].load(Ordering::Relaxed), 0);
        }
    });
}

#[test]
fn what_is_injected_arrives_after_its_endpoint_is_gone() {
    for params in [model(), SimParams::chaos(4), SimParams::chaos(5)] {
        check(2, &params, |member| {
            if member.me == 0 {
                let long = vec![9; 1000];
                member.put(1, 100, &long, None);
                member.net.progress(&mut |_| ()).unwrap();
                let context = member.net.context().unwrap();
                let target = Remote { key: 0, offset_bytes: 0 };
                // SAFETY: a word is injected, and lies in the region.
                while unsafe {
                    context.put(Put {
                        pe: 1,
                        source: [5u64].as_ptr().cast(),
                        bytes: 8,
                        target,
                        completion: Completion::Counted,
                    })
                } == Status::Again
                {}
            } else {
                member.until(|| member.word(0) == 5);
                assert!(params.chaos || member.word(100) == 0, "memory was read after it had gone");
            }
        });
    }
}

#[test]
fn two_threads_of_a_pe_share_its_turns() {
    for params in [model(), SimParams::chaos(8)] {
        check(2, &params, |member| {
            if member.me == 1 {
                member.receive(1);
                return;
            }
            let context = member.net.context().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let target = Remote { key: 0, offset_bytes: 0 };
                    for _ in 0..100 {
                        let word = [5u64];
                        // SAFETY: a word is injected, and lies in the region.
                        while unsafe {
                            context.put(Put {
                                pe: 1,
                                source: word.as_ptr().cast(),
                                bytes: 8,
                                target,
                                completion: Completion::Counted,
                            })
                        } == Status::Again
                        {
                            context.progress(&mut |_| ()).unwrap();
                        }
                    }
                    while context.completions().puts < 100 {
                        if context.progress(&mut |_| ()).unwrap() == 0 {
                            context.rest(BOUND);
                        }
                    }
                });
                (0..100).for_each(|i| member.put(1, 1, &[i], None));
                member.complete(100, 0);
            });
            member.send(1, 1);
        });
    }
}
