//! The operation of a signal.

use pelago_fabric::{Atomic, AtomicKind, AtomicOp};

/// The update that a signal makes to its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalOp {
    /// Sets the word to a value.
    Set(u64),
    /// Adds a value to the word, wrapping around.
    Add(u64),
}

impl SignalOp {
    #[inline(always)]
    pub fn parts(self) -> (AtomicOp, u64) {
        match self {
            SignalOp::Set(value) => (AtomicOp::Set, value),
            SignalOp::Add(value) => (AtomicOp::Add, value),
        }
    }

    pub fn atomic(self) -> Atomic {
        let (op, operand) = self.parts();
        Atomic { kind: AtomicKind::U64, op, operand, compare: 0 }
    }
}
