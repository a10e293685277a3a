//! The additional checks of `PELAGO_CHECK=on`: operations that reach beyond their object or into freed
//! memory, and sources that change while a non-blocking operation uses them.
//!
//! Invariant: while checking is on, the fast path is closed and quiet and barriers take their slow paths, so
//! every call reaches these functions; while it is off, there is no `Checks`, and no check is done.

mod objects;
mod sources;

use super::Memory;
use crate::base::fault::{Call, fail};
use objects::Objects;
use sources::Sources;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use sources::User;

/// The data of the checks.
#[derive(Default)]
pub(crate) struct Checks {
    objects: Mutex<Objects>,
    sources: Mutex<Sources>,
}

impl Checks {
    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sources(&self) -> MutexGuard<'_, Sources> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// Ends the job if symmetric memory does not lie in one object. For variables this is checked if the
    /// program's file names them.
    pub(crate) fn check_object(&self, call: Call, what: &str, address: usize, bytes: usize) {
        let Some(checks) = &self.checks else { return };
        let problem = match self.heap_addresses().contains(&address) {
            true => checks.objects().problem(address, bytes),
            false => self.statics.problem(address, bytes),
        };
        if let Some(problem) = problem {
            fail(call, format_args!("{what} is {bytes} bytes at {address:#x}, {problem}"));
        }
    }

    /// The same for a buffer of this PE, which need not be symmetric, but must not be null.
    pub(crate) fn check_buffer(&'static self, call: Call, what: &str, address: usize, bytes: usize) {
        if address == 0 {
            fail(call, format_args!("{what} is null, but {bytes} bytes are to be moved"));
        }
        if self.checks.is_some() && self.find(address, 1).is_some() {
            self.check_object(call, what, address, bytes);
        }
    }

    /// Records a block that a call has allocated.
    pub(crate) fn note_block(&self, call: Call, address: usize, bytes: usize) {
        if let Some(checks) = &self.checks {
            checks.objects().add(address, bytes, call);
        }
    }

    /// Records that a call has freed a block.
    pub(crate) fn forget_block(&self, call: Call, address: usize) {
        if let Some(checks) = &self.checks {
            checks.objects().remove(address, call);
        }
    }

    /// Records the source of an operation that continues after the call.
    ///
    /// # Safety
    /// It is valid for reads now.
    pub(crate) unsafe fn watch_source(&self, call: Call, user: User, source: *const u8, bytes: usize) {
        if let Some(checks) = &self.checks {
            checks.sources().watch(call, user, source as usize, bytes);
        }
    }

    /// Checks that the sources of the operations that this call completes are unchanged.
    pub(crate) fn settle_sources(&self, call: Call, user: Option<User>) {
        let Some(checks) = &self.checks else { return };
        let problem = checks.sources().settle(user);
        if let Some(problem) = problem {
            fail(call, problem);
        }
    }

    /// The addresses of this PE's symmetric heap.
    fn heap_addresses(&self) -> Range<usize> {
        let start = self.heap.reach().own as usize;
        start..start + self.heap.len()
    }
}
