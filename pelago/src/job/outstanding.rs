//! Fence and quiet: the order and the completion of one-sided operations.
//!
//! On mapped memory a put is complete when its stores are visible, so what remains is to order stores. Two
//! words, the *outstanding*, tell whether there is more to do: the number of the node's sleepers that wait
//! for data and may have to be woken; and the mark of what was started over the net since the last quiet (the
//! injector's mark). In a job without a net the mark is 0 for ever. Over a net that moves only in calls of
//! the runtime it is 1 for ever, as a quiet moves it.

use crate::endpoint::Endpoint;
use crate::memory::segment::Memory;
use pelago_fabric::sync::{AtomicU32, Ordering};

/// Where to look whether fence and quiet have more to do than to order stores.
#[derive(Clone, Copy)]
pub(crate) struct OutstandingFlags {
    sleepers: *const AtomicU32,
    unquiet: *const AtomicU32,
}

// SAFETY: the addresses of words that outlive the world and are accessed as atomics only.
unsafe impl Send for OutstandingFlags {}
// SAFETY: the addresses of words that outlive the world and are accessed as atomics only.
unsafe impl Sync for OutstandingFlags {}

/// The mark of a world whose net moves only in calls of the runtime.
static ALWAYS: AtomicU32 = AtomicU32::new(1);
/// The mark of a world without a net.
static NEVER: AtomicU32 = AtomicU32::new(0);

impl OutstandingFlags {
    /// For a world with this memory and this way to PEs that are not mapped.
    ///
    /// # Safety
    /// The segment and the endpoint outlive the result.
    pub(crate) unsafe fn of(memory: &Memory, net: Option<&Endpoint>) -> OutstandingFlags {
        let unquiet: *const AtomicU32 = match net {
            None => &raw const NEVER,
            Some(net) if net.moves_by_itself() => net.injector().unquiet().word(),
            Some(_) => &raw const ALWAYS,
        };
        OutstandingFlags { sleepers: memory.header().sleepers.for_data(), unquiet }
    }

    /// The two words: sleepers, and the mark.
    pub(crate) fn words(&self) -> [*const AtomicU32; 2] {
        [self.sleepers, self.unquiet]
    }

    #[inline(always)]
    pub(crate) fn is_needed(&self) -> bool {
        // SAFETY: the caller of `of` has promised that the words are there.
        let [sleepers, unquiet] = unsafe { [&*self.sleepers, &*self.unquiet] };
        // SYNC POINT unquiet: acquires what was complete when another thread has found all quiet.
        sleepers.load(Ordering::Relaxed) | unquiet.load(Ordering::Acquire) != 0
    }

    /// Whether something may be under way over the net.
    pub(crate) fn is_unquiet(&self) -> bool {
        // SYNC POINT unquiet: acquires what was complete when another thread has found all quiet.
        // SAFETY: the caller of `of` has promised that the word is there.
        unsafe { (*self.unquiet).load(Ordering::Acquire) != 0 }
    }
}
