//! Handlers of signals, which providers of libfabric take when they are listed (its `shm` takes SIGTERM,
//! SIGINT, SIGSEGV and SIGBUS), and libraries of theirs when they are loaded (libinfinipath and libpsm2 take
//! SIGABRT as well, exit with status 1 in the handler, and take 0.2 s to load): a program keeps its own.
//!
//! Invariant: after a call every signal has the handler that it had before, and no handler of the call's runs
//! on its thread: signals are blocked during the call. One that comes meanwhile is delivered after it, to the
//! handler of before; a fault of the thread itself ends the process by its signal, as the kernel ignores the
//! handler of a blocked signal then. Two calls at a time might see each other's handlers, so there is one at
//! a time.

use crate::threads::without_signals;
use libc::{c_int, sigaction};
use std::mem::MaybeUninit;
use std::ptr::null;
use std::sync::{Mutex, PoisonError};

/// Signals are numbered from 1 up to this one; those behind it are of the real-time kind.
const LAST: c_int = 31;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Makes a call that may change handlers, and puts those back that it has changed.
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
        // SAFETY: what is set was this signal's handler a moment ago. An error is not possible for a signal
        // that could be asked about and was changed.
        unsafe { sigaction(signal, &before, std::ptr::null_mut()) };
    }
}

fn handler_of(signal: c_int) -> Option<sigaction> {
    let mut now = MaybeUninit::uninit();
    // SAFETY: nothing is set, and the place of the answer is ours; it is filled in if the call answers 0.
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
            // SAFETY: to ignore a signal that is ignored by default as well.
            unsafe { libc::signal(changed.0, libc::SIG_IGN) };
            assert_eq!(handler_of(changed.0).unwrap().sa_sigaction, libc::SIG_IGN);
        });
        for (signal, before) in [changed, kept] {
            assert_eq!(handler_of(signal).unwrap().sa_sigaction, before.sa_sigaction);
        }
    }
}
