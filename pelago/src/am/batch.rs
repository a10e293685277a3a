//! Handlers for batches: many small records in one message, and one reply to each by the same route.
//!
//! Invariant: a message of a batch consists of whole records. The replies to a message fit into one message,
//! as no batch is larger than that ([`Batch::most_bytes`]).

use super::{Handler, Handlers, Message};
use pelago_core::base::element::{Element, bytes_of, elements_of};
use pelago_core::base::locked::locked;
use pelago_core::coll::schedule::Rank;
use std::marker::PhantomData;
use std::sync::Mutex;

/// A handler for records of type `T` that arrive in batches: see [`Handlers::add_batch`] and
/// [`Am::aggregator`](super::Am::aggregator).
#[derive(Debug)]
pub struct Batch<T> {
    pub(super) handler: Handler,
    /// Bytes of a record, or of the reply to one if the reply is longer.
    pub(super) widest_bytes: usize,
    records: PhantomData<fn(T)>,
}

impl<T> Clone for Batch<T> {
    fn clone(&self) -> Batch<T> {
        *self
    }
}

impl<T> Copy for Batch<T> {}

impl<'env> Handlers<'env> {
    /// Adds a handler for records that an [`Aggregator`](super::Aggregator) gathers: it is given the rank of
    /// the sender, and the records of a message in the order in which they were pushed there.
    ///
    /// # Panics
    /// As [`add`](Handlers::add).
    #[track_caller]
    pub fn add_batch<T: Element>(
        &mut self,
        name: &'static str,
        function: impl Fn(Rank, &[T]) + Send + Sync + 'env,
    ) -> Batch<T> {
        let handler = self.add(name, move |message| function(message.from(), message.records()));
        Batch { handler, widest_bytes: record_bytes::<T>(), records: PhantomData }
    }

    /// Adds a handler for records that are answered: `answer` is given the rank of the sender and a record,
    /// and its result is sent back. `reply` runs where the records were pushed, with the rank that has
    /// answered and the results for the records of one message in their order.
    ///
    /// ```
    /// use pelago::am::{HandlerLock, Handlers};
    /// # pelago::spmd(2, |world| -> pelago::Result<()> {
    /// let found = HandlerLock::new(Vec::<u32>::new());
    /// let mut handlers = Handlers::new();
    /// let note = |_, answers: &[u32]| found.lock().extend(answers);
    /// let double = handlers.add_query("double", |_, x: u32| 2 * x, note);
    /// world.team().serve(handlers, |am| {
    ///     let mut questions = am.aggregator(double);
    ///     (1..=3).try_for_each(|x| questions.push(1 - am.my_rank(), x))
    /// })??;
    /// assert_eq!(found.into_inner(), [2, 4, 6]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Panics
    /// As [`add`](Handlers::add).
    #[track_caller]
    pub fn add_query<Q: Element, R: Element>(
        &mut self,
        name: &'static str,
        answer: impl Fn(Rank, Q) -> R + Send + Sync + 'env,
        reply: impl Fn(Rank, &[R]) + Send + Sync + 'env,
    ) -> Batch<Q> {
        let (number, widest_bytes) = (self.inner.next(), record_bytes::<Q>().max(record_bytes::<R>()));
        // Kept from one message to the next.
        let room = Mutex::new(Vec::new());
        let handler = self.add(name, move |message| {
            let from = message.from();
            if message.is_answer() {
                return reply(from, message.records());
            }
            let mut answers = std::mem::take(&mut *locked(&room));
            answers.clear();
            answers.extend(message.records().iter().map(|&record| answer(from, record)));
            if let Err(error) = message.answer_medium(number, &[], bytes_of(&answers)) {
                message.inner.refuse(&format!("cannot be answered: {error}"));
            }
            *locked(&room) = answers;
        });
        Batch { handler, widest_bytes, records: PhantomData }
    }
}

/// Bytes of a record, of which messages can be made.
const fn record_bytes<T: Element>() -> usize {
    const {
        assert!(size_of::<T>() > 0, "a record has at least one byte");
        assert!(
            align_of::<T>() <= 8,
            "messages are aligned to 8 bytes, so records of more cannot be batched"
        );
    }
    size_of::<T>()
}

impl Message<'_> {
    /// The records of a batch.
    fn records<T: Element>(&self) -> &[T] {
        elements_of(self.payload()).unwrap_or_else(|| {
            let (bytes, size) = (self.payload().len(), size_of::<T>());
            self.inner.refuse(&format!("has {bytes} bytes, of which no records of {size} bytes can be made"))
        })
    }
}
