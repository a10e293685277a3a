//! The variant `exchange` of the transposition: when all planes or rows are done, one put to every PE, this
//! one included, carries the whole block for it. Nothing overlaps; messages are few and as long as can be.
//! Source: Bell, Bonachea, Nishtala, Yelick, "Optimizing Bandwidth Limited Problems Using One-Sided
//! Communication and Overlap", section 5.2.

use num_complex::Complex64;
use pelago::Result;
use pelago::prelude::*;

use super::layout::Layout;

/// Transfers counted by the program that issues them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Tally {
    /// Counts one transfer of `elements`.
    pub(super) fn count(&mut self, elements: &[Complex64]) {
        self.messages += 1;
        self.bytes += size_of_val(elements) as u64;
    }
}

/// Puts each block of `packed` into its PE's `inbox`, at this PE's place there, beginning with the next PE so
/// that not all write to one at a time. The blocks have arrived when all PEs have completed their puts.
pub(super) fn send_blocks(
    layout: &Layout,
    packed: &[Complex64],
    inbox: &Symmetric<'_, Complex64>,
    tally: &mut Tally,
) -> Result<()> {
    let block_len = layout.block_len();
    for distance in 1..=layout.pes {
        let peer = (layout.me + distance) % layout.pes;
        let block = &packed[peer * block_len..][..block_len];
        inbox.put(peer, layout.me * block_len, block)?;
        tally.count(block);
    }
    Ok(())
}
