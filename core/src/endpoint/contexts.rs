//! The endpoints of a PE's contexts.

use super::Endpoint;
use crate::base::locked::locked;
use pelago_fabric::sync::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The number of endpoints without a context that are kept for reuse.
pub const IDLE_MAX: usize = 8;

/// The endpoints of the existing contexts, and idle endpoints for later contexts.
#[derive(Default)]
pub struct Contexts {
    /// They are replaced when one comes or goes, so that progress takes them all at once.
    open: Mutex<Arc<[Arc<Endpoint>]>>,
    /// Whether there are contexts.
    is_any: AtomicBool,
    /// Endpoints of freed contexts, kept for later contexts: to open an endpoint of a fabric takes long.
    idle: Mutex<Vec<Arc<Endpoint>>>,
}

impl Contexts {
    /// Adds a context's endpoint, which makes progress until it is [removed](Contexts::remove).
    pub fn add(&self, endpoint: &Arc<Endpoint>) {
        let mut open = locked(&self.open);
        *open = open.iter().chain([endpoint]).cloned().collect();
        self.is_any.store(true, Ordering::Relaxed);
    }

    /// Removes the endpoint of a freed context. It is kept for a later context, unless operations of the
    /// freed one might still be outstanding.
    pub fn remove(&self, endpoint: &Arc<Endpoint>) {
        let mut open = locked(&self.open);
        *open = open.iter().filter(|context| !Arc::ptr_eq(context, endpoint)).cloned().collect();
        self.is_any.store(!open.is_empty(), Ordering::Relaxed);
        drop(open);
        let mut idle = locked(&self.idle);
        if idle.len() < IDLE_MAX && endpoint.is_settled() {
            idle.push(Arc::clone(endpoint));
        }
    }

    /// Takes an idle endpoint, if there is one.
    pub fn take_idle(&self) -> Option<Arc<Endpoint>> {
        locked(&self.idle).pop()
    }

    /// Whether there are contexts.
    pub fn are_any(&self) -> bool {
        self.is_any.load(Ordering::Relaxed)
    }

    /// The endpoints of all contexts.
    pub fn all(&self) -> Arc<[Arc<Endpoint>]> {
        Arc::clone(&locked(&self.open))
    }

    /// Whether all operations that were started on them are complete.
    pub fn are_quiet(&self) -> bool {
        self.all().iter().all(|context| context.is_shut() || context.is_quiet())
    }

    /// Whether an operation was started on one of them since it was last quiet.
    pub fn have_outstanding(&self) -> bool {
        self.are_any() && self.all().iter().any(|context| context.has_outstanding())
    }

    /// Shuts all of them.
    pub fn shut(&self) {
        self.all().iter().for_each(|context| context.shut());
        locked(&self.idle).clear();
    }
}
