//! Long waits: a thread that neither spins nor yields any more enters the record of its PE, and checks the
//! other PEs from time to time. See [`stall`](super::stall).

use super::engine::Engine;
use super::stall::record::{Need, Snapshot};
use super::stall::{Entry, NEEDED, PULSES, Told, Waits, threads};
use crate::base::awaited::{ALL_PES, Awaited};
use crate::base::label::{is_compared, name};
use crate::base::locked::locked;
use pelago_fabric::sync::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The time between two looks while a record is on its way.
const BETWEEN_RECORDS: Duration = Duration::from_millis(1);

/// A wait, from the time when it neither spins nor yields any more.
pub struct Long<'w> {
    engine: &'w Engine,
    awaited: Awaited,
    since: Instant,
    next_at: Instant,
    registered: Option<(Arc<Entry>, threads::Waiting)>,
}

impl<'w> Long<'w> {
    pub fn new(engine: &'w Engine, awaited: Awaited, since: Instant) -> Long<'w> {
        let next_at = since + engine.stall.interval(Duration::ZERO) / PULSES;
        Long { engine, awaited, since, next_at, registered: None }
    }

    /// To be called before each check of the condition, or before some of them.
    #[track_caller]
    pub fn tick(&mut self) {
        if !self.engine.stall.is_on {
            return;
        }
        if let Some((entry, _)) = &self.registered {
            entry.looks.fetch_add(1, Ordering::Relaxed);
        }
        let now = Instant::now();
        if now >= self.next_at {
            self.next_at = now + self.engine.stall.interval(now - self.since) / PULSES;
            self.act(now);
        }
    }

    /// Whether this is a wait of a running job, as opposed to a job that forms or ends, and not of a progress
    /// thread.
    pub(super) fn works(&self) -> bool {
        !matches!(self.awaited, Awaited::Join | Awaited::Leave | Awaited::EndOfWork)
    }

    pub(super) fn since(&self) -> Instant {
        self.since
    }

    /// Whether the wait is long enough to collect the records of all PEs.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let Some((entry, _)) = &self.registered else { return false };
        self.engine.stall.is_entry_due(entry, now)
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn act(&mut self, now: Instant) {
        let told = Told {
            text: self.engine.describe(self.awaited) + &name(),
            need: self.need(),
            works: self.works(),
        };
        match &self.registered {
            Some((entry, _)) => *locked(&entry.told) = told,
            None => {
                // A wait inside another wait belongs to the outer one.
                let Some(waiting) = threads::enter() else { return };
                let (looks, counted) = (AtomicU64::new(0), AtomicU64::new(0));
                let entry = Arc::new(Entry { since: self.since, looks, counted, told: Mutex::new(told) });
                locked(&self.engine.stall.waits).entries.push(Arc::clone(&entry));
                self.registered = Some((entry, waiting));
            }
        }
        if !self.engine.stall.is_asking.load(Ordering::Relaxed) {
            self.engine.publish_waits(now);
        }
        if self.engine.is_asked_for_waits() {
            self.engine.tell_waits();
        }
        if self.engine.look_at_all(self, now) {
            // The records come one at a time.
            self.next_at = now + BETWEEN_RECORDS;
        }
    }

    /// The event without which the wait cannot end. For a collective operation it is known while its calls
    /// are compared, because each member then waits in the call itself. The same holds for a barrier of all
    /// PEs, whose team has no other operations.
    fn need(&self) -> Need {
        match self.awaited {
            Awaited::Barrier { pe: Some(pe), .. } => Need::Of(pe),
            Awaited::Barrier { pe: None, round } => Need::All { round },
            Awaited::Collective { operation, pe } if is_compared() || operation == ALL_PES => {
                pe.or_else(|| NEEDED.get()).map_or(Need::Unknown, Need::Of)
            }
            _ => Need::Unknown,
        }
    }
}

impl Drop for Long<'_> {
    fn drop(&mut self) {
        let Some((entry, waiting)) = self.registered.take() else { return };
        locked(&self.engine.stall.waits).entries.retain(|other| !Arc::ptr_eq(other, &entry));
        drop(waiting);
        self.engine.publish_waits(Instant::now());
    }
}

impl Engine {
    /// Updates the record of this PE.
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

    /// Whether the launcher requests a report of the waits of this process's PEs.
    pub fn is_asked_for_waits(&self) -> bool {
        self.membership().as_ref().is_some_and(|of| of.job.is_asked())
    }

    /// Reports the waits of this process's PEs to the launcher.
    pub fn tell_waits(&self) {
        if let Some(of) = &*self.membership() {
            let first = of.job.first_pe();
            let pes = first..first + of.job.pes_per_process();
            of.job.tell_waits(&self.waits_of(pes.clone()), &self.waited_of(pes));
        }
    }

    /// Whether no operation of this PE is outstanding, and no message to it is in flight. Messages
    /// over the network may be in flight without being counted.
    fn is_settled(&self) -> bool {
        match &self.net {
            None => self.upper.get().is_none_or(|upper| upper.are_messages_settled()),
            Some(net) => {
                !net.is_shut()
                    && !self.has_open_handlers()
                    && !self.uses_messages()
                    && self.outbox.is_empty()
                    && net.is_quiet()
                    && self.contexts.are_quiet()
            }
        }
    }

    /// A number that changes when a message arrives here or an operation makes progress.
    pub(super) fn activity(&self) -> u64 {
        self.messages() + self.upper.get().map_or(0, |upper| upper.activity())
    }
}
