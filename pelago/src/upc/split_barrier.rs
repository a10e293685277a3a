//! The split-phase barrier: a PE notifies the others of its arrival, does other work, and waits for the
//! others.
//!
//! Each phase is one all-reduce that notify starts: it computes the least and the greatest value that PEs
//! have given, and the PEs that gave them. When it is complete, all PEs have arrived. The two results differ
//! if any two values differ.
//!
//! Invariant: a PE's notifies and waits take turns; between them it makes no other collective call (barriers
//! of the world are detected, by the barrier's form). Operations that a PE has started before it notifies are
//! complete when any PE has waited. Every PE gets the same result, so all PEs detect a mismatch. Source: UPC
//! Language Specifications 1.3, section 6.6.1 (`upc_notify`, `upc_wait`, `upc_barrier`).

use crate::array::symmetric::Symmetric;
use crate::team::Team;
use crate::team::request::Request;
use crate::team::space::Space;
use crate::world::World;
use crate::{Collective, Element, Pe};
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::base::kind::ObjectKind;
use pelago_core::coll::symmetric_region::SymmetricRegion;
use pelago_fabric::sync::{Ordering, fence};
use std::cell::{Cell, RefCell};

/// A split-phase barrier: see [`World::split_barrier`]. One thread of a PE uses it.
pub struct SplitBarrier<'w> {
    team: Team<'w>,
    /// Whether its members are all PEs, so that the world's barrier is closed meanwhile.
    is_world: bool,
    /// Array 0 has this PE's claim, array 1 the result of all claims.
    claims: [Symmetric<'w, Claim>; 2],
    phase: Cell<u64>,
    /// Between notify and wait: the all-reduce.
    arriving: RefCell<Option<Request<'w>>>,
    /// The form of the world's barrier, while it is closed.
    form: Cell<Option<u32>>,
}

/// The least and the greatest value that some PEs have given; empty if none has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
struct Claim {
    is_any: u64,
    least: u64,
    least_pe: u64,
    greatest: u64,
    greatest_pe: u64,
}

// SAFETY: five numbers of one type, declared `repr(C)`: no padding, every bit pattern valid.
unsafe impl Element for Claim {}

impl Claim {
    fn of(pe: Pe, value: Option<u64>) -> Claim {
        let (is_any, value, pe) = (u64::from(value.is_some()), value.unwrap_or(0), pe as u64);
        Claim { is_any, least: value, least_pe: pe, greatest: value, greatest_pe: pe }
    }

    /// Combines two claims. If two PEs have the same value, the choice of the PE does not depend on the
    /// order.
    fn join(self, other: Claim) -> Claim {
        match (self.is_any, other.is_any) {
            (0, _) => other,
            (_, 0) => self,
            _ => {
                let (least, least_pe) = (self.least, self.least_pe).min((other.least, other.least_pe));
                // Among equal values the lowest PE is chosen.
                let key = |claim: Claim| (claim.greatest, !claim.greatest_pe);
                let (greatest, pe) = key(self).max(key(other));
                Claim { is_any: 1, least, least_pe, greatest, greatest_pe: !pe }
            }
        }
    }
}

impl World {
    /// Creates a split-phase barrier of all PEs. Collective over all PEs.
    ///
    /// ```
    /// # pelago::spmd(4, |world| -> pelago::Result<()> {
    /// let barrier = world.split_barrier()?;
    /// let inbox = world.alloc_zeroed::<u64>(1)?;
    /// for step in 1..=3 {
    ///     inbox.p((world.my_pe() + 1) % 4, 0, step)?;
    ///     barrier.notify()?;
    ///     // ... compute without other PEs ...
    ///     barrier.wait()?;
    ///     assert_eq!(inbox.local().get(0), step);
    ///     barrier.notify_with(step)?; // with a value, which must be the same at all PEs
    ///     barrier.wait_with(step)?;
    /// }
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If the heap has no space for its words.
    #[track_caller]
    pub fn split_barrier(&self) -> Result<SplitBarrier<'_>> {
        SplitBarrier::new(self, &self.core().region, || self.alloc_zeroed_as(ObjectKind::SplitBarrier, 1))
    }
}

impl Space<'_> {
    /// Creates a split-phase barrier of the members of the team. Collective over the team. It does not detect
    /// other collective calls between notify and wait.
    ///
    /// # Errors
    /// If the space has no memory left for its words.
    #[track_caller]
    pub fn split_barrier(&self) -> Result<SplitBarrier<'_>> {
        SplitBarrier::new(self.world(), self.region(), || self.alloc_zeroed_as(ObjectKind::SplitBarrier, 1))
    }
}

impl<'w> SplitBarrier<'w> {
    fn new(
        world: &'w World,
        region: &SymmetricRegion,
        alloc: impl Fn() -> Result<Symmetric<'w, Claim>>,
    ) -> Result<SplitBarrier<'w>> {
        Ok(SplitBarrier {
            team: super::team_of(world, region),
            is_world: region.is_world(),
            claims: [alloc()?, alloc()?],
            phase: Cell::new(0),
            arriving: RefCell::new(None),
            form: Cell::new(None),
        })
    }

    /// Completes all operations of this PE, notifies the other PEs of its arrival, and returns without
    /// waiting for them (UPC's `upc_notify`). The PE's next call on this barrier is a wait, and until then it
    /// makes no other collective call. Other PEs may depend on the progress of this one, which it makes only
    /// in calls of the runtime: a wait, a test, [`progress`](World::progress).
    ///
    /// # Errors
    /// If this PE has notified already.
    #[track_caller]
    pub fn notify(&self) -> Result<()> {
        self.notify_as("notify", None)
    }

    /// As [`notify`](Self::notify), with a value. All PEs that give a value must give the same (UPC's
    /// `upc_notify` with an expression).
    ///
    /// # Errors
    /// As [`notify`](Self::notify). If another PE gave another value, the wait returns the error.
    #[track_caller]
    pub fn notify_with(&self, value: u64) -> Result<()> {
        self.notify_as("notify_with", Some(value))
    }

    /// Waits until all PEs have notified. Operations that they had started before are complete then (UPC's
    /// `upc_wait`).
    ///
    /// # Errors
    /// If this PE has not notified, or two PEs gave different values. Every PE gets this error, and the phase
    /// is over.
    ///
    /// # Panics
    /// If a PE that has not notified has left the job or failed.
    #[track_caller]
    pub fn wait(&self) -> Result<()> {
        self.wait_as("wait", None)
    }

    /// As [`wait`](Self::wait), with a value, which must be equal to the value of every notify that gave one.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), and if a notify gave another value; the phase is over nevertheless.
    #[track_caller]
    pub fn wait_with(&self, value: u64) -> Result<()> {
        self.wait_as("wait_with", Some(value))
    }

    /// Makes progress, and returns whether all PEs have notified; if so, the phase is over, as after
    /// [`wait`](Self::wait) (Berkeley UPC's `bupc_try_wait`).
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[track_caller]
    pub fn try_wait(&self) -> Result<bool> {
        self.try_wait_as("try_wait", None)
    }

    /// As [`try_wait`](Self::try_wait), with a value, as in [`wait_with`](Self::wait_with).
    ///
    /// # Errors
    /// As [`wait_with`](Self::wait_with).
    #[track_caller]
    pub fn try_wait_with(&self, value: u64) -> Result<bool> {
        self.try_wait_as("try_wait_with", Some(value))
    }

    #[track_caller]
    fn notify_as(&self, operation: &'static str, value: Option<u64>) -> Result<()> {
        if self.arriving.borrow().is_some() {
            let reason = "this PE has notified already. Wait before the next notify";
            return Err(self.misuse(operation, reason));
        }
        let world = self.team.world();
        world.quiet();
        if self.is_world {
            let Some(form) = world.core().barrier.begin_split() else {
                let reason = "another split-phase barrier is between notify and wait, or this PE has failed";
                return Err(self.misuse(operation, reason));
            };
            self.form.set(Some(form));
        }
        self.phase.set(self.phase.get() + 1);
        let [mine, all] = &self.claims;
        mine.local().set(0, Claim::of(world.my_pe(), value));
        let started = self.team.nonblocking().all_reduce(Claim::join, all, mine);
        let request = started.inspect_err(|_| self.reopen())?;
        // SAFETY: the arrays belong to this barrier, which keeps them for as long as the request. The
        // operation itself keeps its arrays in use until it is complete, even if handles are dropped. The
        // world and the team's memory outlive 'w.
        let request = unsafe { std::mem::transmute::<Request<'_>, Request<'w>>(request) };
        self.arriving.replace(Some(request));
        Ok(())
    }

    #[track_caller]
    fn wait_as(&self, operation: &'static str, value: Option<u64>) -> Result<()> {
        let request = self.arriving.take().ok_or_else(|| self.not_notified(operation))?;
        request.wait();
        self.finish(value)
    }

    #[track_caller]
    fn try_wait_as(&self, operation: &'static str, value: Option<u64>) -> Result<bool> {
        let is_over = self.arriving.borrow().as_ref().map(Request::test);
        if !is_over.ok_or_else(|| self.not_notified(operation))? {
            return Ok(false);
        }
        self.arriving.take();
        self.finish(value).map(|()| true)
    }

    /// Ends a phase in which all PEs have notified, and compares their values.
    #[track_caller]
    fn finish(&self, value: Option<u64>) -> Result<()> {
        // SYNC POINT put-order: acquires the operations that the others completed before they notified.
        fence(Ordering::SeqCst);
        self.reopen();
        let (me, phase) = (self.team.world().my_pe(), self.phase.get());
        let mismatch = |pe: u64, value: u64, other_pe: u64, other_value: u64| {
            let (pe, other_pe) = (pe as Pe, other_pe as Pe);
            Err(ErrorKind::PhaseMismatch { me, phase, pe, value, other_pe, other_value }.into())
        };
        let claim = self.claims[1].local().get(0);
        if claim.is_any != 0 && claim.least != claim.greatest {
            return mismatch(claim.least_pe, claim.least, claim.greatest_pe, claim.greatest);
        }
        match value {
            Some(value) if claim.is_any != 0 && claim.least != value => {
                mismatch(claim.least_pe, claim.least, me as u64, value)
            }
            _ => Ok(()),
        }
    }

    fn reopen(&self) {
        if let Some(form) = self.form.take() {
            self.team.world().core().barrier.end_split(form);
        }
    }

    fn not_notified(&self, operation: &'static str) -> crate::Error {
        self.misuse(operation, "this PE has not notified. Notify first, and wait once for each notify")
    }

    fn misuse(&self, operation: &'static str, reason: &str) -> crate::Error {
        let (me, phase) = (self.team.world().my_pe(), self.phase.get());
        ErrorKind::BadPhase { me, operation, phase, reason: reason.to_owned() }.into()
    }
}

impl Drop for SplitBarrier<'_> {
    fn drop(&mut self) {
        self.reopen();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_join_in_any_order() {
        let claims =
            [(0, None), (1, Some(5)), (2, Some(5)), (3, Some(3)), (4, None), (5, Some(5)), (6, Some(3))];
        let claims = claims.map(|(pe, value)| Claim::of(pe, value));
        let forward = claims.into_iter().reduce(Claim::join).unwrap();
        let backward = claims.into_iter().rev().reduce(Claim::join).unwrap();
        let halves = claims[..4].iter().copied().reduce(Claim::join).unwrap();
        let halves = claims[4..].iter().copied().fold(halves, Claim::join);
        let expected = Claim { is_any: 1, least: 3, least_pe: 3, greatest: 5, greatest_pe: 1 };
        assert_eq!([forward, backward, halves], [expected; 3]);
        assert_eq!(Claim::of(1, None).join(Claim::of(2, None)).is_any, 0);
    }
}
