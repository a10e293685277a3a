//! The fold in the order of ranks: ((x0 op x1) op x2) op ..., as the contributions come, in that order.
//!
//! Invariant: in place the target, which holds the own contribution, is written only once that is combined;
//! until then the sum of the lower ranks is kept apart.

use crate::schedule::{Builder, Place};

/// A fold that goes on.
#[derive(Debug)]
pub struct RankFold {
    bytes: usize,
    /// The own contribution, and where the result goes; the same place if it happens in place.
    own: Place,
    target: Place,
    own_is_in: bool,
    apart: Option<Place>,
    sum: Option<Place>,
}

impl RankFold {
    /// A fold of blocks of `bytes` bytes into `target`.
    pub fn new(own: Place, target: Place, bytes: usize) -> RankFold {
        RankFold { bytes, own, target, own_is_in: own != target, apart: None, sum: None }
    }

    /// Adds the contribution of the next rank. Says whether all contributions so far have been read.
    pub fn add(&mut self, b: &mut Builder, operand: Place) -> bool {
        self.own_is_in |= operand == self.own;
        let Some(sum) = self.sum else {
            self.sum = Some(operand);
            return false;
        };
        let into = match self.own_is_in {
            true => self.target,
            false => *self.apart.get_or_insert_with(|| b.scratch(self.bytes)),
        };
        b.reduce(sum, operand, into, self.bytes);
        self.sum = Some(into);
        true
    }

    /// All contributions are in: the result is in the target.
    pub fn finish(self, b: &mut Builder) {
        if let Some(sum) = self.sum {
            b.copy(sum, self.target, self.bytes);
        }
    }
}
