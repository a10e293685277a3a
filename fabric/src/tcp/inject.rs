//! Injected puts: a put of a word or with a signal, without a token, the shortest way from a call to the send
//! queue. It is not inlined, so that it adds no instruction to an injected put over libfabric.

use super::completion_queue::CompletionQueue;
use super::domain::{Domain, Starts};
use super::frame::{Header, Kind};
use super::peer::Peer;
use super::provider::INJECT_BYTES;
use super::send_queue::{Data, Source};
use crate::amo::Atomic;
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

    /// Puts bytes to a PE of this process, whose number within it is `slot`, and executes an atomic on a word
    /// of it.
    ///
    /// # Safety
    /// As [`Inject::put_signal`].
    #[cold]
    #[inline(never)]
    unsafe fn put_here(
        &self,
        slot: u16,
        (offset_bytes, source, bytes): (usize, *const u8, usize),
        signal: Option<(usize, Atomic)>,
    ) -> bool {
        let place = |offset_bytes: usize, bytes| {
            let place = self.domain.place(slot.into(), self.key, offset_bytes as u64, bytes);
            place.unwrap_or_else(|what| panic!("PE {}: {what}", self.slot))
        };
        let target = place(offset_bytes, bytes);
        // Both are null if the PE has closed its endpoint.
        if !target.is_null() {
            // SAFETY: the target has `bytes` bytes in a registered region; the caller has promised the
            // source.
            unsafe { copy::transfer(target, source, bytes) };
        }
        if let Some((offset_bytes, atomic)) = signal {
            let word = place(offset_bytes, atomic.kind.bytes());
            if !word.is_null() {
                // SAFETY: the word lies in a registered region, and the caller has promised that it is
                // aligned.
                unsafe { atomic.execute(word) };
            }
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
            return unsafe { self.put_here(to, (offset_bytes, (&raw const word).cast(), bytes), None) };
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

    fn signal_bytes(&self) -> usize {
        INJECT_BYTES
    }

    unsafe fn put_signal(
        &mut self,
        pe: Pe,
        data: (usize, *const u8, usize),
        (word_offset_bytes, atomic): (usize, Atomic),
    ) -> bool {
        let (process, to) = self.domain.process_of(pe);
        if process == self.domain.process {
            // SAFETY: the caller's promises are the same.
            return unsafe { self.put_here(to, data, Some((word_offset_bytes, atomic))) };
        }
        let (offset_bytes, start, bytes) = data;
        let (from, key, offset, code) = (self.slot, self.key, offset_bytes as u64, atomic.code());
        let header = Header::control(Kind::PutSignal, 0);
        let header = Header { from, to, code, bytes: bytes as u32, word: key, offset, ..header };
        let operands = [key, word_offset_bytes as u64, atomic.operand];
        let data = (Data { start, bytes }, Source::Copied);
        // SAFETY: the caller has promised that there is such a PE, and so its process, and the data, which
        // are copied before this returns if they are not sent.
        unsafe {
            let peer = self.domain.peers.get_or_make_unchecked(process, Peer::new);
            self.domain.start(peer, (header, &operands), data, (Starts::Put(None), &self.completions))
        }
    }

    unsafe fn put(&mut self, _: Pe, _: usize, _: *const u8, bytes: usize) -> bool {
        debug_assert_eq!(bytes, 0, "no longer puts are injected");
        self.completions.count_puts(1);
        true
    }
}
