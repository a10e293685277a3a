//! The right-looking factorisation A = L L^T of a symmetric positive definite matrix by block columns, with a
//! look-ahead of one: as soon as a panel has arrived, the next block column is brought up to date, factored
//! and sent, and only then the rest of the matrix. Invariant: the lower triangle of the matrix is used alone;
//! PEs that find a column that is not positive definite all return it, in the same step. Sources: Choi et
//! al., "The design and implementation of the ScaLAPACK LU, QR, and Cholesky factorization routines", 1996;
//! for the look-ahead, Strazdins, "A comparison of lookahead and algorithmic blocking techniques", 1998.

use pelago::Result;
use pelago::prelude::*;

use super::collectives::{Collectives, Slots};
use super::one_sided::{OneSided, Store};
use super::panel::{Exchange, Final, Panel, Panels};
use super::transport::Transport;
use crate::buffer::Buffer;
use crate::linear::block::{Block, BlockMut, Shape};
use crate::linear::elements::Matrix;
use crate::linear::fetch::Elements;
use crate::linear::layout::Layout;
use crate::linear::processor::Processor;

/// An element of the matrix that is factored.
pub(super) fn element(row: usize, column: usize, diagonal: f64) -> f64 {
    if row == column { diagonal } else { Matrix::A.element(row.max(column), row.min(column)) }
}

/// A matrix and what its factorisation needs.
pub(super) struct Factorisation<'w> {
    panels: Panels,
    /// This PE's part, by columns.
    matrix: Buffer<f64>,
    memory: Memory<'w>,
    /// The number of factorisations so far.
    number: u64,
}

/// The memory of a transport.
enum Memory<'w> {
    Store(Store<'w>),
    Slots(Slots<'w>),
}

impl<'w> Factorisation<'w> {
    /// Collective: the memory for a transport.
    pub(super) fn new(world: &'w World, layout: Layout, transport: Transport) -> Result<Self> {
        let panels = Panels { layout };
        let memory = match transport {
            Transport::OneSided => Memory::Store(Store::new(world, &panels)?),
            Transport::Collectives => Memory::Slots(Slots::new(world, &panels)?),
        };
        let matrix = Buffer::new(layout.own_rows() * layout.own_columns());
        Ok(Factorisation { panels, matrix, memory, number: 0 })
    }

    /// Makes the matrix the random one with this number on its diagonal.
    pub(super) fn fill(&mut self, diagonal: f64) {
        fill(&mut self.matrix, &self.panels.layout, diagonal);
    }

    /// Collective: factors the matrix. An error is the first column whose leading block is not positive
    /// definite. A barrier lies between two factorisations.
    pub(super) fn run(&mut self, processor: &Processor<'_>) -> Result<Final<()>> {
        self.number += 1;
        let (panels, number) = (self.panels, self.number);
        let (mut one_sided, mut collectives);
        let exchange: &mut dyn Exchange = match &self.memory {
            Memory::Store(store) => {
                one_sided = OneSided::new(store, panels, number);
                &mut one_sided
            }
            Memory::Slots(slots) => {
                collectives = Collectives::new(slots, panels);
                &mut collectives
            }
        };
        let shape = shape(&panels.layout);
        let mut run = Run { processor, panels, exchange, matrix: BlockMut::of(&mut self.matrix, shape) };
        let outcome = run.factor();
        run.exchange.end();
        outcome
    }

    /// This PE's part of the factor; elements above the diagonal are unspecified.
    pub(super) fn factor(&self) -> Block<'_> {
        Block::of(&self.matrix, shape(&self.panels.layout))
    }

    /// This PE's part, to be changed.
    #[cfg(test)]
    pub(super) fn part_mut(&mut self) -> BlockMut<'_> {
        BlockMut::of(&mut self.matrix, shape(&self.panels.layout))
    }
}

/// The shape of this PE's part.
pub(super) fn shape(layout: &Layout) -> Shape {
    Shape::by_columns(layout.own_rows(), layout.own_columns(), layout.own_rows())
}

/// Fills a part with the random matrix that has this number on its diagonal.
pub(super) fn fill(part: &mut [f64], layout: &Layout, diagonal: f64) {
    let (rows, columns) = (layout.row_indices(), layout.column_indices());
    // Without rows there are no columns to fill either.
    for (elements, j) in part.chunks_exact_mut(rows.len().max(1)).zip(&columns) {
        elements.iter_mut().zip(&rows).for_each(|(to, i)| *to = element(*i, *j, diagonal));
    }
}

/// One factorisation.
struct Run<'e> {
    processor: &'e Processor<'e>,
    panels: Panels,
    exchange: &'e mut dyn Exchange,
    matrix: BlockMut<'e>,
}

impl Run<'_> {
    fn factor(&mut self) -> Result<Final<()>> {
        let layout = self.panels.layout;
        self.send(0)?;
        for step in 0..layout.blocks() {
            let panel = match self.exchange.finish(step)? {
                Ok(panel) => panel,
                Err(column) => return Ok(Err(column)),
            };
            if step + 1 < layout.blocks() {
                if layout.columns.owner(step + 1) == layout.column {
                    self.update(&panel, step, step + 1);
                }
                self.send(step + 1)?;
            }
            for block_column in layout.columns.blocks_of(layout.column, step + 2) {
                self.update(&panel, step, block_column);
                self.exchange.progress()?;
            }
            self.exchange.release(panel)?;
        }
        Ok(Ok(()))
    }

    /// Factors the block column `step`, which is up to date, and starts to send its panel.
    fn send(&mut self, step: usize) -> Result<()> {
        let Layout { rows, columns, row, column, grid, .. } = self.panels.layout;
        if columns.owner(step) != column {
            return self.exchange.start(step, None);
        }
        let (width, first_column) = (columns.width(step), columns.before(column, step));
        let first_row = rows.before(row, step);
        let own_rows = self.matrix.shape().rows;
        let block_column = self.matrix.part(first_row..own_rows, first_column..first_column + width);
        let is_owner = rows.owner(step) == row;
        let (mut diagonal, mut below) = block_column.split_rows(if is_owner { width } else { 0 });
        let mut own = None;
        if is_owner {
            let factored = self.processor.factor(&mut diagonal);
            own = Some(factored.map_err(|column| columns.indices(step).start + column));
        }
        let factor: Final<Option<Elements>> = match (grid.rows, own) {
            (1, Some(own)) => own.map(|()| None),
            (_, own) => {
                let block = own.map(|own| own.map(|()| diagonal.as_block()));
                self.exchange.diagonal(step, block)?.map(Some)
            }
        };
        let part = factor.map(|factor| {
            let factor = factor.as_ref().map_or(diagonal.as_block(), Elements::block);
            self.processor.solve(factor, &mut below);
            below.as_block()
        });
        self.exchange.start(step, Some(part))
    }

    /// Brings a block column up to date with the panel of a step.
    fn update(&mut self, panel: &Panel, step: usize, block_column: usize) {
        let Layout { rows, columns, row, column, .. } = self.panels.layout;
        let (width, first_column) = (columns.width(block_column), columns.before(column, block_column));
        let (first_row, own_rows) = (rows.before(row, block_column), self.matrix.shape().rows);
        let target = self.matrix.part(first_row..own_rows, first_column..first_column + width);
        let of_column = self.panels.of_column(panel, step, block_column);
        let inner = of_column.shape().columns;
        let skipped = first_row - rows.before(row, step + 1);
        let of_rows = panel.rows.block().part(skipped..skipped + own_rows - first_row, 0..inner);
        let has_diagonal = rows.owner(block_column) == row;
        let height = if has_diagonal { width } else { 0 };
        let (mut diagonal, mut below) = target.split_rows(height);
        if has_diagonal {
            self.processor.subtract_square(of_column, &mut diagonal);
        }
        let of_below = of_rows.part(height..own_rows - first_row, 0..inner);
        self.processor.multiply(-1.0, of_below, of_column.transposed(), &mut below);
    }
}
