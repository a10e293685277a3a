//! Distributed arrays against a model that every PE keeps, in all disciplines and layouts; that concurrent
//! accesses exclude each other; and errors.

use crate::common;
use crate::dice::Dice;
use pelago::distributed::{Array, Atomic, BlockSize, Locked, ReadOnly};
use pelago::prelude::*;
use pelago::{AtomicOp, ErrorKind, Spmd, SpmdError};
use std::time::Duration;

everywhere! {
    model_alone(1): disciplines_follow_the_model;
    model_of_two(2): disciplines_follow_the_model;
    model_of_three(3): disciplines_follow_the_model;
    model_of_five(5): disciplines_follow_the_model;
    odd_elements(3): odd_elements_follow_the_model;
    tickets(4): each_ticket_is_drawn_once;
    lists_of_atomics(3): lists_of_atomics_meet;
    locked_updates(4): updates_exclude_each_other;
    guards(3): guards_exclude_everybody_else;
    readers_together(3): readers_are_in_together;
    forgotten(3): what_is_forgotten_holds_nobody_up;
    over_a_team(4): over_a_team;
    iterators_left(3): iterators_that_are_left;
}

const BLOCK_SIZES: [BlockSize; 6] = [
    BlockSize::Even,
    BlockSize::Cyclic,
    BlockSize::Of(3),
    BlockSize::Of(16),
    BlockSize::Indefinite,
    BlockSize::Of(1000),
];
/// Lengths that are not multiples of blocks, that are 0, and that fill blocks exactly.
const LENS: [usize; 6] = [97, 48, 131, 0, 29, 1];

/// The cases of each body; on a simulated network one half of them, by the number of PEs.
fn lens_and_blocks(world: &World) -> impl Iterator<Item = (usize, BlockSize)> {
    let (n_pes, is_simulated) = (world.n_pes(), world.is_simulated());
    let turn = move |(turn, block_size)| (LENS[(turn + n_pes) % LENS.len()], block_size);
    let others = [(64, BlockSize::Even), (0, BlockSize::Cyclic)];
    let all = BLOCK_SIZES.into_iter().enumerate().map(turn).chain(others);
    let (first, step) = if is_simulated { (n_pes % 2, 2) } else { (0, 1) };
    all.skip(first).step_by(step)
}

/// All changes of an array by any PE in any discipline are visible to all PEs in the next discipline.
fn disciplines_follow_the_model(world: &World) {
    let mut dice = Dice(world.n_pes() as u64);
    for (len, block_size) in lens_and_blocks(world) {
        let mut array = world.distributed_array::<u64>(len, block_size).unwrap();
        let mut model = vec![0; len];
        for round in 0..common::rounds(world, 6, 1) {
            let what = format!("{array:?}, round {round}");
            array.map_in_place(|index, old| old + index as u64 + round);
            model.iter_mut().enumerate().for_each(|(index, value)| *value += index as u64 + round);
            assert!(array.local_iter().all(|(index, &value)| value == model[index]), "{what}");
            let read_only = array.into_read_only().unwrap();
            compare(&read_only, &model, &mut dice, &what);
            let atomic = read_only.into_atomic().unwrap();
            change_atomically(&atomic, &mut model, &mut dice, &what);
            let locked = atomic.into_locked().unwrap();
            let locked = change_locked(locked, &mut model, &mut dice, &what);
            array = locked.into_exclusive().unwrap();
        }
        assert_eq!(array.reduce(ReduceOp::Sum).unwrap(), model.iter().copied().reduce(|a, b| a + b));
        array.free().unwrap();
    }
}

/// All operations that read.
fn compare<T>(array: &Array<'_, T, ReadOnly>, model: &[T], dice: &mut Dice, what: &str)
where
    T: Element + PartialEq + std::fmt::Debug,
{
    let len = model.len();
    assert_eq!((array.len(), array.local().len()), (len, array.local_len()));
    assert!(array.local_iter().all(|(index, value)| *value == model[index]), "{what}");
    assert!(array.local_indices().eq(array.local_iter().map(|(index, _)| index)));
    assert!(array.local_indices().all(|index| array.layout().owner(index) == array.my_rank()));
    assert!(array.iter().eq(model.iter().copied()), "{what}");
    let block_len = 1 + dice.below(40);
    assert!(array.iter_by(block_len).eq(model.iter().copied()), "{what}, by {block_len}");
    for count in [0, 3, 40] {
        let list = dice.list(len, count);
        let expected: Vec<T> = list.iter().map(|&index| model[index]).collect();
        assert_eq!(array.get(&list).unwrap(), expected, "{what}");
        let mut target = expected.clone();
        target.reverse();
        array.get_into(&list, &mut target).unwrap();
        assert_eq!(target, expected, "{what}");
        list.iter().take(2).for_each(|&index| assert_eq!(array.load(index).unwrap(), model[index]));
    }
    if let Some(&first) = model.first() {
        let (start, mut some) = (dice.below(len), vec![first; dice.below(len)]);
        some.truncate(len - start);
        array.read(start, &mut some).unwrap();
        assert_eq!(some, model[start..][..some.len()], "{what}");
    }
}

/// One PE sets some elements; then all PEs add to some.
fn change_atomically(array: &Array<'_, u64, Atomic>, model: &mut [u64], dice: &mut Dice, what: &str) {
    let (len, layout) = (model.len(), *array.layout());
    let n = layout.n_pes();
    let (list, writer) = (dice.set(len, 30), dice.below(n));
    let values: Vec<u64> = list.iter().map(|&index| 1000 + index as u64).collect();
    if array.my_rank() == writer {
        array.put(&list, &values).unwrap();
    }
    list.iter().zip(&values).for_each(|(&index, &value)| model[index] = value);
    // A reduction begins with a barrier.
    let greatest = array.reduce(ReduceOp::Max).unwrap();
    assert_eq!(greatest, model.iter().copied().max(), "{what}");
    assert_eq!(array.get(&list).unwrap(), values, "{what}");
    assert!(array.iter_by(7).eq(model.iter().copied()), "{what}");
    assert!(array.local_iter().eq(array.local_indices().map(|index| (index, model[index]))), "{what}");
    array.reduce(ReduceOp::Max).unwrap();
    let (list, by) = (dice.list(len, 25), 3);
    array.add(&list, &vec![by; list.len()]).unwrap();
    array.amo_all(AtomicOp::Add, &list, &vec![by; list.len()]).unwrap();
    let olds = array.fetch_amo_all(AtomicOp::Add, &list, &vec![by; list.len()]).unwrap();
    list.iter().zip(olds).for_each(|(&index, old)| assert!(old >= model[index], "{what}"));
    list.iter().for_each(|&index| model[index] += 3 * by * n as u64);
}

/// All add to some elements, and change their own parts.
fn change_locked<'w>(
    mut array: Array<'w, u64, Locked>,
    model: &mut [u64],
    dice: &mut Dice,
    what: &str,
) -> Array<'w, u64, Locked> {
    let (len, n, me) = (model.len(), array.layout().n_pes(), array.my_rank());
    let (list, sets) = (dice.list(len, 12), dice.set(len, 20));
    array.add(&list, &vec![5; list.len()]).unwrap();
    list.iter().for_each(|&index| model[index] += 5 * n as u64);
    array.map_in_place(|index, old| old + index as u64).unwrap();
    model.iter_mut().enumerate().for_each(|(index, value)| *value += index as u64);
    let sum = array.reduce(ReduceOp::Sum).unwrap();
    assert_eq!(sum, model.iter().copied().reduce(|a, b| a + b), "{what}");
    assert!(array.iter_by(11).eq(model.iter().copied()), "{what}");
    let expected: Vec<u64> = list.iter().map(|&index| model[index]).collect();
    assert_eq!(array.get(&list).unwrap(), expected, "{what}");
    array.reduce(ReduceOp::Sum).unwrap();
    let values: Vec<u64> = sets.iter().map(|&index| index as u64).collect();
    if me == n / 2 {
        array.put(&sets, &values).unwrap();
        // Complete at return.
        assert_eq!(array.get(&sets).unwrap(), values, "{what}");
    }
    sets.iter().for_each(|&index| model[index] = index as u64);
    array.reduce(ReduceOp::Sum).unwrap();
    let guard = array.read_guard().unwrap();
    assert!(guard.local_iter().all(|(index, &value)| value == model[index]), "{what}");
    drop(guard);
    array
}

/// Elements whose size is not that of a word.
fn odd_elements_follow_the_model(world: &World) {
    let mut dice = Dice(5);
    let make = |number: usize| [number as u8, (number >> 8) as u8, 7];
    for (len, block_size) in lens_and_blocks(world) {
        let mut array = world.distributed_array::<[u8; 3]>(len, block_size).unwrap();
        array.fill(make(1));
        array.map_in_place(|index, old| make(300 * index + usize::from(old[0])));
        let mut model: Vec<[u8; 3]> = (0..len).map(|index| make(300 * index + 1)).collect();
        let mut locked = array.into_locked().unwrap();
        for writer in 0..world.n_pes() {
            let list = dice.set(len, 20);
            let values: Vec<[u8; 3]> = list.iter().map(|&index| make(7 * index + writer)).collect();
            if writer == world.my_pe() {
                locked.put(&list, &values).unwrap();
                list.iter().take(1).for_each(|&index| locked.store(index, make(9)).unwrap());
                assert_eq!(locked.load(*list.first().unwrap_or(&0)).ok(), list.first().map(|_| make(9)));
            }
            list.iter().zip(values).for_each(|(&index, value)| model[index] = value);
            list.iter().take(1).for_each(|&index| model[index] = make(9));
            world.barrier();
            let mut guard = locked.write_guard().unwrap();
            guard.iter_mut().for_each(|value| value[2] = writer as u8);
            drop(guard);
            model.iter_mut().for_each(|value| value[2] = writer as u8);
            world.barrier();
        }
        let array = locked.into_read_only().unwrap();
        compare(&array, &model, &mut dice, &format!("{array:?}"));
    }
}

/// Tickets from one counter, and the largest of many numbers, in any order of arrival.
fn each_ticket_is_drawn_once(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let array = world.distributed_array::<i64>(n + 1, BlockSize::Even).unwrap().into_atomic().unwrap();
    let rounds = common::rounds(world, 100, 4) as i64;
    let mut last = -1;
    for _ in 0..rounds {
        let ticket = array.fetch_add(n, 1).unwrap();
        assert!(ticket > last, "tickets ascend");
        last = ticket;
        array.amo(0, AtomicOp::Max, ticket).unwrap();
        array.fetch_amo(1 % n, AtomicOp::Add, ticket).unwrap();
    }
    let total = rounds * n as i64;
    world.barrier();
    assert_eq!((array.load(n).unwrap(), array.load(0).unwrap() >= total - 1), (total, true));
    world.barrier();
    let expected = array.get(&(0..n).collect::<Vec<_>>()).unwrap();
    world.barrier();
    let mine = -1 - me as i64;
    let wins = (0..n).filter(|&index| {
        let old = array.compare_swap(index, expected[index], mine).unwrap();
        assert!(old == expected[index] || old < 0);
        old == expected[index]
    });
    let wins = wins.count();
    world.barrier();
    let found = (0..n).filter(|&index| array.load(index).unwrap() == mine).count();
    assert_eq!(wins, found, "who wins an element has set it");
    world.barrier();
    let before = array.swap(me, me as i64).unwrap();
    assert!(before < 0);
    world.barrier();
    array.fill(4).unwrap();
    let array = array.into_exclusive().unwrap();
    assert!(array.local().iter().all(|&value| value == 4));
}

/// Lists of all PEs with the same elements: no change is lost, and the old values are those of some order.
fn lists_of_atomics_meet(world: &World) {
    let n = world.n_pes() as u32;
    let array = world.distributed_array::<u32>(8, BlockSize::Cyclic).unwrap().into_atomic().unwrap();
    let list = [0, 5, 0, 7, 5, 0];
    let rounds = common::rounds(world, 50, 3) as u32;
    let mut seen = Vec::new();
    for _ in 0..rounds {
        let olds = array.fetch_amo_all(AtomicOp::Add, &list, &[1; 6]).unwrap();
        seen.extend([olds[0], olds[2], olds[5]]);
        array.add(&list, &[1 << 16; 6]).unwrap();
    }
    seen.iter_mut().for_each(|old| *old &= 0xffff);
    seen.sort_unstable();
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "an old value twice: {seen:?}");
    let array = array.into_read_only().unwrap();
    let times = |count: u32| rounds * n * count * ((1 << 16) + 1);
    assert_eq!(array.get(&[0, 5, 7, 1]).unwrap(), [times(3), times(2), times(1), 0]);
}

/// Elements of two halves that must match, changed by all PEs.
fn updates_exclude_each_other(world: &World) {
    let n = world.n_pes();
    let array = world.distributed_array::<[u64; 2]>(2 * n, BlockSize::Cyclic).unwrap().into_locked().unwrap();
    let list: Vec<usize> = (0..2 * n).chain([0, 0]).collect();
    let rounds = common::rounds(world, 40, 2);
    for _ in 0..rounds {
        array
            .update(&list, &vec![[1, 2]; list.len()], |old, by| {
                assert_eq!(old[1], 2 * old[0], "another PE was here");
                [old[0] + by[0], old[1] + by[1]]
            })
            .unwrap();
        assert!(array.get(&list).unwrap().iter().all(|value| value[1] == 2 * value[0]));
    }
    let array = array.into_read_only().unwrap();
    let times = |count: u64| [rounds * n as u64 * count, 2 * rounds * n as u64 * count];
    assert!(array.iter().enumerate().all(|(index, value)| value == times(if index == 0 { 3 } else { 1 })));
}

/// While a PE holds its part to write, no other PE sees its changes or changes it; while it holds it to read,
/// no PE changes it.
fn guards_exclude_everybody_else(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let len = 40 * n;
    let mut array = world.distributed_array::<u64>(len, BlockSize::Even).unwrap().into_locked().unwrap();
    let words = world.alloc_zeroed::<u64>(1).unwrap();
    // Lets the others run for a while.
    let pause = || {
        (0..3).for_each(|_| assert_eq!(words.g((me + 1) % n, 0).unwrap(), 0));
        std::thread::yield_now();
    };
    let rounds = common::rounds(world, 60, 4);
    for round in 0..rounds {
        match (round as usize + me) % 3 {
            0 => {
                let mut guard = array.write_guard().unwrap();
                let value = guard[0];
                for place in 0..guard.len() {
                    assert_eq!(guard[place], value, "PE {me}, round {round}");
                    guard[place] = value + 1;
                    if place == 20 {
                        pause();
                    }
                }
            }
            1 => {
                let guard = array.read_guard().unwrap();
                let before = guard.to_vec();
                assert!(before.iter().all(|&value| value == before[0]), "PE {me}, round {round}");
                pause();
                assert_eq!(*guard, before, "PE {me}, round {round}");
                drop(guard);
                array.map_in_place(|_, value| value + 1).unwrap();
            }
            _ => {
                let other = (me + 1 + round as usize % n) % n;
                let list: Vec<usize> = (40 * other..40 * other + 40).collect();
                let values = array.get(&list).unwrap();
                assert!(values.iter().all(|&value| value == values[0]), "PE {me} of {other}, round {round}");
                array.add(&list, &[1; 40]).unwrap();
            }
        }
    }
    let array = array.into_read_only().unwrap();
    let sum: u64 = array.iter().sum();
    assert_eq!(sum, 40 * rounds * n as u64, "each change counts once");
}

/// Readers share a part.
fn readers_are_in_together(world: &World) {
    let n = world.n_pes();
    let mut array = world.distributed_array::<u32>(n, BlockSize::Even).unwrap().into_locked().unwrap();
    array.fill(3).unwrap();
    let probe = world.distributed_array::<u32>(n, BlockSize::Even).unwrap().into_locked().unwrap();
    world.barrier();
    for _ in 0..common::rounds(world, 20, 2) {
        let guard = array.read_guard().unwrap();
        // All hold their own parts here, to read.
        world.barrier();
        assert_eq!((guard[0], guard.len()), (3, 1));
        drop(guard);
        assert!(array.get(&(0..n).collect::<Vec<_>>()).unwrap().iter().all(|&value| value == 3));
        assert_eq!(probe.load(world.my_pe()).unwrap(), 0);
        world.barrier();
    }
}

/// The part of a forgotten guard is released at the next call, a conversion or the drop of the array.
fn what_is_forgotten_holds_nobody_up(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let mut array = world.distributed_array::<u32>(n, BlockSize::Even).unwrap().into_locked().unwrap();
    for round in 0..3 {
        let mut guard = array.write_guard().unwrap();
        guard[0] = round;
        std::mem::forget(guard);
        std::mem::forget(array.read_guard().unwrap());
        assert_eq!(array.load(me).unwrap(), round);
        world.barrier();
        assert_eq!(array.load((me + 1) % n).unwrap(), round);
        world.barrier();
    }
    std::mem::forget(array.write_guard().unwrap());
    assert_eq!(array.reduce(ReduceOp::Sum).unwrap(), Some(2 * n as u32));
    std::mem::forget(array.write_guard().unwrap());
    let mut array = array.into_atomic().unwrap().into_locked().unwrap();
    array.fill(9).unwrap();
    world.barrier();
    if me == 0 {
        std::mem::forget(array.write_guard().unwrap());
        drop(array);
    } else {
        assert_eq!(array.load(0).unwrap(), 9, "as PE 0 drops the array");
    }
    // An array that a PE forgets costs memory, no more.
    let other = world.distributed_array::<u8>(n, BlockSize::Even).unwrap();
    if me == 0 {
        std::mem::forget(other)
    } else {
        drop(other)
    }
    world.barrier();
}

/// An array of a team numbers its PEs by their ranks; the others take no part.
fn over_a_team(world: &World) {
    if let Some(team) = world.team().split_strided(3, -2, 2).unwrap() {
        let space = team.space(1 << 16).unwrap();
        let mut array = space.distributed_array::<u64>(11, BlockSize::Of(2)).unwrap();
        array.map_in_place(|index, _| (10 * index + team.my_rank()) as u64);
        let array = array.into_read_only().unwrap();
        let expected = |index: usize| 10 * index as u64 + index as u64 / 2 % 2;
        assert!(array.iter_by(3).eq((0..11).map(expected)));
        let locked = array.into_locked().unwrap();
        locked.add(&[10, 0, 10], &[1, 1, 1]).unwrap();
        let atomic = locked.into_atomic().unwrap();
        atomic.add(&[10], &[100]).unwrap();
        let array = atomic.into_read_only().unwrap();
        assert_eq!(array.get(&[10, 0, 3]).unwrap(), [expected(10) + 204, 2, expected(3)]);
        assert_eq!(array.reduce(ReduceOp::Min).unwrap(), Some(2));
        array.free().unwrap();
    }
    world.barrier();
}

/// Iterators that are dropped or forgotten before their end, with an outstanding get of the next block.
fn iterators_that_are_left(world: &World) {
    let mut array = world.distributed_array::<u64>(200, BlockSize::Cyclic).unwrap();
    array.map_in_place(|index, _| index as u64);
    let array = array.into_read_only().unwrap();
    assert_eq!(array.iter_by(10).nth(15), Some(15));
    let mut iter = array.iter_by(10);
    assert_eq!((iter.next(), iter.len()), (Some(0), 199));
    std::mem::forget(iter);
    let both = array.iter_by(9).zip(array.iter_by(31));
    assert!(both.enumerate().all(|(index, pair)| pair == (index as u64, index as u64)));
    let array = array.into_exclusive().unwrap();
    assert!(array.local_iter().all(|(index, &value)| value == index as u64));
}

/// The threads of a PE share an array.
#[test]
fn threads_of_a_pe_share_an_array() {
    for job in [Spmd::new(2), Spmd::new(2).counters(true)] {
        job.run(|world| {
            let pairs = world.distributed_array::<[u32; 2]>(4, BlockSize::Cyclic).unwrap();
            let locked = pairs.into_locked().unwrap();
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| {
                        for _ in 0..50 {
                            locked
                                .update(&[0, 3, 0], &[[1, 1]; 3], |old, by| {
                                    assert_eq!(old[0], old[1]);
                                    [old[0] + by[0], old[1] + by[1]]
                                })
                                .unwrap();
                            assert!(locked.iter().all(|value| value[0] == value[1]));
                        }
                    });
                }
            });
            let array = locked.into_read_only().unwrap();
            std::thread::scope(|scope| {
                let sum = || array.iter().map(|value| value[0]).sum::<u32>();
                let sums = [scope.spawn(sum), scope.spawn(sum)].map(|thread| thread.join().unwrap());
                assert_eq!(sums, [900, 900]);
            });
        })
        .unwrap();
    }
}

/// Runs a body over memory, with operations counted, and over a network.
fn three_ways(body: impl Fn(&World) + Sync) {
    spmd(2, &body).unwrap();
    Spmd::new(2).counters(true).run(&body).unwrap();
    Spmd::new(2).sim(Default::default()).run(&body).unwrap();
}

/// The text of errors of an array of 10 elements.
fn outside(world: &World, call: &str, count: usize, index: usize) -> String {
    let me = world.my_pe();
    format!(
        "PE {me}: {call} of {count} elements at index {index} lies outside the distributed array, which has \
         10 elements"
    )
}

fn in_list(world: &World, call: &str, index: usize, number: usize) -> String {
    let list = format!(" (place {number} of the list)");
    outside(world, call, 1, index).replace(" lies", &format!("{list} lies"))
}

fn differ(world: &World, call: &str, indices: usize, values: usize) -> String {
    let me = world.my_pe();
    format!("PE {me}: {call} has {indices} indices and {values} values. Give as many of both")
}

fn said<R>(outcome: pelago::Result<R>) -> String {
    outcome.map(|_| "it was done").unwrap_err().to_string()
}

/// Elements that do not exist, and lengths that differ; no element is changed then.
#[test]
fn what_is_wrong_is_said() {
    three_ways(|world| {
        let array = world.distributed_array::<u32>(10, BlockSize::Of(3)).unwrap();
        let array = array.into_read_only().unwrap();
        assert_eq!(said(array.load(10)), outside(world, "load", 1, 10));
        assert_eq!(said(array.load(usize::MAX)), outside(world, "load", 1, usize::MAX));
        assert_eq!(said(array.read(8, &mut [0; 3])), outside(world, "read", 3, 8));
        assert_eq!(said(array.read(usize::MAX, &mut [0; 2])), outside(world, "read", 2, usize::MAX));
        assert_eq!(said(array.get(&[1, 2, 10])), in_list(world, "get", 10, 2));
        assert_eq!(said(array.get_into(&[11, 1], &mut [0; 2])), in_list(world, "get_into", 11, 0));
        assert_eq!(said(array.get_into(&[1], &mut [0; 2])), differ(world, "get_into", 1, 2));
        assert!(array.read(10, &mut []).is_ok() && array.get(&[]).unwrap().is_empty());
        let array = array.into_atomic().unwrap();
        assert_eq!(said(array.load(10)), outside(world, "load", 1, 10));
        assert_eq!(said(array.store(10, 1)), outside(world, "store", 1, 10));
        assert_eq!(said(array.swap(12, 1)), outside(world, "swap", 1, 12));
        assert_eq!(said(array.compare_swap(10, 0, 1)), outside(world, "compare_swap", 1, 10));
        assert_eq!(said(array.fetch_add(10, 1)), outside(world, "fetch_add", 1, 10));
        assert_eq!(said(array.amo(10, AtomicOp::Max, 1)), outside(world, "amo", 1, 10));
        assert_eq!(said(array.fetch_amo(10, AtomicOp::Max, 1)), outside(world, "fetch_amo", 1, 10));
        assert_eq!(said(array.put(&[0, 10], &[1, 1])), in_list(world, "put", 10, 1));
        assert_eq!(said(array.put(&[0, 1], &[1])), differ(world, "put", 2, 1));
        assert_eq!(said(array.add(&[0, 10], &[1, 1])), in_list(world, "add", 10, 1));
        assert_eq!(said(array.add(&[0], &[])), differ(world, "add", 1, 0));
        assert_eq!(said(array.amo_all(AtomicOp::Or, &[0, 99], &[1; 2])), in_list(world, "amo_all", 99, 1));
        let outcome = array.fetch_amo_all(AtomicOp::Or, &[0, 1], &[1; 3]);
        assert_eq!(said(outcome), differ(world, "fetch_amo_all", 2, 3));
        let array = array.into_locked().unwrap();
        assert_eq!(said(array.load(10)), outside(world, "load", 1, 10));
        assert_eq!(said(array.store(10, 1)), outside(world, "store", 1, 10));
        assert_eq!(said(array.get(&[10])), in_list(world, "get", 10, 0));
        assert_eq!(said(array.put(&[9, 10], &[1, 1])), in_list(world, "put", 10, 1));
        assert_eq!(said(array.add(&[9, 8], &[1])), differ(world, "add", 2, 1));
        assert_eq!(said(array.update(&[9], &[1, 2], |_, by| by)), differ(world, "update", 1, 2));
        let array = array.into_exclusive().unwrap();
        assert!(array.local().iter().all(|&value| value == 0), "nothing of all this was written");
    });
}

/// Operations that a type does not have, and arrays that cannot be made.
#[test]
fn what_there_is_not_is_refused() {
    three_ways(|world| {
        let words = world.distributed_array::<u32>(10, BlockSize::Of(3)).unwrap().into_atomic().unwrap();
        let error = words.amo_all(AtomicOp::CompareSwap, &[0], &[1]).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::UndefinedAtomic { operation: "amo_all", .. }), "{error}");
        let floats = world.distributed_array::<f32>(3, BlockSize::Even).unwrap();
        let text = said(floats.reduce(ReduceOp::Xor));
        assert!(text.ends_with("xor is not defined for f32. See Reducible for what is"), "{text}");
        let floats = floats.into_atomic().unwrap();
        assert!(floats.amo_all(AtomicOp::Xor, &[0], &[1.0]).is_err());
        let none = world.distributed_array::<u32>(10, BlockSize::Of(0)).unwrap_err();
        assert!(matches!(none.kind(), ErrorKind::BadDistributed { operation: "distributed_array", .. }));
        let huge = world.distributed_array::<u64>(usize::MAX, BlockSize::Cyclic).unwrap_err();
        assert!(
            matches!(huge.kind(), ErrorKind::TooLarge { .. } | ErrorKind::HeapExhausted { .. }),
            "{huge}"
        );
    });
}

#[test]
fn pes_that_ask_for_different_arrays_are_told() {
    spmd(3, |world| {
        let me = world.my_pe();
        let text = world.distributed_array::<u8>(12 + me / 2, BlockSize::Even).unwrap_err().to_string();
        let other = if me == 2 { 0 } else { 2 };
        let said = format!("PE {other} calls distributed_array({} elements", 12 + other / 2);
        assert!(text.contains(&said), "{text}");
        assert!(world.distributed_array::<u8>(12, BlockSize::Even).is_ok());
    })
    .unwrap();
}

/// PEs that convert to different disciplines, or different arrays, get errors that name both, and continue.
#[test]
fn pes_that_do_not_agree_are_told() {
    let body = |world: &World| {
        let me = world.my_pe();
        let array = world.distributed_array::<u64>(10, BlockSize::Even).unwrap();
        let name = format!("{array:?}");
        let expected = "Array<u64, Exclusive>(10 in blocks of 4 on 3 PEs, at heap offset ";
        assert!(name.starts_with(expected), "{name}");
        let offset = name.trim_end_matches(')').rsplit(' ').next().unwrap();
        let text = match me {
            1 => array.into_atomic().map(drop).unwrap_err().to_string(),
            _ => array.into_read_only().map(drop).unwrap_err().to_string(),
        };
        for (pe, call) in [(0, "into_read_only"), (1, "into_atomic")] {
            let said = format!("PE {pe} calls {call}(distributed array at heap offset {offset})");
            assert!(text.contains(&said) || me == 2 && pe == 0, "PE {me}: {text}, not {said}");
        }
        let mut arrays = [0, 1].map(|_| world.distributed_array::<u64>(10, BlockSize::Even).unwrap());
        if me == 2 {
            arrays.reverse();
        }
        let [first, second] = arrays;
        assert!(matches!(first.into_locked().map(drop).unwrap_err().kind(), ErrorKind::Disagreement { .. }));
        assert!(second.into_locked().is_err());
        let array = world.distributed_array::<u64>(10, BlockSize::Even).unwrap();
        let text = match me {
            0 => world.alloc::<u8>(1).map(drop).unwrap_err().to_string(),
            _ => array.into_locked().map(drop).unwrap_err().to_string(),
        };
        assert!(text.contains("into_locked(") && text.contains("alloc(1 bytes"), "{text}");
        world.barrier();
        assert!(world.distributed_array::<u64>(10, BlockSize::Even).unwrap().into_locked().is_ok());
    };
    spmd(3, body).unwrap();
    Spmd::new(3).sim(Default::default()).run(body).unwrap();
}

/// In a team, too.
#[test]
fn members_that_do_not_agree_are_told() {
    spmd(2, |world| {
        let space = world.team().space(1 << 16).unwrap();
        let array = space.distributed_array::<u64>(10, BlockSize::Even).unwrap();
        let text = match world.my_pe() {
            0 => array.into_atomic().map(drop).unwrap_err().to_string(),
            _ => array.into_read_only().map(drop).unwrap_err().to_string(),
        };
        assert!(text.contains("into_read_only(distributed") && text.contains("into_atomic("), "{text}");
    })
    .unwrap();
}

fn failure(job: &Spmd, body: impl Fn(&World) + Sync) -> String {
    match job.run(body) {
        Err(SpmdError::Panicked { message, .. }) => message,
        other => panic!("the job was to fail, not {other:?}"),
    }
}

/// A conversion that a PE does not enter ends, with a message that names the conversion and the missing PE.
#[test]
fn a_pe_that_does_not_come_is_named() {
    let limited = Spmd::new(3).wait_limit(Duration::from_millis(300));
    for is_team in [false, true] {
        // PE 2 stays away until the others have given up.
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let (tell, told) = (std::sync::Mutex::new(Some(tell)), std::sync::Mutex::new(told));
        let text = failure(&limited, |world| {
            let whole = world.team();
            let space = is_team.then(|| whole.space(1 << 16).unwrap());
            let array = match &space {
                None => world.distributed_array::<u64>(10, BlockSize::Even).unwrap(),
                Some(space) => space.distributed_array::<u64>(10, BlockSize::Even).unwrap(),
            };
            if world.my_pe() == 2 {
                let waited = told.lock().unwrap().recv_timeout(Duration::from_secs(30));
                assert!(waited.is_err(), "the senders are dropped");
                return;
            }
            let _tell = if world.my_pe() == 0 { tell.lock().unwrap().take() } else { None };
            let _ = array.into_read_only();
        });
        assert!(text.contains("has waited 300ms for"), "{text}");
        assert!(text.contains("into_read_only(distributed array at heap offset"), "{text}");
        assert!(text.contains("set by PELAGO_WAIT_LIMIT"), "{text}");
        let missing = if is_team { "for PE 2 in exchange of a team" } else { "PEs [2] have not come" };
        assert!(text.contains(missing), "{text}");
    }
}

/// The same for a PE that leaves the job, over memory and over a network.
#[test]
fn a_pe_that_has_left_is_named() {
    for job in [Spmd::new(2), Spmd::new(2).sim(Default::default())] {
        let text = failure(&job, |world| {
            let array = world.distributed_array::<u64>(10, BlockSize::Even).unwrap();
            if world.my_pe() == 0 {
                let _ = array.into_locked();
            }
        });
        assert!(text.contains("into_locked(distributed array at heap offset"), "{text}");
        assert!(text.contains("PE 1 has left the job"), "{text}");
    }
}

/// A call that waits for other PEs is an error within the function of an update, which holds a part.
#[test]
fn a_function_that_waits_is_refused() {
    for job in [Spmd::new(2), Spmd::new(2).sim(Default::default())] {
        let text = failure(&job, |world| {
            let array = world.distributed_array::<u64>(4, BlockSize::Even).unwrap().into_locked().unwrap();
            let _ = array.update(&[0], &[1], |old, _| old + array.load(1).unwrap());
        });
        assert!(text.contains("the function of update calls load"), "{text}");
    }
}

/// A panic while a part is held is the job's failure, and no PE hangs.
#[test]
fn a_panic_under_a_lock_ends_the_job() {
    for seed in 0..4 {
        for job in [Spmd::new(3), Spmd::new(3).sim(pelago::sim::SimParams::chaos(seed))] {
            let text = failure(&job, |world| {
                let array = world.distributed_array::<u64>(3, BlockSize::Even).unwrap();
                let mut array = array.into_locked().unwrap();
                for round in 0..20 {
                    array.add(&[0, 1, 2], &[1; 3]).unwrap();
                    let guard = array.write_guard().unwrap();
                    assert!(world.my_pe() != 1 || round < 7 || guard[0] == 0, "the matrix is singular");
                }
            });
            assert!(text.contains("the matrix is singular"), "{text}");
        }
    }
}

/// The counts of a PE during a call: gets, puts, atomics, parcels.
fn counted(world: &World, call: impl FnOnce()) -> [u64; 4] {
    let before = world.counters();
    call();
    let after = world.counters();
    [
        after.gets - before.gets,
        after.puts - before.puts,
        after.atomics - before.atomics,
        after.parcels - before.parcels,
    ]
}

/// Over the network only the calls of atomic arrays have a cost for each element.
#[test]
fn calls_cost_what_is_said() {
    let list: Vec<usize> = (0..300).map(|number| number * 7 % 300).collect();
    let counted = Spmd::new(3).counters(true).sim(Default::default()).run(|world| {
        let array = world.distributed_array::<u64>(300, BlockSize::Cyclic).unwrap().into_read_only().unwrap();
        let is_first = world.my_pe() == 0;
        let all = |call: &dyn Fn()| if is_first { counted(world, call) } else { [0; 4] };
        let mut costs = vec![
            all(&|| drop(array.get(&list).unwrap())),
            all(&|| assert_eq!(array.iter_by(100).sum::<u64>(), 0)),
            all(&|| array.read(0, &mut [0; 300]).unwrap()),
        ];
        let array = array.into_atomic().unwrap();
        costs.push(all(&|| array.add(&list, &[1; 300]).unwrap()));
        costs.push(all(&|| drop(array.get(&list).unwrap())));
        let array = array.into_locked().unwrap();
        costs.push(all(&|| drop(array.get(&list).unwrap())));
        costs.push(all(&|| array.put(&list, &[1; 300]).unwrap()));
        costs.push(all(&|| array.add(&list, &[1; 300]).unwrap()));
        world.barrier();
        costs
    });
    let costs = &counted.unwrap()[0];
    // The own group is not fetched, or not packed.
    assert_eq!(costs[..3], [[2, 0, 0, 2], [9, 0, 0, 0], [3, 0, 0, 0]]);
    assert_eq!(costs[3..5], [[0, 0, 300, 0], [0, 0, 300, 0]]);
    // A lock takes 4 atomics. An update goes through the positions in order: adjacent positions are one run.
    assert_eq!(costs[5..], [[3, 0, 12, 2], [0, 3, 12, 2], [3, 3, 12, 0]]);
}
