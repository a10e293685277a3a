//! The blocks of the symmetric heap that the program has allocated, and the blocks that it freed last.

use crate::base::fault::Call;
use std::collections::{BTreeMap, VecDeque};

/// The number of freed blocks that are remembered.
const GONE_MAX: usize = 1024;

/// The allocated and the freed blocks.
#[derive(Default)]
pub(super) struct Objects {
    /// By address.
    blocks: BTreeMap<usize, Block>,
    /// The oldest first.
    gone: VecDeque<Gone>,
}

#[derive(Clone, Copy)]
struct Block {
    bytes: usize,
    /// The call that has allocated it.
    call: Call,
}

struct Gone {
    start: usize,
    bytes: usize,
    /// The call that has freed it.
    call: Call,
}

impl Objects {
    pub(super) fn add(&mut self, start: usize, bytes: usize, call: Call) {
        self.blocks.insert(start, Block { bytes, call });
    }

    pub(super) fn remove(&mut self, start: usize, call: Call) {
        let Some(Block { bytes, .. }) = self.blocks.remove(&start) else { return };
        if self.gone.len() == GONE_MAX {
            self.gone.pop_front();
        }
        self.gone.push_back(Gone { start, bytes, call });
    }

    /// Describes the mistake if `bytes` bytes at an address of the heap are not all in one block.
    pub(super) fn problem(&self, address: usize, bytes: usize) -> Option<String> {
        let before = self.blocks.range(..=address).next_back();
        if let Some((&start, &Block { bytes: size, call })) = before
            && address - start < size
        {
            let rest = size - (address - start);
            return (bytes > rest).then(|| {
                format!(
                    "but only {rest} follow there in the block of {size} bytes at {start:#x} that {call} has \
                     allocated"
                )
            });
        }
        let gone =
            self.gone.iter().rev().find(|gone| (gone.start..gone.start + gone.bytes).contains(&address));
        let advice = "allocate with shmem_malloc, and free when no PE uses a block any more";
        Some(match (gone, before) {
            (Some(Gone { start, bytes, call }), _) => format!(
                "in memory that was given back: {call} has freed the block of {bytes} bytes at {start:#x}; \
                 {advice}"
            ),
            (None, Some((&start, &Block { bytes: size, call }))) => format!(
                "which is in no block of the symmetric heap, but {} bytes behind the end of the block of \
                 {size} bytes at {start:#x} that {call} has allocated",
                address - start - size
            ),
            (None, None) => format!("which is in no block of the symmetric heap: {advice}"),
        })
    }
}
