//! Pelago: one-sided communication between the processing elements (PEs) of a job.
//!
//! N PEs run the same program. Each owns a part of a global address space, and any PE reads and writes any
//! part, without a call of the owner's program: a *put* writes to another PE's memory, a *get* reads from it,
//! a *barrier* lets all meet. PEs are processes (started by `pelago run`, hydra, mpirun or Slurm), threads of
//! such processes ([`run`]), or threads of one process ([`spmd`]). The [`guide`] begins with the first
//! program.
//!
//! ```
//! use pelago::prelude::*;
//!
//! fn main() -> pelago::Result<()> {
//!     let world = World::init()?; // joins the job; a job of one PE if nothing launched it
//!     let (me, n) = (world.my_pe(), world.n_pes());
//!     let inbox = world.alloc::<u64>(n)?; // symmetric, collective
//!     inbox.put((me + 1) % n, me, &[42])?; // one-sided: the target makes no call
//!     world.barrier();
//!     assert_eq!(inbox.local().get((me + n - 1) % n), 42);
//!     Ok(())
//! }
//! ```
//!
//! # What is safe
//! Symmetric memory is read and written through copies and atomics, never through references, as any PE may
//! change it at any time; slices of it exist only in an exclusive phase ([`Symmetric::exclusive`]), in which
//! no PE can reach the array. A race between PEs gives old or new values, or a mixture, never undefined
//! behaviour.
//!
//! # Completion and order
//! A get has its data at return; a put's source is reusable at return. A put is complete at its target after
//! [`World::quiet`] or [`World::barrier`]. Two puts are not ordered unless a [`World::fence`] stands between.
//! A PE that waits for data waits for a signal ([`View::put_signal`], [`View::signal`]) or an atomic: once
//! [`Local::wait_until`] has returned, it sees the data of that `put_signal`, and everything that was put
//! before a fence that preceded the signal. To wait for a word that is put is not portable, because some
//! networks deliver a word in two pieces. Reading in a loop (`get`, `g`) orders nothing.

#![warn(missing_debug_implementations)]

pub mod am;
mod array;
pub mod binding;
mod clock;
mod context;
pub mod distributed;
mod domain;
mod events;
mod future;
#[cfg(any(doc, doctest))]
pub mod guide;
#[cfg(test)]
mod layers;
mod lock;
mod order;
mod run;
mod show;
mod spmd;
mod team;
pub mod upc;
mod vis;
mod world;

pub mod coll {
    //! The algorithms of collective operations: their schedules, checker, choice and tuning.
    pub use pelago_core::coll::{
        MAILBOX_BYTES, candidates, check, draw, estimate, nodes, online, schedule, select, shape,
        sync_memory, table, tuning,
    };
}
pub mod event {
    //! Events: conditions that become true once, to be tested, waited for or awaited.
    pub use crate::events::*;
    pub use crate::future::EventFuture;
}
pub mod fabric {
    //! The network between nodes.
    pub use pelago_core::job::fabrics::{choice, fast_choice};
}
pub mod node {
    //! The facilities of this machine.
    pub use pelago_boot::{cores, memory_available_bytes, memory_total_bytes};
}
pub mod footprint {
    //! The memory of a PE and the start-up messages of jobs of any size.
    pub use pelago_core::footprint::{Growth, Held, Part, Scale, StartMessages};
}
pub mod sim {
    //! The simulated network, for [`Spmd::sim`](crate::Spmd::sim).
    pub use pelago_fabric::sim::{Loss, SimParams};
}
pub mod message {
    //! Two-sided messages: see [`Team::send`](crate::Team::send) and [`Team::receive`](crate::Team::receive).
    pub use crate::team::message::{
        Any, Message, ReceiveRequest, Received, SendRequest, Source, TagPattern, unexpected,
    };
}
pub mod testing;

pub use array::amo::{AtomicElement, AtomicInteger};
pub use array::local::{Local, LocalIter};
pub use array::nb::{Fetch, Region, Scope, Transfer, Update};
pub use array::p2p::{Comparison, Values, Watch};
pub use array::rma::On;
pub use array::symmetric::Symmetric;
pub use array::view::View;
pub use context::{Context, ContextKind};
pub use domain::{AtomicDomain, AtomicExecutor, AtomicOps, AtomicType, Atomics, NoSuchAtomic};
pub use lock::{Guard, Lock, RawLock};
pub use pelago_boot::{BarrierKind, Settings};
pub use pelago_core::base::counters::Counters;
/// Derive it for a struct of the program:
///
/// ```
/// use pelago::Element;
///
/// #[derive(Clone, Copy, Element)]
/// #[repr(C)]
/// struct Particle {
///     position: [f64; 3],
///     charge: f64,
/// }
/// ```
pub use pelago_core::base::element::Element;
pub use pelago_core::base::error::{Error, ErrorKind, Result};
pub use pelago_core::base::signal_op::SignalOp;
pub use pelago_core::coll::reduction::{Combiner, IntoCombiner, ReduceOp, Reducible};
pub use pelago_derive::Element;
#[doc(hidden)]
pub use pelago_fabric::sync;
pub use pelago_fabric::{AtomicKind, AtomicOp, Pe};
pub use run::{run, try_run};
pub use spmd::{Spmd, SpmdError, spmd, try_spmd};
pub use team::Collective;
pub use team::Team;
pub use team::request::{NonBlocking, Persistent, PersistentCalls, Request};
pub use team::space::Space;
pub use team::span::Span;
pub use vis::{Dimension, Indexed, Shape, Strided};
pub use world::World;

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The items that most programs need.
pub mod prelude {
    pub use crate::{AtomicOp, Comparison, SignalOp, spmd, try_spmd};
    pub use crate::{Collective, Element, Pe, ReduceOp, Symmetric, Team, World};
}
