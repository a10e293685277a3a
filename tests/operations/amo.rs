//! Atomics: every type, operation and form against the model, many PEs on one word, waking of sleepers, and
//! errors.

use crate::common;
use crate::model::next;
use pelago::prelude::*;
use pelago::sim::SimParams;
use pelago::{AtomicElement, AtomicInteger, AtomicOp, ErrorKind, Spmd, View};
use proptest::prelude::*;
use std::mem::MaybeUninit;

everywhere! {
    all_operations_on_all_types(2): all_operations_on_all_types;
    named_operations(3): named_operations;
    nothing_is_lost(5): nothing_is_lost;
    fetched_values_are_distinct(4): fetched_values_are_distinct;
    a_compare_swap_loop(4): a_compare_swap_loop;
    bits_and_extremes(4): bits_and_extremes;
    sums_of_floats(4): sums_of_floats;
    waiters_are_woken(2): waiters_are_woken;
    handles_and_scopes(3): handles_and_scopes;
    alone(1): all_operations_on_all_types;
}

/// The forms of calls that start an atomic and return the old value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Plain,
    Fetch,
    Handle,
    Scope,
    Region,
    Implicit,
    Context,
}

const FORMS: [Form; 7] =
    [Form::Plain, Form::Fetch, Form::Handle, Form::Scope, Form::Region, Form::Implicit, Form::Context];

/// Executes an operation in some form; returns the old value if the form has one. The atomic is complete at
/// return.
fn execute<T: AtomicElement>(
    array: &View<'_, T>,
    (pe, index): (Pe, usize),
    form: Form,
    op: AtomicOp,
    (operand, compare): (T, T),
) -> Option<T> {
    let world = array.world();
    if op.takes_comparison() {
        return Some(match form {
            Form::Handle => array.compare_amo_nb(pe, index, op, compare, operand).unwrap().wait(),
            Form::Context => {
                let context = world.context(Default::default()).unwrap();
                array.via(&context).compare_amo(pe, index, op, compare, operand).unwrap()
            }
            _ => array.compare_amo(pe, index, op, compare, operand).unwrap(),
        });
    }
    let mut old = operand;
    match form {
        Form::Plain => {
            array.amo(pe, index, op, operand).unwrap();
            world.quiet();
            return None;
        }
        Form::Fetch => old = array.fetch_amo(pe, index, op, operand).unwrap(),
        Form::Handle => old = array.fetch_amo_nb(pe, index, op, operand).unwrap().wait(),
        Form::Scope => {
            world.scope(|scope| scope.fetch_amo(array, pe, index, op, operand, &mut old)).unwrap();
        }
        Form::Region => world.scope(|scope| {
            let region = scope.region();
            region.fetch_amo(array, pe, index, op, operand, &mut old).unwrap();
            region.wait();
            assert!(region.test());
        }),
        Form::Implicit => {
            let mut place = MaybeUninit::uninit();
            // SAFETY: the quiet in the next line comes before the result is read or freed.
            unsafe { array.fetch_amo_nbi(pe, index, op, operand, &mut place).unwrap() };
            world.quiet();
            // SAFETY: the quiet has completed the atomic, which has written the old value.
            old = unsafe { place.assume_init() };
        }
        Form::Context => {
            let context = world.context(Default::default()).unwrap();
            let through = array.via(&context);
            through.amo(pe, index, op, operand).unwrap();
            context.quiet();
            return None;
        }
    }
    Some(old)
}

/// Each PE on words of its own: every operation in every form, on all pairs of some values.
fn all_operations_on_all_types(world: &World) {
    fn check<T: AtomicElement>(world: &World, values: [T; 4]) {
        let (me, n) = (world.my_pe(), world.n_pes());
        let right = (me + 1) % n;
        let array = world.alloc_zeroed::<T>(3).unwrap();
        array.local().write(0, &[values[1]; 3]);
        world.barrier();
        let mut word = values[1];
        let operations = AtomicOp::ALL.into_iter().filter(|op| op.is_defined_for(T::KIND));
        let cases = operations.flat_map(|op| values.map(|operand| (op, operand)));
        for (i, (op, operand)) in cases.enumerate() {
            let (form, compare) = (FORMS[i % FORMS.len()], values[i / 3 % 4]);
            let old = execute(&array, (right, 1), form, op, (operand, compare));
            let bits = |value: T| value.to_word();
            assert!(old.is_none_or(|old| bits(old) == bits(word)), "{op:?} as {form:?}: the old value");
            word = next(op, word, operand, compare);
            let now = array.atomic_fetch(right, 1).unwrap();
            assert_eq!(bits(now), bits(word), "{op:?} as {form:?}: the new value");
        }
        world.barrier();
        let (before, after) = (array.local().get(0), array.local().get(2));
        assert_eq!((before.to_word(), after.to_word()), (values[1].to_word(), values[1].to_word()));
    }
    check::<i32>(world, [0, -7, i32::MAX, 0x5A5A]);
    check::<u32>(world, [0, 7, u32::MAX, 0x8000_0000]);
    check::<i64>(world, [0, -7, i64::MIN, 0x5A5A_5A5A_5A5A]);
    check::<u64>(world, [0, 7, u64::MAX, 0x8000_0000_0000_0000]);
    check::<isize>(world, [0, -7, isize::MAX, 1]);
    check::<usize>(world, [0, 7, usize::MAX, 1]);
    check::<f32>(world, [0.0, -1.5, f32::INFINITY, 3.0]);
    check::<f64>(world, [-0.0, 1.5, f64::NEG_INFINITY, 1e300]);
}

/// The operations that have names, on arrays, through contexts and on bound handles, against arithmetic.
fn named_operations(world: &World) {
    fn check<T: AtomicInteger + PartialEq + std::fmt::Debug>(world: &World, of: impl Fn(i64) -> T) {
        let right = (world.my_pe() + 1) % world.n_pes();
        let array = world.alloc_zeroed::<T>(3).unwrap();
        let context = world.context(Default::default()).unwrap();
        for view in [&array.via(&context), &*array] {
            view.atomic_set(right, 1, of(12)).unwrap();
            context.quiet();
            world.quiet();
            assert_eq!(view.fetch_add(right, 1, of(5)).unwrap(), of(12));
            assert_eq!(view.fetch_inc(right, 1).unwrap(), of(17));
            assert_eq!(view.fetch_and(right, 1, of(0b110)).unwrap(), of(18));
            assert_eq!(view.fetch_or(right, 1, of(0b1001)).unwrap(), of(0b10));
            assert_eq!(view.fetch_xor(right, 1, of(0b1111)).unwrap(), of(0b1011));
            assert_eq!(view.swap(right, 1, of(40)).unwrap(), of(0b100));
            assert_eq!(view.compare_swap(right, 1, of(41), of(1)).unwrap(), of(40));
            assert_eq!(view.compare_swap(right, 1, of(40), of(50)).unwrap(), of(40));
            assert_eq!(view.atomic_fetch(right, 1).unwrap(), of(50));
            type Step<'v, T> = (&'v dyn Fn() -> pelago::Result<()>, T);
            let steps: [Step<'_, T>; 5] = [
                (&|| view.add(right, 1, of(7)), of(57)),
                (&|| view.inc(right, 1), of(58)),
                (&|| view.and(right, 1, of(0b11011)), of(26)),
                (&|| view.or(right, 1, of(0b101)), of(31)),
                (&|| view.xor(right, 1, of(0b11)), of(28)),
            ];
            for (step, expected) in steps {
                step().unwrap();
                context.quiet();
                world.quiet();
                assert_eq!(view.atomic_fetch(right, 1).unwrap(), expected);
            }
        }
        let on = array.on(right).unwrap();
        let fence = || world.fence();
        on.atomic_set(1, of(12)).unwrap();
        fence();
        assert_eq!(on.fetch_add(1, of(5)).unwrap(), of(12));
        assert_eq!(on.fetch_inc(1).unwrap(), of(17));
        assert_eq!(on.fetch_and(1, of(0b110)).unwrap(), of(18));
        assert_eq!(on.fetch_or(1, of(0b1001)).unwrap(), of(0b10));
        assert_eq!(on.fetch_xor(1, of(0b1111)).unwrap(), of(0b1011));
        assert_eq!(on.swap(1, of(50)).unwrap(), of(0b100));
        let steps: [(&dyn Fn() -> pelago::Result<()>, T); 5] = [
            (&|| on.add(1, of(7)), of(57)),
            (&|| on.inc(1), of(58)),
            (&|| on.and(1, of(0b11011)), of(26)),
            (&|| on.or(1, of(0b101)), of(31)),
            (&|| on.xor(1, of(0b11)), of(28)),
        ];
        for (step, expected) in steps {
            step().unwrap();
            fence();
            assert_eq!(array.g(right, 1).unwrap(), expected);
        }
        assert_eq!(on.compare_swap(1, of(28), of(30)).unwrap(), of(28));
        assert_eq!(on.compare_swap(1, of(28), of(31)).unwrap(), of(30));
        assert_eq!(on.atomic_fetch(1).unwrap(), of(30));
        assert!(on.atomic_fetch(3).is_err() && on.compare_swap(3, of(0), of(1)).is_err());
        world.barrier();
        assert_eq!(array.local().to_vec(), [of(0), of(30), of(0)]);
    }
    check::<i32>(world, |i| i as i32);
    check::<u32>(world, |i| i as u32);
    check::<i64>(world, |i| i);
    check::<u64>(world, |i| i as u64);
    check::<isize>(world, |i| i as isize);
    check::<usize>(world, |i| i as usize);
}

/// All PEs change the same words of PE 0 at once, in every form.
fn nothing_is_lost(world: &World) {
    let n = world.n_pes() as u64;
    let integers = world.alloc_zeroed::<u32>(2).unwrap();
    let floats = world.alloc_zeroed::<f64>(1).unwrap();
    let rounds = common::rounds(world, 300, 3);
    let on = integers.on(0).unwrap();
    for _ in 0..rounds {
        for form in FORMS {
            execute(&integers, (0, 0), form, AtomicOp::Add, (3, 0));
            execute(&floats, (0, 0), form, AtomicOp::Add, (0.5, 0.0));
        }
        integers.add(0, 1, 1).unwrap();
        integers.inc(0, 1).unwrap();
        on.add(1, 1).unwrap();
        on.inc(1).unwrap();
    }
    world.barrier();
    let all = n * rounds;
    assert_eq!(integers.atomic_fetch(0, 0).unwrap(), (all * 21) as u32);
    assert_eq!(integers.g(0, 1).unwrap(), (all * 4) as u32);
    assert_eq!(floats.atomic_fetch(0, 0).unwrap(), all as f64 * 3.5);
    world.barrier();
}

/// Tickets: the old values that all PEs fetch from one word are the numbers from 0 on, each once.
fn fetched_values_are_distinct(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let rounds = common::rounds(world, 200, 3) as usize;
    let ticket = world.alloc_zeroed::<u64>(1).unwrap();
    let taken = world.alloc_zeroed::<u64>(n * rounds * FORMS.len()).unwrap();
    let mut last = None;
    for _ in 0..rounds {
        for form in FORMS {
            let form = if matches!(form, Form::Plain | Form::Context) { Form::Fetch } else { form };
            let mine = execute(&ticket, (0, 0), form, AtomicOp::Add, (1, 0)).expect("the form fetches");
            assert!(last < Some(mine), "PE {me} fetched {mine} after {last:?}");
            last = Some(mine);
            taken.inc(0, mine as usize).unwrap();
        }
    }
    world.barrier();
    assert!(me != 0 || taken.local().to_vec().iter().all(|&times| times == 1));
    assert_eq!(ticket.atomic_fetch(0, 0).unwrap(), taken.len() as u64);
    world.barrier();
}

/// A product modulo a prime, which no single operation computes: a loop of compare-and-swap.
fn a_compare_swap_loop(world: &World) {
    const PRIME: u64 = 1_000_003;
    let (me, n) = (world.my_pe() as u64, world.n_pes() as u64);
    let array = world.alloc_zeroed::<u64>(1).unwrap();
    array.local().set(0, 1);
    world.barrier();
    let rounds = common::rounds(world, 200, 3);
    let factor = |pe: u64, round: u64| pe * 1000 + round + 2;
    for round in 0..rounds {
        let mut seen = array.atomic_fetch(0, 0).unwrap();
        loop {
            let old = array.compare_swap(0, 0, seen, seen * factor(me, round) % PRIME).unwrap();
            if old == seen {
                break;
            }
            seen = old;
        }
    }
    world.barrier();
    let factors = (0..n).flat_map(|pe| (0..rounds).map(move |round| factor(pe, round)));
    let expected = factors.fold(1, |product, factor| product * factor % PRIME);
    assert_eq!(array.g(0, 0).unwrap(), expected);
    world.barrier();
}

/// Each PE has bits of its own in a word of all, and competes for the least and the greatest.
fn bits_and_extremes(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let array = world.alloc_zeroed::<i64>(4).unwrap();
    let mine = 0xFF << (8 * me);
    for round in 0..=common::rounds(world, 255, 4) as i64 {
        array.compare_amo(0, 0, AtomicOp::MaskedSwap, mine, round << (8 * me)).unwrap();
        array.fetch_xor(0, 1, mine).unwrap();
        array.amo(0, 2, AtomicOp::Max, round * 10 + me as i64).unwrap();
        array.amo(0, 3, AtomicOp::Min, -round * 10 - me as i64).unwrap();
        let bits = array.atomic_fetch(0, 0).unwrap() & mine;
        assert_eq!(bits, round << (8 * me), "another PE has changed the bits of PE {me}");
    }
    world.barrier();
    let last = common::rounds(world, 255, 4) as i64;
    let (every, greatest) = ((0..n).map(|pe| last << (8 * pe)).sum::<i64>(), last * 10 + n as i64 - 1);
    let flipped = if last % 2 == 0 { (0..n).map(|pe| 0xFFi64 << (8 * pe)).sum() } else { 0 };
    let all: Vec<i64> = (0..4).map(|index| array.atomic_fetch(0, index).unwrap()).collect();
    assert_eq!(all, [every, flipped, greatest, -greatest]);
    world.barrier();
}

/// Sums of floats that are exact, by all forms with a name.
fn sums_of_floats(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let (mut wide, narrow) = (world.alloc_zeroed::<f64>(3).unwrap(), world.alloc_zeroed::<f32>(1).unwrap());
    let domain = world.team().atomic_domain::<f64>(AtomicOp::Add).unwrap();
    let rounds = common::rounds(world, 100, 3);
    for round in 0..rounds {
        wide.add(0, 0, 0.25).unwrap();
        // The additions of other calls may come later.
        assert!(wide.fetch_add(0, 0, 0.5).unwrap() >= round as f64 * 0.5);
        wide.on(0).unwrap().add(1, -1.5).unwrap();
        narrow.add((me + 1) % n, 0, 0.125).unwrap();
    }
    world.barrier();
    let (all, each) = ((n as u64 * rounds) as f64, rounds as f32);
    let words = domain.on(&mut wide).unwrap();
    (0..rounds).for_each(|_| words.add(0, 2, 2.0).unwrap());
    world.barrier();
    let mut sums = [0.0; 3];
    wide.get(0, 0, &mut sums).unwrap();
    assert_eq!(sums, [all * 0.75, all * -1.5, all * 2.0]);
    assert_eq!(narrow.local().get(0), each * 0.125);
    world.barrier();
}

/// A PE that waits for a word sees it change, for every operation that changes it.
fn waiters_are_woken(world: &World) {
    type Change = fn(&Symmetric<'_, u64>, Pe, u64);
    let changes: [Change; 14] = [
        |array, pe, value| array.atomic_set(pe, 0, value).unwrap(),
        |array, pe, _| array.inc(pe, 0).unwrap(),
        |array, pe, _| array.add(pe, 0, 1).unwrap(),
        |array, pe, value| assert_eq!(array.swap(pe, 0, value).unwrap(), value - 1),
        |array, pe, value| assert_eq!(array.fetch_inc(pe, 0).unwrap(), value - 1),
        |array, pe, value| assert_eq!(array.fetch_add(pe, 0, 1).unwrap(), value - 1),
        |array, pe, value| assert_eq!(array.compare_swap(pe, 0, value - 1, value).unwrap(), value - 1),
        |array, pe, value| assert_eq!(array.fetch_xor(pe, 0, value ^ (value - 1)).unwrap(), value - 1),
        |array, pe, value| array.on(pe).unwrap().atomic_set(0, value).unwrap(),
        |array, pe, _| assert!(array.on(pe).unwrap().fetch_inc(0).is_ok()),
        |array, pe, value| array.amo(pe, 0, AtomicOp::Max, value).unwrap(),
        |array, pe, value| assert_eq!(array.fetch_amo(pe, 0, AtomicOp::Max, value).unwrap(), value - 1),
        |array, pe, value| {
            let old = array.compare_amo(pe, 0, AtomicOp::CompareSwapLt, value - 1, value).unwrap();
            assert_eq!(old, value - 1, "c < w does not hold, so that the word stays");
            array.inc(pe, 0).unwrap();
        },
        |array, pe, value| assert_eq!(array.fetch_amo_nb(pe, 0, AtomicOp::Add, 1).unwrap().wait(), value - 1),
    ];
    let array = world.alloc_zeroed::<u64>(1).unwrap();
    let other = 1 - world.my_pe();
    for round in 0..common::rounds(world, 50, 2) {
        for (change, value) in changes.iter().zip(round * 14 + 1..) {
            if world.my_pe() == 0 {
                change(&array, other, value);
                array.local().wait_until(0, |mine| mine == value);
            } else {
                assert_eq!(array.local().wait_until(0, |mine| mine >= value), value);
                change(&array, other, value);
            }
        }
    }
}

/// Handles are waited for in any order, tested in a loop, or dropped; the atomic is executed once.
fn handles_and_scopes(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let array = world.alloc_zeroed::<i32>(n).unwrap();
    let mut handles: Vec<_> =
        (0..n).map(|pe| array.fetch_amo_nb(pe, me, AtomicOp::Add, 1).unwrap()).collect();
    handles.reverse();
    drop(handles.swap_remove(0));
    for handle in &handles {
        while !handle.test() {
            world.progress();
        }
    }
    assert!(handles.into_iter().all(|handle| handle.wait() == 0));
    let mut olds = vec![-1; n];
    world.scope(|scope| {
        for (pe, old) in olds.iter_mut().enumerate() {
            scope.fetch_amo(&array, pe, me, AtomicOp::Add, 10, old).unwrap();
        }
    });
    assert_eq!(olds, vec![1; n], "the dropped handle has done its work as well");
    world.barrier();
    assert_eq!(array.local().to_vec(), vec![11; n]);
}

/// A random atomic of one PE.
#[derive(Clone, Debug)]
struct Step {
    pe: usize,
    index: usize,
    form: Form,
    op: AtomicOp,
    operand: u64,
    compare: u64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let word = || prop_oneof![any::<u64>(), 0u64..3];
    let form = prop::sample::select(&FORMS[..]);
    let op = prop::sample::select(&AtomicOp::ALL[..]);
    let step = (0usize..3, 0usize..4, form, op, word(), word());
    let step = step.prop_map(|(pe, index, form, op, operand, compare)| Step {
        pe,
        index,
        form,
        op,
        operand,
        compare,
    });
    prop::collection::vec(step, 0..60)
}

/// PE 0 executes the steps; at the end the parts are equal to the model.
fn take<T: AtomicElement>(world: &World, steps: &[Step]) {
    let array = world.alloc_zeroed::<T>(4).unwrap();
    if world.my_pe() == 0 {
        let mut model = [[T::from_word(0); 4]; 3];
        for step in steps.iter().filter(|step| step.op.is_defined_for(T::KIND)) {
            let word = &mut model[step.pe][step.index];
            let operands = (T::from_word(step.operand), T::from_word(step.compare));
            let old = execute(&array, (step.pe, step.index), step.form, step.op, operands);
            assert!(old.is_none_or(|old| old.to_word() == word.to_word()), "{step:?}");
            *word = next(step.op, *word, operands.0, operands.1);
        }
        for (pe, model) in model.iter().enumerate() {
            let mut part = [T::from_word(0); 4];
            array.get(pe, 0, &mut part).unwrap();
            assert_eq!(part.map(T::to_word), model.map(T::to_word), "the part of PE {pe}");
        }
    }
    world.barrier();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn random_steps_equal_the_model(steps in steps(), counters: bool, seed in 0u64..1000) {
        let run = |world: &World| {
            take::<u32>(world, &steps);
            take::<i64>(world, &steps);
            take::<f32>(world, &steps);
        };
        Spmd::new(3).counters(counters).run(run).unwrap();
        Spmd::new(3).sim(SimParams::chaos(seed)).run(run).unwrap();
    }
}

#[test]
fn atomics_are_counted_once_each() {
    let body = |world: &World| {
        let array = world.alloc_zeroed::<u32>(2).unwrap();
        let before = world.counters();
        if world.my_pe() == 0 {
            for form in FORMS {
                execute(&array, (1, 0), form, AtomicOp::Add, (1, 0));
            }
            execute(&array, (1, 0), Form::Handle, AtomicOp::CompareSwap, (1, 0));
            array.inc(1, 1).unwrap();
            array.fetch_inc(1, 1).unwrap();
            array.compare_swap(1, 1, 0, 1).unwrap();
            array.atomic_fetch(1, 1).unwrap();
            let on = array.on(1).unwrap();
            on.add(1, 1).unwrap();
            on.swap(1, 1).unwrap();
            assert!(array.inc(1, 2).is_err() && array.fetch_amo_nb(2, 0, AtomicOp::Add, 1).is_err());
        }
        let after = world.counters();
        (after.atomics - before.atomics, after.puts - before.puts, after.gets - before.gets)
    };
    let on = Spmd::new(2).counters(true);
    assert_eq!(on.run(body).unwrap(), [(14, 0, 0), (0, 0, 0)]);
    assert_eq!(on.clone().sim(SimParams::chaos(5)).run(body).unwrap(), [(14, 0, 0), (0, 0, 0)]);
    assert_eq!(Spmd::new(2).run(body).unwrap(), [(0, 0, 0); 2]);
}

#[test]
fn refusals_name_pe_operation_range_and_remedy() {
    let body = |world: &World| {
        let (me, array) = (world.my_pe(), world.alloc_zeroed::<u64>(4).unwrap());
        let floats = world.alloc_zeroed::<f64>(4).unwrap();
        let says = |outcome: pelago::Result<()>, words: &str| {
            assert_eq!(outcome.unwrap_err().to_string(), format!("PE {me}: {words}"));
        };
        let beyond = "of 1 elements at index 4 on PE 1 lies outside the array, which has 4 elements a PE";
        let nobody = "names PE 2, but the job has 2 PEs, numbered 0 to 1";
        says(array.fetch_add(1, 4, 1).map(drop), &format!("fetch_add {beyond}"));
        says(array.add(2, 0, 1), &format!("add {nobody}"));
        says(array.on(1).unwrap().inc(4), &format!("inc {beyond}"));
        says(array.compare_swap(1, 4, 0, 1).map(drop), &format!("compare_swap {beyond}"));
        says(array.atomic_fetch(2, 0).map(drop), &format!("atomic_fetch {nobody}"));
        says(array.amo(1, 4, AtomicOp::Max, 1), &format!("amo {beyond}"));
        says(
            array.compare_amo(2, 0, AtomicOp::CompareSwap, 0, 1).map(drop),
            &format!("compare_amo {nobody}"),
        );
        for (pe, index) in [(2, 0), (usize::MAX, 0), (0, 4), (1, usize::MAX)] {
            assert!(array.swap(pe, index, 1).is_err() && array.atomic_set(pe, index, 1).is_err());
            assert!(array.fetch_amo_nb(pe, index, AtomicOp::Add, 1).is_err());
            assert!(array.compare_amo_nb(pe, index, AtomicOp::CompareSwap, 0, 1).is_err());
            let mut old = 0;
            let outcome = world.scope(|scope| scope.fetch_amo(&array, pe, index, AtomicOp::Add, 1, &mut old));
            assert!(outcome.is_err() && old == 0);
        }
        let bits = "And on F64: it works on the bits of integers, not on floats";
        says(floats.amo(1, 0, AtomicOp::And, 1.0), &format!("amo cannot execute {bits}"));
        says(
            floats.fetch_amo(1, 0, AtomicOp::And, 1.0).map(drop),
            &format!("fetch_amo cannot execute {bits}"),
        );
        let swap = "CompareSwap on U64: it takes a value to compare with; use compare_amo";
        says(array.amo(1, 0, AtomicOp::CompareSwap, 1), &format!("amo cannot execute {swap}"));
        let add = "Add on U64: it takes no value to compare with; use amo or fetch_amo";
        says(
            array.compare_amo(1, 0, AtomicOp::Add, 0, 1).map(drop),
            &format!("compare_amo cannot execute {add}"),
        );
        let mut old = 0.0;
        let undefined = [
            floats.fetch_amo_nb(1, 0, AtomicOp::Xor, 1.0).map(drop),
            floats.compare_amo_nb(1, 0, AtomicOp::MaskedSwap, 0.0, 1.0).map(drop),
            floats.fetch_amo_nb(1, 0, AtomicOp::CompareSwap, 1.0).map(drop),
            floats.compare_amo_nb(1, 0, AtomicOp::Max, 0.0, 1.0).map(drop),
            world.scope(|scope| scope.fetch_amo(&floats, 1, 0, AtomicOp::Or, 1.0, &mut old)),
        ];
        for outcome in undefined {
            assert!(matches!(outcome.unwrap_err().kind(), ErrorKind::UndefinedAtomic { .. }));
        }
        world.barrier();
        assert_eq!((array.local().to_vec(), floats.local().to_vec()), (vec![0; 4], vec![0.0; 4]));
    };
    Spmd::new(2).run(body).unwrap();
    Spmd::new(2).sim(SimParams::chaos(2)).run(body).unwrap();
}
