//! Operations that another PE's processor executes: atomics that the fabric does not execute, and parcels of
//! scattered data. Also operations that are sent when another operation is complete.

use crate::Pe;
use crate::endpoint::completion_counter::CompletionCounter;
use crate::endpoint::parcel::Parcel;
use crate::endpoint::{Endpoint, RemoteAddress};
use crate::progress::SealedParcel;
use crate::progress::outbox::Deferred;
use crate::wait::engine::Engine;
use pelago_fabric::Atomic;
use pelago_fabric::sync::{Ordering, fence};
use std::sync::Arc;

impl Engine {
    /// Sends a parcel, when there is space and not too many are outstanding. The counter counts it until the
    /// reply has arrived; the source of the data may be reused when the call returns.
    ///
    /// # Safety
    /// The remote ranges of the parcel lie in the heap. The local ranges of a gather are valid for writes
    /// until the counter has counted the parcel as done.
    #[track_caller]
    pub unsafe fn send_parcel(
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
        // SAFETY: the caller guarantees that the local ranges of a gather are valid for writes.
        self.wait(target.room(), || unsafe { self.try_parcel(target.pe, &mut sealed) });
        // A loop that sends parcels must serve the requests of others in between.
        self.progress();
    }

    /// Starts an atomic on a PE that is not mapped.
    ///
    /// # Safety
    /// The word lies in the heap, aligned. `fetched` is null, or aligned and valid for writes until the
    /// atomic is complete.
    pub unsafe fn start_atomic(
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
        // SAFETY: the caller guarantees that the word exists and that the result may be written.
        self.wait(target.room(), || unsafe { self.try_atomic(endpoint, target, atomic, fetched, token) });
        if target.pe == self.my_pe() {
            // SYNC POINT doorbell: orders the change before the look at other threads of this PE that sleep.
            fence(Ordering::SeqCst);
            self.ring_own();
        }
        // A loop of atomics on the own memory must serve the requests of others in between.
        self.progress();
    }

    /// Starts an atomic that fetches nothing after a put to the same PE, which `after` counts. It starts at
    /// once if it is a message that is delivered after the put, or else when the put is complete. Its
    /// endpoint is not quiet before the atomic is complete. `counter` counts both: the put as sent, and the
    /// atomic as done.
    ///
    /// # Safety
    /// The word lies in the heap, aligned.
    pub unsafe fn start_atomic_after(
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
        // SAFETY: the caller guarantees that the word exists; there is no result to write.
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

    /// Sends an active message as soon as its data are complete: `counter` counts the data as sent, and the
    /// message as done when the provider has accepted it.
    pub fn send_active_after(
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

    /// Completes all operations that this PE has started, including those of contexts.
    #[track_caller]
    pub fn quiet_all(&self) {
        if let Some(net) = &self.net {
            net.quiet(self);
            for context in self.contexts.all().iter() {
                context.quiet(self);
            }
        }
    }
}
