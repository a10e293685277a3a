//! What another PE's processor does: atomics that the fabric does not execute, scattered data in parcels; and
//! what is sent when something else is complete.

use crate::Pe;
use crate::endpoint::completion_counter::CompletionCounter;
use crate::endpoint::parcel::Parcel;
use crate::endpoint::{Endpoint, RemoteAddress};
use crate::progress::SealedParcel;
use crate::progress::outbox::Deferred;
use crate::wait::engine::Engine;
use pelago_fabric::Atomic;
use std::sync::Arc;

impl Engine {
    /// Sends a parcel, when there is room and not too many are under way. The counter counts it until the
    /// answer has come; what it carries is free when the call returns.
    ///
    /// # Safety
    /// What the parcel scatters or gathers lies in the heap. The homes of what it gathers are valid for
    /// writes until the counter has counted it as done.
    #[track_caller]
    pub(crate) unsafe fn send_parcel(
        &self,
        endpoint: &Arc<Endpoint>,
        target: RemoteAddress,
        parcel: Parcel,
        counter: &CompletionCounter,
    ) {
        endpoint.admit(self, target);
        counter.begin(false);
        self.tally.add(|counts| counts.parcels += 1);
        let mut sealed = Some(SealedParcel::new(parcel, endpoint, counter.token()));
        // SAFETY: the caller vouches for the homes of what it gathers.
        self.wait(target.room(), || unsafe { self.try_parcel(target.pe, &mut sealed) });
        // A loop of parcels must see what others ask for in between.
        self.progress();
    }

    /// Starts an atomic on a PE that is not mapped.
    ///
    /// # Safety
    /// The word lies in the heap, aligned. `fetched` is null, or aligned and valid for writes until the
    /// atomic is complete.
    pub(crate) unsafe fn start_atomic(
        &self,
        endpoint: &Arc<Endpoint>,
        target: RemoteAddress,
        atomic: &Atomic,
        fetched: *mut u8,
        counter: Option<&CompletionCounter>,
    ) {
        endpoint.admit(self, target);
        if let Some(counter) = counter {
            counter.begin(false);
        }
        let token = counter.map(CompletionCounter::token);
        // SAFETY: the caller vouches for the word and the place of the result.
        self.wait(target.room(), || unsafe { self.try_atomic(endpoint, target, atomic, fetched, token) });
        // A loop of atomics on the own memory must see what others ask for in between.
        self.progress();
    }

    /// Starts an atomic that fetches nothing behind a put to the same PE, which `after` counts: at once, if
    /// it is a message that arrives behind the put, else when that is complete. Its endpoint is quiet only
    /// after it; `counter` counts both, `after` as sent.
    ///
    /// # Safety
    /// The word lies in the heap, aligned.
    pub(crate) unsafe fn start_atomic_after(
        &self,
        after: CompletionCounter,
        endpoint: &Arc<Endpoint>,
        target: RemoteAddress,
        atomic: Atomic,
        counter: Option<&CompletionCounter>,
    ) {
        let token = counter.map(CompletionCounter::token);
        if let Some(counter) = counter {
            counter.begin(true);
        }
        // SAFETY: the caller vouches for the word; there is no result to place.
        let outcome = match unsafe { self.try_signal_behind(endpoint, target, &atomic, counter) } {
            true => token.map(|token| Deferred::Told { after: after.clone(), token }),
            false => {
                endpoint.add_follower();
                let endpoint = Arc::clone(endpoint);
                Some(Deferred::Atomic { endpoint, target, atomic, after: Some(after.clone()), token })
            }
        };
        match outcome {
            Some(deferred) => self.outbox.push(deferred),
            None => self.completions.release(after),
        }
        self.progress();
    }

    /// Sends an active message as soon as its data are complete: `counter` counts these as sent, and the
    /// message as done when it is on its way.
    pub(crate) fn send_active_after(
        &self,
        data: CompletionCounter,
        (pe, header, words): (Pe, u64, Vec<u64>),
        counter: &CompletionCounter,
    ) {
        counter.begin(true);
        let (after, token) = (Some(data), counter.token());
        self.outbox.push(Deferred::Active { pe, header, words, after, token });
        self.progress();
    }

    /// Completes everything that this PE has started, on contexts as well.
    #[track_caller]
    pub(crate) fn quiet_all(&self) {
        if let Some(net) = &self.net {
            net.quiet(self);
            for context in self.contexts.all() {
                context.quiet(self);
            }
        }
    }
}
