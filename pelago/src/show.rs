//! Handles as text, for `{:?}` and for structs of the program that derive `Debug`.
//!
//! Invariant: to show a handle makes no progress and communicates with no other PE. A handle or a guard of
//! elements of the own part shows the elements, as a slice does. Every other handle shows its type and the
//! numbers that it knows.

use crate::am::{Aggregator, Am, Datum, Handlers, Message, Prepared, Reply};
use crate::array::amo::AtomicElement;
use crate::array::local::{Local, LocalIter};
use crate::array::nb::{Fetch, Region, Scope, Transfer, Update};
use crate::array::p2p::Watch;
use crate::array::rma::On;
use crate::array::view::View;
use crate::binding::{Attached, Left};
use crate::context::Context;
use crate::distributed::{Iter, ReadGuard, WriteGuard};
use crate::domain::Atomics;
use crate::events::{All, Event, Leaf, Outcome};
use crate::future::EventFuture;
use crate::lock::{Guard, RawLock};
use crate::team::Team;
use crate::team::message;
use crate::team::request::{NonBlocking, Persistent, PersistentCalls, Request};
use crate::team::space::Space;
use crate::team::span::Span;
use crate::upc::{Semaphores, SplitBarrier, Strict};
use pelago_core::base::element::Element;
use std::fmt::{Debug, Formatter, Result};

macro_rules! handles {
    ($([$($generics:tt)*] $handle:ty, $name:literal, $this:ident $(, $field:ident: $value:expr)*;)+) => {$(
        impl<$($generics)*> Debug for $handle {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                let $this = self;
                f.debug_struct($name)$(.field(stringify!($field), &$value))*.finish_non_exhaustive()
            }
        }
    )+};
}

handles! {
    [T: Element] View<'_, T>, "View", view, len: view.len();
    [T: Element] On<'_, T>, "On", on, pe: on.pe, len: on.view.len();
    [T: Element] LocalIter<'_, T>, "LocalIter", iter, len: iter.len();
    [T: Element] Watch<'_, T>, "Watch", _watch;
    [T: Element] Strict<'_, T>, "Strict", _strict;
    [T: Element] Span<'_, T>, "Span", span, len: span.len();
    [T: AtomicElement] Atomics<'_, T>, "Atomics", atomics,
        operations: atomics.operations(), executor: atomics.executor(), len: atomics.len();
    [] RawLock<'_>, "RawLock", _lock;
    [] Guard<'_>, "Guard", _guard;
    [] Scope<'_, '_>, "Scope", scope, has_come: scope.probe().has_come();
    [] Region<'_>, "Region", region, has_come: region.probe().has_come();
    [T: Element] Transfer<'_, T>, "Transfer", transfer, has_come: transfer.probe().has_come();
    [T: AtomicElement] Fetch<'_, T>, "Fetch", fetch, has_come: fetch.probe().has_come();
    [] Update<'_>, "Update", update, has_come: update.probe().has_come();
    [] Request<'_>, "Request", request, has_come: request.probe().has_come();
    [R: Datum] Reply<'_, R>, "Reply", reply, has_come: reply.probe().has_come();
    [] All<'_>, "All", all, has_come: all.probe().has_come();
    [] Leaf<'_>, "Leaf", leaf, has_come: leaf.probe().has_come();
    [E: Outcome] EventFuture<E>, "EventFuture", _future;
    [] message::SendRequest<'_>, "SendRequest", _request;
    [] message::ReceiveRequest<'_>, "ReceiveRequest", _request;
    [] message::Message<'_, '_>, "Message", message, received: message.received();
    [] Persistent<'_>, "Persistent", _persistent;
    [] NonBlocking<'_, '_>, "NonBlocking", _calls;
    [] PersistentCalls<'_, '_>, "PersistentCalls", _calls;
    [] Context<'_>, "Context", context, kind: context.kind();
    [] Team<'_>, "Team", team, my_rank: team.my_rank(), n_pes: team.n_pes();
    [] Space<'_>, "Space", space, free_bytes: space.free_bytes(), total_bytes: space.total_bytes();
    [] Handlers<'_>, "Handlers", _handlers;
    [] Message<'_>, "Message", message, handler: message.handler(), args: message.args();
    [] Am<'_>, "Am", am, my_rank: am.my_rank(), n_pes: am.n_pes();
    [] Prepared<'_>, "Prepared", _prepared;
    [T: Element] Aggregator<'_, T>, "Aggregator", aggregator, waiting: aggregator.waiting();
    [] Semaphores<'_>, "Semaphores", set, count: set.count(), kind: set.kind();
    [] SplitBarrier<'_>, "SplitBarrier", _barrier;
    [T: Element] Iter<'_, T>, "Iter", iter, len: iter.len();
    [] Attached, "Attached", attached, world: attached.world, is_new: attached.is_new;
    [] Left, "Left", _left;
}

impl<T: Element + Debug> Debug for Local<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Element + Debug> Debug for ReadGuard<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        Debug::fmt(&**self, f)
    }
}

impl<T: Element + Debug> Debug for WriteGuard<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::{Context, ContextKind, Space};

    /// A struct of the program that has handles as fields.
    #[derive(Debug)]
    #[expect(dead_code, reason = "the fields are only shown")]
    struct Fields<'w> {
        team: Team<'w>,
        space: Space<'w>,
        context: Context<'w>,
    }

    #[test]
    fn handles_are_shown_by_their_numbers_and_parts_by_their_elements() {
        spmd(1, |world| {
            let array = world.alloc_zeroed::<u8>(3).unwrap();
            array.local().set(1, 7);
            let (local, put) = (array.local(), array.put_nb(0, 0, vec![5]).unwrap());
            assert_eq!(format!("{local:?}"), "[5, 7, 0]");
            assert_eq!(format!("{:?}", array.span(0..2)), "Span { len: 2, .. }");
            assert_eq!(format!("{put:?}"), "Transfer { has_come: true, .. }");
            let team = world.team();
            let (space, context) = (team.space(4096).unwrap(), world.context(ContextKind::Private).unwrap());
            let text = format!("{:?}", Fields { team, space, context });
            assert!(text.starts_with("Fields { team: Team { my_rank: 0, n_pes: 1, .. }, space"), "{text}");
            assert!(text.ends_with("context: Context { kind: Private, .. } }"), "{text}");
        })
        .unwrap();
    }
}
