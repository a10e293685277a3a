//! Atomic domains: a type, a set of operations and an executor that the members of a team have agreed on, and
//! the atomics of that set on arrays of that type.
//!
//! *Mixing* means that two executors change one word at the same time, for example a processor and a network
//! card, which are not atomic with each other.
//!
//! Invariant: two executors never mix. An array has one type of elements, a type one kind of word, and a kind
//! one executor in the whole job, which is fixed when the world is created (`route.rs`); the members compare
//! it when they create a domain. So atomics of several domains, and those of the plain interface, are atomic
//! with each other on a word. A put, or a store to the own part, is not atomic with any of them. A domain
//! that is used [`on`](AtomicDomain::on) an array borrows it mutably, so that no other code of this PE
//! accesses the array meanwhile. The program must ensure the same for the other PEs, and with
//! [`on_shared`](AtomicDomain::on_shared) also for this PE.
//!
//! Source: D. Bonachea and P. Hargrove, GASNet-EX: atomic domains. GASNet-EX forbids a program to mix
//! domains, or a domain and other accesses, on a word. A program that is to be portable to GASNet-EX must
//! obey this rule here as well.

mod handle;

pub use handle::Atomics;
pub use pelago_core::base::atomic_ops::AtomicOps;
pub use pelago_core::base::atomic_type::{AtomicType, NoSuchAtomic};

use crate::array::amo::AtomicElement;
use crate::array::symmetric::Symmetric;
use crate::array::view::View;
use crate::team::Team;
use crate::world::World;
use pelago_core::base::error::{ErrorKind, Result};
use pelago_core::job::callback;
use pelago_core::memory::route::Executor;
use pelago_fabric::AtomicKind;
use std::fmt;
use std::marker::PhantomData;

/// The name of the call that creates a domain.
const MAKING: &str = "atomic_domain";

/// The executor of the atomics of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AtomicExecutor {
    /// The processor of the PE that starts the atomic, because every PE maps the word.
    Processor,
    /// A processor of the node that has the word: the processor of the PE that starts the atomic if it maps
    /// the word; otherwise the processor of the PE that owns the word, which executes a request in its
    /// progress.
    Target,
    /// The fabric.
    Fabric,
}

impl AtomicExecutor {
    const ALL: [AtomicExecutor; 3] =
        [AtomicExecutor::Processor, AtomicExecutor::Target, AtomicExecutor::Fabric];

    /// The executor of a job for words of a kind.
    fn of(world: &World, kind: AtomicKind) -> AtomicExecutor {
        let own = world
            .core()
            .routes
            .executor(world.my_pe(), kind, |kind| world.core().net_endpoint().executes(kind));
        match own {
            Executor::Fabric => AtomicExecutor::Fabric,
            Executor::Here if world.core().routes.are_all_mapped() => AtomicExecutor::Processor,
            Executor::Here | Executor::Target => AtomicExecutor::Target,
        }
    }
}

impl fmt::Display for AtomicExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AtomicExecutor::Processor => "the processor of who asks",
            AtomicExecutor::Target => "the target's processor",
            AtomicExecutor::Fabric => "the fabric",
        })
    }
}

/// An atomic domain: see [`Team::atomic_domain`]. Dropping it is local.
pub struct AtomicDomain<'w, T: AtomicElement> {
    world: &'w World,
    ops: AtomicOps,
    executor: AtomicExecutor,
    of: PhantomData<fn(T) -> T>,
}

impl<'w> Team<'w> {
    /// Creates an atomic domain: the operations `ops`, and no others, on words of type `T`. Collective over
    /// this team; every member waits for all others. The members are the PEs that use the domain; the words
    /// may lie on any PE of the arrays that it is used on.
    ///
    /// ```
    /// use pelago::{AtomicOp, prelude::*};
    /// # pelago::spmd(4, |world| -> pelago::Result<()> {
    /// let mut hits = world.alloc_zeroed::<u32>(8)?;
    /// let counting = world.team().atomic_domain::<u32>([AtomicOp::Add, AtomicOp::Fetch])?;
    /// let counts = counting.on(&mut hits)?;
    /// counts.add(0, 3, 1)?;
    /// world.barrier();
    /// assert_eq!(counts.atomic_fetch(0, 3)?, 4);
    /// assert!(counts.swap(0, 3, 0).is_err()); // the domain has no Set
    /// # world.barrier();
    /// # Ok(()) }).unwrap().into_iter().collect::<pelago::Result<()>>().unwrap();
    /// ```
    ///
    /// # Errors
    /// If the members do not all request the same operations on the same type, if the set of operations is
    /// empty, or if the type does not have one of them ([`AtomicType::answer`]).
    #[track_caller]
    pub fn atomic_domain<T: AtomicElement>(&self, ops: impl Into<AtomicOps>) -> Result<AtomicDomain<'w, T>> {
        let (world, ops) = (self.world(), ops.into());
        callback::forbid(world.core(), MAKING);
        let executor = AtomicExecutor::of(world, T::KIND);
        let mine = Offer { kind: T::KIND, executor, ops }.words();
        let all = self.exchange_words(MAKING, mine)?;
        let refused = |reason| ErrorKind::BadDomain { me: world.my_pe(), operation: MAKING, reason };
        if let Some(rank) = all.iter().position(|&theirs| theirs != mine) {
            let (me, pe) = (world.my_pe(), self.pe(rank));
            let (theirs, mine) = (Offer::told(all[rank]), Offer::told(mine));
            let reason =
                format!("PE {pe} asks for {theirs}, PE {me} for {mine}. All members must ask for the same");
            return Err(refused(reason).into());
        }
        if ops.is_empty() {
            let reason = "it has no operation. Name those that it is for, of the nineteen".to_owned();
            return Err(refused(reason).into());
        }
        let of = AtomicType::of(T::KIND);
        if let Some((op, why)) = ops.iter().find_map(|op| Some((op, of.answer(op).err()?))) {
            let reason = format!("there is no {op:?} on {:?}: {why}. Leave it out", T::KIND);
            return Err(refused(reason).into());
        }
        Ok(AtomicDomain { world, ops, executor, of: PhantomData })
    }
}

impl<T: AtomicElement> AtomicDomain<'_, T> {
    /// The operations that the domain was created for.
    pub fn operations(&self) -> AtomicOps {
        self.ops
    }

    /// The type of its words in the table of atomics; `isize` and `usize` are listed as integers of their
    /// size.
    pub fn element(&self) -> AtomicType {
        AtomicType::of(T::KIND)
    }

    /// The executor of its atomics. It is the same for all members and all arrays, for the lifetime of the
    /// job.
    pub fn executor(&self) -> AtomicExecutor {
        self.executor
    }

    /// Returns the domain's operations on an array. No other code of this PE accesses the array while the
    /// result is in use; operations of other domains and of the plain interface are possible before and
    /// after.
    ///
    /// ```compile_fail,E0502
    /// # use pelago::AtomicOp;
    /// # pelago::spmd(1, |world| -> pelago::Result<()> {
    /// let mut words = world.alloc_zeroed::<u64>(1)?;
    /// let domain = world.team().atomic_domain::<u64>(AtomicOp::Add)?;
    /// let sums = domain.on(&mut words)?;
    /// words.put(0, 0, &[7])?; // a put is not atomic with the domain's operations
    /// sums.add(0, 0, 1)
    /// # });
    /// ```
    ///
    /// # Errors
    /// If the array belongs to another world than the domain, or its exclusive phase has not ended on this
    /// PE.
    pub fn on<'a>(&self, array: &'a mut Symmetric<'_, T>) -> Result<Atomics<'a, T>> {
        self.bind("on", array)
    }

    /// As [`on`](AtomicDomain::on), for an array that is also referenced elsewhere on this PE, or that is
    /// seen through a context. The program must ensure that no put or store changes a word at the same time
    /// as the domain's operations.
    ///
    /// # Errors
    /// As [`on`](AtomicDomain::on).
    pub fn on_shared<'a>(&self, array: &'a View<'_, T>) -> Result<Atomics<'a, T>> {
        self.bind("on_shared", array)
    }

    fn bind<'a>(&self, operation: &'static str, array: &'a View<'_, T>) -> Result<Atomics<'a, T>> {
        array.check_world(operation, self.world.core())?;
        array.check_open(operation)?;
        Ok(Atomics::new(array, self.ops, self.executor))
    }
}

impl<T: AtomicElement> fmt::Debug for AtomicDomain<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (of, executor) = (self.element(), self.executor);
        f.debug_struct("AtomicDomain")
            .field("element", &of)
            .field("operations", &self.ops)
            .field("executor", &executor)
            .finish()
    }
}

/// The request of a member, encoded as two words.
struct Offer {
    kind: AtomicKind,
    executor: AtomicExecutor,
    ops: AtomicOps,
}

impl Offer {
    fn words(&self) -> [u64; 2] {
        [self.kind as u64 | (self.executor as u64) << 8, self.ops.bits()]
    }

    /// The description of such a request, for messages.
    fn told([first, ops]: [u64; 2]) -> String {
        let kind = AtomicKind::ALL.get((first & 0xFF) as usize);
        let executor = AtomicExecutor::ALL.get((first >> 8) as usize);
        let (Some(kind), Some(executor)) = (kind, executor) else { return "something else".to_owned() };
        format!("{} on {kind:?}, executed by {executor}", AtomicOps::from_bits(ops))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pelago_fabric::AtomicOp;

    #[test]
    fn offers_differ_in_each_part_and_are_told_in_words() {
        let offer = |kind, executor, ops: &[AtomicOp]| Offer { kind, executor, ops: ops.into() }.words();
        let all: Vec<[u64; 2]> = AtomicKind::ALL
            .into_iter()
            .flat_map(|kind| AtomicExecutor::ALL.map(|executor| (kind, executor)))
            .flat_map(|(kind, executor)| [&[][..], &[AtomicOp::Add]].map(|ops| offer(kind, executor, ops)))
            .collect();
        assert!((1..all.len()).all(|i| !all[..i].contains(&all[i])), "{all:?}");
        let told = Offer::told(offer(AtomicKind::ComplexF32, AtomicExecutor::Fabric, &[AtomicOp::Add]));
        assert_eq!(told, "Add on ComplexF32, executed by the fabric");
        assert_eq!(Offer::told([0x0303, 1]), "something else");
        assert_eq!(Offer::told([0x000B, 1]), "something else");
    }
}
