//! The way of active messages to a PE that is mapped: its two rings, and how much of them this PE may use.
//!
//! Invariant: at most two halves of a window and one message of this PE lie in the target's ring of requests,
//! or two messages if they are longer than a half; all windows together are the ring. So one that floods
//! leaves room for the others. Nobody gives room back by a message: positions in a
//! ring only grow, so when the ring's owner has received past a position, all that lay before it is gone.

use crate::Pe;
use pelago_fabric::shm::Segment;
use pelago_fabric::shm::doorbell::Doorbell;
use pelago_fabric::shm::ring::{CELL_BYTES, Claim, Ring};
use pelago_fabric::sync::{AtomicU32, AtomicU64, Ordering, fence};
use std::mem::transmute;

/// The way to one PE.
pub(super) struct Lane {
    requests: Ring<'static>,
    answers: Ring<'static>,
    doorbell: &'static Doorbell,
    /// Cells that were sent since `mark`. Threads of this PE may lose some to each other.
    used: AtomicU32,
    half: u32,
    /// Where the half of the window begins that is being used.
    mark: AtomicU64,
    /// Nothing is sent before the owner has received up to here.
    gate: AtomicU64,
}

impl Lane {
    /// The way to a PE among `n`.
    ///
    /// # Safety
    /// The segment outlives the lane.
    pub(super) unsafe fn new(segment: &Segment, pe: Pe, n: usize) -> Lane {
        // SAFETY: only the lifetime changes, for which the caller vouches.
        let segment = unsafe { transmute::<&Segment, &'static Segment>(segment) };
        let (requests, answers) = (segment.inbox(pe), segment.answers(pe));
        let half = (requests.capacity() / (2 * n.max(2)) as u64).max(1) as u32;
        let doorbell = &segment.blocks()[pe].doorbell;
        let (used, mark, gate) = (AtomicU32::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Lane { requests, answers, doorbell, used, half, mark, gate }
    }

    /// Bytes of the longest message.
    pub(super) fn message_bytes(&self) -> usize {
        message_bytes(self.requests.capacity() as usize * CELL_BYTES)
    }

    #[inline]
    pub(super) fn requests(&self) -> &Ring<'static> {
        &self.requests
    }

    #[inline]
    pub(super) fn answers(&self) -> &Ring<'static> {
        &self.answers
    }

    /// Sends a request; `false` if there is no room for it now.
    #[inline]
    pub(super) fn request(&self, me: Pe, header: u64, words: &[u64], payload: &[u8]) -> bool {
        if !self.is_open() {
            return false;
        }
        let Some(position) = self.requests.send_words(me, header, words, payload) else { return false };
        self.count(position, size_of_val(words) + payload.len());
        self.wake();
        true
    }

    /// Sends a request of a few arguments and nothing else; `false` if there is no room for it now.
    #[inline(always)]
    pub(super) fn request_short(&self, me: Pe, header: u64, args: &[u32]) -> bool {
        if !self.is_open() {
            return false;
        }
        let Some(position) = self.requests.send_halves(me, header, args) else { return false };
        self.count(position, 0);
        self.wake();
        true
    }

    /// Claims room for a request of at most so many bytes; nothing if there is none now.
    pub(super) fn claim(&self, bytes: usize) -> Option<Claim> {
        if self.is_open() { self.requests.claim(bytes) } else { None }
    }

    /// Sends a claimed request.
    pub(super) fn send_claimed(&self, claim: Claim, me: Pe, header: u64, words: &[u64], bytes: usize) {
        let position = claim.start();
        self.requests.send_claimed(claim, me, header, words, bytes);
        self.count(position, bytes);
        self.wake();
    }

    /// Sends an answer; `false` if there is no room for it now.
    #[inline]
    pub(super) fn answer(&self, me: Pe, header: u64, words: &[u64], payload: &[u8]) -> bool {
        let is_sent = self.answers.send_words(me, header, words, payload).is_some();
        if is_sent {
            self.wake();
        }
        is_sent
    }

    /// Whether this PE's window has room.
    #[inline(always)]
    fn is_open(&self) -> bool {
        self.gate.load(Ordering::Relaxed) <= self.requests.received()
    }

    /// Counts a request at this position against the window.
    #[inline(always)]
    fn count(&self, position: u64, bytes: usize) {
        let used = self.used.load(Ordering::Relaxed) + 1 + (bytes / CELL_BYTES) as u32;
        self.used.store(used, Ordering::Relaxed);
        if used >= self.half {
            self.turn(position);
        }
    }

    /// Goes on to the other half of the window, for which what was sent in it before must be gone.
    #[cold]
    #[inline(never)]
    fn turn(&self, position: u64) {
        self.gate.store(self.mark.swap(position + 1, Ordering::Relaxed), Ordering::Relaxed);
        self.used.store(0, Ordering::Relaxed);
    }

    #[inline(always)]
    fn wake(&self) {
        // SYNC POINT doorbell: orders the message before the look at the receiver's announcement.
        fence(Ordering::SeqCst);
        self.doorbell.ring_all();
    }
}

/// Bytes of the longest message in a ring of so many: about a quarter, so that a window has two of them.
pub(super) fn message_bytes(ring_bytes: usize) -> usize {
    ring_bytes / 4 - CELL_BYTES
}
