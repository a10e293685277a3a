//! `bench vis`: scattered transfers of PE 0 on PE 1's memory (strided, indexed and vector), compared with one
//! contiguous transfer of the same bytes and with one transfer per block. Invariants: all kinds of a
//! direction, for one number and size of blocks, are measured in turn; they move the same blocks between the
//! same places of two regions that stay in the caches, and each operation ends with a quiet.

use std::cell::RefCell;
use std::ops::Range;

use crate::base::prelude::*;
use pelago::{Indexed, Strided};

pub const TOPIC: Topic = Topic {
    title: "Scattered transfers",
    jobs: |pes| vec![Job { pes, suite: "vis" }],
    tables: |records| vec![table(records, PUTS, "Puts to PE 1"), table(records, GETS, "Gets from PE 1")],
    figures: |records| vec![curves(records, PUTS, "Puts"), curves(records, GETS, "Gets")],
};

pub const EXAMPLES: &str = "\
Examples:
  pelago bench vis                       blocks of 8 B to 512 B, 4 to 256 of them
  pelago bench vis --fabric shm          the same over the net, where short blocks are packed
  pelago bench vis --html v.html         the curves as well";

/// The target PE of all operations.
const TARGET: Pe = 1;
/// The distance of blocks, in blocks.
const SPREAD: usize = 2;
/// The step of indices through the blocks; it is coprime to their number.
const STEP: usize = 7;

/// Contiguous, strided, indexed, vector, and one transfer for each block.
type Kinds = [Operation; 5];

const PUTS: Kinds = {
    use Operation::*;
    [Put, PutStrided, PutIndexed, PutVector, PutBlocks]
};
const GETS: Kinds = {
    use Operation::*;
    [Get, GetStrided, GetIndexed, GetVector, GetBlocks]
};
const NAMES: [&str; 5] = ["contiguous", "strided", "indexed", "vector", "block by block"];
const COLOURS: [&str; 5] = [GREY, BLUE, GREEN, PURPLE, ORANGE];

fn numbers(records: &[Record]) -> Vec<usize> {
    values(records, |label| label.blocks)
}

fn table(records: &[Record], kinds: Kinds, what: &str) -> Table {
    let title = format!("{what} and quiet, blocks with gaps of their own size; medians, ns (cache)");
    let names = NAMES.join("|");
    let names = format!("blocks|each|{names}|strided / contiguous|strided / by block");
    let mut table = Table::new(title, 0, &names);
    for bytes in values(records, |label| (label.bench == Bench::Scattered).then_some(label.bytes)) {
        for blocks in numbers(records) {
            let found = kinds.map(|operation| {
                find(records, |label| {
                    (label.bench, label.operation, label.bytes, label.blocks)
                        == (Bench::Scattered, operation, bytes, Some(blocks))
                })
            });
            let [contiguous, strided, .., single] = found;
            let ratios = [ratio(strided, contiguous), ratio(strided, single)];
            table.row((blocks, size(bytes), found, ratios));
        }
    }
    table
}

fn curves(records: &[Record], kinds: Kinds, what: &str) -> Figure {
    let most = numbers(records).last().copied();
    let lines = kinds.into_iter().zip(NAMES).zip(COLOURS).map(|((operation, name), colour)| {
        let of_kind = records.iter().filter(move |record| {
            let label = record.label;
            (label.bench, label.operation, label.blocks) == (Bench::Scattered, operation, most)
        });
        let line = if name == NAMES[4] { Line::Dashed } else { Line::Solid };
        Across::Bytes.series(name, colour, line, of_kind)
    });
    Figure::new(
        format!("{what} of {} blocks", most.unwrap_or(0)),
        [Across::Bytes.axis("size of a block"), TIME],
        "The contiguous one moves the same bytes without gaps. Each ends with a quiet. Medians.",
        lines,
    )
}

/// The sizes of a block in bytes, and the numbers of blocks of an operation (powers of 2), of `bench vis`.
pub const SIZES: [&[usize]; 2] = [&[8, 64, 512], &[4, 16, 256]];

/// Collective, for two PEs or more: each number and size of blocks, with all kinds in one trial per
/// direction.
///
/// # Errors
/// Errors of the sink, and if the symmetric heap has no room for the region.
pub fn all(world: &World, [bytes, blocks]: [&[usize]; 2], effort: Effort, sink: Sink<'_>) -> Result<()> {
    let words = SPREAD * largest(bytes) * largest(blocks) / size_of::<u64>();
    let region = world.alloc_zeroed::<u64>(words)?;
    let mut suite = Suite::new(world, effort);
    for &bytes in bytes {
        for &blocks in blocks {
            for operations in [PUTS, GETS] {
                suite.add(operations.map(|operation| {
                    let label = suite.label(Bench::Scattered, operation, bytes).with_blocks(blocks);
                    (label, Blocks::new(&region, bytes, blocks).part(operation))
                }));
            }
        }
    }
    suite.run(sink)
}

/// The blocks that move between the region and memory of PE 0.
struct Blocks<'a, 'w> {
    region: &'a Symmetric<'w, u64>,
    /// The number of words of a block.
    block: usize,
    indices: Vec<usize>,
    ranges: Vec<Range<usize>>,
    private: RefCell<Vec<u64>>,
}

impl<'a, 'w> Blocks<'a, 'w> {
    fn new(region: &'a Symmetric<'w, u64>, bytes: usize, blocks: usize) -> Self {
        let block = bytes / size_of::<u64>();
        let start = |i: usize| i * SPREAD * block;
        let indices = (0..blocks).map(|i| start(i * STEP % blocks)).collect();
        let ranges = (0..blocks).map(|i| start(i)..start(i) + block).collect();
        Blocks { region, block, indices, ranges, private: RefCell::new(vec![1; blocks * block]) }
    }

    fn part(self, operation: Operation) -> Part<'a> {
        let world = self.region.world();
        only_first(world, move |count| {
            (0..count).try_for_each(|_| {
                self.transfer(operation)?;
                world.quiet();
                Ok(())
            })
        })
    }

    #[inline]
    fn transfer(&self, operation: Operation) -> pelago::Result<()> {
        let (region, words) = (self.region, &mut *self.private.borrow_mut());
        let strided =
            Strided { array_stride: SPREAD * self.block, ..Strided::blocks(self.ranges.len(), self.block) };
        let indexed = Indexed::blocks(self.block, &self.indices);
        match operation {
            Operation::Put => region.put(TARGET, 0, words),
            Operation::PutStrided => region.put_strided(TARGET, 0, words, &strided),
            Operation::PutIndexed => region.put_indexed(TARGET, words, &indexed),
            Operation::PutVector => region.put_vector(TARGET, &self.ranges, &[words]),
            Operation::PutBlocks => {
                let mut blocks = self.ranges.iter().zip(words.chunks(self.block));
                blocks.try_for_each(|(range, block)| region.put(TARGET, range.start, block))
            }
            Operation::Get => region.get(TARGET, 0, words),
            Operation::GetStrided => region.get_strided(TARGET, 0, words, &strided),
            Operation::GetIndexed => region.get_indexed(TARGET, words, &indexed),
            Operation::GetVector => region.get_vector(TARGET, &self.ranges, &mut [words]),
            _ => {
                let mut blocks = self.ranges.iter().zip(words.chunks_mut(self.block));
                blocks.try_for_each(|(range, block)| region.get(TARGET, range.start, block))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::record::tests::record;
    use crate::base::suite::tests::{EFFORT, reported};
    use crate::base::topic::tests::{assert_nothing_shown, assert_row, shown};

    #[test]
    fn all_kinds_and_their_ratios_are_shown() {
        let mut records = Vec::new();
        for (bytes, ns) in [(8, 20.0), (512, 400.0)] {
            for blocks in [4, 256] {
                for (operation, factor) in
                    PUTS.into_iter().chain(GETS).zip([1.0, 2.0, 3.0, 3.5, 4.0].repeat(2))
                {
                    let label = Label::new(2, Bench::Scattered, operation, bytes).with_blocks(blocks);
                    records.push(record(label, Unit::Nanoseconds, ns * factor * blocks as f64 / 4.0));
                }
            }
        }
        let (tables, page) = shown(&TOPIC, &records, 2);
        let row = ["4", "8 B", "20.0", "40.0", "60.0", "70.0", "80.0", "2.000", "0.500"];
        assert_row(&tables, &row);
        assert!(tables.contains("Gets from PE 1") && page.contains("Puts of 256 blocks"), "{tables}");
        assert!(page.contains("block by block, 512 B: 102400"), "{page}");
        assert_nothing_shown(&TOPIC);
    }

    #[test]
    fn all_kinds_move_the_same_blocks() {
        let moved = spmd(2, |world| {
            let region = world.alloc_zeroed::<u64>(8 * SPREAD * 3).unwrap();
            let mut outcomes = Vec::new();
            if world.my_pe() == 0 {
                let blocks = Blocks::new(&region, 24, 8);
                for put in &PUTS[1..] {
                    region.put(TARGET, 0, &[0; 48]).unwrap();
                    blocks.transfer(*put).unwrap();
                    let mut there = vec![0; 48];
                    region.get(TARGET, 0, &mut there).unwrap();
                    outcomes.push(there.chunks(3).enumerate().all(|(i, c)| c == [1 - i as u64 % 2; 3]));
                }
                for get in &GETS[1..] {
                    blocks.private.borrow_mut().fill(0);
                    blocks.transfer(*get).unwrap();
                    outcomes.push(*blocks.private.borrow() == [1; 24]);
                }
            }
            world.barrier();
            outcomes
        });
        assert_eq!(moved.unwrap()[0], [true; 8]);
    }

    #[test]
    fn every_kind_number_and_size_is_reported() {
        let (records, progress) = reported(2, |world, sink| all(world, [&[8, 64], &[4, 16]], EFFORT, sink));
        let found: Vec<_> =
            records.iter().map(|r| (r.label.bytes, r.label.blocks, r.label.operation)).collect();
        let expected = [(8, 4), (8, 16), (64, 4), (64, 16)].map(|(bytes, blocks)| {
            let kinds = PUTS.into_iter().chain(GETS);
            kinds.map(|operation| (bytes, Some(blocks), operation)).collect::<Vec<_>>()
        });
        assert_eq!((found, progress), (expected.concat(), (8, 8)));
    }
}
