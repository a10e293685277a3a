//! The completion queue of an endpoint: counters of complete operations, and events of operations that have a
//! token.
//!
//! Invariant: an operation is counted when its effect is visible: the data of a get are in place, a put is in
//! the memory of its target.

use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::types::{Completions, Event, Token};
use parking_lot::Mutex;

/// An event of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The source of a put is free.
    Sent(Token),
    /// The operation is complete.
    Done(Token),
}

/// The completion queue of an endpoint.
#[derive(Default)]
pub(super) struct CompletionQueue {
    puts: AtomicU64,
    gets: AtomicU64,
    has_entries: AtomicBool,
    entries: Mutex<Vec<Entry>>,
    /// Where entries are moved before they are handed out.
    taken: Mutex<Vec<Entry>>,
}

impl CompletionQueue {
    /// Counts complete puts.
    pub(super) fn count_puts(&self, count: u64) {
        // SYNC POINT count: releases the effects of the puts.
        self.puts.fetch_add(count, Ordering::Release);
    }

    /// Counts a complete get.
    pub(super) fn count_get(&self) {
        // SYNC POINT count: releases the data of the get.
        self.gets.fetch_add(1, Ordering::Release);
    }

    /// The counters.
    pub(super) fn completions(&self) -> Completions {
        // SYNC POINT count: acquires the effects of all counted operations.
        let [puts, gets] = [&self.puts, &self.gets].map(|count| count.load(Ordering::Acquire));
        Completions { puts, gets }
    }

    /// Adds an event for the next progress of the endpoint.
    pub(super) fn push(&self, entry: Entry) {
        self.entries.lock().push(entry);
        // The lock orders the events; this is a hint.
        self.has_entries.store(true, Ordering::Relaxed);
    }

    /// Hands all events to `handle`. Returns their number.
    pub(super) fn drain(&self, handle: &mut dyn FnMut(Event<'_>)) -> usize {
        if !self.has_entries() || !self.has_entries.swap(false, Ordering::Relaxed) {
            return 0;
        }
        // The caller's code runs without the lock of the entries. Events of operations that it starts go
        // there; a thread that drains meanwhile takes none.
        let Some(mut taken) = self.taken.try_lock() else {
            self.has_entries.store(true, Ordering::Relaxed);
            return 0;
        };
        std::mem::swap(&mut *taken, &mut *self.entries.lock());
        let count = taken.len();
        for entry in taken.drain(..) {
            handle(match entry {
                Entry::Sent(token) => Event::Sent(token),
                Entry::Done(token) => Event::Done(token),
            });
        }
        count
    }

    /// Whether there are events.
    pub(super) fn has_entries(&self) -> bool {
        self.has_entries.load(Ordering::Relaxed)
    }
}
