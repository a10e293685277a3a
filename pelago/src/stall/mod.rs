//! Waits that last: what every PE waits for, said when one has waited long, and the end of a job in which no
//! PE can go on.
//!
//! A thread that waits longer than a moment enters the *record* of its PE (`record.rs`): what it waits for,
//! and that it goes on looking. The lowest PE that has waited for `PELAGO_STALL_REPORT` reads the records of
//! all, twice, and `judge.rs` decides. If every thread of every PE waits and nothing has changed, the job
//! ends. In every other case what each PE does is said once, and PEs that compute, are stopped by a signal or
//! sit in a debugger are named. With checks on (`PELAGO_CHECK`) the looks begin at once, and collective calls
//! that cannot match end the job.
//!
//! Invariant: nothing here runs before a wait has spun and yielded; a wait that ends leaves no trace in the
//! record. Over the simulated network, whose time is virtual and which finds jobs that hang by itself, all of
//! it is off.

mod call;
mod gather;
mod judge;
mod record;
mod threads;

pub(crate) use call::{Labelled, compared, name_calls_by};
pub(crate) use record::RECORD_WORDS;
pub(crate) use threads::{Resting, before_job, join_job, others_are_bystanders};

use self::gather::Looker;
use self::record::{Need, Snapshot};
use crate::Pe;
use crate::barrier::ALL_PES;
use crate::wait::Awaited;
use crate::world::World;
use pelago_boot::Settings;
use pelago_fabric::sync::{AtomicBool, AtomicU64, Ordering};
use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Between two looks at all PEs: at least, and at most.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
const INTERVAL_MAX: Duration = Duration::from_secs(1);
/// The same at least where calls are checked.
const INTERVAL_MIN_CHECKED: Duration = Duration::from_millis(8);
/// How often a record is brought up to date between two looks.
const PULSES: u32 = 8;

/// The long waits of a world, and its looks at other PEs.
pub(crate) struct Stall {
    is_on: bool,
    pids: Vec<Option<u32>>,
    limit: Option<Duration>,
    is_checked: bool,
    waits: Mutex<Waits>,
    looker: Mutex<Looker>,
    process: threads::Process,
    /// Messages that have arrived.
    messages: AtomicU64,
    /// This PE has said what each PE waits for.
    has_said: AtomicBool,
    /// A get of another PE's record is under way.
    is_asking: AtomicBool,
    /// The target of gets of other PEs' records. It lives as long as the world, as the fabric may write it
    /// at any time.
    answer: Box<[AtomicU64; RECORD_WORDS]>,
}

/// The long waits of the threads of this PE.
#[derive(Default)]
struct Waits {
    entries: Vec<Arc<Entry>>,
    rounds: u64,
}

/// A long wait of a thread.
struct Entry {
    since: Instant,
    looks: AtomicU64,
    /// Those at the last round.
    counted: AtomicU64,
    told: Mutex<Told>,
}

/// The words of the thread about it.
struct Told {
    text: String,
    need: Need,
    works: bool,
}

thread_local! {
    /// The PE that the wait of this thread needs next, where its `Awaited` does not know it.
    static NEEDED: Cell<Option<Pe>> = const { Cell::new(None) };
}

/// A wait of this thread that learns at each look which PE it needs next.
pub(crate) struct Needed(Option<Pe>);

impl Needed {
    pub(crate) fn begin() -> Needed {
        Needed(NEEDED.take())
    }

    /// Says which PE it is now, if it is known.
    pub(crate) fn note(&self, pe: Option<Pe>) {
        NEEDED.set(pe);
    }
}

impl Drop for Needed {
    fn drop(&mut self) {
        NEEDED.set(self.0);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The namespace in which the numbers of processes hold that this one sees.
fn namespace() -> u64 {
    static NAMESPACE: OnceLock<u64> = OnceLock::new();
    *NAMESPACE.get_or_init(|| {
        let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let digits: String = link.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    })
}

impl Stall {
    /// For a world that this thread joins. `is_on` unless time is virtual. `pids` are the processes of the
    /// PEs, where their cards told them.
    pub(crate) fn new(is_on: bool, pids: Vec<Option<u32>>, settings: &Settings) -> Stall {
        Stall {
            is_on,
            pids,
            limit: settings.stall_report,
            is_checked: settings.check,
            waits: Mutex::default(),
            looker: Mutex::new(Looker::new()),
            process: threads::Process::new(),
            messages: AtomicU64::new(0),
            has_said: AtomicBool::new(false),
            is_asking: AtomicBool::new(false),
            answer: Box::new(std::array::from_fn(|_| AtomicU64::new(0))),
        }
    }

    /// A message has arrived.
    pub(crate) fn note_message(&self) {
        self.messages.fetch_add(1, Ordering::Relaxed);
    }

    fn limit(&self) -> Option<Duration> {
        self.limit
    }

    fn is_asking(&self, is_asking: bool) {
        self.is_asking.store(is_asking, Ordering::Relaxed);
    }

    fn answer(&self) -> &[AtomicU64; RECORD_WORDS] {
        &self.answer
    }

    /// How long after a look the next one follows, in a wait of this age.
    fn interval(&self, waited: Duration) -> Duration {
        match self.is_checked {
            true => (waited / 4).clamp(INTERVAL_MIN_CHECKED, INTERVAL_MAX),
            false => self.limit.map_or(INTERVAL_MAX, |limit| (limit / 2).clamp(INTERVAL_MIN, INTERVAL_MAX)),
        }
    }

    /// The right to look at all PEs, unless another thread does.
    fn looker(&self) -> Option<MutexGuard<'_, Looker>> {
        match self.looker.try_lock() {
            Ok(looker) => Some(looker),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A wait from the time on when it neither spins nor yields any more.
pub(crate) struct Long<'w> {
    world: &'w World,
    awaited: Awaited,
    since: Instant,
    next_at: Instant,
    registered: Option<(Arc<Entry>, threads::Waiting)>,
}

impl<'w> Long<'w> {
    pub(crate) fn new(world: &'w World, awaited: Awaited, since: Instant) -> Long<'w> {
        let next_at = since + world.stall.interval(Duration::ZERO) / PULSES;
        Long { world, awaited, since, next_at, registered: None }
    }

    /// To be called before each look for what is awaited, or before some of them.
    pub(crate) fn tick(&mut self) {
        if !self.world.stall.is_on {
            return;
        }
        if let Some((entry, _)) = &self.registered {
            entry.looks.fetch_add(1, Ordering::Relaxed);
        }
        let now = Instant::now();
        if now >= self.next_at {
            self.next_at = now + self.world.stall.interval(now - self.since) / PULSES;
            self.act(now);
        }
    }

    /// Whether this is no wait of a job that forms or ends, or of a thread that accompanies another.
    fn works(&self) -> bool {
        !matches!(self.awaited, Awaited::Join | Awaited::Leave | Awaited::EndOfWork)
    }

    fn since(&self) -> Instant {
        self.since
    }

    /// Whether the wait is long enough for a look at all PEs.
    fn is_due(&self, now: Instant) -> bool {
        let Some((entry, _)) = &self.registered else { return false };
        self.world.stall.is_entry_due(entry, now)
    }

    #[cold]
    #[inline(never)]
    fn act(&mut self, now: Instant) {
        let told = Told {
            text: self.world.describe(self.awaited) + &call::name(),
            need: self.need(),
            works: self.works(),
        };
        match &self.registered {
            Some((entry, _)) => *locked(&entry.told) = told,
            None => {
                // A wait inside a wait is part of that one.
                let Some(waiting) = threads::enter() else { return };
                let (looks, counted) = (AtomicU64::new(0), AtomicU64::new(0));
                let entry = Arc::new(Entry { since: self.since, looks, counted, told: Mutex::new(told) });
                locked(&self.world.stall.waits).entries.push(Arc::clone(&entry));
                self.registered = Some((entry, waiting));
            }
        }
        if !self.world.stall.is_asking.load(Ordering::Relaxed) {
            self.world.publish_waits(now);
        }
        if self.world.is_asked_for_waits() {
            self.world.tell_waits();
        }
        self.world.look_at_all(self, now);
    }

    /// The event without which the wait cannot end. Of a collective operation it is known as long as its
    /// calls are compared: each member then waits in the call itself. So it is in a barrier of all PEs, whose
    /// team has no other operations.
    fn need(&self) -> Need {
        match self.awaited {
            Awaited::Barrier { pe: Some(pe), .. } => Need::Of(pe),
            Awaited::Barrier { pe: None, round } => Need::All { round },
            Awaited::Collective { operation, pe } if call::is_compared() || operation == ALL_PES => {
                pe.or_else(|| NEEDED.get()).map_or(Need::Unknown, Need::Of)
            }
            _ => Need::Unknown,
        }
    }
}

impl Drop for Long<'_> {
    fn drop(&mut self) {
        let Some((entry, waiting)) = self.registered.take() else { return };
        locked(&self.world.stall.waits).entries.retain(|other| !Arc::ptr_eq(other, &entry));
        drop(waiting);
        self.world.publish_waits(Instant::now());
    }
}

impl Stall {
    fn is_entry_due(&self, entry: &Entry, now: Instant) -> bool {
        let waited = now.saturating_duration_since(entry.since);
        let is_late = self.limit.is_some_and(|limit| waited >= limit);
        is_late || self.is_checked && locked(&entry.told).need != Need::Unknown
    }
}

impl World {
    /// Lets the others of this node know the process of this PE.
    pub(crate) fn tell_process(&self) {
        let [pid, space] = &*self.memory.near_block(self.my_pe()).process;
        space.store(namespace(), Ordering::Relaxed);
        pid.store(std::process::id().into(), Ordering::Relaxed);
    }

    /// The process of a PE as the system numbers it, if it has that number in the namespace of this process.
    pub(crate) fn pid_of(&self, pe: Pe) -> Option<u32> {
        let Some(block) = self.memory.block(pe) else { return self.stall.pids.get(pe).copied().flatten() };
        let [pid, space] = &*block.process;
        let pid = u32::try_from(pid.load(Ordering::Relaxed)).ok().filter(|&pid| pid != 0)?;
        (space.load(Ordering::Relaxed) == namespace()).then_some(pid)
    }

    /// Brings the record of this PE up to date.
    fn publish_waits(&self, now: Instant) {
        let stall = &self.stall;
        let mut waits = locked(&stall.waits);
        let Waits { entries, rounds } = &mut *waits;
        let (is_idle, epoch) = if entries.is_empty() { (false, 0) } else { stall.process.is_idle() };
        let has_looked =
            |entry: &Arc<Entry>| entry.looks.load(Ordering::Relaxed) != entry.counted.load(Ordering::Relaxed);
        if entries.iter().all(has_looked) {
            *rounds += 1;
            entries.iter().for_each(|entry| {
                entry.counted.store(entry.looks.load(Ordering::Relaxed), Ordering::Relaxed);
            });
        }
        let (mut texts, mut needs, mut works) = (Vec::new(), Vec::new(), false);
        for entry in entries.iter() {
            let told = locked(&entry.told);
            texts.push(told.text.clone());
            needs.push(told.need);
            works |= told.works;
        }
        let waited = entries.iter().map(|entry| now.saturating_duration_since(entry.since)).min();
        let snapshot = Snapshot {
            is_idle,
            is_settled: !entries.is_empty() && self.is_settled(),
            is_due: entries.iter().any(|entry| stall.is_entry_due(entry, now)),
            works,
            waits: entries.len() as u64,
            epoch,
            rounds: *rounds,
            activity: self.activity(),
            barriers: self.barrier.next_round() - 1,
            waited: waited.unwrap_or_default(),
            has_said: stall.has_said.load(Ordering::Relaxed),
            needs,
            text: texts.join("; and for "),
        };
        snapshot.write(self.memory.record(self.my_pe()));
    }

    /// Whether nothing that this PE has started, or that was sent to it, is under way. Active messages over
    /// the net may be where nobody counts them.
    fn is_settled(&self) -> bool {
        match &self.net {
            None => !self.am.is_open() || self.am.are_rings_empty(),
            Some(net) => {
                !net.is_shut()
                    && !self.am.is_open()
                    && self.has_sent_all()
                    && net.is_quiet()
                    && self.are_contexts_quiet()
            }
        }
    }

    /// A number that changes when something arrives here or moves.
    fn activity(&self) -> u64 {
        let received = if self.am.is_open() { self.am.received_cells() } else { 0 };
        self.stall.messages.load(Ordering::Relaxed) + self.collectives.moves() + received
    }
}
