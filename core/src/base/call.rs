//! The collective calls that all PEs must make with the same arguments, encoded as words that the PEs
//! compare.

use crate::base::kind::ObjectKind;
use crate::base::semaphore_kind::SemaphoreKind;
use pelago_fabric::shm::segment::AGREEMENT_WORDS;
use std::cell::Cell;
use std::fmt;

/// Words of an agreement record before the set of dropped arrays: number, call, two arguments.
pub const CALL_WORDS: usize = 4;
/// Words of the set of dropped arrays.
pub const DROPPED_WORDS: usize = AGREEMENT_WORDS - CALL_WORDS;

/// The first bit of the object's kind in the first word of a call.
const KIND_SHIFT: u32 = 8;
/// The bits of the form of barriers in a word that also holds a fingerprint.
const BARRIER_BITS: u32 = 8;
/// Stands for the number of elements of a block if all elements lie on one PE. No block has this length.
pub const NO_BLOCKS: usize = usize::MAX;

/// The conversions of distributed arrays, by the code of the discipline that they convert to.
const CONVERSIONS: [&str; 4] = ["into_exclusive", "into_read_only", "into_atomic", "into_locked"];

/// The name of the conversion to the discipline with a code.
pub fn conversion(code: u64) -> &'static str {
    CONVERSIONS.get(code as usize).copied().unwrap_or("a conversion")
}

/// A set of arrays, by their numbers.
pub type ArraySet = [u64; DROPPED_WORDS];

/// A call that must be the same at every PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Join {
        barrier: usize,
        reach: usize,
        /// The fingerprint of the preferences by which algorithms are chosen: 56 of its bits.
        preferences: u64,
    },
    /// Allocates memory for an object of this kind.
    Alloc {
        kind: ObjectKind,
        bytes: usize,
        align_bytes: usize,
    },
    AllocZeroed {
        kind: ObjectKind,
        bytes: usize,
        align_bytes: usize,
    },
    /// Compares the layout of an array of this kind: its elements, and the elements of a block or
    /// [`NO_BLOCKS`].
    Layout {
        kind: ObjectKind,
        len: usize,
        block: usize,
    },
    /// Makes `count` semaphores on each PE, of the kind with this code.
    Semaphores {
        count: usize,
        code: u64,
    },
    Resize {
        offset_bytes: usize,
        bytes: usize,
    },
    Free {
        offset_bytes: usize,
    },
    BeginExclusive {
        offset_bytes: usize,
        bytes: usize,
    },
    EndExclusive {
        offset_bytes: usize,
        bytes: usize,
    },
    Reclaim,
    /// Converts a distributed array to the discipline with this code.
    Convert {
        offset_bytes: usize,
        to: u64,
    },
}

impl Call {
    /// The call as three words. The first word has the code of the call in its lower bits and the kind of the
    /// object above.
    pub fn words(self) -> [u64; 3] {
        let of = |code: u64, kind: ObjectKind| code | kind.code() << KIND_SHIFT;
        match self {
            Call::Join { barrier, reach, preferences } => {
                [1, barrier as u64 | preferences << BARRIER_BITS, reach as u64]
            }
            Call::Alloc { kind, bytes, align_bytes } => [of(2, kind), bytes as u64, align_bytes as u64],
            Call::AllocZeroed { kind, bytes, align_bytes } => [of(3, kind), bytes as u64, align_bytes as u64],
            Call::Resize { offset_bytes, bytes } => [4, offset_bytes as u64, bytes as u64],
            Call::Free { offset_bytes } => [5, offset_bytes as u64, 0],
            Call::BeginExclusive { offset_bytes, bytes } => [6, offset_bytes as u64, bytes as u64],
            Call::EndExclusive { offset_bytes, bytes } => [7, offset_bytes as u64, bytes as u64],
            Call::Reclaim => [8, 0, 0],
            Call::Convert { offset_bytes, to } => [9, offset_bytes as u64, to],
            Call::Layout { kind, len, block } => [of(10, kind), len as u64, block as u64],
            Call::Semaphores { count, code } => [of(11, ObjectKind::Semaphores), count as u64, code],
        }
    }

    pub fn from_words([first, a, b]: [u64; 3]) -> Option<Call> {
        let (code, kind) = (first & ((1 << KIND_SHIFT) - 1), ObjectKind::from_code(first >> KIND_SHIFT)?);
        let (second, a, b) = (b, a as usize, b as usize);
        let call = match code {
            1 => Call::Join {
                barrier: a & ((1 << BARRIER_BITS) - 1),
                reach: b,
                preferences: a as u64 >> BARRIER_BITS,
            },
            2 => Call::Alloc { kind, bytes: a, align_bytes: b },
            3 => Call::AllocZeroed { kind, bytes: a, align_bytes: b },
            4 => Call::Resize { offset_bytes: a, bytes: b },
            5 => Call::Free { offset_bytes: a },
            6 => Call::BeginExclusive { offset_bytes: a, bytes: b },
            7 => Call::EndExclusive { offset_bytes: a, bytes: b },
            8 => Call::Reclaim,
            9 => Call::Convert { offset_bytes: a, to: second },
            10 => Call::Layout { kind, len: a, block: b },
            11 => Call::Semaphores { count: a, code: second },
            _ => return None,
        };
        // Rejects a kind in a call that has none, and a kind that the call cannot have.
        (call.words()[0] == first).then_some(call)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let array = |f: &mut fmt::Formatter<'_>, call, offset_bytes| {
            write!(f, "{call}(array at heap offset {offset_bytes})")
        };
        match *self {
            Call::Join { barrier, reach, preferences } => write!(
                f,
                "init(PELAGO_BARRIER's choice number {barrier}, PELAGO_ROUTE's choice number {reach}, and \
                 the checksum {preferences:x} of PELAGO_COLL, PELAGO_COLL_FORM, PELAGO_COLL_ONLINE, the \
                 rules in the file of PELAGO_COLL_TUNING, PELAGO_DETERMINISTIC and PELAGO_SYNC_MEMORY)"
            ),
            Call::Alloc { kind, bytes, align_bytes } => {
                write!(f, "{}({bytes} bytes, aligned to {align_bytes})", kind.call("alloc"))
            }
            Call::AllocZeroed { kind, bytes, align_bytes } => {
                write!(f, "{}({bytes} bytes, aligned to {align_bytes})", kind.call("alloc_zeroed"))
            }
            Call::Layout { kind, len, block: NO_BLOCKS } => {
                write!(f, "{}({len} elements without blocks)", kind.call("an array"))
            }
            Call::Layout { kind, len, block } => {
                write!(f, "{}({len} elements in blocks of {block})", kind.call("an array"))
            }
            Call::Semaphores { count, code } => {
                write!(f, "semaphores({count} a PE, {})", SemaphoreKind::describe(code))
            }
            Call::Resize { offset_bytes, bytes } => {
                write!(f, "resize(array at heap offset {offset_bytes}, to {bytes} bytes)")
            }
            Call::Free { offset_bytes } => array(f, "free", offset_bytes),
            Call::BeginExclusive { offset_bytes, .. } => array(f, "exclusive", offset_bytes),
            Call::EndExclusive { offset_bytes, .. } => array(f, "the end of exclusive", offset_bytes),
            Call::Reclaim => write!(f, "reclaim()"),
            Call::Convert { offset_bytes, to } => {
                let conversion = conversion(to);
                write!(f, "{conversion}(distributed array at heap offset {offset_bytes})")
            }
        }
    }
}

thread_local! {
    /// The agreement that this thread waits for, and its number; the number is 0 for an agreement of a team.
    static AWAITED: Cell<Option<(Call, u64)>> = const { Cell::new(None) };
}

/// Ends the period that [`waiting_for`] has begun, also when the thread unwinds.
pub struct Waited(Option<(Call, u64)>);

impl Drop for Waited {
    fn drop(&mut self) {
        AWAITED.set(self.0);
    }
}

/// While the result lives, waits of this thread belong to an agreement, and the report of a wait that cannot
/// end names it.
#[must_use]
pub fn waiting_for(call: Call, sequence: u64) -> Waited {
    Waited(AWAITED.replace(Some((call, sequence))))
}

/// The agreement that this thread waits for, and its number; the number is 0 for an agreement of a team.
pub fn awaited() -> Option<(Call, u64)> {
    AWAITED.get()
}
