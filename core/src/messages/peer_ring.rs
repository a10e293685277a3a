//! The peer ring to a PE that is mapped: its two rings in shared memory, and this PE's window of them.
//!
//! Invariant: at most two halves of a window and one message of this PE lie in the target's ring of requests,
//! or two messages if they are longer than a half; all windows together are the ring. So a sender that floods
//! leaves room for the others. No message is needed to give room back: positions in a ring only grow, and the
//! sender reads how far the ring's owner has received.

use super::window::Window;
use crate::Pe;
use pelago_fabric::shm::Segment;
use pelago_fabric::shm::doorbell::Doorbell;
use pelago_fabric::shm::ring::{CELL_BYTES, Claim, ClaimedCell, Ring};
use pelago_fabric::sync::{Ordering, fence};
use std::mem::transmute;

/// The peer ring to one PE. Its rings carry the sender's number in the job, which the receiver checks.
pub struct PeerRing {
    requests: Ring<'static>,
    answers: Ring<'static>,
    doorbell: &'static Doorbell,
    window: Window,
}

/// A short request that was sent.
pub struct Short {
    pub position: u64,
    /// Whether [`PeerRing::settle`] has something to do.
    pub is_unsettled: bool,
}

impl PeerRing {
    /// The peer ring to the PE that has this number in a segment, whose rings `n` PEs share.
    ///
    /// # Safety
    /// The segment outlives the peer ring.
    pub unsafe fn new(segment: &Segment, slot: usize, n: usize) -> PeerRing {
        // SAFETY: only the lifetime changes, which the caller guarantees.
        let segment = unsafe { transmute::<&Segment, &'static Segment>(segment) };
        let (requests, answers) = (segment.inbox(slot), segment.answers(slot));
        let window = Window::new((requests.capacity() / (2 * n.max(2)) as u64) as u32);
        let doorbell = &segment.blocks()[slot].doorbell;
        PeerRing { requests, answers, doorbell, window }
    }

    /// Bytes of the longest message.
    pub fn message_bytes(&self) -> usize {
        message_bytes(self.requests.capacity() as usize * CELL_BYTES)
    }

    /// The rings of requests and of replies.
    pub fn rings(&self) -> [Ring<'static>; 2] {
        [self.requests, self.answers]
    }

    /// Sends a request; `false` if there is no room for it now.
    #[inline]
    pub fn try_request(&self, me: Pe, header: u64, words: &[u64], payload: &[u8]) -> bool {
        if !self.is_open() {
            return false;
        }
        let Some(position) = self.requests.send_words(me, header, words, payload) else { return false };
        self.count(position, size_of_val(words) + payload.len());
        self.wake();
        true
    }

    /// Claims room for a request of a few arguments, to be sent by [`send_short`](PeerRing::send_short) at
    /// once; nothing if there is none now.
    #[inline(always)]
    pub fn try_claim_short(&self) -> Option<ClaimedCell> {
        if self.is_open() { self.requests.claim_cell() } else { None }
    }

    /// Sends a request of a few arguments and nothing else. If the result is unsettled,
    /// [`settle`](PeerRing::settle) must follow.
    #[inline(always)]
    pub fn send_short(&self, claimed: ClaimedCell, me: Pe, header: u64, args: &[u32]) -> Short {
        let position = self.requests.send_halves(claimed, me, header, args);
        let is_full = self.window.fills(1);
        // SYNC POINT doorbell: orders the message before the look at the receiver's announcement.
        fence(Ordering::SeqCst);
        Short { position, is_unsettled: is_full || self.doorbell.has_sleepers() }
    }

    /// Completes a short request at this position: counts it, and wakes the receiver if it sleeps. It is
    /// rarely needed.
    pub fn settle(&self, position: u64) {
        self.window.count(position, 0);
        self.doorbell.ring_all();
    }

    /// Claims room for a request of at most this many bytes; `None` if there is no room now.
    pub fn try_claim(&self, bytes: usize) -> Option<Claim> {
        if self.is_open() { self.requests.claim(bytes) } else { None }
    }

    /// Where byte `skipped` of the payload of a claimed request goes.
    pub fn place(&self, claim: &Claim, skipped: usize) -> *mut u8 {
        self.requests.place(claim, skipped)
    }

    /// Sends a claimed request.
    pub fn send_claimed(&self, claim: Claim, me: Pe, header: u64, words: &[u64], bytes: usize) {
        let position = claim.start();
        self.requests.send_claimed(claim, me, header, words, bytes);
        self.count(position, bytes);
        self.wake();
    }

    /// Gives claimed room up.
    pub fn give_up(&self, claim: Claim) {
        self.requests.give_up(claim);
    }

    /// Sends a reply; `false` if there is no room for it now.
    #[inline]
    pub fn try_answer(&self, me: Pe, header: u64, words: &[u64], payload: &[u8]) -> bool {
        let is_sent = self.answers.send_words(me, header, words, payload).is_some();
        if is_sent {
            self.wake();
        }
        is_sent
    }

    /// Whether this PE's window has room.
    #[inline(always)]
    fn is_open(&self) -> bool {
        self.window.is_open(self.requests.received())
    }

    /// Counts a request at this position against the window.
    #[inline(always)]
    fn count(&self, position: u64, bytes: usize) {
        self.window.count(position, 1 + (bytes / CELL_BYTES) as u32);
    }

    #[inline(always)]
    fn wake(&self) {
        // SYNC POINT doorbell: orders the message before the look at the receiver's announcement.
        fence(Ordering::SeqCst);
        self.doorbell.ring_all();
    }
}

/// Bytes of the longest message in a ring of this size: about a quarter, so that a window has two of them.
pub fn message_bytes(ring_bytes: usize) -> usize {
    ring_bytes / 4 - CELL_BYTES
}
