//! A sending side over the net: an endpoint of the provider, and the count of what was started there. The
//! world has one, and each context one of its own, so that they complete apart.
//!
//! Invariant: what was started and is not complete is counted in `puts` or `followers`, or by the injector,
//! which keeps the count of gets as well, before it can complete; so when the provider's counters have caught
//! up and there are no followers, everything is complete. The lock is held for single calls of the provider,
//! never for longer; what is injected takes none that is waited for.

pub(crate) mod completion_counter;
pub(crate) mod contexts;
pub(crate) mod parcel;

use crate::Pe;
use crate::base::awaited::Awaited;
use crate::base::locked::{locked, try_locked};
use crate::endpoint::completion_counter::CompletionCounter;
use pelago_fabric::shm::segment::Failure;
use pelago_fabric::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use pelago_fabric::{
    Amo, Atomic, AtomicKind, Bell, Completion, Completions, Event, FabricResult, Get, Key, Limits, Net,
    NetInject, Provider, Remote, Status, Token,
};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The key under which every PE registers its heap.
pub(crate) const HEAP_KEY: Key = 0;

/// The injector of an endpoint.
pub(crate) type Injector = pelago_fabric::inject::Injector<NetInject>;

/// A sending side over the net.
pub(crate) struct Endpoint {
    /// `None` once it is shut.
    net: Mutex<Option<Net>>,
    /// Threads that wait for the lock because they must call. Who only makes progress lets them pass: it
    /// would take the lock again and again, before they are awake.
    claims: AtomicU32,
    pub(crate) limits: Limits,
    moves_by_itself: bool,
    keeps_messages_behind_puts: bool,
    signals: bool,
    pub(crate) puts: AtomicU64,
    /// Operations that wait for another one, or are messages that wait for their answer.
    followers: AtomicU64,
    /// Starts short puts and lone gets beside the lock, and has the mark of what was started.
    pub(crate) injector: Injector,
    /// How often a thread that waits for quiet has looked.
    pub(crate) looks: AtomicU32,
    /// Changes when progress has found something.
    activity: AtomicU32,
    /// Threads of this PE that wait, and make progress meanwhile.
    waiters: AtomicU32,
    /// Threads that wait for quiet.
    quieting: AtomicU32,
    is_shut: AtomicBool,
}

/// One more in a count, as long as it lives.
pub(crate) struct Counted<'a>(&'a AtomicU32);

impl Counted<'_> {
    fn new(count: &AtomicU32) -> Counted<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where an operation reaches to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteAddress {
    pub(crate) operation: &'static str,
    pub(crate) pe: Pe,
    /// From the start of the PE's heap, in bytes.
    pub(crate) offset_bytes: usize,
}

impl RemoteAddress {
    pub(crate) fn remote(self, skipped_bytes: usize) -> Remote {
        Remote { key: HEAP_KEY, offset_bytes: self.offset_bytes + skipped_bytes }
    }

    /// The wait for room for the operation.
    pub(crate) fn room(self) -> Awaited {
        Awaited::Room { operation: self.operation, pe: self.pe }
    }
}

impl Endpoint {
    /// An endpoint over this net. It injects if the net moves by itself and can, and there is the record of
    /// the job's failure, as there is not while operations are counted. That is in memory which the world
    /// keeps for as long as the endpoint is used.
    pub(crate) fn new(net: Net, failure: Option<&Failure>) -> Arc<Endpoint> {
        let own = failure
            .filter(|_| net.moves_by_itself())
            .and_then(|failure| Some((net.inject(HEAP_KEY)?, failure)));
        let injector = match own {
            None => Injector::none(),
            // SAFETY: the record stays while something is started, as the caller says.
            Some((own, failure)) => unsafe { Injector::new(own, failure) },
        };
        let endpoint = Arc::new(Endpoint::with(net, injector));
        // SAFETY: the endpoint is not moved out of its `Arc`, which others get clones of; its injector is
        // closed before the net goes, or goes with it.
        unsafe { endpoint.injector.open() };
        endpoint
    }

    fn with(net: Net, injector: Injector) -> Endpoint {
        let (limits, moves_by_itself) = (net.limits(), net.moves_by_itself());
        let (keeps_messages_behind_puts, signals) = (net.keeps_messages_behind_puts(), net.signals());
        Endpoint {
            net: Mutex::new(Some(net)),
            claims: AtomicU32::new(0),
            limits,
            moves_by_itself,
            keeps_messages_behind_puts,
            signals,
            looks: AtomicU32::new(0),
            activity: AtomicU32::new(0),
            puts: AtomicU64::new(0),
            followers: AtomicU64::new(0),
            injector,
            waiters: AtomicU32::new(0),
            quieting: AtomicU32::new(0),
            is_shut: AtomicBool::new(false),
        }
    }

    /// Calls the provider. If the endpoint is shut, which happens when the job fails, this PE gives up.
    pub(crate) fn call<R>(&self, call: impl FnOnce(&Net) -> R) -> R {
        let net = self.try_lock().unwrap_or_else(|| self.lock());
        match &*net {
            Some(net) => call(net),
            None => {
                drop(net);
                panic!("a call over the net after this PE has failed or given up")
            }
        }
    }

    /// Calls the provider, unless the endpoint is shut: for who looks whether the job fails by itself.
    fn call_if_open<R>(&self, call: impl FnOnce(&Net) -> R) -> Option<R> {
        self.try_lock().unwrap_or_else(|| self.lock()).as_ref().map(call)
    }

    /// Calls the provider, unless another thread does or wants to, or the endpoint is shut.
    fn try_call<R>(&self, call: impl FnOnce(&Net) -> R) -> Option<R> {
        if self.claims.load(Ordering::Relaxed) != 0 {
            return None;
        }
        self.try_lock()?.as_ref().map(call)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Net>>> {
        try_locked(&self.net)
    }

    #[cold]
    fn lock(&self) -> MutexGuard<'_, Option<Net>> {
        self.claims.fetch_add(1, Ordering::Relaxed);
        let net = locked(&self.net);
        self.claims.fetch_sub(1, Ordering::Relaxed);
        net
    }

    /// Gives up what is under way: nothing that was started here touches a buffer any more.
    pub(crate) fn shut(&self) {
        self.is_shut.store(true, Ordering::Relaxed);
        self.injector.close();
        self.lock().take();
    }

    /// Whether nothing can be started here any more, as the job fails.
    pub(crate) fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::Relaxed)
    }

    /// A further endpoint from the same PE; see [`new`](Endpoint::new).
    pub(crate) fn context(&self, failure: Option<&Failure>) -> FabricResult<Arc<Endpoint>> {
        self.call(Provider::context).map(|net| Endpoint::new(net, failure))
    }

    pub(crate) fn executes(&self, kind: AtomicKind) -> bool {
        self.call(|net| net.executes(kind))
    }

    /// What is used: a provider, and for libfabric its provider and domain. `None` once it is shut.
    pub(crate) fn fabric(&self) -> Option<String> {
        self.lock().as_ref().map(Provider::description)
    }

    pub(crate) fn virtual_time(&self) -> Option<Duration> {
        self.lock().as_ref().and_then(Provider::virtual_time)
    }

    pub(crate) fn compute(&self, time: Duration) {
        if let Some(net) = self.lock().as_ref() {
            net.compute(time);
        }
    }

    /// Rests until something may have changed, unless another thread is at the provider.
    pub(crate) fn rest(&self, bound: Duration) {
        // What moves by itself needs no call for it, and so no lock that others may want.
        if self.moves_by_itself || self.try_call(|net| net.rest(bound)).is_none() {
            rustix::thread::sched_yield();
        }
    }

    /// What rings when there is something to do here.
    pub(crate) fn bell(&self) -> Option<Bell> {
        self.lock().as_ref().and_then(Provider::bell)
    }

    /// Whether other PEs' puts and gets wait for somebody to call.
    pub(crate) fn is_urgent(&self) -> bool {
        self.bell().is_some_and(|bell| bell.is_urgent)
    }

    /// Whether there is nothing to do here until the bell rings.
    pub(crate) fn may_sleep(&self) -> bool {
        self.try_call(Provider::may_sleep).unwrap_or(false)
    }

    /// Says that this thread waits and makes progress meanwhile, until the answer is dropped.
    pub(crate) fn waiting(&self) -> Counted<'_> {
        let counted = Counted::new(&self.waiters);
        self.look();
        counted
    }

    /// Says that a thread of this PE makes progress.
    pub(crate) fn look(&self) {
        self.injector.has_looked().store(true, Ordering::Relaxed);
    }

    /// Forgets that threads of this PE have made progress: the service thread takes over.
    pub(crate) fn forget_looks(&self) {
        self.injector.has_looked().store(false, Ordering::Relaxed);
    }

    /// Whether a thread of this PE waits, or has made progress since this was last asked.
    pub(crate) fn has_looked(&self) -> bool {
        self.injector.has_looked().swap(false, Ordering::Relaxed) || self.has_waiters()
    }

    /// Whether a thread of this PE waits.
    pub(crate) fn has_waiters(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) != 0
    }

    /// Makes progress, unless another thread does.
    pub(crate) fn progress(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
        let outcome = self.try_call(|net| net.progress(handle)).unwrap_or(Ok(0));
        if !matches!(outcome, Ok(0)) {
            self.activity.fetch_add(1, Ordering::Relaxed);
        }
        outcome
    }

    /// A number that changes when progress has found something.
    pub(crate) fn activity(&self) -> u32 {
        self.activity.load(Ordering::Relaxed)
    }

    /// Whether the source of a put of so many bytes is free as soon as it is started.
    pub(crate) fn injects(&self, bytes: usize) -> bool {
        bytes <= self.limits.inject_bytes.min(self.limits.transfer_bytes)
    }

    /// Whether puts of so many bytes may signal.
    pub(crate) fn signals(&self, bytes: usize) -> bool {
        self.signals && self.moves_by_itself && bytes <= self.limits.transfer_bytes
    }

    /// Lets the next quiet wait for messages of the runtime as well.
    pub(crate) fn flush(&self) {
        self.call_if_open(|net| {
            // Counted under the lock of `is_quiet`, and marked for those who look at the mark alone.
            self.puts.fetch_add(net.flush(), Ordering::Relaxed);
            self.injector.unquiet().by_call();
        });
    }

    /// Starts a get of a few words, no more than one transfer takes; `false` if the provider has no room now.
    ///
    /// # Safety
    /// The words lie in the heap, aligned. `into` is valid for writes until the counter has counted the get
    /// as done.
    pub(crate) unsafe fn try_get(
        &self,
        source: RemoteAddress,
        into: *mut u64,
        words: usize,
        counter: &CompletionCounter,
    ) -> bool {
        let gets = self.injector.other_gets();
        self.started(gets);
        counter.begin(false);
        let (bytes, completion) = (words * size_of::<u64>(), Completion::Tracked(counter.token()));
        let (pe, source, target) = (source.pe, source.remote(0), into.cast());
        // SAFETY: the caller has checked that the remote words exist and that `into` stays valid.
        let status = self.call(|net| unsafe { net.get(Get { pe, source, target, bytes, completion }) });
        if status == Status::Again {
            gets.fetch_sub(1, Ordering::Relaxed);
        }
        if status != Status::Pending {
            counter.done_at_once(false);
        }
        status != Status::Again
    }

    /// Starts an atomic that the fabric executes; `Again` if the provider has no room now.
    ///
    /// # Safety
    /// The word lies in the heap, aligned. `fetched` is null, or valid for writes until the atomic is
    /// complete.
    pub(crate) unsafe fn try_atomic(
        &self,
        target: RemoteAddress,
        atomic: &Atomic,
        fetched: *mut u8,
        token: Option<Token>,
    ) -> Status {
        let count = if fetched.is_null() { &self.puts } else { self.injector.other_gets() };
        self.started(count);
        let (word, atomic, completion) = (target.remote(0), *atomic, token.into());
        let amo = Amo { pe: target.pe, word, atomic, fetched, completion };
        // SAFETY: the caller has promised the word and the place of the result.
        let status = self.call_if_open(|net| unsafe { net.atomic(amo) });
        let status = status.unwrap_or(Status::Again);
        if status == Status::Again {
            count.fetch_sub(1, Ordering::Relaxed);
        }
        status
    }

    /// Bytes of the longest message.
    pub(crate) fn message_bytes(&self) -> usize {
        self.limits.message_bytes
    }

    /// Sends a message; `false` if the provider has no room now.
    pub(crate) fn try_send(&self, pe: Pe, header: u64, payload: &[u8]) -> bool {
        self.call_if_open(|net| net.send(pe, header, payload)).is_some_and(|status| status != Status::Again)
    }

    /// One more operation that waits for another, or for an answer.
    pub(crate) fn add_follower(&self) {
        self.started(&self.followers);
    }

    /// Counts an operation before it can complete.
    pub(crate) fn started(&self, count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
        self.injector.unquiet().by_call();
    }

    /// Whether what was started completes although nobody calls the provider.
    pub(crate) fn moves_by_itself(&self) -> bool {
        self.moves_by_itself
    }

    /// Whether a message of this endpoint arrives behind the puts that were started here before it to the
    /// same PE.
    pub(crate) fn keeps_messages_behind_puts(&self) -> bool {
        self.keeps_messages_behind_puts
    }

    /// It starts short puts and lone gets beside the lock.
    pub(crate) fn injector(&self) -> &Injector {
        &self.injector
    }

    /// Such an operation is complete, or counted by the provider from now on.
    pub(crate) fn remove_follower(&self) {
        // SYNC POINT follower: releases what the answer has brought.
        self.followers.fetch_sub(1, Ordering::Release);
    }

    /// The same at the word of another PE; `None` if nothing is under way.
    pub(crate) fn try_remove_follower(&self) -> Option<()> {
        let less = |followers: u64| followers.checked_sub(1);
        // SYNC POINT follower: releases what the answer has brought.
        self.followers.fetch_update(Ordering::Release, Ordering::Relaxed, less).ok().map(|_| ())
    }

    /// Whether everything that was started here is complete. If so, nothing is marked any more but what was
    /// started meanwhile.
    pub(crate) fn is_quiet(&self) -> bool {
        if self.has_followers() {
            return false;
        }
        // Before the endpoint's lock, which nobody else is to wait for meanwhile.
        let mut stopped = self.injector.stop();
        stopped.leave_open(!self.is_quieting());
        self.call(|net| {
            // Not before both locks are held: what is issued by then was counted before. The mark first: if
            // it is the same when it is taken away, nothing was counted in between.
            let mark = self.injector.unquiet().read();
            let [puts, gets] = [&self.puts, self.injector.other_gets()].map(|n| n.load(Ordering::Relaxed));
            let started = Completions { puts: puts + stopped.puts(), gets: gets + stopped.gets() };
            let is_quiet = !self.has_followers() && net.has_completed(started);
            if is_quiet {
                self.injector.unquiet().clear(mark);
            }
            is_quiet
        })
    }

    /// Whether something was started here since the last quiet.
    pub(crate) fn has_outstanding(&self) -> bool {
        self.injector.unquiet().read() != 0
    }

    /// Whether nothing was started here since all was known to be complete, and more can be.
    pub(crate) fn is_settled(&self) -> bool {
        !self.is_shut() && !self.has_outstanding() && !self.has_followers()
    }

    fn has_followers(&self) -> bool {
        // SYNC POINT follower: acquires what the last answer has brought.
        self.followers.load(Ordering::Acquire) != 0
    }

    /// One more thread waits for quiet, until the answer is dropped.
    pub(crate) fn quieting(&self) -> Counted<'_> {
        Counted::new(&self.quieting)
    }

    /// Whether a thread waits for quiet, so that nothing new should be started.
    pub(crate) fn is_quieting(&self) -> bool {
        self.quieting.load(Ordering::Relaxed) != 0
    }
}
