//! Objects as callers hold them: what libfabric's headers show of each, and behind it the number by which
//! the world knows it.
//!
//! Invariant: an object is never freed, so its number can be read from any pointer that was ever handed out;
//! numbers are not used again, so that one that was closed is found out.

use crate::world::Id;
use libc::c_void;
use pelago_fabric::ofi::sys::*;
use pelago_fabric::sync::{AtomicPtr, AtomicU64};
use std::ptr::{from_ref, null_mut};

/// Classes of objects, by which `fi_bind` tells them apart (`rdma/fabric.h`).
pub(crate) const CLASS_FABRIC: usize = 1;
pub(crate) const CLASS_DOMAIN: usize = 2;
pub(crate) const CLASS_EP: usize = 3;
pub(crate) const CLASS_AV: usize = 11;
pub(crate) const CLASS_MR: usize = 12;
pub(crate) const CLASS_CQ: usize = 14;
pub(crate) const CLASS_CNTR: usize = 15;

/// An object.
#[repr(C)]
pub(crate) struct Object<T: Head> {
    head: T,
    id: Id,
    pub(crate) more: T::More,
}

/// What an object begins with; and what lies behind it.
pub(crate) trait Head {
    type More: Default;
}

/// The value of a counter, outside of the world so that it can be counted up without the mutex.
#[derive(Default)]
pub(crate) struct Value {
    pub(crate) count: AtomicU64,
    pub(crate) errors: AtomicU64,
}

/// Where a hollow endpoint counts.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) writes: AtomicPtr<Value>,
    pub(crate) reads: AtomicPtr<Value>,
}

impl Head for fid_fabric {
    type More = ();
}
impl Head for fid_domain {
    type More = ();
}
impl Head for fid_av {
    type More = ();
}
impl Head for fid_mr {
    type More = ();
}
impl Head for fid_cq {
    type More = ();
}
impl Head for fid_cntr {
    type More = Value;
}
impl Head for fid_ep {
    type More = Counts;
}

/// Makes an object.
pub(crate) fn make<T: Head>(id: Id, head: T) -> *mut T {
    Box::into_raw(Box::new(Object { head, id, more: T::More::default() })).cast()
}

/// An object, of which the caller has the head.
///
/// # Safety
/// `make` has made it.
pub(crate) unsafe fn of<'a, T: Head>(head: *mut T) -> &'a Object<T> {
    // SAFETY: the caller says that it was made here, and no object is ever freed.
    unsafe { &*head.cast::<Object<T>>() }
}

/// The number of an object.
///
/// # Safety
/// `make` has made it.
pub(crate) unsafe fn id<T: Head>(head: *mut T) -> Id {
    // SAFETY: the caller says that it was made here.
    unsafe { of(head) }.id
}

/// The number of an object of which the caller has the `fid`.
///
/// # Safety
/// `make` has made it, with a `T` as its head.
pub(crate) unsafe fn id_of_fid<T: Head>(fid: *mut fid) -> Id {
    // SAFETY: the caller says that it is such an object, which begins with its fid.
    unsafe { id::<T>(fid.cast()) }
}

/// What an object begins with. `ops` is a table that nobody writes to.
pub(crate) fn head(class: usize, context: *mut c_void, ops: &'static fi_ops) -> fid {
    fid { fclass: class, context, ops: table(ops) }
}

/// A table as objects hold it.
pub(crate) fn table<T>(table: &'static T) -> *mut T {
    from_ref(table).cast_mut()
}

/// No table: for families that are not offered.
pub(crate) fn no_table<T>() -> *mut T {
    null_mut()
}
