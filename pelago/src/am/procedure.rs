//! Remote procedure calls: typed requests, whose results come back as events.
//!
//! Invariant: a call has at most one reply message, which finds the [`Reply`] by its ticket, or no [`Reply`]
//! if it was dropped.

use super::{Am, Datum, Handler, Handlers, Message};
use crate::events::{Event, Outcome, Probe};
use crate::world::World;
use pelago_core::base::awaited::Awaited;
use pelago_core::base::error::Result;
use pelago_core::coll::schedule::Rank;
use pelago_core::messages::replies::{Slot, Ticket};
use pelago_core::messages::table::Table;
use std::marker::PhantomData;
use std::sync::Arc;

/// A procedure that members of a team call at each other: see [`Handlers::add_procedure`].
#[derive(Debug)]
pub struct Procedure<A, R> {
    handler: Handler,
    types: PhantomData<fn(A) -> R>,
}

impl<A, R> Clone for Procedure<A, R> {
    fn clone(&self) -> Procedure<A, R> {
        *self
    }
}

impl<A, R> Copy for Procedure<A, R> {}

impl<'env> Handlers<'env> {
    /// Adds a procedure. It is given the rank of the caller and the argument, runs as any handler does, and
    /// its result is sent back to the caller if the caller used [`Am::call`]; [`Am::cast`] has no result.
    ///
    /// # Panics
    /// As [`add`](Handlers::add).
    #[track_caller]
    pub fn add_procedure<A: Datum, R: Datum>(
        &mut self,
        name: &'static str,
        function: impl Fn(Rank, A) -> R + Send + Sync + 'env,
    ) -> Procedure<A, R> {
        let own = self.inner.next();
        let handler = self.add(name, move |message| {
            if message.is_answer() {
                return message.deliver();
            }
            let Some(argument) = A::decode(message.payload()) else {
                let bytes = message.payload().len();
                message.inner.refuse(&format!("brings {bytes} bytes, which are no argument of it"));
            };
            let result = function(message.from(), argument);
            if !message.args().is_empty() {
                let mut bytes = Vec::new();
                result.encode(&mut bytes);
                if let Err(error) = message.answer_medium(own, message.args(), &bytes) {
                    message.inner.refuse(&format!("has a result that cannot be sent: {error}"));
                }
            }
        });
        Procedure { handler, types: PhantomData }
    }
}

impl Message<'_> {
    /// Hands the result of a call to the caller that waits for it.
    #[track_caller]
    fn deliver(&self) {
        let delivered = match *self.args() {
            [number, generation] => {
                self.inner.table.replies.deliver(Ticket { number, generation }, self.payload())
            }
            _ => None,
        };
        if delivered.is_none() {
            self.inner.refuse("answers a call that is not under way");
        }
    }
}

impl Am<'_> {
    /// Calls a procedure at the member of this rank. The argument may be reused at return; the [`Reply`]
    /// yields the result, by [`wait`](Reply::wait), as a future, or among other [events](crate::event). It
    /// waits for room as [`short`](Am::short) does.
    ///
    /// ```
    /// use pelago::am::{HandlerLock, Handlers};
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// let names = HandlerLock::new(Vec::new());
    /// let mut handlers = Handlers::new();
    /// let enter = handlers.add_procedure("enter", |from, name: String| {
    ///     names.lock().push((from, name));
    ///     names.lock().len() as u64
    /// });
    /// world.team().serve(handlers, |am| {
    ///     let place = am.call(0, enter, &format!("PE {}", world.my_pe()))?.wait();
    ///     assert!((1..=3).contains(&place));
    ///     Ok::<(), pelago::Error>(())
    /// })??;
    /// assert_eq!(names.into_inner().len(), if world.my_pe() == 0 { 3 } else { 0 });
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If there is no such member or procedure, or the argument is longer than
    /// [`medium_max`](Am::medium_max) bytes; nothing is called then. A result that is longer ends the job.
    #[track_caller]
    pub fn call<A: Datum, R: Datum>(
        &self,
        to: Rank,
        procedure: Procedure<A, R>,
        argument: &A,
    ) -> Result<Reply<'_, R>> {
        let bytes = encoded(argument);
        self.inner.check_medium(to, procedure.handler, &[], &bytes)?;
        let (ticket, slot) = self.inner.table.replies.open();
        let reply =
            Reply { world: self.world, table: &self.inner.table, to, ticket, slot, result: PhantomData };
        self.medium(to, procedure.handler, &[ticket.number, ticket.generation], &bytes)?;
        Ok(reply)
    }

    /// Calls a procedure whose result is not needed; no reply is sent.
    ///
    /// # Errors
    /// As [`call`](Am::call).
    #[track_caller]
    pub fn cast<A: Datum, R: Datum>(&self, to: Rank, procedure: Procedure<A, R>, argument: &A) -> Result<()> {
        self.medium(to, procedure.handler, &[], &encoded(argument))
    }
}

fn encoded(argument: &impl Datum) -> Vec<u8> {
    let mut bytes = Vec::new();
    argument.encode(&mut bytes);
    bytes
}

/// The result of a call that is under way. If it is dropped, the call continues, and its result is discarded.
#[must_use = "the result is what `wait` answers; `cast` calls a procedure without one"]
pub struct Reply<'a, R: Datum> {
    world: &'a World,
    table: &'a Table,
    to: Rank,
    ticket: Ticket,
    slot: Arc<Slot>,
    result: PhantomData<fn() -> R>,
}

impl<R: Datum> Reply<'_, R> {
    /// Makes progress, and returns whether the result is there.
    pub fn test(&self) -> bool {
        Event::test(self)
    }

    /// Waits for the result.
    #[track_caller]
    pub fn wait(self) -> R {
        if !self.slot.has_come() {
            let awaited = Awaited::Completion { operation: "a remote procedure", pe: self.table.pe(self.to) };
            self.world.core().wait(awaited, || self.slot.has_come());
        }
        let result = R::decode(&self.slot.bytes());
        result.unwrap_or_else(|| {
            let (me, pe) = (self.world.my_pe(), self.table.pe(self.to));
            let bytes = self.slot.bytes().len();
            self.world.core().fail(&format!(
                "PE {me}: a remote procedure of PE {pe} has answered {bytes} bytes, which are no result of \
                 it. Do all members run the same program?"
            ))
        })
    }
}

impl<R: Datum> Drop for Reply<'_, R> {
    fn drop(&mut self) {
        self.table.replies.close(self.ticket);
    }
}

impl<R: Datum> Event for Reply<'_, R> {
    fn world(&self) -> &World {
        self.world
    }

    fn probe(&self) -> Probe {
        Probe::reply(&self.slot)
    }
}

impl<R: Datum> Outcome for Reply<'_, R> {
    type Output = R;

    #[track_caller]
    fn wait(self) -> R {
        Reply::wait(self)
    }
}
