//! Scattered puts and gets of every kind (dimensions, indexed, vector) in every form: against a model, in all
//! kinds of jobs; their errors; their use of the network; and that a signal follows all of its data.

use crate::common;
use pelago::prelude::*;
use pelago::sim::SimParams;
use pelago::{Comparison, Dimension, Indexed, SignalOp, Spmd, Strided};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

everywhere! {
    a_box_of_a_grid(2): a_box_of_a_grid;
    a_transpose(3): a_transpose;
    signals_follow_all_data(2): signals_follow_all_data;
    quiet_and_fence_complete(2): quiet_and_fence_complete;
    contexts_complete_apart(2): contexts_complete_apart;
    everybody_to_everybody(4): everybody_to_everybody;
    fixed_transfers(3): fixed_transfers;
}

fn dimension(count: usize, array_stride: usize, slice_stride: usize) -> Dimension {
    Dimension { count, array_stride, slice_stride }
}

/// The faces of a box of 5 x 6 x 7 elements, there and back.
fn a_box_of_a_grid(world: &World) {
    let other = 1 - world.my_pe();
    let grid = world.alloc_zeroed::<u32>(5 * 6 * 7).unwrap();
    let at = |x: usize, y: usize, z: usize| (x * 6 + y) * 7 + z;
    // Inner elements of each face, as dense blocks on this side: the direction, and its position.
    for (shape, index, inner) in [
        ([dimension(1, 42, 12), dimension(4, 7, 3), dimension(3, 1, 1)], at(2, 1, 2), (1, 4, 3)),
        ([dimension(3, 42, 4), dimension(1, 7, 12), dimension(4, 1, 1)], at(1, 3, 2), (3, 1, 4)),
        ([dimension(3, 42, 4), dimension(4, 7, 1), dimension(1, 1, 1)], at(1, 1, 6), (3, 4, 1)),
        ([dimension(3, 42, 20), dimension(4, 7, 5), dimension(5, 1, 1)], at(1, 1, 1), (3, 4, 5)),
    ] {
        grid.local().write(0, &[0; 210]);
        world.barrier();
        let source: Vec<u32> = (1..=60).collect();
        grid.put_strided(other, index, &source, &shape).unwrap();
        world.barrier();
        let there = grid.local().to_vec();
        let mut expected = vec![0; 210];
        for x in 0..inner.0 {
            for y in 0..inner.1 {
                for z in 0..inner.2 {
                    let from = x * shape[0].slice_stride + y * shape[1].slice_stride + z;
                    expected[index + at(x, y, z)] = source[from];
                }
            }
        }
        assert_eq!(there, expected, "{shape:?}");
        let mut back = vec![0; 60];
        grid.get_strided(other, index, &mut back, &shape[..]).unwrap();
        let moved = inner.0 * inner.1 * inner.2;
        assert!(back.iter().filter(|&&word| word != 0).eq(&source[..moved]), "{shape:?}: {back:?}");
        world.barrier();
    }
}

/// Strides in opposite order on both sides transpose.
fn a_transpose(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let matrix = world.alloc_zeroed::<u16>(9 * 11).unwrap();
    let rows: Vec<u16> = (0..99).map(|i| (me * 100 + i) as u16).collect();
    matrix.put_strided((me + 1) % n, 0, &rows, &[dimension(9, 1, 11), dimension(11, 9, 1)]).unwrap();
    world.barrier();
    let from = (me + n - 1) % n;
    let expected: Vec<u16> = (0..99).map(|i| (from * 100 + i % 9 * 11 + i / 9) as u16).collect();
    assert_eq!(matrix.local().to_vec(), expected);
    world.barrier();
}

/// Elements of the arrays of these tests.
const LEN: usize = 700;

/// Scattered data of many short runs, few, long ones, and both together, each with its signal.
fn signals_follow_all_data(world: &World) {
    let (me, other) = (world.my_pe(), 1 - world.my_pe());
    let data = world.alloc_zeroed::<u64>(LEN).unwrap();
    let arrived = world.alloc_zeroed::<u64>(1).unwrap();
    let indices: Vec<usize> = (0..90).map(|i| i * 7 % 631).collect();
    let mut ranges = vec![0..1, 10..90, 95..97, 100..101, 110..112, 120..270];
    ranges.extend((0..20).map(|i| 300 + 11 * i..302 + 11 * i));
    let total: usize = ranges.iter().map(Range::len).sum();
    let mut expected = 0;
    for round in 1..=common::rounds(world, 50, 3) {
        let source = vec![round * 2 + me as u64; LEN];
        for way in 0..8 {
            let op = SignalOp::Add(1);
            let (shape, list) =
                (Strided { array_stride: 7, ..Strided::elements(100) }, Indexed::elements(&indices));
            let sent = match way {
                0 => data.put_strided_signal(other, 0, &source, &shape, &arrived, 0, op),
                1 => {
                    let shape = [dimension(9, 70, 3), dimension(3, 5, 1)];
                    data.put_strided_signal(other, 0, &source, &shape, &arrived, 0, op)
                }
                2 => data.put_indexed_signal(other, &source[..90], &list, &arrived, 0, op),
                3 => data.put_vector_signal(other, &ranges, &[&source[..total]], &arrived, 0, op),
                4 => data.put_vector_signal(other, &ranges[1..2], &[&source[..80]], &arrived, 0, op),
                5 => world.scope(|scope| {
                    scope.put_strided_signal(&data, other, 0, &source, &shape, &arrived, 0, op)
                }),
                6 => world.scope(|scope| {
                    let region = scope.region();
                    region.put_indexed_signal(&data, other, &source[..90], &list, &arrived, 0, op)?;
                    region.wait();
                    Ok(())
                }),
                _ => world.scope(|scope| {
                    scope.put_vector_signal(&data, other, &ranges, &[&source[..total]], &arrived, 0, op)
                }),
            };
            sent.unwrap();
            expected += 1;
            arrived.local().wait(0, Comparison::Eq, expected);
            let value = round * 2 + other as u64;
            let places: Vec<usize> = match way {
                0 | 5 => (0..100).map(|i| i * 7).collect(),
                1 => (0..9).flat_map(|i| (0..3).map(move |j| i * 70 + j * 5)).collect(),
                2 | 6 => indices.clone(),
                4 => ranges[1].clone().collect(),
                _ => ranges.iter().flat_map(Clone::clone).collect(),
            };
            let missing = places.iter().find(|&&at| data.local().get(at) != value);
            assert_eq!(missing, None, "round {round}, way {way}");
            world.barrier();
            data.local().write(0, &[0; LEN]);
            world.barrier();
        }
    }
}

/// A put before a fence is delivered when a put after the fence is; the same with quiet, and with the end of
/// a scope.
fn quiet_and_fence_complete(world: &World) {
    let me = world.my_pe();
    let (data, flag) = (world.alloc_zeroed::<u32>(LEN).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
    let indices: Vec<usize> = (0..200).map(|i| i * 3).collect();
    let list = Indexed::elements(&indices);
    for round in 1..=common::rounds(world, 60, 6) {
        let source = vec![round as u32; 200];
        if me == 0 {
            match round % 3 {
                0 => {
                    data.put_indexed(1, &source, &list).unwrap();
                    world.fence();
                }
                1 => {
                    let put = data.put_indexed_nb(1, source.clone(), &list).unwrap();
                    assert_eq!(put.wait_local(), source);
                    world.quiet();
                }
                _ => world.scope(|scope| scope.put_indexed(&data, 1, &source, &list)).unwrap(),
            }
            flag.p(1, 0, round).unwrap();
        } else {
            flag.local().wait_until(0, |value| value == round);
            assert!(indices.iter().all(|&at| data.local().get(at) == round as u32), "round {round}");
        }
        world.barrier();
    }
}

fn contexts_complete_apart(world: &World) {
    let other = 1 - world.my_pe();
    let data = world.alloc_zeroed::<u64>(LEN).unwrap();
    let context = world.context(Default::default()).unwrap();
    let through = data.via(&context);
    let shape = Strided { array_stride: 6, ..Strided::blocks(100, 2) };
    let indices: Vec<usize> = (0..100).map(|i| i * 6).collect();
    for round in 1..=common::rounds(world, 50, 4) {
        through.put_strided(other, 0, &[round; 200], &shape).unwrap();
        context.quiet();
        assert!(indices.iter().all(|&at| data.g(other, at + 1).unwrap() == round));
        let mut back = [0; 100];
        through.get_indexed(other, &mut back, &Indexed::elements(&indices)).unwrap();
        assert_eq!(back, [round; 100]);
        world.barrier();
    }
    through.put_strided(other, 3, &[9; 200], &shape).unwrap();
    drop(context);
    assert_eq!(data.g(other, 4).unwrap(), 9, "dropping the context has completed the put");
    world.barrier();
}

/// More messages than may be outstanding, from all PEs to all others at the same time, while all PEs make
/// gets as well.
fn everybody_to_everybody(world: &World) {
    let (me, n) = (world.my_pe(), world.n_pes());
    let data = world.alloc_zeroed::<u32>(n * 2000).unwrap();
    let source: Vec<u32> = (0..1000).map(|i| (me * 1000 + i) as u32).collect();
    let shape = Strided { array_stride: 2, ..Strided::elements(1000) };
    for _ in 0..common::rounds(world, 5, 1) {
        let repeats = if world.is_simulated() { 2 } else { 30 };
        let mut found = vec![vec![0; 50]; n];
        world
            .scope(|scope| {
                for _ in 0..repeats {
                    (0..n).try_for_each(|pe| scope.put_strided(&data, pe, me * 2000, &source, &shape))?;
                }
                let few = Strided { count: 50, ..shape };
                let mut targets = found.iter_mut().enumerate();
                targets.try_for_each(|(pe, target)| scope.get_strided(&data, pe, me * 2000 + 1, target, &few))
            })
            .unwrap();
        assert!(found.iter().flatten().all(|&word| word == 0), "what lies between was written");
        world.barrier();
        let expected = (0..n * 2000).map(|i| if i % 2 == 0 { (i / 2) as u32 } else { 0 });
        assert!(data.local().to_vec().into_iter().eq(expected));
        world.barrier();
    }
}

/// The elements that a transfer moves.
#[derive(Clone, Debug)]
enum Pattern {
    Grid { index: usize, dimensions: Vec<Dimension> },
    Indexed { block: usize, indices: Vec<usize>, positions: Option<Vec<usize>> },
    Vector { ranges: Vec<Range<usize>>, lengths: Vec<usize> },
}

/// The form of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Blocking,
    Scope,
    Region,
    Handle,
    Context,
    Signal,
    ScopeSignal,
}

const FORMS: [Form; 7] =
    [Form::Blocking, Form::Scope, Form::Region, Form::Handle, Form::Context, Form::Signal, Form::ScopeSignal];

/// A random transfer, which need not be possible.
#[derive(Clone, Debug)]
struct Transfer {
    pe: usize,
    pattern: Pattern,
    slice_len: usize,
    is_put: bool,
    form: Form,
}

/// For each element that moves: its index in the array, and its position in the slice; `None` if the number
/// of elements overflows, or if an element lies outside the address space.
fn pairs(pattern: &Pattern) -> Option<Vec<(usize, usize)>> {
    let mut pairs = Vec::new();
    match pattern {
        Pattern::Grid { index, dimensions } => {
            pairs.push((*index, 0));
            for d in dimensions {
                let of = |(there, here): (usize, usize)| {
                    (0..d.count).map(move |i| (there + i * d.array_stride, here + i * d.slice_stride))
                };
                pairs = pairs.into_iter().flat_map(of).collect();
            }
        }
        Pattern::Indexed { block, indices, positions } => {
            if *block == 0 || positions.as_ref().is_some_and(|p| p.len() != indices.len()) {
                return None;
            }
            for (i, index) in indices.iter().enumerate() {
                let position = positions.as_ref().map_or(i * block, |positions| positions[i]);
                pairs.extend((0..*block).map(|j| (index + j, position + j)));
            }
        }
        Pattern::Vector { ranges, lengths } => {
            if ranges.iter().any(|range| range.start > range.end) {
                return None;
            }
            let there: Vec<usize> = ranges.iter().flat_map(Clone::clone).collect();
            if there.len() != lengths.iter().sum::<usize>() {
                return None;
            }
            pairs.extend(there.into_iter().zip(0..));
        }
    }
    Some(pairs)
}

impl Transfer {
    /// The length of the slice that the call requires, if it must be exact.
    fn exact_len(&self) -> Option<usize> {
        match &self.pattern {
            Pattern::Grid { .. } => None,
            Pattern::Indexed { block, indices, positions: None } => Some(block * indices.len()),
            Pattern::Indexed { .. } => None,
            Pattern::Vector { lengths, .. } => Some(lengths.iter().sum()),
        }
    }

    /// The elements that move, if the transfer is possible.
    fn possible_pairs(&self) -> Option<Vec<(usize, usize)>> {
        let pairs = pairs(&self.pattern)?;
        let is_inside = pairs.iter().all(|&(there, here)| there < LEN && here < self.slice_len);
        let in_place = match &self.pattern {
            Pattern::Grid { index, .. } => *index <= LEN,
            Pattern::Indexed { .. } => true,
            Pattern::Vector { ranges, .. } => ranges.iter().all(|range| range.end <= LEN),
        };
        let is_exact = self.exact_len().is_none_or(|len| len == self.slice_len);
        (self.pe < 3 && is_inside && in_place && is_exact).then_some(pairs)
    }

    fn lists(&self) -> (Vec<Range<usize>>, Indexed<'_>) {
        match &self.pattern {
            Pattern::Vector { lengths, .. } => {
                let mut at = 0;
                let mut piece = |len: &usize| {
                    at += len;
                    at - len..at
                };
                (lengths.iter().map(&mut piece).collect(), Indexed::elements(&[]))
            }
            Pattern::Indexed { block, indices, positions } => {
                let list = Indexed { block: *block, indices, positions: positions.as_deref() };
                (Vec::new(), list)
            }
            Pattern::Grid { .. } => (Vec::new(), Indexed::elements(&[])),
        }
    }

    fn put(&self, arrays: &Arrays<'_, '_>, source: &[u32]) -> pelago::Result<()> {
        let (pe, (data, arrived)) = (self.pe, (arrays.data, arrays.arrived));
        let (world, op) = (data.world(), SignalOp::Add(1));
        let (pieces, list) = self.lists();
        let slices: Vec<&[u32]> = pieces.iter().map(|piece| &source[piece.clone()]).collect();
        let through = data.via(arrays.context);
        macro_rules! forms {
            ($put:ident $signal:ident $handle:ident, [$($before:expr),*], $source:expr, [$($after:expr),*],
             [$($owned:expr),*]) => {
                match self.form {
                    Form::Blocking => data.$put(pe, $($before,)* $source $(, $after)*),
                    Form::Scope => {
                        world.scope(|scope| scope.$put(data, pe, $($before,)* $source $(, $after)*))
                    }
                    Form::Region => world.scope(|scope| {
                        let region = scope.region();
                        region.$put(data, pe, $($before,)* $source $(, $after)*)?;
                        region.wait_local();
                        region.wait();
                        assert!(region.test());
                        Ok(())
                    }),
                    Form::Handle => {
                        let put = data.$handle(pe, $($before,)* source.to_vec() $(, $owned)*)?;
                        assert_eq!(put.wait(), source);
                        Ok(())
                    }
                    Form::Context => {
                        through.$put(pe, $($before,)* $source $(, $after)*)?;
                        arrays.context.quiet();
                        Ok(())
                    }
                    Form::Signal => data.$signal(pe, $($before,)* $source $(, $after)*, arrived, 0, op),
                    Form::ScopeSignal => world.scope(|scope| {
                        scope.$signal(data, pe, $($before,)* $source $(, $after)*, arrived, 0, op)
                    }),
                }
            };
        }
        match &self.pattern {
            Pattern::Grid { index, dimensions } => {
                let d = &dimensions[..];
                forms!(put_strided put_strided_signal put_strided_nb, [*index], source, [d], [d])
            }
            Pattern::Indexed { .. } => {
                forms!(put_indexed put_indexed_signal put_indexed_nb, [], source, [&list], [&list])
            }
            Pattern::Vector { ranges, .. } => match self.form {
                Form::Signal => data.put_vector_signal(pe, ranges, &slices, arrived, 0, op),
                Form::ScopeSignal => {
                    world.scope(|scope| scope.put_vector_signal(data, pe, ranges, &slices, arrived, 0, op))
                }
                Form::Blocking => data.put_vector(pe, ranges, &slices),
                Form::Scope | Form::Region => {
                    world.scope(|scope| scope.put_vector(data, pe, ranges, &slices))
                }
                Form::Handle => data.put_vector_nb(pe, ranges, source.to_vec(), &pieces).map(|put| {
                    assert_eq!(put.wait(), source);
                }),
                Form::Context => {
                    through.put_vector(pe, ranges, &slices)?;
                    arrays.context.quiet();
                    Ok(())
                }
            },
        }
    }

    fn get(&self, arrays: &Arrays<'_, '_>, target: &mut Vec<u32>) -> pelago::Result<()> {
        let (pe, data) = (self.pe, arrays.data);
        let (world, (pieces, list)) = (data.world(), self.lists());
        let through = data.via(arrays.context);
        let owned = target.clone();
        let place = |target: &mut Vec<u32>, found: Vec<u32>| *target = found;
        match (&self.pattern, self.form) {
            (Pattern::Grid { index, dimensions }, form) => {
                let (index, d) = (*index, &dimensions[..]);
                match form {
                    Form::Scope | Form::ScopeSignal => {
                        world.scope(|scope| scope.get_strided(data, pe, index, target, d))
                    }
                    Form::Region => world.scope(|scope| {
                        let region = scope.region();
                        region.get_strided(data, pe, index, target, d)?;
                        region.wait();
                        Ok(())
                    }),
                    Form::Handle => {
                        data.get_strided_nb(pe, index, owned, d).map(|get| place(target, get.wait()))
                    }
                    Form::Context => through.get_strided(pe, index, target, d),
                    _ => data.get_strided(pe, index, target, d),
                }
            }
            (Pattern::Indexed { .. }, form) => match form {
                Form::Scope | Form::ScopeSignal | Form::Region => {
                    world.scope(|scope| scope.get_indexed(data, pe, target, &list))
                }
                Form::Handle => data.get_indexed_nb(pe, owned, &list).map(|get| place(target, get.wait())),
                Form::Context => through.get_indexed(pe, target, &list),
                _ => data.get_indexed(pe, target, &list),
            },
            (Pattern::Vector { ranges, lengths }, form) => {
                let mut rest = &mut target[..];
                let mut slices: Vec<&mut [u32]> = Vec::new();
                for len in lengths {
                    let (first, behind) = rest.split_at_mut(*len);
                    slices.push(first);
                    rest = behind;
                }
                match form {
                    Form::Scope | Form::ScopeSignal | Form::Region => {
                        world.scope(|scope| scope.get_vector(data, pe, ranges, &mut slices))
                    }
                    Form::Handle => {
                        drop(slices);
                        let get = data.get_vector_nb(pe, ranges, owned, &pieces);
                        get.map(|get| place(target, get.wait()))
                    }
                    Form::Context => through.get_vector(pe, ranges, &mut slices),
                    _ => data.get_vector(pe, ranges, &mut slices),
                }
            }
        }
    }

    /// Makes the transfer and the same in the model, and compares.
    fn apply(&self, arrays: &Arrays<'_, '_>, model: &mut [Vec<u32>], stamp: u32) {
        let source: Vec<u32> = (0..self.slice_len as u32).map(|i| stamp * 1000 + i).collect();
        let mut slice = source.clone();
        let outcome = match self.is_put {
            true => self.put(arrays, &slice),
            false => self.get(arrays, &mut slice),
        };
        arrays.data.world().fence();
        let pairs = self.possible_pairs();
        // If several elements are written to one position, any of them may remain; some of these transfers
        // are errors.
        let mut written = BTreeMap::<usize, Vec<u32>>::new();
        for &(there, here) in pairs.iter().flatten() {
            let (place, value) = match self.is_put {
                true => (there, source[here]),
                false => (here, model[self.pe][there]),
            };
            written.entry(place).or_default().push(value);
        }
        let overlaps = written.values().any(|values| values.len() > 1);
        let may_refuse = overlaps && matches!(self.pattern, Pattern::Grid { .. });
        assert!(outcome.is_ok() == pairs.is_some() || may_refuse, "{self:?}: {outcome:?}");
        if outcome.is_err() {
            written.clear();
        }
        let mut there = vec![0; LEN];
        if self.pe < 3 {
            arrays.data.get(self.pe, 0, &mut there).unwrap();
        }
        let (found, before) = match self.is_put {
            true if self.pe < 3 => (&there, &mut model[self.pe]),
            _ => (&slice, &mut source.clone()),
        };
        for (at, (found, before)) in found.iter().zip(before.iter_mut()).enumerate() {
            let is_right = written.get(&at).map_or(found == before, |values| values.contains(found));
            assert!(is_right, "{self:?}: {found} at {at}, which was {before}");
            *before = *found;
        }
    }
}

struct Arrays<'a, 'w> {
    data: &'a Symmetric<'w, u32>,
    arrived: &'a Symmetric<'w, u64>,
    context: &'a pelago::Context<'w>,
}

/// PE 0 makes all transfers; then every PE's part is equal to the model, and the signals have the expected
/// count.
fn make(world: &World, transfers: &[Transfer]) {
    let data = world.alloc_zeroed::<u32>(LEN).unwrap();
    let guard = world.alloc_zeroed::<u32>(LEN).unwrap();
    let arrived = world.alloc_zeroed::<u64>(1).unwrap();
    let context = world.context(Default::default()).unwrap();
    if world.my_pe() == 0 {
        let arrays = Arrays { data: &data, arrived: &arrived, context: &context };
        let (mut model, mut signals) = (vec![vec![0u32; LEN]; 3], [0; 3]);
        for (transfer, stamp) in transfers.iter().zip(1..) {
            let signal = |pe| arrived.atomic_fetch(pe, 0).unwrap();
            transfer.apply(&arrays, &mut model, stamp);
            if transfer.pe < 3 {
                let is_signal = matches!(transfer.form, Form::Signal | Form::ScopeSignal) && transfer.is_put;
                let now = signal(transfer.pe);
                let raised = now - std::mem::replace(&mut signals[transfer.pe], now);
                let is_refused = transfer.possible_pairs().is_none();
                assert!(raised == 0 || is_signal && !is_refused && raised == 1, "{transfer:?}");
            }
        }
        let total: u64 = (0..3).map(|pe| arrived.atomic_fetch(pe, 0).unwrap()).sum();
        assert_eq!(total, signals.iter().sum());
    }
    world.barrier();
    assert!(guard.local().to_vec().iter().all(|&word| word == 0), "the neighbouring array was written");
    world.barrier();
}

/// Each kind in each form, with short runs, long ones, and both.
fn fixed_transfers(world: &World) {
    let vector = |lengths: &[usize], there: &[Range<usize>]| Pattern::Vector {
        ranges: there.to_vec(),
        lengths: lengths.to_vec(),
    };
    let spread: Vec<usize> = (0..40).map(|i| i * 17).collect();
    let patterns = [
        Pattern::Grid {
            index: 3,
            dimensions: vec![dimension(4, 100, 30), dimension(3, 20, 1), dimension(2, 5, 9)],
        },
        Pattern::Grid { index: 0, dimensions: vec![dimension(2, 300, 150), dimension(100, 1, 1)] },
        Pattern::Grid { index: 0, dimensions: vec![dimension(0, 300, 150), dimension(100, 1, 1)] },
        Pattern::Indexed { block: 1, indices: spread.clone(), positions: None },
        Pattern::Indexed {
            block: 3,
            indices: spread.clone(),
            positions: Some((0..40).rev().map(|i| i * 5).collect()),
        },
        Pattern::Indexed { block: 90, indices: vec![500, 0, 200], positions: None },
        Pattern::Indexed { block: 1, indices: Vec::new(), positions: None },
        vector(&[5, 0, 7, 100], &[3..4, 9..9, 10..13, 600..608, 20..120]),
        vector(&[1; 30], &[0..10, 12..32]),
        vector(&[70, 90, 40], &(0..20).map(|i| i * 30..i * 30 + 10).collect::<Vec<_>>()),
        vector(&[], &[]),
    ];
    let transfers = patterns.iter().enumerate().flat_map(|(i, pattern)| {
        FORMS.into_iter().flat_map(move |form| {
            [true, false].map(|is_put| {
                let transfer = Transfer { pe: i % 3, pattern: pattern.clone(), slice_len: 400, is_put, form };
                Transfer { slice_len: transfer.exact_len().unwrap_or(400), ..transfer }
            })
        })
    });
    let transfers: Vec<Transfer> = transfers.collect();
    assert!(transfers.iter().all(|transfer| transfer.possible_pairs().is_some()));
    make(world, &transfers);
}

fn patterns() -> impl Strategy<Value = Pattern> {
    let stride = prop_oneof![1 => Just(1usize), 3 => 0usize..40, 1 => 60usize..200];
    let dimensions = prop::collection::vec((0usize..6, stride.clone(), stride), 0..4);
    let grid = (0usize..120, dimensions).prop_map(|(index, dimensions)| Pattern::Grid {
        index,
        dimensions: dimensions.into_iter().map(|(count, a, s)| dimension(count, a, s)).collect(),
    });
    let block = prop_oneof![1 => Just(0usize), 3 => 1usize..4, 1 => 60usize..80];
    let indices = prop::collection::vec((0usize..LEN, 0usize..320), 0..48);
    let indexed =
        (block, indices, any::<bool>(), any::<bool>()).prop_map(|(block, list, in_place, adjoins)| {
            let (mut indices, positions): (Vec<usize>, Vec<usize>) = list.into_iter().unzip();
            if adjoins && !indices.is_empty() {
                let first = indices[0] % 50;
                indices.iter_mut().enumerate().for_each(|(i, index)| *index = first + i * block + i / 3);
            }
            Pattern::Indexed { block, indices, positions: in_place.then_some(positions) }
        });
    let ranges = prop::collection::vec((0usize..20, prop_oneof![9 => 0usize..5, 1 => 60usize..90]), 0..36);
    let vector = (ranges, prop::collection::vec(0usize..12, 0..30), any::<bool>()).prop_map(
        |(ranges, mut lengths, is_right)| {
            let mut at = 0;
            let range = |(skip, len): (usize, usize)| {
                at += skip + len;
                at - len..at
            };
            let ranges: Vec<_> = ranges.into_iter().map(range).collect();
            let total: usize = ranges.iter().map(Range::len).sum();
            if is_right {
                while lengths.iter().sum::<usize>() > total {
                    lengths.pop();
                }
                lengths.push(total - lengths.iter().sum::<usize>());
            }
            Pattern::Vector { ranges, lengths }
        },
    );
    prop_oneof![grid, indexed, vector]
}

fn transfers() -> impl Strategy<Value = Vec<Transfer>> {
    let form = prop::sample::select(FORMS.to_vec());
    let transfer = (0usize..13, patterns(), 0usize..400, any::<bool>(), form, 0usize..8);
    let transfer = transfer.prop_map(|(pe, pattern, slice_len, is_put, form, wrong)| {
        let pe = if pe == 12 { 3 } else { pe % 3 };
        let transfer = Transfer { pe, pattern, slice_len, is_put, form };
        let is_vector = matches!(transfer.pattern, Pattern::Vector { .. });
        let exact = transfer.exact_len().filter(|_| wrong > 0 || is_vector);
        Transfer { slice_len: exact.unwrap_or(slice_len), ..transfer }
    });
    prop::collection::vec(transfer, 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(feature = "full") { 1000 } else { 64 }))]
    #[test]
    fn random_transfers_equal_the_model(transfers in transfers(), counters: bool, seed in 0u64..1000) {
        Spmd::new(3).counters(counters).run(|world| make(world, &transfers)).unwrap();
        Spmd::new(3).sim(SimParams::chaos(seed)).run(|world| make(world, &transfers)).unwrap();
    }
}

/// Elements without bytes are checked as others are, and no message of the runtime carries them.
#[test]
fn elements_without_bytes_have_every_transfer() {
    type Nothing = [u64; 0];
    let body = |world: &World| {
        let (array, other) = (world.alloc_zeroed::<Nothing>(20).unwrap(), 1 - world.my_pe());
        let (mut many, indices) = ([[]; 20], (0..20).rev().collect::<Vec<usize>>());
        array.p(other, 19, []).unwrap();
        array.put(other, 1, &[[]; 19]).unwrap();
        array.get(other, 0, &mut many).unwrap();
        assert_eq!(array.g(other, 19).unwrap(), [0; 0]);
        array.put_indexed(other, &many, &Indexed::elements(&indices)).unwrap();
        array.get_indexed(other, &mut many, &Indexed::elements(&indices)).unwrap();
        array.put_strided(other, 0, &many, &[dimension(4, 1, 5), dimension(5, 4, 1)]).unwrap();
        assert_eq!(array.put_nb(other, 0, vec![[]; 20]).unwrap().wait().len(), 20);
        let text = array.put(other, 2, &[[]; 19]).unwrap_err().to_string();
        assert!(text.contains("which has 20 elements a PE"), "{text}");
        world.barrier();
    };
    for job in [Spmd::new(2), Spmd::new(2).counters(true), Spmd::new(2).sim(SimParams::default())] {
        job.run(body).unwrap();
    }
}
