//! Signal handlers of the program: they are the same after everything that may start a provider of libfabric.

use pelago_fabric::ofi::{Choice, Ofi, usable};
use pelago_fabric::{Provider, Secret};
use pelago_fabric_testkit::fake_libfabric;
use std::mem::MaybeUninit;

/// Signals that the process ignores after a call of `fi_getinfo`, `fi_fabric` and `fi_endpoint`.
const SIGNALS: [libc::c_int; 3] = [libc::SIGUSR1, libc::SIGUSR2, libc::SIGWINCH];

extern "C" fn handler(_: libc::c_int) {}

/// Whether the program's handler is that of each signal, and whether this thread takes the signal.
fn kept() -> [(bool, bool); 3] {
    SIGNALS.map(|signal| {
        let (mut now, mut mask) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: nothing is changed, and the calls fill both local variables in.
        unsafe {
            assert_eq!(libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()), 0);
            assert_eq!(libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr()), 0);
            let now: libc::sigaction = now.assume_init();
            let is_taken = libc::sigismember(mask.as_ptr(), signal) == 0;
            (now.sa_sigaction == handler as *const () as usize, is_taken)
        }
    })
}

#[test]
fn a_provider_that_replaces_handlers_does_not_keep_them() {
    let library = fake_libfabric::install();
    for signal in SIGNALS {
        // SAFETY: this test owns the signals, and its handler does nothing.
        let before = unsafe { libc::signal(signal, handler as *const () as libc::sighandler_t) };
        assert_ne!(before, libc::SIG_ERR);
    }
    fake_libfabric::set_ignored(SIGNALS);
    let choice = Choice { library: Some(library.path().to_owned()), ..Choice::default() };
    assert!(!usable(library, &choice).unwrap().is_empty());
    assert_eq!(kept(), [(true, true); 3], "after the offers were listed");
    let endpoint = Ofi::open(0, 1, &choice, Secret::draw().unwrap()).unwrap();
    assert_eq!(kept(), [(true, true); 3], "after an endpoint was opened");
    let context = endpoint.context().unwrap();
    assert_eq!(kept(), [(true, true); 3], "after a context was opened");
    drop(context);
}
