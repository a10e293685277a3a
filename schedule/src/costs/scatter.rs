//! The costs of the algorithms of scatter.

use super::{TEAMS, log2_ceil, prove_plain};
use crate::shape::Operation;

#[test]
fn costs_are_as_described() {
    for n in TEAMS {
        for root in [0, n / 3, n - 1] {
            let linear = prove_plain(Operation::Scatter, "linear", (n, root), 3);
            assert_eq!((linear.messages, linear.bytes), (n - 1, (n - 1) * 24), "n {n}");
            // Small: subtrees fit in mailboxes while they have at most 30 blocks.
            let small = prove_plain(Operation::Scatter, "binomial", (n, root), 1);
            assert!(n > 60 || (small.messages, small.scratch_bytes_max) == (n - 1, 0), "n {n}");
            assert!(n > 60 || small.rounds <= log2_ceil(n), "n {n}: {} rounds", small.rounds);
            // Large: a rank that has children begins with its announcement.
            let large = prove_plain(Operation::Scatter, "binomial", (n, root), 40);
            assert!(large.messages <= n - 1 + n / 2, "n {n}: {} messages", large.messages);
            assert!(large.rounds <= 1 + log2_ceil(n), "n {n}: {} rounds", large.rounds);
            assert!(large.bytes <= n * log2_ceil(n) * 320 / 2 + n * 320, "n {n}: {} bytes", large.bytes);
        }
    }
}
