//! The model of the atomics: the result of the executors' own arithmetic for a word.

use pelago::{AtomicElement, AtomicOp};
use pelago_fabric::Atomic;

/// The new value of the word; it is unchanged if the type does not have the operation.
pub fn next<T: AtomicElement>(op: AtomicOp, word: T, operand: T, compare: T) -> T {
    let atomic = Atomic { kind: T::KIND, op, operand: operand.to_word(), compare: compare.to_word() };
    atomic.next(word.to_word()).map_or(word, T::from_word)
}
