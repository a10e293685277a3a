//! How long a PE spins, yields and stays awake before it sleeps.

use crate::endpoint::Endpoint;
use pelago_boot::Settings;
use pelago_fabric::sync::{AtomicU32, Ordering, spin_once};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The number of polls of a network that makes progress by itself before a PE yields its core for the first
/// time.
const NET_SPINS: u32 = 32;
/// The polls before a PE yields, where PEs outnumber the cores: the awaited PE may need this one.
const CROWDED_SPINS: u32 = 10;
/// The time of polls before the first round of progress of a network that makes progress by itself. Events
/// from PEs of the same node mostly occur within this time; a round takes 0.5 to 1.5 us.
const BEFORE_NET: Duration = Duration::from_nanos(1200);
/// The time of polls between two rounds of progress, if a mapped PE makes the condition true.
const BETWEEN_MAPPED: Duration = Duration::from_nanos(1920);
/// The same if it is not known which PE does. If a PE of another node does, every poll is a round.
const BETWEEN: Duration = Duration::from_nanos(240);
/// The time of a poll beside the processor's hint.
const POLL: Duration = Duration::from_nanos(5);
/// The time that a PE waits over a network before it sleeps, if no message arrives and none of its operations
/// is outstanding.
const AWAKE_OVER_NET: Duration = Duration::from_micros(100);
/// The time that a PE waits before it sleeps as long as no other thread uses its core. To be woken takes 30
/// to 100 us, which a program would pay for each wait for a PE that computes a little longer.
const AWAKE_ON_OWN_CORE: Duration = Duration::from_millis(10);
/// A call of sched_yield that takes longer has given the core to another thread. It takes 0.5 us if no other
/// thread was runnable, and 2.8 us otherwise.
const UNSHARED_REST: Duration = Duration::from_nanos(1500);
/// A yield that took longer was a time slice of another thread.
const TIME_SLICE: Duration = Duration::from_micros(100);
/// The number of shorter yields in a row, each of which let another thread have the core, after which the
/// core counts as shared. A single one may have been an interrupt.
const SHARED_IN_A_ROW: u32 = 3;
/// The maximum number of polls between two rests.
const STRIDE_MAX: u32 = 1024;

/// How long to spin and to yield before sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitPolicy {
    /// Whether PEs share cores.
    pub(super) is_crowded: bool,
    pub(super) spins: u32,
    /// The number of polls before a PE yields its core that are a part of a recorded wait. While operations
    /// are recorded, these take the place of the others.
    pub(super) recorded_spins: u32,
    pub(super) yields: u32,
    /// The number of polls of a network that makes progress by itself before this PE yields its core for the
    /// first time.
    pub(super) net_spins: u32,
    /// The number of polls between two rounds of progress over such a network, if a mapped PE makes the
    /// condition true, and if it is not known which PE does.
    pub(super) spins_between: [u32; 2],
    /// The time that it waits over such a network before it sleeps, if another thread uses its core.
    pub(super) awake_over_net: Duration,
    /// The time that it waits before it sleeps, over any route, as long as no other thread uses its core.
    pub(super) awake_on_own_core: Duration,
    pub(super) limit: Option<Duration>,
    pub(super) join_limit: Duration,
    /// Whether sleeps last until a wake-up: see `sleeps.rs`.
    pub(super) is_strict: bool,
}

impl WaitPolicy {
    /// The number of polls before a waiting PE yields its core, or before it makes progress over the network.
    pub fn spins(&self) -> u32 {
        self.spins
    }

    /// PEs that all have a core of their own spin; PEs that share cores soon yield them. If a network makes
    /// progress only in calls of the runtime, every poll is a round of progress.
    pub fn new(n_here: usize, cores: usize, net: Option<&Endpoint>, settings: &Settings) -> WaitPolicy {
        let (spins, yields) = if n_here <= cores { (2000, 100) } else { (CROWDED_SPINS, 200) };
        let spins = settings.spins.unwrap_or(spins);
        let spins = match net {
            None => spins,
            // No other PE writes directly to the memory of a PE that is alone on its node.
            Some(net) if net.moves_by_itself() && n_here > 1 => spins.min(polls_in(BEFORE_NET)),
            Some(_) => 0,
        };
        let has_own_core = n_here <= cores && settings.yields.is_none() && !settings.test_sleeps;
        let has_neighbours = net.is_some() && n_here > 1;
        let spins_between = if has_neighbours { [BETWEEN_MAPPED, BETWEEN].map(polls_in) } else { [0; 2] };
        WaitPolicy {
            is_crowded: n_here > cores,
            spins,
            recorded_spins: 0,
            yields: settings.yields.unwrap_or(yields),
            net_spins: settings.spins.unwrap_or(NET_SPINS),
            spins_between,
            awake_over_net: AWAKE_OVER_NET,
            awake_on_own_core: if has_own_core { AWAKE_ON_OWN_CORE } else { Duration::ZERO },
            limit: settings.wait_limit,
            join_limit: settings.init_timeout,
            is_strict: settings.test_sleeps,
        }
    }
}

/// The number of polls that take this time here. The processor's hint takes 10 to 70 ns.
fn polls_in(time: Duration) -> u32 {
    static HINT: OnceLock<Duration> = OnceLock::new();
    let hint = *HINT.get_or_init(|| {
        const HINTS: u32 = 20;
        let hints = || {
            let start = Instant::now();
            (0..HINTS).for_each(|_| spin_once());
            start.elapsed() / HINTS
        };
        (0..5).map(|_| hints()).min().unwrap_or_default()
    });
    time.div_duration_f64(hint + POLL) as u32
}

impl WaitPolicy {
    /// The policy of a PE of one of several nodes on a machine whose cores the PEs of all outnumber.
    pub fn crowded(self, settings: &Settings) -> WaitPolicy {
        let most = if settings.spins.is_none() { CROWDED_SPINS } else { u32::MAX };
        WaitPolicy { is_crowded: true, spins: self.spins.min(most), ..self }
    }

    /// The policy of a PE that records its waits, so that their first polls are recorded as well.
    pub fn recorded(self) -> WaitPolicy {
        WaitPolicy { spins: 0, recorded_spins: self.spins, ..self }
    }
}

/// Tests that find nothing, one of which yields a shared core: a yield takes about as long as ten tests.
const TESTS_PER_YIELD: u32 = 10;

/// Counts the tests of a program that find nothing, where PEs share cores.
#[derive(Default)]
pub(super) struct VainTests(AtomicU32);

impl VainTests {
    /// Whether the PE yields its core after one more.
    #[inline]
    pub(super) fn yields_after(&self, policy: &WaitPolicy) -> bool {
        if !policy.is_crowded {
            return false;
        }
        // Threads that count at the same time may lose a test, which does no harm.
        let tests = self.0.load(Ordering::Relaxed).wrapping_add(1);
        self.0.store(tests, Ordering::Relaxed);
        tests.is_multiple_of(TESTS_PER_YIELD)
    }
}

/// Decides when a PE yields its core, to other PEs or to threads of the provider, while it waits over a
/// network that makes progress by itself. The time that a yield takes shows whether another thread used the
/// core. As long as none does, the PE yields less and less often.
pub(super) struct Rests {
    /// The poll at which it rests next.
    pub(super) next: u32,
    stride: u32,
    sharing: Sharing,
}

/// Whether another thread uses the core, by the last yields of a wait.
#[derive(Default)]
pub(super) struct Sharing(u32);

impl Sharing {
    /// Notes a yield. Returns whether another thread used the core meanwhile.
    pub(super) fn note(&mut self, took: Duration) -> bool {
        self.0 = match took {
            _ if took >= TIME_SLICE => SHARED_IN_A_ROW,
            _ if took >= UNSHARED_REST => self.0.saturating_add(1),
            _ => 0,
        };
        self.0 > 0
    }

    /// The time that the PE stays awake after the last arrival.
    pub(super) fn awake(&self, policy: &WaitPolicy) -> Duration {
        if self.0 < SHARED_IN_A_ROW { policy.awake_on_own_core } else { Duration::ZERO }
    }
}

impl Rests {
    pub(super) fn after(spins: u32) -> Rests {
        Rests { next: spins, stride: 1, sharing: Sharing::default() }
    }

    /// The time that the PE stays awake after the last arrival.
    pub(super) fn awake(&self, policy: &WaitPolicy) -> Duration {
        self.sharing.awake(policy).max(policy.awake_over_net)
    }

    /// Plans the next rest after one that took `took`, and returns whether another thread used the core
    /// meanwhile.
    pub(super) fn rested(&mut self, looks: u32, took: Duration) -> bool {
        let is_shared = self.sharing.note(took);
        self.stride = if is_shared { 1 } else { (2 * self.stride).min(STRIDE_MAX) };
        self.next = looks.wrapping_add(self.stride);
        is_shared
    }
}

/// The time of the last arrival over a network, as observed by a waiting PE: `None` if it has not looked at
/// the clock since.
pub(super) struct Traffic {
    activity: u32,
    last: Option<Instant>,
}

impl Traffic {
    /// Observes the arrivals from now on. If it does not read the clock now, it reads it at the first look:
    /// most waits are over before.
    pub(super) fn of(net: &Endpoint, reads_clock: bool) -> Traffic {
        Traffic { activity: net.activity(), last: reads_clock.then(Instant::now) }
    }

    /// The time since the last arrival.
    pub(super) fn pause(&mut self, net: &Endpoint) -> Duration {
        let now = net.activity();
        if std::mem::replace(&mut self.activity, now) != now {
            self.last = None;
        }
        self.last.get_or_insert_with(Instant::now).elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_shared_after_a_time_slice_or_several_short_yields_in_a_row() {
        let settings = Settings { test_sleeps: false, yields: None, ..Settings::default() };
        let policy = WaitPolicy::new(2, 2, None, &settings);
        let [alone, short, slice] = [500, 2000, 3_000_000].map(Duration::from_nanos);
        let mut sharing = Sharing::default();
        let mut note = |took| (sharing.note(took), sharing.awake(&policy));
        assert_eq!(note(alone), (false, AWAKE_ON_OWN_CORE));
        assert_eq!([(); 2].map(|()| note(short)), [(true, AWAKE_ON_OWN_CORE); 2]);
        assert_eq!(note(short), (true, Duration::ZERO));
        assert_eq!(note(alone), (false, AWAKE_ON_OWN_CORE));
        assert_eq!(note(slice), (true, Duration::ZERO));
        let crowded = WaitPolicy::new(3, 2, None, &settings);
        assert_eq!(Sharing::default().awake(&crowded), Duration::ZERO, "PEs outnumber the cores");
    }

    #[test]
    fn some_tests_in_vain_yield_a_core_that_pes_share() {
        let settings = Settings::default();
        let own = WaitPolicy::new(2, 2, None, &settings);
        let shared = [WaitPolicy::new(3, 2, None, &settings), own.crowded(&settings)];
        let yields = |policy: &WaitPolicy| {
            let tests = VainTests::default();
            (0..100).filter(|_| tests.yields_after(policy)).count()
        };
        assert_eq!((yields(&own), shared.each_ref().map(yields)), (0, [10, 10]));
    }

    #[test]
    fn where_nodes_share_a_machine_a_pe_polls_as_often_as_where_its_own_node_is_crowded() {
        let of = |spins| Settings { spins, ..Settings::default() };
        let spins = |settings: &Settings| WaitPolicy::new(2, 2, None, settings).crowded(settings).spins;
        assert_eq!(spins(&of(None)), WaitPolicy::new(3, 2, None, &of(None)).spins);
        assert_eq!(spins(&of(Some(500))), 500, "what is set goes before");
    }
}
