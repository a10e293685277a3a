//! Mistakes of the program: the message names the PE, the call and the argument; then the job ends.

use super::hot::Job;
use super::say::say;
use std::cell::Cell;
use std::fmt::Display;
use std::sync::Once;

/// Name of a function of the interface.
pub(crate) type Call = &'static str;

thread_local! {
    static MARK: Cell<Option<Call>> = const { Cell::new(None) };
}

/// The name of the call that this thread is in, for messages of the runtime that cannot be caught while the
/// thread waits. It stores the previous name.
pub(crate) struct Mark(Option<Call>);

impl Mark {
    pub(crate) fn set(call: Call) -> Mark {
        Mark(MARK.replace(Some(call)))
    }

    pub(crate) fn get() -> Option<Call> {
        MARK.get()
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        MARK.set(self.0);
    }
}

/// Ends the job because of a mistake in a call.
#[cold]
#[inline(never)]
pub(crate) fn fail(call: Call, what: impl Display) -> ! {
    match Job::world() {
        Some(world) => world.abort(1, &format!("{call}: {what}")),
        None => {
            say(&format!("{call}: {what}"));
            std::process::exit(1)
        }
    }
}

/// Checks the address of a result for null.
#[inline]
pub(crate) fn output<T>(call: Call, what: &str, place: *mut T) -> *mut T {
    if place.is_null() {
        fail(call, format_args!("{what} is null: give the place of a result"));
    }
    place
}

/// Returns the value of a result, or ends the job.
pub(crate) trait OrFail<T> {
    fn or_fail(self, call: Call) -> T;
}

impl<T, E: Display> OrFail<T> for Result<T, E> {
    #[inline]
    fn or_fail(self, call: Call) -> T {
        self.unwrap_or_else(|error| fail(call, error))
    }
}

/// From now on a panic ends the job after its message is printed, so no panic unwinds through frames of C. A
/// call that cannot continue, as it waits for a PE that has left, ends the job in the same way.
pub(crate) fn end_job_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let call = Mark::get().map(|call| format!(", in {call}")).unwrap_or_default();
            let place = info.location().map(|place| format!(" [{place}]")).unwrap_or_default();
            let payload = info.payload();
            let words = payload.downcast_ref::<&str>().copied();
            let words = words.or(payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic");
            say(&format!("{words}{call}{place}"));
            if std::env::var_os("RUST_BACKTRACE").is_some() {
                before(info);
            }
            match Job::world() {
                Some(world) => world.abort(101, ""),
                // SAFETY: it has no precondition; exit handlers might wait for what this thread holds.
                None => unsafe { libc::_exit(101) },
            }
        }));
    });
}
