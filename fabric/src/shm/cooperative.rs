//! A copy on which two processes work at the same time: its receiver from the front, and a helper, the
//! sender of the data, from the back. Each claims a part of what is left until all is claimed.
//!
//! Invariant: a part is claimed once. The receiver does not leave a round before the helper has written all
//! parts that it has claimed, or is dead; so no part of an earlier round is ever written. States: README.md
//! beside this file. Source: S. Chakraborty et al., "Cooperative Rendezvous Protocols for Improved
//! Performance and Overlap" (SC18), for the idea that both ends of a message copy.

use crate::sync::{AtomicU64, Ordering};
use std::ops::Range;

/// The units of the longest copy.
pub const UNITS_MAX: u32 = 0xffff;
/// Marks a round in which the helper could not write a part.
const REFUSED: u64 = 1 << 16;

/// The state of the copies to one PE, one after the other. All zero bytes are the start, before round 1.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SharedCopy {
    /// The round 32, and the units from which on and before which all is claimed: back 16, front 16.
    claims: AtomicU64,
    /// The round 32, a mark 16, and the unit from which on the helper has written all: 16.
    written: AtomicU64,
}

/// How far the helper is with what it has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Helped {
    /// It is writing.
    Writing,
    /// It has written all of it.
    Written,
    /// It could not write these units, and no others.
    Refused(Range<u32>),
}

/// The units that are not claimed.
fn left(claims: u64, round: u32) -> Option<Range<u32>> {
    let (front, back) = (claims as u16, (claims >> 16) as u16);
    let is_open = (claims >> 32) as u32 == round && front < back;
    is_open.then_some(front.into()..back.into())
}

fn word(round: u32, units: Range<u32>) -> u64 {
    u64::from(round) << 32 | u64::from(units.end) << 16 | u64::from(units.start)
}

/// The units that a claim takes of `left` ones: half of them, but at least `least` if there are as many.
fn part(left: u32, least: u32) -> u32 {
    left.div_ceil(2).max(least.min(left))
}

impl SharedCopy {
    /// The receiver begins a round with this number of units. The message that tells the helper of it must
    /// be released after this.
    ///
    /// # Panics
    /// If there are more than [`UNITS_MAX`] units.
    pub fn begin(&self, round: u32, units: u32) {
        assert!(units <= UNITS_MAX, "{units} units");
        self.claims.store(word(round, 0..units), Ordering::Relaxed);
    }

    /// The receiver claims a part, whose units it reads; `None` if all is claimed. A peer can have written
    /// any number, so the caller compares the part with the number of units.
    pub fn claim_front(&self, round: u32, least: u32) -> Option<Range<u32>> {
        self.claim(round, |left| {
            let middle = left.start + part(left.end - left.start, least);
            (left.start..middle, middle..left.end)
        })
    }

    /// The helper claims a part, whose units it writes; `None` if all is claimed, or the round is over.
    pub fn claim_back(&self, round: u32, least: u32) -> Option<Range<u32>> {
        self.claim(round, |left| {
            let middle = left.end - part(left.end - left.start, least);
            (middle..left.end, left.start..middle)
        })
    }

    /// Claims what `split` takes of the rest. The claims order nothing: the data of both ends are ordered by
    /// the message that starts the round, and by `written`.
    fn claim(
        &self,
        round: u32,
        split: impl Fn(Range<u32>) -> (Range<u32>, Range<u32>),
    ) -> Option<Range<u32>> {
        let mut claims = self.claims.load(Ordering::Relaxed);
        loop {
            let (taken, rest) = split(left(claims, round)?);
            let changed =
                self.claims.compare_exchange(claims, word(round, rest), Ordering::Relaxed, Ordering::Relaxed);
            match changed {
                Ok(_) => return Some(taken),
                Err(now) => claims = now,
            }
        }
    }

    /// The helper has written all units from `first` on; `is_refused`: it could not write those before them
    /// that it has claimed, and claims no more.
    pub fn note_written(&self, round: u32, first: u32, is_refused: bool) {
        let mark = if is_refused { REFUSED } else { 0 };
        // SYNC POINT shared-copy: releases the data that the helper has written.
        self.written.store(u64::from(round) << 32 | mark | u64::from(first), Ordering::Release);
    }

    /// How far the helper is, once all units are claimed. The helper writes no more unless it is `Writing`.
    pub fn helped(&self, round: u32, units: u32) -> Helped {
        let claimed = ((self.claims.load(Ordering::Relaxed) >> 16) as u16).into();
        if claimed >= units {
            return Helped::Written;
        }
        // SYNC POINT shared-copy: acquires the data that the helper has written.
        let written = self.written.load(Ordering::Acquire);
        let is_of_round = (written >> 32) as u32 == round;
        match (written as u16).into() {
            first if is_of_round && written & REFUSED != 0 => Helped::Refused(claimed..first),
            first if is_of_round && first == claimed => Helped::Written,
            _ => Helped::Writing,
        }
    }
}
