//! Signals: words that announce the delivery of data. A PE that sees the signal of a put, by a wait or a
//! test, sees the data of that put.
//!
//! Invariant: the signal is issued after its data are delivered. Between PEs that map each other the data are
//! written first, and the atomic that signals releases them. Over a network whose puts can signal, both are
//! one operation. Over other networks a completion counter counts the data, and progress issues the signal
//! once they are delivered; in a scope and with `put_signal_nbi` the origin does not wait for that, and
//! `put_signal` returns once the data are delivered. The signal's word has the same executor as every other
//! atomic. Source: OpenSHMEM 1.6, section 9.9.

use crate::Pe;
use crate::array::amo::AtomicElement;
use crate::array::local::Local;
use crate::array::view::{View, Way};
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::base::signal_op::SignalOp;
use pelago_core::endpoint::completion_counter::CompletionCounter;
use pelago_core::memory::segment::Part;
use pelago_fabric::sync::{Ordering, fence, fence_after_update};

/// The signal of a put: the word, and its update.
#[derive(Clone, Copy)]
pub(crate) struct Signal<'s> {
    pub(crate) words: &'s View<'s, u64>,
    pub(crate) index: usize,
    pub(crate) op: SignalOp,
}

impl<T: Element> View<'_, T> {
    /// Puts elements and then signals: writes `source` to the elements from `index` on, on `pe`, and when
    /// they are delivered, updates element `signal_index` of `signals` there. A PE that sees the signal, by
    /// [`wait`](Local::wait) or [`test`](Local::test), sees these data; the signal does not cover other puts.
    /// An empty put signals as well. The source may be reused at return; data and signal are complete after a
    /// quiet of the world, or of the context that this array (not `signals`) is seen through.
    ///
    /// ```
    /// use pelago::{Comparison, SignalOp};
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let (data, arrived) = (world.alloc_zeroed::<f64>(100)?, world.alloc_zeroed::<u64>(1)?);
    /// if world.my_pe() == 0 {
    ///     data.put_signal(1, 0, &[1.5; 100], &arrived, 0, SignalOp::Add(1))?;
    /// } else {
    ///     arrived.local().wait(0, Comparison::Ge, 1);
    ///     assert_eq!(data.local().get(99), 1.5);
    /// }
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If there is no such PE, if one of the two ranges exceeds its array, or if the arrays belong to
    /// different worlds, or to spaces in which this rank is not the same PE; nothing is written then.
    #[inline]
    pub fn put_signal(
        &self,
        pe: Pe,
        index: usize,
        source: &[T],
        signals: &View<'_, u64>,
        signal_index: usize,
        op: SignalOp,
    ) -> Result<()> {
        let signal = Signal { words: signals, index: signal_index, op };
        let (Some(part), Some(word)) = (self.place.fast(pe), signals.place.fast(pe)) else {
            return self.put_signal_cold(pe, index, source, signal);
        };
        let has_ranges = self.has_range(index, source.len()) && signal_index < signals.len();
        if !has_ranges || !std::ptr::eq(self.region(), signals.region()) {
            return self.put_signal_cold(pe, index, source, signal);
        }
        // SAFETY: both ranges were compared with the lengths of their arrays above.
        unsafe {
            part.write(index, source);
            signals.raise((word, pe), signal_index, op);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn put_signal_cold(&self, pe: Pe, index: usize, source: &[T], signal: Signal<'_>) -> Result<()> {
        let mut outcome = Ok(());
        let start = |counter: Option<&CompletionCounter>| {
            // SAFETY: the source is free when this returns: at once without a network or if the put is
            // injected, or else because `track` waits for it.
            unsafe { self.start_put_signal("put_signal", (pe, index), source, signal, counter) }
        };
        match &self.world().core().net {
            None => start(None),
            Some(net) if net.signals_injected(size_of_val(source)) => start(None),
            Some(_) => {
                self.check_pe("put_signal", pe)?;
                let to = ("put_signal", self.region().pe(pe));
                self.world()
                    .core()
                    .track(to, CompletionCounter::is_sent, |counter| outcome = start(Some(counter)));
                outcome
            }
        }
    }

    /// Puts and signals as [`put_signal`](View::put_signal), but does not wait: the source is in use until
    /// the next quiet of its context (OpenSHMEM's `put_signal_nbi`). In safe code,
    /// [`Region::put_signal`](crate::Region::put_signal) does the same.
    ///
    /// # Errors
    /// As [`put_signal`](View::put_signal).
    ///
    /// # Safety
    /// The source is not written, moved or freed before a [`quiet`](crate::World::quiet), of the world or
    /// of the context that this array is seen through, has returned.
    pub unsafe fn put_signal_nbi(
        &self,
        pe: Pe,
        index: usize,
        source: &[T],
        signals: &View<'_, u64>,
        signal_index: usize,
        op: SignalOp,
    ) -> Result<()> {
        let signal = Signal { words: signals, index: signal_index, op };
        // SAFETY: the caller guarantees that the source stays unchanged until quiet.
        unsafe { self.start_put_signal("put_signal_nbi", (pe, index), source, signal, None) }
    }

    /// Starts a put with its signal, with all checks. The counter counts both; without a counter only the
    /// quiet of its endpoint observes their completion.
    ///
    /// # Safety
    /// The source stays unchanged until the counter has counted the put as sent, or without a counter until
    /// the endpoint is quiet.
    pub(crate) unsafe fn start_put_signal(
        &self,
        operation: &'static str,
        (pe, index): (Pe, usize),
        source: &[T],
        signal: Signal<'_>,
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        self.check_signal(operation, pe, index, source.len(), signal)?;
        let world = self.world();
        self.count_put(source.len());
        let _span = self.access().record(operation, pe, size_of_val(source));
        world.core().tally.add(|counts| counts.atomics += 1);
        let ways = (self.way(operation, pe, index), signal.words.way(operation, pe, signal.index));
        let (endpoint, target, word) = match ways {
            (Way::Net(endpoint, target), Way::Net(_, word)) => (endpoint, target, word),
            (Way::Mapped(part), Way::Mapped(word)) => {
                // SAFETY: `check_signal` has found that both ranges lie in their arrays.
                unsafe {
                    part.write(index, source);
                    signal.words.raise((word, pe), signal.index, signal.op);
                }
                return Ok(());
            }
            _ => unreachable!("PE {pe} is mapped for one array and not for another"),
        };
        if endpoint.signals(size_of_val(source)) {
            let (source, bytes) = (source.as_ptr().cast(), size_of_val(source));
            // SAFETY: ranges and PE were checked, and the caller guarantees that the source stays unchanged.
            unsafe {
                endpoint.put_signal(
                    world.core(),
                    (target, source, bytes),
                    (word, signal.op.atomic()),
                    counter,
                )
            };
            return Ok(());
        }
        let data = world.core().completions.open();
        // SAFETY: ranges and PE were checked, and an array is aligned for its elements. The caller guarantees
        // that the source stays unchanged; the counter counts it as sent only after the data are complete.
        unsafe {
            endpoint.put(world.core(), target, source.as_ptr().cast(), size_of_val(source), Some(&data));
            world.core().start_atomic_after(data, endpoint, word, signal.op.atomic(), counter);
        }
        Ok(())
    }

    /// The error of a put or of its signal, whichever is found first.
    fn check_signal(
        &self,
        operation: &'static str,
        pe: Pe,
        index: usize,
        count: usize,
        signal: Signal<'_>,
    ) -> Result<()> {
        self.check_pe(operation, pe)?;
        // One region has the same PEs for both.
        if !std::ptr::eq(self.region(), signal.words.region()) {
            self.check_same_pe(operation, pe, signal)?;
        }
        self.check("the put of put_signal", pe, index, count)?;
        signal.words.check("the signal of put_signal", pe, signal.index, 1)
    }

    /// Refuses a signal whose array has another PE of this rank, or none. This array has one.
    pub(crate) fn check_same_pe(&self, operation: &'static str, pe: Pe, signal: Signal<'_>) -> Result<()> {
        signal.words.check_world(operation, self.world().core())?;
        signal.words.check_pe(operation, pe)?;
        let [data, word] = [self.region(), signal.words.region()].map(|region| region.pe(pe));
        if data == word {
            return Ok(());
        }
        let reason = format!(
            "rank {pe} is PE {data} for the data and PE {word} for the signals. Allocate both arrays in the \
             world, or both in one space"
        );
        Err(ErrorKind::BadPattern { me: self.world().my_pe(), operation, reason }.into())
    }
}

impl View<'_, u64> {
    /// Signals without data: updates element `index` on `pe`. It is not ordered after other operations,
    /// unless a fence or a quiet is in between. It is complete at the target after
    /// [`quiet`](crate::World::quiet).
    ///
    /// # Errors
    /// If there is no such PE or element; the element is not changed then.
    #[inline]
    pub fn signal(&self, pe: Pe, index: usize, op: SignalOp) -> Result<()> {
        let Some(part) = self.place.fast(pe) else { return self.signal_cold(pe, index, op) };
        if index >= self.len() {
            return self.signal_cold(pe, index, op);
        }
        // SAFETY: the index was compared with the length of the array above.
        unsafe { self.raise((part, pe), index, op) };
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn signal_cold(&self, pe: Pe, index: usize, op: SignalOp) -> Result<()> {
        self.amo_cold("signal", pe, index, &op.atomic())
    }

    /// Signals a PE whose part is mapped, and wakes it if it sleeps until this array changes.
    ///
    /// # Safety
    /// The part is the part on `pe`, and has the element.
    #[inline(always)]
    pub(crate) unsafe fn raise(&self, (part, pe): (Part<u64>, Pe), index: usize, op: SignalOp) {
        let (op, value) = op.parts();
        // SAFETY: the caller has promised that the part has this element. The array is aligned for it.
        unsafe {
            // SYNC POINT signal: releases the data that were written before.
            u64::execute(part.element(index), op, value);
        }
        // SYNC POINT doorbell: orders the change before the check for sleepers.
        fence_after_update();
        if part.has_waiters() {
            self.ring(pe);
        }
    }
}

impl Local<'_, u64> {
    /// Reads a signal; data that were put with it are then visible. It makes no progress: to wait, use
    /// [`wait`](Local::wait), or call [`progress`](crate::World::progress) between two reads.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    #[track_caller]
    pub fn signal_fetch(&self, index: usize) -> u64 {
        let value = self.get(index);
        // SYNC POINT signal: acquires the data that were put with the signal.
        fence(Ordering::Acquire);
        value
    }
}
