//! The bounds of sleeps, and how tests do without them.
//!
//! A waiting thread sleeps until it is woken, but no longer than a bound. A wake-up that is lost then costs
//! time: the job is slow, and no test fails. So tests set `PELAGO_TEST_SLEEPS`, and sleeps are *strict*. A
//! strict sleep lasts until its wake-up, and the sleeper does nothing for others meanwhile. After
//! [`PATIENCE`] it examines whether it has slept over an event, and fails if so.
//!
//! Invariant: a bound that is only a safety net has no effect on a strict sleep. These waits need theirs, and
//! keep it:
//! * the checks whether an event can still occur. The system kills a PE, and a launcher exits, without a
//!   wake-up for those who wait. A strict sleeper makes these checks as often as any other. Checks of PEs of
//!   other nodes cause traffic, which wakes sleepers, and so begin after the examination
//!   ([`before_asking`]);
//! * waits for a change of a word, which a plain put may make: it rings no doorbell;
//! * a PE that blocks at the provider's descriptor ([`BLOCK_BOUND`]);
//! * a PE of which several threads sleep, because one of them may withdraw the others' announcement;
//! * a wait for any member of a team, whose condition also checks whether a member has left;
//! * pauses between two looks, which no wake-up ends: the naps of the service thread, the rounds of a message
//!   barrier, the retries of connections.

use super::engine::Engine;
use super::liveness::Care;
use super::service::Control;
use crate::base::awaited::Awaited;
use crate::endpoint::Counted;
use pelago_fabric::shm::doorbell::{Announcement, Doorbell};
use pelago_fabric::sync::Ordering;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The longest sleep of a PE at its doorbell between two checks of its condition. A plain put rings no
/// doorbell, so this is the worst delay until a sleeper sees one.
pub(super) const SLEEP_BOUND: Duration = Duration::from_millis(1);
/// The longest time for which a PE blocks at the provider's descriptor. It stays in strict sleeps: another
/// thread of the PE may take what has arrived, or change the awaited word, and wakes only sleepers at the
/// doorbell.
pub(super) const BLOCK_BOUND: Duration = Duration::from_millis(1);
/// The longest sleep of the service thread between two rounds.
const SERVICE_BOUND: Duration = Duration::from_secs(1);
/// The time after which a strict sleeper examines its sleep. It is longer than any delay between an event
/// and its wake-up, even if many processes share a core.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time that a PE waits before it checks a PE of another node for the first time, and between two checks.
pub(super) fn before_asking(is_strict: bool) -> Duration {
    if is_strict { 2 * PATIENCE } else { Duration::from_secs(1) }
}

impl Engine {
    /// Counts this thread among those of the PE that sleep, or are about to, until the result is dropped. A
    /// strict sleeper that is not alone keeps its bound: see [`Doorbell::withdraw`].
    pub(super) fn sleeper(&self) -> Option<Counted<'_>> {
        self.policy.is_strict.then(|| Counted::new(&self.strict_sleepers))
    }

    /// Sleeps at the doorbell until it rings, or no longer than the bound. The caller has announced the
    /// sleep, and checks its condition afterwards.
    #[track_caller]
    pub(super) fn sleep_at<'a>(
        &'a self,
        doorbell: &Doorbell,
        announcement: Announcement,
        awaited: Awaited,
        (care, ready): (&mut Care<'a>, &mut dyn FnMut() -> bool),
    ) {
        let needs_bound = matches!(awaited, Awaited::Collective { pe: None, .. } | Awaited::Element { .. });
        match self.policy.is_strict && !needs_bound {
            false => doorbell.sleep(announcement, SLEEP_BOUND),
            true => self.sleep_strictly(doorbell, announcement, awaited, (care, ready)),
        }
    }

    #[cold]
    #[track_caller]
    fn sleep_strictly<'a>(
        &'a self,
        doorbell: &Doorbell,
        announcement: Announcement,
        awaited: Awaited,
        (care, ready): (&mut Care<'a>, &mut dyn FnMut() -> bool),
    ) {
        let (since, mut is_examined) = (Instant::now(), false);
        let activity = || self.net.as_ref().map(|net| net.activity());
        for checks in 1u32.. {
            doorbell.sleep(announcement, SLEEP_BOUND);
            let is_alone = self.strict_sleepers.load(Ordering::Relaxed) == 1;
            if !is_alone || !doorbell.is_awaited(announcement) {
                return;
            }
            let before = activity();
            care.look(self, awaited, checks, ready);
            if let Some(net) = &self.net {
                self.watch.look(self, net, awaited, care.since());
            }
            if activity() != before {
                // The checks have made progress, and have perhaps taken the event from the thread that rings.
                return;
            }
            if !is_examined && since.elapsed() > PATIENCE {
                is_examined = true;
                self.examine_sleep(awaited, ready);
            }
        }
    }

    /// Fails if this PE sleeps although its event has come, or although it has received something.
    #[cold]
    #[track_caller]
    fn examine_sleep(&self, awaited: Awaited, ready: &mut dyn FnMut() -> bool) {
        let activity = || (self.net.as_ref().map(|net| net.activity()), self.activity());
        let before = activity();
        self.progress();
        let has_come = match (activity() != before, ready()) {
            (_, true) => "which has come",
            (true, false) => "and over work that it had to do",
            (false, false) => return,
        };
        let (me, what) = (self.my_pe(), self.describe(awaited));
        self.fail(&format!("PE {me}: lost wake-up: has slept for {PATIENCE:?} over {what}, {has_come}"));
    }
}

impl Control {
    /// The sleep of the service thread while it watches the network: until a call, or until the provider's
    /// descriptor is readable.
    pub(super) fn sleep_on_guard(&self, descriptor: BorrowedFd<'_>) {
        if !self.is_strict {
            self.sleep(Some(descriptor), SERVICE_BOUND);
            return;
        }
        while !self.sleep(Some(descriptor), PATIENCE) {
            // The call follows the store at once, so the second sleep tells whether it was lost.
            if self.is_over() && !self.sleep(Some(descriptor), PATIENCE) {
                panic!(
                    "lost wake-up: the service thread has slept for {PATIENCE:?} over the call that ends it"
                );
            }
        }
    }
}
