//! Atomic domains: every operation of the table in every form against the model, no operation outside the
//! set, the reported executor, members that disagree, and errors.

use crate::common;
use crate::model::next;
use num_complex::Complex;
use pelago::prelude::*;
use pelago::sim::SimParams;
use pelago::{AtomicDomain, AtomicElement, AtomicExecutor, AtomicInteger, AtomicKind, AtomicOp};
use pelago::{AtomicOps, AtomicType, Atomics, ErrorKind, Spmd};
use proptest::prelude::*;

everywhere! {
    all_forms_on_all_types(2): all_forms_on_all_types;
    all_forms_alone(1): all_forms_on_all_types;
    names_stand_for_operations(2): names_stand_for_operations;
    nothing_is_lost(4): nothing_is_lost;
    domains_of_teams(4): domains_of_teams;
    domains_of_one_type_do_not_mix_executors(3): domains_of_one_type_do_not_mix_executors;
    small_words_wake_who_waits(2): small_words_wake_who_waits;
    dropped_handles_do_their_work(3): dropped_handles_do_their_work;
    members_disagree(3): members_disagree;
}

/// The forms of calls that start an atomic of a domain and complete it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Plain,
    PlainHandle,
    PlainInScope,
    Fetch,
    FetchHandle,
    FetchInScope,
    FetchInRegion,
    Context,
}

const FORMS: [Form; 8] = [
    Form::Plain,
    Form::PlainHandle,
    Form::PlainInScope,
    Form::Fetch,
    Form::FetchHandle,
    Form::FetchInScope,
    Form::FetchInRegion,
    Form::Context,
];

/// Executes an operation in some form; the old value if the form tells it. Complete at return.
fn execute<T: AtomicElement>(
    world: &World,
    words: &Atomics<'_, T>,
    (pe, index): (Pe, usize),
    form: Form,
    op: AtomicOp,
    (operand, compare): (T, T),
) -> pelago::Result<Option<T>> {
    let mut old = operand;
    if op.takes_comparison() {
        match form {
            Form::FetchHandle | Form::PlainHandle => {
                old = words.compare_amo_nb(pe, index, op, compare, operand)?.wait();
            }
            Form::FetchInScope | Form::PlainInScope => {
                world.scope(|scope| words.compare_amo_in(scope, pe, index, op, compare, operand, &mut old))?
            }
            Form::FetchInRegion => world.scope(|scope| {
                let region = scope.region();
                words.compare_amo_in(&region, pe, index, op, compare, operand, &mut old)?;
                region.wait();
                Ok::<(), pelago::Error>(())
            })?,
            Form::Context => {
                let context = world.context(Default::default())?;
                old = words.via(&context).compare_amo(pe, index, op, compare, operand)?;
            }
            Form::Plain | Form::Fetch => old = words.compare_amo(pe, index, op, compare, operand)?,
        }
        return Ok(Some(old));
    }
    match form {
        Form::Plain => {
            words.amo(pe, index, op, operand)?;
            world.quiet();
            return Ok(None);
        }
        Form::PlainHandle => {
            words.amo_nb(pe, index, op, operand)?.wait();
            return Ok(None);
        }
        Form::PlainInScope => {
            world.scope(|scope| words.amo_in(scope, pe, index, op, operand))?;
            return Ok(None);
        }
        Form::Fetch => old = words.fetch_amo(pe, index, op, operand)?,
        Form::FetchHandle => old = words.fetch_amo_nb(pe, index, op, operand)?.wait(),
        Form::FetchInScope => {
            world.scope(|scope| words.fetch_amo_in(scope, pe, index, op, operand, &mut old))?;
        }
        Form::FetchInRegion => world.scope(|scope| {
            let region = scope.region();
            words.fetch_amo_in(&region, pe, index, op, operand, &mut old)?;
            region.wait();
            assert!(region.test());
            Ok::<(), pelago::Error>(())
        })?,
        Form::Context => {
            let context = world.context(Default::default())?;
            words.via(&context).amo(pe, index, op, operand)?;
            context.quiet();
            return Ok(None);
        }
    }
    Ok(Some(old))
}

/// A domain of all operations that the type has.
fn domain_of_all<'w, T: AtomicElement>(world: &'w World) -> AtomicDomain<'w, T> {
    let domain = world.team().atomic_domain::<T>(AtomicOps::all_on(AtomicType::of(T::KIND))).unwrap();
    assert_eq!(domain.element(), AtomicType::of(T::KIND));
    domain
}

/// Whether an outcome is the error for an operation that the domain was not made for.
fn is_outside<R>(outcome: pelago::Result<R>, outside: AtomicOp) -> bool {
    let error = outcome.err().expect("the operation is refused");
    matches!(error.kind(), ErrorKind::NotInDomain { op, .. } if *op == outside)
}

/// Each PE on words of another one: the nineteen operations in every form, between neighbours that stay
/// unchanged. Operations that the type does not have return that error.
fn all_forms_on_all_types(world: &World) {
    fn check<T: AtomicElement>(world: &World, values: [T; 4]) {
        let (me, n) = (world.my_pe(), world.n_pes());
        let right = (me + 1) % n;
        let mut array = world.alloc_zeroed::<T>(3).unwrap();
        array.local().write(0, &[values[1]; 3]);
        let domain = domain_of_all::<T>(world);
        let words = domain.on(&mut array).unwrap();
        let (mut word, bits) = (values[1], T::to_word);
        let cases = AtomicOp::ALL.into_iter().flat_map(|op| FORMS.map(|form| (op, form)));
        for (i, (op, form)) in cases.enumerate() {
            let operands = (values[i % 4], values[i / 3 % 4]);
            let outcome = execute(world, &words, (right, 1), form, op, operands);
            match AtomicType::of(T::KIND).answer(op) {
                Ok(()) => {
                    let old = outcome.unwrap();
                    let is_old = old.is_none_or(|old| bits(old) == bits(word));
                    assert!(is_old, "{op:?} as {form:?}: the old value");
                    word = next(op, word, operands.0, operands.1);
                }
                Err(why) => {
                    let told = outcome.err().expect("there is no such operation").to_string();
                    assert!(told.ends_with(&why.to_string()), "{op:?} as {form:?}: {told}");
                }
            }
            let now = words.atomic_fetch(right, 1).unwrap();
            assert_eq!(bits(now), bits(word), "{op:?} as {form:?}: the new value");
        }
        world.barrier();
        let (before, after) = (array.local().get(0), array.local().get(2));
        assert_eq!((before.to_word(), after.to_word()), (values[1].to_word(), values[1].to_word()));
    }
    check::<i8>(world, [0, -7, i8::MAX, 0x5A]);
    check::<u8>(world, [0, 7, u8::MAX, 0x80]);
    check::<i16>(world, [0, -7, i16::MIN, 0x5A5A]);
    check::<u16>(world, [0, 7, u16::MAX, 0x8000]);
    check::<i32>(world, [0, -7, i32::MAX, 0x5A5A]);
    check::<u32>(world, [0, 7, u32::MAX, 0x8000_0000]);
    check::<i64>(world, [0, -7, i64::MIN, 0x5A5A_5A5A_5A5A]);
    check::<u64>(world, [0, 7, u64::MAX, 0x8000_0000_0000_0000]);
    check::<isize>(world, [0, -7, isize::MAX, 1]);
    check::<usize>(world, [0, 7, usize::MAX, 1]);
    check::<f32>(world, [0.0, -1.5, f32::INFINITY, 3.0]);
    check::<f64>(world, [-0.0, 1.5, f64::NEG_INFINITY, 1e300]);
    check::<Complex<f32>>(world, [(0.0, 0.0), (1.5, -2.0), (0.0, 3.0), (-1.0, 0.5)].map(pair));
}

fn pair((re, im): (f32, f32)) -> Complex<f32> {
    Complex::new(re, im)
}

/// A domain of one operation offers only the methods of this operation, and the domain of all others offers
/// all other methods.
fn names_stand_for_operations(world: &World) {
    fn check<T: AtomicInteger + PartialEq + std::fmt::Debug>(world: &World, of: impl Fn(u8) -> T) {
        type Named<'f, T> = (AtomicOp, u8, &'f dyn Fn(&Atomics<'_, T>, Pe) -> pelago::Result<Option<T>>);
        let named: [Named<'_, T>; 14] = [
            (AtomicOp::Fetch, 12, &|words, pe| words.atomic_fetch(pe, 0).map(Some)),
            (AtomicOp::Set, 40, &|words, pe| words.swap(pe, 0, of(40)).map(Some)),
            (AtomicOp::Set, 41, &|words, pe| words.atomic_set(pe, 0, of(41)).map(|()| None)),
            (AtomicOp::Add, 17, &|words, pe| words.fetch_add(pe, 0, of(5)).map(Some)),
            (AtomicOp::Add, 19, &|words, pe| words.add(pe, 0, of(7)).map(|()| None)),
            (AtomicOp::Add, 13, &|words, pe| words.fetch_inc(pe, 0).map(Some)),
            (AtomicOp::Add, 13, &|words, pe| words.inc(pe, 0).map(|()| None)),
            (AtomicOp::And, 0b1000, &|words, pe| words.fetch_and(pe, 0, of(0b1001)).map(Some)),
            (AtomicOp::And, 0b0100, &|words, pe| words.and(pe, 0, of(0b0110)).map(|()| None)),
            (AtomicOp::Or, 0b1101, &|words, pe| words.fetch_or(pe, 0, of(0b0001)).map(Some)),
            (AtomicOp::Or, 0b1110, &|words, pe| words.or(pe, 0, of(0b0010)).map(|()| None)),
            (AtomicOp::Xor, 0b0011, &|words, pe| words.fetch_xor(pe, 0, of(0b1111)).map(Some)),
            (AtomicOp::Xor, 0b0100, &|words, pe| words.xor(pe, 0, of(0b1000)).map(|()| None)),
            (AtomicOp::CompareSwap, 99, &|words, pe| words.compare_swap(pe, 0, of(12), of(99)).map(Some)),
        ];
        let team = world.team();
        let right = (world.my_pe() + 1) % world.n_pes();
        let mut array = world.alloc_zeroed::<T>(1).unwrap();
        for op in AtomicOp::ALL {
            let alone = team.atomic_domain::<T>(op).unwrap();
            let others = AtomicOp::ALL.into_iter().filter(|other| *other != op).collect::<AtomicOps>();
            let others = team.atomic_domain::<T>(others).unwrap();
            assert!(alone.operations().has(op) && !others.operations().has(op));
            for (_, becomes, call) in named.iter().filter(|(named, ..)| *named == op) {
                array.local().set(0, of(12));
                world.barrier();
                let word = || array.g(right, 0).unwrap();
                assert!(is_outside(call(&others.on_shared(&array).unwrap(), right), op), "{op:?}");
                assert_eq!(word(), of(12), "{op:?} was refused");
                let old = call(&alone.on_shared(&array).unwrap(), right).unwrap();
                world.quiet();
                assert!(old.is_none_or(|old| old == of(12)), "{op:?} returns the old value");
                assert_eq!(word(), of(*becomes), "{op:?}");
                world.barrier();
            }
            let words = alone.on(&mut array).unwrap();
            for (named, _, call) in named.iter().filter(|(named, ..)| *named != op) {
                assert!(is_outside(call(&words, right), *named), "{named:?} in a domain of {op:?}");
            }
        }
        world.barrier();
    }
    check::<u8>(world, |i| i);
    check::<i16>(world, |i| i.into());
    check::<i32>(world, |i| i.into());
    check::<u64>(world, |i| i.into());
}

/// All PEs change the same words of PE 0 at once, in every form; words of one or two bytes beside each other.
fn nothing_is_lost(world: &World) {
    let (n, rounds) = (world.n_pes() as u64, common::rounds(world, 1500, 2));
    let mut bytes = world.alloc_zeroed::<u8>(3).unwrap();
    let mut pairs = world.alloc_zeroed::<i16>(2).unwrap();
    let mut complex = world.alloc_zeroed::<Complex<f32>>(1).unwrap();
    let team = world.team();
    let adding = AtomicOps::from([AtomicOp::Add, AtomicOp::Fetch]);
    let (of_bytes, of_pairs) = (team.atomic_domain::<u8>(adding), team.atomic_domain::<i16>(adding));
    let of_complex = team.atomic_domain::<Complex<f32>>(adding).unwrap();
    let (of_bytes, of_pairs) = (of_bytes.unwrap(), of_pairs.unwrap());
    let bytes = of_bytes.on(&mut bytes).unwrap();
    let pairs = of_pairs.on(&mut pairs).unwrap();
    let complex = of_complex.on(&mut complex).unwrap();
    let (one, zero) = (pair((1.0, -0.5)), pair((0.0, 0.0)));
    for round in 0..rounds {
        // No PE finishes before the others begin.
        if round % 16 == 0 {
            world.barrier();
        }
        for form in FORMS {
            execute(world, &bytes, (0, 1), form, AtomicOp::Add, (3, 0)).unwrap();
            execute(world, &bytes, (0, 2), form, AtomicOp::Add, (1, 0)).unwrap();
            execute(world, &pairs, (0, 1), form, AtomicOp::Add, (-1, 0)).unwrap();
            execute(world, &complex, (0, 0), form, AtomicOp::Add, (one, zero)).unwrap();
        }
        bytes.inc(0, 1).unwrap();
        pairs.fetch_add(0, 1, -1).unwrap();
    }
    world.barrier();
    let all = n * rounds;
    let told: Vec<u8> = (0..3).map(|index| bytes.atomic_fetch(0, index).unwrap()).collect();
    assert_eq!(told, [0, (all * 25) as u8, (all * 8) as u8]);
    assert_eq!([0, 1].map(|index| pairs.atomic_fetch(0, index).unwrap()), [0, (all as i16).wrapping_mul(-9)]);
    assert_eq!(complex.atomic_fetch(0, 0).unwrap(), one * (all as f32 * 8.0));
    world.barrier();
}

/// Two teams make domains of their own at the same time, one of them on a space of its own.
fn domains_of_teams(world: &World) {
    let is_even = world.my_pe().is_multiple_of(2);
    let team = world.team().split_by(Some(u64::from(is_even)), 0).unwrap().unwrap();
    let rounds = common::rounds(world, 100, 3);
    if is_even {
        let space = team.space(4096).unwrap();
        let mut words = space.alloc_zeroed::<u64>(2).unwrap();
        let domain = team.atomic_domain::<u64>([AtomicOp::Add, AtomicOp::Fetch]).unwrap();
        let words = domain.on(&mut words).unwrap();
        (0..rounds).for_each(|_| words.fetch_add(1, 1, 2).map(drop).unwrap());
        team.barrier();
        assert_eq!(words.atomic_fetch(1, 1).unwrap(), 4 * rounds);
        assert_eq!(words.atomic_fetch(2, 0).unwrap_err().to_string(), {
            let me = world.my_pe();
            format!("PE {me}: atomic_fetch names rank 2, but the team has the ranks 0 to 1")
        });
        team.barrier();
    } else {
        let bits = [AtomicOp::Or, AtomicOp::Fetch, AtomicOp::MaskedSwap];
        let domain = team.atomic_domain::<u16>(bits).unwrap();
        assert_eq!(domain.operations().to_string(), "Fetch, Or and MaskedSwap");
        let reason = team.atomic_domain::<f32>(bits).unwrap_err().to_string();
        assert!(reason.contains("there is no Or on F32"), "{reason}");
    }
    world.barrier();
}

/// Domains of one type, and the plain interface, are atomic with each other on a word.
fn domains_of_one_type_do_not_mix_executors(world: &World) {
    let (team, rounds) = (world.team(), common::rounds(world, 300, 4));
    let array = world.alloc_zeroed::<i64>(1).unwrap();
    let adding = team.atomic_domain::<i64>(AtomicOp::Add).unwrap();
    let all = domain_of_all::<i64>(world);
    assert_eq!(adding.executor(), all.executor());
    let one = adding.on_shared(&array).unwrap();
    let other = all.on_shared(&array).unwrap();
    for round in 0..rounds as i64 {
        match (world.my_pe() as i64 + round) % 3 {
            0 => one.add(0, 0, 1).unwrap(),
            1 => drop(other.fetch_amo(0, 0, AtomicOp::Add, 1).unwrap()),
            _ => array.inc(0, 0).unwrap(),
        }
    }
    world.barrier();
    assert_eq!(other.atomic_fetch(0, 0).unwrap(), (rounds * world.n_pes() as u64) as i64);
    world.barrier();
}

/// A PE that sleeps until a word of one or two bytes changes is woken by the operations of a domain.
fn small_words_wake_who_waits(world: &World) {
    let other = 1 - world.my_pe();
    let (bytes, pairs) = (world.alloc_zeroed::<u8>(3).unwrap(), world.alloc_zeroed::<u16>(3).unwrap());
    let adding = AtomicOps::from([AtomicOp::Add, AtomicOp::Max]);
    let of_bytes = world.team().atomic_domain::<u8>(adding).unwrap();
    let of_pairs = world.team().atomic_domain::<u16>(adding).unwrap();
    let (to_bytes, to_pairs) = (of_bytes.on_shared(&bytes).unwrap(), of_pairs.on_shared(&pairs).unwrap());
    for round in 1..=common::rounds(world, 50, 3) {
        if world.my_pe() == 0 {
            to_bytes.inc(other, 1).unwrap();
            pairs.local().wait_until(1, |mine| u64::from(mine) == round);
        } else {
            bytes.local().wait_until(1, |mine| u64::from(mine) == round);
            to_pairs.amo(other, 1, AtomicOp::Max, round as u16).unwrap();
        }
    }
}

/// A handle that is dropped leaves its operation to quiet, or waits for it; the operation is executed once.
fn dropped_handles_do_their_work(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let mut array = world.alloc_zeroed::<u32>(n).unwrap();
    let adding = world.team().atomic_domain::<u32>(AtomicOp::Add).unwrap();
    let words = adding.on(&mut array).unwrap();
    for pe in 0..n {
        drop(words.amo_nb(pe, me, AtomicOp::Add, 1).unwrap());
        drop(words.fetch_amo_nb(pe, me, AtomicOp::Add, 10).unwrap());
    }
    let updates: Vec<_> = (0..n).map(|pe| words.amo_nb(pe, me, AtomicOp::Add, 100).unwrap()).collect();
    for update in &updates {
        while !update.test() {
            world.progress();
        }
    }
    updates.into_iter().for_each(|update| update.wait());
    // As events, together and as a future.
    let update = words.amo_nb(0, me, AtomicOp::Add, 1000).unwrap();
    let fetch = words.fetch_amo_nb(0, me, AtomicOp::Add, 1000).unwrap();
    pelago::event::wait_all(&[&update, &fetch]);
    assert!(update.test() && fetch.test());
    update.wait();
    assert!([111, 1111].contains(&fetch.wait()));
    world.block_on(async { words.amo_nb(0, me, AtomicOp::Add, 1000).unwrap().await });
    assert_eq!(words.fetch_amo_nb(0, me, AtomicOp::Add, 0).unwrap().wait(), 3111);
    world.barrier();
    assert_eq!(array.local().to_vec(), vec![if me == 0 { 3111 } else { 111 }; n]);
}

/// The error of every member names the member that differs, and its request; the team continues.
fn members_disagree(world: &World) {
    let (me, team) = (world.my_pe(), world.team());
    let other = |pe: usize| if me == pe { pe - 1 } else { pe };
    let ops = if me == 1 { [AtomicOp::Add, AtomicOp::Set] } else { [AtomicOp::Add, AtomicOp::Fetch] };
    let told = team.atomic_domain::<u64>(ops).unwrap_err().to_string();
    let (set, fetch) = ("Set and Add on U64, executed by", "Fetch and Add on U64, executed by");
    let (mine, theirs) = if me == 1 { (set, fetch) } else { (fetch, set) };
    assert!(told.starts_with(&format!("PE {me}: atomic_domain refused: PE {} asks for {theirs}", other(1))));
    assert!(told.contains(&format!("PE {me} for {mine}")), "{told}");
    let told = match me {
        2 => team.atomic_domain::<f64>(AtomicOp::Add).unwrap_err(),
        _ => team.atomic_domain::<u64>(AtomicOp::Add).unwrap_err(),
    };
    let told = told.to_string();
    assert!(told.contains("Add on F64, executed by") && told.contains("Add on U64, executed by"), "{told}");
    let unequal = if me == 2 { 0 } else { 2 };
    assert!(told.contains(&format!("PE {unequal} asks for")), "{told}");
    // An empty set at one member only is a disagreement; at all members it is the error of an empty set.
    let none = if me == 0 { AtomicOps::default() } else { AtomicOp::Add.into() };
    let told = team.atomic_domain::<u64>(none).unwrap_err().to_string();
    assert!(told.contains("no operation on U64") && told.contains("must ask for the same"), "{told}");
    let told = team.atomic_domain::<u64>([]).unwrap_err().to_string();
    let reason = "it has no operation. Name those that it is for, of the nineteen";
    assert_eq!(told, format!("PE {me}: atomic_domain refused: {reason}"));
    // Two names for the same words are not a disagreement.
    let kinds = match me {
        0 => team.atomic_domain::<isize>(AtomicOp::Add).map(|domain| domain.element()),
        _ => team.atomic_domain::<i64>(AtomicOp::Add).map(|domain| domain.element()),
    };
    assert_eq!(kinds.unwrap(), AtomicType::I64);
    team.barrier();
}

#[test]
fn another_call_than_that_of_the_others_is_named() {
    let body = |world: &World| {
        let team = world.team();
        let outcome = match world.my_pe() {
            0 => team.split_strided(0, 1, 1).map(drop),
            _ => team.atomic_domain::<u64>(AtomicOp::Add).map(drop),
        };
        outcome.unwrap_err().to_string()
    };
    let told = Spmd::new(2).run(body).unwrap();
    assert!(told[0].contains("PE 1 calls atomic_domain, PE 0 calls split_strided"), "{told:?}");
    assert!(told[1].contains("PE 0 calls split_strided, PE 1 calls atomic_domain"), "{told:?}");
}

#[test]
fn the_executor_is_told_and_is_that_of_the_job() {
    let told = |world: &World| {
        let mut array = world.alloc_zeroed::<u8>(1).unwrap();
        let small = world.team().atomic_domain::<u8>(AtomicOp::Add).unwrap();
        let complex = domain_of_all::<Complex<f32>>(world);
        let executors = [small.executor(), complex.executor(), small.on(&mut array).unwrap().executor()];
        assert_eq!(executors, [executors[0]; 3]);
        executors[0]
    };
    for n_pes in [1, 3] {
        let expect = |spmd: &Spmd, executor| assert_eq!(spmd.run(told).unwrap(), vec![executor; n_pes]);
        expect(&Spmd::new(n_pes), AtomicExecutor::Processor);
        expect(&Spmd::new(n_pes).counters(true), AtomicExecutor::Processor);
        let fabric = |executes_atomics| SimParams { executes_atomics, ..SimParams::default() };
        expect(&Spmd::new(n_pes).sim(fabric(true)), AtomicExecutor::Fabric);
        expect(&Spmd::new(n_pes).sim(fabric(false)), AtomicExecutor::Target);
    }
    let all = [AtomicExecutor::Processor, AtomicExecutor::Target, AtomicExecutor::Fabric];
    assert_eq!(
        all.map(|executor| executor.to_string()),
        ["the processor of who asks", "the target's processor", "the fabric"]
    );
}

#[test]
fn atomics_of_a_domain_are_counted_once_each_and_refused_ones_never() {
    let body = |world: &World| {
        let mut array = world.alloc_zeroed::<u32>(2).unwrap();
        let domain = world.team().atomic_domain::<u32>([AtomicOp::Add, AtomicOp::CompareSwap]).unwrap();
        let words = domain.on(&mut array).unwrap();
        let before = world.counters();
        if world.my_pe() == 0 {
            for form in FORMS {
                execute(world, &words, (1, 0), form, AtomicOp::Add, (1, 0)).unwrap();
                execute(world, &words, (1, 1), form, AtomicOp::CompareSwap, (1, 0)).unwrap();
                assert!(execute(world, &words, (1, 1), form, AtomicOp::Set, (1, 0)).is_err());
                assert!(execute(world, &words, (1, 1), form, AtomicOp::CompareSwapNe, (1, 0)).is_err());
            }
            words.inc(1, 1).unwrap();
            assert!(words.swap(1, 1, 7).is_err() && words.inc(2, 0).is_err() && words.inc(1, 2).is_err());
        }
        (world.counters().atomics - before.atomics, world.counters().puts - before.puts)
    };
    let on = Spmd::new(2).counters(true);
    assert_eq!(on.run(body).unwrap(), [(17, 0), (0, 0)]);
    assert_eq!(on.clone().sim(SimParams::chaos(3)).run(body).unwrap(), [(17, 0), (0, 0)]);
}

/// A random atomic of one PE.
#[derive(Clone, Debug)]
struct Step {
    at: (usize, usize),
    form: Form,
    op: AtomicOp,
    operand: u64,
    compare: u64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let word = || prop_oneof![any::<u64>(), 0u64..3, Just(0x3FC0_0000_BF00_0000)];
    let (form, op) = (prop::sample::select(&FORMS[..]), prop::sample::select(&AtomicOp::ALL[..]));
    let step = ((0usize..3, 0usize..5), form, op, word(), word());
    let step = step.prop_map(|(at, form, op, operand, compare)| Step { at, form, op, operand, compare });
    prop::collection::vec(step, 0..50)
}

/// Whether two words of a kind are equal; NaN has many bit patterns.
fn is_same(kind: AtomicKind, a: u64, b: u64) -> bool {
    let is_nan = |word: u64| match kind {
        AtomicKind::F64 => f64::from_bits(word).is_nan(),
        AtomicKind::ComplexF32 => {
            let number = Complex::<f32>::from_word(word);
            number.re.is_nan() || number.im.is_nan()
        }
        _ => false,
    };
    a == b || (is_nan(a) && is_nan(b))
}

/// PE 0 takes the steps in a domain of these operations; operations in the domain change the words as in the
/// model, and others have no effect.
fn take<T: AtomicElement>(world: &World, steps: &[Step], ops: AtomicOps) {
    let of = AtomicType::of(T::KIND);
    let ops: AtomicOps = ops.iter().filter(|op| of.answer(*op).is_ok()).collect();
    let domain = world.team().atomic_domain::<T>(ops);
    assert_eq!(domain.is_err(), ops.is_empty());
    let Ok(domain) = domain else { return };
    let mut array = world.alloc_zeroed::<T>(5).unwrap();
    if world.my_pe() == 0 {
        let words = domain.on(&mut array).unwrap();
        let mut model = [[0u64; 5]; 3];
        for step in steps {
            let word = &mut model[step.at.0][step.at.1];
            let operands = (T::from_word(step.operand), T::from_word(step.compare));
            let outcome = execute(world, &words, step.at, step.form, step.op, operands);
            assert_eq!(outcome.is_ok(), ops.has(step.op), "{step:?} with {ops}");
            let Ok(old) = outcome else { continue };
            let is_old = |old: T| is_same(T::KIND, old.to_word(), *word);
            assert!(old.is_none_or(is_old), "{step:?}");
            *word = next(step.op, T::from_word(*word), operands.0, operands.1).to_word();
        }
        for (pe, model) in model.iter().enumerate() {
            let mut part = [T::from_word(0); 5];
            array.get(pe, 0, &mut part).unwrap();
            let all = part.iter().zip(model).all(|(word, model)| is_same(T::KIND, word.to_word(), *model));
            assert!(all, "the part of PE {pe}");
        }
    }
    world.barrier();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn random_steps_in_random_domains(steps in steps(), bits in 0u32..0x8_0000, seed in 0u64..1000) {
        let ops = AtomicOp::ALL.into_iter().filter(|op| bits >> *op as u8 & 1 == 1).collect::<AtomicOps>();
        let run = |world: &World| {
            take::<u8>(world, &steps, ops);
            take::<i16>(world, &steps, ops);
            take::<f64>(world, &steps, ops);
            take::<Complex<f32>>(world, &steps, ops);
        };
        Spmd::new(3).run(run).unwrap();
        Spmd::new(3).sim(SimParams::chaos(seed)).run(run).unwrap();
    }
}

#[test]
fn refusals_name_pe_operation_range_and_remedy() {
    let body = |world: &World| {
        let (me, team) = (world.my_pe(), world.team());
        let mut array = world.alloc_zeroed::<u64>(4).unwrap();
        let says = |outcome: pelago::Result<()>, words: &str| {
            assert_eq!(outcome.unwrap_err().to_string(), format!("PE {me}: {words}"));
        };
        let ops = [AtomicOp::Fetch, AtomicOp::Add, AtomicOp::CompareSwap];
        let domain = team.atomic_domain::<u64>(ops).unwrap();
        let words = domain.on(&mut array).unwrap();
        let outside = |operation: &str, op: &str| {
            let made = "but the atomic domain was made for U64 with Fetch, Add and CompareSwap only";
            format!("{operation} needs {op}, {made}. Make it with {op} as well, at all members of its team")
        };
        says(words.swap(1, 0, 7).map(drop), &outside("swap", "Set"));
        says(words.atomic_set(1, 0, 7), &outside("atomic_set", "Set"));
        says(words.xor(1, 0, 7), &outside("xor", "Xor"));
        says(words.amo(1, 0, AtomicOp::Max, 7), &outside("amo", "Max"));
        says(words.fetch_amo(1, 0, AtomicOp::Product, 7).map(drop), &outside("fetch_amo", "Product"));
        says(
            words.compare_amo(1, 0, AtomicOp::MaskedSwap, 7, 7).map(drop),
            &outside("compare_amo", "MaskedSwap"),
        );
        says(words.amo_nb(1, 0, AtomicOp::Min, 7).map(drop), &outside("amo_nb", "Min"));
        says(words.fetch_amo_nb(1, 0, AtomicOp::And, 7).map(drop), &outside("fetch_amo_nb", "And"));
        says(
            words.compare_amo_nb(1, 0, AtomicOp::CompareSwapGt, 7, 7).map(drop),
            &outside("compare_amo_nb", "CompareSwapGt"),
        );
        let (mut old, mut other) = (5, 5);
        world.scope(|scope| {
            let region = scope.region();
            says(words.amo_in(scope, 1, 0, AtomicOp::Set, 7), &outside("amo", "Set"));
            says(words.fetch_amo_in(&region, 1, 0, AtomicOp::Or, 7, &mut old), &outside("fetch_amo", "Or"));
            let le = AtomicOp::CompareSwapLe;
            let outcome = words.compare_amo_in(&region, 1, 0, le, 7, 7, &mut other);
            says(outcome, &outside("compare_amo", "CompareSwapLe"));
        });
        assert_eq!((old, other), (5, 5));
        // An operation in the set has the same errors as without a domain.
        let swap = "CompareSwap on U64: it takes a value to compare with; use compare_amo";
        says(words.amo(1, 0, AtomicOp::CompareSwap, 1), &format!("amo cannot execute {swap}"));
        let add = "Add on U64: it takes no value to compare with; use amo or fetch_amo";
        says(
            words.compare_amo(1, 0, AtomicOp::Add, 0, 1).map(drop),
            &format!("compare_amo cannot execute {add}"),
        );
        let beyond = "of 1 elements at index 4 on PE 1 lies outside the array, which has 4 elements a PE";
        says(words.fetch_add(1, 4, 1).map(drop), &format!("fetch_add {beyond}"));
        says(words.amo_nb(1, 4, AtomicOp::Add, 1).map(drop), &format!("amo_nb {beyond}"));
        let nobody = "names PE 2, but the job has 2 PEs, numbered 0 to 1";
        says(words.inc(2, 0), &format!("inc {nobody}"));
        says(words.compare_swap(usize::MAX, 0, 0, 1).map(drop), &{
            format!("compare_swap names PE {}, but the job has 2 PEs, numbered 0 to 1", usize::MAX)
        });
        for (pe, index) in [(2, 0), (usize::MAX, 0), (0, 4), (1, usize::MAX)] {
            for form in FORMS {
                assert!(execute(world, &words, (pe, index), form, AtomicOp::Add, (1, 0)).is_err());
                assert!(execute(world, &words, (pe, index), form, AtomicOp::CompareSwap, (1, 0)).is_err());
            }
        }
        world.barrier();
        assert_eq!((words.len(), array.local().to_vec()), (4, vec![0; 4]));
    };
    Spmd::new(2).run(body).unwrap();
    Spmd::new(2).sim(SimParams::chaos(2)).run(body).unwrap();
}

#[test]
fn domains_of_what_there_is_not_say_why() {
    let body = |world: &World| {
        let (me, team) = (world.my_pe(), world.team());
        let says = |outcome: pelago::Result<()>, words: &str| {
            let words = format!("PE {me}: atomic_domain refused: there is no {words}. Leave it out");
            assert_eq!(outcome.unwrap_err().to_string(), words);
        };
        let bits = "it works on the bits of integers, not on floats";
        let order = "it asks which of two values is the lesser, but complex numbers have no order";
        type C = Complex<f32>;
        says(team.atomic_domain::<f32>(AtomicOps::ALL).map(drop), &format!("And on F32: {bits}"));
        says(team.atomic_domain::<f64>(AtomicOp::Xor).map(drop), &format!("Xor on F64: {bits}"));
        let masked = AtomicOp::MaskedSwap;
        says(team.atomic_domain::<C>(masked).map(drop), &format!("MaskedSwap on ComplexF32: {bits}"));
        says(team.atomic_domain::<C>(AtomicOps::ALL).map(drop), &format!("Min on ComplexF32: {order}"));
        let comparing = [AtomicOp::Add, AtomicOp::CompareSwap, AtomicOp::CompareSwapGe];
        says(team.atomic_domain::<C>(comparing).map(drop), &format!("CompareSwapGe on ComplexF32: {order}"));
        let mut array = world.alloc_zeroed::<C>(1).unwrap();
        let domain = domain_of_all::<C>(world);
        let told = domain.on(&mut array).unwrap().fetch_amo(0, 0, AtomicOp::Max, pair((1.0, 0.0)));
        let told = told.unwrap_err().to_string();
        assert_eq!(told, format!("PE {me}: fetch_amo cannot execute Max on ComplexF32: {order}"));
        array.amo(0, 0, AtomicOp::Min, pair((1.0, 0.0))).unwrap_err();
    };
    Spmd::new(2).run(body).unwrap();
}

#[test]
fn an_array_in_an_exclusive_phase_is_refused() {
    let refused = pelago::sync::AtomicUsize::new(0);
    let outcome = Spmd::new(2).run(|world| {
        let mut array = world.alloc_zeroed::<u64>(8).unwrap();
        let domain = domain_of_all::<u64>(world);
        if world.my_pe() == 0 {
            let phase = std::panic::AssertUnwindSafe(|| array.exclusive(|_| panic!("on purpose")).unwrap());
            assert!(std::panic::catch_unwind(phase).is_err());
            let is_refusal = |e: &pelago::Error| matches!(e.kind(), ErrorKind::ArrayClosed { .. });
            let outcomes = [
                domain.on_shared(&array).err().as_ref().map(is_refusal),
                domain.on(&mut array).err().as_ref().map(is_refusal),
            ];
            let count = outcomes.iter().filter(|is_refused| **is_refused == Some(true)).count();
            refused.store(count, pelago::sync::Ordering::Relaxed);
        } else {
            array.exclusive(|part| assert_eq!(part, [0; 8])).unwrap();
        }
    });
    assert!(outcome.unwrap_err().to_string().contains("on purpose"));
    assert_eq!(refused.into_inner(), 2);
}

#[test]
fn arrays_and_domains_of_other_worlds_are_refused() {
    let body = |outer: &World| {
        let (mut array, domain) = (outer.alloc_zeroed::<u64>(1).unwrap(), domain_of_all::<u64>(outer));
        spmd(1, |inner| {
            let own = inner.alloc_zeroed::<u64>(1).unwrap();
            let refused = domain.on_shared(&own).expect_err("it is an array of another world");
            assert!(matches!(refused.kind(), ErrorKind::OtherWorld { me: 0, operation: "on_shared" }));
            let theirs = domain_of_all::<u64>(inner);
            let refused = theirs.on_shared(&array).expect_err("it is a domain of another world");
            assert!(refused.to_string().ends_with("that of its scope or atomic domain"), "{refused}");
        })
        .unwrap();
        assert!(domain.on(&mut array).is_ok());
    };
    Spmd::new(1).run(body).unwrap();
}
