//! The contract of a provider.
//!
//! An operation is a value: a [`Put`], a [`Get`] or an [`Amo`], which says all of the operation. What a
//! provider can start beside all its other calls, without their lock, it hands out as its [`Inject`].

use crate::amo::AtomicKind;
use crate::operation::{Amo, Get, Put, Signal};
use crate::types::{Bell, Completions, Event, FabricResult, Key, Limits, Pe, Status};
use std::hint::unreachable_unchecked;
use std::pin::Pin;
use std::ptr::NonNull;
use std::time::Duration;

/// An endpoint of a fabric: one PE's door to all others.
///
/// Control plane: open the endpoint (each provider its own way), carry [`address`](Provider::address) to the
/// others, [`connect`](Provider::connect), [`register`](Provider::register) the memory that peers may reach.
/// Data plane: the calls that answer a [`Status`], any number outstanding, complete in any order. `progress`
/// moves what is pending; a provider may also move it in any other call, or in hardware.
pub trait Provider {
    /// The provider's name, as settings and reports write it.
    const NAME: &'static str;
    /// Whether what was started completes although nobody calls the provider.
    const MOVES_BY_ITSELF: bool = false;
    /// How an endpoint injects; [`Never`] if it does not.
    type Inject: Inject;

    /// The provider in use, for reports: its name, and what it runs over.
    fn description(&self) -> String {
        Self::NAME.to_owned()
    }

    /// The provider, and what it leaves to its users: all PEs of a job have to have these alike.
    fn terms(&self) -> String {
        Self::NAME.to_owned()
    }

    /// Whether memory that is registered, as a PE's heap is, has to be there all the time.
    fn pins(&self) -> bool {
        false
    }

    /// What this endpoint can do.
    fn limits(&self) -> Limits;

    /// The endpoint's address, for the peers; meaningful to the same provider only.
    ///
    /// # Errors
    /// If the provider does not tell.
    fn address(&self) -> FabricResult<Vec<u8>>;

    /// Makes all peers reachable. `lookup` answers a PE's [`address`](Provider::address); a provider asks
    /// only for those that it needs. Every PE of the fabric calls this, and it may wait for the others.
    ///
    /// # Errors
    /// If a peer cannot be reached or does not come in time.
    fn connect(&mut self, lookup: &mut dyn FnMut(Pe) -> FabricResult<Vec<u8>>) -> FabricResult<()>;

    /// Lets peers reach `bytes` bytes from `start` under `key`. Every PE registers a region of the same
    /// length under the same key. The memory outlives the endpoint.
    ///
    /// # Errors
    /// If the provider cannot expose this memory, or the key is taken.
    fn register(&mut self, key: Key, start: NonNull<u8>, bytes: usize) -> FabricResult<()>;

    /// What the peers must know to reach the registered memory; empty if its keys say it all.
    fn exposed(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes from `lookup` what each peer's [`exposed`](Provider::exposed) has answered, when all memory is
    /// registered everywhere; only needed if that is not empty.
    ///
    /// # Errors
    /// If a lookup fails, or what it brings makes no sense to this provider.
    fn reach(&mut self, lookup: &mut dyn FnMut(Pe) -> FabricResult<Vec<u8>>) -> FabricResult<()> {
        let _ = lookup;
        Ok(())
    }

    /// Another sending side of this endpoint, at the same address, with completions of its own that wait for
    /// nothing that was started elsewhere (libfabric: a transmit context). Messages arrive at the first
    /// endpoint only.
    ///
    /// # Errors
    /// If the provider has no more of them.
    fn context(&self) -> FabricResult<Self>
    where
        Self: Sized;

    /// Whether the fabric itself executes all atomics of this kind, atomic with those that any PE sends to
    /// the same word. Where it does not, atomics are messages that the target's processor serves.
    fn executes(&self, kind: AtomicKind) -> bool;

    /// Writes to a PE's memory. A put may arrive in pieces, also one of a word: only atomics arrive in one
    /// piece for sure. No order among puts, gets and atomics, not even to one place.
    ///
    /// # Safety
    /// The source is valid for reads for as long as [`Put::source`] says; the target lies inside the region
    /// registered.
    unsafe fn put(&self, put: Put) -> Status;

    /// Whether puts may [signal](Provider::put_signal), and short ones be
    /// [unreported](crate::Completion::Unreported).
    fn signals(&self) -> bool {
        false
    }

    /// A put that changes a word when its data are delivered: who sees that the word has changed sees the
    /// data. It is one operation, and counts as one put. The signals of an endpoint to one PE come in the
    /// order in which they were started.
    ///
    /// # Safety
    /// As [`put`](Provider::put) and, for the word, as [`atomic`](Provider::atomic). The provider
    /// [signals](Provider::signals).
    unsafe fn put_signal(&self, put: Put, signal: Signal) -> Status {
        unreachable!("{} has no {signal:?} for {put:?}", Self::NAME)
    }

    /// Starts an operation at each process that unreported puts were started to since the last flush. It is
    /// complete when these puts are, and counts as a put. Returns how many were started.
    fn flush(&self) -> u64 {
        0
    }

    /// Reads from a PE's memory, perhaps in pieces, as a put writes.
    ///
    /// # Safety
    /// The target is valid for writes until the get is complete; the source lies inside the region
    /// registered.
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

    /// Moves what is pending and hands what has happened to `handle`: messages that arrived, operations that
    /// completed. Never waits. Returns how many events there were, those included that it keeps to itself, as
    /// a put of another PE. `handle` must not call this endpoint.
    ///
    /// # Errors
    /// If the fabric has failed or a peer is lost; the error surfaces here, once.
    fn progress(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize>;

    /// Waits until something may have changed for this PE, its memory included, but no longer than `bound`;
    /// it may return at any time. For a caller that has just made progress in vain.
    fn rest(&self, bound: Duration);

    /// How many operations of this endpoint are complete.
    fn completions(&self) -> Completions;

    /// Whether all is complete, if so much was started. Asking may make progress.
    fn has_completed(&self, started: Completions) -> bool {
        self.completions() == started
    }

    /// This PE's time, if the fabric is a simulation in virtual time.
    fn virtual_time(&self) -> Option<Duration> {
        None
    }

    /// What rings when there may be something to do here, if the provider has such a thing. It outlives the
    /// endpoint, in silence.
    fn bell(&self) -> Option<Bell> {
        None
    }

    /// Whether a message of this endpoint arrives behind the puts that were started here before it to the
    /// same PE: they are then in that PE's memory.
    fn keeps_messages_behind_puts(&self) -> bool {
        false
    }

    /// Whether there is nothing to do here until the bell rings; to be asked before each sleep.
    fn may_sleep(&self) -> bool {
        false
    }

    /// How this endpoint injects to the memory under `key`, if it does. To be asked once, when all memory is
    /// registered and known; good as long as the endpoint.
    fn inject(&self, key: Key) -> Option<Self::Inject> {
        let _ = key;
        None
    }

    /// Lets virtual time pass on this PE, as if it computed for so long.
    fn compute(&self, time: Duration) {
        let _ = time;
    }
}

/// An endpoint's own form of what it starts beside all its other calls: puts whose source is free when the
/// call returns, and short gets. One thread at a time uses it, the one that has the lock of the
/// [`Injector`](crate::inject::Injector) around it; what it starts counts as any other operation of the
/// endpoint when it is complete, and no event tells of it.
pub trait Inject: Send {
    /// Bytes of the longest put.
    fn put_bytes(&self) -> usize;

    /// Bytes of the longest get; 0 if it starts none.
    fn get_bytes(&self) -> usize {
        0
    }

    /// To be called once it lies where it is to stay, before anything is started.
    fn settle(self: Pin<&mut Self>);

    /// Whether each call of [`put_word`](Inject::put_word) has its own copy of the code; else it calls
    /// [`put_outlined`](Inject::put_outlined).
    #[inline(always)]
    fn is_inlined(&self) -> bool {
        false
    }

    /// Starts a put of a value of 1, 2, 4 or 8 bytes. `false` if the provider does not take it now, or
    /// refuses it: then nothing has begun, and [`refused`](Inject::refused) knows what it was.
    ///
    /// # Safety
    /// It is settled, and the endpoint is open. There is such a PE, and the place lies inside the region.
    #[inline(always)]
    unsafe fn put_word<T: Copy>(&mut self, pe: Pe, offset_bytes: usize, value: T) -> bool {
        // SAFETY: the caller's promises are the same.
        unsafe { self.put_outlined(pe, size_of::<T>(), word_of(value), offset_bytes) }
    }

    /// The same of a value of `bytes` bytes, which are the first ones of `word`. The arguments stand as in
    /// the runtime's put of a value, which need not move them.
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

    /// As [`put`](Inject::put), for a message whose receiver waits for it: the put may count as complete when
    /// it is on its way.
    ///
    /// # Safety
    /// As [`put`](Inject::put).
    unsafe fn put_message(&mut self, pe: Pe, offset_bytes: usize, source: *const u8, bytes: usize) -> bool {
        // SAFETY: the caller's promises are the same.
        unsafe { self.put(pe, offset_bytes, source, bytes) }
    }

    /// Starts a get of at least one byte and at most [`get_bytes`](Inject::get_bytes), as above.
    ///
    /// # Safety
    /// As above; the target is valid for writes, and nothing else is started here, until the get is complete.
    unsafe fn get(&mut self, pe: Pe, offset_bytes: usize, into: *mut u8, bytes: usize) -> bool {
        let _ = (pe, offset_bytes, into, bytes);
        // SAFETY: a get has a byte at least, which is more than those without gets of their own allow.
        unsafe { unreachable_unchecked() }
    }

    /// PE and offset of the last get.
    fn last_get(&self) -> (Pe, usize) {
        (0, 0)
    }

    /// How many gets of the endpoint are complete; to ask makes progress. As long as operations that are no
    /// gets are under way as well, it may be too many.
    ///
    /// # Safety
    /// The endpoint is open, and a get was started.
    unsafe fn gets(&self) -> u64 {
        // SAFETY: those without gets of their own start none.
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

/// How providers inject that do not: there is no such value.
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
