//! The base of bindings to other languages (the OpenSHMEM library is one): symmetric memory in which they
//! allocate themselves, by addresses, with a fast path of their own.
//!
//! A binding takes all of the symmetric heap as one array of bytes, keeps account of it with a [`Heap`], and
//! sees it as elements of any type by [`View::cast`]. Its fast path reads a [`Reach`]; every operation that
//! the fast path does not take goes through the views' own methods, which check, count, and use the network.

use crate::array::amo::{AtomicElement, comparing};
use crate::array::view::View;
use crate::context::Context;
use crate::team::Team;
use crate::world::World;
use crate::{AtomicOp, Pe, SignalOp};
use pelago_core::base::call::Call;
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::base::kind::ObjectKind;
use pelago_core::base::label;
use pelago_core::coll::direct::Direct;
use pelago_core::endpoint::{Endpoint, Injector, RemoteAddress};
use pelago_core::memory::segment::WAITERS_BEFORE_WORDS;
use pelago_core::{Core, join, process};

pub use crate::run::run_with;
pub use crate::team::founding::Foundry;
pub use pelago_core::base::wait_set::WaitSet;
pub use pelago_core::coll::fnv::fnv1a;
pub use pelago_core::memory::heap::{GRANULE_BYTES, HEADER_BYTES, Heap};
pub use pelago_core::process::{abandon, ask_for_settings, program_threads};
pub use pelago_fabric::copy;
use pelago_fabric::inject::{Injected, Kept, Refused, Unfinished};
pub use pelago_fabric::sync::fence_after_update;
use pelago_fabric::sync::{AtomicU32, Ordering, fence};
pub use pelago_fabric::threads::count as thread_count;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr::{self, null};
use std::sync::Arc;

/// The fields of an array that a binding's own fast path reads. All of it is constant while the array lives.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// PEs that a fast path may look up in `parts`: all, or none while operations are counted.
    pub limit: usize,
    /// The address at which the part of each PE is mapped; null where operations on it go over the network.
    pub parts: *const *mut u8,
    /// The start of this PE's part.
    pub own: *mut u8,
    /// Size of a part in bytes.
    pub bytes: usize,
}

/// The handle by which a binding's own fast path starts puts and gets on PEs that are not mapped.
#[derive(Clone, Copy, Debug)]
pub struct Far {
    injector: *const Injector,
    /// The endpoint that it is of, and the world; null if nothing is injected.
    endpoint: *const Endpoint,
    world: *const World,
    /// Where the array begins in the region of each PE.
    offset_bytes: usize,
}

impl Far {
    /// Not to be used: where no PE is within the limit.
    pub const NONE: Far = Far { injector: null(), endpoint: null(), world: null(), offset_bytes: 0 };

    /// One that injects nothing.
    pub fn closed(self, world: &World) -> Far {
        Far { injector: &world.core().no_injector, ..self }
    }

    /// Puts a value to `offset_bytes` of the part on `pe`. The source is free at return, and the put is
    /// complete after a quiet. `false` if nothing has begun: then the view's own methods are to be called.
    ///
    /// # Safety
    /// The array is alive, and so is the context that it was seen through. The PE exists, its part is not
    /// mapped, and the value lies in the part.
    #[inline(always)]
    pub unsafe fn put<V: Copy>(&self, pe: Pe, offset_bytes: usize, value: V) -> bool {
        let place = self.offset_bytes + offset_bytes;
        // SAFETY: the caller guarantees the array, and with it the injector, and also PE and place.
        unsafe {
            match (*self.injector).put_word(pe, place, value, ptr::from_ref(self).cast()) {
                Injected::Started => {}
                Injected::NotStarted => return false,
                Injected::Refused(kept) => Far::put_again(&*self.injector, kept, size_of::<V>()),
            }
        }
        true
    }

    /// Puts a value of this many bytes that the provider did not take at once.
    #[cold]
    #[inline(never)]
    fn put_again(injector: &Injector, kept: Kept, bytes: usize) {
        let Refused { origin, pe, offset_bytes, value } = injector.refused(kept, bytes);
        let target = RemoteAddress { operation: "p", pe, offset_bytes };
        // SAFETY: `put` has named itself, and the endpoint and the world of the operation that was started
        // live as long as the array; without a counter the source is free when this returns.
        unsafe {
            let Far { endpoint, world, .. } = *origin.cast::<Far>();
            (*endpoint).put((*world).core(), target, value.as_ptr(), bytes, None);
        }
    }

    /// Puts at least one byte to an offset of the part on `pe`, and then changes the word at another offset.
    /// `false` if nothing has begun, as above.
    ///
    /// # Safety
    /// As [`put`](Far::put). The source is valid for reads. The word lies in the part, aligned.
    pub unsafe fn put_signal(
        &self,
        pe: Pe,
        (offset_bytes, source, bytes): (usize, *const u8, usize),
        (word_offset_bytes, op): (usize, SignalOp),
    ) -> bool {
        let data = (self.offset_bytes + offset_bytes, source, bytes);
        let signal = (self.offset_bytes + word_offset_bytes, op.atomic());
        // SAFETY: the caller guarantees the array, and with it the injector, and also PE, places and source.
        unsafe { (*self.injector).put_signal(pe, data, signal) }
    }

    /// Gets a value from `offset_bytes` of the part on `pe`. `None` if nothing has begun, as above.
    ///
    /// # Safety
    /// As [`put`](Far::put). Any bytes are a value.
    #[inline(always)]
    pub unsafe fn get<V: Copy>(&self, pe: Pe, offset_bytes: usize) -> Option<V> {
        let mut value = MaybeUninit::<V>::uninit();
        let (from, into) =
            ((pe, self.offset_bytes + offset_bytes), (value.as_mut_ptr().cast(), size_of::<V>()));
        // SAFETY: the caller guarantees the array, and with it the injector, and also PE and place. The value
        // is there until the get is complete.
        unsafe {
            let (origin, finish) =
                (ptr::from_ref(self).cast(), move |get| Far::finish_get(get, into.0, into.1));
            (*self.injector).get(from, into, origin, finish).then(|| value.assume_init())
        }
    }

    /// Brings a get to its end.
    ///
    /// # Safety
    /// As it was started, into this place.
    unsafe fn finish_get(get: Unfinished, into: *mut u8, bytes: usize) {
        // SAFETY: `get` has named itself, and the endpoint and the world of the operation that was started
        // live as long as the array; the caller guarantees the place.
        unsafe {
            let Far { endpoint, world, .. } = *get.origin.cast::<Far>();
            (*endpoint).finish_get((*world).core(), get, into, bytes);
        }
    }
}

/// The distance in bytes from a word to the start of each part. The word has 4 bytes and is not 0 while the
/// PE sleeps until its part changes. A PE that has changed a word of the part atomically reads it after
/// [`fence_after_update`], and calls [`View::wake`] if it is not 0.
pub const WAITERS_BEFORE_BYTES: usize = WAITERS_BEFORE_WORDS * size_of::<u32>();

impl<'w, T: Element> View<'w, T> {
    /// The fields that a binding's own fast path reads.
    pub fn reach(&self) -> Reach {
        Reach {
            limit: self.place.limit,
            parts: self.place.table(),
            own: self.place.own().as_ptr().cast(),
            bytes: self.len() * size_of::<T>(),
        }
    }

    /// The handle by which a binding's own fast path injects, through the context that the array is seen
    /// through. PEs are those of the job: nothing is injected to an array of a space.
    pub fn far(&self) -> Far {
        let endpoint = self.world().core().net.as_ref().map(|_| Arc::as_ptr(self.net_endpoint()));
        Far {
            injector: self.injector,
            endpoint: endpoint.unwrap_or(null()),
            world: self.world(),
            offset_bytes: self.place.offset_bytes(),
        }
    }

    /// The same memory as elements of another type.
    ///
    /// # Panics
    /// If the array is not aligned for them.
    ///
    /// # Safety
    /// The array outlives the result and is in no exclusive phase meanwhile. For atomics on complex numbers
    /// it is aligned to their size.
    pub unsafe fn cast<U: Element>(&self) -> View<'w, U> {
        let start = self.reach().own as usize;
        assert!(start.is_multiple_of(align_of::<U>()), "an array at {start:#x} as elements of another type");
        self.with_place(self.place.cast())
    }

    /// The same memory from `skip_bytes` on, as elements of another type. The call allocates memory that
    /// stays to the end of the process: call it a few times only.
    ///
    /// # Panics
    /// If the array is not aligned for them there, or is shorter.
    ///
    /// # Safety
    /// As [`cast`](View::cast).
    pub unsafe fn cast_from<U: Element>(&self, skip_bytes: usize) -> View<'w, U> {
        let Reach { parts, own, bytes, .. } = self.reach();
        let start = own as usize + skip_bytes;
        assert!(start.is_multiple_of(align_of::<U>()) && skip_bytes <= bytes, "a view from {start:#x} on");
        // SAFETY: the table has an entry for each member.
        let parts = (0..self.region().len()).map(|rank| unsafe { *parts.add(rank) });
        let behind = |part: *mut u8| if part.is_null() { part } else { part.wrapping_add(skip_bytes) };
        let parts: Vec<*mut u8> = parts.map(behind).collect();
        self.with_place(self.place.cast_from(skip_bytes, parts.leak().as_ptr().cast()))
    }

    /// Forgets that this PE has acquired locks which begin in these bytes of the array: other things will lie
    /// there.
    pub fn forget_locks(&self, bytes: Range<usize>) {
        self.usage().locks.forget(bytes);
    }

    /// Wakes a PE that sleeps until its part of this array changes.
    pub fn wake(&self, pe: Pe) {
        self.ring(pe);
    }

    /// Maps the pages that hold the bytes `bytes` of this PE's part at `address` as well, in place of the
    /// pages there; the contents are the part's. The pages stay mapped when the array and the world have been
    /// dropped.
    ///
    /// These are two system calls and nothing else: it may be called where no memory of the program may
    /// change.
    ///
    /// # Errors
    /// If the system refuses.
    ///
    /// # Panics
    /// If the part does not have these bytes.
    ///
    /// # Safety
    /// The part's start, the ends of the range and `address` are multiples of the page size, the range of
    /// that size from `address` on is mapped, and no thread accesses it meanwhile.
    pub unsafe fn map_at(&self, bytes: Range<usize>, address: *mut u8) -> std::io::Result<()> {
        let part = self.reach();
        assert!(bytes.start <= bytes.end && bytes.end <= part.bytes, "bytes {bytes:?} of {}", part.bytes);
        let start = part.own.wrapping_add(bytes.start);
        // SAFETY: an old size of 0 leaves the part where it is; the caller guarantees the rest.
        let mapped = unsafe {
            let flags = rustix::mm::MremapFlags::MAYMOVE;
            rustix::mm::mremap_fixed(start.cast(), 0, bytes.len(), flags, address.cast())
        }?;
        // Core files leave out the node's memory, but not what lay here before.
        // SAFETY: the range was mapped just now, and the advice does not change it. A refusal is harmless.
        let _ = unsafe { rustix::mm::madvise(mapped, bytes.len(), rustix::mm::Advice::LinuxDoDump) };
        Ok(())
    }
}

impl<T: Element> View<'_, T> {
    /// Waits until `look`, which looks at this PE's part of the array, from element `index` on, by atomic
    /// loads, has found something; as all waits of [`Local`](crate::Local) do.
    ///
    /// # Panics
    /// If every other PE has left the job before.
    #[inline]
    #[track_caller]
    pub fn wait_to_find<R>(&self, index: usize, look: impl FnMut() -> Option<R>) -> R {
        self.local().until(index, look)
    }

    /// Makes progress, and lets `look`, as above, look once; as all tests of [`Local`](crate::Local) do.
    #[inline]
    pub fn test_to_find<R>(&self, look: impl FnOnce() -> Option<R>) -> Option<R> {
        self.world().core().ring_sleepers_for_data();
        self.world().progress();
        let found = look();
        match found {
            // SYNC POINT put-order: acquires the stores that the writer released by its fence before it
            // wrote.
            Some(_) => fence(Ordering::Acquire),
            None => _ = self.world().core().note_test(false),
        }
        found
    }
}

impl<T: AtomicElement> View<'_, T> {
    /// Starts a [`compare_swap`](View::compare_swap) and leaves it to the next quiet of its context
    /// (OpenSHMEM's `atomic_compare_swap_nbi`).
    ///
    /// # Errors
    /// If there is no such PE or element; nothing is started then.
    ///
    /// # Safety
    /// As for [`fetch_amo_nbi`](View::fetch_amo_nbi).
    pub unsafe fn compare_swap_nbi(
        &self,
        pe: Pe,
        index: usize,
        expected: T,
        new: T,
        old: &mut MaybeUninit<T>,
    ) -> Result<()> {
        let atomic = comparing(AtomicOp::CompareSwap, expected, new);
        // SAFETY: the caller guarantees that the place of the old value is valid.
        unsafe { self.amo_tracked("compare_swap_nbi", (pe, index), &atomic, old.as_mut_ptr(), None) }
    }
}

impl Team<'_> {
    /// Whether blocking operations between members that map each other do nothing but themselves: no checks,
    /// no counting, no schedules.
    #[doc(hidden)]
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.core.is_fast
    }

    /// Broadcast of one word of 8 bytes. Collective; the same operation as any broadcast of 8 bytes.
    ///
    /// # Safety
    /// The team is plain, `root` one of its ranks; both words are aligned, in this PE's parts of arrays of
    /// the world, and no array is in an exclusive phase.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn broadcast_word(&self, root: usize, target: *mut u64, source: *const u64) {
        let direct = Direct { world: self.world.core(), team: &self.core, operation: "broadcast" };
        // SAFETY: the caller guarantees that the words are valid, and that the members map each other.
        unsafe { direct.broadcast_word(root, source, target) };
    }
}

impl Context<'_> {
    /// Makes progress, and returns whether a [`quiet`](Context::quiet) would not wait; if so, the call is a
    /// quiet.
    pub fn is_quiet(&self) -> bool {
        self.world().progress();
        let is_quiet = self.endpoint().is_none_or(|endpoint| endpoint.tests_quiet(self.world().core()));
        if is_quiet {
            self.world().core().order_stores();
        }
        is_quiet
    }
}

/// Whether members of teams compare their collective calls (`PELAGO_CHECK`).
pub fn compares_calls(world: &World) -> bool {
    world.core().collectives.are_checked()
}

/// As [`World::init`], with settings (`PELAGO_...`) that replace those of the environment.
///
/// # Errors
/// As [`World::init`], and if there is no such setting or value.
pub fn init_with(settings: &[(&str, &str)]) -> Result<World> {
    join::one_pe(&join::own_settings(settings)?).map(World::from)
}

/// The world of this process for an interface, as [`attach`] returns it.
pub struct Attached {
    /// The world. Dropping it has no effect on the job.
    pub world: World,
    /// Whether this call has joined the job, so that nothing has used the world before.
    pub is_new: bool,
    /// The number of threads of this process without those of the runtime.
    pub program_threads: std::io::Result<usize>,
}

/// Joins the job, unless another interface of this process has done so. Collective.
///
/// # Errors
/// As [`World::init`], and in a child of a fork.
pub fn attach() -> Result<Attached> {
    let process::Joined { core, is_new, program_threads } = process::acquire()?;
    Ok(Attached { world: World::from(core), is_new, program_threads })
}

/// Returns what [`attach`] has joined; the last interface that does so leaves the job as the drop of a world
/// does, but the process stays in its job until it exits, so that [`attach`] can follow. The memory that the
/// world has mapped stays mapped until the result and the world are dropped. Collective.
///
/// # Errors
/// If the PEs do not make the same call.
pub fn detach() -> Result<Option<Left>> {
    Ok(process::release(|| ())?.map(Left))
}

/// A job that this PE has left; dropping it closes the connections to peers.
pub struct Left(#[allow(dead_code, reason = "it is dropped")] Core);

/// Makes progress, and returns whether all operations are complete. If so, the call is a
/// [`quiet`](World::quiet).
pub fn is_quiet(world: &World) -> bool {
    world.progress();
    let is_quiet = world.core().net.as_ref().is_none_or(|net| net.tests_quiet(world.core()));
    if is_quiet {
        world.core().order_stores();
    }
    is_quiet
}

/// Whether operations are counted (`PELAGO_COUNTERS`).
pub fn counts_operations(world: &World) -> bool {
    world.core().tally.is_on()
}

/// The number of the node of a PE.
pub fn node_of(world: &World, pe: Pe) -> u32 {
    world.core().node(pe)
}

/// Declares that all threads of this process belong to this PE, whatever their names. No wait is ended as one
/// in vain while there are other threads.
pub fn own_all_threads(world: &World) {
    world.core().bears_threads.store(true, Ordering::Relaxed);
}

/// Sets the function that returns the name of the call of the other interface that the calling thread is in.
/// Reports on waits name it.
pub fn name_calls_by(names: fn() -> Option<&'static str>) {
    label::name_calls_by(names);
}

/// Accepts collective operations whose source and target overlap, unless `PELAGO_CHECK` is on. The result is
/// unspecified.
pub fn accept_overlap(world: &World) {
    world.core().collectives.bear_overlap();
}

/// Two words that are 0 while fence and quiet only have to order stores. They may be read by atomic loads
/// while the world lives. If one is not 0, call [`fence`](World::fence) or [`quiet`](World::quiet).
pub fn outstanding(world: &World) -> [*const AtomicU32; 2] {
    world.core().outstanding.words()
}

/// Ends the service thread of this PE. Returns whether there was one. Operations of other PEs may wait for
/// this PE until [`resume_service`].
pub fn pause_service(world: &World) -> bool {
    world.core().service.stop()
}

/// Starts the service thread again.
///
/// # Panics
/// If the system refuses a thread.
pub fn resume_service(world: &World) {
    world.core().spawn_service().unwrap_or_else(|error| panic!("{error}"));
}

/// Whether all PEs pass the same words; all get the same result. Collective, a barrier.
pub fn is_same_everywhere(world: &World, words: [usize; 2]) -> bool {
    let [offset_bytes, bytes] = words;
    world.core().agree(Call::Resize { offset_bytes, bytes }).is_ok()
}

/// Agrees with all PEs on an allocation in a [`Heap`] that the caller keeps. Each PE passes whether it `can`
/// make it. Returns whether all can. Collective, a barrier; two if some can and some cannot.
///
/// # Errors
/// If the PEs do not allocate the same.
pub fn agree_on_alloc(world: &World, bytes: usize, align_bytes: usize, can: bool) -> Result<bool> {
    // Such a heap has one kind of allocation: the call of the other kind means that this PE cannot.
    let kind = ObjectKind::Array;
    let votes = [Call::AllocZeroed { kind, bytes, align_bytes }, Call::Alloc { kind, bytes, align_bytes }];
    vote(world, votes, can)
}

/// As [`agree_on_alloc`], for a change of the size of a block.
///
/// # Errors
/// If the PEs do not make the same call.
pub fn agree_on_resize(world: &World, offset_bytes: usize, bytes: usize, can: bool) -> Result<bool> {
    // Blocks begin at multiples of the granule: an odd offset means that this PE cannot.
    let votes = [offset_bytes | 1, offset_bytes];
    vote(world, votes.map(|offset_bytes| Call::Resize { offset_bytes, bytes }), can)
}

/// Agrees with all PEs that a block is freed.
///
/// # Errors
/// If the PEs do not make the same call.
pub fn agree_on_free(world: &World, offset_bytes: usize) -> Result<()> {
    world.core().agree(Call::Free { offset_bytes })
}

/// Agrees on a call that has two forms: the first means that this PE cannot make it, the second that it can.
/// If all PEs pass the same form, that is the result. Otherwise they agree on the second one, and the result
/// is no.
fn vote(world: &World, votes: [Call; 2], can: bool) -> Result<bool> {
    let (mine, other) = (votes[usize::from(can)], votes[usize::from(!can)]);
    match world.core().agree(mine) {
        Ok(()) => Ok(can),
        Err(error) => match error.kind() {
            ErrorKind::Disagreement { theirs, .. } if *theirs == other.to_string() => {
                world.core().agree(votes[1]).map(|()| false)
            }
            _ => Err(error),
        },
    }
}
