//! Datatypes.
//!
//! Invariant: a datatype does not change once it is made, apart from being committed and named.

mod named;

pub use named::{Basic, find, share};

use pelago_fabric::copy;

/// A datatype.
#[derive(Debug)]
pub struct Datatype {
    /// Bytes of data of an element.
    size: usize,
    lb: isize,
    /// The distance from one element to the next.
    extent: isize,
    /// The elementary type, of a datatype that is one.
    basic: Option<Basic>,
}

impl Datatype {
    /// Bytes of data of an element.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The distance from one element to the next.
    #[inline]
    pub fn extent(&self) -> isize {
        self.extent
    }

    /// The elementary type, of a datatype that is one.
    pub fn basic(&self) -> Option<Basic> {
        self.basic
    }

    /// Where the data of `count` elements begin, from the address of the buffer, if they follow each other
    /// without gaps.
    #[inline]
    pub fn run(&self, _count: usize) -> Option<isize> {
        Some(self.lb)
    }

    /// Copies the data of `count` elements to `into`, one after the other.
    ///
    /// # Safety
    /// The buffer has the elements, and there is room for their data.
    pub unsafe fn pack(&self, buffer: *const u8, count: usize, into: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { copy::copy(into, buffer.wrapping_offset(self.lb), count * self.size) };
    }

    /// The reverse, for as many bytes as there are; they may end within an element.
    ///
    /// # Safety
    /// The buffer has room for the elements that these bytes are the data of.
    pub unsafe fn unpack(&self, from: *const u8, bytes: usize, buffer: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { copy::copy(buffer.wrapping_offset(self.lb), from, bytes) };
    }
}
