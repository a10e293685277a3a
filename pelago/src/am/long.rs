//! Long messages: data that are put to an array of the receiver, and a message whose handler sees them there.
//!
//! Invariant: the handler runs after the data are in their place. On mapped memory the message releases them;
//! over the network small data travel with the message, and larger data are complete before it is sent.

use super::{Am, Handler};
use crate::Pe;
use crate::array::nb::{Scope, Transfer};
use crate::array::view::View;
use pelago_core::base::element::{Element, bytes_of};
use pelago_core::base::error::Result;
use pelago_core::coll::schedule::Rank;
use pelago_core::coll::teams::Teams;
use pelago_core::endpoint::completion_counter::CompletionCounter;
use pelago_core::messages::wire::{LONG_WORDS, Words};
use pelago_fabric::sync::Ordering;

/// The name of the call in errors.
const LONG: &str = "a long active message";

/// Elements that are put to a PE's part of an array.
pub(super) struct Long<'a> {
    /// The PE, as the array has it.
    pub(super) rank: Rank,
    /// The place of the data, as the message carries it.
    pub(super) words: [u64; LONG_WORDS],
    /// The elements, as they travel.
    pub(super) bytes: &'a [u8],
}

impl<'a> Long<'a> {
    /// # Errors
    /// If the array belongs to another world, the PE has no part of it, or no such elements.
    pub(super) fn new<T: Element>(
        operation: &'static str,
        (world, pe): (&Teams, Pe),
        (array, index): (&View<'_, T>, usize),
        source: &'a [T],
    ) -> Result<Long<'a>> {
        array.check_world(operation, world)?;
        let rank = array.rank_of(operation, pe)?;
        array.check(operation, rank, index, source.len())?;
        let offset_bytes = array.region_offset(rank, index);
        let words = [index as u64, source.len() as u64, offset_bytes as u64];
        Ok(Long { rank, words, bytes: bytes_of(source) })
    }
}

impl Am<'_> {
    /// Puts data to the elements from `index` on of the target's part of an array, and sends a request whose
    /// handler sees them there ([`Message::elements`](super::Message::elements)). The source may be reused at
    /// return.
    ///
    /// # Errors
    /// As [`short`](Am::short), and as [`View::put`].
    #[track_caller]
    pub fn long<T: Element>(
        &self,
        to: Rank,
        handler: Handler,
        args: &[u32],
        (array, index): (&View<'_, T>, usize),
        source: &[T],
    ) -> Result<()> {
        let (operation, at) = (LONG, (array, index));
        self.inner.check(operation, to, handler, args)?;
        let long = Long::new(operation, (self.world.core(), self.inner.table.pe(to)), at, source)?;
        let travels_along = self.travels_along(to, &long);
        if !travels_along {
            self.put_and_complete(operation, to, (array, long.rank, index), source)?;
        }
        let data = if travels_along { long.bytes } else { &[] };
        let (head, words) = (self.inner.head(to, handler, args, true), Words::new(args, Some(long.words)));
        self.inner.deliver(to, head, &words, data);
        Ok(())
    }

    /// Runs `transfers`, which start whatever puts they like in a scope, scattered ones as well, and sends a
    /// short request when they are complete: its handler sees all that they have put at its PE.
    ///
    /// ```
    /// use pelago::Strided;
    /// use pelago::am::Handlers;
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let matrix = world.alloc_zeroed::<u32>(16)?;
    /// let mut handlers = Handlers::new();
    /// let look = handlers.add("look", |message| {
    ///     let column = message.args()[0] as usize;
    ///     assert!((0..4).all(|row| matrix.local().get(4 * row + column) == 7));
    /// });
    /// let other = 1 - world.my_pe();
    /// world.team().serve(handlers, |am| {
    ///     let column = Strided { array_stride: 4, ..Strided::elements(4) };
    ///     am.short_after(other, look, &[2], |scope| scope.put_strided(&matrix, other, 2, &[7; 4], &column))
    /// })??;
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`short`](Am::short); nothing is put then. Those of the transfers; no message is sent then.
    #[track_caller]
    pub fn short_after<'a>(
        &'a self,
        to: Rank,
        handler: Handler,
        args: &[u32],
        transfers: impl for<'scope> FnOnce(&'scope Scope<'scope, 'a>) -> Result<()>,
    ) -> Result<()> {
        self.inner.check("an active message after transfers", to, handler, args)?;
        self.world.scope(transfers)?;
        self.short(to, handler, args)
    }

    /// As [`long`](Am::long), but does not wait for the data to be complete: the message follows them by
    /// itself, while this PE makes progress. The source is free, and is returned, when the transfer reports
    /// it ([`Transfer::sent`], [`Transfer::wait_local`]). The transfer is complete when the message is on its
    /// way. Messages that are sent later may arrive before it.
    ///
    /// ```
    /// use pelago::am::Handlers;
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let other = 1 - world.my_pe();
    /// let inbox = world.alloc_zeroed::<u64>(5000)?;
    /// let mut handlers = Handlers::new();
    /// let check = handlers.add("check", |message| {
    ///     assert!(message.elements().unwrap().all(|i| inbox.local().get(i) == 7));
    /// });
    /// world.team().serve(handlers, |am| {
    ///     let sending = am.long_nb(other, check, &[], (&inbox, 0), vec![7; 5000])?;
    ///     // ... compute something else ...
    ///     let _source = sending.wait_local();
    ///     Ok::<(), pelago::Error>(())
    /// })?
    /// # }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`long`](Am::long); nothing is sent then.
    #[track_caller]
    pub fn long_nb<T: Element>(
        &self,
        to: Rank,
        handler: Handler,
        args: &[u32],
        (array, index): (&View<'_, T>, usize),
        source: Vec<T>,
    ) -> Result<Transfer<'_, T>> {
        let world = self.world;
        Transfer::of_put(world, source, |source, counter| {
            self.inner.check(LONG, to, handler, args)?;
            let pe = self.inner.table.pe(to);
            let long = Long::new(LONG, (world.core(), pe), (array, index), source)?;
            let follows = !self.inner.peer(to).is_mapped() && !self.travels_along(to, &long);
            let Some(counter) = counter.filter(|_| follows) else {
                return self.long(to, handler, args, (array, index), source);
            };
            let words = Words::new(args, Some(long.words)).as_slice().to_vec();
            let header = self.inner.head(to, handler, args, true).pack();
            let data = world.core().completions.open();
            // SAFETY: the transfer keeps the source until its counter has counted it as sent, which is when
            // the data are complete.
            let outcome = unsafe { array.put_tracked(LONG, long.rank, index, source, Some(&data)) };
            if outcome.is_err() {
                world.core().completions.release(data);
                return outcome;
            }
            // No other PE counts it yet, as this PE has not reached the end of `serve`.
            self.inner.table.sent.fetch_add(1, Ordering::Relaxed);
            world.core().send_active_after(data, (pe, header, words), counter);
            Ok(())
        })
    }

    /// Over the network a message that brings its data is cheaper than a put and the word that it is
    /// complete.
    fn travels_along(&self, to: Rank, long: &Long<'_>) -> bool {
        !self.inner.peer(to).is_mapped() && long.bytes.len() <= self.inner.medium_max()
    }

    /// Puts the data of a long message. On mapped memory the message that follows releases them; over the
    /// network they are complete at return.
    fn put_and_complete<T: Element>(
        &self,
        operation: &'static str,
        to: Rank,
        (array, rank, index): (&View<'_, T>, Rank, usize),
        source: &[T],
    ) -> Result<()> {
        if self.inner.peer(to).is_mapped() {
            return array.put(rank, index, source);
        }
        let mut outcome = Ok(());
        self.world.core().track(
            (operation, array.region().pe(rank)),
            CompletionCounter::is_done,
            |counter| {
                // SAFETY: the source is borrowed until the counter has counted the put as done.
                outcome = unsafe { array.put_tracked(operation, rank, index, source, Some(counter)) };
            },
        );
        outcome
    }
}
