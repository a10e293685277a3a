//! Contexts of operations, in which a provider may require space for itself (`FI_CONTEXT`, `FI_CONTEXT2`).
//!
//! Invariant: a provider that requires space writes to it when it accepts an operation, and checks that it is
//! unchanged when the operation is complete.

use super::fault::Fault;
use pelago_fabric::ofi::sys::*;

/// Writes to the provider's space in a context.
///
/// # Safety
/// The context is 0, or has the space that the mode requires.
pub(crate) unsafe fn mark(context: usize, mode: u64) {
    for (place, word) in words(context, mode) {
        // SAFETY: the caller guarantees that the buffer is valid.
        unsafe { place.write(word) };
    }
}

/// Checks that the provider's space is unchanged since `mark`.
///
/// # Safety
/// As for `mark`.
pub(crate) unsafe fn check(context: usize, mode: u64) -> Result<(), Fault> {
    // SAFETY: the caller guarantees that the buffer is valid.
    let is_intact = words(context, mode).all(|(place, word)| unsafe { place.read() } == word);
    if is_intact { Ok(()) } else { Err(Fault::ContextSpoilt) }
}

/// The words of a context that belong to the provider, and the values that it writes there.
fn words(context: usize, mode: u64) -> impl Iterator<Item = (*mut usize, usize)> {
    let bytes = match mode {
        _ if context == 0 => 0,
        0 => 0,
        FI_CONTEXT => size_of::<fi_context>(),
        _ => size_of::<fi_context2>(),
    };
    let first = std::ptr::with_exposed_provenance_mut::<usize>(context);
    (0..bytes / size_of::<usize>()).map(move |index| (first.wrapping_add(index), !context ^ index))
}
