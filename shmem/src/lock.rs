//! Distributed locks (OpenSHMEM 1.6, 9.13), in one `long` of every PE.
//!
//! The lock is the runtime's queueing lock, whose two words of 4 bytes fill the `long`: PEs get it in the
//! order of their requests. The tail of the queue is at a home PE, which is computed from the lock's place,
//! so that the homes of many locks are spread over the PEs; for a lock in a space, over its members.
//!
//! A second `shmem_set_lock` before the lock is cleared, also by another thread of the PE, is refused, and so
//! is clearing a lock that this PE does not hold: the standard leaves both undefined.

use crate::base::abi::{Ctx, c_int, c_long};
use crate::base::fault::{Call, Mark, OrFail, fail};
use crate::extension::space;
use crate::library::{self, Library};
use pelago::{ErrorKind, RawLock, Result};

/// `shmem_set_lock`: "first come, first served".
pub(crate) unsafe fn set(call: Call, lock: *mut c_long) {
    library::of(call).with_lock(call, lock, |raw| {
        let _mark = Mark::set(call);
        in_words(call, lock, raw.acquire());
    });
}

/// `shmem_test_lock`: 0 if it was free and is now this PE's, 1 if not.
pub(crate) unsafe fn test(call: Call, lock: *mut c_long) -> c_int {
    library::of(call).with_lock(call, lock, |raw| c_int::from(!raw.try_acquire().or_fail(call)))
}

/// `shmem_clear_lock`: after "all operations on the default context" are complete.
pub(crate) unsafe fn clear(call: Call, lock: *mut c_long) {
    library::of(call).with_lock(call, lock, |raw| {
        library::of(call).complete(call, Ctx::DEFAULT);
        let _mark = Mark::set(call);
        in_words(call, lock, raw.release());
    });
}

/// Ends the job if the lock was refused; the message names the lock by its address, as C programs do.
fn in_words(call: Call, lock: *mut c_long, outcome: Result<()>) {
    let Err(error) = outcome else { return };
    match error.kind() {
        ErrorKind::LockHeld { .. } => fail(
            call,
            format_args!(
                "lock is {lock:p}, which this PE holds or waits for already, and would wait for itself: \
                 clear it first"
            ),
        ),
        ErrorKind::LockNotHeld { .. } => fail(
            call,
            format_args!(
                "lock is {lock:p}, which this PE does not hold: clear what shmem_set_lock has set, or \
                 shmem_test_lock when it answered 0"
            ),
        ),
        _ => fail(call, error),
    }
}

impl Library {
    fn with_lock<R>(&'static self, call: Call, lock: *mut c_long, work: impl FnOnce(RawLock<'_>) -> R) -> R {
        let (remote, place) = self.word(call, "lock", lock);
        // SAFETY: both arrays of the library live longer than a call, and have no exclusive phases.
        let words = unsafe { remote.array.cast::<u32>() };
        // The home of a lock in a space is one of the space's members.
        let is_in_heap = std::ptr::eq(remote.array, &*self.heap);
        let home = match space::team_around(remote.offset).filter(|_| is_in_heap) {
            Some(team) => team.pe(place % team.n_pes()),
            None => place % self.world.n_pes(),
        };
        let index = remote.offset / size_of::<u32>();
        work(words.lock_at(index, home).or_fail(call))
    }
}
