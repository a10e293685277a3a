//! Votes: an agreement on a collective call as a reduction that is part of the barrier, instead of reading a
//! record of every PE.
//!
//! The vote of a PE has the hash of its call, the complement of the hash, and the set of arrays that the PE
//! has dropped. Votes are joined by a bitwise AND. If all hashes are equal, the joined hash and the joined
//! complement are still complements. If two hashes differ in a bit, both joined words have a 0 there.

use crate::base::call::{ArraySet, Call, DROPPED_WORDS};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Words of a vote: the hash, its complement, the dropped arrays.
pub const VOTE_WORDS: usize = 2 + DROPPED_WORDS;
/// Bytes of a vote.
pub const VOTE_BYTES: usize = 8 * VOTE_WORDS;

/// The vote of a PE, or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote(pub [u64; VOTE_WORDS]);

impl Vote {
    /// The vote of PEs that make different calls, and of a PE that has published none for the agreement.
    pub const VOID: Vote = Vote([0; VOTE_WORDS]);

    /// The vote of a PE that makes a call, given as words, in the agreement with this number.
    pub fn of(sequence: u64, call: [u64; 3], dropped: &ArraySet) -> Vote {
        // The hasher has no random key, so its results are equal in all processes of one program.
        let mut hasher = DefaultHasher::new();
        (sequence, call).hash(&mut hasher);
        let mut words = [0; VOTE_WORDS];
        words[0] = hasher.finish();
        words[1] = !words[0];
        words[2..].copy_from_slice(dropped);
        Vote(words)
    }

    /// Joins the vote of other PEs into this one.
    pub fn join(&mut self, others: &Vote) {
        self.0.iter_mut().zip(&others.0).for_each(|(own, others)| *own &= others);
    }

    /// Whether all make the same call.
    pub fn is_unanimous(&self) -> bool {
        self.0[0] == !self.0[1]
    }

    /// The arrays that all have dropped.
    pub fn dropped(&self) -> &[u64] {
        &self.0[2..]
    }

    pub fn to_bytes(self) -> [u8; VOTE_BYTES] {
        let mut bytes = [0; VOTE_BYTES];
        bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.0).for_each(|(to, word)| *to = word.to_ne_bytes());
        bytes
    }

    pub fn from_bytes(bytes: &[u8; VOTE_BYTES]) -> Vote {
        let (words, _) = bytes.as_chunks::<8>();
        Vote(std::array::from_fn(|i| u64::from_ne_bytes(words[i])))
    }
}

impl Call {
    /// The vote of a PE that makes this call.
    pub fn vote(self, sequence: u64, dropped: &ArraySet) -> Vote {
        Vote::of(sequence, self.words(), dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call = Call::Free { offset_bytes: 64 };

    #[test]
    fn equal_calls_are_unanimous_and_what_all_have_dropped_is_left() {
        let dropped = |word: u64| std::array::from_fn(|i| word + i as u64);
        let mut vote = CALL.vote(7, &dropped(0b1011));
        vote.join(&CALL.vote(7, &dropped(0b0110)));
        assert!(vote.is_unanimous());
        let expected: Vec<u64> = (0..DROPPED_WORDS as u64).map(|i| (0b1011 + i) & (0b0110 + i)).collect();
        assert_eq!(vote.dropped(), expected);
        assert_eq!(Vote::from_bytes(&vote.to_bytes()), vote);
    }

    #[test]
    fn other_calls_numbers_and_no_votes_are_found() {
        let none = [0; DROPPED_WORDS];
        let others = [
            CALL.vote(8, &none),
            Call::Free { offset_bytes: 65 }.vote(7, &none),
            Call::Reclaim.vote(7, &none),
            Vote::VOID,
        ];
        for other in others {
            let mut vote = CALL.vote(7, &none);
            vote.join(&other);
            assert!(!vote.is_unanimous(), "{other:?}");
            vote.join(&CALL.vote(7, &none));
            assert!(!vote.is_unanimous(), "what was found stays found");
        }
    }
}
