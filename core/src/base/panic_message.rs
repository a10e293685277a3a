//! The messages of the last panic and of the last error, from which other PEs learn why a PE died.
//!
//! Invariant: messages are kept per thread, because other PEs of the process may panic at the same time. The
//! message of an error is kept per process as well, for the threads of one PE. A thread whose local storage
//! was destroyed, as in an exit handler, keeps no message.

use crate::base::locked::locked;
use pelago_boot::Notifier;
use std::any::Any;
use std::cell::RefCell;
use std::fmt::Display;
use std::sync::Mutex;

thread_local! {
    /// The message of this thread's last panic, with its location.
    static WORDS: RefCell<Option<String>> = const { RefCell::new(None) };
    /// The last error that was created on this thread.
    static LAST_ERROR: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The last error that was created in this process.
static LAST_OF_PROCESS: Mutex<Option<String>> = Mutex::new(None);

/// Keeps the message of an error, in case this PE leaves because of it.
#[cold]
pub fn keep_error(error: &dyn Display) {
    let words = error.to_string();
    *of_process() = Some(words.clone());
    let _ = LAST_ERROR.try_with(|last| last.replace(Some(words)));
}

/// Forgets errors that were created before a PE joins: the PE does not leave because of them.
pub fn forget_errors(is_alone: bool) {
    let _ = LAST_ERROR.try_with(RefCell::take);
    if is_alone {
        *of_process() = None;
    }
}

/// The last error of this PE: the last one of this thread or, if the PE is alone in its process, of any
/// thread.
pub fn last_error(is_alone: bool) -> Option<String> {
    LAST_ERROR
        .try_with(RefCell::take)
        .ok()
        .flatten()
        .or_else(|| is_alone.then(|| of_process().take()).flatten())
}

fn of_process() -> std::sync::MutexGuard<'static, Option<String>> {
    locked(&LAST_OF_PROCESS)
}

/// The message of a panic.
pub fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let literal = payload.downcast_ref::<&str>().copied();
    let text = literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(a panic without a message)")
}

/// Reports the message of every panic to the launcher, so that it can report why a process died.
pub fn tell_panics(notifier: Notifier) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map_or_else(String::new, |at| format!(", {at}"));
        let words = format!("panicked: {}{place}", panic_text(info.payload()));
        notifier.note(&words);
        let _ = WORDS.try_with(|last| last.replace(Some(words)));
        before(info);
    }));
}

/// The message of the panic that this thread has caught. It has a location once [`tell_panics`] was called.
pub fn of_panic(payload: &(dyn Any + Send)) -> String {
    WORDS
        .try_with(RefCell::take)
        .ok()
        .flatten()
        .unwrap_or_else(|| format!("panicked: {}", panic_text(payload)))
}
