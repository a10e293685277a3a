//! Injected puts: a put of a word without a token, the shortest way from a call to the send queue. It is not
//! inlined, so that it adds no instruction to an injected put over libfabric.

use super::completion_queue::CompletionQueue;
use super::domain::Domain;
use super::frame::{Header, Kind};
use super::peer::Peer;
use crate::contract::Inject;
use crate::copy;
use crate::types::{Key, Pe};
use std::pin::Pin;
use std::sync::Arc;

/// The injecting form of an endpoint.
pub struct TcpInject {
    domain: Arc<Domain>,
    completions: Arc<CompletionQueue>,
    key: Key,
    /// The number of this PE within its process.
    slot: u16,
    /// The last put that was not taken.
    refused: (Pe, usize, [u8; 8]),
}

impl TcpInject {
    /// Puts of the PE with number `slot` of the process to the memory that all PEs have under a key.
    pub(super) fn new(
        domain: &Arc<Domain>,
        completions: &Arc<CompletionQueue>,
        key: Key,
        slot: u16,
    ) -> TcpInject {
        let (domain, completions) = (Arc::clone(domain), Arc::clone(completions));
        TcpInject { domain, completions, key, slot, refused: (0, 0, [0; 8]) }
    }

    /// Puts a word to a PE of this process, whose number within it is `slot`.
    ///
    /// # Safety
    /// As [`Inject::put_outlined`].
    #[cold]
    #[inline(never)]
    unsafe fn put_here(&self, slot: u16, bytes: usize, word: u64, offset_bytes: usize) -> bool {
        let place = self.domain.place(slot.into(), self.key, offset_bytes as u64, bytes);
        let place = place.unwrap_or_else(|what| panic!("PE {}: {what}", self.slot));
        if !place.is_null() {
            // SAFETY: the place and `bytes` bytes behind it lie in a registered region. The word has 8 bytes.
            unsafe { copy::transfer(place, (&raw const word).cast(), bytes) };
        }
        self.completions.count_puts(1);
        true
    }
}

impl Inject for TcpInject {
    /// Other puts go through [`Provider::put`](crate::Provider::put), which copies short ones.
    fn put_bytes(&self) -> usize {
        0
    }

    fn settle(self: Pin<&mut Self>) {}

    #[inline]
    unsafe fn put_outlined(&mut self, pe: Pe, bytes: usize, word: u64, offset_bytes: usize) -> bool {
        let (process, to) = self.domain.process_of(pe);
        if process == self.domain.process {
            // SAFETY: the caller's promises are the same.
            return unsafe { self.put_here(to, bytes, word, offset_bytes) };
        }
        let (from, key, offset) = (self.slot, self.key, offset_bytes as u64);
        let header =
            Header { from, to, bytes: bytes as u32, word: key, offset, ..Header::control(Kind::Put, 0) };
        // SAFETY: the caller has promised that there is such a PE, and so its process.
        let peer = unsafe { self.domain.peers.get_or_make_unchecked(process, Peer::new) };
        let is_started = self.domain.start_word(peer, header, word, &self.completions);
        if !is_started {
            self.refused = (pe, offset_bytes, word.to_ne_bytes());
        }
        is_started
    }

    fn refused(&self, _bytes: usize) -> (Pe, usize, [u8; 8]) {
        self.refused
    }

    unsafe fn put(&mut self, _: Pe, _: usize, _: *const u8, bytes: usize) -> bool {
        debug_assert_eq!(bytes, 0, "no longer puts are injected");
        self.completions.count_puts(1);
        true
    }
}
