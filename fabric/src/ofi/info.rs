//! An owned `fi_info`: hints, or one offer.
//!
//! Invariant: it is one entry, without successors, allocated by the library and freed by it. Its attributes
//! are not null. Strings in it are on C's heap, as `fi_freeinfo` expects.

use super::library::{Library, OfiError};
use super::sys::{fi_domain_attr, fi_ep_attr, fi_fabric_attr, fi_info, fi_rx_attr, fi_tx_attr};
use libc::c_char;
use std::ffi::CString;
use std::ptr::NonNull;

/// One entry of the lists that `fi_getinfo` takes or returns.
pub struct Info {
    library: &'static Library,
    entry: NonNull<fi_info>,
}

// SAFETY: an entry is memory of C's heap with no tie to a thread, and this value is its only owner.
unsafe impl Send for Info {}

// SAFETY: through a shared reference it is only read; unsafe users of `as_ptr` must agree on writes.
unsafe impl Sync for Info {}

impl Info {
    /// An empty entry, for hints.
    ///
    /// # Errors
    /// If memory is short.
    pub fn empty(library: &'static Library) -> Result<Info, OfiError> {
        // SAFETY: null asks for an empty entry.
        unsafe { Info::copy_of(library, std::ptr::null()) }
    }

    /// A copy of one entry of a list, without its successors.
    ///
    /// # Safety
    /// `entry` is null or an entry that the library has allocated.
    pub(super) unsafe fn copy_of(library: &'static Library, entry: *const fi_info) -> Result<Info, OfiError> {
        // SAFETY: the caller promises null or an entry of this library.
        let copy = NonNull::new(unsafe { (library.functions.fi_dupinfo)(entry) });
        let attributes = copy.filter(|copy| {
            // SAFETY: the library has just allocated this entry.
            let copy = unsafe { copy.as_ref() };
            let transfers = !copy.tx_attr.is_null() && !copy.rx_attr.is_null() && !copy.ep_attr.is_null();
            transfers && !copy.domain_attr.is_null() && !copy.fabric_attr.is_null()
        });
        match attributes {
            Some(entry) => Ok(Info { library, entry }),
            None => Err(library.error("fi_dupinfo", libc::ENOMEM.into(), "Free some memory")),
        }
    }

    /// A copy.
    ///
    /// # Errors
    /// If memory is short.
    pub fn dup(&self) -> Result<Info, OfiError> {
        // SAFETY: the entry is this library's own.
        unsafe { Info::copy_of(self.library, self.entry.as_ptr()) }
    }

    /// The library that has allocated it.
    pub fn library(&self) -> &'static Library {
        self.library
    }

    /// The entry, for calls of the library. It belongs to this value.
    pub fn as_ptr(&self) -> *mut fi_info {
        self.entry.as_ptr()
    }

    /// The entry.
    pub fn entry(&self) -> &fi_info {
        // SAFETY: the entry lives as long as this value, as its invariant says.
        unsafe { self.entry.as_ref() }
    }

    /// The sending side of its endpoint.
    pub fn tx(&self) -> &fi_tx_attr {
        // SAFETY: the attributes live as long as the entry, as the invariant of this type says.
        unsafe { &*self.entry().tx_attr }
    }

    /// The receiving side of its endpoint.
    pub fn rx(&self) -> &fi_rx_attr {
        // SAFETY: the attributes live as long as the entry, as the invariant of this type says.
        unsafe { &*self.entry().rx_attr }
    }

    /// Its endpoint.
    pub fn endpoint(&self) -> &fi_ep_attr {
        // SAFETY: the attributes live as long as the entry, as the invariant of this type says.
        unsafe { &*self.entry().ep_attr }
    }

    /// Its domain.
    pub fn domain(&self) -> &fi_domain_attr {
        // SAFETY: the attributes live as long as the entry, as the invariant of this type says.
        unsafe { &*self.entry().domain_attr }
    }

    /// Its fabric.
    pub fn fabric(&self) -> &fi_fabric_attr {
        // SAFETY: the attributes live as long as the entry, as the invariant of this type says.
        unsafe { &*self.entry().fabric_attr }
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: the entry is the library's, has no successor, and this value was its only owner.
        unsafe { (self.library.functions.fi_freeinfo)(self.entry.as_ptr()) }
    }
}

/// A string on C's heap, for a field of an entry: `fi_freeinfo` frees it.
pub(super) fn on_c_heap(text: &str) -> Result<*mut c_char, OfiError> {
    let failed = |reason: &str| OfiError {
        operation: format!("handing the name {text:?} to libfabric"),
        reason: reason.into(),
        remedy: "Give the name as `pelago info --fabrics` writes it",
    };
    let text = CString::new(text).map_err(|_| failed("it has a zero in it"))?;
    // SAFETY: the string ends with a zero, as `CString` promises.
    let copy = unsafe { libc::strdup(text.as_ptr()) };
    if copy.is_null() { Err(failed("memory is short")) } else { Ok(copy) }
}
