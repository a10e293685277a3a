//! An endpoint of active messages: handlers of a team, and requests to its members.
//!
//! Invariant: the members have registered the same handlers, as far as their names tell. When the endpoint is
//! dropped, none of its handlers runs any more.

use super::Handler;
use super::messaging::Messaging;
use super::peer_ring::{PeerRing, Short};
use super::peers::{Peer, Peers};
use super::table::{Handlers, Table};
use super::wire::{Head, Words};
use crate::Pe;
use crate::base::awaited::Awaited;
use crate::base::error::{ErrorKind, Result};
use crate::base::trace::{Category, Event};
use crate::coll::schedule::Rank;
use crate::coll::team::TeamCore;
use crate::job::callback;
use pelago_fabric::lazy::LazyTable;
use pelago_fabric::shm::ring::HALVES;
use pelago_fabric::sync::Ordering;
use std::mem::transmute;
use std::sync::Arc;

/// An open endpoint. Dropping it removes its handlers, without a wait for messages that are under way: see
/// [`complete`](AmEndpoint::complete).
pub struct AmEndpoint<'a> {
    pub world: &'a Messaging,
    pub table: Arc<Table>,
    /// By rank. A member is looked up when a message is sent to it.
    members: LazyTable<Member>,
    /// Those of them that are mapped: the look at an entry tells that as well.
    near: LazyTable<NearMember>,
    numbers: Numbers,
    handlers: usize,
    me: Pe,
    peers: &'a Peers,
    registration: Registration<'a>,
}

/// The numbers that the members have given this endpoint, by rank.
enum Numbers {
    /// All the same.
    Same(u16),
    Each(Box<[u16]>),
}

impl Numbers {
    fn of(told: &[[u64; 2]]) -> Numbers {
        let first = told.first().map_or(0, |&[number, _]| number);
        match told.iter().all(|&[number, _]| number == first) {
            true => Numbers::Same(first as u16),
            false => Numbers::Each(told.iter().map(|&[number, _]| number as u16).collect()),
        }
    }

    fn of_rank(&self, rank: Rank) -> u16 {
        match self {
            Numbers::Same(number) => *number,
            Numbers::Each(numbers) => numbers[rank],
        }
    }
}

/// The state that is needed to send to a member.
struct Member {
    /// It lives as long as the world, which the endpoint borrows.
    peer: &'static Peer,
    /// The parts of the header that are the same for all messages to it.
    header: u64,
}

/// The state that is needed to send a short request to a member that is mapped.
struct NearMember {
    /// It lives as long as the member's peer.
    peer_ring: &'static PeerRing,
    /// As that of the member.
    header: u64,
}

/// Removes the handlers before the values that they borrow are dropped, on unwinding as well.
struct Registration<'a> {
    world: &'a Messaging,
    number: u16,
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        self.world.am.forget(self.world, self.number);
    }
}

impl<'a> AmEndpoint<'a> {
    /// Opens an endpoint for the members of a team. Collective on the team.
    ///
    /// # Errors
    /// If the members do not give handlers of the same names in the same order, or do not all make this call.
    ///
    /// # Safety
    /// The endpoint is dropped before anything that the handlers borrow.
    #[track_caller]
    pub unsafe fn open(
        world: &'a Messaging,
        team: &Arc<TeamCore>,
        handlers: Handlers<'_>,
    ) -> Result<AmEndpoint<'a>> {
        callback::forbid(world, "serve");
        callback::forbid_wait(world, || "all members in serve".to_owned());
        if world.barrier.is_closed() {
            let why = world.has_failed().unwrap_or_else(|| "this PE has given up".to_owned());
            world.give_up(&format!("serve after the job has failed: {why}"));
        }
        let fingerprint = handlers.fingerprint();
        // SAFETY: the registration forgets the table when the endpoint is dropped, or when this call fails.
        let table = Arc::new(unsafe { Table::new(Arc::clone(team), handlers) });
        let number = world.am.register(world, &table);
        let registration = Registration { world, number };
        let told = team.exchange_words(world, ("serve", 0), [number.into(), fingerprint])?;
        if let Some(rank) = told.iter().position(|&[_, theirs]| theirs != fingerprint) {
            return Err(ErrorKind::HandlersDiffer { me: world.my_pe(), pe: team.pe(rank) }.into());
        }
        let (peers, me) = (world.am.peers(world), world.my_pe());
        let handlers = if world.tally.is_recording() { 0 } else { table.entries.len() };
        let (members, near) = (LazyTable::new(told.len()), LazyTable::new(told.len()));
        let numbers = Numbers::of(&told);
        Ok(AmEndpoint { world, table, members, near, numbers, handlers, me, peers, registration })
    }

    /// The member of a rank of the team.
    #[inline(always)]
    fn member(&self, rank: Rank) -> &Member {
        self.members.get_or_make(rank, |rank| {
            let peer = self.peers.of(self.world, self.table.pe(rank));
            // SAFETY: only the lifetime changes. The peer lives as long as the world, which is borrowed for
            // longer than this endpoint, and no reference leaves the endpoint with the longer lifetime.
            let peer = unsafe { transmute::<&Peer, &'static Peer>(peer) };
            let header = Head::request(self.numbers.of_rank(rank), self.registration.number).pack();
            if let Some(peer_ring) = peer.peer_ring() {
                self.near.get_or_make(rank, |_| NearMember { peer_ring, header });
            }
            Member { peer, header }
        })
    }

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
        let member = self.near.find(to)?;
        let peer_ring = member.peer_ring;
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

    /// Sends a request with a payload of up to [`medium_max`](AmEndpoint::medium_max) bytes, which the
    /// handler finds in a buffer of the runtime. The payload may be reused at return.
    ///
    /// # Errors
    /// As [`short`](AmEndpoint::short), and if the payload is too long.
    #[track_caller]
    pub fn medium(&self, to: Rank, handler: Handler, args: &[u32], payload: &[u8]) -> Result<()> {
        self.check_medium(to, handler, args, payload)?;
        self.deliver(to, self.head(to, handler, args, false), &Words::new(args, None), payload);
        Ok(())
    }

    /// As [`short`](AmEndpoint::short), but if there is no room now, nothing is sent and the result is
    /// `false` (GASNet's immediate mode).
    ///
    /// # Errors
    /// As [`short`](AmEndpoint::short).
    pub fn try_short(&self, to: Rank, handler: Handler, args: &[u32]) -> Result<bool> {
        self.try_medium(to, handler, args, &[])
    }

    /// As [`medium`](AmEndpoint::medium), but if there is no room now, nothing is sent and the result is
    /// `false`.
    ///
    /// # Errors
    /// As [`medium`](AmEndpoint::medium).
    pub fn try_medium(&self, to: Rank, handler: Handler, args: &[u32], payload: &[u8]) -> Result<bool> {
        self.check_medium(to, handler, args, payload)?;
        let head = self.head(to, handler, args, false);
        let is_sent = self.send(to, head, &Words::new(args, None), payload);
        self.look_after(to);
        Ok(is_sent)
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
    pub fn look(&self) {
        // Loaded once: the compiler cannot know that a count does not change where the endpoint points to.
        let polls = &self.peers.polls;
        if polls.count() {
            self.progress();
        } else if polls.has_come() && !callback::holds_lock() {
            self.world.execute_messages();
        }
    }

    /// Looks whether something has arrived after a request to a member was sent, or was not: if it is reached
    /// over the network, by a round of progress there.
    #[track_caller]
    fn look_after(&self, to: Rank) {
        if self.member(to).peer.is_mapped() {
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
    pub fn deliver(&self, to: Rank, head: Head, words: &Words, payload: &[u8]) {
        if !self.send(to, head, words, payload) {
            self.world.wait(self.room(to), || self.send(to, head, words, payload));
        }
        self.look_after(to);
    }

    /// Sends a request that was checked; `false` if there is no room now.
    #[inline(always)]
    fn send(&self, to: Rank, head: Head, words: &Words, payload: &[u8]) -> bool {
        let peer = self.member(to).peer;
        let is_sent = self.counted(|| peer.try_request(self.world, head.pack(), words.as_slice(), payload));
        if self.world.tally.is_recording() && is_sent {
            self.record(to, 8 * words.as_slice().len() + payload.len());
        }
        is_sent
    }

    #[cold]
    fn record(&self, to: Rank, bytes: usize) {
        let pe = self.table.pe(to);
        self.world.tally.note(|| Event::new(Category::Active, "request").with(pe, bytes));
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
    pub fn head(&self, to: Rank, handler: Handler, args: &[u32], is_long: bool) -> Head {
        let header = Head::with(self.member(to).header, handler, args.len());
        Head { is_long, ..Head::unpack(header).expect("what was packed") }
    }

    /// How the member of this rank is reached.
    pub fn peer(&self, to: Rank) -> &Peer {
        self.member(to).peer
    }

    pub fn room(&self, to: Rank) -> Awaited {
        Awaited::Room { operation: "an active message", pe: self.table.pe(to) }
    }

    pub fn check_medium(&self, to: Rank, handler: Handler, args: &[u32], payload: &[u8]) -> Result<()> {
        let operation = "an active message";
        self.check(operation, to, handler, args)?;
        self.world.check_payload(operation, payload.len())
    }

    /// Makes sure that a request can be sent at all.
    pub fn check(&self, operation: &'static str, to: Rank, handler: Handler, args: &[u32]) -> Result<()> {
        self.check_rank(operation, to)?;
        self.table.check(self.world.my_pe(), operation, handler, args)
    }

    pub fn check_rank(&self, operation: &'static str, to: Rank) -> Result<()> {
        callback::forbid(self.world, operation);
        let n_ranks = self.table.pes.len();
        match to < n_ranks {
            true => Ok(()),
            false => Err(self.world.no_such_rank(operation, to, n_ranks)),
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
    pub fn complete(&self, operation: &'static str) -> Result<()> {
        callback::forbid_wait(self.world, || operation.to_owned());
        let mut before = None;
        loop {
            // Not a poll: it is the only progress if this PE is the last in each exchange.
            self.world.progress();
            let told = self.table.team.exchange_words(self.world, (operation, 0), self.table.counts())?;
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
