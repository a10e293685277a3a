//! The fold in the order of ranks: ((x0 op x1) op x2) op ..., while the contributions arrive in that order.
//!
//! Invariant: in an operation in place the target holds this rank's contribution, so it is written only after
//! that contribution has been combined; until then the sum of the lower ranks is kept elsewhere.

use crate::schedule::{Builder, Place};

/// A fold in progress.
#[derive(Debug)]
pub struct RankFold {
    bytes: usize,
    /// This rank's contribution, and the place for the result; both are the same place in an operation in
    /// place.
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

    /// Adds the contribution of the next rank. Returns whether all contributions so far have been read.
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

    /// Ends the fold after all contributions were added: the result is in the target.
    pub fn finish(self, b: &mut Builder) {
        if let Some(sum) = self.sum {
            b.copy(sum, self.target, self.bytes);
        }
    }
}
