//! Fence and quiet: the order and the completion of one-sided operations.
//!
//! On mapped memory a put is complete when its stores are visible, so fence and quiet only order stores. Two
//! words, the *outstanding flags*, tell whether there is more to do: the number of PEs of the node that sleep
//! until data arrive and may have to be woken; and the mark of operations over the network since the last
//! quiet (the injector's mark). In a job without a network the mark is always 0. If the network makes
//! progress only in calls of the runtime, the mark is always 1, because a quiet makes progress.

use crate::endpoint::Endpoint;
use crate::memory::segment::Memory;
use pelago_fabric::sync::{AtomicU32, Ordering};

/// The flags that tell whether fence and quiet have more to do than to order stores.
#[derive(Clone, Copy)]
pub struct OutstandingFlags {
    sleepers: *const AtomicU32,
    unquiet: *const AtomicU32,
}

// SAFETY: the addresses of words that outlive the world and are accessed as atomics only.
unsafe impl Send for OutstandingFlags {}
// SAFETY: the addresses of words that outlive the world and are accessed as atomics only.
unsafe impl Sync for OutstandingFlags {}

/// The mark of a world whose network makes progress only in calls of the runtime.
static ALWAYS: AtomicU32 = AtomicU32::new(1);
/// The mark of a world without a network.
static NEVER: AtomicU32 = AtomicU32::new(0);

impl OutstandingFlags {
    /// The flags of a world with this memory and this endpoint for PEs that are not mapped.
    ///
    /// # Safety
    /// The segment and the endpoint outlive the result.
    pub unsafe fn of(memory: &Memory, net: Option<&Endpoint>) -> OutstandingFlags {
        let unquiet: *const AtomicU32 = match net {
            None => &raw const NEVER,
            Some(net) if net.moves_by_itself() => net.injector().outstanding().word(),
            Some(_) => &raw const ALWAYS,
        };
        OutstandingFlags { sleepers: memory.header().sleepers.for_data(), unquiet }
    }

    /// The two words: sleepers, and the mark.
    pub fn words(&self) -> [*const AtomicU32; 2] {
        [self.sleepers, self.unquiet]
    }

    #[inline(always)]
    pub fn is_needed(&self) -> bool {
        // SAFETY: the caller of `of` has promised that the words are valid.
        let [sleepers, unquiet] = unsafe { [&*self.sleepers, &*self.unquiet] };
        // SYNC POINT outstanding: acquires the effects of the operations that another thread has found
        // complete.
        sleepers.load(Ordering::Relaxed) | unquiet.load(Ordering::Acquire) != 0
    }

    /// Whether operations over the network may be outstanding.
    pub fn is_unquiet(&self) -> bool {
        // SYNC POINT outstanding: acquires the effects of the operations that another thread has found
        // complete. SAFETY: the caller of `of` has promised that the word is valid.
        unsafe { (*self.unquiet).load(Ordering::Acquire) != 0 }
    }
}
