//! The interface by which the layer of waits and progress calls the layers above it.
//!
//! Invariant: the type that implements [`Upper`] contains the [`Job`](super::Job), so that it is alive for as
//! long as the job is used.

use crate::Pe;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// The functions of the layers above that waits and progress need.
pub trait Upper: Send + Sync {
    /// Makes progress above: on collective operations, active messages and futures.
    fn advance(&self);

    /// Makes progress on collective operations; `false` if another thread does.
    fn advance_operations(&self) -> bool;

    /// Wakes the futures whose events have occurred.
    fn wake(&self);

    /// Receives a message for a layer above. `None` if it is invalid.
    fn receive(&self, purpose: u8, from: Pe, header: u64, payload: &[u8]) -> Option<()>;

    /// Sends an active message without data; `false` if there is no space for it now.
    fn try_active(&self, pe: Pe, header: u64, words: &[u64]) -> bool;

    /// Whether no two-sided message of a PE that has left is still to come.
    fn has_sent_all(&self, pe: Pe) -> bool;

    /// A number that changes when an operation above makes progress or a message arrives.
    fn activity(&self) -> u64;

    /// Whether no active message waits to be executed, as far as this PE can know.
    fn are_messages_settled(&self) -> bool;
}

/// The layers above, once they are set.
#[derive(Default)]
pub struct UpperLayers(OnceLock<NonNull<dyn Upper>>);

// SAFETY: the pointer is only read, and any thread may use the value that it points to, as `Upper` demands.
unsafe impl Send for UpperLayers {}
// SAFETY: as for `Send`: the pointer is only read, and `Upper` demands `Sync` of what it points to.
unsafe impl Sync for UpperLayers {}

impl UpperLayers {
    /// Sets the layers above.
    ///
    /// # Safety
    /// `upper` is not moved and not borrowed mutably for as long as this value is used.
    pub unsafe fn set(&self, upper: &(dyn Upper + 'static)) {
        let is_first = self.0.set(NonNull::from(upper)).is_ok();
        debug_assert!(is_first, "the layers above are named once");
    }

    /// The layers above; `None` while a PE is still joining.
    #[inline]
    pub fn get(&self) -> Option<&dyn Upper> {
        // SAFETY: the caller of `set` has promised that the value is alive and not borrowed mutably.
        self.0.get().map(|upper| unsafe { upper.as_ref() })
    }
}
