//! Replies: the messages that a handler sends back to the sender of the request.

use super::peers::Peer;
use super::wire::{Head, LONG_WORDS, Words};
use super::{Handler, Message};
use crate::base::awaited::Awaited;
use crate::base::error::{ErrorKind, Result};
use crate::job::callback;
use pelago_fabric::sync::Ordering;

impl Message<'_> {
    /// Replies to the request without a payload. A request has at most one reply, and a reply has none.
    ///
    /// # Errors
    /// If this is a reply, or was answered already; if the sender has no such handler, or there are more than
    /// 16 arguments. Nothing is sent then.
    #[track_caller]
    pub fn answer_short(&self, handler: Handler, args: &[u32]) -> Result<()> {
        self.answer_medium(handler, args, &[])
    }

    /// Replies to the request with a payload, which may be reused at return.
    ///
    /// # Errors
    /// As [`answer_short`](Message::answer_short), and if the payload is too long.
    #[track_caller]
    pub fn answer_medium(&self, handler: Handler, args: &[u32], payload: &[u8]) -> Result<()> {
        let operation = "an answer";
        self.check_answer(operation, handler, args)?;
        self.world.check_payload(operation, payload.len())?;
        self.answer(handler, args, None, payload);
        Ok(())
    }

    /// Makes sure that a reply can be sent at all.
    pub fn check_answer(&self, operation: &'static str, handler: Handler, args: &[u32]) -> Result<()> {
        callback::forbid_held(self.world, operation);
        let (me, name) = (self.world.my_pe(), self.handler_name());
        let why = match () {
            () if self.is_answer() => "its message is an answer itself",
            () if self.is_answered.get() => "it has answered already",
            () => return self.table.check(me, operation, handler, args),
        };
        Err(ErrorKind::AnswerOutOfPlace { me, operation, name, why }.into())
    }

    fn head_of_answer(&self, handler: Handler, args: &[u32], is_long: bool) -> Head {
        Head {
            handler,
            endpoint: self.head.answers_to,
            answers_to: 0,
            args: args.len() as u8,
            is_answer: true,
            is_wide: false,
            is_long,
        }
    }

    /// Sends a reply that was checked.
    #[track_caller]
    pub fn answer(&self, handler: Handler, args: &[u32], place: Option<[u64; LONG_WORDS]>, payload: &[u8]) {
        self.is_answered.set(true);
        let (world, head) = (self.world, self.head_of_answer(handler, args, place.is_some()).pack());
        let words = Words::new(args, place);
        // Counted before it can be executed, so that there are never more messages executed than sent.
        self.table.sent.fetch_add(1, Ordering::Relaxed);
        let peer = self.peer();
        let send = || peer.try_answer(world, head, words.as_slice(), payload);
        if !send() {
            let awaited = Awaited::Room { operation: "an answer", pe: peer.pe() };
            world.wait_in_handler(awaited, send, || world.serve_in_handler());
        }
    }

    /// The sender.
    pub fn peer(&self) -> &Peer {
        self.world.am.peers(self.world).of(self.world, self.from)
    }
}
