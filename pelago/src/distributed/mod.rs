//! Distributed arrays: one index space over the PEs of a team, with the discipline of access in the type. A
//! chapter of its own, docs/distributed-arrays.md, says which discipline is for what, and what calls cost.
//!
//! Invariant: the arrays of all PEs have the same discipline, as far as anybody relies on it. A conversion
//! consumes the array, so that no borrow of it is alive on this PE, and then lets all PEs agree on the new
//! discipline; only a PE that has found agreement has an array of it (docs/decisions/0023). Source of the
//! idea of such disciplines: Lamellar (Friese, Gioiosa et al., Pacific Northwest National Laboratory), whose
//! arrays are counted references; these are not.

mod array;
mod atomic;
mod batch;
mod exclusive;
mod iter;
mod locked;
mod part;
mod part_lock;
mod read_only;
mod reduction;

pub use crate::upc::{BlockSize, Layout};
pub use array::Array;
pub use iter::Iter;
pub use locked::{ReadGuard, WriteGuard};

use crate::array::view::View;
use crate::base::element::Element;
use crate::base::error::Result;
use part_lock::PartLocks;
use sealed::Discipline;

/// Who may access the elements of an [`Array`], and how: [`Exclusive`], [`ReadOnly`], [`Atomic`] or
/// [`Locked`].
pub trait Access: Discipline {}

/// Each PE has its own part for itself, as a slice that it may write to; nobody reaches another one's. What a
/// new array has.
#[derive(Debug)]
pub enum Exclusive {}

/// Nobody writes: the own part is a slice, and gets take no locks.
#[derive(Debug)]
pub enum ReadOnly {}

/// Every access is an atomic operation on one element, of any PE's part at any time.
#[derive(Debug)]
pub enum Atomic {}

/// Each PE's part has a lock for readers and writers, which every access takes.
#[derive(Debug)]
pub enum Locked {}

mod sealed {
    use super::*;

    /// What is behind a discipline.
    pub trait Discipline: Sized + 'static {
        /// What an array needs for it, beside the elements.
        type State<'w>;
        /// What tells it from others.
        const CODE: u64;

        /// Makes what the array of these parts needs. Collective, if it is anything.
        fn open<'w, T: Element>(parts: &View<'w, T>) -> Result<Self::State<'w>>;
    }
}

macro_rules! disciplines_without_state {
    ($($discipline:ident: $code:expr;)+) => {$(
        impl Access for $discipline {}

        impl Discipline for $discipline {
            type State<'w> = ();
            const CODE: u64 = $code;

            fn open<'w, T: Element>(_: &View<'w, T>) -> Result<()> {
                Ok(())
            }
        }
    )+};
}

disciplines_without_state! {
    Exclusive: 0;
    ReadOnly: 1;
    Atomic: 2;
}

impl Access for Locked {}

impl Discipline for Locked {
    type State<'w> = PartLocks<'w>;
    const CODE: u64 = 3;

    fn open<'w, T: Element>(parts: &View<'w, T>) -> Result<PartLocks<'w>> {
        PartLocks::new(parts.world(), parts.region())
    }
}

/// The examples of the chapter, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/distributed-arrays.md")]
struct Chapter;
