//! Injection by an endpoint of libfabric: prepared messages, in which only PE, place and value are filled in
//! when an operation is started.
//!
//! Source: `fi_rma(3)`. Invariant: once settled, the messages point to parts of the same value.

use super::slots::{Kind, Slot};
use super::sys::*;
use crate::contract::{Inject, word_of};
use crate::sync::{AtomicU64, Ordering};
use crate::types::{Key, Pe};
use std::hint::unreachable_unchecked;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::ptr::{NonNull, null, null_mut};
use std::sync::Arc;

/// The flags of puts: their source is free at return, and they are counted when they are delivered.
const INJECTED: u64 = FI_INJECT | FI_DELIVERY_COMPLETE;

/// The injecting form of an endpoint of libfabric, for each way to address the memory of the PEs.
pub enum OfiInject {
    /// The memory of all PEs has the same key, and begins at 0.
    Common(Prepared),
    /// Each PE has sent its key and the address of its memory.
    Told(Prepared),
}

/// The messages of an endpoint to one region.
pub struct Prepared {
    endpoint: NonNull<fid_ep>,
    /// The address of each PE.
    addresses: Box<[u64]>,
    /// The address and the key of each PE's memory.
    spots: Box<[Spot]>,
    put_bytes: usize,
    /// Puts of a value, by the binary logarithm of its bytes.
    words: [Message; 4],
    /// A put of data at their source.
    run: Message,
    /// The value, while libfabric reads it.
    value: u64,
    get: Option<Get>,
    _pinned: PhantomPinned,
}

/// The start of registered memory, as the provider addresses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    /// The address of the PE.
    pub(super) address: u64,
    /// The key of the memory.
    pub(super) key: u64,
    /// The address of the first byte.
    pub(super) start: u64,
}

/// The get that is under way; there is one at a time. The endpoint's counter of gets shows when it is
/// complete.
struct Get {
    message: Message,
    counter: NonNull<fid_cntr>,
    /// Atomics that this counter includes and that are not gets here.
    fetched_in_vain: Arc<AtomicU64>,
    bytes: usize,
    /// The get as libfabric knows it.
    slot: Slot,
}

struct Message {
    message: fi_msg_rma,
    local: iovec,
    remote: fi_rma_iov,
}

impl Message {
    /// A message of `bytes` bytes to memory under a key.
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

    /// Makes the message point to its other parts.
    ///
    /// # Safety
    /// The message is valid, and does not move.
    unsafe fn settle(this: *mut Message) {
        // SAFETY: the caller guarantees the message.
        unsafe {
            (*this).message.msg_iov = &raw const (*this).local;
            (*this).message.rma_iov = &raw const (*this).remote;
        }
    }

    /// Sets the start of the data and their length in bytes.
    ///
    /// # Safety
    /// The message is valid.
    #[inline(always)]
    unsafe fn set_local(this: *mut Message, start: *mut u8, bytes: usize) {
        // SAFETY: the caller guarantees the message.
        unsafe {
            (*this).remote.len = bytes;
            (*this).local.iov_base = start.cast();
            (*this).local.iov_len = bytes;
        }
    }
}

// SAFETY: endpoint and counter are used by any thread, as `FI_THREAD_SAFE` was asked for; all else is plain
// memory.
unsafe impl Send for Prepared {}

impl Prepared {
    /// Messages for puts of up to `put_bytes` bytes through an endpoint, to the memory of each PE at its
    /// `Spot`.
    pub(super) fn new(endpoint: NonNull<fid_ep>, spots: Box<[Spot]>, put_bytes: usize) -> Prepared {
        let key = spots[0].key;
        Prepared {
            endpoint,
            addresses: spots.iter().map(|spot| spot.address).collect(),
            spots,
            put_bytes,
            words: [1, 2, 4, 8].map(|bytes| Message::new(key, bytes)),
            run: Message::new(key, 0),
            value: 0,
            get: None,
            _pinned: PhantomPinned,
        }
    }

    /// Whether the memory of all PEs has the same key, and begins at 0.
    fn is_common(&self) -> bool {
        self.spots.iter().all(|spot| spot.key == self.spots[0].key && spot.start == 0)
    }

    /// Converts it into the form that injects.
    pub(super) fn into_inject(self) -> OfiInject {
        if self.is_common() { OfiInject::Common(self) } else { OfiInject::Told(self) }
    }

    /// Adds gets of up to a number of bytes, and the endpoint's counter of gets, if all memory has one key.
    pub(super) fn with_gets(
        mut self,
        counter: NonNull<fid_cntr>,
        fetched_in_vain: Arc<AtomicU64>,
        bytes: usize,
    ) -> Prepared {
        let (message, slot) = (Message::new(self.spots[0].key, 0), Slot::new(u32::MAX, Kind::Get, 0, None));
        self.get = self.is_common().then_some(Get { message, counter, fetched_in_vain, bytes, slot });
        self
    }

    /// Sets the PE and the place that a message goes to.
    ///
    /// # Safety
    /// The message is one of this value's, and the PE exists.
    unsafe fn aim(this: *mut Prepared, message: *mut Message, pe: Pe, offset_bytes: usize) {
        // SAFETY: the caller guarantees message and PE.
        unsafe {
            let Spot { address, key, start } = (&(*this).spots)[pe];
            (*message).message.addr = address;
            (*message).remote.key = key;
            (*message).remote.addr = start + offset_bytes as u64;
        }
    }

    /// Starts a put of data at their source, with these flags, of which `FI_INJECT` is one.
    ///
    /// # Safety
    /// As [`Inject::put`].
    unsafe fn put_run(
        &mut self,
        pe: Pe,
        offset_bytes: usize,
        (source, bytes): (*const u8, usize),
        flags: u64,
    ) -> bool {
        let all = &raw mut *self;
        // SAFETY: the caller has promised PE, place and source; an injected source is free at return.
        unsafe {
            let put = &raw mut (*all).run;
            Prepared::aim(all, put, pe, offset_bytes);
            Message::set_local(put, source.cast_mut(), bytes);
            fi_writemsg((*all).endpoint.as_ptr(), &raw const (*put).message, flags) == 0
        }
    }
}

impl OfiInject {
    #[inline(always)]
    fn prepared(&self) -> &Prepared {
        match self {
            OfiInject::Common(prepared) | OfiInject::Told(prepared) => prepared,
        }
    }

    #[inline(always)]
    fn prepared_mut(&mut self) -> &mut Prepared {
        match self {
            OfiInject::Common(prepared) | OfiInject::Told(prepared) => prepared,
        }
    }
}

impl Inject for OfiInject {
    fn put_bytes(&self) -> usize {
        self.prepared().put_bytes
    }

    fn get_bytes(&self) -> usize {
        self.prepared().get.as_ref().map_or(0, |get| get.bytes)
    }

    #[inline(always)]
    fn is_inlined(&self) -> bool {
        matches!(self, OfiInject::Common(_))
    }

    fn settle(self: Pin<&mut Self>) {
        // SAFETY: nothing is moved out of the value. The pointers are to its parts, and are valid as long as
        // it does not move.
        unsafe {
            let all = &raw mut *self.get_unchecked_mut().prepared_mut();
            for i in 0..4 {
                let put = &raw mut (*all).words[i];
                (*put).local.iov_base = (&raw mut (*all).value).cast();
                Message::settle(put);
            }
            Message::settle(&raw mut (*all).run);
            if let Some(get) = &mut (*all).get {
                let get = &raw mut *get;
                (*get).message.message.context = (&raw mut (*get).slot).cast();
                Message::settle(&raw mut (*get).message);
            }
        }
    }

    #[inline(always)]
    unsafe fn put_word<T: Copy>(&mut self, pe: Pe, offset_bytes: usize, value: T) -> bool {
        debug_assert!(matches!(size_of::<T>(), 1 | 2 | 4 | 8), "a put of a word");
        // SAFETY: there is room for 8 bytes, aligned for any value of this length; the caller guarantees the
        // rest.
        unsafe {
            // This uses raw pointers, because the parts that the message points to must not be borrowed.
            let OfiInject::Common(prepared) = self else {
                return self.put_outlined(pe, size_of::<T>(), word_of(value), offset_bytes);
            };
            let all = &raw mut *prepared;
            let addresses: &[u64] = &(*all).addresses;
            let address = *addresses.get_unchecked(pe);
            let put = &raw mut (*all).words[size_of::<T>().trailing_zeros() as usize];
            (*put).message.addr = address;
            (*put).remote.addr = offset_bytes as u64;
            (&raw mut (*all).value).cast::<T>().write(value);
            fi_writemsg((*all).endpoint.as_ptr(), &raw const (*put).message, INJECTED) == 0
        }
    }

    unsafe fn put_outlined(&mut self, pe: Pe, bytes: usize, word: u64, offset_bytes: usize) -> bool {
        // This uses raw pointers, because the parts that the message points to must not be borrowed.
        let all = &raw mut *self.prepared_mut();
        // SAFETY: the caller has promised PE and place; there is a message for each size.
        unsafe {
            let put = &raw mut (*all).words[bytes.trailing_zeros() as usize];
            Prepared::aim(all, put, pe, offset_bytes);
            (*all).value = word;
            fi_writemsg((*all).endpoint.as_ptr(), &raw const (*put).message, INJECTED) == 0
        }
    }

    fn refused(&self, bytes: usize) -> (Pe, usize, [u8; 8]) {
        let Prepared { words, spots, value, .. } = self.prepared();
        let put = &words[bytes.trailing_zeros() as usize];
        let is_it = |spot: &Spot| spot.address == put.message.addr;
        let pe = spots.iter().position(is_it).expect("it was one of these");
        let offset_bytes = (put.remote.addr - spots[pe].start) as usize;
        (pe, offset_bytes, value.to_ne_bytes())
    }

    unsafe fn put(&mut self, pe: Pe, offset_bytes: usize, source: *const u8, bytes: usize) -> bool {
        // SAFETY: the caller's promises are the same.
        unsafe { self.prepared_mut().put_run(pe, offset_bytes, (source, bytes), INJECTED) }
    }

    // Without FI_DELIVERY_COMPLETE the receiver sends no acknowledgement, which over tcp takes a system call.
    unsafe fn put_message(&mut self, pe: Pe, offset_bytes: usize, source: *const u8, bytes: usize) -> bool {
        // SAFETY: the caller's promises are the same.
        unsafe { self.prepared_mut().put_run(pe, offset_bytes, (source, bytes), FI_INJECT) }
    }

    #[inline(always)]
    unsafe fn get(&mut self, pe: Pe, offset_bytes: usize, into: *mut u8, bytes: usize) -> bool {
        // SAFETY: the caller has promised PE, place and length. The length is at least 1, so there are
        // prepared gets. They exist only if all memory has one key.
        unsafe {
            let OfiInject::Common(all) = self else { unreachable_unchecked() };
            let all = &raw mut *all;
            let get = &raw mut *(*all).get.as_mut().unwrap_unchecked();
            (*get).slot.pe = pe;
            let message = &raw mut (*get).message;
            let addresses: &[u64] = &(*all).addresses;
            (*message).message.addr = *addresses.get_unchecked(pe);
            (*message).remote.addr = offset_bytes as u64;
            Message::set_local(message, into, bytes);
            fi_readmsg((*all).endpoint.as_ptr(), &raw const (*message).message, 0) == 0
        }
    }

    fn last_get(&self) -> (Pe, usize) {
        self.prepared().get.as_ref().map_or((0, 0), |get| (get.slot.pe, get.message.remote.addr as usize))
    }

    #[inline(always)]
    unsafe fn gets(&self) -> u64 {
        // SAFETY: the counter is open as long as the endpoint, and the caller has started a get.
        unsafe {
            let OfiInject::Common(prepared) = self else { unreachable_unchecked() };
            let get = prepared.get.as_ref().unwrap_unchecked();
            fi_cntr_read(get.counter.as_ptr()).wrapping_sub(get.fetched_in_vain.load(Ordering::Relaxed))
        }
    }
}
