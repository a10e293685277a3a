//! Remote memory access: put and get.
//!
//! The fast path checks PE and range, and copies. Everything else is in one cold function for each direction:
//! it reports errors, counts the operation, or starts it on the network. Before that, a put of one element or
//! a short get over the network is injected if possible.

use crate::Pe;
use crate::array::view::{View, Way};
use pelago_core::base::element::Element;
use pelago_core::base::error::Result;
use pelago_core::endpoint::completion_counter::CompletionCounter;
use pelago_core::endpoint::{Injector, RemoteAddress};
use pelago_core::job::callback;
use pelago_core::memory::segment::Part;
use pelago_fabric::inject::{Injected, Kept, Refused, Unfinished};
use std::mem::MaybeUninit;
use std::ptr;

impl<T: Element> View<'_, T> {
    /// Puts one element: writes `value` to element `index` on `pe`. Numbers of up to 8 bytes are written by
    /// one access if `pe` is mapped, and over TCP; otherwise this depends on the fabric. The put is complete
    /// at the target after [`quiet`](crate::World::quiet) or a barrier.
    ///
    /// # Errors
    /// If there is no such PE or element; nothing is written then.
    #[inline]
    pub fn p(&self, pe: Pe, index: usize, value: T) -> Result<()> {
        // Two separate tests: joined by `||`, they cost more instructions.
        if pe >= self.place.limit {
            return self.p_checked(pe, index, value);
        }
        if index >= self.len() {
            return self.p_checked(pe, index, value);
        }
        // SAFETY: the limit is at most the number of members; PE and index were checked.
        unsafe {
            let Some(part) = self.place.mapped(pe) else { return self.p_far(pe, index, value) };
            part.store(index, value);
        }
        Ok(())
    }

    /// Gets one element: reads element `index` on `pe`. Numbers of up to 8 bytes are read by one access if
    /// `pe` is mapped, and over TCP; otherwise this depends on the fabric. The get is complete at return.
    ///
    /// # Errors
    /// If there is no such PE or element.
    #[inline]
    pub fn g(&self, pe: Pe, index: usize) -> Result<T> {
        if pe >= self.place.limit {
            return self.g_checked(pe, index);
        }
        if index >= self.len() {
            return self.g_checked(pe, index);
        }
        // SAFETY: the limit is at most the number of members; PE and index were checked.
        unsafe {
            let Some(part) = self.place.mapped(pe) else { return self.g_far(pe, index) };
            Ok(part.load(index))
        }
    }

    /// Puts elements: writes `source` to the elements from `index` on, on `pe`. The source may be reused at
    /// return; the put is complete at the target after [`quiet`](crate::World::quiet) or a barrier.
    ///
    /// # Errors
    /// If there is no such PE or the range exceeds the array; nothing is written then.
    #[inline]
    pub fn put(&self, pe: Pe, index: usize, source: &[T]) -> Result<()> {
        // SAFETY: without a counter the source is free when this returns.
        unsafe { self.put_tracked("put", pe, index, source, None) }
    }

    /// Gets elements: reads the elements from `index` on, on `pe`, into `target`. The get is complete at
    /// return.
    ///
    /// # Errors
    /// If there is no such PE or the range exceeds the array; nothing is read then.
    #[inline]
    pub fn get(&self, pe: Pe, index: usize, target: &mut [T]) -> Result<()> {
        // SAFETY: without a counter the get is complete when this returns.
        unsafe { self.get_tracked("get", pe, index, target, None) }
    }

    /// Returns a handle to the part on one PE. The PE is checked once, here.
    ///
    /// # Errors
    /// If there is no such PE.
    #[inline]
    pub fn on(&self, pe: Pe) -> Result<On<'_, T>> {
        self.check_pe("on", pe)?;
        let (part, fast_len) = match self.place.fast(pe) {
            Some(part) => (part, self.len()),
            None => (self.place.own(), 0),
        };
        Ok(On { part, fast_len, view: self, pe })
    }

    /// Puts one element over the network. The arguments have the order of `p`, so that the fast path need not
    /// move them.
    ///
    /// # Safety
    /// The member and the element exist.
    #[cold]
    #[inline(never)]
    unsafe fn p_far(&self, pe: Pe, index: usize, value: T) -> Result<()> {
        let offset_bytes = self.place.offset_bytes() + index * size_of::<T>();
        let injector = self.injector;
        // SAFETY: the caller has promised that PE and element exist. In the world's arrays each PE's part is
        // at the same offset.
        match unsafe { injector.put_word(pe, offset_bytes, value, ptr::from_ref(self).cast()) } {
            Injected::Started => Ok(()),
            Injected::NotStarted => self.p_checked(pe, index, value),
            Injected::Refused(kept) => Self::p_again(injector, kept),
        }
    }

    /// Puts one element that the provider did not accept at once.
    #[cold]
    #[inline(never)]
    fn p_again(injector: &Injector, kept: Kept) -> Result<()> {
        let Refused { origin, pe, offset_bytes, value } = injector.refused(kept, size_of::<T>());
        // SAFETY: the origin is the view of this call, which `p_far` has passed.
        let view = unsafe { &*origin.cast::<Self>() };
        let target = RemoteAddress { operation: "p", pe, offset_bytes };
        // SAFETY: the PE exists, and `p` has checked the index; without a counter the source is free when
        // this returns.
        unsafe { view.net_endpoint().put(view.world().core(), target, value.as_ptr(), size_of::<T>(), None) };
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn p_checked(&self, pe: Pe, index: usize, value: T) -> Result<()> {
        // SAFETY: without a counter the source is free when this returns.
        unsafe { self.put_cold("p", pe, index, &[value], None) }
    }

    /// Starts a put with all checks; every form of a put uses this function. Over the network, a put with a
    /// counter is only started, and the counter counts it.
    ///
    /// # Safety
    /// The source stays unchanged until the counter has counted the put as sent.
    #[inline(always)]
    pub(crate) unsafe fn put_tracked(
        &self,
        operation: &'static str,
        pe: Pe,
        index: usize,
        source: &[T],
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        let Some(part) = self.place.fast(pe) else {
            // SAFETY: the caller has promised that the source stays unchanged.
            return unsafe { self.put_cold(operation, pe, index, source, counter) };
        };
        if !self.has_range(index, source.len()) {
            // SAFETY: the caller has promised that the source stays unchanged.
            return unsafe { self.put_cold(operation, pe, index, source, counter) };
        }
        // SAFETY: the range was compared with the array's length above.
        unsafe { part.write(index, source) };
        Ok(())
    }

    /// # Safety
    /// As `put_tracked`.
    #[cold]
    #[inline(never)]
    unsafe fn put_cold(
        &self,
        operation: &'static str,
        pe: Pe,
        index: usize,
        source: &[T],
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        let (elements, source) = ((index, source.len(), size_of::<T>()), source.as_ptr().cast());
        // SAFETY: the caller guarantees that the source stays unchanged.
        unsafe { self.access().checked_put(operation, pe, elements, source, counter) }
    }

    /// Starts a get with all checks; every form of a get uses this function. Over the network, a get with a
    /// counter is only started, and the counter counts it.
    ///
    /// # Safety
    /// No other code accesses the target until the counter has counted the get as done.
    #[inline(always)]
    pub(crate) unsafe fn get_tracked(
        &self,
        operation: &'static str,
        pe: Pe,
        index: usize,
        target: &mut [T],
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        let Some(part) = self.place.fast(pe) else {
            // SAFETY: the caller has promised that no other code accesses the target.
            return unsafe { self.get_cold(operation, pe, index, target, counter) };
        };
        if !self.has_range(index, target.len()) {
            // SAFETY: the caller has promised that no other code accesses the target.
            return unsafe { self.get_cold(operation, pe, index, target, counter) };
        }
        // SAFETY: the range was compared with the array's length above.
        unsafe { part.read(index, target) };
        Ok(())
    }

    /// # Safety
    /// As `get_tracked`.
    #[cold]
    #[inline(never)]
    unsafe fn get_cold(
        &self,
        operation: &'static str,
        pe: Pe,
        index: usize,
        target: &mut [T],
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        if counter.is_none() && pe < self.place.limit && self.has_range(index, target.len()) {
            // SAFETY: PE and range were checked, and the target is valid until this returns.
            let is_here = unsafe { self.g_short(pe, index, target.as_mut_ptr().cast(), size_of_val(target)) };
            if is_here {
                return Ok(());
            }
        }
        let (elements, target) = ((index, target.len(), size_of::<T>()), target.as_mut_ptr().cast());
        // SAFETY: the caller guarantees that the target is valid until the get is complete.
        unsafe { self.access().checked_get(operation, pe, elements, target, counter) }
    }

    /// Gets one element over the network.
    ///
    /// # Safety
    /// The member and the element exist.
    #[cold]
    #[inline(never)]
    unsafe fn g_far(&self, pe: Pe, index: usize) -> Result<T> {
        if !callback::may_wait() {
            return self.g_checked(pe, index);
        }
        let offset_bytes = self.place.offset_bytes() + index * size_of::<T>();
        let mut value = MaybeUninit::<T>::uninit();
        let (into, origin) = ((value.as_mut_ptr().cast(), size_of::<T>()), ptr::from_ref(self).cast());
        let from = (pe, offset_bytes);
        // SAFETY: the caller has promised that PE and element exist. In the world's arrays each PE's part is
        // at the same offset. The value is valid for writes until this returns, and this thread may wait.
        let is_here = unsafe { self.injector.get(from, into, origin, |get| Self::g_finish(get, into.0)) };
        if !is_here {
            // SAFETY: the caller has made the same promises for `g_far_noted`.
            return unsafe { self.g_far_noted(pe, index) };
        }
        // SAFETY: the get is complete, and has written the value.
        Ok(unsafe { value.assume_init() })
    }

    /// Finishes an injected get of one element.
    ///
    /// # Safety
    /// The get was started by `g_far`, with the target `into`.
    unsafe fn g_finish(get: Unfinished, into: *mut u8) {
        // SAFETY: the origin is the view of that call; the caller guarantees that the get has this target.
        unsafe {
            let view = &*get.origin.cast::<Self>();
            view.net_endpoint().finish_get(view.world().core(), get, into, size_of::<T>());
        }
    }

    /// Gets one element over the network, and records for the next get that this one was not alone.
    ///
    /// # Safety
    /// As `g_far`.
    #[cold]
    #[inline(never)]
    unsafe fn g_far_noted(&self, pe: Pe, index: usize) -> Result<T> {
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: the caller has promised that the PE and the element exist. The value is valid for writes
        // until this returns.
        unsafe {
            match self.g_short(pe, index, value.as_mut_ptr().cast(), size_of::<T>()) {
                true => Ok(value.assume_init()),
                false => self.g_checked(pe, index),
            }
        }
    }

    /// Injects a get of `bytes` bytes; `false` if it cannot be injected.
    ///
    /// # Safety
    /// The member exists; the elements are in the array; `into` is valid for writes until this returns.
    unsafe fn g_short(&self, pe: Pe, index: usize, into: *mut u8, bytes: usize) -> bool {
        let offset_bytes = self.place.offset_bytes() + index * size_of::<T>();
        if !callback::may_wait() {
            return false;
        }
        let (world, from) = (self.world(), (pe, offset_bytes));
        // SAFETY: the caller has promised that PE and elements exist. In the world's arrays each PE's part is
        // at the same offset. This function returns when the get is complete, and this thread may wait.
        unsafe { self.net_endpoint().inject_get(world.core(), self.injector, from, (into, bytes)) }
    }

    #[cold]
    #[inline(never)]
    fn g_checked(&self, pe: Pe, index: usize) -> Result<T> {
        self.check("g", pe, index, 1)?;
        self.count_get(1);
        let (endpoint, source) = match self.way("g", pe, index) {
            // SAFETY: `check` has found that the element exists.
            Way::Mapped(part) => return Ok(unsafe { part.load(index) }),
            Way::Net(endpoint, source) => (endpoint, source),
        };
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: PE and index were checked; without a counter the get is complete when the call returns.
        unsafe {
            endpoint.get(self.world().core(), source, value.as_mut_ptr().cast(), size_of::<T>(), None);
            Ok(value.assume_init())
        }
    }

    pub(crate) fn count_put(&self, count: usize) {
        self.access().count_put(count * size_of::<T>());
    }

    pub(crate) fn count_get(&self, count: usize) {
        self.access().count_get(count * size_of::<T>());
    }

    /// Starts a put; between PEs that map each other it is complete at return. The source is free at return
    /// if there is no counter, or else when the counter has counted the put as sent.
    ///
    /// # Safety
    /// The range lies in the array on a PE of the job. The source stays unchanged until it is free.
    pub(crate) unsafe fn start_put(
        &self,
        operation: &'static str,
        pe: Pe,
        index: usize,
        source: &[T],
        counter: Option<&CompletionCounter>,
    ) {
        let (at, bytes) = ((pe, index * size_of::<T>()), size_of_val(source));
        // SAFETY: the caller guarantees the range, and that the source stays unchanged.
        unsafe { self.access().put(operation, at, (source.as_ptr().cast(), bytes), counter) };
    }

    /// Starts a get; between PEs that map each other, and without a counter, it is complete at return.
    ///
    /// # Safety
    /// The range lies in the array on a PE of the job. No other code accesses the target until the get is
    /// complete.
    pub(crate) unsafe fn start_get(
        &self,
        operation: &'static str,
        pe: Pe,
        index: usize,
        target: &mut [T],
        counter: Option<&CompletionCounter>,
    ) {
        let (at, bytes) = ((pe, index * size_of::<T>()), size_of_val(target));
        // SAFETY: the caller guarantees the range, and that no other code accesses the target.
        unsafe { self.access().get(operation, at, (target.as_mut_ptr().cast(), bytes), counter) };
    }
}

/// A handle to the part of a symmetric array on one PE, for many operations there; see [`View::on`].
pub struct On<'a, T: Element> {
    pub(crate) part: Part<T>,
    /// The number of elements that the fast path may access: all, or 0 if operations on the PE use the
    /// network or are counted. In that case `part` is not the PE's part.
    pub(crate) fast_len: usize,
    pub(crate) view: &'a View<'a, T>,
    pub(crate) pe: Pe,
}

impl<T: Element> On<'_, T> {
    /// Wakes the PE, which sleeps until its part of the array changes.
    #[cold]
    #[inline(never)]
    pub(crate) fn ring(&self) {
        self.view.ring(self.pe);
    }

    /// Puts one element, as [`View::p`].
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn p(&self, index: usize, value: T) -> Result<()> {
        if index >= self.fast_len {
            return self.p_cold(index, value);
        }
        // SAFETY: the index was compared with the array's length above.
        unsafe { self.part.store(index, value) };
        Ok(())
    }

    /// The arguments have the order of `p`. The black box keeps the compiler from passing the fields of
    /// `self` one by one instead, which would move registers on the fast path.
    #[cold]
    #[inline(never)]
    fn p_cold(&self, index: usize, value: T) -> Result<()> {
        let this = std::hint::black_box(self);
        this.view.p(this.pe, index, value)
    }

    /// Gets one element, as [`View::g`].
    ///
    /// # Errors
    /// If there is no such element.
    #[inline]
    pub fn g(&self, index: usize) -> Result<T> {
        if index < self.fast_len {
            // SAFETY: the index was compared with the array's length above.
            return Ok(unsafe { self.part.load(index) });
        }
        self.g_cold(index)
    }

    #[cold]
    #[inline(never)]
    fn g_cold(&self, index: usize) -> Result<T> {
        let this = std::hint::black_box(self);
        this.view.g(this.pe, index)
    }

    /// Puts elements, as [`View::put`].
    ///
    /// # Errors
    /// If the range exceeds the array.
    #[inline]
    pub fn put(&self, index: usize, source: &[T]) -> Result<()> {
        if index <= self.fast_len && source.len() <= self.fast_len - index {
            // SAFETY: the range was compared with the array's length above.
            unsafe { self.part.write(index, source) };
            return Ok(());
        }
        // SAFETY: without a counter the source is free when this returns.
        unsafe { self.view.put_cold("put", self.pe, index, source, None) }
    }

    /// Gets elements, as [`View::get`].
    ///
    /// # Errors
    /// If the range exceeds the array.
    #[inline]
    pub fn get(&self, index: usize, target: &mut [T]) -> Result<()> {
        if index <= self.fast_len && target.len() <= self.fast_len - index {
            // SAFETY: the range was compared with the array's length above.
            unsafe { self.part.read(index, target) };
            return Ok(());
        }
        // SAFETY: without a counter the get is complete when this returns.
        unsafe { self.view.get_cold("get", self.pe, index, target, None) }
    }
}
