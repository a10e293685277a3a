//! The outbox: the messages and operations that this PE starts when there is space for them, or when the
//! operation that they follow is complete.
//!
//! Invariant: progress starts the entries of the outbox, without a quiet. Each was counted before by the code
//! that waits for it. Messages to one PE are sent in the order in which they were added.

use super::ProgressState;
use super::purpose::Purpose;
use crate::Pe;
use crate::base::locked::{locked, try_locked};
use crate::endpoint::completion_counter::CompletionCounter;
use crate::endpoint::{Endpoint, RemoteAddress};
use crate::memory::route::Executor;
use pelago_fabric::sync::{AtomicUsize, Ordering};
use pelago_fabric::{Atomic, Token};
use std::sync::{Arc, Mutex};

/// An operation to be started when there is space, or when another operation is complete.
pub enum Deferred {
    Message {
        pe: Pe,
        header: u64,
        payload: Vec<u8>,
    },
    Atomic {
        endpoint: Arc<Endpoint>,
        target: RemoteAddress,
        atomic: Atomic,
        /// The operation that must be complete first; `None` once it is.
        after: Option<CompletionCounter>,
        /// Counts both operations: the first one as sent, this one as done.
        token: Option<Token>,
    },
    /// Only a notification that an operation is complete, which counts it as sent and done.
    Told {
        after: CompletionCounter,
        token: Token,
    },
    /// An active message, whose data must be complete first.
    Active {
        pe: Pe,
        header: u64,
        words: Vec<u64>,
        after: Option<CompletionCounter>,
        token: Token,
    },
}

/// The operations that wait to be started.
#[derive(Default)]
pub struct Outbox {
    deferred: Mutex<Vec<Deferred>>,
    /// Their number, to be read without the lock.
    count: AtomicUsize,
    /// Held by the thread that starts entries, so that no other thread starts later messages first.
    flushing: Mutex<()>,
}

impl Outbox {
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    pub fn push(&self, deferred: Deferred) {
        let mut all = locked(&self.deferred);
        all.push(deferred);
        self.count.store(all.len(), Ordering::Relaxed);
    }

    fn take(&self) -> Vec<Deferred> {
        let mut all = locked(&self.deferred);
        self.count.store(0, Ordering::Relaxed);
        std::mem::take(&mut *all)
    }

    /// Puts entries back in front of those that were added meanwhile.
    fn put_back(&self, mut waiting: Vec<Deferred>) {
        let mut all = locked(&self.deferred);
        waiting.append(&mut all);
        *all = waiting;
        self.count.store(all.len(), Ordering::Relaxed);
    }
}

impl ProgressState {
    /// Adds a message to be sent when there is space.
    pub fn send_later(&self, pe: Pe, purpose: Purpose, header: u64, payload: Vec<u8>) {
        let header = purpose.over(header);
        self.outbox.push(Deferred::Message { pe, header, payload });
    }

    /// Whether no message waits for space any more. A thread that starts entries has taken them out, and may
    /// put some back.
    pub fn has_sent_all(&self) -> bool {
        let outbox = &self.outbox;
        outbox.is_empty() && try_locked(&outbox.flushing).is_some() && outbox.is_empty()
    }

    /// Starts all entries of the outbox that can be started now.
    pub fn flush_outbox(&self, net: &Endpoint) {
        let _flushing = locked(&self.outbox.flushing);
        let mut waiting = self.outbox.take();
        // The PEs for which there was no space: later messages to them stay in the outbox.
        let mut is_full = Vec::new();
        waiting.retain_mut(|deferred| match deferred {
            Deferred::Message { pe, .. } if is_full.get(*pe) == Some(&true) => true,
            Deferred::Message { pe, header, payload } => {
                let is_sent = net.try_send(*pe, *header, payload);
                if !is_sent {
                    is_full.resize(self.n_pes(), false);
                    is_full[*pe] = true;
                }
                !is_sent
            }
            Deferred::Atomic { after: Some(after), .. } | Deferred::Active { after: Some(after), .. }
                if !after.is_done() =>
            {
                true
            }
            Deferred::Told { after, .. } if !after.is_done() => true,
            Deferred::Told { after, token } => {
                self.completions.release(after.clone());
                self.completions.sent(*token);
                self.completions.done(*token);
                false
            }
            Deferred::Active { pe, header, words, after, token } => {
                if let Some(after) = after.take() {
                    self.completions.release(after);
                    self.completions.sent(*token);
                }
                let is_sent = self.upper.get().is_some_and(|upper| upper.try_active(*pe, *header, words));
                if is_sent {
                    self.completions.done(*token);
                }
                !is_sent
            }
            Deferred::Atomic { endpoint, target, atomic, after, token } => {
                if let Some(after) = after.take() {
                    self.completions.release(after);
                    token.iter().for_each(|&token| self.completions.sent(token));
                }
                let (target, null) = (*target, std::ptr::null_mut());
                // SAFETY: the caller that deferred the atomic has guaranteed that the word exists; there is
                // no result to write.
                let is_started = unsafe { self.try_atomic(endpoint, target, atomic, null, *token) };
                if is_started {
                    endpoint.remove_follower();
                }
                !is_started
            }
        });
        if !waiting.is_empty() {
            self.outbox.put_back(waiting);
        }
    }

    /// Starts an atomic that is a message and is delivered after all earlier puts to the same PE; `false` if
    /// it is not such a message, or if there is no space for it now. The counter counts it if it is started.
    ///
    /// # Safety
    /// The word lies in the heap, aligned.
    pub unsafe fn try_signal_behind(
        &self,
        endpoint: &Arc<Endpoint>,
        target: RemoteAddress,
        atomic: &Atomic,
        counter: Option<&CompletionCounter>,
    ) -> bool {
        let executor = || self.routes.executor(target.pe, atomic.kind, |kind| endpoint.executes(kind));
        if !endpoint.keeps_messages_behind_puts()
            || !Arc::ptr_eq(endpoint, self.net_endpoint())
            || !matches!(executor(), Executor::Target)
        {
            return false;
        }
        let (token, null) = (counter.map(CompletionCounter::token), std::ptr::null_mut());
        if let Some(counter) = counter {
            counter.begin(false);
        }
        // SAFETY: the caller guarantees that the word exists; there is no result to write.
        let is_started = unsafe { self.try_request(endpoint, target, atomic, null, token) };
        if let (false, Some(counter)) = (is_started, counter) {
            counter.done_at_once(false);
        }
        is_started
    }
}
