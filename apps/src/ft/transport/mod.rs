//! The transports that carry out a transposition, by name. A transport is one file with a [`Carrier`]; it
//! gets the pieces as they are computed and moves them to where the plan says. Invariant: what is computed,
//! when a piece is sent, and where it arrives does not depend on the transport.

use std::cell::RefCell;
use std::ops::Range;

use num_complex::Complex64;
use pelago::Result;
use pelago::prelude::*;

use super::layout::Layout;
use super::phases::Clock;
use super::plan::Tally;
use super::transposition::{Message, Transposition};
use crate::choice::Named;

mod collectives;
mod one_sided;
mod two_sided;

/// The operations by which pieces move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    /// Non-blocking puts.
    OneSided,
    /// Non-blocking sends, and receives that are posted before them.
    TwoSided,
    /// Non-blocking all-to-all operations of the team.
    Collectives,
}

impl Named for Transport {
    const NOUN: &str = "transport";
    const ALL: &[Transport] = &[Transport::OneSided, Transport::TwoSided, Transport::Collectives];

    fn name(self) -> &'static str {
        match self {
            Transport::OneSided => "one-sided",
            Transport::TwoSided => "two-sided",
            Transport::Collectives => "collectives",
        }
    }
}

impl Transport {
    /// Collective: makes the transport ready for the fields of `layout`.
    ///
    /// # Errors
    /// If the symmetric heap has not enough memory.
    pub(super) fn open<'w>(
        self,
        layout: &Layout,
        inbox: &Symmetric<'w, Complex64>,
    ) -> Result<Box<dyn Carrier + 'w>> {
        Ok(match self {
            Transport::OneSided => Box::new(one_sided::OneSided::new(inbox)),
            Transport::TwoSided => Box::new(two_sided::TwoSided::new(inbox)),
            Transport::Collectives => Box::new(collectives::Collectives::new(layout, inbox)?),
        })
    }

    /// The number of buffers as large as a field that it has in the symmetric heap, besides the inboxes.
    pub(super) fn outboxes(self) -> u64 {
        match self {
            Transport::OneSided | Transport::TwoSided => 0,
            Transport::Collectives => 1,
        }
    }
}

/// The data for one transposition.
pub(super) struct Lane<'a, 'w> {
    pub(super) transposition: &'a Transposition,
    pub(super) inbox: &'a Symmetric<'w, Complex64>,
    pub(super) clock: &'a Clock<'w>,
    /// The messages that were sent to each PE.
    pub(super) sent: &'a RefCell<Vec<Tally>>,
}

impl Lane<'_, '_> {
    /// Counts a message to a PE.
    pub(super) fn count(&self, pe: Pe, piece: &[Complex64]) {
        let one = Tally { messages: 1, bytes: size_of_val(piece) as u64 };
        let to = &mut self.sent.borrow_mut()[pe];
        *to = to.plus(one);
    }
}

/// Sends a message of the plan with its elements, which are not changed for the lifetime `'s`. Messages come
/// in the order of the plan.
pub(super) type Send<'a, 's> = dyn FnMut(Message, &'s [Complex64]) -> Result<()> + 'a;

/// A transport of one PE.
pub(super) trait Carrier {
    /// Calls `produce` with the function that sends the pieces of these steps, which does not wait for their
    /// arrival, and waits.
    /// On return this PE's pieces have arrived, or will have arrived when all PEs have passed a barrier.
    ///
    /// # Errors
    /// Those of `produce`, and if the runtime refuses an operation.
    fn carry<'s>(
        &self,
        lane: &Lane<'_, '_>,
        steps: Range<usize>,
        produce: &mut dyn FnMut(&mut Send<'_, 's>) -> Result<()>,
    ) -> Result<()>;

    /// Whether pieces have arrived when the function that sends them returns, so that nothing can be hidden
    /// behind computation.
    fn is_immediate(&self) -> bool;

    /// Whether pieces have left the staging buffer when the function that sends them returns, so that a
    /// buffer for one unit, which stays in the cache, is enough.
    fn frees_staging(&self) -> bool;
}
