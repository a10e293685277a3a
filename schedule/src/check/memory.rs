//! One memory of a rank: the symbolic contents of its units, and the accesses to them.
//!
//! Invariant: segments are disjoint, ascending, and cover the memory. A segment stores its last write and all
//! reads since then, except those that were known to be over when later reads began. Two accesses of a unit,
//! one of them a write, must be ordered; else they race (happens-before: L. Lamport, 1978; last writes and
//! sets of reads as in FastTrack, C. Flanagan and S. Freund, 2009).

use std::ops::Range;

/// The number of an access: of the step that makes it.
pub(super) type Access = u32;

/// No access.
pub(super) const NEVER: Access = Access::MAX;

/// The value of a unit that was never written.
pub(super) const UNSET: u32 = 0;

/// The number of reads of a segment at which those that are over are removed.
const SORT_OUT: u32 = 8;

#[derive(Clone)]
struct Segment {
    start: usize,
    end: usize,
    write: Access,
    reads: Vec<Access>,
    sort_out: u32,
}

impl Segment {
    fn written(start: usize, end: usize, write: Access) -> Segment {
        Segment { start, end, write, reads: Vec::new(), sort_out: SORT_OUT }
    }
}

/// An earlier access that is not ordered with this one.
pub(super) struct Conflict {
    /// The earlier access.
    pub earlier: Access,
    /// Whether it writes.
    pub writes: bool,
}

/// Contents and accesses.
pub(super) struct Memory {
    /// The values of the units.
    pub values: Vec<u32>,
    segments: Vec<Segment>,
}

impl Memory {
    /// A memory without accesses.
    pub fn new(values: Vec<u32>) -> Memory {
        let whole = Segment::written(0, values.len(), NEVER);
        Memory { values, segments: vec![whole] }
    }

    /// Records a read. `over` returns whether an earlier access is over when this one begins.
    pub fn read(
        &mut self,
        units: Range<usize>,
        access: Access,
        over: impl Fn(Access) -> bool,
    ) -> Result<(), Conflict> {
        if units.is_empty() {
            return Ok(());
        }
        let segments = self.split(units);
        for segment in &mut self.segments[segments] {
            let earlier = segment.write;
            if earlier != NEVER && earlier != access && !over(earlier) {
                return Err(Conflict { earlier, writes: true });
            }
            if segment.reads.last() == Some(&access) {
                continue;
            }
            if segment.reads.len() >= segment.sort_out as usize {
                segment.reads.retain(|&earlier| !over(earlier));
                segment.sort_out = SORT_OUT.max(2 * segment.reads.len() as u32);
            }
            segment.reads.push(access);
        }
        Ok(())
    }

    /// Records a write, like [`read`](Memory::read).
    pub fn write(
        &mut self,
        units: Range<usize>,
        access: Access,
        over: impl Fn(Access) -> bool,
    ) -> Result<(), Conflict> {
        if units.is_empty() {
            return Ok(());
        }
        let segments = self.split(units.clone());
        for segment in &self.segments[segments.clone()] {
            let open = |&earlier: &Access| earlier != NEVER && earlier != access && !over(earlier);
            if open(&segment.write) {
                return Err(Conflict { earlier: segment.write, writes: true });
            }
            if let Some(&earlier) = segment.reads.iter().find(|&earlier| open(earlier)) {
                return Err(Conflict { earlier, writes: false });
            }
        }
        let first = segments.start;
        self.segments.drain(first + 1..segments.end);
        self.segments[first] = Segment::written(units.start, units.end, access);
        Ok(())
    }

    /// Whether these units were never written.
    pub fn is_untouched(&self, units: Range<usize>) -> bool {
        let first = self.segments.partition_point(|segment| segment.end <= units.start);
        let overlapping = self.segments[first..].iter().take_while(|segment| segment.start < units.end);
        overlapping.into_iter().all(|segment| segment.write == NEVER)
    }

    /// Splits segments so that they begin and end where these units do. Returns the segments that cover the
    /// units.
    fn split(&mut self, units: Range<usize>) -> Range<usize> {
        let first = self.split_at(units.start);
        let mut last = first;
        while self.segments[last].end < units.end {
            last += 1;
        }
        if self.segments[last].end > units.end {
            self.split_at(units.end);
        }
        first..last + 1
    }

    /// The segment that begins at a unit, after a split if needed.
    fn split_at(&mut self, unit: usize) -> usize {
        let index = self.segments.partition_point(|segment| segment.end <= unit);
        if self.segments[index].start == unit {
            return index;
        }
        let mut upper = self.segments[index].clone();
        upper.start = unit;
        self.segments[index].end = unit;
        self.segments.insert(index + 1, upper);
        index + 1
    }
}
