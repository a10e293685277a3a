//! Agreement records: the values that the members of a team send each other in one exchange, and the codes
//! that tell calls apart.
//!
//! Invariant: calls of different kinds have different first words: those of `agree` are small, those that
//! make teams and spaces begin at 2^32, and those that move data, which are compared with checks on, at
//! 2^33.

use crate::base::call::Call;
use crate::coll::call;
use crate::coll::reduction::Combiner;

/// Words of an agreement record that tell which objects were dropped.
pub const AGREEMENT_DROPPED_WORDS: usize = 4;
/// Words that the members exchange at once.
pub const AGREEMENT_WORDS: usize = 4 + AGREEMENT_DROPPED_WORDS;
/// The words that a member sends to the others in one exchange.
pub type AgreementRecord = [u64; AGREEMENT_WORDS];
/// Objects that a member has dropped, as bits.
pub type Dropped = [u64; AGREEMENT_DROPPED_WORDS];

/// The objects that the member of a record has dropped.
pub fn dropped_of(record: &AgreementRecord) -> Dropped {
    std::array::from_fn(|i| record[AGREEMENT_WORDS - AGREEMENT_DROPPED_WORDS + i])
}

/// Keeps those objects that the member of a record has dropped as well.
pub fn intersect(dropped: &mut Dropped, record: &AgreementRecord) {
    dropped.iter_mut().zip(dropped_of(record)).for_each(|(all, theirs)| *all &= theirs);
}

/// A call that makes a team or a space, with two words that each member sends about itself.
#[derive(Clone, Copy)]
pub struct Creation {
    pub operation: &'static str,
    pub words: [u64; 2],
}

/// The calls that make teams and spaces, and those of [`Team::exchange_words`]; the code of one is its
/// place, counted from a number that no other call has.
const CREATIONS: [&str; 20] = [
    "split_strided",
    "split_list",
    "split_2d",
    "split_3d",
    "split_by",
    "space",
    "collect",
    "an exchange of lengths",
    REDUCE,
    "broadcast_to_others",
    "a common place",
    "serve",
    "the end of serve",
    "a barrier of active messages",
    "atomic_domain",
    "shrink",
    REDUCE_VALUE,
    GATHER_VALUES,
    BROADCAST_VALUE,
    SCAN_VALUE,
];
/// The reduction of a distributed array: the fourth word holds the code of the combiner.
pub const REDUCE: &str = "reduce of a distributed array";
/// The reduction of a value of each member: the fourth word as for [`REDUCE`].
pub const REDUCE_VALUE: &str = "reduce_value";
/// The scan of a value of each member: the fourth word as for [`REDUCE`].
pub const SCAN_VALUE: &str = "exclusive_scan_value";
/// The exchange of a value of each member: the fourth word holds its size.
pub const GATHER_VALUES: &str = "gather_values";
/// The broadcast of a value: the fourth word is a [`broadcast_word`].
pub const BROADCAST_VALUE: &str = "broadcast_value";
const FIRST_CREATION: u64 = 1 << 32;
/// The bits of a root in a word that also holds a size.
const ROOT_BITS: u32 = 32;

/// The root of a broadcast of a value, and the size of the value, as a word that all members compare.
pub fn broadcast_word(root: usize, bytes: usize) -> u64 {
    (bytes as u64) << ROOT_BITS | root as u64
}

impl Creation {
    pub fn code(&self) -> u64 {
        let place = CREATIONS.iter().position(|&name| name == self.operation);
        FIRST_CREATION + place.expect("every call that makes a team is in the table") as u64
    }
}

/// The name and arguments of a member's call, for messages.
pub fn describe(record: &AgreementRecord) -> String {
    let &[code, a, b, c, ..] = record;
    let creation = code.checked_sub(FIRST_CREATION).and_then(|place| CREATIONS.get(place as usize));
    creation
        .map(|&name| match (name, Combiner::describe(c)) {
            (REDUCE | REDUCE_VALUE | SCAN_VALUE, Some(combiner)) => format!("{name} ({combiner})"),
            (GATHER_VALUES, _) => format!("{name} of {c} bytes"),
            (BROADCAST_VALUE, _) => {
                format!("{name} of {} bytes from rank {}", c >> ROOT_BITS, c & ((1 << ROOT_BITS) - 1))
            }
            _ => name.to_owned(),
        })
        .or_else(|| call::describe([code, a, b, c]))
        .or_else(|| Call::from_words([code, a, b]).map(|call| call.to_string()))
        .unwrap_or_else(|| "something else".to_owned())
}
