//! Fabric providers: they move bytes from one processing element (PE) to another.
//!
//! [`Provider`] is the contract, modelled on the Scalable Fabric Interface: reliable connectionless
//! endpoints, an address vector, memory regions with keys that the application chooses and offset addressing,
//! completion counters, small puts whose source is free at return, atomics, and messages. Operations are
//! values ([`Put`], [`Get`], [`Amo`]); a provider may [`Inject`] short ones beside its other calls
//! ([`inject`]). It asks for no more than a partitioned global address space needs. An enum dispatches
//! ([`Net`]), so there is neither `dyn` nor a type parameter through the layers above. The crate
//! `pelago-fabric-testkit` has the smallest provider that keeps the contract, to start a new one from, and
//! the conformance suite, which runs every rule on every provider.
//!
//! This crate does not start jobs: a provider returns its address as bytes, and the caller carries it to the
//! others.

#[cfg(not(loom))]
pub mod amo;
pub mod biased;
pub mod brlock;
#[cfg(not(loom))]
mod contract;
#[cfg(not(loom))]
pub mod copy;
pub mod fence;
#[cfg(not(loom))]
pub mod inject;
pub mod lazy;
#[cfg(not(loom))]
mod net;
#[cfg(not(loom))]
pub mod ofi;
#[cfg(not(loom))]
mod opening;
#[cfg(not(loom))]
mod operation;
pub mod outstanding;
#[cfg(not(loom))]
pub mod secret;
pub mod shm;
#[cfg(not(loom))]
pub mod sim;
pub mod sync;
#[cfg(not(loom))]
pub mod tcp;
pub mod threads;
pub mod trylock;
pub mod types;

#[cfg(not(loom))]
pub use amo::{Atomic, AtomicKind, AtomicOp};
#[cfg(not(loom))]
pub use contract::{Inject, Lookup, Never, Provider};
#[cfg(not(loom))]
pub use net::{Net, NetInject, Open, ProviderInfo};
#[cfg(not(loom))]
pub use opening::Opening;
#[cfg(not(loom))]
pub use operation::{Amo, Completion, Get, Put, Signal};
#[cfg(not(loom))]
pub use secret::Secret;
pub use types::{
    CORRUPT_REMEDY, Completions, Event, FabricError, FabricResult, Key, Limits, Pe, Remote, Status, Token,
};
