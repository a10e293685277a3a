//! The purposes of the runtime's messages.

/// The purpose of a message: the upper byte of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    AtomicRequest = 1,
    AtomicAnswer = 2,
    ScatterRequest = 3,
    GatherRequest = 4,
    ParcelAnswer = 5,
    /// An active message: see `am`.
    Active = 6,
    /// Asks how many active messages of the sender were executed.
    ActiveAsk = 7,
    /// The reply to `ActiveAsk`: the number of executed messages.
    ActiveTold = 8,
    /// The data of a long active message have been delivered.
    ActivePlaced = 9,
    /// PEs have reached a point: see `message_barrier`.
    MessageBarrier = 10,
    /// The sender waits for the receiver, which has left: see `departure`.
    Missed = 11,
    /// The last error of the sender, which has left.
    LastError = 12,
    /// A two-sided message: see `msg`.
    Message = 13,
}

impl Purpose {
    /// Adds this purpose to a header of 56 bits.
    pub fn over(self, header: u64) -> u64 {
        (self as u64) << 56 | header
    }
}

/// A header with a code and the number of a request.
pub(super) fn header(purpose: Purpose, code: u16, request: u32) -> u64 {
    purpose.over(u64::from(code) << 32 | u64::from(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_keep_their_parts_apart() {
        let header = header(Purpose::AtomicAnswer, 0xABCD, u32::MAX);
        assert_eq!(((header >> 56) as u8, (header >> 32) as u16, header as u32), (2, 0xABCD, u32::MAX));
    }
}
