//! Collective operations on plain values: each member gives a value and gets a result, without symmetric
//! memory.
//!
//! Invariant: values travel in the exchange by which a team agrees on its calls, 16 bytes of each member at
//! once, and every member combines them in the order of ranks. So all members have the same result, bit for
//! bit.

use crate::team::{Collective, Team};
use crate::world::World;
use pelago_core::base::element::Element;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::coll::agreement_record::{
    BROADCAST_VALUE, GATHER_VALUES, REDUCE_VALUE, SCAN_VALUE, broadcast_word,
};
use pelago_core::coll::reduction::{Combiner, IntoCombiner, ReduceOp, Reducible};
use pelago_core::coll::schedule::Rank;
use std::mem::MaybeUninit;

/// The bytes that a member sends to the others in one exchange.
const WORDS_BYTES: usize = 16;

/// Combines values in their order; `None` if there are none.
fn combined<T: Element>(combiner: &Combiner, mut values: Vec<T>) -> Option<T> {
    let (result, others) = values.split_first_mut()?;
    let result: *mut u8 = std::ptr::from_mut(result).cast();
    for other in others {
        // SAFETY: both are elements of the combiner's type, in private memory, and are not the same.
        unsafe {
            combiner.combine(result, std::ptr::from_ref(other).cast(), result, size_of::<T>());
        }
    }
    values.first().copied()
}

impl Team<'_> {
    /// The sum of a value of each member, at every member. Collective on this team; every member waits for
    /// all others.
    ///
    /// ```
    /// # pelago::spmd(4, |world| -> pelago::Result<()> {
    /// let team = world.team();
    /// assert_eq!(team.sum(world.my_pe())?, 6);
    /// assert_eq!(team.max(0.5 * world.my_pe() as f64)?, 1.5);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`reduce_value`](Team::reduce_value).
    #[track_caller]
    pub fn sum<T: Reducible>(&self, value: T) -> Result<T> {
        self.reduce_value(ReduceOp::Sum, value)
    }

    /// The least of a value of each member, at every member, as [`sum`](Team::sum).
    ///
    /// # Errors
    /// As [`reduce_value`](Team::reduce_value).
    #[track_caller]
    pub fn min<T: Reducible>(&self, value: T) -> Result<T> {
        self.reduce_value(ReduceOp::Min, value)
    }

    /// The greatest of a value of each member, at every member, as [`sum`](Team::sum).
    ///
    /// # Errors
    /// As [`reduce_value`](Team::reduce_value).
    #[track_caller]
    pub fn max<T: Reducible>(&self, value: T) -> Result<T> {
        self.reduce_value(ReduceOp::Max, value)
    }

    /// Combines a value of each member, in the order of ranks; every member gets the result. Collective on
    /// this team; every member waits for all others. Each member receives the values of all others, so that
    /// arrays ([`all_reduce`](crate::Collective::all_reduce)) are faster for many members or many values.
    ///
    /// ```
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// let team = world.team();
    /// let me = world.my_pe() as u64;
    /// // The greatest value, and the rank that has it.
    /// let greater = |a: [u64; 2], b: [u64; 2]| if b[0] > a[0] { b } else { a };
    /// assert_eq!(team.reduce_value(greater, [5 * me % 7, me])?, [5, 1]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If the operation is not defined for the type, or a member makes another collective call, as far as
    /// that can be detected.
    #[track_caller]
    pub fn reduce_value<T: Element>(&self, op: impl IntoCombiner<T>, value: T) -> Result<T> {
        let combiner = self.combiner(op)?;
        let values = self.exchange_values((REDUCE_VALUE, combiner.code()), value)?;
        Ok(combined(&combiner, values).expect("a team has members"))
    }

    /// Combines the values of the ranks below this one, in their order: `None` at rank 0. With sums it is the
    /// place at which this member's part begins. Collective on this team; every member waits for all others.
    ///
    /// ```
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// use pelago::ReduceOp;
    /// let items = 10 + world.my_pe(); // 10, 11 and 12
    /// let first = world.team().exclusive_scan_value(ReduceOp::Sum, items)?.unwrap_or(0);
    /// assert_eq!(first, [0, 10, 21][world.my_pe()]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`reduce_value`](Team::reduce_value).
    #[track_caller]
    pub fn exclusive_scan_value<T: Element>(&self, op: impl IntoCombiner<T>, value: T) -> Result<Option<T>> {
        let combiner = self.combiner(op)?;
        let mut values = self.exchange_values((SCAN_VALUE, combiner.code()), value)?;
        values.truncate(self.my_rank());
        Ok(combined(&combiner, values))
    }

    /// The values of all members, in the order of ranks, at every member. Collective on this team; every
    /// member waits for all others.
    ///
    /// ```
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// assert_eq!(world.team().gather_values(10 * world.my_pe())?, [0, 10, 20]);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If a member makes another collective call, or gives a value of another size.
    #[track_caller]
    pub fn gather_values<T: Element>(&self, value: T) -> Result<Vec<T>> {
        self.exchange_values((GATHER_VALUES, size_of::<T>() as u64), value)
    }

    /// The value of the member `root`, at every member; the values of the others are ignored. Collective on
    /// this team; every member waits for all others.
    ///
    /// ```
    /// # pelago::spmd(3, |world| -> pelago::Result<()> {
    /// assert_eq!(world.team().broadcast_value(2, world.my_pe())?, 2);
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If there is no such member, or a member names another root, gives a value of another size, or makes
    /// another collective call.
    #[track_caller]
    pub fn broadcast_value<T: Element>(&self, root: Rank, value: T) -> Result<T> {
        if root >= self.n_pes() {
            let (me, last) = (self.world().my_pe(), self.n_pes() - 1);
            let reason = format!("there is no rank {root}; the ranks of the team are 0 to {last}");
            return Err(ErrorKind::BadCollective { me, operation: BROADCAST_VALUE, reason }.into());
        }
        let common = broadcast_word(root, size_of::<T>());
        Ok(self.exchange_values((BROADCAST_VALUE, common), value)?[root])
    }

    /// Exchanges a value of each member, of a call that all make with the same `common` word.
    #[track_caller]
    fn exchange_values<T: Element>(&self, call: (&'static str, u64), value: T) -> Result<Vec<T>> {
        let mut values = vec![MaybeUninit::<T>::uninit(); self.n_pes()];
        // One exchange also of values without bytes: the call waits for all members.
        for start in (0..size_of::<T>().max(1)).step_by(WORDS_BYTES) {
            let bytes = WORDS_BYTES.min(size_of::<T>() - start);
            let mut words = [0u64; 2];
            // SAFETY: these bytes of the element exist, have no padding, and fit into the words.
            unsafe {
                let source = (&raw const value).cast::<u8>().add(start);
                source.copy_to_nonoverlapping(words.as_mut_ptr().cast(), bytes);
            }
            let all = self.exchange_words_of(call, words)?;
            for (value, words) in values.iter_mut().zip(all) {
                // SAFETY: these bytes of the element exist, and the words have at least this number of bytes.
                unsafe {
                    let target = value.as_mut_ptr().cast::<u8>().add(start);
                    words.as_ptr().cast::<u8>().copy_to_nonoverlapping(target, bytes);
                }
            }
        }
        // SAFETY: all bytes of all elements were written above, and any bytes are an element, as `Element`
        // promises.
        Ok(values.into_iter().map(|value| unsafe { value.assume_init() }).collect())
    }
}

/// Values of all PEs. [`World::team`] has further operations.
impl World {
    /// The sum of a value of each PE, at every PE. Collective; every PE waits for all others.
    ///
    /// ```
    /// # pelago::try_spmd(4, |world| {
    /// assert_eq!(world.sum(world.my_pe())?, 6);
    /// assert_eq!(world.max(0.5 * world.my_pe() as f64)?, 1.5);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Team::reduce_value`].
    #[track_caller]
    pub fn sum<T: Reducible>(&self, value: T) -> Result<T> {
        World::team(self).sum(value)
    }

    /// The least of a value of each PE, at every PE, as [`sum`](World::sum).
    ///
    /// # Errors
    /// As [`Team::reduce_value`].
    #[track_caller]
    pub fn min<T: Reducible>(&self, value: T) -> Result<T> {
        World::team(self).min(value)
    }

    /// The greatest of a value of each PE, at every PE, as [`sum`](World::sum).
    ///
    /// # Errors
    /// As [`Team::reduce_value`].
    #[track_caller]
    pub fn max<T: Reducible>(&self, value: T) -> Result<T> {
        World::team(self).max(value)
    }
}
