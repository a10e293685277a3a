//! Fence and quiet: the order and the completion of one-sided operations.
//!
//! On mapped memory a put is complete when its stores are visible, so what remains is to order stores. What
//! else there may be to do (sleepers to wake, a net to ask) is told by one word, the *attention*: the number
//! of the node's sleepers that wait for data; over a net that moves by itself whether operations were
//! started since the last quiet (the injector's mark); over any other net 1 for ever, as a quiet moves it.

use crate::world::World;
use pelago_fabric::sync::{AtomicU32, Ordering, fence};

/// Where to look whether fence and quiet have more to do than to order stores.
pub(crate) struct Attention(*const AtomicU32);

// SAFETY: the address of a word that outlives the world and is accessed as an atomic only.
unsafe impl Send for Attention {}
// SAFETY: the address of a word that outlives the world and is accessed as an atomic only.
unsafe impl Sync for Attention {}

/// The attention of a world whose net moves only in calls of the runtime.
static ALWAYS: AtomicU32 = AtomicU32::new(1);

impl Attention {
    /// For a world whose net moves only in calls of the runtime.
    pub(crate) fn always() -> Attention {
        Attention(&raw const ALWAYS)
    }

    /// For any other world: a word that is 0 while there is nothing to do.
    ///
    /// # Safety
    /// The word outlives the result.
    pub(crate) unsafe fn if_any(word: &AtomicU32) -> Attention {
        Attention(word)
    }

    pub(crate) fn word(&self) -> *const AtomicU32 {
        self.0
    }

    #[inline(always)]
    fn is_needed(&self) -> bool {
        // SYNC POINT unquiet: acquires what was complete when another thread has found all quiet.
        // SAFETY: whoever made this has promised that the word is there.
        unsafe { (*self.0).load(Ordering::Acquire) != 0 }
    }
}

impl World {
    /// Orders this PE's operations: puts, atomics and signals before the fence are delivered, to each PE,
    /// before those after it. It does not wait for their completion between PEs that map each other, and does
    /// not order gets. Operations on a [`Context`](crate::Context) have a fence of their own.
    #[inline]
    #[track_caller]
    pub fn fence(&self) {
        // SYNC POINT put-order: releases earlier puts to whoever acquires a later one (Local::wait_until).
        fence(Ordering::Release);
        if self.attention.is_needed() {
            self.quiet_attentively();
        }
    }

    /// Waits until all operations that this PE has started are complete and visible to every PE, non-blocking
    /// ones included; not those of a [`Context`](crate::Context).
    #[inline]
    #[track_caller]
    pub fn quiet(&self) {
        // SYNC POINT put-order: as above; the full fence also keeps later loads behind earlier stores.
        fence(Ordering::SeqCst);
        if self.attention.is_needed() {
            self.quiet_attentively();
        }
    }

    /// Over the net nothing is known of the order of operations that are under way, so that a fence is a
    /// quiet as well.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn quiet_attentively(&self) {
        if let Some(net) = &self.net {
            net.quiet(self);
            // SYNC POINT put-order: what progress has executed here comes before what follows.
            fence(Ordering::SeqCst);
        }
        self.ring_sleepers_for_data();
    }

    /// The part of a quiet that concerns mapped memory.
    #[track_caller]
    pub(crate) fn order_stores(&self) {
        // SYNC POINT put-order: as in `quiet`.
        fence(Ordering::SeqCst);
        self.ring_sleepers_for_data();
    }
}
