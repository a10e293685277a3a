//! The endpoints of a PE's contexts.

use super::Endpoint;
use crate::base::locked::locked;
use pelago_fabric::sync::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Endpoints without a context that are kept.
pub(crate) const IDLE_MAX: usize = 8;

/// The endpoints that contexts have, and some that the next contexts can have.
#[derive(Default)]
pub(crate) struct Contexts {
    open: Mutex<Vec<Arc<Endpoint>>>,
    /// Whether there are contexts.
    is_any: AtomicBool,
    /// Endpoints of contexts that are gone, for those to come: an endpoint of a fabric takes long to open.
    idle: Mutex<Vec<Arc<Endpoint>>>,
}

impl Contexts {
    /// A context's endpoint, to be progressed until it is [removed](Contexts::remove).
    pub(crate) fn add(&self, endpoint: &Arc<Endpoint>) {
        locked(&self.open).push(Arc::clone(endpoint));
        self.is_any.store(true, Ordering::Relaxed);
    }

    /// The endpoint of a context that is gone. It is kept for the next one, unless something of the old one
    /// might still be under way.
    pub(crate) fn remove(&self, endpoint: &Arc<Endpoint>) {
        let mut open = locked(&self.open);
        open.retain(|context| !Arc::ptr_eq(context, endpoint));
        self.is_any.store(!open.is_empty(), Ordering::Relaxed);
        drop(open);
        let mut idle = locked(&self.idle);
        if idle.len() < IDLE_MAX && endpoint.is_settled() {
            idle.push(Arc::clone(endpoint));
        }
    }

    /// An endpoint that no context has.
    pub(crate) fn take_idle(&self) -> Option<Arc<Endpoint>> {
        locked(&self.idle).pop()
    }

    /// Whether there are contexts.
    pub(crate) fn are_any(&self) -> bool {
        self.is_any.load(Ordering::Relaxed)
    }

    /// The endpoints of all contexts.
    pub(crate) fn all(&self) -> Vec<Arc<Endpoint>> {
        locked(&self.open).clone()
    }

    /// Whether what was started through them is complete.
    pub(crate) fn are_quiet(&self) -> bool {
        self.all().iter().all(|context| context.is_shut() || context.is_quiet())
    }

    /// Whether something was started through one of them since it was last quiet.
    pub(crate) fn have_outstanding(&self) -> bool {
        self.are_any() && self.all().iter().any(|context| context.has_outstanding())
    }

    /// Shuts them all.
    pub(crate) fn shut(&self) {
        self.all().iter().for_each(|context| context.shut());
        locked(&self.idle).clear();
    }
}
