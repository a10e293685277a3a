//! Macros that declare a structure, a table of functions or a constant, and list it for the comparison with
//! C.
//!
//! Invariant: every declared item is listed, because the same macro call makes both. Functions of a table are
//! optional pointers, since a provider leaves some of them null; a call goes straight through the pointer.

use super::{atomic, domain, endpoint, event, fabric, info, rma};

/// A structure as it lies in memory.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The name in C.
    pub name: &'static str,
    /// Its size.
    pub bytes: usize,
    /// Its fields, in order.
    pub fields: &'static [Field],
}

/// A field of a structure.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The name in C.
    pub name: &'static str,
    /// Distance from the start of the structure.
    pub offset_bytes: usize,
    /// Its size.
    pub bytes: usize,
    /// Its type.
    pub kind: Kind,
}

/// The type of a field, as Rust writes it.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Data of this type.
    Data(&'static str),
    /// A pointer to a function.
    Call {
        /// The types of its arguments.
        arguments: &'static [&'static str],
        /// The type that it returns.
        returns: &'static str,
    },
}

/// All structures and tables, for the comparison with the headers.
pub const LAYOUTS: &[&[Layout]] = &[
    info::STRUCTS,
    fabric::STRUCTS,
    fabric::TABLES,
    domain::STRUCTS,
    domain::TABLES,
    event::STRUCTS,
    event::TABLES,
    endpoint::STRUCTS,
    endpoint::TABLES,
    rma::STRUCTS,
    rma::TABLES,
    atomic::STRUCTS,
    atomic::TABLES,
];

/// Declares structures, and the list `STRUCTS` of them.
macro_rules! structs {
    ($($(#[$note:meta])* $name:ident { $($(#[$field_note:meta])* $field:ident: $type:ty,)+ })+) => {
        $(
            $(#[$note])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            pub struct $name { $($(#[$field_note])* pub $field: $type,)+ }

            // SAFETY: the structure is made of integers and raw pointers only, whose bits may all be zero.
            unsafe impl $crate::ofi::sys::Zeroed for $name {}
        )+

        pub(super) const STRUCTS: &[$crate::ofi::sys::Layout] = &[$($crate::ofi::sys::Layout {
            name: stringify!($name),
            bytes: size_of::<$name>(),
            fields: &[$($crate::ofi::sys::Field {
                name: stringify!($field),
                offset_bytes: std::mem::offset_of!($name, $field),
                bytes: size_of::<$type>(),
                kind: $crate::ofi::sys::Kind::Data(stringify!($type)),
            },)+],
        },)+];
    };
}

/// Declares tables of functions, the list `TABLES` of them, and the inline functions that call through them:
/// `table in member { slot(object: type, ...) -> type => inline function; }`, where the table is in the
/// object's member.
macro_rules! tables {
    ($($(#[$note:meta])* $name:ident in $member:ident {
        $($slot:ident $arguments:tt -> $returns:ty $(=> $call:ident)?;)+
    })+) => {
        $(
            $(#[$note])*
            #[repr(C)]
            pub struct $name {
                /// The bytes of the table that the provider knows.
                pub size: usize,
                $(pub $slot: Option<$crate::ofi::sys::layout::slot!($arguments -> $returns)>,)+
            }

            $($($crate::ofi::sys::layout::through_table! { $call = $member.$slot $arguments -> $returns })?)+
        )+

        pub(super) const TABLES: &[$crate::ofi::sys::Layout] = &[$($crate::ofi::sys::Layout {
            name: stringify!($name),
            bytes: size_of::<$name>(),
            fields: &[
                $crate::ofi::sys::Field {
                    name: "size",
                    offset_bytes: std::mem::offset_of!($name, size),
                    bytes: size_of::<usize>(),
                    kind: $crate::ofi::sys::Kind::Data("usize"),
                },
                $($crate::ofi::sys::Field {
                    name: stringify!($slot),
                    offset_bytes: std::mem::offset_of!($name, $slot),
                    bytes: size_of::<Option<$crate::ofi::sys::layout::slot!($arguments -> $returns)>>(),
                    kind: $crate::ofi::sys::Kind::Call {
                        arguments: $crate::ofi::sys::layout::types!($arguments),
                        returns: stringify!($returns),
                    },
                },)+
            ],
        },)+];
    };
}

/// The type of a function in a table.
macro_rules! slot {
    (($($name:ident: $type:ty),* $(,)?) -> $returns:ty) => {
        unsafe extern "C" fn($($type),*) -> $returns
    };
}

/// The types of arguments as texts.
macro_rules! types {
    (($($name:ident: $type:ty),* $(,)?)) => {
        &[$(stringify!($type)),*]
    };
}

/// A function that calls through the table in its first argument's member.
macro_rules! through_table {
    ($call:ident = $member:ident.$slot:ident
        ($first:ident: $first_type:ty $(, $rest:ident: $type:ty)* $(,)?) -> $returns:ty) => {
        /// The inline function of this name in libfabric's headers, described in the manual page of that
        /// name.
        ///
        /// # Safety
        /// The object is open, offers this function, and the arguments are valid as the manual page requires.
        #[inline(always)]
        pub unsafe fn $call($first: $first_type $(, $rest: $type)*) -> $returns {
            // SAFETY: the caller promises an open object that offers the function, and with it the provider
            // has promised a table that has it.
            unsafe { (*(*$first).$member).$slot.unwrap_unchecked()($first $(, $rest)*) }
        }
    };
}

/// Declares types of which only pointers are passed on.
macro_rules! opaque {
    ($($(#[$note:meta])* $name:ident;)+) => {
        $(
            $(#[$note])*
            #[repr(C)]
            pub struct $name {
                _private: [u8; 0],
            }
        )+
    };
}

/// Declares constants by type, and the list `CONSTANTS` of them.
macro_rules! constants {
    ($(#[$note:meta] $type:ty { $($name:ident = $value:expr;)+ })+) => {
        $($(#[$note] pub const $name: $type = $value;)+)+

        /// All constants by name, widened to 64 bits, for the comparison with the headers.
        pub const CONSTANTS: &[(&str, u64)] = &[$($((stringify!($name), $name as u64),)+)+];
    };
}

pub(super) use {constants, opaque, slot, structs, tables, through_table, types};
