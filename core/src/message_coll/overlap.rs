//! Whether an algorithm can have a source that overlaps its target.
//!
//! Invariant: a plan is found safe only if every byte of the source is read for the last time before the plan
//! writes that byte of the target. A send reads until the next wait for all sends; a receive writes from its
//! start on.

use super::plan::{Receive, Work};
use crate::coll::schedule::{Buffer, Place, Step};

/// Bytes that a step reads or writes: their first and their end as offsets from the target, and the step
/// after which they may be accessed no more (reads), or before which they are not (writes).
#[derive(Clone, Copy, Debug)]
struct Access {
    first: isize,
    end: isize,
    step: usize,
}

/// Whether a source `distance` bytes behind the target must be copied first.
pub(super) fn source_must_be_copied(work: &[Work], receives: &[Receive], distance: isize) -> bool {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for (step, each) in work.iter().enumerate() {
        let mut read = |place: Place, bytes: usize, step: usize| {
            if place.buffer == Buffer::Source {
                let first = place.offset as isize + distance;
                reads.push(Access { first, end: first + bytes as isize, step });
            }
        };
        let mut write = |place: Place, bytes: usize| {
            if place.buffer == Buffer::Target {
                let first = place.offset as isize;
                writes.push(Access { first, end: first + bytes as isize, step });
            }
        };
        match *each {
            Work::Post(number) => write(receives[number].into, receives[number].bytes),
            Work::Send { from, bytes, .. } => {
                let later = work[step..].iter().position(|work| matches!(work, Work::Complete));
                read(from, bytes, later.map_or(usize::MAX, |later| step + later));
            }
            Work::Local(Step::Copy { from, into, bytes }) => {
                let is_same = from.buffer == Buffer::Source
                    && into.buffer == Buffer::Target
                    && from.offset as isize + distance == into.offset as isize;
                if !is_same {
                    read(from, bytes, step);
                    write(into, bytes);
                }
            }
            Work::Local(Step::CopyStrided { from, from_stride, into, into_stride, block, count }) => {
                let span = |stride: usize| if count == 0 { 0 } else { (count - 1) * stride + block };
                read(from, span(from_stride), step);
                write(into, span(into_stride));
            }
            Work::Local(Step::Reduce { left, right, into, bytes }) => {
                for operand in [left, right] {
                    // An element is read before its result is written to the same place.
                    let is_same = into.buffer == Buffer::Target
                        && operand.offset as isize + distance == into.offset as isize;
                    match (is_same, step) {
                        (true, 0) => {}
                        (true, _) => read(operand, bytes, step - 1),
                        (false, _) => read(operand, bytes, step),
                    }
                }
                write(into, bytes);
            }
            _ => {}
        }
    }
    let meet = |read: &Access, write: &Access| {
        read.first < write.end && write.first < read.end && read.step >= write.step
    };
    reads.iter().any(|read| writes.iter().any(|write| meet(read, write)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(offset: usize) -> Place {
        Place { buffer: Buffer::Scratch, offset }
    }

    fn combine(left: Place, right: Place, into: Place) -> Work {
        Work::Local(Step::Reduce { left, right, into, bytes: 8 })
    }

    #[test]
    fn a_sum_over_its_own_operand_needs_no_copy() {
        let plan = [combine(Place::source(0), scratch(0), Place::target(0))];
        assert!(!source_must_be_copied(&plan, &[], 0));
        assert!(source_must_be_copied(&plan, &[], 4), "elements that are shifted");
        assert!(!source_must_be_copied(&plan, &[], 8));
    }

    #[test]
    fn a_source_that_is_read_after_the_target_is_written_is_copied() {
        let plan = [
            combine(Place::source(0), scratch(0), Place::target(0)),
            combine(scratch(0), Place::source(0), scratch(8)),
        ];
        assert!(source_must_be_copied(&plan, &[], 0));
        let copy = [Work::Local(Step::Copy { from: Place::source(0), into: Place::target(8), bytes: 8 })];
        assert!(!source_must_be_copied(&copy, &[], 8), "the copy does nothing");
        assert!(source_must_be_copied(&copy, &[], 4));
    }

    #[test]
    fn a_send_reads_until_all_have_left() {
        let send = Work::Send { to: 1, slot: 0, from: Place::source(0), bytes: 8 };
        let write = || combine(scratch(0), scratch(8), Place::target(0));
        assert!(source_must_be_copied(&[send.clone(), write()], &[], 0));
        assert!(!source_must_be_copied(&[send.clone(), Work::Complete, write()], &[], 0));
        let receive = Receive { from: 1, slot: 0, into: Place::target(0), bytes: 8 };
        assert!(source_must_be_copied(&[Work::Post(0), send, Work::Complete], &[receive], 0));
    }
}
