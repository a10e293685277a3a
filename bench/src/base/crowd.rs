//! A crowd: PEs, or threads of one PE, that run the same operation at the same time. Invariant: operations
//! are counted only while all members are running. A member that arrives early works uncounted until all have
//! arrived, and a member that is done continues until all are done. A running member may still be without a
//! core; so each reports the time of its count, and counts that do not overlap are repeated.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use pelago::prelude::*;
use rustix::time::{ClockId, clock_gettime};

use super::ensemble::Leader;

/// The PE that has the synchronisation words of the members.
pub const HOST: Pe = 0;
/// The index of the number of members that have arrived, in all meetings so far.
const COME: usize = 0;
/// The index of the number of members that are done, on a separate cache line.
const DONE: usize = 16;
/// The minimum time of a batch, so that reading the clock after it is negligible.
const BATCH: Duration = Duration::from_micros(5);
/// The maximum number of operations of a batch.
const BATCH_COUNT_MAX: u64 = 1 << 20;
/// The time limit of waits for other members.
const LIMIT: Duration = Duration::from_secs(60);
/// The words of a member's report: operations, and start and length of the count in nanoseconds.
const REPORT_WORDS: usize = 3;
/// The maximum number of repetitions until counts overlap; on busy cores they may not.
const TRIES: usize = 8;

/// The synchronisation words of the members.
pub struct Crowd<'w> {
    words: Symmetric<'w, u64>,
}

/// The work of one member, and its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub operations: u64,
    /// The start of the count, by the node's clock.
    pub start_ns: u64,
    pub elapsed_ns: u64,
}

impl Share {
    /// The nanoseconds per operation.
    pub fn latency_ns(self) -> f64 {
        self.elapsed_ns as f64 / self.operations as f64
    }

    /// The operations per second.
    pub fn rate(self) -> f64 {
        self.operations as f64 * 1e9 / self.elapsed_ns as f64
    }

    fn end_ns(self) -> u64 {
        self.start_ns + self.elapsed_ns
    }
}

/// The operations per second of all members, from the first start to the last end.
pub fn rate_of_all(shares: &[Share]) -> f64 {
    let first_ns = shares.iter().map(|share| share.start_ns).min().unwrap_or(0);
    let last_ns = shares.iter().map(|share| share.end_ns()).max().unwrap_or(0);
    let operations: u64 = shares.iter().map(|share| share.operations).sum();
    operations as f64 * 1e9 / (last_ns - first_ns) as f64
}

/// The ratio of the rates of the slowest and the fastest member.
pub fn fairness(shares: &[Share]) -> f64 {
    let rates = || shares.iter().map(|share| share.rate());
    rates().fold(f64::INFINITY, f64::min) / rates().fold(0.0, f64::max)
}

/// Whether all counts overlap for at least half of the shortest one.
fn overlap(shares: &[Share]) -> bool {
    let last_start_ns = shares.iter().map(|share| share.start_ns).max().unwrap_or(0);
    let first_end_ns = shares.iter().map(|share| share.end_ns()).min().unwrap_or(0);
    let least_ns = shares.iter().map(|share| share.elapsed_ns).min().unwrap_or(0);
    first_end_ns.saturating_sub(last_start_ns) * 2 >= least_ns
}

/// Repeats the count until the counts of the members overlap, or the maximum number of tries is reached.
///
/// # Errors
/// Errors of `count`.
pub fn together(mut count: impl FnMut() -> Result<Vec<Share>>) -> Result<Vec<Share>> {
    let mut shares = count()?;
    for _ in 1..TRIES {
        if overlap(&shares) {
            break;
        }
        shares = count()?;
    }
    Ok(shares)
}

impl<'w> Crowd<'w> {
    /// Collective.
    ///
    /// # Errors
    /// If the symmetric heap has no room for a few words.
    pub fn new(world: &'w World) -> pelago::Result<Self> {
        Ok(Crowd { words: world.alloc_zeroed(2 * DONE)? })
    }

    /// Runs one member: `batch` runs the given number of operations. The operations within `window` are
    /// counted, and passed to `report` before this member reports that it is done. All have arrived when
    /// `members` have arrived in all meetings so far, including this one.
    ///
    /// # Errors
    /// Errors of `batch` and `report`.
    pub fn work(
        &self,
        members: u64,
        window: Duration,
        mut batch: impl FnMut(u64) -> pelago::Result<()>,
        report: impl FnOnce(Share) -> pelago::Result<()>,
    ) -> pelago::Result<()> {
        self.words.add(HOST, COME, 1)?;
        let mut batch_count = 1;
        let since = Instant::now();
        loop {
            // The minimum of two, so that an interruption is not mistaken for a long batch.
            let took = self.time(&mut batch, batch_count)?.min(self.time(&mut batch, batch_count)?);
            if took < BATCH.min(window) && batch_count < BATCH_COUNT_MAX {
                batch_count *= 2;
            } else if self.have_all(COME, members, since)? {
                break;
            } else {
                // The count has not begun, and a member that has not arrived may need this core.
                thread::yield_now();
            }
        }
        report(self.count(&mut batch, batch_count, window)?)?;
        self.words.world().fence();
        self.words.add(HOST, DONE, 1)?;
        let since = Instant::now();
        while !self.have_all(DONE, members, since)? {
            batch(batch_count)?;
        }
        Ok(())
    }

    /// On the host, which is not a member: waits until all members are done, in all meetings so far.
    pub fn await_all(&self, members: u64) {
        self.words.local().wait_until(DONE, |done| done >= members);
    }

    fn have_all(&self, word: usize, members: u64, since: Instant) -> pelago::Result<bool> {
        let count = self.words.atomic_fetch(HOST, word)?;
        let me = self.words.world().my_pe();
        assert!(
            count >= members || since.elapsed() < LIMIT,
            "PE {me} has waited {LIMIT:?} for {members} members of a crowd, and {count} have come"
        );
        Ok(count >= members)
    }

    /// Counts the operations within the window.
    fn count(
        &self,
        batch: &mut impl FnMut(u64) -> pelago::Result<()>,
        batch_count: u64,
        window: Duration,
    ) -> pelago::Result<Share> {
        let (start, mut operations) = (self.now(), 0);
        loop {
            batch(batch_count)?;
            operations += batch_count;
            let elapsed = self.now() - start;
            if elapsed >= window {
                let [start_ns, elapsed_ns] = [start, elapsed].map(|time| time.as_nanos() as u64);
                return Ok(Share { operations, start_ns, elapsed_ns });
            }
        }
    }

    fn time(
        &self,
        batch: &mut impl FnMut(u64) -> pelago::Result<()>,
        count: u64,
    ) -> pelago::Result<Duration> {
        let start = self.now();
        batch(count)?;
        Ok(self.now() - start)
    }

    /// The time of a clock that all members share: virtual over a simulated network, else the node's.
    fn now(&self) -> Duration {
        let world = self.words.world();
        if world.is_simulated() { world.wtime() } else { time_of(ClockId::Monotonic) }
    }
}

/// Reads a clock of the system: `Monotonic` is the same for all processes of a node, `ThreadCPUTime` is the
/// CPU time of the calling thread.
pub fn time_of(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    // The system guarantees the ranges of both values.
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Meetings of PEs that report their shares to PE 0, which leads. Invariant: all members of a meeting, and PE
/// 0, take part in all meetings of the same value, in the same order.
pub struct Meetings<'w> {
    members: usize,
    crowd: Crowd<'w>,
    reports: Symmetric<'w, u64>,
    held: Cell<u64>,
}

impl<'w> Meetings<'w> {
    /// Collective.
    ///
    /// # Errors
    /// If the symmetric heap has no room for a few words.
    pub fn new(world: &'w World, members: usize) -> pelago::Result<Self> {
        let reports = world.alloc_zeroed(members * REPORT_WORDS)?;
        Ok(Meetings { members, crowd: Crowd::new(world)?, reports, held: Cell::new(0) })
    }

    /// Takes part in the next meeting as this member: see [`Crowd::work`].
    ///
    /// # Errors
    /// Errors of `batch`.
    pub fn work(
        &self,
        member: usize,
        window: Duration,
        batch: impl FnMut(u64) -> pelago::Result<()>,
    ) -> pelago::Result<()> {
        self.crowd.work(self.members_so_far(), window, batch, |share: Share| {
            let report = [share.operations, share.start_ns, share.elapsed_ns];
            self.reports.put(HOST, member * REPORT_WORDS, &report)
        })
    }

    /// PE 0 waits, and makes progress for the others, until all members of the next meeting are done.
    pub fn attend(&self) {
        self.crowd.await_all(self.members_so_far());
    }

    /// On PE 0: runs the part of this number as a meeting of this length, and returns the shares of the
    /// members.
    ///
    /// # Errors
    /// Errors of the part.
    pub fn sample(
        &self,
        leader: &mut Leader<'_, '_, '_>,
        part: usize,
        window: Duration,
    ) -> Result<Vec<Share>> {
        together(|| {
            leader.play(part, window.as_micros() as u64)?;
            Ok(self.shares())
        })
    }

    fn shares(&self) -> Vec<Share> {
        let share =
            |report: &[u64]| Share { operations: report[0], start_ns: report[1], elapsed_ns: report[2] };
        self.reports.local().to_vec().chunks_exact(REPORT_WORDS).map(share).collect()
    }

    /// The number of members of all meetings, including the next one.
    fn members_so_far(&self) -> u64 {
        self.held.set(self.held.get() + 1);
        self.held.get() * self.members as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_on() {
        for clock in [ClockId::Monotonic, ClockId::ThreadCPUTime] {
            let start = time_of(clock);
            while time_of(clock) <= start {}
        }
    }

    /// After its count, each member checks that all have arrived and none has left.
    #[test]
    fn only_what_all_do_at_the_same_time_is_counted() {
        const MEMBERS: u64 = 4;
        const MEETINGS: u64 = 3;
        let shares = spmd(MEMBERS as usize, |world| {
            let crowd = Crowd::new(world).unwrap();
            let mut shares = Vec::new();
            for meeting in 1..=MEETINGS {
                let members = MEMBERS * meeting;
                let (mut done, mut reported) = (0, None);
                let batch = |count: u64| {
                    (0..count).for_each(|_| done = std::hint::black_box(done + 1));
                    Ok(())
                };
                let report = |share| {
                    assert_eq!(crowd.words.g(HOST, COME)?, members, "all have come before one is done");
                    assert!(crowd.words.g(HOST, DONE)? < members, "this member is not done yet");
                    reported = Some(share);
                    Ok(())
                };
                crowd.work(members, Duration::from_micros(20), batch, report).unwrap();
                assert!(crowd.words.g(HOST, DONE).unwrap() >= members, "nobody goes before all are done");
                shares.push((reported.unwrap(), done));
            }
            shares
        });
        for (share, done) in shares.unwrap().into_iter().flatten() {
            assert!(0 < share.operations && share.operations < done, "{share:?} of {done}");
        }
    }

    fn share(operations: u64, start_ns: u64, elapsed_ns: u64) -> Share {
        Share { operations, start_ns, elapsed_ns }
    }

    #[test]
    fn the_rate_is_that_of_all_the_time() {
        assert_eq!(share(50, 7, 10_000).latency_ns(), 200.0);
        assert_eq!(rate_of_all(&[share(50, 0, 1000)]), 5e7);
        assert_eq!(rate_of_all(&[share(50, 0, 1000), share(50, 1000, 1000)]), 5e7);
        assert_eq!(rate_of_all(&[share(50, 20, 1000), share(50, 20, 1000)]), 1e8);
    }

    #[test]
    fn fairness_is_that_of_the_slowest() {
        assert_eq!(fairness(&[share(50, 0, 1000)]), 1.0);
        assert_eq!(fairness(&[share(80, 0, 1000), share(40, 5, 2000), share(60, 3, 1000)]), 0.25);
    }

    #[test]
    fn counts_that_do_not_overlap_are_made_again() {
        let apart = [share(1, 0, 100), share(1, 51, 100)];
        assert!(!overlap(&apart) && overlap(&[share(1, 0, 100), share(1, 50, 100)]) && overlap(&apart[..1]));
        let mut tries = 0;
        let shares = together(|| {
            tries += 1;
            Ok(if tries < 3 { apart.to_vec() } else { vec![apart[0]] })
        });
        assert_eq!((shares.unwrap(), tries), (vec![apart[0]], 3));
        tries = 0;
        let shares = together(|| {
            tries += 1;
            Ok(apart.to_vec())
        });
        assert_eq!((shares.unwrap(), tries), (apart.to_vec(), TRIES));
    }
}
