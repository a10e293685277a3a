//! An endpoint: handlers of one team, and requests to its members.

use super::{Handler, Handlers, Prepared};
use crate::team::Team;
use crate::world::World;
use pelago_core::base::error::Result;
use pelago_core::base::panic_message::panic_text;
use pelago_core::coll::schedule::Rank;
use pelago_core::messages::endpoint::AmEndpoint;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// An endpoint of active messages; see [`Team::serve`].
pub struct Am<'a> {
    pub(super) world: &'a World,
    pub(crate) inner: AmEndpoint<'a>,
}

impl<'w> Team<'w> {
    /// Runs `work` with an endpoint of active messages. Collective on this team. The handlers may borrow
    /// values that outlive the call. When it returns, all messages of all members, replies included, have
    /// been executed.
    ///
    /// ```
    /// use pelago::am::Handlers;
    /// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// let (sum, answers) = (AtomicU32::new(0), AtomicU32::new(0));
    /// let mut handlers = Handlers::new();
    /// let thanks = handlers.add("thanks", |_| {
    ///     answers.fetch_add(1, Relaxed);
    /// });
    /// let add = handlers.add("add", |message| {
    ///     sum.fetch_add(message.args()[0], Relaxed);
    ///     message.answer_short(thanks, &[]).unwrap();
    /// });
    /// let right = (world.my_pe() + 1) % 3;
    /// world.team().serve(handlers, |am| am.short(right, add, &[5]))??;
    /// assert_eq!((sum.into_inner(), answers.into_inner()), (5, 1));
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If the members do not give handlers of the same names in the same order, or do not all make this call.
    ///
    /// # Panics
    /// If `work` does: that ends the job, as in an exclusive phase, also if the panic is caught. The messages
    /// under way could not be executed any more, nor could the other members know of it.
    #[track_caller]
    pub fn serve<'env, R>(&self, handlers: Handlers<'env>, work: impl FnOnce(&Am<'_>) -> R) -> Result<R> {
        let world = self.world;
        // SAFETY: the endpoint is dropped before this call returns, whatever happens.
        let inner = unsafe { AmEndpoint::open(&world.core().messaging, &self.core, handlers.inner)? };
        let am = Am { world, inner };
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&am))).unwrap_or_else(|payload| {
            // No PE waits for a PE that unwinds out of it, and no PE executes the messages that it has sent.
            let (me, text) = (world.my_pe(), panic_text(payload.as_ref()));
            world.core().record_failure(&format!("PE {me}: the work of serve has panicked: {text}"));
            resume_unwind(payload)
        });
        if let Err(error) = am.inner.complete("the end of serve") {
            // Messages under way may need the values that the handlers borrow.
            world.core().fail(&error.to_string());
        }
        Ok(outcome)
    }
}

impl Am<'_> {
    /// Sends a request without a payload to the member of this rank. It waits for room, and executes the
    /// messages that arrive meanwhile. After each request this PE looks whether a message has arrived.
    ///
    /// # Errors
    /// If there is no such member or handler, or there are more than 16 arguments; nothing is sent then.
    #[inline]
    #[track_caller]
    pub fn short(&self, to: Rank, handler: Handler, args: &[u32]) -> Result<()> {
        self.inner.short(to, handler, args)
    }

    /// Sends a request with a payload of up to [`medium_max`](Am::medium_max) bytes, which the handler finds
    /// in a buffer of the runtime. The payload may be reused at return.
    ///
    /// # Errors
    /// As [`short`](Am::short), and if the payload is too long.
    #[track_caller]
    pub fn medium(&self, to: Rank, handler: Handler, args: &[u32], payload: &[u8]) -> Result<()> {
        self.inner.medium(to, handler, args, payload)
    }

    /// As [`short`](Am::short), but if there is no room now, nothing is sent and the result is `false`
    /// (GASNet's immediate mode).
    ///
    /// # Errors
    /// As [`short`](Am::short).
    pub fn try_short(&self, to: Rank, handler: Handler, args: &[u32]) -> Result<bool> {
        self.inner.try_short(to, handler, args)
    }

    /// As [`medium`](Am::medium), but if there is no room now, nothing is sent and the result is `false`.
    ///
    /// # Errors
    /// As [`medium`](Am::medium).
    pub fn try_medium(&self, to: Rank, handler: Handler, args: &[u32], payload: &[u8]) -> Result<bool> {
        self.inner.try_medium(to, handler, args, payload)
    }

    /// Reserves room for a request whose payload of at most `most` bytes the caller writes in place; fewer
    /// bytes may be sent. Until the request is sent or dropped, the target executes no message that is sent
    /// to it later: write the payload at once, and wait for nothing meanwhile.
    ///
    /// # Errors
    /// If there is no such member, or no message is so long.
    #[track_caller]
    pub fn prepare(&self, to: Rank, most: usize) -> Result<Prepared<'_>> {
        self.inner.check_rank("prepare", to)?;
        self.inner.world.check_payload("prepare", most)?;
        Ok(Prepared::new(self, to, most))
    }

    /// Executes the messages that have arrived, and makes progress. Every call that waits does the same.
    ///
    /// If some PEs are mapped and others are reached over the network, only one poll in 64 makes progress on
    /// the network; all others take a few instructions. The interval grows up to 4096 polls while all
    /// messages come from mapped PEs. A message that has arrived over the network makes it short again.
    #[inline]
    #[track_caller]
    pub fn poll(&self) {
        self.inner.poll();
    }

    /// Bytes of the longest payload of a medium message.
    pub fn medium_max(&self) -> usize {
        self.inner.medium_max()
    }

    /// The number of this PE in the team.
    pub fn my_rank(&self) -> Rank {
        self.inner.my_rank()
    }

    /// The number of members.
    pub fn n_pes(&self) -> usize {
        self.inner.n_pes()
    }

    /// Waits until all messages that all members have sent so far are executed, and the replies to them: a
    /// barrier for the effects of handlers. Collective on the endpoint's team.
    ///
    /// # Errors
    /// If the members do not all make this call.
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        self.inner.barrier()
    }
}
