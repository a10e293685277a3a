//! Completion counters: the number of outstanding operations of a group over the network. The provider
//! returns the token of a counter when an operation of its group is sent or complete.
//!
//! Invariant: an operation is counted before it is given to the provider, and leaves the counts once, either
//! by an event of the provider or immediately when the provider has completed it inline. A counter's slot is
//! reused only after its counts are 0. Operations between PEs that map each other are complete when they
//! return and are never counted here.

use crate::base::locked::locked;
use pelago_fabric::Token;
use pelago_fabric::sync::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The counts of one group of operations.
#[derive(Debug)]
struct Counts {
    under_way: AtomicU32,
    unsent: AtomicU32,
}

/// The completion counter of a group of operations, which are started with it. Only one of several clones is
/// released.
#[derive(Clone, Debug)]
pub struct CompletionCounter {
    token: Token,
    counts: Arc<Counts>,
}

impl CompletionCounter {
    pub fn token(&self) -> Token {
        self.token
    }

    /// Counts the start of one more operation; `announces_sent` if the provider reports when its source is
    /// free.
    pub fn begin(&self, announces_sent: bool) {
        self.counts.under_way.fetch_add(1, Ordering::Relaxed);
        if announces_sent {
            self.counts.unsent.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Records that an operation was complete when the provider accepted it.
    pub fn done_at_once(&self, announces_sent: bool) {
        if announces_sent {
            self.counts.unsent.fetch_sub(1, Ordering::Relaxed);
        }
        self.counts.under_way.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether all sources are free: the puts are locally complete.
    pub fn is_sent(&self) -> bool {
        // SYNC POINT counter: acquires the provider's last use of the sources.
        self.counts.unsent.load(Ordering::Acquire) == 0
    }

    /// Whether all operations are complete.
    pub fn is_done(&self) -> bool {
        // SYNC POINT counter: acquires the data that the provider has written.
        self.counts.under_way.load(Ordering::Acquire) == 0
    }
}

/// All completion counters of a world, by token.
#[derive(Debug, Default)]
pub struct CompletionCounters(Mutex<Slots>);

#[derive(Debug, Default)]
struct Slots {
    slots: Vec<Slot>,
    free: Vec<Token>,
}

#[derive(Debug)]
struct Slot {
    counts: Arc<Counts>,
    /// Released while operations were outstanding; the slot is free once these are complete.
    is_abandoned: bool,
}

impl CompletionCounters {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        locked(&self.0)
    }

    /// Allocates a counter for a new group of operations.
    pub fn open(&self) -> CompletionCounter {
        let mut slots = self.slots();
        let token = slots.free.pop().unwrap_or_else(|| {
            let counts = Arc::new(Counts { under_way: AtomicU32::new(0), unsent: AtomicU32::new(0) });
            slots.slots.push(Slot { counts, is_abandoned: false });
            (slots.slots.len() - 1) as Token
        });
        CompletionCounter { token, counts: Arc::clone(&slots.slots[token as usize].counts) }
    }

    /// Releases a counter. Operations that are still outstanding complete all the same; then only quiet
    /// observes their completion.
    pub fn release(&self, counter: CompletionCounter) {
        let mut slots = self.slots();
        match counter.is_done() {
            true => slots.free.push(counter.token),
            false => slots.slots[counter.token as usize].is_abandoned = true,
        }
    }

    /// Records that the provider has reported a source as free.
    pub fn sent(&self, token: Token) {
        // SYNC POINT counter: releases the provider's last use of the source.
        self.slots().slots[token as usize].counts.unsent.fetch_sub(1, Ordering::Release);
    }

    /// Records that an operation is complete, as the provider or a reply has reported.
    pub fn done(&self, token: Token) {
        let mut slots = self.slots();
        let slot = &mut slots.slots[token as usize];
        // SYNC POINT counter: releases the data that the provider has written.
        let before = slot.counts.under_way.fetch_sub(1, Ordering::Release);
        if before == 1 && std::mem::take(&mut slot.is_abandoned) {
            slots.free.push(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_reused_only_when_nothing_is_under_way() {
        let completions = CompletionCounters::default();
        let (first, second) = (completions.open(), completions.open());
        assert_eq!((first.token(), second.token()), (0, 1));
        first.begin(true);
        first.begin(false);
        completions.sent(0);
        completions.done(0);
        assert!(first.is_sent() && !first.is_done());
        completions.release(first);
        assert_eq!(completions.open().token(), 2, "the first is abandoned, not free");
        completions.done(0);
        assert_eq!(completions.open().token(), 0);
        second.begin(true);
        second.done_at_once(true);
        assert!(second.is_sent() && second.is_done());
        completions.release(second);
        assert_eq!(completions.open().token(), 1);
    }
}
