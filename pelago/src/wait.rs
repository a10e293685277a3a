//! How a PE waits: spin, then yield the core, then sleep at its doorbell.
//!
//! Invariant: no wait goes on for what can no longer come. Between two sleeps the waiter looks whether it
//! still can: a PE that failed, PEs that left the job, or a launcher that is gone end the wait with words
//! that say who waited for what, and so do `PELAGO_WAIT_LIMIT`, if it is set, and `PELAGO_INIT_TIMEOUT` while
//! the job forms. Sleeps are bounded by 1 ms, so that even a plain put, which rings no doorbell, is seen
//! soon. With a net a waiting PE makes progress, and rests as the provider lets it. It sleeps only while
//! nothing that it has started is under way and its service thread watches the network: that thread takes
//! what arrives, and wakes it.

use crate::Pe;
use crate::affinity::Core;
use crate::agree;
use crate::am::executor::BlockedHandlers;
use crate::barrier::{ALL_PES, within};
use crate::channel::Channel;
use crate::restricted;
use crate::service::Guard;
use crate::stall::{self, Long};
use crate::world::World;
use pelago_boot::Settings;
use pelago_fabric::shm::doorbell::{Announcement, Cause, Doorbell, Sleepers};
use pelago_fabric::shm::segment::Block;
use pelago_fabric::sync::{AtomicU32, Ordering, spin_once};
use pelago_fabric::threads;
use std::time::{Duration, Instant};

/// The longest sleep between two looks.
const SLEEP_BOUND: Duration = Duration::from_millis(1);
/// Looks, or sleeps, between two questions whether the launcher is still there.
const LOOKS_PER_LAUNCHER_CHECK: u32 = 100;
/// Looks between two questions whether a member of a team has left.
const LOOKS_PER_MEMBERS_CHECK: u32 = 256;
/// Looks at the net between two questions whether what is awaited can still come.
const LOOKS_PER_CHECK: u32 = 16;
/// Of those questions, one in so many is about the PEs of other nodes.
const CHECKS_PER_WATCH: u32 = 4;
/// Looks at a net that moves by itself before a PE gives its core away for the first time.
const NET_SPINS: u32 = 32;
/// Looks before the first round of progress of a net that moves by itself. What a PE of the same node brings
/// about mostly comes that soon; a round takes as long as 20 to 50 of these looks.
const SPINS_BEFORE_NET: u32 = 40;
/// Looks between two rounds of progress, if a PE that is mapped brings about what is awaited, or any other.
const SPINS_BETWEEN_MAPPED: u32 = 64;
const SPINS_BETWEEN: u32 = 8;
/// On a core that others have work for: how often a PE that waits for one of its node yields before it
/// sleeps.
const YIELDS_BEFORE_SLEEP: u32 = 4;
/// How long a PE waits over a net before it sleeps, if nothing arrives and nothing of its own is under way.
const AWAKE_OVER_NET: Duration = Duration::from_micros(100);
/// A call of sched_yield that takes longer has given the core to another thread. One that has found none
/// takes 0.5 us, one that has 2.8 us.
const UNSHARED_REST: Duration = Duration::from_nanos(1500);
/// Most looks between two rests.
const STRIDE_MAX: u32 = 1024;
/// How long the last message of a PE that has left may be under way: it was not told of its delivery.
const TIME_FOR_LAST_MESSAGE: Duration = Duration::from_secs(2);
/// What a launcher may take to end the job after a PE has failed.
const TIME_FOR_LAUNCHER: Duration = Duration::from_secs(2);

/// How long to spin and to yield before sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    spins: u32,
    yields: u32,
    /// Looks at a net that moves by itself before this PE gives its core away for the first time.
    net_spins: u32,
    /// Looks between two rounds of progress over such a net, if a PE that is mapped brings about what is
    /// awaited, and if any other does.
    spins_between: [u32; 2],
    /// How long it waits over such a net before it sleeps.
    awake_over_net: Duration,
    limit: Option<Duration>,
    join_limit: Duration,
}

impl Patience {
    /// PEs that all have a core of their own spin; PEs that share cores soon give them up. Where a net moves
    /// only in calls of the runtime, every look is a round of progress.
    pub(crate) fn new(n_here: usize, cores: usize, net: Option<&Channel>, settings: &Settings) -> Patience {
        let (spins, yields) = if n_here <= cores { (2000, 100) } else { (10, 200) };
        let spins = settings.spins.unwrap_or(spins);
        let spins = match net {
            None => spins,
            // Nobody else writes to the memory of a PE that is alone on its node.
            Some(net) if net.moves_by_itself() && n_here > 1 => spins.min(SPINS_BEFORE_NET),
            Some(_) => 0,
        };
        let spins_between = if n_here > 1 { [SPINS_BETWEEN_MAPPED, SPINS_BETWEEN] } else { [0; 2] };
        Patience {
            spins,
            yields: settings.yields.unwrap_or(yields),
            net_spins: settings.spins.unwrap_or(NET_SPINS),
            spins_between,
            awake_over_net: AWAKE_OVER_NET,
            limit: settings.wait_limit,
            join_limit: settings.init_timeout,
        }
    }
}

/// When a PE that waits over a net that moves by itself gives its core away: to other PEs, or to threads of
/// the provider. Whether somebody wanted the core shows in the time that it takes to come back; as long as
/// nobody does, the PE asks less and less often.
struct Rests {
    /// The look at which it rests next.
    next: u32,
    stride: u32,
}

impl Rests {
    fn after(spins: u32) -> Rests {
        Rests { next: spins, stride: 1 }
    }

    /// Plans the next rest after one that took so long: whether somebody else had the core meanwhile.
    fn rested(&mut self, looks: u32, took: Duration) -> bool {
        let is_shared = took >= UNSHARED_REST;
        self.stride = if is_shared { 1 } else { (2 * self.stride).min(STRIDE_MAX) };
        self.next = looks.wrapping_add(self.stride);
        is_shared
    }
}

/// When something has arrived last over a net, as a PE that waits has seen it.
struct Traffic {
    activity: u32,
    last: Instant,
}

impl Traffic {
    fn of(net: &Channel) -> Traffic {
        Traffic { activity: net.activity(), last: Instant::now() }
    }

    /// How long nothing has arrived.
    fn pause(&mut self, net: &Channel) -> Duration {
        let now = net.activity();
        if std::mem::replace(&mut self.activity, now) != now {
            self.last = Instant::now();
        }
        self.last.elapsed()
    }
}

/// What a PE waits for, to be said if it cannot come.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaited {
    /// This PE, or all if `None`, in a barrier.
    Barrier { pe: Option<Pe>, round: u64 },
    /// This PE, or others if `None`, in a collective operation of a team.
    Collective { operation: &'static str, pe: Option<Pe> },
    /// A change of a word in symmetric memory.
    Element { index: usize },
    /// Everybody's joining.
    Join,
    /// Everybody's leave.
    Leave,
    /// The completion of an operation over the net.
    Completion { operation: &'static str, pe: Pe },
    /// The completion of all operations that were started.
    Quiet,
    /// Events, one or all of them.
    Events { count: usize },
    /// That a future can go on.
    Future,
    /// The end of the work that a progress thread accompanies.
    EndOfWork,
    /// Room for an operation over the net.
    Room { operation: &'static str, pe: Pe },
    /// The end of the handlers that other threads of this PE run.
    Handlers,
}

impl Awaited {
    /// The PE that is waited for, if it is a certain one.
    pub(crate) fn pe(self) -> Option<Pe> {
        match self {
            Awaited::Barrier { pe, .. } | Awaited::Collective { pe, .. } => pe,
            Awaited::Completion { pe, .. } | Awaited::Room { pe, .. } => Some(pe),
            _ => None,
        }
    }

    fn cause(self) -> Cause {
        match self {
            Awaited::Barrier { .. } | Awaited::Collective { .. } => Cause::Meeting,
            Awaited::Join | Awaited::Leave | Awaited::EndOfWork => Cause::Meeting,
            _ => Cause::Data,
        }
    }
}

impl World {
    /// Waits until `ready` says yes. The spinning part is here, the rest out of line.
    #[inline]
    #[track_caller]
    pub(crate) fn wait(&self, awaited: Awaited, ready: impl FnMut() -> bool) {
        self.wait_with(awaited, None, ready);
    }

    /// As `wait`, for a change of this PE's part of an array, whose header counts the sleepers in `waiters`.
    #[inline]
    #[track_caller]
    pub(crate) fn wait_with(
        &self,
        awaited: Awaited,
        waiters: Option<&AtomicU32>,
        mut ready: impl FnMut() -> bool,
    ) {
        match self.is_busy() {
            true => self.wait_driving(awaited, waiters, &mut ready),
            false => self.wait_patiently(awaited, waiters, &mut ready),
        }
    }

    /// As `wait`, for something that only members of a team can bring about: `needed` says from time to time
    /// which PE, that has perhaps left the job, it cannot come without.
    #[track_caller]
    pub(crate) fn wait_for_members(
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
                // What it did before it left is visible now: only a last look tells whether that is enough.
                // While another thread moves the operations this one cannot look, and asks again later.
                if culprit.is_some() {
                    self.take_arrivals();
                    let has_looked = self.drive();
                    culprit = culprit.filter(|&pe| has_looked && needed() == Some(pe));
                }
            }
            ready() || culprit.is_some()
        });
        if let Some(pe) = culprit.filter(|_| !ready()) {
            self.wait_in_vain(&self.describe(awaited), Some(pe));
        }
    }

    /// Spins for as long as that pays, and then waits in the way that the routes leave.
    #[inline(always)]
    #[track_caller]
    fn wait_patiently(
        &self,
        awaited: Awaited,
        waiters: Option<&AtomicU32>,
        ready: &mut impl FnMut() -> bool,
    ) {
        for _ in 0..self.patience.spins {
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

    /// Waits and moves collective operations meanwhile: other PEs may need this one in those.
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

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn wait_long(&self, awaited: Awaited, waiters: Option<&AtomicU32>, ready: &mut dyn FnMut() -> bool) {
        self.check_callback(awaited);
        for _ in 0..self.patience.yields {
            if ready() {
                return;
            }
            let start = Instant::now();
            rustix::thread::sched_yield();
            if start.elapsed() >= UNSHARED_REST {
                self.leave_shared_core();
            }
        }
        let mut care = Care::default();
        for sleeps in 1u32.. {
            care.look(self, awaited, sleeps, ready);
            if self.is_busy() {
                // Another thread of this PE may have started operations since.
                self.drive_all();
            }
            if self.sleep_once(awaited, waiters, ready) {
                return;
            }
        }
    }

    /// Sleeps at the doorbell until it rings, or the bound has passed, unless what is awaited is there:
    /// whether it is there now.
    fn sleep_once(
        &self,
        awaited: Awaited,
        waiters: Option<&AtomicU32>,
        ready: &mut dyn FnMut() -> bool,
    ) -> bool {
        let (sleepers, doorbell) =
            (&self.memory.header().sleepers, &self.memory.near_block(self.my_pe()).doorbell);
        let announced = Announced::new(doorbell, sleepers, waiters, awaited.cause());
        let is_ready = ready();
        if !is_ready {
            doorbell.sleep(announced.announcement, SLEEP_BOUND);
        }
        drop(announced);
        is_ready || ready()
    }

    /// Waits by making progress: what is awaited may come over the net, and other PEs may wait for this one
    /// to serve them.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn wait_net(
        &self,
        net: &Channel,
        awaited: Awaited,
        waiters: Option<&AtomicU32>,
        ready: &mut dyn FnMut() -> bool,
    ) {
        self.check_callback(awaited);
        let (mut looks, mut care, mut is_fresh) = (0u32, Care::default(), true);
        let is_near = awaited.pe().is_some_and(|pe| pe < self.n_pes() && self.memory.is_mapped(pe));
        // The calls of a simulated network must not depend on time.
        let core = if net.moves_by_itself() { self.affinity.core() } else { Core::Own };
        let (spins, mut between) = match (core, is_near) {
            (Core::Own, true) => (self.patience.net_spins, self.patience.spins_between[0]),
            (Core::Own, false) => (self.patience.net_spins, self.patience.spins_between[1]),
            (Core::Shared, true) => {
                // The PE that is awaited may have work for this core, and it will ring.
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
        let (mut rests, mut traffic) = (Rests::after(spins), Traffic::of(net));
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
                    self.watch(net, awaited, care.since());
                }
                if net.moves_by_itself() && traffic.pause(net) > self.patience.awake_over_net {
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
            let start = Instant::now();
            net.rest(SLEEP_BOUND);
            let is_shared = rests.rested(looks, start.elapsed());
            self.affinity.note_shared(is_shared);
            if is_shared {
                between = 0;
                self.leave_shared_core();
            }
            is_fresh = true;
        }
    }

    /// Sleeps as long as nothing arrives or is under way and there is a service thread, which watches the
    /// network: whether what is awaited has come.
    #[track_caller]
    fn sleep_guarded<'a>(
        &'a self,
        net: &Channel,
        awaited: Awaited,
        waiters: Option<&AtomicU32>,
        (care, ready): (&mut Care<'a>, &mut dyn FnMut() -> bool),
        guard: Guard,
    ) -> bool {
        let (mut sleeps, activity, _relying) = (0u32, net.activity(), self.rely_on_service());
        while net.activity() == activity && self.is_all_quiet() && self.is_guarded(net, guard) {
            if self.is_busy() {
                self.drive_all();
            }
            if self.sleep_once(awaited, waiters, ready) {
                return true;
            }
            sleeps = sleeps.wrapping_add(1);
            care.look(self, awaited, sleeps, ready);
            self.watch(net, awaited, care.since());
        }
        false
    }

    /// Fails if this is a barrier that a user's function of a reduction has called, or any wait of a handler.
    #[track_caller]
    fn check_callback(&self, awaited: Awaited) {
        if matches!(awaited, Awaited::Barrier { .. }) {
            restricted::forbid(self, "barrier");
        }
        restricted::forbid_wait(self, || self.describe(awaited));
    }

    /// Waits inside a handler of active messages, which nothing else may: `serve` is what lets others go on.
    #[cold]
    #[inline(never)]
    #[track_caller]
    pub(crate) fn wait_in_handler(
        &self,
        awaited: Awaited,
        mut ready: impl FnMut() -> bool,
        mut serve: impl FnMut(),
    ) {
        let (since, _excused) = (Instant::now(), self.am.excuse());
        for looks in 1u32.. {
            serve();
            if ready() {
                return;
            }
            self.check_limit(awaited, since);
            self.check_job(awaited, looks);
            match looks < self.patience.spins {
                true => spin_once(),
                false => rustix::thread::sched_yield(),
            }
        }
    }

    /// Fails if the wait has taken longer than it may.
    #[track_caller]
    fn check_limit(&self, awaited: Awaited, since: Instant) {
        let (limit, setting) = match awaited {
            Awaited::Join => (Some(self.patience.join_limit), "PELAGO_INIT_TIMEOUT"),
            Awaited::EndOfWork => return,
            _ => (self.patience.limit, "PELAGO_WAIT_LIMIT"),
        };
        if let Some(limit) = limit.filter(|&limit| since.elapsed() > limit) {
            let (me, what) = (self.my_pe(), self.describe(awaited));
            self.fail(&format!(
                "PE {me}: has waited {limit:?} for {what}, which is the limit set by {setting}"
            ));
        }
    }

    /// Gives up if the job is failing. A launcher ends the others by itself when a PE dies, and knows why it
    /// died; so under one a PE gives up only if that does not happen.
    fn check_job(&self, awaited: Awaited, looks: u32) {
        let in_vain = || format!("gave up waiting for {}", self.describe(awaited));
        if let Some((age, pe, reason)) = self.known_failure()
            && (!self.is_launched() || age > TIME_FOR_LAUNCHER)
        {
            self.give_up(&format!("{}: PE {pe} failed: {reason}", in_vain()));
        }
        if looks.is_multiple_of(LOOKS_PER_LAUNCHER_CHECK) && self.is_launcher_gone() {
            self.give_up(&format!("{}: the launcher is gone", in_vain()));
        }
    }

    /// Whether a PE has begun to leave the job.
    pub(crate) fn has_left(&self, pe: Pe) -> bool {
        // SYNC POINT left: acquires what the PE did before it left.
        match self.memory.block(pe) {
            Some(block) => block.departure.left.load(Ordering::Acquire) != 0,
            None => self.watch.has_left(pe),
        }
    }

    /// Fails if what is awaited can no longer come.
    #[track_caller]
    fn check_hope(
        &self,
        awaited: Awaited,
        left_since: &mut Option<Instant>,
        ready: &mut dyn FnMut() -> bool,
    ) {
        let me = self.my_pe();
        let has_left = |pe: Pe| self.has_left(pe);
        let mut has_said_all = |pe: Pe| {
            let is_far =
                self.net.as_ref().is_some_and(|net| net.moves_by_itself()) && !self.memory.is_mapped(pe);
            !is_far || left_since.get_or_insert_with(Instant::now).elapsed() > TIME_FOR_LAST_MESSAGE
        };
        // In vain: for this PE, or because all others have left.
        let in_vain: Option<Option<Pe>> = match awaited {
            // Who leaves stays reachable until all have left.
            Awaited::Completion { .. } | Awaited::Room { .. } | Awaited::Quiet => None,
            Awaited::Join | Awaited::Leave => None,
            Awaited::Events { .. } | Awaited::Future | Awaited::EndOfWork | Awaited::Handlers => None,
            Awaited::Barrier { pe: Some(pe), .. } | Awaited::Collective { pe: Some(pe), .. } => {
                (has_left(pe) && has_said_all(pe)).then_some(Some(pe))
            }
            Awaited::Barrier { pe: None, .. } => self.first_to_leave().map(Some),
            Awaited::Element { .. } | Awaited::Collective { pe: None, .. } => {
                let mut others = (0..self.n_pes()).filter(|&pe| pe != me);
                let is_alone = others.all(has_left)
                    && self.is_all_quiet()
                    && !has_siblings(self.bears_threads.load(Ordering::Relaxed));
                is_alone.then_some(None)
            }
        };
        // A PE that leaves may have done its part just before: only a last look tells.
        if let Some(pe) = in_vain {
            self.take_arrivals();
            if !ready() {
                self.wait_in_vain(&self.describe(awaited), pe);
            }
        }
    }

    /// Takes what has arrived over the net, if there is one.
    #[track_caller]
    fn take_arrivals(&self) {
        if self.net.is_some() {
            self.progress();
        }
    }

    /// What is waited for, in words.
    pub(crate) fn describe(&self, awaited: Awaited) -> String {
        let name = self.plain_name(awaited);
        match awaited {
            Awaited::Barrier { .. } => name + &agree::awaited(self),
            Awaited::Collective { .. } => name + &agree::awaited(self) + &stall::compared(),
            _ => name,
        }
    }

    fn plain_name(&self, awaited: Awaited) -> String {
        match awaited {
            Awaited::Barrier { pe: Some(pe), round } => format!("PE {pe} in barrier {round}"),
            Awaited::Barrier { pe: None, round } => format!("all PEs in barrier {round}"),
            Awaited::Collective { operation, pe: Some(pe) } => format!("PE {pe} in {operation} of a team"),
            Awaited::Collective { operation: ALL_PES, .. } => format!("all PEs in barrier {}", within()),
            Awaited::Collective { operation, pe: None } => format!("other PEs in {operation} of a team"),
            Awaited::Element { index } => format!("a change of element {index} of a symmetric array"),
            Awaited::Join => {
                let is_missing = |pe: &Pe| self.memory.near_block(*pe).attached.load(Ordering::Relaxed) < 2;
                let missing: Vec<Pe> = self.memory.near_pes().filter(is_missing).collect();
                match missing[..] {
                    [] => "PEs of other nodes to join the job".to_owned(),
                    _ => format!("PEs {missing:?} to join the job"),
                }
            }
            Awaited::Leave => "all PEs to leave the job".to_owned(),
            Awaited::Completion { operation, pe } => format!("the completion of {operation} on PE {pe}"),
            Awaited::Quiet => "the completion of its operations".to_owned(),
            Awaited::Events { count: 1 } => "an event".to_owned(),
            Awaited::Events { count } => format!("{count} events, all or some of them"),
            Awaited::Future => "a future that can go on".to_owned(),
            Awaited::EndOfWork => "the end of the work that it accompanies".to_owned(),
            Awaited::Handlers => "the end of handlers that run on this PE, to begin serve".to_owned(),
            Awaited::Room { operation, pe } => format!("the fabric to accept {operation} for PE {pe}"),
        }
    }

    /// Wakes the PEs of the node that sleep, after this PE has come to a meeting. One load when nobody
    /// sleeps.
    #[inline]
    pub(crate) fn ring_sleepers(&self) {
        if self.memory.header().sleepers.any() {
            ring_all(self.memory.blocks(), &[Cause::Meeting, Cause::Data]);
        }
    }

    /// Whether a PE of this node sleeps until data come. For tests.
    #[doc(hidden)]
    pub fn has_sleepers_for_data(&self) -> bool {
        self.memory.header().sleepers.for_data().load(Ordering::Relaxed) != 0
    }

    /// Wakes the threads of this PE that sleep.
    pub(crate) fn ring_own(&self) {
        self.memory.near_block(self.my_pe()).doorbell.ring_all();
    }

    /// Wakes the PEs of the node that wait for data, after this PE has put some. One load when nobody does.
    #[inline]
    pub(crate) fn ring_sleepers_for_data(&self) {
        if self.memory.header().sleepers.for_data().load(Ordering::Relaxed) != 0 {
            ring_all(self.memory.blocks(), &[Cause::Data]);
        }
    }
}

/// The checks that a long wait makes from time to time.
#[derive(Default)]
struct Care<'a> {
    since: Option<Instant>,
    long: Option<Long<'a>>,
    handlers: BlockedHandlers,
    /// When the PE that is awaited was first seen to have left.
    left_since: Option<Instant>,
}

impl<'a> Care<'a> {
    /// When the first look was.
    fn since(&self) -> Instant {
        self.since.expect("there has been a look")
    }

    /// The look of this number, from 1. Fails if what is awaited can no longer come.
    #[track_caller]
    fn look(&mut self, world: &'a World, awaited: Awaited, looks: u32, ready: &mut dyn FnMut() -> bool) {
        let since = *self.since.get_or_insert_with(Instant::now);
        self.long.get_or_insert_with(|| Long::new(world, awaited, since)).tick();
        world.check_limit(awaited, since);
        world.check_job(awaited, looks);
        world.check_hope(awaited, &mut self.left_since, ready);
        self.handlers.look(world, || world.describe(awaited));
    }
}

/// Whether what is awaited comes within this number of looks, with a pause before each.
fn has_come_soon(looks: u32, pause: fn(), ready: &mut dyn FnMut() -> bool) -> bool {
    (0..looks).any(|_| {
        pause();
        ready()
    })
}

/// A sleeper's announcement, withdrawn when it is dropped: also when the condition that it looks at panics.
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

/// Whether this process has other threads that may belong to the same PE, or nobody knows: threads of the
/// same name, as they inherit that of the thread that starts them; or any, if the PE is a process that has
/// said so. The runtime's own threads are none of them.
fn has_siblings(any: bool) -> bool {
    let own_name = std::fs::read("/proc/thread-self/comm");
    let (Ok(own_name), Ok(tasks)) = (own_name, std::fs::read_dir("/proc/self/task")) else { return true };
    let names = tasks.filter_map(|task| std::fs::read(task.ok()?.path().join("comm")).ok());
    let is_sibling =
        |name: &Vec<u8>| *name == own_name || any && !name.starts_with(threads::PREFIX.as_bytes());
    names.filter(is_sibling).count() > 1
}

#[cold]
fn ring_all(blocks: &[Block], causes: &[Cause]) {
    for block in blocks {
        causes.iter().for_each(|&cause| block.doorbell.ring(cause));
    }
}
