//! Fence and quiet: the order and the completion of one-sided operations.
//!
//! On mapped memory a put is complete when its stores are visible, so what remains is to order stores. Two
//! words, the *attention*, tell whether there is more to do: the number of the node's sleepers that wait for
//! data and may have to be woken; and the mark of what was started over the net since the last quiet (the
//! injector's mark). In a job without a net the mark is 0 for ever. Over a net that moves only in calls of
//! the runtime it is 1 for ever, as a quiet moves it.

use crate::channel::Channel;
use crate::segment::Memory;
use crate::world::World;
use pelago_fabric::sync::{AtomicU32, Ordering, fence};

/// Where to look whether fence and quiet have more to do than to order stores.
#[derive(Clone, Copy)]
pub(crate) struct Attention {
    sleepers: *const AtomicU32,
    unquiet: *const AtomicU32,
}

// SAFETY: the addresses of words that outlive the world and are accessed as atomics only.
unsafe impl Send for Attention {}
// SAFETY: the addresses of words that outlive the world and are accessed as atomics only.
unsafe impl Sync for Attention {}

/// The mark of a world whose net moves only in calls of the runtime.
static ALWAYS: AtomicU32 = AtomicU32::new(1);
/// The mark of a world without a net.
static NEVER: AtomicU32 = AtomicU32::new(0);

impl Attention {
    /// For a world with this memory and this way to PEs that are not mapped.
    ///
    /// # Safety
    /// The segment and the channel outlive the result.
    pub(crate) unsafe fn of(memory: &Memory, net: Option<&Channel>) -> Attention {
        let unquiet: *const AtomicU32 = match net {
            None => &raw const NEVER,
            Some(net) if net.moves_by_itself() => net.injector().unquiet().word(),
            Some(_) => &raw const ALWAYS,
        };
        Attention { sleepers: memory.header().sleepers.for_data(), unquiet }
    }

    /// The two words: sleepers, and the mark.
    pub(crate) fn words(&self) -> [*const AtomicU32; 2] {
        [self.sleepers, self.unquiet]
    }

    #[inline(always)]
    fn is_needed(&self) -> bool {
        // SAFETY: the caller of `of` has promised that the words are there.
        let [sleepers, unquiet] = unsafe { [&*self.sleepers, &*self.unquiet] };
        // SYNC POINT unquiet: acquires what was complete when another thread has found all quiet.
        sleepers.load(Ordering::Relaxed) | unquiet.load(Ordering::Acquire) != 0
    }

    /// Whether something may be under way over the net.
    fn is_unquiet(&self) -> bool {
        // SYNC POINT unquiet: acquires what was complete when another thread has found all quiet.
        // SAFETY: the caller of `of` has promised that the word is there.
        unsafe { (*self.unquiet).load(Ordering::Acquire) != 0 }
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
        if let Some(net) = self.net.as_ref().filter(|_| self.attention.is_unquiet()) {
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
