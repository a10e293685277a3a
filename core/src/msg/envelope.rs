//! The envelope of a message: what a receive is matched by.

use crate::Pe;

/// A tag, chosen by the program; not [`ANY_TAG`].
pub type Tag = u32;

/// In a pattern: any tag.
pub const ANY_TAG: Tag = Tag::MAX;
/// In a pattern: any source.
pub const ANY_SOURCE: u32 = u32::MAX;

/// The communication context of a team: messages of one are never matched by receives of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Context(pub u64);

/// The envelope of a message; or, with [`ANY_SOURCE`] or [`ANY_TAG`] in it, the pattern of a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub context: Context,
    /// The PE that sends.
    pub source: u32,
    pub tag: Tag,
}

impl Envelope {
    /// The pattern of a receive from this PE, or any, with this tag, or any.
    pub fn pattern(context: Context, source: Option<Pe>, tag: Option<Tag>) -> Envelope {
        let source = source.map_or(ANY_SOURCE, |pe| pe as u32);
        Envelope { context, source, tag: tag.unwrap_or(ANY_TAG) }
    }

    /// The PE that messages of this pattern come from, unless they may come from any.
    pub fn source_pe(&self) -> Option<Pe> {
        Some(self.source as Pe).filter(|_| self.source != ANY_SOURCE)
    }

    /// Whether it is the pattern of a receive from any source, or with any tag.
    #[inline(always)]
    pub fn is_wildcard(&self) -> bool {
        self.source == ANY_SOURCE || self.tag == ANY_TAG
    }

    /// Whether this pattern matches a message's envelope.
    #[inline]
    pub fn matches(&self, message: &Envelope) -> bool {
        self.context == message.context
            && (self.source == ANY_SOURCE || self.source == message.source)
            && (self.tag == ANY_TAG || self.tag == message.tag)
    }

    /// The four patterns that match a message.
    pub fn patterns(&self) -> [Envelope; 4] {
        let any_source = Envelope { source: ANY_SOURCE, ..*self };
        [*self, any_source, Envelope { tag: ANY_TAG, ..*self }, Envelope { tag: ANY_TAG, ..any_source }]
    }

    #[inline(always)]
    pub(super) fn hash(&self) -> u64 {
        let word = self.context.0 ^ u64::from(self.source) << 32 ^ u64::from(self.tag);
        // Fibonacci hashing: the upper bits are mixed best.
        word.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}
