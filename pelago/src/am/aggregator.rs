//! Aggregation: small records gathered for each destination until they fill a message.
//!
//! Invariant: records for one destination arrive in the order in which they were pushed. No record is kept
//! back for ever: the remaining records are sent when the aggregator is dropped, so it ends before its
//! endpoint.
//!
//! Source: the coalescing of J. Willcock, T. Hoefler, N. Edmonds and A. Lumsdaine, AM++: A Generalized Active
//! Message Framework. A message goes straight to its destination, as every PE reaches every other.

use super::{Am, Batch};
use pelago_core::base::element::{Element, bytes_of};
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::coll::schedule::Rank;

/// Gathers records for the members of a team, and sends those for one as soon as they fill a message. See
/// [`Am::aggregator`].
pub struct Aggregator<'a, T: Element> {
    am: &'a Am<'a>,
    batch: Batch<T>,
    /// The records that wait for each member.
    waiting: Box<[Vec<T>]>,
    /// Records of a message.
    most: usize,
}

impl Am<'_> {
    /// Gathers records for a handler that [`Handlers::add_batch`](super::Handlers::add_batch) or
    /// [`add_query`](super::Handlers::add_query) has given, as many to a message as fit: it takes up to
    /// [`medium_max`](Am::medium_max) bytes for each member that records are pushed to.
    ///
    /// ```
    /// use pelago::am::Handlers;
    /// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// let sum = AtomicU64::new(0);
    /// let mut handlers = Handlers::new();
    /// let add = handlers.add_batch("add", |_, numbers: &[u64]| {
    ///     sum.fetch_add(numbers.iter().sum(), Relaxed);
    /// });
    /// world.team().serve(handlers, |am| {
    ///     let mut numbers = am.aggregator(add);
    ///     for i in 0..3000 {
    ///         numbers.push(i % 3, i as u64)?;
    ///     }
    ///     Ok::<(), pelago::Error>(()) // the remaining records are sent here
    /// })??;
    /// let expected: u64 = (0..3000).filter(|i| i % 3 == world.my_pe() as u64).sum();
    /// assert_eq!(sum.into_inner(), 3 * expected);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    pub fn aggregator<T: Element>(&self, batch: Batch<T>) -> Aggregator<'_, T> {
        self.gathering(batch, usize::MAX)
    }

    /// As [`aggregator`](Am::aggregator), with at most `records` for one member waiting.
    ///
    /// # Errors
    /// If there are to be none.
    pub fn aggregator_of<T: Element>(&self, batch: Batch<T>, records: usize) -> Result<Aggregator<'_, T>> {
        match records {
            0 => Err(ErrorKind::EmptyBatch { me: self.world.my_pe() }.into()),
            _ => Ok(self.gathering(batch, records)),
        }
    }

    fn gathering<T: Element>(&self, batch: Batch<T>, records: usize) -> Aggregator<'_, T> {
        let fitting = (self.medium_max() / batch.widest_bytes).max(1);
        let waiting = (0..self.n_pes()).map(|_| Vec::new()).collect();
        Aggregator { am: self, batch, waiting, most: records.min(fitting) }
    }
}

impl<T: Element> Aggregator<'_, T> {
    /// Adds a record for the member of this rank. When the records fill a message it is sent. The call may
    /// wait for room and execute the messages that have arrived, as [`Am::medium`] does.
    ///
    /// # Errors
    /// If there is no such member or handler, or no message has room for a record.
    #[inline]
    #[track_caller]
    pub fn push(&mut self, to: Rank, record: T) -> Result<()> {
        let Some(waiting) = self.waiting.get_mut(to) else { return self.am.inner.check_rank("push", to) };
        if waiting.capacity() == 0 {
            waiting.reserve_exact(self.most);
        }
        waiting.push(record);
        match waiting.len() < self.most {
            true => Ok(()),
            false => self.flush_to(to),
        }
    }

    /// Sends the records that wait for the member of this rank.
    ///
    /// # Errors
    /// As [`push`](Aggregator::push).
    #[track_caller]
    pub fn flush_to(&mut self, to: Rank) -> Result<()> {
        let Some(waiting) = self.waiting.get_mut(to) else { return self.am.inner.check_rank("flush_to", to) };
        if waiting.is_empty() {
            return Ok(());
        }
        let outcome = self.am.medium(to, self.batch.handler, &[], bytes_of(waiting));
        waiting.clear();
        outcome
    }

    /// Sends all waiting records. Call [`Am::barrier`] afterwards to know that they were executed.
    ///
    /// # Errors
    /// As [`push`](Aggregator::push).
    #[track_caller]
    pub fn flush(&mut self) -> Result<()> {
        // Not all begin with the same member.
        let (me, n) = (self.am.my_rank(), self.waiting.len());
        (1..=n).try_for_each(|distance| self.flush_to((me + distance) % n))
    }

    /// The number of records that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.iter().map(Vec::len).sum()
    }
}

impl<T: Element> Drop for Aggregator<'_, T> {
    fn drop(&mut self) {
        // Records that wait when a panic drops it are lost, as the panic ends the PE unless the program
        // catches it.
        if !std::thread::panicking()
            && let Err(error) = self.flush()
        {
            panic!("{error}");
        }
    }
}
