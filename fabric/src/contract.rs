//! The contract of a provider.
//!
//! An operation is a value: a [`Put`], a [`Get`] or an [`Amo`], which describes the whole operation.
//! Operations that a provider can start concurrently with its other calls, without their lock, are those of
//! its [`Inject`].

use crate::amo::{Atomic, AtomicKind};
use crate::operation::{Amo, Get, Put, Signal};
use crate::types::{Completions, Event, FabricResult, Key, Limits, Pe, Status};
use std::hint::unreachable_unchecked;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// The way to look up the [`address`](Provider::address) of a PE, by any thread.
pub type Lookup = Arc<dyn Fn(Pe) -> FabricResult<Vec<u8>> + Send + Sync>;

/// A word and, behind it, `rest`, in one piece.
pub(crate) fn joined<'a>(word: u64, rest: &[u8], scratch: &'a mut Vec<u8>) -> &'a [u8] {
    scratch.clear();
    scratch.extend_from_slice(&word.to_ne_bytes());
    scratch.extend_from_slice(rest);
    scratch
}

/// An endpoint of a fabric: one PE's access to all other PEs.
///
/// Control plane: open the endpoint (each provider in its own way), carry its [`address`](Provider::address)
/// to the others, [`connect`](Provider::connect), [`register`](Provider::register) the memory that peers may
/// access. Data plane: the calls that return a [`Status`]. Any number of operations may be outstanding, and
/// they complete in any order. `progress` makes progress on pending operations; a provider may also do so in
/// any other call, or in hardware.
pub trait Provider {
    /// The provider's name in settings and reports.
    const NAME: &'static str;
    /// Whether operations complete although no thread calls the provider.
    const MOVES_BY_ITSELF: bool = false;
    /// The injecting form of an endpoint; [`Never`] if it does not inject.
    type Inject: Inject;

    /// The provider in use, for reports: its name, and the network or device that it uses.
    fn description(&self) -> String {
        Self::NAME.to_owned()
    }

    /// The provider, and the duties that it leaves to its users. They must be the same for all PEs of a job.
    fn terms(&self) -> String {
        Self::NAME.to_owned()
    }

    /// Whether registered memory, such as a PE's heap, must stay resident.
    fn pins(&self) -> bool {
        false
    }

    /// The limits of this endpoint.
    fn limits(&self) -> Limits;

    /// The endpoint's address, for the peers. Only the same provider understands it.
    ///
    /// # Errors
    /// If the provider does not report it.
    fn address(&self) -> FabricResult<Vec<u8>>;

    /// Makes all peers reachable. `lookup` returns a PE's [`address`](Provider::address). A provider looks up
    /// only the addresses that it needs. Every PE of the fabric calls this, and it may wait for the others.
    ///
    /// # Errors
    /// If a peer cannot be reached or does not connect in time.
    fn connect(&mut self, lookup: &mut dyn FnMut(Pe) -> FabricResult<Vec<u8>>) -> FabricResult<()>;

    /// As [`connect`](Provider::connect), but the provider may look up an address at the first contact with
    /// its PE, from any thread that uses the endpoint.
    ///
    /// # Errors
    /// As [`connect`](Provider::connect). An address that is not found later is an error of
    /// [`progress`](Provider::progress).
    fn connect_later(&mut self, lookup: &Lookup) -> FabricResult<()> {
        self.connect(&mut |pe| lookup(pe))
    }

    /// Lets peers access `bytes` bytes from `start` under `key`. Every PE registers a region of the same
    /// length under the same key. The memory outlives the endpoint.
    ///
    /// # Errors
    /// If the provider cannot expose this memory, or the key is taken.
    fn register(&mut self, key: Key, start: NonNull<u8>, bytes: usize) -> FabricResult<()>;

    /// Lets peers access `bytes` bytes of this PE's memory from `start`, until it is
    /// [concealed](Provider::conceal). The result is a key that only this PE has; its offsets count from
    /// `start`. `None` if the provider cannot do that while it is in use.
    ///
    /// # Safety
    /// The memory is valid for reads and writes until it is concealed, or the endpoint is dropped.
    unsafe fn expose(&self, start: NonNull<u8>, bytes: usize) -> Option<Key> {
        let _ = (start, bytes);
        None
    }

    /// Ends the access to [exposed](Provider::expose) memory. No operation on it is outstanding.
    fn conceal(&self, key: Key) {
        let _ = key;
    }

    /// The data that peers need to access the registered memory; empty if its keys are enough.
    fn exposed(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes from `lookup` the result of each peer's [`exposed`](Provider::exposed), when all PEs have
    /// registered all memory. It is only needed if the result is not empty.
    ///
    /// # Errors
    /// If a lookup fails, or this provider does not understand its result.
    fn reach(&mut self, lookup: &mut dyn FnMut(Pe) -> FabricResult<Vec<u8>>) -> FabricResult<()> {
        let _ = lookup;
        Ok(())
    }

    /// Another sending side of this endpoint, at the same address, with completions of its own, which do not
    /// wait for operations of other endpoints (libfabric: a transmit context). Messages arrive at the first
    /// endpoint only.
    ///
    /// # Errors
    /// If the provider has no more contexts.
    fn context(&self) -> FabricResult<Self>
    where
        Self: Sized;

    /// The number of processes of which the endpoint's process has a state, if it makes that at the first
    /// contact. For reports and tests.
    fn contacts(&self) -> Option<usize> {
        None
    }

    /// Whether the fabric itself executes all atomics of this kind, atomic with those that any PE sends to
    /// the same word. If it does not, atomics are messages, and the target's processor executes them.
    fn executes(&self, kind: AtomicKind) -> bool;

    /// Writes to a PE's memory. A put, even of a word, may arrive in pieces: only atomics are guaranteed to
    /// arrive in one piece. There is no order among puts, gets and atomics, not even to the same place.
    ///
    /// # Safety
    /// The source is valid for reads as long as [`Put::source`] says; the target lies inside the registered
    /// region.
    unsafe fn put(&self, put: Put) -> Status;

    /// The length of the longest put that may [signal](Provider::put_signal), in bytes; `None` if no put of
    /// this endpoint may. Puts that may signal and are no longer than [`Limits::inject_bytes`] may be
    /// [unreported](crate::Completion::Unreported) or [gathered](crate::Completion::Gathered). A context need
    /// not do what its endpoint does.
    fn signal_bytes(&self) -> Option<usize> {
        None
    }

    /// A put that changes a word when its data are delivered: a PE that sees the changed word sees the data.
    /// It is one operation, and counts as one put. The signals of an endpoint to one PE arrive in the order
    /// in which they were started.
    ///
    /// # Safety
    /// As [`put`](Provider::put) and, for the word, as [`atomic`](Provider::atomic). The put is no longer
    /// than [`signal_bytes`](Provider::signal_bytes).
    unsafe fn put_signal(&self, put: Put, signal: Signal) -> Status {
        unreachable!("{} has no {signal:?} for {put:?}", Self::NAME)
    }

    /// Starts an operation to each process to which unreported puts were started since the last flush. It is
    /// complete when these puts are complete, and counts as a put. Returns the number of operations.
    fn flush(&self) -> u64 {
        0
    }

    /// Reads from a PE's memory, perhaps in pieces, as a put writes.
    ///
    /// # Safety
    /// The target is valid for writes until the get is complete; the source lies inside the registered
    /// region.
    unsafe fn get(&self, get: Get) -> Status;

    /// Executes an atomic on a word in a PE's memory; only of kinds that the fabric
    /// [`executes`](Provider::executes).
    ///
    /// # Safety
    /// `fetched` is null, or aligned for its type (a complex number for one of its parts) and valid for
    /// writes until the operation is complete; the word lies inside the region registered, at a multiple of
    /// its size.
    unsafe fn atomic(&self, amo: Amo) -> Status;

    /// Sends a message: 64 bits and a payload of at most [`Limits::message_bytes`]. The payload is reusable
    /// at return. Messages between two PEs arrive in the order sent, once; messages and puts are not ordered.
    fn send(&self, pe: Pe, header: u64, payload: &[u8]) -> Status;

    /// Sends a message whose payload is a word and, behind it, `rest`. A provider that needs them in one
    /// piece joins them in `scratch`.
    fn send_with_word(
        &self,
        pe: Pe,
        header: u64,
        (word, rest): (u64, &[u8]),
        scratch: &mut Vec<u8>,
    ) -> Status {
        self.send(pe, header, joined(word, rest, scratch))
    }

    /// Makes progress on pending operations and passes events to `handle`: messages that have arrived, and
    /// operations that have completed. It never waits. Returns the number of events, including those that it
    /// does not pass on, such as a put of another PE. `handle` must not call this endpoint.
    ///
    /// # Errors
    /// If the fabric has failed or a peer is lost; the error surfaces here, once.
    fn progress(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize>;

    /// Passes the events of a [context](Provider::context) to `handle`, right after the progress of its
    /// endpoint. Where that serves the contexts as well, this does not look at the network again.
    ///
    /// # Errors
    /// As [`progress`](Provider::progress).
    fn drain(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
        self.progress(handle)
    }

    /// Waits until something may have changed for this PE, its memory included, but no longer than `bound`;
    /// it may return at any time. It is for a caller whose last call of `progress` returned 0.
    fn rest(&self, bound: Duration);

    /// The numbers of complete operations of this endpoint.
    fn completions(&self) -> Completions;

    /// Whether all operations are complete, if `started` were started. The call may make progress.
    fn has_completed(&self, started: Completions) -> bool {
        self.completions() == started
    }

    /// This PE's time, if the fabric is a simulation in virtual time.
    fn virtual_time(&self) -> Option<Duration> {
        None
    }

    /// The wait descriptor of the endpoint, if the provider has one: it becomes readable when there may be
    /// something to do here. It may outlive the endpoint, and then reports nothing.
    fn wait_descriptor(&self) -> Option<OwnedFd> {
        None
    }

    /// Whether other PEs' puts and gets wait until a thread of this process calls the provider.
    fn is_urgent(&self) -> bool {
        false
    }

    /// Whether a message of this endpoint arrives behind the puts that were started here before it to the
    /// same PE: they are then in that PE's memory.
    fn keeps_messages_behind_puts(&self) -> bool {
        false
    }

    /// Whether there is nothing to do here until the wait descriptor becomes readable. It is called before
    /// each sleep.
    fn may_sleep(&self) -> bool {
        false
    }

    /// Whether a later call of [`progress`](Provider::progress) or [`may_sleep`](Provider::may_sleep) is to
    /// send something that a PE may wait for. The wait descriptor does not tell of it.
    fn owes(&self) -> bool {
        false
    }

    /// The injecting form of this endpoint for the memory under `key`, if it injects. It is called once, when
    /// all memory is registered and all keys are exchanged. The result is valid as long as the endpoint.
    fn inject(&self, key: Key) -> Option<Self::Inject> {
        let _ = key;
        None
    }

    /// Lets virtual time pass on this PE, as if it computed for `time`.
    fn compute(&self, time: Duration) {
        let _ = time;
    }
}

/// The form of an endpoint that starts operations concurrently with its other calls: puts whose source is
/// free when the call returns, and short gets. One thread at a time uses it, the thread that has the lock of
/// the [`Injector`](crate::inject::Injector) around it. When such an operation is complete it is counted like
/// any other operation of the endpoint, and no event reports it.
pub trait Inject: Send {
    /// Bytes of the longest put.
    fn put_bytes(&self) -> usize;

    /// Bytes of the longest get; 0 if it starts none.
    fn get_bytes(&self) -> usize {
        0
    }

    /// It is called once, at its final address, before an operation is started.
    fn settle(self: Pin<&mut Self>);

    /// Whether [`put_word`](Inject::put_word) is inlined into its callers; else it calls
    /// [`put_outlined`](Inject::put_outlined).
    #[inline(always)]
    fn is_inlined(&self) -> bool {
        false
    }

    /// Starts a put of a value of 1, 2, 4 or 8 bytes. `false` if the provider does not take it now, or
    /// refuses it: then nothing has begun, and [`refused`](Inject::refused) returns its arguments.
    ///
    /// # Safety
    /// This value is settled, and the endpoint is open. The PE exists, and the place lies inside the region.
    #[inline(always)]
    unsafe fn put_word<T: Copy>(&mut self, pe: Pe, offset_bytes: usize, value: T) -> bool {
        // SAFETY: the caller's promises are the same.
        unsafe { self.put_outlined(pe, size_of::<T>(), word_of(value), offset_bytes) }
    }

    /// The same for a value of `bytes` bytes, the first bytes of `word`. The arguments have the order of
    /// those of the runtime's put of a value, which so need not move them.
    ///
    /// # Safety
    /// As [`put_word`](Inject::put_word).
    unsafe fn put_outlined(&mut self, pe: Pe, bytes: usize, word: u64, offset_bytes: usize) -> bool;

    /// PE, offset and value of the last put of a value of `bytes` bytes, which was not taken.
    fn refused(&self, bytes: usize) -> (Pe, usize, [u8; 8]);

    /// Starts a put of up to [`put_bytes`](Inject::put_bytes) bytes, as above.
    ///
    /// # Safety
    /// As above; the source is valid for reads.
    unsafe fn put(&mut self, pe: Pe, offset_bytes: usize, source: *const u8, bytes: usize) -> bool;

    /// As [`put`](Inject::put), for a message whose receiver waits for it: the put may count as complete
    /// before it is delivered.
    ///
    /// # Safety
    /// As [`put`](Inject::put).
    unsafe fn put_message(&mut self, pe: Pe, offset_bytes: usize, source: *const u8, bytes: usize) -> bool {
        // SAFETY: the caller's promises are the same.
        unsafe { self.put(pe, offset_bytes, source, bytes) }
    }

    /// Bytes of the longest put that signals; 0 if it starts none.
    fn signal_bytes(&self) -> usize {
        0
    }

    /// Starts a put of up to [`signal_bytes`](Inject::signal_bytes) bytes, as above, and an atomic on the
    /// word at another offset of the region after it.
    ///
    /// # Safety
    /// As [`put`](Inject::put). The word lies inside the region, aligned.
    unsafe fn put_signal(
        &mut self,
        pe: Pe,
        data: (usize, *const u8, usize),
        signal: (usize, Atomic),
    ) -> bool {
        let _ = (pe, data, signal);
        false
    }

    /// Starts a get of at least one byte and at most [`get_bytes`](Inject::get_bytes), as above.
    ///
    /// # Safety
    /// As above; the target is valid for writes, and nothing else is started here, until the get is complete.
    unsafe fn get(&mut self, pe: Pe, offset_bytes: usize, into: *mut u8, bytes: usize) -> bool {
        let _ = (pe, offset_bytes, into, bytes);
        // SAFETY: a get has at least one byte, which exceeds `get_bytes` of an implementation without gets.
        unsafe { unreachable_unchecked() }
    }

    /// PE and offset of the last get.
    fn last_get(&self) -> (Pe, usize) {
        (0, 0)
    }

    /// The number of complete gets of the endpoint. The call makes progress. While operations that are not
    /// gets are under way as well, the number may be too high.
    ///
    /// # Safety
    /// The endpoint is open, and a get was started.
    unsafe fn gets(&self) -> u64 {
        // SAFETY: an implementation without gets starts none.
        unsafe { unreachable_unchecked() }
    }
}

/// A value of at most 8 bytes as the first bytes of a word.
#[inline(always)]
pub(crate) fn word_of<T: Copy>(value: T) -> u64 {
    debug_assert!(matches!(size_of::<T>(), 1 | 2 | 4 | 8), "a put of a word");
    let mut word = 0_u64;
    // SAFETY: the word has room for the value.
    unsafe { (&raw mut word).cast::<T>().write_unaligned(value) };
    word
}

/// The injecting form of a provider that does not inject. It has no value.
pub enum Never {}

impl Inject for Never {
    fn put_bytes(&self) -> usize {
        match *self {}
    }

    fn settle(self: Pin<&mut Self>) {
        match *self.get_mut() {}
    }

    unsafe fn put_outlined(&mut self, _: Pe, _: usize, _: u64, _: usize) -> bool {
        match *self {}
    }

    fn refused(&self, _: usize) -> (Pe, usize, [u8; 8]) {
        match *self {}
    }

    unsafe fn put(&mut self, _: Pe, _: usize, _: *const u8, _: usize) -> bool {
        match *self {}
    }
}
