//! How scattered transfers use the network: which runs are merged, which are packed, how much is outstanding;
//! and the errors of every kind of transfer, which are found before any element moves.

#![allow(clippy::single_range_in_vec_init, reason = "lists of ranges, of which some have only one")]

use pelago::prelude::*;
use pelago::sim::SimParams;
use pelago::{Comparison, Dimension, ErrorKind, Indexed, SignalOp, Spmd, Strided};
use std::ops::Range;

/// Fabric puts, fabric gets and packed messages.
type Counts = (u64, u64, u64);

/// The operations that PE 0 starts on the fabric while it does `work` with an array of 4096 words, on a
/// network without faults.
fn counts(params: SimParams, work: impl Fn(&World, &Symmetric<'_, u64>) + Sync) -> Counts {
    let body = |world: &World| {
        let array = world.alloc_zeroed::<u64>(4096).unwrap();
        let before = world.counters();
        if world.my_pe() == 0 {
            work(world, &array);
        }
        let after = world.counters();
        world.barrier();
        let parcels = after.parcels - before.parcels;
        (after.net_puts - before.net_puts, after.net_gets - before.net_gets, parcels)
    };
    Spmd::new(2).counters(true).sim(params).run(body).unwrap()[0]
}

fn by_default(work: impl Fn(&World, &Symmetric<'_, u64>) + Sync) -> Counts {
    counts(SimParams::default(), work)
}

fn every(array_stride: usize, strided: Strided) -> Strided {
    Strided { array_stride, ..strided }
}

#[test]
fn what_adjoins_on_both_sides_is_one_put() {
    let words = [7u64; 400];
    let dense = [
        Dimension { count: 4, array_stride: 30, slice_stride: 30 },
        Dimension { count: 1, array_stride: 5, slice_stride: 9 },
        Dimension { count: 30, array_stride: 1, slice_stride: 1 },
    ];
    assert_eq!(by_default(|_, a| a.put_strided(1, 9, &words, &dense).unwrap()), (1, 0, 0));
    assert_eq!(by_default(|_, a| a.put_strided(1, 9, &words, &Strided::blocks(40, 3)).unwrap()), (1, 0, 0));
    // Rows that are adjacent, although no stride shows it.
    let rows = [
        Dimension { count: 3, array_stride: 41, slice_stride: 41 },
        Dimension { count: 2, array_stride: 40, slice_stride: 40 },
    ];
    assert_eq!(by_default(|_, a| a.put_strided(1, 0, &words, &rows).unwrap()), (4, 0, 0));
    let indices: Vec<usize> = (100..400).collect();
    let list = Indexed::elements(&indices);
    assert_eq!(by_default(|_, a| a.put_indexed(1, &words[..300], &list).unwrap()), (1, 0, 0));
    assert_eq!(by_default(|_, a| a.get_indexed(1, &mut [0; 300], &list).unwrap()), (0, 1, 0));
    let two = Indexed::blocks(50, &[50, 100, 150, 500, 550, 600]);
    assert_eq!(by_default(|_, a| a.put_indexed(1, &words[..300], &two).unwrap()), (2, 0, 0));
    let ranges = [0..10, 10..90, 90..90, 90..100];
    assert_eq!(by_default(|_, a| a.put_vector(1, &ranges, &[&words[..100]]).unwrap()), (1, 0, 0));
    assert_eq!(by_default(|_, a| a.get_vector(1, &ranges, &mut [&mut [0; 100]]).unwrap()), (0, 1, 0));
    let (first, second) = ([1; 60], [2; 40]);
    assert_eq!(by_default(|_, a| a.put_vector(1, &ranges, &[&first, &second]).unwrap()), (2, 0, 0));
    let nothing = |_: &World, a: &Symmetric<'_, u64>| {
        a.put_strided(1, 9, &words, &Strided::elements(0)).unwrap();
        a.put_indexed(1, &[], &Indexed::elements(&[])).unwrap();
        a.get_vector(1, &[5..5], &mut []).unwrap();
    };
    assert_eq!(by_default(nothing), (0, 0, 0));
}

#[test]
fn short_runs_are_packed_and_few_or_long_ones_are_not() {
    let words = [7u64; 4096];
    let put = |s: Strided| by_default(move |_, a| a.put_strided(1, 0, &words, &s).unwrap());
    let get = |s: Strided| by_default(move |_, a| a.get_strided(1, 0, &mut [0; 4096], &s).unwrap());
    for (shape, runs, parcels) in [
        (every(2, Strided::elements(15)), 15, 0),
        (every(2, Strided::elements(16)), 0, 1),
        (every(2, Strided::elements(508)), 0, 1),
        (every(2, Strided::elements(509)), 0, 2),
        // Runs of 256 bytes, of which 15 fit in a message with the list; and more.
        (every(40, Strided::blocks(30, 32)), 0, 2),
        (every(40, Strided::blocks(31, 32)), 0, 3),
        (every(40, Strided::blocks(30, 33)), 30, 0),
    ] {
        assert_eq!(put(shape), (runs, 0, parcels), "{shape:?}");
    }
    // Replies have no list.
    assert_eq!(get(every(2, Strided::elements(512))), (0, 0, 1));
    assert_eq!(get(every(2, Strided::elements(513))), (0, 0, 2));
    assert_eq!(get(every(2, Strided::elements(15))), (0, 15, 0));
    assert_eq!(get(every(40, Strided::blocks(20, 33))), (0, 20, 0));
    // Both together: each run by its own length.
    let long = [1000..1100, 1200..1300];
    let ranges: Vec<_> = (0..16).map(|i| 10 * i..10 * i + 1).chain(long).collect();
    let mixed = by_default(|_, a| a.put_vector(1, &ranges, &[&words[..216]]).unwrap());
    assert_eq!(mixed, (2, 0, 1));
    let mixed = by_default(|_, a| a.put_vector(1, &ranges[1..], &[&words[..215]]).unwrap());
    assert_eq!(mixed, (17, 0, 0));
    // To the PE itself, whose progress would unpack it.
    let own = by_default(|_, a| a.put_strided(0, 0, &words, &every(2, Strided::elements(16))).unwrap());
    assert_eq!(own, (16, 0, 0));
}

#[test]
fn short_messages_pack_shorter_runs() {
    let words = [7u64; 256];
    let put = |message_bytes, block| {
        let shape = every(20, Strided::blocks(16, block));
        let params = SimParams { message_bytes, ..SimParams::default() };
        counts(params, move |_, a| a.put_strided(1, 0, &words, &shape).unwrap())
    };
    assert_eq!(put(256, 8), (0, 0, 6), "three of 64 bytes and the list");
    assert_eq!(put(256, 9), (16, 0, 0));
    assert_eq!(put(64, 2), (0, 0, 8));
    assert_eq!(put(63, 1), (16, 0, 0));
}

#[test]
fn a_flood_of_messages_is_complete_after_quiet() {
    let body = |world: &World| {
        let array = world.alloc_zeroed::<u64>(4096).unwrap();
        let words: Vec<u64> = (0..2048).collect();
        if world.my_pe() == 0 {
            // 508 words for each message.
            for _ in 0..40 {
                array.put_strided(1, 0, &words, &every(2, Strided::elements(2048))).unwrap();
            }
            world.quiet();
            assert_eq!(array.g(1, 4094).unwrap(), 2047);
        }
        world.barrier();
        assert!(world.my_pe() == 0 || (0..2048).all(|i| array.local().get(2 * i) == i as u64));
        world.counters().parcels
    };
    let parcels = Spmd::new(2).counters(true).sim(SimParams::default()).run(body).unwrap();
    assert_eq!(parcels, [200, 0]);
}

/// The message follows its data, in order: there is no second round trip.
#[test]
fn a_signal_behind_packed_data_needs_no_answer() {
    let time = |executes_atomics: bool| {
        let params = SimParams { executes_atomics, ..SimParams::default() };
        let body = |world: &World| {
            let data = world.alloc_zeroed::<u64>(100).unwrap();
            let arrived = world.alloc_zeroed::<u64>(1).unwrap();
            let start = world.wtime();
            match world.my_pe() {
                0 => {
                    let (shape, op) = (every(6, Strided::elements(16)), SignalOp::Set(1));
                    data.put_strided_signal(1, 0, &[5; 16], &shape, &arrived, 0, op).unwrap();
                }
                _ => {
                    arrived.local().wait(0, Comparison::Eq, 1);
                }
            }
            let end = world.wtime();
            assert!(world.my_pe() == 0 || (0..16).all(|i| data.local().get(6 * i) == 5));
            (start, end)
        };
        // From the start of the PE that puts, as virtual time is the same at all PEs.
        let times = Spmd::new(2).sim(params).run(body).unwrap();
        times[1].1 - times[0].0
    };
    let (after_answer, in_order) = (time(true), time(false));
    assert!(in_order * 9 < after_answer * 5, "{in_order:?}, with answers {after_answer:?}");
}

#[test]
fn sources_and_lists_are_free_at_once() {
    let body = |world: &World| {
        let array = world.alloc_zeroed::<u64>(4096).unwrap();
        if world.my_pe() == 0 {
            let (mut source, mut indices) = (vec![5; 900], (0..900).map(|i| 4 * i).collect::<Vec<_>>());
            array.put_indexed(1, &source, &Indexed::elements(&indices)).unwrap();
            source.fill(6);
            let ranges: Vec<_> = (0..30).map(|i| 2 * i + 1..2 * i + 2).chain([61..400]).collect();
            array.put_vector(1, &ranges, &[&source[..369]]).unwrap();
            source.fill(0);
            indices.fill(0);
        }
        world.barrier();
        if world.my_pe() == 1 {
            assert!((100..900).all(|i| array.local().get(4 * i) == 5));
            assert!([1, 3, 31, 59, 61, 399].iter().all(|&at| array.local().get(at) == 6));
        }
        world.barrier();
    };
    (0..20).for_each(|seed| drop(Spmd::new(2).sim(SimParams::chaos(seed)).run(body).unwrap()));
}

const fn dimension(count: usize, array_stride: usize, slice_stride: usize) -> Dimension {
    Dimension { count, array_stride, slice_stride }
}

/// Arrays of 20 elements, slices of 10: blocks of dimensions that are errors, and parts of the messages.
const BAD_BLOCKS: [(usize, &[Dimension], &str); 12] = [
    (0, &[dimension(3, 8, 1), dimension(5, 1, 1)], "reaches outside the array, which has 20 elements a PE"),
    (11, &[dimension(10, 1, 1)], "10 elements from index 11 on, on PE 1"),
    (20, &[dimension(1, 1, 1)], "outside the array"),
    (20, &[], "outside the array"),
    (0, &[dimension(2, 2, 5), dimension(6, 1, 1)], "outside the slice, which has only 10 elements"),
    (0, &[dimension(11, 1, 1)], "outside the slice"),
    (0, &[dimension(2, usize::MAX, 1)], "outside the array"),
    (0, &[dimension(2, 1, usize::MAX)], "outside the slice"),
    (0, &[dimension(3, usize::MAX / 2 + 1, 1)], "outside the array"),
    (0, &[dimension(2, usize::MAX, 1), dimension(2, usize::MAX, 1)], "outside the array"),
    (
        0,
        &[dimension(usize::MAX, 0, 0), dimension(2, 0, 0)],
        "its 2 dimensions have more elements than memory",
    ),
    (0, &[dimension(1 << 32, 1, 1), dimension(1 << 32, 1, 1)], "more elements than memory"),
];

const INDICES: &[usize] = &[0, 19];

/// Lists that are errors.
const BAD_LISTS: [(Indexed<'static>, &str); 9] = [
    (Indexed::blocks(0, INDICES), "a block has at least 1 element"),
    (Indexed::blocks(5, INDICES), "of 5 elements at index 19 on PE 1 lies outside the array, which has 20"),
    (Indexed::elements(&[20, 0]), "at index 20"),
    (Indexed::elements(&[0, usize::MAX]), "lies outside the array"),
    (Indexed::blocks(usize::MAX, &[0]), "lies outside the array"),
    (Indexed::elements(INDICES), "the slice has 10 elements, and not those of 2 blocks of 1"),
    (Indexed::elements(INDICES).at(&[0]), "2 indices and 1 positions"),
    (Indexed::elements(INDICES).at(&[0, 10]), "1 elements at position 10 lies outside the slice"),
    (Indexed::blocks(2, &[0, 3]).at(&[0, usize::MAX]), "lies outside the slice"),
];

/// Ranges that are errors, with the length of the slices.
#[expect(clippy::reversed_empty_ranges, reason = "that it is refused is seen here")]
const BAD_RANGES: [(&[Range<usize>], usize, &str); 7] = [
    (&[0..5, 15..21], 10, "of 6 elements at index 15 on PE 1 lies outside the array"),
    (&[21..21], 0, "lies outside the array"),
    (&[0..usize::MAX], 10, "lies outside the array"),
    (&[5..4], 10, "the range 5..4 ends before it begins"),
    (&[0..5, 8..12], 10, "9 elements altogether, and what lies here 10. Both must have as many"),
    (&[], 1, "0 elements altogether, and what lies here 1"),
    (&[0..20], 10, "20 elements altogether"),
];

/// The error messages of puts and gets of every form, which must all fail.
fn refusals(outcomes: impl IntoIterator<Item = pelago::Result<()>>) -> Vec<String> {
    outcomes.into_iter().map(|outcome| outcome.unwrap_err().to_string()).collect()
}

fn assert_all(texts: &[String], words: &str) {
    assert!(texts.iter().all(|text| text.contains(words)), "{words} in {texts:#?}");
}

fn refuse_everything(world: &World) {
    let array = world.alloc_zeroed::<u32>(20).unwrap();
    let arrived = world.alloc_zeroed::<u64>(1).unwrap();
    let (source, mut target, op) = ([1u32; 10], [9u32; 10], SignalOp::Add(1));
    for (index, shape, words) in BAD_BLOCKS {
        let texts = refusals([
            array.put_strided(1, index, &source, shape),
            array.get_strided(1, index, &mut target, shape),
            array.put_strided_signal(1, index, &source, shape, &arrived, 0, op),
            array.put_strided_nb(1, index, source.to_vec(), shape).map(drop),
            array.get_strided_nb(1, index, source.to_vec(), shape).map(drop),
            world.scope(|scope| scope.put_strided(&array, 1, index, &source, shape)),
            world.scope(|scope| scope.put_strided_signal(&array, 1, index, &source, shape, &arrived, 0, op)),
        ]);
        assert_all(&texts, words);
    }
    for (list, words) in BAD_LISTS {
        let texts = refusals([
            array.put_indexed(1, &source, &list),
            array.get_indexed(1, &mut target, &list),
            array.put_indexed_signal(1, &source, &list, &arrived, 0, op),
            array.put_indexed_nb(1, source.to_vec(), &list).map(drop),
            array.get_indexed_nb(1, source.to_vec(), &list).map(drop),
            world.scope(|scope| scope.put_indexed(&array, 1, &source, &list)),
            world.scope(|scope| scope.put_indexed_signal(&array, 1, &source, &list, &arrived, 0, op)),
        ]);
        assert_all(&texts, words);
    }
    for (ranges, len, words) in BAD_RANGES {
        let (first, second) = source[..len].split_at(len / 3);
        let pieces = [0..len / 3, len / 3..len];
        let texts = refusals([
            array.put_vector(1, ranges, &[first, second]),
            array.get_vector(1, ranges, &mut [&mut target[..len]]),
            array.put_vector_signal(1, ranges, &[first, second], &arrived, 0, op),
            array.put_vector_nb(1, ranges, source.to_vec(), &pieces).map(drop),
            array.get_vector_nb(1, ranges, source.to_vec(), &pieces).map(drop),
            world.scope(|scope| scope.put_vector(&array, 1, ranges, &[first, second])),
            world
                .scope(|scope| scope.put_vector_signal(&array, 1, ranges, &[first, second], &arrived, 0, op)),
        ]);
        assert_all(&texts, words);
    }
    refuse_what_does_not_depend_on_the_pattern(world, &array, &arrived);
    world.barrier();
    assert_eq!(
        (array.local().to_vec(), arrived.local().get(0)),
        (vec![0; 20], 0),
        "a refused put has written"
    );
    assert_eq!(target, [9; 10], "a refused get has written");
}

fn refuse_what_does_not_depend_on_the_pattern(
    world: &World,
    array: &Symmetric<'_, u32>,
    arrived: &Symmetric<'_, u64>,
) {
    let (source, op, list) = ([1u32; 2], SignalOp::Set(1), Indexed::elements(INDICES));
    let line = [dimension(2, 1, 1)];
    let texts = refusals([
        array.put_strided(2, 0, &source, &line),
        array.put_indexed(2, &source, &list),
        array.put_vector(usize::MAX, &[0..2], &[&source]),
        array.get_vector_nb(2, &[0..2], vec![0; 2], &[0..2]).map(drop),
        array.put_strided_signal(2, 0, &source, &line, arrived, 0, op),
    ]);
    assert_all(&texts, "the job has 2 PEs");
    let texts = refusals([
        array.put_strided_signal(1, 0, &source, &line, arrived, 1, op),
        array.put_strided_signal(1, 0, &source, &Strided::elements(2), arrived, 1, op),
        array.put_indexed_signal(1, &source, &list, arrived, 1, op),
        array.put_vector_signal(1, &[0..2], &[&source], arrived, 1, op),
    ]);
    assert_all(&texts, "index 1 on PE 1 lies outside the array, which has 1 elements");
    let texts = refusals([
        array.put_vector_nb(1, &[0..3], vec![0; 3], &[0..2, 3..4]).map(drop),
        array.get_vector_nb(1, &[0..2], vec![0; 2], &[1..3]).map(drop),
    ]);
    assert_all(&texts, "lies outside the buffer of");
    // A source element may be used several times; a target element may not be written several times.
    let texts = refusals([
        array.put_strided(1, 0, &source, &[dimension(2, 0, 1)]),
        array.put_strided(1, 0, &source, &[dimension(2, 1, 0), dimension(2, 1, 0), dimension(2, 1, 1)]),
        array.get_strided(1, 0, &mut [1, 2], &[dimension(2, 1, 0)]),
    ]);
    assert_all(&texts, "elements overlap where they are written");
    if world.my_pe() == 0 {
        array.put_strided(1, 0, &[7], &[dimension(20, 1, 0)]).unwrap();
        array.put_strided(1, 0, &[0], &[dimension(20, 1, 0)]).unwrap();
    }
}

#[test]
fn everything_wrong_is_refused_before_anything_moves() {
    Spmd::new(2).run(refuse_everything).unwrap();
    Spmd::new(2).counters(true).run(refuse_everything).unwrap();
    Spmd::new(2).sim(SimParams::default()).run(refuse_everything).unwrap();
}

#[test]
fn arrays_of_another_world_are_refused() {
    let body = |world: &World| {
        let (data, line) = (world.alloc_zeroed::<u8>(10).unwrap(), [dimension(2, 1, 1)]);
        let inner = |other: &World| {
            let arrived = other.alloc_zeroed::<u64>(1).unwrap();
            let is_other = |outcome: pelago::Result<()>| {
                matches!(outcome.unwrap_err().kind(), ErrorKind::OtherWorld { me: 0, .. })
            };
            let op = SignalOp::Set(1);
            assert!(is_other(data.put_strided_signal(0, 0, &[1, 2], &line, &arrived, 0, op)));
            assert!(is_other(other.scope(|scope| scope.put_strided(&data, 0, 0, &[1, 2], &line))));
            let list = Indexed::elements(&[1]);
            assert!(is_other(other.scope(|scope| scope.put_indexed(&data, 0, &[1], &list))));
            assert!(is_other(other.scope(|scope| scope.put_vector(&data, 0, &[1..2], &[&[1]]))));
        };
        Spmd::new(1).run(inner).unwrap();
        assert_eq!(data.local().to_vec(), [0; 10]);
    };
    Spmd::new(1).run(body).unwrap();
}
