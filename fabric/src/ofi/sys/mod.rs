//! The binding of libfabric 1.17: its types, constants and inline functions, under their C names.
//!
//! Source: the headers `rdma/*.h` and the manual pages of libfabric 1.17 (`fi_getinfo(3)` and those beside
//! it), whose chapters the files here follow. Most of libfabric's functions are inline: they call through a
//! table that an object carries. The function here does that one call and nothing else.
//!
//! Invariant: names, types, order and sizes are those of the C headers. The lists [`LAYOUTS`] and
//! [`CONSTANTS`] come from the same text as the types and constants do; `tests/ofi_layout.rs` compares them
//! with the installed headers.
//!
//! Fields that newer libraries append are not declared here. So a structure that they read or fill is
//! allocated by them ([`fi_info`]: `fi_dupinfo` of null) or handed over with room behind it ([`Padded`]), and
//! a table has a function only if its `size` includes it (`fi_query_atomic` checks this).

#![allow(non_camel_case_types, reason = "the names are those of the C headers")]
#![allow(missing_docs, reason = "fields and constants are documented in libfabric's manual pages")]
#![allow(clippy::too_many_arguments, reason = "those of the C functions")]

mod atomic;
mod constant;
mod domain;
mod endpoint;
mod event;
mod fabric;
mod info;
mod layout;
mod rma;

pub use atomic::*;
pub use constant::*;
pub use domain::*;
pub use endpoint::*;
pub use event::*;
pub use fabric::*;
pub use info::*;
pub use layout::{Field, Kind, LAYOUTS, Layout};
pub use libc::iovec;
pub use rma::*;

/// An address of a peer, as an address vector hands it out.
pub type fi_addr_t = u64;

/// A structure that libfabric reads or fills, with zeroed room behind it for the fields that newer versions
/// append.
#[repr(C)]
pub struct Padded<T> {
    /// The structure as version 1.17 knows it.
    pub known: T,
    appended: [u64; 32],
}

impl<T: Zeroed> Padded<T> {
    /// The structure with all bits zero, the default that libfabric gives a meaning to.
    pub fn zeroed() -> Padded<T> {
        // SAFETY: `T: Zeroed` promises that all bits zero are a value of `T`; they are one of an array of
        // integers.
        unsafe { std::mem::zeroed() }
    }

    /// The structure for C, with the right to the room behind it.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        std::ptr::from_mut(self).cast()
    }
}

/// Structures of libfabric for which all bits zero are a value.
///
/// # Safety
/// All bits zero are a value of the type.
pub unsafe trait Zeroed {}
