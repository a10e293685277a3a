//! Events as futures, and an executor for one future.
//!
//! Invariant: a future that is pending is polled again after its event has come, or can no longer come. While
//! a thread drives ([`World::with_progress_thread`]), or this one waits in [`World::block_on`], that thread
//! sees to it; otherwise the future asks to be polled again at once, and makes the progress itself.

use crate::am::{Datum, Reply};
use crate::array::amo::AtomicElement;
use crate::array::nb::{Fetch, Transfer, Update};
use crate::events::{All, Leaf, Outcome, Probe};
use crate::team::message::{ReceiveRequest, SendRequest};
use crate::team::request::Request;
use crate::world::World;
use pelago_core::base::awaited::Awaited;
use pelago_core::base::element::Element;
use pelago_fabric::sync::{AtomicBool, Ordering};
use std::cell::Cell;
use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// An event as a future of its result. It works with any executor. Where a thread of this PE drives, the
/// future is woken when its event has come; elsewhere each poll makes progress, and asks for the next.
#[must_use = "futures do nothing unless they are polled"]
pub struct EventFuture<E: Outcome> {
    /// `None` when it has given its output.
    event: Option<E>,
    registered: Option<u64>,
}

// The event is never pinned: it is only read, and moved out at the end.
impl<E: Outcome> Unpin for EventFuture<E> {}

impl<E: Outcome> EventFuture<E> {
    fn new(event: E) -> EventFuture<E> {
        EventFuture { event: Some(event), registered: None }
    }

    fn forget(&mut self) {
        if let (Some(event), Some(number)) = (&self.event, self.registered.take()) {
            event.world().core().wakers.forget(number);
        }
    }
}

impl<E: Outcome> Future for EventFuture<E> {
    type Output = E::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<E::Output> {
        let this = self.get_mut();
        let event = this.event.as_ref().expect("a future is not polled after it has given its output");
        let (world, probe) = (event.world(), event.probe());
        world.progress();
        if !probe.has_come() {
            check_liveness(world, &probe);
            let (waker, is_own) = (context.waker(), BLOCKING.get() == std::ptr::from_ref(world));
            if is_own || world.core().wakers.are_driven() {
                this.registered = Some(world.core().wakers.register(this.registered, &probe, waker));
            }
            // A driver that has ended meanwhile wakes no future any more.
            if !is_own && !world.core().wakers.are_driven() {
                waker.wake_by_ref();
            }
            return Poll::Pending;
        }
        this.forget();
        let event = this.event.take().expect("it was there a moment ago");
        Poll::Ready(event.wait())
    }
}

/// Fails if the job has, or if a member has left without which the event cannot come.
#[track_caller]
fn check_liveness(world: &World, probe: &Probe) {
    if world.core().has_failed().is_some() && !world.core().is_launched() {
        world.core().give_up("a future after the job has failed");
    }
    if let Some(pe) = probe.awaits().filter(|&pe| world.core().has_left(pe)) {
        // All that it did before it left is visible now: only a last look tells whether that is enough.
        world.progress();
        if !probe.has_come() && probe.awaits() == Some(pe) {
            world.core().wait_in_vain("an event", Some(pe));
        }
    }
}

impl<E: Outcome> Drop for EventFuture<E> {
    fn drop(&mut self) {
        self.forget();
    }
}

macro_rules! futures {
    ($([$($generics:tt)*] $event:ty;)+) => {
        $(impl<$($generics)*> IntoFuture for $event {
            type Output = <$event as Outcome>::Output;
            type IntoFuture = EventFuture<$event>;

            fn into_future(self) -> EventFuture<$event> {
                EventFuture::new(self)
            }
        })+
    };
}

futures! {
    ['a, T: Element] Transfer<'a, T>;
    ['a, T: AtomicElement] Fetch<'a, T>;
    ['a] Update<'a>;
    ['a] Request<'a>;
    ['a] SendRequest<'a>;
    ['a] ReceiveRequest<'a>;
    ['a, R: Datum] Reply<'a, R>;
    ['a] All<'a>;
    ['a] Leaf<'a>;
}

/// Looks between two searches for futures whose events can no longer come.
const LOOKS_PER_HOPE_CHECK: u32 = 256;

thread_local! {
    /// The world in which this thread is in `block_on`; null in none.
    static BLOCKING: Cell<*const World> = const { Cell::new(std::ptr::null()) };
}

/// Ends a `block_on`, on unwinding as well.
struct Blocking(*const World);

impl Drop for Blocking {
    fn drop(&mut self) {
        BLOCKING.set(self.0);
    }
}

/// Wakes the thread that waits in `block_on`.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Flag>) {
        // SYNC POINT woken: releases the earlier stores of the waker.
        self.0.store(true, Ordering::Release);
    }
}

impl World {
    /// Runs a future to its end on this thread, which makes progress and sleeps in between as any wait does.
    ///
    /// ```
    /// use pelago::am::Handlers;
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let mut handlers = Handlers::new();
    /// let square = handlers.add_procedure("square", |_, x: u64| x * x);
    /// world.team().serve(handlers, |am| {
    ///     let sum = world.block_on(async {
    ///         let (a, b) = (am.call(0, square, &3)?, am.call(1, square, &4)?);
    ///         Ok::<u64, pelago::Error>(a.await + b.await)
    ///     })?;
    ///     assert_eq!(sum, 25);
    ///     Ok::<(), pelago::Error>(())
    /// })?
    /// # }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _before = Blocking(BLOCKING.replace(self));
        let mut future = pin!(future);
        let flag = Arc::new(Flag(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&flag));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            // SYNC POINT woken: acquires the earlier stores of the waker.
            self.core().wait(Awaited::Future, self.waking(|| flag.0.swap(false, Ordering::Acquire)));
        }
    }

    /// The condition that a thread checks while it waits for this and wakes futures meanwhile.
    pub(super) fn waking(&self, mut is_over: impl FnMut() -> bool) -> impl FnMut() -> bool {
        let mut looks = 0u32;
        move || {
            self.core().wakers.wake_futures(self.core());
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS_PER_HOPE_CHECK) {
                self.core().wakers.wake_hopeless(self.core());
            }
            is_over()
        }
    }
}
