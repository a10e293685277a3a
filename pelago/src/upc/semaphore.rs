//! Semaphores: a PE that waits for a post sees the effects of the poster's operations before the post.
//!
//! A semaphore has two words on the PE that it has affinity to. `COUNT` is changed by atomics only. `POSTED`
//! is put by a single producer: it has the number of all its posts, and the producer's PE. A single consumer
//! keeps its count of successful waits, `taken`, in private memory; multiple consumers decrease `COUNT`.
//!
//! ```text
//!                        value                       post n                    take n
//! one consumer, one prod.  POSTED + COUNT - taken    POSTED: put posted += n   taken += n
//! one consumer             COUNT - taken             COUNT: add n              taken += n
//! many, integer            COUNT                     COUNT: add n              COUNT: from v >= n to v - n
//! many, boolean            COUNT                     COUNT: set 1              COUNT: swap 0, if it was 1
//! ```
//!
//! A boolean semaphore with a single consumer counts every post as well, and a wait takes all posts.
//!
//! Invariant: a post is issued after all earlier operations of this PE are complete, and a successful wait is
//! an acquire. A put of `POSTED` is complete before the next one, so the word never decreases. Every wait
//! makes progress. Source: the slides "GASNet and Berkeley UPC on BlueGene/P", appendix (UPC Semaphore).

use crate::Pe;
use crate::array::symmetric::Symmetric;
use crate::array::view::View;
use crate::team::space::Space;
use crate::world::World;
use pelago_core::base::awaited::Awaited;
use pelago_core::base::call::Call;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::base::kind::ObjectKind;
use pelago_core::base::semaphore_kind::SemaphoreKind;
use pelago_core::coll::symmetric_region::SymmetricRegion;
use pelago_fabric::sync::{Ordering, fence};
use std::cell::Cell;

/// The distance between two semaphores: the words of a cache line.
const STRIDE: usize = 8;
const ALIGN_BYTES: usize = STRIDE * size_of::<u64>();
/// The word that a single producer puts.
const POSTED: usize = 0;
/// The word that atomics change.
pub(super) const COUNT: usize = 1;
/// The number of bits of `POSTED`, and of values made from it, that count posts; the other bits have the
/// producer.
const TOTAL_BITS: u32 = 48;
const TOTAL_MASK: u64 = (1 << TOTAL_BITS) - 1;

/// Semaphores of one kind, the same number on each PE: see [`World::semaphores`].
///
/// They are used by one thread of a PE at a time.
pub struct Semaphores<'w> {
    words: Symmetric<'w, u64>,
    kind: SemaphoreKind,
    /// The number of semaphores on each PE.
    count: usize,
    /// The count that this PE has taken from each of its own semaphores, if they have a single consumer.
    taken: Box<[Cell<u64>]>,
    /// The producer of each of its own semaphores, as encoded in `POSTED`, once it is known.
    producer: Box<[Cell<u64>]>,
    /// The number of posts of this PE to each semaphore, by PE and index, if posts are puts.
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
    /// Creates semaphores of one kind, `count` of them with affinity to each PE, all with value 0. Collective
    /// over all PEs; it ends with a barrier.
    ///
    /// ```
    /// use pelago::upc::SemaphoreKind;
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let kind = SemaphoreKind::integer().single_producer().single_consumer();
    /// let semaphores = world.semaphores(1, kind)?;
    /// let data = world.alloc_zeroed::<f64>(10)?;
    /// if world.my_pe() == 0 {
    ///     data.put(1, 3, &[2.5; 2])?;
    ///     semaphores.at(1, 0)?.post_n(2)?; // announces that the data are complete
    /// } else {
    ///     semaphores.at(1, 0)?.wait_n(2)?;
    ///     assert_eq!(data.local().get(4), 2.5);
    /// }
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If the heap has no space, or the PEs give different arguments.
    #[track_caller]
    pub fn semaphores(&self, count: usize, kind: SemaphoreKind) -> Result<Semaphores<'_>> {
        let alloc = |len| self.alloc_as(ObjectKind::Semaphores, len, ALIGN_BYTES);
        Semaphores::new(self, &self.core().region, count, kind, alloc)
    }
}

impl Space<'_> {
    /// Creates semaphores for the members of the team, as [`World::semaphores`] does for all PEs. PEs are
    /// numbered by their rank in the team.
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
        region.agree(world.core(), Call::Semaphores { count, code: kind.code() })?;
        let words = alloc(count.saturating_mul(STRIDE))?;
        words.zero_here();
        region.barrier(world.core());
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

    /// The number of semaphores on each PE.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Their kind.
    pub fn kind(&self) -> SemaphoreKind {
        self.kind
    }

    /// Returns semaphore `index` of the semaphores that have affinity to `pe`.
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

    /// Frees the memory at once. Collective; it begins with a barrier.
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

    /// Adds 1 to the value, as [`post_n`](Semaphore::post_n) does. This is the only post of a boolean
    /// semaphore.
    ///
    /// # Errors
    /// If the job has failed.
    #[track_caller]
    pub fn post(&self) -> Result<()> {
        self.post_any(1)
    }

    /// Adds `n` to the value, after a fence: a PE that has waited for this post sees the effects of all
    /// earlier operations of this PE, to any PE, except those through a [`Context`](crate::Context).
    ///
    /// # Errors
    /// If the semaphore is boolean, `n` exceeds [`Semaphores::MAX`], or the job has failed. If the value
    /// becomes too large, the wait returns the error.
    #[track_caller]
    pub fn post_n(&self, n: u64) -> Result<()> {
        self.check_integer("post_n")?;
        self.check_count("post_n", n)?;
        self.post_any(n)
    }

    /// Waits for 1 and takes it, as [`wait_n`](Semaphore::wait_n) does. This is the only wait of a boolean
    /// semaphore.
    ///
    /// # Errors
    /// As [`wait_n`](Semaphore::wait_n).
    #[track_caller]
    pub fn wait(&self) -> Result<()> {
        self.wait_as("wait", 1)
    }

    /// Waits until the value is at least `n`, and subtracts `n`. A fence follows: the effects of the posters'
    /// earlier operations are visible. Waiters are served in no particular order.
    ///
    /// # Errors
    /// If the semaphore is boolean, if this PE is not its single consumer, if `n` or the value exceeds
    /// [`Semaphores::MAX`], or if two PEs have posted to a semaphore with a single producer.
    ///
    /// # Panics
    /// If every other PE has left the job and the value is still less than `n`.
    #[track_caller]
    pub fn wait_n(&self, n: u64) -> Result<()> {
        self.check_integer("wait_n")?;
        self.check_count("wait_n", n)?;
        self.wait_as("wait_n", n)
    }

    /// Takes 1 if possible, as [`try_wait_n`](Semaphore::try_wait_n) does. This is the only such call for a
    /// boolean semaphore (UPC's `upc_sem_try`).
    ///
    /// # Errors
    /// As [`wait_n`](Semaphore::wait_n).
    #[track_caller]
    pub fn try_wait(&self) -> Result<bool> {
        self.try_as("try_wait", 1)
    }

    /// Makes progress, subtracts `n` from the value if it is at least `n`, and returns whether it did. If so,
    /// a fence follows as in [`wait_n`](Semaphore::wait_n) (UPC's `upc_sem_tryN`).
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
        // Over the network a fence would not cover operations on third PEs.
        match world.core().net.is_none() {
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

    /// Puts the number of all posts of this PE, and wakes the consumer if it sleeps.
    fn put_posted(&self, n: u64) -> Result<()> {
        let (set, words) = (self.set, &self.set.words);
        let me = words.region().my_rank();
        let posted = &set.posted[self.owner * set.count + self.index];
        let total = posted.get().wrapping_add(n) & TOTAL_MASK;
        let word = (me as u64 + 1) << TOTAL_BITS | total;
        words.p(self.owner, self.word(POSTED), word)?;
        posted.set(total);
        // SAFETY: the owner was compared with the number of PEs when this handle was made. A sleeper that
        // announces itself at this moment checks again within its bounded sleep.
        if unsafe { words.place.mapped(self.owner) }.is_some_and(|part| part.has_waiters()) {
            words.ring(self.owner);
        }
        Ok(())
    }

    /// Wakes consumers on other PEs than the owner, which an atomic does not wake.
    pub(super) fn ring_consumers(&self) {
        if !self.set.kind.has_one_consumer {
            self.set.words.world().core().ring_sleepers_for_data();
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
        world.core().ring_sleepers_for_data();
        world.core().wait(Awaited::Element { index: self.word(COUNT) }, || {
            // A count that was taken once is not taken again.
            if found.is_none() {
                found = look();
            }
            found.is_some()
        });
        // SYNC POINT put-order: acquires the operations that the posters released by their fences.
        fence(Ordering::Acquire);
        found.expect("a wait ends when something is found")
    }

    fn try_as(&self, operation: &'static str, n: u64) -> Result<bool> {
        self.check_consumer(operation)?;
        let world = self.set.words.world();
        world.core().ring_sleepers_for_data();
        world.progress();
        let is_taken = self.take(operation, n)?;
        if is_taken {
            // SYNC POINT put-order: acquires the operations that the posters released by their fences.
            fence(Ordering::Acquire);
        }
        Ok(is_taken)
    }

    /// Subtracts `n` from the value if it is at least `n`.
    fn take(&self, operation: &'static str, n: u64) -> Result<bool> {
        let kind = self.set.kind;
        match (kind.has_one_consumer, kind.is_boolean) {
            (true, _) => self.take_alone(operation, n),
            (false, true) => self.take_flag(),
            (false, false) => self.take_shared(operation, n),
        }
    }

    /// The same for a single consumer, from the own words.
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
        // Only the bits of the total are read, so the sum may wrap around.
        taken.set(taken.get().wrapping_add(n));
        Ok(true)
    }

    /// The same for multiple consumers of a boolean semaphore.
    fn take_flag(&self) -> Result<bool> {
        let (words, at) = (&self.set.words, self.word(COUNT));
        // Over the network a swap is as fast as a load; in shared memory it takes the cache line from the
        // others. SAFETY: the owner was compared with the number of PEs when this handle was made.
        let is_far = unsafe { words.place.mapped(self.owner) }.is_none();
        Ok((is_far || self.peek()? != 0) && words.swap(self.owner, at, 0)? != 0)
    }

    /// The same for multiple consumers of an integer semaphore.
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

    /// Reads the shared count by the cheapest access.
    fn peek(&self) -> Result<u64> {
        let (words, at) = (&self.set.words, self.word(COUNT));
        if self.is_own() { Ok(words.local().get(at)) } else { words.atomic_fetch(self.owner, at) }
    }

    /// The index of a word of this semaphore.
    pub(super) fn word(&self, which: usize) -> usize {
        self.index * STRIDE + which
    }

    /// The PE that it has affinity to. In a space it is named by its rank elsewhere.
    pub(super) fn owner_pe(&self) -> Pe {
        self.set.words.region().pe(self.owner)
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

    /// Returns an error for numbers that the value cannot have.
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
            let reason = "it has a single consumer, the PE that it has affinity to. Let that PE wait, or \
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

    /// Records the producer, and returns an error if there is another one.
    fn check_producer(&self, operation: &'static str, producer: u64) -> Result<()> {
        let known = &self.set.producer[self.index];
        match known.get() {
            before if before == producer => Ok(()),
            0 => {
                known.set(producer);
                Ok(())
            }
            before => {
                let pe = |number: u64| self.set.words.region().pe((number as usize).wrapping_sub(1));
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
        let (me, pe, index) = (self.set.words.world().my_pe(), self.owner_pe(), self.index);
        ErrorKind::BadSemaphore { me, operation, pe, index, reason: reason.to_owned() }.into()
    }
}

impl std::fmt::Debug for Semaphore<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Semaphore({} of PE {}, {:?})", self.index, self.owner_pe(), self.set.kind)
    }
}
