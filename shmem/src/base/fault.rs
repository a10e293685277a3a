//! Mistakes of the program: the message names the PE, the call and the argument; then the job ends.

use super::hot::Job;
use super::say::say;
use std::cell::Cell;
use std::fmt::Display;

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

/// The outcome of an operation that may have had no effect.
impl<T, E: Display> OrFail<Option<T>> for Option<Result<T, E>> {
    #[inline]
    fn or_fail(self, call: Call) -> Option<T> {
        self.map(|outcome| outcome.or_fail(call))
    }
}
