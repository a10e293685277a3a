//! Keyvals: the keys of attributes, with the functions that copy and delete values.
//!
//! Invariant: a keyval exists until the program has freed it and no object has an attribute with it. Its
//! number is not used again. The constants of the standard for functions (null, and the one that copies the
//! value) are addresses that no function has.

use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::output;
use pelago_fabric::sync::{AtomicI32, Ordering};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The object that an attribute belongs to, as the program knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    Comm(MPI_Comm),
    Type(MPI_Datatype),
    Win(MPI_Win),
}

/// The kind of objects that a keyval is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    Comm,
    Type,
    Win,
}

impl Object {
    pub fn kind(self) -> Holder {
        match self {
            Object::Comm(_) => Holder::Comm,
            Object::Type(_) => Holder::Type,
            Object::Win(_) => Holder::Win,
        }
    }
}

/// A keyval.
#[derive(Debug)]
pub struct Keyval {
    pub number: c_int,
    pub kind: Holder,
    copy: usize,
    delete: usize,
    extra_state: usize,
}

/// The functions that keep nothing and that copy the value.
const NULL_FUNCTION: usize = 0;
const DUPLICATE: usize = 1;

/// A keyval, and the program's share of it until it frees the keyval.
type Known = (Weak<Keyval>, Option<Arc<Keyval>>);

/// Keyvals by number.
static KEYVALS: Mutex<BTreeMap<c_int, Known>> = Mutex::new(BTreeMap::new());
/// Numbers below are those of the standard's constants.
static NEXT: AtomicI32 = AtomicI32::new(0x1000);

impl Keyval {
    /// The keyval with a number, for objects of a kind.
    pub fn find(number: c_int, kind: Holder) -> Result<Arc<Keyval>> {
        let known = KEYVALS.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.get(&number).and_then(|(keyval, _)| keyval.upgrade());
        drop(known);
        match found {
            Some(keyval) if keyval.kind == kind => Ok(keyval),
            Some(keyval) => Err(Error::new(
                MPI_ERR_KEYVAL,
                format!("keyval {number} is one for {:?}. Create one for {kind:?}", keyval.kind),
            )),
            None if number == MPI_KEYVAL_INVALID => {
                Err(Error::new(MPI_ERR_KEYVAL, "the keyval is MPI_KEYVAL_INVALID"))
            }
            None => Err(Error::new(
                MPI_ERR_KEYVAL,
                format!("keyval {number} was freed, never was one, or cannot be changed or freed"),
            )),
        }
    }

    /// Calls the copy function: the value for the new object, if it gets one.
    pub fn copy(&self, from: Object, value: usize) -> Result<Option<usize>> {
        if self.copy == NULL_FUNCTION {
            return Ok(None);
        }
        if self.copy == DUPLICATE {
            return Ok(Some(value));
        }
        let (mut new, mut flag): (*mut c_void, c_int) = (null_mut(), 0);
        let (extra, old): (*mut c_void, *mut c_void) =
            (with_exposed_provenance_mut(self.extra_state), with_exposed_provenance_mut(value));
        let (place, number) = ((&raw mut new).cast::<c_void>(), self.number);
        let function = self.copy;
        // SAFETY: the program has passed a function of the type that belongs to the object's.
        let code = unsafe {
            match from {
                Object::Comm(comm) => {
                    let function = MPI_Comm_copy_attr_function::at(with_exposed_provenance_mut(function));
                    function(comm, number, extra, old, place, &raw mut flag)
                }
                Object::Type(datatype) => {
                    let function = MPI_Type_copy_attr_function::at(with_exposed_provenance_mut(function));
                    function(datatype, number, extra, old, place, &raw mut flag)
                }
                Object::Win(win) => {
                    let function = MPI_Win_copy_attr_function::at(with_exposed_provenance_mut(function));
                    function(win, number, extra, old, place, &raw mut flag)
                }
            }
        };
        self.check("copy", code)?;
        Ok((flag != 0).then(|| new.expose_provenance()))
    }

    /// Calls the delete function.
    pub fn delete(&self, of: Object, value: usize) -> Result {
        if self.delete == NULL_FUNCTION {
            return Ok(());
        }
        let (extra, value): (*mut c_void, *mut c_void) =
            (with_exposed_provenance_mut(self.extra_state), with_exposed_provenance_mut(value));
        let (function, number) = (self.delete, self.number);
        // SAFETY: the program has passed a function of the type that belongs to the object's.
        let code = unsafe {
            match of {
                Object::Comm(comm) => {
                    let function = MPI_Comm_delete_attr_function::at(with_exposed_provenance_mut(function));
                    function(comm, number, value, extra)
                }
                Object::Type(datatype) => {
                    let function = MPI_Type_delete_attr_function::at(with_exposed_provenance_mut(function));
                    function(datatype, number, value, extra)
                }
                Object::Win(win) => {
                    let function = MPI_Win_delete_attr_function::at(with_exposed_provenance_mut(function));
                    function(win, number, value, extra)
                }
            }
        };
        self.check("delete", code)
    }

    fn check(&self, what: &str, code: c_int) -> Result {
        ensure!(
            code == MPI_SUCCESS,
            code,
            "the {what} function of keyval {} has returned the error code {code}",
            self.number
        );
        Ok(())
    }
}

impl Drop for Keyval {
    fn drop(&mut self) {
        let removed = KEYVALS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
        debug_assert!(!matches!(removed, Some((_, Some(_)))), "the program has a share of the keyval");
    }
}

/// Creates a keyval; gives the program its number.
unsafe fn create(
    kind: Holder,
    (copy, delete): (usize, usize),
    place: *mut c_int,
    extra_state: *mut c_void,
) -> Result {
    let place = output("the place of the keyval", place)?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let extra_state = extra_state.expose_provenance();
    let keyval = Arc::new(Keyval { number, kind, copy, delete, extra_state });
    let known = (Arc::downgrade(&keyval), Some(keyval));
    KEYVALS.lock().unwrap_or_else(PoisonError::into_inner).insert(number, known);
    // SAFETY: the caller's pointer is valid for one value.
    unsafe { place.write(number) };
    Ok(())
}

/// Frees the program's share of a keyval. Objects keep attributes with it.
unsafe fn free(kind: Holder, place: *mut c_int) -> Result {
    let place = output("the keyval", place)?;
    // SAFETY: the caller's pointer is valid for one value.
    let number = unsafe { place.read() };
    // Dropped after the lock, because the last share takes it.
    let keyval = Keyval::find(number, kind)?;
    let mut known = KEYVALS.lock().unwrap_or_else(PoisonError::into_inner);
    let own = known.get_mut(&number).and_then(|(_, own)| own.take());
    drop(known);
    drop((own, keyval));
    // SAFETY: the caller's pointer is valid, as for the read above.
    unsafe { place.write(MPI_KEYVAL_INVALID) };
    Ok(())
}

/// `MPI_Comm_create_keyval`.
pub unsafe fn comm_create_keyval(
    copy: *mut MPI_Comm_copy_attr_function,
    delete: *mut MPI_Comm_delete_attr_function,
    keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Result {
    let functions = (copy.expose_provenance(), delete.expose_provenance());
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { create(Holder::Comm, functions, keyval, extra_state) }
}

/// `MPI_Keyval_create`, the old form for communicators.
pub unsafe fn keyval_create(
    copy: *mut MPI_Copy_function,
    delete: *mut MPI_Delete_function,
    keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Result {
    // SAFETY: the caller passes functions and places that are valid; the types of functions are the same.
    unsafe { comm_create_keyval(copy.cast(), delete.cast(), keyval, extra_state) }
}

/// `MPI_Type_create_keyval`.
pub unsafe fn type_create_keyval(
    copy: *mut MPI_Type_copy_attr_function,
    delete: *mut MPI_Type_delete_attr_function,
    keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Result {
    let functions = (copy.expose_provenance(), delete.expose_provenance());
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { create(Holder::Type, functions, keyval, extra_state) }
}

/// `MPI_Win_create_keyval`.
pub unsafe fn win_create_keyval(
    copy: *mut MPI_Win_copy_attr_function,
    delete: *mut MPI_Win_delete_attr_function,
    keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Result {
    let functions = (copy.expose_provenance(), delete.expose_provenance());
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { create(Holder::Win, functions, keyval, extra_state) }
}

/// `MPI_Comm_free_keyval`.
pub unsafe fn comm_free_keyval(keyval: *mut c_int) -> Result {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { free(Holder::Comm, keyval) }
}

/// `MPI_Type_free_keyval`.
pub unsafe fn type_free_keyval(keyval: *mut c_int) -> Result {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { free(Holder::Type, keyval) }
}

/// `MPI_Win_free_keyval`.
pub unsafe fn win_free_keyval(keyval: *mut c_int) -> Result {
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { free(Holder::Win, keyval) }
}
