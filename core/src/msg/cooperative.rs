//! Long messages that both ends copy. The receiver reads the data from the front, by system calls, and asks
//! the sender for help. A sender that makes progress, as it does while it waits, writes parts from the back
//! into the receiver's buffer. A sender that computes does not help, and the receiver reads all. If a sender
//! that helps loses its core to another process, the receiver reads alone for a while.
//!
//! Invariant: `read_process` returns when the sender writes no more, so that a buffer is accessed only
//! before its receive is complete.

use super::process;
use super::request::{Phase, Request, RequestId};
use super::state::{Answer, Exchange};
use crate::Pe;
use crate::coll::teams::Teams;
use pelago_fabric::shm::cooperative::{Helped, SharedCopy, UNITS_MAX};
use pelago_fabric::sync::spin_or_yield;
use std::ops::Range;
use std::time::Instant;

/// Bytes of a unit, unless a message has too many of them.
const UNIT_BYTES: usize = 4096;
/// The least length of a part, of short and of long messages: each part is a system call.
const PART_BYTES_MIN: [usize; 2] = [16 << 10, 32 << 10];
/// The number of looks for the end of the helper's last part between two looks at its process.
const LOOKS: u32 = 4096;

/// The division of a message's data into units.
#[derive(Clone, Copy)]
struct Units {
    bytes: usize,
    unit_bytes: usize,
}

impl Units {
    fn of(bytes: usize) -> Units {
        Units { bytes, unit_bytes: bytes.div_ceil(UNITS_MAX as usize).next_multiple_of(UNIT_BYTES) }
    }

    fn count(self) -> u32 {
        self.bytes.div_ceil(self.unit_bytes) as u32
    }

    /// The least number of units of a part.
    fn least(self) -> u32 {
        let [short, long] = PART_BYTES_MIN;
        ((self.bytes / 2).clamp(short, long) / self.unit_bytes).max(1) as u32
    }

    /// The place and the length of a part in bytes. `None` if there are no such units.
    fn range(self, part: Range<u32>) -> Option<(usize, usize)> {
        let is_part = part.start < part.end && part.end <= self.count();
        let start = part.start as usize * self.unit_bytes;
        is_part.then(|| (start, (part.end as usize * self.unit_bytes).min(self.bytes) - start))
    }
}

impl Exchange {
    /// Reads the data of a send from the memory of its process, with the sender's help if it gives some.
    /// Returns whether all could be read.
    ///
    /// # Safety
    /// `target` is valid for writes of `bytes` bytes.
    pub(super) unsafe fn read_process(
        &mut self,
        (from, send): (Pe, u64),
        (pid, address): (u32, u64),
        (target, bytes): (*mut u8, usize),
    ) -> bool {
        // SAFETY: the caller guarantees the range, in which a part lies.
        let read = |(start, length): (usize, usize)| unsafe {
            process::read(pid, address.wrapping_add(start as u64), target.add(start), length)
        };
        let Some((copy, round)) = self.ask_for_help(from, send, (target, bytes)) else {
            return read((0, bytes));
        };
        let (units, mut is_read) = (Units::of(bytes), true);
        while let Some(part) = copy.claim_front(round, units.least()) {
            is_read &= units.range(part).is_some_and(read);
        }
        let (mut turns, mut since) = (0, None::<Instant>);
        loop {
            match copy.helped(round, units.count()) {
                Helped::Written => {
                    if let Some(since) = since {
                        self.cma.note_wait_for_help(bytes, since.elapsed());
                    }
                    return is_read;
                }
                Helped::Refused(part) => {
                    self.peers[from].is_writable = false;
                    return is_read && units.range(part).is_some_and(read);
                }
                Helped::Writing => {
                    since.get_or_insert_with(Instant::now);
                    spin_or_yield(&mut turns);
                }
            }
            if turns.is_multiple_of(LOOKS) && !process::exists(pid, address) {
                return false;
            }
        }
    }

    /// Whether the last long send that this PE has announced is not complete.
    pub(super) fn has_announced(&mut self) -> bool {
        let own = self.announced.and_then(|id| self.requests.find(id));
        own.is_some_and(|own| own.phase == Phase::Sent)
    }

    /// Begins a copy that the sender may share, and tells it so: the copy's state, and its number. `None` if
    /// this PE is to read all.
    fn ask_for_help(
        &mut self,
        from: Pe,
        send: u64,
        (target, bytes): (*mut u8, usize),
    ) -> Option<(&'static SharedCopy, u32)> {
        let copy = self.own_copy.filter(|_| self.cma.wants_help(bytes))?;
        // In an exchange the other PE reads as well, and has no time.
        if self.has_announced() {
            return None;
        }
        let peer = &mut self.peers[from];
        let can_ask = peer.is_writable && peer.answers.is_empty();
        let out = peer.out.as_mut().filter(|_| can_ask)?;
        process::permit_access();
        self.copies = self.copies.wrapping_add(1).max(1);
        copy.begin(self.copies, Units::of(bytes).count());
        if !out.send_answer(&Answer::share(send, (target, bytes), self.copies)) {
            return None;
        }
        // A sender that misses it does not help. The answer at the end wakes it.
        out.hint();
        Some((copy, self.copies))
    }

    /// Writes parts of a send's data to the buffer of its receiver, which has asked for help. `None` if no PE
    /// can have asked for that.
    pub(super) fn help(
        &mut self,
        world: &Teams,
        (from, id): (Pe, RequestId),
        [bytes, address, round]: [u64; 3],
    ) -> Option<()> {
        let can_help =
            |send: &&mut Request| send.phase == Phase::Sent && send.pe == from && send.packing.is_none();
        let send = self.requests.find(id).filter(can_help)?;
        let units = Units::of(usize::try_from(bytes).ok().filter(|&bytes| bytes <= send.room)?);
        let (source, round) = (send.buffer.cast_const(), u32::try_from(round).ok()?);
        let copy = self.peers[from].out.as_ref()?.copy;
        // PEs of one process copy without system calls.
        let pid = world.pid_of(from).filter(|&pid| pid != std::process::id())?;
        while let Some(part) = copy.claim_back(round, units.least()) {
            let (first, end) = (part.start, part.end);
            // SAFETY: the caller of the send keeps its data valid until it is complete, and the part lies in
            // them. The system checks the receiver's address.
            let is_written = units.range(part).is_some_and(|(start, length)| unsafe {
                process::write(pid, address.wrapping_add(start as u64), source.add(start), length)
            });
            copy.note_written(round, if is_written { first } else { end }, !is_written);
            if !is_written {
                break;
            }
            self.helped_parts += 1;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_message_has_units() {
        for bytes in [1, UNIT_BYTES, 24 << 10, 1 << 30, isize::MAX as usize] {
            let units = Units::of(bytes);
            assert!(units.count() <= UNITS_MAX && units.least() >= 1, "{bytes}");
            assert_eq!(units.range(0..units.count()), Some((0, bytes)));
        }
        let units = Units::of(10_000);
        assert_eq!((units.count(), units.range(2..3)), (3, Some((8192, 1808))));
        assert_eq!([units.range(3..3), units.range(2..4)], [None, None]);
    }

    proptest! {
        #[test]
        fn parts_of_both_ends_make_up_the_message(bytes in 1..1_usize << 22, sides: [bool; 32]) {
            let (copy, units) = (SharedCopy::default(), Units::of(bytes));
            copy.begin(7, units.count());
            let mut parts = Vec::new();
            let mut sides = sides.into_iter().cycle();
            while let Some(part) = match sides.next() {
                Some(true) => copy.claim_back(7, units.least()),
                _ => copy.claim_front(7, units.least()),
            } {
                parts.push(units.range(part).unwrap());
            }
            parts.sort();
            let end = parts.iter().fold(0, |end, &(start, length)| {
                assert_eq!(start, end);
                end + length
            });
            prop_assert_eq!(end, bytes);
            prop_assert!(parts.len() <= 2 * 12 && copy.claim_back(8, 1).is_none(), "{} parts", parts.len());
        }
    }
}
