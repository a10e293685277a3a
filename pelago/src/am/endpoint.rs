//! An endpoint: handlers of one team, and requests to its members.

use super::{Handler, Handlers, Prepared};
use crate::Pe;
use crate::base::awaited::Awaited;
use crate::base::error::{ErrorKind, Result};
use crate::base::panic_message::panic_text;
use crate::coll::schedule::Rank;
use crate::job::callback;
use crate::messages::peer_ring::{PeerRing, Short};
use crate::messages::peers::{Peer, Peers};
use crate::messages::table::Table;
use crate::messages::wire::{Head, Words};
use crate::team::Team;
use crate::world::World;
use pelago_fabric::shm::ring::HALVES;
use pelago_fabric::sync::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// An endpoint of active messages; see [`Team::serve`].
pub struct Am<'a> {
    pub(super) world: &'a World,
    pub(crate) table: Arc<Table>,
    members: Box<[Member<'a>]>,
    handlers: usize,
    me: Pe,
    peers: &'a Peers,
}

/// The state that is needed to send to a member.
struct Member<'a> {
    peer: &'a Peer,
    /// The peer ring to it, if it is mapped.
    peer_ring: Option<&'a PeerRing>,
    /// The parts of the header that are the same for all messages to it.
    header: u64,
}

/// Removes the handlers before the values that they borrow are dropped, on unwinding as well.
struct Open<'a> {
    world: &'a World,
    number: u16,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.world.am.forget(self.world, self.number);
    }
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
        callback::forbid(world, "serve");
        callback::forbid_wait(world, || "all members in serve".to_owned());
        if world.barrier.is_closed() {
            let why = world.has_failed().unwrap_or_else(|| "this PE has given up".to_owned());
            world.give_up(&format!("serve after the job has failed: {why}"));
        }
        let fingerprint = handlers.fingerprint();
        // SAFETY: `Open` forgets the table before this call returns, whatever happens.
        let table = Arc::new(unsafe { Table::new(Arc::clone(&self.core), handlers) });
        let number = world.am.register(world, &table);
        let _open = Open { world, number };
        let told = self.exchange_words("serve", [number.into(), fingerprint])?;
        if let Some(rank) = told.iter().position(|&[_, theirs]| theirs != fingerprint) {
            return Err(ErrorKind::HandlersDiffer { me: world.my_pe(), pe: self.core.pe(rank) }.into());
        }
        let (peers, handlers, me) = (world.am.peers(world), table.entries.len(), world.my_pe());
        let member = |(&[theirs, _], &pe): (&[u64; 2], &u32)| Member {
            peer: peers.of(pe as usize),
            peer_ring: peers.of(pe as usize).peer_ring(),
            header: Head::request(theirs as u16, number).pack(),
        };
        let members = told.iter().zip(&table.pes).map(member).collect();
        let am = Am { world, table, members, handlers, me, peers };
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&am))).unwrap_or_else(|payload| {
            // No PE waits for a PE that unwinds out of it, and no PE executes the messages that it has sent.
            let text = panic_text(payload.as_ref());
            world.record_failure(&format!("PE {me}: the work of serve has panicked: {text}"));
            resume_unwind(payload)
        });
        if let Err(error) = am.complete("the end of serve") {
            // Messages under way may need the values that the handlers borrow.
            world.fail(&error.to_string());
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
        let Some((peer_ring, sent)) = self.short_at_once(to, handler, args) else {
            return self.short_slowly(to, handler, args);
        };
        // The rare path is a function of its own, so that no values are saved across it here.
        if sent.is_unsettled {
            self.settle(peer_ring, sent.position);
        } else {
            self.look();
        }
        Ok(())
    }

    /// Sends a short request if all is as it mostly is: the member mapped, room there, a few arguments.
    #[inline(always)]
    fn short_at_once(&self, to: Rank, handler: Handler, args: &[u32]) -> Option<(&PeerRing, Short)> {
        let member = self.members.get(to)?;
        let peer_ring = member.peer_ring?;
        if usize::from(handler.0) >= self.handlers || args.len() > HALVES || !callback::is_free() {
            return None;
        }
        let claimed = peer_ring.try_claim_short()?;
        // Before it can be executed, as in `counted`.
        self.table.sent.fetch_add(1, Ordering::Relaxed);
        let header = Head::with(member.header, handler, args.len());
        Some((peer_ring, peer_ring.send_short(claimed, self.me, header, args)))
    }

    /// Completes a short request (full half, sleeping receiver), and looks whether a message has arrived.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn settle(&self, peer_ring: &PeerRing, position: u64) {
        peer_ring.settle(position);
        self.look();
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn short_slowly(&self, to: Rank, handler: Handler, args: &[u32]) -> Result<()> {
        self.medium(to, handler, args, &[])
    }

    /// Sends a request with a payload of up to [`medium_max`](Am::medium_max) bytes, which the handler finds
    /// in a buffer of the runtime. The payload may be reused at return.
    ///
    /// # Errors
    /// As [`short`](Am::short), and if the payload is too long.
    #[track_caller]
    pub fn medium(&self, to: Rank, handler: Handler, args: &[u32], payload: &[u8]) -> Result<()> {
        self.check_medium(to, handler, args, payload)?;
        self.deliver(to, self.head(to, handler, args, false), &Words::new(args, None), payload);
        Ok(())
    }

    /// As [`short`](Am::short), but if there is no room now, nothing is sent and the result is `false`
    /// (GASNet's immediate mode).
    ///
    /// # Errors
    /// As [`short`](Am::short).
    pub fn try_short(&self, to: Rank, handler: Handler, args: &[u32]) -> Result<bool> {
        self.try_medium(to, handler, args, &[])
    }

    /// As [`medium`](Am::medium), but if there is no room now, nothing is sent and the result is `false`.
    ///
    /// # Errors
    /// As [`medium`](Am::medium).
    pub fn try_medium(&self, to: Rank, handler: Handler, args: &[u32], payload: &[u8]) -> Result<bool> {
        self.check_medium(to, handler, args, payload)?;
        let head = self.head(to, handler, args, false);
        let is_sent = self.send(to, head, &Words::new(args, None), payload);
        self.look_after(to);
        Ok(is_sent)
    }

    /// Room for a request whose payload is written in place: of at least one and at most `most` bytes, of
    /// which less may be used. Until it is sent or dropped, the target executes nothing that is sent to it
    /// later: fill it at once, and wait for nothing meanwhile.
    ///
    /// # Errors
    /// If there is no such member, or no message is so long.
    #[track_caller]
    pub fn prepare(&self, to: Rank, most: usize) -> Result<Prepared<'_>> {
        self.check_rank("prepare", to)?;
        self.world.check_payload("prepare", most)?;
        Ok(Prepared::new(self, to, most))
    }

    /// Executes the messages that have arrived, and makes progress. Every call that waits does the same.
    /// Where some PEs are mapped and others are reached over the network, only every 64th poll, and one after
    /// a message was taken from there meanwhile, makes progress on the network: the others cost a few
    /// instructions. While all messages come from mapped PEs, it is every 4096th poll in the end.
    #[inline]
    #[track_caller]
    pub fn poll(&self) {
        self.look();
    }

    /// Bytes of the longest payload of a medium message.
    pub fn medium_max(&self) -> usize {
        self.peers.medium_max
    }

    /// The number of this PE in the team.
    pub fn my_rank(&self) -> Rank {
        self.table.team.my_rank()
    }

    /// The number of members.
    pub fn n_pes(&self) -> usize {
        self.table.pes.len()
    }

    /// Looks whether something has arrived.
    #[inline(always)]
    #[track_caller]
    pub(super) fn look(&self) {
        if self.peers.polls.count() {
            self.progress();
        } else if self.peers.polls.has_come() && !callback::holds_lock() {
            self.world.execute_messages();
        }
    }

    /// Looks whether something has arrived after a request to a member was sent, or was not: if it is reached
    /// over the network, by a round of progress there.
    #[track_caller]
    fn look_after(&self, to: Rank) {
        if self.members[to].peer.is_mapped() {
            self.look();
        } else {
            self.progress();
        }
    }

    /// Makes progress, and restarts the count of polls.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn progress(&self) {
        self.world.progress();
        let activity = self.world.net.as_ref().map_or(0, |net| net.activity());
        self.peers.polls.restart(activity);
        if self.world.am.has_arrivals() {
            self.peers.polls.hurry();
        }
    }

    /// Sends a request that was checked, when there is room, and looks whether something has arrived.
    #[track_caller]
    pub(super) fn deliver(&self, to: Rank, head: Head, words: &Words, payload: &[u8]) {
        if !self.send(to, head, words, payload) {
            self.world.wait(self.room(to), || self.send(to, head, words, payload));
        }
        self.look_after(to);
    }

    /// Sends a request that was checked; `false` if there is no room now.
    #[inline(always)]
    fn send(&self, to: Rank, head: Head, words: &Words, payload: &[u8]) -> bool {
        let peer = self.members[to].peer;
        self.counted(|| peer.try_request(self.world, head.pack(), words.as_slice(), payload))
    }

    /// Counts the message that `send` sends, before it can be executed: another thread of this PE may be in a
    /// barrier. If the count is one too high for a moment, the barrier looks once more; if it were one too
    /// low, the barrier could end early.
    #[inline(always)]
    fn counted(&self, send: impl FnOnce() -> bool) -> bool {
        self.table.sent.fetch_add(1, Ordering::Relaxed);
        let is_sent = send();
        if !is_sent {
            self.table.sent.fetch_sub(1, Ordering::Relaxed);
        }
        is_sent
    }

    #[inline(always)]
    pub(super) fn head(&self, to: Rank, handler: Handler, args: &[u32], is_long: bool) -> Head {
        let header = Head::with(self.members[to].header, handler, args.len());
        Head { is_long, ..Head::unpack(header).expect("what was packed") }
    }

    /// How the member of this rank is reached.
    pub(crate) fn peer(&self, to: Rank) -> &Peer {
        self.members[to].peer
    }

    pub(super) fn room(&self, to: Rank) -> Awaited {
        Awaited::Room { operation: "an active message", pe: self.table.pe(to) }
    }

    pub(super) fn check_medium(
        &self,
        to: Rank,
        handler: Handler,
        args: &[u32],
        payload: &[u8],
    ) -> Result<()> {
        let operation = "an active message";
        self.check(operation, to, handler, args)?;
        self.world.check_payload(operation, payload.len())
    }

    /// Makes sure that a request can be sent at all.
    pub(super) fn check(
        &self,
        operation: &'static str,
        to: Rank,
        handler: Handler,
        args: &[u32],
    ) -> Result<()> {
        self.check_rank(operation, to)?;
        self.table.check(self.world.my_pe(), operation, handler, args)
    }

    pub(super) fn check_rank(&self, operation: &'static str, to: Rank) -> Result<()> {
        callback::forbid(self.world, operation);
        let (me, n_pes) = (self.world.my_pe(), self.table.pes.len());
        match to < n_pes {
            true => Ok(()),
            false => Err(ErrorKind::PeOutOfRange { me, operation, pe: to, n_pes }.into()),
        }
    }

    /// Waits until all messages that all members have sent so far are executed, and the replies to them: a
    /// barrier for the effects of handlers. Collective on the endpoint's team.
    ///
    /// # Errors
    /// If the members do not all make this call.
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        callback::forbid(self.world, "barrier of an endpoint");
        self.complete("a barrier of active messages")
    }

    /// Waits until all messages of all members are executed.
    ///
    /// Source: F. Mattern, Algorithms for Distributed Termination Detection (the four counters).
    #[track_caller]
    fn complete(&self, operation: &'static str) -> Result<()> {
        callback::forbid_wait(self.world, || operation.to_owned());
        let team = Team { world: self.world, core: Arc::clone(&self.table.team) };
        let mut before = None;
        loop {
            // Not a poll: it is the only progress if this PE is the last in each exchange.
            self.world.progress();
            let told = team.exchange_words(operation, self.table.counts())?;
            let sum = |i: usize| told.iter().map(|counts| counts[i]).sum::<u64>();
            let now = (sum(0), sum(1));
            // Messages executed in the previous look were sent before this one.
            if let Some((_, executed)) = before.filter(|&(_, executed)| executed > now.0) {
                let (me, sent) = (self.world.my_pe(), now.0);
                self.world.fail(&format!(
                    "PE {me}: the members of a team have executed {executed} active messages in {operation}, \
                     but have sent {sent}: this is a defect of the runtime"
                ));
            }
            // Of two looks that see the same nothing has happened in between.
            if now.0 == now.1 && before == Some(now) {
                return Ok(());
            }
            before = Some(now);
        }
    }
}
