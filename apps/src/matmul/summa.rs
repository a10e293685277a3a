//! SUMMA, the scalable universal matrix multiplication algorithm: in step k every PE multiplies its rows of
//! the block column k of A by its columns of the block row k of B. Invariant: the operands are not written
//! from the first barrier of a multiplication to its last one. Source: van de Geijn, Watts, "SUMMA: Scalable
//! Universal Matrix Multiplication Algorithm", 1997.

use pelago::Result;
use pelago::prelude::*;

use super::panels::Operand;
use super::variant::Variant;
use crate::buffer::Buffer;
use crate::linear::block::{Block, BlockMut, Shape};
use crate::linear::elements::Matrix;
use crate::linear::fetch::{Elements, Fetch};
use crate::linear::layout::Layout;
use crate::linear::processor::Processor;
use crate::linear::releases::{Releases, SLOTS};

/// The matrices of a multiplication, and the teams of this PE.
pub(super) struct Multiplication<'w> {
    layout: Layout,
    /// By columns.
    a: Symmetric<'w, f64>,
    /// By rows.
    b: Symmetric<'w, f64>,
    /// By columns.
    c: Buffer<f64>,
    a_slots: Symmetric<'w, f64>,
    b_slots: Symmetric<'w, f64>,
    row_team: Team<'w>,
    column_team: Team<'w>,
}

/// The elements of all slots on a PE.
pub(super) fn slot_lens(layout: &Layout) -> [usize; 2] {
    [layout.rows, layout.columns].map(|dimension| SLOTS * layout.block.min(layout.n) * dimension.longest())
}

impl<'w> Multiplication<'w> {
    /// Collective: random operands.
    pub(super) fn new(world: &'w World, layout: Layout) -> Result<Self> {
        let [a_slots, b_slots] = slot_lens(&layout);
        let (a, b) = (world.alloc(layout.longest_part())?, world.alloc(layout.longest_part())?);
        let (row_team, column_team) = world.team().split_2d(layout.grid.columns)?;
        let (rows, columns) = (layout.row_indices(), layout.column_indices());
        for (at, j) in columns.iter().enumerate() {
            let column: Vec<_> = rows.iter().map(|i| Matrix::A.element(*i, *j)).collect();
            a.local().write(at * column.len(), &column);
        }
        for (at, i) in rows.iter().enumerate() {
            let row: Vec<_> = columns.iter().map(|j| Matrix::B.element(*i, *j)).collect();
            b.local().write(at * row.len(), &row);
        }
        Ok(Multiplication {
            a,
            b,
            c: Buffer::new(rows.len() * columns.len()),
            a_slots: world.alloc(a_slots)?,
            b_slots: world.alloc(b_slots)?,
            row_team,
            column_team,
            layout,
        })
    }

    /// Collective: computes C = A B.
    pub(super) fn run(&mut self, processor: &Processor<'_>, variant: Variant) -> Result<()> {
        self.c.fill(0.0);
        let Multiplication { layout, a, b, c, a_slots, b_slots, row_team, column_team } = self;
        let (rows, columns) = (layout.own_rows(), layout.own_columns());
        let operands = [
            &Operand {
                array: a,
                slots: a_slots,
                team: row_team,
                across: layout.columns,
                length: rows,
                is_stored_by_columns: true,
            },
            &Operand {
                array: b,
                slots: b_slots,
                team: column_team,
                across: layout.rows,
                length: columns,
                is_stored_by_columns: false,
            },
        ];
        let shape = Shape::by_columns(rows, columns, rows);
        let mut product = Product { processor, operands, c: BlockMut::of(c, shape), buffers: Vec::new() };
        let steps = layout.blocks();
        match variant {
            Variant::Blocking => product.blocking(steps),
            Variant::Prefetch => product.prefetching(steps),
            Variant::OneSided => product.one_sided(steps),
        }
    }

    /// The elements of A and B of this PE, copied.
    pub(super) fn operands(&self) -> [(Vec<f64>, Shape); 2] {
        let (rows, columns) = (self.layout.own_rows(), self.layout.own_columns());
        let by_columns = Shape::by_columns(rows, columns, rows);
        [
            (self.a.local().to_vec(), by_columns),
            (self.b.local().to_vec(), Shape::by_rows(rows, columns, columns)),
        ]
    }

    /// The elements of C of this PE.
    pub(super) fn product(&self) -> Block<'_> {
        let (rows, columns) = (self.layout.own_rows(), self.layout.own_columns());
        Block::of(&self.c, Shape::by_columns(rows, columns, rows))
    }

    /// The elements of C of this PE, to be changed.
    #[cfg(test)]
    pub(super) fn product_mut(&mut self) -> &mut [f64] {
        &mut self.c
    }
}

/// A product that is being computed.
struct Product<'a, 'p, 'w> {
    processor: &'p Processor<'p>,
    /// A and B.
    operands: [&'p Operand<'a, 'w>; 2],
    c: BlockMut<'p>,
    /// Memory for copies of panels.
    buffers: Vec<Vec<f64>>,
}

impl<'a> Product<'a, '_, '_> {
    /// Each panel is broadcast when it is needed.
    fn blocking(&mut self, steps: usize) -> Result<()> {
        for step in 0..steps {
            for operand in self.operands {
                operand.broadcast(step)?;
            }
            let panels = self.arrived(step)?;
            self.add(panels);
            // Then all slots are free.
            self.operands.iter().for_each(|operand| operand.team.sync());
        }
        Ok(())
    }

    /// Each panel is broadcast during the multiplication before its own.
    fn prefetching(&mut self, steps: usize) -> Result<()> {
        let mut releases = Releases::default();
        let mut under_way = self.start_broadcasts(0)?;
        for step in 0..steps {
            under_way.into_iter().for_each(|request| request.wait());
            under_way = Vec::new();
            if step + 1 < steps {
                releases.wait_for_slot(step + 1);
                under_way = self.start_broadcasts(step + 1)?;
            }
            let panels = self.arrived(step)?;
            self.add(panels);
            releases.release(self.operands.map(|operand| operand.team))?;
        }
        releases.wait_for_all();
        Ok(())
    }

    /// Each panel is got during the multiplication before its own; nobody waits for anybody.
    fn one_sided(&mut self, steps: usize) -> Result<()> {
        let mut under_way = Some(self.get(0)?);
        for step in 0..steps {
            let panels = under_way.take().map(|fetches| fetches.map(Fetch::wait));
            if step + 1 < steps {
                under_way = Some(self.get(step + 1)?);
            }
            if let Some(panels) = panels {
                self.add(panels);
            }
        }
        Ok(())
    }

    fn start_broadcasts(&self, step: usize) -> Result<Vec<pelago::Request<'a>>> {
        let started = self.operands.map(|operand| operand.start_broadcast(step));
        started.into_iter().filter_map(Result::transpose).collect()
    }

    /// The panels of a step, which were broadcast.
    fn arrived(&mut self, step: usize) -> Result<[Elements; 2]> {
        let [a, b] = self.operands;
        let [of_a, of_b] = self.two_buffers();
        // SAFETY: the broadcasts of this step are over. The panels are dropped by the multiplication of this
        // step, after which the step is released.
        unsafe { Ok([a.arrived(step, of_a)?, b.arrived(step, of_b)?]) }
    }

    /// Starts to get the panels of a step.
    fn get(&mut self, step: usize) -> Result<[Fetch<'a>; 2]> {
        let [a, b] = self.operands;
        let [of_a, of_b] = self.two_buffers();
        // SAFETY: nobody writes an operand between the first and the last barrier of a multiplication; the
        // panels are dropped by the multiplication of this step.
        unsafe { Ok([a.get(step, of_a)?, b.get(step, of_b)?]) }
    }

    fn two_buffers(&mut self) -> [Vec<f64>; 2] {
        [(); 2].map(|()| self.buffers.pop().unwrap_or_default())
    }

    /// Adds the product of the panels of a step.
    fn add(&mut self, panels: [Elements; 2]) {
        self.processor.multiply(1.0, panels[0].block(), panels[1].block(), &mut self.c);
        self.buffers.extend(panels.map(Elements::into_buffer));
    }
}
