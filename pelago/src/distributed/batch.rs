//! Batches: lists of indices of a distributed array, grouped by the PEs that own the elements.
//!
//! Invariant: within a group the elements have the order of the list. A group is moved by one indexed
//! transfer, which packs elements into messages if possible (`vis`).

use super::{Access, Array};
use crate::Pe;
use crate::upc::Layout;
use pelago_core::base::element::Element;
use std::ops::Range;

/// A list of indices, grouped by owner.
pub(super) struct Batch {
    /// The start of each PE's group, and the end of the last group.
    starts: Vec<usize>,
    /// The positions of the elements in their owners' parts.
    locals: Vec<usize>,
    /// The position of each element in the list.
    numbers: Vec<usize>,
}

impl Batch {
    /// Groups a list whose indices exist.
    pub(super) fn new(layout: &Layout, indices: &[usize]) -> Batch {
        let mut starts = vec![0; layout.n_pes() + 1];
        indices.iter().for_each(|&index| starts[layout.owner(index) + 1] += 1);
        (0..layout.n_pes()).for_each(|pe| starts[pe + 1] += starts[pe]);
        let mut next = starts.clone();
        let (mut locals, mut numbers) = (vec![0; indices.len()], vec![0; indices.len()]);
        for (number, &index) in indices.iter().enumerate() {
            let (owner, local) = layout.locate(index);
            (locals[next[owner]], numbers[next[owner]]) = (local, number);
            next[owner] += 1;
        }
        Batch { starts, locals, numbers }
    }

    /// The PEs that own some of the elements, and their groups.
    pub(super) fn groups(&self) -> impl Iterator<Item = (Pe, Range<usize>)> {
        let groups = self.starts.windows(2).map(|bounds| bounds[0]..bounds[1]);
        groups.enumerate().filter(|(_, group)| !group.is_empty())
    }

    /// The positions of a group's elements in its owner's part.
    pub(super) fn locals(&self, group: Range<usize>) -> &[usize] {
        &self.locals[group]
    }

    /// The positions of a group's elements in the list.
    pub(super) fn numbers(&self, group: Range<usize>) -> &[usize] {
        &self.numbers[group]
    }

    /// The values of the list, grouped.
    pub(super) fn grouped<T: Copy>(&self, values: &[T]) -> Vec<T> {
        self.numbers.iter().map(|&number| values[number]).collect()
    }

    /// Puts grouped values back into the order of the list.
    pub(super) fn ungroup<T: Copy>(&self, grouped: &[T], values: &mut [T]) {
        self.numbers.iter().zip(grouped).for_each(|(&number, &value)| values[number] = value);
    }
}

impl<T: Element, A: Access> Array<'_, T, A> {
    /// Copies a PE's elements of a range to their positions in `target`, which holds the range.
    pub(super) fn spread(&self, pe: Pe, range: Range<usize>, packed: &[T], target: &mut [T]) {
        let (start, mut runs) = (range.start, self.layout().affine(pe, range));
        let mut packed = packed;
        while let Some((index, _, count)) = runs.next_run() {
            let (run, rest) = packed.split_at(count);
            target[index - start..][..count].copy_from_slice(run);
            packed = rest;
        }
    }
}

/// `count` elements of zero bytes.
pub(super) fn zeros<T: Element>(count: usize) -> Vec<T> {
    // SAFETY: every bit pattern of an element's size is a valid value, as the type has promised.
    vec![unsafe { std::mem::zeroed() }; count]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upc::BlockSize;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_batch_has_every_element_once_with_its_owner(
            indices in prop::collection::vec(0usize..50, 0..80), n_pes in 1usize..6, block in 1usize..9,
        ) {
            let layout = Layout::new(50, BlockSize::Of(block), n_pes).unwrap();
            let batch = Batch::new(&layout, &indices);
            let mut values = vec![usize::MAX; indices.len()];
            for (pe, group) in batch.groups() {
                let numbers = batch.numbers(group.clone());
                prop_assert!(numbers.is_sorted(), "in the order of the list");
                for (&local, &number) in batch.locals(group).iter().zip(numbers) {
                    prop_assert_eq!(layout.locate(indices[number]), (pe, local));
                }
            }
            batch.ungroup(&batch.grouped(&indices), &mut values);
            prop_assert_eq!(values, indices);
        }
    }
}
