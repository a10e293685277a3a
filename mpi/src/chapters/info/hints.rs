//! Hints: the info of a communicator, window, file or session.
//!
//! Invariant: an object has the hints that its kind knows, and no others. A value that a hint does not accept
//! is ignored, as the standard allows.

use super::{Entries, find, give};
use crate::abi::*;
use crate::chapters::error::Result;
use crate::chapters::library::Mpi;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

/// A hint that a kind of object knows.
pub struct Hint {
    pub key: &'static str,
    /// The value of an object that was given none; `None` if there is none.
    pub default: Option<&'static str>,
    pub accepts: fn(&str) -> bool,
}

impl Hint {
    /// A hint that is true or false.
    pub const fn truth(key: &'static str, default: &'static str) -> Hint {
        Hint { key, default: Some(default), accepts: |value| matches!(value, "true" | "false") }
    }

    /// A hint with any value.
    pub const fn text(key: &'static str, default: Option<&'static str>) -> Hint {
        Hint { key, default, accepts: |_| true }
    }
}

/// The kinds of memory that calls accept, which no info changes.
pub const MEMORY_KINDS: Hint =
    Hint { key: "mpi_memory_alloc_kinds", default: Some("mpi,system"), accepts: |_| false };

/// The hints of communicators.
pub static OF_COMMUNICATORS: [Hint; 6] = [
    MEMORY_KINDS,
    Hint::truth("mpi_assert_no_any_tag", "false"),
    Hint::truth("mpi_assert_no_any_source", "false"),
    Hint::truth("mpi_assert_exact_length", "false"),
    Hint::truth("mpi_assert_allow_overtaking", "false"),
    Hint::truth("mpi_assert_strict_persistent_collective_ordering", "false"),
];

/// The hints of an object: those that it was given.
#[derive(Debug, Default)]
pub struct Hints(Mutex<Entries>);

impl Hints {
    /// Takes those hints of an info object that the kind of this object knows. `MPI_INFO_NULL` has none.
    pub fn accept(&self, info: MPI_Info, known: &[Hint]) -> Result {
        self.accept_if(info, known, |_, _| true)
    }

    /// The same, of those hints and values that this object can have.
    pub fn accept_if(
        &self,
        info: MPI_Info,
        known: &[Hint],
        can_have: impl Fn(&Hint, &str) -> bool,
    ) -> Result {
        if info == MPI_INFO_NULL {
            return Ok(());
        }
        let given = find(info)?.entries();
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for hint in known {
            let accepts = |value: &String| (hint.accepts)(value) && can_have(hint, value);
            if let Some(value) = given.get(hint.key).filter(accepts) {
                own.put(hint.key, &value);
            }
        }
        Ok(())
    }

    /// Sets a value that the library has chosen.
    pub fn put(&self, key: &str, value: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(key, value);
    }

    /// The hints with their values, also those that the object was not given.
    pub fn entries(&self, known: &[Hint]) -> Entries {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for hint in known {
            let is_given = CString::new(hint.key).is_ok_and(|key| all.find(&key).is_some());
            if let Some(default) = hint.default.filter(|_| !is_given) {
                all.put(hint.key, default);
            }
        }
        all
    }

    /// Gives the program a new info object with the hints.
    ///
    /// # Safety
    /// The place is null, or valid for one value.
    pub unsafe fn give(&self, known: &[Hint], place: *mut MPI_Info) -> Result {
        // SAFETY: the caller passes places and texts that are valid, or null.
        unsafe { give(self.entries(known), place) }
    }
}

/// `MPI_Comm_set_info`: hints that the library does not know are ignored.
pub unsafe fn comm_set_info(mpi: &Mpi, comm: MPI_Comm, info: MPI_Info) -> Result {
    let comm = mpi.comm(comm)?;
    find(info)?;
    comm.hints.accept(info, &OF_COMMUNICATORS)
}

/// `MPI_Comm_get_info`.
pub unsafe fn comm_get_info(mpi: &Mpi, comm: MPI_Comm, info_used: *mut MPI_Info) -> Result {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { mpi.comm(comm)?.hints.give(&OF_COMMUNICATORS, info_used) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_hints_with_valid_values_are_taken() {
        let hints = Hints::default();
        let known = [Hint::truth("a", "false"), Hint::text("b", None)];
        let mut place = MPI_INFO_NULL;
        let given = Entries::of(&[("a", "perhaps"), ("b", "text"), ("c", "true")]);
        // SAFETY: the place is valid for one value.
        unsafe { give(given, &raw mut place) }.unwrap();
        hints.accept(place, &known).unwrap();
        hints.accept(MPI_INFO_NULL, &known).unwrap();
        let all = hints.entries(&known);
        assert_eq!((all.len(), all.get("a").as_deref()), (2, Some("false")));
        assert_eq!(all.get("b").as_deref(), Some("text"));
    }
}
