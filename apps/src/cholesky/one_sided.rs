//! Panels by signals and gets: the owner of a final block stores it where others can read it and signals it,
//! and each PE gets what it needs, or reads it in place where it is mapped.
//!
//! Invariant: a stored block is written once in a factorisation, before its signal, so that nobody waits for
//! its readers. A barrier lies between two factorisations. A signal is the number of the factorisation in its
//! upper half, and in its lower half 1, or 2 plus the column that is not positive definite.

use pelago::prelude::*;
use pelago::{Comparison, Result, SignalOp};

use super::panel::{Exchange, Final, Panel, Panels, arrived, store};
use crate::linear::block::{Block, Shape};
use crate::linear::fetch::{Elements, Fetch};

/// The stored blocks and the signals.
pub(super) struct Store<'w> {
    /// The parts of panels of this PE's block columns, each at the place of its block column.
    panels: Symmetric<'w, f64>,
    /// The factored blocks of the diagonal of this PE's block columns.
    diagonals: Symmetric<'w, f64>,
    /// A word for each step and row of the grid: the part of the panel that this row has is final.
    panel_signals: Symmetric<'w, u64>,
    /// A word for each step.
    diagonal_signals: Symmetric<'w, u64>,
}

/// The elements of panels and of diagonal blocks in the store of a PE.
pub(super) fn store_lens(panels: &Panels) -> [usize; 2] {
    let layout = &panels.layout;
    let block_columns = layout.blocks().div_ceil(layout.grid.columns);
    [layout.longest_part(), block_columns * layout.block.min(layout.n).pow(2)]
}

impl<'w> Store<'w> {
    /// Collective: the memory.
    pub(super) fn new(world: &'w World, panels: &Panels) -> Result<Self> {
        let ([all, diagonals], steps) = (store_lens(panels), panels.layout.blocks());
        Ok(Store {
            panels: world.alloc(all)?,
            diagonals: world.alloc(diagonals)?,
            panel_signals: world.alloc_zeroed(steps * panels.layout.grid.rows)?,
            diagonal_signals: world.alloc_zeroed(steps)?,
        })
    }
}

/// The exchange of one factorisation.
pub(super) struct OneSided<'a, 'w> {
    store: &'a Store<'w>,
    panels: Panels,
    /// The number of the factorisation, from 1.
    number: u64,
    /// The step whose panel was started last.
    step: usize,
    /// The gets of its parts, by rows of the grid; none where the signal has not come.
    under_way: Vec<Option<Vec<(usize, Fetch<'a>)>>>,
    buffers: Vec<Vec<f64>>,
}

impl<'a, 'w> OneSided<'a, 'w> {
    /// The exchange of the factorisation `number`.
    pub(super) fn new(store: &'a Store<'w>, panels: Panels, number: u64) -> Self {
        OneSided { store, panels, number, step: 0, under_way: Vec::new(), buffers: Vec::new() }
    }

    /// The signal of a final block.
    fn signal(&self, is_final: Final<()>) -> SignalOp {
        let lower = is_final.map_or_else(|column| 2 + column as u64, |()| 1);
        SignalOp::Set((self.number << 32) + lower)
    }

    /// Waits for a signal.
    fn wait(&self, signals: &Symmetric<'_, u64>, index: usize) -> Final<()> {
        let least = (self.number << 32) + 1;
        match signals.local().wait(index, Comparison::Ge, least) - least {
            0 => Ok(()),
            column => Err(column as usize - 1),
        }
    }

    /// The PE in a row of the grid that has a part of a panel, and the place of that part there.
    fn place(&self, step: usize, row: usize) -> (Pe, usize) {
        let layout = &self.panels.layout;
        let column = layout.columns.owner(step);
        let place = layout.columns.before(column, step) * layout.rows.part_len(row);
        (layout.grid.pe(row, column), place)
    }

    /// Starts to get what this PE needs of a row of the grid, whose signal has come.
    fn get(&mut self, row: usize) -> Result<()> {
        let (panels, step) = (self.panels, self.step);
        let (pe, place) = self.place(step, row);
        let mut started = Vec::new();
        if row == panels.layout.row {
            // The whole part has no number of its own.
            started.push((usize::MAX, self.fetch((pe, place), panels.shape(row, step))?));
        } else {
            for block in panels.crossing(step, row) {
                let (first, shape) = panels.block(step, block);
                started.push((block, self.fetch((pe, place + first), shape)?));
            }
        }
        self.under_way[row] = Some(started);
        Ok(())
    }

    fn fetch(&mut self, at: (Pe, usize), shape: Shape) -> Result<Fetch<'a>> {
        let buffer = self.buffers.pop().unwrap_or_default();
        // SAFETY: the signal of the block has come, after which nobody writes it in this factorisation. The
        // panel is dropped before the factorisation ends.
        unsafe { Fetch::start(&self.store.panels, at, shape, buffer) }
    }
}

impl Exchange for OneSided<'_, '_> {
    fn diagonal(&mut self, step: usize, own: Option<Final<Block<'_>>>) -> Result<Final<Elements>> {
        let (store_of, layout) = (self.store, self.panels.layout);
        let (owner, width) = (layout.rows.owner(step), layout.rows.width(step));
        let place = step / layout.grid.columns * layout.block.min(layout.n).pow(2);
        if let Some(own) = own {
            let is_final = own.map(|block| store(&store_of.diagonals, place, block));
            for row in (0..layout.grid.rows).filter(|row| *row != layout.row) {
                let pe = layout.grid.pe(row, layout.column);
                store_of.diagonal_signals.signal(pe, step, self.signal(is_final))?;
            }
            if let Err(column) = is_final {
                return Ok(Err(column));
            }
        } else if let Err(column) = self.wait(&store_of.diagonal_signals, step) {
            return Ok(Err(column));
        }
        let (pe, shape) = (layout.grid.pe(owner, layout.column), Shape::by_columns(width, width, width));
        let buffer = self.buffers.pop().unwrap_or_default();
        // SAFETY: the block is final: nobody writes it in this factorisation, before the end of which it is
        // dropped.
        Ok(Ok(unsafe { Fetch::start(&store_of.diagonals, (pe, place), shape, buffer) }?.wait()))
    }

    fn start(&mut self, step: usize, own: Option<Final<Block<'_>>>) -> Result<()> {
        let grid = self.panels.layout.grid;
        self.step = step;
        self.under_way = (0..grid.rows).map(|_| None).collect();
        if let Some(own) = own {
            let row = self.panels.layout.row;
            let is_final = own.map(|block| store(&self.store.panels, self.place(step, row).1, block));
            for pe in 0..grid.pes() {
                self.store.panel_signals.signal(pe, step * grid.rows + row, self.signal(is_final))?;
            }
        }
        Ok(())
    }

    fn progress(&mut self) -> Result<()> {
        let (rows, least) = (self.under_way.len(), (self.number << 32) + 1);
        for row in 0..rows {
            let signals = self.store.panel_signals.local();
            // A column that is not definite is found by `finish`.
            if self.under_way[row].is_none() && signals.test(self.step * rows + row, Comparison::Eq, least) {
                self.get(row)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, step: usize) -> Result<Final<Panel>> {
        debug_assert_eq!(step, self.step, "panels come in order");
        for row in 0..self.under_way.len() {
            if self.under_way[row].is_none() {
                if let Err(column) = self.wait(&self.store.panel_signals, step * self.under_way.len() + row) {
                    return Ok(Err(column));
                }
                self.get(row)?;
            }
        }
        let mut fetches: Vec<_> = self.under_way.drain(..).flatten().flatten().collect();
        let whole = fetches.iter().position(|(number, _)| *number == usize::MAX);
        let (_, rows) = fetches.swap_remove(whole.expect("every PE gets the part of its row"));
        Ok(Ok(arrived(rows, fetches)))
    }

    fn release(&mut self, panel: Panel) -> Result<()> {
        let all = [panel.rows].into_iter().chain(panel.others.into_iter().map(|(_, elements)| elements));
        self.buffers.extend(all.map(Elements::into_buffer));
        Ok(())
    }

    fn end(&mut self) {}
}
