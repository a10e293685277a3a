//! Scattered transfers of PE 0 on PE 1's memory: strided, indexed and vector ones, beside one contiguous
//! transfer of the same bytes and beside a transfer for each block. Invariant: all kinds move the same blocks
//! between the same places of two regions that stay in the caches, and each operation ends with a quiet.

use std::cell::RefCell;
use std::ops::Range;

use anyhow::Result;
use pelago::prelude::*;
use pelago::{Indexed, Strided};

use super::effort::Effort;
use super::ensemble::{Part, only_first};
use super::record::{Bench, Operation};
use super::suite::{Sink, Suite};

/// The PE whose memory is worked on.
const TARGET: Pe = 1;
/// Distance of blocks, in blocks.
const SPREAD: usize = 2;
/// Indices go through the blocks by steps of so many; it has no divisor in common with their number.
const STEP: usize = 7;

const PUTS: [Operation; 5] = [
    Operation::Put,
    Operation::PutStrided,
    Operation::PutIndexed,
    Operation::PutVector,
    Operation::PutBlocks,
];
const GETS: [Operation; 5] = [
    Operation::Get,
    Operation::GetStrided,
    Operation::GetIndexed,
    Operation::GetVector,
    Operation::GetBlocks,
];

/// Sizes to measure.
pub(super) struct Plan {
    /// Bytes of a block.
    pub(super) bytes: Vec<usize>,
    /// Blocks of an operation: powers of 2.
    pub(super) blocks: Vec<usize>,
    pub(super) effort: Effort,
}

impl Plan {
    /// The plan of `bench vis`.
    pub(super) fn of(effort: Effort) -> Self {
        Plan { bytes: vec![8, 64, 512], blocks: vec![4, 16, 256], effort }
    }
}

/// Collective, for two PEs or more: each number and size of blocks, all kinds in one trial a direction.
///
/// # Errors
/// Those of the sink, and if the symmetric heap has no room for the region.
pub(super) fn all(world: &World, plan: &Plan, sink: Sink<'_>) -> Result<()> {
    let most = |sizes: &[usize]| sizes.iter().copied().max().unwrap_or(0);
    let region =
        world.alloc_zeroed::<u64>(SPREAD * most(&plan.bytes) * most(&plan.blocks) / size_of::<u64>())?;
    let mut suite = Suite::new(world, plan.effort);
    for &bytes in &plan.bytes {
        for &blocks in &plan.blocks {
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

/// What moves between the region and memory of PE 0.
struct Blocks<'a, 'w> {
    region: &'a Symmetric<'w, u64>,
    /// Words of a block.
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
    use crate::measure::suite::tests::{EFFORT, reported};

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
        let plan = Plan { bytes: vec![8, 64], blocks: vec![4, 16], effort: EFFORT };
        let (records, progress) = reported(2, |world, sink| all(world, &plan, sink));
        let found: Vec<_> =
            records.iter().map(|r| (r.label.bytes, r.label.blocks, r.label.operation)).collect();
        let expected = [(8, 4), (8, 16), (64, 4), (64, 16)].map(|(bytes, blocks)| {
            let kinds = PUTS.into_iter().chain(GETS);
            kinds.map(|operation| (bytes, Some(blocks), operation)).collect::<Vec<_>>()
        });
        assert_eq!((found, progress), (expected.concat(), (8, 8)));
    }
}
