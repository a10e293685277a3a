//! The translation of the places in steps to ranges of units of a rank's memories.
//!
//! A unit is the largest power of two that divides the size of an element, up to the alignment of scratch
//! memory; an element is one or more of them. Invariant: an area lies inside its memory.

use super::defect::Fault;
use super::memory::{Memory, UNSET};
use super::terms::WordMap;
use crate::schedule::{Buffer, Place, Rank, Schedule, Slot};
use crate::shape::Shape;
use std::ops::Range;

/// The reason why a place cannot be used.
pub(super) type Refusal = (Fault, String);

/// Sizes of elements and units in bytes.
#[derive(Clone, Copy)]
pub(super) struct Units {
    /// Of an element.
    pub element: usize,
    /// Of a unit.
    pub unit: usize,
}

impl Units {
    /// The units for elements of `element_bytes` bytes, which are whole numbers of units.
    pub fn new(element_bytes: usize) -> Units {
        let element = element_bytes.max(1);
        Units { element, unit: 1 << element.trailing_zeros().min(6) }
    }

    /// The number of units of an element.
    pub fn pieces(self) -> usize {
        self.element / self.unit
    }
}

/// Units in a memory of a rank.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Area {
    /// The rank whose memory it is.
    pub rank: Rank,
    /// The memory; for the source the target, if the two are one.
    pub buffer: Buffer,
    /// The part of the memory.
    pub units: Range<usize>,
}

impl Area {
    /// Whether the two have units in common.
    pub fn overlaps(&self, other: &Area) -> bool {
        let same = self.rank == other.rank && self.buffer == other.buffer;
        same && self.units.start < other.units.end && other.units.start < self.units.end
    }
}

/// The memories of a rank.
pub(super) struct Memories {
    source: Memory,
    target: Memory,
    scratch: Memory,
    mailboxes: WordMap<Slot, Memory>,
    mailbox_units: usize,
}

impl Memories {
    /// The memories of a rank at the beginning. `leaf` gives the value of a unit of the source.
    pub fn new(
        shape: &Shape,
        schedule: &Schedule,
        units: Units,
        mailbox_bytes: usize,
        leaf: impl Fn(usize) -> u32,
    ) -> Memories {
        let source: Vec<u32> = (0..shape.source_bytes() / units.unit).map(leaf).collect();
        let target = vec![UNSET; shape.target_bytes() / units.unit];
        let (source, target) = match shape.in_place {
            true if source.len() >= target.len() => (Vec::new(), source),
            true => (
                Vec::new(),
                source.iter().copied().chain(target.iter().copied().skip(source.len())).collect(),
            ),
            false => (source, target),
        };
        let scratch = vec![UNSET; schedule.scratch_bytes.div_ceil(units.unit)];
        Memories {
            source: Memory::new(source),
            target: Memory::new(target),
            scratch: Memory::new(scratch),
            mailboxes: WordMap::default(),
            mailbox_units: mailbox_bytes / units.unit,
        }
    }

    /// One of the memories.
    pub fn get(&mut self, buffer: Buffer) -> &mut Memory {
        match buffer {
            Buffer::Source => &mut self.source,
            Buffer::Target => &mut self.target,
            Buffer::Scratch => &mut self.scratch,
            Buffer::Mailbox(slot) => {
                let units = self.mailbox_units;
                self.mailboxes.entry(slot).or_insert_with(|| Memory::new(vec![UNSET; units]))
            }
        }
    }

    /// The target.
    pub fn target(&self) -> &Memory {
        &self.target
    }
}

/// The area of `bytes` bytes at a place of a rank.
pub(super) fn area(
    shape: &Shape,
    schedule: &Schedule,
    units: Units,
    mailbox_bytes: usize,
    place: Place,
    bytes: usize,
) -> Result<Area, Refusal> {
    let (size, align) = match place.buffer {
        Buffer::Source => (shape.source_bytes(), units.element),
        Buffer::Target => (shape.target_bytes(), units.element),
        Buffer::Scratch => (schedule.scratch_bytes, units.unit),
        Buffer::Mailbox(_) => (mailbox_bytes, units.element),
    };
    if place.offset.checked_add(bytes).is_none_or(|end| end > size) {
        let text = format!("{place} with {bytes} B goes beyond the {size} B of rank {}", shape.rank);
        return Err((Fault::Bounds, text));
    }
    if !bytes.is_multiple_of(units.element) || !place.offset.is_multiple_of(align) {
        return Err((
            Fault::CutElement,
            format!("{place} with {bytes} B cuts elements of {} B", units.element),
        ));
    }
    let buffer = match place.buffer {
        Buffer::Source if shape.in_place => Buffer::Target,
        buffer => buffer,
    };
    let start = place.offset / units.unit;
    Ok(Area { rank: shape.rank, buffer, units: start..start + bytes / units.unit })
}
