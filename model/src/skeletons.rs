//! Skeletons of measurements: round trips, and floods over several links of a node.
//!
//! Invariant: one-sided and two-sided measurements move the same data between the same ranks, and both end
//! when the sender knows that they have arrived, or left.

use crate::action::{Action, Program, Workload};

/// The operations that move the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A put, and the wait for its end.
    OneSided,
    /// A message whose receive was posted before.
    TwoSided,
}

/// A transfer of `bytes` bytes from rank 0 to `peer`, which the sender knows to have arrived: a put and its
/// end, or a message and an empty one back.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    /// How.
    pub side: Side,
    /// The ranks of the job.
    pub ranks: usize,
    /// The receiver.
    pub peer: u32,
    /// The bytes of the transfer.
    pub bytes: u64,
}

impl Workload for RoundTrip {
    fn ranks(&self) -> usize {
        self.ranks
    }

    fn program(&self, rank: usize) -> Program<'_> {
        let RoundTrip { side, peer, bytes, .. } = *self;
        let actions = match (side, rank as u32) {
            (Side::OneSided, 0) => vec![Action::Put { to: peer, bytes, signal: None }, Action::Complete],
            (Side::TwoSided, 0) => vec![
                Action::Receive { of: peer, tag: 0 },
                Action::Send { to: peer, bytes, tag: 0 },
                Action::Finish,
            ],
            (Side::TwoSided, rank) if rank == peer => vec![
                Action::Receive { of: 0, tag: 0 },
                Action::Finish,
                Action::Send { to: 0, bytes: 0, tag: 0 },
                Action::Finish,
            ],
            _ => Vec::new(),
        };
        Box::new(actions.into_iter())
    }
}

/// A flood from rank 0 to several ranks in turn: windows of transfers, each complete before the next. The
/// receivers reply to a window of messages with an empty one.
#[derive(Clone, Debug)]
pub struct Flood {
    /// How.
    pub side: Side,
    /// The ranks of the job.
    pub ranks: usize,
    /// The receivers.
    pub peers: Vec<u32>,
    /// The transfers to each of them in a window.
    pub each: usize,
    /// The windows.
    pub windows: usize,
    /// The bytes of a transfer.
    pub bytes: u64,
}

impl Flood {
    /// The bytes that it moves.
    pub fn total_bytes(&self) -> u64 {
        (self.peers.len() * self.each * self.windows) as u64 * self.bytes
    }
}

impl Workload for Flood {
    fn ranks(&self) -> usize {
        self.ranks
    }

    fn program(&self, rank: usize) -> Program<'_> {
        let Flood { side, ref peers, each, windows, bytes, .. } = *self;
        let targets = move || (0..each).flat_map(move |_| peers.iter().copied());
        match (side, rank) {
            (Side::OneSided, 0) => Box::new((0..windows).flat_map(move |_| {
                let puts = targets().map(move |to| Action::Put { to, bytes, signal: None });
                puts.chain([Action::Complete])
            })),
            (Side::TwoSided, 0) => Box::new((0..windows).flat_map(move |_| {
                let replies = peers.iter().map(|&of| Action::Receive { of, tag: 0 });
                let sends = targets().map(move |to| Action::Send { to, bytes, tag: 0 });
                replies.chain(sends).chain([Action::Finish])
            })),
            (Side::TwoSided, _) if peers.contains(&(rank as u32)) => {
                let receives = move || std::iter::repeat_n(Action::Receive { of: 0, tag: 0 }, each);
                let reply = [Action::Send { to: 0, bytes: 0, tag: 0 }];
                // The receives of the next window are posted before the reply to this one.
                Box::new(receives().chain((0..windows).flat_map(move |window| {
                    let next = receives().take(if window + 1 < windows { each } else { 0 });
                    [Action::Finish].into_iter().chain(next).chain(reply.clone())
                })))
            }
            _ => Box::new(std::iter::empty()),
        }
    }
}
