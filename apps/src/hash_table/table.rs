//! A hash table over all PEs of a team, with active messages that carry many operations each. Invariant: a
//! key's value is on the member that the key's hash selects, and only that member accesses it. Between two
//! barriers, operations of different PEs, and changes and lookups of the same PE, take effect in any order.
//!
//! Source: the distributed hash table of the UPC++ Programmer's Guide, where an operation is sent to the PE
//! that has the key; here one message carries many operations.

use pelago::Result;
use pelago::am::{Aggregator, Am, Batch, HandlerLock, Handlers};
use pelago::prelude::*;

use super::shard::Shard;
use crate::splitmix::{mix, scale};

/// The functions that update a key's value. All members have the same functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// The operand, whatever the value was.
    Set,
    /// The sum, wrapping around; an absent key counts as 0.
    Add,
    /// The larger of both.
    Max,
    /// The bitwise exclusive or of both; an absent key counts as 0.
    Xor,
}

impl Function {
    /// All functions, by their number in messages.
    pub(super) const ALL: [Function; 4] = [Function::Set, Function::Add, Function::Max, Function::Xor];

    /// The new value, from a key's value or from none.
    pub(super) fn apply(self, value: Option<u64>, operand: u64) -> u64 {
        let value = value.unwrap_or(0);
        match self {
            Function::Set => operand,
            Function::Add => value.wrapping_add(operand),
            Function::Max => value.max(operand),
            Function::Xor => value ^ operand,
        }
    }

    fn number(self) -> u64 {
        self as u64
    }
}

/// The number in place of a function's number that removes the key.
const REMOVE: u64 = u64::MAX;

/// An update or a removal, as it is sent.
#[derive(Clone, Copy, Debug, Element)]
#[repr(C)]
struct Change {
    key: u64,
    operand: u64,
    function: u64,
}

impl Change {
    fn make(self, shard: &mut Shard) {
        if self.function == REMOVE {
            return shard.remove(self.key);
        }
        let function = usize::try_from(self.function).ok().and_then(|number| Function::ALL.get(number));
        let Some(function) = function else {
            panic!("there is no function {} of hash tables", self.function)
        };
        shard.update(self.key, |value| function.apply(value, self.operand));
    }
}

/// A request for a key's value, as it is sent.
#[derive(Clone, Copy, Debug, Element)]
#[repr(C)]
struct Lookup {
    key: u64,
    ticket: u64,
}

impl Lookup {
    fn answer(self, shard: &Shard) -> Found {
        let value = shard.find(self.key);
        Found { ticket: self.ticket, value: value.unwrap_or(0), is_there: value.is_some().into() }
    }
}

/// The reply to a lookup.
#[derive(Clone, Copy, Debug, Element)]
#[repr(C)]
pub(super) struct Found {
    /// The ticket that was passed to [`HashTable::find`].
    pub(super) ticket: u64,
    value: u64,
    is_there: u64,
}

impl Found {
    /// The key's value, if the key is there.
    pub(super) fn value(&self) -> Option<u64> {
        (self.is_there != 0).then_some(self.value)
    }
}

/// Receives replies, on a thread of its PE that waits, sends or polls.
pub(super) type Receiver<'env> = dyn Fn(&[Found]) + Sync + 'env;

/// The handlers of a table, with which an endpoint is opened.
pub(super) struct Service<'env> {
    shard: &'env HandlerLock<Shard>,
    receiver: &'env Receiver<'env>,
    changes: Batch<Change>,
    lookups: Batch<Lookup>,
}

impl<'env> Service<'env> {
    /// Adds the handlers. `shard` is this member's part; `receiver` gets the replies to its lookups.
    pub(super) fn add(
        handlers: &mut Handlers<'env>,
        shard: &'env HandlerLock<Shard>,
        receiver: &'env Receiver<'env>,
    ) -> Self {
        let changes = handlers.add_batch("hash table: change", move |_, changes: &[Change]| {
            let mut shard = shard.lock();
            changes.iter().for_each(|change| change.make(&mut shard));
        });
        let answer = move |_, lookup: Lookup| lookup.answer(&shard.lock());
        let reply = move |_, answers: &[Found]| receiver(answers);
        let lookups = handlers.add_query("hash table: find", answer, reply);
        Service { shard, receiver, changes, lookups }
    }

    /// The table, on the endpoint of these handlers.
    pub(super) fn open<'a>(&'a self, am: &'a Am<'a>) -> HashTable<'a> {
        let (changes, lookups) = (am.aggregator(self.changes), am.aggregator(self.lookups));
        HashTable { am, service: self, changes, lookups }
    }
}

/// An open table: this member's operations on it.
pub(super) struct HashTable<'a> {
    am: &'a Am<'a>,
    service: &'a Service<'a>,
    changes: Aggregator<'a, Change>,
    lookups: Aggregator<'a, Lookup>,
}

impl HashTable<'_> {
    /// Sets the value of a key, whether or not the key exists. The operation is complete at the next barrier,
    /// at the latest.
    ///
    /// # Errors
    /// As [`Aggregator::push`].
    pub(super) fn insert(&mut self, key: u64, value: u64) -> Result<()> {
        self.update(key, Function::Set, value)
    }

    /// Sets the value of a key to the result of a function of its present value. The operation is complete at
    /// the next barrier, at the latest.
    ///
    /// # Errors
    /// As [`Aggregator::push`].
    pub(super) fn update(&mut self, key: u64, function: Function, operand: u64) -> Result<()> {
        self.change(Change { key, operand, function: function.number() })
    }

    /// Removes a key, if it exists. The operation is complete at the next barrier, at the latest.
    ///
    /// # Errors
    /// As [`Aggregator::push`].
    pub(super) fn remove(&mut self, key: u64) -> Result<()> {
        self.change(Change { key, operand: 0, function: REMOVE })
    }

    /// Looks up a key; the receiver gets the reply with `ticket`, at the next barrier at the latest.
    ///
    /// # Errors
    /// As [`Aggregator::push`].
    pub(super) fn find(&mut self, key: u64, ticket: u64) -> Result<()> {
        let (owner, lookup) = (self.owner(key), Lookup { key, ticket });
        if owner != self.am.my_rank() {
            return self.lookups.push(owner, lookup);
        }
        let found = lookup.answer(&self.service.shard.lock());
        (self.service.receiver)(&[found]);
        Ok(())
    }

    /// Waits until all operations of all members are complete and their replies were received. Collective.
    ///
    /// # Errors
    /// If the members do not all make this call.
    pub(super) fn barrier(&mut self) -> Result<()> {
        self.changes.flush()?;
        self.lookups.flush()?;
        self.am.barrier()
    }

    fn change(&mut self, change: Change) -> Result<()> {
        let owner = self.owner(change.key);
        if owner != self.am.my_rank() {
            return self.changes.push(owner, change);
        }
        change.make(&mut self.service.shard.lock());
        Ok(())
    }

    /// The rank of the member that has a key.
    fn owner(&self, key: u64) -> usize {
        scale(mix(key), self.am.n_pes() as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_make_what_they_say() {
        let of = |function: Function| [None, Some(6), Some(u64::MAX)].map(|value| function.apply(value, 3));
        assert_eq!(of(Function::Set), [3, 3, 3]);
        assert_eq!(of(Function::Add), [3, 9, 2]);
        assert_eq!(of(Function::Max), [3, 6, u64::MAX]);
        assert_eq!(of(Function::Xor), [3, 5, u64::MAX - 3]);
    }

    #[test]
    fn changes_make_the_function_that_they_name() {
        for function in Function::ALL {
            let mut shard = Shard::with_room(1);
            shard.update(9, |_| 6);
            Change { key: 9, operand: 3, function: function.number() }.make(&mut shard);
            assert_eq!(shard.find(9), Some(function.apply(Some(6), 3)), "{function:?}");
        }
        let mut shard = Shard::with_room(1);
        shard.update(9, |_| 6);
        Change { key: 9, operand: 0, function: REMOVE }.make(&mut shard);
        assert_eq!(shard.len(), 0);
    }

    #[test]
    #[should_panic(expected = "there is no function 4 of hash tables")]
    fn a_function_that_is_none_is_refused() {
        Change { key: 1, operand: 1, function: 4 }.make(&mut Shard::with_room(1));
    }
}
