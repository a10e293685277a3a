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
    /// The next PE to check if the wait is not for a particular PE.
    turn: Pe,
}

struct Question {
    pe: Pe,
    counter: CompletionCounter,
    since: Instant,
}

impl Watch {
    /// PEs begin with the PE behind them, so that all together check many in each turn.
    pub fn new(me: Pe, limit: Option<Duration>, before_asking: Duration) -> Watch {
        let inner = Inner { question: None, next_at: Instant::now(), turn: me };
        Watch { limit, before_asking, inner: Mutex::new(inner), answer: Box::default() }
    }

    /// Checks the PEs of other nodes, in a wait that began at `since`.
    #[cold]
    #[track_caller]
    pub fn look(&self, job: &Job, net: &Endpoint, awaited: Awaited, since: Instant) {
        let Some(limit) = self.limit.filter(|_| since.elapsed() > self.before_asking) else { return };
        let Some(mut inner) = try_locked(&self.inner) else { return };
        let now = Instant::now();
        if let Some(question) = inner.question.take_if(|question| question.counter.is_done()) {
            let has_left = self.answer.load(Ordering::Relaxed) == LEFT;
            job.far_left[question.pe].store(has_left, Ordering::Relaxed);
            job.completions.release(question.counter);
            inner.next_at = now + self.before_asking;
        }
        match &inner.question {
            Some(question) if now - question.since > limit => {
                let (pe, reason) = (question.pe, silence_of(job, question.pe, limit, awaited));
                drop(inner);
                job.far_left[pe].store(true, Ordering::Relaxed);
                job.fail(&reason);
            }
            Some(_) => {}
            None if now < inner.next_at => {}
            None => {
                inner.question = whom_to_ask(job, awaited, &mut inner.turn)
                    .and_then(|pe| self.ask_whether_there(job, net, pe));
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

/// The PE that a wait is for, if it is on another node, or else the next PE of another node.
fn whom_to_ask(job: &Job, awaited: Awaited, turn: &mut Pe) -> Option<Pe> {
    let is_far = |pe: &Pe| job.memory.block(*pe).is_none() && job.routes.to(*pe) == Route::Net;
    if let Some(pe) = awaited.pe().filter(is_far) {
        return Some(pe);
    }
    let n_pes = job.n_pes();
    let next = (1..=n_pes).map(|step| (*turn + step) % n_pes).find(is_far)?;
    *turn = next;
    Some(next)
}

fn silence_of(job: &Job, pe: Pe, limit: Duration, awaited: Awaited) -> String {
    let (me, node, what) = (job.my_pe(), job.node(pe), job.describe(awaited));
    format!(
        "PE {me}: PE {pe}, on node {node} of the job, has not answered for {limit:?}, while it waits \
         for {what}. Its host or the network between is down, or too slow for PELAGO_PEER_TIMEOUT"
    )
}
