//! Liveness of the PEs of other nodes, which no launcher observes: a PE that waits for long checks the
//! others, one after the other.
//!
//! Invariant: a check is a get of one word of the other PE's memory, which its network card or its provider's
//! own progress serves while that PE computes. If the get does not complete in time (`PELAGO_PEER_TIMEOUT`),
//! the host or the network is down. There is one check at a time, and a PE that does not wait makes none.

use crate::Pe;
use crate::base::awaited::Awaited;
use crate::base::locked::try_locked;
use crate::endpoint::completion_counter::CompletionCounter;
use crate::endpoint::{Endpoint, RemoteAddress};
use crate::job::{Job, LEFT};
use crate::memory::route::Route;
use crate::memory::segment::Memory;
use pelago_fabric::sync::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The state of the checks of PEs of other nodes.
pub struct Watch {
    /// The time within which a check must complete; `None` if there are no checks.
    limit: Option<Duration>,
    /// The time that a PE waits before its first check, and between two checks.
    before_asking: Duration,
    inner: Mutex<Inner>,
    /// The target of the get. It lives as long as the world, because the fabric may write it at any time.
    answer: Box<AtomicU64>,
}

struct Inner {
    question: Option<Question>,
    next_at: Instant,
    /// The last look at the question.
    last_look: Instant,
    /// The number of checks.
    turn: usize,
}

struct Question {
    pe: Pe,
    counter: CompletionCounter,
    since: Instant,
}

/// A longer time between two looks is one in which this PE did not run, or the whole machine stood still.
const PAUSE: Duration = Duration::from_secs(1);

/// The time between two looks at the question in one wait, whose first look may be at `first`. The time in
/// which the PE computes between two waits does not count: other threads make progress then, and a wait makes
/// some before its first look.
fn between_looks(last: Instant, first: Instant, now: Instant) -> Duration {
    now.saturating_duration_since(last.max(first))
}

/// The start of the time that another PE has to reply. If this PE has made a pause between two looks at the
/// question, the start is later by that pause, of which [`PAUSE`] counts: on a machine whose processes rarely
/// run, the time goes on.
fn start_without_pause(since: Instant, between_looks: Duration) -> Instant {
    since + between_looks.saturating_sub(PAUSE)
}

impl Watch {
    pub fn new(limit: Option<Duration>, before_asking: Duration) -> Watch {
        let now = Instant::now();
        let inner = Inner { question: None, next_at: now, last_look: now, turn: 0 };
        Watch { limit, before_asking, inner: Mutex::new(inner), answer: Box::default() }
    }

    /// Checks the PEs of other nodes, in a wait that began at `since`.
    #[cold]
    #[track_caller]
    pub fn look(&self, job: &Job, net: &Endpoint, awaited: Awaited, since: Instant) {
        let Some(limit) = self.limit.filter(|_| since.elapsed() > self.before_asking) else { return };
        let Some(mut inner) = try_locked(&self.inner) else { return };
        let now = Instant::now();
        let last_look = std::mem::replace(&mut inner.last_look, now);
        let between_looks = between_looks(last_look, since + self.before_asking, now);
        if let Some(question) = &mut inner.question {
            question.since = start_without_pause(question.since, between_looks);
        }
        if let Some(question) = inner.question.take_if(|question| question.counter.is_done()) {
            job.far_status[question.pe].store(self.answer.load(Ordering::Relaxed) as u8, Ordering::Relaxed);
            job.completions.release(question.counter);
            inner.next_at = now + self.before_asking;
        }
        match &inner.question {
            Some(question) if now - question.since > limit => {
                let (pe, reason) = (question.pe, silence_of(job, question.pe, limit, awaited));
                drop(inner);
                job.far_status[pe].store(LEFT, Ordering::Relaxed);
                job.fail(&reason);
            }
            Some(_) => {}
            None if now < inner.next_at => {}
            None => {
                inner.question =
                    whom_to_ask(job, awaited, inner.turn).and_then(|pe| self.ask_whether_there(job, net, pe));
                inner.turn = inner.turn.wrapping_add(1);
            }
        }
    }

    /// Starts a check of a PE; `None` if the fabric's queue is full.
    fn ask_whether_there(&self, job: &Job, net: &Endpoint, pe: Pe) -> Option<Question> {
        let target = RemoteAddress { operation: "watch", pe, offset_bytes: Memory::STANDING_OFFSET_BYTES };
        let counter = job.completions.open();
        // SAFETY: the word lies at the start of every heap. The target of the get lives as long as the world,
        // whose endpoints are shut first.
        let is_asked = unsafe { net.try_get(target, self.answer.as_ptr(), 1, &counter) };
        if !is_asked {
            job.completions.release(counter);
            return None;
        }
        Some(Question { pe, counter, since: Instant::now() })
    }
}

/// The PE to check in a turn: the one that the wait is for, if it is on another node, and every other turn a
/// partner on another node.
fn whom_to_ask(job: &Job, awaited: Awaited, turn: usize) -> Option<Pe> {
    let is_far = |pe: &Pe| job.memory.block(*pe).is_none() && job.routes.to(*pe) == Route::Net;
    let partner = |turn| partner(job.my_pe(), job.n_pes(), is_far, turn);
    match awaited.pe().filter(is_far) {
        None => partner(turn),
        Some(pe) if turn.is_multiple_of(2) => Some(pe),
        Some(_) => partner(turn / 2),
    }
}

/// The partners of a PE are those of a dissemination, with which it is in contact anyway: the PEs behind it
/// at distances of powers of two. So log2 n others check each PE, and a wait does not connect to all. If all
/// partners are on this node, it is the next PE of another one.
fn partner(me: Pe, n_pes: usize, is_far: impl Fn(&Pe) -> bool, turn: usize) -> Option<Pe> {
    let distances = (0..usize::BITS).map(|power| 1_usize << power).take_while(|&distance| distance < n_pes);
    let partners = distances.map(|distance| (me + distance) % n_pes).filter(&is_far);
    match partners.clone().count() {
        0 => (1..n_pes).map(|step| (me + step) % n_pes).find(is_far),
        count => partners.clone().nth(turn % count),
    }
}

fn silence_of(job: &Job, pe: Pe, limit: Duration, awaited: Awaited) -> String {
    let (me, node, what) = (job.my_pe(), job.node(pe), job.describe(awaited));
    format!(
        "PE {me}: PE {pe}, on node {node} of the job, has not answered for {limit:?}, while it waits \
         for {what}. Its host or the network between is down, or too slow for PELAGO_PEER_TIMEOUT"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The PEs that PE `me` of `n` checks, if nodes have `ppn` PEs.
    fn checked(me: Pe, n: usize, ppn: usize) -> Vec<Pe> {
        let mut all: Vec<Pe> =
            (0..64).filter_map(|turn| partner(me, n, |pe| pe / ppn != me / ppn, turn)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn a_pe_checks_few_others_and_each_is_checked() {
        for (n, ppn) in [(2, 1), (12, 1), (1000, 1), (96, 8), (7, 3), (130, 128)] {
            let all: Vec<Vec<Pe>> = (0..n).map(|me| checked(me, n, ppn)).collect();
            let most = all.iter().map(Vec::len).max().unwrap();
            assert!(most <= n.ilog2() as usize + 1, "{n} PEs, {ppn} a node: {most}");
            for node in 0..n.div_ceil(ppn) {
                let is_checked = all.iter().flatten().any(|pe| pe / ppn == node);
                assert!(is_checked, "{n} PEs, {ppn} a node: nobody checks node {node}");
            }
        }
        assert_eq!(checked(0, 1, 1), [] as [Pe; 0]);
        assert_eq!(checked(0, 4, 4), [] as [Pe; 0]);
    }

    #[test]
    fn a_pause_of_this_pe_is_not_the_silence_of_another() {
        let since = Instant::now();
        let [short, long] = [20, 29_000].map(Duration::from_millis);
        assert_eq!(start_without_pause(since, short), since);
        assert_eq!(start_without_pause(since, long), since + long - PAUSE);
    }

    #[test]
    fn a_time_between_two_waits_is_not_a_pause() {
        let last = Instant::now();
        let [minute, second, moment] = [60_000, 1000, 5].map(Duration::from_millis);
        assert_eq!(between_looks(last, last + minute, last + minute + moment), moment);
        assert_eq!(between_looks(last + minute, last + second, last + minute + moment), moment);
        assert_eq!(between_looks(last, last - second, last + minute), minute);
    }
}
