//! The shared memory endpoint: puts and gets are copies, complete when they return; messages go through the
//! receiver's inbox.

use super::doorbell::Cause;
use super::handout::{Handout, fetch, nonce_of};
use super::ring::{Envelope, Payload};
use super::segment::{Layout, Segment};
use crate::amo::{AtomicKind, write_word};
use crate::contract::{Never, Provider};
use crate::copy;
use crate::operation::{Amo, Get, Put};
use crate::sync::{Ordering, fence};
use crate::types::{Completions, Event, FabricError, FabricResult, Key, Limits, Pe, Remote, Status};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

/// A PE's endpoint in the memory of its node. PEs are numbered within the node, from 0; PE 0 creates the
/// memory.
pub struct Shm {
    me: Pe,
    /// The PEs of this process. Until `split` separates them, this endpoint is that of the lowest one.
    process: Range<Pe>,
    /// Whether messages arrive here. They do not arrive at a context.
    receives: bool,
    layout: Layout,
    limit: Duration,
    handout: Option<Handout>,
    segment: Option<Arc<Segment>>,
    /// Start and length of each region, relative to the heap.
    regions: HashMap<Key, (usize, usize)>,
    completions: Cell<Completions>,
    message: RefCell<Payload>,
}

impl Shm {
    /// Opens the endpoint of PE `me`; PE 0 creates the node's memory now, and its sizes apply to all PEs.
    /// `limit` bounds the wait in `connect`.
    ///
    /// # Errors
    /// If the node's memory cannot be created.
    pub fn open(me: Pe, layout: Layout, limit: Duration) -> FabricResult<Shm> {
        let mut shm = Shm::prepare(me, me == 0 && layout.n_pes > 1, limit)?;
        shm.place(me..me + 1, layout)?;
        Ok(shm)
    }

    /// Opens the endpoint of a process with its PEs, the lowest of which is `pe` in the job; their numbers
    /// within the node are not known yet. If `pe` may be the lowest of the node, the endpoint has an address
    /// at which it hands out the memory that it may have to create.
    ///
    /// # Errors
    /// If the system refuses the socket or the descriptor of the memory.
    pub fn prepare(pe: Pe, may_lead: bool, limit: Duration) -> FabricResult<Shm> {
        let mut shm = Shm::unconnected(0, Layout::new(1, 0, 0), limit);
        shm.handout = may_lead.then(|| Handout::open(pe)).transpose()?;
        Ok(shm)
    }

    /// Takes the numbers of this process's PEs within the node. All processes have the same number of PEs.
    /// Number 0 creates the node's memory, whose sizes apply to all PEs.
    ///
    /// # Errors
    /// If the node's memory cannot be created, or this PE was not prepared for that.
    pub fn place(&mut self, process: Range<Pe>, layout: Layout) -> FabricResult<()> {
        let (me, is_alone) = (process.start, process.len() == layout.n_pes);
        (self.me, self.process, self.layout) = (me, process, layout);
        if me != 0 {
            self.handout = None;
            return Ok(());
        }
        let segment = match &self.handout {
            Some(handout) => Segment::create_in(me, handout.memory(), layout, self.home())?,
            None if is_alone => Segment::create_in(me, Segment::descriptor(me)?, layout, self.home())?,
            None => {
                let what = "this PE is the lowest of its node, which its launcher has not said".to_owned();
                return Err(FabricError::Foreign { pe: me, what });
            }
        };
        segment.set_nonce(nonce_of(&self.address()?));
        self.segment = Some(Arc::new(segment));
        if is_alone {
            self.handout = None;
        }
        Ok(())
    }

    /// The endpoints of all PEs of this process, in their order, over one mapping. It is called after
    /// `connect`.
    ///
    /// # Panics
    /// Before `connect`.
    pub fn split(self) -> Vec<Shm> {
        let (segment, layout) = (Arc::clone(self.segment()), self.layout);
        let (others, limit) = (self.process.start + 1..self.process.end, self.limit);
        let other = |me| Shm::over(&segment, me, layout, limit);
        std::iter::once(self).chain(others.map(other)).collect()
    }

    /// Opens and connects the endpoints of PEs that are threads of this process, over one mapping.
    ///
    /// # Errors
    /// If the node's memory cannot be created.
    pub fn threads(layout: Layout) -> FabricResult<Vec<Shm>> {
        let segment = Arc::new(Segment::create(0, layout)?.0);
        Ok((0..layout.n_pes).map(|me| Shm::over(&segment, me, layout, Duration::ZERO)).collect())
    }

    /// The node's memory, after `connect`.
    ///
    /// # Panics
    /// Before `connect`.
    pub fn segment(&self) -> &Arc<Segment> {
        self.segment.as_ref().expect("the endpoint is connected before its memory is used")
    }

    fn over(segment: &Arc<Segment>, me: Pe, layout: Layout, limit: Duration) -> Shm {
        let mut shm = Shm::unconnected(me, layout, limit);
        shm.segment = Some(Arc::clone(segment));
        shm
    }

    fn unconnected(me: Pe, layout: Layout, limit: Duration) -> Shm {
        Shm {
            me,
            process: me..me + 1,
            receives: true,
            layout,
            limit,
            handout: None,
            segment: None,
            regions: HashMap::new(),
            completions: Cell::default(),
            message: RefCell::default(),
        }
    }

    fn count_put(&self) {
        let done = self.completions.get();
        self.completions.set(Completions { puts: done.puts + 1, ..done });
    }

    fn count_get(&self) {
        let done = self.completions.get();
        self.completions.set(Completions { gets: done.gets + 1, ..done });
    }

    /// The PE whose heap this process maps at the common address, if the process has one PE.
    fn home(&self) -> Option<Pe> {
        (self.process.len() == 1).then_some(self.me)
    }

    #[cold]
    fn corrupt(&self, what: String) -> FabricError {
        FabricError::CorruptRing { pe: self.me, what }
    }

    /// The local address of a remote one.
    fn address_of(&self, pe: Pe, remote: Remote, bytes: usize) -> *mut u8 {
        let (start, length) = self.regions[&remote.key];
        debug_assert!(remote.offset_bytes + bytes <= length, "{remote:?} + {bytes} lies outside the region");
        // SAFETY: the region lies in the heap (checked by `register`) and the caller of the data plane has
        // promised that the range lies in the region.
        unsafe { self.segment().heap(pe).add(start + remote.offset_bytes).as_ptr() }
    }
}

impl Provider for Shm {
    const NAME: &'static str = "shm";
    type Inject = Never;

    fn limits(&self) -> Limits {
        let message_bytes = self.segment().inbox(self.me).message_bytes();
        Limits { inject_bytes: usize::MAX, message_bytes, transfer_bytes: usize::MAX }
    }

    fn address(&self) -> FabricResult<Vec<u8>> {
        Ok(self.handout.as_ref().map_or_else(Vec::new, |handout| handout.address().to_vec()))
    }

    fn connect(&mut self, lookup: &mut dyn FnMut(Pe) -> FabricResult<Vec<u8>>) -> FabricResult<()> {
        if self.segment.is_none() {
            let address = lookup(0)?;
            let fd = fetch(self.me, &address, self.limit)?;
            let (n_pes, nonce) = (self.layout.n_pes, nonce_of(&address));
            let segment = Segment::attach(self.me, fd, n_pes, nonce, self.home())?;
            self.layout = segment.layout();
            self.segment = Some(Arc::new(segment));
        }
        for pe in self.process.clone() {
            // SYNC POINT attached: releases that this process has mapped the memory.
            self.segment().block(pe).attached.store(1, Ordering::Release);
        }
        match self.handout.take() {
            Some(handout) => handout.serve(self.process.clone(), self.segment(), self.limit),
            None => Ok(()),
        }
    }

    fn register(&mut self, key: Key, start: NonNull<u8>, bytes: usize) -> FabricResult<()> {
        let heap = self.segment().heap(self.me);
        let offset = (start.as_ptr() as usize).wrapping_sub(heap.as_ptr() as usize);
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.layout.region_bytes());
        if !inside || self.regions.contains_key(&key) {
            return Err(FabricError::System {
                pe: self.me,
                operation: format!("registering {bytes} bytes at {start:p} under key {key}"),
                reason: "the memory is not in this PE's heap, or the key is taken".into(),
                remedy: "Shared memory exposes the node's segment only",
            });
        }
        self.regions.insert(key, (offset, bytes));
        Ok(())
    }

    fn context(&self) -> FabricResult<Shm> {
        let mut context = Shm::over(self.segment(), self.me, self.layout, self.limit);
        context.regions = self.regions.clone();
        context.receives = false;
        Ok(context)
    }

    fn executes(&self, _kind: AtomicKind) -> bool {
        true
    }

    unsafe fn put(&self, put: Put) -> Status {
        let Put { pe, target, source, bytes, .. } = put;
        // SAFETY: the caller guarantees the source; the target is mapped; private and shared memory are
        // apart.
        unsafe { copy::transfer(self.address_of(pe, target, bytes), source, bytes) };
        self.count_put();
        Status::Done
    }

    unsafe fn get(&self, get: Get) -> Status {
        let Get { pe, source, target, bytes, .. } = get;
        // SAFETY: the caller guarantees the target; the source is mapped; private and shared memory are
        // apart.
        unsafe { copy::transfer(target, self.address_of(pe, source, bytes), bytes) };
        self.count_get();
        Status::Done
    }

    unsafe fn atomic(&self, amo: Amo) -> Status {
        let Amo { pe, word, atomic, fetched, .. } = amo;
        let bytes = atomic.kind.bytes();
        // SAFETY: the word is mapped and, as the caller has promised, aligned.
        let old = unsafe { atomic.execute(self.address_of(pe, word, bytes)) };
        if fetched.is_null() {
            self.count_put();
        } else {
            // SAFETY: the caller guarantees the place of the result.
            unsafe { write_word(atomic.kind, old, fetched) };
            self.count_get();
        }
        Status::Done
    }

    fn send(&self, pe: Pe, header: u64, payload: &[u8]) -> Status {
        if !self.segment().inbox(pe).send(self.me, header, payload) {
            return Status::Again;
        }
        // SYNC POINT doorbell: orders the message before the look at the receiver's announcement.
        fence(Ordering::SeqCst);
        self.segment().block(pe).doorbell.ring(Cause::Data);
        Status::Done
    }

    fn progress(&self, handle: &mut dyn FnMut(Event<'_>)) -> FabricResult<usize> {
        if !self.receives {
            return Ok(0);
        }
        let inbox = self.segment().inbox(self.me);
        let mut message = self.message.borrow_mut();
        let mut delivered = 0;
        let n_pes = self.layout.n_pes;
        let mut deliver = |envelope: Envelope, payload: &mut Payload| {
            let (from, header, payload) = (envelope.from, envelope.header, payload.bytes());
            if from < n_pes {
                handle(Event::Message { from, header, payload });
            }
            from
        };
        // One call delivers at most as many messages as a ring has cells, so that a flood of small messages
        // cannot hold the caller for ever.
        while delivered < self.layout.ring_bytes / super::ring::CELL_BYTES {
            match inbox.receive(&mut message, &mut deliver) {
                Ok(None) => break,
                Ok(Some(from)) if from < n_pes => delivered += 1,
                Ok(Some(from)) => return Err(self.corrupt(format!("a message names PE {from} of {n_pes}"))),
                Err(corrupt) => return Err(self.corrupt(corrupt.to_string())),
            }
        }
        Ok(delivered)
    }

    fn rest(&self, _bound: Duration) {
        rustix::thread::sched_yield();
    }

    fn completions(&self) -> Completions {
        self.completions.get()
    }
}
