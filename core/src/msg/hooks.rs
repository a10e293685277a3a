//! Progress hooks: work of an interface that every wait of this PE moves on, such as the service of requests
//! that other PEs have sent it as messages.
//!
//! Invariant: a hook runs on one thread at a time, and not within itself: what it calls may make progress.

use super::TwoSided;
use crate::base::locked::{locked, try_locked};
use pelago_fabric::sync::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Work that waits move on.
pub trait ProgressHook: Send + Sync {
    /// Goes on as far as is possible now. It never waits.
    fn advance(&self, world: &TwoSided);
}

/// The hooks of a PE.
#[derive(Default)]
pub struct ProgressHooks {
    hooks: Mutex<Vec<Arc<dyn ProgressHook>>>,
    count: AtomicU32,
    running: Mutex<()>,
}

impl ProgressHooks {
    /// Runs a hook in every wait from now on.
    pub fn add(&self, hook: Arc<dyn ProgressHook>) {
        let mut hooks = locked(&self.hooks);
        hooks.push(hook);
        self.count.store(hooks.len() as u32, Ordering::Relaxed);
    }

    /// Runs a hook no more.
    pub fn remove(&self, hook: &Arc<dyn ProgressHook>) {
        let mut hooks = locked(&self.hooks);
        hooks.retain(|other| !Arc::ptr_eq(other, hook));
        self.count.store(hooks.len() as u32, Ordering::Relaxed);
    }

    /// Whether there are any.
    #[inline]
    pub fn are_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Runs all hooks once, unless a thread does so already.
    pub fn advance(&self, world: &TwoSided) {
        let Some(_running) = try_locked(&self.running) else { return };
        let hooks = locked(&self.hooks).clone();
        hooks.iter().for_each(|hook| hook.advance(world));
    }
}
