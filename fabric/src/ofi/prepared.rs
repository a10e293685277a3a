//! Puts of a word and gets that are prepared: PE, place and value are all that is filled in when one is
//! started.
//!
//! Source: `fi_rma(3)`. Invariant: once settled, the messages point to parts of the same value.

use super::slots::{Kind, Slot};
use super::sys::*;
use crate::sync::{AtomicU64, Ordering};
use crate::types::{Key, Pe};
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::ptr::{NonNull, null, null_mut};
use std::sync::Arc;

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

impl Message {
    /// A message to memory under a key, of so many bytes.
    fn new(key: Key, bytes: usize) -> Message {
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
    }

    /// Lets the message point to its other parts.
    ///
    /// # Safety
    /// It is there, and stays where it is.
    unsafe fn settle(this: *mut Message) {
        // SAFETY: the caller vouches for it.
        unsafe {
            (*this).message.msg_iov = &raw const (*this).local;
            (*this).message.rma_iov = &raw const (*this).remote;
        }
    }
}

// SAFETY: the endpoint is used by any thread, as `FI_THREAD_SAFE` was asked for; all else is plain memory.
unsafe impl Send for PreparedPut {}

impl PreparedPut {
    /// Puts through an endpoint to memory that every peer has registered under a key.
    pub(super) fn new(endpoint: NonNull<fid_ep>, key: Key) -> PreparedPut {
        let messages = [1, 2, 4, 8].map(|bytes| Message::new(key, bytes));
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
                Message::settle(put);
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

/// A get, one at a time. The endpoint's count of gets is what tells that it is complete.
pub struct PreparedGet {
    endpoint: NonNull<fid_ep>,
    counter: NonNull<fid_cntr>,
    /// Atomics that are in that counter and are no gets here.
    fetched_in_vain: Arc<AtomicU64>,
    message: Message,
    /// The get as libfabric knows it.
    slot: Slot,
    _pinned: PhantomPinned,
}

// SAFETY: endpoint and counter are used by any thread, as `FI_THREAD_SAFE` was asked for; all else is plain
// memory.
unsafe impl Send for PreparedGet {}

impl PreparedGet {
    /// Gets through an endpoint, with its counter of them, from memory that every peer has registered under a
    /// key.
    pub(super) fn new(
        endpoint: NonNull<fid_ep>,
        counter: NonNull<fid_cntr>,
        fetched_in_vain: Arc<AtomicU64>,
        key: Key,
    ) -> PreparedGet {
        let (message, slot) = (Message::new(key, 0), Slot::new(u32::MAX, Kind::Get, 0, None));
        PreparedGet { endpoint, counter, fetched_in_vain, message, slot, _pinned: PhantomPinned }
    }

    /// To be called once it lies where it is to stay, before anything is started.
    pub fn settle(self: Pin<&mut Self>) {
        // SAFETY: nothing is moved out of it; the pointers are good for as long as it stays.
        unsafe {
            let all = &raw mut *self.get_unchecked_mut();
            (*all).message.message.context = (&raw mut (*all).slot).cast();
            Message::settle(&raw mut (*all).message);
        }
    }

    /// Starts a get of so many bytes, at most the limit of a transfer; it counts as any other when it is
    /// complete. `false` if libfabric does not take it now, or refuses it: then nothing has begun.
    ///
    /// # Safety
    /// It is settled, and the endpoint is open. The address is that of a PE's spot, and the place, from the
    /// spot's start on, lies inside the region registered. `into` is valid for writes, and nothing else is
    /// started here, until the get is complete.
    #[inline(always)]
    pub unsafe fn start(
        &mut self,
        (pe, address): (Pe, u64),
        place: u64,
        into: *mut u8,
        bytes: usize,
    ) -> bool {
        // Through pointers, as what the message points to is not to be borrowed.
        let all = &raw mut *self;
        // SAFETY: the caller vouches for all of it.
        unsafe {
            (*all).slot.pe = pe;
            let get = &raw mut (*all).message;
            (*get).message.addr = address;
            (*get).remote.addr = place;
            (*get).remote.len = bytes;
            (*get).local.iov_base = into.cast();
            (*get).local.iov_len = bytes;
            fi_readmsg((*all).endpoint.as_ptr(), &raw const (*get).message, 0) == 0
        }
    }

    /// How many gets of the endpoint are complete; to ask makes progress. As long as operations that are no
    /// gets are under way as well, it may be too many.
    ///
    /// # Safety
    /// The endpoint is open.
    #[inline(always)]
    pub unsafe fn completed(&self) -> u64 {
        // SAFETY: the counter is open as long as the endpoint.
        unsafe { fi_cntr_read(self.counter.as_ptr()) - self.fetched_in_vain.load(Ordering::Relaxed) }
    }
}
