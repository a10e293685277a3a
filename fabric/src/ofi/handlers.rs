//! Keeps the program's signal handlers. Providers of libfabric replace them when they are started or listed
//! (its `shm` replaces those of SIGTERM, SIGINT, SIGSEGV and SIGBUS) or when an endpoint is opened (`psm3`
//! those of SIGSEGV and SIGBUS), and so do libraries that they load (libinfinipath and libpsm2 replace that
//! of SIGABRT as well, exit with status 1 in the handler, and take 0.2 s to load).
//!
//! Invariant: after a call every signal has the handler that it had before, and no handler that the call has
//! set runs on its thread: signals are blocked during the call. A signal that arrives meanwhile is delivered
//! after the call, to the original handler. A fault of the thread itself ends the process by its signal,
//! because the kernel ignores the handler of a blocked signal then. Threads that libfabric starts in the call
//! take no signals. Two calls at a time might see each other's handlers, so there is one call at a time; a
//! call within another one would wait for itself. A handler that another thread of the program sets during
//! the call is lost.

use crate::threads::without_signals;
use libc::{c_int, sigaction};
use std::mem::MaybeUninit;
use std::ptr::null;
use std::sync::{Mutex, PoisonError};

/// The last ordinary signal. Ordinary signals are numbered from 1; higher numbers are real-time signals.
const LAST: c_int = 31;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Makes a call that may change signal handlers, and restores the handlers that it has changed.
pub(super) fn keeping_handlers<R>(call: impl FnOnce() -> R) -> R {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    without_signals(|| {
        let before: Vec<_> = (1..=LAST).filter_map(|signal| Some((signal, handler_of(signal)?))).collect();
        let outcome = call();
        before.into_iter().for_each(|(signal, before)| put_back(signal, before));
        outcome
    })
}

fn put_back(signal: c_int, before: sigaction) {
    if handler_of(signal).is_some_and(|now| now.sa_sigaction != before.sa_sigaction) {
        // SAFETY: `before` was this signal's handler before the call. An error is not possible for a signal
        // whose handler could be read and was changed.
        unsafe { sigaction(signal, &before, std::ptr::null_mut()) };
    }
}

fn handler_of(signal: c_int) -> Option<sigaction> {
    let mut now = MaybeUninit::uninit();
    // SAFETY: nothing is set, and the result is a local variable, which is filled in if the call returns 0.
    unsafe { (sigaction(signal, null(), now.as_mut_ptr()) == 0).then(|| now.assume_init()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_handler_is_put_back_and_others_are_left_alone() {
        let [changed, kept] =
            [libc::SIGWINCH, libc::SIGURG].map(|signal| (signal, handler_of(signal).unwrap()));
        keeping_handlers(|| {
            // SAFETY: the call ignores a signal, which is valid for any signal of this test.
            unsafe { libc::signal(changed.0, libc::SIG_IGN) };
            assert_eq!(handler_of(changed.0).unwrap().sa_sigaction, libc::SIG_IGN);
        });
        for (signal, before) in [changed, kept] {
            assert_eq!(handler_of(signal).unwrap().sa_sigaction, before.sa_sigaction);
        }
    }
}
