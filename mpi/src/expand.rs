//! Expands the table of the interface to C functions.
//!
//! Each file of `api/` is one `api!` with a line for each function: its kind, its C name, its arguments, its
//! result if that is no error code, and the Rust function that implements it. Here the lines become
//! functions; in `xtask/src/header` the same lines become `mpi.h` and the list of exports.
//!
//! | kind | the function |
//! |---|---|
//! | `call` | returns an error code; its implementation gets the library as its first argument |
//! | `early` | returns an error code, and may be called before the library is initialised, and afterwards |
//! | `large`, `large_early` | the same in two forms: that whose name ends in `_c` has larger integers |
//! | `value` | returns a value; may be called at any time |
//! | `tool` | of the tools interface: returns an error code, which no error handler gets |
//! | `tool_early` | the same, also before the tools interface is initialised |
//!
//! The types of arguments that differ between the two forms are those of `convert.rs` (`Count`, `Counts`,
//! ...). The implementation gets them as 64-bit numbers. Every function has a second name with the prefix
//! `P`, for profiling tools.

/// Makes the functions of one chapter.
macro_rules! api {
    ($(
        $(#[$attribute:meta])*
        $kind:ident $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? => $body:path;
    )+) => {$(
        family! { $kind, $name, ($($argument: $type),*), ($($result)?), $body }
    )+};
}

/// One function in its forms.
macro_rules! family {
    (large, $name:ident, $arguments:tt, (), $body:path) => {
        form! { small, call, stringify!($name), $arguments, $body }
        form! { large, call, concat!(stringify!($name), "_c"), $arguments, $body }
    };
    (large_early, $name:ident, $arguments:tt, (), $body:path) => {
        form! { small, early, stringify!($name), $arguments, $body }
        form! { large, early, concat!(stringify!($name), "_c"), $arguments, $body }
    };
    (value, $name:ident, ($($argument:ident: $type:ty),*), ($result:ty), $body:path) => {
        value! { stringify!($name), ($($argument: $type),*), $result, $body }
        value! { concat!("P", stringify!($name)), ($($argument: $type),*), $result, $body }
    };
    ($kind:ident, $name:ident, $arguments:tt, (), $body:path) => {
        form! { small, $kind, stringify!($name), $arguments, $body }
    };
}

/// One form under its two names.
macro_rules! form {
    ($size:ident, $kind:ident, $name:expr, $arguments:tt, $body:path) => {
        symbol! { $size, $kind, $name, $name, $arguments, $body }
        symbol! { $size, $kind, concat!("P", $name), $name, $arguments, $body }
    };
}

/// One C function.
macro_rules! symbol {
    ($size:ident, call, $symbol:expr, $name:expr, ($($argument:ident: $type:ty),*), $body:path) => {
        const _: () = {
            #[allow(unused_imports, reason = "not all functions have counts")]
            use crate::convert::$size::*;
            #[unsafe(export_name = $symbol)]
            unsafe extern "C-unwind" fn symbol($($argument: $type),*) -> c_int {
                use crate::chapters::{error, library};
                // SAFETY: the caller of the C function keeps the promises that the standard requires.
                let call = |mpi| unsafe { $body(mpi, $($argument.into()),*) };
                let outcome = match library::get_unrecorded() {
                    Some(mpi) => call(mpi),
                    None => match library::recorded($name, call) {
                        Some(outcome) => outcome,
                        None => return error::not_initialized($name),
                    },
                };
                match outcome {
                    Ok(()) => MPI_SUCCESS,
                    Err(error) => error::raise($name, error, &[$(error::Blame::of(&$argument)),*]),
                }
            }
        };
    };
    ($size:ident, early, $symbol:expr, $name:expr, ($($argument:ident: $type:ty),*), $body:path) => {
        const _: () = {
            #[allow(unused_imports, reason = "not all functions have counts")]
            use crate::convert::$size::*;
            #[unsafe(export_name = $symbol)]
            unsafe extern "C-unwind" fn symbol($($argument: $type),*) -> c_int {
                // SAFETY: the caller of the C function keeps the promises that the standard requires.
                match unsafe { $body($($argument.into()),*) } {
                    Ok(()) => MPI_SUCCESS,
                    Err(error) => {
                        use crate::chapters::error;
                        error::raise($name, error, &[$(error::Blame::of(&$argument)),*])
                    }
                }
            }
        };
    };
    ($size:ident, tool, $symbol:expr, $name:expr, ($($argument:ident: $type:ty),*), $body:path) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "C-unwind" fn symbol($($argument: $type),*) -> c_int {
                let outcome = crate::chapters::tool::initialized();
                // SAFETY: the caller of the C function keeps the promises that the standard requires.
                let outcome = outcome.and_then(|()| unsafe { $body($($argument),*) });
                outcome.err().unwrap_or(MPI_SUCCESS)
            }
        };
    };
    ($size:ident, tool_early, $symbol:expr, $name:expr, ($($argument:ident: $type:ty),*), $body:path) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "C-unwind" fn symbol($($argument: $type),*) -> c_int {
                // SAFETY: the caller of the C function keeps the promises that the standard requires.
                unsafe { $body($($argument),*) }.err().unwrap_or(MPI_SUCCESS)
            }
        };
    };
}

/// One C function that returns a value.
macro_rules! value {
    ($symbol:expr, ($($argument:ident: $type:ty),*), $result:ty, $body:path) => {
        const _: () = {
            #[unsafe(export_name = $symbol)]
            unsafe extern "C-unwind" fn symbol($($argument: $type),*) -> $result {
                // SAFETY: the caller of the C function keeps the promises that the standard requires.
                unsafe { $body($($argument),*) }
            }
        };
    };
}
