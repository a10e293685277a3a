//! All state of the library: what is open, by number.
//!
//! Invariant: a number names one object, for ever. Who holds the mutex may call everything here; whatever
//! changes what a sleeping thread waits for tells `CHANGED`.

use crate::address::Vector;
use crate::counter::Counter;
use crate::domain::Domain;
use crate::endpoint::Endpoint;
use crate::fabric::Fabric;
use crate::queue::Queue;
use crate::region::Region;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The number of an object.
pub(crate) type Id = u64;

/// What is open.
pub(crate) struct World {
    last_id: Id,
    pub(crate) fabrics: BTreeMap<Id, Fabric>,
    pub(crate) domains: BTreeMap<Id, Domain>,
    pub(crate) vectors: BTreeMap<Id, Vector>,
    pub(crate) queues: BTreeMap<Id, Queue>,
    pub(crate) counters: BTreeMap<Id, Counter>,
    pub(crate) regions: BTreeMap<Id, Region>,
    pub(crate) endpoints: BTreeMap<Id, Endpoint>,
    /// Whether the thread runs that moves what nobody calls for.
    pub(crate) has_mover: bool,
}

static WORLD: Mutex<World> = Mutex::new(World {
    last_id: 0,
    fabrics: BTreeMap::new(),
    domains: BTreeMap::new(),
    vectors: BTreeMap::new(),
    queues: BTreeMap::new(),
    counters: BTreeMap::new(),
    regions: BTreeMap::new(),
    endpoints: BTreeMap::new(),
    has_mover: false,
});

/// Told of all that a thread may wait for.
pub(crate) static CHANGED: Condvar = Condvar::new();

/// The world, until the guard is dropped.
pub(crate) fn world() -> MutexGuard<'static, World> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    /// A number for a new object.
    pub(crate) fn new_id(&mut self) -> Id {
        self.last_id += 1;
        self.last_id
    }

    /// The endpoints of which `concerns` says so.
    pub(crate) fn endpoints_where(&self, concerns: impl Fn(&Endpoint) -> bool) -> Vec<Id> {
        let concerned = self.endpoints.iter().filter(|(_, endpoint)| concerns(endpoint));
        concerned.map(|(id, _)| *id).collect()
    }
}

/// The object of that number, which must be open.
pub(crate) fn at<T>(objects: &mut BTreeMap<Id, T>, id: Id) -> &mut T {
    objects.get_mut(&id).expect("an object of the stand-in for libfabric is used after it was closed")
}
