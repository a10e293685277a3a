//! The purposes of the runtime's messages.

/// What a message is for: the upper byte of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    AtomicRequest = 1,
    AtomicAnswer = 2,
    ScatterRequest = 3,
    GatherRequest = 4,
    ParcelAnswer = 5,
    /// An active message: see `am`.
    Active = 6,
    /// How many active messages of this PE were executed?
    ActiveAsk = 7,
    /// So many.
    ActiveTold = 8,
    /// The data that came with one are in their place.
    ActivePlaced = 9,
    /// PEs have come to a point: see `message barrier`.
    MessageBarrier = 10,
    /// A PE waits in vain for this one, which has left: see `departure`.
    Missed = 11,
    /// The last error of the sender, which has left.
    LastError = 12,
}

impl Purpose {
    /// A header of 56 bits, for this purpose.
    pub(crate) fn over(self, header: u64) -> u64 {
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
