//! Two-sided messages between the members of a team.

use crate::Pe;
use crate::array::messages::{Entry, Messages};
use crate::array::nb::Scope;
use crate::events::{Event, Outcome, Probe};
use crate::team::Team;
use crate::team::span::Span;
use crate::world::World;
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::coll::schedule::Rank;
use pelago_core::msg::envelope::{Context, Envelope, Tag};
use pelago_core::msg::operation::{Address, Matched, Mode, Started};
use pelago_core::msg::request::{RequestId, Status};

/// Any source, or any tag, of a receive or a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Any;

/// The source that a receive takes a message from: a rank, or [`Any`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source(Option<Rank>);

/// The tag of the message that a receive takes: a number below 2^32 - 1, or [`Any`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagPattern(Option<Tag>);

impl From<Any> for Source {
    fn from(_: Any) -> Source {
        Source(None)
    }
}

impl From<Rank> for Source {
    fn from(rank: Rank) -> Source {
        Source(Some(rank))
    }
}

impl From<Any> for TagPattern {
    fn from(_: Any) -> TagPattern {
        TagPattern(None)
    }
}

impl From<Tag> for TagPattern {
    fn from(tag: Tag) -> TagPattern {
        TagPattern(Some(tag))
    }
}

/// The envelope of a message that was received or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The rank of its sender in the team.
    pub source: Rank,
    /// Its tag.
    pub tag: Tag,
    /// Its length in bytes.
    pub bytes: usize,
}

impl Received {
    /// Its length in elements of a type, rounded down.
    pub fn count<T: Element>(&self) -> usize {
        self.bytes / size_of::<T>().max(1)
    }
}

impl<'w> Team<'w> {
    /// Sends elements to a member, who [receives](Team::receive) them. The source may be reused at return. A
    /// short message is *eager*: it is sent at once, and the receiver keeps it until a receive asks for it.
    /// The call returns when it has left. A message longer than `PELAGO_EAGER_LIMIT` waits until the receiver
    /// has it. If the receiver has used up its `PELAGO_UNEXPECTED_MEMORY`, the call waits for room. Messages
    /// from one member to another are received in the order sent, as far as the same receives match them.
    ///
    /// ```
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let team = world.team();
    /// let mut word = [0u64];
    /// if team.my_rank() == 0 {
    ///     team.send(1, 7, &[42u64])?;
    /// } else {
    ///     let received = team.receive(0, 7, &mut word)?;
    ///     assert_eq!((word, received.count::<u64>()), ([42], 1));
    /// }
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If there is no such rank, or the tag is 2^32 - 1; nothing is sent then.
    #[track_caller]
    pub fn send<T: Element>(&self, to: Rank, tag: Tag, data: &[T]) -> Result<()> {
        self.send_in_mode("send", to, tag, data, Mode::Standard)
    }

    /// As [`send`](Team::send), but returns when a receive has matched the message (synchronous mode).
    ///
    /// # Errors
    /// As [`send`](Team::send).
    #[track_caller]
    pub fn send_synchronous<T: Element>(&self, to: Rank, tag: Tag, data: &[T]) -> Result<()> {
        self.send_in_mode("send_synchronous", to, tag, data, Mode::Synchronous)
    }

    /// As [`send`](Team::send), but never waits: what cannot leave now is copied (buffered mode).
    ///
    /// # Errors
    /// As [`send`](Team::send).
    #[track_caller]
    pub fn send_buffered<T: Element>(&self, to: Rank, tag: Tag, data: &[T]) -> Result<()> {
        self.send_in_mode("send_buffered", to, tag, data, Mode::Buffered)
    }

    #[inline]
    #[track_caller]
    fn send_in_mode<T: Element>(
        &self,
        operation: &'static str,
        to: Rank,
        tag: Tag,
        data: &[T],
        mode: Mode,
    ) -> Result<()> {
        let address = self.address(operation, to, tag)?;
        let bytes = (data.as_ptr().cast(), size_of_val(data));
        // SAFETY: the source is borrowed until the send is complete.
        if let Some(id) = unsafe { self.world.core().start_send(address, bytes, mode) }? {
            self.world.core().wait_for_message(id);
        }
        Ok(())
    }

    /// Receives a message: from this rank or [`Any`], with this tag or [`Any`]. Returns its source, tag and
    /// length. A message may be shorter than the slice, the rest of which is not changed.
    ///
    /// ```
    /// use pelago::message::Any;
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// let team = world.team();
    /// if team.my_rank() > 0 {
    ///     return team.send(0, team.my_rank() as u32, &[1.5f64, 2.5]);
    /// }
    /// let mut room = [0.0; 4];
    /// for _ in 1..team.n_pes() {
    ///     let received = team.receive(Any, Any, &mut room)?;
    ///     assert_eq!((received.tag as usize, received.count::<f64>()), (received.source, 2));
    /// }
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If there is no such rank; or if the message is longer than the slice, which then has its beginning.
    #[track_caller]
    pub fn receive<T: Element>(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagPattern>,
        into: &mut [T],
    ) -> Result<Received> {
        let from = from.into();
        let pattern = self.pattern("receive", from, tag.into())?;
        let (room, core) = (size_of_val(into), self.world.core());
        // SAFETY: the slice is borrowed until the receive is complete, and takes any bytes.
        let status = unsafe { core.receive_message(pattern, (into.as_mut_ptr().cast(), room)) };
        match from {
            // The source of the message is the one that was asked for.
            Source(Some(source)) if status.bytes <= room => {
                Ok(Received { source, tag: status.tag, bytes: status.bytes })
            }
            _ => self.received(status, room),
        }
    }

    /// Sends to one member and receives from one, perhaps another, without a deadlock whatever the order is
    /// in which the members do so.
    ///
    /// ```
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// let (team, me, n) = (world.team(), world.my_pe(), world.n_pes());
    /// let mut theirs = [0usize];
    /// team.send_receive(((me + 1) % n, 0, &[me]), ((me + n - 1) % n, 0, &mut theirs))?;
    /// assert_eq!(theirs, [(me + n - 1) % n]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`send`](Team::send) and [`receive`](Team::receive).
    #[track_caller]
    pub fn send_receive<T: Element, U: Element>(
        &self,
        (to, send_tag, data): (Rank, Tag, &[T]),
        (from, tag, into): (impl Into<Source>, impl Into<TagPattern>, &mut [U]),
    ) -> Result<Received> {
        // A send that is refused must not leave a receive behind, for which the scope would wait.
        self.address("send_receive", to, send_tag)?;
        self.world.core().check_tag("send_receive", send_tag)?;
        self.world.scope(|scope| {
            let receive = scope.receive(self, from, tag, into)?;
            scope.send(self, to, send_tag, data)?;
            receive.wait()
        })
    }

    /// Waits for a message that a receive from this rank or [`Any`], with this tag or [`Any`], would get, and
    /// does not receive it.
    ///
    /// # Errors
    /// If there is no such rank.
    #[track_caller]
    pub fn probe(&self, from: impl Into<Source>, tag: impl Into<TagPattern>) -> Result<Received> {
        let pattern = self.pattern("probe", from.into(), tag.into())?;
        self.described(self.world.core().probe(&pattern))
    }

    /// As [`probe`](Team::probe), but returns at once: `None` if no such message has come.
    ///
    /// # Errors
    /// If there is no such rank.
    #[track_caller]
    pub fn try_probe(&self, from: impl Into<Source>, tag: impl Into<TagPattern>) -> Result<Option<Received>> {
        let pattern = self.pattern("try_probe", from.into(), tag.into())?;
        self.world.core().probe_once(&pattern).map(|status| self.described(status)).transpose()
    }

    /// Waits for a message as [`probe`](Team::probe), and takes it: no other receive can get it any more
    /// (matched probe). So several threads can probe and receive.
    ///
    /// ```
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// use pelago::message::Any;
    /// let team = world.team();
    /// if team.my_rank() == 0 {
    ///     return team.send(1, 0, &[1u8, 2, 3]);
    /// }
    /// let message = team.match_message(Any, Any)?;
    /// let mut exact = vec![0u8; message.received().bytes];
    /// message.receive(&mut exact)?;
    /// assert_eq!(exact, [1, 2, 3]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If there is no such rank.
    #[track_caller]
    pub fn match_message(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagPattern>,
    ) -> Result<Message<'_, 'w>> {
        let pattern = self.pattern("match_message", from.into(), tag.into())?;
        self.message(self.world.core().match_message(&pattern))
    }

    /// As [`match_message`](Team::match_message), but returns at once: `None` if no such message has come.
    ///
    /// # Errors
    /// If there is no such rank.
    #[track_caller]
    pub fn try_match_message(
        &self,
        from: impl Into<Source>,
        tag: impl Into<TagPattern>,
    ) -> Result<Option<Message<'_, 'w>>> {
        let pattern = self.pattern("try_match_message", from.into(), tag.into())?;
        self.world.core().match_once(&pattern).map(|matched| self.message(matched)).transpose()
    }

    #[track_caller]
    fn message(&self, matched: Matched) -> Result<Message<'_, 'w>> {
        match self.described(matched.status()) {
            Ok(received) => Ok(Message { team: self, received, matched: Some(matched) }),
            Err(error) => {
                self.world.core().discard_matched(matched);
                Err(error)
            }
        }
    }

    #[inline]
    fn address(&self, operation: &'static str, to: Rank, tag: Tag) -> Result<Address> {
        self.check_rank(operation, to)?;
        Ok(Address { context: Context(self.core.context()), pe: self.core.pe(to), tag })
    }

    fn pattern(
        &self,
        operation: &'static str,
        Source(from): Source,
        TagPattern(tag): TagPattern,
    ) -> Result<Envelope> {
        if let Some(from) = from {
            self.check_rank(operation, from)?;
        }
        if let Some(tag) = tag {
            self.world.core().check_tag(operation, tag)?;
        }
        let source = from.map(|rank| self.core.pe(rank));
        Ok(Envelope::pattern(Context(self.core.context()), source, tag))
    }

    #[inline]
    fn check_rank(&self, operation: &'static str, rank: Rank) -> Result<()> {
        match rank < self.n_pes() {
            true => Ok(()),
            false => Err(self.no_such_rank(operation, rank)),
        }
    }

    #[cold]
    #[inline(never)]
    fn no_such_rank(&self, operation: &'static str, rank: Rank) -> crate::Error {
        self.world.core().no_such_rank(operation, rank, self.n_pes())
    }

    #[cold]
    #[inline(never)]
    fn former_member(&self, source_pe: Pe, tag: Tag) -> crate::Error {
        ErrorKind::FormerMember { me: self.world.my_pe(), source_pe, tag }.into()
    }

    /// The envelope of a message. Only members send messages in the team's context; but a shrunk team has
    /// that of the team before.
    #[inline]
    fn described(&self, Status { source, tag, bytes, .. }: Status) -> Result<Received> {
        match self.rank_of(source) {
            Some(source) => Ok(Received { source, tag, bytes }),
            None => Err(self.former_member(source, tag)),
        }
    }

    fn received(&self, status: Status, room: usize) -> Result<Received> {
        match status.bytes > room {
            true => Err(self.truncated(status, room)),
            false => self.described(status),
        }
    }

    #[cold]
    #[inline(never)]
    fn truncated(&self, status: Status, room: usize) -> crate::Error {
        let (me, Status { source: source_pe, tag, bytes, .. }) = (self.world.my_pe(), status);
        ErrorKind::MessageTruncated { me, source_pe, tag, bytes, room }.into()
    }
}

/// The number of messages that this PE keeps because no receive has asked for them yet: the length of its
/// unexpected queue. `PELAGO_UNEXPECTED_MEMORY` bounds it, unless a receive is posted.
pub fn unexpected(world: &World) -> usize {
    world.core().unexpected_messages()
}

/// A message that only this value can receive: see [`Team::match_message`]. If it is dropped the message is
/// lost; its sender goes on as if it were received.
#[must_use = "only this value can receive the message"]
pub struct Message<'t, 'w> {
    team: &'t Team<'w>,
    received: Received,
    /// `None` once it is received.
    matched: Option<Matched>,
}

impl Message<'_, '_> {
    /// Its source, tag and length.
    pub fn received(&self) -> Received {
        self.received
    }

    /// Receives it.
    ///
    /// # Errors
    /// If it is longer than the slice, which then has its beginning.
    #[track_caller]
    pub fn receive<T: Element>(mut self, into: &mut [T]) -> Result<Received> {
        let (core, room) = (self.team.world.core(), size_of_val(into));
        let matched = self.matched.take().expect("a message is received once");
        // SAFETY: the slice is borrowed until the receive is complete, and takes any bytes.
        let id = unsafe { core.start_receive_matched(matched, (into.as_mut_ptr().cast(), room), None) };
        self.team.received(core.wait_for_message(id), room)
    }
}

impl Drop for Message<'_, '_> {
    fn drop(&mut self) {
        if let Some(matched) = self.matched.take() {
            self.team.world.finish_in_drop(|world| world.core().discard_matched(matched));
        }
    }
}

/// A send or a receive of a scope, by its number there.
#[derive(Clone, Copy)]
struct Handle<'scope> {
    world: &'scope World,
    messages: &'scope Messages,
    number: usize,
}

impl<'scope> Handle<'scope> {
    fn new(world: &'scope World, messages: &'scope Messages, entry: Entry) -> Handle<'scope> {
        let mut entries = messages.borrow_mut();
        entries.push(entry);
        Handle { world, messages, number: entries.len() - 1 }
    }

    fn entry(&self) -> Entry {
        self.messages.borrow()[self.number]
    }

    fn done(&self, status: Status) -> Status {
        self.messages.borrow_mut()[self.number] = Entry::Done(status);
        status
    }

    fn test(&self) -> bool {
        match self.entry() {
            Entry::Done(_) | Entry::TooLong(..) => true,
            Entry::Open(id, room) => {
                let Some(status) = self.world.core().test_message(id) else {
                    return self.world.core().note_test(false);
                };
                // Unless a wait returns the error, the end of the scope reports it.
                let is_too_long = status.bytes > room;
                let entry = if is_too_long { Entry::TooLong(status, room) } else { Entry::Done(status) };
                self.messages.borrow_mut()[self.number] = entry;
                true
            }
        }
    }

    fn probe(&self) -> Probe {
        match self.entry() {
            Entry::Open(id, _) => Probe::message(self.world.core().watch_message(id)),
            Entry::Done(_) | Entry::TooLong(..) => Probe::done(None),
        }
    }

    #[track_caller]
    fn wait(&self) -> Status {
        match self.entry() {
            Entry::Done(status) => status,
            Entry::TooLong(status, _) => self.done(status),
            Entry::Open(id, _) => self.done(self.world.core().wait_for_message(id)),
        }
    }
}

/// A send of a scope; complete at the latest when the scope ends. It is an [event](crate::event), and a
/// future.
pub struct SendRequest<'scope> {
    world: &'scope World,
    /// `None` if the send was complete when it was started.
    handle: Option<Handle<'scope>>,
}

impl SendRequest<'_> {
    /// Makes progress, and returns whether the send is complete.
    pub fn test(&self) -> bool {
        self.handle.is_none_or(|handle| handle.test())
    }

    /// Waits until the send is complete.
    #[track_caller]
    pub fn wait(self) {
        if let Some(handle) = self.handle {
            handle.wait();
        }
    }
}

impl Event for SendRequest<'_> {
    fn world(&self) -> &World {
        self.world
    }

    fn probe(&self) -> Probe {
        self.handle.map_or_else(|| Probe::done(None), |handle| handle.probe())
    }
}

impl Outcome for SendRequest<'_> {
    type Output = ();

    #[track_caller]
    fn wait(self) {
        SendRequest::wait(self);
    }
}

/// A receive of a scope; complete at the latest when the scope ends. It is an [event](crate::event), and a
/// future.
///
/// ```
/// use pelago::event;
/// # pelago::spmd(2, |world| -> pelago::Result<()> {
/// let (team, other) = (world.team(), 1 - world.my_pe());
/// let (mine, mut theirs) = ([world.my_pe() as u64], [9u64]);
/// let received = world.scope(|scope| -> pelago::Result<_> {
///     let receive = scope.receive(&team, other, 0, &mut theirs)?;
///     let send = scope.send(&team, other, 0, &mine)?;
///     event::wait_all(&[&send, &receive]);
///     world.block_on(async { receive.await })
/// })?;
/// assert_eq!((received.source, theirs), (other, [other as u64]));
/// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
/// ```
pub struct ReceiveRequest<'scope> {
    handle: Handle<'scope>,
    team: &'scope Team<'scope>,
    room: usize,
}

impl ReceiveRequest<'_> {
    /// Makes progress, and returns whether the message is there.
    pub fn test(&self) -> bool {
        self.handle.test()
    }

    /// Waits for the message.
    ///
    /// # Errors
    /// If the message is longer than the slice, which then has its beginning.
    #[track_caller]
    pub fn wait(self) -> Result<Received> {
        self.team.received(self.handle.wait(), self.room)
    }

    /// Takes the receive back, if it has no message yet, and returns `None` then; else waits for the message.
    ///
    /// # Errors
    /// As [`wait`](ReceiveRequest::wait).
    #[track_caller]
    pub fn cancel(self) -> Result<Option<Received>> {
        if let Entry::Open(id, _) = self.handle.entry() {
            self.handle.world.core().cancel_receive(id);
        }
        let status = self.handle.wait();
        if status.is_cancelled { Ok(None) } else { self.team.received(status, self.room).map(Some) }
    }
}

impl Event for ReceiveRequest<'_> {
    fn world(&self) -> &World {
        self.handle.world
    }

    fn probe(&self) -> Probe {
        self.handle.probe()
    }
}

impl Outcome for ReceiveRequest<'_> {
    type Output = Result<Received>;

    #[track_caller]
    fn wait(self) -> Result<Received> {
        ReceiveRequest::wait(self)
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a send, as [`Team::send`]. The source is in use until the scope ends.
    ///
    /// # Errors
    /// As [`Team::send`], and if the team and the scope belong to different worlds.
    #[track_caller]
    pub fn send<T: Element>(
        &'scope self,
        team: &Team<'_>,
        to: Rank,
        tag: Tag,
        data: &'scope [T],
    ) -> Result<SendRequest<'scope>> {
        self.start_send(team, ("send", to, tag), data, Mode::Standard)
    }

    /// Starts a synchronous send, as [`Team::send_synchronous`].
    ///
    /// # Errors
    /// As [`send`](Scope::send).
    #[track_caller]
    pub fn send_synchronous<T: Element>(
        &'scope self,
        team: &Team<'_>,
        to: Rank,
        tag: Tag,
        data: &'scope [T],
    ) -> Result<SendRequest<'scope>> {
        self.start_send(team, ("send_synchronous", to, tag), data, Mode::Synchronous)
    }

    #[track_caller]
    fn start_send<T: Element>(
        &'scope self,
        team: &Team<'_>,
        (operation, to, tag): (&'static str, Rank, Tag),
        data: &'scope [T],
        mode: Mode,
    ) -> Result<SendRequest<'scope>> {
        self.check_team(operation, team)?;
        let address = team.address(operation, to, tag)?;
        let bytes = (data.as_ptr().cast(), size_of_val(data));
        // SAFETY: the source is borrowed until the scope has completed all its operations.
        let id = unsafe { self.world().core().start_send(address, bytes, mode) }?;
        Ok(self.sending(id))
    }

    fn sending(&'scope self, id: Option<RequestId>) -> SendRequest<'scope> {
        let entry = |id| Handle::new(self.world(), self.messages(), Entry::Open(id, usize::MAX));
        SendRequest { world: self.world(), handle: id.map(entry) }
    }

    /// Starts a send of this PE's part of a span, as [`Team::send`]. A receiver on the same node copies a
    /// long one directly from there.
    ///
    /// # Errors
    /// As [`send`](Scope::send), and if the array is in an exclusive phase.
    #[track_caller]
    pub fn send_span<T: Element>(
        &'scope self,
        team: &Team<'_>,
        to: Rank,
        tag: Tag,
        span: impl Into<Span<'scope, T>>,
    ) -> Result<SendRequest<'scope>> {
        let (operation, span) = ("send_span", span.into());
        self.check_team(operation, team)?;
        span.check_open(operation)?;
        let address = team.address(operation, to, tag)?;
        let bytes = (span.own().cast_const().cast(), span.len() * size_of::<T>());
        // SAFETY: the array is borrowed until the scope has completed all its operations.
        let id = unsafe { self.world().core().start_send(address, bytes, Mode::Standard) }?;
        Ok(self.sending(id))
    }

    /// Starts a receive, as [`Team::receive`]. The target is in use until the scope ends. The outcome is that
    /// of [`ReceiveRequest::wait`]. If nobody calls that, and the message is longer than the slice, the end
    /// of the scope panics.
    ///
    /// ```
    /// # pelago::spmd(4, |world| -> pelago::Result<()> {
    /// let (team, me, n) = (world.team(), world.my_pe(), world.n_pes());
    /// let mut all = vec![0u32; n];
    /// let mine = [me as u32 + 1];
    /// world.scope(|scope| -> pelago::Result<()> {
    ///     for (from, place) in all.chunks_mut(1).enumerate() {
    ///         scope.receive(&team, from, 5, place)?;
    ///     }
    ///     (0..n).try_for_each(|to| scope.send(&team, to, 5, &mine).map(drop))
    /// })?;
    /// assert_eq!(all, [1, 2, 3, 4]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Team::receive`], and if the team and the scope belong to different worlds.
    #[track_caller]
    pub fn receive<T: Element>(
        &'scope self,
        team: &'scope Team<'_>,
        from: impl Into<Source>,
        tag: impl Into<TagPattern>,
        into: &'scope mut [T],
    ) -> Result<ReceiveRequest<'scope>> {
        let place = (into.as_mut_ptr().cast(), size_of_val(into));
        // SAFETY: the target is borrowed until the scope has completed all its operations, and takes any
        // bytes.
        unsafe { self.start_receive(team, ("receive", from.into(), tag.into()), place) }
    }

    /// Starts a receive into this PE's part of a span, as [`receive`](Scope::receive).
    ///
    /// ```
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let (team, other) = (world.team(), 1 - world.my_pe());
    /// let array = world.alloc_zeroed::<u64>(4)?;
    /// array.local().set(0, world.my_pe() as u64 + 5);
    /// world.scope(|scope| -> pelago::Result<()> {
    ///     scope.receive_span(&team, other, 0, array.span(2..3))?;
    ///     scope.send_span(&team, other, 0, array.span(0..1)).map(drop)
    /// })?;
    /// assert_eq!(array.local().get(2), other as u64 + 5);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`receive`](Scope::receive), and if the array is in an exclusive phase.
    #[track_caller]
    pub fn receive_span<T: Element>(
        &'scope self,
        team: &'scope Team<'_>,
        from: impl Into<Source>,
        tag: impl Into<TagPattern>,
        span: impl Into<Span<'scope, T>>,
    ) -> Result<ReceiveRequest<'scope>> {
        let (operation, span) = ("receive_span", span.into());
        span.check_open(operation)?;
        let place = (span.own().cast(), span.len() * size_of::<T>());
        // SAFETY: the array is borrowed until the scope has completed all its operations.
        unsafe { self.start_receive(team, (operation, from.into(), tag.into()), place) }
    }

    /// # Safety
    /// The place is valid for writes until the scope has completed all its operations.
    #[track_caller]
    unsafe fn start_receive(
        &'scope self,
        team: &'scope Team<'_>,
        (operation, from, tag): (&'static str, Source, TagPattern),
        (start, room): (*mut u8, usize),
    ) -> Result<ReceiveRequest<'scope>> {
        self.check_team(operation, team)?;
        let pattern = team.pattern(operation, from, tag)?;
        // SAFETY: the caller guarantees the place.
        let entry = match unsafe { self.world().core().start_receive(pattern, (start, room)) } {
            Started::Done(status) if status.bytes <= room => Entry::Done(status),
            Started::Done(status) => Entry::TooLong(status, room),
            Started::Pending(id) => Entry::Open(id, room),
        };
        let handle = Handle::new(self.world(), self.messages(), entry);
        Ok(ReceiveRequest { handle, team, room })
    }

    fn check_team(&self, operation: &'static str, team: &Team<'_>) -> Result<()> {
        if std::ptr::eq(self.world(), team.world) {
            return Ok(());
        }
        let (me, reason) =
            (team.world.my_pe(), "the team belongs to another world than the scope".to_owned());
        Err(ErrorKind::BadTeam { me, operation, reason }.into())
    }
}
