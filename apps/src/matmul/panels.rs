//! The panels of one operand of a product: block columns of A, or block rows of B, each of which the PEs of
//! one row or column of the grid need. A panel is contiguous in the memory of its owner: A is stored by
//! columns, B by rows.
//!
//! Invariant: nobody writes the operand while it is multiplied.

use pelago::prelude::*;
use pelago::{Request, Result, Span};

use crate::linear::block::Shape;
use crate::linear::cyclic::Cyclic;
use crate::linear::fetch::{Elements, Fetch};
use crate::linear::releases::SLOTS;

/// An operand, as a PE of the team that shares its panels sees it.
pub(super) struct Operand<'a, 'w> {
    /// The elements; each PE of the world has its part.
    pub(super) array: &'a Symmetric<'w, f64>,
    /// Memory for `SLOTS` panels.
    pub(super) slots: &'a Symmetric<'w, f64>,
    /// The PEs that need the same panels, each of which owns some.
    pub(super) team: &'a Team<'w>,
    /// The distribution of the panels over the team.
    pub(super) across: Cyclic,
    /// The elements of a panel along the other dimension.
    pub(super) length: usize,
    pub(super) is_stored_by_columns: bool,
}

impl<'a, 'w> Operand<'a, 'w> {
    /// The shape of a panel.
    fn shape(&self, step: usize) -> Shape {
        let width = self.across.width(step);
        match self.is_stored_by_columns {
            true => Shape::by_columns(self.length, width, self.length),
            false => Shape::by_rows(width, self.length, self.length),
        }
    }

    /// The place of a panel in the memory of its owner: its first element, and the number of elements.
    fn place(&self, step: usize) -> (usize, usize) {
        let before = self.across.before(self.across.owner(step), step);
        (before * self.length, self.across.width(step) * self.length)
    }

    /// The place of a panel in the slots.
    fn slot(&self, step: usize) -> (usize, usize) {
        (step % SLOTS * (self.slots.len() / SLOTS), self.place(step).1)
    }

    /// Target and source of the broadcast of a panel.
    fn spans(&self, step: usize) -> (Span<'a, f64>, Span<'a, f64>) {
        let ((slot, len), (start, _)) = (self.slot(step), self.place(step));
        (self.slots.span(slot..slot + len), self.array.span(start..start + len))
    }

    /// Starts to get a panel from its owner, without its help.
    ///
    /// # Safety
    /// As `Fetch::start`.
    pub(super) unsafe fn get(&self, step: usize, buffer: Vec<f64>) -> Result<Fetch<'a>> {
        let owner = self.team.pe(self.across.owner(step));
        // SAFETY: the caller keeps the promise about the elements.
        unsafe { Fetch::start(self.array, (owner, self.place(step).0), self.shape(step), buffer) }
    }

    /// Collective in the team: broadcasts a panel.
    pub(super) fn broadcast(&self, step: usize) -> Result<()> {
        if self.team.n_pes() > 1 {
            let (target, source) = self.spans(step);
            self.team.broadcast(self.across.owner(step), target, source)?;
        }
        Ok(())
    }

    /// Collective in the team: starts the broadcast of a panel.
    pub(super) fn start_broadcast(&self, step: usize) -> Result<Option<Request<'a>>> {
        let (target, source) = self.spans(step);
        let owner = self.across.owner(step);
        let start = || self.team.nonblocking().broadcast(owner, target, source);
        (self.team.n_pes() > 1).then(start).transpose()
    }

    /// A panel that was broadcast; alone in its team a PE has it already.
    ///
    /// # Safety
    /// The panel has arrived, and this PE drops it before it releases it.
    pub(super) unsafe fn arrived(&self, step: usize, buffer: Vec<f64>) -> Result<Elements> {
        let me = self.array.world().my_pe();
        let (array, (index, _)) = match self.team.n_pes() {
            1 => (self.array, self.place(step)),
            _ => (self.slots, self.slot(step)),
        };
        // SAFETY: nobody writes the operand. Nobody writes the slot before all members have released the
        // panel, this one among them.
        Ok(unsafe { Fetch::start(array, (me, index), self.shape(step), buffer) }?.wait())
    }
}
