//! Entries of `fi_getinfo`: creation, copying and freeing.
//!
//! Invariant: entries, their attributes and strings are on C's heap, because callers put their own strings
//! into hints; every entry has all its attributes.

use super::profile::Profile;
use libc::{c_char, c_void};
use pelago_fabric::ofi::sys::*;
use std::ffi::CStr;
use std::ptr::null_mut;

/// Copies an entry, without its successors; returns an empty entry for a null pointer: `fi_dupinfo(3)`.
pub(crate) unsafe extern "C" fn fi_dupinfo(info: *const fi_info) -> *mut fi_info {
    let copy = empty();
    // SAFETY: the caller passes an entry that this library has made, or null; the copy was just made. Each
    // attribute of the entry is copied as a whole, and then the data that it points to.
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
    // SAFETY: the caller passes ownership of a list that this library has made: all data that it points to
    // are on C's heap and belong to it.
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

/// A new entry with all attributes, all zero.
pub(crate) fn empty() -> *mut fi_info {
    let entry = room::<fi_info>();
    // SAFETY: the entry was just made, and has no other owner.
    unsafe {
        (*entry).tx_attr = room();
        (*entry).rx_attr = room();
        (*entry).ep_attr = room();
        (*entry).domain_attr = room();
        (*entry).fabric_attr = room();
    }
    entry
}

/// Copies a string to C's heap.
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
    // SAFETY: the caller guarantees that the entry is valid.
    let info = unsafe { &*info };
    (info.tx_attr, info.rx_attr, info.ep_attr, info.domain_attr, info.fabric_attr)
}

/// A string of an entry, or none.
///
/// # Safety
/// The pointer is null, or points to a string that ends with a zero and lives for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller guarantees that the string is valid.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// Whether an entry is an offer of this provider.
///
/// # Safety
/// The entry is null or of this library.
pub(crate) unsafe fn is_of(info: *const fi_info, profile: &Profile) -> bool {
    // SAFETY: the caller guarantees that the entry is valid; every entry has all its attributes.
    unsafe {
        let Some(info) = info.as_ref() else { return false };
        text((*info.fabric_attr).prov_name).is_some_and(|name| name.to_bytes() == profile.name.as_bytes())
            && (*info.ep_attr).r#type == FI_EP_RDM
    }
}

/// The strings that an entry points to.
///
/// # Safety
/// The entry is of this library.
unsafe fn names(info: *mut fi_info) -> [*mut *mut c_char; 3] {
    // SAFETY: the caller guarantees that the entry is valid; every entry has all its attributes.
    unsafe {
        let (_, _, _, domain, fabric) = attributes(info);
        [&raw mut (*domain).name, &raw mut (*fabric).name, &raw mut (*fabric).prov_name]
    }
}

/// The other data that an entry points to, and their lengths in bytes.
///
/// # Safety
/// The entry is of this library.
unsafe fn blocks(info: *mut fi_info) -> [(*mut *mut c_void, usize); 4] {
    // SAFETY: the caller guarantees that the entry is valid; every entry has all its attributes.
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

/// Copies `source` to `room`, unless it is null; returns `room`.
///
/// # Safety
/// Both point to valid values of their type, or `source` is null.
unsafe fn overwritten<T: Copy>(room: *mut T, source: *const T) -> *mut T {
    // SAFETY: the caller guarantees that both are valid.
    if let Some(source) = unsafe { source.as_ref() } {
        // SAFETY: the caller guarantees that the buffer is valid.
        unsafe { room.write(*source) };
    }
    room
}

/// Copies this number of bytes to C's heap; null if the pointer is null.
///
/// # Safety
/// The pointer points to this number of bytes, or is null.
unsafe fn bytes_of(data: *const c_void, bytes: usize) -> *mut c_void {
    if data.is_null() || bytes == 0 {
        return null_mut();
    }
    // SAFETY: the caller guarantees that the bytes are valid; the copy has the same length.
    unsafe { libc::memcpy(allocated(libc::malloc(bytes)), data, bytes) }
}

/// Allocates a zeroed `T` on C's heap.
fn room<T: Zeroed>() -> *mut T {
    // SAFETY: the function accepts any count and size.
    allocated(unsafe { libc::calloc(1, size_of::<T>()) }).cast()
}

/// Checks the result of an allocation.
fn allocated<T>(place: *mut T) -> *mut T {
    assert!(!place.is_null(), "no memory for an entry of fi_getinfo");
    place
}
