//! The sending side of the network: an endpoint of the provider, and the counts of the operations that were
//! started there. The world has one, and each context has its own, so that they complete independently.
//!
//! Invariant: an operation is counted before it can complete, in `puts` or `followers`, or by the injector,
//! which keeps the count of gets as well. So when the provider's counters have caught up and there are no
//! followers, all operations are complete. The lock is held for single calls of the provider, never for
//! longer; an injected operation never waits for a lock.

pub mod completion_counter;
pub mod contexts;
pub mod parcel;

use crate::Pe;
use crate::base::awaited::Awaited;
use crate::base::descriptors::poll_for;
use crate::base::trace;
use crate::endpoint::completion_counter::CompletionCounter;
use parking_lot::{Mutex, MutexGuard};
use pelago_fabric::shm::segment::Failure;
use pelago_fabric::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use pelago_fabric::{
    Amo, Atomic, AtomicKind, Completion, Completions, Event, FabricResult, Get, Key, Limits, Net, NetInject,
    Provider, Put, Remote, Status, Token,
};
use rustix::event::{PollFd, PollFlags};
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The key under which every PE registers its heap.
pub const HEAP_KEY: Key = 0;

/// The injector of an endpoint.
pub type Injector = pelago_fabric::inject::Injector<NetInject>;

/// An endpoint of the network.
pub struct Endpoint {
    /// `None` once it is shut.
    net: Mutex<Option<Net>>,
    /// The number of threads that wait for the lock because they must call the provider. A thread that only
    /// makes progress lets them go first: otherwise it would take the lock again and again before they are
    /// awake.
    claims: AtomicU32,
    pub limits: Limits,
    moves_by_itself: bool,
    keeps_messages_behind_puts: bool,
    /// The length of the longest put that may signal; `None` if none may.
    signal_bytes: Option<usize>,
    pub puts: AtomicU64,
    /// The number of operations that wait for another operation, or are requests that wait for their reply.
    followers: AtomicU64,
    /// Starts short puts and single gets without the lock, and keeps the mark of outstanding operations.
    pub injector: Injector,
    /// The number of times that a thread in quiet has checked for completion.
    pub looks: AtomicU32,
    /// Changes when progress has processed an event.
    activity: AtomicU32,
    /// Whether something may be left to be sent that a PE may wait for.
    owed: AtomicBool,
    /// The number of threads of this PE that wait and make progress meanwhile.
    waiters: AtomicU32,
    /// The number of threads that wait for quiet.
    quieting: AtomicU32,
    is_shut: AtomicBool,
    /// The wait descriptor of the threads that wait, once one has blocked.
    own_descriptor: OnceLock<Option<OwnedFd>>,
}

/// Raises a count by one for as long as it lives.
pub struct Counted<'a>(&'a AtomicU32);

impl Counted<'_> {
    pub fn new(count: &AtomicU32) -> Counted<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The remote address of an operation.
#[derive(Clone, Copy, Debug)]
pub struct RemoteAddress {
    pub operation: &'static str,
    pub pe: Pe,
    /// Offset from the start of the PE's heap, in bytes.
    pub offset_bytes: usize,
}

impl RemoteAddress {
    pub fn remote(self, skipped_bytes: usize) -> Remote {
        Remote { key: HEAP_KEY, offset_bytes: self.offset_bytes + skipped_bytes }
    }

    /// The event that an operation with this PE is given to the provider, of this many bytes.
    pub fn given(self, name: &'static str, bytes: usize) -> trace::Event {
        trace::Event::new(trace::Category::Network, name).detailed(self.operation).with(self.pe, bytes)
    }

    /// The condition of a wait for space in the provider's queue for the operation.
    pub fn room(self) -> Awaited {
        Awaited::Room { operation: self.operation, pe: self.pe }
    }
}

impl Endpoint {
    /// An endpoint of a network. It injects if the network makes progress by itself and supports it, and if
    /// `failure`, the record of the job's failure, is given, which it is not while operations are counted.
    /// The record is in memory that the world keeps for as long as the endpoint is used.
    pub fn new(net: Net, failure: Option<&Failure>) -> Arc<Endpoint> {
        let own = failure
            .filter(|_| net.moves_by_itself())
            .and_then(|failure| Some((net.inject(HEAP_KEY)?, failure)));
        let injector = match own {
            None => Injector::none(),
            // SAFETY: the record is valid while operations are started, as the caller of `new` promises.
            Some((own, failure)) => unsafe { Injector::new(own, failure) },
        };
        let endpoint = Arc::new(Endpoint::with(net, injector));
        // SAFETY: the endpoint is not moved out of its `Arc`, which others get clones of; its injector is
        // closed before the network is closed, or together with it.
        unsafe { endpoint.injector.open() };
        endpoint
    }

    fn with(net: Net, injector: Injector) -> Endpoint {
        let (limits, moves_by_itself) = (net.limits(), net.moves_by_itself());
        let keeps_messages_behind_puts = net.keeps_messages_behind_puts();
        let signal_bytes = net.signal_bytes().filter(|_| moves_by_itself);
        Endpoint {
            net: Mutex::new(Some(net)),
            claims: AtomicU32::new(0),
            limits,
            moves_by_itself,
            keeps_messages_behind_puts,
            signal_bytes,
            looks: AtomicU32::new(0),
            activity: AtomicU32::new(0),
            owed: AtomicBool::new(false),
            puts: AtomicU64::new(0),
            followers: AtomicU64::new(0),
            injector,
            waiters: AtomicU32::new(0),
            quieting: AtomicU32::new(0),
            is_shut: AtomicBool::new(false),
            own_descriptor: OnceLock::new(),
        }
    }

    /// Calls the provider. If the endpoint is shut, which happens when the job fails, this PE gives up.
    pub fn call<R>(&self, call: impl FnOnce(&Net) -> R) -> R {
        let net = self.try_lock().unwrap_or_else(|| self.lock());
        match &*net {
            Some(net) => call(net),
            None => {
                drop(net);
                panic!("a call over the net after this PE has failed or given up")
            }
        }
    }

    /// Calls the provider, unless the endpoint is shut. It is for callers that check by themselves whether
    /// the job fails.
    fn call_if_open<R>(&self, call: impl FnOnce(&Net) -> R) -> Option<R> {
        self.try_lock().unwrap_or_else(|| self.lock()).as_ref().map(call)
    }

    /// Calls the provider, unless another thread does or waits to do so, or the endpoint is shut.
    fn try_call<R>(&self, call: impl FnOnce(&Net) -> R) -> Option<R> {
        if self.claims.load(Ordering::Relaxed) != 0 {
            return None;
        }
        self.try_lock()?.as_ref().map(call)
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Net>>> {
        self.net.try_lock()
    }

    #[cold]
    fn lock(&self) -> MutexGuard<'_, Option<Net>> {
        self.claims.fetch_add(1, Ordering::Relaxed);
        let net = self.net.lock();
        self.claims.fetch_sub(1, Ordering::Relaxed);
        net
    }

    /// Shuts the endpoint and abandons outstanding operations: no operation that was started here accesses a
    /// buffer any more.
    pub fn shut(&self) {
        self.is_shut.store(true, Ordering::Relaxed);
        self.injector.close();
        self.lock().take();
    }

    /// Whether the endpoint is shut, so that no operation can be started here, because the job fails.
    pub fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::Relaxed)
    }

    /// Opens a further endpoint of the same PE; see [`new`](Endpoint::new).
    pub fn context(&self, failure: Option<&Failure>) -> FabricResult<Arc<Endpoint>> {
        self.call(Provider::context).map(|net| Endpoint::new(net, failure))
    }

    pub fn executes(&self, kind: AtomicKind) -> bool {
        self.call(|net| net.executes(kind))
    }

    /// The name of the fabric in use: the provider, and for libfabric its provider and domain. `None` once it
    /// is shut.
    pub fn fabric(&self) -> Option<String> {
        self.lock().as_ref().map(Provider::description)
    }

    pub fn virtual_time(&self) -> Option<Duration> {
        self.lock().as_ref().and_then(Provider::virtual_time)
    }

    pub fn compute(&self, time: Duration) {
        if let Some(net) = self.lock().as_ref() {
            net.compute(time);
        }
    }

    /// Blocks until an event may have occurred, unless another thread is calling the provider.
    pub fn rest(&self, bound: Duration) {
        // A network that makes progress by itself needs no call, and so no lock that other threads may wait
        // for.
        if self.moves_by_itself || self.try_call(|net| net.rest(bound)).is_none() {
            rustix::thread::sched_yield();
        }
    }

    /// The doorbell that rings when this endpoint needs progress.
    pub fn wait_descriptor(&self) -> Option<OwnedFd> {
        self.lock().as_ref().and_then(Provider::wait_descriptor)
    }

    /// Whether registered memory must stay resident: the provider goes on to access the pages that it had at
    /// first.
    pub fn pins(&self) -> bool {
        self.lock().as_ref().is_some_and(Provider::pins)
    }

    /// Whether other PEs' puts and gets wait until a thread here calls the provider.
    pub fn is_urgent(&self) -> bool {
        self.lock().as_ref().is_some_and(Provider::is_urgent)
    }

    /// Blocks until there may be something to do here, but no longer than `bound`.
    pub fn block(&self, bound: Duration) {
        let Some(own) = self.own_descriptor.get_or_init(|| self.wait_descriptor()) else {
            return rustix::thread::sched_yield();
        };
        if self.may_sleep() {
            poll_for(&mut [PollFd::new(own, PollFlags::IN)], bound);
        }
    }

    /// Whether a thread may sleep until the doorbell rings.
    pub fn may_sleep(&self) -> bool {
        self.try_call(Provider::may_sleep).unwrap_or(false)
    }

    /// Whether a later round of progress is to send something that a PE may wait for.
    pub fn owes(&self) -> bool {
        self.call_if_open(Provider::owes).unwrap_or(false)
    }

    /// Notes whether something is left to be sent. The endpoint is locked.
    fn note_owed(&self, net: &Net) {
        // SYNC POINT owed: a thread that has noted a debt before is overruled only by a look that sees it.
        if self.owed.load(Ordering::Relaxed) {
            self.owed.swap(false, Ordering::AcqRel);
        }
        if net.owes() {
            self.may_owe();
        }
    }

    /// Notes that this thread may have left something to be sent, or that another one may.
    fn may_owe(&self) {
        // SYNC POINT owed: releases the debt.
        self.owed.store(true, Ordering::Release);
    }

    /// Whether something may be left to be sent that a PE may wait for.
    pub fn owed(&self) -> bool {
        self.owed.load(Ordering::Relaxed)
    }

    /// Records that this thread waits and makes progress meanwhile, until the result is dropped.
    pub fn waiting(&self) -> Counted<'_> {
        let counted = Counted::new(&self.waiters);
        self.look();
        counted
    }

    /// Records that a thread of this PE makes progress.
    pub fn look(&self) {
        self.injector.has_looked().store(true, Ordering::Relaxed);
    }

    /// Forgets that threads of this PE have made progress: the service thread takes over.
    pub fn forget_looks(&self) {
        self.injector.has_looked().store(false, Ordering::Relaxed);
    }

    /// Whether a thread of this PE has made progress since this was last asked.
    pub fn take_looks(&self) -> bool {
        self.injector.has_looked().swap(false, Ordering::Relaxed)
    }

    /// Whether a thread of this PE waits.
    pub fn has_waiters(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) != 0
    }

    /// Makes progress, unless another thread does.
    pub fn progress(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
        let mut has_called = false;
        let outcome = self.handle_events(|net| {
            has_called = true;
            let outcome = net.progress(handle);
            self.note_owed(net);
            outcome
        });
        if !has_called {
            self.may_owe();
        }
        outcome
    }

    /// Takes the events of a context, right after the progress of its endpoint, unless another thread does.
    pub fn drain(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
        self.handle_events(|net| net.drain(handle))
    }

    fn handle_events(&self, call: impl FnOnce(&Net) -> FabricResult<usize>) -> FabricResult<usize> {
        let noted = |net: &Net| {
            let outcome = call(net);
            if !matches!(outcome, Ok(0)) {
                // The lock is held, so this needs no atomic update.
                let activity = self.activity.load(Ordering::Relaxed);
                self.activity.store(activity.wrapping_add(1), Ordering::Relaxed);
            }
            outcome
        };
        self.try_call(noted).unwrap_or(Ok(0))
    }

    /// A number that changes when progress has processed an event.
    pub fn activity(&self) -> u32 {
        self.activity.load(Ordering::Relaxed)
    }

    /// Whether the source of a put of `bytes` bytes is free as soon as the put is started.
    pub fn injects(&self, bytes: usize) -> bool {
        bytes <= self.limits.inject_bytes.min(self.limits.transfer_bytes)
    }

    /// The name of the provider; empty once the endpoint is shut.
    pub fn provider(&self) -> &'static str {
        self.call_if_open(Net::name).unwrap_or_default()
    }

    /// Whether puts of `bytes` bytes may carry a signal.
    pub fn signals(&self, bytes: usize) -> bool {
        self.signal_bytes.is_some_and(|limit| bytes <= limit)
    }

    /// The same for puts whose source is free as soon as they are started.
    pub fn signals_injected(&self, bytes: usize) -> bool {
        self.signals(bytes) && self.injects(bytes)
    }

    /// Makes the next quiet wait for the runtime's messages as well.
    pub fn flush(&self) {
        self.call_if_open(|net| {
            // Counted under the lock of `is_quiet`, and marked for threads that check only the mark.
            self.puts.fetch_add(net.flush(), Ordering::Relaxed);
            self.injector.outstanding().by_call();
        });
    }

    /// Lets peers access private memory of this PE for a time. `None` if the provider cannot, or the endpoint
    /// is shut.
    ///
    /// # Safety
    /// The memory is valid for reads and writes until it is concealed or the endpoint is shut.
    pub unsafe fn expose(&self, start: NonNull<u8>, bytes: usize) -> Option<Key> {
        // SAFETY: the caller's promises are the same.
        self.call_if_open(|net| unsafe { net.expose(start, bytes) }).flatten()
    }

    /// Ends the access to exposed memory.
    pub fn conceal(&self, key: Key) {
        self.call_if_open(|net| net.conceal(key));
    }

    /// Starts a put to any memory that a PE has registered or exposed, of at most `limits.transfer_bytes`;
    /// `false` if the provider's queue is full.
    ///
    /// # Safety
    /// The range lies in that memory. `source` is valid for reads until the counter has counted the put as
    /// sent.
    pub unsafe fn try_put(
        &self,
        (pe, target): (Pe, Remote),
        source: *const u8,
        bytes: usize,
        counter: &CompletionCounter,
    ) -> bool {
        self.started(&self.puts);
        let announces_sent = bytes > self.limits.inject_bytes;
        counter.begin(announces_sent);
        let put = Put { pe, target, source, bytes, completion: Completion::Tracked(counter.token()) };
        // SAFETY: the caller has promised the range and the source.
        let status = self.call_if_open(|net| unsafe { net.put(put) }).unwrap_or(Status::Again);
        if status == Status::Again {
            self.puts.fetch_sub(1, Ordering::Relaxed);
        }
        if status != Status::Pending {
            counter.done_at_once(announces_sent);
        }
        status != Status::Again
    }

    /// Starts a get of a few words, no more than one transfer takes; `false` if the provider's queue is full.
    ///
    /// # Safety
    /// The words lie in the heap, aligned. `into` is valid for writes until the counter has counted the get
    /// as done.
    pub unsafe fn try_get(
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

    /// Starts an atomic that the fabric executes; `Again` if the provider's queue is full.
    ///
    /// # Safety
    /// The word lies in the heap, aligned. `fetched` is null, or valid for writes until the atomic is
    /// complete.
    pub unsafe fn try_atomic(
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
        // SAFETY: the caller promises that the word exists and that the result may be written.
        let status = self.call_if_open(|net| unsafe { net.atomic(amo) });
        let status = status.unwrap_or(Status::Again);
        if status == Status::Again {
            count.fetch_sub(1, Ordering::Relaxed);
        }
        status
    }

    /// The maximum length of a message, in bytes.
    pub fn message_bytes(&self) -> usize {
        self.limits.message_bytes
    }

    /// Sends a message; `false` if the provider's queue is full.
    pub fn try_send(&self, pe: Pe, header: u64, payload: &[u8]) -> bool {
        let status = self.call_if_open(|net| {
            // The message may wait for others. This is noted under the lock: before it, a thread that has
            // seen no debt could clear the note.
            self.may_owe();
            net.send(pe, header, payload)
        });
        status.is_some_and(|status| status != Status::Again)
    }

    /// As [`try_send`](Self::try_send), of a payload that is a word and, behind it, other bytes.
    pub fn try_send_with_word(
        &self,
        pe: Pe,
        header: u64,
        payload: (u64, &[u8]),
        scratch: &mut Vec<u8>,
    ) -> bool {
        let status = self.call_if_open(|net| {
            // As in `try_send`.
            self.may_owe();
            net.send_with_word(pe, header, payload, scratch)
        });
        status.is_some_and(|status| status != Status::Again)
    }

    /// Counts one more operation that waits for another one, or for a reply.
    pub fn add_follower(&self) {
        self.started(&self.followers);
    }

    /// Counts an operation before it can complete.
    pub fn started(&self, count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
        self.injector.outstanding().by_call();
    }

    /// Whether operations complete even if no thread calls the provider.
    pub fn moves_by_itself(&self) -> bool {
        self.moves_by_itself
    }

    /// Whether a message of this endpoint is delivered after all puts to the same PE that were started here
    /// before it.
    pub fn keeps_messages_behind_puts(&self) -> bool {
        self.keeps_messages_behind_puts
    }

    /// The injector, which starts short puts and single gets without the lock.
    pub fn injector(&self) -> &Injector {
        &self.injector
    }

    /// Removes one of these operations: it is complete, or counted by the provider from now on.
    pub fn remove_follower(&self) {
        // SYNC POINT follower: releases the data that the reply has brought.
        self.followers.fetch_sub(1, Ordering::Release);
    }

    /// The same when another PE reports it; `None` if no such operation is outstanding.
    pub fn try_remove_follower(&self) -> Option<()> {
        let less = |followers: u64| followers.checked_sub(1);
        // SYNC POINT follower: releases the data that the reply has brought.
        self.followers.fetch_update(Ordering::Release, Ordering::Relaxed, less).ok().map(|_| ())
    }

    /// Whether all operations that were started here are complete. If so, the mark is cleared, unless
    /// operations were started meanwhile.
    pub fn is_quiet(&self) -> bool {
        if self.has_followers() {
            self.may_owe();
            return false;
        }
        // This comes before the endpoint's lock, so that no other thread waits for the lock meanwhile.
        let mut stopped = self.injector.stop();
        stopped.leave_open(!self.is_quieting());
        self.call(|net| {
            // The counts are read only while both locks are held: any operation issued by then was counted
            // before. The mark is read first: if it is unchanged when it is cleared, no operation was counted
            // in between.
            let mark = self.injector.outstanding().read();
            let [puts, gets] = [&self.puts, self.injector.other_gets()].map(|n| n.load(Ordering::Relaxed));
            let started = Completions { puts: puts + stopped.puts(), gets: gets + stopped.gets() };
            let is_quiet = !self.has_followers() && net.has_completed(started);
            self.note_owed(net);
            if is_quiet {
                self.injector.outstanding().clear(mark);
            }
            is_quiet
        })
    }

    /// Whether an operation was started here since the last quiet.
    pub fn has_outstanding(&self) -> bool {
        self.injector.outstanding().read() != 0
    }

    /// Whether no operation was started here since all were found complete, and the endpoint is open.
    pub fn is_settled(&self) -> bool {
        !self.is_shut() && !self.has_outstanding() && !self.has_followers()
    }

    fn has_followers(&self) -> bool {
        // SYNC POINT follower: acquires the data that the last reply has brought.
        self.followers.load(Ordering::Acquire) != 0
    }

    /// Counts one more thread that waits for quiet, until the result is dropped.
    pub fn quieting(&self) -> Counted<'_> {
        Counted::new(&self.quieting)
    }

    /// Whether a thread waits for quiet, so that no new operation should be started.
    pub fn is_quieting(&self) -> bool {
        self.quieting.load(Ordering::Relaxed) != 0
    }
}
