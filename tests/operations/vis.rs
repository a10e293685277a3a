//! Strided puts and gets: against a model, of all shapes, in all kinds of jobs, and their errors.

use num_complex::Complex;
use pelago::prelude::*;
use pelago::sim::SimParams;
use pelago::{ErrorKind, Spmd, Strided};
use proptest::prelude::*;
use std::fmt::Debug;

everywhere! {
    a_transpose(3): a_transpose;
    types_and_shapes(2): types_and_shapes;
    scopes_and_regions(3): scopes_and_regions;
    through_a_context(2): through_a_context;
    alone(1): types_and_shapes;
}

/// The value of elements of a slice or a part that no transfer writes.
const UNTOUCHED: usize = 99;

fn strided(count: usize, block: usize, array_stride: usize, slice_stride: usize) -> Strided {
    Strided { count, block, array_stride, slice_stride }
}

/// For each element that moves: its index in the array, and its position in the slice.
fn pairs(index: usize, s: &Strided) -> impl Iterator<Item = (usize, usize)> + '_ {
    let of_block =
        move |i| (0..s.block).map(move |j| (index + i * s.array_stride + j, i * s.slice_stride + j));
    (0..s.count).flat_map(of_block)
}

/// Every PE puts its rows as columns of all others, and gets columns as rows.
fn a_transpose(world: &World) {
    let (me, n, k) = (world.my_pe(), world.n_pes(), 5);
    let side = n * k;
    let matrix = world.alloc_zeroed::<u32>(k * side).unwrap();
    let value = |row: usize, column: usize| (row * 1000 + column + 1) as u32;
    for row in 0..k {
        let elements: Vec<u32> = (0..side).map(|column| value(me * k + row, column)).collect();
        for pe in 0..n {
            // Columns pe * k.. of this row become a column of that PE's rows of the transpose.
            let column = Strided { array_stride: side, ..Strided::elements(k) };
            matrix.put_strided(pe, me * k + row, &elements[pe * k..], &column).unwrap();
        }
    }
    world.barrier();
    for row in 0..k {
        let expected: Vec<u32> = (0..side).map(|column| value(column, me * k + row)).collect();
        assert_eq!(matrix.local().to_vec()[row * side..][..side], expected);
    }
    let next = (me + 1) % n;
    for column in 0..side {
        let mut back = [0; 10];
        let every_other = strided(k, 1, side, 2);
        matrix.get_strided(next, column, &mut back, &every_other).unwrap();
        let expected: Vec<u32> = (0..k).flat_map(|row| [value(column, next * k + row), 0]).collect();
        assert_eq!(back, expected[..]);
    }
    world.barrier();
}

const SHAPES: [Strided; 12] = {
    const fn s(count: usize, block: usize, array_stride: usize, slice_stride: usize) -> Strided {
        Strided { count, block, array_stride, slice_stride }
    }
    [
        s(0, 1, 1, 1),
        s(1, 1, 7, 9),
        s(1, 5, 5, 5),
        s(6, 1, 1, 1),
        s(6, 1, 3, 1),
        s(6, 1, 1, 3),
        s(6, 1, 2, 5),
        s(4, 3, 3, 3),
        s(4, 3, 3, 4),
        s(4, 3, 7, 3),
        s(4, 3, 5, 4),
        s(3, 8, 11, 9),
    ]
};

fn types_and_shapes(world: &World) {
    fn check<T: Element + PartialEq + Debug>(world: &World, make: impl Fn(usize) -> T) {
        let right = (world.my_pe() + 1) % world.n_pes();
        let array = world.alloc_zeroed::<T>(40).unwrap();
        for (round, shape) in SHAPES.iter().enumerate() {
            let source: Vec<T> = (0..40).map(|i| make(100 * round + i)).collect();
            let mut expected = vec![make(UNTOUCHED); 40];
            array.local().write(0, &expected);
            world.barrier();
            array.put_strided(right, 2, &source, shape).unwrap();
            world.barrier();
            pairs(2, shape).for_each(|(there, here)| expected[there] = source[here]);
            assert_eq!(array.local().to_vec(), expected, "{shape:?}");
            let mut target = vec![make(UNTOUCHED); 40];
            let mut expected_back = target.clone();
            array.get_strided(right, 2, &mut target, shape).unwrap();
            pairs(2, shape).for_each(|(there, here)| expected_back[here] = expected[there]);
            assert_eq!(target, expected_back, "{shape:?}");
            world.barrier();
        }
    }
    check(world, |i| i as u8);
    check(world, |i| i as i16 - 50);
    check(world, |i| i as f32 * 0.5);
    check(world, |i| i as u64 * 0x1_0000_0001);
    check(world, |i| i as u128 * 0x1_0000_0001_0000_0001);
    check(world, |i| [i as u8, 2, 3]);
    check(world, |i| Complex::new(i as f64, -1.0));
}

/// Non-blocking: the source is borrowed until the scope ends, and the regions complete independently.
fn scopes_and_regions(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let array = world.alloc_zeroed::<u64>(n * 40).unwrap();
    let rows: Vec<Vec<u64>> =
        (0..n).map(|pe| (0..40).map(|i| (me * 1000 + pe * 100 + i) as u64).collect()).collect();
    let (first, second) = (strided(5, 2, 8, 3), strided(5, 3, 8, 5));
    let outcome = world.scope(|scope| {
        for (pe, row) in rows.iter().enumerate() {
            let region = scope.region();
            region.put_strided(&array, pe, me * 40, row, &first)?;
            scope.put_strided(&array, pe, me * 40 + 4, row, &second)?;
            region.wait_local();
            region.wait();
            assert!(region.test());
        }
        scope.quiet();
        Ok::<(), pelago::Error>(())
    });
    outcome.unwrap();
    world.barrier();
    let part_of = |pe: usize, from: usize| {
        let mut part = vec![0; 40];
        let value = |here: usize| (from * 1000 + pe * 100 + here) as u64;
        pairs(0, &first).chain(pairs(4, &second)).for_each(|(there, here)| part[there] = value(here));
        part
    };
    for from in 0..n {
        assert_eq!(array.local().to_vec()[from * 40..][..40], part_of(me, from));
    }
    let mut columns = vec![vec![0; 40]; n];
    let outcome = world.scope(|scope| {
        let region = scope.region();
        let mut targets = columns.iter_mut().enumerate();
        targets.try_for_each(|(pe, column)| match pe % 2 {
            0 => scope.get_strided(&array, pe, me * 40, column, &first),
            _ => region.get_strided(&array, pe, me * 40, column, &first),
        })
    });
    outcome.unwrap();
    for (pe, column) in columns.iter().enumerate() {
        let part = part_of(pe, me);
        let mut expected = vec![0; 40];
        pairs(0, &first).for_each(|(there, here)| expected[here] = part[there]);
        assert_eq!(column, &expected);
    }
    world.barrier();
}

fn through_a_context(world: &World) {
    let context = world.context(Default::default()).unwrap();
    let array = world.alloc_zeroed::<u16>(30).unwrap();
    let other = 1 - world.my_pe();
    let every_third = Strided { array_stride: 3, ..Strided::elements(10) };
    array.via(&context).put_strided(other, 1, &[7; 10], &every_third).unwrap();
    context.quiet();
    world.barrier();
    let expected: Vec<u16> = (0..30).map(|i| if i % 3 == 1 { 7 } else { 0 }).collect();
    assert_eq!(array.local().to_vec(), expected);
    let mut back = [0; 10];
    array.via(&context).get_strided(other, 1, &mut back, &every_third).unwrap();
    assert_eq!(back, [7; 10]);
    world.barrier();
}

/// A random transfer, which need not be possible.
#[derive(Clone, Debug)]
struct Transfer {
    pe: usize,
    index: usize,
    shape: Strided,
    slice_len: usize,
    is_put: bool,
}

fn transfers() -> impl Strategy<Value = Vec<Transfer>> {
    let shape = (0usize..7, 0usize..5, 0usize..9, 0usize..9);
    let shape = shape.prop_map(|(count, block, a, s)| strided(count, block, a.max(block), s.max(block)));
    let rest = (0usize..4, 0usize..66, 0usize..70, any::<bool>());
    let transfer = (shape, rest).prop_map(|(shape, (pe, index, slice_len, is_put))| Transfer {
        pe,
        index,
        shape,
        slice_len,
        is_put,
    });
    prop::collection::vec(transfer, 0..40)
}

impl Transfer {
    /// Whether every element lies in an array of 60 and in the slice, by a check of each.
    fn is_possible(&self) -> bool {
        let Strided { block, array_stride, slice_stride, .. } = self.shape;
        let is_shape = block > 0 && array_stride >= block && slice_stride >= block;
        let mut pairs = pairs(self.index, &self.shape);
        let is_inside = pairs.all(|(there, here)| there < 60 && here < self.slice_len);
        self.pe < 3 && self.index <= 60 && is_shape && is_inside
    }

    fn apply(&self, array: &Symmetric<'_, u32>, model: &mut [Vec<u32>], stamp: u32) {
        let mut slice: Vec<u32> = (0..self.slice_len as u32).map(|i| stamp * 100 + i).collect();
        let mut expected = slice.clone();
        if self.is_possible() {
            for (there, here) in pairs(self.index, &self.shape) {
                match self.is_put {
                    true => model[self.pe][there] = slice[here],
                    false => expected[here] = model[self.pe][there],
                }
            }
        }
        let outcome = match self.is_put {
            true => array.put_strided(self.pe, self.index, &slice, &self.shape),
            false => array.get_strided(self.pe, self.index, &mut slice, &self.shape),
        };
        assert_eq!(outcome.is_ok(), self.is_possible(), "{self:?}: {outcome:?}");
        assert_eq!(slice, expected, "{self:?}");
        array.world().fence();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_transfers_equal_the_model(transfers in transfers(), counters: bool, seed in 0u64..1000) {
        let run = |world: &World| {
            let array = world.alloc_zeroed::<u32>(60).unwrap();
            let guard = world.alloc_zeroed::<u32>(60).unwrap();
            if world.my_pe() == 0 {
                let mut model = vec![vec![0u32; 60]; 3];
                transfers.iter().zip(1..).for_each(|(transfer, i)| transfer.apply(&array, &mut model, i));
                for (pe, model) in model.iter().enumerate() {
                    let mut part = vec![0; 60];
                    array.get(pe, 0, &mut part).unwrap();
                    assert_eq!(&part, model);
                }
            }
            world.barrier();
            let untouched = guard.local().to_vec().iter().all(|&word| word == 0);
            assert!(untouched, "the neighbouring array was written");
        };
        Spmd::new(3).counters(counters).run(run).unwrap();
        Spmd::new(3).sim(SimParams::chaos(seed)).run(run).unwrap();
    }
}

/// Blocks that touch on both sides are one put, and take exactly its time.
#[test]
fn contiguous_blocks_are_one_transfer() {
    let times = |shape: Strided| {
        let body = |world: &World| {
            let array = world.alloc_zeroed::<u64>(100).unwrap();
            let before = world.wtime();
            if world.my_pe() == 0 {
                array.put_strided(1, 0, &[1; 100], &shape).unwrap();
                world.quiet();
                array.get_strided(1, 0, &mut [0; 100], &shape).unwrap();
            }
            world.wtime() - before
        };
        Spmd::new(2).sim(SimParams::default()).run(body).unwrap()[0]
    };
    let one = times(Strided::blocks(1, 48));
    assert_eq!([times(Strided::elements(48)), times(Strided::blocks(16, 3))], [one; 2]);
    assert!(times(strided(48, 1, 2, 1)) > one && times(strided(48, 1, 1, 2)) > one);
}

#[test]
fn errors_name_pe_operation_pattern_and_remedy() {
    let body = |world: &World| {
        let array = world.alloc_zeroed::<u32>(20).unwrap();
        let me = world.my_pe();
        let put =
            |pe, index, s: Strided| array.put_strided(pe, index, &[1; 10], &s).map_err(|e| e.to_string());
        let get = |pe, index, s: Strided| {
            let mut target = [9; 10];
            let outcome = array.get_strided(pe, index, &mut target, &s).map_err(|e| e.to_string());
            assert!(outcome.is_ok() || target == [9; 10], "a refused get has written");
            outcome
        };
        let text = put(1, 3, strided(3, 2, 8, 2)).unwrap_err();
        let words = "put_strided of 3 blocks of 2 elements, every 8 from index 3 on, on PE 1 reaches \
                     outside the array, which has 20 elements a PE";
        assert_eq!(text, format!("PE {me}: {words}"));
        let text = get(1, 0, strided(3, 2, 2, 5)).unwrap_err();
        let words = "get_strided of 3 blocks of 2 elements, every 5 in the slice, which has only \
                     10 elements. Give a longer slice, or fewer blocks";
        assert_eq!(text, format!("PE {me}: {words}"));
        for shape in [strided(2, 0, 1, 1), strided(2, 3, 2, 3), strided(2, 3, 3, 2), strided(0, 1, 0, 1)] {
            let text = put(0, 0, shape).unwrap_err();
            assert!(text.contains("a block has at least 1 element, and a stride at least those"), "{text}");
            assert!(text.contains(&format!(
                "blocks of {} elements, every {} in the array",
                shape.block, shape.array_stride
            )));
        }
        assert!(get(2, 0, Strided::elements(1)).unwrap_err().contains("get_strided names PE 2"));
        assert!(put(usize::MAX, 0, strided(2, 3, 2, 3)).unwrap_err().contains("the job has 2 PEs"));
        let huge = [
            strided(usize::MAX, 1, 1, 1),
            strided(3, 1, usize::MAX, 1),
            strided(3, 1, 1, usize::MAX),
            strided(2, usize::MAX, usize::MAX, usize::MAX),
            strided(usize::MAX, usize::MAX, usize::MAX, usize::MAX),
        ];
        for shape in huge {
            assert!(put(1, 0, shape).is_err() && get(1, 0, shape).is_err(), "{shape:?}");
        }
        assert!(
            put(1, usize::MAX, Strided::elements(1)).is_err() && put(1, 21, Strided::elements(0)).is_err()
        );
        assert!(put(1, 20, Strided::elements(0)).is_ok() && get(1, 20, Strided::elements(0)).is_ok());
        world.barrier();
        assert_eq!(array.local().to_vec(), [0; 20], "a refused put has written");
    };
    Spmd::new(2).run(body).unwrap();
    Spmd::new(2).counters(true).run(body).unwrap();
    Spmd::new(2).sim(SimParams::chaos(1)).run(body).unwrap();
}

#[test]
fn an_array_in_a_phase_is_closed_to_strided_transfers() {
    let refused = pelago::sync::AtomicUsize::new(0);
    let outcome = Spmd::new(2).run(|world| {
        let mut array = world.alloc_zeroed::<u64>(8).unwrap();
        if world.my_pe() == 0 {
            let phase = std::panic::AssertUnwindSafe(|| array.exclusive(|_| panic!("on purpose")).unwrap());
            assert!(std::panic::catch_unwind(phase).is_err());
            let shape = strided(2, 1, 2, 1);
            let outcomes = [
                array.put_strided(1, 0, &[1, 2], &shape),
                array.get_strided(1, 0, &mut [1, 2], &shape),
                world.scope(|scope| scope.put_strided(&array, 1, 0, &[1, 2], &shape)),
            ];
            let is_refusal = |e: &pelago::Error| matches!(e.kind(), ErrorKind::ArrayClosed { .. });
            let count = outcomes.iter().filter(|o| o.as_ref().is_err_and(is_refusal)).count();
            refused.store(count, pelago::sync::Ordering::Relaxed);
        } else {
            array.exclusive(|part| assert_eq!(part, [0; 8])).unwrap();
        }
    });
    assert!(outcome.unwrap_err().to_string().contains("on purpose"));
    assert_eq!(refused.into_inner(), 3);
}

#[test]
fn a_strided_transfer_counts_as_one() {
    let body = |world: &World| {
        let array = world.alloc_zeroed::<u32>(40).unwrap();
        let before = world.counters();
        let shape = strided(5, 2, 4, 3);
        array.put_strided(1, 0, &[1; 14], &shape).unwrap();
        array.put_strided(0, 0, &[1; 14], &Strided::blocks(5, 2)).unwrap();
        world.scope(|scope| scope.put_strided(&array, 1, 0, &[1; 14], &shape)).unwrap();
        array.get_strided(1, 0, &mut [1; 14], &shape).unwrap();
        assert!(array.put_strided(1, 0, &[1; 13], &shape).is_err(), "refused ones do not count");
        let after = world.counters();
        let puts = (after.puts - before.puts, after.put_bytes - before.put_bytes);
        (puts, (after.gets - before.gets, after.get_bytes - before.get_bytes))
    };
    let on = Spmd::new(2).counters(true);
    assert_eq!(on.run(body).unwrap()[0], ((3, 120), (1, 40)));
    assert_eq!(on.clone().sim(SimParams::chaos(3)).run(body).unwrap()[0], ((3, 120), (1, 40)));
    assert_eq!(Spmd::new(2).run(body).unwrap()[0], ((0, 0), (0, 0)));
}
