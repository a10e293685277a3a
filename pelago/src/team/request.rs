//! Requests: collective operations that are started and not waited for, and those that are started again and
//! again.

use super::Collective;
use super::collective::Sealed;
use crate::events::{Event, Outcome, Probe};
use crate::team::Team;
use crate::world::World;
use pelago_core::base::error::Result;
use pelago_core::coll::call::{Call, Prepared};
use pelago_core::coll::engine::Progress;
use pelago_core::coll::team::TeamCore;
use std::marker::PhantomData;
use std::sync::Arc;

/// The operations of a team, not waiting for their end: see [`Team::nonblocking`].
///
/// Any number may be under way at once, on one team and on several, each with elements of its own. They move
/// while this PE waits for anything, or calls [`progress`](World::progress) or [`test`](Request::test).
///
/// ```
/// use pelago::prelude::*;
/// # pelago::spmd(3, |world| -> pelago::Result<()> {
/// let team = world.team();
/// let (all, mine) = (world.alloc_zeroed::<u32>(3)?, world.alloc_zeroed::<u32>(1)?);
/// mine.local().set(0, world.my_pe() as u32);
/// let gathering = team.nonblocking().all_gather(&all, &mine)?;
/// // ... compute something else ...
/// gathering.wait();
/// assert_eq!(all.local().to_vec(), [0, 1, 2]);
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
#[derive(Clone, Copy)]
pub struct NonBlocking<'t, 'w> {
    pub(super) team: &'t Team<'w>,
}

impl<'t> NonBlocking<'t, '_> {
    /// As [`Team::barrier`], but returns at once; the caller's earlier operations are completed first.
    ///
    /// # Errors
    /// If there is no memory for it.
    #[track_caller]
    pub fn barrier(&self) -> Result<Request<'t>> {
        self.team.world.quiet();
        self.sync()
    }

    /// As [`Team::sync`], but returns at once.
    ///
    /// # Errors
    /// If there is no memory for it.
    #[track_caller]
    pub fn sync(&self) -> Result<Request<'t>> {
        self.start(&Call::barrier())
    }

    fn start<'a>(&self, call: &Call<'_>) -> Result<Request<'a>>
    where
        't: 'a,
    {
        call.check(self.team.world.core(), &self.team.core)?;
        let Team { world, core } = self.team;
        let progress = Prepared::new(world.core(), core, call)?.start(world.core(), core)?;
        Ok(Request { world, operation: call.name(), progress, operands: PhantomData })
    }
}

impl Sealed for NonBlocking<'_, '_> {}

impl<'t> Collective for NonBlocking<'t, '_> {
    type Outcome<'a> = Request<'a>;

    fn team(&self) -> Team<'_> {
        Collective::team(self.team)
    }

    #[track_caller]
    fn perform<'a>(&self, world: &'a World, call: Call<'a>) -> Result<Request<'a>> {
        call.check(self.team.world.core(), &self.team.core)?;
        let progress =
            Prepared::new(world.core(), &self.team.core, &call)?.start(world.core(), &self.team.core)?;
        Ok(Request { world, operation: call.name(), progress, operands: PhantomData })
    }
}

/// A collective operation under way. Dropping it does not end it: the arrays stay in use until it is over.
#[must_use = "the operation is over only when this says so"]
pub struct Request<'a> {
    world: &'a World,
    operation: &'static str,
    progress: Arc<Progress>,
    operands: PhantomData<&'a ()>,
}

impl Request<'_> {
    /// Makes progress, and returns whether the operation is over at this member.
    pub fn test(&self) -> bool {
        self.world.progress();
        let is_done = self.progress.is_done();
        self.world.core().note_test(is_done)
    }

    /// Waits until the operation is over at this member.
    #[track_caller]
    pub fn wait(self) {
        self.world.core().await_collective(self.operation, &self.progress);
    }
}

impl Event for Request<'_> {
    fn world(&self) -> &World {
        self.world
    }

    fn probe(&self) -> Probe {
        Probe::collective(&self.progress)
    }
}

impl Outcome for Request<'_> {
    type Output = ();

    #[track_caller]
    fn wait(self) {
        Request::wait(self);
    }
}

/// The operations of a team, to be started again and again: see [`Team::persistent`].
///
/// ```
/// use pelago::prelude::*;
/// # pelago::spmd(3, |world| -> pelago::Result<()> {
/// let team = world.team();
/// let (sum, mine) = (world.alloc_zeroed::<u64>(1)?, world.alloc_zeroed::<u64>(1)?);
/// let adding = team.persistent().all_reduce(ReduceOp::Sum, &sum, &mine)?;
/// for round in 1..=3 {
///     mine.local().set(0, round);
///     adding.start()?.wait();
///     assert_eq!(sum.local().get(0), 3 * round);
/// }
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
#[derive(Clone, Copy)]
pub struct PersistentCalls<'t, 'w> {
    pub(super) team: &'t Team<'w>,
}

impl Sealed for PersistentCalls<'_, '_> {}

impl<'t, 'w> Collective for PersistentCalls<'t, 'w> {
    type Outcome<'a> = Persistent<'a>;

    fn team(&self) -> Team<'_> {
        Collective::team(self.team)
    }

    #[track_caller]
    fn perform<'a>(&self, world: &'a World, call: Call<'a>) -> Result<Persistent<'a>> {
        call.check(self.team.world.core(), &self.team.core)?;
        let prepared = Prepared::new(world.core(), &self.team.core, &call)?;
        Ok(Persistent { world, team: Arc::clone(&self.team.core), prepared, operands: PhantomData })
    }
}

/// A collective operation that can be started again and again, its schedule made once. Each start is a
/// collective call.
#[must_use = "nothing is done before `start`"]
pub struct Persistent<'a> {
    world: &'a World,
    team: Arc<TeamCore>,
    prepared: Prepared,
    operands: PhantomData<&'a ()>,
}

impl Persistent<'_> {
    /// Starts the operation; one start at a time may be under way.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn start(&self) -> Result<Request<'_>> {
        let progress = self.prepared.start_again(self.world.core(), &self.team)?;
        Ok(Request { world: self.world, operation: self.prepared.operation, progress, operands: PhantomData })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spmd;
    use crate::sim::SimParams;
    use std::time::Duration;

    /// PE 3 is far away: the PE that passes the word on to it waits for its own put at the end, and no longer
    /// for the PE that sent it the word, which may have left.
    #[test]
    fn who_waits_for_its_own_puts_awaits_nobody() {
        let far = Duration::from_millis(1);
        let params = SimParams { nodes: vec![0, 0, 0, 1], latency: far, ..SimParams::default() };
        let on = Spmd::new(4).setting("PELAGO_COLL", "broadcast=binomial").sim(params);
        let awaited = on.run(|world| {
            let (target, source) =
                (world.alloc_zeroed::<u64>(1).unwrap(), world.alloc_zeroed::<u64>(1).unwrap());
            let request = world.team().nonblocking().broadcast(0, &target, &source).unwrap();
            let mut awaited = Vec::new();
            while !request.progress.is_done() {
                awaited.push(request.progress.awaits());
                world.progress();
            }
            awaited.dedup();
            awaited
        });
        let passes_on = |awaited: &Vec<_>| awaited.first() == Some(&Some(0)) && awaited.last() == Some(&None);
        let awaited = awaited.unwrap();
        assert_eq!(awaited.iter().filter(|awaited| passes_on(awaited)).count(), 1, "{awaited:?}");
    }
}
