//! What a world keeps for active messages: the open endpoints, the ways to other PEs, and what has arrived.
//!
//! Invariant: handlers for requests run under the lock of `requests`, those for answers under that of
//! `answers`, so at most one of each kind runs on a PE, and an endpoint that both locks have let go of runs
//! no more. A thread that holds `requests` may take `answers`, never the other way round.

use super::executor::Executor;
use super::lane::Lane;
use super::net::Peers;
use super::table::Table;
use super::wire::OVERHEAD_BYTES;
use crate::error::{ErrorKind, Result};
use crate::wait::Awaited;
use crate::world::World;
use pelago_fabric::shm::Segment;
use pelago_fabric::shm::ring::{Payload, Ring};
use pelago_fabric::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

/// Requests that a PE may have under way over the net to each other PE.
pub(crate) const WINDOW: u64 = 64;

/// All of it.
#[derive(Default)]
pub(crate) struct Hub {
    /// How many endpoints are open. While there are none nothing arrives, and nobody looks.
    open: AtomicU32,
    /// The way to each PE, if they are mapped.
    lanes: OnceLock<Lanes>,
    pub(super) requests: Mutex<Inbox>,
    pub(super) answers: Mutex<Inbox>,
    /// The executors of handlers for requests and for replies.
    pub(super) executors: [Executor; 2],
    pub(super) peers: Peers,
}

/// The way to each PE, and to this one.
pub(super) struct Lanes {
    lanes: Box<[Lane]>,
    pub(super) me: usize,
    /// What the next request changes when it has arrived, and the next answer.
    watches: [Watch; 2],
    /// What the ways lead into.
    _segment: Arc<Segment>,
}

impl Lanes {
    #[inline(always)]
    pub(super) fn to(&self, pe: usize) -> &Lane {
        &self.lanes[pe]
    }

    /// The way to a PE that a message names, if there is such a PE.
    #[inline(always)]
    pub(super) fn find(&self, pe: usize) -> Option<&Lane> {
        self.lanes.get(pe)
    }

    /// Whether nothing has arrived for this PE. While another thread receives, it may be wrong.
    #[inline(always)]
    pub(super) fn is_idle(&self) -> bool {
        !self.watches[0].has_come() && !self.watches[1].has_come()
    }

    /// The rings of this PE, with what is to be watched of each: requests, and answers.
    pub(super) fn own(&self) -> [(&Ring<'static>, &Watch); 2] {
        let own = &self.lanes[self.me];
        [(own.requests(), &self.watches[0]), (own.answers(), &self.watches[1])]
    }
}

/// The stamp that the next message of a ring brings, so that a look costs as little as can be. It is set by
/// whoever has received the one before.
pub(super) struct Watch {
    stamp: AtomicPtr<AtomicU64>,
    expected: AtomicU64,
}

impl Watch {
    fn new(ring: &Ring<'static>) -> Watch {
        let watch = Watch { stamp: AtomicPtr::default(), expected: AtomicU64::new(0) };
        watch.set(ring);
        watch
    }

    /// Watches for the next message of the ring.
    #[inline]
    pub(super) fn set(&self, ring: &Ring<'static>) {
        let (stamp, expected) = ring.next_stamp();
        self.stamp.store(std::ptr::from_ref(stamp).cast_mut(), Ordering::Relaxed);
        self.expected.store(expected, Ordering::Relaxed);
    }

    #[inline(always)]
    fn has_come(&self) -> bool {
        let expected = self.expected.load(Ordering::Relaxed);
        // SAFETY: it is a word of a ring of the segment that is kept beside this, and accessed as an atomic.
        unsafe { (*self.stamp.load(Ordering::Relaxed)).load(Ordering::Relaxed) == expected }
    }
}

/// What the one who executes messages needs.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) payload: Payload,
    /// The endpoints by number.
    pub(super) tables: Vec<Option<Arc<Table>>>,
}

impl Inbox {
    fn set(&mut self, number: usize, table: Option<Arc<Table>>) {
        if self.tables.len() <= number {
            self.tables.resize(number + 1, None);
        }
        self.tables[number] = table;
    }
}

/// An inbox, if no other thread is at it.
pub(super) fn try_lock(inbox: &Mutex<Inbox>) -> Option<MutexGuard<'_, Inbox>> {
    match inbox.try_lock() {
        Ok(inbox) => Some(inbox),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn lock(inbox: &Mutex<Inbox>) -> MutexGuard<'_, Inbox> {
    inbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As `lock`, by a wait that makes progress and ends if the handlers of another thread do not.
fn await_lock<'a>(world: &World, inbox: &'a Mutex<Inbox>) -> MutexGuard<'a, Inbox> {
    let mut guard = try_lock(inbox);
    if guard.is_none() {
        world.wait(Awaited::Handlers, || {
            guard = guard.take().or_else(|| try_lock(inbox));
            guard.is_some()
        });
    }
    guard.expect("a wait ends when the lock is there")
}

impl World {
    /// Bytes of the longest payload of a medium message.
    pub(super) fn medium_max(&self) -> usize {
        let message_bytes = match self.am.lanes(self) {
            Some(lanes) => lanes.to(lanes.me).message_bytes(),
            None => self.net_channel().message_bytes(),
        };
        message_bytes.saturating_sub(OVERHEAD_BYTES)
    }

    /// Refuses a payload that is longer.
    pub(super) fn check_payload(&self, operation: &'static str, bytes: usize) -> Result<()> {
        let (me, max_bytes) = (self.my_pe(), self.medium_max());
        match bytes <= max_bytes {
            true => Ok(()),
            false => Err(ErrorKind::MessageTooLong { me, operation, bytes, max_bytes }.into()),
        }
    }
}

impl Hub {
    /// Whether messages may arrive.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) != 0
    }

    /// The ways to other PEs, if all are mapped; made when they are first asked for.
    pub(super) fn lanes(&self, world: &World) -> Option<&Lanes> {
        if world.net.is_some() {
            return None;
        }
        Some(self.lanes.get_or_init(|| {
            let segment = Arc::clone(world.memory.segment());
            let n = world.n_pes();
            // SAFETY: the segment is kept beside the lanes.
            let lanes: Box<[Lane]> = (0..n).map(|pe| unsafe { Lane::new(&segment, pe, n) }).collect();
            let own = &lanes[world.my_pe()];
            let watches = [Watch::new(own.requests()), Watch::new(own.answers())];
            Lanes { lanes, me: world.my_pe(), watches, _segment: segment }
        }))
    }

    /// Lets PEs that poll in a loop look up, as the job has failed.
    #[cold]
    pub(crate) fn alarm(&self, world: &World) {
        for pe in (0..world.n_pes()).filter(|_| world.net.is_none()) {
            // Where there is no room something lies that is looked at anyway; what it says nobody asks.
            world.memory.segment().inbox(pe).send(world.my_pe(), u64::MAX, &[]);
        }
    }

    /// Opens an endpoint: its number.
    pub(super) fn register(&self, world: &World, table: &Arc<Table>) -> u16 {
        let mut requests = await_lock(world, &self.requests);
        let mut answers = await_lock(world, &self.answers);
        let free = requests.tables.iter().position(Option::is_none).unwrap_or(requests.tables.len());
        let number = u16::try_from(free).expect("a PE has at most 65536 endpoints open");
        requests.set(free, Some(Arc::clone(table)));
        answers.set(free, Some(Arc::clone(table)));
        self.open.fetch_add(1, Ordering::Relaxed);
        number
    }

    /// Closes an endpoint: none of its handlers runs any more.
    pub(super) fn forget(&self, number: u16) {
        let (mut requests, mut answers) = (lock(&self.requests), lock(&self.answers));
        requests.set(number.into(), None);
        answers.set(number.into(), None);
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}
