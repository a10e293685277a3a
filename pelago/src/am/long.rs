//! What a long message is about: elements of an array of the receiver.

use crate::Pe;
use crate::coll::schedule::Rank;
use crate::element::{Element, bytes_of};
use crate::error::Result;
use crate::view::View;
use crate::world::World;

use super::wire::LONG_WORDS;

/// Elements that are put to a PE's part of an array.
pub(super) struct Long<'a> {
    /// The PE, as the array has it.
    pub(super) rank: Rank,
    /// What the message says of them.
    pub(super) words: [u64; LONG_WORDS],
    /// The elements, as they travel.
    pub(super) bytes: &'a [u8],
}

impl<'a> Long<'a> {
    /// # Errors
    /// If the array belongs to another world, the PE has no part of it, or no such elements.
    pub(super) fn new<T: Element>(
        operation: &'static str,
        (world, pe): (&World, Pe),
        (array, index): (&View<'_, T>, usize),
        source: &'a [T],
    ) -> Result<Long<'a>> {
        array.check_world(operation, world)?;
        let rank = array.rank_of(operation, pe)?;
        array.check(operation, rank, index, source.len())?;
        let offset_bytes =
            array.net_target(operation, rank, index).map_or(0, |(_, target)| target.offset_bytes);
        let words = [index as u64, source.len() as u64, offset_bytes as u64];
        Ok(Long { rank, words, bytes: bytes_of(source) })
    }
}
