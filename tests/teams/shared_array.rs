//! Shared arrays against a model that every PE keeps: layout, single elements, bulk transfers across blocks
//! and owners, pointers; and errors.

use crate::common;
use crate::dice::Dice;
use pelago::prelude::*;
use pelago::upc::{BlockSize, SharedArray};
use pelago::{ErrorKind, Spmd};

everywhere! {
    bulk_alone(1): bulk_follows_the_model;
    bulk_of_two(2): bulk_follows_the_model;
    bulk_of_three(3): bulk_follows_the_model;
    bulk_of_five(5): bulk_follows_the_model;
    odd_elements(3): odd_elements_follow_the_model;
    copies_between_layouts(4): copies_between_layouts;
    own_elements(3): own_elements;
    pointers_lead_to_elements(3): pointers_lead_to_elements;
    over_a_team(4): over_a_team;
}

const BLOCK_SIZES: [BlockSize; 8] = [
    BlockSize::Even,
    BlockSize::Cyclic,
    BlockSize::Of(2),
    BlockSize::Of(3),
    BlockSize::Of(7),
    BlockSize::Of(16),
    BlockSize::Of(1000),
    BlockSize::Indefinite,
];

fn bulk_follows_the_model(world: &World) {
    follow_the_model(world, |number| number as u32);
}

fn odd_elements_follow_the_model(world: &World) {
    follow_the_model(world, |number| [number as u8, (number >> 8) as u8, 3]);
}

/// One PE after the other puts, sets, or copies a range; after a barrier all compare ranges with the model.
fn follow_the_model<T: Element + PartialEq + std::fmt::Debug>(world: &World, make: impl Fn(usize) -> T) {
    let mut dice = Dice(world.n_pes() as u64);
    for (turn, block_size) in BLOCK_SIZES.into_iter().enumerate() {
        // Lengths that are not multiples of blocks, that are 0, and that fill blocks exactly.
        let len = [97, 0, 48, 1, 131, 64, 29, 53][(turn + world.n_pes()) % 8];
        let array = world.shared_array::<T>(len, block_size).unwrap();
        let zero = array.get(0).ok();
        let mut model: Vec<T> = (0..len).filter_map(|_| zero).collect();
        // No PE writes before all have read.
        world.barrier();
        for round in 0..common::rounds(world, 40, 6) as usize {
            let (range, kind, writer) = (dice.range(len), dice.below(4), dice.below(world.n_pes()));
            let values: Vec<T> = range.clone().map(|index| make(1000 * round + index)).collect();
            let is_writer = world.my_pe() == writer;
            match kind {
                0 if !range.is_empty() => {
                    model[range.start] = values[0];
                    is_writer.then(|| array.put(range.start, values[0]).unwrap());
                }
                1 => {
                    let value = make(round + 7);
                    model[range.clone()].fill(value);
                    is_writer.then(|| array.memset(range, value).unwrap());
                }
                _ => {
                    model[range.clone()].copy_from_slice(&values);
                    is_writer.then(|| array.memput(range.start, &values).unwrap());
                }
            }
            world.barrier();
            compare(&array, &model, dice.range(len), &format!("{block_size:?} of {len}, round {round}"));
            world.barrier();
        }
    }
}

fn compare<T: Element + PartialEq + std::fmt::Debug>(
    array: &SharedArray<'_, T>,
    model: &[T],
    range: std::ops::Range<usize>,
    what: &str,
) {
    let Some(&first) = model.first() else {
        assert_eq!((array.forall().count(), array.memget(0, &mut []).is_ok()), (0, true));
        return;
    };
    let mut seen = vec![first; range.len()];
    array.memget(range.start, &mut seen).unwrap();
    assert_eq!(seen, model[range.clone()], "{what}, {range:?}");
    if !range.is_empty() {
        assert_eq!(array.get(range.start).unwrap(), model[range.start], "{what}");
    }
    assert!(array.forall().all(|(index, value)| model[index] == value), "{what}: the own elements");
}

/// Copies between arrays of all layouts, and within one.
fn copies_between_layouts(world: &World) {
    let mut dice = Dice(99);
    let lens = [83, 120];
    for from in [BlockSize::Cyclic, BlockSize::Of(5), BlockSize::Even] {
        for to in [BlockSize::Cyclic, BlockSize::Of(4), BlockSize::Indefinite] {
            let source = world.shared_array::<u16>(lens[0], from).unwrap();
            let target = world.shared_array::<u16>(lens[1], to).unwrap();
            source.update(|index, _| 100 + index as u16);
            let mut model = [vec![0; lens[0]], vec![0; lens[1]]];
            model[0].iter_mut().enumerate().for_each(|(index, value)| *value = 100 + index as u16);
            world.barrier();
            for _ in 0..common::rounds(world, 10, 2) {
                let (range, at, half) = (dice.range(lens[0]), dice.below(37), dice.below(40));
                let (copied, moved) = (range.len(), half.min(40));
                if world.my_pe() == dice.below(world.n_pes()) {
                    target.memcpy(at, &source, range.start, copied).unwrap();
                    world.quiet();
                    source.memcpy(43, &source, 0, moved).unwrap();
                }
                let [old, new] = &mut model;
                new[at..at + copied].copy_from_slice(&old[range]);
                old.copy_within(0..moved, 43);
                world.barrier();
                compare(&target, &model[1], 0..lens[1], &format!("from {from:?} to {to:?}"));
                compare(&source, &model[0], 0..lens[0], &format!("within {from:?}"));
                world.barrier();
            }
        }
    }
}

/// Every element has affinity to one PE, which finds it by its index.
fn own_elements(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    for block_size in BLOCK_SIZES {
        let array = world.shared_array::<u64>(41, block_size).unwrap();
        let layout = *array.layout();
        for (index, local) in array.affine(0..41) {
            assert_eq!(layout.locate(index), (me, local));
            array.local().set(local, index as u64 + 1);
        }
        world.barrier();
        for index in 0..41 {
            assert_eq!(array.get(index).unwrap(), index as u64 + 1, "{block_size:?}");
        }
        let counts: Vec<usize> = (0..n).map(|pe| layout.count_on(pe)).collect();
        assert_eq!((counts.iter().sum::<usize>(), counts[me]), (41, array.forall().count()));
        world.barrier();
        array.update(|index, value| value * 10 + index as u64 % 10);
        assert!(array.forall().all(|(i, value)| value == (i as u64 + 1) * 10 + i as u64 % 10));
        assert!(array.affine(10..20).all(|(index, _)| (10..20).contains(&index)));
        assert_eq!(array.affine(41..99).count() + array.affine(20..20).count(), 0);
        world.barrier();
        array.free().unwrap();
    }
}

/// A pointer traverses an array in the order of its own block size.
fn pointers_lead_to_elements(world: &World) {
    let array = world.shared_array::<u32>(60, BlockSize::Of(4)).unwrap();
    array.update(|index, _| index as u32);
    world.barrier();
    let start = array.pointer(0).unwrap();
    for index in 0..60 {
        let pointer = start + index as isize;
        assert_eq!(array.index_of(pointer).unwrap(), index);
        assert_eq!(pointer - start, index as isize);
        assert_eq!(array.pointer(index).unwrap(), pointer);
    }
    // Element by element round the PEs, in an array distributed in blocks of 4.
    let cyclic = array.pointer(0).unwrap().cast::<u32>(1);
    let walked: Vec<u32> = (0..6).map(|i| array.get(array.index_of(cyclic + i).unwrap()).unwrap()).collect();
    assert_eq!(walked, [0, 4, 8, 1, 5, 9]);
    let own = array.pointer(5).unwrap().cast::<u32>(0);
    assert_eq!(array.index_of(own + 3).unwrap(), 16, "on in the memory of PE 1");
    world.barrier();
}

/// An array of a team numbers its PEs by their ranks; the others take no part.
fn over_a_team(world: &World) {
    let team = world.team().split_strided(3, -2, 2).unwrap();
    if let Some(team) = team {
        let space = team.space(1 << 16).unwrap();
        let array = space.shared_array::<u64>(11, BlockSize::Of(2)).unwrap();
        array.update(|index, _| (10 * index + team.my_rank()) as u64);
        team.barrier();
        let mut all = [0; 11];
        array.memget(0, &mut all).unwrap();
        for (index, value) in all.into_iter().enumerate() {
            assert_eq!(value, 10 * index as u64 + index as u64 / 2 % 2);
        }
        team.barrier();
        if team.my_rank() == 1 {
            array.memset(3..9, 1).unwrap();
        }
        team.barrier();
        assert!(array.affine(3..9).all(|(_, local)| array.local().get(local) == 1));
        assert!(array.forall().all(|(index, value)| (3..9).contains(&index) || value / 10 == index as u64));
        team.barrier();
    }
    world.barrier();
}

#[test]
fn what_is_wrong_is_said() {
    let body = |world: &World| {
        let me = world.my_pe();
        let array = world.shared_array::<u32>(10, BlockSize::Of(3)).unwrap();
        let text = |error: pelago::Error| error.to_string();
        let outside = |call: &str, count, index| {
            format!(
                "PE {me}: {call} of {count} elements at index {index} lies outside the shared array, which \
                 has 10 elements"
            )
        };
        assert_eq!(text(array.get(10).unwrap_err()), outside("get", 1, 10));
        assert_eq!(text(array.put(usize::MAX, 1).unwrap_err()), outside("put", 1, usize::MAX));
        assert_eq!(text(array.strict_get(10).unwrap_err()), outside("strict_get", 1, 10));
        assert_eq!(text(array.strict_put(11, 0).unwrap_err()), outside("strict_put", 1, 11));
        assert_eq!(text(array.memput(8, &[1; 3]).unwrap_err()), outside("memput", 3, 8));
        assert_eq!(
            text(array.memget(usize::MAX, &mut [0; 2]).unwrap_err()),
            outside("memget", 2, usize::MAX)
        );
        assert_eq!(text(array.memset(9..11, 1).unwrap_err()), outside("memset", 2, 9));
        #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
        let reversed = array.memset(5..2, 1);
        assert_eq!(text(reversed.unwrap_err()), outside("memset", 0, 5));
        assert_eq!(text(array.memcpy(8, &array, 0, 3).unwrap_err()), outside("the target of memcpy", 3, 8));
        assert_eq!(text(array.memcpy(0, &array, 8, 3).unwrap_err()), outside("the source of memcpy", 3, 8));
        assert!(text(array.memcpy(0, &array, 2, 3).unwrap_err()).contains("overlap"));
        assert!(array.memcpy(0, &array, 3, 3).is_ok() && array.memcpy(4, &array, 4, 0).is_ok());
        assert_eq!(text(array.pointer(11).unwrap_err()), outside("pointer", 1, 11));
        let end = array.pointer(10).unwrap();
        assert!(text(array.index_of(end).unwrap_err()).contains("points to no element of this array of 10"));
        assert!(array.index_of(array.pointer(0).unwrap() + 100).is_err());
        let between = array.pointer(0).unwrap().cast::<u8>(0) + 2;
        assert!(array.index_of(between.cast::<u32>(3)).is_err());
        assert!(array.memput(10, &[]).is_ok() && array.memget(10, &mut []).is_ok());
        assert!(array.memset(10..10, 1).is_ok());
        let none = world.shared_array::<u32>(10, BlockSize::Of(0)).unwrap_err();
        assert!(matches!(none.kind(), ErrorKind::BadShared { operation: "shared_array", .. }), "{none}");
        let huge = world.shared_array::<u64>(usize::MAX, BlockSize::Cyclic).unwrap_err();
        assert!(
            matches!(huge.kind(), ErrorKind::TooLarge { .. } | ErrorKind::HeapExhausted { .. }),
            "{huge}"
        );
        world.barrier();
        assert!(array.forall().all(|(_, value)| value == 0), "nothing of all this was written");
    };
    spmd(2, body).unwrap();
    Spmd::new(2).counters(true).run(body).unwrap();
    Spmd::new(2).sim(Default::default()).run(body).unwrap();
}

#[test]
fn pes_that_ask_for_different_arrays_are_told() {
    spmd(3, |world| {
        let me = world.my_pe();
        let block_size = BlockSize::Of(if me == 1 { 2 } else { 3 });
        let text = world.shared_array::<u8>(12, block_size).unwrap_err().to_string();
        let other = if me == 1 { 0 } else { 1 };
        assert!(text.contains(&format!("PE {other} calls shared_array(12 elements in blocks of")), "{text}");
        let text = world.shared_array::<u8>(12 + me, BlockSize::Indefinite).unwrap_err().to_string();
        assert!(text.contains("elements without blocks"), "{text}");
        assert!(world.shared_array::<u8>(12, BlockSize::Even).is_ok());
    })
    .unwrap();
}

#[test]
fn arrays_of_another_world_are_not_copied() {
    spmd(1, |world| {
        let outer = world.shared_array::<u8>(4, BlockSize::Even).unwrap();
        spmd(1, |other| {
            let inner = other.shared_array::<u8>(4, BlockSize::Even).unwrap();
            let error = inner.memcpy(0, &outer, 0, 4).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::OtherWorld { operation: "memcpy", .. }));
        })
        .unwrap();
    })
    .unwrap();
}

/// Over the network a range is sent to each PE in one message, for any number of blocks.
#[test]
fn runs_of_a_pe_are_merged() {
    let counted = Spmd::new(3).counters(true).sim(Default::default()).run(|world| {
        let array = world.shared_array::<u32>(300, BlockSize::Cyclic).unwrap();
        let before = world.counters();
        if world.my_pe() == 0 {
            array.memput(1, &[7; 200]).unwrap();
            array.memget(0, &mut [0; 300]).unwrap();
            array.memset(0..300, 1).unwrap();
        }
        world.barrier();
        let after = world.counters();
        (after.puts - before.puts, after.put_bytes - before.put_bytes, after.gets - before.gets)
    });
    assert_eq!(counted.unwrap(), [(6, 2000, 3), (0, 0, 0), (0, 0, 0)]);
}
