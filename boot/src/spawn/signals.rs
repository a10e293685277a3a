//! Signals to the launcher: Ctrl-C and similar signals, and the signal that asks what the PEs do, become
//! readable events instead of ending the process.
//!
//! Invariant: the signals are blocked in the launching thread alone and no handler is installed, so a test
//! that launches jobs from several threads is not disturbed. A signal that is ignored stays ignored (nohup).
//! SIGTTIN is blocked too: reading the terminal from the background then fails instead of stopping the
//! launcher.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// The signals that end a job.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The signal that all processes of the job get.
pub(super) const FORWARDED: i32 = libc::SIGUSR1;

/// The signal that asks what each PE does.
pub(super) const ASKING: i32 = libc::SIGUSR2;

/// The signal by which a terminal stops a command.
pub(super) const STOPPING: i32 = libc::SIGTSTP;

/// Holds back the signals that end this process, in the calling thread, while it lives: what a command has
/// begun is completed or removed before such a signal takes effect. A job that is launched meanwhile still
/// ends by them.
pub struct HeldSignals {
    before: libc::sigset_t,
}

impl HeldSignals {
    /// Holds the signals back. Those that are ignored stay ignored.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn hold() -> io::Result<Self> {
        let ending = set_of(ENDING.into_iter().filter(|signal| !is_ignored(*signal)));
        Ok(Self { before: block(&ending)? })
    }

    /// Whether such a signal has come. It takes effect when this is dropped.
    pub fn has_come(&self) -> bool {
        let mut pending = set_of([]);
        // SAFETY: `set_of` has initialised the set, which outlives both calls.
        unsafe {
            libc::sigpending(&mut pending);
            ENDING.iter().any(|signal| libc::sigismember(&pending, *signal) == 1)
        }
    }

    /// Fails if such a signal has come.
    ///
    /// # Errors
    /// See above.
    pub fn check(&self) -> io::Result<()> {
        match self.has_come() {
            true => Err(io::Error::other("a signal ends this command")),
            false => Ok(()),
        }
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        restore(&self.before);
    }
}

/// Blocks the signals while it lives.
pub(super) struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
    of_children: libc::sigset_t,
}

impl Signals {
    /// Blocks the signals, and also that of Ctrl-Z if `takes_stop`. Processes do not inherit that some are
    /// `held` already.
    pub(super) fn block(takes_stop: bool, held: Option<&HeldSignals>) -> io::Result<Self> {
        keep_ended_children();
        let ignorable = ENDING.into_iter().chain([FORWARDED]).chain(takes_stop.then_some(STOPPING));
        let taken = ignorable.filter(|signal| !is_ignored(*signal)).chain([ASKING]);
        let taken = set_of(taken);
        let mut blocked = taken;
        // SAFETY: the sets are initialised and outlive the calls; `signalfd` with -1 makes a new descriptor,
        // which has no other owner.
        let fd = unsafe {
            libc::sigaddset(&mut blocked, libc::SIGTTIN);
            let fd = libc::signalfd(-1, &taken, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let before = block(&blocked)?;
        Ok(Self { fd, before, of_children: held.map_or(before, |held| held.before) })
    }

    /// The mask for children: the mask from before any signal was blocked.
    pub(super) fn mask_before(&self) -> libc::sigset_t {
        self.of_children
    }

    /// A signal that has arrived, if one has.
    pub(super) fn take(&self) -> Option<i32> {
        let mut bytes = [0_u8; size_of::<libc::signalfd_siginfo>()];
        let count = rustix::io::read(&self.fd, &mut bytes).ok()?;
        // The record begins with the number of the signal, 32 bits.
        (count == bytes.len()).then(|| i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        restore(&self.before);
    }
}

/// Blocks signals in the calling thread; returns its mask from before.
fn block(signals: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = set_of([]);
    // SAFETY: `set_of` has initialised both sets, which outlive the call.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, signals, &mut before) } {
        0 => Ok(before),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Makes `mask` the signal mask of the calling thread; usable between fork and exec.
pub(super) fn restore(mask: &libc::sigset_t) {
    // SAFETY: `mask` is initialised, a null pointer asks for no old mask, and the call is async-signal-safe.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut());
    }
}

/// Makes the process group of the calling process the foreground one of the terminal that is its standard
/// input; usable between fork and exec.
pub(super) fn take_terminal() {
    // SAFETY: the sets are initialised before they are used, all calls are async-signal-safe, and a standard
    // input that is no terminal makes `tcsetpgrp` fail, which changes nothing.
    unsafe {
        let (mut stopping, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        libc::sigemptyset(stopping.as_mut_ptr());
        // Otherwise this signal stops a process in the background that asks for the terminal.
        libc::sigaddset(stopping.as_mut_ptr(), libc::SIGTTOU);
        if libc::pthread_sigmask(libc::SIG_BLOCK, stopping.as_ptr(), before.as_mut_ptr()) == 0 {
            libc::tcsetpgrp(0, libc::getpgrp());
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        }
    }
}

fn set_of(signals: impl IntoIterator<Item = i32>) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set before it is added to and read.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// While a process ignores SIGCHLD, which it may have inherited, the system forgets how its children ended.
fn keep_ended_children() {
    if is_ignored(libc::SIGCHLD) {
        // SAFETY: the default action installs no handler.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    }
}

fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: with a null new action the call only reads the old one, into memory where zeroes are valid.
    unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_held_back_until_a_job_takes_it() {
        let held = HeldSignals::hold().unwrap();
        assert!(!held.has_come() && held.check().is_ok());
        // SAFETY: the signal is blocked in this thread, which it is sent to.
        unsafe { libc::raise(libc::SIGTERM) };
        assert!(held.has_come() && held.check().is_err());
        let signals = Signals::block(false, Some(&held)).unwrap();
        let children = signals.mask_before();
        // SAFETY: the system has initialised the set when the signals were blocked.
        assert_eq!(unsafe { libc::sigismember(&children, libc::SIGTERM) }, 0, "children are not blocked");
        assert_eq!((signals.take(), signals.take()), (Some(libc::SIGTERM), None));
        drop(signals);
        assert!(!held.has_come());
    }
}
