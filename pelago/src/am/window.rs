//! Flow control of requests: one window for each peer, on every transport.
//!
//! Requests to a peer have positions, which only grow, and the sender knows the position up to which the peer
//! has gone on. In a ring, positions are cells, and the peer frees the oldest ones. Over the network they count
//! requests, and the peer executes the oldest ones. A window has two halves: a sender that has filled one begins
//! the next as soon as all that was sent before the one just filled is gone.
//!
//! Invariant: at most two halves of a window, and one request, are under way to a peer. Answers have no window:
//! a request has at most one, so there are no more of them than requests.

use pelago_fabric::sync::{AtomicU32, AtomicU64, Ordering};

/// What this PE may have under way to one peer.
pub(super) struct Window {
    /// Units that were sent since `mark`. Threads of this PE may lose some to each other.
    used: AtomicU32,
    half: u32,
    /// Where the half begins that is being filled.
    mark: AtomicU64,
    /// Nothing is sent before the peer has gone on up to here.
    gate: AtomicU64,
}

impl Window {
    /// A window of two halves of so many units, at least one.
    pub(super) fn new(half: u32) -> Window {
        let (used, mark, gate) = (AtomicU32::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Window { used, half: half.max(1), mark, gate }
    }

    /// Whether there is room for a request, when the peer has gone on up to this position.
    #[inline(always)]
    pub(super) fn is_open(&self, gone_on: u64) -> bool {
        self.gate.load(Ordering::Relaxed) <= gone_on
    }

    /// Counts a request of so many units that was sent at this position.
    #[inline(always)]
    pub(super) fn count(&self, position: u64, units: u32) {
        let used = self.used.load(Ordering::Relaxed) + units;
        self.used.store(used, Ordering::Relaxed);
        if used >= self.half {
            self.turn(position);
        }
    }

    /// Goes on to the other half, for which what was sent in it before must be gone.
    #[cold]
    #[inline(never)]
    fn turn(&self, position: u64) {
        self.gate.store(self.mark.swap(position + 1, Ordering::Relaxed), Ordering::Relaxed);
        self.used.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However fast the peer is, no more than a window is ahead of it, and it never stands still.
    #[test]
    fn at_most_a_window_is_under_way() {
        for half in [1, 2, 5, 32] {
            let (window, mut sent, mut most) = (Window::new(half), 0, 0);
            for gone_on in 0..200 {
                assert!(sent > gone_on || window.is_open(gone_on), "nothing is under way: half {half}");
                while window.is_open(gone_on) {
                    window.count(sent, 1);
                    sent += 1;
                }
                most = most.max(sent - gone_on);
            }
            assert_eq!(most, 2 * u64::from(half));
        }
    }

    #[test]
    fn long_requests_fill_a_half_at_once() {
        let window = Window::new(4);
        window.count(0, 100);
        assert!(window.is_open(0), "the other half is free");
        window.count(100, 100);
        assert!(!window.is_open(0));
        assert!(window.is_open(1), "the peer has begun to free the first one");
    }
}
