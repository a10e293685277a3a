//! All state of the library: the open objects, by class and number.
//!
//! Invariant: a number always denotes the same object. All functions here require the mutex; a function that
//! changes the condition of a sleeping thread notifies `CHANGED`.

use super::NetworkCard;
use super::address::Vector;
use super::counter::Counter;
use super::domain::Domain;
use super::endpoint::Endpoint;
use super::fabric::Fabric;
use super::queue::Queue;
use super::region::Region;
use libc::c_int;
use pelago_fabric::ofi::sys::*;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The number of an object.
pub(crate) type Id = u64;

/// A class of objects, by the type of their head.
pub(crate) trait Class: Sized + 'static {
    /// The number of the class (`rdma/fabric.h`).
    const NUMBER: usize;
    type State;

    /// The states of all open objects of the class.
    fn states(world: &mut World) -> &mut BTreeMap<Id, Self::State>;
}

/// The classes: the field for their states, their number, the type of their head.
macro_rules! classes {
    ($($states:ident: $number:literal $head:ident => $State:ident;)*) => {
        /// The open objects.
        pub(crate) struct World {
            last_id: Id,
            $(pub(crate) $states: BTreeMap<Id, $State>,)*
            /// Whether the thread for automatic progress has been started.
            pub(crate) has_mover: bool,
            /// The network cards, each of which is a domain of every provider. If there are none, the machine
            /// has one that no offer describes.
            pub(crate) cards: Vec<NetworkCard>,
            /// The signals that are ignored after a call of `fi_getinfo`, `fi_fabric` and `fi_endpoint`.
            pub(crate) ignored: Option<[c_int; 3]>,
        }

        static WORLD: Mutex<World> = Mutex::new(World {
            last_id: 0,
            $($states: BTreeMap::new(),)*
            has_mover: false,
            cards: Vec::new(),
            ignored: None,
        });

        $(impl Class for $head {
            const NUMBER: usize = $number;
            type State = $State;

            fn states(world: &mut World) -> &mut BTreeMap<Id, $State> {
                &mut world.$states
            }
        })*
    };
}

classes! {
    fabrics: 1 fid_fabric => Fabric;
    domains: 2 fid_domain => Domain;
    endpoints: 3 fid_ep => Endpoint;
    vectors: 11 fid_av => Vector;
    regions: 12 fid_mr => Region;
    queues: 14 fid_cq => Queue;
    counters: 15 fid_cntr => Counter;
}

/// Notified of every event that a thread may wait for.
pub(crate) static CHANGED: Condvar = Condvar::new();

/// Locks the world until the guard is dropped.
pub(crate) fn world() -> MutexGuard<'static, World> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    /// A number for a new object.
    pub(crate) fn new_id(&mut self) -> Id {
        self.last_id += 1;
        self.last_id
    }

    /// Ignores the signal of `fi_getinfo` (0), `fi_fabric` (1) or `fi_endpoint` (2), if there is one.
    pub(crate) fn ignore(&self, call: usize) {
        if let Some(signals) = self.ignored {
            // SAFETY: a test has named a signal that it does not need, and no handler is called any more.
            unsafe { libc::signal(signals[call], libc::SIG_IGN) };
        }
    }

    /// The endpoints for which `concerns` returns true.
    pub(crate) fn endpoints_where(&self, concerns: impl Fn(&Endpoint) -> bool) -> Vec<Id> {
        let concerned = self.endpoints.iter().filter(|(_, endpoint)| concerns(endpoint));
        concerned.map(|(id, _)| *id).collect()
    }
}

/// The object of this number, which must be open.
pub(crate) fn at<T>(objects: &mut BTreeMap<Id, T>, id: Id) -> &mut T {
    objects.get_mut(&id).expect("an object of the fake libfabric is used after it was closed")
}
