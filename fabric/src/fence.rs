//! Asymmetric fences: a light one for a path that is taken often, and a heavy one for its rare counterpart.
//! Together they order like two full fences. The light one costs nothing: it only keeps the compiler from
//! moving accesses. The heavy one is a system call that makes every running thread of the process pass a full
//! fence. Source: membarrier(2).

use crate::sync::Ordering;
#[cfg(not(loom))]
use rustix::thread::{MembarrierCommand as Command, membarrier, membarrier_query};
#[cfg(not(loom))]
use std::sync::OnceLock;

/// Whether the system has what the heavy fence needs. The first call registers the process for it, which
/// takes least while there is one thread.
pub fn is_available() -> bool {
    #[cfg(loom)]
    return true;
    #[cfg(not(loom))]
    {
        static IS_AVAILABLE: OnceLock<bool> = OnceLock::new();
        *IS_AVAILABLE.get_or_init(|| {
            membarrier_query().contains_command(Command::PrivateExpedited)
                && membarrier(Command::RegisterPrivateExpedited).is_ok()
        })
    }
}

/// Orders what this thread has stored before it ahead of what it loads after it, for a thread that passes the
/// [`heavy`] fence between a store and a load.
#[inline(always)]
pub fn light() {
    #[cfg(not(loom))]
    crate::sync::compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    crate::sync::fence(Ordering::SeqCst);
}

/// The counterpart of [`light`] fences of this process. Only if [`is_available`].
pub fn heavy() {
    // The process is registered for this fence, so only a lack of memory in the system can refuse it. One
    // that was restored from a checkpoint may not be registered any more.
    #[cfg(not(loom))]
    while membarrier(Command::PrivateExpedited).is_err() {
        let _ = membarrier(Command::RegisterPrivateExpedited);
        std::thread::yield_now();
    }
    // The model has no system calls: both fences are full ones.
    #[cfg(loom)]
    crate::sync::fence(Ordering::SeqCst);
}
