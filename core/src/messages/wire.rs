//! Active messages as they travel: 56 bits of the header, and a payload of words.
//!
//! ```text
//! header   | purpose 8 | long? wide? reply? 3, arguments 5 | replies go to 16 | endpoint 16 | handler 16 |
//! payload  | arguments, two a word | long: first element, elements, offset in the region | bytes |
//! ```
//! The purpose is for other messages of the same network; among PEs that map each other it is not read.

use super::{ARGS_MAX, Handler};

/// The contents of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub handler: Handler,
    /// The endpoint's number at the receiver.
    pub endpoint: u16,
    /// Its number at the sender, for the reply.
    pub answers_to: u16,
    pub args: u8,
    pub is_answer: bool,
    /// There is room for all arguments that there can be, as their number was not known in time.
    pub is_wide: bool,
    /// The payload lies in an array, and words hold its place.
    pub is_long: bool,
}

/// Words of the greatest number of arguments.
pub const ARG_WORDS_MAX: usize = ARGS_MAX / 2;
/// Words that hold the place of the data of a long message: the first element and how many, for the handler,
/// and the offset in the receiver's region, for data that travel with the message.
pub const LONG_WORDS: usize = 3;
/// Bytes that a message takes besides its payload, at most.
pub const OVERHEAD_BYTES: usize = (ARG_WORDS_MAX + LONG_WORDS) * 8;

impl Head {
    /// The header of requests to the endpoint of this number, whose replies go to another endpoint.
    pub fn request(endpoint: u16, answers_to: u16) -> Head {
        let (is_answer, is_wide, is_long) = (false, false, false);
        Head { handler: Handler(0), endpoint, answers_to, args: 0, is_answer, is_wide, is_long }
    }

    /// A packed request with this handler and this number of arguments.
    #[inline(always)]
    pub fn with(request: u64, handler: Handler, args: usize) -> u64 {
        request | u64::from(handler.0) | (args as u64) << 48
    }

    #[inline(always)]
    pub fn pack(self) -> u64 {
        let flags = self.args
            | u8::from(self.is_answer) << 5
            | u8::from(self.is_wide) << 6
            | u8::from(self.is_long) << 7;
        u64::from(self.handler.0)
            | u64::from(self.endpoint) << 16
            | u64::from(self.answers_to) << 32
            | u64::from(flags) << 48
    }

    /// The contents of a packed header; `None` if the header is not valid.
    #[inline]
    pub fn unpack(header: u64) -> Option<Head> {
        let flags = (header >> 48) as u8;
        let args = flags & 31;
        (usize::from(args) <= ARGS_MAX).then_some(Head {
            handler: Handler(header as u16),
            endpoint: (header >> 16) as u16,
            answers_to: (header >> 32) as u16,
            args,
            is_answer: flags & 1 << 5 != 0,
            is_wide: flags & 1 << 6 != 0,
            is_long: flags & 1 << 7 != 0,
        })
    }

    /// Words of the payload that hold arguments.
    #[inline]
    pub fn arg_words(self) -> usize {
        if self.is_wide { ARG_WORDS_MAX } else { usize::from(self.args).div_ceil(2) }
    }

    /// Words of the payload before the bytes.
    #[inline]
    pub fn words(self) -> usize {
        self.arg_words() + if self.is_long { LONG_WORDS } else { 0 }
    }
}

/// The words before the bytes of a message.
pub struct Words {
    words: [u64; ARG_WORDS_MAX + LONG_WORDS],
    count: usize,
}

impl Words {
    /// Those of arguments, of which there are not too many, and of where a long message's payload lies.
    #[inline]
    pub fn new(args: &[u32], place: Option<[u64; LONG_WORDS]>) -> Words {
        let mut words = Words { words: [0; ARG_WORDS_MAX + LONG_WORDS], count: args.len().div_ceil(2) };
        // SAFETY: words hold two arguments each, and there is room for the greatest number of arguments.
        unsafe {
            let into: *mut u32 = words.words.as_mut_ptr().cast();
            for (i, &arg) in args.iter().take(ARGS_MAX).enumerate() {
                into.add(i).write(arg);
            }
        }
        if let Some(place) = place {
            words.words[words.count..words.count + LONG_WORDS].copy_from_slice(&place);
            words.count += LONG_WORDS;
        }
        words
    }

    #[inline]
    pub fn as_slice(&self) -> &[u64] {
        &self.words[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn heads_keep_their_parts_apart(
            numbers in any::<(u16, u16, u16)>(),
            args in 0..=ARGS_MAX as u8,
            (is_answer, is_wide, is_long) in any::<(bool, bool, bool)>(),
        ) {
            let (handler, endpoint, answers_to) = (Handler(numbers.0), numbers.1, numbers.2);
            let head = Head { handler, endpoint, answers_to, args, is_answer, is_wide, is_long };
            prop_assert_eq!(head.pack() >> 56, 0);
            prop_assert_eq!(Head::unpack(head.pack()), Some(head));
            prop_assert_eq!(Head::unpack(head.pack() | 3 << 56), Some(head));
        }
    }

    #[test]
    fn more_arguments_than_there_can_be_are_none() {
        assert_eq!(Head::unpack(17 << 48), None);
    }
}
