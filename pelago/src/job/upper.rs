//! The layers above the one that waits and makes progress, as that one asks for them.
//!
//! Invariant: the one who implements [`Upper`] has the [`Job`](super::Job) inside it, so that it is there for
//! as long as the job is used.

use crate::Pe;
use std::ptr::NonNull;
use std::sync::OnceLock;

/// What a wait and the progress of a PE need of the layers above.
pub(crate) trait Upper: Send + Sync {
    /// Moves what is under way above: collective operations, active messages, futures.
    fn advance(&self);

    /// Moves collective operations; `false` if another thread does.
    fn advance_operations(&self) -> bool;

    /// Wakes the futures whose events have come.
    fn wake(&self);

    /// Takes a message for a layer above. `None` if it makes no sense.
    fn receive(&self, purpose: u8, from: Pe, header: u64, payload: &[u8]) -> Option<()>;

    /// Sends an active message without data; `false` if there is no room for it now.
    fn try_active(&self, pe: Pe, header: u64, words: &[u64]) -> bool;

    /// A number that changes when something above moves or arrives.
    fn activity(&self) -> u64;

    /// Whether no active message waits to be executed, as far as this PE can know.
    fn are_messages_settled(&self) -> bool;
}

/// The layers above, once they are there.
#[derive(Default)]
pub(crate) struct UpperLayers(OnceLock<NonNull<dyn Upper>>);

// SAFETY: the pointer is only read, and what it points to may be used by any thread, as `Upper` demands.
unsafe impl Send for UpperLayers {}
// SAFETY: as for `Send`: the pointer is only read, and `Upper` demands `Sync` of what it points to.
unsafe impl Sync for UpperLayers {}

impl UpperLayers {
    /// Says what is above.
    ///
    /// # Safety
    /// `upper` stays where it is, and is not borrowed as one that is changed, as long as this is used.
    pub(crate) unsafe fn set(&self, upper: &(dyn Upper + 'static)) {
        let is_first = self.0.set(NonNull::from(upper)).is_ok();
        debug_assert!(is_first, "the layers above are named once");
    }

    /// What is above; nothing while a PE is still joining.
    #[inline]
    pub(crate) fn get(&self) -> Option<&dyn Upper> {
        // SAFETY: the caller of `set` has promised that it is there.
        self.0.get().map(|upper| unsafe { upper.as_ref() })
    }
}
