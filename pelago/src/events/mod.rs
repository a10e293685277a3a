//! Events: conditions that become true once, such as the end of a transfer, of a collective operation or of a
//! remote procedure call. All events can be tested and waited for, alone or together, and awaited as futures.
//!
//! Invariant: an event that has come stays so. Its ordering holds for the thread that has seen it: a call
//! here that returns that an event has come acquires the stores that the event releases.
//!
//! Source: the events of GASNet-EX (leaf events; test and wait for one, some and all).

mod progress_thread;

pub use pelago_core::wakers::Probe;

use crate::Pe;
use crate::world::World;
use pelago_core::base::awaited::Awaited;
use std::marker::PhantomData;

/// A condition that becomes true once: a [`Region`](crate::Region) that is complete, the end of a
/// [`Transfer`](crate::Transfer), [`Fetch`](crate::Fetch), [`Update`](crate::Update), collective
/// [`Request`](crate::Request) or [`Reply`](crate::am::Reply), a message that was sent
/// ([`SendRequest`](crate::message::SendRequest)) or received
/// ([`ReceiveRequest`](crate::message::ReceiveRequest)), the local completion of puts ([`Leaf`]), or several
/// of them ([`when_all`]).
pub trait Event {
    /// The world in which it happens.
    #[doc(hidden)]
    fn world(&self) -> &World;

    /// The test whether the event has occurred.
    #[doc(hidden)]
    fn probe(&self) -> Probe;

    /// Makes progress, and returns whether the event has occurred.
    fn test(&self) -> bool {
        self.world().progress();
        let has_occurred = self.probe().look(self.world().core());
        self.world().core().note_test(has_occurred)
    }
}

/// An event with a result. The wait for it consumes the event. Each such event is also a future: use
/// `.await`, or [`IntoFuture`] where a function takes a future.
pub trait Outcome: Event + Sized {
    /// The result of the event.
    type Output;

    /// Waits until the event has occurred, and returns its result.
    #[track_caller]
    fn wait(self) -> Self::Output;
}

/// Makes progress, and returns whether all events have occurred; `true` if there are none.
pub fn test_all(events: &[&dyn Event]) -> bool {
    advance(events);
    events.iter().all(|event| event.probe().look(event.world().core()))
}

/// Makes progress, and returns the index of the first event in the list that has occurred.
pub fn test_any(events: &[&dyn Event]) -> Option<usize> {
    advance(events);
    first(events)
}

/// Makes progress, and returns the indices of the events that have occurred, in their order.
pub fn test_some(events: &[&dyn Event]) -> Vec<usize> {
    advance(events);
    come(events)
}

/// Waits until all events have occurred.
///
/// ```
/// use pelago::prelude::*;
/// use pelago::event::{self, Event as _};
/// # pelago::spmd(3, |world| -> pelago::Result<()> {
/// let (team, right) = (world.team(), (world.my_pe() + 1) % 3);
/// let (all, mine) = (world.alloc_zeroed::<u32>(3)?, world.alloc_zeroed::<u32>(1)?);
/// let inbox = world.alloc_zeroed::<u32>(1)?;
/// let put = inbox.put_nb(right, 0, vec![7])?;
/// let gathering = team.nonblocking().all_gather(&all, &mine)?;
/// event::wait_all(&[&put, &gathering]);
/// assert!(put.test() && gathering.test());
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
#[track_caller]
pub fn wait_all(events: &[&dyn Event]) {
    await_events(events, || come(events).len() == events.len(), || lost(events).next());
}

/// Waits until an event has occurred, and returns its index; `None` if the list is empty.
#[track_caller]
pub fn wait_any(events: &[&dyn Event]) -> Option<usize> {
    let mut found = None;
    let is_found = || {
        found = first(events);
        found.is_some() || events.is_empty()
    };
    await_events(events, is_found, || lost(events).next().filter(|_| lost(events).count() == events.len()));
    found
}

/// Waits until at least one event has occurred, and returns the indices of all that have, in their order;
/// none if the list is empty.
#[track_caller]
pub fn wait_some(events: &[&dyn Event]) -> Vec<usize> {
    wait_any(events);
    come(events)
}

/// One event that comes when all of these have.
///
/// ```
/// use pelago::event::{Outcome as _, when_all};
/// # pelago::spmd(2, |world| -> pelago::Result<()> {
/// let inbox = world.alloc_zeroed::<u32>(2)?;
/// let puts = [inbox.put_nb(0, 0, vec![1])?, inbox.put_nb(1, 1, vec![2])?];
/// let both = when_all(puts.iter().map(|put| put as _));
/// both.wait();
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
///
/// # Panics
/// If there are no events, so that their world is not known, or they belong to several worlds.
#[track_caller]
pub fn when_all<'a>(events: impl IntoIterator<Item = &'a dyn Event>) -> All<'a> {
    let events: Vec<&dyn Event> = events.into_iter().collect();
    let world = events.first().expect("when_all needs at least one event").world();
    assert!(
        events.iter().all(|event| std::ptr::eq(event.world(), world)),
        "PE {}: when_all of events of different worlds; wait_all takes them",
        world.my_pe()
    );
    All { world, probe: Probe::all(events.iter().map(|event| event.probe())), events: PhantomData }
}

/// Several events as one: see [`when_all`].
#[must_use = "the event is to be tested, waited for or awaited"]
pub struct All<'a> {
    world: &'a World,
    probe: Probe,
    events: PhantomData<&'a ()>,
}

/// The local completion of puts, as an event of its own: their sources may be reused, also if the puts are
/// not complete at their targets yet. See [`Transfer::sent`](crate::Transfer::sent) and
/// [`Region::sent`](crate::Region::sent).
#[must_use = "the event is to be tested, waited for or awaited"]
pub struct Leaf<'a> {
    pub(crate) world: &'a World,
    pub(crate) probe: Probe,
    pub(crate) operation: PhantomData<&'a ()>,
}

impl Event for All<'_> {
    fn world(&self) -> &World {
        self.world
    }

    fn probe(&self) -> Probe {
        self.probe.clone()
    }
}

impl Event for Leaf<'_> {
    fn world(&self) -> &World {
        self.world
    }

    fn probe(&self) -> Probe {
        self.probe.clone()
    }
}

impl Outcome for All<'_> {
    type Output = ();

    #[track_caller]
    fn wait(self) {
        wait_all(&[&self]);
    }
}

impl Outcome for Leaf<'_> {
    type Output = ();

    #[track_caller]
    fn wait(self) {
        wait_all(&[&self]);
    }
}

/// Makes progress in the worlds of all.
fn advance(events: &[&dyn Event]) {
    let mut before: Option<&World> = None;
    for event in events {
        if before.is_none_or(|world| !std::ptr::eq(world, event.world())) {
            event.world().progress();
        }
        before = Some(event.world());
    }
}

/// The place of the first that has come.
fn first(events: &[&dyn Event]) -> Option<usize> {
    events.iter().position(|event| event.probe().look(event.world().core()))
}

/// The places of the events that have come.
fn come(events: &[&dyn Event]) -> Vec<usize> {
    (0..events.len()).filter(|&i| events[i].probe().look(events[i].world().core())).collect()
}

/// PEs that have left the job before they did their part for these events.
#[track_caller]
fn lost<'a>(events: &'a [&dyn Event]) -> impl Iterator<Item = Pe> + 'a {
    events.iter().filter_map(|event| event.probe().awaits().filter(|&pe| event.world().core().has_left(pe)))
}

/// Waits in the world of the first, and moves the others meanwhile.
#[track_caller]
fn await_events(events: &[&dyn Event], mut is_over: impl FnMut() -> bool, lost: impl Fn() -> Option<Pe>) {
    let Some(world) = events.first().map(|event| event.world()) else { return };
    let are_of_one = events.iter().all(|event| std::ptr::eq(event.world(), world));
    let awaited = Awaited::Events { count: events.len() };
    let ready = || {
        if !are_of_one {
            advance(events);
        }
        is_over()
    };
    world.core().wait_for_members(awaited, ready, lost);
}
