//! Injected operations: puts whose source is free when the call returns and whose completion only a quiet
//! detects, and short gets while no other operation is under way. They are started concurrently with the
//! endpoint's other calls, and wait for no lock. All other cases take the endpoint's other calls.
//!
//! Invariant: an injected operation is counted, and the outstanding flag is set, under the lock and before
//! the operation can be complete. So the thread that has the lock knows all injected operations. Messages of
//! the runtime that a receiver waits for anyway are counted but do not set the flag: the flag shows whether a
//! quiet has operations of the program to wait for. A get is injected only if the flag is clear.

use crate::amo::Atomic;
use crate::contract::Inject;
use crate::outstanding::OutstandingFlag;
use crate::shm::segment::Failure;
use crate::sync::{AtomicBool, AtomicU64, Ordering};
use crate::trylock::{Taken, TryLock};
use crate::types::Pe;
use std::pin::Pin;
use std::ptr::null;

/// The number of checks, each about a round of the provider's progress, after which a get is left to the next
/// quiet.
const LOOKS: u32 = 64;
/// Longer gets are not injected.
const SHORT_BYTES: usize = 4096;
/// The number of checks after which other PEs must be served.
const LOOKS_PER_SERVICE: u32 = 128;

/// The injector of an endpoint. It stays closed if the provider does not inject.
pub struct Injector<I> {
    /// The failure record of the job, which is read only while the injector is open.
    failure: *const Failure,
    outstanding: OutstandingFlag,
    /// Bytes of the longest put that is injected; 0 if none is.
    put_bytes: usize,
    /// Bytes of the longest put with a signal that is injected; 0 if none is.
    signal_bytes: usize,
    /// Bytes of the longest get that is injected; 0 if none is.
    get_bytes: usize,
    /// Gets, and atomics that fetch, that were started by the endpoint's other calls.
    other_gets: AtomicU64,
    /// Whether a thread of this PE has made progress since this was last cleared.
    has_looked: AtomicBool,
    inside: TryLock<Inside<I>>,
}

// SAFETY: the failure is a record of atomics, read while the node's memory is mapped; the rest is `Sync`.
unsafe impl<I: Inject> Sync for Injector<I> {}
// SAFETY: the failure is a record of atomics, read while the node's memory is mapped; the rest is `Send`.
unsafe impl<I: Inject> Send for Injector<I> {}

/// The provider's part, and the numbers of injected operations.
struct Inside<I> {
    puts: u64,
    gets: u64,
    /// The count of gets at which the last one is complete.
    awaited_gets: u64,
    own: Option<I>,
    /// Whether the injector is closed for ever. Its contents are not dropped, because a get that was given up
    /// may still be under way.
    is_closed: bool,
    /// The `origin` of the last put of a word or get, in case it is not complete at return.
    origin: *const (),
    /// Checks that are left until other PEs must be served.
    looks_left: u32,
    /// The number of puts and the outstanding flag that the next get that is not injected will find, if no
    /// other operation is started until then.
    at_next_get: (u64, u32),
}

impl<I: Inject> Inside<I> {
    /// The rest of the last get.
    fn unfinished(&self, left: Left) -> Unfinished {
        let (pe, offset_bytes) = self.own.as_ref().map_or((0, 0), I::last_get);
        Unfinished { origin: self.origin, pe, offset_bytes, left }
    }
}

/// The outcome of a put of a word.
#[must_use]
pub enum Injected {
    /// It is started, and the source is free.
    Started,
    /// It is not started, and takes the endpoint's other calls.
    NotStarted,
    /// The same. No operation can be injected before [`Injector::refused`] has returned its arguments.
    Refused(Kept),
}

/// The outcome of a get that was noted.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// It is complete.
    Here,
    /// It has not begun, and takes the endpoint's other calls.
    NotStarted,
    /// The same, because operations were started since the last quiet, but only gets since the last get.
    /// Later gets are injected if the caller completes all operations now.
    NotMarkedAnew,
}

/// A get that is not complete yet, or after which other steps remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The `origin` of [`Injector::get`].
    pub origin: *const (),
    /// Its target.
    pub pe: Pe,
    /// The place there, in bytes from the start of the region.
    pub offset_bytes: usize,
    /// The steps that remain.
    pub left: Left,
}

/// The steps that remain for a get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// To serve other PEs, which may be waiting: the data have arrived.
    Service,
    /// To wait: the data have arrived when all operations of the endpoint are complete.
    Quiet,
    /// All steps: the provider has not accepted it.
    All,
}

/// Proof that the lock is still held.
pub struct Kept(());

/// A put of a word that the provider did not accept.
pub struct Refused {
    /// The `origin` of [`Injector::put_word`].
    pub origin: *const (),
    /// Its target.
    pub pe: Pe,
    /// The place there, in bytes from the start of the region.
    pub offset_bytes: usize,
    /// The value, from the first byte on.
    pub value: [u8; 8],
}

impl<I: Inject> Injector<I> {
    /// An injector that injects nothing. It only has the outstanding flag.
    pub fn none() -> Injector<I> {
        Injector::with(None, null())
    }

    /// An injector that uses the provider's own form. It must be opened at its final address, and injects
    /// while the job has not failed.
    ///
    /// # Safety
    /// The record of the failure is valid whenever an operation is started.
    pub unsafe fn new(own: I, failure: &Failure) -> Injector<I> {
        Injector::with(Some(own), failure)
    }

    fn with(own: Option<I>, failure: *const Failure) -> Injector<I> {
        let bytes = |of: fn(&I) -> usize| own.as_ref().map_or(0, of);
        Injector {
            failure,
            outstanding: OutstandingFlag::default(),
            put_bytes: bytes(I::put_bytes),
            signal_bytes: bytes(I::signal_bytes),
            get_bytes: bytes(I::get_bytes).min(SHORT_BYTES),
            other_gets: AtomicU64::new(0),
            has_looked: AtomicBool::new(false),
            inside: TryLock::closed(Inside {
                puts: 0,
                gets: 0,
                awaited_gets: 0,
                own,
                is_closed: false,
                origin: null(),
                looks_left: LOOKS_PER_SERVICE,
                at_next_get: (0, 0),
            }),
        }
    }

    /// Opens the injector, if the provider has an injecting form.
    ///
    /// # Safety
    /// The injector is not moved any more, and the endpoint is open until [`close`](Injector::close).
    pub unsafe fn open(&self) {
        let mut inside = self.inside.wait();
        if let Some(own) = &mut inside.own {
            // SAFETY: the caller has promised that it does not move.
            unsafe { Pin::new_unchecked(own) }.settle();
            inside.leave_open(true);
        }
    }

    #[inline(always)]
    fn has_failed(&self) -> bool {
        // SAFETY: an open injector has a record, which is valid while operations are started.
        unsafe { (*self.failure).is_recorded() }
    }

    /// The lock, if it is free, the injector is open, and the job has not failed.
    #[inline(always)]
    fn enter(&self) -> Option<Taken<'_, Inside<I>>> {
        self.inside.enter().filter(|_| !self.has_failed())
    }

    /// Puts a value, if it has 1, 2, 4 or 8 bytes and the injector can start it now. If the provider refuses
    /// it, [`Injector::refused`] returns `origin`.
    ///
    /// # Safety
    /// The PE exists, it is reached over the network, and the value lies inside its region.
    #[inline(always)]
    pub unsafe fn put_word<T: Copy>(
        &self,
        pe: Pe,
        offset_bytes: usize,
        value: T,
        origin: *const (),
    ) -> Injected {
        if !matches!(size_of::<T>(), 1 | 2 | 4 | 8) {
            return Injected::NotStarted;
        }
        let Some(mut inside) = self.enter() else { return Injected::NotStarted };
        self.outstanding.by_injection();
        inside.puts += 1;
        inside.origin = origin;
        // SAFETY: an open injector is settled, and its endpoint is open until `close`; the caller has
        // promised the rest.
        if unsafe { inside.own.as_mut().unwrap_unchecked().put_word(pe, offset_bytes, value) } {
            return Injected::Started;
        }
        // The lock stays taken until `refused` has read the arguments.
        std::mem::forget(inside);
        Injected::Refused(Kept(()))
    }

    /// The put of `bytes` bytes for which [`Injected::Refused`] was returned.
    #[cold]
    pub fn refused(&self, _kept: Kept, bytes: usize) -> Refused {
        // SAFETY: the caller's `Kept` shows that it has the lock; it calls this once.
        let mut inside = unsafe { self.inside.kept() };
        inside.puts -= 1;
        let own = inside.own.as_ref().expect("a put was started, as one was refused");
        let (origin, (pe, offset_bytes, value)) = (inside.origin, own.refused(bytes));
        Refused { origin, pe, offset_bytes, value }
    }

    /// Puts a few bytes, if the injector can start the put now. Returns `false` if they must take the
    /// endpoint's other calls.
    ///
    /// # Safety
    /// As [`put_word`](Injector::put_word); the source is valid for reads.
    pub unsafe fn put(&self, pe: Pe, offset_bytes: usize, source: *const u8, bytes: usize) -> bool {
        // SAFETY: the caller's promises are the same.
        unsafe {
            self.put_beside(bytes <= self.put_bytes, |own| {
                self.outstanding.by_injection();
                own.put(pe, offset_bytes, source, bytes)
            })
        }
    }

    /// Puts a few bytes, at least one, and executes an atomic on a word after that, as [`put`](Injector::put)
    /// does.
    ///
    /// # Safety
    /// As [`put`](Injector::put); the word lies inside the region, aligned.
    pub unsafe fn put_signal(
        &self,
        pe: Pe,
        data @ (_, _, bytes): (usize, *const u8, usize),
        signal: (usize, Atomic),
    ) -> bool {
        // SAFETY: the caller's promises are the same.
        unsafe {
            self.put_beside(bytes <= self.signal_bytes, |own| {
                self.outstanding.by_injection();
                own.put_signal(pe, data, signal)
            })
        }
    }

    /// As [`put`](Injector::put), for a message of the runtime that its receiver waits for. It does not set
    /// the outstanding flag: a quiet that finds the flag clear does not wait for it, and no quiet learns when
    /// it is delivered.
    ///
    /// # Safety
    /// As [`put`](Injector::put).
    pub unsafe fn put_message(&self, pe: Pe, offset_bytes: usize, source: *const u8, bytes: usize) -> bool {
        // SAFETY: the caller's promises are the same.
        unsafe {
            self.put_beside(bytes <= self.put_bytes, |own| own.put_message(pe, offset_bytes, source, bytes))
        }
    }

    /// A put that `start` begins under the lock, if it is short and the injector can start it now.
    ///
    /// # Safety
    /// The caller's promises hold for the put that `start` begins.
    #[inline(always)]
    unsafe fn put_beside(&self, is_short: bool, start: impl FnOnce(&mut I) -> bool) -> bool {
        if !is_short {
            return false;
        }
        let Some(mut inside) = self.enter() else { return false };
        inside.puts += 1;
        // SAFETY: an open injector is settled, and its endpoint is open until `close`.
        let is_taken = start(unsafe { inside.own.as_mut().unwrap_unchecked() });
        inside.puts -= u64::from(!is_taken);
        is_taken
    }

    /// Gets a few bytes, at least one, if the injector can start the get now and no operation was started
    /// since the last quiet. Then the provider's counter of gets shows when they have arrived. `finish` is
    /// called, with `origin`, if steps remain. Returns `false` if nothing has begun.
    ///
    /// # Safety
    /// The PE exists, it is reached over the network, and the bytes lie inside its region. `into` is valid
    /// for writes until they have arrived. This thread may wait.
    #[inline(always)]
    pub unsafe fn get(
        &self,
        from: (Pe, usize),
        (into, bytes): (*mut u8, usize),
        origin: *const (),
        finish: impl FnOnce(Unfinished),
    ) -> bool {
        if bytes.wrapping_sub(1) >= self.get_bytes {
            return false;
        }
        let Some(inside) = self.enter() else { return false };
        if !self.outstanding.begin_alone() {
            return false;
        }
        // SAFETY: the caller's promises are the same, and no other operation is under way.
        unsafe { self.get_alone(inside, from, (into, bytes), origin, finish) };
        true
    }

    /// The same, but the next such get learns whether other operations were under way at this one.
    ///
    /// # Safety
    /// As [`get`](Injector::get).
    pub unsafe fn get_noted(
        &self,
        from: (Pe, usize),
        (into, bytes): (*mut u8, usize),
        finish: impl FnOnce(Unfinished),
    ) -> Noted {
        if bytes.wrapping_sub(1) >= self.get_bytes {
            return Noted::NotStarted;
        }
        let Some(mut inside) = self.enter() else { return Noted::NotStarted };
        if !self.outstanding.begin_alone() {
            let (mark, expected) = (self.outstanding.read(), inside.at_next_get);
            inside.at_next_get = (inside.puts, OutstandingFlag::after_one_call(mark));
            let is_expected = expected == (inside.puts, mark);
            return if is_expected { Noted::NotMarkedAnew } else { Noted::NotStarted };
        }
        // SAFETY: the caller's promises are the same, and no other operation is under way.
        unsafe { self.get_alone(inside, from, (into, bytes), null(), finish) };
        Noted::Here
    }

    /// A get when no other operation is under way. Only `self` is kept over the provider's calls: the state
    /// of the remaining steps is protected by the lock.
    ///
    /// # Safety
    /// As [`get`](Injector::get); this thread has set the flag, which was clear.
    #[inline(always)]
    unsafe fn get_alone(
        &self,
        mut inside: Taken<'_, Inside<I>>,
        (pe, offset_bytes): (Pe, usize),
        (into, bytes): (*mut u8, usize),
        origin: *const (),
        finish: impl FnOnce(Unfinished),
    ) {
        inside.origin = origin;
        // Operations that were counted before the flag was clear are complete. A thread that counts one now
        // sets the flag next, before it starts the operation. The check below then finds that, or this get is
        // left to a quiet.
        inside.awaited_gets = self.other_gets.load(Ordering::Relaxed) + inside.gets + 1;
        // SAFETY: an open injector is settled, and its endpoint is open until `close`; the caller has
        // promised the rest. The lock is released only when the get is complete, or while the flag is set,
        // which keeps out other gets.
        if !unsafe { inside.own.as_mut().unwrap_unchecked().get(pe, offset_bytes, into, bytes) } {
            return self.get_refused(inside, finish);
        }
        inside.gets += 1;
        self.has_looked.store(true, Ordering::Relaxed);
        // SAFETY: the endpoint is open, as above.
        let gets = unsafe { inside.own.as_ref().unwrap_unchecked().gets() };
        if gets < inside.awaited_gets {
            inside.looks_left -= 1;
            return self.look_on(inside, false, finish);
        }
        inside.looks_left -= 1;
        if inside.looks_left == 0 || !self.outstanding.end_alone() {
            self.look_on(inside, true, finish);
        }
    }

    /// A get that the provider has not accepted.
    #[cold]
    #[inline(never)]
    fn get_refused(&self, inside: Taken<'_, Inside<I>>, finish: impl FnOnce(Unfinished)) {
        self.outstanding.end_alone();
        let unfinished = inside.unfinished(Left::All);
        drop(inside);
        finish(unfinished);
    }

    /// Continues to check a get that was not complete at once. It counts the checks, and detects that other
    /// operations were started meanwhile.
    #[cold]
    #[inline(never)]
    fn look_on(&self, mut inside: Taken<'_, Inside<I>>, is_here: bool, finish: impl FnOnce(Unfinished)) {
        let own = inside.own.as_ref().expect("a get was started");
        // SAFETY: the endpoint is open until `close`, which waits for the lock.
        let is_awaited = || unsafe { own.gets() } < inside.awaited_gets;
        let looks = if is_here { 0 } else { (1..LOOKS).take_while(|_| is_awaited()).count() as u32 };
        let is_there = looks < LOOKS - 1;
        let is_due = is_there && inside.looks_left <= looks;
        inside.looks_left = match (is_there, is_due) {
            (false, _) => inside.looks_left.max(1),
            (true, true) => LOOKS_PER_SERVICE,
            (true, false) => inside.looks_left - looks,
        };
        let left = match is_there && self.outstanding.end_alone() {
            true if !is_due => return,
            true => Left::Service,
            false => Left::Quiet,
        };
        let unfinished = inside.unfinished(left);
        drop(inside);
        finish(unfinished);
    }

    /// The outstanding flag: whether operations were started since the last quiet. The endpoint's other calls
    /// that start operations must set it.
    pub fn outstanding(&self) -> &OutstandingFlag {
        &self.outstanding
    }

    /// Gets, and atomics that fetch, that were started by the endpoint's other calls.
    pub fn other_gets(&self) -> &AtomicU64 {
        &self.other_gets
    }

    /// Whether a thread of this PE has made progress, here or elsewhere, since this was last cleared.
    pub fn has_looked(&self) -> &AtomicBool {
        &self.has_looked
    }

    /// Keeps all threads from injecting until the result is dropped.
    pub fn stop(&self) -> Stopped<'_, I> {
        Stopped { inside: self.inside.wait() }
    }

    /// Closes the injector for ever. The endpoint may be closed afterwards.
    pub fn close(&self) {
        self.inside.wait().is_closed = true;
    }
}

/// An injector that no other thread can use now.
pub struct Stopped<'a, I> {
    inside: Taken<'a, Inside<I>>,
}

impl<I> Stopped<'_, I> {
    /// The number of injected puts.
    pub fn puts(&self) -> u64 {
        self.inside.puts
    }

    /// The number of injected gets.
    pub fn gets(&self) -> u64 {
        self.inside.gets
    }

    /// Sets whether the injector can be used afterwards, if the provider has an injecting form.
    pub fn leave_open(&mut self, is_open: bool) {
        let exists = self.inside.own.is_some() && !self.inside.is_closed;
        self.inside.leave_open(exists && is_open);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amo::{AtomicKind, AtomicOp};
    use crate::sync::AtomicU32;
    use std::mem::MaybeUninit;
    use std::sync::Arc;

    /// The scripted behaviour of a provider.
    #[derive(Default)]
    struct Script {
        /// The number of the next calls that are refused.
        refusals: AtomicU32,
        /// The number of complete gets.
        gets: AtomicU64,
        /// The number of the next gets that complete as soon as they are started.
        at_once: AtomicU32,
        /// The number of messages, which require no delivery report.
        messages: AtomicU32,
    }

    struct Scripted {
        script: Arc<Script>,
        last: (Pe, usize, [u8; 8]),
    }

    impl Scripted {
        fn takes(&self) -> bool {
            let less = |n: u32| n.checked_sub(1);
            self.script.refusals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
        }
    }

    impl Inject for Scripted {
        fn put_bytes(&self) -> usize {
            16
        }

        fn get_bytes(&self) -> usize {
            1 << 20
        }

        fn signal_bytes(&self) -> usize {
            100
        }

        unsafe fn put_signal(&mut self, _: Pe, _: (usize, *const u8, usize), _: (usize, Atomic)) -> bool {
            self.takes()
        }

        fn settle(self: Pin<&mut Self>) {}

        unsafe fn put_outlined(&mut self, pe: Pe, _bytes: usize, word: u64, offset_bytes: usize) -> bool {
            self.last = (pe, offset_bytes, word.to_ne_bytes());
            self.takes()
        }

        fn refused(&self, _bytes: usize) -> (Pe, usize, [u8; 8]) {
            self.last
        }

        unsafe fn put(&mut self, _pe: Pe, _offset_bytes: usize, _source: *const u8, _bytes: usize) -> bool {
            self.takes()
        }

        unsafe fn put_message(&mut self, _pe: Pe, _offset_bytes: usize, _: *const u8, _bytes: usize) -> bool {
            self.script.messages.fetch_add(1, Ordering::Relaxed);
            self.takes()
        }

        fn last_get(&self) -> (Pe, usize) {
            (1, 8)
        }

        unsafe fn get(&mut self, _pe: Pe, _offset_bytes: usize, _into: *mut u8, _bytes: usize) -> bool {
            let takes = self.takes();
            let is_at_once = self.script.at_once.load(Ordering::Relaxed) > 0;
            self.script.gets.fetch_add(u64::from(takes && is_at_once), Ordering::Relaxed);
            takes
        }

        unsafe fn gets(&self) -> u64 {
            self.script.gets.load(Ordering::Relaxed)
        }
    }

    /// An open injector, its script, and the record of the job's failure.
    fn opened() -> (Injector<Scripted>, Arc<Script>, Box<Failure>) {
        let script = Arc::new(Script::default());
        script.at_once.store(1, Ordering::Relaxed);
        // SAFETY: the record consists of atomics, for which zero is a value.
        let failure: Box<Failure> = Box::new(unsafe { MaybeUninit::zeroed().assume_init() });
        let own = Scripted { script: Arc::clone(&script), last: (0, 0, [0; 8]) };
        // SAFETY: the record is returned with the injector, which is used only while the record lives. Its
        // own part may be moved.
        let injector = unsafe {
            let injector = Injector::new(own, &failure);
            injector.open();
            injector
        };
        (injector, script, failure)
    }

    fn put(injector: &Injector<Scripted>) -> Injected {
        // SAFETY: the script touches no memory.
        unsafe { injector.put_word(3, 40, 0x0102_u16, std::ptr::dangling()) }
    }

    /// The outcome of a get, and the steps that remain.
    fn get(injector: &Injector<Scripted>) -> (Noted, Option<Left>) {
        let mut left = None;
        // SAFETY: the script touches no memory.
        let noted = unsafe {
            injector.get_noted((1, 8), (std::ptr::dangling_mut(), 8), |unfinished| {
                assert_eq!((unfinished.pe, unfinished.offset_bytes), (1, 8));
                left = Some(unfinished.left);
            })
        };
        (noted, left)
    }

    const HERE: (Noted, Option<Left>) = (Noted::Here, None);
    const NOT_STARTED: (Noted, Option<Left>) = (Noted::NotStarted, None);

    /// Clears the flag like a quiet that finds all operations complete.
    fn clear(injector: &Injector<Scripted>) {
        let mark = injector.outstanding().read();
        injector.outstanding().clear(mark);
    }

    #[test]
    fn what_is_refused_comes_back_and_does_not_count() {
        let (injector, script, _failure) = opened();
        assert!(matches!(put(&injector), Injected::Started));
        script.refusals.store(2, Ordering::Relaxed);
        let Injected::Refused(kept) = put(&injector) else { panic!("the provider has refused") };
        assert!(matches!(put(&injector), Injected::NotStarted), "the lock is kept");
        let Refused { origin, pe, offset_bytes, value } = injector.refused(kept, 2);
        assert_eq!((origin, pe, offset_bytes), (std::ptr::dangling(), 3, 40));
        assert_eq!(value[..2], 0x0102_u16.to_ne_bytes());
        // SAFETY: the script touches no memory.
        assert!(!unsafe { injector.put(0, 0, std::ptr::dangling(), 5) }, "refused as well");
        // SAFETY: the script touches no memory.
        assert!(unsafe { injector.put(0, 0, std::ptr::dangling(), 16) });
        // SAFETY: the script touches no memory.
        assert!(!unsafe { injector.put(0, 0, std::ptr::dangling(), 17) }, "it is too long");
        let stopped = injector.stop();
        assert_eq!((stopped.puts(), stopped.gets()), (2, 0));
        assert_ne!(injector.outstanding().read(), 0, "an operation was started");
    }

    #[test]
    fn a_put_with_a_signal_has_its_own_limit() {
        let (injector, script, _failure) = opened();
        let atomic = Atomic { kind: AtomicKind::U64, op: AtomicOp::Add, operand: 1, compare: 0 };
        // SAFETY: the script touches no memory.
        let signal = |bytes| unsafe { injector.put_signal(3, (8, std::ptr::dangling(), bytes), (0, atomic)) };
        assert!(signal(100) && !signal(101));
        script.refusals.store(1, Ordering::Relaxed);
        assert!(!signal(8), "refused");
        assert_eq!(injector.stop().puts(), 1);
        assert_ne!(injector.outstanding().read(), 0, "an operation was started");
    }

    #[test]
    fn a_message_counts_but_leaves_no_mark() {
        let (injector, script, _failure) = opened();
        // SAFETY: the script touches no memory.
        let put_message = || unsafe { injector.put_message(0, 0, std::ptr::dangling(), 16) };
        assert!(put_message());
        script.refusals.store(1, Ordering::Relaxed);
        assert!(!put_message(), "refused");
        assert_eq!(script.messages.load(Ordering::Relaxed), 2, "the provider is told that they are messages");
        assert_eq!((injector.stop().puts(), injector.outstanding().read()), (1, 0));
    }

    #[test]
    fn nothing_is_injected_where_something_stands_in_the_way() {
        let (injector, _script, failure) = opened();
        // SAFETY: the script touches no memory.
        let of_16_bytes = unsafe { injector.put_word(0, 0, [0_u64; 2], null()) };
        assert!(matches!(of_16_bytes, Injected::NotStarted), "that is no word");
        injector.stop().leave_open(false);
        assert!(matches!(put(&injector), Injected::NotStarted), "it is closed for now");
        injector.stop().leave_open(true);
        assert!(matches!(put(&injector), Injected::Started));
        failure.record(7, "on purpose");
        assert!(matches!(put(&injector), Injected::NotStarted), "the job has failed");
        assert_eq!(get(&injector), NOT_STARTED);
        assert_eq!(injector.stop().puts(), 1, "and the lock was let go");
        let none = Injector::<Scripted>::none();
        none.stop().leave_open(true);
        assert!(matches!(put(&none), Injected::NotStarted), "there is nothing to inject by");
    }

    #[test]
    fn closed_is_for_ever() {
        let (injector, _script, _failure) = opened();
        injector.close();
        injector.stop().leave_open(true);
        assert!(matches!(put(&injector), Injected::NotStarted));
    }

    #[test]
    fn a_get_is_injected_only_if_it_is_alone() {
        let (injector, script, _failure) = opened();
        assert_eq!(get(&injector), HERE);
        assert_eq!(injector.outstanding().read(), 0, "it does not set the flag");
        let _ = put(&injector);
        // SAFETY: the script touches no memory.
        let unnoted = unsafe {
            injector.get((1, 8), (std::ptr::dangling_mut(), 8), null(), |_| panic!("nothing has begun"))
        };
        assert!(!unnoted, "a put is under way, and nothing is noted");
        assert_eq!(get(&injector), NOT_STARTED, "a put is under way");
        injector.other_gets().fetch_add(1, Ordering::Relaxed);
        injector.outstanding().by_call();
        script.gets.fetch_add(1, Ordering::Relaxed);
        assert_eq!(
            get(&injector),
            (Noted::NotMarkedAnew, None),
            "nothing but the get above was started since"
        );
        clear(&injector);
        assert_eq!(get(&injector), HERE);
        let mut stopped = injector.stop();
        assert_eq!(stopped.gets(), 2);
        stopped.leave_open(true);
        drop(stopped);
        script.refusals.store(1, Ordering::Relaxed);
        assert_eq!(get(&injector), (Noted::Here, Some(Left::All)), "the provider has refused");
        assert_eq!(injector.outstanding().read(), 0, "and the flag is clear");
    }

    #[test]
    fn a_get_that_is_not_soon_there_is_left_to_a_quiet() {
        let (injector, script, _failure) = opened();
        script.at_once.store(0, Ordering::Relaxed);
        assert_eq!(get(&injector), (Noted::Here, Some(Left::Quiet)));
        assert_ne!(injector.outstanding().read(), 0, "the flag keeps out other gets");
        assert_eq!(get(&injector), NOT_STARTED);
        script.gets.store(1, Ordering::Relaxed);
        script.at_once.store(1, Ordering::Relaxed);
        clear(&injector);
        assert_eq!(get(&injector), HERE);
    }

    #[test]
    fn other_pes_are_served_now_and_then() {
        let (injector, _script, _failure) = opened();
        for _ in 0..3 {
            for look in 1..LOOKS_PER_SERVICE {
                assert_eq!(get(&injector), HERE, "look {look}");
            }
            assert_eq!(get(&injector), (Noted::Here, Some(Left::Service)));
        }
    }
}
