//! Objects: a caller holds a pointer to the head of an object; after the head follows the number under which
//! the world stores its state.
//!
//! Invariant: an object is never freed, so its number can be read through any pointer that was ever returned;
//! numbers are not reused, so that the use of a closed object is detected.

use super::refusal::Table;
use super::world::{Class, Id, World, at, world};
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;
use std::ptr::from_ref;
use std::sync::MutexGuard;

/// An object: the head, and data of this library.
#[repr(C)]
pub(crate) struct Object<T: Head> {
    head: T,
    id: Id,
    /// Data that are accessed without the mutex.
    pub(crate) shared: T::Shared,
}

/// The public part of an object in libfabric's headers, which begins with a `fid`.
pub(crate) trait Head: Class {
    /// The operations of every object.
    const OPS: &'static fi_ops = &closable::<Self>();
    type Shared: Default;

    /// Whether another open object depends on it.
    fn is_in_use(world: &World, id: Id) -> bool;

    /// Cleans up after the object was closed.
    fn leave(_world: &mut World, _id: Id, _state: Self::State) {}
}

/// The common operations of an object that can only be closed.
pub(crate) const fn closable<T: Head>() -> fi_ops {
    fi_ops { close: Some(close::<T>), ..fi_ops::EMPTY }
}

/// Opens an object: stores its state in the world, and returns its head to the caller. `state` receives the
/// number of the object and the address of its head.
///
/// # Safety
/// `place` is valid for a write.
pub(crate) unsafe fn open<T: Head>(
    world: &mut World,
    place: *mut *mut T,
    context: *mut c_void,
    head: impl FnOnce(fid) -> T,
    state: impl FnOnce(Id, *mut T) -> T::State,
) -> c_int {
    let id = world.new_id();
    let head = head(fid { fclass: T::NUMBER, context, ops: table(T::OPS) });
    let object = Box::into_raw(Box::new(Object { head, id, shared: T::Shared::default() })).cast();
    T::states(world).insert(id, state(id, object));
    // SAFETY: the caller guarantees that `place` is valid for a write.
    unsafe { place.write(object) };
    0
}

/// The object of a head.
///
/// # Safety
/// The pointer comes from `open`.
#[inline(always)]
pub(crate) unsafe fn of<'a, T: Head>(head: *mut T) -> &'a Object<T> {
    // SAFETY: the caller guarantees that the head comes from `open`, and no object is ever freed.
    unsafe { &*head.cast::<Object<T>>() }
}

/// The world, and the number of an object, which must be open.
///
/// # Safety
/// The pointer comes from `open`.
pub(crate) unsafe fn enter<T: Head>(head: *mut T) -> (MutexGuard<'static, World>, Id) {
    // SAFETY: the caller guarantees that the head comes from `open`.
    let id = unsafe { of(head) }.id;
    let mut world = world();
    at(T::states(&mut world), id);
    (world, id)
}

/// The number of an object, if it is of this class.
///
/// # Safety
/// The pointer comes from `open`, of any class.
pub(crate) unsafe fn id_of<T: Head>(fid: *mut fid) -> Option<Id> {
    // SAFETY: the caller guarantees that it is an object, which begins with its fid; the fid contains the
    // class.
    unsafe { ((*fid).fclass == T::NUMBER).then(|| of(fid.cast::<T>()).id) }
}

/// A pointer to a table of functions, for the head of an object. The table is never written to.
pub(crate) fn table<T>(table: &'static T) -> *mut T {
    from_ref(table).cast_mut()
}

unsafe extern "C" fn close<T: Head>(fid: *mut fid) -> c_int {
    // SAFETY: only the table of objects of this class contains this function, and they begin with their fid.
    let (mut world, id) = unsafe { enter(fid.cast::<T>()) };
    if T::is_in_use(&world, id) {
        return -FI_EBUSY;
    }
    if let Some(state) = T::states(&mut world).remove(&id) {
        T::leave(&mut world, id, state);
    }
    0
}
