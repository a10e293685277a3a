//! Panels by collective operations: the factored block of the diagonal by a broadcast in its column of the
//! grid, the parts of a panel by broadcasts in the rows, and then the blocks that lie in a PE's columns by an
//! all-gather in the columns.
//!
//! Invariant: a panel is written into its slot only when all PEs of the row and the column have released the
//! panel that was there. The first element of what is broadcast is 0, or 1 plus the column that is not
//! positive definite.

use pelago::prelude::*;
use pelago::{Request, Result};

use super::panel::{Exchange, Final, Panel, Panels, arrived, store};
use crate::linear::block::{Block, Shape};
use crate::linear::fetch::{Elements, Fetch};
use crate::linear::releases::{Releases, SLOTS};

/// The memory of the exchange, and the teams of this PE.
pub(super) struct Slots<'w> {
    /// The parts of panels of this PE's row.
    panels: Symmetric<'w, f64>,
    /// The blocks of panels of this PE's columns.
    gathered: Symmetric<'w, f64>,
    /// This PE's contribution to the all-gather.
    contribution: Symmetric<'w, f64>,
    /// The factored blocks of the diagonal of this PE's block columns.
    diagonals: Symmetric<'w, f64>,
    row_team: Team<'w>,
    column_team: Team<'w>,
}

/// The elements of each array.
pub(super) fn slot_lens(panels: &Panels) -> [usize; 4] {
    let layout = &panels.layout;
    let width = layout.block.min(layout.n);
    let gathered = if layout.grid.rows > 1 { layout.columns.longest() * width } else { 0 };
    let block_columns = layout.blocks().div_ceil(layout.grid.columns);
    [
        SLOTS * (1 + layout.rows.longest() * width),
        SLOTS * gathered,
        gathered,
        block_columns * (1 + width * width),
    ]
}

impl<'w> Slots<'w> {
    /// Collective: the memory, and the teams.
    pub(super) fn new(world: &'w World, panels: &Panels) -> Result<Self> {
        let [all, gathered, contribution, diagonals] = slot_lens(panels);
        let (row_team, column_team) = world.team().split_2d(panels.layout.grid.columns)?;
        Ok(Slots {
            panels: world.alloc(all)?,
            gathered: world.alloc(gathered)?,
            contribution: world.alloc(contribution)?,
            diagonals: world.alloc(diagonals)?,
            row_team,
            column_team,
        })
    }
}

/// The exchange of one factorisation.
pub(super) struct Collectives<'a, 'w> {
    slots: &'a Slots<'w>,
    panels: Panels,
    under_way: Option<Request<'a>>,
    releases: Releases<'a>,
    buffers: Vec<Vec<f64>>,
}

impl<'a, 'w> Collectives<'a, 'w> {
    /// The exchange of a factorisation.
    pub(super) fn new(slots: &'a Slots<'w>, panels: Panels) -> Self {
        Collectives { slots, panels, under_way: None, releases: Releases::default(), buffers: Vec::new() }
    }

    /// The start of the slot of a step.
    fn slot(array: &Symmetric<'_, f64>, step: usize) -> usize {
        step % SLOTS * (array.len() / SLOTS)
    }

    /// Blocks that have arrived in this PE's own memory.
    ///
    /// # Safety
    /// The elements are dropped before this PE releases the slot.
    unsafe fn here(
        &mut self,
        array: &'a Symmetric<'w, f64>,
        index: usize,
        shape: Shape,
    ) -> Result<Fetch<'a>> {
        let buffer = self.buffers.pop().unwrap_or_default();
        // SAFETY: nobody writes the slot before all members have released it, this one among them, as the
        // caller promises.
        unsafe { Fetch::start(array, (array.world().my_pe(), index), shape, buffer) }
    }

    /// Collective in the column of the grid: the blocks of a panel that lie in this PE's columns but not in
    /// its rows.
    fn gather(&mut self, step: usize, rows: &Elements) -> Result<Vec<(usize, Fetch<'a>)>> {
        let (slots, panels) = (self.slots, self.panels);
        let layout = panels.layout;
        if layout.grid.rows == 1 {
            return Ok(Vec::new());
        }
        let elements = |block: usize| layout.rows.width(block) * layout.columns.width(step);
        let mut end = 0;
        for block in panels.crossing(step, layout.row) {
            let (first, Shape { rows: height, columns, .. }) = panels.block(step, block);
            store(&slots.contribution, end, rows.block().part(first..first + height, 0..columns));
            end += elements(block);
        }
        let count = |row: usize| panels.crossing(step, row).map(elements).sum::<usize>();
        let counts: Vec<_> = (0..layout.grid.rows).map(count).collect();
        let start = Self::slot(&slots.gathered, step);
        let target = slots.gathered.span(start..start + counts.iter().sum::<usize>());
        slots.column_team.all_gather_varying(target, slots.contribution.span(0..end), &counts)?;
        let (mut place, mut others) = (start, Vec::new());
        for row in 0..layout.grid.rows {
            for block in panels.crossing(step, row) {
                if row != layout.row {
                    let (height, width) = (layout.rows.width(block), layout.columns.width(step));
                    let shape = Shape::by_columns(height, width, height);
                    // SAFETY: the blocks are dropped with the panel, before it is released.
                    others.push((block, unsafe { self.here(&slots.gathered, place, shape) }?));
                }
                place += elements(block);
            }
        }
        Ok(others)
    }
}

/// Stores a final block behind the word that says so.
fn store_final(array: &Symmetric<'_, f64>, place: usize, own: Final<Block<'_>>) {
    let word = own.map_or_else(|column| 1.0 + column as f64, |_| 0.0);
    array.local().set(place, word);
    if let Ok(block) = own {
        store(array, place + 1, block);
    }
}

/// Whether a block is final, by the word before it.
fn is_final(array: &Symmetric<'_, f64>, place: usize) -> Final<()> {
    match array.local().get(place) {
        0.0 => Ok(()),
        column => Err(column as usize - 1),
    }
}

impl Exchange for Collectives<'_, '_> {
    fn diagonal(&mut self, step: usize, own: Option<Final<Block<'_>>>) -> Result<Final<Elements>> {
        let (slots, layout) = (self.slots, self.panels.layout);
        let (width, widest) = (layout.rows.width(step), layout.block.min(layout.n));
        let place = step / layout.grid.columns * (1 + widest * widest);
        if let Some(own) = own {
            store_final(&slots.diagonals, place, own);
        }
        let span = slots.diagonals.span(place..place + 1 + width * width);
        slots.column_team.broadcast(layout.rows.owner(step), span, span)?;
        if let Err(column) = is_final(&slots.diagonals, place) {
            return Ok(Err(column));
        }
        let shape = Shape::by_columns(width, width, width);
        // SAFETY: each block of the diagonal has a place of its own, so that nobody writes this one in this
        // factorisation again.
        Ok(Ok(unsafe { self.here(&slots.diagonals, place + 1, shape) }?.wait()))
    }

    fn start(&mut self, step: usize, own: Option<Final<Block<'_>>>) -> Result<()> {
        let (slots, layout) = (self.slots, self.panels.layout);
        self.releases.wait_for_slot(step);
        let place = Self::slot(&slots.panels, step);
        if let Some(own) = own {
            store_final(&slots.panels, place, own);
        }
        let Shape { rows, columns, .. } = self.panels.shape(layout.row, step);
        let span = slots.panels.span(place..place + 1 + rows * columns);
        if slots.row_team.n_pes() > 1 {
            let root = layout.columns.owner(step);
            self.under_way = Some(slots.row_team.nonblocking().broadcast(root, span, span)?);
        }
        Ok(())
    }

    fn progress(&mut self) -> Result<()> {
        self.slots.panels.world().progress();
        Ok(())
    }

    fn finish(&mut self, step: usize) -> Result<Final<Panel>> {
        let (slots, panels) = (self.slots, self.panels);
        self.under_way.take().into_iter().for_each(Request::wait);
        let place = Self::slot(&slots.panels, step);
        if let Err(column) = is_final(&slots.panels, place) {
            return Ok(Err(column));
        }
        let shape = panels.shape(panels.layout.row, step);
        // SAFETY: the part is dropped with the panel, before it is released.
        let rows = unsafe { self.here(&slots.panels, place + 1, shape) }?.wait();
        let others = self.gather(step, &rows)?;
        Ok(Ok(arrived(Fetch::Here(rows), others)))
    }

    fn release(&mut self, panel: Panel) -> Result<()> {
        let all = [panel.rows].into_iter().chain(panel.others.into_iter().map(|(_, elements)| elements));
        self.buffers.extend(all.map(Elements::into_buffer));
        self.releases.release([&self.slots.row_team, &self.slots.column_team])
    }

    fn end(&mut self) {
        self.releases.wait_for_all();
    }
}
