//! How long a PE spins, yields and stays awake before it sleeps.

use crate::endpoint::Endpoint;
use pelago_boot::Settings;
use std::time::{Duration, Instant};

/// Looks at a net that moves by itself before a PE gives its core away for the first time.
const NET_SPINS: u32 = 32;
/// Looks before the first round of progress of a net that moves by itself. What a PE of the same node brings
/// about mostly comes that soon; a round takes as long as 20 to 50 of these looks.
const SPINS_BEFORE_NET: u32 = 40;
/// Looks between two rounds of progress, if a PE that is mapped brings about what is awaited, or any other.
const SPINS_BETWEEN_MAPPED: u32 = 64;
const SPINS_BETWEEN: u32 = 8;
/// How long a PE waits over a net before it sleeps, if nothing arrives and nothing of its own is under way.
const AWAKE_OVER_NET: Duration = Duration::from_micros(100);
/// A call of sched_yield that takes longer has given the core to another thread. One that has found none
/// takes 0.5 us, one that has 2.8 us.
pub(super) const UNSHARED_REST: Duration = Duration::from_nanos(1500);
/// Most looks between two rests.
const STRIDE_MAX: u32 = 1024;

/// How long to spin and to yield before sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitPolicy {
    pub(super) spins: u32,
    pub(super) yields: u32,
    /// Looks at a net that moves by itself before this PE gives its core away for the first time.
    pub(super) net_spins: u32,
    /// Looks between two rounds of progress over such a net, if a PE that is mapped brings about what is
    /// awaited, and if any other does.
    pub(super) spins_between: [u32; 2],
    /// How long it waits over such a net before it sleeps.
    pub(super) awake_over_net: Duration,
    pub(super) limit: Option<Duration>,
    pub(super) join_limit: Duration,
}

impl WaitPolicy {
    /// PEs that all have a core of their own spin; PEs that share cores soon give them up. Where a net moves
    /// only in calls of the runtime, every look is a round of progress.
    pub(crate) fn new(
        n_here: usize,
        cores: usize,
        net: Option<&Endpoint>,
        settings: &Settings,
    ) -> WaitPolicy {
        let (spins, yields) = if n_here <= cores { (2000, 100) } else { (10, 200) };
        let spins = settings.spins.unwrap_or(spins);
        let spins = match net {
            None => spins,
            // Nobody else writes to the memory of a PE that is alone on its node.
            Some(net) if net.moves_by_itself() && n_here > 1 => spins.min(SPINS_BEFORE_NET),
            Some(_) => 0,
        };
        let spins_between = if n_here > 1 { [SPINS_BETWEEN_MAPPED, SPINS_BETWEEN] } else { [0; 2] };
        WaitPolicy {
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
pub(super) struct Rests {
    /// The look at which it rests next.
    pub(super) next: u32,
    stride: u32,
}

impl Rests {
    pub(super) fn after(spins: u32) -> Rests {
        Rests { next: spins, stride: 1 }
    }

    /// Plans the next rest after one that took so long: whether somebody else had the core meanwhile.
    pub(super) fn rested(&mut self, looks: u32, took: Duration) -> bool {
        let is_shared = took >= UNSHARED_REST;
        self.stride = if is_shared { 1 } else { (2 * self.stride).min(STRIDE_MAX) };
        self.next = looks.wrapping_add(self.stride);
        is_shared
    }
}

/// When something has arrived last over a net, as a PE that waits has seen it.
pub(super) struct Traffic {
    activity: u32,
    last: Instant,
}

impl Traffic {
    pub(super) fn of(net: &Endpoint) -> Traffic {
        Traffic { activity: net.activity(), last: Instant::now() }
    }

    /// How long nothing has arrived.
    pub(super) fn pause(&mut self, net: &Endpoint) -> Duration {
        let now = net.activity();
        if std::mem::replace(&mut self.activity, now) != now {
            self.last = Instant::now();
        }
        self.last.elapsed()
    }
}
