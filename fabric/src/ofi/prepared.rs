//! Puts of a word that are prepared: PE, place and value are all that is filled in when one is started.
//!
//! Source: `fi_rma(3)`. Invariant: once settled, the messages point to parts of the same value.

use super::sys::*;
use crate::types::Key;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::ptr::{NonNull, null, null_mut};

/// A put of a word of 1, 2, 4 or 8 bytes.
pub struct PreparedPut {
    endpoint: NonNull<fid_ep>,
    /// By the binary logarithm of the word's bytes.
    messages: [Message; 4],
    /// Where the value lies while libfabric takes it.
    value: u64,
    _pinned: PhantomPinned,
}

/// Where registered memory begins, as the provider addresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Of the PE.
    pub address: u64,
    /// Of the memory.
    pub key: u64,
    /// Of the first byte.
    pub start: u64,
}

struct Message {
    message: fi_msg_rma,
    local: iovec,
    remote: fi_rma_iov,
}

// SAFETY: the endpoint is used by any thread, as `FI_THREAD_SAFE` was asked for; all else is plain memory.
unsafe impl Send for PreparedPut {}

impl PreparedPut {
    /// Puts through an endpoint to memory that every peer has registered under a key.
    pub(super) fn new(endpoint: NonNull<fid_ep>, key: Key) -> PreparedPut {
        let message = |log2: u32| {
            let bytes = 1 << log2;
            let remote = fi_rma_iov { addr: 0, len: bytes, key };
            let message = fi_msg_rma {
                msg_iov: null(),
                desc: null_mut(),
                iov_count: 1,
                addr: FI_ADDR_UNSPEC,
                rma_iov: null(),
                rma_iov_count: 1,
                context: null_mut(),
                data: 0,
            };
            Message { message, local: iovec { iov_base: null_mut(), iov_len: bytes }, remote }
        };
        let messages = [message(0), message(1), message(2), message(3)];
        PreparedPut { endpoint, messages, value: 0, _pinned: PhantomPinned }
    }

    /// To be called once it lies where it is to stay, before anything is started.
    pub fn settle(self: Pin<&mut Self>) {
        // SAFETY: nothing is moved out of it.
        let all = unsafe { &raw mut *self.get_unchecked_mut() };
        for i in 0..4 {
            // SAFETY: the parts of a value that is there; the pointers are good for as long as it stays.
            unsafe {
                let put = &raw mut (*all).messages[i];
                (*put).local.iov_base = (&raw mut (*all).value).cast();
                (*put).message.msg_iov = &raw const (*put).local;
                (*put).message.rma_iov = &raw const (*put).remote;
            }
        }
    }

    /// Whether a put of an element of this type can be prepared.
    pub const fn is_for<T>() -> bool {
        matches!(size_of::<T>(), 1 | 2 | 4 | 8)
    }

    /// Starts a put of a value of 1, 2, 4 or 8 bytes, whose source is free at return; it counts as any other
    /// when it is complete. `false` if libfabric does not take it now, or refuses it: then nothing has begun.
    ///
    /// # Safety
    /// It is settled, and the endpoint is open. The address and, if it is not the one that all peers have,
    /// the key are of a spot that [`prepared_put`](crate::Provider::prepared_put) gave, and the place, from
    /// the spot's start on, lies inside the region registered.
    #[inline(always)]
    pub unsafe fn start<T: Copy>(&mut self, address: u64, key: Option<u64>, place: u64, value: T) -> bool {
        if !PreparedPut::is_for::<T>() {
            return false;
        }
        // Through pointers, as what the message points to is not to be borrowed.
        let all = &raw mut *self;
        // SAFETY: there is room for 8 bytes, aligned for any value of so many; the caller vouches for the
        // rest.
        unsafe {
            let put = &raw mut (*all).messages[size_of::<T>().trailing_zeros() as usize];
            (*put).message.addr = address;
            (*put).remote.addr = place;
            if let Some(key) = key {
                (*put).remote.key = key;
            }
            (&raw mut (*all).value).cast::<T>().write(value);
            let message = &raw const (*put).message;
            fi_writemsg((*all).endpoint.as_ptr(), message, FI_INJECT | FI_DELIVERY_COMPLETE) == 0
        }
    }

    /// What the last put of so many bytes, that was not taken, was to do: address, place and value.
    pub fn last(&self, bytes: usize) -> (u64, u64, [u8; 8]) {
        let put = &self.messages[bytes.trailing_zeros() as usize];
        (put.message.addr, put.remote.addr, self.value.to_ne_bytes())
    }
}
