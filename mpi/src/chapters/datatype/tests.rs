//! Random nested datatypes, compared with their type maps written out entry by entry.

use super::array::{Dimension, distributed, subarray};
use super::contents::Arguments;
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// A datatype as a type map: each entry with the offset of its first byte.
#[derive(Clone, Debug)]
struct Map {
    entries: Vec<(Named, i64)>,
    markers: Option<(i64, i64)>,
    alignment: i64,
}

/// The bytes of an entry, by their distance from its first byte.
fn bytes_of_entry(named: Named) -> Vec<i64> {
    let (first, second) = named.parts();
    let mut bytes: Vec<i64> = (0..first.native_bytes() as i64).collect();
    if let Some(second) = second {
        let start = (first.native_bytes() as i64 + second.native as i64 - 1) / second.native as i64;
        bytes.extend((0..second.native_bytes() as i64).map(|byte| start * second.native as i64 + byte));
    }
    bytes
}

impl Map {
    fn named(handle: MPI_Datatype) -> Map {
        let named = Named::of(handle).unwrap();
        let (first, second) = named.parts();
        let alignment = first.native.max(second.map_or(1, |second| second.native)) as i64;
        Map { entries: vec![(named, 0)], markers: None, alignment }
    }

    /// The offset of each byte of data, in their order.
    fn bytes(&self) -> Vec<i64> {
        let of = |&(named, offset): &(Named, i64)| {
            bytes_of_entry(named).into_iter().map(move |byte| offset + byte)
        };
        self.entries.iter().flat_map(of).collect()
    }

    fn true_bounds(&self) -> (i64, i64) {
        let bytes = self.bytes();
        let end = bytes.iter().max().map_or(0, |byte| byte + 1);
        (bytes.into_iter().min().unwrap_or(0), end)
    }

    fn bounds(&self) -> (i64, i64) {
        let (low, high) = self.true_bounds();
        let alignment = self.alignment;
        let rounded = low + (high - low + alignment - 1) / alignment * alignment;
        self.markers.unwrap_or((low, rounded))
    }

    fn extent(&self) -> i64 {
        self.bounds().1 - self.bounds().0
    }

    /// Maps at displacements, one after the other.
    fn placed(parts: &[(i64, Map)]) -> Map {
        let entries = |(displacement, map): &(i64, Map)| {
            let displacement = *displacement;
            map.entries.clone().into_iter().map(move |(named, offset)| (named, offset + displacement))
        };
        let marks = parts.iter().filter_map(|(d, map)| map.markers.map(|(lb, ub)| (lb + d, ub + d)));
        Map {
            entries: parts.iter().flat_map(entries).collect(),
            markers: marks.reduce(|one, two| (one.0.min(two.0), one.1.max(two.1))),
            alignment: parts.iter().map(|(_, map)| map.alignment).max().unwrap_or(1),
        }
    }

    /// `count` elements from a displacement on.
    fn block(&self, displacement: i64, count: i64) -> Vec<(i64, Map)> {
        (0..count).map(|i| (displacement + i * self.extent(), self.clone())).collect()
    }

    /// Elements of an array by their indices, in the order of the indices.
    fn of_array(&self, size: i64, indices: &[i64]) -> Map {
        let parts: Vec<_> = indices.iter().map(|index| (index * self.extent(), self.clone())).collect();
        Map { markers: Some((0, size * self.extent())), alignment: self.alignment, ..Map::placed(&parts) }
    }

    /// The offsets of the bytes of `count` elements.
    fn all_bytes(&self, count: usize) -> Vec<i64> {
        let bytes = self.bytes();
        let extent = self.extent();
        (0..count as i64).flat_map(|i| bytes.iter().map(move |byte| byte + i * extent)).collect()
    }
}

/// A way to make a datatype.
#[derive(Clone, Debug)]
enum Tree {
    Named(usize),
    Vector { count: i64, length: i64, stride: i64, old: Box<Tree> },
    Hvector { count: i64, length: i64, stride: i64, old: Box<Tree> },
    Indexed { blocks: Vec<(i64, i64)>, old: Box<Tree> },
    Struct(Vec<(i64, i64, Tree)>),
    Resized { lb: i64, extent: i64, old: Box<Tree> },
    Subarray { dimensions: Vec<(i64, i64, i64)>, is_c: bool, old: Box<Tree> },
    Darray { dimensions: Vec<Dimension>, is_c: bool, old: Box<Tree> },
}

const NAMES: [MPI_Datatype; 8] = [
    MPI_INT,
    MPI_DOUBLE,
    MPI_CHAR,
    MPI_SHORT,
    MPI_SHORT_INT,
    MPI_DOUBLE_INT,
    MPI_LONG_DOUBLE_INT,
    MPI_C_DOUBLE_COMPLEX,
];

fn order(is_c: bool) -> c_int {
    if is_c { MPI_ORDER_C } else { MPI_ORDER_FORTRAN }
}

/// The indices of the elements of an array, of these indices in each dimension.
fn indices(lists: &[(i64, Vec<i64>)], is_c: bool) -> Vec<i64> {
    let mut dimensions: Vec<_> = lists.iter().collect();
    if !is_c {
        dimensions.reverse();
    }
    dimensions.iter().fold(vec![0], |found, (size, list)| {
        found.iter().flat_map(|index| list.iter().map(move |i| index * size + i)).collect()
    })
}

impl Dimension {
    /// The indices of the process, one by one.
    fn indices(&self) -> Vec<i64> {
        let block = match self.distribution {
            MPI_DISTRIBUTE_NONE => self.size,
            MPI_DISTRIBUTE_BLOCK => (self.size + i64::from(self.processes) - 1) / i64::from(self.processes),
            _ => i64::from(self.argument),
        };
        let is_own = |index: &i64| index / block % i64::from(self.processes) == i64::from(self.process);
        (0..self.size).filter(is_own).collect()
    }
}

impl Tree {
    fn make(&self) -> (Shape, Map) {
        match self {
            Tree::Named(i) => (Named::of(NAMES[*i]).unwrap().shape(), Map::named(NAMES[*i])),
            Tree::Vector { count, length, stride, old } => {
                let stride = old.make().1.extent() * stride;
                Tree::Hvector { count: *count, length: *length, stride, old: old.clone() }.make()
            }
            Tree::Hvector { count, length, stride, old } => {
                let (shape, map) = old.make();
                let parts: Vec<_> = (0..*count).flat_map(|i| map.block(i * stride, *length)).collect();
                (shape.vector(*count, *length, (*stride).into()).unwrap(), Map::placed(&parts))
            }
            Tree::Indexed { blocks, old } => {
                let (shape, map) = old.make();
                let parts: Vec<_> = blocks.iter().flat_map(|&(d, n)| map.block(d, n)).collect();
                let placed = blocks.iter().map(|&(d, n)| (d, n, &shape));
                (Shape::structure(placed).unwrap(), Map::placed(&parts))
            }
            Tree::Struct(fields) => {
                let made: Vec<_> = fields.iter().map(|(d, n, tree)| (*d, *n, tree.make())).collect();
                let parts: Vec<_> = made.iter().flat_map(|(d, n, (_, map))| map.block(*d, *n)).collect();
                let placed = made.iter().map(|(d, n, (shape, _))| (*d, *n, shape));
                (Shape::structure(placed).unwrap(), Map::placed(&parts))
            }
            Tree::Resized { lb, extent, old } => {
                let (shape, map) = old.make();
                (shape.resized(*lb, *extent).unwrap(), Map { markers: Some((*lb, lb + extent)), ..map })
            }
            Tree::Subarray { dimensions, is_c, old } => {
                let (shape, map) = old.make();
                let of = |f: fn(&(i64, i64, i64)) -> i64| dimensions.iter().map(f).collect::<Vec<i64>>();
                let (sizes, parts, starts) = (of(|d| d.0), of(|d| d.1), of(|d| d.2));
                let lists: Vec<_> =
                    dimensions.iter().map(|&(size, n, from)| (size, (from..from + n).collect())).collect();
                let map = map.of_array(sizes.iter().product(), &indices(&lists, *is_c));
                (subarray(&shape, &sizes, &parts, &starts, order(*is_c)).unwrap(), map)
            }
            Tree::Darray { dimensions, is_c, old } => {
                let (shape, map) = old.make();
                let lists: Vec<_> = dimensions.iter().map(|d| (d.size, d.indices())).collect();
                let size = lists.iter().map(|(size, _)| size).product();
                let map = map.of_array(size, &indices(&lists, *is_c));
                (distributed(&shape, dimensions, order(*is_c)).unwrap(), map)
            }
        }
    }
}

fn dimension() -> impl Strategy<Value = Dimension> {
    let distributions = prop_oneof![Just(MPI_DISTRIBUTE_BLOCK), Just(MPI_DISTRIBUTE_CYCLIC)];
    (1..7i64, distributions, 1..4i32, 0..4i32, any::<bool>()).prop_map(
        |(size, distribution, processes, process, is_default)| match processes {
            1 => Dimension {
                size,
                distribution: MPI_DISTRIBUTE_NONE,
                argument: MPI_DISTRIBUTE_DFLT_DARG,
                processes: 1,
                process: 0,
            },
            _ if distribution == MPI_DISTRIBUTE_BLOCK || !is_default => Dimension {
                size,
                distribution,
                argument: if distribution == MPI_DISTRIBUTE_BLOCK { MPI_DISTRIBUTE_DFLT_DARG } else { 2 },
                processes,
                process: process % processes,
            },
            _ => Dimension { size, distribution, argument: 1, processes, process: process % processes },
        },
    )
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = (0..NAMES.len()).prop_map(Tree::Named);
    leaf.prop_recursive(4, 24, 4, |inner| {
        let old = || inner.clone().prop_map(Box::new);
        let part = (1..5i64, 0..4i64, 0..4i64).prop_map(|(n, before, after)| (before + n + after, n, before));
        prop_oneof![
            (0..5i64, 0..4i64, -6..7i64, old()).prop_map(|(count, length, stride, old)| Tree::Vector {
                count,
                length,
                stride,
                old
            }),
            (0..5i64, 0..4i64, -64..65i64, old()).prop_map(|(count, length, stride, old)| Tree::Hvector {
                count,
                length,
                stride,
                old
            }),
            (vec((-9..10i64, 0..4i64), 0..6), 1..13i64, old()).prop_map(|(blocks, unit, old)| {
                Tree::Indexed { blocks: blocks.into_iter().map(|(d, n)| (d * unit, n)).collect(), old }
            }),
            (vec(0..3i64, 9..14), old()).prop_map(|(gaps, old)| {
                let places = gaps.iter().scan(0, |at, gap| {
                    *at += 4 + 4 * gap;
                    Some((*at, 1))
                });
                Tree::Indexed { blocks: places.collect(), old }
            }),
            vec((-40..41i64, 0..3i64, inner.clone()), 0..4).prop_map(Tree::Struct),
            (-20..21i64, -30..61i64, old()).prop_map(|(lb, extent, old)| Tree::Resized { lb, extent, old }),
            (vec(part, 1..4), any::<bool>(), old()).prop_map(|(dimensions, is_c, old)| Tree::Subarray {
                dimensions,
                is_c,
                old
            }),
            (vec(dimension(), 1..4), any::<bool>(), old()).prop_map(|(dimensions, is_c, old)| Tree::Darray {
                dimensions,
                is_c,
                old
            }),
        ]
    })
}

/// A datatype, its map, a number of elements, and two places in their data.
fn cases() -> impl Strategy<Value = (Tree, usize, usize, usize)> {
    let count = prop_oneof![3 => 0..5usize, 1 => 5..100usize];
    (tree(), count, any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_filter_map(
        "the type map is small",
        |(tree, count, one, two)| {
            let total = count * tree.make().1.bytes().len();
            let (one, two) = (one.index(total + 1), two.index(total + 1));
            (total < 20_000).then(|| (tree, count, one.min(two), one.max(two)))
        },
    )
}

/// Memory around the data of elements: each byte differs from its neighbours.
struct Memory {
    bytes: Vec<u8>,
    /// Where offset 0 is.
    origin: i64,
}

impl Memory {
    fn around(offsets: &[i64]) -> Memory {
        let low = offsets.iter().min().map_or(0, |low| *low.min(&0));
        let high = offsets.iter().max().map_or(0, |high| *high.max(&0));
        let bytes = (0..(high - low + 1) as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8);
        Memory { bytes: bytes.collect(), origin: -low }
    }

    fn at(&self, offset: i64) -> u8 {
        self.bytes[(self.origin + offset) as usize]
    }

    fn base(&self) -> *const u8 {
        self.bytes.as_ptr().wrapping_add(self.origin as usize)
    }

    fn base_mut(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr().wrapping_add(self.origin as usize)
    }
}

/// The offset of each byte of blocks.
fn bytes_of_blocks(blocks: impl Iterator<Item = (isize, usize)>) -> Vec<i64> {
    blocks.flat_map(|(offset, bytes)| (0..bytes as i64).map(move |byte| offset as i64 + byte)).collect()
}

fn datatype(shape: Shape) -> Datatype {
    Datatype::new(shape, Arguments::new(false).of(MPI_COMBINER_STRUCT, Vec::new()))
}

proptest! {
    #[test]
    fn sizes_and_bounds_are_those_of_the_type_map((tree, count, ..) in cases()) {
        let (shape, map) = tree.make();
        let (lb, ub) = map.bounds();
        let (low, high) = map.true_bounds();
        prop_assert_eq!(shape.size, map.bytes().len());
        prop_assert_eq!((shape.lb as i64, shape.extent as i64), (lb, ub - lb));
        prop_assert_eq!((shape.true_lb as i64, shape.true_ub as i64), (low, high));
        let datatype = datatype(shape);
        let offsets = map.all_bytes(count);
        let end = offsets.iter().max().map_or(0, |max| max + 1);
        let span = (offsets.iter().min().copied().unwrap_or(0), end);
        let found = datatype.span(count);
        prop_assert_eq!((found.0 as i64, found.1 as i64), span);
    }

    #[test]
    fn data_are_packed_in_the_order_of_the_type_map((tree, count, first, end) in cases()) {
        let (shape, map) = tree.make();
        let datatype = datatype(shape);
        let offsets = map.all_bytes(count);
        let memory = Memory::around(&offsets);
        let expected: Vec<u8> = offsets.iter().map(|&offset| memory.at(offset)).collect();
        let mut packed = vec![0; expected.len()];
        // SAFETY: the memory has all bytes of the elements, and there is room for them.
        unsafe { datatype.pack(memory.base(), count, packed.as_mut_ptr()) };
        prop_assert_eq!(&packed, &expected);
        let mut part = vec![0; end - first];
        // SAFETY: as above, the caller promises it.
        unsafe { datatype.pack_range(memory.base(), first, &mut part) };
        prop_assert_eq!(&part, &expected[first..end]);
        if let Some(offset) = datatype.run(count) {
            let run: Vec<i64> = (0..offsets.len() as i64).map(|byte| offset as i64 + byte).collect();
            prop_assert_eq!(&offsets, &run);
        }
    }

    #[test]
    fn data_are_unpacked_to_where_they_were((tree, count, first, end) in cases()) {
        let (shape, map) = tree.make();
        let datatype = datatype(shape);
        let offsets = map.all_bytes(count);
        let data: Vec<u8> = (0..offsets.len()).map(|i| (i * 7 + 1) as u8).collect();
        let check = |range: std::ops::Range<usize>, unpack: &dyn Fn(*mut u8)| {
            let (mut memory, mut expected) = (Memory::around(&offsets), Memory::around(&offsets));
            for i in range {
                expected.bytes[(expected.origin + offsets[i]) as usize] = data[i];
            }
            unpack(memory.base_mut());
            prop_assert_eq!(&memory.bytes, &expected.bytes);
            Ok(())
        };
        // SAFETY: the memory has room for the elements.
        check(0..end, &|base| unsafe { datatype.unpack(data.as_ptr(), end, base) })?;
        // SAFETY: as above, the caller promises it.
        check(first..end, &|base| unsafe { datatype.unpack_range(&data[first..end], first, base) })?;
    }

    #[test]
    fn blocks_are_the_largest_and_in_order((tree, count, first, end) in cases()) {
        let (shape, map) = tree.make();
        let datatype = datatype(shape);
        let offsets = map.all_bytes(count);
        for start in [0, first] {
            let blocks: Vec<_> = datatype.blocks_from(count, start).collect();
            prop_assert_eq!(bytes_of_blocks(blocks.iter().copied()), &offsets[start..]);
            let is_adjacent = |pair: &[(isize, usize)]| pair[0].0 + pair[0].1 as isize == pair[1].0;
            prop_assert!(!blocks.windows(2).any(is_adjacent));
        }
        let mut blocks = Vec::new();
        datatype.for_each_block(first, end - first, |offset, bytes| blocks.push((offset, bytes)));
        prop_assert_eq!(bytes_of_blocks(blocks.into_iter()), &offsets[first..end]);
    }

    #[test]
    fn elementary_types_are_those_of_the_type_map((tree, count, end, _) in cases()) {
        let (shape, map) = tree.make();
        let datatype = datatype(shape);
        let extent = map.extent();
        let all = (0..count as i64).flat_map(|i| map.entries.iter().map(move |(named, offset)| {
            (named.basic(), (offset + i * extent) as isize)
        }));
        let all: Vec<_> = all.collect();
        prop_assert_eq!(datatype.basics(count).collect::<Vec<_>>(), all.clone());
        let mut runs = Vec::new();
        datatype.for_each_named_run(count, |named, times| {
            let basic = find(named).unwrap().basic().unwrap();
            runs.extend(std::iter::repeat_n(basic, times));
        });
        prop_assert_eq!(runs, all.iter().map(|entry| entry.0).collect::<Vec<_>>());
        let first = all.first().map(|entry| entry.0);
        if count > 0 {
            let is_one = all.iter().all(|entry| Some(entry.0) == first);
            prop_assert_eq!(datatype.only_basic(), first.filter(|_| is_one));
        }
        let signature = &datatype.shape.signature;
        let found = signature.elements_in(end as u64);
        prop_assert_eq!(found.is_some(), is_boundary(&map, count, end));
        if found.is_some() {
            prop_assert_eq!(signature.bytes_of(found.unwrap_or(0)), Some(end as u64));
        }
    }

    #[test]
    fn external_data_become_the_same_again((tree, count, ..) in cases()) {
        let (shape, map) = tree.make();
        let datatype = datatype(shape);
        let mut native = vec![0u8; count * map.bytes().len()];
        let mut at = 0;
        for named in (0..count).flat_map(|_| map.entries.iter().map(|entry| entry.0)) {
            // Small numbers have their value in both representations, and bytes of padding are 0.
            native[at] = 1 + (at % 100) as u8;
            at += named.native_bytes();
        }
        let is_extended = |(named, _): &(Named, i64)| named.basic() == Basic::LongDoubleInt;
        prop_assume!(!map.entries.iter().any(is_extended));
        let mut external = vec![0u8; count * datatype.external_size()];
        datatype.encode_external(count, &native, &mut external);
        let mut again = vec![0u8; native.len()];
        datatype.decode_external(count, &external, &mut again);
        prop_assert_eq!(native, again);
    }
}

/// Whether this number of bytes ends between two elements as `MPI_Get_elements` counts them.
fn is_boundary(map: &Map, count: usize, end: usize) -> bool {
    let mut ends = vec![0];
    for (named, _) in (0..count).flat_map(|_| map.entries.iter()) {
        let (first, second) = named.parts();
        for part in [Some(first), second].into_iter().flatten() {
            ends.push(ends.last().copied().unwrap_or(0) + part.native_bytes());
        }
    }
    ends.binary_search(&end).is_ok()
}

#[test]
fn datatypes_of_any_size_are_described_or_refused() {
    let int = Named::of(MPI_INT).unwrap().shape();
    let huge = int.vector(1, 1 << 60, 0).unwrap();
    assert_eq!((huge.size, huge.extent, huge.run_count), (1 << 62, 1 << 62, usize::MAX));
    assert!(huge.vector(1, 2, 0).is_err());
    assert!(int.vector(1 << 62, 1 << 62, 1 << 62).is_err());
    assert!(int.vector(2, 1, 1 << 63).is_err());
    assert!(int.vector(1, 1, i64::MAX.into()).is_ok(), "a distance that is not used is not checked");
    assert!(Shape::structure([(i64::MAX - 2, 1, &int)].into_iter()).is_err());
    assert!(int.resized(i64::MAX, 1).is_err());
    let empty = int.vector(0, 5, 4).unwrap();
    assert_eq!((empty.size, empty.lb, empty.extent), (0, 0, 0));
    assert_eq!(empty.vector(1 << 40, 1 << 40, 0).unwrap().size, 0);
    assert_eq!(datatype(empty).blocks(1 << 40).count(), 0);
}

#[test]
fn a_struct_without_gaps_is_one_run() {
    let (int, double) = (Named::of(MPI_INT).unwrap().shape(), Named::of(MPI_DOUBLE).unwrap().shape());
    let packed = Shape::structure([(0, 2, &int), (8, 1, &double)].into_iter()).unwrap();
    assert_eq!(packed.run_count, usize::MAX);
    let padded = Shape::structure([(0, 1, &double), (8, 1, &int)].into_iter()).unwrap();
    assert_eq!((padded.extent, padded.run_count), (16, 1));
    assert_eq!(padded.resized(0, 12).unwrap().run_count, usize::MAX);
    let reversed = Shape::structure([(4, 1, &int), (0, 1, &int)].into_iter()).unwrap();
    assert_eq!(reversed.run_count, 0, "the data are not in the order of memory");
}

/// Copies take one block each of a number of elements, and then the next block of each.
#[test]
fn many_small_elements_are_packed_and_unpacked() {
    let (short, int) = (Named::of(MPI_SHORT).unwrap().shape(), Named::of(MPI_INT).unwrap().shape());
    let pieces = Shape::structure([(0, 2, &short), (6, 1, &short), (10, 1, &short)].into_iter()).unwrap();
    let equal = Shape::structure([(8, 1, &int), (0, 1, &int), (16, 1, &int)].into_iter()).unwrap();
    let long = Shape::structure([(0, 300, &int), (2000, 1, &short), (4000, 7, &short)].into_iter()).unwrap();
    for (shape, offsets) in [
        (pieces.resized(0, 16).unwrap(), vec![0, 1, 2, 3, 6, 7, 10, 11]),
        (equal.resized(0, 24).unwrap(), vec![8, 9, 10, 11, 0, 1, 2, 3, 16, 17, 18, 19]),
        (long, (0..1200).chain([2000, 2001]).chain(4000..4014).collect()),
    ] {
        let (count, extent) = (3001, shape.extent as i64);
        let datatype = datatype(shape);
        let places: Vec<i64> =
            (0..count).flat_map(|i| offsets.iter().map(move |at| i * extent + at)).collect();
        let memory = Memory::around(&places);
        let mut packed = vec![0; places.len()];
        // SAFETY: the memory has the places, and there is room for their data.
        unsafe { datatype.pack(memory.base(), count as usize, packed.as_mut_ptr()) };
        let expected: Vec<u8> = places.iter().map(|&at| memory.at(at)).collect();
        assert!(packed == expected);
        let mut target = Memory::around(&places);
        target.bytes.fill(0x55);
        // SAFETY: the target has the same places as the memory.
        unsafe { datatype.unpack(packed.as_ptr(), packed.len(), target.base_mut()) };
        let mut expected = vec![0x55; target.bytes.len()];
        places.iter().for_each(|&at| expected[at as usize] = memory.at(at));
        assert!(target.bytes == expected, "nothing else is written");
    }
}
