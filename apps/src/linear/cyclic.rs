//! Block-cyclic distributions of indices: block b of a fixed length lies at part b modulo the number of
//! parts, behind the earlier blocks of that part. Invariant: every index lies in exactly one part, and a part
//! keeps the order of its indices. Source: ScaLAPACK Users' Guide, chapter 4, "Two-dimensional block-cyclic
//! distribution".

use std::ops::Range;

/// The distribution of `len` indices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cyclic {
    len: usize,
    /// Indices of a block; the last one may be shorter.
    block: usize,
    parts: usize,
}

impl Cyclic {
    /// Distributes `len` indices in blocks of `block` over `parts` parts; none of the three is 0.
    pub(crate) fn new(len: usize, block: usize, parts: usize) -> Self {
        Cyclic { len, block, parts }
    }

    /// The number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.len.div_ceil(self.block)
    }

    /// The indices of a block.
    pub(crate) fn indices(&self, block: usize) -> Range<usize> {
        (block * self.block).min(self.len)..((block + 1) * self.block).min(self.len)
    }

    /// The length of a block.
    pub(crate) fn width(&self, block: usize) -> usize {
        self.indices(block).len()
    }

    /// The part that a block lies in.
    pub(crate) fn owner(&self, block: usize) -> usize {
        block % self.parts
    }

    /// The number of indices of a part that lie in blocks before `block`: where the first index that does not
    /// stands in the part.
    pub(crate) fn before(&self, part: usize, block: usize) -> usize {
        let block = block.min(self.blocks());
        let count = (block + self.parts - 1 - part) / self.parts;
        let has_last = block == self.blocks() && block > 0 && self.owner(block - 1) == part;
        let missing = if has_last { self.block - self.width(block - 1) } else { 0 };
        count * self.block - missing
    }

    /// The number of indices of a part.
    pub(crate) fn part_len(&self, part: usize) -> usize {
        self.before(part, self.blocks())
    }

    /// The length of the longest part, the first one or an earlier one than the last block's.
    pub(crate) fn longest(&self) -> usize {
        (0..self.parts).map(|part| self.part_len(part)).max().unwrap_or(0)
    }

    /// The blocks of a part from block `first` on.
    pub(crate) fn blocks_of(&self, part: usize, first: usize) -> impl Iterator<Item = usize> + use<> {
        let start = first + (part + self.parts - first % self.parts) % self.parts;
        (start..self.blocks()).step_by(self.parts)
    }

    /// The indices of a part, in order.
    pub(crate) fn part(&self, part: usize) -> impl Iterator<Item = usize> + use<> {
        let distribution = *self;
        self.blocks_of(part, 0).flat_map(move |block| distribution.indices(block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_definition() {
        for (len, block, parts) in
            [(1, 1, 1), (10, 3, 1), (10, 3, 2), (10, 3, 4), (12, 3, 2), (12, 4, 3), (7, 10, 3), (13, 2, 5)]
        {
            let cyclic = Cyclic::new(len, block, parts);
            for part in 0..parts {
                let expected: Vec<_> = (0..len).filter(|index| index / block % parts == part).collect();
                assert_eq!(cyclic.part(part).collect::<Vec<_>>(), expected, "{cyclic:?} {part}");
                assert_eq!(cyclic.part_len(part), expected.len(), "{cyclic:?} {part}");
                assert!(expected.len() <= cyclic.longest());
                for first in 0..=cyclic.blocks() {
                    let before = expected.iter().filter(|index| **index / block < first).count();
                    assert_eq!(cyclic.before(part, first), before, "{cyclic:?} {part} {first}");
                    let blocks: Vec<_> =
                        (first..cyclic.blocks()).filter(|block| block % parts == part).collect();
                    assert_eq!(cyclic.blocks_of(part, first).collect::<Vec<_>>(), blocks);
                }
            }
            let widths: usize = (0..cyclic.blocks()).map(|block| cyclic.width(block)).sum();
            assert_eq!(widths, len);
        }
    }
}
