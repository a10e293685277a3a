//! The messages of the last panic and of the last error, by which others learn why a PE died.
//!
//! Invariant: the words are kept by thread, as other PEs of the process may panic at the same time; those of
//! an error by process as well, for the threads of one PE. A thread whose local storage is gone, as in an
//! exit handler, keeps nothing and has nothing.

use crate::base::locked::locked;
use pelago_boot::Notifier;
use std::any::Any;
use std::cell::RefCell;
use std::fmt::Display;
use std::sync::Mutex;

thread_local! {
    /// The words of this thread's last panic, and where it was.
    static WORDS: RefCell<Option<String>> = const { RefCell::new(None) };
    /// The last error that was made on this thread.
    static LAST_ERROR: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The last error that was made in this process.
static LAST_OF_PROCESS: Mutex<Option<String>> = Mutex::new(None);

/// Keeps the words of an error, in case that it is why this PE leaves.
#[cold]
pub(crate) fn keep_error(error: &dyn Display) {
    let words = error.to_string();
    *of_process() = Some(words.clone());
    let _ = LAST_ERROR.try_with(|last| last.replace(Some(words)));
}

/// Forgets errors that were made before a PE joins: they are not why it leaves.
pub(crate) fn forget_errors(is_alone: bool) {
    let _ = LAST_ERROR.try_with(RefCell::take);
    if is_alone {
        *of_process() = None;
    }
}

/// The last error of this PE: that of this thread or, where the PE is alone in its process, of any.
pub(crate) fn last_error(is_alone: bool) -> Option<String> {
    LAST_ERROR
        .try_with(RefCell::take)
        .ok()
        .flatten()
        .or_else(|| is_alone.then(|| of_process().take()).flatten())
}

fn of_process() -> std::sync::MutexGuard<'static, Option<String>> {
    locked(&LAST_OF_PROCESS)
}

/// The words of a panic.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let literal = payload.downcast_ref::<&str>().copied();
    let text = literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("(a panic without a message)")
}

/// Lets the launcher know the words of a panic, so that it can say why a process died.
pub(crate) fn tell_panics(notifier: Notifier) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map_or_else(String::new, |at| format!(", {at}"));
        let words = format!("panicked: {}{place}", panic_text(info.payload()));
        notifier.note(&words);
        let _ = WORDS.try_with(|last| last.replace(Some(words)));
        before(info);
    }));
}

/// The words of the panic that this thread has caught, once [`tell_panics`] was called.
pub(crate) fn of_panic(payload: &(dyn Any + Send)) -> String {
    WORDS
        .try_with(RefCell::take)
        .ok()
        .flatten()
        .unwrap_or_else(|| format!("panicked: {}", panic_text(payload)))
}
