//! The cores that the PEs of a machine run on: each PE has a core of its own if there are as many cores as
//! PEs of the job. Otherwise the system places them.
//!
//! The system often starts two PEs on one core while another core is idle. The two PEs then put each other to
//! sleep in turn. Both are never runnable at the same time, so the system sees no reason to move one of them,
//! and the job stays slow until its end. So each PE starts on the core that has its number within the
//! machine. A PE that waits and finds its core shared checks whether another PE of its node runs on it, and
//! moves if so.
//!
//! Several nodes may be on one machine: simulated nodes, and network namespaces. If their PEs outnumber the
//! cores, the PEs of a node share cores, and different nodes have different ones: PEs that wake each other
//! run in turn anyway, and the leaders of two nodes run at the same time. A PE that waits and finds itself
//! elsewhere goes back from time to time.
//!
//! Invariant: the affinity mask of a thread is the same before and after. A move narrows the mask for a
//! moment, to cores that are in it. So a mask that the user or the launcher has set is obeyed, and the system
//! may still move the PE at any time: concurrent jobs do not stay on the same cores.

use super::Job;
use crate::Pe;
use pelago_boot::cpus;
use pelago_fabric::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};
use std::time::{Duration, Instant};

/// The shortest time between two searches for PEs on the same core, and the longest. It doubles with each
/// search that finds none.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(256);

/// The state of a PE concerning the core that it runs on.
#[derive(Debug, Default)]
pub struct Affinity {
    /// The system's number of the thread that has joined. 0 if the PEs outnumber the cores, or if the system
    /// is to place them.
    pub thread: AtomicU64,
    /// The PEs of the job that share a core of this machine; 0 if that was not found out.
    pes_per_core: AtomicUsize,
    /// The core that this PE returns to, and 1; 0 if there is none.
    home: AtomicUsize,
    /// The time of the next permitted search, in nanoseconds since the world was joined, and the pause after
    /// it.
    next_nanoseconds: AtomicU64,
    pause_nanoseconds: AtomicU64,
    /// The number of further waits that treat the core as shared with other threads.
    shared_waits: AtomicU32,
    /// The time until which this PE blocks instead of yielding, in nanoseconds since the world was joined.
    blocks_until_nanoseconds: AtomicU64,
}

/// The number of waits that rely on the last finding that the core is shared.
const SHARED_WAITS: u32 = 64;

/// A yield that takes longer has given the core to a process that computes, for a time slice.
const LONG_YIELD: Duration = Duration::from_micros(600);
/// The time for which a PE blocks instead of yielding after a long yield, as a multiple of its duration.
const BLOCKS_AFTER_LONG_YIELD: u32 = 50;

/// How a wait treats the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    /// Only this PE runs on the core.
    Own,
    /// Other threads run on the core as well.
    Shared,
    /// The same, but it is time to check again.
    Doubtful,
}

impl Affinity {
    /// How the next wait treats the core.
    pub fn core(&self) -> Core {
        match self.shared_waits.load(Ordering::Relaxed) {
            // Another PE that runs on this core may sleep now, and need it in the next moment.
            0 if self.pes_per_core() <= 1 => Core::Own,
            0 | 1 => Core::Doubtful,
            waits => {
                self.shared_waits.store(waits - 1, Ordering::Relaxed);
                Core::Shared
            }
        }
    }

    /// Whether this PE is to block instead of yielding, because a yield has recently cost it a time slice.
    /// `joined_at` is the time at which the world was joined.
    pub fn blocks(&self, joined_at: Instant) -> bool {
        let until = self.blocks_until_nanoseconds.load(Ordering::Relaxed);
        until != 0 && (joined_at.elapsed().as_nanos() as u64) < until
    }

    /// Records a yield that took `took`. It is for a PE that is alone on its node, which no other PE there
    /// waits for.
    pub fn note_yield(&self, joined_at: Instant, took: Duration) {
        let until = match took > LONG_YIELD {
            true => (joined_at.elapsed() + BLOCKS_AFTER_LONG_YIELD * took).as_nanos() as u64,
            false => 0,
        };
        self.blocks_until_nanoseconds.store(until, Ordering::Relaxed);
    }

    /// Records whether another thread ran on the core after this PE yielded it.
    pub fn note_shared(&self, is_shared: bool) {
        let waits = if is_shared { SHARED_WAITS } else { self.shared_waits.load(Ordering::Relaxed) / 2 };
        self.shared_waits.store(waits, Ordering::Relaxed);
    }
}

/// The core that this thread runs on, from the C library: rustix looks for the vDSO, which valgrind hides,
/// and crashes there.
fn current_core() -> Option<usize> {
    // SAFETY: the function has no preconditions.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

impl Affinity {
    /// Moves this thread to the core that has the PE's number within the machine, if the machine has a core
    /// for each of the job's PEs on it; else to a core of its node, if there are several nodes here.
    pub fn spread(&self, job: &Job, is_wanted: bool) {
        let (me, cpus) = (job.my_pe(), cpus());
        let is_here =
            |&pe: &Pe| job.memory.is_mapped(pe) || job.pid_of(pe).is_some_and(|pid| may_run_on(pid, &cpus));
        let mut here: Vec<Pe> = (0..job.n_pes()).filter(is_here).collect();
        here.sort_by_key(|&pe| job.node(pe));
        let slot = here.iter().position(|&pe| pe == me).expect("a PE is on its own machine");
        self.pes_per_core.store(here.len().div_ceil(job.cores()), Ordering::Relaxed);
        let are_too_many = here.len() > job.cores();
        let are_of_one_node = here.iter().all(|&pe| job.memory.is_mapped(pe));
        if !is_wanted || here.len() < 2 || are_too_many && are_of_one_node {
            return;
        }
        job.memory.near_block(me).thread.store(own_thread(), Ordering::Relaxed);
        self.thread.store(own_thread(), Ordering::Relaxed);
        let core = match are_too_many {
            false => cpus[slot % cpus.len()],
            true => cpus[place_of_node(slot, here.len(), cpus.len())],
        };
        self.home.store(if are_too_many { core + 1 } else { 0 }, Ordering::Relaxed);
        move_to(core, &cpus);
    }

    /// The PEs of the job that share a core of this machine; 0 if that was not found out.
    pub fn pes_per_core(&self) -> usize {
        self.pes_per_core.load(Ordering::Relaxed)
    }

    /// The core that this PE returns to.
    fn home(&self) -> Option<usize> {
        self.home.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Moves this thread to another core, if it finds another PE of its node on this one; or back to its own
    /// core, if it has one to return to. Called by waits whose core was taken by another thread meanwhile.
    #[cold]
    #[inline(never)]
    pub fn leave_shared_core(&self, job: &Job) {
        let now = job.joined_at.elapsed().as_nanos() as u64;
        if now < self.next_nanoseconds.load(Ordering::Relaxed) {
            return;
        }
        let thread = self.thread.load(Ordering::Relaxed);
        if thread == 0 || thread != own_thread() {
            return;
        }
        let has_moved = match self.home() {
            None => job.find_another_core().is_some(),
            Some(home) => {
                if current_core() != Some(home) {
                    move_to(home, &cpus());
                }
                false
            }
        };
        let doubled = 2 * self.pause_nanoseconds.load(Ordering::Relaxed);
        let pause = if has_moved { 0 } else { doubled };
        let pause = pause.clamp(PAUSE.as_nanos() as u64, PAUSE_MAX.as_nanos() as u64);
        self.pause_nanoseconds.store(pause, Ordering::Relaxed);
        self.next_nanoseconds.store(now + pause, Ordering::Relaxed);
    }
}

impl Job {
    /// Moves to a core without a PE of this node; `None` if no other PE runs on this core, or no other core
    /// is free.
    fn find_another_core(&self) -> Option<()> {
        let cpus = cpus();
        let others = self.memory.near_pes().filter(|&pe| pe != self.my_pe());
        let taken: Vec<usize> = others.filter_map(|pe| self.core_of(pe)).collect();
        let own = current_core()?;
        let free = another_core(own, &cpus, &taken)?;
        move_to(free, &cpus);
        Some(())
    }

    /// The core on which a PE of this node runs or has run last, if the system reports it.
    pub fn core_of(&self, pe: Pe) -> Option<usize> {
        let (pid, thread) = (self.pid_of(pe)?, self.memory.near_block(pe).thread.load(Ordering::Relaxed));
        let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
        core_in(&stat)
    }
}

/// The core, by its place, of the PE that has number `slot` among `n` PEs in the order of their nodes, which
/// are more than the cores: each node has its part of the cores.
fn place_of_node(slot: usize, n: usize, cores: usize) -> usize {
    slot * cores / n
}

/// Whether a process may run on one of these cores: then its PEs compete for them. Where masks keep nodes
/// apart, it may not, also while one of the processes moves.
fn may_run_on(pid: u32, cpus: &[usize]) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    let is_in = |set: CpuSet| cpus.iter().any(|&cpu| cpu < CpuSet::MAX_CPU && set.is_set(cpu));
    sched_getaffinity(Some(pid)).is_ok_and(is_in)
}

/// A core of `cpus` that is not among those `taken`, if `own` is among these: the first behind `own`.
fn another_core(own: usize, cpus: &[usize], taken: &[usize]) -> Option<usize> {
    if !taken.contains(&own) {
        return None;
    }
    let behind = cpus.iter().position(|&cpu| cpu > own).unwrap_or(0);
    let in_turn = cpus[behind..].iter().chain(&cpus[..behind]);
    in_turn.copied().find(|cpu| *cpu != own && !taken.contains(cpu))
}

/// Moves this thread to a core, and restores its mask.
fn move_to(cpu: usize, cpus: &[usize]) {
    if cpus.len() < 2 || cpus.iter().any(|&cpu| cpu >= CpuSet::MAX_CPU) {
        return;
    }
    let set = |cpus: &[usize]| {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|&cpu| set.set(cpu));
        set
    };
    // If the first call fails, the second changes nothing; it fails only if all these cores are offline.
    if sched_setaffinity(None, &set(&[cpu])).is_ok() {
        let _ = sched_setaffinity(None, &set(cpus));
    }
}

/// The system's number of this thread.
fn own_thread() -> u64 {
    gettid().as_raw_nonzero().get().unsigned_abs().into()
}

/// The core in the text of a thread's `stat` (proc(5), field 39).
fn core_in(stat: &str) -> Option<usize> {
    // The name is in brackets and may have any characters, including brackets.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(36)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_core_is_doubted_after_a_number_of_waits() {
        let affinity = Affinity::default();
        assert_eq!(affinity.core(), Core::Own);
        affinity.note_shared(true);
        let shared = (0..).take_while(|_| affinity.core() == Core::Shared).count();
        assert_eq!((shared, affinity.core()), (SHARED_WAITS as usize - 1, Core::Doubtful));
        affinity.note_shared(false);
        assert_eq!(affinity.core(), Core::Own);
        affinity.pes_per_core.store(2, Ordering::Relaxed);
        assert_eq!(affinity.core(), Core::Doubtful, "PEs outnumber the cores");
    }

    #[test]
    fn a_pe_blocks_for_a_while_after_a_yield_that_cost_a_time_slice() {
        let (affinity, joined_at) = (Affinity::default(), Instant::now());
        affinity.note_yield(joined_at, LONG_YIELD);
        assert!(!affinity.blocks(joined_at));
        let hour = Duration::from_secs(3600);
        affinity.note_yield(joined_at, hour);
        assert!(affinity.blocks(joined_at));
        let until = affinity.blocks_until_nanoseconds.load(Ordering::Relaxed);
        assert_eq!(until / (BLOCKS_AFTER_LONG_YIELD as u64 * hour.as_nanos() as u64), 1);
        affinity.note_yield(joined_at, Duration::ZERO);
        assert!(!affinity.blocks(joined_at));
    }

    #[test]
    fn a_shared_core_is_left_for_one_without_a_pe() {
        let cpus = [0, 1, 4, 6];
        assert_eq!(another_core(1, &cpus, &[0, 4]), None, "no other PE is here");
        assert_eq!(another_core(1, &cpus, &[1, 0]), Some(4));
        assert_eq!(another_core(6, &cpus, &[6, 0, 1]), Some(4));
        assert_eq!(another_core(6, &cpus, &[6]), Some(0), "the search goes round");
        assert_eq!(another_core(4, &cpus, &[0, 1, 4, 6]), None, "every core has a PE");
        assert_eq!(another_core(3, &cpus, &[3]), Some(4), "this core may have left the mask");
    }

    #[test]
    fn each_node_has_its_part_of_the_cores() {
        let places = |n, cores| (0..n).map(|slot| place_of_node(slot, n, cores)).collect::<Vec<_>>();
        assert_eq!(places(4, 2), [0, 0, 1, 1], "two nodes of two PEs");
        assert_eq!(places(6, 4), [0, 0, 1, 2, 2, 3], "three nodes of two PEs: their first PEs are apart");
        assert_eq!(places(3, 1), [0, 0, 0]);
    }

    #[test]
    fn a_process_competes_for_the_cores_of_its_mask_only() {
        let cpus = cpus();
        let others: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| !cpus.contains(cpu)).collect();
        assert!(may_run_on(std::process::id(), &cpus));
        assert!(!may_run_on(std::process::id(), &others));
        assert!(!may_run_on(u32::MAX, &cpus) && !may_run_on(0, &cpus), "no such process");
    }

    #[test]
    fn the_core_of_a_thread_is_field_39_of_its_stat() {
        let fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        assert_eq!(core_in(&format!("77 (a ) 1 2 b) {}", fields.join(" "))), Some(39));
        assert_eq!(core_in("77 (short) S 1"), None);
        let own = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        assert!(cpus().contains(&core_in(&own).unwrap()));
    }

    #[test]
    fn a_move_keeps_the_mask_and_goes_where_it_should() {
        let before = cpus();
        for &cpu in &before {
            move_to(cpu, &before);
            assert_eq!(cpus(), before);
        }
    }
}
