//! The state that a world keeps for active messages: the open endpoints, the peers, and the messages that
//! have arrived.
//!
//! Invariant: handlers for requests run under the lock of the inbox of requests, and handlers for replies
//! under the lock of the inbox of replies. So at most one handler of each kind runs on a PE, and an endpoint
//! runs no handler any more once both locks have released it. A thread that holds the inbox of requests may
//! take the inbox of replies, but never the other way round.

use super::far::Arrivals;
use super::messaging::Messaging;
use super::peers::Peers;
use super::table::Table;
use crate::base::awaited::Awaited;
use crate::base::error::{ErrorKind, Result};
use crate::base::locked::{locked, try_locked};
use pelago_fabric::shm::ring::{Payload, Ring};
use pelago_fabric::sync::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// The kinds of messages, each of which has a ring, an inbox and an executor.
pub const REQUESTS: usize = 0;
pub const ANSWERS: usize = 1;

/// All of it.
#[derive(Default)]
pub struct MessageState {
    peers: OnceLock<Peers>,
    pub inboxes: [Mutex<Inbox>; 2],
    /// Messages that have come over the network.
    pub arrivals: Arrivals,
}

/// The state that a thread needs to execute messages.
#[derive(Default)]
pub struct Inbox {
    pub payload: Payload,
    /// The endpoints by number.
    pub tables: Vec<Option<Arc<Table>>>,
}

impl Inbox {
    /// Sets a table: the one before.
    fn set(&mut self, number: usize, table: Option<Arc<Table>>) -> Option<Arc<Table>> {
        if self.tables.len() <= number {
            self.tables.resize(number + 1, None);
        }
        std::mem::replace(&mut self.tables[number], table)
    }
}

/// An inbox, if no other thread is at it.
pub fn try_lock(inbox: &Mutex<Inbox>) -> Option<MutexGuard<'_, Inbox>> {
    try_locked(inbox)
}

fn lock(inbox: &Mutex<Inbox>) -> MutexGuard<'_, Inbox> {
    locked(inbox)
}

/// As `lock`, by a wait that makes progress and ends if the handlers of another thread do not.
fn await_lock<'a>(world: &Messaging, inbox: &'a Mutex<Inbox>) -> MutexGuard<'a, Inbox> {
    let mut guard = try_lock(inbox);
    if guard.is_none() {
        world.wait(Awaited::Handlers, || {
            guard = guard.take().or_else(|| try_lock(inbox));
            guard.is_some()
        });
    }
    guard.expect("a wait ends when the lock is there")
}

impl Messaging {
    /// Refuses a payload that is longer.
    pub fn check_payload(&self, operation: &'static str, bytes: usize) -> Result<()> {
        let (me, max_bytes) = (self.my_pe(), self.am.peers(self).medium_max);
        match bytes <= max_bytes {
            true => Ok(()),
            false => Err(ErrorKind::MessageTooLong { me, operation, bytes, max_bytes }.into()),
        }
    }
}

impl MessageState {
    /// All peers; made when they are first asked for.
    #[inline]
    pub fn peers(&self, world: &Messaging) -> &Peers {
        self.peers.get_or_init(|| Peers::new(world))
    }

    /// The number of PEs to which or from which a message was under way.
    pub fn n_contacts(&self) -> usize {
        self.peers.get().map_or(0, Peers::made)
    }

    /// Whether a message that came over the network waits to be executed.
    pub fn has_arrivals(&self) -> bool {
        [REQUESTS, ANSWERS].iter().any(|&kind| self.arrivals.count(kind) != 0)
    }

    /// Whether nothing lies in this PE's rings.
    pub fn are_rings_empty(&self) -> bool {
        self.rings().all(Ring::is_empty)
    }

    /// How many cells of this PE's rings were received so far.
    pub fn received_cells(&self) -> u64 {
        self.rings().map(Ring::received).sum()
    }

    fn rings(&self) -> impl Iterator<Item = &Ring<'static>> {
        let peers = self.peers.get();
        [REQUESTS, ANSWERS].into_iter().filter_map(move |kind| peers?.ring(kind))
    }

    /// Opens an endpoint: its number.
    pub fn register(&self, world: &Messaging, table: &Arc<Table>) -> u16 {
        // From now on the rings are polled.
        self.peers(world);
        let [requests, answers] = &self.inboxes;
        let mut requests = await_lock(world, requests);
        let mut answers = await_lock(world, answers);
        let free = requests.tables.iter().position(Option::is_none).unwrap_or(requests.tables.len());
        let number = u16::try_from(free).expect("a PE has at most 65536 endpoints open");
        requests.set(free, Some(Arc::clone(table)));
        answers.set(free, Some(Arc::clone(table)));
        world.open_handlers.fetch_add(1, Ordering::Relaxed);
        number
    }

    /// Closes an endpoint: none of its handlers runs any more.
    pub fn forget(&self, world: &Messaging, number: u16) {
        let [requests, answers] = &self.inboxes;
        let (mut requests, mut answers) = (lock(requests), lock(answers));
        let tables = [&mut requests, &mut answers].map(|inbox| inbox.set(number.into(), None));
        world.open_handlers.fetch_sub(1, Ordering::Relaxed);
        drop((requests, answers));
        // Values that handlers have captured may wait when they are dropped.
        drop(tables);
    }
}
