//! Contexts, scopes, regions and handles: which operations complete with which call, which stay outstanding,
//! and that no buffer is accessed after its lifetime.

use crate::common;
use pelago::prelude::*;
use pelago::sim::SimParams;
use pelago::{AtomicOp, Context, ContextKind, ErrorKind, Spmd, SpmdError, Strided, View};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

everywhere! {
    order_in_a_context(2): order_in_a_context;
    contexts_order_apart(2): contexts_order_apart;
    many_contexts(3): many_contexts;
    dropping_completes(3): dropping_completes;
    phases_and_frees_wait_for_contexts(3): phases_and_frees_wait_for_contexts;
    nested_scopes_and_regions(3): nested_scopes_and_regions;
    handles_of_all_fates(3): handles_of_all_fates;
    implicit_handles(3): implicit_handles;
    a_scope_that_panics_alone(2): a_scope_that_panics_alone;
}

const KINDS: [ContextKind; 3] = [ContextKind::Shared, ContextKind::Serialized, ContextKind::Private];

fn context(world: &World) -> Context<'_> {
    world.context(ContextKind::default()).unwrap()
}

/// The flag that follows the data after a context's fence, or its quiet, shows that the data are delivered.
fn order_in_a_context(world: &World) {
    let data = world.alloc_zeroed::<u64>(64).unwrap();
    let flag = world.alloc_zeroed::<u64>(1).unwrap();
    let stream = context(world);
    let (data_there, flag_there) = (data.via(&stream), flag.via(&stream));
    let other = 1 - world.my_pe();
    for round in 1..=common::rounds(world, 2000, 10) {
        let put = || {
            data_there.put(other, 0, &[round; 64]).unwrap();
            data_there.inc(other, 63).unwrap();
            if round % 2 == 0 {
                stream.fence()
            } else {
                stream.quiet()
            }
            flag_there.p(other, 0, round).unwrap();
        };
        // PE 0 sends and waits for the reply; PE 1 replies.
        if world.my_pe() == 0 {
            put();
        }
        flag.local().wait_until(0, |value| value == round);
        assert!((0..63).all(|i| data.local().get(i) == round), "round {round}");
        assert!([round, round + 1].contains(&data.local().get(63)));
        if world.my_pe() == 1 {
            put();
        }
        world.barrier();
    }
}

/// The completion of one context's operations may be announced through another, or through the world.
fn contexts_order_apart(world: &World) {
    let data = world.alloc_zeroed::<u32>(50).unwrap();
    let flag = world.alloc_zeroed::<u32>(1).unwrap();
    let (first, second) = (context(world), context(world));
    let other = 1 - world.my_pe();
    for round in 1..=common::rounds(world, 1000, 10) as u32 {
        if world.my_pe() == 0 {
            data.via(&first).put(other, 0, &[round; 50]).unwrap();
            first.quiet();
            match round % 3 {
                0 => flag.via(&second).p(other, 0, round).unwrap(),
                1 => flag.via(&second).atomic_set(other, 0, round).unwrap(),
                _ => flag.p(other, 0, round).unwrap(),
            }
            flag.local().wait_until(0, |value| value == round);
        } else {
            flag.local().wait_until(0, |value| value == round);
            assert_eq!(data.local().to_vec(), [round; 50]);
            flag.p(other, 0, round).unwrap();
        }
    }
}

/// A large number of contexts, of all kinds, with puts, gets and atomics in each.
fn many_contexts(world: &World) {
    let (me, n, count) = (world.my_pe(), world.n_pes(), 20);
    let right = (me + 1) % n;
    let array = world.alloc_zeroed::<u64>(count).unwrap();
    let sum = world.alloc_zeroed::<u64>(1).unwrap();
    let contexts: Vec<_> = (0..count).map(|i| world.context(KINDS[i % 3]).unwrap()).collect();
    for (i, context) in contexts.iter().enumerate() {
        assert_eq!(context.kind(), KINDS[i % 3]);
        array.via(context).p(right, i, (me * 100 + i) as u64).unwrap();
        sum.via(context).add(right, 0, i as u64).unwrap();
    }
    contexts.iter().for_each(Context::quiet);
    world.barrier();
    let left = (me + n - 1) % n;
    assert!((0..count).all(|i| array.local().get(i) == (left * 100 + i) as u64));
    assert_eq!(sum.local().get(0), (count * (count - 1) / 2) as u64);
    for (i, context) in contexts.iter().enumerate() {
        assert_eq!(array.via(context).g(right, i).unwrap(), (me * 100 + i) as u64);
    }
    world.barrier();
}

fn dropping_completes(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let array = world.alloc_zeroed::<u64>(300).unwrap();
    for round in 1..=common::rounds(world, 50, 5) {
        let stream = context(world);
        array.via(&stream).put((me + 1) % n, 0, &[round; 299]).unwrap();
        array.via(&stream).inc((me + 1) % n, 299).unwrap();
        drop(stream);
        world.barrier();
        assert_eq!(array.local().to_vec()[..299], [round; 299]);
        assert_eq!(array.local().get(299), round);
        world.barrier();
    }
}

/// When a PE begins an exclusive phase of an array, or reuses its memory for another array, no operation on
/// it is outstanding on any context, even a forgotten one.
fn phases_and_frees_wait_for_contexts(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let right = (me + 1) % n;
    let mut array = world.alloc_zeroed::<u64>(100).unwrap();
    for round in 1..=common::rounds(world, 30, 5) {
        let stream = context(world);
        put_all(&array.via(&stream), right, round);
        array.exclusive(|part| assert_eq!(part, [round; 100])).unwrap();
        put_all(&array.via(&stream), right, round);
        drop(array);
        if round % 2 == 0 {
            std::mem::forget(stream);
        }
        array = world.alloc_zeroed::<u64>(100).unwrap();
        let alone = array.exclusive(|part| part.iter().all(|&element| element == 0));
        assert!(alone.unwrap(), "a put to an array that is gone has reached the next one");
    }
}

/// Puts a value into each of 100 elements by itself: many operations, some of which are delivered late.
fn put_all(array: &View<'_, u64>, pe: Pe, value: u64) {
    (0..100).for_each(|index| array.p(pe, index, value).unwrap());
}

fn nested_scopes_and_regions(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let right = (me + 1) % n;
    let array = world.alloc_zeroed::<u32>(400).unwrap();
    let stream = context(world);
    let through = array.via(&stream);
    let sources: Vec<Vec<u32>> = (1..=4).map(|i| vec![(10 * me + i) as u32; 100]).collect();
    let mut back = vec![0; 400];
    world.scope(|outer| {
        outer.put(&array, right, 0, &sources[0]).unwrap();
        let early = outer.region();
        early.put(&through, right, 100, &sources[1]).unwrap();
        let inner_source = vec![(10 * me + 3) as u32; 100];
        world.scope(|inner| {
            inner.put(&array, right, 200, &inner_source).unwrap();
            early.put(&array, right, 300, &sources[3]).unwrap();
            let unused = inner.region();
            unused.wait();
            unused.wait_local();
            assert!(unused.test());
        });
        drop(inner_source);
        early.wait_local();
        while !early.test() {
            world.progress();
        }
        outer.quiet();
        assert!(outer.test(), "the scope is a region as well");
        outer.get(&array, right, 0, &mut back).unwrap();
    });
    assert_eq!(back, sources.concat());
    world.barrier();
    let left = (me + n - 1) % n;
    assert_eq!(array.local().to_vec(), [1, 2, 3, 4].map(|i| [(10 * left + i) as u32; 100]).concat());
    let value = world.scope(|scope| scope.get(&array, n, 0, &mut back).map_err(|error| error.to_string()));
    assert!(value.unwrap_err().contains("names PE"));
}

fn handles_of_all_fates(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    let array = world.alloc_zeroed::<u64>(500).unwrap();
    let stream = context(world);
    for round in 1..=common::rounds(world, 20, 4) {
        let value = |from: usize, i: usize| round * 1000 + (from * 10 + i) as u64;
        let put = |i: usize| array.put_nb(right, i * 100, vec![value(me, i); 100]).unwrap();
        let (waited, local, tested) = (put(0), put(1), put(2));
        assert_eq!(waited.wait(), [value(me, 0); 100]);
        assert_eq!(local.wait_local(), [value(me, 1); 100]);
        while !tested.test() {
            world.progress();
        }
        drop(tested);
        drop(put(3));
        let through = array.via(&stream);
        std::mem::forget(through.put_nb(right, 400, vec![value(me, 4); 100]).unwrap());
        stream.quiet();
        world.barrier();
        for i in 0..5 {
            assert!(array.local().to_vec()[i * 100..][..100].iter().all(|&v| v == value(left, i)), "{i}");
        }
        let gets: Vec<_> = (0..5).map(|i| array.get_nb(right, i * 100, vec![0; 100]).unwrap()).collect();
        for (i, get) in gets.into_iter().enumerate().rev() {
            match i {
                0 => drop(get),
                1 => std::mem::forget(get),
                2 => assert_eq!(get.wait_local(), [value(me, i); 100]),
                _ => assert_eq!(get.wait(), [value(me, i); 100]),
            }
        }
        world.barrier();
    }
    array.free().unwrap();
}

fn implicit_handles(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let (left, right) = ((me + n - 1) % n, (me + 1) % n);
    let array = world.alloc_zeroed::<u16>(200).unwrap();
    let stream = context(world);
    let through = array.via(&stream);
    for round in 1..=common::rounds(world, 50, 5) as u16 {
        let source: Vec<u16> = (0..100).map(|i| round * 256 + me as u16 + i).collect();
        let (mut first, mut second) = ([0; 100], [0; 100]);
        // SAFETY: sources and targets live until the quiets below, and no code reads the targets before.
        unsafe {
            array.put_nbi(right, 0, &source).unwrap();
            through.put_nbi(right, 100, &source).unwrap();
            world.quiet();
            array.get_nbi(right, 0, &mut first).unwrap();
            stream.quiet();
            through.get_nbi(right, 100, &mut second).unwrap();
            stream.quiet();
            world.quiet();
            assert!(array.put_nbi(n, 0, &source).is_err() && array.get_nbi(0, 101, &mut first).is_err());
        }
        assert_eq!((&first[..], &second[..]), (&source[..], &source[..]));
        world.barrier();
        let mine = array.local().to_vec();
        assert!((0..200).all(|i| mine[i] == round * 256 + left as u16 + (i % 100) as u16));
        world.barrier();
    }
}

/// A panic that is caught outside of the scope: the scope has completed all its operations before.
fn a_scope_that_panics_alone(world: &World) {
    let array = world.alloc_zeroed::<u64>(100).unwrap();
    let other = 1 - world.my_pe();
    let (source, mut target) = (vec![5; 100], vec![0; 100]);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        world.scope(|scope| {
            let region = scope.region();
            region.put(&array, other, 0, &source).unwrap();
            scope.quiet();
            scope.get(&array, other, 0, &mut target).unwrap();
            resume_unwind(Box::new("on purpose"));
        })
    }));
    assert!(caught.is_err());
    assert_eq!(target, source);
    world.barrier();
    assert_eq!(array.local().to_vec(), source);
}

/// Runs a body of two PEs over many simulated networks; returns on how many of them PE 0, and PE 1, return
/// true.
fn how_often(body: impl Fn(&World) -> bool + Sync) -> [usize; 2] {
    let mut counts = [0; 2];
    for seed in 0..40 {
        let answers = Spmd::new(2).sim(SimParams::chaos(seed)).run(&body);
        let answers = answers.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        answers.iter().zip(&mut counts).for_each(|(&answer, count)| *count += usize::from(answer));
    }
    counts
}

/// Puts of 8 KiB through one context stay outstanding while another context, or the world, calls quiet. In
/// each run, they are complete after their own quiet.
fn stays_under_way(quiet: impl Fn(&World, &Context<'_>, &Context<'_>) + Sync, via_world: bool) -> usize {
    let body = |world: &World| {
        let array = world.alloc_zeroed::<u64>(1024 + 1).unwrap();
        let (first, second) = (context(world), context(world));
        let (through_first, through_second) = (array.via(&first), array.via(&second));
        let long = if via_world { &*array } else { &through_first };
        let source = vec![7; 1024];
        let mut is_under_way = false;
        if world.my_pe() == 0 {
            world.scope(|scope| {
                scope.put(long, 1, 0, &source).unwrap();
                through_second.p(1, 1024, 7).unwrap();
                quiet(world, &first, &second);
                is_under_way = !scope.test();
                if via_world {
                    world.quiet()
                } else {
                    first.quiet()
                }
                assert!(scope.test(), "its own quiet completes it");
                second.quiet();
            });
        }
        world.barrier();
        assert!(world.my_pe() == 0 || array.local().to_vec().iter().all(|&element| element == 7));
        is_under_way
    };
    how_often(body)[0]
}

#[test]
fn quiet_completes_its_own_context_only() {
    let other = stays_under_way(|_, _, second| second.quiet(), false);
    let world = stays_under_way(|world, _, _| world.quiet(), false);
    let fence = stays_under_way(|world, _, _| world.fence(), false);
    let worlds_own = stays_under_way(|_, _, second| second.quiet(), true);
    let counts = [other, world, fence, worlds_own];
    assert!(counts.iter().all(|&count| count > 0), "on some networks it stays under way: {counts:?} of 40");
    let own = stays_under_way(|_, first, _| first.quiet(), false);
    let worlds = stays_under_way(|world, _, _| world.quiet(), true);
    assert_eq!([own, worlds], [0, 0], "its own quiet never leaves it under way");
}

/// After a barrier the puts of a context may be missing; those of the world may not.
#[test]
fn a_barrier_completes_no_contexts() {
    let stale = how_often(|world| {
        let array = world.alloc_zeroed::<u64>(60).unwrap();
        let stream = context(world);
        if world.my_pe() == 0 {
            let through = array.via(&stream);
            array.p(1, 0, 7).unwrap();
            (1..60).for_each(|i| through.p(1, i, 7).unwrap());
        }
        world.barrier();
        let now = array.local().to_vec();
        assert!(world.my_pe() == 0 || now[0] == 7, "the world's own put is complete");
        stream.quiet();
        world.barrier();
        assert!(world.my_pe() == 0 || array.local().to_vec() == [7; 60]);
        now != [7; 60]
    });
    assert!(stale[1] > 0, "on no network did a put through a context come after the barrier");
}

/// A phase waits for a context with many outstanding operations, some of which would otherwise be delivered
/// after the agreement.
#[test]
fn a_phase_waits_for_all_that_is_under_way() {
    for seed in 0..20 {
        let params = SimParams { credits: 5000, again: 0.0, ..SimParams::chaos(seed) };
        let run = |world: &World| {
            let mut array = world.alloc_zeroed::<u64>(3000).unwrap();
            let stream = context(world);
            if world.my_pe() == 0 {
                let through = array.via(&stream);
                (0..3000).for_each(|index| through.p(1, index, 7).unwrap());
            }
            let missing = array.exclusive(|part| part.iter().filter(|&&element| element == 0).count());
            assert!(world.my_pe() == 0 || missing.unwrap() == 0);
        };
        Spmd::new(2).sim(params).run(run).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// Overwrites a buffer when it is dropped, as the next owner of the memory would do.
struct Reuse<'a>(&'a Mutex<Vec<u64>>);

const REUSED: u64 = 0xDEAD;

impl Drop for Reuse<'_> {
    fn drop(&mut self) {
        // The panicking thread holds no lock: it lent the buffer by address.
        self.0.lock().unwrap().fill(REUSED);
    }
}

/// A get of half a buffer on the world and of the other half on a context, during which PE 1 fails.
fn fails_during_gets(world: &World, buffer: &Mutex<Vec<u64>>) {
    let array = world.alloc_zeroed::<u64>(1000).unwrap();
    let flag = world.alloc_zeroed::<u64>(1).unwrap();
    let stream = context(world);
    let through = array.via(&stream);
    let me = world.my_pe();
    let (start, len) = {
        let mut buffer = buffer.lock().unwrap();
        (buffer.as_mut_ptr(), buffer.len())
    };
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: no other code uses the buffer before `_reuse` is dropped, which is after the last use of
        // this slice.
        let (first, second) = unsafe { std::slice::from_raw_parts_mut(start, len) }.split_at_mut(len / 2);
        let _reuse = Reuse(buffer);
        let source = vec![1; 500];
        if me == 1 {
            panic!("on purpose");
        }
        world.scope(|scope| {
            scope.region().put(&array, (me + 1) % 3, 0, &source).unwrap();
            scope.get(&array, (me + 2) % 3, 0, first).unwrap();
            scope.get(&through, (me + 2) % 3, 0, second).unwrap();
            flag.local().wait_until(0, |value| value == 1);
        });
    }));
    // Operations that are still outstanding would be delivered now.
    let looks = if me == 1 { 0 } else { 100 };
    (0..looks).for_each(|_| world.progress());
    resume_unwind(unwound.unwrap_err());
}

/// PE 1 fails while PEs 0 and 2 have outstanding gets into buffers, which belong to others as soon as the PEs
/// have unwound. The job ends with PE 1's message, and the buffers keep the contents of their next owners.
#[test]
fn buffers_are_not_touched_after_unwinding() {
    const NOT_LENT: u64 = 9;
    let mut reused = 0;
    for seed in 0..40 {
        let buffers: [Mutex<Vec<u64>>; 3] = std::array::from_fn(|_| Mutex::new(vec![NOT_LENT; 1000]));
        let run = |world: &World| fails_during_gets(world, &buffers[world.my_pe()]);
        let outcome = Spmd::new(3).sim(SimParams::chaos(seed)).run(run);
        let expected = "PE 1 panicked: on purpose";
        assert_eq!(outcome.unwrap_err().to_string(), expected, "seed {seed}");
        for (pe, buffer) in buffers.into_iter().enumerate() {
            let buffer = buffer.into_inner().unwrap();
            // A PE that detects the failure early lends no buffer.
            assert!([NOT_LENT, REUSED].contains(&buffer[0]), "seed {seed}: PE {pe}'s buffer was touched");
            assert!(
                buffer.iter().all(|&word| word == buffer[0]),
                "seed {seed}: PE {pe}'s buffer was touched"
            );
            reused += usize::from(buffer[0] == REUSED);
        }
    }
    assert!(reused >= 60, "only {reused} of 120 buffers were lent");
}

/// A PE fails in nested scopes, with outstanding handles and contexts: its message is the job's.
fn fails_with_everything_under_way(world: &World) {
    let array = world.alloc_zeroed::<u64>(1000).unwrap();
    let stream = context(world);
    let through = array.via(&stream);
    let right = (world.my_pe() + 1) % world.n_pes();
    let _put = array.put_nb(right, 0, vec![1; 100]).unwrap();
    let _get = through.get_nb(right, 100, vec![1; 100]).unwrap();
    let _old = array.fetch_amo_nb(right, 999, AtomicOp::Add, 1).unwrap();
    let (source, mut target) = ([2; 300], [0; 300]);
    world.scope(|outer| {
        outer.put(&through, right, 200, &source).unwrap();
        world.scope(|inner| {
            inner.region().put(&array, right, 500, &source).unwrap();
            if world.my_pe() == 1 {
                panic!("on purpose");
            }
        });
        outer.get(&array, right, 500, &mut target).unwrap();
        world.barrier();
    });
}

#[test]
fn a_job_that_fails_with_everything_under_way_ends() {
    let runs = (0..40).map(|seed| Spmd::new(3).sim(SimParams::chaos(seed))).chain([Spmd::new(3)]);
    for (i, run) in runs.enumerate() {
        match run.run(fails_with_everything_under_way) {
            Err(SpmdError::Panicked { pe: 1, message }) => assert_eq!(message, "on purpose"),
            outcome => panic!("run {i}: {outcome:?}"),
        }
    }
}

#[test]
fn processes_that_fail_with_everything_under_way_end() {
    // Both jobs before the first assertion: a copy of the test program skips the job that is not its own.
    let mapped = pelago::try_processes!(3, [], fails_with_everything_under_way);
    let net = pelago::try_processes!(3, [("PELAGO_ROUTE", "net")], fails_with_everything_under_way);
    for report in [mapped, net] {
        let failure = report.failures.first().expect("the job fails");
        assert!(failure.pe == Some(1) && failure.text.contains("on purpose"), "{}", failure.text);
    }
}

/// Jobs within a PE of a job: no operation uses the wrong job.
#[test]
fn contexts_and_scopes_of_other_worlds_are_refused() {
    let body = |outer: &World| {
        let array = outer.alloc_zeroed::<u64>(4).unwrap();
        let stream = context(outer);
        let inner = |inner: &World| {
            let (mut first, mut second, mut old) = ([0], [0], 0);
            let every_other = Strided { array_stride: 2, ..Strided::elements(2) };
            let refusals = inner.scope(|scope| {
                let region = scope.region();
                [
                    scope.put(&array, 0, 0, &[1]),
                    region.put(&array, 0, 0, &[1]),
                    scope.get(&array, 0, 0, &mut first),
                    scope.put_strided(&array, 0, 0, &[1; 2], &every_other),
                    region.get_strided(&array, 0, 0, &mut second, &Strided::elements(1)),
                    scope.fetch_amo(&array, 0, 0, AtomicOp::Add, 1, &mut old),
                ]
            });
            let is_refusal = |e: &pelago::Error| matches!(e.kind(), ErrorKind::OtherWorld { .. });
            assert!(refusals.iter().all(|outcome| outcome.as_ref().is_err_and(is_refusal)), "{refusals:?}");
            let own = inner.alloc_zeroed::<u64>(4).unwrap();
            own.via(&stream).p(0, 0, 1).unwrap();
        };
        let text = spmd(1, inner).unwrap_err().to_string();
        assert_eq!(array.local().to_vec(), [0; 4]);
        text
    };
    let expected = ["PE 0 panicked: PE 0: an array seen through a context of another world"];
    assert_eq!(Spmd::new(1).run(body).unwrap(), expected);
    assert_eq!(Spmd::new(1).sim(SimParams::default()).run(body).unwrap(), expected);
}
