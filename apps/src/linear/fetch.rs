//! A block in a symmetric array on some PE, to be computed with: in place where it is mapped, copied by a get
//! elsewhere. Invariant: nobody writes the block from the start of the fetch until the last use of what it
//! returns.

use pelago::prelude::*;
use pelago::{Result, Strided, Transfer};

use super::block::{Block, Shape};

/// A block on its way.
pub(crate) enum Fetch<'a> {
    Here(Elements),
    UnderWay(Transfer<'a, f64>, Shape),
}

/// A block that has arrived.
pub(crate) enum Elements {
    /// At this address, in the memory of the PE that has it.
    Mapped(*const f64, Shape),
    Copied(Vec<f64>, Shape),
}

impl<'a> Fetch<'a> {
    /// Starts to fetch the block that begins at `index` on `pe`, whose rows or columns are contiguous;
    /// `buffer` is the memory for a copy.
    ///
    /// # Errors
    /// If there is no such PE or the block exceeds the array.
    ///
    /// # Safety
    /// No PE writes the block, and the array is not freed, until the result of [`wait`](Fetch::wait) is
    /// dropped.
    pub(crate) unsafe fn start(
        array: &'a Symmetric<'_, f64>,
        (pe, index): (Pe, usize),
        shape: Shape,
        mut buffer: Vec<f64>,
    ) -> Result<Self> {
        if let Some(start) = array.ptr(pe).filter(|_| index + shape.span() <= array.len()) {
            // SAFETY: the block was compared with the length of the array, which is mapped from this address
            // on.
            return Ok(Fetch::Here(Elements::Mapped(unsafe { start.add(index) }, shape)));
        }
        let Shape { rows, columns, row_stride, column_stride } = shape;
        let (lines, line, stride, compact) = match row_stride {
            1 => (columns, rows, column_stride, Shape::by_columns(rows, columns, rows)),
            _ => (rows, columns, row_stride, Shape::by_rows(rows, columns, columns)),
        };
        buffer.resize(rows * columns, 0.0);
        if rows * columns == 0 {
            return Ok(Fetch::Here(Elements::Copied(buffer, compact)));
        }
        if pe == array.world().my_pe() {
            for (at, target) in buffer.chunks_exact_mut(line).enumerate() {
                array.local().read(index + at * stride, target);
            }
            return Ok(Fetch::Here(Elements::Copied(buffer, compact)));
        }
        let lines = Strided { count: lines, block: line, array_stride: stride, slice_stride: line };
        array.get_strided_nb(pe, index, buffer, &lines).map(|get| Fetch::UnderWay(get, compact))
    }

    /// Waits for the block.
    pub(crate) fn wait(self) -> Elements {
        match self {
            Fetch::Here(elements) => elements,
            Fetch::UnderWay(transfer, shape) => Elements::Copied(transfer.wait(), shape),
        }
    }
}

impl Elements {
    /// The block.
    pub(crate) fn block(&self) -> Block<'_> {
        match self {
            Elements::Copied(elements, shape) => Block::of(elements, *shape),
            // SAFETY: the block is mapped from this address on, and nobody writes it, as the caller of
            // `Fetch::start` has promised.
            Elements::Mapped(start, shape) => unsafe { Block::at(*start, *shape) },
        }
    }

    /// The memory of a copy, to be used again.
    pub(crate) fn into_buffer(self) -> Vec<f64> {
        match self {
            Elements::Mapped(..) => Vec::new(),
            Elements::Copied(buffer, _) => buffer,
        }
    }
}
