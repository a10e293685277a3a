//! Entries of `fi_getinfo`: made, copied and freed.
//!
//! Invariant: entries, their attributes and strings lie on C's heap, as callers put strings of their own
//! into hints; every entry has all its attributes.

use crate::profile::Profile;
use pelago_fabric::ofi::sys::*;
use std::ffi::CStr;
use std::ptr::null_mut;

/// Room for a `T` on C's heap, all zero.
fn room<T: Zeroed>() -> *mut T {
    // SAFETY: any count and size may be asked for.
    let room = unsafe { libc::calloc(1, size_of::<T>()) };
    assert!(!room.is_null(), "no memory for an entry of fi_getinfo");
    room.cast()
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
pub(crate) fn string(text: &CStr) -> *mut libc::c_char {
    // SAFETY: the string ends with a zero.
    let copy = unsafe { libc::strdup(text.as_ptr()) };
    assert!(!copy.is_null(), "no memory for a string of fi_getinfo");
    copy
}

/// A copy of a string that may be null.
///
/// # Safety
/// It is null, or ends with a zero.
unsafe fn string_of(text: *const libc::c_char) -> *mut libc::c_char {
    // SAFETY: the caller vouches for the string.
    if text.is_null() { null_mut() } else { string(unsafe { CStr::from_ptr(text) }) }
}

/// A copy of so many bytes, or null.
///
/// # Safety
/// There are so many bytes, or the pointer is null.
unsafe fn bytes_of(data: *const libc::c_void, bytes: usize) -> *mut libc::c_void {
    if data.is_null() || bytes == 0 {
        return null_mut();
    }
    // SAFETY: the caller vouches for the bytes; the copy has room for them.
    unsafe {
        let copy = libc::malloc(bytes);
        assert!(!copy.is_null(), "no memory for an address of fi_getinfo");
        libc::memcpy(copy, data, bytes)
    }
}

/// A copy of an entry, without its successors; of null an empty one: `fi_dupinfo(3)`.
///
/// # Safety
/// The entry is null or of this library, with strings of C's heap.
pub(crate) unsafe fn duplicate(info: *const fi_info) -> *mut fi_info {
    let copy = empty();
    // SAFETY: the caller vouches for the entry; the copy was just made. Each attribute that the entry has is
    // copied whole, and then what it points to.
    unsafe {
        let Some(info) = info.as_ref() else { return copy };
        let (tx, rx, ep, domain, fabric) = attributes(copy);
        *copy = *info;
        (*copy).next = null_mut();
        (*copy).src_addr = bytes_of(info.src_addr, info.src_addrlen);
        (*copy).dest_addr = bytes_of(info.dest_addr, info.dest_addrlen);
        (*copy).tx_attr = overwritten(tx, info.tx_attr);
        (*copy).rx_attr = overwritten(rx, info.rx_attr);
        (*copy).ep_attr = overwritten(ep, info.ep_attr);
        (*copy).domain_attr = overwritten(domain, info.domain_attr);
        (*copy).fabric_attr = overwritten(fabric, info.fabric_attr);
        (*domain).name = string_of((*domain).name);
        (*fabric).name = string_of((*fabric).name);
        (*fabric).prov_name = string_of((*fabric).prov_name);
        (*ep).auth_key = bytes_of((*ep).auth_key.cast(), (*ep).auth_key_size).cast();
        (*domain).auth_key = bytes_of((*domain).auth_key.cast(), (*domain).auth_key_size).cast();
    }
    copy
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

/// Frees a list: `fi_freeinfo(3)`.
///
/// # Safety
/// The list is of this library, and nobody uses it any more.
pub(crate) unsafe fn free(mut info: *mut fi_info) {
    // SAFETY: the caller vouches for the list: all that it points to is of C's heap and its own.
    unsafe {
        while let Some(entry) = info.as_ref() {
            let (tx, rx, ep, domain, fabric) = attributes(entry);
            for data in [(*ep).auth_key.cast(), (*domain).auth_key.cast(), entry.src_addr, entry.dest_addr] {
                libc::free(data);
            }
            for name in [(*domain).name, (*fabric).name, (*fabric).prov_name] {
                libc::free(name.cast());
            }
            for attributes in [tx.cast(), rx.cast(), ep.cast(), domain.cast(), fabric.cast()] {
                libc::free(attributes);
            }
            let next = entry.next;
            libc::free(info.cast());
            info = next;
        }
    }
}

/// A string of an entry, or none.
///
/// # Safety
/// It is null, or ends with a zero and lives long enough.
pub(crate) unsafe fn name<'a>(text: *const libc::c_char) -> Option<&'a [u8]> {
    // SAFETY: the caller vouches for the string.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// Whether an entry is an offer of that provider.
///
/// # Safety
/// The entry is null or of this library.
pub(crate) unsafe fn is_of(info: *const fi_info, profile: &Profile) -> bool {
    // SAFETY: the caller vouches for the entry, whose attributes are there.
    unsafe {
        let Some(info) = info.as_ref() else { return false };
        name((*info.fabric_attr).prov_name) == Some(profile.name.as_bytes())
            && (*info.ep_attr).r#type == FI_EP_RDM
    }
}
