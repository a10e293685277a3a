//! Entries of `fi_getinfo`: made, copied and freed.
//!
//! Invariant: entries, their attributes and strings lie on C's heap, as callers put strings of their own
//! into hints; every entry has all its attributes.

use super::profile::Profile;
use libc::{c_char, c_void};
use pelago_fabric::ofi::sys::*;
use std::ffi::CStr;
use std::ptr::null_mut;

/// A copy of an entry, without its successors; of null an empty one: `fi_dupinfo(3)`.
pub(crate) unsafe extern "C" fn fi_dupinfo(info: *const fi_info) -> *mut fi_info {
    let copy = empty();
    // SAFETY: the caller gives an entry that this library has made, or null; the copy was just made. Each
    // attribute that the entry has is copied whole, and then what it points to.
    unsafe {
        let Some(info) = info.as_ref() else { return copy };
        let (tx, rx, ep, domain, fabric) = attributes(copy);
        *copy = *info;
        (*copy).next = null_mut();
        (*copy).tx_attr = overwritten(tx, info.tx_attr);
        (*copy).rx_attr = overwritten(rx, info.rx_attr);
        (*copy).ep_attr = overwritten(ep, info.ep_attr);
        (*copy).domain_attr = overwritten(domain, info.domain_attr);
        (*copy).fabric_attr = overwritten(fabric, info.fabric_attr);
        for place in names(copy) {
            *place = text(*place).map_or(null_mut(), string);
        }
        for (place, bytes) in blocks(copy) {
            *place = bytes_of(*place, bytes);
        }
    }
    copy
}

/// Frees a list: `fi_freeinfo(3)`.
pub(crate) unsafe extern "C" fn fi_freeinfo(mut info: *mut fi_info) {
    // SAFETY: the caller lets go of a list that this library has made: all that it points to is of C's heap
    // and its own.
    unsafe {
        while !info.is_null() {
            names(info).into_iter().for_each(|place| libc::free((*place).cast()));
            blocks(info).into_iter().for_each(|(place, _)| libc::free(*place));
            let (tx, rx, ep, domain, fabric) = attributes(info);
            for attributes in [tx.cast(), rx.cast(), ep.cast(), domain.cast(), fabric.cast()] {
                libc::free(attributes);
            }
            let next = (*info).next;
            libc::free(info.cast());
            info = next;
        }
    }
}

/// An entry with all attributes, all zero.
pub(crate) fn empty() -> *mut fi_info {
    let entry = room::<fi_info>();
    // SAFETY: the entry was just made, and nobody else has it.
    unsafe {
        (*entry).tx_attr = room();
        (*entry).rx_attr = room();
        (*entry).ep_attr = room();
        (*entry).domain_attr = room();
        (*entry).fabric_attr = room();
    }
    entry
}

/// A string on C's heap.
pub(crate) fn string(text: &CStr) -> *mut c_char {
    // SAFETY: the string ends with a zero.
    allocated(unsafe { libc::strdup(text.as_ptr()) })
}

type Attributes =
    (*mut fi_tx_attr, *mut fi_rx_attr, *mut fi_ep_attr, *mut fi_domain_attr, *mut fi_fabric_attr);

/// The attributes of an entry.
///
/// # Safety
/// The entry is of this library.
pub(crate) unsafe fn attributes(info: *const fi_info) -> Attributes {
    // SAFETY: the caller vouches for the entry.
    let info = unsafe { &*info };
    (info.tx_attr, info.rx_attr, info.ep_attr, info.domain_attr, info.fabric_attr)
}

/// A string of an entry, or none.
///
/// # Safety
/// It is null, or ends with a zero and lives long enough.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller vouches for the string.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// Whether an entry is an offer of that provider.
///
/// # Safety
/// The entry is null or of this library.
pub(crate) unsafe fn is_of(info: *const fi_info, profile: &Profile) -> bool {
    // SAFETY: the caller vouches for the entry, whose attributes are there.
    unsafe {
        let Some(info) = info.as_ref() else { return false };
        text((*info.fabric_attr).prov_name).is_some_and(|name| name.to_bytes() == profile.name.as_bytes())
            && (*info.ep_attr).r#type == FI_EP_RDM
    }
}

/// The names that an entry points to.
///
/// # Safety
/// The entry is of this library.
unsafe fn names(info: *mut fi_info) -> [*mut *mut c_char; 3] {
    // SAFETY: the caller vouches for the entry, whose attributes are there.
    unsafe {
        let (_, _, _, domain, fabric) = attributes(info);
        [&raw mut (*domain).name, &raw mut (*fabric).name, &raw mut (*fabric).prov_name]
    }
}

/// What else an entry points to, and how many bytes there are.
///
/// # Safety
/// The entry is of this library.
unsafe fn blocks(info: *mut fi_info) -> [(*mut *mut c_void, usize); 4] {
    // SAFETY: the caller vouches for the entry, whose attributes are there.
    unsafe {
        let (_, _, ep, domain, _) = attributes(info);
        [
            (&raw mut (*info).src_addr, (*info).src_addrlen),
            (&raw mut (*info).dest_addr, (*info).dest_addrlen),
            ((&raw mut (*ep).auth_key).cast(), (*ep).auth_key_size),
            ((&raw mut (*domain).auth_key).cast(), (*domain).auth_key_size),
        ]
    }
}

/// `room` with what is at `source`, unless that is null.
///
/// # Safety
/// Both are what their type says, or `source` is null.
unsafe fn overwritten<T: Copy>(room: *mut T, source: *const T) -> *mut T {
    // SAFETY: the caller vouches for both.
    if let Some(source) = unsafe { source.as_ref() } {
        // SAFETY: the caller vouches for the room.
        unsafe { room.write(*source) };
    }
    room
}

/// A copy of so many bytes on C's heap, or null.
///
/// # Safety
/// There are so many bytes, or the pointer is null.
unsafe fn bytes_of(data: *const c_void, bytes: usize) -> *mut c_void {
    if data.is_null() || bytes == 0 {
        return null_mut();
    }
    // SAFETY: the caller vouches for the bytes; the copy has room for them.
    unsafe { libc::memcpy(allocated(libc::malloc(bytes)), data, bytes) }
}

/// Room for a `T` on C's heap, all zero.
fn room<T: Zeroed>() -> *mut T {
    // SAFETY: any count and size may be asked for.
    allocated(unsafe { libc::calloc(1, size_of::<T>()) }).cast()
}

/// What C's heap has given.
fn allocated<T>(place: *mut T) -> *mut T {
    assert!(!place.is_null(), "no memory for an entry of fi_getinfo");
    place
}
