//! Flow control of requests: one window for each peer, on every transport.
//!
//! Requests to a peer have positions, which only grow, and the sender knows the position up to which the peer
//! has gone on. In a ring, positions are cells, and the peer frees the oldest ones. Over the network they
//! count requests, and the peer executes the oldest ones. A window has two halves: a sender that has filled
//! one begins the other one as soon as the peer has freed or executed everything that was sent before the
//! half just filled.
//!
//! Invariant: at most two halves of a window, and one request, are under way to a peer. Replies have no
//! window: a request has at most one, so there are no more replies than requests.

use pelago_fabric::sync::{AtomicI32, AtomicU64, Ordering};

/// The window of requests that this PE may have under way to one peer.
pub struct Window {
    /// Units of the half that are left; not above 0 when it is full. Threads of this PE may lose some to each
    /// other.
    left: AtomicI32,
    half: i32,
    /// Where the half begins that is being filled.
    mark: AtomicU64,
    /// Nothing is sent before the peer has gone on up to here.
    gate: AtomicU64,
}

impl Window {
    /// A window of two halves of this many units, at least one.
    pub fn new(half: u32) -> Window {
        let half = i32::try_from(half).unwrap_or(i32::MAX).max(1);
        let (left, mark, gate) = (AtomicI32::new(half), AtomicU64::new(0), AtomicU64::new(0));
        Window { left, half, mark, gate }
    }

    /// Whether there is room for a request, when the peer has gone on up to this position.
    #[inline(always)]
    pub fn is_open(&self, gone_on: u64) -> bool {
        self.gate.load(Ordering::Relaxed) <= gone_on
    }

    /// Counts a request of this many units that was sent at this position.
    #[inline(always)]
    pub fn count(&self, position: u64, units: u32) {
        if self.fills(units) {
            self.turn(position);
        }
    }

    /// Counts this many units. Returns whether they fill the half, so that [`turn`](Window::turn) must
    /// follow.
    #[inline(always)]
    pub fn fills(&self, units: u32) -> bool {
        let left = self.left.load(Ordering::Relaxed).wrapping_sub(units as i32);
        self.left.store(left, Ordering::Relaxed);
        left <= 0
    }

    /// Goes on to the other half. The peer must have freed or executed everything that was sent in it before.
    /// The last request was sent at this position.
    #[cold]
    #[inline(never)]
    pub fn turn(&self, position: u64) {
        self.gate.store(self.mark.swap(position + 1, Ordering::Relaxed), Ordering::Relaxed);
        self.left.store(self.half, Ordering::Relaxed);
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
