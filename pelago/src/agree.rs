//! Agreement: a collective call that all PEs must make with the same arguments, and that says so if they do
//! not.
//!
//! Each PE publishes a notice of its call and passes a barrier. On one node it then compares all notices with
//! its own. On several nodes the barrier joins the votes of all ([`Vote`]), and notices are read only to find
//! the PE that makes another call. Two notices are used in turn: nobody publishes the next but one before
//! everybody has passed the barrier of the next, and so has read this one.
//!
//! The notice, or the vote, also carries which arrays the PE has dropped. An array's memory is reclaimed at
//! the next agreement after the last PE has dropped it: dropping is local, needs no order, and never waits
//! (docs/decisions/0004).

use crate::Pe;
use crate::channel::Target;
use crate::distributed;
use crate::error::{ErrorKind, Result};
use crate::kind::ObjectKind;
use crate::route::Route;
use crate::segment::Memory;
use crate::upc::SemaphoreKind;
use crate::vote::{VOTE_WORDS, Vote};
use crate::world::World;
use pelago_fabric::shm::segment::NOTICE_WORDS;
use pelago_fabric::sync::{AtomicU64, Ordering};
use std::cell::Cell;
use std::fmt;
use std::sync::{MutexGuard, TryLockError};

/// Words of a notice before the set of dropped arrays: number, call, two arguments.
const CALL_WORDS: usize = 4;
/// Words of the set of dropped arrays.
pub(crate) const DROPPED_WORDS: usize = NOTICE_WORDS - CALL_WORDS;

const _: () = assert!(VOTE_WORDS < NOTICE_WORDS);

/// In the first word of a call: where the kind of its object begins.
const KIND_SHIFT: u32 = 8;
/// In the place of the elements of a block: all elements lie on one PE. No block is so long.
pub(crate) const NO_BLOCKS: usize = usize::MAX;

/// A set of arrays, by their numbers.
pub(crate) type ArraySet = [u64; DROPPED_WORDS];

/// A call that must be the same at every PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Join {
        barrier: usize,
        reach: usize,
    },
    /// Memory of an object of this kind.
    Alloc {
        kind: ObjectKind,
        bytes: usize,
        align_bytes: usize,
    },
    AllocZeroed {
        kind: ObjectKind,
        bytes: usize,
        align_bytes: usize,
    },
    /// The elements of an array of this kind, and of a block, or [`NO_BLOCKS`].
    Layout {
        kind: ObjectKind,
        len: usize,
        block: usize,
    },
    /// So many semaphores on each PE, of the kind of this code.
    Semaphores {
        count: usize,
        code: u64,
    },
    Resize {
        offset_bytes: usize,
        bytes: usize,
    },
    Free {
        offset_bytes: usize,
    },
    BeginExclusive {
        offset_bytes: usize,
        bytes: usize,
    },
    EndExclusive {
        offset_bytes: usize,
        bytes: usize,
    },
    Reclaim,
    /// A distributed array changes its discipline, which has this code.
    Convert {
        offset_bytes: usize,
        to: u64,
    },
}

impl Call {
    /// The call as three words. The first has its code, and above that the kind of the object.
    pub(crate) fn words(self) -> [u64; 3] {
        let of = |code: u64, kind: ObjectKind| code | kind.code() << KIND_SHIFT;
        match self {
            Call::Join { barrier, reach } => [1, barrier as u64, reach as u64],
            Call::Alloc { kind, bytes, align_bytes } => [of(2, kind), bytes as u64, align_bytes as u64],
            Call::AllocZeroed { kind, bytes, align_bytes } => [of(3, kind), bytes as u64, align_bytes as u64],
            Call::Resize { offset_bytes, bytes } => [4, offset_bytes as u64, bytes as u64],
            Call::Free { offset_bytes } => [5, offset_bytes as u64, 0],
            Call::BeginExclusive { offset_bytes, bytes } => [6, offset_bytes as u64, bytes as u64],
            Call::EndExclusive { offset_bytes, bytes } => [7, offset_bytes as u64, bytes as u64],
            Call::Reclaim => [8, 0, 0],
            Call::Convert { offset_bytes, to } => [9, offset_bytes as u64, to],
            Call::Layout { kind, len, block } => [of(10, kind), len as u64, block as u64],
            Call::Semaphores { count, code } => [of(11, ObjectKind::Semaphores), count as u64, code],
        }
    }

    pub(crate) fn from_words([first, a, b]: [u64; 3]) -> Option<Call> {
        let (code, kind) = (first & ((1 << KIND_SHIFT) - 1), ObjectKind::from_code(first >> KIND_SHIFT)?);
        let (second, a, b) = (b, a as usize, b as usize);
        let call = match code {
            1 => Call::Join { barrier: a, reach: b },
            2 => Call::Alloc { kind, bytes: a, align_bytes: b },
            3 => Call::AllocZeroed { kind, bytes: a, align_bytes: b },
            4 => Call::Resize { offset_bytes: a, bytes: b },
            5 => Call::Free { offset_bytes: a },
            6 => Call::BeginExclusive { offset_bytes: a, bytes: b },
            7 => Call::EndExclusive { offset_bytes: a, bytes: b },
            8 => Call::Reclaim,
            9 => Call::Convert { offset_bytes: a, to: second },
            10 => Call::Layout { kind, len: a, block: b },
            11 => Call::Semaphores { count: a, code: second },
            _ => return None,
        };
        // Only what has a kind, and the kind that it can have, says one.
        (call.words()[0] == first).then_some(call)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let array = |f: &mut fmt::Formatter<'_>, call, offset_bytes| {
            write!(f, "{call}(array at heap offset {offset_bytes})")
        };
        match *self {
            Call::Join { barrier, reach } => write!(
                f,
                "init(PELAGO_BARRIER's choice number {barrier}, PELAGO_ROUTE's choice number {reach})"
            ),
            Call::Alloc { kind, bytes, align_bytes } => {
                write!(f, "{}({bytes} bytes, aligned to {align_bytes})", kind.call("alloc"))
            }
            Call::AllocZeroed { kind, bytes, align_bytes } => {
                write!(f, "{}({bytes} bytes, aligned to {align_bytes})", kind.call("alloc_zeroed"))
            }
            Call::Layout { kind, len, block: NO_BLOCKS } => {
                write!(f, "{}({len} elements without blocks)", kind.call("an array"))
            }
            Call::Layout { kind, len, block } => {
                write!(f, "{}({len} elements in blocks of {block})", kind.call("an array"))
            }
            Call::Semaphores { count, code } => {
                write!(f, "semaphores({count} a PE, {})", SemaphoreKind::describe(code))
            }
            Call::Resize { offset_bytes, bytes } => {
                write!(f, "resize(array at heap offset {offset_bytes}, to {bytes} bytes)")
            }
            Call::Free { offset_bytes } => array(f, "free", offset_bytes),
            Call::BeginExclusive { offset_bytes, .. } => array(f, "exclusive", offset_bytes),
            Call::EndExclusive { offset_bytes, .. } => array(f, "the end of exclusive", offset_bytes),
            Call::Reclaim => write!(f, "reclaim()"),
            Call::Convert { offset_bytes, to } => {
                let conversion = distributed::conversion(to);
                write!(f, "{conversion}(distributed array at heap offset {offset_bytes})")
            }
        }
    }
}

thread_local! {
    /// The agreement that this thread waits for, and its number; 0 if it is one of a team.
    static AWAITED: Cell<Option<(Call, u64)>> = const { Cell::new(None) };
}

/// Ends what `waiting_for` has begun, on unwinding as well.
pub(crate) struct Waited(Option<(Call, u64)>);

impl Drop for Waited {
    fn drop(&mut self) {
        AWAITED.set(self.0);
    }
}

/// As long as it lives, waits are those of an agreement; if they are in vain, their words say which one it
/// is.
#[must_use]
pub(crate) fn waiting_for(call: Call, sequence: u64) -> Waited {
    Waited(AWAITED.replace(Some((call, sequence))))
}

/// The agreement that a meeting belongs to, in brackets, and who has not come, as far as that is known here.
pub(crate) fn awaited(world: &World) -> String {
    let Some((call, sequence)) = AWAITED.get() else { return String::new() };
    if sequence == 0 || !world.routes.are_all_mapped() {
        return format!(" ({call})");
    }
    let has_come = |pe| world.memory.notice(pe, sequence)[0].load(Ordering::Relaxed) == sequence;
    let missing: Vec<Pe> = (0..world.n_pes()).filter(|&pe| !has_come(pe)).collect();
    format!(" ({call}; PEs {missing:?} have not come)")
}

/// A thread's right to make collective calls.
pub(crate) struct Collective<'w> {
    world: &'w World,
    /// Number of the last agreement: none is ever used again, whatever other threads do at barriers.
    last: MutexGuard<'w, u64>,
}

impl Collective<'_> {
    /// Passes a barrier and makes sure that every PE makes this call; then reclaims the arrays that every PE
    /// has dropped.
    #[track_caller]
    pub(crate) fn agree(&mut self, call: Call) -> Result<()> {
        self.world.agree_on(call, &mut self.last)
    }
}

impl World {
    /// The right to make a collective call, for one thread of this PE at a time: until it is dropped.
    ///
    /// # Panics
    /// If another thread of this PE has it. The job cannot go on then, as the other PEs wait for calls in one
    /// order.
    #[track_caller]
    pub(crate) fn collective(&self) -> Collective<'_> {
        match self.agreed.try_lock() {
            Ok(last) => Collective { world: self, last },
            Err(TryLockError::Poisoned(poisoned)) => Collective { world: self, last: poisoned.into_inner() },
            Err(TryLockError::WouldBlock) => self.fail(&format!(
                "PE {}: two threads make collective calls at the same time; let one do so, or take turns",
                self.my_pe()
            )),
        }
    }

    /// As [`Collective::agree`], for calls that are nothing but the agreement.
    #[track_caller]
    pub(crate) fn agree(&self, call: Call) -> Result<()> {
        self.collective().agree(call)
    }

    #[track_caller]
    fn agree_on(&self, call: Call, last: &mut u64) -> Result<()> {
        // First what was dropped, then quiet: what a thread starts on a context before it drops an array is
        // complete before the array's memory is reclaimed.
        let dropped = self.realm.arrays().dropped();
        self.quiet_all();
        let sequence = self.barrier.next_round();
        if sequence <= *last {
            let me = self.my_pe();
            self.fail(&format!("PE {me}: threads make barriers and other collective calls at the same time"));
        }
        *last = sequence;
        publish(self.notice_here(self.my_pe(), sequence), sequence, call, &dropped);
        let outcome = {
            let _waited = waiting_for(call, sequence);
            let outcome = self.barrier_voting(|| call.vote(sequence, &dropped));
            outcome.filter(Vote::is_unanimous)
        };
        let mut dropped_by_all = dropped;
        match outcome {
            Some(vote) => dropped_by_all.copy_from_slice(vote.dropped()),
            None => {
                for pe in 0..self.n_pes() {
                    let notice = self.notice_of(pe, sequence, &dropped);
                    self.compare(pe, &notice, sequence, call)?;
                    for (all, theirs) in dropped_by_all.iter_mut().zip(&notice[CALL_WORDS..]) {
                        *all &= theirs;
                    }
                }
            }
        }
        let mut heap = self.realm.heap();
        for offset_bytes in self.realm.arrays().reclaim(&dropped_by_all) {
            heap.free(offset_bytes);
        }
        Ok(())
    }

    /// The vote of a PE that is mapped here, which has come to the barrier of this agreement, or of another
    /// call.
    pub(crate) fn vote_of(&self, pe: Pe, sequence: u64) -> Vote {
        let notice = self.notice_here(pe, sequence);
        // SYNC POINT notice: acquires what the PE did before it published; see `publish`.
        if notice[0].load(Ordering::Acquire) != sequence {
            return Vote::VOID;
        }
        let words: [u64; NOTICE_WORDS] = std::array::from_fn(|i| notice[i].load(Ordering::Relaxed));
        let (call, dropped) = words[1..].split_at(CALL_WORDS - 1);
        let whole = "a notice has words for a call and a set";
        Vote::of(sequence, call.try_into().expect(whole), dropped.try_into().expect(whole))
    }

    /// Lets the PEs of this node, which this one leads, know the outcome of an agreement. They see it when
    /// this PE releases them from the barrier.
    pub(crate) fn publish_outcome(&self, sequence: u64, outcome: &Vote) {
        let words = self.memory.outcome(self.my_pe());
        let values = std::iter::once(&sequence).chain(&outcome.0);
        words.iter().zip(values).for_each(|(word, value)| word.store(*value, Ordering::Relaxed));
    }

    /// The outcome of an agreement that the leader of this node has published before it released this PE.
    pub(crate) fn outcome_of(&self, leader: Pe, sequence: u64) -> Vote {
        let [number, words @ ..] = self.memory.outcome(leader);
        match number.load(Ordering::Relaxed) == sequence {
            true => Vote(std::array::from_fn(|i| words[i].load(Ordering::Relaxed))),
            false => Vote::VOID,
        }
    }

    /// Where a PE publishes that is mapped here: where all others read it.
    fn notice_here(&self, pe: Pe, sequence: u64) -> &[AtomicU64; NOTICE_WORDS] {
        match self.routes.are_all_mapped() {
            true => self.memory.notice(pe, sequence),
            false => self.memory.net_notice(pe, sequence),
        }
    }

    /// What `pe` has published. Of its set of dropped arrays only the words in which this PE has some are
    /// read where it is mapped.
    fn notice_of(&self, pe: Pe, sequence: u64, dropped: &ArraySet) -> [u64; NOTICE_WORDS] {
        let mut words = [0u64; NOTICE_WORDS];
        match self.routes.to(pe) {
            Route::Mapped => {
                let notice = self.notice_here(pe, sequence);
                // SYNC POINT notice: acquires what the PE did before it published; see `publish`.
                words[0] = notice[0].load(Ordering::Acquire);
                let is_needed = |i: usize| i < CALL_WORDS || dropped[i - CALL_WORDS] != 0;
                for i in (1..NOTICE_WORDS).filter(|&i| is_needed(i)) {
                    words[i] = notice[i].load(Ordering::Relaxed);
                }
            }
            Route::Net => {
                let offset_bytes = Memory::notice_offset_bytes(sequence);
                let source = Target { operation: "agree", pe, offset_bytes };
                let (into, bytes) = (words.as_mut_ptr().cast(), size_of_val(&words));
                // SAFETY: the notices lie at the start of every heap; without a tracker the data are there
                // when the call returns.
                unsafe { self.net_channel().get(self, source, into, bytes, None) };
            }
        }
        words
    }

    #[track_caller]
    fn compare(&self, pe: Pe, notice: &[u64; NOTICE_WORDS], sequence: u64, call: Call) -> Result<()> {
        let &[number, code, a, b, ..] = notice;
        if number == sequence && [code, a, b] == call.words() {
            return Ok(());
        }
        let theirs = match Call::from_words([code, a, b]) {
            Some(theirs) if number == sequence => theirs.to_string(),
            _ => "something else (barrier?)".to_owned(),
        };
        let me = self.my_pe();
        Err(ErrorKind::Disagreement { me, sequence, pe, mine: call.to_string(), theirs }.into())
    }
}

/// Writes a notice, its number last: whoever reads the number sees the rest, and everything this PE did
/// before on whatever thread. So an agreement does not depend on which thread of this PE arrives at the
/// barrier.
#[track_caller]
fn publish(notice: &[AtomicU64; NOTICE_WORDS], sequence: u64, call: Call, dropped: &ArraySet) {
    let [code, a, b] = call.words();
    for (word, value) in notice.iter().skip(1).zip([code, a, b].iter().chain(dropped)) {
        if word.load(Ordering::Relaxed) != *value {
            word.store(*value, Ordering::Relaxed);
        }
    }
    // SYNC POINT notice: releases the words above, and what this PE did before.
    notice[0].store(sequence, Ordering::Release);
}
