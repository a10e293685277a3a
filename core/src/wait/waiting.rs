//! How a PE waits: spin, then yield the core, then sleep at its doorbell.
//!
//! Invariant: no wait continues if its condition can no longer become true. Between two sleeps the waiting
//! thread checks this: a PE that has failed, PEs that have left the job, or a launcher that has exited end
//! the wait with a message that names the waiting PE and its condition, and so do `PELAGO_WAIT_LIMIT`, if it
//! is set, and `PELAGO_INIT_TIMEOUT` while the job forms. Sleeps are bounded by 1 ms, so that even a plain
//! put, which rings no doorbell, is seen soon. With a network a waiting PE makes progress, and rests as the
//! provider permits. It sleeps only while none of its operations is outstanding and its service thread
//! watches the network: that thread processes arrivals and wakes the PE.

use super::ends::Ends;
use super::engine::Engine;
use super::liveness::{Care, LOOKS_PER_LAUNCHER_CHECK};
use super::policy::{Rests, Sharing, Traffic};
use super::service::Guard;
use super::sleeps::{BLOCK_BOUND, SLEEP_BOUND};
use crate::Pe;
use crate::base::awaited::Awaited;
use crate::base::trace::Span;
use crate::endpoint::Endpoint;
use crate::job::affinity::Core;
use crate::job::callback;
use pelago_fabric::shm::doorbell::{Announcement, Cause, Doorbell, Sleepers};
use pelago_fabric::sync::{AtomicU32, spin_once};
use std::time::Instant;

/// The number of polls between two checks whether a member of a team has left.
const LOOKS_PER_MEMBERS_CHECK: u32 = 256;
/// The number of polls of the network between two checks whether the condition can still become true.
const LOOKS_PER_CHECK: u32 = 16;
/// One in this many of those checks covers the PEs of other nodes.
const CHECKS_PER_WATCH: u32 = 4;
/// The number of polls between two yields of a PE that has its core for itself.
const LOOKS_PER_YIELD: u32 = 1024;
/// The most rounds of progress between two checks of a condition whose change wakes nobody.
const ROUNDS_BETWEEN_POLLS: u32 = 256;
/// The number of yields before a PE sleeps, on a shared core, in a wait for a PE of its node.
const YIELDS_BEFORE_SLEEP: u32 = 4;

impl Engine {
    /// Waits until `ready` returns true. The spinning part is here, the rest is out of line.
    #[inline]
    #[track_caller]
    pub fn wait(&self, awaited: Awaited, ready: impl FnMut() -> bool) {
        self.wait_with(awaited, None, ready);
    }

    /// As `wait`, for a change of this PE's part of an array, whose header counts the sleepers in `waiters`.
    #[inline]
    #[track_caller]
    pub fn wait_with(&self, awaited: Awaited, waiters: Option<&AtomicU32>, mut ready: impl FnMut() -> bool) {
        // Over a network the progress of a wait drives the operations under way.
        match self.net.is_none() && self.is_busy() {
            true => self.wait_driving(awaited, waiters, &mut ready),
            false => self.wait_patiently(awaited, waiters, &mut ready),
        }
    }

    /// As `wait`, for a condition whose change wakes nobody, and whose check may be an operation over the
    /// network: between two checks there are rounds of progress, more and more of them.
    #[track_caller]
    pub fn wait_by_polls(&self, awaited: Awaited, mut ready: impl FnMut() -> bool) {
        let (mut rounds, mut care) = (1, Care::default());
        for looks in 1u32.. {
            if ready() {
                return;
            }
            for _ in 0..rounds {
                self.progress();
                spin_once();
            }
            if rounds == ROUNDS_BETWEEN_POLLS {
                care.look(self, awaited, looks, &mut ready);
            }
            rounds = ROUNDS_BETWEEN_POLLS.min(2 * rounds);
            rustix::thread::sched_yield();
        }
    }

    /// As `wait`, for a condition that only members of a team can make true: `needed` is called from time to
    /// time and returns a PE that the condition depends on and that may have left the job.
    #[track_caller]
    pub fn wait_for_members(
        &self,
        awaited: Awaited,
        mut ready: impl FnMut() -> bool,
        needed: impl Fn() -> Option<Pe>,
    ) {
        let (mut looks, mut culprit) = (0u32, None);
        self.wait(awaited, || {
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_PER_MEMBERS_CHECK) {
                culprit = needed().filter(|&pe| self.has_left(pe));
                // The effects of its operations before it left are visible now, so a last check decides.
                // While another thread advances the operations, this one cannot check, and tries again later.
                if culprit.is_some() {
                    self.take_arrivals();
                    let has_looked = self.upper.get().is_none_or(|upper| upper.advance_operations());
                    if ready() {
                        culprit = None;
                        return true;
                    }
                    culprit = culprit.filter(|&pe| has_looked && needed() == Some(pe));
                }
            }
            ready() || culprit.is_some()
        });
        if let Some(pe) = culprit.filter(|_| !ready()) {
            self.wait_in_vain(&self.describe(awaited), Some(pe));
        }
    }

    /// Spins for as long as that pays, and then waits in the way that the routes require.
    #[inline(always)]
    #[track_caller]
    fn wait_patiently(
        &self,
        awaited: Awaited,
        waiters: Option<&AtomicU32>,
        ready: &mut impl FnMut() -> bool,
    ) {
        for _ in 0..self.spins_for(awaited) {
            if ready() {
                return;
            }
            spin_once();
        }
        match &self.net {
            None => self.wait_long(awaited, waiters, ready),
            Some(net) => self.wait_net(net, awaited, waiters, ready),
        }
    }

    /// The number of polls before the first round of progress. Without a round nothing comes from a PE of
    /// another node.
    #[inline(always)]
    fn spins_for(&self, awaited: Awaited) -> u32 {
        match self.net.is_some() && self.is_near(awaited) == Some(false) {
            true => 0,
            false => self.policy.spins,
        }
    }

    /// The number of polls by which a caller of [`wait`](Engine::wait) saves itself the call: none if waits
    /// make progress over a network, as they decide how often.
    #[inline]
    pub fn spins_before_wait(&self) -> u32 {
        if self.net.is_some() { 0 } else { self.policy.spins }
    }

    /// Whether the PE that makes a condition true can write to the memory of this one itself; `None` if it is
    /// not known which PE does.
    #[inline]
    fn is_near(&self, awaited: Awaited) -> Option<bool> {
        match (awaited, awaited.pe()) {
            // Operations between mapped PEs are complete at once.
            (Awaited::Quiet, _) => Some(false),
            (_, pe) => pe.map(|pe| pe < self.n_pes() && self.memory.is_mapped(pe)),
        }
    }

    /// Waits and advances collective operations meanwhile, because other PEs may depend on this one in them.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn wait_driving(&self, awaited: Awaited, waiters: Option<&AtomicU32>, ready: &mut dyn FnMut() -> bool) {
        self.wait_patiently(awaited, waiters, &mut || {
            ready() || {
                self.drive_all();
                ready()
            }
        });
    }

    /// The record of a wait. A progress thread does not wait: it makes progress until its work ends.
    fn record_wait(&self, awaited: Awaited) -> Option<Span<'_>> {
        let is_wait = !matches!(awaited, Awaited::EndOfWork);
        is_wait.then(|| self.tally.span(|| awaited.event())).flatten()
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn wait_long(&self, awaited: Awaited, waiters: Option<&AtomicU32>, ready: &mut dyn FnMut() -> bool) {
        self.check_callback(awaited);
        let _span = self.record_wait(awaited);
        for _ in 0..self.policy.recorded_spins {
            if ready() {
                return;
            }
            spin_once();
        }
        let (since, mut sharing) = (Instant::now(), Sharing::default());
        for yields in 0u32.. {
            // The first yields follow each other: a PE that shares its core without knowing lets others run.
            let looks = if yields < self.policy.yields { 1 } else { LOOKS_PER_YIELD };
            if has_come_soon(looks, spin_once, ready) {
                return;
            }
            if yields >= self.policy.yields && since.elapsed() >= sharing.awake(&self.policy) {
                break;
            }
            let start = Instant::now();
            rustix::thread::sched_yield();
            if sharing.note(start.elapsed()) {
                self.affinity.leave_shared_core(self);
            }
        }
        let mut care = Care::default();
        for sleeps in 1u32.. {
            care.look(self, awaited, sleeps, ready);
            if self.is_busy() {
                // Another thread of this PE may have started operations since.
                self.drive_all();
            }
            if self.sleep_once(awaited, waiters, (&mut care, ready)) {
                return;
            }
        }
    }

    /// Sleeps at the doorbell until it rings or the bound has passed, unless the condition is true. Returns
    /// whether it is true now.
    #[track_caller]
    fn sleep_once<'a>(
        &'a self,
        awaited: Awaited,
        waiters: Option<&AtomicU32>,
        (care, ready): (&mut Care<'a>, &mut dyn FnMut() -> bool),
    ) -> bool {
        let (sleepers, doorbell) =
            (&self.memory.header().sleepers, &self.memory.near_block(self.my_pe()).doorbell);
        let _sleeper = self.sleeper();
        let announced = Announced::new(doorbell, sleepers, waiters, awaited.cause());
        // Messages for other operations that came before this announcement have rung nobody.
        let ready = &mut || {
            ready() || {
                let is_busy = self.is_busy();
                if is_busy {
                    self.drive_all();
                }
                is_busy && ready()
            }
        };
        let is_ready = has_come_soon(Doorbell::LAST_LOOKS, spin_once, ready);
        if !is_ready {
            self.sleep_at(doorbell, announced.announcement, awaited, (care, ready));
        }
        drop(announced);
        is_ready || ready()
    }

    /// Waits by making progress: the condition may depend on the network, and other PEs may wait for this one
    /// to serve them.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn wait_net(
        &self,
        net: &Endpoint,
        awaited: Awaited,
        waiters: Option<&AtomicU32>,
        ready: &mut dyn FnMut() -> bool,
    ) {
        self.check_callback(awaited);
        let _span = self.record_wait(awaited);
        let (mut looks, mut care, mut is_fresh) = (0u32, Care::default(), true);
        // The calls of a simulated network must not depend on time.
        let core = if net.moves_by_itself() { self.affinity.core() } else { Core::Own };
        let (spins, mut between) = match (core, self.is_near(awaited)) {
            (Core::Own, Some(true)) => (self.policy.net_spins, self.policy.spins_between[0]),
            (Core::Own, Some(false)) => (self.policy.net_spins, 0),
            (Core::Own, None) => (self.policy.net_spins, self.policy.spins_between[1]),
            (Core::Shared, Some(true)) => {
                // The awaited PE may need this core, and will ring the doorbell.
                if has_come_soon(YIELDS_BEFORE_SLEEP, rustix::thread::sched_yield, ready) {
                    return;
                }
                care.look(self, awaited, 1, ready);
                if self.sleep_guarded(net, awaited, waiters, (&mut care, ready), Guard::MayNap) {
                    return;
                }
                (1, 0)
            }
            (Core::Shared | Core::Doubtful, _) => (1, 0),
        };
        let mut waiting = net.waiting();
        // On a core of its own a PE looks so often that it can read the clock later.
        let (mut rests, mut traffic) = (Rests::after(spins), Traffic::of(net, !matches!(core, Core::Own)));
        loop {
            if std::mem::take(&mut is_fresh) && ready() {
                return;
            }
            self.progress();
            if ready() {
                return;
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_PER_CHECK) {
                let checks = looks / LOOKS_PER_CHECK;
                care.look(self, awaited, checks, ready);
                if checks.is_multiple_of(CHECKS_PER_WATCH) {
                    self.watch.look(self, net, awaited, care.since());
                }
                if net.moves_by_itself() && traffic.pause(net) > rests.awake(&self.policy) {
                    drop(waiting);
                    if self.sleep_guarded(net, awaited, waiters, (&mut care, ready), Guard::Watches) {
                        return;
                    }
                    waiting = net.waiting();
                }
            }
            if net.moves_by_itself() && looks < rests.next {
                if has_come_soon(between, spin_once, ready) {
                    return;
                }
                continue;
            }
            if self.rest(net, &mut rests, looks) {
                between = 0;
            }
            is_fresh = true;
        }
    }

    /// Lets other threads have the core. Returns whether another thread has used it after a yield. A yield
    /// plans the next rest; a PE that blocks instead does so again at the next poll.
    fn rest(&self, net: &Endpoint, rests: &mut Rests, looks: u32) -> bool {
        // A yield would give the core to another process for a time slice. A thread that blocks is moved to
        // an idle core, or gets this one back, when a message arrives.
        if self.affinity.blocks(self.joined_at) {
            net.block(BLOCK_BOUND);
            return false;
        }
        let start = Instant::now();
        net.rest(SLEEP_BOUND);
        let took = start.elapsed();
        if net.moves_by_itself() && self.memory.blocks().len() == 1 {
            self.affinity.note_yield(self.joined_at, took);
        }
        let is_shared = rests.rested(looks, took);
        self.affinity.note_shared(is_shared);
        if is_shared {
            self.affinity.leave_shared_core(self);
        }
        is_shared
    }

    /// Sleeps while no message arrives, no operation is outstanding and a service thread watches the network.
    /// Returns whether the condition has become true.
    #[track_caller]
    fn sleep_guarded<'a>(
        &'a self,
        net: &Endpoint,
        awaited: Awaited,
        waiters: Option<&AtomicU32>,
        (care, ready): (&mut Care<'a>, &mut dyn FnMut() -> bool),
        guard: Guard,
    ) -> bool {
        let (mut sleeps, activity, _relying) = (0u32, net.activity(), self.service.rely());
        while self.may_sleep(net, activity) && self.service.is_guarded(net, guard) {
            if self.is_busy() {
                self.drive_all();
            }
            if self.sleep_once(awaited, waiters, (care, ready)) {
                return true;
            }
            sleeps = sleeps.wrapping_add(1);
            care.look(self, awaited, sleeps, ready);
            self.watch.look(self, net, awaited, care.since());
        }
        false
    }

    /// Whether this PE has nothing to do until it is woken: no operation is outstanding, and no event was
    /// processed since `activity`.
    #[track_caller]
    pub fn may_sleep(&self, net: &Endpoint, activity: u32) -> bool {
        // The look for quiet may have received events of complete operations, which a round of progress hands
        // over. The look at the provider then sends what this thread owes, such as acknowledgements. The
        // service thread sleeps perhaps, and hears of neither.
        self.is_all_quiet() && {
            self.progress();
            net.activity() == activity && net.may_sleep()
        }
    }

    /// Fails if this is a barrier that a user's function of a reduction has called, or any wait of a handler.
    #[track_caller]
    fn check_callback(&self, awaited: Awaited) {
        if matches!(awaited, Awaited::Barrier { .. }) {
            callback::forbid(self, "barrier");
        }
        callback::forbid_wait(self, || self.describe(awaited));
    }

    /// Waits inside a handler of active messages, which is the only wait that is permitted there: `serve`
    /// makes the progress that other PEs need.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub fn wait_in_handler(
        &self,
        awaited: Awaited,
        mut ready: impl FnMut() -> bool,
        mut serve: impl FnMut(),
    ) {
        let (since, _excused) = (Instant::now(), self.executors.excuse());
        let mut ends = Ends::default();
        for looks in 1u32.. {
            serve();
            if ready() {
                return;
            }
            self.check_limit(awaited, since);
            self.check_job(awaited, looks);
            if looks.is_multiple_of(LOOKS_PER_LAUNCHER_CHECK) {
                ends.look(self, awaited, since);
            }
            match looks < self.policy.spins {
                true => spin_once(),
                false => rustix::thread::sched_yield(),
            }
        }
    }
}

/// Whether the condition becomes true within this number of polls, with a pause before each.
fn has_come_soon(looks: u32, pause: fn(), ready: &mut dyn FnMut() -> bool) -> bool {
    (0..looks).any(|_| {
        pause();
        ready()
    })
}

/// A sleeper's announcement, withdrawn when it is dropped: also when the evaluation of its condition panics.
struct Announced<'a> {
    doorbell: &'a Doorbell,
    sleepers: &'a Sleepers,
    waiters: Option<&'a AtomicU32>,
    announcement: Announcement,
}

impl<'a> Announced<'a> {
    fn new(
        doorbell: &'a Doorbell,
        sleepers: &'a Sleepers,
        waiters: Option<&'a AtomicU32>,
        cause: Cause,
    ) -> Announced<'a> {
        let announcement = doorbell.announce(sleepers, waiters, cause);
        Announced { doorbell, sleepers, waiters, announcement }
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.doorbell.withdraw(self.sleepers, self.waiters, self.announcement);
    }
}
