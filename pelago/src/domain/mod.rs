//! Atomic domains: a type, a set of operations and an executor that the members of a team have agreed on, and
//! the atomics of that set on arrays of that type.
//!
//! *Mixing* is to change one word at the same time by two executors, a processor and a network card for
//! example, neither of which is atomic with the other.
//!
//! Invariant: two executors never mix. An array has one type of elements, a type one kind of word, and a kind
//! one executor in the whole job, which is fixed when the world is made (`route.rs`); the members compare it
//! when they make a domain. So atomics of several domains, and those of the plain interface, are atomic with
//! each other on a word. What is not atomic with any of them is a put or a store to the own part: a domain
//! that is [`on`](AtomicDomain::on) an array borrows it as one that is changed, so that on this PE nothing
//! else reaches the array meanwhile. What the other PEs do is for the program to see to, and so it is on this
//! PE with [`on_shared`](AtomicDomain::on_shared).
//!
//! Source: D. Bonachea and P. Hargrove, GASNet-EX: atomic domains. There a program must not mix domains, nor
//! a domain with other accesses, on a word; a program that is to be taken there keeps to that here as well.

mod handle;

pub use crate::base::atomic_ops::AtomicOps;
pub use crate::base::atomic_type::{AtomicType, NoSuchAtomic};
pub use handle::Atomics;

use crate::array::amo::AtomicElement;
use crate::array::symmetric::Symmetric;
use crate::array::view::View;
use crate::base::error::{ErrorKind, Result};
use crate::job::callback;
use crate::memory::route::Executor;
use crate::team::Team;
use crate::world::World;
use pelago_fabric::AtomicKind;
use std::fmt;
use std::marker::PhantomData;

/// The name of the call that makes a domain.
const MAKING: &str = "atomic_domain";

/// Who executes the atomics of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AtomicExecutor {
    /// The processor of the PE that asks for the atomic, as every PE maps the word.
    Processor,
    /// A processor of the node that the word lies on: of the PE that asks if it maps the word, else of the PE
    /// whose word it is, in that PE's progress, asked by a message.
    Target,
    /// The fabric.
    Fabric,
}

impl AtomicExecutor {
    const ALL: [AtomicExecutor; 3] =
        [AtomicExecutor::Processor, AtomicExecutor::Target, AtomicExecutor::Fabric];

    /// The one of a job, for words of a kind.
    fn of(world: &World, kind: AtomicKind) -> AtomicExecutor {
        let own = world.routes.executor(world.my_pe(), kind, |kind| world.net_endpoint().executes(kind));
        match own {
            Executor::Fabric => AtomicExecutor::Fabric,
            Executor::Here if world.routes.are_all_mapped() => AtomicExecutor::Processor,
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
    /// Makes an atomic domain: the operations `ops`, and no others, on words of type `T`. Collective on this
    /// team; a meeting. The members are the PEs that use it; the words may lie on any PE of the arrays that
    /// it is used on.
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
    /// If the members do not all ask for the same operations on the same type, there is no operation, or one
    /// that the type does not have ([`AtomicType::answer`]).
    #[track_caller]
    pub fn atomic_domain<T: AtomicElement>(&self, ops: impl Into<AtomicOps>) -> Result<AtomicDomain<'w, T>> {
        let (world, ops) = (self.world(), ops.into());
        callback::forbid(world, MAKING);
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
    /// The operations that it was made for.
    pub fn operations(&self) -> AtomicOps {
        self.ops
    }

    /// The type of its words, as the table has it; `isize` and `usize` are integers of their size there.
    pub fn element(&self) -> AtomicType {
        AtomicType::of(T::KIND)
    }

    /// Who executes its atomics, the same for all members, all arrays and as long as the job lasts.
    pub fn executor(&self) -> AtomicExecutor {
        self.executor
    }

    /// The domain's operations on an array. Nothing else reaches the array on this PE while the result is in
    /// use; the operations of other domains and of the plain interface are for before and after.
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
    /// If the array belongs to another world than the domain, or its exclusive phase has not ended here.
    pub fn on<'a>(&self, array: &'a mut Symmetric<'_, T>) -> Result<Atomics<'a, T>> {
        self.bind("on", array)
    }

    /// As [`on`](AtomicDomain::on), for an array that others on this PE refer to as well, or one that is seen
    /// through a context. That they neither put nor store to the words that the domain's operations change,
    /// at the same time, is for the program to see to.
    ///
    /// # Errors
    /// As [`on`](AtomicDomain::on).
    pub fn on_shared<'a>(&self, array: &'a View<'_, T>) -> Result<Atomics<'a, T>> {
        self.bind("on_shared", array)
    }

    fn bind<'a>(&self, operation: &'static str, array: &'a View<'_, T>) -> Result<Atomics<'a, T>> {
        array.check_world(operation, self.world)?;
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

/// What a member asks for, as two words.
struct Offer {
    kind: AtomicKind,
    executor: AtomicExecutor,
    ops: AtomicOps,
}

impl Offer {
    fn words(&self) -> [u64; 2] {
        [self.kind as u64 | (self.executor as u64) << 8, self.ops.bits()]
    }

    /// What such words ask for, for a message.
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
