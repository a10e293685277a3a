//! Buffers as calls name them: local ones, and ranges of a peer's memory.
//!
//! Invariant: a call names one local buffer at the most, as the limits of the offers say.

use libc::{c_int, c_void};
use pelago_fabric::ofi::sys::*;

/// A buffer as a call names it: its address, its length, its descriptor.
pub(crate) type Place = (*const c_void, usize, *mut c_void);

/// No buffer.
pub(crate) const NOWHERE: Place = (std::ptr::null(), 0, std::ptr::null_mut());

/// The only buffer of the arrays of a call; an error if there are more.
///
/// # Safety
/// There are so many elements, and as many descriptors, or null.
pub(crate) unsafe fn only<E: Element>(
    elements: *const E,
    descriptors: *mut *mut c_void,
    count: usize,
) -> Result<Place, c_int> {
    match count {
        0 => Ok(NOWHERE),
        // SAFETY: the caller vouches for the arrays.
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
    /// What it held at the call, if it was injected.
    pub(crate) kept: Option<Vec<u8>>,
}

impl Local {
    /// A buffer whose length is in bytes.
    pub(crate) fn new((address, bytes, descriptor): Place) -> Local {
        Local { address: address.expose_provenance(), bytes, descriptor: descriptor.addr(), kept: None }
    }

    /// What it holds.
    ///
    /// # Safety
    /// The caller of the operation keeps it valid, as libfabric asks until the operation is complete.
    pub(crate) unsafe fn read(&self) -> Vec<u8> {
        if let Some(kept) = &self.kept {
            return kept.clone();
        }
        let mut data = vec![0; self.bytes];
        let source = std::ptr::with_exposed_provenance(self.address);
        // SAFETY: the caller vouches for the buffer, and `data` has as many bytes.
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
