//! Distributed arrays: one index space over the PEs of a team, with the discipline of access in the type. The
//! chapter docs/distributed-arrays.md describes the use of each discipline and the costs of the calls.
//!
//! Invariant: an array has the same discipline on all PEs whenever a PE relies on it. A conversion consumes
//! the array, so that no borrow of it is alive on this PE, and then all PEs agree on the new discipline. Only
//! a PE that has found agreement has an array of the new discipline (docs/decisions/0023). Source of the idea
//! of such disciplines: Lamellar (Friese, Gioiosa et al., Pacific Northwest National Laboratory), whose
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
use part_lock::PartLocks;
use pelago_core::base::element::Element;
use pelago_core::base::error::Result;
use sealed::Discipline;

/// The discipline of an [`Array`], which defines how PEs may access its elements: [`Exclusive`],
/// [`ReadOnly`], [`Atomic`] or [`Locked`].
pub trait Access: Discipline {}

/// Each PE has exclusive access to its own part, as a mutable slice, and no access to the parts of other PEs.
/// This is the discipline of a new array.
#[derive(Debug)]
pub enum Exclusive {}

/// No PE writes: the own part is a slice, and gets take no locks.
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

    /// The implementation of a discipline.
    pub trait Discipline: Sized + 'static {
        /// The state that an array of this discipline needs in addition to its elements.
        type State<'w>;
        /// The code of the discipline, which differs from all others.
        const CODE: u64;

        /// Creates the state for the array of these parts. Collective, unless the state is empty.
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
