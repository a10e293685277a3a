//! Messages as they travel between two PEs: two words and a payload.
//!
//! ```text
//! kind      | first word: kind 8, value 48  | second word | payload
//! Eager     | tag                           | context     | data
//! Matched   | tag                           | context     | send, data
//! Announce  | tag                           | context     | send, length, address, home
//! Accept    | send                          | receive     | bytes that the receiver has room for, Target
//! Data      | receive                       | -           | the next piece of the data
//! Finished  | send                          | -           | it has all data, or a match
//! Allow     | -                             | count       | unsolicited messages that may be sent
//! Written   | receive                       | -           | all data were put to the target
//! Ask       | -                             | -           | has the PE sent all?
//! Last      | -                             | -           | it has
//! Share     | send                          | -           | bytes, address and round of the receiver's copy
//! ```
//! The first three are *unsolicited*: the receiver may have to keep them. The others are *solicited*: they
//! are answers to a message of their receiver, so that it can always take them. Over a network the purpose of
//! a message stands above the kind, and the second word in front of the payload, except that of `Data`.

use super::envelope::{Context, Tag};
use pelago_fabric::Remote;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Eager,
    Matched,
    Announce,
    Accept,
    Data,
    Finished,
    Allow,
    Ask,
    Last,
    Written,
    Share,
}

/// The largest value.
pub const VALUE_MAX: u64 = (1 << 48) - 1;

impl Kind {
    /// The first word of a message of this kind.
    #[inline(always)]
    pub fn with(self, value: u64) -> u64 {
        debug_assert!(value <= VALUE_MAX, "a value of 48 bits");
        (self as u64) << 48 | value
    }

    /// The kind and the value of a first word; what lies above them is not read. `None` if there is no such
    /// kind.
    #[inline(always)]
    pub fn of(word: u64) -> Option<(Kind, u64)> {
        let kind = match (word >> 48) as u8 {
            0 => Kind::Eager,
            1 => Kind::Matched,
            2 => Kind::Announce,
            3 => Kind::Accept,
            4 => Kind::Data,
            5 => Kind::Finished,
            6 => Kind::Allow,
            7 => Kind::Ask,
            8 => Kind::Last,
            9 => Kind::Written,
            10 => Kind::Share,
            _ => return None,
        };
        Some((kind, word & VALUE_MAX))
    }

    /// Whether the receiver may have to keep it.
    #[inline(always)]
    pub fn is_unsolicited(self) -> bool {
        matches!(self, Kind::Eager | Kind::Matched | Kind::Announce)
    }
}

/// The words of an eager message.
#[inline(always)]
pub fn eager_words(tag: Tag, Context(context): Context) -> [u64; 2] {
    [Kind::Eager.with(tag.into()), context]
}

/// Where the data of an announced message lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// At an address of the sender's process.
    Private(u64),
    /// At an offset in the sender's part of symmetric memory.
    Symmetric(u64),
    /// In several pieces.
    Packed,
}

/// Where a receiver wants the data of a long message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// In messages.
    Pieces,
    /// In memory that it has registered or exposed.
    Memory(Remote),
}

/// Stands for pieces in place of a key.
const NO_KEY: u64 = u64::MAX;

impl Target {
    pub fn words(self) -> [u64; 2] {
        match self {
            Target::Pieces => [NO_KEY, 0],
            Target::Memory(Remote { key, offset_bytes }) => [key, offset_bytes as u64],
        }
    }

    /// `None` if no receiver has written these words.
    pub fn from_words([key, offset]: [u64; 2]) -> Option<Target> {
        match key {
            NO_KEY => (offset == 0).then_some(Target::Pieces),
            _ => Some(Target::Memory(Remote { key, offset_bytes: usize::try_from(offset).ok()? })),
        }
    }
}

/// Words of the payload of an announcement.
pub const ANNOUNCE_WORDS: usize = 4;

/// An announced message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The sender's request.
    pub send: u64,
    /// The length of the message in bytes.
    pub bytes: usize,
    pub home: Home,
}

impl Announcement {
    pub fn words(self) -> [u64; ANNOUNCE_WORDS] {
        let (address, home) = match self.home {
            Home::Private(address) => (address, 0),
            Home::Symmetric(offset) => (offset, 1),
            Home::Packed => (0, 2),
        };
        [self.send, self.bytes as u64, address, home]
    }

    /// `None` if no sender has written these words.
    pub fn from_words([send, bytes, address, home]: [u64; ANNOUNCE_WORDS]) -> Option<Announcement> {
        let home = match (home, address) {
            (0, _) => Home::Private(address),
            (1, _) => Home::Symmetric(address),
            (2, 0) => Home::Packed,
            _ => return None,
        };
        let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes <= isize::MAX as usize)?;
        (send <= VALUE_MAX).then_some(Announcement { send, bytes, home })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_first_word_is_what_was_packed(kind in 0..11_u64, value in 0..=VALUE_MAX, purpose: u8) {
            let (kind, _) = Kind::of(kind << 48).expect("there are eleven kinds");
            prop_assert_eq!(Kind::of(kind.with(value) | u64::from(purpose) << 56), Some((kind, value)));
        }

        #[test]
        fn any_words_are_an_announcement_or_refused(words: [u64; ANNOUNCE_WORDS]) {
            if let Some(announcement) = Announcement::from_words(words) {
                prop_assert_eq!(announcement.words(), words);
            }
        }
    }

    #[test]
    fn a_target_survives_its_words() {
        let memory = Target::Memory(Remote { key: 0, offset_bytes: 64 });
        for target in [Target::Pieces, memory] {
            assert_eq!(Target::from_words(target.words()), Some(target));
        }
        assert_eq!(Target::from_words([u64::MAX, 1]), None);
    }

    #[test]
    fn an_announcement_survives_its_words() {
        for home in [Home::Private(u64::MAX), Home::Symmetric(64), Home::Packed] {
            let announcement = Announcement { send: VALUE_MAX, bytes: 1 << 40, home };
            assert_eq!(Announcement::from_words(announcement.words()), Some(announcement));
        }
        assert_eq!(Announcement::from_words([0, 0, 0, 3]), None);
        assert_eq!(Announcement::from_words([0, 0, 8, 2]), None);
        assert_eq!(Announcement::from_words([1 << 48, 0, 0, 0]), None);
        assert_eq!(Announcement::from_words([0, u64::MAX, 0, 0]), None);
        assert_eq!(Kind::of(11 << 48), None);
    }
}
