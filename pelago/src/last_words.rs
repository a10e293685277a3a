//! What a panic says, for those who are to know why a PE died.
//!
//! Invariant: the words are kept by thread, as other PEs of the process may panic at the same time.

use pelago_boot::Notifier;
use std::any::Any;
use std::cell::RefCell;

thread_local! {
    /// The words of this thread's last panic, and where it was.
    static WORDS: RefCell<Option<String>> = const { RefCell::new(None) };
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
        WORDS.set(Some(words));
        before(info);
    }));
}

/// The words of the panic that this thread has caught, once [`tell_panics`] was called.
pub(crate) fn of_panic(payload: &(dyn Any + Send)) -> String {
    WORDS.take().unwrap_or_else(|| format!("panicked: {}", panic_text(payload)))
}
