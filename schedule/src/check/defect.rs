//! The defects that schedules of a team can have, and their messages.
//!
//! Invariant: a defect names the rank, and the number of the step, counted from 0, wherever one step is the
//! cause.

use crate::schedule::{Buffer, Place, Rank, Remote, Step};
use std::fmt;

/// The kinds of defects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The shapes of the ranks contradict each other.
    Shapes,
    /// A step names a rank that does not exist, or its own.
    Peer,
    /// A slot's number is not below [`slots_max`](crate::schedule::slots_max).
    SlotNumber,
    /// A signal that no rank waits for.
    UnwaitedSignal,
    /// A wait that no rank signals.
    UnsignalledWait,
    /// A slot that is signalled twice.
    SignalledTwice,
    /// A wait that names a different rank from the one that signals.
    WrongSender,
    /// A rank waits for the signals of another rank in a different order from that in which they are sent.
    SignalOrder,
    /// Ranks wait for each other, or for credits for their signals, in a cycle.
    Deadlock,
    /// An access outside of a memory.
    Bounds,
    /// A step that cuts an element, or accesses it at an offset that is not a multiple of the element size.
    CutElement,
    /// The operands of one step overlap.
    Overlap,
    /// Two accesses that nothing orders.
    Race,
    /// A write to a source or a mailbox.
    ReadOnly,
    /// An access to a place that was not announced to this rank before.
    NotAnnounced,
    /// A mailbox that is read before its wait, or is accessed other than by a put with a signal.
    Mailbox,
    /// A reduction of memory that was never written.
    Unset,
    /// A reduction in an operation that combines nothing.
    Combines,
    /// A get that is never completed.
    OpenGet,
    /// Another rank may still access the memory of a rank that has ended.
    OpenAtEnd,
    /// A target that does not hold what the operation promises.
    Result,
    /// A target was written where it must not change.
    Touched,
    /// A result that combines its operands in a different order from the one that the algorithm promises.
    FoldOrder,
    /// Ranks that must have equal results have combined them in different ways.
    Unequal,
    /// A rank leaves a barrier before another has arrived.
    Barrier,
}

/// A defect of the schedules of a team.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Its kind.
    pub fault: Fault,
    /// The rank at which it was found.
    pub rank: Rank,
    /// The step at which it was found, from 0, if there is one.
    pub step: Option<usize>,
    /// The description of the defect.
    pub what: String,
}

impl Defect {
    pub(super) fn new(fault: Fault, rank: Rank, step: impl Into<Option<usize>>, what: String) -> Defect {
        Defect { fault, rank, step: step.into(), what }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Some(step) => write!(f, "rank {}, step {step}: {}", self.rank, self.what),
            None => write!(f, "rank {}: {}", self.rank, self.what),
        }
    }
}

impl std::error::Error for Defect {}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.buffer {
            Buffer::Source => write!(f, "source+{}", self.offset),
            Buffer::Target => write!(f, "target+{}", self.offset),
            Buffer::Scratch => write!(f, "scratch+{}", self.offset),
            Buffer::Mailbox(slot) => write!(f, "mailbox {slot}+{}", self.offset),
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remote::Target(offset) => write!(f, "target+{offset}"),
            Remote::Mailbox => write!(f, "mailbox"),
            Remote::Announced { slot, offset } => write!(f, "announced place {slot}+{offset}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Put { to, from, into, bytes, signal } => {
                write!(f, "put {bytes} B of {from} to rank {to}, {into}")?;
                signal.map_or(Ok(()), |slot| write!(f, ", signal slot {slot}"))
            }
            Step::Get { of, from, into, bytes } => write!(f, "get {bytes} B of rank {of}, {from}, to {into}"),
            Step::Signal { to, slot, announces } => {
                write!(f, "signal rank {to}, slot {slot}")?;
                announces.map_or(Ok(()), |place| write!(f, ", announce {place}"))
            }
            Step::Wait { of, slot } => write!(f, "wait for rank {of}, slot {slot}"),
            Step::Complete => write!(f, "complete"),
            Step::Copy { from, into, bytes } => write!(f, "copy {bytes} B of {from} to {into}"),
            Step::CopyStrided { from, from_stride, into, into_stride, block, count } => write!(
                f,
                "copy {count} blocks of {block} B of {from} every {from_stride} to {into} every {into_stride}"
            ),
            Step::Reduce { left, right, into, bytes } => {
                write!(f, "reduce {bytes} B: {into} = {left} op {right}")
            }
        }
    }
}
