//! Attributes: values that programs attach to communicators, datatypes and windows.
//!
//! Invariant: the program's functions are called without a lock, and while the object and the attribute still
//! exist. Attributes are copied in the order in which they were set, and deleted in the reverse order.

mod keyval;
mod predefined;

pub use keyval::*;

use crate::abi::*;
use crate::chapters::error::{Error, Result, ensure};
use crate::chapters::library::{Mpi, output};
use crate::chapters::{datatype, win};
use std::ptr::with_exposed_provenance_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The attributes of an object.
#[derive(Debug, Default)]
pub struct Attributes(Mutex<Vec<Attribute>>);

#[derive(Clone, Debug)]
struct Attribute {
    keyval: Arc<Keyval>,
    /// A pointer, or a number that the program passes as one.
    value: usize,
}

impl Attributes {
    fn lock(&self) -> MutexGuard<'_, Vec<Attribute>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, number: c_int) -> Option<Attribute> {
        self.lock().iter().find(|attribute| attribute.keyval.number == number).cloned()
    }

    /// Removes the attribute, and gives its share of the keyval to the caller.
    fn remove(&self, number: c_int) -> Option<Attribute> {
        let mut all = self.lock();
        let position = all.iter().position(|attribute| attribute.keyval.number == number)?;
        Some(all.remove(position))
    }

    /// The value of an attribute, if the object has it.
    fn value(&self, number: c_int, kind: Holder) -> Result<Option<usize>> {
        match self.find(number) {
            Some(attribute) => Ok(Some(attribute.value)),
            None => Keyval::find(number, kind).map(|_| None),
        }
    }

    /// Sets a value. The delete function gets an old one, which stays if the function fails.
    fn set(&self, object: Object, number: c_int, value: usize) -> Result {
        let keyval = Keyval::find(number, object.kind())?;
        if self.find(number).is_some() {
            self.delete(object, number)?;
        }
        self.lock().push(Attribute { keyval, value });
        Ok(())
    }

    /// Deletes an attribute. It stays if its delete function fails.
    fn delete(&self, object: Object, number: c_int) -> Result {
        let Some(attribute) = self.find(number) else {
            Keyval::find(number, object.kind())?;
            return Err(Error::new(
                MPI_ERR_KEYVAL,
                format!("the object has no attribute with keyval {number}"),
            ));
        };
        attribute.keyval.delete(object, attribute.value)?;
        drop(self.remove(number));
        Ok(())
    }

    /// Gives a duplicate of the object the attributes that the copy functions say. If one fails, there will
    /// be no duplicate.
    pub fn copy_to(&self, from: Object, new: &Attributes) -> Result {
        let all = self.lock().clone();
        for Attribute { keyval, value } in all {
            match keyval.copy(from, value) {
                Ok(None) => {}
                Ok(Some(value)) => new.lock().push(Attribute { keyval, value }),
                Err(error) => {
                    new.give_up(from);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Deletes the attributes of a duplicate that there will not be. As it has no handle, the delete
    /// functions get that of the other object. The first error of the duplication is reported, not theirs.
    pub fn give_up(&self, from: Object) {
        let _ = self.delete_all(from);
        self.lock().clear();
    }

    /// Deletes all attributes, the latest first, before the object goes. If a delete function fails, its
    /// attribute and the earlier ones stay, and so must the object.
    pub fn delete_all(&self, object: Object) -> Result {
        loop {
            let last = self.lock().last().cloned();
            let Some(Attribute { keyval, value }) = last else { return Ok(()) };
            keyval.delete(object, value)?;
            drop(self.remove(keyval.number));
        }
    }
}

/// Tells the program a value, if there is one.
unsafe fn tell(value: Option<usize>, place: *mut c_void, flag: *mut c_int) -> Result {
    let (place, flag) = (output("attribute_val", place)?, output("flag", flag)?);
    // SAFETY: the caller's pointers are valid: the first for an address.
    unsafe {
        if let Some(value) = value {
            place.cast::<*mut c_void>().write(with_exposed_provenance_mut(value));
        }
        flag.write(value.is_some().into());
    }
    Ok(())
}

/// `MPI_Comm_set_attr`.
pub unsafe fn comm_set_attr(mpi: &Mpi, comm: MPI_Comm, keyval: c_int, value: *mut c_void) -> Result {
    let attributes = &mpi.comm(comm)?.attributes;
    ensure!(
        predefined::of_communicators(mpi, keyval).is_none(),
        MPI_ERR_KEYVAL,
        "keyval {keyval} is one of the standard's, whose attributes cannot be changed"
    );
    attributes.set(Object::Comm(comm), keyval, value.expose_provenance())
}

/// `MPI_Comm_get_attr`.
pub unsafe fn comm_get_attr(
    mpi: &Mpi,
    comm: MPI_Comm,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Result {
    let comm = mpi.comm(comm)?;
    let found = match predefined::of_communicators(mpi, keyval) {
        // In the sessions model the others do not exist.
        Some(_) if comm.group.session != MPI_SESSION_NULL && keyval != MPI_TAG_UB => None,
        Some(place) => Some(place.expose_provenance()),
        None => comm.attributes.value(keyval, Holder::Comm)?,
    };
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { tell(found, value, flag) }
}

/// `MPI_Comm_delete_attr`.
pub unsafe fn comm_delete_attr(mpi: &Mpi, comm: MPI_Comm, keyval: c_int) -> Result {
    let attributes = &mpi.comm(comm)?.attributes;
    ensure!(
        predefined::of_communicators(mpi, keyval).is_none(),
        MPI_ERR_KEYVAL,
        "keyval {keyval} is one of the standard's, whose attributes cannot be deleted"
    );
    attributes.delete(Object::Comm(comm), keyval)
}

/// `MPI_Type_set_attr`.
pub unsafe fn type_set_attr(_mpi: &Mpi, of: MPI_Datatype, keyval: c_int, value: *mut c_void) -> Result {
    datatype::attributes(of)?.set(Object::Type(of), keyval, value.expose_provenance())
}

/// `MPI_Type_get_attr`.
pub unsafe fn type_get_attr(
    _mpi: &Mpi,
    of: MPI_Datatype,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Result {
    let found = datatype::attributes(of)?.value(keyval, Holder::Type)?;
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { tell(found, value, flag) }
}

/// `MPI_Type_delete_attr`.
pub unsafe fn type_delete_attr(_mpi: &Mpi, of: MPI_Datatype, keyval: c_int) -> Result {
    datatype::attributes(of)?.delete(Object::Type(of), keyval)
}

/// `MPI_Win_set_attr`.
pub unsafe fn win_set_attr(_mpi: &Mpi, of: MPI_Win, keyval: c_int, value: *mut c_void) -> Result {
    let attributes = win::attributes(of)?;
    ensure!(
        win::predefined(of, keyval).is_none(),
        MPI_ERR_KEYVAL,
        "keyval {keyval} is one of the standard's, whose attributes cannot be changed"
    );
    attributes.set(Object::Win(of), keyval, value.expose_provenance())
}

/// `MPI_Win_get_attr`.
pub unsafe fn win_get_attr(
    _mpi: &Mpi,
    of: MPI_Win,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Result {
    let attributes = win::attributes(of)?;
    let found = match win::predefined(of, keyval) {
        Some(value) => Some(value.expose_provenance()),
        None => attributes.value(keyval, Holder::Win)?,
    };
    // SAFETY: the caller passes places and texts that are valid, or null.
    unsafe { tell(found, value, flag) }
}

/// `MPI_Win_delete_attr`.
pub unsafe fn win_delete_attr(_mpi: &Mpi, of: MPI_Win, keyval: c_int) -> Result {
    let attributes = win::attributes(of)?;
    ensure!(
        win::predefined(of, keyval).is_none(),
        MPI_ERR_KEYVAL,
        "keyval {keyval} is one of the standard's, whose attributes cannot be deleted"
    );
    attributes.delete(Object::Win(of), keyval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    static DELETED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

    unsafe extern "C-unwind" fn doubles(
        _: MPI_Comm,
        _: c_int,
        extra: *mut c_void,
        value: *mut c_void,
        out: *mut c_void,
        flag: *mut c_int,
    ) -> c_int {
        // SAFETY: the library passes places of an address and a number.
        unsafe {
            out.cast::<usize>().write(value.addr() * 2 + extra.addr());
            flag.write(1);
        }
        if value.addr() == 13 { MPI_ERR_OTHER } else { MPI_SUCCESS }
    }

    unsafe extern "C-unwind" fn notes(_: MPI_Comm, _: c_int, value: *mut c_void, _: *mut c_void) -> c_int {
        DELETED.lock().unwrap().push(value.addr());
        if value.addr() == 99 { MPI_ERR_ARG } else { MPI_SUCCESS }
    }

    fn keyval(copy: usize, delete: usize) -> c_int {
        let (copy, delete) = (with_exposed_provenance_mut(copy), with_exposed_provenance_mut(delete));
        let mut number = 0;
        // SAFETY: the functions have the types of the calls; the place is valid.
        unsafe {
            comm_create_keyval(copy, delete, &raw mut number, with_exposed_provenance_mut(1)).unwrap();
        }
        number
    }

    const ONE: Object = Object::Comm(MPI_COMM_SELF);
    const TWO: Object = Object::Comm(MPI_COMM_WORLD);

    /// All of them change the list of deleted values, so they are one test.
    #[test]
    fn attributes_are_copied_in_order_and_deleted_in_reverse_order() {
        let deletes = notes as *const () as usize;
        let doubled = keyval(doubles as *const () as usize, deletes);
        let (same, none) = (keyval(1, deletes), keyval(0, deletes));
        let (old, new) = (Attributes::default(), Attributes::default());
        for (key, value) in [(doubled, 5), (same, 6), (none, 7)] {
            old.set(ONE, key, value).unwrap();
        }
        old.copy_to(ONE, &new).unwrap();
        let values = |of: &Attributes| of.lock().iter().map(|a| a.value).collect::<Vec<_>>();
        assert_eq!((values(&old), values(&new)), (vec![5, 6, 7], vec![11, 6]));
        old.set(ONE, doubled, 13).unwrap();
        let third = Attributes::default();
        assert_eq!(old.copy_to(ONE, &third).map_err(|e| e.code()), Err(MPI_ERR_OTHER));
        assert!(values(&third).is_empty());
        old.delete_all(ONE).unwrap();
        // The replaced value, the copy that was given up, and the rest from the end.
        assert_eq!(*DELETED.lock().unwrap(), [5, 6, 13, 7, 6]);
        new.set(TWO, same, 99).unwrap();
        assert!(new.delete_all(TWO).is_err() && new.set(TWO, same, 1).is_err());
        assert_eq!(values(&new), [11, 99]);
    }

    #[test]
    fn a_keyval_lives_until_no_object_has_it() {
        let number = keyval(1, 0);
        let attributes = Attributes::default();
        attributes.set(ONE, number, 3).unwrap();
        for _ in 0..2 {
            let mut place = number;
            // SAFETY: the place is that of a local variable.
            unsafe { comm_free_keyval(&raw mut place).unwrap() };
            assert_eq!(place, MPI_KEYVAL_INVALID);
        }
        assert_eq!(attributes.value(number, Holder::Comm).unwrap(), Some(3));
        attributes.delete(ONE, number).unwrap();
        assert!(attributes.value(number, Holder::Comm).is_err() && attributes.set(ONE, number, 1).is_err());
    }

    #[test]
    fn keyvals_of_another_kind_are_refused() {
        let (number, attributes) = (keyval(1, 0), Attributes::default());
        let of_type = Object::Type(MPI_INT);
        assert_eq!(attributes.set(of_type, number, 1).map_err(|e| e.code()), Err(MPI_ERR_KEYVAL));
        assert!(attributes.set(ONE, MPI_KEYVAL_INVALID, 1).is_err());
        assert!(attributes.delete(ONE, number).is_err());
    }
}
