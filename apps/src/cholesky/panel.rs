//! A panel of the factor: the blocks of one block column below the diagonal, as one PE needs them. Invariant:
//! a panel has a block for each block row that this PE's rows contain, and for each that its columns do.

use pelago::Result;
use pelago::prelude::*;

use crate::linear::block::{Block, Shape};
use crate::linear::fetch::{Elements, Fetch};
use crate::linear::layout::Layout;

/// The state of a block: it is final, or an error: the column at which the matrix is found not to be positive
/// definite.
pub(super) type Final<T> = std::result::Result<T, usize>;

/// The panels of all PEs, by their sizes.
#[derive(Clone, Copy)]
pub(super) struct Panels {
    pub(super) layout: Layout,
}

/// The panel of a step.
pub(super) struct Panel {
    /// The blocks of this PE's rows.
    pub(super) rows: Elements,
    /// The blocks of block rows that lie in this PE's columns but not in its rows, with their numbers.
    pub(super) others: Vec<(usize, Elements)>,
}

impl Panels {
    /// The number of rows of a panel in a row of the grid.
    pub(super) fn height(&self, row: usize, step: usize) -> usize {
        self.layout.rows.part_len(row) - self.before(row, step + 1)
    }

    /// The number of rows before a block row, in a row of the grid.
    fn before(&self, row: usize, block_row: usize) -> usize {
        self.layout.rows.before(row, block_row)
    }

    /// The shape of a panel that is stored on its own, in a row of the grid.
    pub(super) fn shape(&self, row: usize, step: usize) -> Shape {
        let height = self.height(row, step);
        Shape::by_columns(height, self.layout.columns.width(step), height)
    }

    /// The shape of a block of a panel that is stored on its own, and its place there.
    pub(super) fn block(&self, step: usize, block_row: usize) -> (usize, Shape) {
        let owner = self.layout.rows.owner(block_row);
        let place = self.before(owner, block_row) - self.before(owner, step + 1);
        (place, Shape { rows: self.layout.rows.width(block_row), ..self.shape(owner, step) })
    }

    /// The block rows of a panel that lie in this PE's columns, and in a row of the grid.
    pub(super) fn crossing(&self, step: usize, row: usize) -> impl Iterator<Item = usize> + use<> {
        let rows = self.layout.rows;
        let blocks = self.layout.columns.blocks_of(self.layout.column, step + 1);
        blocks.filter(move |block| rows.owner(*block) == row)
    }

    /// The block of a panel with this number, one of this PE's columns.
    pub(super) fn of_column<'p>(&self, panel: &'p Panel, step: usize, block_row: usize) -> Block<'p> {
        if self.layout.rows.owner(block_row) == self.layout.row {
            let (first, Shape { rows, columns, .. }) = self.block(step, block_row);
            return panel.rows.block().part(first..first + rows, 0..columns);
        }
        let found = panel.others.iter().find(|(number, _)| *number == block_row);
        found.expect("a panel has a block for each block column of this PE").1.block()
    }
}

/// The exchange of finished blocks among the PEs, by one of the transports.
pub(super) trait Exchange {
    /// Collective in the column of the grid that has block column `step`: the factored block of the diagonal.
    /// The PE that has it gives it.
    fn diagonal(&mut self, step: usize, own: Option<Final<Block<'_>>>) -> Result<Final<Elements>>;

    /// Collective: starts to send the panel of a step. The PEs that have a part of it give it.
    fn start(&mut self, step: usize, own: Option<Final<Block<'_>>>) -> Result<()>;

    /// Does what can be done without waiting for the panel that was started last.
    fn progress(&mut self) -> Result<()>;

    /// Collective: waits for the panel of a step.
    fn finish(&mut self, step: usize) -> Result<Final<Panel>>;

    /// Collective: gives a panel back.
    fn release(&mut self, panel: Panel) -> Result<()>;

    /// Collective: the end, also after a column was found that is not definite.
    fn end(&mut self);
}

/// The panel of a step, some blocks of which may be under way.
pub(super) fn arrived(rows: Fetch<'_>, others: Vec<(usize, Fetch<'_>)>) -> Panel {
    let others = others.into_iter().map(|(number, fetch)| (number, fetch.wait()));
    Panel { rows: rows.wait(), others: others.collect() }
}

/// Stores the columns of a block in this PE's part of an array, one after the other.
pub(super) fn store(array: &Symmetric<'_, f64>, place: usize, block: Block<'_>) {
    let Shape { rows, columns, .. } = block.shape();
    (0..columns).for_each(|column| array.local().write(place + column * rows, block.column(column)));
}
