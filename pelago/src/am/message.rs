//! Handlers and the messages that they are given.

use super::Handler;
use super::long::Long;
use crate::array::view::View;
use pelago_core::base::element::Element;
use pelago_core::base::error::Result;
use pelago_core::coll::schedule::Rank;
use pelago_core::messages;
use std::ops::Range;

/// Handlers of active messages, numbered from 0 in the order in which they are added. All members of a team
/// add the same names in the same order; the code of a handler may differ.
///
/// A handler runs on a thread of its PE that waits, sends or polls, one at a time on a PE; a handler for
/// replies may run while a handler for requests waits for room for its reply. It must not wait: it may
/// compute, read and write memory of its own PE, take a [`HandlerLock`](crate::am::HandlerLock), and answer
/// its message once. Requests, collective calls and waits in it end the job with an error message. So does a
/// handler that is asleep for 5 s while another thread of its PE waits in the runtime: it may wait for that
/// thread.
#[derive(Default)]
pub struct Handlers<'env> {
    pub(super) inner: messages::Handlers<'env>,
}

impl<'env> Handlers<'env> {
    /// No handlers yet.
    pub fn new() -> Handlers<'env> {
        Handlers::default()
    }

    /// Adds a handler.
    ///
    /// # Panics
    /// If there are 65536 already, or one of this name.
    #[track_caller]
    pub fn add(
        &mut self,
        name: &'static str,
        function: impl Fn(&Message<'_>) + Send + Sync + 'env,
    ) -> Handler {
        self.inner.add(name, move |message| function(&Message { inner: message }))
    }

    /// The number of the handler of this name.
    pub fn find(&self, name: &str) -> Option<Handler> {
        self.inner.find(name)
    }
}

/// A message on its arrival: its sender, its arguments and its payload. It is valid until the handler
/// returns.
pub struct Message<'m> {
    pub(super) inner: &'m messages::Message<'m>,
}

impl Message<'_> {
    /// The rank of the sender in the endpoint's team.
    pub fn from(&self) -> Rank {
        self.inner.from()
    }

    /// The arguments.
    #[inline]
    pub fn args(&self) -> &[u32] {
        self.inner.args()
    }

    /// The payload; empty unless the message is a medium one.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        self.inner.payload()
    }

    /// The elements that a long message has put to this PE's part of the array that sender and handler have
    /// agreed on; `None` if it is no long message.
    pub fn elements(&self) -> Option<Range<usize>> {
        self.inner.elements()
    }

    /// Whether this is a reply, which cannot be answered.
    pub fn is_answer(&self) -> bool {
        self.inner.is_answer()
    }

    /// The handler that the message names.
    pub fn handler(&self) -> Handler {
        self.inner.handler()
    }

    /// Replies to the request without a payload. A request has at most one reply, and a reply has none.
    ///
    /// # Errors
    /// If this is a reply, or was answered already; if the sender has no such handler, or there are more than
    /// 16 arguments. Nothing is sent then.
    #[track_caller]
    pub fn answer_short(&self, handler: Handler, args: &[u32]) -> Result<()> {
        self.inner.answer_medium(handler, args, &[])
    }

    /// Replies to the request with a payload, which may be reused at return.
    ///
    /// # Errors
    /// As [`answer_short`](Message::answer_short), and if the payload is too long.
    #[track_caller]
    pub fn answer_medium(&self, handler: Handler, args: &[u32], payload: &[u8]) -> Result<()> {
        self.inner.answer_medium(handler, args, payload)
    }

    /// Puts data to the sender's part of an array, and replies to the request: the handler there sees them.
    ///
    /// # Errors
    /// As [`answer_short`](Message::answer_short), as [`View::put`], and over the network if they are longer
    /// than a medium payload.
    #[track_caller]
    pub fn answer_long<T: Element>(
        &self,
        handler: Handler,
        args: &[u32],
        (array, index): (&View<'_, T>, usize),
        source: &[T],
    ) -> Result<()> {
        let operation = "a long answer";
        let message = self.inner;
        message.check_answer(operation, handler, args)?;
        let long = Long::new(operation, (message.world, message.from), (array, index), source)?;
        if message.peer().is_mapped() {
            array.put(long.rank, index, source)?;
            message.answer(handler, args, Some(long.words), &[]);
        } else {
            message.world.check_payload(operation, long.bytes.len())?;
            message.answer(handler, args, Some(long.words), long.bytes);
        }
        Ok(())
    }
}
