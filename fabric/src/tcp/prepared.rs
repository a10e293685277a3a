//! How an endpoint injects: short puts and gets beside all its other calls. The connections have locks of
//! their own, so nothing is prepared but the endpoint.

use super::provider::{INJECT_BYTES, Tcp};
use crate::contract::{Inject, Provider};
use crate::types::{Key, Pe, Remote, Status};
use std::pin::Pin;

/// The door for injected operations to one region.
pub struct Prepared {
    /// Another sending side of the same account.
    endpoint: Tcp,
    key: Key,
    last_put: (Pe, usize, [u8; 8]),
    last_get: (Pe, usize),
}

impl Prepared {
    pub(super) fn new(endpoint: &Tcp, key: Key) -> Prepared {
        Prepared { endpoint: endpoint.beside(), key, last_put: (0, 0, [0; 8]), last_get: (0, 0) }
    }

    fn place(&self, offset_bytes: usize) -> Remote {
        Remote { key: self.key, offset_bytes }
    }
}

impl Inject for Prepared {
    fn put_bytes(&self) -> usize {
        INJECT_BYTES
    }

    fn get_bytes(&self) -> usize {
        INJECT_BYTES
    }

    fn settle(self: Pin<&mut Self>) {}

    #[inline(always)]
    unsafe fn put_word<T: Copy>(&mut self, pe: Pe, offset_bytes: usize, value: T) -> bool {
        let target = (pe, self.place(offset_bytes));
        let source = ((&raw const value).cast(), size_of::<T>());
        // SAFETY: the caller has promised the place; the value is copied.
        let status = unsafe { self.endpoint.start_put(target, source, None) };
        if status == Status::Again {
            let mut word = [0; 8];
            // SAFETY: a word has at most 8 bytes.
            unsafe { word.as_mut_ptr().cast::<T>().write_unaligned(value) };
            self.last_put = (pe, offset_bytes, word);
        }
        status != Status::Again
    }

    fn refused(&self, _bytes: usize) -> (Pe, usize, [u8; 8]) {
        self.last_put
    }

    unsafe fn put(&mut self, pe: Pe, offset_bytes: usize, source: *const u8, bytes: usize) -> bool {
        let target = (pe, self.place(offset_bytes));
        // SAFETY: the caller has promised the place; the data are copied.
        unsafe { self.endpoint.start_put(target, (source, bytes), None) != Status::Again }
    }

    unsafe fn get(&mut self, pe: Pe, offset_bytes: usize, into: *mut u8, bytes: usize) -> bool {
        self.last_get = (pe, offset_bytes);
        let source = (pe, self.place(offset_bytes));
        // SAFETY: the caller has promised the place, and keeps the target.
        unsafe { self.endpoint.start_get(source, (into, bytes), None) != Status::Again }
    }

    fn last_get(&self) -> (Pe, usize) {
        self.last_get
    }

    unsafe fn gets(&self) -> u64 {
        let gets = self.endpoint.completions().gets;
        self.endpoint.poll();
        gets.max(self.endpoint.completions().gets)
    }
}
