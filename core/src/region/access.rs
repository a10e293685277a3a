//! One-sided operations on symmetric memory as bytes, with all checks. An interface with element types adds
//! its own fast path for memory that is mapped.
//!
//! Invariant: PE and range are checked before anything is started, and nothing is started if a check fails.

use crate::Pe;
use crate::base::awaited::Awaited;
use crate::base::counters::Counters;
use crate::base::error::{ErrorKind, Result};
use crate::base::trace::{Category, Event, Span};
use crate::coll::schedule::Rank;
use crate::coll::symmetric_region::SymmetricRegion;
use crate::coll::teams::Teams;
use crate::endpoint::completion_counter::CompletionCounter;
use crate::endpoint::{Endpoint, RemoteAddress};
use crate::memory::segment::{ArrayLayout, Part};
use pelago_fabric::Atomic;
use pelago_fabric::amo::write_word;
use pelago_fabric::shm::doorbell::Cause;
use pelago_fabric::sync::{Ordering, fence, fence_after_update};
use std::slice;
use std::sync::Arc;

/// Symmetric memory, and the endpoint through which operations on it go over the network.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    pub world: &'a Teams,
    pub region: &'a SymmetricRegion,
    pub layout: ArrayLayout<u8>,
    /// The endpoint of a context; `None` for that of the PE.
    pub endpoint: Option<&'a Arc<Endpoint>>,
    /// Whether an exclusive phase keeps this PE out.
    pub is_closed: bool,
}

/// The way to the memory of a PE.
pub enum Way<'a> {
    /// It is mapped here.
    Mapped(Part<u8>),
    /// It is reached over the network.
    Net(&'a Arc<Endpoint>, RemoteAddress),
}

impl<'a> Access<'a> {
    /// Refuses a PE, named by its rank, or a range that does not exist; `index` and `count` are elements of
    /// `element_bytes` bytes.
    ///
    /// # Errors
    /// If there is no such PE or element, an exclusive phase has not ended here, or the job has failed.
    #[inline]
    pub fn check(&self, operation: &'static str, pe: Pe, elements: (usize, usize, usize)) -> Result<()> {
        if self.is_sound(pe, elements) { Ok(()) } else { self.refuse(operation, pe, elements) }
    }

    /// Whether a check would find no error.
    #[inline(always)]
    fn is_sound(&self, pe: Pe, (index, count, element_bytes): (usize, usize, usize)) -> bool {
        let len = self.layout.len / element_bytes.max(1);
        pe < self.region.len()
            && count <= len
            && index <= len - count
            && !self.is_closed
            && !self.world.memory.header().failure.is_recorded()
    }

    /// The error of a check, if there is one.
    #[cold]
    #[inline(never)]
    fn refuse(
        &self,
        operation: &'static str,
        pe: Pe,
        (index, count, element_bytes): (usize, usize, usize),
    ) -> Result<()> {
        self.check_pe(operation, pe)?;
        let (me, len) = (self.world.my_pe(), self.layout.len / element_bytes.max(1));
        if len.checked_sub(count).is_none_or(|last| index > last) {
            let pe = self.region.pe(pe);
            return Err(ErrorKind::OutOfRange { me, operation, pe, index, count, len }.into());
        }
        self.check_open(operation)?;
        match self.world.has_failed() {
            Some(reason) => Err(ErrorKind::JobFailed { me, operation, reason }.into()),
            None => Ok(()),
        }
    }

    /// Refuses a PE that does not exist.
    ///
    /// # Errors
    /// If there is no such PE.
    #[inline]
    pub fn check_pe(&self, operation: &'static str, pe: Pe) -> Result<()> {
        let n_ranks = self.region.len();
        match pe < n_ranks {
            true => Ok(()),
            false => Err(self.world.no_such_rank(operation, pe, n_ranks)),
        }
    }

    /// Refuses memory that an exclusive phase keeps this PE out of.
    ///
    /// # Errors
    /// If it does.
    #[inline]
    pub fn check_open(&self, operation: &'static str) -> Result<()> {
        match self.is_closed {
            true => Err(ErrorKind::ArrayClosed { me: self.world.my_pe(), operation }.into()),
            false => Ok(()),
        }
    }

    /// The way to an offset of the memory of the PE with this rank, which exists.
    #[inline]
    pub fn way(&self, operation: &'static str, rank: Rank, offset_bytes: usize) -> Way<'a> {
        assert!(rank < self.region.len(), "{operation}: callers check that there is a PE {rank}");
        // SAFETY: the rank was compared with the number of members above.
        unsafe { self.way_to(operation, rank, offset_bytes) }
    }

    /// # Safety
    /// The region has a PE with this rank.
    #[inline(always)]
    unsafe fn way_to(&self, operation: &'static str, rank: Rank, offset_bytes: usize) -> Way<'a> {
        // SAFETY: the caller guarantees the rank.
        if let Some(part) = unsafe { self.layout.mapped(rank) } {
            return Way::Mapped(part);
        }
        let (pe, offset_bytes) = (self.region.pe(rank), self.region_offset(rank, offset_bytes));
        Way::Net(self.net_endpoint(), RemoteAddress { operation, pe, offset_bytes })
    }

    /// The endpoint for PEs that are not mapped.
    #[inline]
    pub fn net_endpoint(&self) -> &'a Arc<Endpoint> {
        self.endpoint.unwrap_or_else(|| self.world.net_endpoint())
    }

    /// Where an offset of this memory lies in the region of a PE, in bytes.
    #[inline]
    pub fn region_offset(&self, rank: Rank, offset_bytes: usize) -> usize {
        self.region.region_offset(rank, self.layout.offset_bytes() + offset_bytes)
    }

    /// Wakes a PE of this node, which sleeps until its part changes.
    #[cold]
    #[inline(never)]
    pub fn ring(&self, rank: Rank) {
        self.world.memory.near_block(self.region.pe(rank)).doorbell.ring(Cause::Data);
    }

    /// Counts a put, if operations are counted. A transfer in several pieces is one put.
    #[inline]
    pub fn count_put(&self, bytes: usize) {
        let count = |c: &Counters| Counters { puts: c.puts + 1, put_bytes: c.put_bytes + bytes as u64, ..*c };
        self.world.tally.add(|counters| *counters = count(counters));
    }

    /// Counts a get, likewise.
    #[inline]
    pub fn count_get(&self, bytes: usize) {
        let count = |c: &Counters| Counters { gets: c.gets + 1, get_bytes: c.get_bytes + bytes as u64, ..*c };
        self.world.tally.add(|counters| *counters = count(counters));
    }

    /// Records an operation, if this PE records them.
    #[inline]
    pub fn record(&self, operation: &'static str, rank: Rank, bytes: usize) -> Option<Span<'a>> {
        self.world.tally.span(|| Event::new(Category::Rma, operation).with(self.region.pe(rank), bytes))
    }

    /// A put of elements of `element_bytes` bytes from element `index` on, with all checks; counted, and
    /// started as [`put`](Access::put) does.
    ///
    /// # Errors
    /// As [`check`](Access::check).
    ///
    /// # Safety
    /// As [`put`](Access::put), for the source.
    pub unsafe fn checked_put(
        &self,
        operation: &'static str,
        rank: Rank,
        elements @ (index, count, element_bytes): (usize, usize, usize),
        source: *const u8,
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        self.check(operation, rank, elements)?;
        let (at, bytes) = ((rank, index * element_bytes), count * element_bytes);
        if self.world.tally.is_on() {
            // SAFETY: PE and range were checked; the caller guarantees the source.
            unsafe { self.put_watched(operation, at, (source, bytes), counter) };
            return Ok(());
        }
        // SAFETY: PE and range were checked; the caller guarantees the source.
        unsafe { self.put(operation, at, (source, bytes), counter) };
        Ok(())
    }

    /// A put that is counted or recorded.
    ///
    /// # Safety
    /// As [`put`](Access::put).
    #[cold]
    #[inline(never)]
    unsafe fn put_watched(
        &self,
        operation: &'static str,
        at: (Rank, usize),
        source: (*const u8, usize),
        counter: Option<&CompletionCounter>,
    ) {
        self.count_put(source.1);
        let _span = self.record(operation, at.0, source.1);
        // SAFETY: the caller guarantees the same.
        unsafe { self.put(operation, at, source, counter) };
    }

    /// The same of a get.
    ///
    /// # Errors
    /// As [`check`](Access::check).
    ///
    /// # Safety
    /// As [`get`](Access::get), for the target.
    pub unsafe fn checked_get(
        &self,
        operation: &'static str,
        rank: Rank,
        elements @ (index, count, element_bytes): (usize, usize, usize),
        target: *mut u8,
        counter: Option<&CompletionCounter>,
    ) -> Result<()> {
        self.check(operation, rank, elements)?;
        let (at, bytes) = ((rank, index * element_bytes), count * element_bytes);
        if self.world.tally.is_on() {
            // SAFETY: PE and range were checked; the caller guarantees the target.
            unsafe { self.get_watched(operation, at, (target, bytes), counter) };
            return Ok(());
        }
        // SAFETY: PE and range were checked; the caller guarantees the target.
        unsafe { self.get(operation, at, (target, bytes), counter) };
        Ok(())
    }

    /// A get that is counted or recorded.
    ///
    /// # Safety
    /// As [`get`](Access::get).
    #[cold]
    #[inline(never)]
    unsafe fn get_watched(
        &self,
        operation: &'static str,
        at: (Rank, usize),
        target: (*mut u8, usize),
        counter: Option<&CompletionCounter>,
    ) {
        self.count_get(target.1);
        let _span = self.record(operation, at.0, target.1);
        // SAFETY: the caller guarantees the same.
        unsafe { self.get(operation, at, target, counter) };
    }

    /// Starts a put; between PEs that map each other it is complete at return. The source is free at return
    /// if there is no counter, or else when the counter has counted the put as sent. It is complete at its
    /// target after a quiet, or when the counter has counted it as done.
    ///
    /// # Safety
    /// The range lies in this memory on a PE of the region. The source is valid for reads, and stays
    /// unchanged until it is free.
    #[inline(always)]
    pub unsafe fn put(
        &self,
        operation: &'static str,
        (rank, offset_bytes): (Rank, usize),
        (source, bytes): (*const u8, usize),
        counter: Option<&CompletionCounter>,
    ) {
        // SAFETY: the caller guarantees the rank.
        match unsafe { self.way_to(operation, rank, offset_bytes) } {
            // SAFETY: the caller guarantees range and source.
            Way::Mapped(part) => unsafe { part.write(offset_bytes, slice::from_raw_parts(source, bytes)) },
            // SAFETY: the caller guarantees range and source.
            Way::Net(endpoint, target) => unsafe {
                endpoint.put(self.world, target, source, bytes, counter);
            },
        }
    }

    /// Starts a get; between PEs that map each other, and without a counter, it is complete at return, or
    /// else when the counter has counted it as done.
    ///
    /// # Safety
    /// The range lies in this memory on a PE of the region. The target is valid for writes, and no other code
    /// accesses it until the get is complete.
    #[inline(always)]
    pub unsafe fn get(
        &self,
        operation: &'static str,
        (rank, offset_bytes): (Rank, usize),
        (target, bytes): (*mut u8, usize),
        counter: Option<&CompletionCounter>,
    ) {
        // SAFETY: the caller guarantees the rank.
        match unsafe { self.way_to(operation, rank, offset_bytes) } {
            // SAFETY: the caller guarantees range and target.
            Way::Mapped(part) => unsafe {
                part.read(offset_bytes, slice::from_raw_parts_mut(target, bytes));
            },
            // SAFETY: the caller guarantees range and target.
            Way::Net(endpoint, source) => unsafe {
                endpoint.get(self.world, source, target, bytes, counter);
            },
        }
    }

    /// Starts an atomic on the word at an offset. Between PEs that map each other it is complete at return,
    /// or else when the counter has counted it as done; without a counter only a quiet observes its
    /// completion. The old value goes to `old`, unless that is null.
    ///
    /// # Safety
    /// The word lies in this memory on a PE of the region, aligned to its size. `old` is null, or valid for
    /// the write of a word until the atomic is complete.
    pub unsafe fn atomic(
        &self,
        operation: &'static str,
        (rank, offset_bytes): (Rank, usize),
        atomic: &Atomic,
        old: *mut u8,
        counter: Option<&CompletionCounter>,
    ) {
        let at = (rank, offset_bytes);
        if self.world.tally.is_on() {
            // SAFETY: the caller guarantees the word, and that `old` is valid.
            return unsafe { self.atomic_watched(operation, at, atomic, old, counter) };
        }
        // SAFETY: the caller guarantees the word, and that `old` is valid.
        unsafe { self.perform_atomic(operation, at, atomic, old, counter) };
    }

    /// An atomic that is counted or recorded.
    ///
    /// # Safety
    /// As [`atomic`](Access::atomic).
    #[cold]
    #[inline(never)]
    unsafe fn atomic_watched(
        &self,
        operation: &'static str,
        at: (Rank, usize),
        atomic: &Atomic,
        old: *mut u8,
        counter: Option<&CompletionCounter>,
    ) {
        self.world.tally.add(|counters| counters.atomics += 1);
        let _span = self.record(operation, at.0, atomic.kind.bytes());
        // SAFETY: the caller guarantees the same.
        unsafe { self.perform_atomic(operation, at, atomic, old, counter) };
    }

    /// # Safety
    /// As [`atomic`](Access::atomic).
    #[inline(always)]
    unsafe fn perform_atomic(
        &self,
        operation: &'static str,
        (rank, offset_bytes): (Rank, usize),
        atomic: &Atomic,
        old: *mut u8,
        counter: Option<&CompletionCounter>,
    ) {
        let part = match self.way(operation, rank, offset_bytes) {
            Way::Mapped(part) => part,
            Way::Net(endpoint, target) => {
                // SAFETY: the caller guarantees the word, and that `old` is valid.
                return unsafe { self.world.start_atomic(endpoint, target, atomic, old, counter) };
            }
        };
        // SAFETY: the caller guarantees that the word exists and is aligned.
        let value = unsafe { atomic.execute(part.element(offset_bytes)) };
        // SYNC POINT doorbell: orders the change before the check for sleepers.
        fence_after_update();
        if part.has_waiters() {
            self.ring(rank);
        }
        if !old.is_null() {
            // SAFETY: the caller guarantees that the old value may be written.
            unsafe { write_word(atomic.kind, value, old) };
        }
    }

    /// Waits until `look`, which reads this PE's part by atomic loads, from element `index` on, has found
    /// something. Data that the writer put and fenced before it wrote these elements are then visible.
    #[inline]
    #[track_caller]
    pub fn until<R>(&self, index: usize, mut look: impl FnMut() -> Option<R>) -> R {
        let world = self.world;
        world.ring_sleepers_for_data();
        let mut found = look();
        if found.is_none() {
            world.wait_with(Awaited::Element { index }, Some(self.layout.own().waiters()), || {
                // A result is kept and not searched for again, because the element may have changed.
                if found.is_none() {
                    found = look();
                }
                found.is_some()
            });
        }
        // SYNC POINT put-order: acquires what the writer released by its fence before it wrote the element.
        fence(Ordering::Acquire);
        found.expect("a wait ends when something is found")
    }
}
