//! Non-blocking operations: in scopes and regions, with explicit handles that own their buffers, and implicit
//! ones for callers that keep the buffers themselves.
//!
//! Invariant: in safe code a buffer in use cannot be accessed, moved or freed before its operation is
//! complete, even if handles are forgotten: a scope does not end before its operations are complete, and a
//! handle owns its buffer. Between PEs that map each other the operations are complete when they are started.

use crate::Pe;
use crate::array::amo::{AtomicElement, atomic, comparing};
use crate::array::messages::{self, Messages};
use crate::array::signal::Signal;
use crate::array::view::View;
use crate::events::{Event, Leaf, Outcome, Probe};
use crate::world::World;
use pelago_core::base::awaited::Awaited;
use pelago_core::base::element::Element;
use pelago_core::base::error::Result;
use pelago_core::base::panic_message::panic_text;
use pelago_core::base::signal_op::SignalOp;
use pelago_core::endpoint::completion_counter::CompletionCounter;
use pelago_fabric::{Atomic, AtomicOp};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;

/// A scope of non-blocking operations; see [`World::scope`]. It derefs to a [`Region`], which has the
/// operations that are started on the scope itself.
pub struct Scope<'scope, 'env: 'scope> {
    whole: Region<'scope>,
    completions: Regions,
    messages: &'scope Messages,
    environment: PhantomData<&'env mut &'env ()>,
}

/// A group of operations of a scope that are tested and waited for together, independently of its other
/// operations (an access region in GASNet): see [`Scope::region`]. They may use buffers that outlive the
/// scope.
pub struct Region<'scope> {
    world: &'scope World,
    /// `None` if every PE is mapped: then no operation is ever outstanding.
    counter: Option<CompletionCounter>,
    /// The lifetime is invariant: buffers live exactly as long as the region's own scope.
    buffers: PhantomData<&'scope mut &'scope ()>,
}

/// The completion counters of a scope's regions; `None` if every PE is mapped.
type Regions = Option<Rc<RefCell<Vec<CompletionCounter>>>>;

/// Ends a scope, also when the thread unwinds: completes all its regions and releases their completion
/// counters.
struct End<'env, 'm> {
    world: &'env World,
    completions: Regions,
    messages: &'m Messages,
}

impl Drop for End<'_, '_> {
    fn drop(&mut self) {
        if !self.messages.borrow().is_empty() {
            self.world.finish_in_drop(|world| messages::complete(world, self.messages));
            self.world.core().settle_messages();
        }
        for counter in self.completions.iter().flat_map(|completions| completions.take()) {
            self.world.complete_in_drop(counter);
        }
        self.world.core().order_stores();
    }
}

impl World {
    /// Runs `work` with a scope in which operations do not wait: they may use buffers that outlive the scope,
    /// and all of them are complete when `scope` returns.
    ///
    /// ```
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// let inbox = world.alloc_zeroed::<u32>(3)?;
    /// let mine = [world.my_pe() as u32 + 1];
    /// world.scope(|scope| (0..3).try_for_each(|pe| scope.put(&inbox, pe, world.my_pe(), &mine)))?;
    /// world.barrier();
    /// assert_eq!(inbox.local().to_vec(), [1, 2, 3]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    #[track_caller]
    pub fn scope<'env, R>(&'env self, work: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R) -> R {
        let whole = Region::open(self);
        let completions: Regions = whole.counter.clone().map(|counter| Rc::new(RefCell::new(vec![counter])));
        let messages = Messages::default();
        let _end = End { world: self, completions: completions.clone(), messages: &messages };
        let scope = Scope { whole, completions, messages: &messages, environment: PhantomData };
        catch_unwind(AssertUnwindSafe(|| work(&scope))).unwrap_or_else(|payload| {
            if messages::are_open(&messages) {
                // The messages that this PE waits for at the end of the scope may never come now.
                let (me, text) = (self.my_pe(), panic_text(payload.as_ref()));
                self.core().record_failure(&format!("PE {me}: the work of a scope has panicked: {text}"));
            }
            resume_unwind(payload)
        })
    }

    /// Waits for a counter and releases it, in a destructor.
    fn complete_in_drop(&self, counter: CompletionCounter) {
        self.finish_in_drop(|world| {
            world.core().wait(Awaited::Quiet, || counter.is_done());
            world.core().completions.release(counter);
        });
    }

    /// Waits in a destructor: not for operations if the endpoints are shut, so that none is outstanding, and
    /// without a second panic if the thread is panicking. A wait that fails shuts the endpoints, so in no
    /// case does an operation access a buffer afterwards.
    pub(crate) fn finish_in_drop(&self, wait: impl FnOnce(&World)) {
        if self.core().net.as_ref().is_some_and(|net| net.is_shut()) {
            // Another thread may only have begun to shut them, or call the provider still. An endpoint of a
            // context that was made meanwhile is open.
            return self.core().shut_endpoints();
        }
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| wait(self))) {
            self.core().close();
            if !std::thread::panicking() {
                resume_unwind(payload);
            }
        }
    }
}

impl<'scope> std::ops::Deref for Scope<'scope, '_> {
    type Target = Region<'scope>;

    fn deref(&self) -> &Region<'scope> {
        &self.whole
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Creates a region within this scope, whose operations can be tested and waited for independently of the
    /// others. They are complete at the latest when the scope ends.
    ///
    /// ```
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let inbox = world.alloc_zeroed::<u64>(2)?;
    /// let (first, second) = ([1], [2]);
    /// world.scope(|scope| {
    ///     let region = scope.region();
    ///     region.put(&inbox, 1, 0, &first)?;
    ///     scope.put(&inbox, 1, 1, &second)?;
    ///     region.wait(); // the first is complete, the second perhaps
    ///     Ok::<(), pelago::Error>(())
    /// })
    /// # }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    pub fn region(&'scope self) -> Region<'scope> {
        let region = Region::open(self.whole.world);
        if let Some(completions) = &self.completions {
            completions.borrow_mut().extend(region.counter.iter().cloned());
        }
        region
    }

    pub(crate) fn world(&self) -> &'scope World {
        self.whole.world
    }

    pub(crate) fn messages(&self) -> &'scope Messages {
        self.messages
    }

    /// Waits until all operations started so far are complete, in all regions, except sends and receives.
    #[track_caller]
    pub fn quiet(&self) {
        for counter in self.completions.iter().flat_map(|completions| completions.borrow().clone()) {
            self.whole.world.core().wait(Awaited::Quiet, || counter.is_done());
        }
        self.whole.world.core().order_stores();
    }
}

impl<'scope> Region<'scope> {
    fn open(world: &'scope World) -> Region<'scope> {
        let counter = (!world.core().routes.are_all_mapped()).then(|| world.core().completions.open());
        Region { world, counter, buffers: PhantomData }
    }

    /// Starts a put, as [`View::put`]. The source is in use until the scope ends.
    ///
    /// # Errors
    /// If there is no such PE, the range exceeds the array, or the array and the scope belong to different
    /// worlds; no operation is started then.
    pub fn put<T: Element>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        index: usize,
        source: &'scope [T],
    ) -> Result<()> {
        let counter = self.tracker_for("put", array)?;
        // SAFETY: the source is borrowed until the scope has completed all its operations.
        unsafe { array.put_tracked("put", pe, index, source, counter) }
    }

    /// Starts a get, as [`View::get`]. The data are in the target when the scope ends.
    ///
    /// # Errors
    /// As [`put`](Region::put).
    pub fn get<T: Element>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        index: usize,
        target: &'scope mut [T],
    ) -> Result<()> {
        let counter = self.tracker_for("get", array)?;
        // SAFETY: the target is borrowed until the scope has completed all its operations.
        unsafe { array.get_tracked("get", pe, index, target, counter) }
    }

    /// Starts a put with its signal, as [`View::put_signal`]. The source is in use until the scope ends.
    ///
    /// ```
    /// use pelago::{Comparison, SignalOp};
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// let (me, n) = (world.my_pe(), world.n_pes());
    /// let (data, arrived) = (world.alloc_zeroed::<u8>(n)?, world.alloc_zeroed::<u64>(1)?);
    /// let mine = [me as u8];
    /// world.scope(|scope| {
    ///     (0..n).try_for_each(|pe| scope.put_signal(&data, pe, me, &mine, &arrived, 0, SignalOp::Add(1)))
    /// })?;
    /// arrived.local().wait(0, Comparison::Eq, 3);
    /// assert_eq!(data.local().to_vec(), [0, 1, 2]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`View::put_signal`], and if the arrays and the scope belong to different worlds.
    #[expect(clippy::too_many_arguments, reason = "what View::put_signal takes, and the array")]
    pub fn put_signal<T: Element>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        index: usize,
        source: &'scope [T],
        signals: &View<'_, u64>,
        signal_index: usize,
        op: SignalOp,
    ) -> Result<()> {
        let (operation, signal) = ("put_signal", Signal { words: signals, index: signal_index, op });
        let counter = self.tracker_for(operation, array)?;
        // SAFETY: the source is borrowed until the scope has completed all its operations.
        unsafe { array.start_put_signal(operation, (pe, index), source, signal, counter) }
    }

    /// Starts an atomic, as [`View::amo`]. It is complete when the scope ends.
    ///
    /// # Errors
    /// If there is no such PE or element, the type does not have this operation, or the array and the scope
    /// belong to different worlds; no operation is started then.
    pub fn amo<T: AtomicElement>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        index: usize,
        op: AtomicOp,
        operand: T,
    ) -> Result<()> {
        array.check_op("amo", op, false)?;
        let counter = self.tracker_for("amo", array)?;
        // SAFETY: the pointer for the result is null, so none is written.
        unsafe { array.amo_tracked("amo", (pe, index), &atomic(op, operand), std::ptr::null_mut(), counter) }
    }

    /// Starts an atomic, as [`View::fetch_amo`]. The old value is in `old` when the scope ends.
    ///
    /// # Errors
    /// If there is no such PE or element, the type does not have this operation, or the array and the scope
    /// belong to different worlds; no operation is started then.
    pub fn fetch_amo<T: AtomicElement>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        index: usize,
        op: AtomicOp,
        operand: T,
        old: &'scope mut T,
    ) -> Result<()> {
        array.check_op("fetch_amo", op, false)?;
        let counter = self.tracker_for("fetch_amo", array)?;
        let atomic = atomic(op, operand);
        // SAFETY: the result is borrowed mutably until the scope has completed all its operations.
        unsafe { array.amo_tracked("fetch_amo", (pe, index), &atomic, old, counter) }
    }

    /// Starts a compare-and-swap, as [`View::compare_amo`]. The old value is in `old` when the scope ends.
    ///
    /// # Errors
    /// As [`fetch_amo`](Region::fetch_amo).
    #[expect(clippy::too_many_arguments, reason = "what View::compare_amo takes, array and old value")]
    pub fn compare_amo<T: AtomicElement>(
        &self,
        array: &'scope View<'_, T>,
        pe: Pe,
        index: usize,
        op: AtomicOp,
        compare: T,
        operand: T,
        old: &'scope mut T,
    ) -> Result<()> {
        array.check_op("compare_amo", op, true)?;
        let counter = self.tracker_for("compare_amo", array)?;
        let atomic = comparing(op, compare, operand);
        // SAFETY: the result is borrowed mutably until the scope has completed all its operations.
        unsafe { array.amo_tracked("compare_amo", (pe, index), &atomic, old, counter) }
    }

    /// The event that the sources of all puts of this region may be reused.
    pub fn sent(&self) -> Leaf<'_> {
        Leaf { world: self.world, probe: Probe::sent(self.counter.as_ref()), operation: PhantomData }
    }

    /// The counter for an operation on an array; `None` if the array belongs to another world, whose
    /// operations this counter does not count.
    pub(crate) fn tracker_for<T: Element>(
        &self,
        operation: &'static str,
        array: &View<'_, T>,
    ) -> Result<Option<&CompletionCounter>> {
        array.check_world(operation, self.world.core())?;
        Ok(self.counter.as_ref())
    }

    /// Makes progress, and returns whether all operations started in this region are complete.
    pub fn test(&self) -> bool {
        self.world.progress();
        let is_done = self.counter.as_ref().is_none_or(CompletionCounter::is_done);
        if is_done {
            self.world.core().order_stores();
        }
        self.world.core().note_test(is_done)
    }

    /// Waits until all operations started in this region are complete.
    #[track_caller]
    pub fn wait(&self) {
        if let Some(counter) = &self.counter {
            self.world.core().wait(Awaited::Quiet, || counter.is_done());
        }
        self.world.core().order_stores();
    }

    /// Waits for the local completion of all puts of this region: their sources may then be reused. The puts
    /// are complete at their targets after [`wait`](Region::wait) or a quiet.
    #[track_caller]
    pub fn wait_local(&self) {
        if let Some(counter) = &self.counter {
            self.world.core().wait(Awaited::Quiet, || counter.is_sent());
        }
    }
}

impl Event for Region<'_> {
    fn world(&self) -> &World {
        self.world
    }

    fn probe(&self) -> Probe {
        Probe::done(self.counter.as_ref())
    }
}

impl<T: Element> View<'_, T> {
    /// Starts a put that the next quiet of its context completes (OpenSHMEM's `put_nbi`). In safe code,
    /// [`Region::put`] does the same.
    ///
    /// # Errors
    /// If there is no such PE or the range exceeds the array; no operation is started then.
    ///
    /// # Safety
    /// The source is not written, moved or freed before a [`quiet`](World::quiet), of the world or of the
    /// context that the array is seen through, has returned.
    pub unsafe fn put_nbi(&self, pe: Pe, index: usize, source: &[T]) -> Result<()> {
        // SAFETY: the caller guarantees that the source stays unchanged until quiet.
        unsafe { self.implicitly(|counter| self.put_tracked("put_nbi", pe, index, source, counter)) }
    }

    /// Starts a get that the next quiet of its context completes (OpenSHMEM's `get_nbi`). In safe code,
    /// [`Region::get`] does the same.
    ///
    /// # Errors
    /// If there is no such PE or the range exceeds the array; no operation is started then.
    ///
    /// # Safety
    /// The target is not accessed, moved or freed before a [`quiet`](World::quiet), of the world or of the
    /// context that the array is seen through, has returned.
    pub unsafe fn get_nbi(&self, pe: Pe, index: usize, target: &mut [T]) -> Result<()> {
        // SAFETY: the caller guarantees that the target is not accessed until quiet.
        unsafe { self.implicitly(|counter| self.get_tracked("get_nbi", pe, index, target, counter)) }
    }

    /// Starts an operation with a counter that is released at once: only quiet observes its completion.
    fn implicitly(&self, start: impl FnOnce(Option<&CompletionCounter>) -> Result<()>) -> Result<()> {
        let world = self.world();
        if world.core().routes.are_all_mapped() {
            return start(None);
        }
        let counter = world.core().completions.open();
        let outcome = start(Some(&counter));
        world.core().completions.release(counter);
        outcome
    }

    /// Starts a put that owns its source. The handle returns the source when the put is complete, or locally
    /// complete.
    ///
    /// ```
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let inbox = world.alloc_zeroed::<u8>(4)?;
    /// let put = inbox.put_nb(1 - world.my_pe(), 0, vec![7; 4])?;
    /// let buffer = put.wait();
    /// world.barrier();
    /// assert_eq!(inbox.local().to_vec(), buffer);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If there is no such PE or the range exceeds the array; no operation is started then.
    pub fn put_nb(&self, pe: Pe, index: usize, source: Vec<T>) -> Result<Transfer<'_, T>> {
        Transfer::of_put(self.world(), source, |source, counter| {
            // SAFETY: the transfer owns the source and frees it only after it is sent.
            unsafe { self.put_tracked("put_nb", pe, index, source, counter) }
        })
    }

    /// Starts a get that owns its target. The handle returns the target, with the data, when the get is
    /// complete.
    ///
    /// # Errors
    /// If there is no such PE or the range exceeds the array; no operation is started then.
    pub fn get_nb(&self, pe: Pe, index: usize, target: Vec<T>) -> Result<Transfer<'_, T>> {
        Transfer::of_get(self.world(), target, |target, counter| {
            // SAFETY: the transfer owns the target and gives it out only after the get is complete.
            unsafe { self.get_tracked("get_nb", pe, index, target, counter) }
        })
    }
}

/// An outstanding put or get, with the buffer that it owns. When it is dropped, a get waits until it is
/// complete, and a put waits at least for its local completion; the put is then complete at the target after
/// a quiet.
#[must_use = "the operation is complete after `wait`"]
pub struct Transfer<'a, T: Element> {
    region: Region<'a>,
    // A vector in raw parts: the provider could not write to the buffer of a `Vec` that is held here.
    start: *mut T,
    len: usize,
    capacity: usize,
    is_put: bool,
}

impl<'a, T: Element> Transfer<'a, T> {
    fn new(world: &'a World, buffer: Vec<T>, is_put: bool) -> Transfer<'a, T> {
        let mut buffer = ManuallyDrop::new(buffer);
        let (start, len, capacity) = (buffer.as_mut_ptr(), buffer.len(), buffer.capacity());
        Transfer { region: Region::open(world), start, len, capacity, is_put }
    }

    /// A put that `start` starts from the buffer. It no longer uses the buffer when the counter has counted
    /// it as sent, or at once if there is no counter.
    pub(crate) fn of_put(
        world: &'a World,
        source: Vec<T>,
        start: impl FnOnce(&[T], Option<&CompletionCounter>) -> Result<()>,
    ) -> Result<Transfer<'a, T>> {
        let transfer = Transfer::new(world, source, true);
        // SAFETY: these are the parts of a vector, which no thread writes to while it is the source of a put.
        let source = unsafe { std::slice::from_raw_parts(transfer.start, transfer.len) };
        start(source, transfer.region.counter.as_ref())?;
        Ok(transfer)
    }

    /// A get that `start` starts into the buffer. It is complete when the counter has counted it as done, or
    /// at once if there is no counter.
    pub(crate) fn of_get(
        world: &'a World,
        target: Vec<T>,
        start: impl FnOnce(&mut [T], Option<&CompletionCounter>) -> Result<()>,
    ) -> Result<Transfer<'a, T>> {
        let transfer = Transfer::new(world, target, false);
        // SAFETY: these are the parts of a vector, which no other code accesses before the get is complete.
        let target = unsafe { std::slice::from_raw_parts_mut(transfer.start, transfer.len) };
        start(target, transfer.region.counter.as_ref())?;
        Ok(transfer)
    }

    /// Takes the buffer out; the operation must no longer use it.
    fn take_buffer(&mut self) -> Vec<T> {
        let (start, len, capacity) = (self.start, self.len, self.capacity);
        (self.start, self.len, self.capacity) = (std::ptr::NonNull::dangling().as_ptr(), 0, 0);
        // SAFETY: these are the parts of a vector, and are taken out once: an empty vector remains.
        unsafe { Vec::from_raw_parts(start, len, capacity) }
    }

    /// Makes progress, and returns whether the operation is complete.
    pub fn test(&self) -> bool {
        self.region.test()
    }

    /// Waits until the operation is complete, and returns the buffer: the source of a put, or the data of a
    /// get.
    #[track_caller]
    pub fn wait(mut self) -> Vec<T> {
        self.region.wait();
        self.take_buffer()
    }

    /// The event of the local completion of a put: its source may be reused. It is separate from the event of
    /// its completion. For a get both are the same.
    pub fn sent(&self) -> Leaf<'_> {
        match self.is_put {
            true => self.region.sent(),
            false => Leaf { world: self.region.world, probe: self.probe(), operation: PhantomData },
        }
    }

    /// Waits for the local completion of a put, and returns its source; the put is complete at the target
    /// after a quiet. For a get, waits until it is complete.
    #[track_caller]
    pub fn wait_local(mut self) -> Vec<T> {
        match self.is_put {
            true => self.region.wait_local(),
            false => self.region.wait(),
        }
        self.take_buffer()
    }
}

impl<T: Element> Event for Transfer<'_, T> {
    fn world(&self) -> &World {
        self.region.world
    }

    fn probe(&self) -> Probe {
        self.region.probe()
    }
}

impl<T: Element> Outcome for Transfer<'_, T> {
    type Output = Vec<T>;

    #[track_caller]
    fn wait(self) -> Vec<T> {
        Transfer::wait(self)
    }
}

impl<T: Element> Drop for Transfer<'_, T> {
    fn drop(&mut self) {
        if let Some(counter) = self.region.counter.take() {
            match self.is_put && counter.is_sent() {
                true => self.region.world.core().completions.release(counter),
                false => self.region.world.complete_in_drop(counter),
            }
        }
        drop(self.take_buffer());
    }
}

/// An outstanding atomic that fetches the old value. If it is dropped before it is complete, the drop waits.
#[must_use = "`wait` returns the old value"]
pub struct Fetch<'a, T: AtomicElement>(Transfer<'a, T>);

impl<T: AtomicElement> Fetch<'_, T> {
    /// Makes progress, and returns whether the operation is complete.
    pub fn test(&self) -> bool {
        self.0.test()
    }

    /// Waits until the operation is complete, and returns the old value.
    #[track_caller]
    pub fn wait(self) -> T {
        self.0.wait()[0]
    }
}

impl<T: AtomicElement> Event for Fetch<'_, T> {
    fn world(&self) -> &World {
        self.0.world()
    }

    fn probe(&self) -> Probe {
        self.0.probe()
    }
}

impl<T: AtomicElement> Outcome for Fetch<'_, T> {
    type Output = T;

    #[track_caller]
    fn wait(self) -> T {
        Fetch::wait(self)
    }
}

/// An outstanding atomic that fetches nothing. If it is dropped, the next quiet completes it.
#[must_use = "the operation is complete after `wait`, or a quiet"]
pub struct Update<'a>(Region<'a>);

impl Update<'_> {
    /// Makes progress, and returns whether the operation is complete.
    pub fn test(&self) -> bool {
        self.0.test()
    }

    /// Waits until the operation is complete.
    #[track_caller]
    pub fn wait(self) {
        self.0.wait();
    }
}

impl Event for Update<'_> {
    fn world(&self) -> &World {
        self.0.world
    }

    fn probe(&self) -> Probe {
        self.0.probe()
    }
}

impl Outcome for Update<'_> {
    type Output = ();

    #[track_caller]
    fn wait(self) {
        Update::wait(self);
    }
}

impl Drop for Update<'_> {
    fn drop(&mut self) {
        if let Some(counter) = self.0.counter.take() {
            self.0.world.core().completions.release(counter);
        }
    }
}

impl<T: AtomicElement> View<'_, T> {
    /// Starts an atomic, as [`amo`](View::amo). The handle is used to test and wait for its completion.
    ///
    /// ```
    /// # use pelago::AtomicOp;
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let sums = world.alloc_zeroed::<f64>(1)?;
    /// let sum = sums.amo_nb(0, 0, AtomicOp::Add, 0.5)?;
    /// sum.wait();
    /// world.barrier();
    /// assert_eq!(sums.g(0, 0)?, 1.0);
    /// # world.barrier();
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If there is no such PE or element, or the type does not have this operation; no operation is started
    /// then.
    pub fn amo_nb(&self, pe: Pe, index: usize, op: AtomicOp, operand: T) -> Result<Update<'_>> {
        self.check_op("amo_nb", op, false)?;
        let update = Update(Region::open(self.world()));
        let (atomic, counter) = (atomic(op, operand), update.0.counter.as_ref());
        // SAFETY: the pointer for the result is null, so none is written.
        unsafe { self.amo_tracked("amo_nb", (pe, index), &atomic, std::ptr::null_mut(), counter)? };
        Ok(update)
    }

    /// Starts an atomic, as [`fetch_amo`](View::fetch_amo). The handle returns the old value.
    ///
    /// # Errors
    /// If there is no such PE or element, or the type does not have this operation; no operation is started
    /// then.
    pub fn fetch_amo_nb(&self, pe: Pe, index: usize, op: AtomicOp, operand: T) -> Result<Fetch<'_, T>> {
        self.check_op("fetch_amo_nb", op, false)?;
        let atomic = atomic(op, operand);
        self.start_fetch("fetch_amo_nb", (pe, index), &atomic)
    }

    /// Starts a compare-and-swap, as [`compare_amo`](View::compare_amo). The handle returns the old value.
    ///
    /// # Errors
    /// As [`fetch_amo_nb`](View::fetch_amo_nb).
    pub fn compare_amo_nb(
        &self,
        pe: Pe,
        index: usize,
        op: AtomicOp,
        compare: T,
        operand: T,
    ) -> Result<Fetch<'_, T>> {
        self.check_op("compare_amo_nb", op, true)?;
        let atomic = comparing(op, compare, operand);
        self.start_fetch("compare_amo_nb", (pe, index), &atomic)
    }

    fn start_fetch(&self, operation: &'static str, at: (Pe, usize), atomic: &Atomic) -> Result<Fetch<'_, T>> {
        let transfer = Transfer::new(self.world(), vec![T::from_word(0)], false);
        let counter = transfer.region.counter.as_ref();
        // SAFETY: the transfer owns the buffer of the old value until the atomic is complete.
        unsafe { self.amo_tracked(operation, at, atomic, transfer.start, counter)? };
        Ok(Fetch(transfer))
    }

    /// Starts a fetching atomic that the next quiet of its context completes (OpenSHMEM's
    /// `atomic_fetch_add_nbi` and the other nonblocking fetching atomics).
    ///
    /// # Errors
    /// If there is no such PE or element, or the type does not have this operation; no operation is started
    /// then.
    ///
    /// # Safety
    /// `old` is not accessed, moved or freed before a [`quiet`](World::quiet), of the world or of the context
    /// that the array is seen through, has returned.
    pub unsafe fn fetch_amo_nbi(
        &self,
        pe: Pe,
        index: usize,
        op: AtomicOp,
        operand: T,
        old: &mut MaybeUninit<T>,
    ) -> Result<()> {
        self.check_op("fetch_amo_nbi", op, false)?;
        let atomic = atomic(op, operand);
        // SAFETY: the caller guarantees that `old` is not accessed until quiet.
        unsafe { self.amo_tracked("fetch_amo_nbi", (pe, index), &atomic, old.as_mut_ptr(), None) }
    }
}

#[cfg(test)]
mod tests {
    use crate::sim::SimParams;
    use crate::{ContextKind, Spmd};
    use std::sync::{Arc, Mutex};

    /// As if the context was made while another thread shut the endpoints.
    #[test]
    fn a_transfer_that_is_dropped_after_a_failure_leaves_no_endpoint_open() {
        // A panic would not be reported: the job has failed before.
        let was_shut = Mutex::new(Vec::new());
        let outcome = Spmd::new(2).sim(SimParams::default()).run(|world| {
            let array = world.alloc_zeroed::<u64>(1).unwrap();
            if world.my_pe() == 1 {
                return;
            }
            let context = world.context(ContextKind::Private).unwrap();
            let endpoint = Arc::clone(context.endpoint().unwrap());
            let view = array.via(&context);
            let transfer = view.get_nb(1, 0, vec![0]).unwrap();
            let contexts = &world.core().contexts;
            contexts.remove(&endpoint);
            world.core().record_failure("on purpose");
            contexts.add(&endpoint);
            was_shut.lock().unwrap().push(endpoint.is_shut());
            drop(transfer);
            was_shut.lock().unwrap().push(endpoint.is_shut());
        });
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("on purpose"), "{error}");
        assert_eq!(was_shut.into_inner().unwrap(), [false, true], "the get may still write its buffer");
    }
}
