//! Semaphores: who waits sees what the poster did before it posted.
//!
//! A semaphore has two words on the PE that it has affinity to. `COUNT` is changed by atomics only. `POSTED`
//! is put by a single producer: all that it has posted, and who it is. A single consumer keeps to itself what
//! it has taken, `taken`; many consumers take from `COUNT`.
//!
//! ```text
//!                        value                       post n                    take n
//! one consumer, one prod.  POSTED + COUNT - taken    POSTED: put posted += n   taken += n
//! one consumer             COUNT - taken             COUNT: add n              taken += n
//! many, integer            COUNT                     COUNT: add n              COUNT: from v >= n to v - n
//! many, boolean            COUNT                     COUNT: set 1              COUNT: swap 0, if it was 1
//! ```
//!
//! Of a boolean one for one consumer every post counts all the same, and a wait takes all of them.
//!
//! Invariant: a post is issued after what this PE has started is complete, and a wait that succeeds acquires;
//! between two puts of `POSTED` the first is complete, so the word never falls behind. Every wait makes
//! progress. Source: the slides "GASNet and Berkeley UPC on BlueGene/P", appendix (UPC Semaphore).

use crate::Pe;
use crate::array::symmetric::Symmetric;
use crate::array::view::View;
use crate::base::awaited::Awaited;
use crate::base::call::Call;
use crate::base::error::{ErrorKind, Result};
use crate::base::kind::ObjectKind;
use crate::base::semaphore_kind::SemaphoreKind;
use crate::coll::symmetric_region::SymmetricRegion;
use crate::team::space::Space;
use crate::world::World;
use pelago_fabric::sync::{Ordering, fence};
use std::cell::Cell;

/// Words from one semaphore to the next: a cache line.
const STRIDE: usize = 8;
const ALIGN_BYTES: usize = STRIDE * size_of::<u64>();
/// The word of a single producer.
const POSTED: usize = 0;
/// The word of atomics.
pub(super) const COUNT: usize = 1;
/// Bits of `POSTED`, and of values made of it, that count posts; the others say who posts.
const TOTAL_BITS: u32 = 48;
const TOTAL_MASK: u64 = (1 << TOTAL_BITS) - 1;

/// Semaphores of one kind, as many on each PE: see [`World::semaphores`].
///
/// One thread of a PE at a time has them.
pub struct Semaphores<'w> {
    words: Symmetric<'w, u64>,
    kind: SemaphoreKind,
    /// On each PE.
    count: usize,
    /// What this PE has taken from each of its own; of semaphores with one consumer.
    taken: Box<[Cell<u64>]>,
    /// The producer of each of its own, as `POSTED` has it, once it is known.
    producer: Box<[Cell<u64>]>,
    /// What this PE has posted to each, by PE and index; of semaphores whose posts are puts.
    posted: Box<[Cell<u64>]>,
}

/// One semaphore: see [`Semaphores::at`].
#[derive(Clone, Copy)]
pub struct Semaphore<'s> {
    pub(super) set: &'s Semaphores<'s>,
    pub(super) owner: Pe,
    index: usize,
}

impl World {
    /// Makes semaphores of one kind, `count` with affinity to each PE, all of value 0. Collective; complete
    /// with a barrier.
    ///
    /// ```
    /// use pelago::upc::SemaphoreKind;
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let kind = SemaphoreKind::integer().single_producer().single_consumer();
    /// let semaphores = world.semaphores(1, kind)?;
    /// let data = world.alloc_zeroed::<f64>(10)?;
    /// if world.my_pe() == 0 {
    ///     data.put(1, 3, &[2.5; 2])?;
    ///     semaphores.at(1, 0)?.post_n(2)?; // says that the data are there
    /// } else {
    ///     semaphores.at(1, 0)?.wait_n(2)?;
    ///     assert_eq!(data.local().get(4), 2.5);
    /// }
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If the heap has no room, or the PEs do not ask for the same.
    #[track_caller]
    pub fn semaphores(&self, count: usize, kind: SemaphoreKind) -> Result<Semaphores<'_>> {
        let alloc = |len| self.alloc_as(ObjectKind::Semaphores, len, ALIGN_BYTES);
        Semaphores::new(self, &self.region, count, kind, alloc)
    }
}

impl Space<'_> {
    /// Makes semaphores for the members of the team, who name each other by rank; as [`World::semaphores`].
    ///
    /// # Errors
    /// As [`World::semaphores`].
    #[track_caller]
    pub fn semaphores(&self, count: usize, kind: SemaphoreKind) -> Result<Semaphores<'_>> {
        let alloc = |len| self.alloc_as(ObjectKind::Semaphores, len, ALIGN_BYTES);
        Semaphores::new(self.world(), self.region(), count, kind, alloc)
    }
}

impl<'w> Semaphores<'w> {
    fn new(
        world: &World,
        region: &SymmetricRegion,
        count: usize,
        kind: SemaphoreKind,
        alloc: impl FnOnce(usize) -> Result<Symmetric<'w, u64>>,
    ) -> Result<Semaphores<'w>> {
        region.agree(world, Call::Semaphores { count, code: kind.code() })?;
        let words = alloc(count.saturating_mul(STRIDE))?;
        words.zero_here();
        region.barrier(world);
        let cells = |is_used: bool, count: usize| vec![Cell::new(0); if is_used { count } else { 0 }].into();
        let is_by_put = kind.posts_by_put();
        Ok(Semaphores {
            words,
            kind,
            count,
            taken: cells(kind.has_one_consumer, count),
            producer: cells(is_by_put, count),
            posted: cells(is_by_put, count * region.len()),
        })
    }

    /// The greatest value of an integer semaphore.
    pub const MAX: u64 = u32::MAX as u64;

    /// Semaphores on each PE.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Their kind.
    pub fn kind(&self) -> SemaphoreKind {
        self.kind
    }

    /// Semaphore `index` of those that have affinity to `pe`.
    ///
    /// # Errors
    /// If there is no such PE or semaphore.
    pub fn at(&self, pe: Pe, index: usize) -> Result<Semaphore<'_>> {
        self.words.check_pe("semaphore", pe)?;
        if index >= self.count {
            let (me, count) = (self.words.world().my_pe(), self.count);
            let reason = format!("there are {count} on each PE, numbered from 0");
            return Err(ErrorKind::BadSemaphore { me, operation: "at", pe, index, reason }.into());
        }
        Ok(Semaphore { set: self, owner: pe, index })
    }

    /// Gives the memory back at once. Collective, begins with a barrier.
    ///
    /// # Errors
    /// As [`Symmetric::free`].
    #[track_caller]
    pub fn free(self) -> Result<()> {
        self.words.free()
    }

    pub(super) fn words(&self) -> &View<'w, u64> {
        &self.words
    }
}

impl Semaphore<'_> {
    /// The PE that it has affinity to.
    pub fn threadof(&self) -> Pe {
        self.owner
    }

    /// As [`post_n`](Semaphore::post_n) of 1: the only one for a boolean semaphore.
    ///
    /// # Errors
    /// If the job has failed.
    #[track_caller]
    pub fn post(&self) -> Result<()> {
        self.post_any(1)
    }

    /// Adds `n` to the value. A fence first: who has waited for it sees all that this PE has started before,
    /// wherever that went; not what went through a [`Context`](crate::Context).
    ///
    /// # Errors
    /// If the semaphore is boolean, `n` exceeds [`Semaphores::MAX`], or the job has failed. A value that has
    /// grown too great is told to who waits.
    #[track_caller]
    pub fn post_n(&self, n: u64) -> Result<()> {
        self.check_integer("post_n")?;
        self.check_count("post_n", n)?;
        self.post_any(n)
    }

    /// As [`wait_n`](Semaphore::wait_n) of 1: the only one for a boolean semaphore.
    ///
    /// # Errors
    /// As [`wait_n`](Semaphore::wait_n).
    #[track_caller]
    pub fn wait(&self) -> Result<()> {
        self.wait_as("wait", 1)
    }

    /// Waits until the value is at least `n`, and takes so much of it. A fence afterwards: what the posters
    /// did before is visible. Waiters are served in no particular order.
    ///
    /// # Errors
    /// If the semaphore is boolean or not for this PE to wait for, `n` exceeds [`Semaphores::MAX`], the value
    /// does, or two PEs have posted to one for a single producer.
    ///
    /// # Panics
    /// If every other PE has left the job before.
    #[track_caller]
    pub fn wait_n(&self, n: u64) -> Result<()> {
        self.check_integer("wait_n")?;
        self.check_count("wait_n", n)?;
        self.wait_as("wait_n", n)
    }

    /// As [`try_wait_n`](Semaphore::try_wait_n) of 1: the only one for a boolean semaphore (UPC's
    /// `upc_sem_try`).
    ///
    /// # Errors
    /// As [`wait_n`](Semaphore::wait_n).
    #[track_caller]
    pub fn try_wait(&self) -> Result<bool> {
        self.try_as("try_wait", 1)
    }

    /// Makes progress, takes `n` of the value if it is at least that, and says whether it has. If so, it is a
    /// fence as [`wait_n`](Semaphore::wait_n) is (UPC's `upc_sem_tryN`).
    ///
    /// # Errors
    /// As [`wait_n`](Semaphore::wait_n).
    #[track_caller]
    pub fn try_wait_n(&self, n: u64) -> Result<bool> {
        self.check_integer("try_wait_n")?;
        self.check_count("try_wait_n", n)?;
        self.try_as("try_wait_n", n)
    }

    fn post_any(&self, n: u64) -> Result<()> {
        let (set, words) = (self.set, &self.set.words);
        let world = words.world();
        // Over the net a fence would not do for what went to third PEs.
        match world.net.is_none() {
            true => world.fence(),
            false => world.quiet(),
        }
        match set.kind {
            kind if kind.posts_by_put() => return self.put_posted(n),
            kind if kind.is_boolean && !kind.has_one_consumer => {
                words.atomic_set(self.owner, self.word(COUNT), 1)?;
            }
            _ => words.add(self.owner, self.word(COUNT), n)?,
        }
        self.ring_consumers();
        Ok(())
    }

    /// Puts all that this PE has posted, and wakes the consumer if it sleeps.
    fn put_posted(&self, n: u64) -> Result<()> {
        let (set, words) = (self.set, &self.set.words);
        let me = words.region().my_rank();
        let posted = &set.posted[self.owner * set.count + self.index];
        let total = posted.get().wrapping_add(n) & TOTAL_MASK;
        let word = (me as u64 + 1) << TOTAL_BITS | total;
        words.p(self.owner, self.word(POSTED), word)?;
        posted.set(total);
        // SAFETY: the owner was compared with the number of PEs when this handle was made. A sleeper that
        // announces itself just now looks again within its bounded sleep.
        if unsafe { words.place.mapped(self.owner) }.is_some_and(|part| part.has_waiters()) {
            words.ring(self.owner);
        }
        Ok(())
    }

    /// Wakes those who wait elsewhere than at the owner, whom an atomic does not wake.
    pub(super) fn ring_consumers(&self) {
        if !self.set.kind.has_one_consumer {
            self.set.words.world().ring_sleepers_for_data();
        }
    }

    #[track_caller]
    fn wait_as(&self, operation: &'static str, n: u64) -> Result<()> {
        self.check_consumer(operation)?;
        let words = &self.set.words;
        let look = || self.take(operation, n).map(|is_taken| is_taken.then_some(())).transpose();
        if self.is_own() {
            return words.local().until(self.word(COUNT), look);
        }
        let (world, mut found) = (words.world(), None);
        world.ring_sleepers_for_data();
        world.wait(Awaited::Element { index: self.word(COUNT) }, || {
            // What was taken once is not taken again.
            if found.is_none() {
                found = look();
            }
            found.is_some()
        });
        // SYNC POINT put-order: acquires what the posters released by their fences.
        fence(Ordering::Acquire);
        found.expect("a wait ends when something is found")
    }

    fn try_as(&self, operation: &'static str, n: u64) -> Result<bool> {
        self.check_consumer(operation)?;
        let world = self.set.words.world();
        world.ring_sleepers_for_data();
        world.progress();
        let is_taken = self.take(operation, n)?;
        if is_taken {
            // SYNC POINT put-order: acquires what the posters released by their fences.
            fence(Ordering::Acquire);
        }
        Ok(is_taken)
    }

    /// Takes `n` of the value if it is at least that.
    fn take(&self, operation: &'static str, n: u64) -> Result<bool> {
        let kind = self.set.kind;
        match (kind.has_one_consumer, kind.is_boolean) {
            (true, _) => self.take_alone(operation, n),
            (false, true) => self.take_flag(),
            (false, false) => self.take_shared(operation, n),
        }
    }

    /// As the only consumer, from the own words.
    fn take_alone(&self, operation: &'static str, n: u64) -> Result<bool> {
        let (set, local) = (self.set, self.set.words.local());
        let (count, taken) = (local.get(self.word(COUNT)), &set.taken[self.index]);
        let (sum, value) = match set.kind.has_one_producer {
            true => {
                let posted = local.get(self.word(POSTED));
                self.check_producer(operation, posted >> TOTAL_BITS)?;
                let sum = posted.wrapping_add(count) & TOTAL_MASK;
                (sum, sum.wrapping_sub(taken.get()) & TOTAL_MASK)
            }
            false => (count, count.wrapping_sub(taken.get())),
        };
        if set.kind.is_boolean {
            if value != 0 {
                taken.set(sum);
            }
            return Ok(value != 0);
        }
        self.check_value(operation, value)?;
        if value < n {
            return Ok(false);
        }
        // Beyond the bits of a total it is not looked at.
        taken.set(taken.get().wrapping_add(n));
        Ok(true)
    }

    /// As one of many consumers, from a boolean one.
    fn take_flag(&self) -> Result<bool> {
        let (words, at) = (&self.set.words, self.word(COUNT));
        // A swap goes over the net as fast as a look; in shared memory it takes the line from the others.
        // SAFETY: the owner was compared with the number of PEs when this handle was made.
        let is_far = unsafe { words.place.mapped(self.owner) }.is_none();
        Ok((is_far || self.peek()? != 0) && words.swap(self.owner, at, 0)? != 0)
    }

    /// As one of many consumers, from an integer one.
    fn take_shared(&self, operation: &'static str, n: u64) -> Result<bool> {
        let (words, at) = (&self.set.words, self.word(COUNT));
        let mut value = self.peek()?;
        loop {
            self.check_value(operation, value)?;
            if value < n {
                return Ok(false);
            }
            match words.compare_swap(self.owner, at, value, value - n)? {
                old if old == value => return Ok(true),
                old => value = old,
            }
        }
    }

    /// The shared count, as cheaply as it can be had.
    fn peek(&self) -> Result<u64> {
        let (words, at) = (&self.set.words, self.word(COUNT));
        if self.is_own() { Ok(words.local().get(at)) } else { words.atomic_fetch(self.owner, at) }
    }

    /// An element of the words of this semaphore.
    pub(super) fn word(&self, which: usize) -> usize {
        self.index * STRIDE + which
    }

    fn is_own(&self) -> bool {
        self.owner == self.set.words.region().my_rank()
    }

    fn check_integer(&self, operation: &'static str) -> Result<()> {
        match self.set.kind.is_boolean {
            true => Err(self.refuse(operation, "it is boolean: post it, and wait for it, without a number")),
            false => Ok(()),
        }
    }

    /// Refuses numbers that no value reaches.
    pub(super) fn check_count(&self, operation: &'static str, n: u64) -> Result<()> {
        let (max, is_boolean) = (Semaphores::MAX, self.set.kind.is_boolean);
        if is_boolean && n != 1 {
            return Err(self.refuse(operation, &format!("it is boolean, and takes 1 at a time, not {n}")));
        }
        match n > max {
            true => Err(self.refuse(operation, &format!("{n} exceeds {max}, the greatest value"))),
            false => Ok(()),
        }
    }

    fn check_consumer(&self, operation: &'static str) -> Result<()> {
        if self.set.kind.has_one_consumer && !self.is_own() {
            let reason = "it has a single consumer, the PE that it has affinity to. Let that one wait, or \
                          make it for many consumers";
            return Err(self.refuse(operation, reason));
        }
        Ok(())
    }

    fn check_value(&self, operation: &'static str, value: u64) -> Result<()> {
        let max = Semaphores::MAX;
        if value > max {
            let reason =
                format!("its value has grown to {value}, beyond {max}: it is posted more than waited for");
            return Err(self.refuse(operation, &reason));
        }
        Ok(())
    }

    /// Notes the producer, and finds that there is another one.
    fn check_producer(&self, operation: &'static str, producer: u64) -> Result<()> {
        let known = &self.set.producer[self.index];
        match known.get() {
            before if before == producer => Ok(()),
            0 => {
                known.set(producer);
                Ok(())
            }
            before => {
                let pe = |number: u64| (number as usize).wrapping_sub(1);
                let reason = format!(
                    "PEs {} and {} both post to it, but it has a single producer. Make it for many producers",
                    pe(before),
                    pe(producer)
                );
                Err(self.refuse(operation, &reason))
            }
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn refuse(&self, operation: &'static str, reason: &str) -> crate::Error {
        let (me, pe, index) = (self.set.words.world().my_pe(), self.owner, self.index);
        ErrorKind::BadSemaphore { me, operation, pe, index, reason: reason.to_owned() }.into()
    }
}

impl std::fmt::Debug for Semaphore<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Semaphore({} of PE {}, {:?})", self.index, self.owner, self.set.kind)
    }
}
