//! Transfers of scattered elements: vector, indexed and strided transfers, as in GASNet's VIS interface.
//!
//! Invariant: a transfer is checked as a whole before the first element moves, and moves in *runs*: maximal
//! ranges that are contiguous in the array and on this side. On a mapped PE a run is a copy. Over the network
//! it is packed or issued separately, depending on its size ([`PACKED_RUN_BYTES`]): the target's progress
//! scatters or gathers packed data, and its reply completes them. Source: GASNet-EX, specification 0.19, the
//! chapter on non-contiguous transfers.

mod grid;
mod indexed;
mod region;
mod strided;
mod vector;

pub use grid::Dimension;
pub use indexed::Indexed;
pub use strided::{Shape, Strided};

use crate::Pe;
use crate::array::signal::Signal;
use crate::array::view::{View, Way};
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::endpoint::completion_counter::CompletionCounter;
use pelago_core::endpoint::parcel::Parcel;
use pelago_core::endpoint::{Endpoint, RemoteAddress};
use pelago_core::memory::route::Executor;
use pelago_core::memory::segment::Part;
use pelago_fabric::AtomicKind;
use std::sync::Arc;

/// The maximum length of a run that is packed into a message, in bytes, if there are enough such runs. A
/// separate put costs a processor and a network card some 100 ns, in which a network of 10 GB/s moves 1 KiB;
/// but packed data are copied twice, and wait until the target makes progress.
const PACKED_RUN_BYTES: usize = 256;
/// The minimum number of such runs for packing. A message and its reply cost two calls at each of the two
/// PEs, as much as four puts; with few runs it does not pay to wait for the target's progress.
const PACKED_RUNS_MIN: usize = 16;
/// The minimum number of the longest packed runs that fit in a message. With fewer runs a message does not
/// pay, so the limit of a packed run is lower if messages are short.
const RUNS_PER_MESSAGE_MIN: usize = 4;

/// Elements that are contiguous in the array and on this side.
#[derive(Debug)]
pub(crate) struct Run<T> {
    /// The index of the first element in the array.
    index: usize,
    /// The address of the first element on this side.
    start: *mut T,
    count: usize,
    /// Number of the slice that contains them: runs of different slices are never merged.
    slice: usize,
}

impl<T> Run<T> {
    fn bytes(&self) -> usize {
        self.count * size_of::<T>()
    }

    /// Whether `next` continues this run.
    fn goes_on_with(&self, next: &Run<T>) -> bool {
        let adjoins = self.start.wrapping_add(self.count) == next.start && self.slice == next.slice;
        adjoins && self.index + self.count == next.index
    }
}

/// A transfer that was checked: the ranges that it moves, in some order.
pub(crate) trait Runs<T> {
    /// Calls `visit` for each range. Ranges may be adjacent, but none is empty.
    fn each(&self, visit: impl FnMut(Run<T>));

    /// The number of elements of all ranges.
    fn elements(&self) -> usize;
}

/// Calls `visit` for each run, after merging adjacent ranges.
fn each_merged<T>(runs: &impl Runs<T>, mut visit: impl FnMut(Run<T>)) {
    // An empty run stands for none, because no run is empty.
    let mut last = Run { index: 0, start: std::ptr::null_mut(), count: 0, slice: 0 };
    runs.each(|run| {
        if last.count > 0 && last.goes_on_with(&run) {
            last.count += run.count;
            return;
        }
        let before = std::mem::replace(&mut last, run);
        if before.count > 0 {
            visit(before);
        }
    });
    if last.count > 0 {
        visit(last);
    }
}

/// The decision which runs of a transfer over the network are packed.
struct Plan {
    /// Runs of up to this number of bytes are packed; 0 if none are.
    packed_bytes: usize,
    /// Whether all runs are packed.
    is_packed_whole: bool,
}

impl Plan {
    /// The rule: runs of up to `PACKED_RUN_BYTES` are packed if there are `PACKED_RUNS_MIN` or more.
    fn new<T>(runs: &impl Runs<T>, message_bytes: usize) -> Plan {
        let packed_bytes = match message_bytes / RUNS_PER_MESSAGE_MIN {
            // In such a short message the list of ranges would leave no space for data.
            0..16 => return Plan { packed_bytes: 0, is_packed_whole: false },
            most => most.min(PACKED_RUN_BYTES),
        };
        let (mut short, mut long) = (0, 0);
        each_merged(runs, |run| *if run.bytes() <= packed_bytes { &mut short } else { &mut long } += 1);
        match short >= PACKED_RUNS_MIN {
            true => Plan { packed_bytes, is_packed_whole: long == 0 },
            false => Plan { packed_bytes: 0, is_packed_whole: false },
        }
    }

    fn packs<T>(&self, run: &Run<T>) -> bool {
        (1..=self.packed_bytes).contains(&run.bytes())
    }
}

impl<T: Element> View<'_, T> {
    /// Starts the put of checked runs, and of the signal that follows them. The counter counts the whole
    /// operation: the sources are free when it has counted it as sent. Without a counter they are free at
    /// return.
    ///
    /// # Safety
    /// PE, runs and signal were checked: the runs lie in the array and are valid for reads until the sources
    /// are free.
    unsafe fn put_runs(
        &self,
        (operation, pe): (&'static str, Pe),
        runs: &impl Runs<T>,
        signal: Option<Signal<'_>>,
        counter: Option<&CompletionCounter>,
    ) {
        if self.world().core().tally.is_on() {
            self.count_put(runs.elements());
            self.world().core().tally.add(|counts| counts.atomics += u64::from(signal.is_some()));
        }
        let _span = self.access().record(operation, pe, runs.elements() * size_of::<T>());
        let part = match self.way(operation, pe, 0) {
            Way::Mapped(part) => part,
            Way::Net(endpoint, target) => {
                // SAFETY: the caller has made the same promises.
                return unsafe { self.put_over_net(endpoint, (pe, target), runs, signal, counter) };
            }
        };
        each_merged(runs, |run| {
            // SAFETY: the caller guarantees that every run is valid in the array and on this side.
            unsafe { part.write(run.index, std::slice::from_raw_parts(run.start, run.count)) };
        });
        if let Some(signal) = signal
            && let Way::Mapped(word) = signal.words.way(operation, pe, signal.index)
        {
            // SAFETY: the caller has checked that the signal's array has this element.
            unsafe { signal.words.raise((word, pe), signal.index, signal.op) };
        }
    }

    /// Starts the get of checked runs. Without a counter the get is complete at return, else when the counter
    /// has counted it as done. Where runs overlap on this side, it is unspecified whose elements remain.
    ///
    /// # Safety
    /// PE and runs were checked: the runs lie in the array and are valid for writes until the get is
    /// complete.
    unsafe fn get_runs(
        &self,
        (operation, pe): (&'static str, Pe),
        runs: &impl Runs<T>,
        counter: Option<&CompletionCounter>,
    ) {
        if self.world().core().tally.is_on() {
            self.count_get(runs.elements());
        }
        let _span = self.access().record(operation, pe, runs.elements() * size_of::<T>());
        let part = match self.way(operation, pe, 0) {
            Way::Mapped(part) => part,
            Way::Net(endpoint, target) => {
                // SAFETY: the caller has made the same promises.
                return unsafe { self.get_over_net(endpoint, (pe, target), runs, counter) };
            }
        };
        each_merged(runs, |run| {
            // SAFETY: the caller guarantees that every run is valid in the array and on this side.
            unsafe { part.read(run.index, std::slice::from_raw_parts_mut(run.start, run.count)) };
        });
    }

    /// # Safety
    /// As `put_runs`.
    #[cold]
    #[inline(never)]
    unsafe fn put_over_net(
        &self,
        endpoint: &Arc<Endpoint>,
        (pe, target): (Pe, RemoteAddress),
        runs: &impl Runs<T>,
        signal: Option<Signal<'_>>,
        counter: Option<&CompletionCounter>,
    ) {
        let (operation, world) = (target.operation, self.world());
        let plan = self.plan(endpoint, target, runs);
        let start = |counter: &CompletionCounter| {
            let word = signal.and_then(|s| match s.words.way(operation, pe, s.index) {
                Way::Net(_, word) => Some((s, word)),
                Way::Mapped(_) => None,
            });
            let Some((signal, word)) = word else {
                // SAFETY: the caller guarantees that the runs were checked and stay valid.
                return unsafe { self.issue_puts(endpoint, (pe, target), (runs, &plan), counter) };
            };
            // The target's processor executes its messages in their order.
            let is_in_order = plan.is_packed_whole
                && word.pe == target.pe
                && world.core().routes.executor(word.pe, AtomicKind::U64, |kind| endpoint.executes(kind))
                    == Executor::Target;
            let atomic = signal.op.atomic();
            // SAFETY: the caller guarantees that the runs and the signal's word were checked; the counter
            // counts the sources as sent only after the data are complete.
            unsafe {
                if is_in_order {
                    self.issue_puts(endpoint, (pe, target), (runs, &plan), counter);
                    world.core().start_atomic(endpoint, word, &atomic, std::ptr::null_mut(), Some(counter));
                } else {
                    let data = world.core().completions.open();
                    self.issue_puts(endpoint, (pe, target), (runs, &plan), &data);
                    world.core().start_atomic_after(data, endpoint, word, atomic, Some(counter));
                }
            }
        };
        self.group(operation, target.pe, counter, CompletionCounter::is_sent, start);
    }

    /// # Safety
    /// As `get_runs`.
    #[cold]
    #[inline(never)]
    unsafe fn get_over_net(
        &self,
        endpoint: &Arc<Endpoint>,
        (pe, target): (Pe, RemoteAddress),
        runs: &impl Runs<T>,
        counter: Option<&CompletionCounter>,
    ) {
        let plan = self.plan(endpoint, target, runs);
        self.group(target.operation, target.pe, counter, CompletionCounter::is_done, |counter| {
            // SAFETY: the caller guarantees that the runs were checked and stay valid.
            unsafe { self.issue_gets(endpoint, (pe, target), (runs, &plan), counter) };
        });
    }

    /// The plan for the runs. No data are packed for this PE itself: its own progress would have to unpack
    /// them.
    fn plan(&self, endpoint: &Endpoint, target: RemoteAddress, runs: &impl Runs<T>) -> Plan {
        match target.pe == self.world().my_pe() || size_of::<T>() == 0 {
            true => Plan { packed_bytes: 0, is_packed_whole: false },
            false => Plan::new(runs, endpoint.message_bytes()),
        }
    }

    /// # Safety
    /// As `put_runs`, with the counter.
    unsafe fn issue_puts(
        &self,
        endpoint: &Arc<Endpoint>,
        (pe, target): (Pe, RemoteAddress),
        (runs, plan): (&impl Runs<T>, &Plan),
        counter: &CompletionCounter,
    ) {
        let mut parcel = Parcel::to_scatter(endpoint.message_bytes());
        each_merged(runs, |run| {
            // SAFETY: the caller guarantees that every run is valid in the array and on this side.
            unsafe {
                let source = std::slice::from_raw_parts(run.start, run.count);
                if !plan.packs(&run) {
                    return self.start_put(target.operation, pe, run.index, source, Some(counter));
                }
                if !parcel.has_room(run.bytes()) {
                    self.world().core().send_parcel(endpoint, target, parcel.take(), counter);
                }
                let offset_bytes = target.offset_bytes + run.index * size_of::<T>();
                parcel.add_source(offset_bytes, source.as_ptr().cast(), run.bytes());
            }
        });
        if !parcel.is_empty() {
            // SAFETY: the caller guarantees that the runs stay valid, from which the parcel was made.
            unsafe { self.world().core().send_parcel(endpoint, target, parcel, counter) };
        }
    }

    /// # Safety
    /// As `get_runs`, with the counter.
    unsafe fn issue_gets(
        &self,
        endpoint: &Arc<Endpoint>,
        (pe, target): (Pe, RemoteAddress),
        (runs, plan): (&impl Runs<T>, &Plan),
        counter: &CompletionCounter,
    ) {
        let mut parcel = Parcel::to_gather(endpoint.message_bytes());
        each_merged(runs, |run| {
            // SAFETY: the caller guarantees that every run is valid in the array and on this side.
            unsafe {
                if !plan.packs(&run) {
                    let into = std::slice::from_raw_parts_mut(run.start, run.count);
                    return self.start_get(target.operation, pe, run.index, into, Some(counter));
                }
                if !parcel.has_room(run.bytes()) {
                    self.world().core().send_parcel(endpoint, target, parcel.take(), counter);
                }
                let offset_bytes = target.offset_bytes + run.index * size_of::<T>();
                parcel.add_home(offset_bytes, run.start.cast(), run.bytes());
            }
        });
        if !parcel.is_empty() {
            // SAFETY: the caller guarantees that the runs stay valid, from which the parcel was made.
            unsafe { self.world().core().send_parcel(endpoint, target, parcel, counter) };
        }
    }

    /// Starts operations with the caller's counter, or with a new counter that is then waited for.
    fn group(
        &self,
        operation: &'static str,
        pe: Pe,
        counter: Option<&CompletionCounter>,
        is_enough: fn(&CompletionCounter) -> bool,
        start: impl FnOnce(&CompletionCounter),
    ) {
        match counter {
            Some(counter) => start(counter),
            None => self.world().core().track((operation, pe), is_enough, start),
        }
    }

    /// The checks that do not depend on the pattern: PE, signal, and whether the array is open to operations.
    fn check_rest(
        &self,
        operation: &'static str,
        (pe, index): (Pe, usize),
        signal: Option<Signal<'_>>,
    ) -> Result<()> {
        match self.near(pe, signal).is_some() && index <= self.len() {
            true => Ok(()),
            false => self.check_rest_cold(operation, (pe, index), signal),
        }
    }

    /// The PE's part, if the transfer consists of copies only: the part is mapped, operations are not
    /// counted, and there is no signal.
    #[inline(always)]
    fn near(&self, pe: Pe, signal: Option<Signal<'_>>) -> Option<Part<T>> {
        self.place.fast(pe).filter(|_| signal.is_none())
    }

    #[cold]
    #[inline(never)]
    fn check_rest_cold(
        &self,
        operation: &'static str,
        (pe, index): (Pe, usize),
        signal: Option<Signal<'_>>,
    ) -> Result<()> {
        self.check_pe(operation, pe)?;
        if let Some(signal) = signal {
            self.check_same_pe(operation, pe, signal)?;
            signal.words.check(operation, pe, signal.index, 1)?;
        }
        self.check(operation, pe, index, 0)
    }

    fn refuse<R>(&self, operation: &'static str, reason: String) -> Result<R> {
        Err(ErrorKind::BadPattern { me: self.world().my_pe(), operation, reason }.into())
    }
}
