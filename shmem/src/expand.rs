//! From the table of the interface to C functions.
//!
//! Each file of `api/` is one `api!` with a line for each family of functions: its kind, its name, the Rust
//! function behind it, and its arguments and result in the words of C. Here the lines become functions; in
//! `xtask/src/header` the same lines, read with another `api!`, become `shmem.h` and the list of exports.
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
//! Before the kind stands `only`, or `both`: then there are two forms of each function, for the default
//! context, and `shmem_ctx_...`, which takes a context first; or `foreign` or `foreign_both`: the same for
//! functions that are defined in `foreign.c`. In arguments and result, `T` is the type of the table's row.
//! Every function has a twin whose name begins with `p`, for tools.
//!
//! `extra`, `extra_both` and `foreign_extra` are the same for extensions: their names begin with `shmemx_`,
//! generic ones too, `shmemx.h` declares them, and they have no twins.
//!
//! What is called gets the name of the function, the context (`both` only) and the arguments. For `sized`,
//! `T` is an unsigned integer of that size here and `void` in C: one generic function serves the typed and
//! the sized families and, with `c_void`, which Rust takes for one byte, that of bytes.

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

/// The rows of a table: the name of the type is a part of that of the function, and `T` is the type.
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

/// One function under its two names, the second of which is that of its twin.
macro_rules! function {
    ($name:expr, $first:tt, $body:path, $arguments:tt $result:tt) => {
        symbol! { $name, $first, $body, $arguments $result }
        symbol! { concat!("p", $name), $first, $body, $arguments $result }
    };
}

/// One C function. The ABI is that which lets panics pass: there are none, as the first thing that a panic
/// does is to end the job (`library.rs`), and so nothing need be prepared for one.
macro_rules! symbol {
    ($name:expr, ($($first:expr),+), $body:path, ($($argument:ident: $type:ty),* $(,)?) ($($result:ty)?)) => {
        const _: () = {
            #[unsafe(export_name = $name)]
            unsafe extern "C-unwind" fn symbol($($argument: $type),*) $(-> $result)? {
                // SAFETY: the caller of the C function keeps the promises that the standard asks for.
                unsafe { $body($($first,)+ $($argument),*) }
            }
        };
    };
}
