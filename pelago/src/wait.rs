//! How a PE waits: spin, then yield the core, then sleep at its doorbell.
//!
//! Invariant: every wait ends. Between yields and between sleeps the waiter looks whether what it waits for
//! can still come: a PE that failed, PEs that left the job, or a launcher that is gone turn the wait into a
//! panic that says who waited for what. Sleeps are bounded by 1 ms, so that even a plain put, which rings no
//! doorbell, is seen soon.

use crate::Pe;
use crate::world::World;
use pelago_boot::Settings;
use pelago_fabric::shm::segment::Block;
use pelago_fabric::sync::{Ordering, spin_once};
use std::time::{Duration, Instant};

/// The longest sleep between two looks.
const SLEEP_BOUND: Duration = Duration::from_millis(1);
/// Sleeps between two questions whether the launcher is still there.
const SLEEPS_PER_LAUNCHER_CHECK: u32 = 100;

/// How long to spin and to yield before sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    spins: u32,
    yields: u32,
    limit: Option<Duration>,
}

impl Patience {
    /// PEs that all have a core of their own spin; PEs that share cores soon give them up.
    pub(crate) fn new(n_pes: usize, cores: usize, settings: &Settings) -> Patience {
        let (spins, yields) = if n_pes <= cores { (2000, 100) } else { (50, 20) };
        Patience {
            spins: settings.spins.unwrap_or(spins),
            yields: settings.yields.unwrap_or(yields),
            limit: settings.wait_limit,
        }
    }
}

/// What a PE waits for, to be said if it cannot come.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaited {
    /// This PE, or all if `None`, in a barrier.
    Barrier { pe: Option<Pe>, round: u64 },
    /// A change of a word in symmetric memory.
    Element { index: usize },
    /// Everybody's joining.
    Join,
    /// Everybody's leave.
    Leave,
}

impl World {
    /// Waits until `ready` says yes. The spinning part is here, the rest out of line.
    #[inline]
    pub(crate) fn wait(&self, awaited: Awaited, mut ready: impl FnMut() -> bool) {
        for _ in 0..self.patience.spins {
            if ready() {
                return;
            }
            spin_once();
        }
        self.wait_long(awaited, &mut ready);
    }

    #[cold]
    #[inline(never)]
    fn wait_long(&self, awaited: Awaited, ready: &mut dyn FnMut() -> bool) {
        for _ in 0..self.patience.yields {
            if ready() {
                return;
            }
            rustix::thread::sched_yield();
        }
        let sleepers = &self.memory.header().sleepers;
        let doorbell = &self.memory.blocks()[self.my_pe()].doorbell;
        let since = Instant::now();
        let mut sleeps = 0u32;
        loop {
            if let Some(limit) = self.patience.limit
                && since.elapsed() > limit
            {
                let (me, what) = (self.my_pe(), self.name(awaited));
                panic!(
                    "PE {me}: has waited {limit:?} for {what}, which is the limit set by PELAGO_WAIT_LIMIT"
                );
            }
            sleeps = sleeps.wrapping_add(1);
            self.check_hope(awaited, sleeps.is_multiple_of(SLEEPS_PER_LAUNCHER_CHECK), ready);
            let announced = doorbell.announce(sleepers);
            let is_ready = ready();
            if !is_ready {
                doorbell.sleep(announced, SLEEP_BOUND);
            }
            doorbell.withdraw(sleepers);
            if is_ready || ready() {
                return;
            }
        }
    }

    /// Panics if what is awaited can no longer come.
    fn check_hope(&self, awaited: Awaited, ask_launcher: bool, ready: &mut dyn FnMut() -> bool) {
        let me = self.my_pe();
        if let Some((pe, reason)) = self.memory.header().failure.read() {
            self.give_up(format!(
                "PE {me}: gave up waiting for {}: PE {pe} failed: {reason}",
                self.name(awaited)
            ));
        }
        if ask_launcher && self.is_launcher_gone() {
            self.give_up(format!(
                "PE {me}: gave up waiting for {}: the launcher is gone",
                self.name(awaited)
            ));
        }
        // SYNC POINT left: acquires what the PE did before it left, so that the last look below sees it.
        let has_left = |pe: Pe| self.memory.blocks()[pe].left.load(Ordering::Acquire) != 0;
        let culprit = match awaited {
            Awaited::Join | Awaited::Leave => None,
            Awaited::Barrier { pe: Some(pe), .. } => has_left(pe).then_some(pe),
            Awaited::Barrier { pe: None, .. } => (0..self.n_pes()).find(|&pe| has_left(pe)),
            Awaited::Element { .. } => {
                let mut others = (0..self.n_pes()).filter(|&pe| pe != me);
                others.all(has_left).then_some(0).filter(|_| self.n_pes() > 1)
            }
        };
        // Who leaves may have done its part just before: only a last look tells.
        if let Some(pe) = culprit
            && !ready()
        {
            let who = match awaited {
                Awaited::Element { .. } => "every other PE".to_owned(),
                _ => format!("PE {pe}"),
            };
            panic!("PE {me}: waits for {}, but {who} has left the job", self.name(awaited));
        }
    }

    fn name(&self, awaited: Awaited) -> String {
        match awaited {
            Awaited::Barrier { pe: Some(pe), round } => format!("PE {pe} in barrier {round}"),
            Awaited::Barrier { pe: None, round } => format!("all PEs in barrier {round}"),
            Awaited::Element { index } => format!("a change of element {index} of a symmetric array"),
            Awaited::Join => "all PEs to join the job".to_owned(),
            Awaited::Leave => "all PEs to leave the job".to_owned(),
        }
    }

    /// Wakes every PE of the node that sleeps, after this PE has changed something it may wait for. One load
    /// when nobody sleeps.
    #[inline]
    pub(crate) fn ring_sleepers(&self) {
        if self.memory.header().sleepers.load(Ordering::Relaxed) != 0 {
            ring_all(self.memory.blocks());
        }
    }
}

#[cold]
fn ring_all(blocks: &[Block]) {
    for block in blocks {
        block.doorbell.ring();
    }
}
