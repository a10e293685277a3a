//! The online tuner: the first blocking calls of a class try the forms that an operation may take, the
//! members agree on the fastest, and later calls take it (`PELAGO_COLL_ONLINE`, decision 0062).
//!
//! A *class* of calls of a team has one operation, blocks of up to one power of two of bytes, and, where
//! elements are combined, one pair of laws. All forms of a class have the same results, bit for bit: see
//! [`Preferences::candidates`](super::select::Preferences::candidates).
//!
//! * [`trial`] decides which form each call takes;
//! * [`kept`] keeps the outcomes in a file, for later jobs.

pub mod kept;
pub mod trial;

use super::candidates::Candidate;
use super::select::Laws;
use super::shape::Operation;

/// A class of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    pub operation: Operation,
    /// A block has at most two to this power of bytes, and more than half of them.
    pub power: u8,
    pub laws: Option<Laws>,
}

impl Class {
    /// The class of a call with blocks of this many bytes; `None` if such calls are not tuned.
    #[inline]
    pub fn of(operation: Operation, bytes: usize, laws: Option<Laws>) -> Option<Class> {
        let power = bytes.checked_next_power_of_two()?.trailing_zeros() as u8;
        (operation != Operation::Barrier && bytes > 0).then_some(Class { operation, power, laws })
    }
}

/// A form that a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As without the tuner.
    Usual,
    /// In two levels, with this algorithm between the leaders of the nodes.
    Leaders(Candidate),
    /// By a schedule of all members.
    All(Candidate),
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Form::Usual => f.write_str("as usual"),
            Form::Leaders(candidate) => write!(f, "leaders by {candidate}"),
            Form::All(candidate) => write!(f, "{candidate}"),
        }
    }
}
