//! The format of an operation on the wire: a header of 32 bytes, the operands of its atomic, padding, and its
//! data.
//!
//! ```text
//! | kind 1 | version 1 | from 2 | to 2 | code 2 | bytes 4 | acks 4 | word 8 | offset 8 |
//! | operands | padding | data |
//! ```
//! Numbers are in the order of bytes of the processor, as all processes of a job are one build on one kind of
//! machine. `from` and `to` are numbers of PEs within their processes. `code` is that of an atomic, else 0.
//! `acks` is the number of puts and messages of the receiver that the sender has executed. The highest bit of
//! `kind` says that this frame is not acknowledged, and the three bits below it count the words of padding,
//! which moves long data to a place from which the kernel copies quickly (`SendQueue::padding`).

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 32;
/// The version of frames.
const VERSION: u8 = 5;

/// The bit of `kind` for puts that are not acknowledged, and those for the words of padding.
const UNREPORTED: u8 = 0x80;
const PADDING_SHIFT: u32 = 4;
const PADDING_MASK: u8 = 7;
/// The most words of padding.
pub(super) const PADDING_MAX: u8 = PADDING_MASK;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Writes its data to a region: key, offset.
    Put = 1,
    /// Asks for `bytes` bytes of a region: key, offset.
    Get = 2,
    /// Has the data for the oldest get or fetching atomic.
    Reply = 3,
    /// Executes an atomic on a word of a region, and asks for the old value: key, offset. It has two
    /// operands.
    Fetch = 4,
    /// The same without the old value.
    Update = 5,
    /// A message: 64 bits, and its data.
    Message = 6,
    /// Has the acknowledgement alone.
    Ack = 7,
    /// The last frame of a process that leaves.
    Bye = 8,
    /// A put, and then an atomic without the old value. Its operands are the key and the offset of the
    /// word, and the operand of the atomic.
    PutSignal = 9,
    /// Does nothing. Its acknowledgement says that all frames before it are executed.
    Flush = 10,
    /// A `PutSignal` of the root of a broadcast, which waits for nothing. It is acknowledged as messages are.
    Broadcast = 11,
    /// Tells of the socket for datagrams: its token, and its port in the place of the offset.
    Datagrams = 12,
    /// Says that frames follow which were sent in datagrams: the position of their first byte, and in the
    /// place of the offset that behind the last one. It has no position itself.
    Repeat = 13,
}

impl Kind {
    const ALL: [Kind; 13] = {
        use Kind::*;
        [Put, Get, Reply, Fetch, Update, Message, Ack, Bye, PutSignal, Flush, Broadcast, Datagrams, Repeat]
    };

    /// The length of its operands, in bytes.
    #[inline]
    pub(super) fn operand_bytes(self) -> usize {
        match self {
            Kind::PutSignal | Kind::Broadcast => 3 * size_of::<u64>(),
            Kind::Fetch | Kind::Update => 2 * size_of::<u64>(),
            _ => 0,
        }
    }

    /// Whether it changes the receiver's memory, or is a message.
    pub(super) fn is_delivery(self) -> bool {
        self.is_put() || matches!(self, Kind::Update | Kind::Message)
    }

    /// Whether it writes its data to a region.
    #[inline]
    pub(super) fn is_put(self) -> bool {
        self == Kind::Put || self.has_signal()
    }

    /// Whether an atomic follows its data.
    #[inline]
    pub(super) fn has_signal(self) -> bool {
        matches!(self, Kind::PutSignal | Kind::Broadcast)
    }

    /// Whether its acknowledgement waits for a frame that carries it, as nobody waits for it.
    #[inline]
    pub(super) fn is_acknowledged_late(self) -> bool {
        matches!(self, Kind::Message | Kind::Broadcast)
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// Whether it is a put that is not acknowledged.
    pub(super) is_unreported: bool,
    /// Words of 8 bytes between the operands and the data.
    pub(super) padding: u8,
    pub(super) from: u16,
    pub(super) to: u16,
    /// The code of an atomic.
    pub(super) code: u16,
    pub(super) bytes: u32,
    pub(super) acks: u32,
    /// The key of a region, or the 64 bits of a message.
    pub(super) word: u64,
    pub(super) offset: u64,
}

impl Header {
    /// The header of a frame that has nothing but the acknowledgement.
    pub(super) fn control(kind: Kind, acks: u32) -> Header {
        let (is_unreported, padding) = (false, 0);
        Header { kind, is_unreported, padding, from: 0, to: 0, code: 0, bytes: 0, acks, word: 0, offset: 0 }
    }

    /// Whether the receiver acknowledges it.
    #[inline]
    pub(super) fn is_acknowledged(&self) -> bool {
        (self.kind.is_delivery() || self.kind == Kind::Flush) && !self.is_unreported
    }

    #[inline(always)]
    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let unreported = if self.is_unreported { UNREPORTED } else { 0 };
        bytes[0] = self.kind as u8 | unreported | self.padding << PADDING_SHIFT;
        bytes[1] = VERSION;
        bytes[2..4].copy_from_slice(&self.from.to_ne_bytes());
        // One store: a short put has no code.
        let to_and_code = u32::from(self.to) | u32::from(self.code) << 16;
        bytes[4..8].copy_from_slice(&to_and_code.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.bytes.to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.acks.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.word.to_ne_bytes());
        bytes[24..].copy_from_slice(&self.offset.to_ne_bytes());
        bytes
    }

    /// Reads a header in the place of this one, as a header that is returned would be moved several times.
    /// An error describes bytes that are not a header.
    #[inline(always)]
    pub(super) fn read(&mut self, bytes: &[u8; HEADER_BYTES]) -> Result<(), String> {
        let half = |at: usize| u16::from_ne_bytes(field(bytes, at));
        let word = |at: usize| u32::from_ne_bytes(field(bytes, at));
        let long = |at: usize| u64::from_ne_bytes(field(bytes, at));
        let is_unreported = bytes[0] & UNREPORTED != 0;
        let padding = bytes[0] >> PADDING_SHIFT & PADDING_MASK;
        let kind = Kind::ALL.get(usize::from(bytes[0] & ((1 << PADDING_SHIFT) - 1)).wrapping_sub(1));
        let may_be = |kind: &&Kind| match kind {
            kind if kind.is_put() => true,
            Kind::Reply | Kind::Message => !is_unreported,
            _ => !is_unreported && padding == 0,
        };
        let Some(&kind) = kind.filter(may_be).filter(|_| bytes[1] == VERSION) else {
            return Err(format!("a frame of kind {}, version {}", bytes[0], bytes[1]));
        };
        (self.kind, self.is_unreported, self.padding) = (kind, is_unreported, padding);
        let to_and_code = word(4);
        (self.from, self.to, self.code) = (half(2), to_and_code as u16, (to_and_code >> 16) as u16);
        (self.bytes, self.acks) = (word(8), word(12));
        (self.word, self.offset) = (long(16), long(24));
        Ok(())
    }

    /// The length of the operands and the padding, in bytes.
    #[inline]
    pub(super) fn before_data_bytes(&self) -> usize {
        self.kind.operand_bytes() + usize::from(self.padding) * size_of::<u64>()
    }

    /// The length of the data, in bytes.
    #[inline]
    pub(super) fn data_bytes(&self) -> usize {
        match self.kind {
            Kind::Put | Kind::PutSignal | Kind::Broadcast | Kind::Reply | Kind::Message => {
                self.bytes as usize
            }
            Kind::Fetch | Kind::Update | Kind::Get => 0,
            Kind::Ack | Kind::Bye | Kind::Flush | Kind::Datagrams | Kind::Repeat => 0,
        }
    }
}

/// A number of a header, by one load.
#[inline(always)]
fn field<const N: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    bytes[at..].first_chunk().copied().unwrap_or([0; N])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_are_read_as_they_were_written(
            kind in 0..13_usize, is_short: bool, from: u16, to: u16, code: u16, bytes: u32, acks: u32,
            word: u64, offset: u64, padding in 0..=PADDING_MAX,
        ) {
            let kind = Kind::ALL[kind];
            let has_data = kind.is_put() || matches!(kind, Kind::Reply | Kind::Message);
            let padding = if has_data { padding } else { 0 };
            let is_unreported = is_short && kind.is_put();
            let header = Header { kind, is_unreported, padding, from, to, code, bytes, acks, word, offset };
            prop_assert_eq!(Header::from_bytes(&header.to_bytes()), Ok(header));
        }

        #[test]
        fn whatever_is_read_is_a_header_or_refused(bytes: [u8; HEADER_BYTES]) {
            if let Ok(header) = Header::from_bytes(&bytes) {
                prop_assert_eq!(header.to_bytes(), bytes);
            }
        }
    }

    impl Header {
        /// Reads a header.
        pub(in super::super) fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Result<Header, String> {
            let mut header = Header::control(Kind::Ack, 0);
            header.read(bytes).map(|()| header)
        }
    }

    #[test]
    fn other_kinds_and_versions_are_refused() {
        let header = Header::control(Kind::Ack, 0);
        for (place, value) in [
            (0, 0),
            (0, 14),
            (0, UNREPORTED | Kind::Ack as u8),
            (0, 1 << PADDING_SHIFT | Kind::Ack as u8),
            (1, 0),
            (1, 4),
            (1, 6),
        ] {
            let mut bytes = header.to_bytes();
            bytes[place] = value;
            assert!(Header::from_bytes(&bytes).is_err(), "byte {place} is {value}");
        }
    }
}
