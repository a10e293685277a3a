//! Buffers as in the arguments of calls: local buffers, and ranges of a peer's memory.
//!
//! Invariant: a call names at most one local buffer, according to the limits of the offers.

use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;

/// A buffer as in the arguments of a call: its address, its length, its descriptor.
pub(crate) type Place = (*const c_void, usize, *mut c_void);

/// No buffer.
pub(crate) const NOWHERE: Place = (std::ptr::null(), 0, std::ptr::null_mut());

/// The only buffer of the arrays of a call; an error if there are more.
///
/// # Safety
/// The arrays have `count` elements; the descriptors may be null.
pub(crate) unsafe fn only<E: Element>(
    elements: *const E,
    descriptors: *mut *mut c_void,
    count: usize,
) -> Result<Place, c_int> {
    match count {
        0 => Ok(NOWHERE),
        // SAFETY: the caller guarantees that the arrays are valid.
        1 => unsafe {
            let (address, length) = (*elements).range();
            Ok((address, length, descriptors.as_ref().map_or(std::ptr::null_mut(), |first| *first)))
        },
        _ => Err(FI_EINVAL),
    }
}

/// An element of the arrays that name buffers.
pub(crate) trait Element {
    /// Its address and its length.
    fn range(&self) -> (*const c_void, usize);
}

impl Element for iovec {
    fn range(&self) -> (*const c_void, usize) {
        (self.iov_base, self.iov_len)
    }
}

impl Element for fi_ioc {
    fn range(&self) -> (*const c_void, usize) {
        (self.addr, self.count)
    }
}

/// A local buffer.
#[derive(Default)]
pub(crate) struct Local {
    pub(crate) address: usize,
    pub(crate) bytes: usize,
    pub(crate) descriptor: usize,
    /// The contents at the time of the call, if the operation is injected.
    pub(crate) kept: Option<Vec<u8>>,
}

impl Local {
    /// A buffer whose length is in bytes.
    pub(crate) fn new((address, bytes, descriptor): Place) -> Local {
        Local { address: address.expose_provenance(), bytes, descriptor: descriptor.addr(), kept: None }
    }

    /// The contents.
    ///
    /// # Safety
    /// The caller of the operation keeps the buffer valid, as libfabric requires until the operation is
    /// complete.
    pub(crate) unsafe fn read(&self) -> Vec<u8> {
        if let Some(kept) = &self.kept {
            return kept.clone();
        }
        let mut data = vec![0; self.bytes];
        let source = std::ptr::with_exposed_provenance(self.address);
        // SAFETY: the caller guarantees that the buffer is valid, and `data` has as many bytes.
        unsafe { pelago_fabric::copy::transfer(data.as_mut_ptr(), source, self.bytes) };
        data
    }
}

/// A range of a peer's memory.
#[derive(Default)]
pub(crate) struct Remote {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    pub(crate) key: u64,
}
