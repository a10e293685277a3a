//! The model of the atomics: what the executors' own arithmetic makes of a word.

use pelago::{AtomicElement, AtomicOp};
use pelago_fabric::Atomic;

/// What the word becomes; it stays where there is no such operation on the type.
pub fn next<T: AtomicElement>(op: AtomicOp, word: T, operand: T, compare: T) -> T {
    let atomic = Atomic { kind: T::KIND, op, operand: operand.to_word(), compare: compare.to_word() };
    atomic.next(word.to_word()).map_or(word, T::from_word)
}
