//! Objects: what callers hold of each, its head, and behind it the number by which the world knows its state.
//!
//! Invariant: an object is never freed, so its number can be read from any pointer that was ever handed out;
//! numbers are not used again, so that one that was closed is found out.

use super::refusal::Table;
use super::world::{Class, Id, World, at, world};
use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;
use std::ptr::from_ref;
use std::sync::MutexGuard;

/// An object.
#[repr(C)]
pub(crate) struct Object<T: Head> {
    head: T,
    id: Id,
    /// What is reached without the mutex.
    pub(crate) shared: T::Shared,
}

/// What libfabric's headers show of an object, which begins with a `fid`.
pub(crate) trait Head: Class {
    /// What every object can do.
    const OPS: &'static fi_ops = &closable::<Self>();
    type Shared: Default;

    /// Whether another open object needs it.
    fn is_in_use(world: &World, id: Id) -> bool;

    /// What remains to be done when it was closed.
    fn leave(_world: &mut World, _id: Id, _state: Self::State) {}
}

/// What every object can do, of one that can only be closed.
pub(crate) const fn closable<T: Head>() -> fi_ops {
    fi_ops { close: Some(close::<T>), ..fi_ops::EMPTY }
}

/// Opens an object: its state goes into the world, and its head to the caller. `state` is told its number and
/// where its head lies.
///
/// # Safety
/// The place is valid for a write.
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
    // SAFETY: the caller vouches for the place.
    unsafe { place.write(object) };
    0
}

/// An object, of which the caller has the head.
///
/// # Safety
/// `open` has made it.
#[inline(always)]
pub(crate) unsafe fn of<'a, T: Head>(head: *mut T) -> &'a Object<T> {
    // SAFETY: the caller says that it was made here, and no object is ever freed.
    unsafe { &*head.cast::<Object<T>>() }
}

/// The world, and the number of an object, which must be open.
///
/// # Safety
/// `open` has made it.
pub(crate) unsafe fn enter<T: Head>(head: *mut T) -> (MutexGuard<'static, World>, Id) {
    // SAFETY: the caller says that it was made here.
    let id = unsafe { of(head) }.id;
    let mut world = world();
    at(T::states(&mut world), id);
    (world, id)
}

/// The number of an object, if it is one of that class.
///
/// # Safety
/// `open` has made it, of whatever class.
pub(crate) unsafe fn id_of<T: Head>(fid: *mut fid) -> Option<Id> {
    // SAFETY: the caller says that it is an object, which begins with its fid; the class says of which kind.
    unsafe { ((*fid).fclass == T::NUMBER).then(|| of(fid.cast::<T>()).id) }
}

/// A table as objects hold it. Nobody writes to it.
pub(crate) fn table<T>(table: &'static T) -> *mut T {
    from_ref(table).cast_mut()
}

unsafe extern "C" fn close<T: Head>(fid: *mut fid) -> c_int {
    // SAFETY: the table is that of such objects, which begin with their fid.
    let (mut world, id) = unsafe { enter(fid.cast::<T>()) };
    if T::is_in_use(&world, id) {
        return -FI_EBUSY;
    }
    if let Some(state) = T::states(&mut world).remove(&id) {
        T::leave(&mut world, id, state);
    }
    0
}
