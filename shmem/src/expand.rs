//! Expands the table of the interface to C functions.
//!
//! Each file of `api/` is one `api!` with a line for each family of functions: its kind, its name, the Rust
//! function that implements it, and its arguments and result in C notation. Here the lines become functions;
//! in `xtask/src/header` the same lines, read with another `api!`, become `shmem.h` and the list of exports.
//!
//! | kind | functions of `"..."` |
//! |---|---|
//! | `plain "x"` | `shmem_x` |
//! | `named "x"` | `x` |
//! | `typed(TABLE) "_x"` | `shmem_<type>_x` for each type of the table |
//! | `generic(TABLE) "_x"` | the same, and `shmem_x` chooses one by the type of its arguments |
//! | `sized(TABLE) "x" "_y"` | `shmem_x<bits>_y` for each size of the table |
//! | `joined(TABLE) "_x"` | extensions that the standard's generic name `shmem_x` chooses as well |
//!
//! The word before the kind is `only`, or `both`: then each function has two forms, one for the default
//! context, and `shmem_ctx_...`, whose first argument is a context; or `foreign` or `foreign_both`: the same
//! for functions that are defined in `foreign.c`. In arguments and result, `T` is the type of the table's
//! row. Every function has a second name that begins with `p`, for profiling tools.
//!
//! `extra`, `extra_both` and `foreign_extra` are the same for extensions: their names begin with `shmemx_`,
//! including the generic ones, `shmemx.h` declares them, and they have no second name.
//!
//! The Rust function gets the name of the C function, the context (`both` only) and the arguments. For
//! `sized`, `T` is an unsigned integer of that size here and `void` in C: one generic function implements the
//! typed families, the sized families and, with `c_void`, which has the size of one byte in Rust, the
//! families of bytes.

/// Makes the functions of one chapter.
macro_rules! api {
    ($(
        $(#[$attribute:meta])*
        $scope:ident $kind:ident $(($table:ident))? $name:literal $($suffix:literal)?: $body:path,
        ($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)?;
    )+) => {$(
        family! {
            $scope $kind $(($table))? $name $($suffix)?, { $body, ($($argument: $type),*) ($($result)?) }
        }
    )+};
}

/// One family: a function for each row of its table.
macro_rules! family {
    (foreign $($rest:tt)*) => {};
    (foreign_both $($rest:tt)*) => {};
    (foreign_extra $($rest:tt)*) => {};
    (only named $name:literal, { $body:path, $arguments:tt $result:tt }) => {
        function! { $name, ($name), $body, $arguments $result }
    };
    ($scope:ident plain $name:literal, $rest:tt) => {
        form! { $scope, $name, $rest }
    };
    ($scope:ident typed($table:ident) $name:literal, $rest:tt) => {
        $table! { rows, { $scope, "", $name, $rest } }
    };
    ($scope:ident generic($table:ident) $name:literal, $rest:tt) => {
        $table! { rows, { $scope, "", $name, $rest } }
    };
    ($scope:ident joined($table:ident) $name:literal, $rest:tt) => {
        $table! { rows, { $scope, "", $name, $rest } }
    };
    ($scope:ident sized($table:ident) $before:literal $after:literal, $rest:tt) => {
        $table! { rows, { $scope, $before, $after, $rest } }
    };
}

/// The rows of a table: the name of the type is a part of the name of the function, and `T` is the type.
macro_rules! rows {
    ([$(($part:literal, $rust:ty, $c:literal)),+ $(,)?] $family:tt) => {$(
        const _: () = {
            #[allow(dead_code, reason = "not all functions of a type name it")]
            type T = $rust;
            row! { $part, $family }
        };
    )+};
}

macro_rules! row {
    ($part:literal, { $scope:ident, $before:literal, $after:literal, $rest:tt }) => {
        form! { $scope, concat!($before, $part, $after), $rest }
    };
}

/// The forms of one function: without and with a context.
macro_rules! form {
    (only, $name:expr, { $body:path, $arguments:tt $result:tt }) => {
        function! {
            concat!("shmem_", $name), (concat!("shmem_", $name)), $body, $arguments $result
        }
    };
    (both, $name:expr, { $body:path, ($($arguments:tt)*) $result:tt }) => {
        function! {
            concat!("shmem_", $name), (concat!("shmem_", $name), Ctx::DEFAULT),
            $body, ($($arguments)*) $result
        }
        function! {
            concat!("shmem_ctx_", $name), (concat!("shmem_ctx_", $name)),
            $body, (ctx: Ctx, $($arguments)*) $result
        }
    };
    (extra, $name:expr, { $body:path, $arguments:tt $result:tt }) => {
        symbol! {
            concat!("shmemx_", $name), (concat!("shmemx_", $name)), $body, $arguments $result
        }
    };
    (extra_both, $name:expr, { $body:path, ($($arguments:tt)*) $result:tt }) => {
        symbol! {
            concat!("shmemx_", $name), (concat!("shmemx_", $name), Ctx::DEFAULT),
            $body, ($($arguments)*) $result
        }
        symbol! {
            concat!("shmemx_ctx_", $name), (concat!("shmemx_ctx_", $name)),
            $body, (ctx: Ctx, $($arguments)*) $result
        }
    };
}

/// One function under its two names; the second is the profiling name.
macro_rules! function {
    ($name:expr, $first:tt, $body:path, $arguments:tt $result:tt) => {
        symbol! { $name, $first, $body, $arguments $result }
        symbol! { concat!("p", $name), $first, $body, $arguments $result }
    };
}

/// One C function. The ABI permits unwinding, although no panic unwinds through the function: a panic first
/// of all ends the job (`base/fault.rs`). With this ABI the compiler adds no code that catches panics.
macro_rules! symbol {
    ($name:expr, ($($first:expr),+), $body:path, ($($argument:ident: $type:ty),* $(,)?) ($($result:ty)?)) => {
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C-unwind" fn symbol($($argument: $type),*) $(-> $result)? {
                // SAFETY: the caller of the C function keeps the promises that the standard requires.
                unsafe { $body($($first,)+ $($argument),*) }
            }
        };
    };
}
