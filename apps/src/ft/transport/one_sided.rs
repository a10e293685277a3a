//! Puts: each piece is put into the inbox of its PE, and a scope waits for all of them. Invariant: data in
//! flight are not changed before they have arrived; the scope guarantees this. Source: Bell, Bonachea,
//! Nishtala, Yelick, "Optimizing Bandwidth Limited Problems Using One-Sided Communication and Overlap".

use std::ops::Range;

use num_complex::Complex64;
use pelago::Result;
use pelago::prelude::*;

use super::{Carrier, Lane, Send};
use crate::ft::phases::Phase;

/// The transport of one PE.
pub(super) struct OneSided<'w> {
    world: &'w World,
    /// Whether every put is a copy that is complete at return.
    is_mapped: bool,
}

impl<'w> OneSided<'w> {
    /// For transpositions into `inbox` and arrays like it.
    pub(super) fn new(inbox: &Symmetric<'w, Complex64>) -> Self {
        let world = inbox.world();
        let is_mapped = (0..world.n_pes()).all(|pe| inbox.ptr(pe).is_some());
        OneSided { world, is_mapped: is_mapped && !world.is_simulated() }
    }
}

impl Carrier for OneSided<'_> {
    fn carry<'s>(
        &self,
        lane: &Lane<'_, '_>,
        _: Range<usize>,
        produce: &mut dyn FnMut(&mut Send<'_, 's>) -> Result<()>,
    ) -> Result<()> {
        self.world.scope(|scope| {
            produce(&mut |message, piece| {
                scope.put(lane.inbox, message.pe, message.place, piece)?;
                lane.count(message.pe, piece);
                lane.clock.lap(Phase::CommunicationStart);
                Ok(())
            })
        })
    }

    fn is_immediate(&self) -> bool {
        self.is_mapped
    }

    fn frees_staging(&self) -> bool {
        self.is_mapped
    }
}
